//! Raw profiles of all versions.

use rocov::format::profraw::{Header, HostProfile, RawProfile, Word};
use rocov::format::sections::Section;
use rocov::support::diagnostic::Remedy;
use rocov::validate::for_each_name;

use super::description::{Description, version};

/// Describes each profile of the file: programs append to one (`%m`), and `cat` joins several.
pub(super) fn describe(file: &[u8]) -> Description {
    let mut description = Description::default();
    for (number, (start, read)) in HostProfile::each(file).enumerate() {
        if number > 0 {
            description.line(1, format_args!("at byte {start}:"));
        }
        one(&mut description, &file[start..]);
        if let Err(error) = read
            && description.damage.is_empty()
        {
            let damage = error.diagnostic();
            description.damaged(match start {
                0 => damage,
                _ => damage.within(format_args!("the profile at byte {start}")),
            });
        }
    }
    description
}

/// Describes the profile at the start of `file`.
fn one(description: &mut Description, file: &[u8]) {
    match Header::version_word(file) {
        Ok(word) => description.line(1, format_args!("raw profile, version {}", version(word))),
        Err(_) => description.line(1, "raw profile"),
    }
    match RawProfile::parse(file) {
        Ok(profile) => {
            parts(description, &profile);
            if let Err(error) = for_each_name(&file[profile.sections.names], |_| {}) {
                description.damaged(error.diagnostic());
            }
        }
        Err(_) => {
            if let Ok(header) = Header::parse(file) {
                promises(description, &header);
            }
        }
    }
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
