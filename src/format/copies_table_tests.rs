use super::*;

/// A table as the compiler's part writes it, by the description of the format. `stated` is the size in its head.
fn table(version: u32, stated: u32, words: &[u64]) -> Vec<u8> {
    let mut bytes = b"rocovcps".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(stated.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// A table of version 2 for three counters with these terms.
fn with_probes(count: u64, terms: &[u32]) -> Vec<u8> {
    let pairs = terms.chunks(2);
    let pairs = pairs.map(|pair| u64::from(pair[0]) | u64::from(*pair.get(1).unwrap_or(&0)) << 32);
    let words: Vec<u64> = [0x1000, 0x2000, 0x40, 0x58, count]
        .into_iter()
        .chain(pairs)
        .collect();
    table(2, 16 + 8 * words.len() as u32, &words)
}

fn good(words: &[u64]) -> Vec<u8> {
    table(1, 16 + 8 * words.len() as u32, words)
}

/// The area starts of the good tables, and the lines about the damage.
fn decoded(bytes: &[u8]) -> (Vec<u64>, Vec<String>) {
    let CopiesTables { tables, damage, .. } = CopiesTables::decode(bytes);
    let starts = tables.iter().map(|table| table.area.0).collect();
    (starts, damage.iter().map(ToString::to_string).collect())
}

#[test]
fn tables_follow_each_other_with_any_number_of_ranges() {
    let bytes = [good(&[0x1000, 0x2000, 8, 16, 24, 40]), good(&[3, 4])].concat();
    assert_eq!(bytes.len(), 64 + 32);
    let first = CopiesTable {
        area: (0x1000, 0x2000),
        ranges: vec![(8, 16), (24, 40)],
        probes: None,
    };
    let second = CopiesTable {
        area: (3, 4),
        ranges: Vec::new(),
        probes: None,
    };
    let decoded = CopiesTables::decode(&bytes);
    assert_eq!(decoded.tables, [first, second]);
    assert_eq!(decoded.damage, []);
    assert!(CopiesTables::decode(&[]).is_empty());
}

#[test]
fn counters_are_sums_of_probes() {
    // Probes 1 and 0, none, and probe 1.
    let bytes = with_probes(2, &[3, 0, 0xffff_fffe, 2]);
    let decoded = CopiesTables::decode(&bytes);
    assert_eq!(decoded.damage, []);
    let [table] = decoded.tables.as_slice() else {
        panic!("{:?}", decoded.tables)
    };
    assert_eq!(
        (table.area, table.ranges.as_slice()),
        ((0x1000, 0x2000), &[(0x40, 0x58)][..])
    );
    let probes = table.probes.as_ref().unwrap();
    let mut found = Vec::new();
    probes.each(|counter, probe| found.push((counter, probe)));
    assert_eq!((probes.count, found), (2, vec![(0, 1), (0, 0), (2, 1)]));
    // The writer makes the terms that the reader takes, and half a word may be left.
    let lists = [vec![1, 0], vec![], vec![1], vec![]];
    let written: Vec<u32> = lists.iter().cloned().flat_map(Probes::encoded).collect();
    assert_eq!(written, [3, 0, 0xffff_fffe, 2, 0xffff_fffe]);
    assert!(
        CopiesTables::decode(&with_probes(2, &[0, 0, 2]))
            .damage
            .is_empty()
    );
}

#[test]
fn a_load_moves_every_address() {
    let bytes = good(&[0x1000, 0x2000, 8, 16]);
    let loaded = CopiesTables::decode(&bytes).loaded_at(0x7000_0000);
    let moved = CopiesTable {
        area: (0x7000_1000, 0x7000_2000),
        ranges: vec![(0x7000_0008, 0x7000_0010)],
        probes: None,
    };
    assert_eq!(loaded.tables, [moved]);
}

/// A bad table lies between two good ones, and costs only itself.
#[test]
fn each_bad_table_is_named_and_costs_only_itself() {
    let head = "the table at byte 32 of __rocov_copies";
    let of_size = |found: u32, room: usize| {
        format!("{head} has {found} bytes, expected 32 plus a multiple of 16, at most {room}")
    };
    let foreign = |at: usize, word: &str| {
        format!(
            "__rocov_copies has {word} at byte {at}, expected 0x737063766f636f72, the start of a table"
        )
    };
    for (bad, line) in [
        (
            table(3, 48, &[1, 2, 3, 4]),
            format!("{head} has version 3, expected 1 or 2"),
        ),
        // Its size leads past the end.
        (
            table(7, u32::MAX, &[1, 2]),
            format!("{head} has version 7, expected 1 or 2"),
        ),
        (table(1, 0, &[1, 2]), of_size(0, 32)),
        (table(1, 16, &[1, 2]), of_size(16, 32)),
        (table(1, 40, &[1, 2, 3, 4]), of_size(40, 48)),
        // Larger than the room up to the next table.
        (table(1, 48, &[1, 2]), of_size(48, 32)),
        (table(1, u32::MAX, &[1, 2]), of_size(u32::MAX, 32)),
        (table(1, 32, &[]), of_size(32, 16)),
        (
            table(2, 48, &[1, 2, 3, 4]),
            format!("{head} has 48 bytes, expected 56 plus a multiple of 8, at most 48"),
        ),
        (
            with_probes(2, &[0, 4, 0]),
            format!("{head} has a term with probe 2, expected less than 2"),
        ),
        (
            with_probes(2, &[0, u32::MAX, 0, 0]),
            format!("{head} has a term with probe 2147483647, expected less than 2"),
        ),
        (
            with_probes(2, &[0, 0, 2, 0, 2]),
            format!("{head} ends after the terms of 5, expected 3 counters"),
        ),
        (
            with_probes(2, &[0, 3]),
            format!("{head} ends after the terms of 1, expected 3 counters"),
        ),
        (
            b"rocovcps".to_vec(),
            format!("{head} is cut short: it has 8 bytes, expected at least 16"),
        ),
        (vec![0; 16], foreign(32, "0x0000000000000000")),
        (b"rocovcpt".to_vec(), foreign(32, "0x747063766f636f72")),
    ] {
        let bytes = [good(&[5, 6]), bad, good(&[7, 8])].concat();
        assert_eq!(decoded(&bytes), (vec![5, 7], vec![line]));
    }
    // A size that is too small leaves bytes without a table.
    let bytes = [table(1, 32, &[5, 6, 0x22, 0x33]), good(&[7, 8])].concat();
    let line = foreign(32, "0x0000000000000022");
    assert_eq!(decoded(&bytes), (vec![5, 7], vec![line]));
}

#[test]
fn a_section_that_is_cut_anywhere_has_the_tables_before_the_cut() {
    let whole = [good(&[5, 6, 1, 2]), good(&[7, 8, 3, 4])].concat();
    for len in 0..whole.len() {
        let (starts, lines) = decoded(&whole[..len]);
        let expected = if len < 48 { vec![] } else { vec![5] };
        assert_eq!(starts, expected, "{len}");
        let is_clean = len == 0 || len == 48;
        assert_eq!(lines.is_empty(), is_clean, "{len}: {lines:?}");
    }
}

#[test]
fn damage_without_end_is_counted() {
    let bad = table(9, 32, &[1, 2]).repeat(1000);
    let (starts, lines) = decoded(&bad);
    assert!(starts.is_empty());
    assert_eq!(lines.len(), 51);
    assert_eq!(lines[50], "__rocov_copies has 950 more damaged tables");
}

#[test]
fn a_copy_takes_whole_lines_of_the_cache() {
    let strides = [0, 8, 128, 136].map(|counted| CopiesTable::stride(counted, 128));
    assert_eq!(strides, [0, 128, 128, 256].map(Some));
    assert_eq!(CopiesTable::stride(u64::MAX, 512), None);
}
