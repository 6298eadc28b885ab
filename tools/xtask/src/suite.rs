//! `cargo xtask test`, which `tools/test` starts: all that CI checks.
//!
//! Checks that need no compilation come first, then the records, then everything else. Packages are installed and stacks
//! fetched while the workspace is built. Plugins of compilers, lints, documents and fuzz targets are compiled while tests are
//! built and run, in the time in which these leave processors idle.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::beside::{Beside, WhenTestsRun};
use crate::log::Summary;
use crate::process::{Tee, cargo, program, run as run_command, run_into, run_logged};
use crate::stages::Stages;
use crate::{Failure, Outcome, bless, say, target};

const USAGE: &str = "\
Usage: tools/test [--stacks default|all|none] [--clang RELEASE]... [--fuzz SECONDS]
                  [-- CARGO_TEST_ARGUMENT...]

Installs missing packages (see tools/setup), checks formatting and lints, builds everything and runs
all tests and fuzz targets. Arguments after -- go to `cargo test`, to run some of the tests.

  --stacks default  also fetch the newest clang, the HIP and ROCr of two releases that know gfx942,
                    OpenMP's runtime for GPUs, and what CUDA and Triton compile with
                    (the default; kept in .stacks)
  --stacks all      also fetch every other stack that tools/stacks knows, run the programs on
                    each runtime, and compile all kernels at all levels for each modelled GPU
  --stacks none     fetch nothing
  --clang RELEASE   also fetch this release of clang, unless tools/setup installs it, and run the
                    programs of the newest runtime compiled by it; may be repeated
  --fuzz SECONDS    run each fuzz target for SECONDS (default 2; 0 runs none)";

/// The bytes that librocov.so may have without symbols: the limit is 2 MiB.
const LIBRARY_MAX: u64 = 2_097_152;

/// The stacks that a run fetches by default. The first runtime that is here runs gfx942. Without one, the interpreter's own
/// loader does.
const DEFAULT_STACKS: [&str; 9] = [
    "rocr-7.2.4",
    "rocr-6.4.3",
    "roctx-7.2.4",
    "clang-23",
    "openmp-22",
    "llvm-tests-22",
    "cuda-12.9",
    "triton-3.6",
    "tinygrad-0.14",
];

/// The runtimes that `--stacks all` runs the programs on, in addition to the newest.
const OTHER_RUNTIMES: [&str; 3] = ["debian12", "rocr-6.1.2", "rocr-6.4.3"];

/// The arguments of `cargo test` for tests of modules. Their compilation takes longer than they do.
const UNITS: &[&str] = &["--config=tools/xtask/unit-tests.toml", "--lib", "--bins"];

/// The arguments of `cargo test` for the examples in documentation. They are compiled only when they run.
const DOCUMENTATION: &[&str] = &["--doc"];

/// The arguments of `cargo test` for tests of whole libraries and programs.
const WHOLES: &[&str] = &["--examples", "--test=*"];

/// The stacks to fetch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stacks {
    Default,
    All,
    None,
}

impl Stacks {
    fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::All => "all",
            Self::None => "none",
        }
    }
}

/// The options of a command line.
#[derive(Clone, Debug, PartialEq)]
struct Options {
    stacks: Stacks,
    /// Releases of clang that also compile the programs.
    clangs: Vec<String>,
    /// Seconds of each fuzz target.
    fuzz: String,
    /// Arguments of `cargo test`.
    tests: Vec<String>,
}

impl Options {
    /// Reads a command line. `None` asks for help.
    fn parse(arguments: &[String]) -> Outcome<Option<Self>> {
        let mut options = Self {
            stacks: Stacks::Default,
            clangs: Vec::new(),
            fuzz: "2".to_owned(),
            tests: Vec::new(),
        };
        let mut rest = arguments.iter().map(String::as_str);
        let usage = |wrong: String| Failure::Usage(format!("tools/test: {wrong}\n\n{USAGE}"));
        while let Some(option) = rest.next() {
            match option {
                "-h" | "--help" => return Ok(None),
                "--" => {
                    options.tests = rest.map(str::to_owned).collect();
                    break;
                }
                "--stacks" | "--clang" | "--fuzz" => {
                    let value = rest.next().unwrap_or_default();
                    let wrong = || usage(format!("{option} does not take `{value}`"));
                    let number = || match value.parse::<u32>() {
                        Ok(_) => Ok(value.to_owned()),
                        Err(_) => Err(wrong()),
                    };
                    match option {
                        "--clang" => options.clangs.push(number()?),
                        "--fuzz" => options.fuzz = number()?,
                        _ => {
                            let known = [Stacks::Default, Stacks::All, Stacks::None];
                            let found = known.into_iter().find(|stacks| stacks.name() == value);
                            options.stacks = found.ok_or_else(wrong)?;
                        }
                    }
                }
                other => return Err(usage(format!("there is no option {other}"))),
            }
        }
        Ok(Some(options))
    }

