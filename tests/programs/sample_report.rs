//! A user's whole workflow: compile the sample with the flags of `rocov flags`, run it under `rocov
//! run`, read `rocov report`.
//!
//! Comments in the sample that start with `never` mark the lines that never run. The sample prints
//! the expected number of its loop's turns.

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{CLANG, sample_on};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::{COV, PROFDATA, functions, merge, merged_of_arch_by, raw_profiles};
use crate::support::program::flags_for;
use crate::support::unpacked::not_run;
use std::env;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 3] = ["main.hip", "statistics.h", "statistics.hip"];

/// Work-items of each kernel that is launched: workgroups of 256 for 1000 elements.
const WORK_ITEMS: u64 = 1024;
const ELEMENTS: u64 = 1000;
const CALLS: [(&str, u64); 7] = [
    ("clean_kernel", WORK_ITEMS),
    ("steps_kernel", WORK_ITEMS),
    ("histogram_kernel", WORK_ITEMS),
    ("block_sums_kernel", WORK_ITEMS),
    ("scale_kernel", 0),
    ("bin_of", ELEMENTS),
    ("clamp_to", ELEMENTS),
];

/// The compiler of the other tests.
#[test]
fn is_right_for_clang_22() {
    run_sample(CLANG, &[]).is_right();
}

/// The newest clang that ignores the usual flags for GPU code and needs other flags.
#[test]
fn is_right_for_clang_19() {
    run_sample("clang++-19", &[]).is_right();
}

/// The oldest clang with GPU code that rocov can drain.
#[test]
fn is_right_for_clang_15() {
    // An llvm-profdata reads only raw profiles of its own version.
    let tools = Tools {
        directory: None,
        profdata: "llvm-profdata-15",
    };
    run_sample("clang++-15", &[]).read_by(tools).is_right();
}

/// The newest clang on the newest HIP gives clang 22's results without a warning.
#[test]
fn of_clang_23_on_hip_7_is_that_of_clang_22() {
    let (Some(stack), Some(newest)) = (Stack::hip_7(), Compiler::find(23)) else {
        return not_run("the sample by clang 23 on HIP 7.2.4");
    };
    let tools = Tools {
        directory: newest.directory(),
        profdata: newest.tool("llvm-profdata"),
    };
    let ran = run_sample_on(stack, "gfx942", newest.clang, &[]).read_by(tools);
    ran.table_counts_the_lines_that_never_run();
    ran.source_is_shown_with_0_exactly_where_it_never_runs();
    let before = run_sample_on(stack, "gfx942", CLANG, &[]);
    let figures = |ran: &Ran| {
        // The names of files come before the table.
        let report = ran.report(&[]);
        let from = report.find("Filename").expect("a table");
        report[from..].to_owned()
    };
    assert_eq!(figures(&ran), figures(&before));
    let lines = |ran: &Ran| {
        let shown = ran.report(&["--show"]);
        SOURCES.map(|source| counts_beside_lines(&shown, source))
    };
    assert_eq!(lines(&ran), lines(&before));
    assert_eq!(ran.counts_of_functions(), before.counts_of_functions());
}

/// ROCr 7.2.4 prints the number of missing signals at its shutdown: some of its own.
#[test]
fn on_hip_7_no_signal_is_left_behind() {
    let Some(stack) = Stack::hip_7() else {
        return not_run("the sample on HIP 7.2.4");
    };
    let ran = run_sample_on(stack, "gfx942", CLANG, &[]);
    let mut alone = limited("env");
    alone.arg(format!(
        "LD_PRELOAD={}",
        built("librocov_modelgpu.so").display()
    ));
    alone.arg("ROCOV_MODELGPU=gfx942").args(stack.starter());
    let alone = run(alone.arg(&ran.program)).success().silently();
    assert_eq!(ran.leaked_signals, alone.leaked_signals);
}

