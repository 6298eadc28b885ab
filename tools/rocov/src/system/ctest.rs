//! `rocov run --per-test`: a label for each test that ctest runs.
//!
//! ctest reads its tests from `CTestTestfile.cmake` in the build directory. rocov gives it another
//! directory, `Testing/rocov` in the build directory, with links to all files of that and another
//! `CTestTestfile.cmake`. That file includes the real one, and adds `ROCOV_LABEL` to the environment of each
//! test. Nothing else changes: commands, properties, fixtures, the choice and order of tests, and ctest's
//! record of earlier runs. The directory stays, as ctest prints paths in it.
//!
//! A script starts ctest itself, and may first build what ctest runs. For a script, rocov puts a stand-in for ctest
//! first on the `PATH`: a link to rocov, which under that name makes the command with labels and becomes ctest.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rocov::store::Label;
use rocov::support::diagnostic::{diagnostic, fail};
use serde::Deserialize;
use tempfile::TempDir;

use super::command;
use crate::support::atomic::replace;
use crate::support::temporary;
use crate::term::print;

/// The file that ctest reads first in a build directory.
const TEST_FILE: &str = "CTestTestfile.cmake";
/// The directory in it that ctest writes to.
const RESULTS: &str = "Testing";
/// Options by which ctest takes tests from elsewhere.
const UNSUPPORTED: [&str; 6] = [
    "-S",
    "-SP",
    "--script",
    "--script-new-process",
    "--build-and-test",
    "--preset",
];

/// The names of ctest.
const NAMES: [&str; 2] = ["ctest", "ctest3"];
/// Shells, which run what their arguments or files say.
const SHELLS: [&str; 6] = ["sh", "ash", "bash", "dash", "ksh", "zsh"];
/// Options by which ctest runs no test.
const INFORMATION: [&str; 7] = [
    "--help",
    "--version",
    "-version",
    "-N",
    "--show-only",
    "--print-labels",
    "-H",
];
/// The file next to the stand-in which says that tests have labels.
const HAS_LABELLED: &str = "labelled";

/// A command whose tests of ctest get labels.
pub(super) struct Ctest {
    pub(super) command: Vec<OsString>,
    /// The directory of the stand-in for ctest, if the command starts ctest itself.
    stand_in: Option<TempDir>,
}

impl Ctest {
    /// Makes a command that does the same with labels. Prints the tests that cannot be labelled by
    /// their names.
    ///
    /// # Errors
    ///
    /// Fails if it is neither one of ctest on a build directory nor a script.
    pub(super) fn from_command(command: &[OsString]) -> Result<Self> {
        let is_script = command.first().is_some_and(|program| is_script(program));
        let stand_in = is_script
            .then(stand_in)
            .transpose()
            .context("cannot create a stand-in for ctest in the temporary directory")?;
        let command = match &stand_in {
            Some(_) => command.to_vec(),
            None => labelled(command)?,
        };
        Ok(Self { command, stand_in })
    }

    /// The `PATH` of the command, if it is another one.
    pub(super) fn path(&self) -> Option<OsString> {
        let mut path = self.stand_in.as_ref()?.path().as_os_str().to_owned();
        if let Some(others) = env::var_os("PATH") {
            path.push(":");
            path.push(others);
        }
        Some(path)
    }

    /// Returns whether a script has ended that did not start ctest, so that no test has a label.
    pub(super) fn missed(&self) -> bool {
        let stand_in = self.stand_in.as_ref();
        stand_in.is_some_and(|directory| !directory.path().join(HAS_LABELLED).exists())
    }
}

/// Returns whether a program is ctest.
pub(super) fn is_ctest(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    NAMES.iter().any(|ctest| name == *ctest)
}

/// Returns whether a program is a shell, or a file that one interprets.
pub(super) fn is_script(program: &OsStr) -> bool {
    let path = Path::new(program);
    let name = path.file_name().unwrap_or_default();
    if SHELLS.iter().any(|shell| name == *shell) {
        return true;
    }
    let is_path = path.components().count() > 1;
    let place = match is_path {
        true => Some(path.to_owned()),
        false => on_path(program).next(),
    };
    let start = place.and_then(|place| {
        let mut start = [0; 2];
        fs::File::open(place).ok()?.read_exact(&mut start).ok()?;
        Some(start)
    });
    !is_ctest(program) && start == Some(*b"#!")
}

