//! Lists of names: whole, damaged and larger than declared.

use std::io::Write;

use flate2::write::ZlibEncoder;

use super::*;

fn deflated(list: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(list).unwrap();
    encoder.finish().unwrap()
}

/// The results for all names, checked twice by one checker.
fn check(names: &[&[u8]]) -> Vec<Result<(), SectionsError>> {
    let mut checker = NamesChecker::default();
    let twice = [names, names].concat();
    twice
        .into_iter()
        .map(|names| checker.check(names))
        .collect()
}

/// A compressed `list` with the declared `size`.
fn packed(size: u8, list: &[u8]) -> Vec<u8> {
    let list = deflated(list);
    [&[size, list.len() as u8], list.as_slice()].concat()
}

#[test]
fn each_name_is_found() {
    let plain = b"\x07\x00one\x01two";
    let section = [plain.as_slice(), b"\0\0\0", &packed(3, b"six"), b"\0"].concat();
    let mut names = Vec::new();
    for_each_name(&section, |name| names.push(name.to_vec())).unwrap();
    assert_eq!(names, [b"one", b"two", b"six"]);
    for damaged in [&section[..5], &packed(4, b"six"), &packed(2, b"six")] {
        assert!(for_each_name(damaged, |_| {}).is_err());
    }
}

/// A list that is one byte again and again, compressed, and declares its size.
fn repeated(byte: u8, size: u64) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let piece = vec![byte; 1 << 20];
    let mut left = size;
    while left > 0 {
        let len = left.min(piece.len() as u64);
        encoder.write_all(&piece[..len as usize]).unwrap();
        left -= len;
    }
    let list = encoder.finish().unwrap();
    [uleb128_of(size), uleb128_of(list.len() as u64), list].concat()
}

