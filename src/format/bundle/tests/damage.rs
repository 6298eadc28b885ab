//! One damaged container for each error message.

use crate::format::bundle::tests::synth::*;
use crate::format::bundle::*;

/// All messages about `file`.
fn said(file: &[u8]) -> Vec<String> {
    images(file)
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect()
}

/// The only message about `file`.
fn message(file: &[u8]) -> String {
    let mut said = said(file);
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0)
}

/// The number of code objects that can still be read.
fn whole(file: &[u8]) -> usize {
    images(file).filter(Result::is_ok).count()
}

fn small() -> Vec<u8> {
    bundle(&[(GFX90A, &code_object("one"))])
}

/// The offsets in a bundle: the count, the first entry's offset, size and id length, and its id.
const COUNT: usize = 24;
const OFFSET: usize = 32;
const SIZE: usize = 40;
const ID_SIZE: usize = 48;
const ID: usize = 56;

#[test]
fn a_file_of_another_kind() {
    assert!(message(b"").starts_with("not a 64-bit little-endian ELF: "));
    assert!(message(b"#!/bin/sh\n").starts_with("not a 64-bit little-endian ELF: "));
    let own = std::fs::read("/proc/self/exe").unwrap();
    let none = "no device code: no .hip_fatbin, .nv_fatbin or .llvm.offloading section";
    assert_eq!(message(&own), none);
    assert!(message(&own[..own.len() / 2]).starts_with("not a 64-bit"));
    let headers_alone = [&own[..40], &[0; 20], &[0; 4]].concat();
    let none = "no device code: no section headers and no offload bundle at the start of a page";
    assert_eq!(message(&headers_alone), none);
    let cut = message(&code_object("")[..50]);
    assert!(cut.starts_with("not a code object: "), "{cut}");
}

#[test]
fn bytes_between_containers() {
    let mut file = small();
    file.resize(8192, 0);
    file.extend(b"something");
    file.resize(8192 + 4096, 0);
    file.extend(small());
    let expected = "no device code at offset 0x2000: found bytes [73, 6f, 6d, 65, 74, 68, 69, 6e]";
    assert_eq!(message(&file), expected);
    assert_eq!(whole(&file), 2);
}

#[test]
fn a_bundle_that_is_cut_short() {
    // The host's empty entry also lies beyond the end. Nothing of it is missing.
    let file = bundle(&[(HOST, b""), (GFX90A, &code_object("one"))]);
    for len in 24..file.len() {
        let said = message(&file[..len]);
        assert!(said.contains(" should end at 0x"), "{len}: {said}");
        assert!(
            said.ends_with(&format!("after the last byte at {len:#x}")),
            "{said}"
        );
    }
    let image = message(&file[..4100]);
    let expected = "the image hipv4-amdgcn-amd-amdhsa--gfx90a:xnack- of the offload bundle at offset \
                    0x0 should end at 0x1043, after the last byte at 0x1004";
    assert_eq!(image, expected);
}

#[test]
fn numbers_that_cannot_be() {
    let most = "the offload bundle at offset 0x0 has 18446744073709551615 entries, at most 4096 are allowed";
    assert_eq!(message(&patched(small(), COUNT, &[0xff; 8])), most);
    for (at, part) in [(OFFSET, "image"), (SIZE, "image"), (ID_SIZE, "target id")] {
        for word in [u64::MAX, small().len() as u64 + 1] {
            let said = message(&patched(small(), at, &word.to_le_bytes()));
            assert!(said.starts_with(&format!("the {part}")), "{said}");
        }
    }
}

