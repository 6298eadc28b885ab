//! Coverage mappings byte by byte, of forms that compilers do not write.

use std::io::Write;

use flate2::write::ZlibEncoder;

use super::*;
use crate::format::codeobject::coverage_mapping::file_list::{FileList, WITH_DIRECTORY};
use crate::format::codeobject::name_ref;

/// The ULEB128 bytes of a number of any length.
fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn names(names: &[&str]) -> Vec<u8> {
    let name = |name: &&str| [number(name.len() as u64), name.as_bytes().to_vec()].concat();
    names.iter().flat_map(name).collect()
}

/// A list of `count` files: the declared sizes, then the bytes.
fn list(count: u64, size: u64, compressed: u64, bytes: &[u8]) -> Vec<u8> {
    [
        number(count),
        number(size),
        number(compressed),
        bytes.to_vec(),
    ]
    .concat()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The section with one list.
fn covmap(list: &[u8]) -> Vec<u8> {
    let header = [0, list.len() as u32, 0, 6].map(u32::to_le_bytes).concat();
    let mut section = [header, list.to_vec()].concat();
    section.resize(section.len().next_multiple_of(8), 0);
    section
}

/// The record of the function `name` in a file of a list.
fn covfun(name: &str, function_hash: u64, list: &[u8], mapping: &[u8]) -> Vec<u8> {
    let mut record = name_ref(name.as_bytes()).to_le_bytes().to_vec();
    record.extend((mapping.len() as u32).to_le_bytes());
    record.extend(function_hash.to_le_bytes());
    record.extend(name_ref(list).to_le_bytes());
    record.extend(mapping);
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// The source of `f` in file 1 of a list.
fn source(list: &[u8]) -> Result<Option<String>, String> {
    source_in(&covmap(list), &covfun("f", 1, list, &[1, 1]))
}

fn source_in(maps: &[u8], functions: &[u8]) -> Result<Option<String>, String> {
    let wanted = name_ref(b"f");
    let sources = sources(maps, functions, &BTreeSet::from([wanted]));
    let mut sources = sources.map_err(|error| error.to_string())?;
    Ok(sources.remove(&wanted))
}

#[test]
fn lists_may_be_compressed() {
    let plain = names(&["/home", "src/f.hip"]);
    let small = deflated(&plain);
    let (size, len) = (plain.len() as u64, small.len() as u64);
    let found = Ok(Some("/home/src/f.hip".to_owned()));
    assert_eq!(source(&list(2, size, 0, &plain)), found);
    assert_eq!(source(&list(2, size, len, &small)), found);
}

#[test]
fn lists_that_do_not_inflate_to_what_they_say() {
    let plain = names(&["/home", "src/f.hip"]);
    let small = deflated(&plain);
    let (size, len) = (plain.len() as u64, small.len() as u64);
    let inflates = |expected: u64, reason: &str| {
        Err(format!(
            "damaged coverage mapping: a list of files that should inflate to {expected} bytes: \
             {reason}"
        ))
    };
    assert_eq!(
        source(&list(2, 3, len, &small)),
        inflates(3, "there are more")
    );
    assert_eq!(
        source(&list(2, 99, len, &small)),
        inflates(99, "there are 16")
    );
    let garbage = [0xff; 9];
    assert_eq!(
        source(&list(2, size, 9, &garbage)),
        inflates(size, "corrupt deflate stream")
    );
    // rocov inflates a bomb no further than declared, and limits the declared size.
    let zeros = deflated(&vec![0; 64 << 20]);
    let len = zeros.len() as u64;
    assert_eq!(
        source(&list(2, 5, len, &zeros)),
        inflates(5, "there are more")
    );
    assert_eq!(
        source(&list(2, 64 << 20, len, &zeros)),
        Err(
            "damaged coverage mapping: a list of files of 67108864 bytes, expected at most \
             16777216"
                .into()
        )
    );
}

#[test]
fn places_and_lengths_beyond_the_end() {
    let plain = names(&["/home"]);
    assert_eq!(
        source(&list(1, 6, 0, &plain)),
        Err("damaged coverage mapping: a function in file 1 of a list of 1".into())
    );
    // The count does not matter.
    assert_eq!(
        source(&list(1 << 62, 6, 0, &plain)),
        Err(
            "damaged coverage mapping: no number at byte 17 of __llvm_covmap, expected one up to \
             2^63"
                .into()
        )
    );
    assert_eq!(
        source(&list(2, 6, 0, &[number(1 << 40), plain].concat())),
        Err(
            "damaged coverage mapping: 1099511627776 bytes at byte 9 of __llvm_covmap, which has \
             15"
            .into()
        )
    );
    assert_eq!(
        source(&[0xff; 20]),
        Err(
            "damaged coverage mapping: no number at byte 0 of __llvm_covmap, expected one up to \
             2^63"
                .into()
        )
    );
}

#[test]
fn a_stand_in_gives_way_to_the_function() {
    let unused = list(2, 0, 0, &names(&["/a", "unused.hip"]));
    let used = list(2, 0, 0, &names(&["/a", "used.hip"]));
    let maps = [covmap(&unused), covmap(&used)].concat();
    let records = [
        covfun("f", 0, &unused, &[1, 1]),
        covfun("f", 1, &used, &[1, 1]),
    ];
    for functions in [
        records.concat(),
        [records[1].clone(), records[0].clone()].concat(),
    ] {
        assert_eq!(source_in(&maps, &functions), Ok(Some("/a/used.hip".into())));
    }
    assert_eq!(
        source_in(&maps, &records[0]),
        Ok(Some("/a/unused.hip".into()))
    );
    assert_eq!(
        source_in(&[], &records[0]),
        Ok(None),
        "a list that is not there"
    );
    assert_eq!(source_in(&maps, &covfun("g", 1, &used, &[1, 1])), Ok(None));
    assert_eq!(
        source_in(&maps, &covfun("f", 1, &used, &[0])),
        Ok(None),
        "no file"
    );
}

/// A list of a directory, two files in it and one from the root, deflated.
fn with_directory(directory: &str) -> Vec<u8> {
    let files = ["a".repeat(96), "b".repeat(97)];
    let plain = names(&[directory, &files[0], &files[1], "/c"]);
    let small = deflated(&plain);
    list(4, plain.len() as u64, small.len() as u64, &small)
}

#[test]
fn paths_are_no_longer_than_files_can_have() {
    let too_long = |found: usize| {
        Err(format!(
            "damaged coverage mapping: a path of {found} bytes, expected at most 4096"
        ))
    };
    let directory = format!("/{}", "d".repeat(3999));
    let list = with_directory(&directory);
    let of = |list: &[u8], file: u8| source_in(&covmap(list), &covfun("f", 1, list, &[1, file]));
    let longest = format!("{directory}/{}", "a".repeat(96));
    assert_eq!(of(&list, 1), Ok(Some(longest)));
    assert_eq!(of(&list, 2), too_long(4097));
    assert_eq!(of(&list, 3), Ok(Some("/c".into())));
    // A directory of the longest size takes its own bytes only. The other paths do not repeat it.
    let list = with_directory(&"d".repeat(1 << 20));
    assert_eq!(of(&list, 0), too_long(1 << 20));
    assert_eq!(of(&list, 1), too_long((1 << 20) + 96));
    assert_eq!(of(&list, 3), Ok(Some("/c".into())));
}

#[test]
fn only_paths_that_are_asked_for_are_put_together() {
    let mut all = vec!["/directory"];
    all.extend(["a"; 1000]);
    let list = list(1001, 0, 0, &names(&all));
    let list = FileList {
        bytes: &list,
        version: WITH_DIRECTORY,
    };
    let mut room = 30;
    let wanted = BTreeSet::from([7, 999]);
    let found = list.paths(&wanted, &mut room).unwrap();
    let path = || "/directory/a".to_owned();
    assert_eq!(found, HashMap::from([(7, path()), (999, path())]));
    assert_eq!(room, 6);
    let error = list.paths(&wanted, &mut room).unwrap_err();
    assert_eq!(error, CoverageError::Paths);
}

#[test]
fn paths_have_no_dots() {
    for (directory, name, path) in [
        ("/a/b", "./c/../d", "/a/b/d"),
        ("/a/b", "../../../c", "/c"),
        ("/a//b", "../c", "/a/c"),
        (".", "c", "c"),
        (".", "../../c", "../../c"),
        ("a", "../../c", "../c"),
        ("/a", "/b/../c", "/b/../c"),
    ] {
        let list = list(2, 0, 0, &names(&[directory, name]));
        assert_eq!(source(&list), Ok(Some(path.into())), "{directory} {name}");
    }
}

/// A list that is equal to the last one is not inflated again. One that differs, is damaged, or claims another size is.
#[test]
fn lists_one_after_the_other_have_their_own_names() {
    let compressed = |name: &str, more: u64| {
        let bytes = names(&["/src", name]);
        let packed = deflated(&bytes);
        list(2, bytes.len() as u64 + more, packed.len() as u64, &packed)
    };
    let [one, two] = ["a.hip", "b.hip"].map(|name| compressed(name, 0));
    let expect = |list: &[u8], name: &str| {
        assert_eq!(source(list), Ok(Some(format!("/src/{name}"))));
    };
    for _ in 0..2 {
        expect(&one, "a.hip");
        expect(&one, "a.hip");
        expect(&two, "b.hip");
    }
    source(&compressed("b.hip", 1)).unwrap_err();
    expect(&two, "b.hip");
}
