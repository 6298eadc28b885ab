//! Copies of the counted variables of modules, many under way at a time.
//!
//! Each variable takes a copy of its own: the driver refuses one that reaches from a variable to the next, even if they
//! lie side by side (driver 580: `CUDA_ERROR_INVALID_VALUE`).
#![expect(unsafe_code, reason = "begins copies to staging memory")]

use std::ops::Range;
use std::sync::Arc;

use crate::device::cuda::driver::{Entered, Staging, Stream};
use crate::device::cuda::modules::Module;
use crate::device::cuda::{CudaDevice, module_at};
use crate::device::{DeviceError, DeviceRange, Take};
use crate::format::codeobject::cuda::LaidOut;

/// The most bytes, and the most pieces, for which pinned memory does not pay: it takes a millisecond to make.
const MOST_PAGEABLE: usize = 1 << 20;
const MOST_PIECES: usize = 64;

/// The most bytes of a batch, and of pinned memory. More makes no copy faster. A longer range is a batch of its own.
const MOST_STAGED: usize = 16 << 20;

/// A piece of a range that is on the GPU.
struct Piece {
    /// The device address.
    address: u64,
    /// The bytes in the range.
    place: Range<usize>,
}

/// A range of a module's memory, before its pieces are copied.
struct Planned {
    context: u64,
    /// The module's memory. `None` for a range without bytes.
    laid_out: Option<Arc<LaidOut>>,
    /// The place of the range in that memory.
    at: usize,
    len: usize,
    /// In the order of their places.
    pieces: Vec<Piece>,
}

impl Planned {
    /// Writes the bytes that are not on the GPU: those that do not change, and zeros.
    fn fill(&self, bytes: &mut [u8]) {
        let memory = self.laid_out.as_ref().map_or(&[][..], |it| &it.memory);
        let known = memory.get(self.at..).unwrap_or_default();
        let mut from = 0;
        let ends = self.pieces.iter().map(|piece| piece.place.clone());
        for piece in ends.chain(std::iter::once(self.len..self.len)) {
            let gap = &mut bytes[from..piece.start.max(from)];
            let constant = known.get(from..).unwrap_or_default();
            let constant = &constant[..constant.len().min(gap.len())];
            gap[..constant.len()].copy_from_slice(constant);
            gap[constant.len()..].fill(0);
            from = piece.end;
        }
    }
}

/// A context to copy from, with a stream and memory for one batch after the other.
struct Lane<'a> {
    context: u64,
    is_pinned: bool,
    stream: Stream<'a>,
    staging: Staging<'a>,
    /// The context stays the current one until the others are gone.
    _entered: Entered<'a>,
}

