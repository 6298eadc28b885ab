//! The flow of addresses through the registers of a function.

use std::collections::BTreeMap;

use crate::format::codeobject::counter_updates::instruction::{
    Access, Action, Generation, Instruction, Register, decode, reads_program_counter,
};
use crate::format::codeobject::elf::ElfRange;

/// The size of a counter in bytes. Counters of one byte are only stored to.
const COUNTER: u32 = 8;

/// The most registers whose values are remembered. Code that needs more is not found, but damaged code ends soon.
const MOST_KNOWN: usize = 64;

/// The most times that each instruction of a function is looked at, on average. Compiled code needs 2.
const MOST_LOOKS: usize = 32;

/// The parts of a code object that its functions refer to.
pub(super) struct Surroundings<'a> {
    pub(super) generation: Generation,
    /// The section of counters.
    pub(super) counters: ElfRange,
    /// The address that the loader writes to this address.
    pub(super) relocated: &'a dyn Fn(u64) -> Option<u64>,
}

/// The registers whose value is known, each once, with the lower half of an ELF address. In code, addresses are sums of
/// the program counter and constants.
type Known = Vec<(Register, u32)>;

/// The value of a register, if it is known.
fn value_of(known: &Known, register: Register) -> Option<u32> {
    let mut known = known.iter();
    let found = known.find(|(other, _)| *other == register);
    found.map(|(_, value)| *value)
}

/// The accesses of a function to counters, without atomic operations.
#[derive(Debug, Default)]
struct Accesses {
    loads: bool,
    stores: bool,
}

impl Accesses {
    fn add(&mut self, access: Access) {
        match access {
            Access::Load => self.loads = true,
            Access::Store => self.stores = true,
        }
    }

    fn are_additions(&self) -> bool {
        self.loads && self.stores
    }
}

/// A function that is looked at.
struct Function<'a> {
    words: Vec<u32>,
    /// The ELF address of the first word.
    start: u64,
    surroundings: &'a Surroundings<'a>,
    /// For each word, whether a branch leads there.
    is_leader: Vec<bool>,
    /// The known registers at leaders.
    known: BTreeMap<usize, Known>,
    /// The leaders from which the code is looked at next.
    next: Vec<usize>,
    /// The number of instructions that may still be looked at.
    looks: usize,
    accesses: Accesses,
}

/// Returns whether the code of a function at `start` loads a counter, and stores one, without atomic operations.
pub(super) fn adds_plainly(code: &[u8], start: u64, surroundings: &Surroundings<'_>) -> bool {
    let (words, _) = code.as_chunks();
    let words: Vec<_> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut all = words.iter();
    if !all.any(|word| reads_program_counter(*word, surroundings.generation)) {
        return false;
    }
    let mut function = Function {
        is_leader: vec![false; words.len()],
        looks: words.len().saturating_mul(MOST_LOOKS),
        words,
        start,
        surroundings,
        known: BTreeMap::new(),
        next: Vec::new(),
        accesses: Accesses::default(),
    };
    function.find_leaders();
    function.follow();
    function.accesses.are_additions()
}

