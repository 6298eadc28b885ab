//! Copying many ranges of device memory.
//!
//! `hsa_memory_copy` pins its destination and waits, each time anew. Here host memory is pinned
//! once, a window in two halves: while what has come into one half is taken, the agents' own copy
//! engines fill the other. So the window bounds the memory, whatever there is to copy, and several
//! agents copy at a time.
//!
//! Whatever does not go this way (a range that is larger than a half, memory that cannot be pinned,
//! a copy that fails) goes by `hsa_memory_copy`, and its failure is the one that is told.

use std::ffi::c_void;
use std::ops::Range;

use super::abi;
use super::load::{Api, CopyApi, check};
use crate::device::{DeviceError, DeviceRange, Take};

/// Bytes of each half, at most: 40 microseconds of a PCIe 4 link.
const HALF: usize = 1 << 20;

impl Api {
    /// Copies `ranges`, and hands each to `take` in their order.
    pub(super) fn copy_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        let mut window = Window::open(self, ranges).ok();
        let mut under_way = None;
        for (number, places) in fillings(ranges).enumerate() {
            let filling = match &mut window {
                Some(window) => window.fill(number % 2, ranges, places),
                None => Filling::empty(places),
            };
            if let Some(before) = under_way.replace(filling) {
                self.take_all(window.as_mut(), &before, ranges, take);
            }
        }
        if let Some(last) = under_way {
            self.take_all(window.as_mut(), &last, ranges, take);
        }
    }

    fn take_all(
        &self,
        window: Option<&mut Window<'_>>,
        filling: &Filling,
        ranges: &[DeviceRange],
        take: &mut Take<'_>,
    ) {
        let window = window.and_then(|window| window.wait(filling.half).then_some(&*window));
        for (place, start) in filling.places.clone().zip(&filling.starts) {
            let DeviceRange { start: from, len } = ranges[place];
            let len = len as usize;
            if let Some((start, window)) = start.zip(window) {
                take(place, Ok(window.bytes(start, len)));
                continue;
            }
            let mut bytes = vec![0; len];
            let copied = self.copy_from_device(from, &mut bytes);
            take(place, copied.map(|()| bytes.as_slice()));
        }
    }
}

/// Which ranges, in their order, fill a half together.
fn fillings(ranges: &[DeviceRange]) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let mut room = HALF;
        while let Some(range) = ranges.get(next) {
            let len = in_window(*range);
            if len > room {
                break;
            }
            room -= len;
            next += 1;
        }
        (start < next).then_some(start..next)
    })
}

/// Bytes that a range takes of the window, so that each starts on a cache line: none where it is
/// larger than a half.
fn in_window(range: DeviceRange) -> usize {
    match usize::try_from(range.len) {
        Ok(len) if len <= HALF => len.next_multiple_of(64),
        _ => 0,
    }
}

/// What is on its way into a half.
struct Filling {
    half: usize,
    places: Range<usize>,
    /// Where in the window each comes to; `None` for those that are not on their way.
    starts: Vec<Option<usize>>,
}

impl Filling {
    fn empty(places: Range<usize>) -> Filling {
        Filling {
            half: 0,
            starts: vec![None; places.len()],
            places,
        }
    }
}

/// Pinned host memory that agents copy to.
struct Window<'a> {
    api: &'a Api,
    copies: CopyApi,
    cpu: u64,
    memory: Vec<u8>,
    /// Address of the memory as agents see it.
    seen_at: *mut c_void,
    halves: [Half; 2],
    /// Whether a copy has failed: nobody knows then when the others are done.
    is_broken: bool,
}

#[derive(Clone, Copy, Default)]
struct Half {
    /// Counts down the copies that are under way; 0 is no signal.
    signal: u64,
    /// Its value when all have come.
    done: i64,
}

