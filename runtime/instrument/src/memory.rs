//! The code that a program loads, in its memory or in a file.
#![expect(unsafe_code, reason = "reads the memory of the program")]

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rocov::device::cuda::exchange::ExchangeRequest;
use rocov::format::bundle::{FAT_BINARY_HEADER, fat_binary_size};
use rocov::format::codeobject::cuda::{ELF_HEADER, file_size};
use rocov::store::read_input;

/// `FATBINC_MAGIC` of the toolkit's `fatbinary_section.h`: the wrapper to which the CUDA runtime points.
const WRAPPER: u32 = 0x4662_43b1;
/// `FATBINC_LINK_VERSION`: the wrapper of code that nvlink has linked (`-rdc=true`). It has the fat binaries of all units.
const LINKED: u32 = 2;
/// The most units of a program that nvlink has linked.
const MAX_UNITS: usize = 1 << 16;

/// The code of a request.
#[derive(Debug)]
pub(crate) enum Code<'data> {
    /// A fat binary.
    FatBinary(Cow<'data, [u8]>),
    /// A fat binary that nvlink has linked, with those of its units.
    Linked(Vec<&'data [u8]>),
    /// A cubin.
    Elf(Cow<'data, [u8]>),
    /// PTX.
    Text(Cow<'data, [u8]>),
    /// Neither of these.
    Unknown([u8; 4]),
    /// A file that cannot be read.
    Unreadable(PathBuf, io::ErrorKind),
}

/// `__fatBinC_Wrapper_t` of the toolkit's `fatbinary_section.h`.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    /// For linked code, the fat binaries of its units, with null at the end.
    units: *const *const u8,
}

/// The code of a request.
///
/// # Safety
/// The request is for code that a program loads: the driver reads what this function does.
pub(crate) unsafe fn code(request: &ExchangeRequest) -> Code<'static> {
    if request.is_path {
        // SAFETY: the driver takes a path there.
        let path = unsafe { CStr::from_ptr(request.code.cast::<c_char>()) };
        return file_code(Path::new(OsStr::from_bytes(path.to_bytes())));
    }
    let start = request.code.cast::<u8>();
    // SAFETY: all forms of code have at least 4 bytes.
    let magic: [u8; 4] = unsafe { start.cast::<[u8; 4]>().read_unaligned() };
    if u32::from_le_bytes(magic) == WRAPPER {
        // SAFETY: the magic number shows that a wrapper is there, whose fields the driver follows.
        return unsafe { wrapped_code(&*start.cast::<Wrapper>()) };
    }
    if magic == *b"\x7fELF" {
        // SAFETY: the driver reads the header.
        let header = unsafe { &*start.cast::<[u8; ELF_HEADER]>() };
        // SAFETY: the driver reads the ELF to the last of its tables.
        let elf = unsafe { std::slice::from_raw_parts(start, readable(start, file_size(header))) };
        return Code::Elf(elf.into());
    }
    // SAFETY: the driver reads the header of a fat binary.
    if let Some(fat_binary) = unsafe { fat_binary(start, magic) } {
        return Code::FatBinary(fat_binary.into());
    }
    if !magic.iter().all(|byte| is_text(*byte)) {
        return Code::Unknown(magic);
    }
    // SAFETY: PTX ends with a zero.
    let text = unsafe { CStr::from_ptr(start.cast::<c_char>()) };
    Code::Text(text.to_bytes().into())
}

/// The options of a request: pairs of `CUjit_option` and its value.
///
/// # Safety
/// The arrays of the request have as many elements as it says.
pub(crate) unsafe fn options(request: &ExchangeRequest) -> Vec<(c_int, *mut c_void)> {
    if request.names.is_null() || request.values.is_null() {
        return Vec::new();
    }
    let count = request.options as usize;
    // SAFETY: as the caller promises.
    let names = unsafe { std::slice::from_raw_parts(request.names, count) };
    // SAFETY: as the caller promises.
    let values = unsafe { std::slice::from_raw_parts(request.values, count) };
    names.iter().copied().zip(values.iter().copied()).collect()
}

/// # Safety
/// The fields of the wrapper are those of code that a program loads.
unsafe fn wrapped_code(wrapper: &Wrapper) -> Code<'static> {
    // SAFETY: the driver reads the header at this address.
    let of =
        |start: *const u8| unsafe { fat_binary(start, start.cast::<[u8; 4]>().read_unaligned()) };
    if wrapper.version == LINKED && !wrapper.units.is_null() {
        let mut units = Vec::new();
        for index in 0..MAX_UNITS {
            // SAFETY: the list ends with null, where this loop ends.
            let unit = unsafe { *wrapper.units.add(index) };
            if unit.is_null() {
                break;
            }
            units.extend(of(unit));
        }
        return Code::Linked(units);
    }
    match of(wrapper.data) {
        Some(fat_binary) => Code::FatBinary(fat_binary.into()),
        None => Code::Unknown(WRAPPER.to_le_bytes()),
    }
}

