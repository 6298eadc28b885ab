//! Which load had a device address, at which moment.

use std::collections::BTreeSet;

use crate::device::DeviceRange;

/// The address ranges of all loads there were, for a search that takes no longer when there were
/// many: those that are there at one moment do not overlap.
///
/// Ranges are kept by the power of two of their length, then by start, then by generation. Of one
/// power, a range that holds an address starts less than twice its length before it, so that only
/// few starts come into question: addresses are used again and again.
#[derive(Debug, Default)]
pub(super) struct Places {
    ranges: BTreeSet<(u32, u64, u64)>,
    /// A bit for each power of two that there is.
    powers: u64,
}

impl Places {
    /// Notes that load `generation` is at `range`.
    pub(super) fn insert(&mut self, range: DeviceRange, generation: u64) {
        let power = range.len.checked_ilog2().unwrap_or(0);
        self.powers |= 1 << power;
        self.ranges.insert((power, range.start, generation));
    }

    /// The loads, by generation, that may hold `address` when `generation` is the last event: the
    /// latest of each start. Whether they do, and still, their records tell.
    pub(super) fn candidates(
        &self,
        address: u64,
        generation: u64,
    ) -> impl Iterator<Item = u64> + '_ {
        (0..u64::BITS)
            .filter(|power| self.powers & (1 << power) != 0)
            .flat_map(move |power| {
                let longest = u64::MAX >> (u64::BITS - 1 - power);
                let first = address.saturating_sub(longest);
                let mut last = Some(address);
                std::iter::from_fn(move || {
                    let until = (power, last?, u64::MAX);
                    let (_, start, _) = self.ranges.range((power, first, 0)..=until).next_back()?;
                    last = start.checked_sub(1).filter(|last| *last >= first);
                    let of_start = (power, *start, 0)..=(power, *start, generation);
                    Some(self.ranges.range(of_start).next_back().map(|it| it.2))
                })
                .flatten()
            })
    }
}