    /// Returns whether only some of the tests run.
    fn selects_tests(&self) -> bool {
        !self.tests.is_empty()
    }

    /// Returns a cargo command for the workspace. A run of everything has compiled and tested this package before; it has
    /// no dependencies whose features others get.
    fn workspace(&self, verb: &str) -> Command {
        let mut command = cargo([verb, "--release", "--workspace"]);
        if !self.selects_tests() {
            command.args(["--exclude", "xtask"]);
        }
        command
    }

    /// Returns the kinds of tests that run, each by the arguments that select it: one after the other, because they are
    /// compiled differently. A user's own arguments select those of all kinds.
    fn kinds(&self) -> &'static [&'static [&'static str]] {
        match self.selects_tests() {
            true => &[&[]],
            false => &[UNITS, DOCUMENTATION, WHOLES],
        }
    }

    /// Returns the command for tests of one kind.
    fn tests_of(&self, kind: &[&str], arguments: &[&str]) -> Command {
        let mut tests = self.workspace("test");
        tests.args(kind).args(arguments);
        tests.args(self.after_the_records());
        tests
    }

    /// Returns the arguments that leave out the tests of records, which ran before. A user's own arguments stay.
    fn after_the_records(&self) -> Vec<String> {
        if self.selects_tests() {
            return self.tests.clone();
        }
        let skipped = bless::tests().flat_map(|test| ["--skip", test]);
        std::iter::once("--")
            .chain(skipped)
            .map(str::to_owned)
            .collect()
    }
}

/// Runs the command.
///
/// # Errors
///
/// Fails if a check fails. Stops at once if the sources, a build or the records are wrong; otherwise after all checks.
pub fn run(arguments: &[String]) -> Outcome {
    let Some(options) = Options::parse(arguments)? else {
        say(USAGE);
        return Ok(());
    };
    let stages = Stages::start("Formatting, and the rules of the house");
    run_command(program("tools/setup").args(["--check", "test"]))?;
    let mut suite = Suite::new(options, stages)?;
    let needs = suite.needs();
    suite.sources()?;
    suite.build()?;
    let plugins = suite.join_needs(needs)?;
    suite.records()?;
    suite.build_tests(plugins)?;
    let lints = suite.tests()?;
    suite.programs()?;
    suite.report_benchmark();
    suite.join(lints);
    suite.fuzz();
    suite.finish()
}

/// Installs packages and fetches stacks. Returns the stacks that tests must use: they fail if one is missing.
fn fetch(options: &Options, log: &mut Vec<u8>) -> Outcome<String> {
    run_into(program("tools/setup").arg("test"), log)?;
    let listed = program("tools/stacks").arg("list").output();
    let listed = listed.map_err(|error| Failure::Check(format!("tools/stacks: {error}")))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let known = || {
        listed
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0))
            // A root is large, and no test enters it.
            .filter(|stack| !stack.starts_with("root-"))
    };
    let wanted: Vec<_> = match options.stacks {
        Stacks::Default => DEFAULT_STACKS.to_vec(),
        Stacks::All => known().collect(),
        Stacks::None => Vec::new(),
    };
    let mut fetched = String::new();
    let mut add = |stack: &str| {
        fetched += stack;
        fetched.push(' ');
    };
    for stack in wanted {
        match run_into(program("tools/stacks").args(["fetch", stack]), log) {
            Ok(()) => add(stack),
            Err(failure) if options.stacks == Stacks::All => return Err(failure),
            // Its tests print `not run`, and the closing lines list these.
            Err(_) => {
                let line = format!("tools/test: cannot fetch {stack}; its tests do not run\n");
                log.extend(line.bytes());
            }
        }
    }
    for release in &options.clangs {
        // tools/setup installs the compilers that tools/stacks does not provide.
        let stack = format!("clang-{release}");
        if known().any(|name| name == stack) {
            run_into(program("tools/stacks").args(["fetch", &stack]), log)?;
            add(&stack);
        } else if !crate::process::is_here(&format!("clang++-{release}")) {
            return Err(Failure::Check(format!(
                "tools/test: there is no clang {release}: choose one of `tools/stacks list`, or install it"
            )));
        }
    }
    Ok(fetched)
}

