//! `rocov selftest`: a kernel of known counts goes through the user's compiler, flags, runtime and GPU.
//!
//! Each step is one that a user takes: rocov calls itself, the compiler and the program as a shell would. So a step
//! that is wrong here is wrong there, and the user can repeat it.

mod counts;
mod outcome;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};
use clap::ValueEnum;
use rocov::support::diagnostic::fail;
use tempfile::TempDir;

use crate::checks::finding::{Finding, State};
use crate::checks::{binary, gpu, nvidia};
use crate::cli::{Counters, SelftestArguments};
use crate::llvm::{CUDA_ARCH, Clang};
use crate::support::temporary;
use crate::system::{command, installed};
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use crate::term::remedy::explained;
use counts::{Difference, differences, expected, explain, reported};
use outcome::{Stopped, Wrong, holds};

/// The program.
const SOURCE: &str = include_str!("../../../selftest/selftest.hip");

/// The start of the lines of rocov.
const OF_ROCOV: &str = "rocov: ";

/// Takes all steps, up to the first that is wrong.
pub(crate) fn selftest(arguments: &SelftestArguments) -> CommandResult {
    let work = Work::new(arguments.output.as_deref())?;
    let test = Test { arguments, work };
    match test.take_steps() {
        Ok(()) => Ok(0),
        Err(Stopped::Wrong(wrong)) => {
            print::text(wrong.to_string().as_bytes())?;
            Ok(FAILED)
        }
        Err(Stopped::Failed(error)) => Err(error.into()),
    }
}

/// The directory of the files.
struct Work {
    path: PathBuf,
    /// Removes it at the end, unless the user wants it.
    _temporary: Option<TempDir>,
}

