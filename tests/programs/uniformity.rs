//! `rocov report --uniformity` tells the share of a line's executions that have all lanes of the wave
//! active. The source of the program states it.

use crate::support::artifacts::repository;
use crate::support::command::run;
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::program::Program;
use crate::support::unpacked::not_run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SOURCE: &str = "uniformity.hip";
const TARGET: &str = "gfx942";

/// The shares that the source states, by line.
fn stated() -> BTreeMap<u64, String> {
    let path = repository("testdata/programs").join(SOURCE);
    let text = fs::read_to_string(path).expect("a source");
    let shares = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let (code, share) = line.split_once("// ")?;
        (!code.is_empty()).then(|| (number, share.to_owned()))
    });
    shares.collect()
}

/// Runs of the program by one compiler.
struct Ran {
    _directory: TempDir,
    data: PathBuf,
    compiler: &'static Compiler,
}

impl Ran {
    fn new(stack: Stack, compiler: &'static Compiler, level: &str, runs: usize) -> Self {
        let target = format!("--offload-arch={TARGET}");
        let more = [level, &target];
        let program = Program::by(compiler.clang, stack, &[SOURCE], &[], &more);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        for _ in 0..runs {
            run(&mut program.under_rocov(TARGET, &data))
                .success()
                .silently();
        }
        Self {
            _directory: directory,
            data,
            compiler,
        }
    }

    fn report(&self, more: &[&Path], options: &[&str]) -> String {
        let mut report = self.compiler.rocov("report");
        report.arg(&self.data).args(more).arg("--uniformity");
        run(report.args(options)).success().silently().stdout
    }
}

/// The shares of the lines that ran, as a report in JSON has them.
fn reported(report: &str) -> BTreeMap<u64, String> {
    let report = json(report);
    let columns = report["rocov"]["uniformity"].as_array().expect("a list");
    assert_eq!(columns.len(), 1, "{columns:?}");
    let files = columns[0]["files"].as_array().expect("a list");
    assert_eq!(files.len(), 1, "{files:?}");
    let lines = files[0]["lines"].as_array().expect("a list").iter();
    let shares = lines.map(|line| {
        let count = line["count"].as_f64().expect("a count");
        let share = match &line["uniform"] {
            Value::Null => "not known".to_owned(),
            uniform => format!("{:.2}%", 100.0 * uniform.as_f64().expect("a count") / count),
        };
        (line["line"].as_u64().expect("a line"), share)
    });
    shares.collect()
}

#[test]
fn each_line_has_the_share_that_its_source_states() {
    let Some(stack) = Stack::hip_7() else {
        return not_run("the uniformity of code on HIP 7.2.4");
    };
    for compiler in [23, 24].into_iter().filter_map(Compiler::find) {
        for level in ["-O0", "-O3"] {
            let ran = Ran::new(stack, compiler, level, 1);
            let report = ran.report(&[], &["--json"]);
            assert_eq!(reported(&report), stated(), "{compiler:?} {level}");
        }
    }
}