impl CudaDevice {
    /// Copies `ranges` and hands each to `take`, in their order.
    pub(super) fn copy_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        let mut lane = None;
        let mut planned = ranges.iter().map(|range| self.plan(*range)).peekable();
        let mut first = 0;
        while let Some(plan) = planned.next() {
            let Ok(plan) = plan else {
                if let Err(error) = plan {
                    take(first, Err(error));
                }
                first += 1;
                continue;
            };
            let (context, mut size) = (plan.context, plan.len);
            let mut batch = vec![plan];
            while let Some(Ok(next)) = planned.next_if(|next| {
                let next = next.as_ref();
                next.is_ok_and(|next| next.context == context && size + next.len <= MOST_STAGED)
            }) {
                size += next.len;
                batch.push(next);
            }
            let copied = self.copy_batch(&mut lane, &batch, size);
            let mut at = 0;
            for (number, plan) in batch.iter().enumerate() {
                let place = first + number;
                let bytes = at..at + plan.len;
                at = bytes.end;
                match (&copied, &lane) {
                    (Ok(()), Some(Lane { staging, .. })) => {
                        take(place, Ok(&staging.contents(bytes.end)[bytes]));
                    }
                    (Ok(()), None) => take(place, Ok(&[])),
                    // One failure must not cost the others their counts.
                    (Err(_), _) => self.take_alone(place, plan, take),
                }
            }
            first += batch.len();
        }
    }

    /// Copies a range by itself, and hands it to `take`.
    fn take_alone(&self, place: usize, plan: &Planned, take: &mut Take<'_>) {
        let mut lane = None;
        match self.copy_batch(&mut lane, std::slice::from_ref(plan), plan.len) {
            Ok(()) => {
                let staging = lane.as_ref().map(|lane| lane.staging.contents(plan.len));
                take(place, Ok(staging.unwrap_or_default()));
            }
            Err(error) => take(place, Err(error)),
        }
    }

    /// Copies `from` to the device memory at `address`.
    pub(super) fn copy_to(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        let range = DeviceRange {
            start: address,
            len: from.len() as u64,
        };
        let plan = self.plan(range)?;
        let entered = self.driver().enter(plan.context)?;
        let stream = entered.stream()?;
        for piece in &plan.pieces {
            let bytes = &from[piece.place.clone()];
            // SAFETY: `from` outlives the wait below.
            let begun = unsafe { stream.begin_write(piece.address, bytes.as_ptr(), bytes.len()) };
            if let Err(error) = begun {
                stream.finish()?;
                return Err(error);
            }
        }
        stream.finish()
    }

    /// Finds the pieces of a range.
    fn plan(&self, range: DeviceRange) -> Result<Planned, DeviceError> {
        if range.len == 0 {
            return Ok(Planned {
                context: 0,
                laid_out: None,
                at: 0,
                len: 0,
                pieces: Vec::new(),
            });
        }
        let (number, module, at) = module_at(&self.modules, range)?;
        let addresses = match &module.addresses {
            Some(addresses) if module.handle.is_some() => addresses.clone(),
            _ => {
                let entered = self.driver().enter(module.context)?;
                self.resolve(&entered, number, &module)?.1
            }
        };
        Ok(Planned {
            context: module.context,
            pieces: pieces(&module, &addresses, at, range.len),
            laid_out: Some(module.laid_out),
            at: at as usize,
            len: range.len as usize,
        })
    }

    /// Copies ranges of one context, `size` bytes together, to the memory of `lane`, one after the other. All copies are
    /// under way at a time. `lane` stays as it is if there is nothing to copy.
    fn copy_batch<'a>(
        &'a self,
        lane: &mut Option<Lane<'a>>,
        batch: &[Planned],
        size: usize,
    ) -> Result<(), DeviceError> {
        if size == 0 {
            return Ok(());
        }
        let context = batch.first().map_or(0, |plan| plan.context);
        let pieces = batch.iter().map(|plan| plan.pieces.len()).sum::<usize>();
        let is_much = (size > MOST_PAGEABLE || pieces > MOST_PIECES) && size <= MOST_STAGED;
        let fits = |lane: &Lane<'_>| {
            lane.context == context && lane.staging.len() >= size && (lane.is_pinned || !is_much)
        };
        if !lane.as_ref().is_some_and(fits) {
            // The last context is left before the next one is entered.
            *lane = None;
            *lane = Some(self.lane(context, size, is_much)?);
        }
        let Some(lane) = lane else { return Ok(()) };
        let mut at = 0;
        for plan in batch {
            plan.fill(lane.staging.contents_mut(at, plan.len));
            at += plan.len;
        }
        let begun = begin_all(lane, batch);
        // The copies that were begun end before anyone touches the memory.
        lane.stream.finish()?;
        begun
    }

    /// Makes a stream in `context` and memory for `size` bytes, which is pinned if they are many.
    fn lane(&self, context: u64, size: usize, is_much: bool) -> Result<Lane<'_>, DeviceError> {
        let entered = self.driver().enter(context)?;
        let stream = entered.stream()?;
        let is_idle = || match entered.work_so_far(context, self.modules.captures())? {
            Some(work) => work.is_done(),
            None => Ok(false),
        };
        let is_pinned = is_much && is_idle()?;
        let staging = match is_pinned {
            true => Staging::pinned(self.driver(), size)?,
            false => Staging::pageable(size)?,
        };
        Ok(Lane {
            context,
            is_pinned,
            stream,
            staging,
            _entered: entered,
        })
    }
}

/// The parts of `len` bytes from `at` of a module's memory that are on the GPU.
fn pieces(module: &Module, addresses: &Arc<[u64]>, at: u64, len: u64) -> Vec<Piece> {
    let end = at + len;
    let counted = module.laid_out.counted.iter().zip(addresses.iter());
    let overlapping = counted.filter_map(|(variable, address)| {
        let from = variable.address.max(at);
        let to = (variable.address + variable.size).min(end);
        (from < to).then(|| Piece {
            address: address + (from - variable.address),
            place: (from - at) as usize..(to - at) as usize,
        })
    });
    overlapping.collect()
}

/// Begins the copies of all pieces to the memory of `lane`, which has room for them.
fn begin_all(lane: &Lane<'_>, batch: &[Planned]) -> Result<(), DeviceError> {
    let mut at = 0;
    for plan in batch {
        for piece in &plan.pieces {
            let into = lane.staging.address(at + piece.place.start);
            // SAFETY: the piece is inside the plan's part of the memory, which lives until the caller has waited.
            unsafe {
                lane.stream
                    .begin_read(into, piece.address, piece.place.len())?;
            }
        }
        at += plan.len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory serves one batch after the other, so no byte of an earlier one may stay.
    #[test]
    fn everything_around_the_pieces_is_written() {
        let laid_out = Arc::new(LaidOut {
            elf: Vec::new(),
            size: 12,
            memory: vec![1, 2, 3, 4],
            counted: Vec::new(),
            version: 0,
        });
        let piece = |place| Piece { address: 0, place };
        let plan = |pieces: Vec<Range<usize>>| Planned {
            context: 1,
            laid_out: Some(laid_out.clone()),
            at: 1,
            len: 9,
            pieces: pieces.into_iter().map(piece).collect(),
        };
        let filled = |pieces| {
            let mut bytes = [0xee; 9];
            plan(pieces).fill(&mut bytes);
            bytes
        };
        assert_eq!(filled(vec![]), [2, 3, 4, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            filled(vec![4..6, 7..9]),
            [2, 3, 4, 0, 0xee, 0xee, 0, 0xee, 0xee]
        );
        assert_eq!(
            filled(vec![1..2, 2..5]),
            [2, 0xee, 0xee, 0xee, 0xee, 0, 0, 0, 0]
        );
    }
}
