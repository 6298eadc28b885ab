//! Host files with each field of their headers at the bounds of what a file, a word or a pointer holds. Nothing panics,
//! and no reader takes more than there is.

use crate::format::bundle::tests::synth::*;
use crate::format::bundle::*;

/// The fields of an ELF header, by offset and size in bytes.
const FILE_FIELDS: [(usize, usize); 10] = [
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (52, 2),
    (54, 2),
    (56, 2),
    (58, 2),
    (60, 2),
    (62, 2),
];
/// The fields of a section header.
const SECTION_FIELDS: [(usize, usize); 10] = [
    (0, 4),
    (4, 4),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 4),
    (44, 4),
    (48, 8),
    (56, 8),
];
/// The size of both headers.
const HEADER: usize = 64;
/// The offset and the size of a section, in its header.
const OFFSET: usize = 24;
const SIZE: usize = 32;

fn bounds(len: usize) -> [u64; 9] {
    let len = len as u64;
    [
        0,
        1,
        len - 1,
        len,
        len + 1,
        1 << 31,
        1 << 32,
        1 << 63,
        u64::MAX,
    ]
}

fn set(file: &mut [u8], at: usize, size: usize, value: u64) {
    file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Reads everything, as `show`, `extract`, `doctor` and `report --object` do.
fn read(file: &[u8]) {
    let most = file.len();
    for container in containers(file) {
        match container {
            Ok(container) => {
                assert!(container.offset <= most, "{container:?}");
                assert!(container.size > 0, "{container:?}");
                _ = container_at(file, container.offset);
                assert!(container.into_device_images().len() <= most);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(
        images(file)
            .flatten()
            .all(|image| image.bytes.len() <= most)
    );
}

fn hosts() -> Vec<Vec<u8>> {
    let one = code_object("one");
    let plain = bundle(&[(HOST, b""), (GFX90A, &one)]);
    let offload = offload_binary(2, &[("gfx90a", &one)]);
    let fat = fat_binary(&[FatEntry::plain(2, 90, &cubin("one"))]);
    let names = [".hip_fatbin", ".llvm.offloading", ".nv_fatbin"];
    let with = |contents: [&[u8]; 3]| {
        let sections: Vec<_> = names.into_iter().zip(contents).collect();
        host(&sections)
    };
    vec![
        with([&plain, &offload, &fat]),
        with([b"", b"", b""]),
        with([&plain, b"", &fat]),
    ]
}

/// The places of the headers of all sections.
fn section_headers(file: &[u8]) -> Vec<usize> {
    let start = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    let number = usize::from(file[60]);
    (0..number).map(|index| start + HEADER * index).collect()
}

#[test]
fn a_field_at_a_bound_is_no_panic() {
    for file in hosts() {
        let headers = section_headers(&file);
        let of_sections = headers.iter();
        let of_sections =
            of_sections.flat_map(|start| SECTION_FIELDS.map(|(at, size)| (start + at, size)));
        for (at, size) in FILE_FIELDS.into_iter().chain(of_sections) {
            for value in bounds(file.len()) {
                let mut file = file.clone();
                set(&mut file, at, size, value);
                read(&file);
            }
        }
    }
}

#[test]
fn an_offset_and_a_size_at_bounds_are_no_panic() {
    for file in hosts() {
        for header in section_headers(&file) {
            for offset in bounds(file.len()) {
                for size in bounds(file.len()) {
                    let mut file = file.clone();
                    set(&mut file, header + OFFSET, 8, offset);
                    set(&mut file, header + SIZE, 8, size);
                    read(&file);
                }
            }
        }
    }
}

/// llvm-objdump's test `content-failure.test` has such a file.
#[test]
fn an_empty_section_behind_the_end_has_no_code() {
    let all = |file: &[u8]| {
        let found = images(file).map(|image| image.map(|_| ()).map_err(|error| error.to_string()));
        found.collect::<Vec<_>>()
    };
    for file in &hosts()[..2] {
        let mut file = file.clone();
        let behind = file.len() as u64 + 1000;
        for header in section_headers(&file).into_iter().skip(1).take(3) {
            set(&mut file, header + OFFSET, 8, behind);
            set(&mut file, header + SIZE, 8, 0);
        }
        let empty = "no device code: its sections for device code are empty".to_owned();
        assert_eq!(all(&file), [Err(empty)]);
    }
    let [.., mixed] = &hosts()[..] else { panic!() };
    assert_eq!(
        all(mixed),
        [Ok(()), Ok(())],
        "an empty section beside others"
    );
}
