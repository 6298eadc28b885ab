//! Records that claim their own bytes, and records that claim others, to the byte.

use super::*;
use crate::format::sections::PerSection;

/// The addresses of the sections on the device.
const DATA: u64 = 0x3000;
const COUNTERS: u64 = 0x2000;
const BITMAP: u64 = 0x4000;
const UNIFORM: u64 = 0x5000;
/// Their sizes in bytes. The size of the records varies.
const COUNTERS_LEN: u64 = 48;
const BITMAP_LEN: u64 = 5;

fn ranges(records: usize, version: &Version, uniform_len: u64) -> SectionRanges {
    let range = |start, len| DeviceRange { start, len };
    let bytes = version.layout().record.bytes;
    SectionRanges(PerSection {
        names: range(0x1000, 3),
        counters: range(COUNTERS, COUNTERS_LEN),
        data: range(DATA, records as u64 * bytes),
        bitmap: range(BITMAP, BITMAP_LEN),
        uniform: range(UNIFORM, uniform_len),
    })
}

/// The claims of a record: offsets in the sections, and the numbers of counters and of bitmap bytes.
#[derive(Clone, Copy, Default)]
struct Wanted {
    counters: i64,
    number: u32,
    bitmap: i64,
    bitmap_len: u32,
    uniform: i64,
}

/// Records as on the device. All other bytes are 0xee.
fn records(wanted: &[Wanted], version: &Version) -> Vec<u8> {
    let layout = version.layout().record;
    let mut all = Vec::new();
    for (index, wanted) in wanted.iter().enumerate() {
        let address = DATA + index as u64 * layout.bytes;
        let relative =
            |section: u64, place: i64| section.wrapping_add_signed(place).wrapping_sub(address);
        let mut record = vec![0xee; layout.bytes as usize];
        LittleEndian::write_u64(&mut record, 0xabc0 + index as u64);
        let pointers = [
            (
                Some(layout.counter_ptr),
                relative(COUNTERS, wanted.counters),
            ),
            (layout.bitmap_ptr, relative(BITMAP, wanted.bitmap)),
            (layout.uniform_ptr, relative(UNIFORM, wanted.uniform)),
        ];
        for (field, pointer) in pointers {
            if let Some(at) = field {
                LittleEndian::write_u64(&mut record[at..], pointer);
            }
        }
        LittleEndian::write_u32(&mut record[layout.num_counters..], wanted.number);
        if let Some(at) = layout.num_bitmap_bytes {
            LittleEndian::write_u32(&mut record[at..], wanted.bitmap_len);
        }
        all.extend(record);
    }
    all
}

fn checked(wanted: &[Wanted], word: u64, uniform_len: u64) -> CheckedRecords {
    let version = Version::from_word(word).unwrap();
    let ranges = ranges(wanted.len(), &version, uniform_len);
    let counters = [0; COUNTERS_LEN as usize];
    check_records(&records(wanted, &version), &counters, &ranges, &version)
}

fn kinds(checked: &CheckedRecords) -> Vec<(usize, DefectKind)> {
    let defects = checked.defects.iter();
    defects.map(|defect| (defect.index, defect.kind)).collect()
}

fn at(counters: i64, number: u32) -> Wanted {
    Wanted {
        counters,
        number,
        ..Wanted::default()
    }
}

#[test]
fn a_good_record_has_places_for_pointers_and_nothing_of_the_device() {
    for word in [8, 9, 10, 11] {
        let wanted = [
            at(0, 2),
            Wanted {
                bitmap: 3,
                bitmap_len: 2,
                uniform: 16,
                ..at(16, 4)
            },
        ];
        let found = checked(&wanted, word, COUNTERS_LEN);
        assert_eq!(found.defects, [], "version {word}");
        let layout = Version::from_word(word).unwrap().layout().record;
        let second = &found.bytes[layout.bytes as usize..];
        assert_eq!(second.len(), layout.bytes as usize);
        let mut expected = vec![0xee; layout.bytes as usize];
        let words = [
            (Some(0), 0xabc1),
            (Some(layout.counter_ptr), 16),
            (layout.bitmap_ptr, 3),
            (layout.uniform_ptr, 16),
            (Some(layout.function_pointer), 0),
            (Some(layout.function_pointer + 8), 0),
        ];
        for (field, word) in words {
            if let Some(at) = field {
                LittleEndian::write_u64(&mut expected[at..], word);
            }
        }
        LittleEndian::write_u32(&mut expected[layout.num_counters..], 4);
        for kind in 0..layout.value_kinds {
            LittleEndian::write_u16(&mut expected[layout.value_sites + 2 * kind..], 0);
        }
        if let Some(at) = layout.num_bitmap_bytes {
            LittleEndian::write_u32(&mut expected[at..], 2);
        }
        assert_eq!(second, expected, "version {word}");
    }
}

