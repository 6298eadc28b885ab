//! Profiles into one indexed profile, by llvm-profdata.

use crate::child;
use crate::files::replace;
use crate::llvm_tools::{Installed, Tools};
use crate::mapped;
use anyhow::{Context, Result, bail};
use rocov::profraw::{Header, ProfileError, RawProfile};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use tempfile::NamedTempFile;

/// Bytes of a raw profile that hold its magic and version.
const VERSION_END: u64 = 16;
/// The version itself; the higher bits of its word are flags.
pub(crate) const VERSION_BITS: u64 = 0xffff_ffff;
/// The flag of `-fprofile-generate`, whose counters are of LLVM's IR (`VARIANT_MASK_IR_PROF` in
/// `InstrProfData.inc`).
const IR_LEVEL: u64 = 1 << 56;
/// The flag of counters that tell reached from not reached alone (`VARIANT_MASK_BYTE_COVERAGE`).
const SINGLE_BYTE: u64 = 1 << 60;
/// How an indexed profile starts, before a version word with the flags of the raw profiles in it
/// (`IndexedInstrProf` in `InstrProf.h`).
const INDEXED_MAGIC: &[u8] = b"\xfflprofi\x81";
/// Extension of indexed profiles.
const EXTENSION: &str = "profdata";

/// What the counters of a profile are of, by which the compiler is told to use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instrumentation {
    /// Of the source: `-fprofile-instr-generate`.
    FrontEnd,
    /// Of LLVM's IR: `-fprofile-generate`.
    Ir,
}

impl Instrumentation {
    /// What the indexed profile at `path` is of.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is none, or has no counts.
    pub(crate) fn of_indexed(path: &Path) -> Result<Self> {
        let head = head(path)?;
        let word = head
            .strip_prefix(INDEXED_MAGIC)
            .and_then(|it| it.as_array());
        let word = word.with_context(|| format!("{} is no indexed profile", path.display()))?;
        let word = u64::from_le_bytes(*word);
        if word & SINGLE_BYTE != 0 {
            bail!(
                "{} tells reached from not reached, which is not enough to optimize by: compile \
                 without -enable-single-byte-coverage",
                path.display()
            );
        }
        Ok(Self::of_word(word))
    }

