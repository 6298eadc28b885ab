//! Compilers: their versions as they print them, and as code that they made carries them.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rocov::support::diagnostic::diagnostic;

use super::search::{PLACES, candidates};
use crate::support::failure::failure;
use crate::support::paths::Absent;
use crate::system::command;
use crate::term::remedy::explained;

/// The next step if a compiler cannot be used.
const OTHER: &str = "name another compiler with --clang, such as one that `rocov doctor` finds";

/// The digits of the name of a commit of git.
const COMMIT_DIGITS: usize = 40;

/// A compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clang {
    /// LLVM's major version.
    pub(crate) llvm: u32,
    /// The first line that says its version.
    pub(crate) line: String,
    /// The executable.
    pub(crate) path: PathBuf,
}

impl Clang {
    /// The newest compiler there is.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    pub(crate) fn newest() -> Result<Self> {
        Self::all()
            .into_iter()
            .max_by_key(|clang| clang.llvm)
            .with_context(
                || diagnostic!("no clang++ or amdclang++ {PLACES}"; "name one with --clang"),
            )
    }

    /// All compilers in their usual places.
    pub(crate) fn all() -> Vec<Self> {
        ["clang++", "amdclang++"]
            .iter()
            .flat_map(|name| candidates(name))
            .filter_map(|path| Self::at(&path).ok())
            .collect()
    }

    /// The compiler at `path`, or of that name on `PATH`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be run or is no clang.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let output = command::output(Command::new(path).arg("--version"));
        let output = output.map_err(|error| match error.downcast_ref::<io::Error>() {
            Some(error) if Absent::is(error) && path.components().count() > 1 => {
                Absent::new(path, OTHER).into()
            }
            Some(error) if Absent::is(error) => {
                failure!("{} is not on PATH", path.display(); "{OTHER}")
            }
            _ => failure!("{}", explained(&error).what(); "{OTHER}"),
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let said = text
            .lines()
            .find_map(|line| Some((clang_release(line)?, line.trim().to_owned())));
        let (llvm, line) = said.with_context(|| {
            format!(
                "{} is not clang, because it prints no clang version: {OTHER}",
                path.display()
            )
        })?;
        Ok(Self {
            llvm,
            line,
            path: path.to_path_buf(),
        })
    }
}

impl Clang {
    /// The full version of LLVM, as in `22.1.8`. A version in development stays the same for a year, so the
    /// commit follows it, as in `20.0.0git-f4087f6b`.
    pub(crate) fn version(&self) -> String {
        full_version(&self.line).unwrap_or_else(|| self.llvm.to_string())
    }
}

fn full_version(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("clang version ")?;
    let version = rest.split_whitespace().next()?;
    let mut words = rest.split(|letter: char| !letter.is_ascii_hexdigit());
    let commit = words.rfind(|word| word.len() == COMMIT_DIGITS);
    Some(match commit {
        Some(commit) if version.ends_with("git") => format!("{version}-{}", &commit[..8]),
        _ => version.to_owned(),
    })
}

/// LLVM's major version in the version line of a clang, as in `clang version 22.1.8`.
pub(crate) fn clang_release(line: &str) -> Option<u32> {
    number_after(line, "clang version ")
}

/// The releases of LLVM that the clang with this version line may have the code of. A build from between two
/// releases calls itself the later one.
pub(crate) fn clang_releases(line: &str) -> Option<RangeInclusive<u32>> {
    let release = clang_release(line)?;
    let is_between = line.contains("git");
    Some(release - u32::from(is_between)..=release)
}

/// The decimal number that follows the first `label` in `text`.
pub(super) fn number_after(text: &str, label: &str) -> Option<u32> {
    let (_, rest) = text.split_once(label)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_compilers_print() {
        assert_eq!(
            clang_release("Debian clang version 22.1.8 (1~deb12u1)"),
            Some(22)
        );
        assert_eq!(
            clang_release("AMD clang version 20.0.0git (https://x)"),
            Some(20)
        );
        assert_eq!(clang_release("g++ (Debian 12.2.0-14) 12.2.0"), None);
        assert_eq!(clang_release("clang version unknown"), None);
    }

    #[test]
    fn a_version_in_development_has_its_commit() {
        let version = |line: &str| full_version(line).unwrap();
        assert_eq!(version("Debian clang version 22.1.8 (1~deb12u1)"), "22.1.8");
        let line = "AMD clang version 20.0.0git (https://github.com/RadeonOpenCompute/llvm-project \
                    roc-7.0.0 25314 f4087f6b428f0e6f575ebac8a8a724dab123d06e)";
        assert_eq!(version(line), "20.0.0git-f4087f6b");
        let line = "clang version 24.0.0 (++20261025103442+7e3c57157096-1~exp1)";
        assert_eq!(version(line), "24.0.0");
    }
}
