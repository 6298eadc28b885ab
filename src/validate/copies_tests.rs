//! The limits of each check, from both sides.

use super::*;
use crate::format::bounds_table::Bounds;
use crate::format::profraw::Version;

const SEGMENT: DeviceRange = DeviceRange {
    start: 0x1000,
    len: 1 << 30,
};
const END: u64 = 0x1000 + (1 << 30);

/// Sections with 4 counters and 2 uniform counters.
fn sections() -> SectionRanges {
    let bounds = Bounds {
        names: (0x1000, 0x1003),
        counters: (0x2000, 0x2020),
        data: (0x3000, 0x3040),
        bitmap: (0x4000, 0x4005),
        uniform: (0x5000, 0x5010),
    };
    let version = Version::from_word(10).unwrap();
    SectionRanges::check(&bounds, SEGMENT, Some(&version)).unwrap()
}

fn table(area: (u64, u64), ranges: &[(u64, u64)]) -> CopiesTable {
    CopiesTable {
        area,
        ranges: ranges.to_vec(),
        probes: None,
    }
}

/// A good table at 0x8000, with two copies of all counters.
fn good() -> CopiesTable {
    table((0x8000, 0x8100), &[(0x2000, 0x2020)])
}

fn check(tables: Vec<CopiesTable>) -> CheckedCopies {
    let tables = CopiesTables {
        tables,
        ..CopiesTables::default()
    };
    CheckedCopies::check(&tables, &sections(), SEGMENT, false)
}

/// The error of a bad table between two good ones.
fn error(bad: CopiesTable) -> String {
    let last = table((0x9000, 0x9080), &[(0x5000, 0x5010)]);
    let checked = check(vec![good(), bad, last]);
    let starts: Vec<u64> = checked.areas.iter().map(|area| area.memory.start).collect();
    assert_eq!(starts, [0x8000, 0x9000], "{:?}", checked.errors);
    let [error] = checked.errors.as_slice() else {
        panic!("{:?}", checked.errors)
    };
    error.to_string()
}

#[test]
fn a_good_table_has_its_place_in_each_section() {
    let ranges = [(0x2008, 0x2018), (0x5008, 0x5010), (0x2000, 0x2008)];
    let checked = check(vec![table((0x8000, 0x8180), &ranges)]);
    assert!(checked.errors.is_empty(), "{:?}", checked.errors);
    let area = CopiesArea {
        memory: DeviceRange {
            start: 0x8000,
            len: 0x180,
        },
        stride: 0x80,
        ranges: vec![
            (Section::Counters, 8..24),
            (Section::Uniform, 8..16),
            (Section::Counters, 0..8),
        ],
        probes: None,
    };
    assert_eq!(checked.areas, [area]);
}

#[test]
fn areas_may_touch_each_other_and_the_ends_of_the_segment() {
    let all = [(0x2000, 0x2020)];
    let touching = vec![
        table((0x8080, 0x8100), &all),
        table((0x8000, 0x8080), &all),
        table((0x8100, 0x8180), &all),
        table((0x2020, 0x20a0), &all),
        table((END - 0x80, END), &all),
        table((0x1003, 0x1083), &all),
    ];
    let checked = check(touching);
    assert!(checked.errors.is_empty(), "{:?}", checked.errors);
    assert_eq!(checked.areas.len(), 6);
}

#[test]
fn tables_without_copies_or_counters_have_no_area() {
    let checked = check(vec![
        table((0, 0), &[(0x2000, 0x2020)]),
        table((0, 0), &[]),
        table((0x8000, 0x8080), &[]),
        table((0x8000, 0x8080), &[(0, 0), (0x2020, 0x2020)]),
    ]);
    assert!(checked.errors.is_empty(), "{:?}", checked.errors);
    assert_eq!(checked.areas, []);
}

#[test]
fn of_tables_of_one_area_the_first_good_one_counts() {
    let bad = table((0x8000, 0x8100), &[(0x2001, 0x2009)]);
    let other = table((0x8000, 0x8080), &[(0x2000, 0x2008)]);
    let checked = check(vec![bad, good(), other]);
    assert_eq!(checked.errors.len(), 1, "{:?}", checked.errors);
    assert_eq!(checked.areas.len(), 1);
    assert_eq!(checked.areas[0].memory.len, 0x100);
}

