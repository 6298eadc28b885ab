//! CUDA fat binaries, whole and damaged.

use crate::format::bundle::tests::synth::*;
use crate::format::bundle::*;

const LZ4: u64 = 0x2011;
const ZSTD: u64 = 0x8011;
const PTX: &[u8] = b"//\n.version 8.8\n.target sm_90a, debug\n";

/// The offsets of the first entry and of its fields.
const ENTRY: usize = 16;
const HEADER_SIZE: usize = ENTRY + 4;
const IMAGE_SIZE: usize = ENTRY + 8;
const UNPACKED: usize = ENTRY + 56;

fn ids(container: &Container<'_>) -> Vec<String> {
    let ids = container.images.iter().map(|image| image.id.clone());
    ids.collect()
}

/// The only message about `file`.
fn message(file: &[u8]) -> String {
    let mut said = Vec::new();
    for container in containers(file) {
        match container {
            Ok(container) => said.extend(container.damage.iter().map(ToString::to_string)),
            Err(error) => said.push(error.to_string()),
        }
    }
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0)
}

/// A fat binary with one packed cubin, changed.
fn changed(flags: u64, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let cubin = cubin("one");
    let mut file = fat_binary(&[FatEntry {
        flags,
        image: &lz4(&cubin),
        unpacked: cubin.len() as u64,
        ..FatEntry::plain(2, 90, &[])
    }]);
    change(&mut file);
    file
}

#[test]
fn images_of_all_kinds_are_read() {
    let (one, other) = (cubin("one cubi"), cubin("another one"));
    let entries = [
        FatEntry::plain(2, 90, &one),
        FatEntry {
            flags: LZ4,
            image: &lz4(&other),
            unpacked: other.len() as u64,
            ..FatEntry::plain(2, 90, &[])
        },
        FatEntry {
            flags: ZSTD,
            image: &zstd(PTX),
            unpacked: PTX.len() as u64,
            ..FatEntry::plain(1, 90, &[])
        },
        FatEntry::plain(1, 90, PTX),
        FatEntry {
            // As nvcc 13.5 writes it.
            flags: 0x1_8011,
            image: b"packed in another way",
            unpacked: 2192,
            ..FatEntry::plain(8, 80, &[])
        },
        FatEntry::plain(64, 80, b"unknown"),
    ];
    let file = fat_binary(&entries);
    // Alone, and twice in a program.
    let twice = [&file[..], &[0; 8], &file].concat();
    let program = host(&[(".nv_fatbin", &twice)]);
    let found: Vec<_> = [&file[..], &program]
        .iter()
        .flat_map(|file| containers(file))
        .map(|container| container.expect("a fat binary"))
        .collect();
    assert_eq!(found.len(), 3);
    for container in found {
        assert!(container.damage.is_empty());
        let unpacked = (other.len() + PTX.len()) as u64;
        assert_eq!(container.packing, Packing::FatBinary { unpacked });
        assert_eq!(container.size, file.len());
        let bytes: Vec<&[u8]> = container
            .images
            .iter()
            .map(|image| &image.bytes[..])
            .collect();
        // The text of PTX ends before its padding.
        assert_eq!(bytes[..4], [&one[..], &other, PTX, PTX]);
        let contents = container.images.iter().map(Image::content);
        let expected = [
            Content::CodeObject,
            Content::CodeObject,
            Content::Ptx,
            Content::Ptx,
            Content::Other,
            Content::Other,
        ];
        assert!(contents.eq(expected));
        let names = [
            "sm_90",
            "sm_90",
            "compute_90a",
            "compute_90a",
            "lto_80",
            "sm_80 (kind 0x40)",
        ];
        let names = names.map(|name| format!("cuda-nvptx64-nvidia-cuda--{name}"));
        assert_eq!(ids(&container), names);
    }
    let devices: Vec<_> = images(&file).map(|image| image.expect("a cubin")).collect();
    let targets: Vec<_> = devices
        .iter()
        .map(|image| image.target.as_deref())
        .collect();
    assert_eq!(targets, [Some("sm_90"); 2]);
}

/// Real cubins of all sizes are compared in the tests of the command.
#[test]
fn the_padding_of_an_elf_is_no_part_of_it() {
    let sections = host(&[("a", b"contents")]);
    for extra in 1..8 {
        // Its section headers end it.
        let mut elf = sections.clone();
        elf[18] = 190;
        let size = elf.len();
        elf.resize(size + extra, 0);
        let file = fat_binary(&[FatEntry::plain(2, 90, &elf)]);
        let container = containers(&file)
            .next()
            .expect("one")
            .expect("a fat binary");
        let found = container.images[0].bytes.len();
        let padded = elf.len().next_multiple_of(8);
        assert_eq!(found, size.max(padded - 7), "{extra}");
    }
}

#[test]
fn parts_of_cubins_are_no_code_objects() {
    let mut part = cubin("part");
    part[16] = 1;
    let file = fat_binary(&[FatEntry::plain(2, 90, &part)]);
    let said: Vec<_> = images(&file).filter_map(Result::err).collect();
    assert_eq!(
        said[0].to_string(),
        "cuda-nvptx64-nvidia-cuda--sm_90 in the CUDA fat binary at offset 0x0 is a part of a cubin, which the linker \
         turns into one (-fgpu-rdc), expected an ELF for AMDGPU or CUDA"
    );
}

#[test]
fn damage_is_named() {
    for (file, expected) in [
        (
            changed(LZ4, |bytes| bytes.truncate(100)),
            "the list of entries of the CUDA fat binary at offset 0x0 should end at 0x98, after the last byte at 0x64",
        ),
        (
            changed(LZ4, |bytes| bytes[IMAGE_SIZE + 2] = 1),
            "the image of the CUDA fat binary at offset 0x0 should end at 0x10098, after the last byte at 0x98",
        ),
        (
            changed(LZ4, |bytes| bytes[HEADER_SIZE] = 8),
            "the entry of the CUDA fat binary at offset 0x10 says that it has 8 bytes, but its header has 64",
        ),
        (
            changed(0x1011, |_| ()),
            "an image of the CUDA fat binary at offset 0x0 has compression flags 0x1000, expected 0x2000 (LZ4) or 0x8000 \
             (zstd)",
        ),
        (
            changed(LZ4, |bytes| bytes[UNPACKED] += 1),
            "the image of a CUDA fat binary at offset 0x50 unpacks to 67 bytes, but its header says 68",
        ),
        (
            changed(LZ4, |bytes| bytes[UNPACKED + 5] = 1),
            "the image of a CUDA fat binary at offset 0x50 says that it unpacks to 1099511627843 bytes, at most \
            4294967296 are allowed",
        ),
        (
            changed(LZ4, |bytes| bytes[ENTRY + 65] = 0xff),
            "the image of a CUDA fat binary at offset 0x50 cannot be unpacked as LZ4: the LZ4 block is cut short",
        ),
    ] {
        assert_eq!(message(&file), expected);
    }
    let zstd = message(&changed(ZSTD, |_| ()));
    let start = "the image of a CUDA fat binary at offset 0x50 cannot be unpacked as zstd: ";
    assert!(zstd.starts_with(start), "{zstd}");
}
