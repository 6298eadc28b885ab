//! Files byte by byte, after `InstrProfData.inc` and `InstrProfilingWriter.c` of compiler-rt.

use super::*;
use crate::format::profraw::Word;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().copied().flat_map(u64::to_le_bytes).collect()
}

/// Two records of `words_each` words. From the third word on they have offsets in sections.
fn records(words_each: usize, first: &[u64], second: &[u64]) -> Vec<u8> {
    let record = |places: &[u64]| {
        let mut record = vec![0xaa, 0xbb];
        record.extend(places);
        record.resize(words_each, 0);
        words(&record)
    };
    [record(first), record(second)].concat()
}

#[test]
fn a_file_with_all_parts() {
    let counters = words(&[5, 6, 7]);
    let uniform = words(&[1, 2, 3]);
    let file = encode(&Parts {
        version: Version::from_word(11).unwrap(),
        build_id: Some(&[1, 2, 3]),
        sections: PerSection {
            data: &records(9, &[0, 0, 0], &[16, 16, 2]),
            counters: &counters,
            bitmap: &[9; 5],
            uniform: &uniform,
            names: b"name",
        },
        names_address: 0x77,
    });
    let expected = [
        words(&[
            0xff6c_7072_6f66_7281,
            11,  // Version
            16,  // BinaryIdsSize
            2,   // NumData
            0,   // PaddingBytesBeforeCounters
            3,   // NumCounters
            0,   // PaddingBytesAfterCounters
            5,   // NumBitmapBytes
            3,   // PaddingBytesAfterBitmapBytes
            3,   // NumUniformCounters
            0,   // PaddingBytesAfterUniformCounters
            176, // UniformCountersDelta: 2 * 72 + 24 + 8
            4,   // NamesSize
            144, // CountersDelta
            168, // BitmapDelta
            0x77,
            0, // NumVTables
            0, // VNamesSize
            2, // ValueKindLast
        ]),
        words(&[3]),
        vec![1, 2, 3, 0, 0, 0, 0, 0],
        // Pointers are relative to their record.
        records(
            9,
            &[144, 176, 168],
            &[16 + 144 - 72, 16 + 176 - 72, 2 + 168 - 72],
        ),
        counters,
        vec![9, 9, 9, 9, 9, 0, 0, 0],
        uniform,
        b"name\0\0\0\0".to_vec(),
    ];
    assert_eq!(file, expected.concat());
}

#[test]
fn a_file_of_single_bytes_and_without_the_rest() {
    let version = Version::from_word(1 << 60 | 10).unwrap();
    let file = encode(&Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &records(8, &[0, 0x55], &[2, 0x55]),
            counters: &[0xff, 0, 0xff],
            bitmap: &[],
            uniform: &[],
            names: b"12345678",
        },
        names_address: 0,
    });
    let header = [
        0xff6c_7072_6f66_7281,
        1 << 60 | 10,
        0,
        2,
        0,
        3,
        5, // PaddingBytesAfterCounters
        0,
        0,
        8,
        128,
        136, // The offset of the absent bitmaps.
        0,
        0,
        0,
        2,
    ];
    let expected = [
        words(&header),
        // There are no bitmaps, so the pointer to them does not change.
        records(8, &[128, 0x55], &[2 + 128 - 64, 0x55]),
        vec![0xff, 0, 0xff, 0, 0, 0, 0, 0],
        b"12345678".to_vec(),
    ];
    assert_eq!(file, expected.concat());
}

#[test]
fn headers_are_read_as_they_are_written() {
    use crate::format::profraw::{Header, ProfileError, RawProfile};
    let version = Version::from_word(8).unwrap();
    let file = encode(&Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &[0; 48],
            counters: &[1; 16],
            bitmap: &[],
            uniform: &[],
            names: b"123",
        },
        names_address: 5,
    });
    assert!(RawProfile::has_magic(&file) && !RawProfile::has_magic(&file[1..]));
    let profile = RawProfile::parse(&file).unwrap();
    assert_eq!(profile.header.version(), &version);
    assert_eq!(profile.header.word(Word::NumCounters), 2);
    assert_eq!(profile.header.word(Word::NamesDelta), 5);
    // Version 8 has no such word.
    assert_eq!(profile.header.word(Word::NumBitmapBytes), 0);
    let RawProfile { sections, .. } = profile;
    let parts = [sections.data, sections.counters, sections.names];
    assert_eq!(parts, [88..136, 136..152, 152..155]);
    // The padding of names belongs to the file.
    for (len, part, needed) in [
        (159, "padding", 160),
        (154, "names", 155),
        (151, "counters", 152),
        (135, "data", 136),
        (87, "the header", 88),
        (15, "the header", 16),
    ] {
        let error = RawProfile::parse(&file[..len]).unwrap_err();
        let found = len as u64;
        let expected = ProfileError::Truncated {
            part,
            needed,
            found,
        };
        assert_eq!(error, expected);
    }
    let error = Header::version_word(&[0; 16]).unwrap_err();
    assert!(matches!(error, ProfileError::WrongMagic { found: 0, .. }));
    assert_eq!(Header::version_word(&file), Ok(8));
}