#[test]
fn claims_end_where_sections_do() {
    let outside = |section, start, len, section_len| DefectKind::Outside {
        section,
        start,
        len,
        section_len,
    };
    let bitmap = |place, len| Wanted {
        bitmap: place,
        bitmap_len: len,
        ..at(0, 1)
    };
    let uniform = |place| Wanted {
        uniform: place,
        ..at(0, 2)
    };
    for (wanted, defect) in [
        (at(40, 1), None),
        (at(0, 6), None),
        (at(0, 0), Some(DefectKind::Empty)),
        (at(41, 1), Some(outside(Section::Counters, 41, 8, 48))),
        (at(0, 7), Some(outside(Section::Counters, 0, 56, 48))),
        (at(-8, 1), Some(outside(Section::Counters, -8, 8, 48))),
        (bitmap(0, 5), None),
        (bitmap(5, 1), Some(outside(Section::Bitmap, 5, 1, 5))),
        // A record without bitmap bytes may point anywhere.
        (bitmap(99, 0), None),
        (uniform(32), None),
        (uniform(33), Some(outside(Section::Uniform, 33, 16, 48))),
    ] {
        let found = checked(&[wanted], 11, 48);
        let expected: Vec<_> = defect.map(|kind| (0, kind)).into_iter().collect();
        assert_eq!(kinds(&found), expected);
        assert_eq!(found.bytes.is_empty(), defect.is_some());
    }
    // If waves are not counted, the claim has no effect.
    assert_eq!(checked(&[uniform(33)], 11, 0).defects, []);
    // Counters of single bytes.
    let single_byte = 1 << 60 | 11;
    assert_eq!(checked(&[at(0, 48)], single_byte, 0).defects, []);
    assert_eq!(checked(&[at(0, 49)], single_byte, 0).defects.len(), 1);
}

#[test]
fn all_records_have_uniform_counters_or_none() {
    let version = Version::from_word(11).unwrap();
    let layout = version.layout().record;
    let wanted = [
        at(0, 2),
        Wanted {
            uniform: 16,
            ..at(16, 2)
        },
        at(0, 0),
    ];
    let mut records = records(&wanted, &version);
    let ranges = ranges(wanted.len(), &version, COUNTERS_LEN);
    let places = |records: &[u8]| {
        let found = check_records(records, &[0; COUNTERS_LEN as usize], &ranges, &version);
        assert_eq!(kinds(&found), [(2, DefectKind::Empty)]);
        let records = found.bytes.chunks_exact(layout.bytes as usize);
        let place = |record: &[u8]| LittleEndian::read_u64(&record[layout.uniform_ptr.unwrap()..]);
        (found.have_uniform, records.map(place).collect::<Vec<_>>())
    };
    let mut drop_uniform = |record: usize| {
        let field = record * layout.bytes as usize + layout.uniform_ptr.unwrap();
        records[field..field + 8].fill(0);
        places(&records)
    };
    // The last record has no counters at all.
    assert_eq!(drop_uniform(2), (true, vec![0, 16]));
    assert_eq!(drop_uniform(0), (false, vec![0, 0]));
}

#[test]
fn counters_are_of_one_record() {
    let shared = |start, with| DefectKind::Shared { start, with };
    // One after the other, in any order.
    assert_eq!(
        checked(&[at(16, 1), at(0, 2), at(24, 3)], 10, 0).defects,
        []
    );
    // The record that starts first keeps its counters, and so does the first free one after it.
    let found = checked(&[at(16, 2), at(0, 3), at(24, 1)], 10, 0);
    assert_eq!(kinds(&found), [(0, shared(16, 1))]);
    assert_eq!(found.bytes.len(), 2 * 64);
    let found = checked(&[at(0, 2), at(8, 2), at(16, 2)], 10, 0);
    assert_eq!(kinds(&found), [(1, shared(8, 0))]);
    let found = checked(&[at(0, 1), at(0, 1)], 10, 0);
    assert_eq!(kinds(&found), [(1, shared(0, 0))]);
}

