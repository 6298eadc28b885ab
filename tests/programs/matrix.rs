//! Each compiler with each runtime: what it compiles is drained, reported, merged and optimized.
//!
//! `tools/matrix` runs every pair and writes docs/src/reference/matrix.md. Without it, the test runs
//! four compilers with one runtime.
//!
//! If the compiler takes the headers of the HIP, the pair runs the sample. Otherwise HIP loads a code
//! object that needs no headers.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::support::artifacts::{cache_directory, names, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{device_header, device_only, host_oracle, sample_by};
use crate::support::compilers::{Compiler, Hindrance, RELEASES};
use crate::support::gpu::{Stack, data};
use crate::support::json::json;
use crate::support::profile::{
    Functions, functions, functions_by, merge_by, merged_of_arch_by, raw_profiles,
};
use crate::support::program::flags_for;
use crate::support::sample::Sample;
use crate::support::spec::expand;

/// Names the file to write the table to. If it is set, every pair must run.
const FILE: &str = "ROCOV_MATRIX";

/// The compilers of a usual test run.
const USUAL: [u32; 4] = [15, 19, 22, 23];

/// The steps of a pair.
const STEPS: [&str; 4] = ["drain", "report", "merge", "PGO"];

/// The first release whose driver reads profiles for GPU code.
const FIRST_WITH_PGO: u32 = 20;
const NO_PGO: &str = "Clang up to 19 ignores profiles for GPU code, and prints `argument unused`.";

