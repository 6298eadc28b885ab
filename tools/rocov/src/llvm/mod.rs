//! Finds clang, llvm-profdata and llvm-cov ([`search`]), their versions ([`clang`], [`tools`]), the
//! tools that can read a profile, how a clang instruments device code ([`device_compiler`]) and by which means
//! that code counts fast ([`fast_counters`]).
//!
//! A raw profile is read only by the tools of its own raw version ("raw profile version mismatch",
//! newer tools included). An indexed profile and a coverage mapping are read by every later llvm-cov.
//! So the raw version chooses llvm-profdata, and llvm-cov is the newest there is.

mod clang;
mod device_compiler;
pub(crate) mod fast_counters;
mod search;
mod tools;

use std::cmp::Reverse;
use std::path::Path;

use anyhow::{Error, Result};
use rocov::format::profraw::{Version, VersionLayout};

use crate::support::failure::failure;
use search::{PLACES, candidates, named_in};

pub(crate) use clang::{Clang, clang_release, clang_releases};
pub(crate) use device_compiler::{CUDA_ARCH, DeviceCompiler, Form, Language, for_device};
pub(crate) use search::{LLVM_PARENT, rocm};
pub(crate) use tools::Tools;

/// The tools there are, newest first.
#[derive(Debug)]
pub(crate) struct LlvmTools {
    tools: Vec<Tools>,
    /// Chosen by the user.
    chosen: bool,
    /// The versions that the compilers of the code wrote into it.
    compilers: Vec<String>,
}

impl LlvmTools {
    /// Looks for the tools in `directory`, or in their usual places.
    ///
    /// # Errors
    ///
    /// Fails if there are none.
    pub(crate) fn find(directory: Option<&Path>) -> Result<Self> {
        let found = Self::find_any(directory)?;
        match found.tools.is_empty() {
            true => Err(none(PLACES)),
            false => Ok(found),
        }
    }

    /// Looks for the tools in `directory`, or in their usual places, where there may be none.
    ///
    /// # Errors
    ///
    /// Fails if there are none in `directory`.
    pub(crate) fn find_any(directory: Option<&Path>) -> Result<Self> {
        let candidates = match directory {
            Some(directory) => named_in(directory, "llvm-profdata"),
            None => candidates("llvm-profdata"),
        };
        let mut tools: Vec<_> = candidates
            .iter()
            .filter_map(|path| Tools::beside_profdata(path))
            .collect();
        tools.sort_by_key(|tools| Reverse(tools.llvm));
        if let (true, Some(directory)) = (tools.is_empty(), directory) {
            return Err(none(&format!("in {}", directory.display())));
        }
        let chosen = directory.is_some();
        Ok(Self {
            tools,
            chosen,
            compilers: Vec::new(),
        })
    }

    /// No other tools than these.
    #[cfg(test)]
    pub(crate) fn only(tools: Option<Tools>) -> Self {
        Self {
            tools: Vec::from_iter(tools),
            chosen: true,
            compilers: Vec::new(),
        }
    }

    /// Prefers the tools next to the compilers that say this of their versions: those of the code
    /// objects whose profiles are read.
    pub(crate) fn prefer(&mut self, compilers: impl IntoIterator<Item = String>) {
        self.compilers.extend(compilers);
    }

    /// All tools, newest first.
    pub(crate) fn all(&self) -> &[Tools] {
        &self.tools
    }

    /// Returns whether the user chose the tools.
    pub(crate) fn chosen(&self) -> bool {
        self.chosen
    }

    /// The newest tools of all: they read every indexed profile and coverage mapping that the
    /// others write.
    ///
    /// # Errors
    ///
    /// Fails if there are no tools.
    pub(crate) fn newest(&self) -> Result<&Tools> {
        self.tools.first().ok_or_else(|| none(PLACES))
    }

    /// The tools that read raw profiles of `raw_version`: those of a compiler that is preferred, else
    /// the newest.
    ///
    /// # Errors
    ///
    /// Fails if none of them does; the message names the LLVM that would.
    pub(crate) fn reading(&self, raw_version: u64) -> Result<&Tools> {
        self.reading_code_of(&self.compilers, raw_version)
    }

    /// The tools that read raw profiles of `raw_version`, for code that `compilers` made.
    ///
    /// # Errors
    ///
    /// Fails if none of them does.
    pub(crate) fn reading_code_of(&self, compilers: &[String], raw_version: u64) -> Result<&Tools> {
        let mut readers = self.tools.iter().filter(|tools| match tools.raw_version {
            Some(version) => u64::from(version) == raw_version,
            // The user must see this.
            None => self.chosen,
        });
        let newest = readers.next().ok_or_else(|| self.no_reader(raw_version))?;
        let of_compiler: Vec<_> = [newest]
            .into_iter()
            .chain(readers)
            .filter(|tools| {
                let mut majors = compilers
                    .iter()
                    .filter_map(|compiler| clang_release(compiler));
                majors.any(|major| major == tools.llvm)
            })
            .collect();
        // Starting compilers takes time, and helps only if the number does not decide.
        let beside = |tools: &&&Tools| {
            let clang = tools.clang();
            clang.is_some_and(|clang| compilers.contains(&clang.line))
        };
        Ok(match of_compiler[..] {
            [] => newest,
            [one] => one,
            [first, ..] => of_compiler.iter().find(beside).copied().unwrap_or(first),
        })
    }

