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

mod copies;
pub(crate) mod cuda_event;
pub(crate) mod event;
pub(crate) mod hidden_tables;
pub(crate) mod interposer;
pub(crate) mod llvm_drain;

pub(crate) use copies::{Roles, is_in_a_copy, own_object, pin};

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::guest::status::RocovStatus;
use crate::guest::{boundary, elf_objects, process};
use copies::block_of;
use event::Event;
use interposer::Interposer;

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