#[test]
fn compilers_and_runtimes() {
    let file = std::env::var_os(FILE).map(PathBuf::from);
    let runtimes = Stack::known();
    let mut pairs: Vec<(u32, &str, Option<Stack>)> = Vec::new();
    if file.is_some() {
        for (title, stack) in &runtimes {
            pairs.extend(RELEASES.map(|release| (release, *title, *stack)));
        }
    } else {
        let here = |runtime: &&(&'static str, Option<Stack>)| runtime.1.is_some();
        let (title, stack) = runtimes.iter().rfind(here).expect("Debian 12's is here");
        pairs.extend(USUAL.map(|release| (release, *title, *stack)));
    }
    let queue = Mutex::new(pairs.iter().enumerate());
    let rows = Mutex::new(vec![None; pairs.len()]);
    let next = || queue.lock().expect("no worker fails").next();
    let work = || {
        while let Some((number, (release, title, stack))) = next() {
            let row = Row::new(*release, title, *stack);
            rows.lock().expect("no worker fails")[number] = Some(row);
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let rows: Vec<Row> = rows
        .into_inner()
        .expect("no worker fails")
        .into_iter()
        .flatten()
        .collect();
    let table = markdown(&rows);
    println!("{table}");
    if let Some(file) = &file {
        std::fs::write(file, table).expect("the table can be written");
        let absent = rows.iter().filter(|row| row.cells.contains(&Cell::NotRun));
        assert_eq!(absent.count(), 0, "pairs did not run, see the table");
    }
    let failed = rows.iter().filter(|row| row.cells.contains(&Cell::Failed));
    assert_eq!(failed.count(), 0, "pairs failed, see the table");
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Right,
    Failed,
    No(&'static str),
    NotRun,
}

/// The results of one pair.
#[derive(Clone, Debug)]
struct Row {
    runtime: String,
    release: u32,
    /// The architecture and the way in which the compiler's code got there.
    ran: String,
    /// The reason if the sample does not compile.
    hindrance: Option<&'static str>,
    cells: [Cell; 4],
}

impl Row {
    fn new(release: u32, runtime: &str, stack: Option<Stack>) -> Self {
        let mut row = Self {
            runtime: runtime.to_owned(),
            release,
            ran: String::new(),
            hindrance: None,
            cells: [const { Cell::NotRun }; 4],
        };
        let (Some(compiler), Some(stack)) = (Compiler::find(release), stack) else {
            return row;
        };
        let hindrance = compiler.hindrance(runtime);
        row.hindrance = hindrance.map(|hindrance| hindrance.reason);
        let target = target(compiler, stack);
        row.ran = match hindrance {
            Some(_) => format!("{target}, module"),
            None => format!("{target}, program"),
        };
        let mut pair = None;
        for (number, step) in STEPS.into_iter().enumerate() {
            let done = catch_unwind(AssertUnwindSafe(|| {
                let pair =
                    pair.get_or_insert_with(|| Pair::run(compiler, stack, target, hindrance));
                match step {
                    "drain" => pair.counts_are_right(),
                    "report" => pair.report_is_that_of_llvm_cov(),
                    "merge" => pair.merged_is_that_of_llvm_profdata(),
                    _ => pair.optimizes(),
                }
            }));
            row.cells[number] = match done {
                Ok(()) if step == "PGO" && release < FIRST_WITH_PGO => Cell::No(NO_PGO),
                Ok(()) => Cell::Right,
                Err(_) => Cell::Failed,
            };
        }
        row
    }
}

/// gfx942 if the compiler, the HIP and the device libraries that the compiler reads know it.
fn target(compiler: &Compiler, stack: Stack) -> &'static str {
    let knows_gfx942 = |libraries: &OsString| {
        let directory = libraries
            .to_str()?
            .strip_prefix("--rocm-device-lib-path=")?;
        Some(
            Path::new(directory)
                .join("oclc_isa_version_942.bc")
                .exists(),
        )
    };
    match stack {
        Stack::Debian12 => "gfx90a",
        _ if compiler.release < 17 => "gfx90a",
        _ if stack
            .compile_flags_for(compiler)
            .iter()
            .find_map(knows_gfx942)
            == Some(false) =>
        {
            "gfx90a"
        }
        _ => "gfx942",
    }
}

/// A run of one compiler's code on one runtime.
struct Pair {
    compiler: &'static Compiler,
    stack: Stack,
    target: &'static str,
    directory: tempfile::TempDir,
    data: PathBuf,
    kind: Kind,
}

enum Kind {
    Program(Sample),
    /// With the counts of a run on the host.
    Module(Functions),
}

/// The source of the module.
const MODULE: &str = "branches";

impl Pair {
    fn run(
        compiler: &'static Compiler,
        stack: Stack,
        target: &'static str,
        hindrance: Option<&Hindrance>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let Some(hindrance) = hindrance else {
            let sample = Sample::run(stack, target, compiler, options_for(compiler));
            return Self {
                data: sample.data.clone(),
                kind: Kind::Program(sample),
                compiler,
                stack,
                target,
                directory,
            };
        };
        let mut compile = limited(compiler.clang);
        compile
            .args(stack.compile_flags_for(compiler))
            .args([&format!("--offload-arch={target}"), "--cuda-device-only"])
            .args(["-fsyntax-only"])
            .arg(repository("testdata/sample/statistics.hip"));
        run(&mut compile).with_status(1).says(&[hindrance.error]);

        let spec = repository("testdata/kernels")
            .join(MODULE)
            .with_extension("spec");
        let spec = expand(&spec, directory.path());
        let place = directory.path().join("device");
        std::fs::create_dir(&place).expect("a fresh directory");
        let flags = flags_for(compiler.clang, options_for(compiler));
        let object = module(compiler, stack, target, flags, &[]);
        stack
            .run(target, &object, &spec, &place)
            .success()
            .silently();
        Self {
            data: data(&place),
            kind: Kind::Module(on_host(&spec, directory.path())),
            compiler,
            stack,
            target,
            directory,
        }
    }

    fn profdata(&self) -> &'static str {
        self.compiler.tool("llvm-profdata")
    }

    /// The profiles, merged by the compiler's own llvm-profdata.
    fn merged(&self) -> PathBuf {
        merged_of_arch_by(self.profdata(), &self.data, self.target)
    }

    /// LLVM's tools of the compiler's release read the profiles, and their counts are those that the
    /// program, or the module on the host, knows.
    fn counts_are_right(&self) {
        for profile in raw_profiles(&self.data) {
            let bytes = std::fs::read(profile).expect("a profile");
            let version = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
            assert_eq!(version, self.compiler.raw_version());
        }
        match &self.kind {
            Kind::Program(sample) => sample.counts_are_those_that_the_program_knows(),
            Kind::Module(expected) => {
                let found = functions_by(self.profdata(), &self.merged());
                let counts = |functions: &Functions| -> Vec<_> {
                    let counts = functions.iter();
                    counts
                        .map(|(name, function)| {
                            (name.clone(), function.calls, function.blocks.clone())
                        })
                        .collect()
                };
                assert_eq!(counts(&found), counts(expected));
            }
        }
    }

    /// The report's figures are those of the compiler's own llvm-cov.
    fn report_is_that_of_llvm_cov(&self) {
        if let Kind::Program(sample) = &self.kind {
            sample.table_counts_the_lines_that_never_run();
            sample.source_is_shown_with_0_exactly_where_it_never_runs();
        }
        let mut export = limited(self.compiler.tool("llvm-cov"));
        export
            .args(["export", "-summary-only", "-instr-profile"])
            .arg(self.merged());
        for object in std::fs::read_dir(self.data.join("objects")).expect("device ELFs are kept") {
            export.arg("-object").arg(object.expect("an entry").path());
        }
        let expected = json(run(&mut export).success().stdout);
        let mut report = self.compiler.rocov("report");
        report.arg(&self.data).args(["--json", "--as-llvm-cov"]);
        let found = json(run(&mut report).success().silently().stdout);
        let [found, expected] = [found, expected].map(|report| report["data"][0]["totals"].clone());
        assert!(
            expected["lines"]["covered"].as_u64() > Some(0),
            "{expected}"
        );
        // Older releases have no figures of MC/DC.
        for kind in ["lines", "regions", "functions", "branches"] {
            assert_eq!(found[kind], expected[kind], "{kind}");
        }
    }

    /// The functions of `rocov merge` are those of the compiler's own llvm-profdata.
    fn merged_is_that_of_llvm_profdata(&self) {
        let output = self.directory.path().join("merged.profdata");
        let mut merge = self.compiler.rocov("merge");
        merge.arg(&self.data).arg("--quiet").arg("-o").arg(&output);
        run(&mut merge).success().silently();
        let all = self.directory.path().join("all.profdata");
        merge_by(self.profdata(), &raw_profiles(&self.data), &all);
        let functions = |path: &Path| functions_by(self.profdata(), path);
        assert!(functions(&all).values().any(|function| function.calls > 0));
        assert_eq!(functions(&output), functions(&all));
        // The rest, such as the uniformity of counters and the summary.
        let lines = |path: &Path| {
            let mut show = limited(self.profdata());
            show.args(["show", "--all-functions", "--counts", "--detailed-summary"]);
            let shown = run(show.arg(path)).success().silently().stdout;
            let mut lines: Vec<_> = shown.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&output), lines(&all));
    }

    /// The compiler takes the profile without a warning, and gives each function its count. Releases
    /// before [`FIRST_WITH_PGO`] print that they ignore it.
    fn optimizes(&self) {
        // The cache keeps the result of a compilation with these, so their place does not change.
        let place = format!("pgo-{}-{:?}", self.compiler.release, self.stack.title());
        let place =
            cache_directory().join(place.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let mut merge = self.compiler.rocov("merge");
        merge
            .arg(&self.data)
            .arg("--quiet")
            .arg("--pgo")
            .arg(&place);
        let flags: Vec<OsString> = run(&mut merge)
            .success()
            .silently()
            .stdout
            .split_whitespace()
            .map(OsString::from)
            .collect();
        let profiles: Vec<PathBuf> = names(&place).iter().map(|name| place.join(name)).collect();
        let (source, base) = match &self.kind {
            Kind::Program(_) => (
                "testdata/sample/statistics.hip",
                self.stack.compile_flags_for(self.compiler),
            ),
            Kind::Module(_) => ("testdata/kernels/branches.hip", without_headers()),
        };
        let mut compile = limited(self.compiler.clang);
        compile
            .args(base)
            .args([
                &format!("--offload-arch={}", self.target),
                "--cuda-device-only",
                "-O1",
            ])
            .args(&flags)
            .args(["-S", "-emit-llvm", "-o", "-"])
            .arg(repository(source));
        let ended = run(&mut compile).success();
        if self.compiler.release < FIRST_WITH_PGO {
            ended.says(&["argument unused during compilation", "-fprofile-instr-use"]);
            return;
        }
        let ir = ended.silently().stdout;
        assert!(
            ir.contains("!\"function_entry_count\""),
            "no counts in {ir}"
        );
        match &self.kind {
            Kind::Program(_) => {
                let target = format!("--offload-arch={}", self.target);
                let flags: Vec<_> = flags.into_iter().chain([target.into()]).collect();
                let program = sample_by(self.compiler, self.stack, &flags, &profiles);
                let mut command = self
                    .stack
                    .launcher(self.target, &self.directory.path().join("none"));
                let ended = run(command.arg(program)).success();
                assert!(ended.stdout.contains("all as on the CPU"), "{ended}");
            }
            Kind::Module(_) => {
                let object = module(self.compiler, self.stack, self.target, flags, &profiles);
                assert!(object.exists());
            }
        }
    }
}

/// The flags of a source that needs no header of HIP.
fn without_headers() -> Vec<OsString> {
    let mut flags: Vec<OsString> = ["-x", "hip", "-nogpuinc", "-nogpulib", "-std=c++17", "-I"]
        .map(OsString::from)
        .into();
    flags.push(repository("testdata/kernels").into());
    flags
}

/// The options of `rocov flags` for this compiler: all counters that its code can have.
fn options_for(compiler: &Compiler) -> &'static [&'static str] {
    match compiler.has_uniform_counters() {
        true => &["--uniformity"],
        false => &[],
    }
}

/// The module by this compiler, in the newest form that the HIP loads and the compiler writes.
fn module(
    compiler: &'static Compiler,
    stack: Stack,
    target: &'static str,
    flags: Vec<OsString>,
    profiles: &[PathBuf],
) -> PathBuf {
    let newest = match compiler.release {
        ..19 => 5,
        _ => 6,
    };
    let version = stack.code_object_version().min(newest);
    device_only(compiler.clang, &[target], version)
        .arguments(["-O1"])
        .arguments(flags)
        .reads([device_header()])
        .reads(profiles.iter().cloned())
        .source(
            repository("testdata/kernels")
                .join(MODULE)
                .with_extension("hip"),
        )
        .output(&format!("{MODULE}.{target}"))
}

/// The counts of the module's source on the host.
fn on_host(spec: &Path, directory: &Path) -> Functions {
    let place = directory.join("host");
    std::fs::create_dir(&place).expect("a fresh directory");
    let raw = place.join("host.profraw");
    let mut oracle = limited(host_oracle(MODULE, "-O1"));
    let command = oracle.arg(spec).arg(&place);
    run(command.env("LLVM_PROFILE_FILE", &raw)).success();
    functions(&raw)
}

/// A table for each runtime, and the reasons below all.
fn markdown(rows: &[Row]) -> String {
    let mut notes: Vec<&str> = Vec::new();
    let mut note = |reason| {
        let known = notes.iter().position(|note| *note == reason);
        1 + known.unwrap_or_else(|| {
            notes.push(reason);
            notes.len() - 1
        })
    };
    let mut text = String::new();
    let mut runtime = "";
    for row in rows {
        if row.runtime != runtime {
            runtime = &row.runtime;
            let _ = write!(
                text,
                "\n## {runtime}\n\n| Clang | what runs | {} |\n",
                STEPS.join(" | ")
            );
            let _ = writeln!(text, "|---|---|{}", "---|".repeat(STEPS.len()));
        }
        let _ = write!(text, "| {} | {}", row.release, row.ran);
        if let Some(reason) = row.hindrance {
            let _ = write!(text, " ({})", note(reason));
        }
        for cell in &row.cells {
            let _ = match cell {
                Cell::Right => write!(text, " | right"),
                Cell::Failed => write!(text, " | FAILED"),
                Cell::NotRun => write!(text, " | not run"),
                Cell::No(reason) => write!(text, " | no ({})", note(reason)),
            };
        }
        text.push_str(" |\n");
    }
    text.push('\n');
    for (number, reason) in notes.iter().enumerate() {
        let _ = writeln!(text, "{}. {reason}", number + 1);
    }
    text
}