#[test]
fn is_right_beside_instrumented_host_code() {
    let ran = run_sample(CLANG, &["--host"]);
    ran.is_right();
    let mut host = raw_profiles(&ran.data);
    host.retain(|path| functions(path).contains_key("main"));
    assert_eq!(host.len(), 1, "profiles of host code: {host:?}");

    // Host code has llvm-cov's figures and does not change the GPU's.
    let merged = ran.data.join("expected.profdata");
    merge(&host, &merged);
    let mut export = limited(COV);
    export.args(["export", "-instr-profile"]);
    export.arg(merged).arg(&ran.program);
    let expected = json(run(&mut export).success().silently().stdout);
    let program = ran.program.to_str().expect("a path in UTF-8");
    let both = json(ran.report(&["--json", "--host-binary", program]));
    assert_eq!(both["rocov"]["columns"][1]["name"], "host");
    assert_eq!(both["data"][1]["totals"], expected["data"][0]["totals"]);
    assert!(expected["data"][0]["totals"]["lines"]["covered"].as_u64() > Some(0));
    let device = json(ran.report(&["--json"]));
    assert_eq!(both["data"][0], device["data"][0]);
}

/// The exit status that the test requests from the sample; a drain must not change it.
const STATUS: i32 = 42;

/// A run of the sample: the program, its data directory, its output.
struct Ran {
    _directory: tempfile::TempDir,
    data: PathBuf,
    program: PathBuf,
    stdout: String,
    leaked_signals: u64,
    target: &'static str,
    tools: Tools,
}

/// LLVM's tools that read the profiles.
#[derive(Clone, Copy)]
struct Tools {
    /// The directory in which `rocov report` searches first.
    directory: Option<&'static Path>,
    profdata: &'static str,
}

fn run_sample(compiler: &'static str, options: &[&str]) -> Ran {
    run_sample_on(Stack::Debian12, "gfx90a", compiler, options)
}

fn run_sample_on(
    stack: Stack,
    target: &'static str,
    compiler: &'static str,
    options: &[&str],
) -> Ran {
    let mut flags = flags_for(compiler, options);
    flags.push(format!("--offload-arch={target}").into());
    let program = sample_on(stack, compiler, &flags);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = stack.launcher(target, &data);
    command
        .arg(&program)
        .args(["--exit-status", &STATUS.to_string()]);
    let ended = run(&mut command).with_status(STATUS).silently();
    Ran {
        _directory: directory,
        data,
        program,
        stdout: ended.stdout,
        leaked_signals: ended.leaked_signals,
        target,
        tools: Tools {
            directory: None,
            profdata: PROFDATA,
        },
    }
}

impl Ran {
    /// Reads the profiles with these tools.
    fn read_by(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    fn is_right(&self) {
        self.table_counts_the_lines_that_never_run();
        self.source_is_shown_with_0_exactly_where_it_never_runs();
        self.counts_are_those_that_the_program_knows();
    }

    /// The output of `rocov report` with these arguments.
    fn report(&self, arguments: &[&str]) -> String {
        let mut report = limited(built("rocov"));
        report.arg("report").arg(&self.data).args(arguments);
        if let Some(directory) = self.tools.directory {
            let path = env::var_os("PATH").unwrap_or_default();
            let mut places = vec![directory.to_owned()];
            places.extend(env::split_paths(&path));
            report.env(
                "PATH",
                env::join_paths(places).expect("paths without colons"),
            );
        }
        run(&mut report).success().silently().stdout
    }

    fn merged_profile(&self) -> PathBuf {
        merged_of_arch_by(self.tools.profdata, &self.data, self.target)
    }

    /// All functions and their counts, as llvm-profdata prints them, sorted.
    fn counts_of_functions(&self) -> Vec<String> {
        let mut show = limited(self.tools.profdata);
        show.args(["show", "--all-functions", "--counts"]);
        show.arg(self.merged_profile());
        let shown = run(&mut show).success().silently().stdout;
        let (functions, _) = shown
            .split_once("Instrumentation level")
            .expect("a summary");
        let mut functions: Vec<String> = functions.split("\n  _").map(String::from).collect();
        // clang 22 does not know these.
        for function in &mut functions {
            let kept = function
                .lines()
                .filter(|line| !line.contains("Block uniformity"));
            *function = kept.collect::<Vec<_>>().join("\n");
        }
        functions.sort();
        functions
    }

    fn table_counts_the_lines_that_never_run(&self) {
        let table = self.report(&[]);
        for source in SOURCES {
            let row: Vec<&str> = table
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>())
                .find(|row| row.first().is_some_and(|name| name.ends_with(source)))
                .unwrap_or_else(|| panic!("no {source} in the table:\n{table}"));
            // Name, then total, missed and percentage of regions, of functions and of lines.
            let missed: usize = row[8].parse().expect("missed lines are a number");
            let expected = lines_that_never_run(source).len();
            assert_eq!(missed, expected, "missed lines of {source}:\n{table}");
        }
    }

