//! `rocov report --uniformity` shows how many executions of each line had all lanes of the wave active. The
//! source of the program states these numbers: they follow from its conditions on the lanes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::artifacts::repository;
use crate::support::command::run;
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::program::Program;
use crate::support::unpacked::not_run;

const SOURCE: &str = "uniformity/shares.hip";
const TARGET: &str = "gfx942";

/// For each line, its executions and those with all lanes active; `None` if no counter tells the latter.
type Lines = BTreeMap<u64, (u64, Option<u64>)>;

/// The numbers that the source states, for several runs.
fn stated(runs: u64) -> Lines {
    let path = repository("testdata/programs").join(SOURCE);
    let text = fs::read_to_string(path).expect("a source");
    let lines = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let (uniform, executions) = line.rsplit_once("// ")?.1.split_once(" of ")?;
        let executions: u64 = executions.parse().ok()?;
        let uniform: Option<u64> = uniform.parse().ok();
        Some((
            number,
            (executions * runs, uniform.map(|number| number * runs)),
        ))
    });
    lines.collect()
}

/// The numbers in a report in JSON.
fn reported(report: &str) -> Lines {
    let report = json(report);
    let columns = report["rocov"]["uniformity"].as_array().expect("a list");
    assert_eq!(columns.len(), 1, "{columns:?}");
    let files = columns[0]["files"].as_array().expect("a list");
    assert_eq!(files.len(), 1, "{files:?}");
    let lines = files[0]["lines"].as_array().expect("a list").iter();
    let number = |value: &Value| value.as_u64().expect("a number");
    let lines = lines.map(|line| {
        let uniform = &line["uniform"];
        let uniform = (!uniform.is_null()).then(|| number(uniform));
        (number(&line["line"]), (number(&line["count"]), uniform))
    });
    lines.collect()
}

/// The program by a release of clang.
struct Built {
    program: Program,
    compiler: &'static Compiler,
    directory: TempDir,
}

impl Built {
    /// `None` on a machine without this clang or HIP 7.2.4.
    fn by(release: u32, level: &str) -> Option<Self> {
        let (Some(stack), Some(compiler)) = (Stack::hip_7(), Compiler::find(release)) else {
            not_run("the uniformity of code on HIP 7.2.4");
            return None;
        };
        let target = format!("--offload-arch={TARGET}");
        Some(Self {
            program: Program::by(compiler, stack, &[SOURCE], &[], &[level, &target]),
            compiler,
            directory: tempfile::tempdir().expect("a temporary directory"),
        })
    }

    /// A path in the temporary directory.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the program with data in this directory, which it returns.
    fn run(&self, data: &str) -> PathBuf {
        let data = self.path(data);
        succeeds(&mut self.program.under_rocov(TARGET, &data));
        data
    }

    /// `rocov report --uniformity` on data.
    fn report(&self, data: &[&Path]) -> Command {
        let mut report = self.compiler.rocov("report");
        report.args(data).arg("--uniformity");
        report
    }

    fn lines(&self, data: &Path) -> Lines {
        reported(&succeeds(self.report(&[data]).arg("--json")))
    }
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    run(command).success().silently().stdout
}

#[test]
fn each_line_has_the_counts_that_its_source_states() {
    for level in ["-O0", "-O3"] {
        let Some(built) = Built::by(23, level) else {
            return;
        };
        assert_eq!(built.lines(&built.run("data")), stated(1), "{level}");
    }
}

#[test]
fn counts_of_several_processes_add_up_in_data_pools_and_merged_directories() {
    let Some(program) = Built::by(23, "-O1") else {
        return;
    };
    program.run("data");
    let data = program.run("data");
    assert_eq!(program.lines(&data), stated(2));

    let pattern = program.path("pools/%m.profraw");
    for _ in 0..2 {
        succeeds(&mut program.program.with_pattern(TARGET, &pattern));
    }
    assert_eq!(program.lines(&program.path("pools")), stated(2));

    let merged = program.path("merged");
    let mut merge = program.compiler.rocov("merge");
    merge.args([&data, &program.run("more")]);
    succeeds(merge.arg("-o").arg(&merged));
    assert_eq!(program.lines(&merged), stated(3));
}

#[test]
fn the_text_has_the_figures_of_files_and_the_divergent_lines() {
    let Some(built) = Built::by(23, "-O1") else {
        return;
    };
    let report = succeeds(&mut built.report(&[&built.run("data")]));
    let (_, report) = report
        .split_once("Uniformity on gfx942:")
        .expect("its table");
    let stated = stated(1);
    let divergent = stated
        .iter()
        .filter_map(|(line, (executions, uniform))| Some((line, *executions, (*uniform)?)))
        .filter(|(_, executions, uniform)| uniform < executions);
    let shares = divergent.clone().map(|(line, executions, uniform)| {
        let share = (10_000 * uniform / executions).to_string();
        let share = format!("{share:0>3}");
        let (whole, hundredths) = share.split_at(share.len() - 2);
        format!("shares.hip:{line}  {whole}.{hundredths}%")
    });
    let shown = report.lines().filter_map(|line| {
        let (_, line) = line.rsplit_once('/').unwrap_or(("", line.trim_start()));
        line.starts_with("shares.hip:").then(|| line.to_owned())
    });
    assert_eq!(shown.collect::<Vec<_>>(), shares.collect::<Vec<_>>());

    let total: Vec<_> = report
        .lines()
        .find(|line| line.starts_with("TOTAL"))
        .expect("a total")
        .split_whitespace()
        .collect();
    let unknown = stated.values().filter(|(_, uniform)| uniform.is_none());
    let numbers = [stated.len(), divergent.count(), unknown.count()];
    assert_eq!(total[1..4], numbers.map(|number| number.to_string()));
}

#[test]
fn code_without_uniform_counters_is_named() {
    let (Some(new), Some(old)) = (Built::by(23, "-O1"), Built::by(22, "-O1")) else {
        return;
    };
    let (data, without) = (new.run("data"), old.run("data"));
    let failed = run(&mut new.report(&[&without])).with_status(1);
    failed.says(&["has uniform counters", "clang 23 or later"]);

    let both = run(new.report(&[&data, &without]).args(["--json"]))
        .success()
        .says(&["1 of 2 code objects", "clang 23 or later"]);
    let lines = reported(&both.stdout);
    // The other half of the executions is not known.
    let unknown = stated(2)
        .into_iter()
        .map(|(line, (count, _))| (line, (count, None)));
    assert_eq!(lines, unknown.collect());
}
