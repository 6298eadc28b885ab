//! The containers of device code in a host file.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader};

use crate::format::bundle::error::{BundleError, WITH_CODE};
use crate::format::bundle::formats::starts_bundle;
use crate::format::bundle::split_off::SplitOff;

/// The section of bundles that the HIP runtime loads.
const FAT_BINARY: &[u8] = b".hip_fatbin";
/// The section of offload binaries. OpenMP's runtime loads them. In object files they hold device code that
/// is not linked yet.
const OFFLOADING: &[u8] = b".llvm.offloading";

/// The section of CUDA fat binaries.
const CUDA_FAT_BINARY: &[u8] = b".nv_fatbin";
/// The section of CUDA fat binaries that are not linked yet (`nvcc -rdc=true`).
const CUDA_TO_BE_LINKED: &[u8] = b"__nv_relfatbin";

/// The prefix of section names with device code that is not linked yet. The device's id follows.
const TO_BE_LINKED: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The section that names the archives to which ROCm's kpack tools moved the device code. They leave the
/// other sections behind, without their contents (rocm-kpack, multi_arch_packaging_with_kpack.md).
const SPLIT_OFF: &[u8] = b".rocm_kpack_ref";
/// The magic number of an archive of object files.
const ARCHIVE: &[u8] = b"!<arch>\n";

/// The alignment of each bundle in `.hip_fatbin` in the file. The compiler aligns bundles, and the linker the
/// section.
pub(super) const BUNDLE_ALIGNMENT: usize = 4096;

/// A range of a host file.
#[derive(Debug)]
pub(super) struct HostSection {
    /// Its name. `None` if the file's section headers were stripped.
    pub(super) name: Option<String>,
    /// Its range in the file.
    pub(super) place: Range<usize>,
    /// True if the data after the first container may be anything.
    pub(super) has_one: bool,
}

/// The reason why an ELF of another machine is not read, by its class and byte order; `None` for one of a 64-bit
/// little-endian machine, and for other files.
fn other_machine(file: &[u8]) -> Option<[&'static str; 2]> {
    let (b"\x7fELF", [class, order, ..]) = file.split_first_chunk::<4>()? else {
        return None;
    };
    match (*class, *order) {
        (1, 1) => Some([
            "a 32-bit ELF",
            "name a program or library for a 64-bit machine",
        ]),
        (1, 2) => Some([
            "a 32-bit big-endian ELF",
            "name a program or library for a 64-bit little-endian machine",
        ]),
        (2, 2) => Some([
            "a big-endian ELF",
            "name a program or library for a little-endian machine",
        ]),
        _ => None,
    }
}

/// The sections of the host ELF `file` that hold containers.
///
/// # Errors
/// Fails if `file` is not a 64-bit little-endian ELF, is damaged, or has no such section.
pub(super) fn sections(file: &[u8]) -> Result<Vec<HostSection>, BundleError> {
    if file.starts_with(ARCHIVE) {
        return Err(BundleError::NoDeviceCode([
            "a static library",
            "extract its members first (ar x)",
        ]));
    }
    if let Some(machine) = other_machine(file) {
        return Err(BundleError::NoDeviceCode(machine));
    }
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, file)?;
    if sections.is_empty() {
        return stripped(file);
    }
    let mut found = Vec::new();
    let (mut is_to_be_linked, mut is_empty) = (false, false);
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
        is_to_be_linked |= name.starts_with(TO_BE_LINKED) || name == CUDA_TO_BE_LINKED;
        if name == SPLIT_OFF {
            let reference = SplitOff::parse(section.data(endian, file)?);
            return Err(reference.map_or(
                BundleError::NoDeviceCode([
                    "it was split off into kpack archives, and the reference to them is damaged",
                    "name the archives",
                ]),
                BundleError::SplitOff,
            ));
        }
        if ![FAT_BINARY, CUDA_FAT_BINARY].contains(&name) && !name.starts_with(OFFLOADING) {
            continue;
        }
        match place(file, section)? {
            Some(place) => found.push(HostSection {
                name: Some(String::from_utf8_lossy(name).into_owned()),
                place,
                has_one: false,
            }),
            None => is_empty = true,
        }
    }
    if found.is_empty() && is_to_be_linked {
        return Err(BundleError::NoDeviceCode([
            "only device code that is not linked yet (-fgpu-rdc, nvcc -rdc=true)",
            "link it, and name the program or library",
        ]));
    }
    if found.is_empty() && is_empty {
        return Err(BundleError::NoDeviceCode([
            "its sections for device code are empty",
            WITH_CODE,
        ]));
    }
    if found.is_empty() {
        return Err(BundleError::NoDeviceCode([
            "no .hip_fatbin, .nv_fatbin or .llvm.offloading section",
            WITH_CODE,
        ]));
    }
    Ok(found)
}

/// The range of a section's contents in `file`. `None` for an empty section: its offset may be anything.
///
/// # Errors
/// Fails if `file` does not have all of the contents.
fn place(
    file: &[u8],
    section: &SectionHeader64<LittleEndian>,
) -> Result<Option<Range<usize>>, BundleError> {
    let Some((offset, size)) = section.file_range(LittleEndian) else {
        return Ok(None);
    };
    if size == 0 {
        return Ok(None);
    }
    // Fails unless the file reaches to the end of the range, so both numbers fit a usize.
    section.data(LittleEndian, file)?;
    Ok(Some(offset as usize..(offset + size) as usize))
}

/// The bundles of a file without section headers: the pages that start with a bundle's magic number.
fn stripped(file: &[u8]) -> Result<Vec<HostSection>, BundleError> {
    let pages = (0..file.len()).step_by(BUNDLE_ALIGNMENT);
    let starts: Vec<usize> = pages
        .filter(|start| starts_bundle(&file[*start..]))
        .collect();
    if starts.is_empty() {
        return Err(BundleError::NoDeviceCode([
            "no section headers and no offload bundle at the start of a page",
            WITH_CODE,
        ]));
    }
    let ends = starts.iter().skip(1).copied().chain([file.len()]);
    let place = starts.iter().zip(ends);
    Ok(place
        .map(|(start, end)| HostSection {
            name: None,
            place: *start..end,
            has_one: true,
        })
        .collect())
}