/// The files of this name on the `PATH`. A shell takes the first.
fn on_path(program: &OsStr) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = env::split_paths(&path).collect();
    let places = directories
        .into_iter()
        .map(move |directory| directory.join(program));
    places.filter(|place| place.is_file())
}

/// Makes the directory of the stand-in.
fn stand_in() -> Result<TempDir> {
    let directory = temporary::directory()?;
    let rocov = env::current_exe()?;
    for name in NAMES {
        symlink(&rocov, directory.path().join(name))?;
    }
    Ok(directory)
}

/// Becomes ctest with labels, if this process was started as the stand-in for it. Returns only if it was not.
///
/// # Errors
///
/// Fails if it is not a command of ctest on a build directory, or ctest is not there.
pub(crate) fn become_ctest() -> Result<()> {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default();
    if !NAMES.iter().any(|ctest| name == *ctest) {
        return Ok(());
    }
    let rocov = env::current_exe()?;
    let is_rocov = |place: &PathBuf| place.canonicalize().is_ok_and(|place| place == rocov);
    let ctest = on_path(name).find(|place| !is_rocov(place)).with_context(
        || diagnostic!("{} is not on PATH", name.display(); "install CMake, or add its directory to PATH"),
    )?;
    let asked: Vec<_> = [ctest.into()].into_iter().chain(arguments).collect();
    let informs = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        INFORMATION.iter().any(|option| {
            let rest = argument.strip_prefix(option);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    };
    let is_test_run = !asked.iter().skip(1).any(informs);
    let command = match is_test_run {
        true => labelled(&asked)?,
        false => asked,
    };
    let stand_ins = on_path(name).filter(is_rocov);
    let directories: Vec<_> = stand_ins
        .filter_map(|place| Some(place.parent()?.to_owned()))
        .collect();
    for directory in directories.iter().filter(|_| is_test_run) {
        // Without it, rocov says at the end that no test has a label.
        _ = fs::write(directory.join(HAS_LABELLED), "");
    }
    // A ctest that a test starts is not part of this run.
    let path = env::var_os("PATH").unwrap_or_default();
    let others = env::split_paths(&path).filter(|directory| !directories.contains(directory));
    let mut ctest = Command::new(&command[0]);
    ctest
        .args(&command[1..])
        .env("PATH", env::join_paths(others)?);
    let error = ctest.exec();
    Err(error).with_context(|| format!("cannot run {}", command[0].display()))
}

/// Makes a command of ctest that does the same with labels.
fn labelled(command: &[OsString]) -> Result<Vec<OsString>> {
    let asked = CtestCommand::parse(command)?;
    let build = asked.build.as_deref().unwrap_or(Path::new("."));
    let build = build
        .canonicalize()
        .with_context(|| format!("cannot find the build directory {}", build.display()))?;
    if !build.join(TEST_FILE).exists() {
        fail!(
            "no {TEST_FILE} in {}", build.display();
            "start ctest in a build directory, or name it with --test-dir"
        );
    }
    let names = asked.names(&build)?;
    let directory = asked.stand_in(&build);
    fill(&directory, &build, &labels(&names)).with_context(
        || diagnostic!("cannot write {}", directory.display(); "make {} writable", build.display()),
    )?;
    let mut command = vec![asked.program.to_owned(), "--test-dir".into()];
    command.push(directory.into());
    command.extend(asked.arguments);
    if let Some(path) = asked.junit {
        // ctest writes it to the directory that it reads.
        command.extend(["--output-junit".into(), build.join(path).into()]);
    }
    Ok(command)
}

/// The parts of a command of ctest.
struct CtestCommand<'a> {
    program: &'a OsStr,
    build: Option<PathBuf>,
    configuration: Option<OsString>,
    junit: Option<PathBuf>,
    /// All other arguments, and the configuration.
    arguments: Vec<OsString>,
}

