//! Shared virtual memory: the program's own memory, which GPUs reach under its host addresses.
//!
//! A program gives ranges of its address space attributes (`AMDKFD_IOC_SVM`): the GPUs that may
//! access a range, its preferred location, flags. The model never moves memory, so only access
//! changes what a kernel can do. The other attributes are kept for the program that asks for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::kfd::{SvmAttribute, svm_attribute, svm_flag, svm_location};
use crate::config::MAX_GPUS;
use crate::gpu;
use crate::sys::{self, Errno};

/// The driver's default: ranges migrate in pieces of 2^9 pages.
const DEFAULT_GRANULARITY: u32 = 9;

/// A GPU's access to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    None,
    Migrating,
    InPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attributes {
    preferred: u32,
    prefetched: u32,
    flags: u32,
    granularity: u32,
    access: [Access; MAX_GPUS],
}

impl Attributes {
    /// The attributes of memory that nobody has set any for. With XNACK each GPU may access it.
    fn untouched(has_xnack: bool) -> Self {
        Self {
            preferred: svm_location::UNDEFINED,
            prefetched: svm_location::UNDEFINED,
            flags: svm_flag::HOST_ACCESS | svm_flag::COHERENT,
            granularity: DEFAULT_GRANULARITY,
            access: [if has_xnack {
                Access::Migrating
            } else {
                Access::None
            }; MAX_GPUS],
        }
    }

    /// Applies one attribute of a request.
    ///
    /// # Errors
    /// Fails if the type is unknown, or the value names no GPU (`EINVAL`).
    fn set(&mut self, attribute: SvmAttribute, gpus: usize) -> Result<(), Errno> {
        let SvmAttribute { kind, value } = attribute;
        let index = || gpu::index_of(value, gpus).ok_or(Errno(libc::EINVAL));
        let location = || match value {
            svm_location::SYSTEM | svm_location::UNDEFINED => Ok(value),
            _ => index().map(|_| value),
        };
        match kind {
            svm_attribute::PREFERRED_LOCATION => self.preferred = location()?,
            svm_attribute::PREFETCH_LOCATION => self.prefetched = location()?,
            svm_attribute::ACCESS => self.access[index()?] = Access::Migrating,
            svm_attribute::ACCESS_IN_PLACE => self.access[index()?] = Access::InPlace,
            svm_attribute::NO_ACCESS => self.access[index()?] = Access::None,
            svm_attribute::SET_FLAGS => self.flags |= value,
            svm_attribute::CLEAR_FLAGS => self.flags &= !value,
            svm_attribute::GRANULARITY => self.granularity = value.min(0x3f),
            _ => return Err(Errno(libc::EINVAL)),
        }
        Ok(())
    }
}

/// The end of a range and its attributes.
#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    attributes: Attributes,
}

/// The ranges of the process with attributes.
pub(crate) struct Svm {
    state: Mutex<State>,
}

struct State {
    has_xnack: bool,
    /// By first address; ranges do not overlap.
    ranges: BTreeMap<u64, Range>,
}

impl Svm {
    /// No range has attributes, and XNACK is off.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                has_xnack: false,
                ranges: BTreeMap::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether page faults of kernels are retried, so that every address of the program is valid.
    pub(crate) fn has_xnack(&self) -> bool {
        self.lock().has_xnack
    }

    /// Switches the retry of page faults.
    pub(crate) fn set_xnack(&self, enabled: bool) {
        self.lock().has_xnack = enabled;
    }

    /// Sets attributes of `start..start + len`, whole pages, for a machine with `gpus` GPUs.
    ///
    /// # Errors
    /// Fails if an attribute is not valid (`EINVAL`), or if the program has no memory there
    /// (`EFAULT`).
    pub(crate) fn set(
        &self,
        start: u64,
        len: u64,
        attributes: &[SvmAttribute],
        gpus: usize,
    ) -> Result<(), Errno> {
        let end = start.checked_add(len).ok_or(Errno(libc::EINVAL))?;
        if !sys::is_mapped(start, len) {
            return Err(Errno(libc::EFAULT));
        }
        let mut state = self.lock();
        let mut pieces = state.pieces(start, end);
        for (_, range) in &mut pieces {
            for attribute in attributes {
                range.attributes.set(*attribute, gpus)?;
            }
        }
        state.split_at(start);
        state.split_at(end);
        for (from, range) in pieces {
            state.ranges.insert(from, range);
        }
        Ok(())
    }