#[test]
fn a_target_id_that_is_no_text() {
    let expected = "a target id of the offload bundle at offset 0x0 is not UTF-8: [ff, ";
    let said = message(&patched(small(), ID, &[0xff]));
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn images_that_overlap() {
    let (one, other) = (code_object("one"), code_object("another one"));
    let mut file = bundle(&[(GFX90A, &one), (GFX942, &other)]);
    let second_offset = ID + GFX90A.len();
    file = patched(file, second_offset, &4097_u64.to_le_bytes());
    let expected = format!(
        "{GFX942} in the offload bundle at offset 0x0 starts at 0x1001, inside {GFX90A}, which ends \
         at 0x1043"
    );
    assert_eq!(message(&file), expected);
    assert_eq!(whole(&file), 1);
}

#[test]
fn a_target_that_is_there_twice() {
    let file = bundle(&[(GFX90A, &code_object("one")), (GFX90A, &code_object("two"))]);
    let expected = format!("{GFX90A} is in the offload bundle at offset 0x0 twice");
    assert_eq!(message(&file), expected);
    assert_eq!(whole(&file), 1);
}

#[test]
fn images_that_are_no_code_objects() {
    let nested = small();
    let host = host(&[]);
    for (contents, found) in [
        (&b"text"[..], "[74, 65, 78, 74]"),
        (&host, "[7f, 45, 4c, 46, 02, 01, 01, 00]"),
        (&nested, "a bundle itself"),
        (
            b"BC\xc0\xde",
            "LLVM bitcode, which the linker turns into a code object",
        ),
    ] {
        let file = bundle(&[(GFX90A, contents), (GFX942, &code_object("one"))]);
        let start = format!("{GFX90A} in the offload bundle at offset 0x0 is {found}");
        let said = message(&file);
        assert_eq!(said, format!("{start}, expected an ELF for AMDGPU or CUDA"));
        assert_eq!(whole(&file), 1);
    }
    let cut = bundle(&[(GFX90A, &code_object("")[..60])]);
    let start = format!("{GFX90A} in the offload bundle at offset 0x0 is not a code object: ");
    assert!(message(&cut).starts_with(&start));
}

#[test]
fn a_compressed_bundle_of_an_unknown_kind() {
    let version = patched(compressed(&small(), 3, 1), 4, &[4]);
    let expected = "the compressed bundle at offset 0x0 has version 4, expected 1 to 3";
    assert_eq!(message(&version), expected);
    let method = patched(compressed(&small(), 3, 1), 6, &[2]);
    let expected = "the compressed bundle at offset 0x0 has compression method 2, expected 0 (zlib) \
                    or 1 (zstd)";
    assert_eq!(message(&method), expected);
}

#[test]
fn a_compressed_bundle_that_is_cut_short() {
    for method in [0, 1] {
        for version in [1, 2, 3] {
            let file = compressed(&small(), version, method);
            for len in 4..file.len() {
                let said = message(&file[..len]);
                let start = "the compressed bundle at offset 0x0 cannot be unpacked as ";
                let is_known = said
                    .starts_with("the header of the compressed bundle at offset 0x0")
                    || said.starts_with("the compressed data of the compressed bundle at")
                    || version == 1 && said.starts_with(start);
                assert!(is_known, "version {version}, {len} bytes: {said}");
            }
        }
    }
}

#[test]
fn declared_sizes_that_are_wrong() {
    let plain = small();
    let say = |unpacked, size| {
        let header = Compressed {
            unpacked,
            size,
            ..Compressed::new(&plain, 3, 0)
        };
        header.with(&zlib(&plain))
    };
    let len = plain.len() as u64;
    let bomb = "the compressed bundle at offset 0x0 unpacks to more than 4000 bytes, but its header says 4000";
    assert_eq!(message(&say(4000, None)), bomb);
    assert_eq!(whole(&say(4000, None)), 0);
    let less =
        "the compressed bundle at offset 0x0 unpacks to 4163 bytes, but its header says 4164";
    assert_eq!(message(&say(len + 1, None)), less);
    assert_eq!(whole(&say(len + 1, None)), 1);
    let limit = "the compressed bundle at offset 0x0 says that it unpacks to 4294967297 bytes, at most 4294967296 are \
    allowed";
    assert_eq!(message(&say((4 << 30) + 1, None)), limit);
    let header =
        "the compressed bundle at offset 0x0 says that it has 31 bytes, but its header has 32";
    assert_eq!(message(&say(len, Some(31))), header);
    let mut trailing = say(len, Some(32 + zlib(&plain).len() as u64 + 3));
    trailing.extend(b"abc");
    let expected = format!(
        "the compressed bundle at offset 0x0 has {} bytes of compressed data, but its header says {}",
        zlib(&plain).len(),
        zlib(&plain).len() + 3
    );
    assert_eq!(message(&trailing), expected);
    assert_eq!(whole(&trailing), 1);
}

#[test]
fn a_frame_that_needs_a_large_window() {
    // Such a frame would fill 4 TB before a byte comes out.
    let packed = b"\x28\xb5\x2f\xfd\0\xff\x02\0\x10x\x02\0\x10x";
    let file = Compressed::new(b"", 3, 1).with(packed);
    let expected = "the compressed bundle at offset 0x0 cannot be unpacked as zstd: it needs a window \
                    of 4123168604160 bytes, at most 8388608 are allowed";
    assert_eq!(message(&file), expected);
}

#[test]
fn contents_that_are_not_what_was_compressed() {
    let plain = small();
    let header = Compressed {
        hash: *b"\x01\x23\x45\x67\x89\xab\xcd\xef",
        ..Compressed::new(&plain, 3, 1)
    };
    let said = message(&header.with(&zstd(&plain)));
    let start = "the compressed bundle at offset 0x0 unpacks to bytes with the hash ";
    assert!(said.starts_with(start), "{said}");
    assert!(
        said.ends_with(", but its header says 0123456789abcdef"),
        "{said}"
    );
    assert_eq!(whole(&header.with(&zstd(&plain))), 1);
}

#[test]
fn what_is_wrong_inside_a_compressed_container_is_told_as_such() {
    let nested = compressed(&compressed(&small(), 3, 1), 3, 1);
    let expected = "inside the unpacked compressed bundle at offset 0x0: no device code at offset \
                    0x0: found bytes [43, 43, 4f, 42, ";
    assert!(
        message(&nested).starts_with(expected),
        "{}",
        message(&nested)
    );
    let text = compressed(&bundle(&[(GFX90A, b"text")]), 3, 1);
    let expected = "inside the unpacked compressed bundle at offset 0x0: hipv4-";
    assert!(message(&text).starts_with(expected));
    let text = compressed_offload_binary(&[("gfx90a", b"text")], zstd);
    let expected = "inside the unpacked offload binary at offset 0x0: hip-";
    assert!(message(&text).starts_with(expected));
}

#[test]
fn offload_binaries_with_wrong_numbers() {
    let one = code_object("one");
    let file = || offload_binary(2, &[("gfx90a", &one)]);
    let huge = [0xff; 8];
    for (at, bytes, expected) in [
        (
            4,
            &[4][..],
            "the offload binary at offset 0x0 has version 4, expected 1 to 3",
        ),
        (
            4,
            &[0],
            "the offload binary at offset 0x0 has version 0, expected 1 to 3",
        ),
        (
            8,
            &huge,
            "the contents of the offload binary at offset 0x0 should end at 0xffffffffffffffff",
        ),
        (
            8,
            &[0, 0],
            "the offload binary at offset 0x0 says that it has 0 bytes, but its header has 32",
        ),
        (
            16,
            &huge,
            "the list of entries of the offload binary at offset 0x0 should end at 0xffff",
        ),
        (
            24,
            &huge,
            "the offload binary at offset 0x0 has 18446744073709551615 entries, at most 4096 are",
        ),
        (
            40,
            &huge,
            "the strings of the offload binary at offset 0x0 should end at 0x1000000000000002f",
        ),
        (
            48,
            &huge,
            "the offload binary at offset 0x0 has 18446744073709551615 entries, at most 64 are",
        ),
        (
            56,
            &huge,
            "the image hip-amdgcn-amd-amdhsa--gfx90a of the offload binary at offset 0x0",
        ),
        (
            64,
            &huge,
            "the image hip-amdgcn-amd-amdhsa--gfx90a of the offload binary at offset 0x0",
        ),
    ] {
        let said = message(&patched(file(), at, bytes));
        assert!(said.starts_with(expected), "byte {at}: {said}");
    }
    let declared = |unpacked: u64| {
        let whole = compressed_offload_binary(&[("gfx90a", &one)], zlib);
        patched(whole, 32, &unpacked.to_le_bytes())
    };
    let limit = "the offload binary at offset 0x0 says that it unpacks to 4294967297 bytes, at most 4294967296 are \
    allowed";
    assert_eq!(message(&declared((4 << 30) + 1)), limit);
    let more =
        "the offload binary at offset 0x0 unpacks to more than 60 bytes, but its header says 60";
    assert_eq!(message(&declared(100)), more);
    let damaged = patched(declared(1000), 40, &[0; 16]);
    let start = "the offload binary at offset 0x0 cannot be unpacked as zlib: ";
    assert!(message(&damaged).starts_with(start));
}

/// Two inputs that the fuzzer's `bundle` found. In the first, an empty binary after other bytes seemed to end
/// before its start. The second, of no bytes at all, was read again and again.
#[test]
fn offload_binaries_without_anything() {
    let empty = offload_binary(2, &[]);
    let one = offload_binary(2, &[("gfx90a", &code_object("one"))]);
    let file = [one.clone(), empty.clone(), one].concat();
    let sizes: Vec<usize> = containers(&file).map(|found| found.unwrap().size).collect();
    assert_eq!(sizes, [file.len() / 2 - 16, 32, file.len() / 2 - 16]);
    let nothing = patched(patched(empty, 8, &[0; 8]), 16, &[0; 8]);
    assert_eq!(containers(&nothing).take(3).count(), 1);
}

#[test]
fn much_damage_is_not_told_forever() {
    let file = b"\x10\xff\x10\xad\xff\xff\0\0".repeat(1000);
    let said = said(&file);
    assert_eq!(said.len(), 17);
    assert_eq!(
        said[16],
        "16 damaged containers: rocov skipped the rest of the file"
    );
}

/// The strings of any number of entries may share bytes.
#[test]
fn ids_that_are_longer_than_any() {
    const ENTRIES: usize = 100;
    let entries = 32;
    let strings = entries + 40 * ENTRIES;
    let keys = strings + 2 * 24;
    let value = keys + 16;
    let length = 1 << 20;
    let with = |key: &[u8; 8], size: usize| {
        let mut file = vec![0x10, 0xff, 0x10, 0xad, 2, 0, 0, 0];
        file.extend(words(&[length as u64, entries as u64, ENTRIES as u64]));
        for _ in 0..ENTRIES {
            file.extend(words(&[4 << 16, strings as u64, 2, 0, 0]));
        }
        file.extend(words(&[keys as u64, value as u64, 4]));
        file.extend(words(&[keys as u64 + 8, value as u64, size as u64]));
        file.extend(b"triple\0\0");
        file.extend(key);
        file.resize(length, b'x');
        let container = containers(&file).next().unwrap().unwrap();
        let ids: Vec<String> = container.images.into_iter().map(|image| image.id).collect();
        let said = container.damage.iter().map(ToString::to_string);
        (ids, said.collect::<Vec<_>>())
    };
    let too_long = |found: usize| {
        format!(
            "a target id of the offload binary at offset 0x0 has {found} bytes, at most 1024 are allowed"
        )
    };
    let all = length - value;
    assert_eq!(
        with(b"arch\0\0\0\0", all),
        (vec![], vec![too_long(all); ENTRIES])
    );
    assert_eq!(
        with(b"arch\0\0\0\0", 1025),
        (vec![], vec![too_long(1025); ENTRIES])
    );
    // The longest allowed id.
    let (ids, said) = with(b"arch\0\0\0\0", 1024);
    let longest = format!("hip-xxxx--{}", "x".repeat(1024));
    assert!(ids == vec![longest; ENTRIES] && said.is_empty(), "{said:?}");
    // rocov does not read the values of other keys, even if they lie beyond the end.
    for key in [b"kind\0\0\0\0", b"triplex\0"] {
        assert_eq!(
            with(key, usize::MAX),
            (vec!["hip-xxxx--".into(); ENTRIES], vec![])
        );
    }
}