/// Fails if librocov.so without symbols is too large: it goes into every process.
fn size_of_library(library: &Path) -> Outcome {
    let stripped = library.with_extension("stripped");
    run_command(program("strip").arg("-o").arg(&stripped).arg(library))?;
    let size = fs::metadata(&stripped).map(|metadata| metadata.len());
    let _ = fs::remove_file(&stripped);
    let size = size.map_err(|error| Failure::Check(format!("{}: {error}", stripped.display())))?;
    let text = format!(
        "librocov.so has {size} bytes without symbols, fewer than {LIBRARY_MAX} are allowed"
    );
    say(&text);
    if size < LIBRARY_MAX {
        Ok(())
    } else {
        Err(Failure::Check(text))
    }
}

/// Returns the commands that compile while the tests run.
fn lints(options: &Options) -> Vec<Command> {
    let mut documents = cargo(["doc", "--release", "--no-deps", "--workspace", "--quiet"]);
    documents.env("RUSTDOCFLAGS", "-D warnings");
    let mut clippy = cargo(["clippy", "--release", "--workspace", "--all-targets"]);
    clippy.args(["--", "-D", "warnings"]);
    let formats = [
        "check",
        "--release",
        "--package",
        "rocov",
        "--no-default-features",
    ];
    // Fewer packages would have dependencies with fewer features, which are compiled again.
    let mut without_data_sets = cargo(["clippy", "--release", "--workspace", "--bins"]);
    without_data_sets.args(["--no-default-features", "--", "-D", "warnings"]);
    let mut commands = vec![clippy, cargo(formats), without_data_sets, documents];
    if options.fuzz != "0" {
        let mut fuzz = program("tools/dev/fuzz");
        fuzz.arg("--build");
        commands.push(fuzz);
    }
    commands
}

/// A run of the command.
struct Suite {
    options: Options,
    stages: Stages,
    /// The output of all tests.
    log: Tee,
    /// The stacks that tests must use: they fail if one is missing.
    fetched: String,
    /// The checks that failed.
    failed: Vec<String>,
}

impl Suite {
    fn new(options: Options, stages: Stages) -> Outcome<Self> {
        let path = log_path();
        let log = fs::create_dir_all(target()).and_then(|()| File::create(&path));
        let log = log.map_err(|error| {
            Failure::Check(format!("cannot create {}: {error}", path.display()))
        })?;
        Ok(Self {
            options,
            stages,
            log: Tee(log),
            fetched: String::new(),
            failed: Vec::new(),
        })
    }

    /// Starts to install and fetch what only the tests need.
    fn needs(&self) -> Beside<String> {
        let options = self.options.clone();
        Beside::spawn("Packages and stacks", move |log| fetch(&options, log))
    }

    /// Waits for packages and stacks. Returns the plugins of compilers, which are compiled with them from now on.
    fn join_needs(&mut self, needs: Beside<String>) -> Outcome<Beside> {
        self.stages.next(needs.name());
        self.fetched = needs.join()?;
        let plugins = vec![program("tools/dev/pass")];
        Ok(Beside::start("Plugins of compilers", plugins))
    }

    /// Checks all that needs no compilation but that of this package, which takes seconds.
    fn sources(&mut self) -> Outcome {
        run_command(&mut cargo(["fmt", "--all", "--check"]))?;
        let mut house = cargo(["test", "--quiet", "--package", "xtask"]);
        if self.options.selects_tests() {
            return run_command(&mut house);
        }
        if run_logged(&mut house, &mut self.log)? {
            return Ok(());
        }
        Err(Failure::Check(
            "the rules of the house do not hold".to_owned(),
        ))
    }

