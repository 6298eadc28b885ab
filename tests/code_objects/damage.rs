//! Code objects with damaged metadata, descriptors or coverage mapping. Each gives an error that
//! names the found and the allowed value.

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use rocov::format::codeobject::CodeObject;
use serde_json::{Value, json};

use crate::{kernels_of, kinds};

/// An ELF with only an AMDGPU metadata note.
fn with_note(contents: &[u8]) -> Vec<u8> {
    const NOTE_AT: u64 = 64 + 56;
    let mut note = Vec::new();
    for word in [7, contents.len() as u32, 32] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"AMDGPU\0\0");
    note.extend(contents);
    note.resize(note.len().next_multiple_of(4), 0);

    let mut elf = b"\x7fELF\x02\x01\x01\x40\x02".to_vec();
    elf.resize(16, 0);
    let half = |elf: &mut Vec<u8>, number: u16| elf.extend(number.to_le_bytes());
    let word = |elf: &mut Vec<u8>, number: u32| elf.extend(number.to_le_bytes());
    let long = |elf: &mut Vec<u8>, number: u64| elf.extend(number.to_le_bytes());
    half(&mut elf, 3); // e_type: shared object
    half(&mut elf, 224); // e_machine: AMDGPU
    word(&mut elf, 1);
    for number in [0, 64, 0] {
        long(&mut elf, number); // e_entry, e_phoff, e_shoff
    }
    word(&mut elf, 0x4c); // e_flags: gfx942
    for number in [64, 56, 1, 64, 0, 0] {
        half(&mut elf, number);
    }
    word(&mut elf, 4); // p_type: PT_NOTE
    word(&mut elf, 4); // p_flags: readable
    let len = note.len() as u64;
    for number in [NOTE_AT, NOTE_AT, NOTE_AT, len, len, 4] {
        long(&mut elf, number); // p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align
    }
    assert_eq!(elf.len() as u64, NOTE_AT);
    elf.extend(note);
    elf
}

fn message(image: &[u8]) -> String {
    kernels_of(image).expect_err("an error").to_string()
}

fn message_of_note(metadata: &Value) -> String {
    let note = rmp_serde::to_vec(metadata).expect("MessagePack");
    message(&with_note(&note))
}

/// The valid metadata of one kernel.
fn kernel() -> Value {
    json!({
        ".name": "k", ".symbol": "k.kd",
        ".kernarg_segment_size": 8, ".kernarg_segment_align": 8,
        ".group_segment_fixed_size": 0, ".private_segment_fixed_size": 0,
        ".sgpr_count": 9, ".vgpr_count": 4, ".agpr_count": 0,
        ".sgpr_spill_count": 0, ".vgpr_spill_count": 0,
        ".wavefront_size": 64, ".max_flat_workgroup_size": 1024,
        ".args": [{".offset": 0, ".size": 8, ".value_kind": "by_value"}],
    })
}

fn metadata(kernel: Value) -> Value {
    json!({"amdhsa.version": [1, 2], "amdhsa.kernels": [kernel]})
}

fn with(key: &str, value: Value) -> Value {
    let mut kernel = kernel();
    kernel[key] = value;
    metadata(kernel)
}

fn without(key: &str) -> Value {
    let mut kernel = kernel();
    kernel.as_object_mut().expect("a map").remove(key);
    metadata(kernel)
}

#[test]
fn metadata_that_is_absent() {
    let mut elf = with_note(b"");
    let owner = elf
        .windows(6)
        .position(|window| window == b"AMDGPU")
        .expect("the note");
    elf[owner] = b'a';
    assert_eq!(
        message(&elf),
        "no AMDGPU metadata: expected a note `AMDGPU` of type 32"
    );
}

#[test]
fn fields_that_are_missing_or_wrong() {
    // Valid, except for the descriptor.
    let good = message_of_note(&metadata(kernel()));
    assert_eq!(
        good,
        "no kernel descriptor k.kd: expected a symbol of that name in .dynsym"
    );

    let number = "expected a number from 0 to 4294967295";
    for key in [
        ".kernarg_segment_size",
        ".kernarg_segment_align",
        ".group_segment_fixed_size",
        ".private_segment_fixed_size",
        ".sgpr_count",
        ".vgpr_count",
        ".wavefront_size",
        ".max_flat_workgroup_size",
    ] {
        let expected = format!("AMDGPU metadata of kernel k: {key} is missing, {number}");
        assert_eq!(message_of_note(&without(key)), expected);
    }
    for key in [".agpr_count", ".sgpr_spill_count", ".vgpr_spill_count"] {
        assert_eq!(
            message_of_note(&without(key)),
            good,
            "{key} need not be there"
        );
        let expected = format!("AMDGPU metadata of kernel k: {key} is \"4\", {number}");
        assert_eq!(message_of_note(&with(key, json!("4"))), expected);
    }
    for (value, found) in [
        (json!(-1), "-1"),
        (json!(1_u64 << 32), "4294967296"),
        (json!(1.5), "a fraction"),
        (json!(true), "true"),
        (json!("many\n"), "\"many\\n\""),
        (json!([1, [2]]), "a list"),
        (json!({"a": {"b": 1}}), "a map"),
        (json!(null), "nil"),
    ] {
        let expected = format!("AMDGPU metadata of kernel k: .vgpr_count is {found}, {number}");
        assert_eq!(message_of_note(&with(".vgpr_count", value)), expected);
    }
    for key in [".name", ".symbol"] {
        let name = "expected a name in UTF-8";
        let missing = format!("AMDGPU metadata of kernel 0: {key} is missing, {name}");
        assert_eq!(message_of_note(&without(key)), missing);
        let wrong = format!("AMDGPU metadata of kernel 0: {key} is 7, {name}");
        assert_eq!(message_of_note(&with(key, json!(7))), wrong);
    }
}

