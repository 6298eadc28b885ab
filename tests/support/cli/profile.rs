//! Raw profiles put together by hand from the format's description, as a source independent of
//! the library's encoder. llvm-profdata is the judge of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol};

/// The identity that librocov gives a code object without a build id.
pub fn identity(elf: &Path) -> String {
    let identity =
        rocov::format::codeobject::Identity::from_image(&fs::read(elf).unwrap()).unwrap();
    identity.as_str().to_owned()
}

/// Flag of one-byte counters.
const SINGLE_BYTE: u64 = 1 << 60;

/// Writes the profile of `elf` with every counter at `count` in the raw version that the low bits
/// of `version_word` say: 8 as it is, all others as version 10.
pub fn write(elf: &Path, count: u64, version_word: u64, path: &Path) {
    let fill = |section: &mut [u8]| {
        for counter in section.chunks_exact_mut(8) {
            counter.copy_from_slice(&count.to_le_bytes());
        }
    };
    write_filled(elf, version_word, path, fill);
}

/// Makes a profile with the count of each counter of a function: `count` takes its name, as it is
/// mangled, and the counter's number in it.
pub fn write_counts(elf: &Path, count: &dyn Fn(&str, u64) -> u64, version_word: u64, path: &Path) {
    let bytes = fs::read(elf).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name("__llvm_prf_cnts").unwrap();
    let counts = (0..section.size() / 8).flat_map(|index| {
        let address = section.address() + 8 * index;
        let mut symbols = file.dynamic_symbols().filter(|symbol| {
            let start = symbol.address();
            (start..start + symbol.size()).contains(&address)
        });
        let (name, number) = symbols
            .find_map(|symbol| {
                let name = symbol.name().ok()?.strip_prefix("__profc_")?;
                Some((name, (address - symbol.address()) / 8))
            })
            .unwrap();
        count(name, number).to_le_bytes()
    });
    let counts: Vec<_> = counts.collect();
    // The bitmap, which comes after the counters, stays as it is.
    let mut is_counters = true;
    write_filled(elf, version_word, path, |section| {
        if is_counters {
            section.copy_from_slice(&counts);
        }
        is_counters = false;
    });
}

/// Makes a profile with the counters and the MC/DC bitmap that `fill` sets.
pub fn write_filled(elf: &Path, version_word: u64, path: &Path, mut fill: impl FnMut(&mut [u8])) {
    let bytes = fs::read(elf).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = |name: &str| file.section_by_name(name).unwrap();
    let data = section("__llvm_prf_data");
    let counters = section("__llvm_prf_cnts");
    let bitmap = file.section_by_name("__llvm_prf_bits");
    let names = section("__llvm_prf_names").data().unwrap();
    let records = data.data().unwrap();
    let delta = |address: u64| address.wrapping_sub(data.address());
    let counters_delta = delta(counters.address());
    let is_8 = version_word & 0xffff_ffff == 8;
    let record_bytes = if is_8 { 48 } else { 64 };
    let counter_bytes = if version_word & SINGLE_BYTE != 0 {
        1
    } else {
        8
    };
    let number = counters.size() / counter_bytes;
    let padding = |size: u64| size.next_multiple_of(8) - size;

    let mut words = vec![
        u64::from_be_bytes(*b"\xfflprofr\x81"),
        version_word,
        0,                                     // binary ids
        (records.len() / record_bytes) as u64, // data records
        0,                                     // padding before counters
        number,                                // counters
        padding(counters.size()),              // padding after counters
    ];
    if is_8 {
        // Names, counters delta, names delta, last value kind.
        words.extend([names.len() as u64, counters_delta, 0, 1]);
    } else {
        // Bitmap bytes and padding; names; deltas of counters, bitmap and names; virtual tables
        // and their names; last value kind.
        let (bytes, address) = bitmap.map_or((0, data.address()), |section| {
            (section.size(), section.address())
        });
        words.extend([bytes, padding(bytes), names.len() as u64]);
        words.extend([counters_delta, delta(address), 0, 0, 0, 2]);
    }
    let mut profile: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let records_start = profile.len();
    profile.extend(records);
    if is_8 {
        relocate(&mut profile[records_start..], counters_delta);
    }
    let bitmap_bytes = words[7] * u64::from(!is_8);
    for size in [counters.size(), bitmap_bytes] {
        let start = profile.len();
        profile.resize(start + size as usize, 0);
        fill(&mut profile[start..]);
        profile.resize(profile.len() + padding(size) as usize, 0);
    }
    profile.extend(names);
    profile.resize(profile.len().next_multiple_of(8), 0);
    fs::write(path, profile).unwrap();
}

/// Fills in CounterPtr, the third word of a record of 48 bytes. clang 15 leaves it to a relocation
/// that the loader applies. The counters lie in the order of the records; NumCounters is a u32 at
/// byte 40.
fn relocate(records: &mut [u8], counters_delta: u64) {
    let mut pointer = counters_delta;
    for record in records.chunks_exact_mut(48) {
        record[16..24].copy_from_slice(&pointer.to_le_bytes());
        let counters = u32::from_le_bytes(record[40..44].try_into().unwrap());
        // From the next record to its counters.
        pointer = pointer
            .wrapping_add(8 * u64::from(counters))
            .wrapping_sub(48);
    }
}

/// The merged profile by llvm-profdata of all raw profiles of an arch that are directly in `directory`.
pub fn indexed(directory: &Path, arch: &str) -> PathBuf {
    let entries = std::fs::read_dir(directory).unwrap();
    let of_arch = entries.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&format!("{arch}.")) && name.ends_with(".profraw")
    });
    let merged = directory.with_extension(format!("{arch}.profdata"));
    let mut merge = Command::new("llvm-profdata-22");
    merge.arg("merge").args(of_arch);
    super::run(merge.arg("-o").arg(&merged));
    merged
}
