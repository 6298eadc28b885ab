//! The contents of whole containers.

use crate::format::bundle::tests::synth::*;
use crate::format::bundle::*;
use crate::format::codeobject::Identity;

/// Targets and bytes of all code objects in `file`. Panics at any error.
fn found(file: &[u8]) -> Vec<(Option<String>, Vec<u8>)> {
    images(file)
        .map(|image| {
            let image = image.unwrap();
            assert_eq!(image.identity, Identity::from_image(&image.bytes).unwrap());
            (image.target, image.bytes.to_vec())
        })
        .collect()
}

fn two() -> (Vec<u8>, Vec<u8>) {
    (code_object("one"), code_object("another one"))
}

/// The result of [`found`] for a container of [`two`].
fn expected() -> Vec<(Option<String>, Vec<u8>)> {
    let (one, other) = two();
    vec![
        (Some("gfx90a:xnack-".to_owned()), one),
        (Some("gfx942".to_owned()), other),
    ]
}

fn bundle_of_two() -> Vec<u8> {
    let (one, other) = two();
    bundle(&[(HOST, b""), (GFX90A, &one), (GFX942, &other)])
}

#[test]
fn a_plain_bundle_has_entries_with_their_places() {
    let file = bundle_of_two();
    let all: Vec<_> = containers(&file).collect::<Result<_, _>>().unwrap();
    let [container] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(container.packing, Packing::Bundle);
    assert_eq!((container.offset, container.size), (0, file.len()));
    let [host, one, other] = &container.images[..] else {
        panic!("{container:?}")
    };
    assert_eq!((&*host.id, host.content()), (HOST, Content::Empty));
    assert_eq!((&*one.id, one.offset), (GFX90A, 4096));
    assert_eq!(other.bytes.range_in_file(), Some(other.offset..file.len()));
    assert_eq!(found(&file), expected());
}

#[test]
fn compressed_bundles_of_all_versions_unpack_to_the_same() {
    let plain = bundle_of_two();
    for version in 1..=3 {
        for method in [0, 1] {
            let file = compressed(&plain, version, method);
            assert_eq!(
                found(&file),
                expected(),
                "version {version}, method {method}"
            );
            let container = containers(&file).next().unwrap().unwrap();
            let unpacked = plain.len() as u64;
            let method = [Method::Zlib, Method::Zstd][usize::from(method)];
            let packing = Packing::Compressed {
                version,
                method,
                unpacked,
            };
            assert_eq!(container.packing, packing);
            assert_eq!((container.offset, container.size), (0, file.len()));
            assert_eq!(container.images[1].bytes.range_in_file(), None);
        }
    }
}

#[test]
fn offload_binaries_of_all_versions_hold_the_same() {
    let (one, other) = two();
    let images: [(&str, &[u8]); 2] = [("gfx90a:xnack-", &one), ("gfx942", &other)];
    // Version 1 has one image each.
    let first: Vec<u8> = images
        .iter()
        .flat_map(|image| offload_binary(1, &[*image]))
        .collect();
    for file in [
        first,
        offload_binary(2, &images),
        offload_binary(3, &images),
        compressed_offload_binary(&images, zlib),
        compressed_offload_binary(&images, zstd),
    ] {
        assert_eq!(found(&file), expected());
        let container = containers(&file).next().unwrap().unwrap();
        assert_eq!(
            container.images[0].id,
            "hip-amdgcn-amd-amdhsa--gfx90a:xnack-"
        );
    }
}

#[test]
fn containers_follow_each_other_after_zeros() {
    let plain = bundle(&[(GFX90A, &code_object("one"))]);
    let packed = compressed(&plain, 3, 1);
    // Version 1 does not declare its size: the end of its stream is the end.
    let first = compressed(&plain, 1, 1);
    let mut file = Vec::new();
    for part in [&plain, &packed, &first, &first, &plain] {
        file.extend_from_slice(part);
        file.resize(file.len().next_multiple_of(4096), 0);
    }
    let starts: Vec<_> = containers(&file)
        .map(|container| container.unwrap().offset)
        .collect();
    assert_eq!(starts.len(), 5);
    assert!(starts.is_sorted() && starts.iter().all(|start| start % 4096 == 0));
    assert_eq!(found(&file).len(), 5);
}

#[test]
fn host_files_have_them_in_sections() {
    let (one, other) = two();
    let fat_binary = bundle(&[(GFX90A, &one)]);
    let offloading = offload_binary(2, &[("gfx942", &other)]);
    let sections: [(&str, &[u8]); 4] = [
        (".text", b"CCOB is not looked for here"),
        (".hip_fatbin", &fat_binary),
        (".llvm.offloading", &offloading),
        (".hipFatBinSegment", b"FPIH"),
    ];
    let file = host(&sections);
    assert_eq!(found(&file), expected());
    let names: Vec<_> = containers(&file)
        .map(|container| container.unwrap().section.unwrap())
        .collect();
    assert_eq!(names, [".hip_fatbin", ".llvm.offloading"]);
}

#[test]
fn bundles_of_a_host_file_without_section_headers_are_found_by_their_pages() {
    let (one, other) = two();
    let first = bundle(&[(GFX90A, &one)]);
    let second = compressed(&bundle(&[(GFX942, &other)]), 2, 1);
    let mut file = host(&[
        (".text", b""),
        (".a", &first),
        (".b", &second),
        (".c", b"data"),
    ]);
    file[40..48].fill(0); // e_shoff
    file[60..64].fill(0); // e_shnum, e_shstrndx
    let all: Vec<_> = containers(&file)
        .map(|found| found.map(|container| container.section))
        .collect();
    assert!(matches!(&all[..], [Ok(None), Ok(None)]), "{all:?}");
    assert_eq!(found(&file), expected());
}

#[test]
fn a_code_object_is_one_itself() {
    let file = code_object("one");
    assert_eq!(found(&file), [(None, file.clone())]);
}

#[test]
fn images_of_other_devices_are_listed_and_not_taken() {
    let other = "hip-spirv64-amd-amdhsa--amdgcnspirv";
    let file = bundle(&[
        (HOST, b"host code"),
        (other, b"\x03\x02\x23\x07"),
        (GFX90A, b""),
    ]);
    assert_eq!(found(&file), []);
    let container = containers(&file).next().unwrap().unwrap();
    let contents: Vec<_> = container.images.iter().map(Image::content).collect();
    assert_eq!(
        contents
            .iter()
            .filter(|content| **content == Content::Other)
            .count(),
        2
    );
}

#[test]
fn zeros_hold_nothing() {
    assert_eq!(found(&host(&[(".hip_fatbin", &[0; 4096])])), []);
    assert_eq!(found(&bundle(&[])), []);
}
