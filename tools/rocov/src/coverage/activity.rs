//! The activity of lanes: the instructions that waves executed, and the share of lanes that were active.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

/// The executed instructions of a part of the code, and the lanes that were active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// The number of instructions that waves executed.
    pub(crate) instructions: u64,
    /// The lanes that were active, summed over these instructions.
    pub(crate) lanes: u64,
    /// All lanes of the waves, summed over these instructions.
    pub(crate) all_lanes: u64,
}

/// The activity of each line that has executed instructions, by the path of the source.
pub(crate) type Activities = BTreeMap<Arc<str>, BTreeMap<u32, Activity>>;

impl Activity {
    /// The sum of two parts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_add(other.instructions),
            lanes: self.lanes.saturating_add(other.lanes),
            all_lanes: self.all_lanes.saturating_add(other.all_lanes),
        }
    }

    /// The share of active lanes in percent, rounded down: code with an idle lane never has 100. `None` if nothing
    /// was executed.
    pub(crate) fn percent(self) -> Option<u64> {
        let share = u128::from(self.lanes) * 100;
        let percent = share.checked_div(u128::from(self.all_lanes))?;
        u64::try_from(percent).ok()
    }
}

/// Gives the sources the paths of `place`.
pub(crate) fn move_all(activities: &mut Activities, place: impl Fn(&str) -> String) {
    for (path, lines) in mem::take(activities) {
        add(
            activities,
            &Activities::from([(place(&path).into(), lines)]),
        );
    }
}

/// Adds `more` to the activities of `sum`.
pub(crate) fn add(sum: &mut Activities, more: &Activities) {
    for (path, lines) in more {
        let of_path = sum.entry(Arc::clone(path)).or_default();
        for (line, activity) in lines {
            let known = of_path.entry(*line).or_default();
            *known = known.plus(*activity);
        }
    }
}
