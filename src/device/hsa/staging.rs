//! Copies device memory.
//!
//! `hsa_memory_copy` pins its destination for each copy, and waits forever if the copy does not end.
//! `staging` pins host memory once, a window in two halves. While `take` consumes one half, the agents' own
//! copy engines fill the other. So the window limits the memory whatever there is to copy, several agents
//! copy at a time, and each wait has a limit ([`Copying`]).
//!
//! The copies of each agent into a half have their own signal ([`Lane`]), so a stuck agent costs no other
//! agent its counts. A range that is larger than a half, or whose copy fails, is copied separately, through
//! its own window. If memory cannot be pinned, or the separate copy fails too, `hsa_memory_copy` makes the
//! last attempt, and rocov reports its failure.
//!
//! [`Copying`]: crate::device::hsa::Copying
//! [`Lane`]: crate::device::hsa::copy_queue::Lane

use std::ffi::c_void;
use std::ops::Range;

use crate::device::hsa::copy_queue::{Ended, Lane};
use crate::device::hsa::runtime::{Copier, check};
use crate::device::hsa::{HsaDevice, abi};
use crate::device::{DeviceError, DeviceRange, Take};
use crate::support::backoff::Stopwatch;
use crate::support::memory::zeroed;

/// The largest size of each half in bytes: 40 microseconds of a PCIe 4 link.
const HALF: usize = 1 << 20;