#[test]
fn names_that_are_not_utf_8() {
    let mut note = rmp_serde::to_vec(&with(".name", json!("k_x"))).expect("MessagePack");
    let at = note
        .windows(3)
        .position(|window| window == b"k_x")
        .expect("the name");
    note[at + 1] = 0xff;
    assert_eq!(
        message(&with_note(&note)),
        "AMDGPU metadata of kernel 0: .name is \"k\\xffx\", expected a name in UTF-8"
    );
    let key = note
        .windows(11)
        .position(|window| window == b".vgpr_count")
        .expect("a key");
    note[at + 1] = b'_';
    note[key + 1] = 0xff;
    assert_eq!(
        message(&with_note(&note)),
        "AMDGPU metadata of kernel k_x: .vgpr_count is missing, expected a number from 0 to \
         4294967295"
    );
}

#[test]
fn metadata_of_another_shape() {
    let list = "amdhsa.kernels";
    let first = "expected 1 as the first number";
    let version = "amdhsa.version";
    for (value, what) in [
        (
            json!({}),
            "amdhsa.kernels is missing, expected a list".into(),
        ),
        (
            json!({list: "k"}),
            "amdhsa.kernels is \"k\", expected a list".into(),
        ),
        (
            json!({list: {}}),
            "amdhsa.kernels is a map, expected a list".into(),
        ),
        (json!(5), "all of it is 5, expected a map".into()),
        (json!([]), "all of it is a list, expected a map".into()),
        (
            json!({version: [2, 0], list: []}),
            format!("{version} is 2, {first}"),
        ),
        (
            json!({version: [[1], 0], list: []}),
            format!("{version} is a list, {first}"),
        ),
        (
            json!({version: [], list: []}),
            format!("{version} is a list, expected a list of two numbers"),
        ),
        (
            json!({version: 1, list: []}),
            format!("{version} is 1, expected a list of two numbers"),
        ),
    ] {
        assert_eq!(
            message_of_note(&value),
            format!("AMDGPU metadata of the code object: {what}")
        );
    }
    assert_eq!(
        message_of_note(&metadata(json!(6))),
        "AMDGPU metadata of kernel 0: all of it is 6, expected a map"
    );
    let note = b"\x81\xaeamdhsa.kernels\xc1";
    assert_eq!(
        message(&with_note(note)),
        "AMDGPU metadata of 17 bytes: found 0xc1 at byte 16, expected a value"
    );
}

#[test]
fn code_without_kernels() {
    let value =
        json!({"amdhsa.version": [1, 1], "amdhsa.kernels": [], "other": [1, {"a": [null]}]});
    let note = rmp_serde::to_vec(&value).expect("MessagePack");
    assert_eq!(kernels_of(with_note(&note).as_slice()).expect("none"), []);
}

#[test]
fn notes_that_are_cut_short() {
    let whole = rmp_serde::to_vec(&metadata(kernel())).expect("MessagePack");
    for len in 0..whole.len() {
        assert_eq!(message(&with_note(&whole[..len])), cut(len));
    }
}

fn cut(len: usize) -> String {
    format!("AMDGPU metadata is cut short after {len} bytes")
}

#[test]
fn counts_and_depths_are_not_believed() {
    let kernels = b"\xaeamdhsa.kernels";
    // A list, a map in a list, text and bytes, each with the size 2^32 - 1.
    for contents in [
        &b"\xdd\xff\xff\xff\xff"[..],
        b"\x91\xdf\xff\xff\xff\xff",
        b"\x91\x81\xdb\xff\xff\xff\xff",
        b"\x91\x81\xa5.name\xc6\xff\xff\xff\xff",
        b"\x91\x81\xa5.args\xdd\xff\xff\xff\xff\x80",
    ] {
        let note = [b"\x81".as_slice(), kernels, contents].concat();
        assert_eq!(message(&with_note(&note)), cut(note.len()));
    }
    // Deeply nested lists.
    let note = [b"\x81\xa1x".as_slice(), &[0x91; 1 << 20]].concat();
    assert_eq!(message(&with_note(&note)), cut(note.len()));
}

