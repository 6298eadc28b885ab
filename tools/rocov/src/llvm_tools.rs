//! Which clang, llvm-profdata and llvm-cov there are, and which of them can read a profile.
//!
//! A raw profile is read by the tools of its own raw version alone ("raw profile version
//! mismatch", newer tools included). An indexed profile and a coverage mapping are read by every
//! later llvm-cov. So the raw version chooses llvm-profdata, and llvm-cov is the newest there is.

use crate::child;
use anyhow::{Context, Result, bail};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::env;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where ROCm is installed when `ROCM_PATH` does not say it.
const DEFAULT_ROCM: &str = "/opt/rocm";
/// Parent of Debian's directories `llvm-N`.
const LLVM_PARENT: &str = "/usr/lib";

/// llvm-profdata and llvm-cov of one LLVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tools {
    /// LLVM's major version, as llvm-cov says it.
    pub(crate) llvm: u32,
    /// Merges raw profiles.
    pub(crate) profdata: PathBuf,
    /// Prints reports.
    pub(crate) cov: PathBuf,
    /// Turns symbols into names, where it is installed.
    pub(crate) cxxfilt: Option<PathBuf>,
}

/// A compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clang {
    /// LLVM's major version.
    pub(crate) llvm: u32,
    /// The executable.
    pub(crate) path: PathBuf,
}

/// The tools there are, newest first.
#[derive(Debug)]
pub(crate) struct Installed {
    tools: Vec<Tools>,
    /// Chosen by the user, so taken without a look at the raw version: a development version of
    /// LLVM may read another one than the release of its number.
    chosen: bool,
}

impl Installed {
    /// Looks for the tools in `directory`, or where they are commonly installed.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub(crate) fn find(directory: Option<&Path>) -> Result<Self> {
        let candidates = match directory {
            Some(directory) => named_in(directory, "llvm-profdata"),
            None => candidates("llvm-profdata"),
        };
        let mut tools: Vec<_> = candidates
            .iter()
            .filter_map(|path| Tools::of(path))
            .collect();
        tools.sort_by_key(|tools| Reverse(tools.llvm));
        if tools.is_empty() {
            let place = directory.map_or_else(
                || "on PATH, in /usr/lib/llvm-N/bin or in $ROCM_PATH/llvm/bin".to_owned(),
                |directory| format!("in {}", directory.display()),
            );
            bail!("no llvm-profdata and llvm-cov {place}: install LLVM's tools or give --llvm-bin");
        }
        let chosen = directory.is_some();
        Ok(Self { tools, chosen })
    }

    /// Whether the user chose the tools.
    pub(crate) fn chosen(&self) -> bool {
        self.chosen
    }

    /// The newest tools of all: they read every indexed profile and coverage mapping that the
    /// others write.
    pub(crate) fn newest(&self) -> &Tools {
        &self.tools[0]
    }

    /// The newest tools that read raw profiles of `raw_version`.
    ///
    /// # Errors
    ///
    /// When none of them does; the message names the LLVM that would.
    pub(crate) fn reading(&self, raw_version: u64) -> Result<&Tools> {
        if self.chosen {
            return Ok(self.newest());
        }
        let found = || {
            let versions: Vec<_> = self.tools.iter().map(|t| t.llvm.to_string()).collect();
            versions.join(", ")
        };
        let Some(readers) = readers_of(raw_version) else {
            bail!(
                "raw profile version {raw_version} is not known here: \
                 give the compiler's own llvm-profdata and llvm-cov with --llvm-bin"
            );
        };
        self.tools
            .iter()
            .find(|tools| readers.contains(&tools.llvm))
            .with_context(|| {
                format!(
                    "raw profile version {raw_version} is read by the tools of {}, found {}: \
                     install those or give --llvm-bin",
                    name(&readers),
                    found()
                )
            })
    }
}

impl Tools {
    /// The tools beside `profdata`, with the same suffix in their names.
    fn of(profdata: &Path) -> Option<Self> {
        let suffix = profdata
            .file_name()?
            .to_str()?
            .strip_prefix("llvm-profdata")?;
        let sibling = |name: &str| {
            Some(profdata.with_file_name(format!("{name}{suffix}"))).filter(|path| path.is_file())
        };
        let cov = sibling("llvm-cov")?;
        Some(Self {
            // Not llvm-profdata itself: up to LLVM 14 it knows no --version.
            llvm: llvm_version(&cov)?,
            profdata: profdata.to_path_buf(),
            cxxfilt: sibling("llvm-cxxfilt"),
            cov,
        })
    }
}

impl Clang {
    /// The newest compiler there is.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub(crate) fn newest() -> Result<Self> {
        ["clang++", "amdclang++"]
            .iter()
            .flat_map(|name| candidates(name))
            .filter_map(|path| Self::at(&path).ok())
            .max_by_key(|clang| clang.llvm)
            .context("no clang++ or amdclang++ on PATH, in /usr/lib/llvm-N/bin or in $ROCM_PATH/llvm/bin: give --clang")
    }

    /// The compiler at `path`, or of that name on `PATH`.
    ///
    /// # Errors
    ///
    /// When it cannot be run or is no clang.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let output = child::output(Command::new(path).arg("--version"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let llvm = number_after(&text, "clang version ").with_context(|| {
            format!(
                "{} is not clang: it does not print a clang version",
                path.display()
            )
        })?;
        Ok(Self {
            llvm,
            path: path.to_path_buf(),
        })
    }
}

