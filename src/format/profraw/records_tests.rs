//! Counts that are taken out of a profile and put back.

use super::*;
use crate::format::profraw::{Parts, Version, encode};
use crate::format::sections::PerSection;

/// A profile of version 10 with two data records, of two counters and one, the first with a byte of bitmap.
fn profile(word: u64, counters: &[u8], bitmap: u8) -> Sum {
    let bytes = match word >> 60 & 1 {
        1 => 1,
        _ => 8,
    };
    let mut data = vec![0; 2 * 64];
    for (index, (hash, number, bitmap)) in [(5, 2, 1), (6, 1, 0)].into_iter().enumerate() {
        let record = &mut data[64 * index..][..64];
        LittleEndian::write_u64(record, 7);
        LittleEndian::write_u64(&mut record[8..], hash);
        LittleEndian::write_u64(&mut record[16..], 2 * bytes * index as u64);
        LittleEndian::write_u32(&mut record[48..], number);
        LittleEndian::write_u32(&mut record[60..], bitmap);
    }
    let file = encode(&Parts {
        version: Version::from_word(word).unwrap(),
        build_id: None,
        sections: PerSection {
            data: &data,
            counters,
            bitmap: &[bitmap],
            uniform: &[],
            names: b"\x01\x00f",
        },
        names_address: 0,
    });
    Sum::new(file).unwrap()
}

fn words(counts: [u64; 3]) -> Vec<u8> {
    counts
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .collect()
}

fn count(record: u32, kind: CountKind, index: u32, count: u64) -> RecordCount {
    RecordCount {
        record,
        kind,
        index,
        count,
    }
}

#[test]
fn counts_have_their_places() {
    let sum = profile(10, &words([3, 0, 9]), 0b101);
    let expected = [
        count(0, CountKind::Counter, 0, 3),
        count(0, CountKind::Bitmap, 0, 5),
        count(1, CountKind::Counter, 0, 9),
    ];
    assert_eq!(sum.counts().unwrap(), expected);
    assert_eq!(sum.record_keys(), [((7, 5), 2), ((7, 6), 1)]);
    assert_eq!(sum.blank().bytes(), profile(10, &words([0; 3]), 0).bytes());
}

#[test]
fn counts_that_are_put_back_make_the_profile_and_its_sums() {
    let single = 1 << 60 | 10;
    for (one, other) in [
        (
            profile(10, &words([3, 0, 9]), 0b101),
            profile(10, &words([4, MAX_COUNT, 0]), 0b110),
        ),
        (
            profile(single, &[0, 0xff, 0xff], 1),
            profile(single, &[0xff, 0xff, 0], 2),
        ),
    ] {
        let mut sum = one.blank();
        for count in one.counts().unwrap() {
            sum.add_count(&count).unwrap();
        }
        assert_eq!(sum.bytes(), one.bytes());
        for count in other.counts().unwrap() {
            sum.add_count(&count).unwrap();
        }
        let mut expected = one.clone();
        expected.add(other.bytes()).unwrap();
        assert_eq!(sum.bytes(), expected.bytes());
    }
}

#[test]
fn a_count_without_a_place_changes_nothing() {
    let mut sum = profile(10, &words([3, 0, 9]), 1);
    let before = sum.bytes().to_vec();
    for (record, kind, index) in [
        (2, CountKind::Counter, 0),
        (1, CountKind::Counter, 1),
        (1, CountKind::Bitmap, 0),
        (0, CountKind::Uniform, 0),
        (0, CountKind::WaveSize, 0),
        (u32::MAX, CountKind::Counter, u32::MAX),
    ] {
        let error = sum.add_count(&count(record, kind, index, 1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{kind} {index} of data record {record} is not in the raw profile")
        );
    }
    assert_eq!(sum.bytes(), before);
}
