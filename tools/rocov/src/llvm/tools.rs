//! llvm-profdata and llvm-cov of one LLVM, and which raw version they read.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::format::profraw::Version;
use tempfile::NamedTempFile;

use super::clang::{Clang, number_after};
use super::search::LLVM_PARENT;
use crate::system::command;

/// The first words of a raw profile of version 0, which no llvm-profdata reads: it then says which
/// version it does.
const OF_VERSION_0: [u8; 16] = *b"\x81rforpl\xff\0\0\0\0\0\0\0\0";

/// llvm-profdata and llvm-cov of one LLVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tools {
    /// LLVM's major version, as llvm-cov says it.
    pub(crate) llvm: u32,
    /// The only raw version that llvm-profdata reads, if it is known.
    pub(crate) raw_version: Option<u32>,
    /// Merges raw profiles.
    pub(crate) profdata: PathBuf,
    /// Prints reports.
    pub(crate) cov: PathBuf,
}

impl Tools {
    /// The tools next to `profdata`, with the same suffix in their names.
    pub(super) fn beside_profdata(profdata: &Path) -> Option<Self> {
        let cov = beside(profdata, "llvm-cov")?;
        let released = released(&cov);
        // llvm-cov prints the version: up to LLVM 15, llvm-profdata has no --version.
        let llvm = released.or_else(|| version(&cov))?;
        let known = Version::from_clang(llvm).map(|version| version.layout().version);
        Some(Self {
            llvm,
            // A development version may read another than the release of its number.
            raw_version: match released {
                Some(_) => known,
                None => asked(profdata).or(known),
            },
            profdata: profdata.to_path_buf(),
            cov,
        })
    }

    /// The disassembler next to them.
    pub(crate) fn objdump(&self) -> Option<PathBuf> {
        beside(&self.profdata, "llvm-objdump")
    }

    /// The compiler next to them.
    pub(super) fn clang(&self) -> Option<Clang> {
        Clang::at(&beside(&self.profdata, "clang")?).ok()
    }
}

impl fmt::Display for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LLVM {}", self.llvm)?;
        match self.raw_version {
            Some(version) => write!(f, " (reads {version})"),
            None => Ok(()),
        }
    }
}

/// The tool `name` of the LLVM that `profdata` is of.
fn beside(profdata: &Path, name: &str) -> Option<PathBuf> {
    let file = profdata.file_name()?.to_str()?;
    let suffix = file.strip_prefix("llvm-profdata")?;
    Some(profdata.with_file_name(format!("{name}{suffix}"))).filter(|path| path.is_file())
}

/// The major version by one of Debian's directories of releases: starting every tool there is takes
/// longer.
fn released(tool: &Path) -> Option<u32> {
    let path = tool.canonicalize().ok()?;
    let inside = path.strip_prefix(LLVM_PARENT).ok()?;
    let number = inside.to_str()?.strip_prefix("llvm-")?;
    number.split('/').next()?.parse().ok()
}

fn version(tool: &Path) -> Option<u32> {
    let output = command::output(Command::new(tool).arg("--version")).ok()?;
    number_after(&String::from_utf8_lossy(&output.stdout), "LLVM version ")
}

/// The raw version that `profdata` says it expects. Up to LLVM 15 it does not say.
fn asked(profdata: &Path) -> Option<u32> {
    let mut profile = NamedTempFile::new().ok()?;
    profile.write_all(&OF_VERSION_0).ok()?;
    // At least the size of a header, which llvm-profdata checks first.
    profile.write_all(&[0; 256]).ok()?;
    let ended = command::ended(Command::new(profdata).arg("show").arg(profile.path())).ok()?;
    number_after(
        &String::from_utf8_lossy(&ended.stderr),
        "expected version = ",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_itself_says_which_raw_version_it_reads() {
        assert_eq!(asked(Path::new("llvm-profdata-22")), Some(10));
        assert_eq!(asked(Path::new("llvm-profdata-15")), None);
        assert_eq!(asked(Path::new("/nonexistent/llvm-profdata")), None);
    }
}
