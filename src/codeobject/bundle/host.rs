//! Where a file of the host has containers of device code.

use std::ops::Range;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use super::error::BundleError;
use super::starts_bundle;

/// Section of bundles that the HIP runtime loads.
const FAT_BINARY: &[u8] = b".hip_fatbin";
/// Section of offload binaries: what OpenMP's runtime loads, and in object files what the linker is
/// still to link for the device.
const OFFLOADING: &[u8] = b".llvm.offloading";

/// Start of the names of sections that have what is still to be linked for a device, by its id.
const TO_BE_LINKED: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// What an archive of object files starts with.
const ARCHIVE: &[u8] = b"!<arch>\n";

/// The compiler aligns each bundle so in `.hip_fatbin`, and the linker that.
pub(super) const BUNDLE_ALIGNMENT: usize = 4096;

/// A stretch of a host file.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name; `None` where the file's section headers were stripped.
    pub(super) name: Option<String>,
    /// Where it is in the file.
    pub(super) place: Range<usize>,
    /// Whether what comes after the first container may be anything.
    pub(super) has_one: bool,
}

/// The sections of the host ELF `file` that hold containers.
///
/// # Errors
/// Fails where `file` is not a 64-bit little-endian ELF, a damaged one, or has none.
pub(super) fn sections(file: &[u8]) -> Result<Vec<Section>, BundleError> {
    if file.starts_with(ARCHIVE) {
        return Err(BundleError::NoDeviceCode(
            "a static library, whose members are to be taken out first (ar x)",
        ));
    }
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, file)?;
    if sections.is_empty() {
        return stripped(file);
    }
    let mut found = Vec::new();
    let mut is_to_be_linked = false;
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
        is_to_be_linked |= name.starts_with(TO_BE_LINKED);
        if name != FAT_BINARY && !name.starts_with(OFFLOADING) {
            continue;
        }
        if let Some((offset, size)) = section.file_range(endian) {
            // Checked against the file, so that both are usize.
            section.data(endian, file)?;
            found.push(Section {
                name: Some(String::from_utf8_lossy(name).into_owned()),
                place: offset as usize..(offset + size) as usize,
                has_one: false,
            });
        }
    }
    if found.is_empty() && is_to_be_linked {
        return Err(BundleError::NoDeviceCode(
            "only what is still to be linked for the device (-fgpu-rdc)",
        ));
    }
    if found.is_empty() {
        return Err(BundleError::NoDeviceCode(
            "no .hip_fatbin section and no .llvm.offloading section",
        ));
    }
    Ok(found)
}

/// The bundles of a file without section headers: what starts as one, where one could be.
fn stripped(file: &[u8]) -> Result<Vec<Section>, BundleError> {
    let pages = (0..file.len()).step_by(BUNDLE_ALIGNMENT);
    let starts: Vec<usize> = pages
        .filter(|start| starts_bundle(&file[*start..]))
        .collect();
    if starts.is_empty() {
        return Err(BundleError::NoDeviceCode(
            "no section headers and no offload bundle at the start of a page",
        ));
    }
    let ends = starts.iter().skip(1).copied().chain([file.len()]);
    let place = starts.iter().zip(ends);
    Ok(place
        .map(|(start, end)| Section {
            name: None,
            place: *start..end,
            has_one: true,
        })
        .collect())
}
