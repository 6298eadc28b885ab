use std::path::Path;

use super::*;
use crate::device::Executable;
use crate::discover::registry::tests::{elf, found};

pub(super) fn process(pid: u32) -> Process {
    Process {
        pid,
        host: "node7".into(),
        command: vec!["app".into(), "-x".into()],
        epoch: 1_000_000,
    }
}

/// The loads and unloads of two code objects in a process.
pub(super) fn registry(start: u64) -> Registry {
    let (one, other) = (elf(b"1", &[("b", 0x1080), ("a", 0x10c0)]), elf(b"2", &[]));
    let mut registry = Registry::default();
    registry.loaded(&found(1, 0x7000, 0x2000, Some(&other)), start);
    registry.loaded(&found(2, 0x9000, 0x2000, Some(&one)), start + 1);
    registry.loaded(&found(3, 0xb000, 0x2000, Some(&one)), start + 2);
    registry.unloaded(Executable(2), start + 3);
    registry.profiled(2, Path::new("/data/profraw/gfx90a.31.0.app.profraw"));
    registry.profiled(3, Path::new("/elsewhere/gfx90a.31.0.app.profraw"));
    registry
}

pub(super) fn layout() -> DataLayout {
    DataLayout::from_data(Path::new("/data"))
}

pub(super) fn document_of(pid: u32, start: u64) -> Document {
    document(&registry(start), &process(pid), &layout(), |elf| {
        elf.clang.map(|_| format!("objects/{}.elf", elf.identity))
    })
}

#[test]
fn a_document_has_each_code_object_once_and_each_load_with_its_addresses() {
    let document = document_of(7, 100);
    let identities: Vec<_> = document
        .code_objects
        .iter()
        .map(|code_object| &*code_object.identity)
        .collect();
    assert_eq!(identities, ["31", "32"]);
    let one = &document.code_objects[0];
    assert_eq!(one.file.as_deref(), Some("objects/31.elf"));
    let names: Vec<_> = one.kernels.iter().map(|kernel| &*kernel.name).collect();
    assert_eq!(names, ["a", "b"]);

    let process = &document.processes[0];
    assert_eq!(
        (process.pid, process.start, process.epoch),
        (7, 100, 1_000_000)
    );
    let loads: Vec<_> = process
        .loads
        .iter()
        .map(|load| {
            (
                load.generation,
                load.time,
                load.code_object.as_deref(),
                load.unload.is_some(),
            )
        })
        .collect();
    let expected = [
        (1, 100, Some("32"), false),
        (2, 101, Some("31"), true),
        (3, 102, Some("31"), false),
    ];
    assert_eq!(loads, expected);
    let kernels: Vec<_> = process.loads[2]
        .kernels
        .iter()
        .map(|kernel| (&*kernel.name, kernel.object, kernel.entry))
        .collect();
    assert_eq!(kernels, [("a", 0xb0c0, 0xb1c0), ("b", 0xb080, 0xb180)]);
    let profiles: Vec<_> = process
        .loads
        .iter()
        .map(|load| load.profile.as_deref())
        .collect();
    let expected = [
        None,
        Some("profraw/gfx90a.31.0.app.profraw"),
        Some("/elsewhere/gfx90a.31.0.app.profraw"),
    ];
    assert_eq!(profiles, expected);
}
