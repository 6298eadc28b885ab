//! clang's counters and the trace of the modelled GPU judge each other. A run of a kernel or a HIP program with counters
//! and debug information has both. The lines that one calls executed are those that the other does, as far as both know them:
//! without optimization for each line, and else but for [`MOST_MOVED`].
//!
//! A line of one block is one that all regions on it have one count of. Without optimization, its two counts are equal but
//! for [`MOST_MOVED`]: an instruction by which the compiler keeps the mask of lanes of a branch belongs to the line before it,
//! and other lanes may execute it (`branches.hip:27`). Lines with only a closing bracket are not compared. Threads that
//! returned early come to that of a function, and clang does not count them; of a `switch`, clang counts the threads
//! after it, and the trace those that leave its last case (`many.hip:152`).
#![allow(clippy::print_stderr, reason = "a test reports what it found")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::openmp::program_with;
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{code_object_with_lines, has_all_levels, sample_on};
use crate::support::gpu::{Stack, data};
use crate::support::json::json;
use crate::support::program::{Program, rocov_flags};
use crate::support::spec::expand;

const TARGET: &str = "gfx90a";

/// The kernels that are compared if `ROCOV_TEST_LEVELS` is not `all`: with branches, loops, calls, inlined functions,
/// templates and early ends.
const SOME: [&str; 6] = ["branches", "calls", "collatz", "ends", "templates", "wave"];

/// A HIP program: its sources in testdata/programs and its arguments.
type HipProgram = (&'static [&'static str], &'static [&'static str]);

/// The programs of testdata/programs that launch kernels of their own. The others need librocov's
/// header, a library of their own, an input or a fault, load the code objects of `testdata/kernels`' kind, or compile at run time.
const PROGRAMS: [HipProgram; 17] = [
    (&["uniformity/shares.hip"], &[]),
    (&["archs/quantise.hip"], &[]),
    (&["endings/endings.hip"], &["return"]),
    (&["found/powers.hip"], &[]),
    (&["guest/guest.hip"], &["state"]),
    (
        &["never_launched/main.hip", "never_launched/scale.hip"],
        &["add"],
    ),
    (&["pgo/calibrate.hip"], &[]),
    (&["traced/kernels.hip"], &[]),
    (&["upstream/classify.hip"], &[]),
    (&["upstream/fill.hip"], &["0"]),
    (&["upstream/histogram.hip"], &[]),
    (&["upstream/hot.hip", "upstream/cold.hip"], &[]),
    (&["upstream/magnitude.hip"], &[]),
    (&["upstream/scale.hip"], &[]),
    (&["upstream/square.hip"], &[]),
    (&["upstream/step.hip"], &[]),
    (&["ways_in/main.cpp", "ways_in/tally.hip"], &[]),
];

/// The name of the program in testdata/sample.
const SAMPLE: &str = "sample";

/// The sources in testdata/programs/openmp.
const OPENMP: &[&str] = &["regions.c", "total.c"];

/// The kernel whose threads end within functions. clang counts the whole block that a thread was in, and the trace only
/// the lines up to the end: their counts are not compared.
const WITH_ENDS: &str = "ends";

/// The most lines that differ, in percent: the compiler has moved their instructions into branches or out of them.
const MOST_MOVED: usize = 2;

/// Lines by source and number.
type Lines<T> = BTreeMap<(String, u32), T>;

/// The lines that both know, and those that differ.
#[derive(Default)]
struct Verdict {
    lines: usize,
    /// Those that clang counts as executed.
    executed: usize,
    /// Lines that only one of them has executed, with the counts of clang and of the trace.
    differ: Vec<String>,
    of_one_block: usize,
    /// Lines of one block with two counts.
    count_differs: Vec<String>,
}

impl Verdict {
    /// Adds the verdict of a kernel at a level of optimization.
    fn add_kernel(&mut self, name: &str, level: &str) {
        let stack = Stack::for_target(TARGET);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spec = repository("testdata/kernels")
            .join(name)
            .with_extension("spec");
        let spec = expand(&spec, directory.path());
        let version = stack.code_object_version();
        let object = code_object_with_lines(name, TARGET, level, version);
        let mut command = stack.runner(TARGET, &data(directory.path()));
        command.arg(object).arg(spec).arg(directory.path());
        run(command.env("ROCOV_MODELGPU_TRACE", "1")).success();
        self.compare(name, level, &data(directory.path()));
    }