/// kinds.hip by clang 22, and the positions of its parts.
struct Real {
    bytes: Vec<u8>,
}

impl Real {
    fn new() -> Self {
        let path = kinds("clang++-22", "gfx90a", 4);
        let bytes = std::fs::read(path).expect("a code object");
        Self { bytes }
    }

    fn elf(&self) -> ElfFile64<'_, LittleEndian> {
        ElfFile64::parse(self.bytes.as_slice()).expect("an ELF")
    }

    /// File offset, address and size of a section.
    fn section(&self, name: &str) -> (usize, u64, usize) {
        let elf = self.elf();
        let section = elf.section_by_name(name).expect("the section");
        let (offset, size) = section.file_range().expect("contents");
        (offset as usize, section.address(), size as usize)
    }

    /// The entry of a symbol in the dynamic symbol table, which has 24 bytes.
    fn dynamic_symbol(&mut self, name: &str) -> &mut [u8] {
        let elf = self.elf();
        let mut symbols = elf.dynamic_symbols();
        let symbol = symbols
            .find(|symbol| symbol.name() == Ok(name))
            .expect("the symbol");
        let index = symbol.index().0;
        let (offset, ..) = self.section(".dynsym");
        &mut self.bytes[offset + 24 * index..][..24]
    }

    fn descriptor(&self, name: &str) -> (usize, u64) {
        let elf = self.elf();
        let mut symbols = elf.dynamic_symbols();
        let symbol = symbols
            .find(|symbol| symbol.name() == Ok(name))
            .expect("the symbol");
        let (offset, address, _) = self.section(".rodata");
        (
            offset + (symbol.address() - address) as usize,
            symbol.address(),
        )
    }

    fn sources(&self) -> Result<Vec<Option<String>>, String> {
        let code_object = CodeObject::parse(self.bytes.as_slice()).expect("a code object");
        code_object
            .sources(["i"])
            .map_err(|error| error.to_string())
    }
}

#[test]
fn descriptors_that_are_absent_or_elsewhere() {
    let mut real = Real::new();
    let (_, start, len) = real.section(".rodata");
    // st_value is at 8, st_shndx at 6.
    for address in [0, start - 1, start + len as u64 - 63, u64::MAX] {
        real.dynamic_symbol("i.kd")[8..16].copy_from_slice(&address.to_le_bytes());
        assert_eq!(
            message(&real.bytes),
            format!(
                "kernel descriptor i.kd at {address:#x}: expected 64 bytes within its section, \
                 which has {len} bytes from {start:#x}"
            )
        );
    }
    real.dynamic_symbol("i.kd")[6..8].copy_from_slice(&999_u16.to_le_bytes());
    assert_eq!(
        message(&real.bytes),
        "not a code object: Invalid ELF section index"
    );
    real.dynamic_symbol("i.kd")[6..8].copy_from_slice(&0_u16.to_le_bytes());
    assert_eq!(
        message(&real.bytes),
        "no kernel descriptor i.kd: expected a symbol of that name in .dynsym"
    );

    let mut real = Real::new();
    let (at, address) = real.descriptor("i.kd");
    real.bytes[at + 16..at + 24].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    assert_eq!(
        message(&real.bytes),
        format!(
            "kernel descriptor i.kd: entry {:#x}, expected an address in an executable segment",
            address + (1 << 40)
        )
    );
}

#[test]
fn coverage_mappings_that_are_damaged_cost_the_sources_alone() {
    let whole = Real::new();
    let kernels = kernels_of(whole.bytes.as_slice()).expect("kernels");
    let (map, _, map_len) = whole.section("__llvm_covmap");
    let (functions, _, functions_len) = whole.section("__llvm_covfun");
    let huge = u32::MAX.to_le_bytes();
    for (at, what) in [
        (
            map + 4,
            format!("4294967295 bytes at byte 16 of __llvm_covmap, which has {map_len}"),
        ),
        (
            functions + 8,
            format!("4294967295 bytes at byte 28 of __llvm_covfun, which has {functions_len}"),
        ),
    ] {
        let mut real = Real::new();
        real.bytes[at..at + 4].copy_from_slice(&huge);
        let expected = format!("damaged coverage mapping: {what}");
        assert_eq!(real.sources(), Err(expected));
        let mut without = kernels.clone();
        for kernel in &mut without {
            kernel.source = None;
        }
        assert_eq!(kernels_of(real.bytes.as_slice()).expect("kernels"), without);
    }
    // An unknown version is not damage.
    for version in [2_u32, 7] {
        let mut real = Real::new();
        real.bytes[map + 12..map + 16].copy_from_slice(&version.to_le_bytes());
        assert_eq!(real.sources(), Ok(vec![None]));
    }
}
