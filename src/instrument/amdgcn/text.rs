//! Machine code that is being written: labels, branches to them, and constants that depend on where the text lies.

use std::collections::{BTreeMap, BTreeSet};

use super::error::Refusal;

/// The farthest that a branch reaches, in words from the word after it.
const REACH: i64 = 0x7fff;

/// The words that insertions are a multiple of, so that entries of kernels stay aligned.
const ALIGNMENT: usize = 64;

/// Branches on the way lie near multiples of this, so that far branches share them: a quarter of the reach.
const BRIDGES: usize = 0x2000;

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label(usize);

/// Something that an address is computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Label(Label),
    /// The counter with this number.
    Counter(u64),
    /// An ELF address of the original.
    Original(u64),
}

/// A branch whose distance is not set yet.
#[derive(Clone, Copy, Debug)]
struct Branch {
    at: usize,
    goal: Label,
}

/// The text. Positions are numbers of words.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    words: Vec<u32>,
    /// The position of each label; `usize::MAX` before it is placed.
    labels: Vec<usize>,
    branches: Vec<Branch>,
    /// Additions of a distance to a goal: the place where each starts, the words from the origin of the distance to this place, and the
    /// goal.
    references: Vec<(usize, usize, Goal)>,
    /// Constants that are the distance to a goal: the place of each, the words from the origin of the distance to it, and the goal.
    distances: Vec<(usize, usize, Goal)>,
    /// Positions where code can be inserted, by rising position.
    joints: Vec<usize>,
    /// The end of the last `v_writelane_b32`.
    lane_written: usize,
    /// The word between functions: `s_nop`.
    pub(super) filler: u32,
}

impl Text {
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    pub(super) fn push(&mut self, word: u32) {
        self.words.push(word);
    }

    pub(super) fn extend(&mut self, words: impl IntoIterator<Item = u32>) {
        self.words.extend(words);
    }

