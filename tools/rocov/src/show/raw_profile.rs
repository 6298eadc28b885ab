//! Raw profiles of all versions.

use super::{Description, version};
use rocov::profraw::{Header, RawProfile, Word};

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
    let kind = profile.header.version();
    let record = kind.layout().record.bytes as usize;
    let counter = kind.counter_bytes() as usize;
    for (part, bytes, elements) in [
        ("data", &profile.records, Some(("records", record))),
        ("counters", &profile.counters, Some(("counters", counter))),
        ("bitmap", &profile.bitmap, None),
        ("uniform counters", &profile.uniform, Some(("counters", 8))),
        ("names", &profile.names, None),
    ] {
        let elements = elements.map(|(name, size)| format!(", {} {name}", bytes.len() / size));
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

/// What the header of a damaged profile says of its parts.
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
