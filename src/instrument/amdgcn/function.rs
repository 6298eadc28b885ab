//! A function: its stretches of code, the ways between them, and the loops around them.

use std::collections::BTreeMap;

use modelgpu_isa::{Condition, Flow, Operand};

use super::calls::{Sources, Ways};
use super::code::{Code, Decoder, Index, Ins, NamedCode, Scalars, Used};
use super::jumps;
use super::lanes::KnownLanes;
use super::loops::{Loops, Predecessors};

/// The register pair of return addresses in LLVM's calling convention.
const RETURN_ADDRESS: u16 = 30;
/// The distance in bytes from a kernel's entry to that for firmware that has loaded arguments into registers ("Preloaded Kernel
/// Arguments" in LLVM's AMDGPUUsage).
pub(super) const PRELOADED_ENTRY: u64 = 256;

/// The waves of which [`Stretch::frequency`] is a part.
const ALL_WAVES: u32 = 1 << 24;

/// A stretch of code: all of its instructions run equally often, with the same lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The number of its first instruction.
    pub(super) first: usize,
    /// It starts a basic block. Otherwise the instruction before it may have changed EXEC.
    pub(super) starts_block: bool,
    /// The number of loops around it.
    pub(super) depth: u32,
    /// The waves that come there, roughly: of [`ALL_WAVES`], if each branch halves them.
    pub(super) frequency: u32,
    /// No way leads in a circle without such a stretch.
    pub(super) is_head: bool,
}

/// The stretches that follow one in its function: two at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Successors {
    all: [usize; 2],
    count: usize,
}

impl AsRef<[usize]> for Successors {
    fn as_ref(&self) -> &[usize] {
        &self.all[..self.count]
    }
}

/// A function of a code object.
#[derive(Clone, Debug)]
pub(super) struct Function<'data> {
    pub(super) code: Code<'data>,
    is_kernel: bool,
    pub(super) all: Vec<Ins>,
    pub(super) used: Used,
    /// The numbers of the instructions where waves enter.
    pub(super) entries: Vec<usize>,
    /// The goal of each jump to a computed address in this function, by the numbers of instructions.
    pub(super) jumps: BTreeMap<usize, usize>,
    /// Jumps to addresses that are not known.
    pub(super) unresolved: Vec<usize>,
    /// Direct branches that lead out of the function.
    pub(super) outside: Vec<usize>,
    pub(super) calls: bool,
    /// The ELF addresses that calls lead to, by the numbers of instructions. Other calls lead to addresses that are not known.
    pub(super) callees: BTreeMap<usize, u64>,
    /// The calls after which the active lanes are those before it, with the scalar registers that the callees may write.
    pub(super) kept_calls: BTreeMap<usize, Scalars>,
    pub(super) stretches: Vec<Stretch>,
    successors: Vec<Successors>,
    /// The number of the stretch of each instruction.
    stretch_numbers: Vec<u32>,
    pub(super) lanes: KnownLanes,
    /// Before each instruction, SCC has a value that is read later.
    pub(super) is_scc_live: Vec<bool>,
    /// The numbers of instructions by address.
    index: Index,
}

impl<'data> Function<'data> {
    /// Decodes the code of a function, and finds its stretches. [`Self::find_callees`] and [`Self::find_loops`] come next.
    pub(super) fn new(named: &NamedCode<'data>, decoder: &mut Decoder) -> Self {
        let code = named.code;
        let (all, used) = decoder.instructions(&code);
        let index = Index::new(&all);
        let mut entries = vec![0];
        if named.has_preloaded_entry {
            entries.extend(index.get(code.address + PRELOADED_ENTRY));
        }
        let calls = all.iter().any(Ins::is_call);
        let mut function = Self {
            code,
            is_kernel: named.is_kernel(),
            all,
            used,
            entries,
            jumps: BTreeMap::new(),
            unresolved: Vec::new(),
            outside: Vec::new(),
            calls,
            callees: BTreeMap::new(),
            kept_calls: BTreeMap::new(),
            stretches: Vec::new(),
            successors: Vec::new(),
            stretch_numbers: Vec::new(),
            lanes: KnownLanes::default(),
            is_scc_live: Vec::new(),
            index,
        };
        function.find_stretches();
        function
    }

    /// Finds the functions that its calls lead to.
    pub(super) fn find_callees(&mut self) {
        if self.calls {
            self.callees = self.ways().known_calls();
        }
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.is_kernel
    }

    /// The number of the instruction at an ELF address.
    pub(super) fn number_at(&self, address: u64) -> Option<usize> {
        self.index.get(address)
    }

