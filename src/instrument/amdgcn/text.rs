//! Machine code that is being written: labels, branches to them, and constants that depend on where the text lies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::error::Refusal;

/// The farthest that a branch reaches, in words from the word after it.
const REACH: i64 = 0x7fff;

/// The words that insertions are a multiple of, so that entries of kernels stay aligned.
const ALIGNMENT: usize = 64;

/// Branches on the way lie near multiples of this, so that far branches share them: a quarter of the reach.
const BRIDGES: usize = 0x2000;

/// The bytes of a word.
const WORD: usize = 4;

/// The position of a label before it is placed.
const NOWHERE: u32 = u32::MAX;

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Label(u32);

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
    at: u32,
    goal: Label,
}

/// A constant that is the distance to a goal.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// The place of the constant, or of the additions of both of its halves.
    at: u32,
    /// The words from the origin of the distance to this place.
    behind: u32,
    goal: Goal,
}

/// The text. Positions are numbers of words. Large code objects have millions of labels and branches, so they take 32 bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    /// The bytes before the text, and the text: this grows to hundreds of megabytes, and becomes the code object.
    bytes: Vec<u8>,
    /// The offset of the text in these bytes.
    start: usize,
    /// The position of each label, or [`NOWHERE`].
    labels: Vec<u32>,
    /// The ELF addresses of functions whose copies have these labels.
    originals: HashMap<Label, u64>,
    branches: Vec<Branch>,
    /// Additions of a distance.
    references: Vec<Distance>,
    /// Distances that are one constant.
    distances: Vec<Distance>,
    /// Positions where code can be inserted, by rising position.
    joints: Vec<u32>,
    /// The end of the last `v_writelane_b32`.
    lane_written: usize,
    /// The word between functions: `s_nop`.
    pub(super) filler: u32,
}

impl Text {
    /// A text after these bytes.
    pub(super) fn after(bytes: Vec<u8>) -> Self {
        Self {
            start: bytes.len(),
            bytes,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        (self.bytes.len() - self.start) / WORD
    }

    /// The position of what comes next.
    fn here(&self) -> u32 {
        self.len() as u32
    }

    pub(super) fn push(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    pub(super) fn extend(&mut self, words: impl IntoIterator<Item = u32>) {
        words.into_iter().for_each(|word| self.push(word));
    }

    /// A label without a place.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(NOWHERE);
        Label(self.labels.len() as u32 - 1)
    }

    /// A label for the copy of the function at an ELF address. It stands for the function itself if it gets no place.
    pub(super) fn copy_label(&mut self, address: u64) -> Label {
        let label = self.label();
        self.originals.insert(label, address);
        label
    }

    /// Places a label here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.here();
    }

    /// Returns whether a label has a place.
    pub(super) fn has_place(&self, label: Label) -> bool {
        self.position(label) != NOWHERE
    }

    fn position(&self, label: Label) -> u32 {
        self.labels[label.0 as usize]
    }

    /// Marks this place as one where code can be inserted.
    pub(super) fn joint(&mut self) {
        self.joints.push(self.here());
    }

    /// Adds a branch, which is `word` without the distance in its low half.
    pub(super) fn branch(&mut self, word: u32, goal: Label) {
        let at = self.here();
        self.branches.push(Branch { at, goal });
        self.push(word);
    }

    /// The two instructions that come next add the distance to a goal from the place that is `behind` words before here.
    pub(super) fn refer(&mut self, goal: Goal, behind: usize) {
        self.references.push(self.distance_to(goal, behind));
    }

    /// The word that comes next is the distance to a goal behind it, from the place that is `behind` words before here.
    pub(super) fn refer_at_once(&mut self, goal: Goal, behind: usize) {
        self.distances.push(self.distance_to(goal, behind));
    }

    fn distance_to(&self, goal: Goal, behind: usize) -> Distance {
        Distance {
            at: self.here(),
            behind: behind as u32,
            goal,
        }
    }

    /// Notes that the last instruction wrote a lane.
    pub(super) fn wrote_lane(&mut self) {
        self.lane_written = self.len();
    }

    /// Calls `part` if the last instruction wrote a lane.
    pub(super) fn part_lanes(&mut self, part: impl FnOnce(&mut Self)) {
        if self.lane_written == self.len() && self.lane_written > 0 {
            part(self);
        }
    }