/// The fat binary at `start`, which begins with `magic`.
///
/// # Safety
/// `start` is the address of code that a program loads.
unsafe fn fat_binary(start: *const u8, magic: [u8; 4]) -> Option<&'static [u8]> {
    const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
    if magic != MAGIC {
        return None;
    }
    // SAFETY: a fat binary starts with a header of `FAT_BINARY_HEADER` bytes.
    let header = unsafe { &*start.cast::<[u8; FAT_BINARY_HEADER]>() };
    let size = usize::try_from(fat_binary_size(header)?).ok()?;
    // SAFETY: the memory can be read.
    Some(unsafe { std::slice::from_raw_parts(start, readable(start, size)) })
}

/// The number of bytes from `start` that can be read, `wanted` at most: a damaged header may state any size.
fn readable(start: *const u8, wanted: usize) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut end = start.addr();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else {
            continue;
        };
        let bounds = range.split_once('-').and_then(|(from, to)| {
            let number = |digits| usize::from_str_radix(digits, 16).ok();
            Some((number(from)?, number(to)?))
        });
        let Some((from, to)) = bounds else { continue };
        // They are in order.
        if from <= end && end < to && rights.starts_with('r') {
            end = to;
        }
    }
    wanted.min(end - start.addr())
}

/// The limit in bytes for a file of code.
const MAX_FILE: u64 = 1 << 30;

/// The code in a file.
fn file_code(path: &Path) -> Code<'static> {
    // The driver reads the file, too: what a pipe has can be read once only.
    let bytes = match read_input(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) => return Code::Unreadable(path.to_owned(), error.kind()),
    };
    match bytes.get(..4) {
        Some(b"\x7fELF") => Code::Elf(bytes.into()),
        Some([0x50, 0xed, 0x55, 0xba]) => Code::FatBinary(bytes.into()),
        Some(start) if start.iter().all(|byte| is_text(*byte)) => {
            let end = bytes.iter().position(|byte| *byte == 0);
            Code::Text(bytes[..end.unwrap_or(bytes.len())].to_vec().into())
        }
        start => {
            let mut magic = [0; 4];
            let start = start.unwrap_or(&bytes);
            magic[..start.len()].copy_from_slice(start);
            Code::Unknown(magic)
        }
    }
}

/// Returns whether a text may have the byte near its start.
fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(code: &[u8]) -> ExchangeRequest {
        ExchangeRequest {
            code: code.as_ptr().cast(),
            is_path: false,
            is_for_all: true,
            is_to_be_linked: false,
            is_for_reached: false,
            options: 0,
            names: std::ptr::null(),
            values: std::ptr::null(),
        }
    }

    #[test]
    fn code_is_known_by_its_first_bytes() {
        let fat_binary = [
            [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0].as_slice(),
            &8_u64.to_le_bytes(),
            &[7; 8],
            b"behind",
        ]
        .concat();
        // SAFETY: the bytes are whole.
        match unsafe { code(&request(&fat_binary)) } {
            Code::FatBinary(found) => assert_eq!(*found, fat_binary[..24]),
            other => panic!("{other:?}"),
        }
        // SAFETY: the text ends with a zero.
        match unsafe { code(&request(b"// a\n.version 8.0\n\0behind")) } {
            Code::Text(found) => assert_eq!(*found, *b"// a\n.version 8.0\n"),
            other => panic!("{other:?}"),
        }
        // SAFETY: 4 bytes are there.
        let found = unsafe { code(&request(&[1, 2, 3, 4])) };
        assert!(matches!(found, Code::Unknown([1, 2, 3, 4])), "{found:?}");
    }

    #[test]
    fn linked_code_has_the_fat_binaries_of_its_units() {
        let unit = |byte: u8| {
            let start = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
            [start.as_slice(), &8_u64.to_le_bytes(), &[byte; 8]].concat()
        };
        let units = [unit(1), unit(2)];
        let list = [units[0].as_ptr(), units[1].as_ptr(), std::ptr::null()];
        let wrapper = Wrapper {
            magic: WRAPPER,
            version: LINKED,
            data: units[0].as_ptr(),
            units: list.as_ptr(),
        };
        let mut asked = request(&[]);
        asked.code = (&raw const wrapper).cast();
        // SAFETY: the wrapper is whole.
        match unsafe { code(&asked) } {
            Code::Linked(found) => assert_eq!(found, units),
            other => panic!("{other:?}"),
        }
    }
}
