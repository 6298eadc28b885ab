//! The parts after the names byte by byte. tools/rocov compares them with llvm-profdata.

use super::*;
use crate::format::profraw::{Parts, ValueProfileError, encode};
use crate::format::sections::PerSection;

const VERSION: u64 = 1 << 56 | 10;
/// The place of `NumVTables` in the header, before `VNamesSize`.
const VIRTUAL_TABLES_WORD: usize = 8 * 13;

/// Two functions at the addresses 0x1000 and 0x2000, with hashes of names 1 and 2. The first has a site for each
/// kind of value.
fn profile() -> Vec<u8> {
    let mut records = vec![0; 2 * 64];
    for (index, record) in records.chunks_exact_mut(64).enumerate() {
        let number = index as u64 + 1;
        LittleEndian::write_u64(record, number);
        LittleEndian::write_u64(&mut record[8..], 7);
        LittleEndian::write_u64(&mut record[16..], 8 * index as u64);
        LittleEndian::write_u64(&mut record[32..], 0x1000 * number);
        LittleEndian::write_u32(&mut record[48..], 1);
    }
    records[52..58].copy_from_slice(&[1, 0, 1, 0, 1, 0]);
    let counters: Vec<u8> = [5_u64, 6].into_iter().flat_map(u64::to_le_bytes).collect();
    let mut file = encode(&Parts {
        version: Version::from_word(VERSION).unwrap(),
        build_id: Some(&[0xab; 20]),
        sections: PerSection {
            data: &records,
            counters: &counters,
            names: b"\x03\x00a\x01b",
            ..PerSection::default()
        },
        names_address: 0,
    });
    LittleEndian::write_u64(&mut file[VIRTUAL_TABLES_WORD..], 1);
    LittleEndian::write_u64(&mut file[VIRTUAL_TABLES_WORD + 8..], 3);
    for word in [9_u64, 0x3000, 16] {
        file.extend(word.to_le_bytes());
    }
    file.extend(b"\x01\x00t\0\0\0\0\0");
    file.extend(values(&[0x2000, 0x2001], &[0x1000], &[0x300f, 0x3010]));
    file
}

/// The bytes of a value profile with a site of each kind, each value once.
fn values(calls: &[u64], sizes: &[u64], tables: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, values) in [calls, sizes, tables].into_iter().enumerate() {
        bytes.extend([kind as u32, 1].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend((values.len() as u64).to_le_bytes());
        for value in values {
            bytes.extend([*value, 1].into_iter().flat_map(u64::to_le_bytes));
        }
    }
    let header = [bytes.len() as u32 + 8, 3].into_iter();
    header.flat_map(u32::to_le_bytes).chain(bytes).collect()
}

#[test]
fn addresses_become_names() {
    let mut file = profile();
    let found = HostProfile::all(&file).unwrap();
    let [profile] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(profile.version.word(), VERSION);
    assert_eq!(profile.names, b"\x03\x00a\x01b");
    let expected = values(&[2, 0], &[0x1000], &[9, 0]);
    let (expected, _) = ValueProfile::read(&expected, 3).unwrap();
    assert_eq!(profile.functions[&(1, 7)].values, expected);
    assert_eq!(profile.functions[&(1, 7)].counters, [5]);
    assert!(profile.functions[&(2, 7)].values.is_empty());
    // Zeros and another profile may follow.
    file.extend([0; 16]);
    assert_eq!(HostProfile::all(&file).unwrap().len(), 1);
    file.extend(self::profile());
    assert_eq!(HostProfile::all(&file).unwrap().len(), 2);
}

#[test]
fn damaged_parts_are_refused() {
    let file = profile();
    let whole = RawProfile::parse(&file).unwrap();
    let end = whole.sections.names.end + 3;
    for len in end..file.len() {
        let error = HostProfile::all(&file[..len]).unwrap_err();
        let expected = match len - end {
            0..24 => "virtual tables",
            24..27 => "names of virtual tables",
            _ => "its values are cut short",
        };
        assert!(error.to_string().contains(expected), "{len}: {error}");
    }
    let mut damaged = file.clone();
    LittleEndian::write_u64(&mut damaged[VIRTUAL_TABLES_WORD..], u64::MAX);
    let error = HostProfile::all(&damaged).unwrap_err();
    assert!(matches!(error, ProfileError::Truncated { .. }), "{error}");
    let mut damaged = file.clone();
    damaged[end + 32] += 1;
    let (index, reason) = (0, ValueProfileError::Size { found: 137 });
    let error = HostProfile::all(&damaged).unwrap_err();
    assert_eq!(error, ProfileError::Values { index, reason });
    let mut followed = file;
    followed.extend(b"text");
    let error = HostProfile::all(&followed).unwrap_err();
    assert!(matches!(error, ProfileError::Truncated { .. }), "{error}");
}
