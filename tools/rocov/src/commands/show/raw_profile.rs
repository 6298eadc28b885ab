//! Raw profiles of all versions.

use rocov::format::profraw::{Header, RawProfile, Word};
use rocov::format::sections::Section;

use super::{Description, version};

pub(super) fn describe(file: &[u8]) -> Description {
    let mut description = Description::default();
    match Header::version_word(file) {
        Ok(word) => description.line(1, format_args!("raw profile, version {}", version(word))),
        Err(_) => description.line(1, "raw profile"),
    }
    match RawProfile::parse(file) {
        Ok(profile) => parts(&mut description, &profile),
        Err(error) => {
            if let Ok(header) = Header::parse(file) {
                promises(&mut description, &header);
            }
            description.damaged(error);
        }
    }
    description
}

/// The parts, with their places.
fn parts(description: &mut Description, profile: &RawProfile) {
    let version = profile.header.version();
    for (part, bytes) in profile.sections.iter() {
        let name = match part {
            Section::Data => Some("records"),
            Section::Counters | Section::Uniform => Some("counters"),
            _ => None,
        };
        let count = bytes.len() as u64 / part.element_bytes(version);
        let elements = name.map(|name| format!(", {count} {name}"));
        let part = part.name();
        description.line(
            1,
            format_args!(
                "{part:<17} {:>10} bytes at byte {}{}",
                bytes.len(),
                bytes.start,
                elements.unwrap_or_default()
            ),
        );
    }
}

/// Describes the parts of a damaged profile by its header.
fn promises(description: &mut Description, header: &Header) {
    for (word, unit) in [
        (Word::NumData, "records"),
        (Word::NumCounters, "counters"),
        (Word::NumBitmapBytes, "bytes of bitmap"),
        (Word::NumUniformCounters, "uniform counters"),
        (Word::NamesSize, "bytes of names"),
    ] {
        description.line(
            1,
            format_args!("by its header {} {unit}", header.word(word)),
        );
    }
}