fn uleb128_of(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = number as u8 & 0x7f;
        number >>= 7;
        if number == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

#[test]
fn names_within_the_limits_only() {
    const MIB: u64 = 1 << 20;
    let reason = |section: &[u8]| match for_each_name(section, |_| {}) {
        Err(SectionsError::Names { reason, .. }) => reason,
        result => panic!("{result:?}"),
    };
    let list = deflated(b"six");
    let huge = [uleb128_of(4096 * MIB), uleb128_of(list.len() as u64), list];
    assert_eq!(reason(&huge.concat()), TOO_MUCH);
    assert_eq!(reason(&repeated(SEPARATOR, 10 * MIB)), EMPTY);
    assert_eq!(for_each_name(&repeated(b'x', MIB), |_| {}), Ok(()));
    assert_eq!(reason(&repeated(b'x', MIB + 1)), TOO_LONG);
    let plain = |list: &[u8]| [&uleb128_of(list.len() as u64), &[0][..], list].concat();
    let many = |number: usize| plain(&b"a\x01".repeat(number)[..2 * number - 1]);
    assert_eq!(for_each_name(&many(MAX_NAMES), |_| {}), Ok(()));
    assert_eq!(reason(&many(MAX_NAMES + 1)), TOO_MANY);
    let two = [many(MAX_NAMES - 1), many(2)].concat();
    assert_eq!(reason(&two), TOO_MANY, "all lists together");
    // One name is kept once.
    assert_eq!(
        names_by_hash(&two).map(|names| names.len()),
        Err(SectionsError::Names {
            at: many(MAX_NAMES - 1).len(),
            reason: TOO_MANY,
        })
    );
    let mut different = Vec::new();
    for number in 0..257_u32 {
        let mut name = vec![b'x'; MIB as usize];
        name[..4].copy_from_slice(format!("{number:04}").as_bytes());
        let list = deflated(&name);
        different.extend(uleb128_of(MIB));
        different.extend(uleb128_of(list.len() as u64));
        different.extend(list);
    }
    assert_eq!(for_each_name(&different, |_| {}), Ok(()));
    let kept = names_by_hash(&different);
    assert!(matches!(
        kept,
        Err(SectionsError::Names {
            reason: TOO_MUCH_TO_KEEP,
            ..
        })
    ));
}

#[test]
fn names_go_on_in_the_next_part() {
    // Parts have 32 KiB.
    let names = (1..200).map(|len| vec![b'a' + (len % 26) as u8; len * 10]);
    let names: Vec<_> = names.collect();
    let list = names.join(&SEPARATOR);
    let packed = deflated(&list);
    let section = [
        uleb128_of(list.len() as u64),
        uleb128_of(packed.len() as u64),
        packed,
    ];
    let mut found = Vec::new();
    for_each_name(&section.concat(), |name| found.push(name.to_vec())).unwrap();
    assert_eq!(found, names);
    assert_eq!(
        for_each_name(b"\0\0\x01\0a", |_| {}),
        Ok(()),
        "an empty list"
    );
}

#[test]
fn lists_plain_and_compressed_follow_one_another() {
    let plain = b"\x07\x00one\x01two";
    let one = packed(3, b"six");
    let padded = [plain.as_slice(), b"\0\0\0", &one, b"\0"].concat();
    // More than the checker unpacks at a time.
    let long = vec![b'x'; 5000];
    let list = deflated(&long);
    let header = [0x88, 0x27, list.len() as u8];
    let long = [header.as_slice(), &list].concat();
    let good = check(&[b"", plain, &one, &padded, &long]);
    assert_eq!(good, [const { Ok(()) }; 10]);
}

#[test]
fn each_damage_is_named_with_its_place() {
    let mut broken = packed(3, b"six");
    broken[5] ^= 0xff;
    let huge = [&[0xff; 8], [0x7f, 0, b'x'].as_slice()].concat();
    for (list, reason) in [
        (b"\x05\x00four".as_slice(), "is cut short"),
        (&huge, "is cut short"),
        (b"\x05\x09four", "is cut short"),
        (b"\xff", "has no size"),
        (b"\x05", "has no size"),
        (&[0x80; 12], "has no size"),
        (b"\x03\x00\x01ab", "has an empty name"),
        (b"\x03\x00ab\x01", "has an empty name"),
        (b"\x04\x00a\x01\x01b", "has an empty name"),
        (&broken, "cannot be unpacked"),
        (&packed(4, b"six"), "has a size other than stated"),
        (&packed(2, b"six"), "has a size other than stated"),
        (&packed(3, b"s\x01\x01"), "has an empty name"),
    ] {
        let names = [b"\x01\x00a\0", list].concat();
        let good = b"\x01\x00a".as_slice();
        let checked = check(&[good, &names]).into_iter();
        let errors: Vec<_> = checked.filter_map(Result::err).collect();
        let expected = format!("the list of names at byte 4 of the names section {reason}");
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [expected.clone(), expected], "{list:02x?}");
    }
}

#[test]
fn no_more_is_unpacked_than_a_list_says_nor_twice() {
    // The end is damaged, so only a complete unpacking would notice it.
    let mut list = deflated(&vec![b'x'; 1 << 20]);
    *list.last_mut().unwrap() ^= 1;
    let [low, high] = [list.len() as u8 | 0x80, (list.len() >> 7) as u8];
    let names = [&[3, low, high], list.as_slice()].concat();
    let mut checker = NamesChecker::default();
    let error = checker.check(&names).unwrap_err();
    let says = |reason| SectionsError::Names { at: 0, reason };
    assert_eq!(error, says("has a size other than stated"));
    checker.inflate = None;
    assert_eq!(checker.check(&names), Err(error));
    assert!(checker.inflate.is_none());
}

#[test]
fn all_lists_together_have_a_limit() {
    let largest = |rest: &[u8]| [&[0x80, 0x80, 0x80, 0x80, 0x04], rest].concat();
    let list = deflated(b"six");
    let list = largest(&[&[list.len() as u8], list.as_slice()].concat());
    let reason = |names: &[u8]| match NamesChecker::default().check(names) {
        Err(SectionsError::Names { at, reason }) => (at, reason),
        checked => panic!("{checked:?}"),
    };
    assert_eq!(reason(&list), (0, "has a size other than stated"));
    let two = [b"\x01\x00a".as_slice(), &list].concat();
    assert_eq!(reason(&two), (3, "takes the names to more than 1 GiB"));
}