/// The LLVM versions whose llvm-profdata reads raw profiles of `raw_version`.
fn readers_of(raw_version: u64) -> Option<RangeInclusive<u32>> {
    match raw_version {
        8 => Some(14..=16),
        9 => Some(17..=18),
        10 => Some(19..=22),
        11 => Some(23..=u32::MAX),
        _ => None,
    }
}

fn name(readers: &RangeInclusive<u32>) -> String {
    match *readers.end() {
        u32::MAX => format!("LLVM {} or later", readers.start()),
        end => format!("LLVM {} to {end}", readers.start()),
    }
}

/// Executables called `base` or `base-N` where LLVM is commonly installed, each once.
fn candidates(base: &str) -> Vec<PathBuf> {
    let rocm = env::var_os("ROCM_PATH").map_or_else(|| PathBuf::from(DEFAULT_ROCM), PathBuf::from);
    let mut directories: Vec<_> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    directories.extend(llvm_directories());
    directories.extend([rocm.join("llvm/bin"), rocm.join("bin")]);
    let mut seen = HashSet::new();
    directories
        .iter()
        .flat_map(|directory| named_in(directory, base))
        // /usr/bin/clang++-22 is a link to /usr/lib/llvm-22/bin/clang++.
        .filter(|path| path.canonicalize().is_ok_and(|path| seen.insert(path)))
        .collect()
}

fn llvm_directories() -> Vec<PathBuf> {
    let Ok(entries) = Path::new(LLVM_PARENT).read_dir() else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str()?.strip_prefix("llvm-"))
                .is_some_and(is_number)
        })
        .map(|path| path.join("bin"))
        .collect()
}

/// Executables called `base` or `base-N` in `directory`.
fn named_in(directory: &Path, base: &str) -> Vec<PathBuf> {
    let Ok(entries) = directory.read_dir() else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let suffix = path
                .file_name()
                .and_then(|name| name.to_str()?.strip_prefix(base));
            suffix.is_some_and(|suffix| {
                suffix.is_empty() || suffix.strip_prefix('-').is_some_and(is_number)
            })
        })
        .collect();
    found.sort();
    found
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn llvm_version(tool: &Path) -> Option<u32> {
    // Debian's directories say it, which is faster than starting every tool there is.
    if let Ok(path) = tool.canonicalize()
        && let Ok(inside) = path.strip_prefix(LLVM_PARENT)
        && let Some(number) = inside.to_str().and_then(|it| it.strip_prefix("llvm-"))
    {
        return number.split('/').next()?.parse().ok();
    }
    let output = child::output(Command::new(tool).arg("--version")).ok()?;
    number_after(&String::from_utf8_lossy(&output.stdout), "LLVM version ")
}

/// The decimal number that follows the first `label` in `text`.
fn number_after(text: &str, label: &str) -> Option<u32> {
    let (_, rest) = text.split_once(label)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(versions: &[u32]) -> Installed {
        let tools = versions.iter().map(|llvm| Tools {
            llvm: *llvm,
            profdata: format!("/llvm-profdata-{llvm}").into(),
            cov: format!("/llvm-cov-{llvm}").into(),
            cxxfilt: None,
        });
        Installed {
            tools: tools.collect(),
            chosen: false,
        }
    }

    #[test]
    fn the_newest_tools_of_the_raw_version_are_taken() {
        let installed = installed(&[23, 22, 19, 18, 15, 14]);
        for (raw_version, llvm) in [(8, 15), (9, 18), (10, 22), (11, 23)] {
            assert_eq!(installed.reading(raw_version).unwrap().llvm, llvm);
        }
        assert_eq!(installed.newest().llvm, 23);
    }

    #[test]
    fn a_raw_version_without_a_reader_names_the_llvm_that_has_one() {
        let installed = installed(&[22, 19]);
        for (raw_version, needed) in [(8, "LLVM 14 to 16"), (11, "LLVM 23 or later")] {
            let message = installed.reading(raw_version).unwrap_err().to_string();
            assert!(message.contains(needed), "{message}");
            assert!(message.contains("found 22, 19"), "{message}");
        }
        let message = installed.reading(12).unwrap_err().to_string();
        assert!(message.contains("--llvm-bin"), "{message}");
    }

    #[test]
    fn tools_the_user_chose_are_not_second_guessed() {
        let installed = Installed {
            chosen: true,
            ..installed(&[22])
        };
        assert_eq!(installed.reading(11).unwrap().llvm, 22);
    }

    #[test]
    fn versions_are_read_from_what_the_tools_print() {
        let version = |text| number_after(text, "clang version ");
        assert_eq!(version("Debian clang version 22.1.8 (1~deb12u1)"), Some(22));
        assert_eq!(version("AMD clang version 20.0.0git (https://x)"), Some(20));
        assert_eq!(
            version("HIP version: 6.4\nAMD clang version 19.0.0git"),
            Some(19)
        );
        assert_eq!(version("g++ (Debian 12.2.0-14) 12.2.0"), None);
        assert_eq!(version("clang version unknown"), None);
    }
}