    /// Continues at a multiple of `words`.
    pub(super) fn align(&mut self, words: usize) {
        while !self.len().is_multiple_of(words) {
            self.push(self.filler);
        }
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
            let mut bridges: BTreeMap<(u32, Label), Label> = BTreeMap::new();
            for number in far {
                let Branch { at, goal } = self.branches[number];
                let middle = (at as usize + self.position(goal) as usize) / 2;
                let middle = ((middle + BRIDGES / 2) / BRIDGES * BRIDGES) as u32;
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
        i64::from(self.position(branch.goal)) - i64::from(branch.at) - 1
    }

    /// Inserts branches at joints: each has a label, and leads to a goal.
    fn insert(&mut self, bridges: &BTreeMap<(u32, Label), Label>, branch: u32) {
        let mut inserted: Vec<(u32, Vec<(Label, Label)>)> = Vec::new();
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
            total += size(list) as u32;
            sizes.push((*joint, total));
        }
        let shifted = |position: u32, before: usize| {
            let last = before.checked_sub(1);
            position + last.map_or(0, |last| sizes[last].1)
        };
        // A label at a joint stays in front of the branch around, as the code before it does.
        let label_moved = |position: u32| {
            shifted(
                position,
                sizes.partition_point(|(joint, _)| *joint < position),
            )
        };
        let code_moved = |position: u32| {
            shifted(
                position,
                sizes.partition_point(|(joint, _)| *joint <= position),
            )
        };
        // From the end on, as a second text would take too much memory.
        let mut end = self.bytes.len();
        self.bytes.resize(end + WORD * total as usize, 0);
        for ((joint, list), (_, behind)) in inserted.iter().zip(&sizes).rev() {
            let joint = self.start + WORD * *joint as usize;
            self.bytes
                .copy_within(joint..end, joint + WORD * *behind as usize);
            end = joint;
            let size = size(list);
            let mut words = vec![self.filler; size];
            words[0] = branch | (size as u32 - 1);
            words[1..=list.len()].fill(branch);
            let goal = joint + WORD * (*behind as usize - size);
            for (word, bytes) in words.iter().zip(self.bytes[goal..].chunks_exact_mut(WORD)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        let mut branches = Vec::new();
        let new: BTreeSet<u32> = bridges.values().map(|label| label.0).collect();
        for (number, position) in self.labels.iter_mut().enumerate() {
            if *position != NOWHERE && !new.contains(&(number as u32)) {
                *position = label_moved(*position);
            }
        }
        for ((joint, list), (_, behind)) in inserted.iter().zip(&sizes) {
            let first = *joint + *behind - size(list) as u32 + 1;
            for ((label, goal), at) in list.iter().zip(first..) {
                self.labels[label.0 as usize] = at;
                branches.push(Branch { at, goal: *goal });
            }
        }
        for branch in &mut self.branches {
            branch.at = code_moved(branch.at);
        }
        for distance in self.references.iter_mut().chain(&mut self.distances) {
            distance.at = code_moved(distance.at);
        }
        for joint in &mut self.joints {
            *joint = label_moved(*joint);
        }
        self.branches.extend(branches);
    }

    /// Sets the distances of branches. [`Self::bridge`] comes first.
    pub(super) fn link_branches(&mut self) {
        for branch in std::mem::take(&mut self.branches) {
            let distance = self.distance(&branch) as u16;
            let at = self.start + WORD * branch.at as usize;
            self.bytes[at..at + 2].copy_from_slice(&distance.to_le_bytes());
        }
    }

    /// The position of a label in bytes.
    pub(super) fn offset(&self, label: Label) -> u64 {
        WORD as u64 * u64::from(self.position(label))
    }

    /// The bytes before the text, and those of the text, if it lies at the ELF address `base` and the counters at `counters`.
    pub(super) fn into_bytes(mut self, base: u64, counters: u64) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let distance = |distance: &Distance| {
            let goal = match distance.goal {
                Goal::Label(label) => match self.originals.get(&label) {
                    Some(original) if !self.has_place(label) => *original,
                    _ => base + self.offset(label),
                },
                Goal::Counter(number) => counters + 8 * number,
                Goal::Original(address) => address,
            };
            let origin = distance.at - distance.behind;
            goal.wrapping_sub(base + WORD as u64 * u64::from(origin))
        };
        let mut set = |at: u32, word: u64| {
            let at = self.start + WORD * at as usize;
            bytes[at..at + WORD].copy_from_slice(&(word as u32).to_le_bytes());
        };
        for reference in &self.references {
            let distance = distance(reference);
            set(reference.at + 1, distance);
            set(reference.at + 3, distance >> 32);
        }
        for reference in &self.distances {
            set(reference.at, distance(reference));
        }
        bytes
    }
}
