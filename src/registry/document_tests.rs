use super::super::record::tests::{elf, found};
use super::*;
use crate::device::Executable;

fn process(pid: u32) -> Process {
    Process {
        pid,
        host: "node7".into(),
        command: vec!["app".into(), "-x".into()],
        epoch: 1_000_000,
    }
}

/// Loads and unloads of two code objects that a process has made.
fn registry(start: u64) -> Registry {
    let (one, other) = (elf(b"1", &[("b", 0x1080), ("a", 0x10c0)]), elf(b"2", &[]));
    let mut registry = Registry::default();
    registry.loaded(&found(1, 0x7000, 0x2000, Some(&other)), start);
    registry.loaded(&found(2, 0x9000, 0x2000, Some(&one)), start + 1);
    registry.loaded(&found(3, 0xb000, 0x2000, Some(&one)), start + 2);
    registry.unloaded(Executable(2), start + 3);
    registry.profiled(2, Path::new("/data/gfx90a.31.0.app.profraw"));
    registry.profiled(3, Path::new("/elsewhere/gfx90a.31.0.app.profraw"));
    registry
}

fn document_of(pid: u32, start: u64) -> Document {
    document(&registry(start), &process(pid), Path::new("/data"), |elf| {
        elf.clang.map(|_| format!("objects/{}.elf", elf.identity))
    })
}

#[test]
fn a_document_has_each_code_object_once_and_each_load_with_its_addresses() {
    let document = document_of(7, 100);
    let identities: Vec<_> = document
        .code_objects
        .iter()
        .map(|it| &*it.identity)
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
        Some("gfx90a.31.0.app.profraw"),
        Some("/elsewhere/gfx90a.31.0.app.profraw"),
    ];
    assert_eq!(profiles, expected);
}

#[test]
fn a_process_that_writes_again_replaces_its_own_record() {
    let mut pool = document_of(7, 100);
    pool.merge(document_of(8, 50));
    let mut later = registry(100);
    later.unloaded_all(200);
    let later = document(&later, &process(7), Path::new("/data"), |_| None);
    let expected = later.processes[0].clone();
    pool.merge(later);
    assert_eq!(pool.processes.len(), 2);
    assert_eq!(pool.processes[1], expected);
    // A process that keeps no device ELFs takes away no other's.
    assert_eq!(pool.code_objects[0].file.as_deref(), Some("objects/31.elf"));
}

/// Numbers of processes, and starts, come again on other hosts and after a while.
#[test]
fn processes_are_told_apart_by_number_host_and_start() {
    let mut elsewhere = document_of(7, 100);
    elsewhere.processes[0].host = "node8".into();
    let mut pool = document_of(7, 100);
    for other in [elsewhere, document_of(7, 101), document_of(8, 100)] {
        pool.merge(other);
    }
    let keys: Vec<_> = pool
        .processes
        .iter()
        .map(|process| (process.start, process.pid, &*process.host))
        .collect();
    let expected = [
        (100, 7, "node7"),
        (100, 7, "node8"),
        (100, 8, "node7"),
        (101, 7, "node7"),
    ];
    assert_eq!(keys, expected);
}

#[test]
fn sixty_four_processes_make_one_text_in_whatever_order_they_come() {
    let merged = |order: &mut dyn Iterator<Item = u32>| {
        let mut pool = Document::default();
        for pid in order {
            pool.merge(document_of(pid, 1000 - u64::from(pid)));
        }
        assert_eq!((pool.processes.len(), pool.code_objects.len()), (64, 2));
        pool.to_json()
    };
    let text = merged(&mut (1..=64));
    assert_eq!(text, merged(&mut (1..=64).rev()));
    assert_eq!(text, merged(&mut (1..=64).map(|it| (it * 37) % 64 + 1)));
}

#[test]
fn the_same_code_for_another_target_is_another_code_object() {
    let mut pool = document_of(7, 100);
    let mut other = document_of(8, 100);
    for elf in &mut other.code_objects {
        elf.target = "gfx942".into();
    }
    pool.merge(other);
    let found: Vec<_> = pool
        .code_objects
        .iter()
        .map(|elf| (&*elf.identity, &*elf.target))
        .collect();
    let expected = [
        ("31", "gfx90a"),
        ("31", "gfx942"),
        ("32", "gfx90a"),
        ("32", "gfx942"),
    ];
    assert_eq!(found, expected);
}
