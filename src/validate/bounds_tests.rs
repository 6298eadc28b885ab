//! The limits of each check, from both sides.

use super::*;
use crate::format::codeobject::{ElfRange, ProfileSections};

const SEGMENT: DeviceRange = DeviceRange {
    start: 0x1000,
    len: 1 << 30,
};

/// Valid sections, for a test to change.
fn bounds() -> Bounds {
    Bounds {
        names: (0x1000, 0x1003),
        counters: (0x2000, 0x2010),
        data: (0x3000, 0x3040),
        bitmap: (0x4000, 0x4005),
        uniform: (0x5000, 0x5008),
    }
}

fn check(bounds: &Bounds) -> Result<SectionRanges, SectionsError> {
    let version = Version::from_word(10).unwrap();
    SectionRanges::check(bounds, SEGMENT, Some(&version))
}

fn range(start: u64, len: u64) -> DeviceRange {
    DeviceRange { start, len }
}

#[test]
fn what_is_well_is_taken_as_it_is() {
    let ranges = check(&bounds()).unwrap();
    let expected = [
        (Section::Data, range(0x3000, 0x40)),
        (Section::Counters, range(0x2000, 0x10)),
        (Section::Bitmap, range(0x4000, 5)),
        (Section::Uniform, range(0x5000, 8)),
        (Section::Names, range(0x1000, 3)),
    ];
    let ranges: Vec<_> = ranges
        .iter()
        .map(|(section, range)| (section, *range))
        .collect();
    assert_eq!(ranges, expected);
    // Sections close together, up to the segment's end. Empty ones may be anywhere.
    let end = SEGMENT.end().unwrap();
    let close = Bounds {
        names: (end - 3, end),
        counters: (end - 0x13, end - 3),
        data: (0x1000, 0x1040),
        bitmap: (0x1020, 0x1020),
        uniform: (0, 0),
    };
    assert!(check(&close).is_ok());
}

#[test]
fn sizes_are_limited_and_whole_numbers_of_elements() {
    let largest = 256 << 20;
    let names = |len| Bounds {
        names: (0x10000, 0x10000 + len),
        ..bounds()
    };
    assert!(check(&names(largest)).is_ok());
    let section = Section::Names;
    let found = largest + 1;
    let too_large = SectionsError::TooLarge { section, found };
    assert_eq!(check(&names(found)), Err(too_large));
    for (counters, version, element) in [(7, 10, 8), (9, 10, 8), (12, 11, 8)] {
        let bounds = Bounds {
            counters: (0x2000, 0x2000 + counters),
            data: (0x3000, 0x3000),
            ..bounds()
        };
        let version = Version::from_word(version).unwrap();
        let ragged = SectionsError::Ragged {
            section: Section::Counters,
            found: counters,
            element,
        };
        let checked = SectionRanges::check(&bounds, SEGMENT, Some(&version));
        assert_eq!(checked, Err(ragged));
        // Counters of single bytes, and those of an unknown version, may have any size.
        let single_byte = Version::from_word(1 << 60 | 10).unwrap();
        for version in [None, Some(&single_byte)] {
            assert!(SectionRanges::check(&bounds, SEGMENT, version).is_ok());
        }
    }
}

#[test]
fn places_outside_of_the_segment_are_refused() {
    let end = SEGMENT.end().unwrap();
    for (start, stop) in [
        (0xfff, 0x1002),
        (end - 2, end + 1),
        (end + 8, end + 16),
        (u64::MAX - 8, u64::MAX),
    ] {
        let bounds = Bounds {
            names: (start, stop),
            ..bounds()
        };
        let outside = SectionsError::Outside {
            section: Section::Names,
            found: range(start, stop - start),
            segment: SEGMENT,
        };
        assert_eq!(check(&bounds), Err(outside));
    }
    let reversed = Bounds {
        names: (0x1003, 0x1002),
        ..bounds()
    };
    assert!(matches!(
        check(&reversed),
        Err(SectionsError::Reversed { .. })
    ));
}

#[test]
fn a_byte_in_two_sections_is_one_too_many() {
    let bitmap = |start| Bounds {
        bitmap: (start, start + 5),
        ..bounds()
    };
    for start in [0x3000 - 5, 0x3040] {
        assert!(check(&bitmap(start)).is_ok(), "{start:#x}");
    }
    for start in [0x3000 - 4, 0x3000, 0x303f] {
        let error = check(&bitmap(start)).unwrap_err().to_string();
        assert!(
            error.contains("the bitmap section") && error.contains("overlaps"),
            "{error}"
        );
    }
}

#[test]
fn a_version_word_is_eight_bytes_in_the_segment() {
    let end = SEGMENT.end().unwrap();
    for address in [0x1000, end - 8] {
        assert_eq!(SectionRanges::check_version(address, SEGMENT), Ok(()));
    }
    for address in [0xfff, end - 7, u64::MAX] {
        let error = SectionsError::NoVersion {
            found: address,
            segment: SEGMENT,
        };
        assert_eq!(SectionRanges::check_version(address, SEGMENT), Err(error));
    }
}

#[test]
fn bounds_of_headers_and_of_a_table_are_compared_where_there_is_something() {
    let elf = bounds();
    assert_eq!(disagreement(&elf, &elf), None);
    let moved = Bounds {
        counters: (0x2000, 0x2018),
        ..elf
    };
    let expected = SectionsError::Disagreement {
        section: Section::Counters,
        table: moved.counters,
        elf: elf.counters,
    };
    assert_eq!(disagreement(&elf, &moved), Some(expected));
    let with_names = |names| Bounds { names, ..elf };
    let empty = with_names((0x1000, 0x1000));
    assert_eq!(disagreement(&empty, &with_names((0, 0))), None);
    // Empty in one and not in the other.
    assert!(disagreement(&empty, &elf).is_some());
    assert!(disagreement(&elf, &empty).is_some());
}

#[test]
fn bounds_of_headers_are_where_the_elf_is_loaded() {
    let at = |address, size| Some(ElfRange { address, size });
    let sections = ProfileSections {
        names: at(0x10, 3),
        counters: at(0x20, 8),
        data: at(0x30, 64),
        ..ProfileSections::default()
    };
    let bounds = Bounds::from_elf(&sections, 0x1000);
    let expected = Bounds {
        names: (0x1010, 0x1013),
        counters: (0x1020, 0x1028),
        data: (0x1030, 0x1070),
        ..Bounds::default()
    };
    assert_eq!(bounds, expected);
}
