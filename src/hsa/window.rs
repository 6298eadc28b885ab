//! Copying device memory.
//!
//! `hsa_memory_copy` pins its destination and waits, each time anew, and for ever where the copy does
//! not end. Here host memory is pinned once, a window in two halves: while what has come into one half
//! is taken, the agents' own copy engines fill the other. So the window bounds the memory, whatever
//! there is to copy, several agents copy at a time, and waiting has an end ([`Copying`]).
//!
//! What does not come this way (a range that is larger than a half, a copy that fails or does not end)
//! is copied alone, through a window of its own, so that one agent which is stuck costs no other its
//! counts. Where memory cannot be pinned, or a copy fails alone too, `hsa_memory_copy` has the last
//! word, and its failure is the one that is told.
//!
//! [`Copying`]: super::Copying

use std::ffi::c_void;
use std::ops::Range;
use std::time::Instant;

use super::HsaDevice;
use super::abi;
use super::load::{Api, CopyApi, check};
use crate::device::{DeviceError, DeviceRange, Take, zeroed};

/// Bytes of each half, at most: 40 microseconds of a PCIe 4 link.
const HALF: usize = 1 << 20;

/// How long the runtime waits until we look at the clock, in ticks of its own: 10 to 100 milliseconds,
/// as a tick is 1 to 10 nanoseconds.
const SLICE: u64 = 10_000_000;

