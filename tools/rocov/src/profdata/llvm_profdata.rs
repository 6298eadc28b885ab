//! Merges profiles into one indexed profile with llvm-profdata.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Error, Result};
use rocov::format::profraw::Version;
use rocov::support::diagnostic::Diagnostic;
use tempfile::NamedTempFile;

use crate::data::profile_header::{is_indexed, version_word};
use crate::llvm::{LlvmTools, Tools};
use crate::support::atomic::replace;
use crate::support::failure::failure;
use crate::support::temporary;
use crate::system::command;

/// Merges `profiles` into `output`, which is replaced at once. `arguments` are llvm-profdata's own.
/// Returns the lines that llvm-profdata printed.
///
/// # Errors
///
/// Fails if a file is no profile, no installed tool reads it, they are of both kinds of instrumentation,
/// or llvm-profdata refuses one.
pub(crate) fn merge(
    profiles: &[&Path],
    output: &Path,
    installed: &LlvmTools,
    arguments: &[String],
) -> Result<Vec<Diagnostic>> {
    let mut by_version: BTreeMap<u64, Vec<&Path>> = BTreeMap::new();
    let mut parts = Vec::new();
    let mut kinds = [None; 2];
    for profile in profiles {
        if is_indexed(profile) {
            parts.push(*profile);
            continue;
        }
        let word = version_word(profile)?;
        kinds[usize::from(Version::is_ir_level(word))].get_or_insert(profile);
        by_version
            .entry(Version::split(word).0)
            .or_default()
            .push(profile);
    }
    if let [Some(front_end), Some(ir_level)] = kinds {
        return Err(mixed(front_end.display(), ir_level.display()));
    }
    // Code objects of several compilers can be in one process. Each raw version needs its own tools;
    // the newest then merge the results.
    let (mut made, mut said) = (Vec::new(), Vec::new());
    for (version, profiles) in &by_version {
        let tools = installed.reading(*version)?;
        if by_version.len() == 1 && parts.is_empty() {
            replace(output, |file| {
                said = run(tools, profiles, file, arguments)?;
                Ok(())
            })?;
            return Ok(said);
        }
        let part = temporary::file("rocov-")?;
        said.extend(run(tools, profiles, part.path(), arguments)?);
        made.push(part);
    }
    parts.extend(made.iter().map(NamedTempFile::path));
    replace(output, |file| {
        said.extend(run(installed.newest()?, &parts, file, arguments)?);
        Ok(())
    })?;
    Ok(said)
}

/// Makes the error that profiles are of both kinds of instrumentation.
pub(super) fn mixed(front_end: impl Display, ir_level: impl Display) -> Error {
    failure!(
        "{front_end} comes from front-end instrumentation (-fprofile-instr-generate), but {ir_level} comes from \
        IR-level instrumentation (-fprofile-generate), which count different things: they cannot be in one indexed profile";
        "merge the profiles of one kind, or compile all code in the same way"
    )
}

/// Runs llvm-profdata, and returns the lines that it prints on standard error.
fn run(
    tools: &Tools,
    profiles: &[&Path],
    output: &Path,
    arguments: &[String],
) -> Result<Vec<Diagnostic>> {
    let (mut command, _list) = merging(tools, profiles, output, arguments)?;
    let said = command::output(&mut command)?.stderr;
    let said = String::from_utf8_lossy(&said);
    let lines = said
        .lines()
        .map(|line| Diagnostic::without_step(format!("llvm-profdata: {line}")));
    Ok(lines.collect())
}

/// The command that merges `profiles`, and the file that it reads their names from: thousands do
/// not fit a command line.
fn merging(
    tools: &Tools,
    profiles: &[&Path],
    output: &Path,
    arguments: &[String],
) -> Result<(Command, NamedTempFile)> {
    let mut list = temporary::file("rocov-")?;
    for profile in profiles {
        // The weight comes before each so that a comma in the name is not taken for the end of one.
        let line = [b"1,", profile.as_os_str().as_bytes(), b"\n"].concat();
        list.write_all(&line)
            .context("cannot write a temporary file")?;
    }
    let mut command = Command::new(&tools.profdata);
    command.arg("merge").args(arguments);
    command.arg("-f").arg(list.path()).arg("-o").arg(output);
    Ok((command, list))
}