impl Work {
    fn new(kept: Option<&Path>) -> Result<Self> {
        let Some(kept) = kept else {
            let directory = temporary::directory()?;
            return Ok(Self {
                path: directory.path().to_path_buf(),
                _temporary: Some(directory),
            });
        };
        fs::create_dir_all(kept).with_context(|| format!("cannot make {}", kept.display()))?;
        let path = kept.canonicalize()?;
        if path.read_dir()?.next().is_some() {
            fail!("{} is not empty", kept.display(); "name a new directory with --output");
        }
        Ok(Self {
            path,
            _temporary: None,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// One run of the command.
struct Test<'a> {
    arguments: &'a SelftestArguments,
    work: Work,
}

impl Test<'_> {
    fn take_steps(&self) -> Result<(), Stopped> {
        let (found, targets) = self.find_gpu()?;
        holds("GPU", found)?;
        let clang = self.find_compiler()?;
        holds(
            "compiler",
            format_args!("{}, {}", clang.line, clang.path.display()),
        )?;
        let flags = self.find_flags(&clang, &targets)?;
        holds("flags", flags.join(" "))?;
        let (program, compilation) = self.compile(&clang, &flags, &targets)?;
        holds("compile", &compilation)?;
        holds(
            "instrumentation",
            look_into(&program, &compilation)?.join("; "),
        )?;
        let ran = self.run(&program)?;
        holds("start", "the program has started")?;
        ran.has_librocov()?;
        holds("preload", "librocov is in the process")?;
        holds("run", ran.results()?)?;
        holds("drain", ran.drained(&self.work)?)?;
        holds("merge", self.merge()?)?;
        holds("counts", self.compare()?)?;
        Ok(())
    }

    /// Finds the GPU to run on, and the targets to compile for.
    fn find_gpu(&self) -> Result<(String, Vec<String>), Wrong> {
        let Self { arguments, .. } = self;
        let given = &arguments.offload_arch;
        let or_given = |targets: Vec<String>| match given.is_empty() {
            true => targets,
            false => given.clone(),
        };
        if let Some(gpus) = &arguments.gpu {
            let targets: BTreeSet<_> = gpus.targets().map(str::to_owned).collect();
            let targets = or_given(targets.into_iter().collect());
            return Ok((format!("modelled, {gpus}"), targets));
        }
        let nvidia = nvidia::Places::usual();
        let nodes = Path::new(gpu::NODES);
        let targets: Vec<_> = gpu::targets(nodes).into_iter().collect();
        let is_cuda = given.iter().any(|arch| arch.starts_with(CUDA_ARCH));
        if is_cuda {
            let findings = nvidia.check();
            return match first_wrong(&findings) {
                None if nvidia.has_driver() => Ok((listed(&findings), given.clone())),
                None => Err(no_gpu(
                    "no NVIDIA driver",
                    "load NVIDIA's driver, or use the --offload-arch of your GPU",
                )),
                Some(finding) => Err(no_gpu(&finding.found, &remedy_of(finding))),
            };
        }
        if given.is_empty() && targets.is_empty() && nvidia.has_driver() {
            return Err(no_gpu(
                "an NVIDIA GPU whose architecture rocov cannot see",
                "use --offload-arch=sm_90, or that of your GPU",
            ));
        }
        let has_model = installed::find(installed::MODEL_GPU).is_ok();
        let findings = gpu::check(Path::new(gpu::DEV), nodes, has_model);
        match first_wrong(&findings) {
            None => Ok((listed(&findings), or_given(targets))),
            Some(finding) if finding.state == State::Warning => Err(no_gpu(
                &finding.found,
                "use --gpu model to run on a modelled one",
            )),
            Some(finding) => Err(no_gpu(&finding.found, &remedy_of(finding))),
        }
    }

    fn find_compiler(&self) -> Result<Clang, Wrong> {
        let found = match &self.arguments.clang {
            Some(path) => Clang::at(path),
            None => Clang::newest(),
        };
        found.map_err(|error| Wrong {
            step: "compiler",
            found: explained(&error).what().to_owned(),
            expected: "a clang++ or amdclang++, 15 or later".to_owned(),
            remedy: "`rocov doctor` lists the compilers that are here: name one with --clang"
                .to_owned(),
        })
    }

    /// Asks `rocov flags`.
    fn find_flags(&self, clang: &Clang, targets: &[String]) -> Result<Vec<String>, Stopped> {
        let Self { arguments, .. } = self;
        let mut flags = this_command("flags")?;
        flags.arg("--clang").arg(&clang.path);
        for target in targets {
            flags.arg(format!("--offload-arch={target}"));
        }
        if let Some(path) = &arguments.cuda_path {
            flags.arg("--cuda-path").arg(path);
        }
        if let Some(counters) = arguments.counters.and_then(|way| way.to_possible_value()) {
            flags.args(["--counters", counters.get_name()]);
        }
        let output = command::ended(&mut flags)?;
        if !output.status.success() {
            return Err(Wrong {
                step: "flags",
                found: said(&output),
                expected: "the flags of this compiler".to_owned(),
                remedy: format!("repeat it: {}", command::display(&flags)),
            }
            .into());
        }
        let line = String::from_utf8_lossy(&output.stdout);
        Ok(line.split_whitespace().map(str::to_owned).collect())
    }

    /// Compiles the program. Returns its path, and the command that made it.
    fn compile(
        &self,
        clang: &Clang,
        flags: &[String],
        targets: &[String],
    ) -> Result<(PathBuf, String), Stopped> {
        let is_cuda = targets.iter().any(|target| target.starts_with(CUDA_ARCH));
        let source = self.work.file(match is_cuda {
            true => "selftest.cu",
            false => "selftest.hip",
        });
        fs::write(&source, SOURCE).with_context(|| format!("cannot write {}", source.display()))?;
        let program = self.work.file("selftest");
        let words = match &self.arguments.compiler {
            Some(words) => words.split_whitespace().map(OsString::from).collect(),
            None => vec![clang.path.clone().into_os_string()],
        };
        let mut compiler = command_of(&words)?;
        // The libraries among the user's flags come after the source that needs them.
        compiler.args(flags).arg(&source).arg("-O1");
        compiler.args(&self.arguments.flags).arg("-o").arg(&program);
        let shown = command::display(&compiler);
        let wrong = |found: String| Wrong {
            step: "compile",
            found,
            expected: "a program".to_owned(),
            remedy: format!(
                "add the flags that your own programs need after `--`, and repeat it: {shown}"
            ),
        };
        let output = compiler.output().map_err(|error| {
            wrong(format!(
                "cannot run {}: {error}",
                compiler.get_program().display()
            ))
        })?;
        if !output.status.success() {
            return Err(wrong(command::reason(&output)).into());
        }
        if !program.is_file() {
            return Err(wrong(format!("no {}", program.display())).into());
        }
        Ok((program, shown))
    }

    /// Runs the program under `rocov run`.
    fn run(&self, program: &Path) -> Result<Ran, Stopped> {
        let Self { arguments, work } = self;
        let mut run = this_command("run")?;
        if let Some(gpus) = &arguments.gpu {
            run.arg(format!("--gpu=model:{gpus}"));
        }
        run.arg("--output").arg(work.file("data")).arg("--");
        let launcher = arguments.launcher.iter();
        run.args(launcher.flat_map(|words| words.split_whitespace()));
        run.arg(program);
        let output = command::ended(&mut run)?;
        let ran = Ran {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            shown: command::display(&run),
            output,
        };
        ran.has_started()?;
        Ok(ran)
    }

    /// Merges the profiles.
    fn merge(&self) -> Result<String, Stopped> {
        let merged = self.work.file("selftest.profdata");
        let mut merge = this_command("merge")?;
        merge.arg("--quiet").arg(self.work.file("data"));
        merge.arg("--output").arg(&merged);
        let output = command::ended(&mut merge)?;
        let bytes = fs::metadata(&merged).map_or(0, |metadata| metadata.len());
        if !output.status.success() || bytes == 0 {
            return Err(Wrong {
                step: "merge",
                found: said(&output),
                expected: "an indexed profile".to_owned(),
                remedy: repeat_with_output(&merge),
            }
            .into());
        }
        Ok(format!("an indexed profile of {bytes} bytes"))
    }

    /// Compares the counts of a report with those that follow from arithmetic.
    fn compare(&self) -> Result<String, Stopped> {
        let tracefile = self.work.file("selftest.info");
        let mut report = this_command("report")?;
        report.arg(self.work.file("data")).arg("--lcov");
        report.arg("--output").arg(&tracefile);
        // No file of options excludes the source there.
        let output = command::ended(report.current_dir(&self.work.path))?;
        let text = fs::read_to_string(&tracefile);
        let (true, Ok(text)) = (output.status.success(), text) else {
            return Err(Wrong {
                step: "counts",
                found: said(&output),
                expected: "a report".to_owned(),
                remedy: repeat_with_output(&report),
            }
            .into());
        };
        let expected = expected(SOURCE);
        let reached = self.arguments.counters == Some(Counters::Reached);
        let different = differences(&expected, &reported(&text), reached);
        let Some(first) = different.first() else {
            let lines = count(expected.len(), "line");
            return Ok(match reached {
                true => format!("{lines}, each reached or not, as expected"),
                false => {
                    let largest = expected.values().map(|(count, _)| count).max();
                    let largest = largest.copied().unwrap_or_default();
                    format!("{lines}, each with the expected count (0 to {largest})")
                }
            });
        };
        Err(Wrong {
            step: "counts",
            found: found_instead(first, different.len(), expected.len()),
            expected: first.expected.to_string(),
            remedy: explain(&different).to_owned(),
        }
        .into())
    }
}

/// There is no GPU to run on.
fn no_gpu(found: &str, remedy: &str) -> Wrong {
    Wrong {
        step: "GPU",
        found: found.to_owned(),
        expected: "a GPU that this user may use".to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// The line with a wrong count, and the number of all such lines.
fn found_instead(first: &Difference<'_>, different: usize, all: usize) -> String {
    let Difference { line, text, .. } = first;
    let found = match first.reported {
        Some(count) => count.to_string(),
        None => "no count".to_owned(),
    };
    format!("line {line}, `{text}`, has {found}; {different} of {all} lines are wrong")
}

/// Checks the code of the program. Returns the facts about it.
fn look_into(program: &Path, compilation: &str) -> Result<Vec<String>, Wrong> {
    let checked = binary::check(program);
    let wrong = |finding: &Finding, remedy: String| Wrong {
        step: "instrumentation",
        found: finding.found.clone(),
        expected: "instrumented code with a coverage mapping, in a program that rocov can drain"
            .to_owned(),
        remedy,
    };
    if let Some(finding) = first_wrong(&checked.device) {
        let remedy = format!(
            "the compiler got the flags, but ignored some of them: look for a wrapper, a ccache or an options file \
            that drops or changes flags. The command was {compilation}"
        );
        return Err(wrong(finding, remedy));
    }
    if let Some(finding) = first_wrong(&checked.host) {
        return Err(wrong(finding, remedy_of(finding)));
    }
    let found = checked.device.into_iter().map(|finding| finding.found);
    Ok(found.collect())
}

/// The program that ran under `rocov run`.
struct Ran {
    stdout: String,
    output: Output,
    /// The command.
    shown: String,
}

impl Ran {
    /// The rest of the line of the program's output that has this start.
    fn line(&self, start: &str) -> Option<&str> {
        self.stdout
            .lines()
            .find_map(|line| line.strip_prefix(start))
    }

    /// Expects that the program has printed its first line.
    fn has_started(&self) -> Result<(), Wrong> {
        if self.line("librocov: ").is_some() {
            return Ok(());
        }
        let found = said(&self.output);
        let remedy = match found.contains("shared librar") {
            true => "install the runtime that the program was linked with, or name its directory in LD_LIBRARY_PATH; \
                     `rocov doctor` lists the runtimes that are here"
                .to_owned(),
            false => format!("repeat it with --output DIR, and with your own --launcher: {}", self.shown),
        };
        Err(Wrong {
            step: "start",
            found,
            expected: "the program starts".to_owned(),
            remedy,
        })
    }

    /// Expects that librocov was in the process.
    fn has_librocov(&self) -> Result<(), Wrong> {
        if self.line("librocov: ") == Some("loaded") {
            return Ok(());
        }
        Err(Wrong {
            step: "preload",
            found: "librocov is not in the process".to_owned(),
            expected: "the loader preloads it, because LD_PRELOAD names it".to_owned(),
            remedy: format!(
                "look for a launcher, a script or a container that drops LD_PRELOAD, and pass it on (srun \
                 --export=ALL, mpirun -x LD_PRELOAD), or link librocov: `rocov flags --link`. The command was {}",
                self.shown
            ),
        })
    }

    /// Expects that the kernel computed what it should.
    fn results(&self) -> Result<String, Wrong> {
        let wrong = |found: String, remedy: &str| Wrong {
            step: "run",
            found,
            expected: "the kernel runs, and its results are right".to_owned(),
            remedy: remedy.to_owned(),
        };
        if let Some(failed) = self.line("failed: ") {
            return Err(wrong(
                failed.to_owned(),
                "`rocov doctor` checks the GPU and its runtime; check that the code is for this GPU, or use its \
                --offload-arch",
            ));
        }
        if let Some(item) = self.line("wrong: ") {
            return Err(wrong(
                item.to_owned(),
                "run the program in --output DIR without rocov: if it is also wrong there, use another compiler or \
                runtime; otherwise, report it as a bug in rocov",
            ));
        }
        match self.line("results: ") {
            Some(results) if self.output.status.success() => Ok(results.to_owned()),
            _ => Err(wrong(
                said(&self.output),
                "run the program in --output DIR without rocov: if it also fails there, use another compiler or \
                runtime; otherwise, report it as a bug in rocov",
            )),
        }
    }

    /// Expects that librocov has written profiles and lost nothing.
    fn drained(&self, work: &Work) -> Result<String, Wrong> {
        let wrong = |found: String| Wrong {
            step: "drain",
            found,
            expected: "a profile of the kernel, and no loss".to_owned(),
            remedy: format!(
                "`rocov run -v` prints each step of the drain. The command was {}",
                self.shown
            ),
        };
        let lines = String::from_utf8_lossy(&self.output.stderr);
        let losses: Vec<_> = lines
            .lines()
            .filter_map(|line| line.strip_prefix(OF_ROCOV))
            .collect();
        if !losses.is_empty() {
            return Err(wrong(losses.join("; ")));
        }
        let profiles = fs::read_dir(work.file("data/profraw"));
        match profiles.map_or(0, Iterator::count) {
            0 => Err(wrong("no profile".to_owned())),
            profiles => Ok(count(profiles, "profile")),
        }
    }
}

/// This command with a subcommand.
fn this_command(subcommand: &str) -> Result<Command> {
    let path = env::current_exe().context("cannot find the running command's own path")?;
    let mut command = Command::new(path);
    command.arg(subcommand);
    Ok(command)
}

/// The command of these words.
fn command_of(words: &[OsString]) -> Result<Command> {
    let Some((program, arguments)) = words.split_first() else {
        fail!("--compiler is empty"; "name a command");
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// The lines of a command on standard error, or its exit status if there are none.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match (lines.is_empty(), output.status.signal()) {
        (false, _) => lines.join("; "),
        (true, Some(signal)) => format!("signal {signal}"),
        (true, None) => output.status.to_string(),
    }
}

fn repeat_with_output(command: &Command) -> String {
    format!(
        "run `rocov selftest` again with --output DIR, and repeat this there: {}",
        command::display(command)
    )
}

/// The finding that stands in the way most, if one does.
fn first_wrong(findings: &[Finding]) -> Option<&Finding> {
    let in_state = |state| findings.iter().find(move |finding| finding.state == state);
    in_state(State::Missing).or_else(|| in_state(State::Warning))
}

fn remedy_of(finding: &Finding) -> String {
    finding.remedy.clone().unwrap_or_default()
}

/// The facts of findings in one line.
fn listed(findings: &[Finding]) -> String {
    let found = findings.iter().map(|finding| finding.found.as_str());
    found.collect::<Vec<_>>().join("; ")
}
