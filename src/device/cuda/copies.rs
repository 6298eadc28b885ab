//! Copies of the counted variables of modules, many under way at a time.
//!
//! Each variable takes a copy of its own: the driver refuses one that reaches from a variable to the next, even if they
//! lie side by side (driver 580: `CUDA_ERROR_INVALID_VALUE`).
#![expect(unsafe_code, reason = "begins copies to staging memory")]

use std::ops::Range;
use std::sync::Arc;

use crate::device::cuda::driver::{Staging, Stream};
use crate::device::cuda::modules::Module;
use crate::device::cuda::{CudaDevice, module_at};
use crate::device::{DeviceError, DeviceRange, Take};
use crate::support::memory::zeroed;

/// The most bytes, and the most pieces, for which pinned memory does not pay: it takes a millisecond to make.
const MOST_PAGEABLE: usize = 1 << 20;
const MOST_PIECES: usize = 64;

/// The most staging memory at a time, in bytes, unless a single variable takes more. More makes no copy faster.
const MOST_STAGED: usize = 16 << 20;

/// A piece of a range that is on the GPU.
struct Piece {
    /// The device address.
    address: u64,
    /// The bytes in the range.
    place: Range<usize>,
}

/// A range in host memory, before its pieces are copied.
struct Planned {
    context: u64,
    /// The bytes of the range: those that do not change, and zeros.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

impl CudaDevice {
    /// Copies `ranges` and hands each to `take`, in their order.
    pub(super) fn copy_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        let mut first = 0;
        while first < ranges.len() {
            let mut planned = Vec::new();
            let mut size = 0;
            for range in &ranges[first..] {
                if !planned.is_empty() && size + range.len as usize > MOST_STAGED {
                    break;
                }
                size += range.len as usize;
                planned.push(self.plan(*range));
            }
            let count = planned.len();
            let copied = self.copy_planned(&mut planned);
            for (index, plan) in planned.into_iter().enumerate() {
                let place = first + index;
                let read = match (plan, &copied) {
                    (Ok(plan), Ok(())) => Ok(plan.bytes),
                    (Err(error), _) => Err(error),
                    // One failure must not cost the others their counts.
                    (Ok(_), Err(_)) => self.copy_alone(ranges[place]),
                };
                match read {
                    Ok(bytes) => take(place, Ok(&bytes)),
                    Err(error) => take(place, Err(error)),
                }
            }
            first += count;
        }
    }

    fn copy_alone(&self, range: DeviceRange) -> Result<Vec<u8>, DeviceError> {
        let mut planned = [self.plan(range)];
        self.copy_planned(&mut planned)?;
        let [plan] = planned;
        plan.map(|plan| plan.bytes)
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
                bytes: Vec::new(),
                pieces: Vec::new(),
            });
        }
        let (number, module, at) = module_at(&self.modules, range)?;
        let addresses = {
            let entered = self.driver().enter(module.context)?;
            self.resolve(&entered, number, &module)?.1
        };
        let mut bytes = zeroed(range.len)?;
        let memory = &module.laid_out.memory;
        let known = memory.get(at as usize..).unwrap_or_default();
        let known = &known[..known.len().min(bytes.len())];
        bytes[..known.len()].copy_from_slice(known);
        Ok(Planned {
            context: module.context,
            pieces: pieces(&module, &addresses, at, range.len),
            bytes,
        })
    }

    /// Copies the pieces of all plans, with all copies of a batch under way at a time.
    fn copy_planned(
        &self,
        planned: &mut [Result<Planned, DeviceError>],
    ) -> Result<(), DeviceError> {
        let good = planned.iter().flatten();
        let mut contexts: Vec<u64> = good
            .filter(|plan| !plan.pieces.is_empty())
            .map(|plan| plan.context)
            .collect();
        contexts.sort_unstable();
        contexts.dedup();
        for context in contexts {
            let mut here: Vec<&mut Planned> = planned
                .iter_mut()
                .flatten()
                .filter(|plan| plan.context == context)
                .collect();
            let pieces = here.iter().flat_map(|plan| &plan.pieces);
            let (all, longest) = pieces.fold((0, 0), |(all, longest), piece| {
                let len = piece.place.len();
                (all + len, longest.max(len))
            });
            let entered = self.driver().enter(context)?;
            let stream = entered.stream()?;
            let room = all.min(MOST_STAGED).max(longest);
            let is_much = all > MOST_PAGEABLE
                || here.iter().map(|copies| copies.pieces.len()).sum::<usize>() > MOST_PIECES;
            let is_idle = || match entered.work_so_far(context, self.modules.captures())? {
                Some(work) => work.is_done(),
                None => Ok(false),
            };
            let staging = match is_much && is_idle()? {
                true => Staging::pinned(self.driver(), room)?,
                false => Staging::pageable(room)?,
            };
            copy_pieces(&stream, &staging, &mut here)?;
        }
        Ok(())
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

/// Copies the pieces that are in `context` by way of `staging`, which has room for the longest.
fn copy_pieces(
    stream: &Stream<'_>,
    staging: &Staging<'_>,
    planned: &mut [&mut Planned],
) -> Result<(), DeviceError> {
    let mut waiting = Vec::new();
    let mut used = 0;
    for range in 0..planned.len() {
        for index in 0..planned[range].pieces.len() {
            let piece = &planned[range].pieces[index];
            let len = piece.place.len();
            if used + len > staging.len() {
                stream.finish()?;
                hand_out(staging, &mut waiting, planned);
                used = 0;
            }
            let piece = &planned[range].pieces[index];
            // SAFETY: the memory has room after `used`, and lives until `finish` has returned.
            let begun = unsafe { stream.begin_read(staging.address(used), piece.address, len) };
            if let Err(error) = begun {
                stream.finish()?;
                return Err(error);
            }
            waiting.push((range, index, used));
            used += len;
        }
    }
    stream.finish()?;
    hand_out(staging, &mut waiting, planned);
    Ok(())
}

/// Copies finished pieces from staging memory to their ranges. Each has the numbers of the range and the piece, and its
/// place in the staging memory.
fn hand_out(
    staging: &Staging<'_>,
    waiting: &mut Vec<(usize, usize, usize)>,
    planned: &mut [&mut Planned],
) {
    for (range, index, at) in waiting.drain(..) {
        let Planned { bytes, pieces, .. } = &mut *planned[range];
        let place = pieces[index].place.clone();
        let contents = &staging.contents(at + place.len())[at..];
        bytes[place].copy_from_slice(contents);
    }
}
