//! Sections that librocov saved whole.

use rocov::format::profraw::SavedSections;
use rocov::support::diagnostic::Remedy;

use super::description::{Description, version};

pub(super) fn describe(file: &[u8]) -> Description {
    let mut description = Description::default();
    let saved = match SavedSections::decode(file) {
        Ok(saved) => saved,
        Err(error) => {
            description.line(1, "sections saved from a device");
            description.damaged(error.diagnostic());
            return description;
        }
    };
    description.line(
        1,
        format_args!(
            "sections saved from a device, raw version {}, load delta {:#x}",
            version(saved.word),
            saved.load_delta
        ),
    );
    for section in &saved.sections {
        let (name, len) = (section.name.to_string(), section.bytes.len());
        let address = section.address;
        description.line(
            1,
            format_args!("{name:<17} {len:>10} bytes at {address:#x}"),
        );
    }
    description
}
