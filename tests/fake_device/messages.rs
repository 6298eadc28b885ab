//! The exact message for each kind of malformed input: people search for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocov::device::{DeviceError, DeviceRange};
use rocov::drain::Session;
use rocov::format::bounds_table::Bounds;
use rocov::format::profraw::{
    Counts, MAX_COUNT, ProfileError, RawProfile, SavedSections, Sum, Version, encode,
};
use rocov::store::{Expansion, Label, OutputError, ProfileName, add_to_pool};
use rocov::support::diagnostic::Remedy;
use rocov::validate::{SectionRanges, SectionsError, check_records};

use crate::support::made_up::MadeUp;
use crate::versions::{FRONT_END, compiled};
use crate::{FIRST, output};

fn profile() -> Vec<u8> {
    encode(&MadeUp::new(2, 3).parts())
}

fn parse(file: &[u8]) -> String {
    RawProfile::parse(file).expect_err("damage").to_string()
}

#[test]
fn raw_profiles() {
    let good = profile();
    assert_eq!(
        parse(&[0x7f; 16]),
        "not a raw profile: magic 0x7f7f7f7f7f7f7f7f, expected 0xff6c70726f667281"
    );
    assert_eq!(
        parse(&good[..15]),
        "raw profile is cut short: the header should end at byte 16, but the file has 15"
    );
    let mut version = good.clone();
    version[8] = 7;
    assert_eq!(
        parse(&version),
        "unknown raw profile version 7, expected 8 to 11"
    );
    // Ids of 4 bytes would shift all following parts by 4 in a rewritten file.
    let mut ids = good.clone();
    ids[16] = 4;
    ids.splice(128..128, [0; 4]);
    assert_eq!(
        parse(&ids),
        "raw profile has 4 bytes of binary ids, which is not a multiple of 8"
    );
    // The words of the header, by their positions: binary ids, records, padding, counters, padding,
    // bitmap, padding, names. Each has this number of bytes before it.
    let parts = [
        (2, 1, 0, "binary ids"),
        (3, 64, 0, "data"),
        (4, 1, 128, "padding"),
        (5, 8, 128, "counters"),
        (6, 1, 176, "padding"),
        (7, 1, 176, "bitmap"),
        (8, 1, 176, "padding"),
        (9, 1, 176, "names"),
    ];
    for (word, size, before, part) in parts {
        for count in [1 << 32, u64::MAX] {
            // Binary ids are whole words.
            let count = if word == 2 { count & !7 } else { count };
            let mut file = good.clone();
            file[8 * word..][..8].copy_from_slice(&count.to_le_bytes());
            let end = u64::checked_mul(count, size).and_then(|len| len.checked_add(128 + before));
            let end = end.unwrap_or(u64::MAX);
            let len = good.len();
            let expected = format!(
                "raw profile is cut short: {part} should end at byte {end}, but the file has {len}"
            );
            assert_eq!(parse(&file), expected);
        }
    }
}

#[test]
fn sums() {
    let good = profile();
    let twice = good.repeat(2);
    let len = good.len();
    let of = |file: &[u8]| Sum::new(file).expect_err("damage").to_string();
    assert_eq!(
        of(&twice),
        format!(
            "raw profile continues after its names, at byte {len}, for {len} bytes: rocov does not add up value \
            profiles, virtual tables or several profiles in one file"
        )
    );
    let add = |file: &[u8]| {
        let mut sum = Sum::new(good.as_slice()).expect("a profile");
        sum.add(file).expect_err("damage").to_string()
    };
    let other = encode(&MadeUp::new(1, 3).parts());
    assert_eq!(
        add(&other),
        "it is a profile of other code, although its name says otherwise"
    );
    let mut counts = Counts::from_profile(&good).expect("a profile");
    let version = Version::from_word(10).expect("a known version");
    let fewer = Counts::from_profile(&other).expect("a profile");
    assert_eq!(
        counts.add(&fewer, &version).unwrap_err().to_string(),
        "counters cannot be added: 24 bytes to 48"
    );
}