#[test]
fn pointers_that_an_old_assembler_made_absolute_are_understood() {
    let version = Version::from_word(8).unwrap();
    let layout = version.layout().record;
    let mut bytes = records(&[at(0, 2)], &version);
    let absolute = COUNTERS + 8 + layout.counter_ptr as u64;
    LittleEndian::write_u64(&mut bytes[layout.counter_ptr..], absolute);
    let counters = [0; COUNTERS_LEN as usize];
    let found = check_records(&bytes, &counters, &ranges(1, &version, 0), &version);
    assert_eq!(found.defects, []);
    assert_eq!(
        LittleEndian::read_u64(&found.bytes[layout.counter_ptr..]),
        8
    );
}

#[test]
fn a_count_that_no_reader_takes_costs_its_record() {
    let counters = |counts: [u64; 6]| counts.map(u64::to_le_bytes).concat();
    let wanted = [at(0, 2), at(16, 2), at(32, 2)];
    let checked = |counts, word| {
        let version = Version::from_word(word).unwrap();
        let ranges = ranges(wanted.len(), &version, 0);
        let records = records(&wanted, &version);
        kinds(&check_records(
            &records,
            &counters(counts),
            &ranges,
            &version,
        ))
    };
    let most = 1 << 56;
    assert_eq!(checked([0, most, most, 1, 0, most], 10), []);
    let large = |found| DefectKind::Large { found };
    assert_eq!(
        checked([0, 0, 0, most + 1, u64::MAX, 0], 10),
        [(1, large(most + 1)), (2, large(u64::MAX))]
    );
    // Single bytes have no limit.
    assert_eq!(checked([u64::MAX; 6], 1 << 60 | 10), []);
}

#[test]
fn defects_say_which_and_why() {
    let found = checked(&[at(0, 1), at(0, 1), at(9, 0), at(-8, 1)], 10, 0);
    let said: Vec<_> = found.defects.iter().map(ToString::to_string).collect();
    let expected = [
        "record 2 (name hash 0x000000000000abc2) has no counters; its counts are left out",
        "record 3 (name hash 0x000000000000abc3) claims 8 bytes at byte -8 of a counters section of 48 \
         bytes; its counts are left out",
        "record 1 (name hash 0x000000000000abc1) claims the counters of record 0 at byte 0; its counts are \
         left out",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_record_that_repeats_another_is_no_defect() {
    for word in [8, 9, 10, 11] {
        let version = Version::from_word(word).unwrap();
        let bytes = version.layout().record.bytes as usize;
        let found = |wanted: &[Wanted], same: usize| {
            let mut records = records(wanted, &version);
            // The hash of the name, from the first record. The hash of the structure is equal in both.
            records.copy_within(0..same, bytes);
            let ranges = ranges(wanted.len(), &version, 0);
            let counters = [0; COUNTERS_LEN as usize];
            check_records(&records, &counters, &ranges, &version)
        };
        let twice = found(&[at(8, 2), at(8, 2), at(24, 1)], 8);
        assert_eq!(kinds(&twice), []);
        assert_eq!(twice.bytes.len(), 2 * bytes);
        // A record of another function, or with other counters, is a defect.
        let others = [
            found(&[at(8, 2), at(8, 2)], 0),
            found(&[at(8, 2), at(8, 1)], 8),
            found(&[at(8, 2), at(16, 2)], 8),
        ];
        for other in others {
            assert_eq!(other.defects.len(), 1, "{other:?}");
        }
    }
}

#[test]
fn of_many_defects_the_first_are_remembered() {
    // Empty records, and one that shares counters, which is found last.
    let mut wanted = vec![at(0, 0); MAX_DEFECTS - 1];
    wanted.extend([at(0, 1), at(0, 1)]);
    let found = checked(&wanted, 10, 0);
    assert_eq!((found.defects.len(), found.more_defects), (MAX_DEFECTS, 0));
    assert_eq!(found.defects[MAX_DEFECTS - 1].index, MAX_DEFECTS);
    wanted.extend([at(0, 0), at(0, 1), at(0, 0)]);
    let found = checked(&wanted, 10, 0);
    assert_eq!((found.defects.len(), found.more_defects), (MAX_DEFECTS, 3));
    assert_eq!(found.defects[MAX_DEFECTS - 1].kind, DefectKind::Empty);
    assert_eq!(found.bytes.len(), 64);
}