    /// A label without a place.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = self.words.len();
    }

    /// Marks this place as one where code can be inserted.
    pub(super) fn joint(&mut self) {
        self.joints.push(self.words.len());
    }

    /// Adds a branch, which is `word` without the distance in its low half.
    pub(super) fn branch(&mut self, word: u32, goal: Label) {
        let at = self.words.len();
        self.branches.push(Branch { at, goal });
        self.words.push(word);
    }

    /// The two instructions that come next add the distance to a goal from the place that is `behind` words before here.
    pub(super) fn refer(&mut self, goal: Goal, behind: usize) {
        self.references.push((self.words.len(), behind, goal));
    }

    /// The word that comes next is the distance to a goal behind it, from the place that is `behind` words before here.
    pub(super) fn refer_at_once(&mut self, goal: Goal, behind: usize) {
        self.distances.push((self.words.len(), behind, goal));
    }

    /// Notes that the last instruction wrote a lane.
    pub(super) fn wrote_lane(&mut self) {
        self.lane_written = self.words.len();
    }

    /// Calls `part` if the last instruction wrote a lane.
    pub(super) fn part_lanes(&mut self, part: impl FnOnce(&mut Self)) {
        if self.lane_written == self.words.len() && self.lane_written > 0 {
            part(self);
        }
    }

    /// Continues at a multiple of `words`.
    pub(super) fn align(&mut self, words: usize) {
        let len = self.words.len().next_multiple_of(words);
        self.words.resize(len, self.filler);
    }

    /// Has each branch that does not reach its goal lead to a branch on the way. `branch` is `s_branch` without a distance.
    ///
    /// # Errors
    /// Fails if there is no place for one.
    pub(super) fn bridge(&mut self, branch: u32) -> Result<(), Refusal> {
        // Each round halves the longest way, so few are needed.
        for _ in 0..40 {
            let far: Vec<usize> = (0..self.branches.len())
                .filter(|number| self.distance(&self.branches[*number]).abs() > REACH)
                .collect();
            if far.is_empty() {
                return Ok(());
            }
            let mut bridges: BTreeMap<(usize, Label), Label> = BTreeMap::new();
            for number in far {
                let Branch { at, goal } = self.branches[number];
                let middle = (at + self.labels[goal.0]) / 2;
                let middle = (middle + BRIDGES / 2) / BRIDGES * BRIDGES;
                let next = self.joints.partition_point(|joint| *joint < middle);
                let near = [next.checked_sub(1), Some(next)].into_iter().flatten();
                let near = near.filter_map(|index| self.joints.get(index).copied());
                let joint = near.min_by_key(|joint| joint.abs_diff(middle));
                let joint = joint.ok_or(Refusal::NoFunction)?;
                let known = bridges.get(&(joint, goal)).copied();
                let label = known.unwrap_or_else(|| self.label());
                bridges.insert((joint, goal), label);
                self.branches[number].goal = label;
            }
            self.insert(&bridges, branch);
        }
        Err(Refusal::NoFunction)
    }

    /// The words from after a branch to its goal.
    fn distance(&self, branch: &Branch) -> i64 {
        self.labels[branch.goal.0] as i64 - branch.at as i64 - 1
    }

    /// Inserts branches at joints: each has a label, and leads to a goal.
    fn insert(&mut self, bridges: &BTreeMap<(usize, Label), Label>, branch: u32) {
        let mut inserted: Vec<(usize, Vec<(Label, Label)>)> = Vec::new();
        for ((joint, goal), label) in bridges {
            match inserted.last_mut() {
                Some((last, list)) if last == joint => list.push((*label, *goal)),
                _ => inserted.push((*joint, vec![(*label, *goal)])),
            }
        }
        // A branch around them comes first. Kernels begin at multiples of 64 words, and stay there.
        let size = |list: &[(Label, Label)]| (list.len() + 1).next_multiple_of(ALIGNMENT);
        // Each joint, and the words that are inserted there and before.
        let mut sizes = Vec::with_capacity(inserted.len());
        let mut total = 0;
        for (joint, list) in &inserted {
            total += size(list);
            sizes.push((*joint, total));
        }
        let shifted = |position: usize, before: usize| {
            let last = before.checked_sub(1);
            position + last.map_or(0, |last| sizes[last].1)
        };
        // A label at a joint stays in front of the branch around, as the code before it does.
        let label_moved = |position: usize| {
            shifted(
                position,
                sizes.partition_point(|(joint, _)| *joint < position),
            )
        };
        let code_moved = |position: usize| {
            shifted(
                position,
                sizes.partition_point(|(joint, _)| *joint <= position),
            )
        };
        let mut words = Vec::with_capacity(self.words.len() + total);
        let mut done = 0;
        let mut branches = Vec::new();
        for (joint, list) in &inserted {
            words.extend_from_slice(&self.words[done..*joint]);
            done = *joint;
            let size = size(list);
            words.push(branch | (size as u32 - 1));
            for (label, goal) in list {
                self.labels[label.0] = words.len();
                branches.push(Branch {
                    at: words.len(),
                    goal: *goal,
                });
                words.push(branch);
            }
            words.resize(words.len() + size - 1 - list.len(), self.filler);
        }
        words.extend_from_slice(&self.words[done..]);
        let new: BTreeSet<usize> = bridges.values().map(|label| label.0).collect();
        for (number, position) in self.labels.iter_mut().enumerate() {
            if !new.contains(&number) && *position != usize::MAX {
                *position = label_moved(*position);
            }
        }
        for branch in &mut self.branches {
            branch.at = code_moved(branch.at);
        }
        for (at, ..) in self.references.iter_mut().chain(&mut self.distances) {
            *at = code_moved(*at);
        }
        for joint in &mut self.joints {
            *joint = label_moved(*joint);
        }
        self.branches.extend(branches);
        self.words = words;
    }

    /// Sets the distances of branches. [`Self::bridge`] comes first.
    pub(super) fn link_branches(&mut self) {
        for branch in &self.branches {
            let distance = self.distance(branch) as u32 & 0xffff;
            let word = &mut self.words[branch.at];
            *word = *word & 0xffff_0000 | distance;
        }
    }

    /// The position of a label in bytes.
    pub(super) fn offset(&self, label: Label) -> u64 {
        4 * self.labels[label.0] as u64
    }

    /// The bytes, if the text lies at the ELF address `base` and the counters at `counters`.
    pub(super) fn bytes(&self, base: u64, counters: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes, base, counters);
        bytes
    }

    /// Adds these bytes to others.
    pub(super) fn write(&self, out: &mut Vec<u8>, base: u64, counters: u64) {
        let start = out.len();
        out.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        let distance = |(at, behind, goal): (usize, usize, Goal)| {
            let goal = match goal {
                Goal::Label(label) => base + self.offset(label),
                Goal::Counter(number) => counters + 8 * number,
                Goal::Original(address) => address,
            };
            goal.wrapping_sub(base + 4 * (at - behind) as u64)
        };
        let mut set = |at: usize, word: u64| {
            let at = start + 4 * at;
            out[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
        };
        for reference in &self.references {
            let (distance, at) = (distance(*reference), reference.0);
            set(at + 1, distance);
            set(at + 3, distance >> 32);
        }
        for reference in &self.distances {
            set(reference.0, distance(*reference));
        }
    }
}
