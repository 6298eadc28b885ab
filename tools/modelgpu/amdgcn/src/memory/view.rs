//! A dispatch's view of an address space: bounds checks, a cache of regions, and accesses that stay
//! defined when the host or other queues touch the same bytes.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::{AddressSpace, Region};
use crate::lanes::{Longs, Words, active};
use crate::memory::Span;

/// The number of regions in the cache: a kernel uses a handful of buffers in turn.
const KEPT_REGIONS: usize = 8;

/// The bytes are not mapped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unmapped;

/// The reason why a read-modify-write failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AtomicFailure {
    Unmapped,
    Misaligned,
}

/// An address space as one dispatch sees it.
pub(crate) struct View<'a> {
    space: &'a dyn AddressSpace,
    generation: u64,
    /// The one that was used last is the first.
    regions: Vec<Region>,
}

impl<'a> View<'a> {
    pub(crate) fn new(space: &'a dyn AddressSpace) -> Self {
        View {
            space,
            generation: space.generation(),
            regions: Vec::with_capacity(KEPT_REGIONS),
        }
    }

    /// Drops the kept regions if the mappings have changed. The interpreter calls this once per
    /// memory instruction. A program that unmaps memory under a running instruction has a race on
    /// real hardware too.
    pub(crate) fn refresh(&mut self) {
        let generation = self.space.generation();
        if generation != self.generation {
            self.generation = generation;
            self.regions.clear();
        }
    }

    /// The region that holds `size` bytes from `address` on.
    pub(crate) fn region(&mut self, address: u64, size: u64) -> Result<Region, Unmapped> {
        if let Some(first) = self.regions.first()
            && first.contains(address, size)
        {
            return Ok(*first);
        }
        if let Some(place) = self.regions.iter().position(|r| r.contains(address, size)) {
            self.regions.swap(0, place);
            return Ok(self.regions[0]);
        }
        let region = self.space.region(address).ok_or(Unmapped)?;
        if !region.contains(address, size) {
            return Err(Unmapped);
        }
        self.regions.truncate(KEPT_REGIONS - 1);
        self.regions.insert(0, region);
        Ok(region)
    }

    fn host(&mut self, address: u64, size: u64) -> Result<*mut u8, Unmapped> {
        let region = self.region(address, size)?;
        // `contains` has checked the address against the region's length.
        Ok(region.host.wrapping_add((address - region.base) as usize))
    }

    /// Reads 1, 2, 4 or 8 bytes, zero-extended.
    pub(crate) fn load(&mut self, address: u64, size: u64) -> Result<u64, Unmapped> {
        let host = self.host(address, size)?;
        if !host.addr().is_multiple_of(size as usize) {
            return Ok(load_bytewise(host, size));
        }
        // SAFETY: `host` addresses `size` mapped bytes that are valid for reads and writes from any
        // thread (AddressSpace), and it is aligned to `size`. Relaxed atomics make races with the
        // host or other queues defined, as on hardware.
        Ok(unsafe {
            match size {
                1 => AtomicU8::from_ptr(host).load(Ordering::Relaxed).into(),
                2 => AtomicU16::from_ptr(host.cast())
                    .load(Ordering::Relaxed)
                    .into(),
                4 => AtomicU32::from_ptr(host.cast())
                    .load(Ordering::Relaxed)
                    .into(),
                _ => AtomicU64::from_ptr(host.cast()).load(Ordering::Relaxed),
            }
        })
    }

    /// The region of a wave's addresses, if `size` bytes from each on are mapped there, and aligned to
    /// 4 bytes or to their size.
    fn lanes(&mut self, span: &Span, size: u64) -> Option<Region> {
        let len = (span.highest - span.lowest).checked_add(size)?;
        let region = self.region(span.lowest, len).ok()?;
        let shift = (region.host.addr() as u64).wrapping_sub(region.base);
        let is_aligned = (span.bits | shift) & (size.min(4) - 1) == 0;
        is_aligned.then_some(region)
    }

