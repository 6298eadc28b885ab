//! Of what a load has counted, how much is not for its own profile: counts of labels, and what was
//! counted outside of windows.
//!
//! Nothing is written to the device for that: what was counted up to a moment is remembered, and the
//! difference to a later one is what was counted in between. So each count goes to one place, and the
//! sum of all is what the device has.

use std::collections::HashMap;

use super::counted::Counted;
use crate::profraw::{Counts, Version};

/// The shares of all loads; empty where nobody asks for labels or windows.
#[derive(Debug, Default)]
pub(super) struct Shares {
    is_asked_for: bool,
    /// By generation, and of its bounds which.
    loads: HashMap<u64, Vec<Share>>,
}

/// What became of the counts of one load.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// All that was counted at the latest look, if that was not at the load.
    seen: Option<Counts>,
    /// Whether what drains have written before is known.
    has_begun: bool,
    /// What of that is not for the load's own profile.
    elsewhere: Option<Counts>,
}

impl Shares {
    /// Shares are kept from now on.
    pub(super) fn ask(&mut self) {
        self.is_asked_for = true;
    }

    /// The share of load `generation` at its bounds number `which`, if any are kept.
    pub(super) fn of(&mut self, generation: u64, which: usize) -> Option<&mut Share> {
        if !self.is_asked_for {
            return None;
        }
        let shares = self.loads.entry(generation).or_default();
        while shares.len() <= which {
            shares.push(Share::default());
        }
        shares.get_mut(which)
    }

    /// The load is gone, or its counters start from zero.
    pub(super) fn forget(&mut self, generation: u64) {
        self.loads.remove(&generation);
    }
}

impl Share {
    /// Begins with what the load's own profile has by now, where drains came before: what `written` finds.
    pub(super) fn begin(&mut self, written: impl FnOnce() -> Option<Counts>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.seen = written();
        }
    }

    /// A later look at what was counted: what is new. Where counters were reset in between, nothing of
    /// what is there now has gone elsewhere.
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

    /// These of the counts are not for the load's own profile.
    pub(super) fn leave_out(&mut self, counts: Counts, version: &Version) {
        match &mut self.elsewhere {
            None => self.elsewhere = Some(counts),
            Some(elsewhere) => {
                let added = elsewhere.add(&counts, version);
                debug_assert!(added.is_ok(), "a load's sections do not change their sizes");
            }
        }
    }

    /// What of `counted` is for the load's own profile; `None` where it is all.
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
            uniform: Vec::new(),
        }
    }

    fn version() -> Version {
        Version::of_word(10).unwrap()
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
        let rest = share.rest(&Counted::of(&later), &version);
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
        assert_eq!(share.rest(&Counted::of(&after), &version), None);
    }
}