impl HsaDevice {
    /// Copies `ranges`, and hands each to `take` in their order.
    pub(super) fn copy_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        let mut window = Window::open(self, total(ranges)).ok();
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
        let window = window
            .and_then(|window| (window.wait(filling.half) == Ended::Well).then_some(&*window));
        for (place, start) in filling.places.clone().zip(&filling.starts) {
            match start.zip(window) {
                Some((start, window)) => take(place, Ok(window.bytes(start, ranges[place]))),
                None => self.copy_alone(place, ranges[place], take),
            }
        }
    }

    /// Copies `into.len()` bytes from the device address `address`.
    pub(super) fn copy_from_device(
        &self,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        let mut result = Ok(());
        let (start, len) = (address, into.len() as u64);
        self.copy_alone(0, DeviceRange { start, len }, &mut |_, read| {
            result = read.map(|bytes| into.copy_from_slice(bytes));
        });
        result
    }

    /// Copies `from` to the device address `address`.
    pub(super) fn copy_to_device(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        let (start, len) = (address, from.len() as u64);
        let range = DeviceRange { start, len };
        let agent = self.api.check_allocated(start, from.len())?;
        self.copying.check(agent)?;
        if let Ok(mut window) = Window::open(self, from.len()) {
            window.memory[..from.len()].copy_from_slice(from);
            match window.send_alone(range, Direction::In) {
                Ended::Well => return Ok(()),
                Ended::Badly => {}
                Ended::Never => return Err(self.copying.give_up(agent)),
            }
        }
        self.api.wait_for_copy_to(start, from)
    }

    /// Copies one range, the one at `place`.
    fn copy_alone(&self, place: usize, range: DeviceRange, take: &mut Take<'_>) {
        let mut copy = || {
            if range.len == 0 {
                take(place, Ok(&[]));
                return Ok(());
            }
            let len = range.len as usize;
            let agent = self.api.check_allocated(range.start, len)?;
            self.copying.check(agent)?;
            if let Ok(mut window) = Window::open(self, len) {
                match window.send_alone(range, Direction::Out) {
                    Ended::Well => {
                        take(place, Ok(window.bytes(0, range)));
                        return Ok(());
                    }
                    Ended::Badly => {}
                    Ended::Never => return Err(self.copying.give_up(agent)),
                }
            }
            let mut bytes = zeroed(range.len)?;
            self.api.wait_for_copy(range.start, &mut bytes)?;
            take(place, Ok(&bytes));
            Ok(())
        };
        if let Err(error) = copy() {
            take(place, Err(error));
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

/// Bytes that all of them take, or as many as a window may have.
fn total(ranges: &[DeviceRange]) -> usize {
    let total = ranges.iter().map(|range| in_window(*range));
    let total = total.fold(0, usize::saturating_add);
    if total > HALF { 2 * HALF } else { total }
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

/// Where bytes go: out of the device into the window, or the other way.
#[derive(Clone, Copy)]
enum Direction {
    Out,
    In,
}

/// How copies ended.
#[derive(Clone, Copy, PartialEq)]
enum Ended {
    Well,
    /// One has failed: nobody knows then when the others are done.
    Badly,
    /// One is still under way, and nothing has come for a long time.
    Never,
}

/// Pinned host memory that agents copy to.
struct Window<'a> {
    device: &'a HsaDevice,
    copies: CopyApi,
    cpu: u64,
    memory: Vec<u8>,
    /// Address of the memory as agents see it.
    seen_at: *mut c_void,
    halves: [Half; 2],
    /// How its copies have ended so far.
    ended: Ended,
}

#[derive(Clone, Copy, Default)]
struct Half {
    /// Counts down the copies that are under way; 0 is no signal.
    signal: u64,
    /// Its value when all have come.
    done: i64,
}

impl<'a> Window<'a> {
    /// A window of `len` bytes.
    fn open(device: &'a HsaDevice, len: usize) -> Result<Window<'a>, DeviceError> {
        let api: &Api = &device.api;
        let copies = api.copies()?;
        let cpu = api.cpu_agent()?;
        let len = len.max(1);
        let mut window = Window {
            device,
            copies,
            cpu,
            memory: zeroed(len as u64)?,
            seen_at: std::ptr::null_mut(),
            halves: [Half::default(); 2],
            ended: Ended::Well,
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
        if self.ended != Ended::Well {
            return filling;
        }
        filling.half = half;
        let goes = |place: usize| in_window(ranges[place]) > 0;
        let count = filling.places.clone().filter(|place| goes(*place)).count();
        self.expect(half, count);
        let mut at = half * HALF;
        let mut refused = 0;
        for (start, place) in filling.starts.iter_mut().zip(filling.places.clone()) {
            if !goes(place) {
                continue;
            }
            match self.send(ranges[place], Direction::Out, at, self.halves[half].signal) {
                Ok(()) => *start = Some(at),
                Err(_) => refused += 1,
            }
            at += in_window(ranges[place]);
        }
        self.halves[half].done = refused;
        filling
    }

    /// Copies one range from or to the start of the window.
    fn send_alone(&mut self, range: DeviceRange, direction: Direction) -> Ended {
        self.expect(0, 1);
        match self.send(range, direction, 0, self.halves[0].signal) {
            Ok(()) => self.wait(0),
            Err(_) => {
                self.halves[0].done = 1;
                Ended::Badly
            }
        }
    }

    /// So many copies are going to be under way into a half.
    fn expect(&mut self, half: usize, count: usize) {
        // SAFETY: a signal of this window, for which nothing is under way.
        unsafe { (self.copies.store_signal)(self.halves[half].signal, count as i64) };
    }

    fn send(
        &self,
        range: DeviceRange,
        direction: Direction,
        at: usize,
        signal: u64,
    ) -> Result<(), DeviceError> {
        let len = range.len as usize;
        let owner = self.device.api.check_allocated(range.start, len)?;
        self.device.copying.check(owner)?;
        // SAFETY: inside the memory.
        let place = unsafe { self.seen_at.cast::<u8>().add(at) }.cast::<c_void>();
        let outside = range.start as *mut c_void;
        let (to, to_agent, from, from_agent) = match direction {
            Direction::Out => (place, self.cpu, outside, owner),
            Direction::In => (outside, owner, place, self.cpu),
        };
        // SAFETY: the device's range lies in one allocation of its owner, the host's in the window at
        // a place of its own; the window waits for the signal before it goes.
        check("hsa_amd_memory_async_copy", unsafe {
            let none = std::ptr::null();
            (self.copies.async_copy)(to, to_agent, from, from_agent, len, 0, none, signal)
        })
    }

    /// Waits until all that is on its way into a half has come, or nothing comes any more.
    fn wait(&mut self, half: usize) -> Ended {
        let Half { signal, done } = self.halves[half];
        let mut last = None;
        let mut since = Instant::now();
        while self.ended == Ended::Well && signal != 0 {
            // SAFETY: a signal of this window.
            let value = unsafe {
                (self.copies.wait_signal)(
                    signal,
                    abi::SIGNAL_LESS,
                    done + 1,
                    SLICE,
                    abi::WAIT_BLOCKED,
                )
            };
            if value == done {
                break;
            }
            if value < done {
                self.ended = Ended::Badly;
            } else if last.replace(value) != Some(value) {
                since = Instant::now();
            } else if since.elapsed() >= self.device.copying.patience() {
                self.ended = Ended::Never;
            }
        }
        self.ended
    }

    /// What has come of `range` to `start`.
    fn bytes(&self, start: usize, range: DeviceRange) -> &[u8] {
        // SAFETY: inside the memory, where no copy is under way to: other halves are apart from it.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), range.len as usize) }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        if [0, 1]
            .into_iter()
            .any(|half| self.wait(half) != Ended::Well)
        {
            // Something may still come in: memory and signals stay.
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
