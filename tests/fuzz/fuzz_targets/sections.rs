//! Device memory that a drain reads: a section bounds table, tables of copies, and sections with any contents. If the
//! records pass the checks, the result must be a profile, whatever the records claim. Good areas of copies are in
//! memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::device::DeviceRange;
use rocov::format::bounds_table::{Bounds, BoundsTable};
use rocov::format::copies_table::CopiesTables;
use rocov::format::profraw::{Parts, RawProfile, Sum, Version, encode};
use rocov::format::sections::PerSection;
use rocov::validate::{CheckedCopies, NamesChecker, SectionRanges, check_records};

/// The load address of the code object: so high that sizes soon overflow.
const BASE: u64 = u64::MAX - 0xffff;

fuzz_target!(|input: (u64, [u16; 10], &[u8])| {
    let (word, places, memory) = input;
    if let Ok(table) = BoundsTable::decode(memory) {
        let _ = SectionRanges::check(&table.bounds, segment(memory), None);
        let _ = SectionRanges::check_version(table.version, segment(memory));
    }
    let Ok(version) = Version::from_word(word) else {
        return;
    };
    let at = |place: usize| BASE + u64::from(places[place]);
    let bounds = Bounds {
        names: (at(0), at(1)),
        counters: (at(2), at(3)),
        data: (at(4), at(5)),
        bitmap: (at(6), at(7)),
        uniform: (at(8), at(9)),
    };
    let Ok(ranges) = SectionRanges::check(&bounds, segment(memory), Some(&version)) else {
        return;
    };
    let bytes = |range: DeviceRange| {
        let start = range.start.wrapping_sub(BASE) as usize;
        // An empty section may start anywhere.
        memory.get(start..start + range.len as usize).unwrap_or(&[])
    };
    let tables = CopiesTables::decode(memory);
    let copies = CheckedCopies::check(&tables, &ranges, segment(memory), version.is_single_byte());
    for area in copies.areas {
        assert!(segment(memory).contains(&area.memory) && area.stride as u64 <= area.memory.len);
        let counted: usize = area.ranges.iter().map(|(_, place)| place.len()).sum();
        assert!(0 < counted && counted <= area.stride);
        for (section, place) in area.ranges {
            assert!(place.end as u64 <= ranges.get(section).len);
        }
    }
    let records = check_records(
        bytes(ranges.data),
        bytes(ranges.counters),
        &ranges,
        &version,
    );
    let names = bytes(ranges.names);
    let _ = NamesChecker::default().check(names);
    let file = encode(&Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &records.bytes,
            counters: bytes(ranges.counters),
            bitmap: bytes(ranges.bitmap),
            uniform: bytes(ranges.uniform),
            names,
        },
        names_address: ranges.names.start,
    });
    RawProfile::parse(&file).expect("a raw profile");
    let mut sum = Sum::new(file.clone()).expect("a profile can be added to");
    sum.add(&file).expect("a profile can be added to itself");
});

/// The range of the whole memory.
fn segment(memory: &[u8]) -> DeviceRange {
    DeviceRange {
        start: BASE,
        len: memory.len() as u64,
    }
}