    fn build(&mut self) -> Outcome {
        self.stages.next("Build");
        run_command(&mut self.options.workspace("build"))?;
        let release = target().join("release");
        run_command(program("tools/dev/librocov-a").arg(&release))?;
        size_of_library(&release.join("librocov.so"))
    }

    fn records(&mut self) -> Outcome {
        self.stages.next("Records");
        if self.options.selects_tests() {
            say("left out, as some tests are selected: `cargo xtask bless --check`");
            return Ok(());
        }
        bless::check(&mut self.log.0)
    }

    fn build_tests(&mut self, plugins: Beside) -> Outcome {
        self.stages.next("Build the tests");
        for kind in self.options.kinds() {
            if *kind != DOCUMENTATION {
                run_command(&mut self.options.tests_of(kind, &["--no-run"]))?;
            }
        }
        plugins.join()
    }

    /// Runs the tests. Returns lints, documents and fuzz targets, which are compiled at the same time.
    fn tests(&mut self) -> Outcome<Beside> {
        self.stages.next("Test");
        let mut have_passed = true;
        let kinds = self.options.kinds();
        let (last, first) = kinds.split_last().expect("a kind");
        for kind in first {
            let mut tests = self.tests_of(kind);
            have_passed &= run_logged(&mut tests, &mut self.log)?;
        }
        let mut tests = self.tests_of(last);
        let mut log = WhenTestsRun::new(
            &mut self.log,
            "Lints, documents and fuzz targets",
            lints(&self.options),
        );
        have_passed &= run_logged(&mut tests, &mut log)?;
        let lints = log.start();
        if !have_passed {
            self.failed.push("tests failed".to_owned());
        }
        Ok(lints)
    }

    /// Returns the command that runs tests of one kind.
    fn tests_of(&self, kind: &[&str]) -> Command {
        let mut tests = self.options.tests_of(kind, &["--no-fail-fast"]);
        self.describe_stacks(&mut tests);
        tests
    }

    /// Sets what tests must find, and how much they do.
    fn describe_stacks(&self, tests: &mut Command) {
        tests.env("ROCOV_STACKS_EXPECTED", &self.fetched);
        if self.options.stacks == Stacks::All {
            tests.env("ROCOV_TEST_LEVELS", "all");
        }
    }

    /// Runs the programs on other runtimes and by other compilers. The tests before ran them on the newest.
    fn programs(&mut self) -> Outcome {
        if self.options.stacks == Stacks::All {
            for runtime in OTHER_RUNTIMES {
                let what = format!("The programs on {runtime}");
                self.programs_with(&what, [("ROCOV_TEST_STACK", runtime.to_owned())])?;
            }
        }
        for release in self.options.clangs.clone() {
            let what = format!("The programs by clang {release}");
            // rocov takes the compiler's own LLVM tools first.
            let path = std::env::var("PATH").unwrap_or_default();
            let path = match tools_of_clang(&release) {
                Some(tools) => format!("{tools}:{path}"),
                None => path,
            };
            self.programs_with(&what, [("PATH", path), ("ROCOV_TEST_CLANG", release)])?;
        }
        Ok(())
    }

    /// Runs the programs with some variables.
    fn programs_with<const COUNT: usize>(
        &mut self,
        what: &str,
        variables: [(&str, String); COUNT],
    ) -> Outcome {
        self.stages.next(what);
        let mut tests = cargo(["test", "--release", "--workspace", "--no-fail-fast"]);
        tests.args(["--test", "programs", "--test", "real_rocr"]);
        self.describe_stacks(&mut tests);
        if !run_logged(tests.envs(variables), &mut self.log)? {
            self.failed.push(format!("{what}: tests failed"));
        }
        Ok(())
    }

    fn report_benchmark(&mut self) {
        self.stages
            .next("The report benchmark, its temporary files on another file system");
        if !is_other_file_system("/dev/shm") {
            say("not run: /dev/shm is no file system of its own");
            return;
        }
        // One package alone would be built again, with fewer features of its dependencies.
        let mut benchmark = cargo(["test", "--release", "--workspace", "--bench", "report"]);
        benchmark.args(["--", "10"]).env("TMPDIR", "/dev/shm");
        self.note(run_command(&mut benchmark));
    }

    fn join(&mut self, lints: Beside) {
        self.stages.next(lints.name());
        self.note(lints.join());
    }