    /// Answers each attribute of a request with what holds for all of `start..start + len`.
    ///
    /// # Errors
    /// Fails if an attribute is unknown (`EINVAL`), or if the program has no memory there
    /// (`EFAULT`).
    pub(crate) fn get(
        &self,
        start: u64,
        len: u64,
        attributes: &mut [SvmAttribute],
        gpus: usize,
    ) -> Result<(), Errno> {
        let end = start.checked_add(len).ok_or(Errno(libc::EINVAL))?;
        if !sys::is_mapped(start, len) {
            return Err(Errno(libc::EFAULT));
        }
        let pieces = self.lock().pieces(start, end);
        let all = || pieces.iter().map(|(_, range)| &range.attributes);
        let common = |of: fn(&Attributes) -> u32| {
            let mut values = all().map(of);
            let first = values.next().unwrap_or(svm_location::UNDEFINED);
            match values.all(|value| value == first) {
                true => first,
                false => svm_location::UNDEFINED,
            }
        };
        for attribute in attributes {
            match attribute.kind {
                svm_attribute::PREFERRED_LOCATION => {
                    attribute.value = common(|page| page.preferred)
                }
                svm_attribute::PREFETCH_LOCATION => {
                    attribute.value = common(|page| page.prefetched)
                }
                svm_attribute::ACCESS
                | svm_attribute::ACCESS_IN_PLACE
                | svm_attribute::NO_ACCESS => {
                    let gpu = gpu::index_of(attribute.value, gpus).ok_or(Errno(libc::EINVAL))?;
                    attribute.kind = if all().all(|page| page.access[gpu] == Access::InPlace) {
                        svm_attribute::ACCESS_IN_PLACE
                    } else if all().all(|page| page.access[gpu] != Access::None) {
                        svm_attribute::ACCESS
                    } else {
                        svm_attribute::NO_ACCESS
                    };
                }
                svm_attribute::SET_FLAGS => {
                    attribute.value = all().fold(u32::MAX, |flags, page| flags & page.flags);
                }
                svm_attribute::CLEAR_FLAGS => {
                    attribute.value = !all().fold(0, |flags, page| flags | page.flags);
                }
                svm_attribute::GRANULARITY => {
                    attribute.value = all().map(|page| page.granularity).min().unwrap_or_default();
                }
                _ => return Err(Errno(libc::EINVAL)),
            }
        }
        Ok(())
    }

    /// The memory of the program around `address` that GPU number `gpu` may access: its first
    /// address and its length.
    pub(crate) fn region(&self, address: u64, gpu: usize) -> Option<(u64, u64)> {
        let state = self.lock();
        let below = state.ranges.range(..=address).next_back();
        let range = below.filter(|(_, range)| address < range.end);
        let (start, end) = match range {
            Some((start, range)) if range.attributes.access[gpu] != Access::None => {
                (*start, range.end)
            }
            // The program may have unmapped the range, and mapped other memory there.
            None if state.has_xnack => sys::mapping_around(address)?,
            _ => return None,
        };
        drop(state);
        if sys::is_mapped(start, end - start) {
            return Some((start, end - start));
        }
        let page = address & !(sys::PAGE - 1);
        sys::is_mapped(page, sys::PAGE).then_some((page, sys::PAGE))
    }
}

impl State {
    /// The ranges in `start..end`, cut to it, with those that nobody has set attributes for.
    fn pieces(&self, start: u64, end: u64) -> Vec<(u64, Range)> {
        let untouched = Attributes::untouched(self.has_xnack);
        let before = self.ranges.range(..start).next_back();
        let first = before.map_or(start, |(first, _)| *first);
        let mut pieces = Vec::new();
        let mut at = start;
        for (from, range) in self.ranges.range(first..end) {
            if range.end <= start {
                continue;
            }
            if at < *from {
                let attributes = untouched;
                let end = *from;
                pieces.push((at, Range { end, attributes }));
            }
            let range = Range {
                end: range.end.min(end),
                ..*range
            };
            pieces.push((at.max(*from), range));
            at = range.end;
        }
        if at < end {
            let attributes = untouched;
            pieces.push((at, Range { end, attributes }));
        }
        pieces
    }

    /// Makes `address` a border between ranges.
    fn split_at(&mut self, address: u64) {
        let below = self.ranges.range_mut(..address).next_back();
        let Some((_, range)) = below.filter(|(_, range)| address < range.end) else {
            return;
        };
        let upper = *range;
        range.end = address;
        self.ranges.insert(address, upper);
    }
}

#[cfg(test)]
#[path = "svm_tests.rs"]
mod tests;
