use super::*;

const MIB: u64 = 1 << 20;

fn memory() -> (Memory, Node) {
    let node = Node::new("test", node_file_bytes(64 * MIB)).unwrap();
    (Memory::new(2, 64 * MIB), node)
}

#[test]
fn device_memory_runs_out_and_comes_back() {
    let (memory, node) = memory();
    let node: &'static Node = Box::leak(Box::new(node));
    let first = memory.allocate(node, 0, 0x10_0000, 60 * MIB, true).unwrap();
    assert_eq!(memory.vram_available(0), 4 * MIB);
    let more = memory.allocate(node, 0, 0x9000_0000, 5 * MIB, true);
    assert_eq!(more.unwrap_err(), Errno(libc::ENOMEM));
    // The VRAM size does not limit system memory.
    memory
        .allocate(node, 0, 0xa000_0000, 128 * MIB, false)
        .unwrap();
    memory.free(first.handle, |_| Ok(node)).unwrap();
    assert_eq!(memory.vram_available(0), 64 * MIB);
    assert_eq!(memory.get(first.handle).unwrap_err(), Errno(libc::EINVAL));
}

#[test]
fn a_gpu_sees_only_what_is_mapped_on_it() {
    let (memory, node) = memory();
    let allocation = memory.allocate(&node, 0, 0x10_0000, 0x3000, true).unwrap();
    assert!(memory.region(0x10_0000, 0).is_none());
    let before = memory.generation.load(Ordering::Relaxed);
    memory.set_mapped(allocation.handle, 0, true).unwrap();
    assert_ne!(before, memory.generation.load(Ordering::Relaxed));
    let region = memory.region(0x10_2fff, 0).unwrap();
    assert_eq!((region.base, region.len), (0x10_0000, 0x3000));
    assert!(memory.region(0x10_3000, 0).is_none());
    assert!(memory.region(0xf_ffff, 0).is_none());
    assert!(memory.region(0x10_0000, 1).is_none());
    memory.set_mapped(allocation.handle, 0, false).unwrap();
    assert!(memory.region(0x10_0000, 0).is_none());
}

/// The driver aligns the size to pages (`amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu` in the Linux kernel), so a load of
/// 16 bytes may reach behind an allocation of 12.
#[test]
fn an_allocation_has_whole_pages() {
    let (memory, node) = memory();
    let allocation = memory.allocate(&node, 0, 0x10_0000, 12, true).unwrap();
    memory.set_mapped(allocation.handle, 0, true).unwrap();
    assert_eq!(memory.region(0x10_0fff, 0).unwrap().len, 0x1000);
    assert!(memory.region(0x10_1000, 0).is_none());
    assert_eq!(memory.vram_used(0), 0x1000);
}

#[test]
fn overlapping_user_memory_is_found_behind_shorter_ranges() {
    let (memory, _) = memory();
    let mut bytes = vec![0u8; 0x4000];
    let host = HostAddress(bytes.as_mut_ptr());
    let outer = memory.borrow(0, 0x1000, 0x4000, host, 0);
    memory.set_mapped(outer.handle, 0, true).unwrap();
    for page in 1..3 {
        let inner = memory.borrow(0, 0x1000 + page * 0x1000, 0x800, host, 0);
        memory.set_mapped(inner.handle, 0, true).unwrap();
    }
    assert_eq!(memory.region(0x3900, 0).unwrap().base, 0x1000);
    assert_eq!(memory.region(0x3100, 0).unwrap().base, 0x3000);
}

#[test]
fn memory_of_the_driver_is_told_from_that_of_the_program() {
    let (memory, node) = memory();
    let own = HostAddress(std::ptr::null_mut());
    let registered = memory.borrow(0, 0x8_0000, 0x10_0000, own, 0);
    assert!(!memory.has_of_driver(0x8_0000, 0x10_0000));
    memory.set_mapped(registered.handle, 1, true).unwrap();
    assert!(memory.has_of_driver(0x8_0000, 0x10_0000));
    memory.set_mapped(registered.handle, 1, false).unwrap();
    memory.allocate(&node, 0, 0x10_0000, 0x3000, true).unwrap();
    for (start, len, expected) in [
        (0xf_f000, 0x1000, false),
        (0xf_f000, 0x1001, true),
        (0x10_1000, 0x1000, true),
        (0x10_2fff, 1, true),
        (0x10_3000, 0x1000, false),
    ] {
        assert_eq!(
            memory.has_of_driver(start, len),
            expected,
            "{start:#x}, {len:#x}"
        );
    }
}

#[test]
fn an_alias_shows_the_same_bytes() {
    let (memory, node) = memory();
    let source = memory.allocate(&node, 0, 0x10_0000, 0x3000, true).unwrap();
    memory.set_mapped(source.handle, 0, true).unwrap();
    memory
        .alias(source.handle, 0x90_0000, 0x1000, 0x2000, Some(1))
        .unwrap();
    let beyond = memory.alias(source.handle, 0xa0_0000, 0x1000, 0x3000, None);
    assert_eq!(beyond.unwrap_err(), Errno(libc::EINVAL));
    let (one, two) = (memory.region(0x10_1000, 0), memory.region(0x90_0000, 1));
    assert_eq!(one.unwrap().host.wrapping_add(0x1000), two.unwrap().host);
    memory.free_alias_at(0x90_0000);
    assert!(memory.region(0x90_0000, 1).is_none());
}

#[test]
fn memory_that_a_gpu_does_not_reach_has_a_reason() {
    let (memory, node) = memory();
    let node: &'static Node = Box::leak(Box::new(node));
    let of_program = Box::new(0u8);
    let own = &raw const *of_program as u64;
    let other = memory.allocate(node, 1, 0x10_0000, 0x3000, true).unwrap();
    assert_eq!(memory.unreached(0x10_2fff, 0), Some(Unreached::OtherGpu(1)));
    assert_eq!(memory.unreached(0x10_2fff, 1), None);
    assert_eq!(memory.unreached(0x10_3000, 0), None);
    assert_eq!(memory.unreached(own, 0), Some(Unreached::Program));
    memory.free(other.handle, |_| Ok(node)).unwrap();
    assert_eq!(memory.unreached(0x10_2fff, 0), Some(Unreached::Freed));
    assert_eq!(memory.unreached(0x10_3000, 0), None);
    // Only the last ones are remembered.
    for _ in 0..FREED {
        let next = memory.allocate(node, 0, 0x20_0000, 0x1000, true).unwrap();
        memory.free(next.handle, |_| Ok(node)).unwrap();
    }
    assert_eq!(memory.unreached(0x10_2fff, 0), None);
    assert_eq!(memory.unreached(0x20_0fff, 0), Some(Unreached::Freed));
}
