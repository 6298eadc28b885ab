//! The executions of each instruction, by its address in GPU memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The size of a word of code in bytes: each instruction starts at one.
const WORD: u64 = 4;
/// Words of a page.
const PAGE: u64 = 1024;

/// The executions of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Their number: each is one by one wave.
    pub waves: u64,
    /// The lanes that were active, summed over them.
    pub lanes: u64,
}

/// The counts of a process. Threads of dispatches add to it; its owner reads the counts of a range of
/// addresses, and clears them when other code may come there.
#[derive(Debug, Default)]
pub struct Trace(Mutex<BTreeMap<u64, Box<[Executed; PAGE as usize]>>>);

impl Trace {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Box<[Executed; PAGE as usize]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds counts of instructions at these addresses.
    pub fn add(&self, counts: impl Iterator<Item = (u64, Executed)>) {
        let mut pages = self.lock();
        for (pc, more) in counts {
            let word = pc / WORD;
            let page = pages.entry(word / PAGE);
            let page = page.or_insert_with(|| Box::new([Executed::default(); PAGE as usize]));
            let sum = &mut page[(word % PAGE) as usize];
            sum.waves += more.waves;
            sum.lanes += more.lanes;
        }
    }

    /// Calls `visit` with the place, counted from the first word, and the counts of each executed instruction
    /// that starts in the `words` words from address `start` on.
    pub fn read(&self, start: u64, words: u64, mut visit: impl FnMut(u64, Executed)) {
        let first = start / WORD;
        let Some(last) = first.checked_add(words).and_then(|end| end.checked_sub(1)) else {
            return;
        };
        for (number, page) in self.lock().range(first / PAGE..=last / PAGE) {
            for (place, counts) in page.iter().enumerate() {
                let word = number * PAGE + place as u64;
                if counts.waves > 0 && (first..=last).contains(&word) {
                    visit(word - first, *counts);
                }
            }
        }
    }

    /// Forgets the counts of the `words` words from address `start` on.
    pub fn clear(&self, start: u64, words: u64) {
        let first = start / WORD;
        let Some(last) = first.checked_add(words).and_then(|end| end.checked_sub(1)) else {
            return;
        };
        let mut pages = self.lock();
        for (number, page) in pages.range_mut(first / PAGE..=last / PAGE) {
            for (place, counts) in page.iter_mut().enumerate() {
                if (first..=last).contains(&(number * PAGE + place as u64)) {
                    *counts = Executed::default();
                }
            }
        }
        let whole = |number: &u64| number * PAGE >= first && number * PAGE + (PAGE - 1) <= last;
        pages.retain(|number, _| !whole(number));
    }
}

/// A thread's counts, by the index of the decoded instruction.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Vec<Executed>,
    /// The addresses and indices that the dispatch has reached.
    reached: Vec<(u64, u32)>,
}

impl Tally {
    /// Starts a dispatch.
    pub(crate) fn begin(&mut self) {
        self.reached.clear();
    }

    /// Makes room for the instruction at `pc`, which the dispatch reaches for the first time.
    pub(crate) fn reach(&mut self, pc: u64, index: u32) {
        self.reached.push((pc, index));
        if self.counts.len() <= index as usize {
            self.counts.resize(index as usize + 1, Executed::default());
        }
    }

    /// Counts an execution by a wave with this number of active lanes.
    #[inline(always)]
    pub(crate) fn count(&mut self, index: u32, lanes: u32) {
        let counts = &mut self.counts[index as usize];
        counts.waves += 1;
        counts.lanes += u64::from(lanes);
    }

    /// Takes back the latest count: the instruction was not executed.
    #[cold]
    pub(crate) fn take_back(&mut self, index: u32, lanes: u32) {
        let counts = &mut self.counts[index as usize];
        counts.waves -= 1;
        counts.lanes -= u64::from(lanes);
    }

    /// Moves the counts to `trace`.
    pub(crate) fn flush(&mut self, trace: &Trace) {
        let counts = &mut self.counts;
        let taken = self.reached.iter().map(|&(pc, index)| {
            let counts = std::mem::take(&mut counts[index as usize]);
            (pc, counts)
        });
        trace.add(taken.filter(|(_, counts)| counts.waves > 0));
    }
}

/// The number of active lanes of a wave, as long as they do not change.
#[derive(Default)]
pub(crate) struct ActiveLanes {
    exec: u64,
    number: u32,
}

impl ActiveLanes {
    /// The number of lanes in `exec`.
    #[inline(always)]
    pub(crate) fn count(&mut self, exec: u64) -> u32 {
        if self.exec != exec {
            *self = Self {
                exec,
                number: exec.count_ones(),
            };
        }
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(trace: &Trace, start: u64, words: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        trace.read(start, words, |place, counts| {
            assert_eq!(counts.lanes, 64 * counts.waves);
            found.push((place, counts.waves));
        });
        found
    }

    #[test]
    fn a_range_is_read_and_cleared_alone() {
        let trace = Trace::default();
        let counts = |waves| Executed {
            waves,
            lanes: 64 * waves,
        };
        // Three words before the end of a page, and one behind it.
        let start = 0x7f00_0000_1ff4;
        trace.add(
            [
                (start, counts(1)),
                (start + 8, counts(2)),
                (start + 12, counts(3)),
            ]
            .into_iter(),
        );
        trace.add([(start + 8, counts(5))].into_iter());
        assert_eq!(all(&trace, start, 4), [(0, 1), (2, 7), (3, 3)]);
        assert_eq!(all(&trace, start + 4, 2), [(1, 7)]);
        assert_eq!(all(&trace, start, 0), []);
        trace.clear(start + 4, 2);
        assert_eq!(all(&trace, start, 4), [(0, 1), (3, 3)]);
        trace.clear(start + 12, 1 << 20);
        assert_eq!(all(&trace, start, 4), [(0, 1)]);
        trace.clear(u64::MAX - 3, u64::MAX);
        assert_eq!(all(&trace, 0, u64::MAX / 4), [(start / 4, 1)]);
    }

    #[test]
    fn lanes_are_those_of_the_latest_mask() {
        let mut lanes = ActiveLanes::default();
        let masks = [0, 1, 1, u64::MAX, 0, 0xf0];
        assert_eq!(masks.map(|exec| lanes.count(exec)), [0, 1, 1, 64, 0, 4]);
    }
}