    /// The number of the instruction that a direct branch leads to.
    pub(super) fn goal(&self, number: usize) -> Option<usize> {
        self.number_at(self.all[number].target()?)
    }

    /// Returns whether waves without an active lane take the branch at an instruction, which looks for one, while other waves do
    /// the opposite. `None` for any other instruction, and if the branch leads to the next one.
    pub(super) fn is_taken_without_lanes(&self, number: usize) -> Option<bool> {
        let Flow::Branch { condition, .. } = self.all[number].flow else {
            return None;
        };
        let is_taken = match condition? {
            Condition::Execz => true,
            Condition::Execnz => false,
            _ => return None,
        };
        (self.goal(number) != Some(number + 1)).then_some(is_taken)
    }

    /// The blocks: the first stretch of each, and the block of each stretch.
    pub(super) fn blocks(&self) -> (Vec<usize>, Vec<usize>) {
        let mut starts = Vec::new();
        let mut block_of = Vec::with_capacity(self.stretches.len());
        for (index, stretch) in self.stretches.iter().enumerate() {
            if stretch.starts_block || starts.is_empty() {
                starts.push(index);
            }
            block_of.push(starts.len() - 1);
        }
        (starts, block_of)
    }

    /// Returns whether code of the function leads back to its first instruction.
    pub(super) fn comes_back(&self) -> bool {
        (0..self.all.len()).any(|from| self.following(from).any(|next| next == 0))
    }

    /// The numbers of the instructions that follow one in this function. Calls return.
    pub(super) fn following(&self, number: usize) -> impl Iterator<Item = usize> {
        let ins = &self.all[number];
        let next = Some(number + 1).filter(|next| ins.falls_through() && *next < self.all.len());
        let goal = match ins.flow {
            Flow::Branch { .. } => self.goal(number),
            _ => self.jumps.get(&number).copied(),
        };
        next.into_iter().chain(goal)
    }

    fn ways(&self) -> Ways<'_, 'data> {
        let ways =
            || (0..self.all.len()).flat_map(|from| self.following(from).map(move |to| (from, to)));
        Ways {
            code: &self.code,
            all: &self.all,
            entries: &self.entries,
            sources: Sources::new(self.all.len(), ways),
        }
    }

    fn find_stretches(&mut self) {
        let jumps = jumps::known(&self.code, &self.all, &self.index);
        // The instructions that start a block, and all that start a stretch. An entry may be past the last one.
        let count = self.all.len().max(1);
        let (mut leaders, mut starts) = (vec![false; count], vec![false; count]);
        self.entries.iter().for_each(|entry| leaders[*entry] = true);
        for (number, ins) in self.all.iter().enumerate() {
            if ins.target().is_some() {
                match self.goal(number) {
                    Some(goal) => leaders[goal] = true,
                    None if !ins.is_call() => self.outside.push(number),
                    None => {}
                }
            }
            if matches!(ins.flow, Flow::Indirect) {
                let known = jumps.get(&number).and_then(|goal| self.index.get(*goal));
                match known {
                    Some(goal) => {
                        leaders[goal] = true;
                        self.jumps.insert(number, goal);
                    }
                    None if !self.is_return(number) => self.unresolved.push(number),
                    None => {}
                }
            }
            if number + 1 < self.all.len() {
                if ins.ends_block() {
                    leaders[number + 1] = true;
                } else if ins.writes_exec {
                    starts[number + 1] = true;
                }
            }
        }
        self.stretches = (0..count)
            .filter(|first| leaders[*first] || starts[*first])
            .map(|first| Stretch {
                first,
                starts_block: leaders[first],
                depth: 0,
                frequency: 0,
                is_head: false,
            })
            .collect();
        self.stretch_numbers = Vec::with_capacity(self.all.len());
        for (stretch, number) in self.stretches.iter().skip(1).zip(0..) {
            self.stretch_numbers.resize(stretch.first, number);
        }
        let last = self.stretches.len() as u32 - 1;
        self.stretch_numbers.resize(self.all.len(), last);
        let successors = |stretch: usize| {
            let mut successors = Successors::default();
            let last = self.instructions_of(stretch).last();
            for next in last.into_iter().flat_map(|last| self.following(last)) {
                successors.all[successors.count] = self.stretch_of(next);
                successors.count += 1;
            }
            successors
        };
        self.successors = (0..self.stretches.len()).map(successors).collect();
    }

