//! Tests of the bundle reader, on bundles put together by hand from the format's description.
//! That the ones clang writes are read is shown by the tests of the command `rocov report`.

use super::*;

const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-";
const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// A bundle whose contents start at 4096, as clang aligns them, without its last padding.
fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    let mut contents = Vec::new();
    header.extend((entries.len() as u64).to_le_bytes());
    for (id, bytes) in entries {
        let offset = 4096 + contents.len() as u64;
        for word in [offset, bytes.len() as u64, id.len() as u64] {
            header.extend(word.to_le_bytes());
        }
        header.extend(id.as_bytes());
        contents.extend_from_slice(bytes);
    }
    header.resize(4096, 0);
    header.extend(contents);
    header
}

fn error_of(data: &[u8]) -> String {
    let mut all = bundles(data);
    let error = all.find_map(Result::err).expect("the data is malformed");
    assert!(all.next().is_none(), "the iterator ends after an error");
    error.to_string()
}

/// Replaces the 8-byte word at `at`.
fn patched(mut data: Vec<u8>, at: usize, word: u64) -> Vec<u8> {
    data[at..at + 8].copy_from_slice(&word.to_le_bytes());
    data
}

#[test]
fn entries_come_with_their_bytes() {
    let data = bundle(&[(HOST, b""), (GFX90A, b"device code")]);
    assert!(is_bundle(&data));
    let found: Vec<_> = bundles(&data).collect::<Result<_, _>>().unwrap();
    assert_eq!(found.len(), 1);
    let [host, device] = found[0].entries[..] else {
        panic!("{found:?}")
    };
    assert_eq!((host.target_id, host.target(), host.size), (HOST, None, 0));
    assert_eq!(device.target(), Some("gfx90a:xnack-"));
    assert_eq!((device.offset, device.size), (4096, 11));
    assert_eq!(device.bytes, b"device code");
}

#[test]
fn bundles_follow_each_other_after_zeros() {
    let mut data = bundle(&[(GFX90A, b"one")]);
    data.resize(8192, 0);
    data.extend(bundle(&[(GFX90A, b"two"), (HOST, b"")]));
    data.resize(8192 + 4096 + 100, 0);
    let found: Vec<_> = bundles(&data).collect::<Result<_, _>>().unwrap();
    let contents: Vec<_> = found.iter().map(|bundle| bundle.entries[0].bytes).collect();
    assert_eq!(contents, [b"one", b"two"]);
    assert_eq!((found[0].offset, found[1].offset), (0, 8192));
}

#[test]
fn nothing_and_zeros_hold_no_bundle() {
    assert!(bundles(b"").next().is_none());
    assert!(bundles(&[0; 4096]).next().is_none());
    let empty = bundle(&[]);
    let found: Vec<_> = bundles(&empty).collect::<Result<_, _>>().unwrap();
    assert_eq!(found[0].entries, []);
}

#[test]
fn target_is_that_of_amdgcn_entries_alone() {
    let target = |target_id| {
        Entry {
            target_id,
            offset: 0,
            size: 0,
            bytes: b"",
        }
        .target()
    };
    assert_eq!(target("hip-amdgcn-amd-amdhsa--gfx942"), Some("gfx942"));
    assert_eq!(target("openmp-amdgcn-amd-amdhsa--gfx90a"), Some("gfx90a"));
    assert_eq!(target("hip-spirv64-amd-amdhsa--amdgcnspirv"), None);
    assert_eq!(target("openmp-nvptx64-nvidia-cuda--sm_70"), None);
    assert_eq!(target("host-x86_64-unknown-linux--"), None);
    assert_eq!(target(""), None);
}

#[test]
fn compressed_bundles_are_refused_with_the_remedy() {
    let compressed = b"CCOB\x03\0\x01\0";
    assert!(is_bundle(compressed));
    let mut data = bundle(&[(GFX90A, b"one")]);
    data.resize(8192, 0);
    data.extend(compressed);
    assert_eq!(
        error_of(&data),
        "compressed offload bundle at offset 0x2000, which is not read yet: \
         compile with --no-offload-compress"
    );
}

#[test]
fn other_bytes_are_named() {
    assert_eq!(
        error_of(b"\0\0\x10\xff\x10\xad"),
        "no offload bundle at offset 0x2: found bytes [10, ff, 10, ad]"
    );
}

#[test]
fn every_cut_is_refused_or_leaves_no_bundle() {
    let whole = bundle(&[(HOST, b""), (GFX90A, b"device code")]);
    for length in 1..whole.len() {
        let found: Result<Vec<_>, _> = bundles(&whole[..length]).collect();
        assert!(found.is_err(), "cut to {length} bytes: {found:?}");
    }
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let data = bundle(&[(GFX90A, b"device code")]);
    let count = MAGIC.len();
    let (offset, size, id) = (count + 8, count + 16, count + 24);
    for (at, part) in [
        (count, "entries"),
        (offset, "contents"),
        (size, "contents"),
        (id, "target id"),
    ] {
        for word in [u64::MAX, u64::MAX / 24, data.len() as u64 + 1] {
            let message = error_of(&patched(data.clone(), at, word));
            assert!(message.starts_with(&format!("the {part} of")), "{message}");
        }
    }
}

#[test]
fn a_target_id_must_be_text() {
    let mut data = bundle(&[("x", b"")]);
    data[MAGIC.len() + 8 + ENTRY_HEADER_BYTES] = 0xff;
    assert_eq!(
        error_of(&data),
        "target id [ff] of the offload bundle at offset 0x0 is not UTF-8"
    );
}

#[test]
fn a_host_file_without_kernels_has_no_fat_binary() {
    let own = std::fs::read("/proc/self/exe").unwrap();
    assert!(fat_binary(&own).unwrap().is_none());
    assert!(fat_binary(b"#!/bin/sh\n").is_err());
    assert!(fat_binary(&own[..own.len() / 2]).is_err());
}