impl<'a> CtestCommand<'a> {
    fn parse(command: &'a [OsString]) -> Result<Self> {
        let (program, arguments) = command
            .split_first()
            .with_context(|| diagnostic!("no program is given"; "name one after `--`"))?;
        let mut asked = Self {
            program,
            build: None,
            configuration: None,
            junit: None,
            arguments: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy();
            let (option, value) = match text.split_once('=') {
                Some((option, value)) => (option, Some(OsString::from(value))),
                None => (&*text, None),
            };
            if UNSUPPORTED.contains(&option) {
                fail!("--per-test cannot find the tests of `ctest {option}`"; "use --test-dir");
            }
            let mut value = || value.clone().or_else(|| arguments.next().cloned());
            match option {
                "--test-dir" => asked.build = value().map(PathBuf::from),
                "--output-junit" => asked.junit = value().map(PathBuf::from),
                "-C" | "--build-config" => {
                    asked.configuration = value();
                    asked.arguments.push("-C".into());
                    asked.arguments.extend(asked.configuration.clone());
                }
                _ => asked.arguments.push(argument.clone()),
            }
        }
        Ok(asked)
    }

    /// The directory that ctest reads instead of `build`. Configurations may have other tests.
    fn stand_in(&self, build: &Path) -> PathBuf {
        let mut name = OsString::from("rocov");
        if let Some(configuration) = &self.configuration {
            name.push("-");
            name.push(configuration);
        }
        build.join(RESULTS).join(name)
    }

    /// The names of all tests of a build directory.
    fn names(&self, build: &Path) -> Result<BTreeSet<String>> {
        let mut list = Command::new(self.program);
        list.arg("--test-dir").arg(build);
        if let Some(configuration) = &self.configuration {
            list.arg("-C").arg(configuration);
        }
        let listed = command::output(list.arg("--show-only=json-v1"))?;
        let listed: Listed = serde_json::from_slice(&listed.stdout)
            .context("cannot read ctest's list of tests: CMake 3.20 or later is needed")?;
        Ok(listed.tests.into_iter().map(|test| test.name).collect())
    }
}

/// The part of ctest's list of tests that is used.
#[derive(Deserialize)]
struct Listed {
    tests: Vec<ListedTest>,
}

#[derive(Deserialize)]
struct ListedTest {
    name: String,
}

/// Returns each test with its label. Prints the labels that differ from the tests' names.
fn labels(names: &BTreeSet<String>) -> Vec<(&str, String)> {
    let label = |name: &str| {
        let label = Label::text_for(name);
        if label != name {
            print::note(format_args!("the test {name:?} has the label {label}"));
        }
        label
    };
    let names = names.iter().map(String::as_str);
    names.map(|name| (name, label(name))).collect()
}

/// Fills the directory that ctest reads instead of `build`. Another `rocov run` may do so at the same time.
fn fill(directory: &Path, build: &Path, labels: &[(&str, String)]) -> Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if name != TEST_FILE && !build.join(&name).exists() {
            _ = fs::remove_file(directory.join(name));
        }
    }
    for entry in fs::read_dir(build)? {
        let name = entry?.file_name();
        if name == TEST_FILE {
            continue;
        }
        match symlink(build.join(&name), directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
    }
    let mut text = format!("subdirs({})\n", quoted(&build.to_string_lossy()));
    for (name, label) in labels {
        let variable = quoted(&format!("ROCOV_LABEL={label}"));
        let name = quoted(name);
        text += &format!("set_tests_properties({name} PROPERTIES ENVIRONMENT {variable})\n");
    }
    replace(&directory.join(TEST_FILE), |file| {
        Ok(fs::write(file, &text)?)
    })
}

/// A quoted argument of CMake's language.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\' | '$' | '@') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_ctest_are_told_apart() {
        let command =
            |text: &str| -> Vec<OsString> { text.split_whitespace().map(OsString::from).collect() };
        let line = command("/opt/ctest -j4 --test-dir b -C Debug --output-junit=j.xml -R x");
        let asked = CtestCommand::parse(&line).unwrap();
        assert_eq!(asked.build, Some("b".into()));
        assert_eq!(asked.configuration, Some("Debug".into()));
        assert_eq!(asked.junit, Some("j.xml".into()));
        assert_eq!(asked.arguments, command("-j4 -C Debug -R x"));
        for wrong in ["ctest -S x.cmake", "ctest --preset=x"] {
            assert!(CtestCommand::parse(&command(wrong)).is_err(), "{wrong}");
        }
    }
}
