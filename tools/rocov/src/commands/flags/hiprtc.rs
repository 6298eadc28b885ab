//! The input of hipRTC: the options of a compilation, and the text of the device header.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rocov::support::diagnostic::fail;

use super::clang_probe::ClangProbe;
use super::counting::Counting;
use super::word::prefixed;
use crate::cli::Counters;
use crate::llvm::Form;
use crate::system::installed;

/// The options that put the text of each source into the code object: no file has it when the program ends.
const EMBEDDED_SOURCE: [&str; 3] = ["-gdwarf-5", "-gline-tables-only", "-gembed-source"];

/// Checks the way of counting that the user wants.
///
/// # Errors
///
/// Fails if hipRTC does not have that way.
pub(super) fn check(wish: Option<Counters>) -> Result<()> {
    let way = match wish {
        None | Some(Counters::Llvm) => return Ok(()),
        Some(Counters::Fast) => "fast",
        Some(Counters::Reached) => "reached",
    };
    fail!(
        "--counters={way} is not for --hiprtc: hipRTC loads no plugin and uses LLVM's own counters";
        "leave --counters out, or use --counters=llvm"
    )
}

/// The elements of hiprtcCompileProgram's `options`. The last ones include the device header by its name: from
/// the headers that the program gave to hiprtcCreateProgram, or else from its directory.
pub(super) fn options(
    form: Form,
    archs: &[String],
    probe: &ClangProbe,
    counting: &Counting,
    header: &Path,
) -> Vec<OsString> {
    let instrumentation = form.instrumentation(false).into_iter();
    let mut options: Vec<_> = instrumentation.map(OsString::from).collect();
    options.extend(probe.for_device());
    options.extend(counting.for_all());
    options.extend(EMBEDDED_SOURCE.map(OsString::from));
    options.extend(
        archs
            .iter()
            .map(|arch| format!("--offload-arch={arch}").into()),
    );
    options.extend(header.parent().map(|directory| prefixed("-I", directory)));
    options.push("-include".into());
    options.extend(header.file_name().map(OsStr::to_owned));
    options
}

/// The text of one option a line.
///
/// # Errors
///
/// Fails if an option has a line break in it.
pub(super) fn lines(options: &[OsString]) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for option in options {
        let option_bytes = option.as_encoded_bytes();
        if option_bytes.contains(&b'\n') {
            fail!(
                "`{}` contains a line break, but each option must be on its own line",
                option.display();
                "move rocov to a path without one"
            );
        }
        lines.extend_from_slice(option_bytes);
        lines.push(b'\n');
    }
    Ok(lines)
}

/// The text of the device header.
///
/// # Errors
///
/// Fails if the file is in none of its places, or cannot be read.
pub(super) fn header() -> Result<Vec<u8>> {
    let header = installed::find_header()?;
    fs::read(&header).with_context(|| format!("cannot read {}", header.display()))
}
