//! Runs of testdata/sample, and the expectations that its source states.
//!
//! Comments in the sample that start with `never` mark the lines that never run. The sample prints
//! the expected number of its loop's turns.

use std::path::PathBuf;

use super::artifacts::repository;
use super::command::{limited, rocov_run, run};
use super::compile::sample_by;
use super::compilers::Compiler;
use super::gpu::Stack;
use super::profile::{functions_by, merged_of_arch_by};
use super::program::flags_for;

/// The sources of testdata/sample.
pub const SOURCES: [&str; 3] = ["main.hip", "statistics.h", "statistics.hip"];

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

/// The exit status that the test requests from the sample; a drain must not change it.
const STATUS: i32 = 42;

/// A run of the sample: the program, its data directory, its output.
pub struct Sample {
    _directory: tempfile::TempDir,
    /// Its data directory.
    pub data: PathBuf,
    /// The executable.
    pub program: PathBuf,
    /// The signals that ROCr reports as missing.
    pub leaked_signals: u64,
    stdout: String,
    target: &'static str,
    compiler: &'static Compiler,
}

impl Sample {
    /// Compiles the sample with the flags of `rocov flags OPTIONS`, and runs it.
    pub fn run(
        stack: Stack,
        target: &'static str,
        compiler: &'static Compiler,
        options: &[&str],
    ) -> Self {
        let mut flags = flags_for(compiler.clang, options);
        flags.push(format!("--offload-arch={target}").into());
        let program = sample_by(compiler, stack, &flags, &[]);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = rocov_run(Some(&format!("model:{target}")), &data);
        command
            .arg(&program)
            .args(["--exit-status", &STATUS.to_string()]);
        let ended = run(&mut command).with_status(STATUS).silently();
        Self {
            _directory: directory,
            data,
            program,
            leaked_signals: ended.leaked_signals,
            stdout: ended.stdout,
            target,
            compiler,
        }
    }

    /// Checks all of the following.
    pub fn is_right(&self) {
        self.table_counts_the_lines_that_never_run();
        self.source_is_shown_with_0_exactly_where_it_never_runs();
        self.counts_are_those_that_the_program_knows();
    }

    /// The output of `rocov report` with these arguments.
    pub fn report(&self, arguments: &[&str]) -> String {
        let mut report = self.compiler.rocov("report");
        report.arg(&self.data).args(arguments);
        run(&mut report).success().silently().stdout
    }

    /// The profile that `rocov report` merges, by llvm-profdata.
    pub fn merged_profile(&self) -> PathBuf {
        merged_of_arch_by(self.compiler.tool("llvm-profdata"), &self.data, self.target)
    }

    /// All functions and their counts, as llvm-profdata prints them, sorted.
    pub fn counts_of_functions(&self) -> Vec<String> {
        let mut show = limited(self.compiler.tool("llvm-profdata"));
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

    /// The table has the number of lines that never run.
    pub fn table_counts_the_lines_that_never_run(&self) {
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

    /// Annotated source has a count of 0 next to these lines only.
    pub fn source_is_shown_with_0_exactly_where_it_never_runs(&self) {
        let shown = self.report(&["--show"]);
        for source in SOURCES {
            let counts = counts_beside_lines(&shown, source);
            let (missed, run): (Vec<_>, Vec<_>) = counts.iter().partition(|count| count.1 == "0");
            let missed: Vec<usize> = missed.iter().map(|(line, _)| *line).collect();
            let expected = lines_that_never_run(source);
            assert_eq!(missed, expected, "lines of {source} with 0:\n{shown}");
            assert!(!run.is_empty(), "nothing of {source} ran:\n{shown}");
        }
    }

    /// The counts are those that the program prints itself.
    pub fn counts_are_those_that_the_program_knows(&self) {
        self.report(&[]);
        let functions = functions_by(self.compiler.tool("llvm-profdata"), &self.merged_profile());
        for (name, expected) in CALLS {
            let matching: Vec<_> = functions
                .iter()
                .filter(|function| function.0.contains(name))
                .collect();
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
        let mut export = limited(self.compiler.tool("llvm-cov"));
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

/// The counts next to the lines of annotated source, for lines that have one.
pub fn counts_beside_lines(shown: &str, source: &str) -> Vec<(usize, String)> {
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
