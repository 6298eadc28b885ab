//! The fat binaries that the program and its libraries register with HIP.
//!
//! They name code that is never launched, also in a library that is closed long before the program
//! ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::zero_profiles;
use crate::guest::elf_objects;

/// A registered fat binary.
#[derive(Clone, Copy)]
struct Registered {
    handle: usize,
    /// The address of its bundle.
    bundle: usize,
}

static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());
/// Set once a fat binary was registered.
static ARE_SEEN: AtomicBool = AtomicBool::new(false);

/// Notes that HIP knows the bundle at an address by `handle`.
pub(crate) fn note(handle: usize, bundle: usize) {
    registered().push(Registered { handle, bundle });
    ARE_SEEN.store(true, Ordering::Relaxed);
}

/// Forgets a fat binary, whose library is being closed. Calls `is_drainer` if the fat binary was known:
/// the drainer writes zeros for code of it that was never launched.
pub(crate) fn forget(handle: usize, is_drainer: impl FnOnce() -> bool) {
    let mut all = registered();
    // The latest is unregistered first.
    let place = all.iter().rposition(|binary| binary.handle == handle);
    let gone = place.map(|place| all.remove(place));
    drop(all);
    let bytes = gone.and_then(|gone| elf_objects::rest_of_segment(gone.bundle));
    if let Some(bytes) = bytes.filter(|_| is_drainer()) {
        zero_profiles::of_closed(bytes);
    }
}

/// Calls `look` with each registered bundle and the bytes behind it. Returns whether any was ever
/// registered: if not, the program's calls do not pass our hooks.
pub(super) fn each(mut look: impl FnMut(&[u8])) -> bool {
    let all = registered().clone();
    let bundles = all.into_iter().map(|binary| binary.bundle);
    for bytes in bundles.filter_map(elf_objects::rest_of_segment) {
        look(bytes);
    }
    ARE_SEEN.load(Ordering::Relaxed)
}

fn registered() -> MutexGuard<'static, Vec<Registered>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}