    /// What the version word of a profile or a code object says.
    pub(crate) fn of_word(word: u64) -> Self {
        match word & IR_LEVEL {
            0 => Self::FrontEnd,
            _ => Self::Ir,
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
/// When it is not, or of a version that is not known. Tools that the user chose may know more.
pub(crate) fn check(path: &Path, installed: &Installed) -> Result<()> {
    let file = mapped::map(path)?;
    match RawProfile::parse(&file) {
        Err(ProfileError::UnknownVersion { .. }) if installed.chosen() => Ok(()),
        profile => Ok(profile?.check_counts(&file)?),
    }
}

/// Asks llvm-profdata about the raw profile at `path`, which may find more in it than [`check`].
///
/// # Errors
///
/// When it is refused; with its reason.
pub(crate) fn check_by_tool(path: &Path, installed: &Installed) -> Result<()> {
    let tools = installed.reading(version_word(path)? & VERSION_BITS)?;
    let part = NamedTempFile::new().context("cannot make a temporary file")?;
    let (mut command, _list) = merging(tools, &[path], part.path(), &[])?;
    let ended = child::ended(&mut command)?;
    if !ended.status.success() {
        // `warning: FILE: REASON`, and then the error that nothing is left.
        let said = String::from_utf8_lossy(&ended.stderr);
        let name = format!("{}: ", path.display());
        let reason = said.lines().find_map(|line| line.split_once(&name));
        let reason = reason.map_or_else(|| child::reason(&ended), |(_, it)| it.to_owned());
        bail!("llvm-profdata refuses it: {reason}");
    }
    Ok(())
}

/// Merges `profiles` into `output`, which is replaced at once. `arguments` are llvm-profdata's own.
///
/// # Errors
///
/// When a file is no profile, no installed tool reads it, they are of both kinds of instrumentation,
/// or llvm-profdata refuses one.
pub(crate) fn merge(
    profiles: &[&Path],
    output: &Path,
    installed: &Installed,
    arguments: &[String],
) -> Result<()> {
    let mut by_version: BTreeMap<u64, Vec<&Path>> = BTreeMap::new();
    let mut parts = Vec::new();
    let mut kinds = [None; 2];
    for profile in profiles {
        if is_indexed(profile) {
            parts.push(*profile);
            continue;
        }
        let word = version_word(profile)?;
        kinds[usize::from(word & IR_LEVEL != 0)].get_or_insert(profile);
        by_version
            .entry(word & VERSION_BITS)
            .or_default()
            .push(profile);
    }
    if let [Some(front_end), Some(ir_level)] = kinds {
        bail!(
            "{} is of front-end instrumentation (-fprofile-instr-generate) and {} of IR-level \
             instrumentation (-fprofile-generate), which count different things: they cannot be in \
             one indexed profile: merge the profiles of one kind, or compile all code in one way",
            front_end.display(),
            ir_level.display()
        );
    }
    // Code objects of several compilers can be in one process. Each raw version needs its own
    // tools; the newest then merge what these made of it.
    let mut made = Vec::new();
    for (version, profiles) in &by_version {
        let tools = installed.reading(*version)?;
        if by_version.len() == 1 && parts.is_empty() {
            return replace(output, |file| run(tools, profiles, file, arguments));
        }
        let part = NamedTempFile::new().context("cannot make a temporary file")?;
        run(tools, profiles, part.path(), arguments)?;
        made.push(part);
    }
    parts.extend(made.iter().map(NamedTempFile::path));
    replace(output, |file| {
        run(installed.newest(), &parts, file, arguments)
    })
}

/// Whether `path` is named as indexed profiles are.
pub(crate) fn is_indexed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == EXTENSION)
}

fn run(tools: &Tools, profiles: &[&Path], output: &Path, arguments: &[String]) -> Result<()> {
    let (mut command, _list) = merging(tools, profiles, output, arguments)?;
    let said = child::output(&mut command)?.stderr;
    for line in String::from_utf8_lossy(&said).lines() {
        child::say(&[format!("llvm-profdata: {line}")]);
    }
    Ok(())
}

/// The command that merges `profiles`, and the file that it reads their names from: thousands do
/// not fit a command line.
fn merging(
    tools: &Tools,
    profiles: &[&Path],
    output: &Path,
    arguments: &[String],
) -> Result<(Command, NamedTempFile)> {
    let mut list = NamedTempFile::new().context("cannot make a temporary file")?;
    for profile in profiles {
        // The weight stands before each so that a comma in the name is not taken for the end of one.
        let line = [b"1,", profile.as_os_str().as_bytes(), b"\n"].concat();
        list.write_all(&line)
            .context("cannot write a temporary file")?;
    }
    let mut command = Command::new(&tools.profdata);
    command.arg("merge").args(arguments);
    command.arg("-f").arg(list.path()).arg("-o").arg(output);
    Ok((command, list))
}

/// Whether a raw profile is of `-fprofile-generate`: for optimization, and without the mapping that
/// coverage needs. A file that is none at all is not.
pub(crate) fn is_ir_level(profile: &Path) -> bool {
    version_word(profile).is_ok_and(|word| word & IR_LEVEL != 0)
}

fn version_word(profile: &Path) -> Result<u64> {
    let head = head(profile)?;
    Header::version_word(&head).with_context(|| format!("cannot use {}", profile.display()))
}

/// The magic and the version word of a profile, as far as they are there.
fn head(profile: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(profile)
        .and_then(|file| file.take(VERSION_END).read_to_end(&mut head))
        .with_context(|| format!("cannot read {}", profile.display()))?;
    Ok(head)
}
