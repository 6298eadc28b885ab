//! The header of a profile: its version, and the instrumentation that it is of.

use std::fmt;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use rocov::format::blocks::Kind;
use rocov::format::profraw::{Header, ProfileError, RawProfile, Version};
use rocov::support::diagnostic::fail;
use rocov::validate::for_each_name;

use crate::llvm::LlvmTools;
use crate::support::mmap;

/// Bytes of a raw profile that hold its magic and version.
const VERSION_END: u64 = 16;
/// The start of an indexed profile, before a version word with the flags of the raw profiles in it
/// (`IndexedInstrProf` in `InstrProf.h`).
pub(crate) const INDEXED_MAGIC: [u8; 8] = *b"\xfflprofi\x81";
/// Extension of indexed profiles.
const EXTENSION: &str = "profdata";

/// The code that the counters of a profile are of. It decides how the compiler uses the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instrumentation {
    /// The source: `-fprofile-instr-generate`.
    FrontEnd,
    /// LLVM's IR: `-fprofile-generate`.
    Ir,
}

impl Instrumentation {
    /// The instrumentation of the indexed profile at `path`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, is none, or has no counts.
    pub(crate) fn from_indexed(path: &Path) -> Result<Self> {
        let head = head(path)?;
        let word = head
            .strip_prefix(&INDEXED_MAGIC)
            .and_then(|digits| digits.as_array())
            .with_context(|| format!("{} is no indexed profile", path.display()))?;
        let word = u64::from_le_bytes(*word);
        if Version::counts_bytes(word) {
            fail!(
                "{} records only whether code was reached, which is not enough for optimization",
                path.display();
                "compile without -enable-single-byte-coverage"
            );
        }
        Ok(Self::from_word(word))
    }

    /// The instrumentation in the version word of a profile or a code object.
    pub(crate) fn from_word(word: u64) -> Self {
        match Version::is_ir_level(word) {
            false => Self::FrontEnd,
            true => Self::Ir,
        }
    }
}

impl fmt::Display for Instrumentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FrontEnd => "front-end instrumentation",
            Self::Ir => "IR instrumentation",
        })
    }
}

/// Checks that the raw profile at `path` is whole, as one that is not makes llvm-profdata refuse all
/// of them.
///
/// # Errors
///
/// Fails if it is not, or of a version that is not known. Tools that the user chose may support more.
pub(crate) fn check(path: &Path, installed: &LlvmTools) -> Result<()> {
    let file = mmap::read(path)?;
    match RawProfile::parse(&file) {
        Err(ProfileError::UnknownVersion { .. }) if installed.chosen() => Ok(()),
        profile => Ok(profile?.check_counts(&file)?),
    }
}

/// Returns whether the records of a raw profile are of code without a coverage mapping: of a trace or of PTX. So are
/// those of a profile without records, as no function ran. A file that is no profile has none.
pub(crate) fn has_blocks(path: &Path) -> bool {
    let names = || {
        let file = mmap::read(path).ok()?;
        let profile = RawProfile::parse(&file).ok()?;
        let mut are_blocks = true;
        for_each_name(&file[profile.sections.names], |name| {
            let name = str::from_utf8(name).ok();
            are_blocks &= name.and_then(Kind::split).is_some();
        })
        .ok()?;
        Some(are_blocks)
    };
    names().unwrap_or(false)
}

/// Returns whether `path` is named as indexed profiles are.
pub(crate) fn is_indexed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == EXTENSION)
}

/// Returns whether a raw profile is of `-fprofile-generate`: for optimization, and without the mapping
/// that coverage needs. A file that is no profile is not.
pub(crate) fn is_ir_level(profile: &Path) -> bool {
    version_word(profile).is_ok_and(Version::is_ir_level)
}

pub(crate) fn version_word(profile: &Path) -> Result<u64> {
    let head = head(profile)?;
    Header::version_word(&head).with_context(|| format!("cannot use {}", profile.display()))
}

/// The magic and the version word of a profile, as far as they are there.
fn head(profile: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    mmap::open(profile)?
        .take(VERSION_END)
        .read_to_end(&mut head)
        .with_context(|| format!("cannot read {}", profile.display()))?;
    Ok(head)
}
