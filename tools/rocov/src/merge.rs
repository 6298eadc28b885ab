//! Raw profiles into one indexed profile, by llvm-profdata.

use crate::child;
use crate::llvm_tools::{Installed, Tools};
use crate::mapped;
use anyhow::{Context, Result};
use rocov::profraw::{Header, ProfileError, RawProfile};
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::{Builder, NamedTempFile};

/// Bytes of a raw profile that hold its magic and version.
const VERSION_END: u64 = 16;
/// The version itself; the higher bits of its word are flags.
const VERSION_BITS: u64 = 0xffff_ffff;

/// Checks that the raw profile at `path` is whole, as one that is not makes llvm-profdata refuse all
/// of them.
///
/// # Errors
///
/// When it is not, or of a version that is not known. Tools that the user chose may know more.
pub(crate) fn check(path: &Path, installed: &Installed) -> Result<()> {
    match RawProfile::parse(&mapped::map(path)?) {
        Err(ProfileError::UnknownVersion { .. }) if installed.chosen() => Ok(()),
        result => {
            result?;
            Ok(())
        }
    }
}

/// Merges `profiles` into `output`, which is replaced at once.
///
/// # Errors
///
/// When a file is no raw profile, no installed tool reads it, or llvm-profdata refuses it.
pub(crate) fn merge(profiles: &[&Path], output: &Path, installed: &Installed) -> Result<()> {
    let mut by_version: BTreeMap<u64, Vec<&Path>> = BTreeMap::new();
    for profile in profiles {
        by_version
            .entry(raw_version(profile)?)
            .or_default()
            .push(profile);
    }
    // Code objects of several compilers can be in one process. Each raw version needs its own
    // tools; the newest then merge what these made of it.
    let mut parts = Vec::new();
    for (version, profiles) in &by_version {
        let tools = installed.reading(*version)?;
        if by_version.len() == 1 {
            return replace(output, |file| run(tools, profiles, file));
        }
        let part = NamedTempFile::new().context("cannot make a temporary file")?;
        run(tools, profiles, part.path())?;
        parts.push(part);
    }
    let parts: Vec<_> = parts.iter().map(NamedTempFile::path).collect();
    replace(output, |file| run(installed.newest(), &parts, file))
}

/// Has `write` make a file at the path it is given, then puts that at `path` at once.
fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let temporary = Builder::new()
        .prefix(".rocov-")
        // As for any file that a tool writes; the process's umask takes from it.
        .permissions(Permissions::from_mode(0o666))
        // Beside it, as a file cannot be renamed to another file system.
        .tempfile_in(path.parent().unwrap_or(Path::new(".")))
        .with_context(failed)?
        .into_temp_path();
    write(&temporary)?;
    temporary.persist(path).with_context(failed)
}

fn run(tools: &Tools, profiles: &[&Path], output: &Path) -> Result<()> {
    // In a file, as thousands of names do not fit a command line. The weight stands before each so
    // that a comma in the name is not taken for the end of one.
    let mut list = NamedTempFile::new().context("cannot make a temporary file")?;
    for profile in profiles {
        let line = [b"1,", profile.as_os_str().as_bytes(), b"\n"].concat();
        list.write_all(&line)
            .context("cannot write a temporary file")?;
    }
    let mut command = Command::new(&tools.profdata);
    command
        .arg("merge")
        .arg("-f")
        .arg(list.path())
        .arg("-o")
        .arg(output);
    child::output(&mut command)?;
    Ok(())
}

fn raw_version(profile: &Path) -> Result<u64> {
    let mut head = Vec::new();
    File::open(profile)
        .and_then(|file| file.take(VERSION_END).read_to_end(&mut head))
        .with_context(|| format!("cannot read {}", profile.display()))?;
    let word =
        Header::version_word(&head).with_context(|| format!("cannot use {}", profile.display()))?;
    Ok(word & VERSION_BITS)
}
