//! The ways of lanes in a function, as far as they are known.

use std::sync::{Arc, OnceLock};

/// An end of a way of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LaneEnd {
    /// The stretch with this number.
    Stretch(u32),
    /// Lanes that a condition does not keep wait there, or those that it keeps while the others run.
    Pool(u32),
    /// Another place, or one that is not known.
    Outside,
}

/// The lanes that are active in a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StretchLanes {
    /// EXEC changes at its end, and its ways are known.
    pub(super) has_ways: bool,
    /// They are those of the entry.
    pub(super) are_of_entry: bool,
    /// They are all lanes that a condition keeps: this is the stretch behind it.
    pub(super) behind: Option<u32>,
    /// There is one whenever a wave comes there, by [`find_active`](super::masks::find_active).
    pub(super) is_active: bool,
    /// They are among those of the entry, by the same.
    pub(super) is_bounded: bool,
}

/// The ways of lanes where EXEC changes.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneWays {
    pub(super) ways: Vec<(LaneEnd, LaneEnd)>,
    /// By the number of the stretch. Nothing is known of those that are missing.
    pub(super) stretches: Vec<StretchLanes>,
    pub(super) pools: u32,
}

impl LaneWays {
    /// The lanes of a stretch.
    pub(super) fn stretch(&self, number: usize) -> StretchLanes {
        self.stretches.get(number).copied().unwrap_or_default()
    }
}

/// The ways of lanes in a function, once they are found: it takes much of the time.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownLanes {
    /// If no callee ends the wave, and if some may.
    ways: [OnceLock<Arc<LaneWays>>; 2],
}

impl KnownLanes {
    pub(super) fn get_or_find(
        &self,
        callees_end: bool,
        find: impl FnOnce() -> LaneWays,
    ) -> Arc<LaneWays> {
        let known = &self.ways[usize::from(callees_end)];
        known.get_or_init(|| Arc::new(find())).clone()
    }
}