    /// Finds the loops around stretches, and how often they run.
    pub(super) fn find_loops(&mut self) {
        let entries = self.entries.iter().map(|entry| self.stretch_of(*entry));
        let entries: Vec<usize> = entries.collect();
        // Counters change SCC.
        self.is_scc_live = self.live_scc();
        let costly = self.stretches.iter();
        // A function whose first bytes are no instruction has an entry, but nothing there.
        let is_live = |stretch: &Stretch| self.is_scc_live.get(stretch.first).copied();
        let costly = costly.map(|stretch| is_live(stretch).unwrap_or(false));
        let costly: Vec<bool> = costly.collect();
        let Loops { depths, heads } = Loops::find(&self.successors, &entries, &costly);
        for (stretch, (depth, is_head)) in self.stretches.iter_mut().zip(depths.iter().zip(heads)) {
            (stretch.depth, stretch.is_head) = (*depth, is_head);
        }
        self.estimate();
    }

    /// Sets the frequencies of stretches.
    fn estimate(&mut self) {
        // Most code leads on to later places, and few rounds reach all of it.
        const ROUNDS: usize = 4;
        let count = self.stretches.len();
        let sources = Predecessors::new(&self.successors, &vec![true; count]);
        let mut begun = vec![0; count];
        for entry in &self.entries {
            begun[self.stretch_of(*entry)] = u64::from(ALL_WAVES);
        }
        for _ in 0..ROUNDS {
            for (stretch, begun) in begun.iter().enumerate() {
                let shares = sources.of(stretch).iter().map(|source| {
                    let parts = self.successors[*source].count.max(1) as u64;
                    u64::from(self.stretches[*source].frequency) / parts
                });
                let sum = begun + shares.sum::<u64>();
                self.stretches[stretch].frequency = sum.min(u32::MAX.into()) as u32;
            }
        }
    }

    /// Returns whether a jump returns to the caller.
    fn is_return(&self, number: usize) -> bool {
        let decoded = self.code.decode(self.all[number].address);
        !self.is_kernel()
            && decoded
                .is_some_and(|decoded| decoded.src[0] == Operand::scalar(RETURN_ADDRESS.into()))
    }

    /// For each instruction: SCC has a value before it that is read later. No value passes a call or a return.
    fn live_scc(&self) -> Vec<bool> {
        let mut live = vec![false; self.all.len()];
        loop {
            let mut is_changed = false;
            for number in (0..self.all.len()).rev() {
                let ins = &self.all[number];
                let is_live_behind = match ins.flow {
                    Flow::Next if number + 1 < live.len() => live[number + 1],
                    Flow::Call { .. } | Flow::IndirectCall | Flow::End => false,
                    Flow::Indirect if !self.jumps.contains_key(&number) => {
                        self.unresolved.contains(&number)
                    }
                    Flow::Branch { .. } if self.goal(number).is_none() => true,
                    _ => self.following(number).any(|next| live[next]),
                };
                let is_live = ins.reads_scc || is_live_behind && !ins.writes_scc;
                is_changed |= is_live != live[number];
                live[number] = is_live;
            }
            if !is_changed {
                return live;
            }
        }
    }

    /// The number of the stretch of an instruction.
    pub(super) fn stretch_of(&self, number: usize) -> usize {
        let known = self.stretch_numbers.get(number);
        let known = known.map(|stretch| *stretch as usize);
        known.unwrap_or(self.stretches.len().saturating_sub(1))
    }

    /// The stretches that follow one in this function. Calls return.
    pub(super) fn stretches_behind(&self, stretch: usize) -> &[usize] {
        self.successors[stretch].as_ref()
    }

    /// The instructions of a stretch.
    pub(super) fn instructions_of(&self, stretch: usize) -> std::ops::Range<usize> {
        let end = self.stretches.get(stretch + 1);
        self.stretches[stretch].first..end.map_or(self.all.len(), |next| next.first)
    }
}

#[cfg(test)]
mod tests {
    use modelgpu_isa::{Target, WaveSize};

    use super::*;

    #[test]
    fn a_function_without_an_instruction_has_no_loop() {
        for bytes in [&[][..], &[0xff; 8]] {
            let code = Code {
                bytes,
                address: 0x1000,
                target: Target::Gfx90a,
                wave: WaveSize::W64,
            };
            let named = NamedCode {
                name: "f",
                code,
                descriptors: Vec::new(),
                has_preloaded_entry: false,
            };
            let mut function = Function::new(&named, &mut Decoder::new(bytes.len()));
            function.find_loops();
            assert!(function.all.is_empty(), "{bytes:?}");
            assert!(function.stretches.iter().all(|stretch| !stretch.is_head));
        }
    }
}
