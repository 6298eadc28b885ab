//! Raw profiles put together by hand from the format's description, as a source independent of
//! the library's encoder. llvm-profdata is the judge of both.

use object::{Object, ObjectSection};
use std::fs;
use std::path::Path;

/// Bytes of a data record in raw version 10.
const RECORD_BYTES: usize = 64;

/// The identity that librocov gives a code object without a build id.
pub(crate) fn identity(elf: &Path) -> String {
    let identity = rocov::codeobject::Identity::of(&fs::read(elf).unwrap()).unwrap();
    identity.as_str().to_owned()
}

/// Writes the profile of `elf` with every counter at `count`, in raw version 10, with
/// `version_word` in its header.
pub(crate) fn write(elf: &Path, count: u64, version_word: u64, path: &Path) {
    let bytes = fs::read(elf).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = |name: &str| file.section_by_name(name).unwrap();
    let data = section("__llvm_prf_data");
    let counters = section("__llvm_prf_cnts");
    let names = section("__llvm_prf_names").data().unwrap();
    let records = data.data().unwrap();
    let number = counters.size() / 8;

    let words = [
        u64::from_be_bytes(*b"\xfflprofr\x81"),
        version_word,
        0,                                     // binary ids
        (records.len() / RECORD_BYTES) as u64, // data records
        0,                                     // padding before counters
        number,                                // counters
        0,                                     // padding after counters
        0,                                     // bitmap bytes
        0,                                     // padding after the bitmap
        names.len() as u64,
        counters.address().wrapping_sub(data.address()),
        0, // bitmap delta
        0, // names delta
        0, // virtual tables
        0, // their names
        2, // last value kind
    ];
    let mut profile: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    profile.extend(records);
    for _ in 0..number {
        profile.extend(count.to_le_bytes());
    }
    profile.extend(names);
    profile.resize(profile.len().next_multiple_of(8), 0);
    fs::write(path, profile).unwrap();
}
