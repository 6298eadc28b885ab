use memmap2::{MmapOptions, MmapRaw};

use super::*;
use crate::gpu::gpu_id;

/// Memory of a file, and its address. The kernel joins anonymous memory with that of other threads; a file's has bounds.
fn mapping(len: u64) -> (MmapRaw, u64) {
    let file = sys::memfd(c"svm", len, 0).unwrap();
    let mapping = MmapOptions::new().len(len as usize).map_raw(&file).unwrap();
    let start = mapping.as_ptr() as u64;
    (mapping, start)
}

/// Eight pages of the program, and their address.
fn pages() -> (MmapRaw, u64) {
    mapping(8 * sys::PAGE)
}

fn attribute(kind: u32, value: u32) -> SvmAttribute {
    SvmAttribute { kind, value }
}

fn ask(svm: &Svm, start: u64, len: u64, kind: u32, value: u32) -> SvmAttribute {
    let mut answer = [attribute(kind, value)];
    svm.get(start, len, &mut answer, 2).unwrap();
    answer[0]
}

#[test]
fn a_gpu_reaches_the_ranges_it_was_given() {
    let (_pages, start) = pages();
    let (svm, page) = (Svm::new(), sys::PAGE);
    let access = [attribute(svm_attribute::ACCESS, gpu_id(1))];
    svm.set(start + page, 4 * page, &access, 2).unwrap();
    assert_eq!(svm.region(start, 1), None);
    assert_eq!(svm.region(start + page, 0), None);
    assert_eq!(
        svm.region(start + 2 * page + 5, 1),
        Some((start + page, 4 * page))
    );
    assert_eq!(svm.region(start + 5 * page, 1), None);
    // The middle page is taken away again.
    let none = [attribute(svm_attribute::NO_ACCESS, gpu_id(1))];
    svm.set(start + 2 * page, page, &none, 2).unwrap();
    assert_eq!(svm.region(start + page, 1), Some((start + page, page)));
    assert_eq!(svm.region(start + 2 * page, 1), None);
    assert_eq!(
        svm.region(start + 3 * page, 1),
        Some((start + 3 * page, 2 * page))
    );
}

#[test]
fn answers_hold_for_the_whole_range() {
    let (_pages, start) = pages();
    let (svm, page) = (Svm::new(), sys::PAGE);
    let kind = svm_attribute::PREFERRED_LOCATION;
    svm.set(start, page, &[attribute(kind, gpu_id(0))], 2)
        .unwrap();
    assert_eq!(ask(&svm, start, page, kind, 0).value, gpu_id(0));
    let two = ask(&svm, start, 2 * page, kind, 0);
    assert_eq!(two.value, svm_location::UNDEFINED);
    let in_place = [attribute(svm_attribute::ACCESS_IN_PLACE, gpu_id(0))];
    svm.set(start, page, &in_place, 2).unwrap();
    let access = [attribute(svm_attribute::ACCESS, gpu_id(0))];
    svm.set(start + page, page, &access, 2).unwrap();
    for (pages, kind) in [
        (1, svm_attribute::ACCESS_IN_PLACE),
        (2, svm_attribute::ACCESS),
        (3, svm_attribute::NO_ACCESS),
    ] {
        let answer = ask(&svm, start, pages * page, svm_attribute::ACCESS, gpu_id(0));
        assert_eq!(answer.kind, kind, "{pages} pages");
    }
    let flags = [attribute(svm_attribute::SET_FLAGS, svm_flag::READ_MOSTLY)];
    svm.set(start, page, &flags, 2).unwrap();
    let kind = svm_attribute::SET_FLAGS;
    let set = |pages| ask(&svm, start, pages * page, kind, 0).value & svm_flag::READ_MOSTLY;
    assert_eq!((set(1), set(2)), (svm_flag::READ_MOSTLY, 0));
}

#[test]
fn bad_requests_change_nothing() {
    let (_pages, start) = pages();
    let (svm, page) = (Svm::new(), sys::PAGE);
    let bad = [
        attribute(svm_attribute::ACCESS, gpu_id(0)),
        attribute(svm_attribute::ACCESS, 77),
    ];
    let refused = svm.set(start, page, &bad, 2);
    assert_eq!(refused, Err(Errno(libc::EINVAL)));
    assert_eq!(svm.region(start, 0), None);
    let unknown = svm.set(start, page, &[attribute(99, 0)], 2);
    assert_eq!(unknown, Err(Errno(libc::EINVAL)));
    // No program has memory at the lowest addresses.
    let access = [attribute(svm_attribute::ACCESS, gpu_id(0))];
    assert_eq!(svm.set(0, page, &access, 2), Err(Errno(libc::EFAULT)));
    assert_eq!(svm.region(0, 0), None);
}

#[test]
fn unmapped_memory_is_no_region() {
    // Tests in other threads map memory, too. The kernel puts it at the end of the hole that this one leaves, which is
    // larger than all that they map.
    let (mapping, start) = mapping(16 << 40);
    let (svm, page) = (Svm::new(), sys::PAGE);
    let access = [attribute(svm_attribute::ACCESS, gpu_id(0))];
    svm.set(start, 8 * page, &access, 1).unwrap();
    assert_eq!(svm.region(start, 0), Some((start, 8 * page)));
    drop(mapping);
    assert_eq!(svm.region(start, 0), None);
}

#[test]
fn with_xnack_a_gpu_reaches_all_memory() {
    let (pages, start) = pages();
    let svm = Svm::new();
    assert_eq!(svm.region(start, 0), None);
    svm.set_xnack(true);
    assert_eq!(svm.region(start + 100, 0), Some((start, 8 * sys::PAGE)));
    let none = [attribute(svm_attribute::NO_ACCESS, gpu_id(0))];
    svm.set(start, sys::PAGE, &none, 1).unwrap();
    assert_eq!(svm.region(start, 0), None);
    drop(pages);
    assert_eq!(svm.region(start, 0), None);
    assert_eq!(svm.region(8, 0), None);
}
