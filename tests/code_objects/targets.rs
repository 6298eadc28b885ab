//! The targets of code objects.

use std::path::Path;

use rocov::format::codeobject::CodeObject;

use crate::support::compile::device_only;
use crate::{all_kinds, kinds, llvm};

/// `e_flags` in an ELF header of 64 bits.
const FLAGS: std::ops::Range<usize> = 48..52;

fn target(bytes: &[u8]) -> Result<String, String> {
    let code_object = CodeObject::parse(bytes).expect("a code object");
    code_object.target().map_err(|error| error.to_string())
}

fn target_of(path: &Path) -> Result<String, String> {
    target(&std::fs::read(path).expect("a file"))
}

#[test]
fn targets_are_those_of_the_notes() {
    let unknown = 0xff_u32.to_le_bytes();
    let mut objects = all_kinds();
    let features = [
        "gfx90a:xnack-",
        "gfx90a:sramecc-:xnack+",
        "gfx1030",
        "gfx9-4-generic",
    ];
    objects.extend(features.map(|target| kinds_for(target, "clang++-22", 6)));
    for path in objects {
        let expected = llvm::target(&path);
        let mut bytes = std::fs::read(&path).expect("a file");
        assert_eq!(target(&bytes).ok(), expected, "{}", path.display());
        // A processor that only the note names.
        bytes[FLAGS].copy_from_slice(&unknown);
        assert_eq!(target(&bytes).ok(), expected, "{}", path.display());
    }
}

fn kinds_for(target: &'static str, compiler: &'static str, version: u8) -> std::path::PathBuf {
    device_only(compiler, &[target], version)
        .source(crate::repository("testdata/programs/upstream/module.hip"))
        .output("target")
}

/// The code object without the name of its target, as in version 3.
fn without_a_named_target(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("a file");
    let key = b"amdhsa.target";
    let at = bytes.windows(key.len()).position(|window| window == key);
    bytes[at.expect("the key")] = b'x';
    bytes
}

/// LLVM's reading of these flags, and the library's.
fn read(bytes: &mut [u8], flags: u32, path: &Path) -> (Vec<String>, Result<String, String>) {
    bytes[FLAGS].copy_from_slice(&flags.to_le_bytes());
    std::fs::write(path, &bytes).expect("a file");
    (llvm::flags(path), target(bytes))
}

#[test]
fn without_them_the_flags_name_every_processor_that_llvm_knows() {
    let mut bytes = without_a_named_target(&kinds("clang++-22", "gfx942", 4));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("object.co");
    let mut known = 0;
    for number in 0x20..0x70 {
        let (words, target) = read(&mut bytes, number, &path);
        match words.first().filter(|word| word.starts_with("gfx")) {
            Some(processor) => {
                assert_eq!(target.as_ref(), Ok(processor));
                known += 1;
            }
            // gfx940 and gfx941, which LLVM 22 no longer knows, and gfx12-5-generic, which LLVM 23 knows.
            None if matches!(number, 0x40 | 0x4b | 0x5b) => assert!(target.is_ok()),
            None => {
                let message = format!(
                    "a code object for an unknown processor: ELF flags {number:#x}, expected those \
                     of a GCN GPU or a CUDA architecture"
                );
                assert_eq!(target, Err(message));
            }
        }
    }
    assert!(known > 50, "{known}");
}

#[test]
fn without_them_the_flags_name_the_features() {
    let mut bytes = without_a_named_target(&kinds("clang++-22", "gfx942", 4));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("object.co");
    for features in 0..16 {
        let (words, target) = read(&mut bytes, 0x4c | features << 8, &path);
        // LLVM also names features that may have either value.
        let mut decided: Vec<String> = words[1..].to_vec();
        decided.retain(|word| word.ends_with(['+', '-']));
        decided.sort();
        let expected: Vec<String> = [words[0].clone()].into_iter().chain(decided).collect();
        assert_eq!(target, Ok(expected.join(":")), "{words:?}");
    }
}

#[test]
fn version_3_says_what_is_on() {
    for (name, target) in [
        ("gfx90a:xnack-", "gfx90a:sramecc+"),
        ("gfx90a:xnack+", "gfx90a:sramecc+:xnack+"),
    ] {
        let path = kinds_for(name, "clang++-15", 3);
        assert_eq!(llvm::target(&path), None);
        assert_eq!(target_of(&path).as_deref(), Ok(target));
    }
}