    /// Loads 1, 2, 4, 8, 12 or 16 bytes for each lane, zero-extended. Returns `false` if it cannot
    /// load all lanes in one way.
    pub(crate) fn load_lanes(&mut self, span: &Span, size: u64, results: &mut [Words; 4]) -> bool {
        let Some(region) = self.lanes(span, size) else {
            return false;
        };
        let host = |address: u64| {
            region
                .host
                .wrapping_add(address.wrapping_sub(region.base) as usize)
        };
        let first = host(span.lowest);
        if is_row(span, size, first) {
            // SAFETY: `lanes` has checked that the bytes are mapped, so that they are valid for reads
            // and writes from any thread (AddressSpace), and `is_row` the alignment. Relaxed atomics
            // make races defined.
            let long = |place: usize| unsafe {
                AtomicU64::from_ptr(first.add(8 * place).cast()).load(Ordering::Relaxed)
            };
            let pairs = size as usize / 8;
            if pairs == 0 {
                let results = results[0][..span.end].as_chunks_mut::<2>().0;
                for (place, results) in results.iter_mut().enumerate() {
                    let value = long(place);
                    *results = [value as u32, (value >> 32) as u32];
                }
            }
            for (pair, results) in results.as_chunks_mut().0.iter_mut().enumerate().take(pairs) {
                let [low, high] = results;
                for lane in 0..span.end {
                    let value = long(pairs * lane + pair);
                    (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
                }
            }
            return true;
        }
        if span.lowest == span.highest {
            let words = results.iter_mut().take(size.div_ceil(4) as usize);
            for (address, results) in (span.lowest..).step_by(4).zip(words) {
                let Ok(value) = self.load(address, size.min(4)) else {
                    return false;
                };
                results[..span.end].fill(value as u32);
            }
            return true;
        }
        let addresses = &span.addresses[..span.end];
        match size {
            1 => {
                for (result, address) in results[0].iter_mut().zip(addresses) {
                    // SAFETY: see above.
                    let value =
                        unsafe { AtomicU8::from_ptr(host(*address)).load(Ordering::Relaxed) };
                    *result = value.into();
                }
            }
            2 => {
                for (result, address) in results[0].iter_mut().zip(addresses) {
                    let host = host(*address).cast();
                    // SAFETY: see above; `lanes` has checked the alignment.
                    let value = unsafe { AtomicU16::from_ptr(host).load(Ordering::Relaxed) };
                    *result = value.into();
                }
            }
            _ => {
                let words = size as usize / 4;
                for (word, results) in results.iter_mut().enumerate().take(words) {
                    for (result, address) in results.iter_mut().zip(addresses) {
                        let host = host(*address).wrapping_add(4 * word).cast();
                        // SAFETY: see above; `lanes` has checked the alignment.
                        *result = unsafe { AtomicU32::from_ptr(host).load(Ordering::Relaxed) };
                    }
                }
            }
        }
        true
    }

    /// Stores the low 1 or 2 bytes of a register, or 1 to 4 registers, for each of `lanes`. Returns
    /// `false`, without an effect, if it cannot store all lanes in one way.
    pub(crate) fn store_lanes(
        &mut self,
        span: &Span,
        lanes: u64,
        size: u64,
        values: &[Words],
    ) -> bool {
        let Some(region) = self.lanes(span, size) else {
            return false;
        };
        let host = |address: u64| {
            region
                .host
                .wrapping_add(address.wrapping_sub(region.base) as usize)
        };
        let first = host(span.lowest);
        if is_row(span, size, first) {
            // SAFETY: see `load_lanes`.
            let put = |place: usize, [low, high]: [u32; 2]| unsafe {
                let value = u64::from(low) | u64::from(high) << 32;
                AtomicU64::from_ptr(first.add(8 * place).cast()).store(value, Ordering::Relaxed);
            };
            if let [values] = values {
                let values = values[..span.end].as_chunks().0;
                for (place, values) in values.iter().enumerate() {
                    put(place, *values);
                }
            }
            let pairs = values.len() / 2;
            for (pair, values) in values.as_chunks::<2>().0.iter().enumerate() {
                let [low, high] = values;
                for lane in 0..span.end {
                    put(pairs * lane + pair, [low[lane], high[lane]]);
                }
            }
            return true;
        }
        for lane in active(lanes) {
            let host = host(span.addresses[lane]);
            // SAFETY: see `load_lanes`.
            unsafe {
                match size {
                    1 => {
                        AtomicU8::from_ptr(host).store(values[0][lane] as u8, Ordering::Relaxed);
                    }
                    2 => AtomicU16::from_ptr(host.cast())
                        .store(values[0][lane] as u16, Ordering::Relaxed),
                    _ => {
                        for (word, values) in values.iter().enumerate() {
                            AtomicU32::from_ptr(host.wrapping_add(4 * word).cast())
                                .store(values[lane], Ordering::Relaxed);
                        }
                    }
                }
            }
        }
        true
    }

    /// Replaces the 4 or 8 bytes at the address of each of `lanes`, by number, with the result of `update` for
    /// the lane and its old value, which goes into `old_values`. Lanes with one address take one step, so other
    /// threads wait for it once. Returns `false`, without an effect, if it cannot replace all in one way.
    /// `update` may run several times.
    pub(crate) fn atomic_lanes(
        &mut self,
        span: &Span,
        lanes: u64,
        size: u64,
        update: impl Fn(usize, u64) -> u64,
        old_values: &mut Longs,
    ) -> bool {
        let Some(region) = self.lanes(span, size) else {
            return false;
        };
        let shift = (region.host.addr() as u64).wrapping_sub(region.base);
        // A misaligned atomic is an error.
        if (span.bits | shift) & (size - 1) != 0 {
            return false;
        }
        let host = |address: u64| {
            region
                .host
                .wrapping_add(address.wrapping_sub(region.base) as usize)
        };
        if span.lowest == span.highest {
            let update = |mut value| {
                for lane in active(lanes) {
                    old_values[lane] = value;
                    value = update(lane, value);
                }
                value
            };
            // SAFETY: see `load_lanes`; the code above has checked the alignment.
            unsafe { replace(host(span.lowest), size, update) };
            return true;
        }
        for lane in active(lanes) {
            let place = host(span.addresses[lane]);
            // SAFETY: see above.
            old_values[lane] = unsafe { replace(place, size, |old| update(lane, old)) };
        }
        true
    }

    /// A copy of `len` bytes from `address` on.
    pub(crate) fn copy(&mut self, address: u64, len: u64) -> Result<Vec<u8>, Unmapped> {
        self.region(address, len)?;
        let mut bytes = Vec::with_capacity(len as usize + 8);
        let words = len / 8 * 8;
        for offset in (0..words).step_by(8) {
            bytes.extend(self.load(address + offset, 8)?.to_le_bytes());
        }
        for offset in words..len {
            bytes.push(self.load(address + offset, 1)? as u8);
        }
        Ok(bytes)
    }

    /// Writes the low 1, 2, 4 or 8 bytes of `value`.
    pub(crate) fn store(&mut self, address: u64, size: u64, value: u64) -> Result<(), Unmapped> {
        let host = self.host(address, size)?;
        if !host.addr().is_multiple_of(size as usize) {
            store_bytewise(host, size, value);
            return Ok(());
        }
        // SAFETY: see `load`.
        unsafe {
            match size {
                1 => AtomicU8::from_ptr(host).store(value as u8, Ordering::Relaxed),
                2 => AtomicU16::from_ptr(host.cast()).store(value as u16, Ordering::Relaxed),
                4 => AtomicU32::from_ptr(host.cast()).store(value as u32, Ordering::Relaxed),
                _ => AtomicU64::from_ptr(host.cast()).store(value, Ordering::Relaxed),
            }
        }
        Ok(())
    }

    /// Replaces the 4 or 8 bytes at `address` with the result of `update`, atomically for the host
    /// and other queues. Returns the old value. `update` may run several times.
    pub(crate) fn atomic(
        &mut self,
        address: u64,
        size: u64,
        update: impl FnMut(u64) -> u64,
    ) -> Result<u64, AtomicFailure> {
        if !address.is_multiple_of(size) {
            return Err(AtomicFailure::Misaligned);
        }
        let host = self
            .host(address, size)
            .map_err(|Unmapped| AtomicFailure::Unmapped)?;
        if !host.addr().is_multiple_of(size as usize) {
            return Err(AtomicFailure::Misaligned);
        }
        // SAFETY: see `load`; the code above has checked the alignment.
        Ok(unsafe { replace(host, size, update) })
    }
}

/// Returns whether a wave accesses longs side by side from `first` on, each of one lane or two.
fn is_row(span: &Span, size: u64, first: *mut u8) -> bool {
    let has_longs = size.is_multiple_of(8) || size == 4 && span.end.is_multiple_of(2);
    span.step == size && has_longs && first.addr().is_multiple_of(8)
}

/// Replaces 4 or 8 bytes with the result of `update` in one step. Returns the old value. `update` may run several
/// times.
///
/// # Safety
/// The bytes are valid for reads and writes from any thread, and aligned to their size.
unsafe fn replace(host: *mut u8, size: u64, mut update: impl FnMut(u64) -> u64) -> u64 {
    let order = Ordering::SeqCst;
    // SAFETY: the caller's promise.
    unsafe {
        if size == 4 {
            let word = AtomicU32::from_ptr(host.cast());
            let replaced = word.fetch_update(order, order, |old| Some(update(old.into()) as u32));
            let (Ok(old) | Err(old)) = replaced;
            old.into()
        } else {
            let word = AtomicU64::from_ptr(host.cast());
            let (Ok(old) | Err(old)) = word.fetch_update(order, order, |old| Some(update(old)));
            old
        }
    }
}

/// Loads byte by byte: hardware allows unaligned accesses but does not make them atomic.
fn load_bytewise(host: *mut u8, size: u64) -> u64 {
    (0..size as usize).rev().fold(0, |value, place| {
        // SAFETY: the caller has checked that `size` bytes from `host` on are mapped.
        let byte = unsafe { AtomicU8::from_ptr(host.add(place)).load(Ordering::Relaxed) };
        value << 8 | u64::from(byte)
    })
}

fn store_bytewise(host: *mut u8, size: u64, value: u64) {
    for place in 0..size as usize {
        // SAFETY: the caller has checked that `size` bytes from `host` on are mapped.
        unsafe {
            AtomicU8::from_ptr(host.add(place))
                .store((value >> (8 * place)) as u8, Ordering::Relaxed);
        }
    }
}