impl HsaDevice {
    /// Copies `ranges` and hands each to `take`, in their order.
    pub(super) fn copy_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        let total = total(ranges);
        let mut window = (total > 0)
            .then(|| Window::open(self, total).ok())
            .flatten();
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
        mut window: Option<&mut Window<'_>>,
        filling: &Filling,
        ranges: &[DeviceRange],
        take: &mut Take<'_>,
    ) {
        if let Some(window) = &mut window {
            window.wait(filling.half);
        }
        for (place, sent) in filling.places.clone().zip(&filling.sent) {
            let sent = sent.as_ref().zip(window.as_deref());
            let come =
                sent.and_then(|(sent, window)| window.come(filling.half, sent, ranges[place]));
            match come {
                Some(bytes) => take(place, Ok(bytes)),
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
        let range = DeviceRange { start, len };
        if self.read_directly(&[vec![range]], &mut |_, bytes| into.copy_from_slice(bytes)) == 0 {
            self.copy_alone(0, range, &mut |_, read| {
                result = read.map(|bytes| into.copy_from_slice(bytes));
            });
        }
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
            match window.send_alone(range, agent, Direction::In) {
                Ended::Well => return Ok(()),
                Ended::Badly => {}
                Ended::Never => return Err(self.copying.stuck_on(agent)),
            }
        }
        self.api.wait_for_copy_to(start, from)
    }

    /// Copies one range separately and hands it to `take` as `place`.
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
                match window.send_alone(range, agent, Direction::Out) {
                    Ended::Well => {
                        take(place, Ok(window.bytes(0, range)));
                        return Ok(());
                    }
                    Ended::Badly => {}
                    Ended::Never => return Err(self.copying.stuck_on(agent)),
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

/// The runs of ranges that together fit into a half.
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

/// The bytes that a range takes of the window, so that each starts a cache line. 0 if it is larger than a
/// half.
fn in_window(range: DeviceRange) -> usize {
    match usize::try_from(range.len) {
        Ok(len) if len <= HALF => len.next_multiple_of(64),
        _ => 0,
    }
}

/// The bytes of window that all ranges take, up to the largest window.
fn total(ranges: &[DeviceRange]) -> usize {
    let total = ranges.iter().map(|range| in_window(*range));
    let total = total.fold(0, usize::saturating_add);
    if total > HALF { 2 * HALF } else { total }
}

/// The copies that are under way into a half.
struct Filling {
    half: usize,
    places: Range<usize>,
    /// `None` for ranges that are not under way.
    sent: Vec<Option<Sent>>,
}

/// A copy that is under way.
struct Sent {
    /// The offset of its destination in the window.
    at: usize,
    /// The index of its lane in the half.
    lane: usize,
}

impl Filling {
    fn empty(places: Range<usize>) -> Self {
        Self {
            half: 0,
            sent: places.clone().map(|_| None).collect(),
            places,
        }
    }
}

/// The direction of a copy: out of the device into the window, or into the device.
#[derive(Clone, Copy)]
enum Direction {
    Out,
    In,
}

/// Pinned host memory for agents to copy from and to.
struct Window<'a> {
    device: &'a HsaDevice,
    copies: &'a Copier,
    memory: Vec<u8>,
    /// The address of the memory for agents.
    seen_at: *mut c_void,
    /// The lanes of each half, one for each agent.
    halves: [Vec<Lane>; 2],
}

impl<'a> Window<'a> {
    /// Opens a window of `len` bytes. The runtime cannot pin an empty one.
    fn open(device: &'a HsaDevice, len: usize) -> Result<Self, DeviceError> {
        let copies = device.copies()?;
        let mut window = Window {
            device,
            copies,
            memory: zeroed(len as u64)?,
            seen_at: std::ptr::null_mut(),
            halves: [const { Vec::new() }; 2],
        };
        let memory = window.memory.as_mut_ptr().cast();
        // SAFETY: the memory belongs to the window, which unlocks it before it is freed. All agents get
        // access.
        check("hsa_amd_memory_lock", unsafe {
            (copies.api.lock_memory)(memory, len, std::ptr::null(), 0, &raw mut window.seen_at)
        })?;
        Ok(window)
    }

    /// Starts the copies of the ranges `places` into a half. All earlier copies into the half must have been
    /// waited for. Starts none if an earlier copy may still arrive, as it would overwrite them.
    fn fill(&mut self, half: usize, ranges: &[DeviceRange], places: Range<usize>) -> Filling {
        let mut filling = Filling::empty(places);
        filling.half = half;
        if !self.halves[half].iter().all(Lane::is_free) {
            return filling;
        }
        let mut at = half * HALF;
        for (sent, place) in filling.sent.iter_mut().zip(filling.places.clone()) {
            let range = ranges[place];
            let room = in_window(range);
            if room > 0 {
                let owner = self
                    .device
                    .api
                    .check_allocated(range.start, range.len as usize);
                let lane = owner.ok().and_then(|owner| {
                    let way = Direction::Out;
                    self.send(half, range, owner, way, at)
                });
                *sent = lane.map(|lane| Sent { at, lane });
            }
            at += room;
        }
        filling
    }

    /// Copies one range of `owner` from or to the start of the window.
    fn send_alone(&mut self, range: DeviceRange, owner: u64, direction: Direction) -> Ended {
        match self.send(0, range, owner, direction, 0) {
            Some(lane) => {
                self.wait(0);
                self.halves[0][lane].ended()
            }
            None => Ended::Badly,
        }
    }

    /// Starts the copy of a range that is in one allocation of `owner`. Returns the index of its lane.
    /// `None` if the copy cannot start.
    fn send(
        &mut self,
        half: usize,
        range: DeviceRange,
        owner: u64,
        direction: Direction,
        at: usize,
    ) -> Option<usize> {
        self.device.copying.check(owner).ok()?;
        let Copier { api, cpu } = self.copies;
        let lanes = &mut self.halves[half];
        let place = lanes.iter().position(|lane| lane.agent == owner);
        let place = place.unwrap_or(lanes.len());
        if place == lanes.len() {
            lanes.push(Lane::new(api, owner).ok()?);
        }
        let signal = lanes[place].signal(api)?;
        // SAFETY: `at` is inside the memory.
        let here = unsafe { self.seen_at.cast::<u8>().add(at) }.cast::<c_void>();
        let outside = range.start as *mut c_void;
        let (to, to_agent, from, from_agent) = match direction {
            Direction::Out => (here, *cpu, outside, owner),
            Direction::In => (outside, owner, here, *cpu),
        };
        // SAFETY: the device range lies in one allocation of its owner. The host range lies in the window and
        // overlaps no other copy. The window waits for the signal before it is dropped.
        let status = unsafe {
            let (len, none) = (range.len as usize, std::ptr::null());
            (api.async_copy)(to, to_agent, from, from_agent, len, 0, none, signal)
        };
        (status == abi::SUCCESS).then(|| {
            lanes[place].note_sent(range);
            place
        })
    }

    /// Waits until all copies into a half have arrived, or there is no more progress.
    fn wait(&mut self, half: usize) {
        let mut since = Stopwatch::start();
        for lane in &mut self.halves[half] {
            lane.wait(&self.copies.api, &self.device.copying, &mut since);
        }
    }

    /// The bytes of `range`, which was sent to a half, if they have arrived.
    fn come(&self, half: usize, sent: &Sent, range: DeviceRange) -> Option<&[u8]> {
        let has_come = self.halves[half][sent.lane].ended() == Ended::Well;
        has_come.then(|| self.bytes(sent.at, range))
    }

    /// The bytes of `range` at offset `start` of the window.
    fn bytes(&self, start: usize, range: DeviceRange) -> &[u8] {
        // SAFETY: this is inside the memory, and no copy to it is under way: copies into the other half, and
        // of other lanes of this half, go elsewhere.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), range.len as usize) }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        for half in [0, 1] {
            self.wait(half);
        }
        let api = &self.copies.api;
        let mut is_free = true;
        for lane in std::mem::take(&mut self.halves).into_iter().flatten() {
            is_free &= lane.close(api, &self.device.copying);
        }
        if !is_free {
            // A copy may still arrive, so leak the memory.
            std::mem::forget(std::mem::take(&mut self.memory));
        } else if !self.seen_at.is_null() {
            // SAFETY: the memory was locked by this address.
            unsafe { (api.unlock_memory)(self.memory.as_mut_ptr().cast()) };
        }
    }
}
