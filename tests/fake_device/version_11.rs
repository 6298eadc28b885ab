//! Raw version 11 (LLVM 23) without that compiler. The tests build device memory and parse the file
//! word by word, by the field list of LLVM 23's `InstrProfData.inc`. They share no layout code with
//! the library.

use rocov::device::DeviceRange;
use rocov::format::bounds_table::BoundsTable;
use rocov::format::profraw::{Parts, Version, encode};
use rocov::format::sections::PerSection;
use rocov::validate::{SectionRanges, check_records};

const WORD: u64 = 1 << 56 | 11;
const BASE: u64 = 0x7f12_3000_0000;
/// Sections of a device: two records, 2 + 1 counters, equally many uniform counters, 3 bitmap
/// bytes.
const DATA: u64 = BASE + 0x4000;
const COUNTERS: u64 = BASE + 0x3000;
const UNIFORM: u64 = BASE + 0x5000;
const BITMAP: u64 = BASE + 0x6000;
const NAMES: u64 = BASE + 0x1000;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().copied().flat_map(u64::to_le_bytes).collect()
}

/// A record in the compiler's layout: 72 bytes.
fn record(index: u64, counters: (u64, u32), uniform: u64, bitmap: (u64, u32)) -> Vec<u8> {
    let address = DATA + 72 * index;
    let mut bytes = words(&[
        0xaaaa_0000 + index,              // NameRef
        0xbbbb_0000 + index,              // FuncHash
        counters.0.wrapping_sub(address), // CounterPtr
        uniform.wrapping_sub(address),    // UniformCounterPtr
        bitmap.0.wrapping_sub(address),   // BitmapPtr
        0x7f12_3000_2000,                 // FunctionPointer
        0x7f12_3000_2100,                 // Values
    ]);
    bytes.extend(counters.1.to_le_bytes()); // NumCounters
    for sites in [1_u16, 2, 3, 64] {
        bytes.extend(sites.to_le_bytes()); // NumValueSites[3], OffloadDeviceWaveSize
    }
    bytes.extend(bitmap.1.to_le_bytes()); // NumBitmapBytes
    assert_eq!(bytes.len(), 72);
    bytes
}

fn word_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