impl<'a> Window<'a> {
    /// A window that is large enough for `ranges`, or as large as may be.
    fn open(api: &'a Api, ranges: &[DeviceRange]) -> Result<Window<'a>, DeviceError> {
        let copies = api.copies()?;
        let cpu = api.cpu_agent()?;
        let total = ranges.iter().map(|range| in_window(*range));
        let total = total.fold(0, usize::saturating_add);
        let len = if total > HALF { 2 * HALF } else { total.max(1) };
        let mut window = Window {
            api,
            copies,
            cpu,
            memory: vec![0; len],
            seen_at: std::ptr::null_mut(),
            halves: [Half::default(); 2],
            is_broken: false,
        };
        let memory = window.memory.as_mut_ptr().cast();
        // SAFETY: the memory is the window's, which unlocks it before it is freed; all agents get
        // access.
        check("hsa_amd_memory_lock", unsafe {
            (window.copies.lock_memory)(memory, len, std::ptr::null(), 0, &raw mut window.seen_at)
        })?;
        for half in &mut window.halves {
            // SAFETY: a signal that anybody may wait for; its handle is written to `signal`.
            check("hsa_signal_create", unsafe {
                (window.copies.create_signal)(0, 0, std::ptr::null(), &raw mut half.signal)
            })?;
        }
        Ok(window)
    }

    /// Sends the ranges with these `places` on their way into a half.
    fn fill(&mut self, half: usize, ranges: &[DeviceRange], places: Range<usize>) -> Filling {
        let mut filling = Filling::empty(places);
        if self.is_broken {
            return filling;
        }
        filling.half = half;
        let goes = |place: usize| in_window(ranges[place]) > 0;
        let signal = self.halves[half].signal;
        let count = filling.places.clone().filter(|place| goes(*place)).count();
        // SAFETY: a signal of this window, for which nothing is under way.
        unsafe { (self.copies.store_signal)(signal, count as i64) };
        let mut at = half * HALF;
        let mut refused = 0;
        for (start, place) in filling.starts.iter_mut().zip(filling.places.clone()) {
            if !goes(place) {
                continue;
            }
            match self.send(ranges[place], at, signal) {
                Ok(()) => *start = Some(at),
                Err(_) => refused += 1,
            }
            at += in_window(ranges[place]);
        }
        self.halves[half].done = refused;
        filling
    }

    fn send(&self, range: DeviceRange, at: usize, signal: u64) -> Result<(), DeviceError> {
        let len = range.len as usize;
        let owner = self.api.check_allocated(range.start, len)?;
        // SAFETY: the source lies in one allocation of its owner, the destination in the window at a
        // place of its own; the window waits for the signal before it goes.
        check("hsa_amd_memory_async_copy", unsafe {
            (self.copies.async_copy)(
                self.seen_at.cast::<u8>().add(at).cast(),
                self.cpu,
                range.start as *const c_void,
                owner,
                len,
                0,
                std::ptr::null(),
                signal,
            )
        })
    }

    /// Waits until all that is on its way into a half has come. False where a copy has failed.
    fn wait(&mut self, half: usize) -> bool {
        let Half { signal, done } = self.halves[half];
        while !self.is_broken && signal != 0 {
            // SAFETY: a signal of this window.
            let value = unsafe {
                (self.copies.wait_signal)(
                    signal,
                    abi::SIGNAL_LESS,
                    done + 1,
                    u64::MAX,
                    abi::WAIT_BLOCKED,
                )
            };
            if value == done {
                break;
            }
            self.is_broken = value < done;
        }
        !self.is_broken
    }

    /// What has come to `start`.
    fn bytes(&self, start: usize, len: usize) -> &[u8] {
        // SAFETY: inside the memory, where no copy is under way to: other halves are apart from it.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), len) }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        if !(self.wait(0) && self.wait(1)) {
            // Something may still come in.
            std::mem::forget(std::mem::take(&mut self.memory));
            return;
        }
        for half in self.halves.iter().filter(|half| half.signal != 0) {
            // SAFETY: a signal of this window; all its copies have been waited for.
            unsafe { (self.copies.destroy_signal)(half.signal) };
        }
        if !self.seen_at.is_null() {
            // SAFETY: it was locked by this address.
            unsafe { (self.copies.unlock_memory)(self.memory.as_mut_ptr().cast()) };
        }
    }
}
