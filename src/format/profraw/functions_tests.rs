//! Data records byte by byte.

use super::*;
use crate::format::profraw::{Parts, Version, encode};
use crate::format::sections::PerSection;

/// Two records of version 10: two counters and one, the first with a byte of bitmap.
fn records() -> Vec<u8> {
    let mut records = vec![0; 2 * 64];
    for (index, (hash, counters, number, bitmap)) in
        [(5, 0, 2, 1), (6, 16, 1, 0)].into_iter().enumerate()
    {
        let record = &mut records[64 * index..][..64];
        LittleEndian::write_u64(record, 7);
        LittleEndian::write_u64(&mut record[8..], hash);
        LittleEndian::write_u64(&mut record[16..], counters);
        LittleEndian::write_u32(&mut record[48..], number);
        LittleEndian::write_u32(&mut record[60..], bitmap);
    }
    records
}

fn profile(word: u64, data: &[u8], counters: &[u8]) -> Result<CountsByFunction, ProfileError> {
    let names = b"\x01\x00f";
    let bitmap = [0b101];
    let file = encode(&Parts {
        version: Version::from_word(word)?,
        build_id: None,
        sections: PerSection {
            data,
            counters,
            bitmap: &bitmap,
            uniform: &[],
            names,
        },
        names_address: 0,
    });
    Sum::new(file)?.functions()
}

fn counts(counters: &[u64], bitmap: &[u8]) -> FunctionCounts {
    FunctionCounts {
        counters: counters.to_vec(),
        bitmap: bitmap.to_vec(),
        ..FunctionCounts::default()
    }
}

#[test]
fn each_function_has_its_counts() {
    let counters: Vec<u8> = [3_u64, 0, 9]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let expected = [
        ((7, 5), counts(&[3, 0], &[0b101])),
        ((7, 6), counts(&[9], &[])),
    ];
    assert_eq!(profile(10, &records(), &counters), Ok(expected.into()));
    // Records of one function add up.
    let mut twice = records();
    LittleEndian::write_u64(&mut twice[64 + 8..], 5);
    LittleEndian::write_u64(&mut twice[64 + 16..], 8);
    LittleEndian::write_u32(&mut twice[64 + 48..], 2);
    LittleEndian::write_u32(&mut twice[64 + 60..], 1);
    let expected = [((7, 5), counts(&[3, 9], &[0b101]))];
    assert_eq!(profile(10, &twice, &counters), Ok(expected.into()));
}

#[test]
fn counters_of_one_byte_are_1_if_they_are_0() {
    let mut records = records();
    LittleEndian::write_u64(&mut records[64 + 16..], 2);
    let expected = [
        ((7, 5), counts(&[1, 0], &[0b101])),
        ((7, 6), counts(&[1], &[])),
    ];
    let found = profile(1 << 60 | 10, &records, &[0, 0xff, 0]);
    assert_eq!(found, Ok(expected.clone().into()));
    // A sum shows how many runs reached a block.
    let [(_, mut sum), _] = expected;
    sum.add(&counts(&[0, 1], &[0b110])).unwrap();
    sum.add(&counts(&[1, 0], &[0])).unwrap();
    assert_eq!(sum, counts(&[2, 1], &[0b111]));
    sum.add(&counts(&[1], &[0])).unwrap_err();
}

#[test]
fn a_sum_has_uniform_counters_if_both_parts_have() {
    let with = FunctionCounts {
        uniform: vec![0, 2],
        ..counts(&[1, 2], &[])
    };
    let without = counts(&[1, 2], &[]);
    let sum = |first: &FunctionCounts, second: &FunctionCounts| {
        let mut sum = first.clone();
        sum.add(second).unwrap();
        (sum.counters, sum.uniform)
    };
    assert_eq!(sum(&with, &with), (vec![2, 4], vec![0, 4]));
    for (first, second) in [(&with, &without), (&without, &with)] {
        assert_eq!(sum(first, second), (vec![2, 4], vec![]));
    }
}

#[test]
fn records_that_refer_to_other_bytes() {
    let damaged = |index, section| Err(ProfileError::Record { index, section });
    let counters = [0; 24];
    for (at, value, section) in [
        (64 + 16, 24, Section::Counters),
        (64 + 16, u32::MAX, Section::Counters),
        (64 + 48, 2, Section::Counters),
        (64 + 60, 2, Section::Bitmap),
    ] {
        let mut records = records();
        LittleEndian::write_u32(&mut records[at..], value);
        let found = profile(10, &records, &counters);
        assert_eq!(found, damaged(1, section), "{at}");
    }
    let mut without = records();
    without[64 + 48] = 0;
    let found = profile(10, &without, &counters);
    assert_eq!(found, damaged(1, Section::Counters));
    let mut large = [0; 24];
    LittleEndian::write_u64(&mut large[16..], MAX_COUNT);
    assert!(profile(10, &records(), &large).is_ok());
    let (index, found) = (1, MAX_COUNT + 1);
    LittleEndian::write_u64(&mut large[16..], found);
    let error = ProfileError::Count { index, found };
    assert_eq!(profile(10, &records(), &large), Err(error));
    // Records may not share counts until they take more memory than the file.
    let record = &records()[..64];
    let mut many = record.repeat(99);
    for record in many.chunks_exact_mut(64) {
        LittleEndian::write_u32(&mut record[48..], 3);
    }
    let found = profile(10, &many, &counters);
    assert!(found.is_ok(), "{found:?}");
    let long = vec![0; 8 * 4096];
    for record in many.chunks_exact_mut(64) {
        LittleEndian::write_u32(&mut record[48..], 4096);
    }
    assert_eq!(profile(10, &many, &long), damaged(1, Section::Counters));
}
