//! Function records byte by byte, of forms that compilers do not write.

use super::*;
use crate::format::codeobject::{Counter, RegionKind, SourcePlace, name_ref};

/// The list of the files `/a` and `/a/b`.
const LIST: &[u8] = b"\x02\x00\x00\x02/a\x01b";
/// A list of other files.
const OTHER: &[u8] = b"\x02\x00\x00\x02/c\x01d";

fn covmap(list: &[u8], version: u32) -> Vec<u8> {
    let header = [0, list.len() as u32, 0, version].map(u32::to_le_bytes);
    let mut section = [&header.concat(), list].concat();
    section.resize(section.len().next_multiple_of(8), 0);
    section
}

fn covfun(name: u64, hash: u64, list: &[u8], mapping: &[u8]) -> Vec<u8> {
    let mut record = name.to_le_bytes().to_vec();
    record.extend((mapping.len() as u32).to_le_bytes());
    record.extend(hash.to_le_bytes());
    record.extend(name_ref(list).to_le_bytes());
    record.extend(mapping);
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// The functions of records with the two lists.
fn read(records: &[Vec<u8>]) -> Result<Vec<MappedFunction>, CoverageError> {
    let maps = [covmap(LIST, 6), covmap(OTHER, 6)].concat();
    mapped_functions(&maps, &records.concat())
}

/// The function with this mapping.
fn mapped(mapping: &[u8]) -> Result<MappedFunction, CoverageError> {
    let mut functions = read(&[covfun(7, 8, LIST, mapping)])?;
    assert_eq!(functions.len(), 1);
    Ok(functions.remove(0))
}

fn region(file: u32, lines: [u32; 2], columns: [u32; 2], kind: RegionKind) -> MappedRegion {
    let [start, end] = [0, 1].map(|at| SourcePlace {
        line: lines[at],
        column: columns[at],
    });
    MappedRegion {
        file,
        start,
        end,
        kind,
    }
}

/// One function with every kind of region.
const EVERY_KIND: &[u8] = &[
    3, 1, 0, 1, // three files
    2, 0, 1, 2, 5, // 0 - counter 0, expression 0 minus counter 1
    7, // regions of the first file
    1, 10, 1, 5, 2, // counter 0 in 10:1 to 15:2
    12, 1, 3, 0, 9, // an expansion to file 1
    16, 1, 0, 1, 0, // skipped: whole lines
    3, 0, 4, 0, 0x86, 0x80, 0x80, 0x80, 8, // a gap with the sum of expression 0
    32, 1, 0, 1, 4, 0, 6, // a branch that is never false
    40, 9, 2, 1, 4, 0, 9, // a decision of two conditions with bitmap 9
    48, 6, 5, 1, 2, 0, 0, 4, 0, 6, // its condition 0: 1 follows if it is true
    1, // regions of the second file
    20, 3, 1, 0, 5, // an expansion to file 2
    1, // regions of the third file
    6, 4, 1, 1, 5, // the difference of expression 1
];

#[test]
fn every_kind_of_region() {
    let function = mapped(EVERY_KIND).unwrap();
    let (one, two) = (Counter::Value(0), Counter::Value(1));
    let (expansion, third) = (Counter::Difference(1), Counter::Difference(1));
    assert_eq!((function.name, function.hash), (7, 8));
    let files: Vec<_> = function.files.iter().map(|file| &**file).collect();
    assert_eq!(files, ["/a/b", "/a", "/a/b"]);
    assert_eq!(
        function.expressions,
        [[Counter::Zero, one], [Counter::Difference(0), two]]
    );
    let expanded = |file| RegionKind::Expansion {
        file,
        counter: expansion,
    };
    let regions = [
        region(0, [10, 15], [1, 2], RegionKind::Code(one)),
        region(0, [11, 11], [3, 9], expanded(1)),
        region(0, [12, 13], [1, u32::MAX], RegionKind::Skipped),
        region(0, [12, 12], [4, 6], RegionKind::Gap(Counter::Sum(0))),
        region(
            0,
            [13, 13],
            [4, 6],
            RegionKind::Branch([one, Counter::Zero]),
        ),
        region(
            0,
            [14, 14],
            [4, 9],
            RegionKind::Decision {
                bitmap: 9,
                conditions: 2,
            },
        ),
        region(
            0,
            [14, 14],
            [4, 6],
            RegionKind::Condition {
                sides: [Counter::Difference(1), two],
                number: 0,
                next: [None, Some(1)],
            },
        ),
        region(1, [3, 3], [1, 5], expanded(2)),
        region(2, [4, 5], [1, 5], RegionKind::Code(third)),
    ];
    for (found, expected) in function.regions.iter().zip(&regions) {
        assert_eq!(found, expected);
    }
    assert_eq!(function.regions.len(), regions.len());
}

#[test]
fn a_record_that_is_cut_short_or_damaged_is_an_error_or_a_function() {
    for len in 0..EVERY_KIND.len() {
        mapped(&EVERY_KIND[..len]).unwrap_err();
    }
    for at in 0..EVERY_KIND.len() {
        for byte in 0..=u8::MAX {
            let mut mapping = EVERY_KIND.to_vec();
            mapping[at] = byte;
            let _ = mapped(&mapping);
        }
    }
}

#[test]
fn damage_is_named() {
    let code = |counter: u8| [1, 1, 0, 1, counter, 1, 1, 0, 2];
    for (mapping, error) in [
        (
            &code(2)[..],
            "the number of an expression 0, expected less than 0",
        ),
        (
            &code(8 + 4),
            "the number of an expanded file 1, expected less than 1",
        ),
        (&code(24), "a region of kind 3, expected 0, 2, 4, 5 or 6"),
        (
            &[1, 1, 0, 1, 1, 1, 3, 0, 2],
            "a region from 1:3 to 1:2, which ends before it starts",
        ),
        (
            &[1, 1, 0, 1, 48, 1, 1, 0, 0, 0],
            "a condition with number 0, expected 1 or more",
        ),
        (&[1, 2, 0, 0], "a function in file 2 of a list of 2"),
        (&[9, 1], "9 bytes at byte 1 of __llvm_covfun, which has 2"),
        (
            &[1, 1, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x7f],
            "a line 34359738367, expected less than 4194304",
        ),
        (
            &[1, 1, 0, 1, 1, 0xff, 0xff, 0xff, 1, 1, 1, 2],
            "a line 4194304, expected less than 4194304",
        ),
    ] {
        let found = mapped(mapping).unwrap_err().to_string();
        assert_eq!(found, format!("damaged coverage mapping: {error}"));
    }
}

/// Files that each expand to the next one, and code in the last.
fn nested(expansions: u32) -> Vec<u8> {
    let bits = |number: u32, shift: u32| (number >> shift) as u8 & 0x7f;
    let number = |number| {
        [
            bits(number, 0) | 0x80,
            bits(number, 7) | 0x80,
            bits(number, 14),
        ]
    };
    let mut mapping = number(expansions + 1).to_vec();
    mapping.resize(mapping.len() + expansions as usize + 1, 0);
    mapping.push(0);
    for file in 1..=expansions {
        mapping.push(1);
        mapping.extend(number(file << 3 | 4));
        mapping.extend([1, 1, 0, 2]);
    }
    mapping.extend([1, 1, 1, 1, 0, 2]);
    mapping
}

#[test]
fn expansions_have_the_count_of_the_innermost() {
    for region in mapped(&nested(2000)).unwrap().regions {
        let (RegionKind::Expansion { counter, .. } | RegionKind::Code(counter)) = region.kind
        else {
            panic!("{region:?}");
        };
        assert_eq!(counter, Counter::Value(0));
    }
    let itself = vec![2, 0, 1, 0, 1, 12, 1, 1, 0, 2, 1, 12, 1, 1, 0, 2];
    for mapping in [nested(2100), itself] {
        assert_eq!(mapped(&mapping), Err(CoverageError::Nesting));
    }
}

#[test]
fn lists_must_be_there_and_of_a_known_version() {
    let record = covfun(7, 8, LIST, &[1, 1, 0, 0]);
    let found = mapped_functions(&covmap(OTHER, 6), &record).unwrap_err();
    let hash = name_ref(LIST);
    assert_eq!(found, CoverageError::List { found: hash });
    for version in [2, 7] {
        let found = mapped_functions(&covmap(LIST, version), &record).unwrap_err();
        assert_eq!(found, CoverageError::Version { found: version });
    }
    assert_eq!(mapped_functions(&[], &[]), Ok(Vec::new()));
}

#[test]
fn the_first_record_of_a_function_that_is_used_counts() {
    let unused = |list| covfun(7, 0, list, &[1, 1, 0, 1, 0, 1, 1, 0, 2]);
    let used = |hash| covfun(7, hash, OTHER, &[1, 1, 0, 1, 1, 1, 1, 0, 2]);
    let other = covfun(1, 0, LIST, &[1, 1, 0, 1, 0, 1, 1, 0, 2]);
    for records in [
        vec![unused(LIST), other.clone(), used(5), unused(OTHER), used(6)],
        vec![used(5), other.clone(), unused(LIST), used(6)],
    ] {
        let found = read(&records).unwrap();
        let hashes: Vec<_> = found
            .iter()
            .map(|function| (function.name, function.hash))
            .collect();
        assert_eq!(hashes, [(7, 5), (1, 0)]);
        assert_eq!(*found[0].files[0], *"/c/d");
    }
    let found = read(&[unused(LIST), unused(OTHER)]).unwrap();
    assert_eq!(*found[0].files[0], *"/a/b");
}