    /// Adds the verdict of a program at a level of optimization.
    fn add_program(&mut self, (sources, arguments): HipProgram, level: &str) {
        let stack = Stack::usual();
        let flags = rocov_flags(stack, &[]);
        let more = ["-g", level, "-ldl"];
        let program = Program::with_flags(stack, sources, &flags, &more, &[]);
        self.add_run(sources[0], level, &program.file, arguments);
    }

    /// Adds the verdict of the sample at a level of optimization.
    fn add_sample(&mut self, level: &str) {
        let stack = Stack::usual();
        let mut flags = rocov_flags(stack, &[]);
        flags.extend(["-g", level].map(Into::into));
        self.add_run(SAMPLE, level, &sample_on(stack, &flags), &[]);
    }

    /// Adds the verdict of target regions of OpenMP at a level of optimization, if their runtime is unpacked.
    fn add_openmp(&mut self, level: &str) {
        if let Some(program) = program_with(&["-g", level], OPENMP, &[]) {
            self.add_run(OPENMP[0], level, &program, &[]);
        }
    }

    /// Runs a program. Its exit status is its own.
    fn add_run(&mut self, name: &str, level: &str, program: &Path, arguments: &[&str]) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        let mut command = limited(built("rocov"));
        command.args(["run", "--trace", "--gpu", &format!("model:{TARGET}"), "-o"]);
        command.arg(&data).arg("--").arg(program).args(arguments);
        let before = self.executed;
        let ended = run(&mut command);
        self.compare(name, level, &data);
        assert!(self.executed > before, "no line ran: {ended}");
    }

    /// Adds the verdict of a data directory.
    fn compare(&mut self, name: &str, level: &str, data: &Path) {
        let one_block = single_count_lines(&json(report(data, "mapping", "--json")));
        let clang = counts(&report(data, "mapping", "--lcov"));
        let trace = counts(&report(data, "trace", "--lcov"));
        for (line, clang) in &clang {
            let Some(trace) = trace.get(line) else {
                continue;
            };
            let both = || format!("{name} {level}: {}:{}: {clang} and {trace}", line.0, line.1);
            self.lines += 1;
            self.executed += usize::from(*clang > 0);
            if (*clang > 0) != (*trace > 0) {
                // The two names of a difference.
                let reason = match *clang > 0 {
                    true => "folded into other code, or moved to where no thread came",
                    false => "moved to where threads came",
                };
                self.differ.push(format!("{}: {reason}", both()));
            }
            if one_block.contains(line) && name != WITH_ENDS && !closes(line) {
                self.of_one_block += 1;
                if clang != trace {
                    self.count_differs.push(both());
                }
            }
        }
    }
}

/// Returns whether a line has only a closing bracket.
fn closes((file, number): &(String, u32)) -> bool {
    let source = std::fs::read_to_string(file).expect("the source");
    let line = source.lines().nth(*number as usize - 1);
    let code = line.and_then(|line| line.split("//").next());
    code.is_some_and(|code| code.trim() == "}")
}

/// The report of one kind of counts.
fn report(data: &Path, kind: &str, format: &str) -> String {
    let mut report = limited(built("rocov"));
    report.arg("report").arg(data);
    report.args([format, "--counts", kind]);
    run(&mut report).success().stdout
}

/// The counts of lines in LCOV.
fn counts(lcov: &str) -> Lines<u64> {
    let mut lines = Lines::new();
    let mut file = "";
    for record in lcov.lines() {
        match record.split_once(':') {
            Some(("SF", path)) => file = path,
            Some(("DA", line)) => {
                let (line, count) = line.split_once(',').expect("a line and a count");
                let line = line.parse().expect("a line");
                let count = count.parse().expect("a count");
                lines.insert((file.to_owned(), line), count);
            }
            _ => {}
        }
    }
    lines
}