    fn source_is_shown_with_0_exactly_where_it_never_runs(&self) {
        let shown = self.report(&["--show"]);
        for source in SOURCES {
            let counts = counts_beside_lines(&shown, source);
            let (missed, run): (Vec<_>, Vec<_>) = counts.iter().partition(|it| it.1 == "0");
            let missed: Vec<usize> = missed.iter().map(|(line, _)| *line).collect();
            let expected = lines_that_never_run(source);
            assert_eq!(missed, expected, "lines of {source} with 0:\n{shown}");
            assert!(!run.is_empty(), "nothing of {source} ran:\n{shown}");
        }
    }

    fn counts_are_those_that_the_program_knows(&self) {
        self.report(&[]);
        let functions = functions(&self.merged_profile());
        for (name, expected) in CALLS {
            let matching: Vec<_> = functions.iter().filter(|it| it.0.contains(name)).collect();
            assert_eq!(matching.len(), 1, "functions called {name}: {functions:?}");
            assert_eq!(matching[0].1.calls, expected, "calls of {name}");
        }

        // "sample: 1000 measurements, 59542 steps, all as on the CPU"
        let (before, _) = self
            .stdout
            .split_once(" steps,")
            .expect("the sample counts");
        let steps = before.rsplit(' ').next().unwrap_or_default();
        let expected = format!("DA:{},{steps}", line_of("main.hip", "// once per step"));
        let lcov = self.lcov();
        assert!(
            lcov.lines().any(|record| record == expected),
            "no {expected}:\n{lcov}"
        );
    }

    /// Exact counts of lines, from the kept device ELFs.
    fn lcov(&self) -> String {
        let mut export = limited(COV);
        export.args(["export", "-format=lcov", "-instr-profile"]);
        export.arg(self.merged_profile());
        let objects = self.data.join("objects");
        for entry in std::fs::read_dir(objects).expect("device ELFs are kept") {
            export.arg("-object").arg(entry.expect("an entry").path());
        }
        run(&mut export).success().silently().stdout
    }
}

/// The lines of a source of the sample that contain `part`, counted from 1.
fn lines_with(source: &str, part: &str) -> Vec<usize> {
    let path = repository("testdata/sample").join(source);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.contains(part))
        .map(|(number, _)| number)
        .collect()
}

fn lines_that_never_run(source: &str) -> Vec<usize> {
    lines_with(source, "// never")
}

fn line_of(source: &str, part: &str) -> usize {
    let lines = lines_with(source, part);
    assert_eq!(lines.len(), 1, "lines of {source} with {part}: {lines:?}");
    lines[0]
}

/// The counts beside the lines of annotated source, for lines that have one.
fn counts_beside_lines(shown: &str, source: &str) -> Vec<(usize, String)> {
    let heading = format!("/{source}:");
    shown
        .lines()
        .skip_while(|line| !line.ends_with(&heading))
        .skip(1)
        .take_while(|line| line.contains('|'))
        .filter_map(|line| {
            let mut columns = line.split('|');
            let number = columns.next()?.trim().parse().ok()?;
            let count = columns.next()?.trim();
            (!count.is_empty()).then(|| (number, count.to_owned()))
        })
        .collect()
}