#[test]
fn pools() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("pool");
    let ours = MadeUp::new(2, 3);
    let refused = |contents: &[u8]| {
        fs::write(&path, contents).expect("a pool");
        let error = add_to_pool(&path, &ours.parts()).expect_err("damage");
        let line = error.to_string();
        let start = format!("cannot add to {}: ", path.display());
        line.strip_prefix(&start)
            .expect("the pool is named")
            .to_owned()
    };
    assert_eq!(
        refused(b"0123456789abcdef"),
        "not a raw profile: magic 0x3736353433323130, expected 0xff6c70726f667281"
    );
    fs::remove_file(&path).expect("a pool");
    add_to_pool(&path, &ours.parts()).expect("a new pool");
    let mut pool = fs::read(&path).expect("a pool");
    let profile = RawProfile::parse(&pool).expect("a pool");
    let counters = profile.sections.counters;
    pool[counters][0] ^= 1;
    assert_eq!(
        refused(&pool),
        "its counts are incomplete: the machine went down while they were being written, or another process \
         is adding to it now"
    );
    // This test does not wait for a minute.
    let locked = OutputError::Locked {
        path: PathBuf::from("d/pool"),
        waited: Duration::from_millis(60_010),
    };
    assert_eq!(
        locked.to_string(),
        "cannot lock d/pool: held by another process for 60 seconds"
    );
    let not_again = OutputError::Locked {
        path: PathBuf::from("d/other"),
        waited: Duration::ZERO,
    };
    assert_eq!(
        not_again.to_string(),
        "cannot lock d/other: held by another process; rocov did not wait, because another lock is stuck"
    );
}

#[test]
fn saved_sections() {
    let saved = SavedSections {
        word: 12,
        load_delta: 0,
        sections: Vec::new(),
    };
    let good = saved.encode();
    let with = |at: usize, word: u64| {
        let mut file = good.clone();
        file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        SavedSections::decode(&file)
            .expect_err("damage")
            .to_string()
    };
    assert_eq!(
        with(0, 0),
        "not a raw profile: magic 0x0000000000000000, expected 0x636573766f636f72"
    );
    assert_eq!(with(8, 2), "saved sections of format 2, expected 1");
    assert_eq!(
        with(32, 3),
        "raw profile is cut short: the list of sections should end at byte 136, but the file has 40"
    );
    let error = SavedSections::decode(&good[..39]).expect_err("damage");
    assert_eq!(
        error.to_string(),
        "raw profile is cut short: the header should end at byte 40, but the file has 39"
    );
}

/// Sections of a code object at `BASE`: two records, three counters each.
const BASE: u64 = 0x1000;

fn bounds() -> Bounds {
    Bounds {
        data: (BASE, BASE + 128),
        counters: (BASE + 128, BASE + 176),
        names: (BASE + 176, BASE + 184),
        ..Bounds::default()
    }
}

fn ranges(bounds: &Bounds) -> Result<SectionRanges, SectionsError> {
    let segment = DeviceRange {
        start: BASE,
        len: 4096,
    };
    let version = Version::from_word(10).expect("a known version");
    SectionRanges::check(bounds, segment, Some(&version))
}

#[test]
fn sections() {
    let mut overlapping = bounds();
    overlapping.names.0 -= 8;
    assert_eq!(
        ranges(&overlapping).unwrap_err().to_string(),
        "the counters section 0x1080..0x10b0 overlaps the names section 0x10a8..0x10b8"
    );

    // No table, no symbol, and no clang that gives its version.
    let mut device = compiled("clang++-22", &FRONT_END);
    device.hide_symbols(FIRST);
    let image = device.image_mut(FIRST);
    let mut places = 0..image.len() - 13;
    while let Some(at) = places.find(|at| image[*at..].starts_with(b"clang version")) {
        image[at] = b'k';
    }
    for name in ["__rocov_raw_version", "__llvm_profile_sections"] {
        let at = (0..image.len()).find(|at| image[*at..].starts_with(name.as_bytes()));
        image[at.expect("the symbol's name")] = b'.';
    }
    let outcome = Session::default().drain(&device, &output().1);
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let expected = " on gfx90a 0: counts are lost: no version word: neither a table nor \
                    __llvm_profile_raw_version nor a clang version in .comment; compile with \
                    -include rocov_device.h";
    assert!(loss.to_string().ends_with(expected), "{loss}");
}