    fn fuzz(&mut self) {
        if self.options.fuzz != "0" {
            self.stages.next("Fuzz");
            self.note(run_command(
                program("tools/dev/fuzz").args(["-t", &self.options.fuzz]),
            ));
        }
    }

    /// Notes a failure, which does not stop the run.
    fn note(&mut self, outcome: Outcome) {
        if let Err(failure) = outcome {
            self.failed.push(failure.to_string());
        }
    }

    /// Prints the closing lines.
    fn finish(self) -> Outcome {
        self.stages.finish();
        let log = fs::read(log_path()).unwrap_or_default();
        say(format_args!(
            "\n{}",
            Summary::from_log(&String::from_utf8_lossy(&log))
        ));
        if self.failed.is_empty() {
            return Ok(());
        }
        let failed = self.failed.join("; ");
        Err(Failure::Check(format!("== failed: {failed}")))
    }
}

/// Returns the file with the output of all tests.
fn log_path() -> PathBuf {
    target().join("test.log")
}

/// Returns the folder of the LLVM tools of a release that `tools/stacks` has unpacked.
fn tools_of_clang(release: &str) -> Option<String> {
    let mut stacks = program("tools/stacks");
    let tools = stacks
        .args(["bin", &format!("clang-{release}")])
        .output()
        .ok()?;
    let folder = String::from_utf8_lossy(&tools.stdout).trim_end().to_owned();
    tools.status.success().then_some(folder)
}

/// Returns whether a folder can be written, on another file system than the build.
fn is_other_file_system(folder: &str) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    let is_writable = program("test").args(["-w", folder]).status();
    is_writable.is_ok_and(|status| status.success())
        && device(Path::new(folder)) != device(&target())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Option<Options>> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_have_the_defaults_of_the_usage() {
        let options = parse("").expect("options").expect("not the help");
        assert_eq!(options.stacks, Stacks::Default);
        assert_eq!(options.fuzz, "2");
        assert_eq!(options.clangs, [""; 0]);
        assert_eq!(parse("--stacks none --help"), Ok(None));
    }

    #[test]
    fn options_may_be_repeated_and_arguments_go_to_cargo() {
        let line = "--stacks all --clang 24 --fuzz 0 --clang 17 -- --test run -- --nocapture";
        let options = parse(line).expect("options").expect("not the help");
        assert_eq!(options.stacks, Stacks::All);
        assert_eq!(options.clangs, ["24", "17"]);
        assert_eq!(options.fuzz, "0");
        assert_eq!(options.tests, ["--test", "run", "--", "--nocapture"]);
        assert_eq!(options.after_the_records(), options.tests);
    }

    #[test]
    fn a_wrong_value_is_named_with_the_usage() {
        for (line, wrong) in [
            ("--stacks some", "--stacks does not take `some`"),
            ("--clang", "--clang does not take ``"),
            ("--clang 19.1", "--clang does not take `19.1`"),
            ("--fuzz -1", "--fuzz does not take `-1`"),
            ("--test run", "there is no option --test"),
        ] {
            let failure = parse(line).expect_err(line);
            assert_eq!(failure.status(), 2, "{line}");
            let text = failure.to_string();
            assert_eq!(
                text.lines().next(),
                Some(format!("tools/test: {wrong}").as_str())
            );
            assert!(text.contains("Usage: tools/test"), "{text}");
        }
    }

    #[test]
    fn a_run_of_everything_compares_each_record_once() {
        let options = parse("").expect("options").expect("not the help");
        for kind in [UNITS, DOCUMENTATION, WHOLES] {
            assert!(options.kinds().contains(&kind), "{kind:?}");
            let command = options.tests_of(kind, &["--no-fail-fast"]);
            let arguments: Vec<_> = command.get_args().map(|word| word.to_str()).collect();
            let [selected, skipped] = arguments
                .split(|word| *word == Some("--"))
                .collect::<Vec<_>>()
                .try_into()
                .expect("one `--`");
            assert!(
                selected.ends_with(&[Some("--no-fail-fast")]),
                "{arguments:?}"
            );
            assert!(
                kind.iter().all(|word| selected.contains(&Some(word))),
                "{arguments:?}"
            );
            let skipped = skipped
                .iter()
                .filter(|word| **word == Some("--skip"))
                .count();
            assert_eq!(skipped, bless::tests().count());
        }
    }
}
