//! kpack archives: whole ones, and one damaged one for each error message.

use crate::format::bundle::tests::synth::*;
use crate::format::bundle::*;

/// The names of the entries: host file and number, and target.
const ONE: (&str, &str) = ("lib/liba.so#0", "gfx90a:xnack-");
const OTHER: (&str, &str) = ("lib/libb.so#0", "gfx942");

/// The id, the target and the bytes of an image.
type Found = (String, Option<String>, Vec<u8>);

/// All images of `file`, and all messages.
fn read(containers: Containers<'_>) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut said) = (Vec::new(), Vec::new());
    for container in containers {
        match container {
            Err(error) => said.push(error.to_string()),
            Ok(container) => {
                said.extend(container.damage.iter().map(ToString::to_string));
                let images = container.images.into_iter();
                found.extend(images.map(|image| (image.id, image.target, image.bytes.to_vec())));
            }
        }
    }
    (found, said)
}

fn message(file: &[u8]) -> String {
    let (found, mut said) = read(containers(file));
    assert_eq!((found.len(), said.len()), (0, 1), "{said:?}");
    said.remove(0)
}

fn two() -> [Vec<u8>; 2] {
    ["one", "another one"].map(code_object)
}

#[test]
fn archives_of_both_schemes_have_their_code_objects() {
    let [one, other] = two();
    for is_packed in [false, true] {
        let file = kpack(is_packed, &[(ONE, &one), (OTHER, &other)]);
        let entry = |(id, target): (&str, &str), bytes: &[u8]| {
            (id.to_owned(), Some(target.to_owned()), bytes.to_vec())
        };
        let expected = [entry(ONE, &one), entry(OTHER, &other)];
        assert_eq!(read(containers(&file)), (expected.to_vec(), vec![]));
        // By the host file, and by the offset of each.
        let of_host = containers(&file).of_host("lib/libb.so");
        assert_eq!(read(of_host), (vec![expected[1].clone()], vec![]));
        let none = containers(&file).of_host("lib/lib");
        assert_eq!(read(none), (vec![], vec![]));
        for container in containers(&file) {
            let offset = container.unwrap().offset;
            assert!(starts_at(&file, offset));
            assert_eq!(container_at(&file, offset).unwrap().offset, offset);
        }
        assert!(container_at(&file, 1).is_err());
        assert_eq!(images(&file).filter(Result::is_ok).count(), 2);
    }
}

#[test]
fn a_host_file_names_its_archives() {
    let reference = map(&[
        ("kernel_name", text("lib/liba.so")),
        ("other", number(7)),
        (
            "kpack_search_paths",
            list(&[text("../.kpack/a_@GFXARCH@.kpack")]),
        ),
    ]);
    let file = host(&[(".rocm_kpack_ref", &reference)]);
    let expected = SplitOff {
        name: "lib/liba.so".to_owned(),
        archives: vec!["../.kpack/a_@GFXARCH@.kpack".to_owned()],
    };
    assert_eq!(split_off(&file), Some(expected));
    let said = "no device code: it was split off into kpack archives";
    assert_eq!(message(&file), said);
    assert_eq!(split_off(&host(&[(".hip_fatbin", b"")])), None);
    let said = "no device code: it was split off into kpack archives, and the reference to them is damaged";
    for cut in [&reference[..reference.len() - 1], &[], &[0x80]] {
        let file = host(&[(".rocm_kpack_ref", cut)]);
        assert_eq!((split_off(&file), message(&file).as_str()), (None, said));
    }
}

#[test]
fn numbers_that_cannot_be() {
    let [one, _] = two();
    let whole = kpack(true, &[(ONE, &one)]);
    let version = patched(whole.clone(), 4, &[2]);
    let said = "the kpack archive at offset 0x0 has version 2, expected 1 to 1";
    assert_eq!(message(&version), said);
    let beyond = patched(whole.clone(), 8, &u64::MAX.to_le_bytes());
    assert!(
        message(&beyond).starts_with(
            "the list of code objects of the kpack archive at offset 0x0 should end at "
        )
    );
    assert!(
        message(&whole[..12])
            .starts_with("the header of the kpack archive at offset 0x0 should end at 0x10")
    );
    let cut = &whole[..whole.len() - 1];
    assert_eq!(
        message(cut),
        "the list of code objects of the kpack archive is cut short"
    );
    // The number of frames, and the size of the first.
    let many = patched(whole.clone(), 64, &u32::MAX.to_le_bytes());
    let said = "the kpack archive at offset 0x0 has 4294967295 entries, ";
    assert!(message(&many).starts_with(said), "{}", message(&many));
    let long = patched(whole.clone(), 68, &u32::MAX.to_le_bytes());
    assert!(
        message(&long)
            .starts_with("the code objects of the kpack archive at offset 0x0 should end at ")
    );
    // The first byte of the frame, after the two numbers.
    let said = message(&patched(whole, 72, b"x"));
    assert!(
        said.starts_with("the kpack archive at offset 0x48 cannot be unpacked as zstd: "),
        "{said}"
    );
}

#[test]
fn lists_that_do_not_fit_the_code_objects() {
    let [one, _] = two();
    let archive = |entries: Vec<u8>, scheme: &str| {
        let blob = map(&[("offset", number(64)), ("size", number(one.len() as u64))]);
        kpack_with(
            &one,
            &[
                ("compression_scheme", text(scheme)),
                ("blobs", list(&[blob.clone(), blob])),
                ("toc", entries),
            ],
        )
    };
    let entry = |ordinal: u64| map(&[("type", text("hsaco")), ("ordinal", number(ordinal))]);
    let toc = |entries: &[(&str, Vec<u8>)]| map(&[("lib/liba.so#0", map(entries))]);
    let of = "the list of code objects of the kpack archive";
    let absent = archive(toc(&[("gfx90a", entry(2))]), "none");
    assert_eq!(
        message(&absent),
        format!("{of} has a number for which there is no code object")
    );
    let other = archive(toc(&[("gfx90a", entry(0))]), "brotli");
    assert_eq!(
        message(&other),
        format!("{of} has a compression other than none and zstd-per-kernel")
    );
    let number = archive(number(7), "none");
    assert_eq!(
        message(&number),
        format!("{of} has another value instead of a map")
    );
    // One of two entries is read if both are for the same code object, or for the same bytes.
    for (second, said) in [
        (0, "has one code object twice"),
        (1, "has code objects that overlap"),
    ] {
        let twice = archive(
            toc(&[("gfx90a", entry(0)), ("gfx942", entry(second))]),
            "none",
        );
        let (found, messages) = read(containers(&twice));
        assert_eq!((found.len(), messages), (1, vec![format!("{of} {said}")]));
    }
}

#[test]
fn code_objects_that_are_none() {
    for is_packed in [false, true] {
        let file = kpack(is_packed, &[(ONE, b"nothing of use")]);
        let said = message(&file);
        let start = "lib/liba.so#0 in the kpack archive at offset 0x";
        assert!(
            said.starts_with(start) && said.ends_with("expected an ELF for AMDGPU or CUDA"),
            "{said}"
        );
    }
}

#[test]
fn no_more_is_unpacked_than_there_is_room_for() {
    let [one, other] = two();
    let file = kpack(true, &[(ONE, &one), (OTHER, &other)]);
    let room = one.len() as u64;
    let (found, said) = read(containers(&file).unpacking_at_most(room));
    assert_eq!(found.len(), 1);
    assert!(
        said[0].ends_with(&format!(
            "unpacks to {} bytes, at most 0 are allowed",
            other.len()
        )),
        "{said:?}"
    );
}
