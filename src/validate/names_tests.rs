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
    twice.into_iter().map(|it| checker.check(it)).collect()
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
        (&packed(4, b"six"), "has another size than it says"),
        (&packed(2, b"six"), "has another size than it says"),
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
    assert_eq!(error, says("has another size than it says"));
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
    assert_eq!(reason(&list), (0, "has another size than it says"));
    let two = [b"\x01\x00a".as_slice(), &list].concat();
    assert_eq!(reason(&two), (3, "takes the names to more than 1 GiB"));
}