#[test]
fn each_bad_area_is_named_and_costs_only_itself() {
    let all = [(0x2000, 0x2020)];
    for (area, expected) in [
        (
            (0xa100, 0xa000),
            "the copies end before they start: 0xa100..0xa000",
        ),
        (
            (0x1_0000, 0x1_0000 + (256 << 20) + 1),
            "the copies at 0x10000..0x10010001 have 268435457 bytes, at most 268435456 are allowed",
        ),
        (
            (0xf00, 0x1000),
            "the copies at 0xf00..0x1000 are not inside the loaded segment 0x1000..0x40001000",
        ),
        (
            (END - 0x7f, END + 1),
            "the copies at 0x40000f81..0x40001001 are not inside the loaded segment 0x1000..0x40001000",
        ),
        (
            (0x201f, 0x209f),
            "the copies at 0x201f..0x209f overlap the counters section 0x2000..0x2020",
        ),
        (
            (0x3f90, 0x4010),
            "the copies at 0x3f90..0x4010 overlap the bitmap section 0x4000..0x4005",
        ),
        (
            (0x80ff, 0x817f),
            "the copies at 0x80ff..0x817f overlap the copies at 0x8000..0x8100",
        ),
        (
            (0x7f81, 0x8001),
            "the copies at 0x7f81..0x8001 overlap the copies at 0x8000..0x8100",
        ),
        (
            (0x7000, 0x8800),
            "the copies at 0x7000..0x8800 overlap the copies at 0x8000..0x8100",
        ),
        (
            (0xa000, 0xa07f),
            "the copies at 0xa000..0xa07f have 127 bytes, expected at least one copy of 128",
        ),
    ] {
        assert_eq!(error(table(area, &all)), expected);
    }
    let largest = table((0x1_0000, 0x1_0000 + (256 << 20)), &all);
    assert_eq!(check(vec![largest]).areas.len(), 1);
}

#[test]
fn each_bad_range_is_named_and_costs_only_its_table() {
    let sections = "inside the counters section 0x2000..0x2020 nor inside the uniform counters section \
                    0x5000..0x5010";
    let neither = |range: &str| format!("the copied counters at {range} are neither {sections}");
    for (range, expected) in [
        (
            (0x2010, 0x2008),
            "the copied counters end before they start: 0x2010..0x2008".to_owned(),
        ),
        ((0x1ff8, 0x2008), neither("0x1ff8..0x2008")),
        ((0x2018, 0x2028), neither("0x2018..0x2028")),
        ((0x3000, 0x3008), neither("0x3000..0x3008")),
        ((0x5008, 0x5018), neither("0x5008..0x5018")),
        (
            (0x2004, 0x200c),
            "the copied counters at 0x2004..0x200c are bytes 4 to 12 of the counters section, expected \
             multiples of 8"
                .to_owned(),
        ),
        (
            (0x5000, 0x500c),
            "the copied counters at 0x5000..0x500c are bytes 0 to 12 of the uniform counters section, \
             expected multiples of 8"
                .to_owned(),
        ),
    ] {
        let bad = table((0xa000, 0xa100), &[(0x2000, 0x2008), range]);
        assert_eq!(error(bad), expected);
    }
    // Ranges that repeat make a copy larger than any area.
    let repeated = table((0xa000, 0xa100), &[(0x2000, 0x2020); 9]);
    assert_eq!(
        error(repeated),
        "the copies at 0xa000..0xa100 have 256 bytes, expected at least one copy of 384"
    );
}

#[test]
fn counters_of_one_byte_have_no_copies_but_uniform_counters_may() {
    let single = table((0x8000, 0x8080), &[(0x2000, 0x2008)]);
    let uniform = table((0x9000, 0x9080), &[(0x5000, 0x5010)]);
    let tables = CopiesTables {
        tables: vec![single, uniform],
        ..CopiesTables::default()
    };
    let checked = CheckedCopies::check(&tables, &sections(), SEGMENT, true);
    let lines: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["the copied counters at 0x2000..0x2008 have 1 byte each, expected 8"]
    );
    assert_eq!(checked.areas.len(), 1);
}
