//! Small code objects that claim to be large: millions of bad records, and very many tables.

use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::drain::Session;

use crate::output;

/// Names of the sections below, in their order, then of the only variable in `.dynsym`.
const NAMES: &[u8] =
    b"\0__llvm_prf_data\0__llvm_prf_cnts\0__llvm_prf_names\0.comment\0.shstrtab\0.dynsym\0.dynstr\0";
const TABLE: &[u8] = b"\0__llvm_profile_sections_unit\0";

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A section's header.
#[derive(Default)]
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    /// Offset and size.
    place: (u64, u64),
    link: u32,
    entry: u64,
}

/// An ELF with `records` bytes of data records of zeros that are not in the file, and with `tables`
/// different bounds tables of `table` bytes each.
fn elf(records: u64, tables: u64, table: u64) -> Vec<u8> {
    let mut elf = vec![0; 64 + 56];
    let mut put = |bytes: &[u8]| {
        elf.extend_from_slice(bytes);
        ((elf.len() - bytes.len()) as u64, bytes.len() as u64)
    };
    let comment = put(b"clang version 22.0.0\0");
    let names = put(NAMES);
    let dynstr = put(TABLE);
    let symbol = |number| {
        let name_info_section = 1 | 0x11 << 32 | 1 << 48;
        words(&[name_info_section, 64 * number, table])
    };
    let symbols: Vec<u8> = (0..tables).flat_map(symbol).collect();
    let dynsym = put(&[vec![0; 24], symbols].concat());
    let contents: Vec<u8> = (0..tables)
        .flat_map(|number| words(&[number + 1; 8]))
        .collect();
    let (contents, base) = put(&contents);
    let headers = put(&[]).0;
    let data = base.next_multiple_of(64);
    let counters = data + records;
    let nobits = |name, address, size| Section {
        name,
        kind: 8,
        flags: 2,
        address,
        place: (0, size),
        ..Section::default()
    };
    let other = |name, kind, place| Section {
        name,
        kind,
        place,
        ..Section::default()
    };
    let sections = [
        Section::default(),
        nobits("__llvm_prf_data", data, records),
        nobits("__llvm_prf_cnts", counters, 8),
        nobits("__llvm_prf_names", counters + 8, 0),
        other(".comment", 1, comment),
        other(".shstrtab", 3, names),
        Section {
            link: 7,
            entry: 24,
            ..other(".dynsym", 11, dynsym)
        },
        other(".dynstr", 3, dynstr),
    ];
    for section in &sections {
        let name = section.name.as_bytes();
        let found = NAMES.windows(name.len() + 1);
        let mut found = found
            .zip(0_u32..)
            .filter(|(it, _)| it.starts_with(name) && it.ends_with(b"\0"));
        let name = found.next().expect("its name").1;
        elf.extend([name, section.kind].map(u32::to_le_bytes).concat());
        let (offset, size) = section.place;
        elf.extend(words(&[section.flags, section.address, offset, size]));
        elf.extend([section.link, 0].map(u32::to_le_bytes).concat());
        elf.extend(words(&[1, section.entry]));
    }
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend([3_u16, 0xe0].map(u16::to_le_bytes).concat());
    header.extend(1_u32.to_le_bytes());
    header.extend(words(&[0, 64, headers]));
    header.extend([0; 4]);
    header.extend([64_u16, 56, 1, 64, 8, 5].map(u16::to_le_bytes).concat());
    // One loadable segment for everything, readable and writable.
    header.extend([1_u32, 6].map(u32::to_le_bytes).concat());
    header.extend(words(&[contents, 0, 0, base, counters + 64, 4096]));
    elf[..header.len()].copy_from_slice(&header);
    elf
}

/// The lines of a drain about it.
fn said(elf: Vec<u8>) -> Vec<String> {
    let agent = Agent {
        handle: 1,
        index: 0,
        name: "gfx90a".into(),
        isa: None,
        uuid: None,
        node: None,
    };
    let device = AtRest::new(agent, "a.co".into(), elf).expect("a code object");
    let (_directory, name) = output();
    let outcome = Session::default().drain(&device, &name);
    let said = outcome.losses.iter().map(|loss| {
        let line = loss.to_string();
        line.split_once(" on gfx90a 0: ")
            .expect("the agent")
            .1
            .to_owned()
    });
    said.collect()
}

#[test]
fn of_bad_records_the_first_are_said_and_how_many_more() {
    for (records, last) in [
        (
            50,
            "record 49 (name hash 0x0000000000000000) has no counters; its counts are left out; build it again",
        ),
        (51, "… and 1 more record; build it again"),
        (1 << 20, "… and 1048526 more records; build it again"),
    ] {
        let said = said(elf(64 * records, 0, 0));
        assert_eq!(said.len() as u64, records.min(51));
        assert!(
            said[..50]
                .iter()
                .all(|line| line.contains(" has no counters; "))
        );
        assert_eq!(said.last().map(String::as_str), Some(last));
    }
}

#[test]
fn tables_without_end_are_not_looked_at() {
    // Good tables give one line in all. Bad sizes give one line each, up to the limit.
    let rest =
        "more than 100 different __llvm_profile_sections; rocov ignores the rest; build it again";
    let different = said(elf(64, 1000, 56));
    let disagreements = different
        .iter()
        .filter(|line| line.contains("rocov uses the headers"));
    assert_eq!(disagreements.count(), 100);
    assert!(
        different.iter().any(|line| line == rest),
        "{}",
        different.len()
    );
    let sizes = said(elf(64, 1000, 57));
    let bad = "__llvm_profile_sections has 57 bytes, expected 56 or 72; build it again";
    assert_eq!(sizes.iter().filter(|size| *size == bad).count(), 100);
    assert!(sizes.iter().any(|size| size == rest), "{}", sizes.len());
}