#[test]
fn records() {
    let version = Version::from_word(10).expect("a known version");
    let ranges = ranges(&bounds()).expect("good sections");
    // NameRef, FuncHash, CounterPtr, BitmapPtr, FunctionPointer, Values; NumCounters, value sites.
    let record = |place: u64, start: u64, count: u64| {
        let pointer = (128 + start).wrapping_sub(64 * place);
        [0xa0 + place, 7, pointer, 0, 0, 0, count, 0]
            .map(u64::to_le_bytes)
            .concat()
    };
    let mut counters = vec![0; 48];
    let mut said = |second: Vec<u8>, count: u64| {
        counters[40..].copy_from_slice(&count.to_le_bytes());
        let records = [record(0, 0, 3), second].concat();
        let checked = check_records(&records, &counters, &ranges, &version);
        let [defect] = checked.defects.as_slice() else {
            panic!("{:?}", checked.defects)
        };
        let line = defect.to_string();
        let line = line.strip_prefix("record 1 (name hash 0x00000000000000a1) ");
        let line = line.and_then(|rest| rest.strip_suffix("; its counts are left out"));
        line.expect("the record, and what becomes of it").to_owned()
    };
    assert_eq!(said(record(1, 24, 0), 0), "has no counters");
    assert_eq!(
        said(record(1, 32, 3), 0),
        "claims 24 bytes at byte 32 of a counters section of 48 bytes"
    );
    assert_eq!(
        said(record(1, 16, 3), 0),
        "claims the counters of record 0 at byte 16"
    );
    assert_eq!(
        said(record(1, 24, 3), MAX_COUNT + 1),
        "has a count of 72057594037927937, but at most 72057594037927936 is allowed"
    );
}

#[test]
fn names_of_files() {
    let refused = |pattern: &str| {
        let name = ProfileName::parse(pattern, &Expansion::default(), Path::new("/d"));
        name.expect_err("a bad pattern").diagnostic().to_string()
    };
    assert_eq!(
        refused("a-%q.profraw"),
        "the profile name \"a-%q.profraw\" contains an unknown specifier, \"%q\": use %p, %h, %t, %b, %m, %1m to \
         %9m, or %%"
    );
    assert_eq!(
        refused("%c.profraw"),
        "%c in the profile name \"%c.profraw\" maps counters into the file as they change, but device memory cannot \
        be mapped: leave it out"
    );
    assert_eq!(
        refused("d/"),
        "the profile name \"d/\" has no file name: name a file such as cov/%p.profraw, or /dev/null to write no \
        profiles"
    );
    let error = "a/../b".parse::<Label>().expect_err("a bad label");
    assert_eq!(
        error.to_string(),
        "the label \"a/../b\" cannot be used: use 1 to 8 names separated by /, none of them \
         . or .., each 1 to 128 bytes long (1 to 255 as a directory)"
    );
}

/// A version that only [`ProfileError`] has: the number unchanged, whatever its size.
#[test]
fn versions() {
    let unknown = |word: u64| {
        let error = Version::from_word(word).expect_err("not known");
        assert!(matches!(error, ProfileError::UnknownVersion { .. }));
        error.to_string()
    };
    for (word, number) in [
        (12, 12),
        (1 << 56 | 12, 12),
        (1_u64 << 32 | 10, (1_u64 << 32) + 10),
        // The records of such a version would be in debug info.
        (1 << 59 | 10, (1 << 59) + 10),
    ] {
        let expected = format!("unknown raw profile version {number}, expected 8 to 11");
        assert_eq!(unknown(word), expected);
    }
}

#[test]
fn devices() {
    let range = |start, len| DeviceRange { start, len };
    let gone = std::io::Error::new(std::io::ErrorKind::NotFound, "it is not there any more");
    for (error, said) in [
        (DeviceError::NoCpu, "the HSA runtime lists no CPU agent"),
        (
            DeviceError::UnknownAgent { handle: 0xa1 },
            "the HSA runtime lists no GPU agent 0xa1",
        ),
        (
            DeviceError::NoMemory { bytes: 1 << 40 },
            "out of memory: 1099511627776 bytes are needed",
        ),
        (
            DeviceError::NotAllocated {
                range: range(0x1000, 0x20),
                found: range(0xff0, 0x18),
            },
            "0x1000..0x1020 is not inside one device allocation (found 0xff0..0x1008)",
        ),
        (
            DeviceError::Image {
                uri: "file:///a.co".into(),
                source: gone,
            },
            "the ELF of file:///a.co cannot be read: it is not there any more",
        ),
        (
            DeviceError::Call {
                call: "hsa_iterate_agents",
                status: 0x1000,
            },
            "hsa_iterate_agents failed with status 0x1000",
        ),
        (
            DeviceError::MissingFunction {
                library: "libhsa-runtime64.so.1",
                symbol: "hsa_queue_create",
                reason: "undefined symbol".into(),
            },
            "libhsa-runtime64.so.1 has no hsa_queue_create: undefined symbol",
        ),
        (
            DeviceError::Stuck {
                agent: 0xa1,
                waited: Duration::from_millis(60_010),
            },
            "a copy from or to GPU agent 0xa1 has not ended after 60 seconds",
        ),
    ] {
        assert_eq!(error.to_string(), said);
    }
}