impl Function<'_> {
    fn instruction(&self, at: usize) -> Option<Instruction> {
        decode(self.words.get(at..)?, self.surroundings.generation)
    }

    /// The word that is `distance` words after `next`.
    fn target(&self, next: usize, distance: i64) -> Option<usize> {
        let target = next.checked_add_signed(distance.try_into().ok()?)?;
        (target < self.words.len()).then_some(target)
    }

    /// The ELF address of a word.
    fn address(&self, at: usize) -> u32 {
        (self.start as u32).wrapping_add((at as u32).wrapping_mul(4))
    }

    /// Finds the words that branches lead to.
    fn find_leaders(&mut self) {
        let mut at = 0;
        while let Some(instruction) = self.instruction(at) {
            at += instruction.words;
            if let Action::Jump(distance) | Action::Branch(distance) = instruction.action
                && let Some(target) = self.target(at, distance)
            {
                self.is_leader[target] = true;
            }
        }
    }

    /// Looks at all code: from the start, and then from leaders that no known branch leads to.
    fn follow(&mut self) {
        for start in 0..self.words.len() {
            let is_left = self.is_leader[start] && !self.known.contains_key(&start);
            if start == 0 || is_left {
                self.enter(start, Known::new());
            }
            while let Some(at) = self.next.pop() {
                self.follow_from(at);
                if self.accesses.are_additions() || self.looks == 0 {
                    return;
                }
            }
        }
    }

    /// Notes that the code comes to a word with these registers. A register stays known if all ways there agree on its value.
    fn enter(&mut self, at: usize, known: Known) {
        let mut is_new = false;
        let there = self.known.entry(at).or_insert_with(|| {
            is_new = true;
            known.clone()
        });
        let before = there.len();
        there.retain(|pair| known.contains(pair));
        if is_new || there.len() < before {
            self.next.push(at);
        }
    }

    /// Looks at the code from a leader to the next one, or to the end.
    fn follow_from(&mut self, mut at: usize) {
        let mut known = self.known.get(&at).cloned().unwrap_or_default();
        while let Some(instruction) = self.instruction(at) {
            self.looks = self.looks.saturating_sub(1);
            if self.looks == 0 {
                return;
            }
            at += instruction.words;
            match instruction.action {
                Action::End => return,
                Action::Call => known.clear(),
                Action::Jump(distance) => {
                    if let Some(target) = self.target(at, distance) {
                        self.enter(target, known);
                    }
                    return;
                }
                Action::Branch(distance) => {
                    if let Some(target) = self.target(at, distance) {
                        self.enter(target, known.clone());
                    }
                }
                Action::JumpTo(register) => {
                    let address = value_of(&known, register);
                    let offset = address.map(|address| address.wrapping_sub(self.start as u32));
                    let target = offset.map(|offset| offset as usize / 4);
                    if let Some(target) = target.filter(|target| *target < self.words.len()) {
                        self.enter(target, known);
                    }
                    return;
                }
                _ => self.note(&instruction, at, &mut known),
            }
            if self.is_leader.get(at) == Some(&true) {
                return self.enter(at, known);
            }
        }
    }

    /// Notes what an instruction before the word `next` accesses, and which registers are known after it.
    fn note(&mut self, instruction: &Instruction, next: usize, known: &mut Known) {
        let value = |register| value_of(known, register);
        let mut results = [None; 2];
        match instruction.action {
            Action::ProgramCounter(to) => results[0] = Some((to, self.address(next))),
            Action::Copy(copied) => {
                let copy = |(to, from)| Some((to, value(from)?));
                results = copied.map(|copied| copied.and_then(copy));
            }
            Action::Add { to, from, constant } => {
                results[0] = value(from).map(|value| (to, value.wrapping_add(constant)));
            }
            Action::Plain {
                access,
                base,
                bytes,
            } if bytes >= COUNTER && value(base).is_some_and(|base| self.is_counter(base)) => {
                self.accesses.add(access);
            }
            Action::ScalarLoad {
                to,
                base,
                offset,
                bytes,
            } => {
                if let Some(base) = value(base) {
                    if bytes >= COUNTER && self.is_counter(base) {
                        self.accesses.add(Access::Load);
                    }
                    let address = base.wrapping_add_signed(offset);
                    let stored = (self.surroundings.relocated)(address.into());
                    results[0] = stored.map(|stored| (to, stored as u32));
                }
            }
            _ => {}
        }
        known.retain(|(register, _)| {
            let mut written = instruction.writes.iter();
            !written.any(|written| register.is_in(written))
        });
        let room = MOST_KNOWN.saturating_sub(known.len());
        known.extend(results.into_iter().flatten().take(room));
    }

    fn is_counter(&self, address: u32) -> bool {
        let counters = self.surroundings.counters;
        let offset = u64::from(address).checked_sub(counters.address);
        offset.is_some_and(|offset| offset < counters.size)
    }
}
