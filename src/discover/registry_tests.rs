use super::*;
use crate::device::LoadedCodeObject;
use crate::format::codeobject::{Identity, Kernel, ProfileSections};
use crate::format::copies_table::CopiesTables;

/// A code object with kernels at these ELF addresses. Their first instructions are 0x100 further.
pub(crate) fn elf(id: &[u8], kernels: &[(&str, u64)]) -> Arc<ElfFacts> {
    let kernel = |&(name, descriptor): &(&str, u64)| Kernel {
        name: name.into(),
        descriptor,
        entry: descriptor + 0x100,
        ..Kernel::default()
    };
    Arc::new(ElfFacts {
        identity: Identity::from_build_id(id).expect("an id"),
        target: "gfx90a".into(),
        size: 9000,
        build_id: Some(id.to_vec()),
        sections: ProfileSections::default(),
        unit_tables: Vec::new(),
        copies: CopiesTables::default(),
        version: None,
        clang: Some(22),
        kernels: {
            let mut kernels: Vec<_> = kernels.iter().map(kernel).collect();
            kernels.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            kernels
        },
        damage: None,
        trace: None,
        inserted: None,
    })
}

/// A load of it at device addresses. Its ELF starts at 0x1000.
pub(crate) fn found(executable: u64, start: u64, len: u64, elf: Option<&Arc<ElfFacts>>) -> Found {
    let agent = Agent {
        handle: 0xa0,
        index: 0,
        name: "gfx90a".into(),
        isa: None,
        uuid: None,
        node: None,
    };
    Found {
        code_object: LoadedCodeObject {
            executable: Executable(executable),
            agent: 0xa0,
            uri: format!("memory://7#offset={executable:#x}&size=9000"),
            segment: DeviceRange { start, len },
            load_delta: start.wrapping_sub(0x1000),
            storage: None,
        },
        agent: Arc::new(agent),
        elf: elf.cloned(),
        image: None,
        counters: None,
    }
}

#[test]
fn loads_and_unloads_are_counted_together() {
    let (one, other) = (elf(b"1", &[]), elf(b"2", &[]));
    let mut registry = Registry::default();
    // Executable and address are reused, by one code object after the other.
    assert_eq!(
        registry.loaded(&found(1, 0x7000, 0x2000, Some(&one)), 10),
        1
    );
    registry.unloaded(Executable(1), 20);
    assert_eq!(
        registry.loaded(&found(1, 0x7000, 0x2000, Some(&other)), 30),
        3
    );
    assert_eq!(registry.generation(), 3);
    let ends: Vec<_> = registry.loads().iter().map(|load| load.unload).collect();
    let end = Unload {
        generation: 2,
        time: 20,
    };
    assert_eq!(ends, [Some(end), None]);
}

#[test]
fn a_runtime_that_ends_takes_all_loads_along() {
    let mut registry = Registry::default();
    for executable in [5, 3, 4] {
        registry.loaded(&found(executable, executable << 12, 0x1000, None), 0);
    }
    registry.unloaded(Executable(4), 1);
    registry.unloaded(Executable(4), 2);
    registry.unloaded_all(3);
    let ends = registry
        .loads()
        .iter()
        .map(|load| load.unload.expect("an end").generation);
    assert_eq!(ends.collect::<Vec<_>>(), [5, 6, 4]);
}
