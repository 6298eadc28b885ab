//! `rocov show`: what a file of the data directory is, and its parts.

use crate::cli::ShowArguments;
use crate::mapped::map;
use crate::status::{FAILED, Outcome};
use anyhow::{Context, Result};
use rocov::profraw::{ProfileError, RawProfile, SavedSections};
use std::path::Path;

/// Prints each file's description; the status says whether all could be read.
///
/// # Errors
///
/// When a file cannot be opened.
pub(crate) fn show(arguments: &ShowArguments) -> Outcome {
    let mut status = 0;
    for file in &arguments.files {
        match describe(file) {
            Ok(description) => print!("{}:\n{description}", file.display()),
            Err(error) => {
                eprintln!("rocov: {error:#}");
                status = FAILED;
            }
        }
    }
    Ok(status)
}

fn describe(path: &Path) -> Result<String> {
    let file = map(path)?;
    match SavedSections::decode(&file) {
        Ok(saved) => Ok(saved_sections(&saved)),
        // Not such a file: then it may be a profile.
        Err(ProfileError::WrongMagic { .. }) => {
            raw_profile(&file).with_context(|| format!("{} cannot be shown", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("{} is damaged", path.display())),
    }
}

fn saved_sections(saved: &SavedSections) -> String {
    let mut text = format!(
        "  sections saved from a device, raw version {}, load delta {:#x}\n",
        version(saved.word),
        saved.load_delta
    );
    for section in &saved.sections {
        text += &format!(
            "  {:<17} {:>10} bytes at {:#x}\n",
            section.name,
            section.bytes.len(),
            section.address
        );
    }
    text
}

fn raw_profile(file: &[u8]) -> Result<String> {
    let profile = RawProfile::parse(file)?;
    let kind = profile.header.version();
    let mut text = format!("  raw profile, version {}\n", version(kind.word()));
    let record = kind.layout().record.bytes as usize;
    let counter = kind.counter_bytes() as usize;
    for (part, bytes, elements) in [
        ("data", &profile.records, Some(("records", record))),
        ("counters", &profile.counters, Some(("counters", counter))),
        ("bitmap", &profile.bitmap, None),
        ("uniform counters", &profile.uniform, Some(("counters", 8))),
        ("names", &profile.names, None),
    ] {
        text += &format!(
            "  {part:<17} {:>10} bytes at byte {}",
            bytes.len(),
            bytes.start
        );
        if let Some((name, size)) = elements {
            text += &format!(", {} {name}", bytes.len() / size);
        }
        text.push('\n');
    }
    Ok(text)
}

/// A version word in words: the number, and the variant bits where there are any.
fn version(word: u64) -> String {
    let (number, variant) = (word & u64::from(u32::MAX), word >> 32);
    match variant {
        0 => number.to_string(),
        variant => format!("{number} with variant bits {variant:#x}"),
    }
}
