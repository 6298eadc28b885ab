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
use crate::support::compile::{Compilation, device_header};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::merged_of_arch_by;
use crate::support::program::{Program, flags_for};
use crate::support::unpacked::not_run;

const SOURCE: &str = "uniformity/shares.hip";
/// Another source of the program, without a kernel that it runs.
const OTHER: &str = "upstream/cold.hip";
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
    /// With uniform counters. `None` on a machine without this clang or HIP 7.2.4.
    fn by(release: u32, level: &str) -> Option<Self> {
        Self::with(release, level, &["--uniformity"])
    }

    /// With these options of `rocov flags`.
    fn with(release: u32, level: &str, options: &[&str]) -> Option<Self> {
        let target = format!("--offload-arch={TARGET}");
        Self::compiled(release, |compiler, stack| {
            Program::by(compiler, stack, &[SOURCE], options, &[level, &target])
        })
    }

    /// Without a coverage mapping, as for PGO.
    fn for_pgo(release: u32, level: &str) -> Option<Self> {
        let target = format!("--offload-arch={TARGET}");
        let without = |flag: &str| flag.replace("-fcoverage-mapping", "-fno-coverage-mapping");
        Self::compiled(release, |compiler, stack| {
            let more = [level, &target];
            Program::with_changed_flags(compiler, stack, &[SOURCE], without, &more)
        })
    }

    /// Two units in one code object. Only the first has uniform counters.
    fn mixed(release: u32) -> Option<Self> {
        Self::compiled(release, |compiler, stack| {
            let compilation = |options: &[&str]| {
                Compilation::by(compiler.clang)
                    .arguments(stack.flags_for(compiler))
                    .arguments(["-O1", "-fgpu-rdc", "-Wno-unused-command-line-argument"])
                    .arguments([format!("--offload-arch={TARGET}")])
                    .arguments(flags_for(compiler.clang, options))
                    .reads([device_header()])
            };
            let unit = |source: &str, options: &[&str]| {
                let source = repository("testdata/programs").join(source);
                let unit = compilation(options).arguments(["-c"]).source(source);
                unit.output("unit")
            };
            let first = unit(SOURCE, &["--uniformity"]);
            let second = unit(OTHER, &[]);
            let program = compilation(&[]).source(first).source(second);
            let file = program.output("mixed");
            Program { file }
        })
    }

    fn compiled(
        release: u32,
        compile: impl FnOnce(&'static Compiler, Stack) -> Program,
    ) -> Option<Self> {
        let (Some(stack), Some(compiler)) = (Stack::hip_7(), Compiler::find(release)) else {
            not_run("the uniformity of code on HIP 7.2.4");
            return None;
        };
        Some(Self {
            program: compile(compiler, stack),
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
    let Some(new) = Built::by(23, "-O1") else {
        return;
    };
    let data = new.run("data");
    // clang 22 has no uniform counters. Those of clang 23 have to be asked for.
    for release in [22, 23] {
        let Some(old) = Built::with(release, "-O1", &[]) else {
            return;
        };
        let without = old.run("data");
        let failed = run(&mut new.report(&[&without])).with_status(1);
        failed.says(&[
            "has uniform counters",
            "clang 23 or later",
            "`rocov flags --uniformity`",
        ]);

        let both = run(new.report(&[&data, &without]).args(["--json"]))
            .success()
            .says(&["1 of 2 code objects", "`rocov flags --uniformity`"]);
        let lines = reported(&both.stdout);
        // The other half of the executions is not known.
        let unknown = stated(2)
            .into_iter()
            .map(|(line, (count, _))| (line, (count, None)));
        assert_eq!(lines, unknown.collect(), "clang {release}");
    }
}

#[test]
fn a_unit_without_uniform_counters_leaves_out_those_of_its_code_object() {
    let Some(mixed) = Built::mixed(23) else {
        return;
    };
    let data = mixed.run("data");
    run(&mut mixed.report(&[&data]))
        .with_status(1)
        .says(&["has uniform counters"]);
    let mut report = mixed.compiler.rocov("report");
    let report = json(succeeds(report.arg(&data).arg("--json")));
    let totals = &report["data"][0]["totals"]["functions"];
    // One function of the first unit and one of the second do not run.
    assert_eq!(
        (&totals["count"], &totals["covered"]),
        (&11.into(), &9.into())
    );
}

/// LLVM's own tools are the judges: a profile with uniform counters names each block uniform or divergent.
#[test]
fn only_coverage_leaves_uniform_counters_out_unless_they_are_asked_for() {
    for (level, release) in [("-O0", 23), ("-O2", 23), ("-O2", 24)] {
        let shown = |built: &Built, data: &str| {
            let data = built.run(data);
            let profdata = built.compiler.tool("llvm-profdata");
            let merged = merged_of_arch_by(profdata, &data, TARGET);
            let mut show = Command::new(profdata);
            show.args(["show", "--all-functions", "--counts"]);
            let shown = succeeds(show.arg(merged));
            let (uniform, counts): (Vec<_>, Vec<_>) = shown
                .lines()
                .map(str::to_owned)
                .partition(|line| line.contains("Block uniformity"));
            (uniform, counts)
        };
        let (Some(default), Some(all), Some(llvm), Some(for_pgo)) = (
            Built::with(release, level, &[]),
            Built::by(release, level),
            Built::with(release, level, &["--counters=llvm"]),
            Built::for_pgo(release, level),
        ) else {
            return;
        };
        let (uniform, counts) = shown(&llvm, "data");
        assert!(uniform.len() > 5, "{uniform:?}");
        assert_eq!(shown(&all, "data"), (uniform.clone(), counts.clone()));
        assert_eq!(shown(&for_pgo, "data"), (uniform, counts.clone()));
        assert_eq!(shown(&default, "data"), (Vec::new(), counts));
    }
}
