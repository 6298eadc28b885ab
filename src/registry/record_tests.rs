use super::*;
use crate::codeobject::{Identity, ProfileSections};
use crate::device::LoadedCodeObject;
use crate::load::Kernels;

/// A code object with kernels at these ELF addresses; their first instructions are 0x100 further.
pub(in crate::registry) fn elf(id: &[u8], kernels: &[(&str, u64)]) -> Arc<ElfFacts> {
    let kernel = |&(name, descriptor): &(&str, u64)| Kernel {
        name: name.into(),
        descriptor,
        entry: descriptor + 0x100,
        ..Kernel::default()
    };
    Arc::new(ElfFacts {
        identity: Identity::of_build_id(id).expect("an id"),
        target: "gfx90a".into(),
        size: 9000,
        build_id: Some(id.to_vec()),
        sections: ProfileSections::default(),
        unit_tables: Vec::new(),
        version: None,
        clang: Some(22),
        kernels: Kernels::new(kernels.iter().map(kernel).collect()),
        damage: None,
    })
}

/// A load of it at device addresses; its ELF starts at 0x1000.
pub(in crate::registry) fn found(
    executable: u64,
    start: u64,
    len: u64,
    elf: Option<&Arc<ElfFacts>>,
) -> Found {
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
        counters: None,
    }
}

/// Generation of the load and name of the kernel that an address meant.
fn meant(registry: &Registry, address: u64, generation: u64) -> (Option<u64>, Option<&str>) {
    let Resolved {
        address: raw,
        load,
        kernel,
    } = registry.lookup(address, generation);
    assert_eq!(raw, address);
    (
        load.map(|load| load.generation),
        kernel.map(|kernel| kernel.name.as_str()),
    )
}

#[test]
fn an_address_means_what_was_there_then() {
    let (one, other) = (
        elf(b"1", &[("one", 0x1040)]),
        elf(b"2", &[("other", 0x1040)]),
    );
    let mut registry = Registry::default();
    // The same executable handle and the same address, with one code object after the other.
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
    for (generation, load, kernel) in [
        (0, None, None),
        (1, Some(1), Some("one")),
        (2, None, None),
        (3, Some(3), Some("other")),
        (99, Some(3), Some("other")),
    ] {
        // The kernel object, and the first instruction.
        for address in [0x7040, 0x7140] {
            assert_eq!(meant(&registry, address, generation), (load, kernel));
        }
    }
    // Elsewhere in the segment there is no kernel, and outside nothing.
    for (address, load) in [
        (0x7000, Some(3)),
        (0x7041, Some(3)),
        (0x8fff, Some(3)),
        (0x6fff, None),
        (0x9000, None),
        (0, None),
        (u64::MAX, None),
    ] {
        assert_eq!(meant(&registry, address, 3), (load, None), "{address:#x}");
    }
    let ends: Vec<_> = registry.loads().iter().map(|load| load.unload).collect();
    let end = Unload {
        generation: 2,
        time: 20,
    };
    assert_eq!(ends, [Some(end), None]);
}

#[test]
fn lengths_and_starts_may_differ_from_load_to_load() {
    let mut registry = Registry::default();
    // A large one, then small ones where it was, then one that starts in the middle.
    registry.loaded(&found(1, 0x10000, 0x10000, None), 0);
    registry.unloaded(Executable(1), 0);
    for small in 0..16 {
        registry.loaded(&found(2, 0x10000 + small * 0x1000, 0x1000, None), 0);
    }
    registry.unloaded(Executable(2), 0);
    registry.loaded(&found(3, 0x18000, 0x18000, None), 0);
    let load = |address, generation| meant(&registry, address, generation).0;
    assert_eq!(load(0x1f000, 1), Some(1));
    assert_eq!(load(0x1f000, 2), None);
    assert_eq!(
        load(0x1f000, 17),
        None,
        "the last of the small ones is number 18"
    );
    assert_eq!(load(0x1f000, 18), Some(18));
    assert_eq!(load(0x10fff, 18), Some(3));
    assert_eq!(load(0x1f000, 34), None);
    assert_eq!(load(0x1f000, 35), Some(35));
    assert_eq!(load(0x17fff, 35), None);
    assert_eq!(load(0x2ffff, 35), Some(35));
}

#[test]
fn the_ends_of_the_address_space_are_addresses_too() {
    let mut registry = Registry::default();
    registry.loaded(&found(1, 0, 0x1000, None), 0);
    registry.loaded(&found(2, u64::MAX - 0xfff, 0x1000, None), 0);
    registry.loaded(&found(3, 1 << 63, 1 << 63, None), 0);
    registry.loaded(&found(4, 0x5000, 0, None), 0);
    let load = |address| meant(&registry, address, 4).0;
    assert_eq!(load(0), Some(1));
    assert_eq!(load(1 << 63), Some(3));
    assert_eq!(
        load(u64::MAX),
        Some(3),
        "the later of two that cannot both be"
    );
    assert_eq!(load(0x5000), None, "an empty one holds nothing");
}

/// Against the plain search through all loads, with loads of any size that come and go.
#[test]
fn a_search_finds_what_a_walk_finds() {
    let mut registry = Registry::default();
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut there: Vec<(u64, DeviceRange)> = Vec::new();
    for executable in 1..2000 {
        let range = DeviceRange {
            start: random(1000) * 16,
            len: 1 << random(9),
        };
        let is_free = |other: &DeviceRange| {
            other.start + other.len <= range.start || range.start + range.len <= other.start
        };
        there.retain(|(executable, other)| {
            if !is_free(other) {
                registry.unloaded(Executable(*executable), 0);
            }
            is_free(other)
        });
        registry.loaded(&found(executable, range.start, range.len, None), 0);
        there.push((executable, range));
    }
    let end = registry.generation();
    for _ in 0..20_000 {
        let (address, generation) = (random(17_000), random(end + 1));
        let walked = registry.loads().iter().find(|load| {
            (load.segment.start..load.segment.start + load.segment.len).contains(&address)
                && load.generation <= generation
                && load.unload.is_none_or(|end| generation < end.generation)
        });
        let found = registry.lookup(address, generation).load;
        assert_eq!(
            found.map(|load| load.generation),
            walked.map(|load| load.generation),
            "{address:#x} as of {generation}"
        );
    }
}

#[test]
fn a_clock_that_goes_backwards_orders_nothing() {
    let mut registry = Registry::default();
    registry.loaded(&found(1, 0x1000, 0x1000, None), 500);
    registry.unloaded(Executable(1), 400);
    registry.loaded(&found(2, 0x1000, 0x1000, None), 0);
    assert_eq!(meant(&registry, 0x1000, 1).0, Some(1));
    assert_eq!(meant(&registry, 0x1000, 2).0, None);
    assert_eq!(meant(&registry, 0x1000, 3).0, Some(3));
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
