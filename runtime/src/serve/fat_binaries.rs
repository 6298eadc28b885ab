//! The fat binaries that the program and its libraries register with HIP, and the objects that hold them.
//!
//! A library may be closed long before the program ends, and its code may never have been launched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::guest::elf_objects::{self, Holder};

/// A registered fat binary.
#[derive(Clone)]
struct Registered {
    handle: usize,
    /// The address of its bundle.
    bundle: usize,
    /// The object that holds it, once somebody has looked.
    holder: Option<Arc<Holder>>,
}

/// All fat binaries of the process.
struct FatBinaries {
    /// Those of libraries that are open.
    registered: Vec<Registered>,
    /// The objects that were closed, each with the address of a bundle that was in it.
    closed: BTreeMap<Arc<Holder>, usize>,
    /// True once a fat binary was registered.
    are_seen: bool,
}

static ALL: Mutex<FatBinaries> = Mutex::new(FatBinaries {
    registered: Vec::new(),
    closed: BTreeMap::new(),
    are_seen: false,
});

/// Notes that HIP knows the bundle at an address by `handle`.
pub(crate) fn note(handle: usize, bundle: usize) {
    let mut all = all();
    all.are_seen = true;
    all.registered.push(Registered {
        handle,
        bundle,
        holder: None,
    });
}

/// Forgets a fat binary, whose library is being closed. If this is the drainer, remembers the library.
pub(crate) fn forget(handle: usize, is_drainer: impl FnOnce() -> bool) {
    let (mut gone, unlooked) = {
        let mut all = all();
        // The latest is unregistered first.
        let place = all
            .registered
            .iter()
            .rposition(|known| known.handle == handle);
        let Some(place) = place else { return };
        let gone = all.registered.remove(place);
        // All at once: when a program ends, it closes one library after the other.
        let unlooked = match gone.holder {
            Some(_) => Vec::new(),
            None => unlooked(&all.registered),
        };
        (gone, unlooked)
    };
    if !is_drainer() {
        return;
    }
    if gone.holder.is_none() {
        gone.holder = look([vec![gone.bundle], unlooked].concat(), gone.bundle);
    }
    if let Some(holder) = gone.holder {
        all().closed.entry(holder).or_insert(gone.bundle);
    }
}

/// Returns the objects with registered fat binaries, open or closed, each with an address that it has or had.
/// `None` if none was ever registered: then the program's calls do not pass our hooks.
pub(super) fn holders() -> Option<Vec<(usize, Arc<Holder>)>> {
    let addresses = {
        let all = all();
        if !all.are_seen {
            return None;
        }
        unlooked(&all.registered)
    };
    look(addresses, 0);
    let all = all();
    let open = all.registered.iter();
    let open = open.filter_map(|fat_binary| Some((fat_binary.bundle, fat_binary.holder.clone()?)));
    let closed = all.closed.iter();
    let closed = closed.map(|(holder, bundle)| (*bundle, holder.clone()));
    let mut holders: Vec<_> = open.chain(closed).collect();
    // Several fat binaries of an object share its holder.
    holders.dedup_by(|(_, one), (_, other)| Arc::ptr_eq(one, other));
    Some(holders)
}

/// Returns the addresses of the bundles whose objects are not known.
fn unlooked(registered: &[Registered]) -> Vec<usize> {
    let unlooked = registered
        .iter()
        .filter(|fat_binary| fat_binary.holder.is_none());
    unlooked.map(|fat_binary| fat_binary.bundle).collect()
}

/// Looks for the objects of the bundles at `addresses`, and remembers them. Returns that of `wanted`.
///
/// Nobody holds the lock meanwhile: the dynamic linker takes its own.
fn look(mut addresses: Vec<usize>, wanted: usize) -> Option<Arc<Holder>> {
    addresses.sort_unstable();
    let found = elf_objects::holders(&addresses);
    let of = |bundle| {
        let place = addresses.binary_search(&bundle).ok()?;
        found[place].clone()
    };
    for binary in &mut all().registered {
        binary.holder = binary.holder.take().or_else(|| of(binary.bundle));
    }
    of(wanted)
}

fn all() -> MutexGuard<'static, FatBinaries> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