/// The segments of each source: line, count, and whether it has one.
fn segments(report: &Value) -> impl Iterator<Item = (String, Vec<(u32, u64, bool)>)> {
    let files = report["data"][0]["files"].as_array().expect("files");
    files.iter().map(|file| {
        let name = file["filename"].as_str().expect("a name").to_owned();
        let segments = file["segments"].as_array().expect("segments");
        let number = |value: &Value| value.as_u64().expect("a number");
        let segments = segments.iter().map(|segment| {
            let line = u32::try_from(number(&segment[0])).expect("a line");
            (line, number(&segment[2]), segment[3] == true)
        });
        (name, segments.collect())
    })
}

/// The lines on which all regions of the coverage mapping have one count.
fn single_count_lines(report: &Value) -> BTreeSet<(String, u32)> {
    let mut lines = BTreeSet::new();
    for (file, segments) in segments(report) {
        let mut around: Option<(u64, bool)> = None;
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            continue;
        };
        for number in first.0..=last.0 {
            let here: Vec<_> = segments
                .iter()
                .filter(|segment| segment.0 == number)
                .collect();
            let inside = around
                .into_iter()
                .chain(here.iter().map(|segment| (segment.1, segment.2)));
            let counts: BTreeSet<u64> = inside
                .filter(|count| count.1)
                .map(|count| count.0)
                .collect();
            if counts.len() == 1 {
                lines.insert((file.clone(), number));
            }
            around = here.last().map(|segment| (segment.1, segment.2)).or(around);
        }
    }
    lines
}

/// The kernels to compare.
fn kernels() -> Vec<String> {
    if !has_all_levels() {
        return SOME.map(str::to_owned).to_vec();
    }
    let sources = crate::support::artifacts::files_with_extension("testdata/kernels", "spec");
    let names = sources.iter().filter_map(|source| source.file_stem());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The verdict of the kernels at a level of optimization.
fn kernels_verdict(level: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for name in kernels() {
        verdict.add_kernel(&name, level);
    }
    verdict.tell("kernels", level);
    verdict
}

/// The verdict of all programs at a level of optimization.
fn programs_verdict(level: &str) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.add_sample(level);
    verdict.add_openmp(level);
    for program in PROGRAMS {
        verdict.add_program(program, level);
    }
    verdict.tell("programs", level);
    verdict
}

impl Verdict {
    fn tell(&self, what: &str, level: &str) {
        eprintln!(
            "{what} {level}: {} lines, {} of them executed by one only; {} of one block, {} of them with two counts",
            self.lines,
            self.differ.len(),
            self.of_one_block,
            self.count_differs.len()
        );
        for line in self.differ.iter().chain(&self.count_differs) {
            eprintln!("  {line}");
        }
    }

    /// Expects that each line ran by both or by none, and equal counts but for few lines.
    #[track_caller]
    fn agrees(&self) {
        assert!(self.lines > 15 && self.of_one_block > 10);
        assert_eq!(self.differ, [""; 0]);
        let differ = &self.count_differs;
        assert!(
            differ.len() * 100 <= self.of_one_block * MOST_MOVED,
            "{} of {} lines: {differ:#?}",
            differ.len(),
            self.of_one_block
        );
    }

    /// Expects that few lines ran by one only.
    #[track_caller]
    fn has_few_moved(&self) {
        assert!(self.lines > 100);
        let differ = &self.differ;
        assert!(
            differ.len() * 100 <= self.lines * MOST_MOVED,
            "{} of {} lines: {differ:#?}",
            differ.len(),
            self.lines
        );
    }
}

#[test]
fn without_optimization_all_lines_agree() {
    kernels_verdict("-O0").agrees();
}

#[test]
fn optimization_moves_few_lines() {
    kernels_verdict("-O2").has_few_moved();
}

/// One whole program; `every_program` has them all.
#[test]
fn lines_of_a_program_agree() {
    let mut verdict = Verdict::default();
    verdict.add_program(PROGRAMS[0], "-O0");
    verdict.agrees();
}

#[test]
#[ignore = "takes minutes: cargo test --release --workspace --test programs -- --ignored referee"]
fn every_program() {
    programs_verdict("-O0").agrees();
    programs_verdict("-O2").has_few_moved();
}
