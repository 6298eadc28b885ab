//! The part of a load's counts that is not for its own profile: counts of labels, and counts from outside of
//! windows.
//!
//! This writes nothing to the device. It remembers the counts at a moment, and the difference to a later
//! moment gives the counts in between. So each count goes to one place, and all places together have the sum
//! on the device.

use std::collections::HashMap;

use crate::format::profraw::{Counts, Version};
use crate::read::counted::Counted;

/// The shares of all loads. Empty unless labels or windows are used.
#[derive(Debug, Default)]
pub(super) struct Shares {
    is_asked_for: bool,
    /// By generation, and by number of the load's bounds.
    loads: HashMap<u64, Vec<Share>>,
}

/// The split of one load's counts.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// All counts at the latest look. `None` if that was the load.
    seen: Option<Counts>,
    /// True if the output of earlier drains is known.
    has_begun: bool,
    /// The part of the counts that is not for the load's own profile.
    elsewhere: Option<Counts>,
}

impl Shares {
    /// Starts to keep shares.
    pub(super) fn ask(&mut self) {
        self.is_asked_for = true;
    }

    /// The share of load `generation` at its bounds number `which`. `None` unless shares are kept.
    pub(super) fn share(&mut self, generation: u64, which: usize) -> Option<&mut Share> {
        if !self.is_asked_for {
            return None;
        }
        let shares = self.loads.entry(generation).or_default();
        while shares.len() <= which {
            shares.push(Share::default());
        }
        shares.get_mut(which)
    }

    /// Forgets a load that is gone, or whose counters start from zero.
    pub(super) fn forget(&mut self, generation: u64) {
        self.loads.remove(&generation);
    }
}

impl Share {
    /// Begins with the counts in the load's own profile from earlier drains, which `written` returns.
    pub(super) fn begin(&mut self, written: impl FnOnce() -> Option<Counts>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.seen = written();
        }
    }

    /// Takes a later look and returns the new counts. If counters were reset in between, none of the current
    /// counts have gone elsewhere.
    pub(super) fn advance(&mut self, counted: Counts, version: &Version) -> Counts {
        let news = match &self.seen {
            None => counted.clone(),
            Some(seen) => counted.since(seen, version),
        };
        if let Some(seen) = &self.seen
            && counted.is_below(seen, version)
        {
            self.elsewhere = None;
        }
        self.seen = Some(counted);
        news
    }

    /// Removes these counts from the load's own profile.
    pub(super) fn leave_out(&mut self, counts: Counts, version: &Version) {
        match &mut self.elsewhere {
            None => self.elsewhere = Some(counts),
            Some(elsewhere) => {
                let added = elsewhere.add(&counts, version);
                debug_assert!(added.is_ok(), "a load's sections do not change their sizes");
            }
        }
    }

    /// The part of `counted` for the load's own profile. `None` if that is all of it.
    pub(super) fn rest(&self, counted: &Counted<'_>, version: &Version) -> Option<Counts> {
        let elsewhere = self.elsewhere.as_ref()?;
        Some(counted.to_counts().since(elsewhere, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counters: &[u64], bitmap: u8) -> Counts {
        let bytes = counters.iter().copied().flat_map(u64::to_le_bytes);
        Counts {
            counters: bytes.collect(),
            bitmap: vec![bitmap],
            ..Counts::default()
        }
    }

    fn version() -> Version {
        Version::from_word(10).unwrap()
    }

    #[test]
    fn each_count_is_somewhere_once() {
        let mut share = Share::default();
        let version = version();
        assert_eq!(
            share.advance(counts(&[3, 0], 0b001), &version),
            counts(&[3, 0], 0b001)
        );
        let news = share.advance(counts(&[5, 7], 0b011), &version);
        assert_eq!(news, counts(&[2, 7], 0b010));
        share.leave_out(news, &version);
        let later = counts(&[6, 7], 0b111);
        assert_eq!(
            share.advance(later.clone(), &version),
            counts(&[1, 0], 0b100)
        );
        let rest = share.rest(&Counted::from_counts(&later), &version);
        assert_eq!(rest, Some(counts(&[4, 0], 0b101)));
    }

    #[test]
    fn counters_that_were_reset_start_anew() {
        let mut share = Share::default();
        let version = version();
        let before = share.advance(counts(&[9], 0), &version);
        share.leave_out(before, &version);
        let after = counts(&[2], 0);
        assert_eq!(share.advance(after.clone(), &version), after);
        assert_eq!(share.rest(&Counted::from_counts(&after), &version), None);
    }
}
