//! Headers of parts that share bytes. However many there are, rocov reads no more than the file has.

use object::read::ReadCache;

use super::*;

const LEN: u64 = 1 << 20;

/// The kind, offset and size of a readable segment.
type Segment = (u32, u64, u64);

/// A code object of [`LEN`] bytes with nothing but these segments.
fn elf(segments: &[Segment]) -> Vec<u8> {
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([3_u16, EM_AMDGPU.0].map(u16::to_le_bytes).concat());
    elf.extend(1_u32.to_le_bytes());
    elf.extend(words(&[0, 64, 0]));
    elf.extend([0; 4]);
    elf.extend(
        [64, 56, segments.len() as u16, 64, 0, 0]
            .map(u16::to_le_bytes)
            .concat(),
    );
    for (kind, offset, size) in segments {
        elf.extend([*kind, 4].map(u32::to_le_bytes).concat());
        elf.extend(words(&[*offset, 0x7000 + offset, 0, *size, *size, 4]));
    }
    elf.resize(LEN as usize, 0);
    elf
}

/// The numbers of bytes read from the constant segments, up to `most` from each.
fn constant(segments: &[Segment], most: u64) -> Result<Vec<usize>, String> {
    let cache = ReadCache::new(std::io::Cursor::new(elf(segments)));
    let parsed = CodeObject::parse(&cache).unwrap();
    let constant = parsed
        .constant_segments(most)
        .map_err(|error| error.to_string())?;
    Ok(constant.into_iter().map(|(_, bytes)| bytes.len()).collect())
}

fn sharing(kind: u32, count: u64) -> Vec<Segment> {
    (0..count).map(|at| (kind, at, LEN - at)).collect()
}

#[test]
fn no_more_is_read_of_a_segment_than_is_asked_for() {
    let load = PT_LOAD.0;
    let segments = [
        (load, 0, LEN),
        (load, 5, 99),
        (load, LEN - 9, 9),
        (load, LEN - 9, 10),
    ];
    assert_eq!(constant(&segments, 100), Ok(vec![100, 99, 9, 0]));
    assert_eq!(constant(&segments, LEN), Ok(vec![LEN as usize, 99, 9, 0]));
}

#[test]
fn segments_are_not_without_number() {
    assert_eq!(constant(&sharing(PT_LOAD.0, 256), 64), Ok(vec![64; 256]));
    let many = elf(&sharing(PT_LOAD.0, 257));
    let many = CodeObject::parse(many.as_slice()).unwrap();
    let said = "the code object has 257 program headers, at most 256 are allowed";
    for error in [
        many.constant_segments(64).unwrap_err(),
        many.build_id().unwrap_err(),
        many.is_code(0).unwrap_err(),
        many.memory().unwrap_err(),
    ] {
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn notes_do_not_share_bytes() {
    let id = |segments: &[Segment]| {
        let elf = elf(segments);
        let parsed = CodeObject::parse(elf.as_slice()).unwrap();
        parsed
            .build_id()
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let note = PT_NOTE.0;
    let half = LEN / 2;
    // Notes of zeros have no contents. Only the bytes of other parts are around this one.
    assert_eq!(id(&[(note, half, 0), (note, LEN, 0)]), Ok(()));
    assert_eq!(
        id(&[(note, 0, half), (note, 0, half), (note, 9, 1)]),
        Err(
            "the notes of the code object have 1048577 bytes, but the whole object has 1048576"
                .into()
        )
    );
    assert_eq!(
        id(&sharing(note, 256)),
        Err(
            "the notes of the code object have 268402816 bytes, but the whole object has 1048576"
                .into()
        )
    );
}

#[test]
fn sections_do_not_share_bytes() {
    let mut elf = elf(&[]);
    // Headers of three sections with bytes and one without, after the file's header.
    let headers = [(0, 0), (3, LEN - 9), (1, 9), (1, 1), (8, LEN)];
    for (place, (kind, size)) in headers.into_iter().enumerate() {
        let header = &mut elf[64 * (place + 1)..][..64];
        header[4] = kind;
        header[32..40].copy_from_slice(&u64::to_le_bytes(size));
    }
    elf[40] = 64; // e_shoff
    elf[60] = 5; // e_shnum
    elf[62] = 1; // e_shstrndx
    let parsed = CodeObject::parse(elf.as_slice()).unwrap();
    let checked = |indices: &[usize]| {
        let checked = parsed.check_sections("parts", indices.iter().copied());
        checked.map_err(|error| error.to_string())
    };
    assert_eq!(checked(&[0, 1, 2, 4, 0xfff1]), Ok(()));
    assert_eq!(
        checked(&[1, 2, 3]),
        Err(
            "the parts of the code object have 1048577 bytes, but the whole object has 1048576"
                .into()
        )
    );
}

#[test]
fn the_compiler_is_the_latest_clang() {
    let of_libraries = "Debian clang version 17.0.6 (5)\0Linker: Debian LLD 19.1.7\0";
    let comment =
        format!("\0{of_libraries}AMD clang version 19.1.7 (one)\0clang version 19.0.0 (two)");
    assert_eq!(
        latest_clang(&comment),
        Some("AMD clang version 19.1.7 (one)")
    );
    assert_eq!(latest_clang("Linker: Debian LLD 19.1.7"), None);
}
