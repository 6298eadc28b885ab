//! The copies of librocov in the process, by the blocks that they export.

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

use crate::guest::elf_objects::{self, Object};

/// The roles that one copy has for all, in a block that the copies share. Its layout is an interface
/// between versions of librocov: a change needs a new symbol.
#[repr(C)]
pub(crate) struct Roles {
    /// The drainer's [`ReceiveFn`](super::ReceiveFn); null before the first event.
    pub(super) drainer: AtomicPtr<c_void>,
    /// The [`ReceiveFn`](super::ReceiveFn) of the copy that hooks HSA's tool table; null before one does.
    pub(super) table_hooker: AtomicPtr<c_void>,
}

impl Roles {
    /// Makes a block in which no copy has a role yet.
    pub(crate) const fn new() -> Self {
        Self {
            drainer: AtomicPtr::new(std::ptr::null_mut()),
            table_hooker: AtomicPtr::new(std::ptr::null_mut()),
        }
    }
}

pub(super) fn block_of(object: &Object) -> Option<*mut Roles> {
    object
        .defines(c"rocov_roles_v1")
        .map(|address| address.cast())
}

/// The address of a private function of this copy. The address of an exported function may be that of
/// another object's function.
fn own_address() -> *const c_void {
    own_address as *const c_void
}

/// Returns whether `address` lies in an object with a copy. Every process calls this at its start, so
/// the usual answer is cheap.
pub(crate) fn is_in_a_copy(address: *const c_void) -> bool {
    elf_objects::are_together(address, own_address())
        || elf_objects::containing(address).is_some_and(|object| block_of(&object).is_some())
}

/// Returns the object that contains this copy.
pub(crate) fn own_object() -> Option<Object> {
    elf_objects::containing(own_address())
}

/// Keeps the drainer's code in the process: its exit handlers and hooks run to the end.
pub(crate) fn pin() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Some(object) = own_object() {
            object.keep();
        }
    });
}