#[test]
fn a_device_of_version_11_becomes_a_file_of_version_11() {
    let names = b"names".as_slice();
    let table = words(&[
        NAMES,
        NAMES + names.len() as u64,
        COUNTERS,
        COUNTERS + 24,
        DATA,
        DATA + 144,
        UNIFORM,
        UNIFORM + 24,
        BASE + 0x100,
    ]);
    let mut table = BoundsTable::decode(&table).unwrap();
    assert_eq!(table.version, BASE + 0x100);
    table.bounds.bitmap = (BITMAP, BITMAP + 3);
    let version = Version::from_word(WORD).unwrap();
    let segment = DeviceRange {
        start: BASE,
        len: 0x1_0000,
    };
    let ranges = SectionRanges::check(&table.bounds, segment, Some(&version)).unwrap();
    assert_eq!(
        ranges.uniform,
        DeviceRange {
            start: UNIFORM,
            len: 24
        }
    );

    let records = [
        record(0, (COUNTERS, 2), UNIFORM + 8, (BITMAP + 1, 2)),
        record(1, (COUNTERS + 16, 1), UNIFORM, (BITMAP, 1)),
    ]
    .concat();
    let checked = check_records(&records, &words(&[10, 11, 12]), &ranges, &version);
    assert_eq!(checked.defects, []);
    let file = encode(&Parts {
        version,
        build_id: Some(&[1, 2, 3, 4, 5]),
        sections: PerSection {
            data: &checked.bytes,
            counters: &words(&[10, 11, 12]),
            bitmap: &[7, 8, 9],
            uniform: &words(&[20, 21, 22]),
            names,
        },
        names_address: 0x1000,
    });

    let header = [
        ("Magic", 0xff6c_7072_6f66_7281),
        ("Version", WORD),
        ("BinaryIdsSize", 16),
        ("NumData", 2),
        ("PaddingBytesBeforeCounters", 0),
        ("NumCounters", 3),
        ("PaddingBytesAfterCounters", 0),
        ("NumBitmapBytes", 3),
        ("PaddingBytesAfterBitmapBytes", 5),
        ("NumUniformCounters", 3),
        ("PaddingBytesAfterUniformCounters", 0),
        ("UniformCountersDelta", 144 + 24 + 8),
        ("NamesSize", 5),
        ("CountersDelta", 144),
        ("BitmapDelta", 144 + 24),
        ("NamesDelta", 0x1000),
        ("NumVTables", 0),
        ("VNamesSize", 0),
        ("ValueKindLast", 2),
    ];
    for (index, (field, value)) in header.into_iter().enumerate() {
        assert_eq!(word_at(&file, 8 * index), value, "{field}");
    }
    let body = 8 * header.len();
    assert_eq!(
        file[body..body + 16],
        [5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0]
    );

    let data = body + 16;
    let (counters, bitmap) = (data + 144, data + 144 + 24);
    let (uniform, names_at) = (bitmap + 8, bitmap + 8 + 24);
    // The targets of each record's pointers in the file.
    for (index, (counter, wave, bits)) in [(10, 21, 8), (12, 20, 7)].into_iter().enumerate() {
        let at = data + 72 * index;
        let follow = |field: usize| at.wrapping_add(word_at(&file, at + field) as usize);
        assert_eq!(word_at(&file, follow(16)), counter, "CounterPtr of {index}");
        assert_eq!(
            word_at(&file, follow(24)),
            wave,
            "UniformCounterPtr of {index}"
        );
        assert_eq!(file[follow(32)], bits, "BitmapPtr of {index}");
        assert_eq!(word_at(&file, at), 0xaaaa_0000 + index as u64, "NameRef");
        assert_eq!(
            word_at(&file, at + 8),
            0xbbbb_0000 + index as u64,
            "FuncHash"
        );
        assert_eq!(
            file[at + 40..at + 56],
            [0; 16],
            "FunctionPointer and Values"
        );
        assert_eq!(file[at + 60..at + 66], [0; 6], "NumValueSites");
        assert_eq!(file[at + 66..at + 68], [64, 0], "OffloadDeviceWaveSize");
    }
    assert_eq!(file[counters..bitmap], words(&[10, 11, 12]));
    assert_eq!(file[bitmap..uniform], [7, 8, 9, 0, 0, 0, 0, 0]);
    assert_eq!(file[uniform..names_at], words(&[20, 21, 22]));
    assert_eq!(file[names_at..], *b"names\0\0\0");
}

#[test]
fn uniform_counters_outside_their_section_cost_the_record() {
    let version = Version::from_word(WORD).unwrap();
    let segment = DeviceRange {
        start: BASE,
        len: 0x1_0000,
    };
    let bounds = rocov::format::bounds_table::Bounds {
        names: (NAMES, NAMES + 5),
        counters: (COUNTERS, COUNTERS + 24),
        data: (DATA, DATA + 144),
        bitmap: (BITMAP, BITMAP + 3),
        uniform: (UNIFORM, UNIFORM + 24),
    };
    let ranges = SectionRanges::check(&bounds, segment, Some(&version)).unwrap();
    let records = [
        record(0, (COUNTERS, 2), UNIFORM + 16, (BITMAP, 1)),
        record(1, (COUNTERS + 16, 1), UNIFORM, (BITMAP + 2, 2)),
    ]
    .concat();
    let checked = check_records(&records, &[0; 24], &ranges, &version);
    let lines: Vec<String> = checked.defects.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "record 0 (name hash 0x00000000aaaa0000) claims 16 bytes at byte 16 of a uniform \
             counters section of 24 bytes; its counts are left out",
            "record 1 (name hash 0x00000000aaaa0001) claims 2 bytes at byte 2 of a bitmap \
             section of 3 bytes; its counts are left out",
        ]
    );
    assert!(checked.bytes.is_empty());
}