    /// Makes the error that names the LLVM that is missing.
    fn no_reader(&self, raw_version: u64) -> Error {
        if self.tools.is_empty() {
            return none(PLACES);
        }
        let found: Vec<_> = self.tools.iter().map(Tools::to_string).collect();
        let found = found.join(", ");
        match Version::from_word(raw_version) {
            Ok(version) => {
                failure!(
                    "raw profile version {raw_version} requires the tools of {}, but found {found}",
                    releases(version.layout());
                    "install them, or use --llvm-bin"
                )
            }
            Err(_) => {
                failure!(
                    "unknown raw profile version {raw_version}, found {found}";
                    "use --llvm-bin with the compiler's own llvm-profdata and llvm-cov"
                )
            }
        }
    }
}

/// Makes the error that there are no tools in `place`.
fn none(place: &str) -> Error {
    failure!("no llvm-profdata and llvm-cov {place}"; "install LLVM's tools, or use --llvm-bin")
}

/// The releases of LLVM whose tools read raw profiles of this layout.
fn releases(layout: &VersionLayout) -> String {
    let (first, last) = (layout.llvm.start(), layout.llvm.end());
    match Version::from_clang(last + 1) {
        Some(_) if first == last => format!("LLVM {first}"),
        Some(_) => format!("LLVM {first} to {last}"),
        None => format!("LLVM {first} or later"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(versions: &[u32]) -> LlvmTools {
        let tools = versions.iter().map(|llvm| Tools {
            llvm: *llvm,
            raw_version: Version::from_clang(*llvm).map(|version| version.layout().version),
            profdata: format!("/llvm-profdata-{llvm}").into(),
            cov: format!("/llvm-cov-{llvm}").into(),
        });
        LlvmTools {
            tools: tools.collect(),
            chosen: false,
            compilers: Vec::new(),
        }
    }

    #[test]
    fn the_newest_tools_of_the_raw_version_are_taken() {
        let installed = installed(&[23, 22, 19, 18, 15, 14]);
        for (raw_version, llvm) in [(8, 15), (9, 18), (10, 22), (11, 23)] {
            assert_eq!(installed.reading(raw_version).unwrap().llvm, llvm);
        }
        assert_eq!(installed.newest().unwrap().llvm, 23);
    }

    #[test]
    fn the_compilers_own_tools_come_before_newer_ones() {
        let mut installed = installed(&[22, 20, 19]);
        installed.prefer(["AMD clang version 19.0.0git (https://x)".to_owned()]);
        assert_eq!(installed.reading(10).unwrap().llvm, 19);
        // The tools of this compiler are not installed, so rocov takes the newest that read the version.
        installed.compilers = vec!["clang version 21.1.0".to_owned()];
        assert_eq!(installed.reading(10).unwrap().llvm, 22);
    }

    /// A development version reads the version that it prints, not that of the release of its number.
    #[test]
    fn what_a_tool_says_it_reads_counts() {
        let mut installed = installed(&[22, 19]);
        installed.tools[0].raw_version = Some(11);
        assert_eq!(installed.reading(10).unwrap().llvm, 19);
        assert_eq!(installed.reading(11).unwrap().llvm, 22);
    }

    #[test]
    fn a_raw_version_without_a_reader_names_the_llvm_that_has_one() {
        let installed = installed(&[22, 19]);
        for (raw_version, needed) in [(8, "LLVM 14 to 17"), (11, "LLVM 23 or later")] {
            let message = installed.reading(raw_version).unwrap_err().to_string();
            assert!(message.contains(needed), "{message}");
            assert!(
                message.contains("found LLVM 22 (reads 10), LLVM 19 (reads 10)"),
                "{message}"
            );
        }
        let message = installed.reading(12).unwrap_err().to_string();
        assert!(message.contains("--llvm-bin"), "{message}");
    }

    #[test]
    fn tools_the_user_chose_are_refused_for_what_they_say_alone() {
        let mut installed = LlvmTools {
            chosen: true,
            ..installed(&[22])
        };
        assert!(installed.reading(11).is_err());
        installed.tools[0].raw_version = None;
        assert_eq!(installed.reading(11).unwrap().llvm, 22);
    }
}
