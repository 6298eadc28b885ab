//! Second station: one drainer among the copies of librocov.
//!
//! librocov may be in a process several times: preloaded, and linked statically into libraries. Each
//! copy has hooks that see some of the events. If each copy drained, counts would be written again and
//! again, or doubled. So the copy that sees the first event becomes the drainer, and the others hand
//! their events to it.
//!
//! The copies find each other by an exported symbol, a block of [`Roles`]. All use the block of the first
//! object in the dynamic linker's list that has one. That object stays the first, because later objects
//! go to the end of the list.
//!
//! LLVM's own drain may be in the process too: [`llvm_drain`] finds it, [`hidden_tables`] hides the
//! counters from it.
#![expect(
    unsafe_code,
    reason = "reads blocks and calls functions of other copies"
)]

pub(crate) mod cuda_event;
pub(crate) mod event;
pub(crate) mod hidden_tables;
pub(crate) mod interposer;
pub(crate) mod llvm_drain;

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::guest::elf_objects::{self, Object};
use crate::guest::status::RocovStatus;
use crate::guest::{boundary, process};
use event::Event;
use interposer::Interposer;

/// The roles that one copy has for all, in a block that the copies share. Its layout is an interface
/// between versions of librocov: a change needs a new symbol.
#[repr(C)]
pub(crate) struct Roles {
    /// The drainer's [`ReceiveFn`]; null before the first event.
    drainer: AtomicPtr<c_void>,
    /// The [`ReceiveFn`] of the copy that hooks HSA's tool table; null before one does.
    table_hooker: AtomicPtr<c_void>,
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

/// Takes an event by number, and returns a [`RocovStatus`] by number.
pub(crate) type ReceiveFn = unsafe extern "C" fn(event: c_int, argument: u64) -> c_int;

/// This copy of librocov as a candidate.
pub(crate) struct Candidate {
    /// The block that this copy exports.
    pub(crate) block: &'static Roles,
    /// The function that takes events if this copy is the drainer.
    pub(crate) receive: ReceiveFn,
}

impl Candidate {
    /// Hands an event to the drainer. If there is none, this copy becomes the drainer, unless the event
    /// needs no drainer yet.
    pub(crate) fn send(&self, event: Event<'_>) -> RocovStatus {
        boundary::call("a hook", || {
            if matches!(event, Event::Frozen(_)) {
                // Every copy that sees code loaded remembers it, for its own hooks.
                process::claim();
            }
            let drainer = &self.roles().drainer;
            let mut receiver = drainer.load(Ordering::Acquire);
            if receiver.is_null() {
                let is_late = || event.is_request() && process::claim_running();
                if !event.affects_later_loads() && !is_late() {
                    // Nothing was ever loaded. The late exit drain finds code that came in past all
                    // hooks.
                    return RocovStatus::Nothing;
                }
                receiver = self.claim(drainer);
            }
            // SAFETY: the blocks only hold functions of this type, and the drainer stays loaded.
            let receiver = unsafe { std::mem::transmute::<*mut c_void, ReceiveFn>(receiver) };
            let (number, argument) = event.encode();
            // SAFETY: the argument belongs to an event of this number.
            RocovStatus::from_number(unsafe { receiver(number, argument) })
        })
    }

    /// Claims the role of hooking HSA's tool table, which only one copy does. Returns whether this copy
    /// has it now.
    pub(crate) fn claim_table(&self) -> bool {
        self.is_own(self.claim(&self.roles().table_hooker))
    }

    /// Returns whether the hooks of some copy see loads and unloads.
    pub(crate) fn sees_calls(&self) -> bool {
        let hooker = self.roles().table_hooker.load(Ordering::Acquire);
        !hooker.is_null() || Interposer::now() == Interposer::Rocov
    }

    /// Claims the role of the drainer. Returns whether this copy has it now.
    pub(crate) fn claim_drain(&self) -> bool {
        self.is_own(self.claim(&self.roles().drainer))
    }

    /// Returns whether this copy is the drainer, or no copy is. Does not claim the role.
    pub(crate) fn may_drain(&self) -> bool {
        let drainer = self.roles().drainer.load(Ordering::Acquire);
        drainer.is_null() || self.is_own(drainer)
    }

    /// Gives `role` to this copy if no copy has it. Returns the copy that has it, by its function.
    fn claim(&self, role: &AtomicPtr<c_void>) -> *mut c_void {
        let ours = self.receive as *mut c_void;
        let won = role.compare_exchange(
            std::ptr::null_mut(),
            ours,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        won.map_or_else(|other| other, |_| ours)
    }

    fn is_own(&self, holder: *const c_void) -> bool {
        std::ptr::eq(holder, self.receive as *const c_void)
    }

    /// Returns the block of the first object that has one, or our own if no object exports one.
    fn roles(&self) -> &'static Roles {
        static ROLES: OnceLock<&'static Roles> = OnceLock::new();
        ROLES.get_or_init(|| {
            let first = elf_objects::all().into_iter().find_map(|object| {
                let block = block_of(&object)?;
                if !process::is_exiting() {
                    object.keep();
                }
                // SAFETY: a symbol of this name is such a block, and its object stays.
                unsafe { block.as_ref() }
            });
            first.unwrap_or(self.block)
        })
    }
}

fn block_of(object: &Object) -> Option<*mut Roles> {
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
