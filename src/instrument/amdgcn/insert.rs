//! The copies of functions, with instructions that count.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use modelgpu_isa::Flow;

use super::calls::computed;
use super::code::{FirstVectors, Ins};
use super::encoder::{EXEC, Encoder, MAX_OFFSET, PAIR, Source};
use super::ends::KnownEnd;
use super::error::Refusal;
use super::function::Function;
use super::marking;
use super::pending;
use super::plan::{
    Batch, Counter, DATA, Home, KEPT_VECTORS, Kind, MarkWay, OFFSET, OnTheWay, Plan, WORD,
};
use super::text::{Goal, Label, Text};
use crate::support::counting::Counting;

/// The words between a branch and the code out of line that it leads to, at most.
const POOL: usize = 8000;
/// Kernels begin at multiples of 256 bytes ("Kernel Descriptor" in LLVM's AMDGPUUsage), functions at those of a cache line.
const KERNEL_WORDS: usize = 64;
const FUNCTION_WORDS: usize = 16;

/// The ELF address of the one kernel that calls a copy of a function. `None`: any code may call it.
pub(super) type Own = Option<u64>;

/// Functions that share registers, and their plan.
#[derive(Clone, Debug)]
pub(super) struct Planned<'f, 'data> {
    pub(super) own: Own,
    pub(super) plan: Plan,
    pub(super) functions: Vec<&'f Function<'data>>,
}

/// The most checked counters of which each is an instruction at the end.
const EACH: usize = 3;

/// The lanes that are active while counts go to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Active {
    All,
    Some,
}

/// The labels of copies.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    /// The entry of each kernel, by its ELF address.
    pub(super) kernels: HashMap<u64, Label>,
    /// The start of each function's code, by the kernel that has a copy of its own, and its ELF address.
    pub(super) starts: HashMap<(Own, u64), Label>,
    /// The place there after the instructions that keep the first pair of borrowed registers.
    pub(super) behind_pairs: HashMap<u64, Label>,
}

/// Code that is out of line: a branch leads there, and another one back.
#[derive(Clone, Copy, Debug)]
struct Aside {
    from: Label,
    back: Label,
}

/// The labels of the stretches of a function.
struct Starts<'a, 'data> {
    function: &'a Function<'data>,
    labels: Vec<Label>,
}

impl Starts<'_, '_> {
    /// The label of the stretch that starts at the instruction with this number.
    fn get(&self, number: usize) -> Option<Label> {
        let stretch = self.function.stretch_of(number);
        let is_first = self.function.stretches[stretch].first == number;
        is_first.then(|| self.labels[stretch])
    }
}

impl std::ops::Index<usize> for Starts<'_, '_> {
    type Output = Label;

    fn index(&self, number: usize) -> &Label {
        &self.labels[self.function.stretch_of(number)]
    }
}

/// Writes the copies of the functions of one plan.
pub(super) struct Emitter<'a, 'data> {
    plan: &'a Plan,
    own: Own,
    functions: &'a [&'a Function<'data>],
    labels: &'a Labels,
    encoder: Encoder,
    /// A function has a vector comparison whose result is in EXEC.
    compares: bool,
    /// The vector registers for an offset and a pair of values at the end of a wave, if some await no load there.
    last_vectors: Option<[u16; 2]>,
    /// The counters of each stretch, by the numbers of the function and the stretch.
    counters: BTreeMap<(usize, usize), Vec<usize>>,
    /// The bits that the start of each block sets, as it comes to counters that they guard.
    guards: BTreeMap<(usize, usize), u32>,
    /// No code brings counts to memory before a wave ends.
    is_at_end: bool,
    end: Label,
    /// The end of waves has been written.
    has_end: bool,
    /// The end of the only function, if its bits are known there.
    known_end: Option<KnownEnd>,
    /// The code that brings counts to memory while a wave continues. Far from it, there is another one.
    flush: Option<Label>,
    asides: Vec<Aside>,
    /// The place of the first branch to an aside.
    since: usize,
}

impl<'a, 'data> Emitter<'a, 'data> {
    pub(super) fn new(
        planned: &'a Planned<'_, 'data>,
        labels: &'a Labels,
        text: &mut Text,
    ) -> Self {
        let Planned {
            own,
            plan,
            functions,
        } = planned;
        let mut counters: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (number, counter) in plan.counters.iter().enumerate() {
            if matches!(counter.kind, Kind::Times(_)) {
                continue;
            }
            let place = (counter.function, counter.stretch);
            counters.entry(place).or_default().push(number);
        }
        let mut guards: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for counter in &plan.counters {
            if let Some((_, bit)) = counter.guard {
                *guards.entry((counter.function, counter.block)).or_default() |= 1 << bit;
            }
        }
        let is_checked = plan.counters.iter().any(|counter| counter.is_checked);
        let has_trap = |function: &&Function<'_>| {
            let mut all = function.all.iter();
            all.any(|ins| matches!(ins.flow, Flow::Trap))
        };
        for numbers in counters.values_mut() {
            numbers.sort_by_key(|number| plan.counters[*number].kind != Kind::Lanes);
        }
        Self {
            plan,
            own: *own,
            functions,
            labels,
            encoder: plan.encoder,
            compares: functions
                .iter()
                .any(|function| function.all.iter().any(writes_exec_by_vectors)),
            last_vectors: last_vectors(plan, functions),
            counters,
            guards,
            is_at_end: !is_checked && !plan.is_apart && !functions.iter().any(has_trap),
            end: text.label(),
            has_end: false,
            known_end: match functions.as_slice() {
                [function] => KnownEnd::find(function, plan),
                _ => None,
            },
            flush: None,
            asides: Vec::new(),
            since: 0,
        }
    }

    /// Writes all functions, and the end of their waves.
    pub(super) fn write(mut self, text: &mut Text) -> Result<(), Refusal> {
        for number in 0..self.functions.len() {
            self.function(text, number)?;
        }
        if !self.has_end {
            text.align(FUNCTION_WORDS);
            text.place(self.end);
            self.finish(text, None);
        }
        Ok(())
    }

    fn function(&mut self, text: &mut Text, number: usize) -> Result<(), Refusal> {
        let function = self.functions[number];
        let encoder = self.encoder;
        // The places of instructions that something leads to.
        let starts = Starts {
            function,
            labels: function.stretches.iter().map(|_| text.label()).collect(),
        };
        text.align(match function.is_kernel() {
            true => KERNEL_WORDS,
            false => FUNCTION_WORDS,
        });
        if let Some(entry) = self.labels.kernels.get(&function.code.address) {
            text.place(*entry);
            for (index, first) in function.entries.iter().enumerate() {
                if index > 0 {
                    text.align(KERNEL_WORDS);
                }
                self.begin(text, Some(number));
                if function.entries.len() > 1 {
                    encoder.branch(text, starts[*first]);
                }
            }
        }
        if let Some(start) = self.labels.starts.get(&(self.own, function.code.address)) {
            text.place(*start);
            self.borrow_pair(text);
            if let Some(behind) = self.labels.behind_pairs.get(&function.code.address) {
                text.place(*behind);
            }
            self.borrow_others(text);
            if self.plan.is_apart {
                self.begin(text, None);
            }
        }
        // The copies of the end, by the bits of counters.
        let known = self.known_end.iter().flat_map(|end| end.bits.values());
        let ends: BTreeMap<u32, Label> = known.map(|bits| (*bits, text.label())).collect();
        // A kernel that calls no function ends there without a branch.
        let is_end = |index: &usize| matches!(function.all[*index].flow, Flow::End);
        let last_end = (0..function.all.len())
            .rfind(is_end)
            .filter(|_| self.functions.len() == 1);
        let mut skipped = 0;
        let mut stretch = 0;
        for (index, ins) in function.all.iter().enumerate() {
            if let Some(label) = starts.get(index) {
                let is_reached = index > 0 && function.all[index - 1].falls_through();
                self.pool(text, false, is_reached);
                self.mark_behind_branch(text, number, stretch);
                if function.stretches[stretch].starts_block {
                    text.joint();
                }
                text.place(label);
                self.count(text, number, stretch, index);
                stretch += 1;
            }
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            let goal = function.goal(index).and_then(|goal| starts.get(goal));
            let goal = match self.bits_behind(function, index) {
                Some(bits) => ends.get(&bits).copied(),
                None => goal,
            };
            let leaves = matches!(ins.flow, Flow::Indirect) && !function.jumps.contains_key(&index);
            if self.plan.is_apart && (ins.is_call() || leaves) {
                self.call_flush(text);
                self.give_back(text);
            }
            match (ins.flow, goal) {
                (Flow::End, _) if self.known_end.is_some() => {
                    self.finish_all(text, function, stretch - 1, &ends);
                    self.has_end = true;
                }
                (Flow::End, _) if Some(index) == last_end => {
                    text.place(self.end);
                    self.finish(text, None);
                    self.has_end = true;
                }
                (Flow::End, _) if !self.has_end_code() => encoder.end(text),
                (Flow::End, _) => encoder.branch(text, self.end),
                (Flow::Call { .. } | Flow::Branch { .. }, Some(goal)) => {
                    let word = function.code.words(ins.address)[0] & 0xffff_0000;
                    text.branch(word, goal);
                }
                (Flow::Call { .. }, None) => {
                    let start = self.callee(function, index)?;
                    let word = function.code.words(ins.address)[0] & 0xffff_0000;
                    text.branch(word, start);
                }
                (Flow::IndirectCall, _) if self.own.is_some() => {
                    let back = self.pair(function, index, |decoded| decoded.dst)?;
                    let start = self.callee(function, index)?;
                    encoder.call(text, back, start);
                }
                (Flow::Indirect, _) if function.jumps.contains_key(&index) => {
                    let pair = self.pair(function, index, |decoded| decoded.src[0])?;
                    // The additions before it have changed SCC, too.
                    encoder.address(text, pair, Goal::Label(starts[function.jumps[&index]]));
                    encoder.jump(text, pair);
                }
                (Flow::Trap, _) => {
                    let is_live = function.is_scc_live[index];
                    let scc = self.plan.temporaries[2];
                    if is_live {
                        encoder.save_scc(text, scc);
                    }
                    self.call_flush(text);
                    if is_live {
                        encoder.wait_for_scalars(text);
                        encoder.restore_scc(text, scc);
                    }
                    self.copy(text, function, index);
                }
                _ if ins.mnemonic == "s_getpc_b64" => {
                    skipped = self.address(text, function, index, &starts)?;
                }
                // Vector registers may go early, but counts are in some.
                _ if ins.mnemonic == "s_sendmsg"
                    && self.has_end_code()
                    && self.frees_registers(function, index) =>
                {
                    encoder.nothing(text, 1);
                }
                _ => self.copy(text, function, index),
            }
            if self.plan.is_apart && ins.is_call() {
                self.borrow_pair(text);
                self.borrow_others(text);
                self.begin(text, None);
            }
        }
        if function.all.last().is_some_and(|last| last.falls_through()) {
            // After a call that does not return.
            encoder.end(text);
        }
        self.pool(text, true, false);
        Ok(())
    }

    /// The start of the copy that a call leads to.
    fn callee(&self, function: &Function<'_>, index: usize) -> Result<Label, Refusal> {
        let goal = function.callees.get(&index);
        let start = goal.and_then(|goal| self.labels.starts.get(&(self.own, *goal)));
        start.copied().ok_or(Refusal::Branch {
            address: function.all[index].address,
        })
    }

    /// A wave brings counts or bits to memory when it ends.
    fn has_end_code(&self) -> bool {
        let marks = self.plan.marks.as_ref();
        marks.is_none_or(|marks| !marks.bits.is_empty())
    }

    /// `s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)` ("Message Types" in AMD's guides of RDNA 3 and 4).
    fn frees_registers(&self, function: &Function<'_>, index: usize) -> bool {
        const DEALLOCATE: u32 = 3;
        let word = function.code.words(function.all[index].address)[0];
        function.code.target.generation() != modelgpu_isa::Generation::Gfx9
            && word & 0xffff == DEALLOCATE
    }

    fn copy(&self, text: &mut Text, function: &Function<'_>, index: usize) {
        let ins = &function.all[index];
        let words = function.code.words(ins.address);
        text.extend(words.into_iter().take(usize::from(ins.size / 4)));
    }

    /// The first register of a pair in an operand.
    fn pair(
        &self,
        function: &Function<'_>,
        index: usize,
        operand: impl Fn(&modelgpu_isa::Instruction) -> modelgpu_isa::Operand,
    ) -> Result<u16, Refusal> {
        let ins = &function.all[index];
        let decoded = function.code.decode(ins.address);
        let register = decoded.and_then(|decoded| operand(&decoded).scalar_index());
        register
            .map(|register| register as u16)
            .ok_or(Refusal::Instruction {
                mnemonic: ins.mnemonic,
                address: ins.address,
            })
    }

    /// Lets `s_getpc_b64` give the address that it has in the original. Returns the number of following instructions that this
    /// stands for.
    fn address(
        &self,
        text: &mut Text,
        function: &Function<'_>,
        index: usize,
        starts: &Starts<'_, '_>,
    ) -> Result<usize, Refusal> {
        let pair = self.pair(function, index, |decoded| decoded.dst)?;
        let behind = function.all[index].end();
        self.copy(text, function, index);
        let origin = text.len();
        let computed = computed(&function.code, &function.all, index, pair);
        let is_whole = |last: usize| (index + 1..=last).all(|part| starts.get(part).is_none());
        if let Some(computed) = computed.filter(|computed| is_whole(computed.high)) {
            let goal = computed.address;
            // A call goes to the copy at once. The copy of a kernel's own is for this kernel's calls only: other code may get the
            // address, too.
            let start = self.labels.starts.get(&(None, goal));
            let start = start.filter(|_| self.own.is_none());
            let goal = match start {
                Some(start) if !self.labels.kernels.contains_key(&goal) => Goal::Label(*start),
                _ => Goal::Original(goal),
            };
            // Waits in between may be for other registers, too, and for the low half.
            let copy = |text: &mut Text, part| self.copy(text, function, part);
            (index + 1..computed.low).for_each(|part| copy(text, part));
            self.encoder.add_distance(text, pair, goal, origin);
            (computed.low + 1..computed.high).for_each(|part| copy(text, part));
            return Ok(computed.high - index);
        }
        let is_live = function
            .is_scc_live
            .get(index + 1)
            .copied()
            .unwrap_or(false);
        let scc = self.plan.temporaries[2];
        if is_live {
            self.encoder.save_scc(text, scc);
        }
        self.encoder
            .add_distance(text, pair, Goal::Original(behind), origin);
        if is_live {
            self.wait_if_read_by_vectors(text);
            self.encoder.restore_scc(text, scc);
        }
        Ok(0)
    }

    /// Counts a stretch, before the instruction `index`.
    fn count(&mut self, text: &mut Text, function: usize, stretch: usize, index: usize) {
        if let Some(marks) = &self.plan.marks {
            if let Some(ways) = marks.at_stretches.get(&(function, stretch)) {
                self.mark(text, function, index, ways);
            }
            return;
        }
        let factor = self.plan.factors.get(&(function, stretch)).copied();
        let numbers = self.counters.get(&(function, stretch));
        if numbers.is_none() && factor.is_none() {
            return;
        }
        let numbers = numbers.map_or(&[][..], Vec::as_slice);
        let encoder = self.encoder;
        let code = self.functions[function];
        let [_, u, scc] = self.plan.temporaries;
        let counters: Vec<&Counter> = numbers
            .iter()
            .map(|number| &self.plan.counters[*number])
            .collect();
        let is_spread = |counter: &&Counter| matches!(counter.home, Home::Each(_));
        let guards = self.guards.get(&(function, stretch));
        let guards = guards.copied().unwrap_or_default();
        let changes_scc = factor.is_some()
            || counters.iter().any(|counter| match counter.home {
                Home::Each(_) => false,
                // One bit keeps it.
                Home::Bit(..) if counter.kind == Kind::Waves => guards != 0,
                _ => counter.kind == Kind::Lanes || !counter.is_once,
            });
        let is_live = changes_scc && code.is_scc_live[index];
        // Vector instructions need no waits there.
        let reads_exec = factor.is_some() || !counters.iter().all(is_spread);
        if reads_exec && self.may_follow_comparison(function, index) {
            encoder.wait_behind_comparison(text);
        }
        if is_live {
            encoder.save_scc(text, scc);
        }
        if let Some(register) = factor {
            encoder.count_active(text, register);
        }
        let is_reached = self.plan.counting == Counting::Reached;
        for counter in counters {
            match (counter.kind, counter.home) {
                // Set at the start, or at the end.
                (_, Home::Bit(..)) if counter.is_first || self.known_end.is_some() => {}
                (_, Home::Bit(register, bit)) => self.set_bits(text, register, 1 << bit | guards),
                (_, Home::Each(vector)) => encoder.vector_add(text, vector, 1),
                (Kind::Lanes, _) if is_reached => self.note_active(text, counter),
                (Kind::Lanes, Home::Scalar(register)) if counter.is_once => {
                    encoder.count_active(text, register);
                }
                (Kind::Lanes, _) => {
                    encoder.count_active(text, u);
                    self.add(text, counter, Source::Scalar(u));
                }
                (Kind::Waves, _) => self.add(text, counter, Source::Constant(1)),
                (Kind::Times(_), _) => {}
            }
            if counter.is_checked && self.plan.on_the_way.is_some() {
                if self.asides.is_empty() && self.flush.is_none() {
                    self.since = text.len();
                }
                let aside = Aside {
                    from: text.label(),
                    back: text.label(),
                };
                encoder.branch_if_scc(text, aside.from);
                text.place(aside.back);
                self.asides.push(aside);
            }
        }
        if is_live {
            self.wait_if_read_by_vectors(text);
            encoder.restore_scc(text, scc);
        }
    }

    /// Writes marks before the instruction `index`.
    fn mark(&self, text: &mut Text, function: usize, index: usize, ways: &[MarkWay]) {
        let (encoder, plan) = (self.encoder, self.plan);
        let Some(marks) = &plan.marks else {
            return;
        };
        let reads_exec = ways.iter().any(|way| marking::reads_exec(*way));
        if reads_exec && self.may_follow_comparison(function, index) {
            encoder.wait_behind_comparison(text);
        }
        let changes_scc = ways.iter().any(|way| marking::changes_scc(*way));
        let is_live = changes_scc && self.functions[function].is_scc_live[index];
        let scc = plan.temporaries[2];
        if is_live {
            encoder.save_scc(text, scc);
        }
        for way in ways {
            marking::mark(text, plan, marks, *way);
        }
        if is_live {
            encoder.restore_scc(text, scc);
        }
    }

    /// Writes the marks of a branch before this stretch that is not taken.
    fn mark_behind_branch(&self, text: &mut Text, function: usize, stretch: usize) {
        let Some((marks, before)) = self.plan.marks.as_ref().zip(stretch.checked_sub(1)) else {
            return;
        };
        for way in marks
            .behind_branches
            .get(&(function, before))
            .into_iter()
            .flatten()
        {
            marking::mark(text, self.plan, marks, *way);
        }
    }

    /// Waits for scalar instructions, if vector ones may have read the registers for use between instructions before, or those
    /// of counters: those of other functions, or those that access lanes. The code that brings counts to memory on the way reads
    /// only a register that no other instruction in between uses.
    fn wait_if_read_by_vectors(&self, text: &mut Text) {
        if self.plan.is_apart || self.plan.has_lanes() {
            self.encoder.wait_for_scalars(text);
        }
    }

    /// Notes in a counter of lanes if some lane is active.
    fn note_active(&self, text: &mut Text, counter: &Counter) {
        let encoder = self.encoder;
        let t = self.plan.temporaries[0];
        match counter.home {
            Home::Product(..) | Home::Each(_) => {}
            Home::Scalar(register) | Home::Bit(register, _) if counter.is_once => {
                encoder.any_active(text, register);
            }
            Home::Scalar(register) | Home::Bit(register, _) => encoder.or_active(text, register),
            Home::Lane(vector, lane) => {
                match counter.is_once {
                    true => encoder.any_active(text, t),
                    false => {
                        encoder.read_lane(text, t, vector, lane);
                        encoder.wait_for_scalars(text);
                        encoder.or_active(text, t);
                    }
                }
                encoder.wait_behind_sum(text);
                encoder.write_lane(text, vector, Source::Scalar(t), lane);
            }
        }
    }

    /// Returns whether a vector instruction may have written EXEC less than four wait states before an instruction. Each
    /// instruction is a state at least. Other ways than the one through the text may be shorter.
    fn may_follow_comparison(&self, function: usize, index: usize) -> bool {
        const STATES: usize = 4;
        let code = self.functions[function];
        let starts_block = |number: usize| {
            let stretch = code.stretches[code.stretch_of(number)];
            stretch.starts_block && stretch.first == number
        };
        for number in (index.saturating_sub(STATES)..index).rev() {
            if starts_block(number + 1) {
                return self.compares;
            }
            let ins = &code.all[number];
            if writes_exec_by_vectors(ins) {
                return true;
            }
        }
        index < STATES && self.compares
    }

    /// Sets bits of a register of which others may be set. One bit keeps SCC.
    fn set_bits(&self, text: &mut Text, register: u16, bits: u32) {
        if self.plan.is_apart {
            // Vector instructions of other functions may have read the register or its neighbour.
            self.encoder.wait_for_scalars(text);
        }
        match bits.is_power_of_two() {
            true => self
                .encoder
                .set_bit(text, register, bits.trailing_zeros() as u16),
            false => self.encoder.set_bits(text, register, bits),
        }
    }

    /// Adds to a counter with a register or a lane.
    fn add(&self, text: &mut Text, counter: &Counter, amount: Source) {
        let encoder = self.encoder;
        let [t, u, _] = self.plan.temporaries;
        match counter.home {
            Home::Product(..) | Home::Each(_) => {}
            Home::Bit(register, bit) => self.set_bits(text, register, 1 << bit),
            Home::Scalar(register) if counter.is_once => encoder.move_32(text, register, amount),
            Home::Scalar(register) => {
                if matches!(amount, Source::Scalar(_)) {
                    self.wait_if_read_by_vectors(text);
                }
                encoder.add(text, register, register, amount);
            }
            Home::Lane(vector, lane) if counter.is_once => {
                encoder.write_lane(text, vector, amount, lane);
            }
            Home::Lane(vector, lane) => {
                encoder.read_lane(text, t, vector, lane);
                if matches!(amount, Source::Scalar(_)) {
                    encoder.wait_for_scalars(text);
                }
                // Vector instructions wait for a register that another one has written.
                let sum = if encoder.waits_behind_sums() { u } else { t };
                encoder.add(text, sum, t, amount);
                encoder.write_lane(text, vector, Source::Scalar(sum), lane);
            }
        }
    }

    /// Writes what is out of line, if it is far enough from the first branch there, or at the end of a function.
    /// `is_reached`: the code before continues here.
    fn pool(&mut self, text: &mut Text, is_end: bool, is_reached: bool) {
        let is_empty = self.asides.is_empty() && self.flush.is_none();
        if is_empty || !is_end && text.len() - self.since < POOL {
            return;
        }
        let around = text.label();
        if is_reached {
            self.encoder.branch(text, around);
        }
        for Aside { from, back } in std::mem::take(&mut self.asides) {
            text.place(from);
            self.call_flush(text);
            self.encoder.branch(text, back);
        }
        if let Some(flush) = self.flush.take() {
            text.place(flush);
            self.flush_on_the_way(text);
        }
        text.place(around);
    }

    /// Has the wave bring its counts to memory here, if there is room for it.
    fn call_flush(&mut self, text: &mut Text) {
        let Some(OnTheWay { back, .. }) = self.plan.on_the_way else {
            return;
        };
        if self.asides.is_empty() && self.flush.is_none() {
            self.since = text.len();
        }
        let flush = *self.flush.get_or_insert_with(|| text.label());
        self.encoder.call(text, back, flush);
    }

    /// Keeps the values of borrowed registers: of the first pair of scalar ones.
    fn borrow_pair(&self, text: &mut Text) {
        if let Some(borrowed) = &self.plan.borrowed {
            self.encoder
                .keep_pair(text, borrowed.scalars.start, borrowed.scalars_in);
        }
    }

    /// Keeps the values of the other ones.
    fn borrow_others(&self, text: &mut Text) {
        let (encoder, [pair, ..]) = (self.encoder, self.plan.temporaries);
        let Some(borrowed) = &self.plan.borrowed else {
            return;
        };
        for (scalar, lane) in borrowed.scalars.clone().zip(0..).skip(PAIR.into()) {
            let source = Source::Scalar(scalar);
            encoder.write_lane(text, borrowed.scalars_in, source, lane);
        }
        if borrowed.vectors.is_empty() {
            return;
        }
        encoder.wait_for_matrices(text);
        encoder.move_mask(text, pair, Source::Scalar(EXEC));
        encoder.move_mask(text, EXEC, Source::Constant(u32::MAX));
        for (vector, accumulator) in borrowed.vectors.clone().zip(borrowed.vectors_in..) {
            encoder.write_accumulator(text, accumulator, vector);
        }
        encoder.move_mask(text, EXEC, Source::Scalar(pair));
    }

    /// Gives borrowed registers their values back.
    fn give_back(&self, text: &mut Text) {
        let (encoder, [pair, ..]) = (self.encoder, self.plan.temporaries);
        let Some(borrowed) = &self.plan.borrowed else {
            return;
        };
        if !borrowed.vectors.is_empty() {
            encoder.move_mask(text, pair, Source::Scalar(EXEC));
            encoder.move_mask(text, EXEC, Source::Constant(u32::MAX));
            for (vector, accumulator) in borrowed.vectors.clone().zip(borrowed.vectors_in..) {
                encoder.read_accumulator(text, vector, accumulator);
            }
            encoder.move_mask(text, EXEC, Source::Scalar(pair));
        }
        for (scalar, lane) in borrowed.scalars.clone().zip(0..) {
            encoder.read_lane(text, scalar, borrowed.scalars_in, lane);
        }
        encoder.wait_behind_lanes(text);
    }

    /// Sets the counters to their start: at that of a wave of the kernel with this number, or of a function.
    fn begin(&self, text: &mut Text, function: Option<usize>) {
        let (plan, encoder) = (self.plan, self.encoder);
        if let Some(marks) = &plan.marks {
            marking::begin(text, plan, marks);
            return;
        }
        let [pair, _, count] = plan.temporaries;
        match plan.entry_lanes {
            Some(Home::Scalar(register)) => encoder.count_active(text, register),
            Some(_) => encoder.count_active(text, count),
            None => {}
        }
        if !plan.vectors.is_empty() {
            encoder.activate_all(text, pair);
            let mut vectors = plan.vectors.clone();
            while let Some(vector) = vectors.next() {
                match vector % 2 == 0 && !vectors.is_empty() {
                    true => {
                        vectors.next();
                        encoder.vector_move_64(text, vector, 0);
                    }
                    false => encoder.vector_move(text, vector, Source::Constant(0)),
                }
            }
            self.set_checked(text);
            encoder.wait_for_scalars(text);
            encoder.move_mask(text, EXEC, Source::Scalar(pair));
        }
        if let Some(Home::Lane(vector, lane)) = plan.entry_lanes {
            encoder.write_lane(text, vector, Source::Scalar(count), lane);
        }
        self.set_scalars(text, function);
        if function.is_none() {
            // Vector instructions may have read these registers or their neighbours in other functions.
            encoder.wait_for_scalars(text);
        }
    }

    /// Sets the checked counters in vector registers to their start. All lanes are active.
    fn set_checked(&self, text: &mut Text) {
        let encoder = self.encoder;
        for batch in &self.plan.batches {
            if let (Some(vector), 1..) = (batch.vector, batch.checked) {
                encoder.activate_first(text, batch.checked);
                encoder.vector_move(
                    text,
                    vector,
                    Source::Constant(self.plan.rounds.wrapping_neg()),
                );
                encoder.move_mask(text, EXEC, Source::Constant(u32::MAX));
            }
        }
    }

    /// Sets the counters in scalar registers to their start: those of a wave that begins in this function, or continues.
    fn set_scalars(&self, text: &mut Text, beginning: Option<usize>) {
        let encoder = self.encoder;
        let is_first = |counter: &Counter| counter.is_first && Some(counter.function) == beginning;
        let mut values: BTreeMap<u16, u32> = BTreeMap::new();
        for batch in &self.plan.batches {
            let Some(bits) = batch.bits.filter(|_| self.known_end.is_none()) else {
                continue;
            };
            let value = self.plan.first_bits(batch, beginning);
            match batch.has_pair {
                true => encoder.move_64(text, bits, Source::Constant(value)),
                false => _ = values.insert(bits, value),
            }
        }
        for counter in &self.plan.counters {
            match counter.home {
                // It is set at once, or before its bit is.
                Home::Scalar(_) if is_first(counter) || counter.guard.is_some() => {}
                Home::Scalar(_)
                    if counter.is_certain
                        && self.is_at_end
                        && Some(counter.function) == beginning => {}
                Home::Scalar(register) => {
                    let start = match counter.is_checked {
                        true => self.plan.rounds.wrapping_neg(),
                        false => 0,
                    };
                    values.insert(register, start);
                }
                Home::Bit(..) | Home::Lane(..) | Home::Each(_) | Home::Product(..) => {}
            }
        }
        while let Some((register, value)) = values.pop_first() {
            let is_pair = register % 2 == 0 && value == 0;
            match is_pair && values.get(&(register + 1)) == Some(&0) {
                true => {
                    values.pop_first();
                    encoder.move_64(text, register, Source::Constant(0));
                }
                false => encoder.move_32(text, register, Source::Constant(value)),
            }
        }
    }

    /// The bits of counters behind a branch to the end of the kernel, if they are known.
    fn bits_behind(&self, function: &Function<'_>, index: usize) -> Option<u32> {
        let end = self.known_end.as_ref()?;
        let is_end = function.goal(index) == Some(end.at);
        let bits = end.bits.get(&function.stretch_of(index));
        bits.filter(|_| is_end).copied()
    }

    /// The ends of waves for each value of the bits of counters. The code before continues with the one of the stretch before.
    fn finish_all(
        &self,
        text: &mut Text,
        function: &Function<'_>,
        stretch: usize,
        ends: &BTreeMap<u32, Label>,
    ) {
        let known = self.known_end.iter();
        let before = stretch.checked_sub(1);
        let before = before.filter(|before| {
            let last = function.instructions_of(*before).last();
            last.is_some_and(|last| function.all[last].falls_through())
        });
        let mut bits = known.filter_map(|end| end.bits.get(&before?));
        let next = bits.next();
        let rest = ends.keys().filter(|bits| Some(*bits) != next);
        for bits in next.into_iter().chain(rest) {
            text.joint();
            text.place(ends[bits]);
            self.finish(text, Some(*bits));
        }
    }

    /// The end of a wave: adds its counters to memory. All registers of the kernel are free there. `known`: the bits of counters.
    fn finish(&self, text: &mut Text, known: Option<u32>) {
        let (plan, encoder) = (self.plan, self.encoder);
        let [base, _, free] = plan.temporaries;
        let has_bits = plan
            .marks
            .as_ref()
            .is_some_and(|marks| !marks.bits.is_empty());
        if plan.batches.is_empty() && !has_bits {
            encoder.end(text);
            return;
        }
        let free_vectors = plan.own_vectors.or(self.last_vectors);
        let [offset, data] = free_vectors.unwrap_or_else(|| {
            // No load may still write to these.
            encoder.wait_for_memory(text);
            [OFFSET, DATA]
        });
        let Some(first) = plan.batches.first() else {
            if let Some(marks) = &plan.marks {
                marking::finish(text, plan, marks, [offset, data]);
            }
            encoder.end(text);
            return;
        };
        self.wait_if_read_by_vectors(text);
        let is_alone = plan.batches.len() == 1;
        let mut is_active = Active::Some;
        if !is_alone || first.bits.is_none() {
            encoder.move_mask(text, EXEC, Source::Constant(u32::MAX));
            is_active = Active::All;
        } else {
            self.activate(text, first, known);
        }
        let is_wide = encoder.lanes == 64 && !first.has_pair;
        let goal = Goal::Counter(first.word);
        encoder.lane_words(text, base, offset, goal, is_wide);
        let mut address = Address {
            word: Some(first.word),
        };
        let entry_lanes = match plan.entry_lanes {
            Some(Home::Lane(vector, lane)) => {
                encoder.read_lane(text, free, vector, lane);
                encoder.wait_behind_lane(text);
                free
            }
            Some(Home::Scalar(register)) => register,
            _ => free,
        };
        let mut has_high = false;
        // The checked counters that have their values already.
        let mut from_0 = BTreeSet::new();
        for batch in &plan.batches {
            text.joint();
            match (batch.vector, batch.bits) {
                (_, Some(_)) => {
                    if !is_alone {
                        self.activate(text, batch, known);
                    }
                    encoder.vector_move_64(text, data, 1);
                    is_active = Active::Some;
                }
                (vector, None) => {
                    if is_active == Active::Some {
                        encoder.move_mask(text, EXEC, Source::Constant(u32::MAX));
                        is_active = Active::All;
                    }
                    if !has_high {
                        encoder.vector_move(text, data + 1, Source::Constant(0));
                        has_high = true;
                    }
                    // Lanes without a counter have words that nobody reads.
                    if let Some(vector) = vector {
                        encoder.vector_copy(text, data, vector);
                    }
                }
            }
            // Few are counted from 0 one by one.
            let is_each = batch.vector.is_none() && usize::from(batch.checked) <= EACH;
            for number in batch.counters.iter().take(batch.checked.into()) {
                if let (Home::Scalar(register), true) = (plan.counters[*number].home, is_each) {
                    encoder.add(text, register, register, Source::Constant(plan.rounds));
                    from_0.insert(*number);
                }
            }
            let mut is_waiting = true;
            for (lane, number) in batch.counters.iter().enumerate() {
                match plan.counters[*number].home {
                    Home::Scalar(register) => {
                        if std::mem::take(&mut is_waiting) {
                            self.wait_if_read_by_vectors(text);
                        }
                        encoder.write_known_lane(text, data, Source::Scalar(register), lane as u16);
                    }
                    Home::Product(waves, factor) => {
                        self.multiply(text, free, waves, factor, from_0.contains(&waves));
                        encoder.write_lane(text, data, Source::Scalar(free), lane as u16);
                    }
                    Home::Bit(..) | Home::Lane(..) | Home::Each(_) => {}
                }
            }
            if batch.checked > 0 && !is_each {
                encoder.activate_first(text, batch.checked);
                encoder.vector_add(text, data, plan.rounds);
                match batch.bits {
                    Some(_) => self.activate(text, batch, known),
                    None => encoder.move_mask(text, EXEC, Source::Constant(u32::MAX)),
                }
            }
            if plan.counting == Counting::Reached {
                encoder.vector_at_most_one(text, data);
            }
            let place = address.reach(text, encoder, base, batch.word);
            encoder.atomic_add(text, offset, data, base, place);
            if batch.has_products {
                let word = batch.word + u64::from(encoder.lanes);
                let place = address.reach(text, encoder, base, word);
                encoder.vector_multiply(text, data, data, entry_lanes);
                encoder.atomic_add(text, offset, data, base, place);
            }
        }
        encoder.end(text);
    }

    /// goal = the count of waves with this number, times a factor. `is_from_0`: it has its value already.
    fn multiply(&self, text: &mut Text, goal: u16, waves: usize, factor: u16, is_from_0: bool) {
        let (plan, encoder) = (self.plan, self.encoder);
        let counter = &plan.counters[waves];
        let Home::Scalar(register) = counter.home else {
            return;
        };
        match counter.is_checked && !is_from_0 {
            true => {
                encoder.add(text, goal, register, Source::Constant(plan.rounds));
                encoder.wait_for_scalars(text);
                encoder.multiply(text, goal, goal, factor);
            }
            false => encoder.multiply(text, goal, register, factor),
        }
    }

    /// Activates the lanes of a batch that have a value.
    fn activate(&self, text: &mut Text, batch: &Batch, known: Option<u32>) {
        let encoder = self.encoder;
        let register = batch.bits.map(Source::Scalar);
        let Some(bits) = known.map(Source::Constant).or(register) else {
            return;
        };
        match (encoder.lanes, batch.has_pair) {
            (64, true) => encoder.move_64(text, EXEC, bits),
            (64, false) => {
                // Lanes without a counter have words that nobody reads.
                encoder.move_32(text, EXEC, bits);
                encoder.move_32(text, EXEC + 1, Source::Constant(u32::MAX));
            }
            _ => encoder.move_32(text, EXEC, bits),
        }
    }

    /// Adds the counters of a wave that continues to memory, one after the other, and sets them to their start. All registers
    /// stay as they are, but for the temporaries and SCC.
    fn flush_on_the_way(&self, text: &mut Text) {
        let (plan, encoder) = (self.plan, self.encoder);
        let Some(OnTheWay { back, base, kept }) = plan.on_the_way else {
            return;
        };
        if let Some(marks) = &plan.marks {
            marking::join_masks(text, plan, marks);
        }
        let [t, u, _] = plan.temporaries;
        let halves = if encoder.lanes == 64 { 2 } else { 1 };
        // Registers of its own need not be kept.
        let [offset, data] = plan.own_vectors.unwrap_or([OFFSET, DATA]);
        let kept_vectors: &[u16] = match plan.own_vectors {
            Some(_) => &[],
            None => &KEPT_VECTORS,
        };
        // A load that is under way may still write to the registers that are needed here.
        encoder.wait_for_memory(text);
        encoder.wait_for_scalars(text);
        if !kept_vectors.is_empty() {
            encoder.wait_for_transcendentals(text);
        }
        for half in 0..halves {
            match kept {
                Home::Lane(vector, lane) => {
                    encoder.write_lane(text, vector, Source::Scalar(EXEC + half), lane + half);
                }
                Home::Scalar(register)
                | Home::Each(register)
                | Home::Bit(register, _)
                | Home::Product(_, register) => {
                    encoder.move_32(text, register + half, Source::Scalar(EXEC + half));
                }
            }
        }
        for (number, vector) in (2..).zip(kept_vectors.iter().copied()) {
            match kept {
                Home::Lane(kept, lane) => {
                    encoder.read_lane(text, t, vector, 0);
                    encoder.wait_behind_lane(text);
                    encoder.write_lane(text, kept, Source::Scalar(t), lane + number);
                }
                Home::Scalar(register)
                | Home::Each(register)
                | Home::Bit(register, _)
                | Home::Product(_, register) => {
                    encoder.read_lane(text, register + number, vector, 0);
                }
            }
        }
        encoder.move_mask(text, EXEC, Source::Constant(1));
        encoder.vector_move(text, offset, Source::Constant(0));
        encoder.vector_move(text, data + 1, Source::Constant(0));
        let entry_lanes = match plan.entry_lanes {
            Some(Home::Lane(vector, lane)) => {
                encoder.read_lane(text, u, vector, lane);
                u
            }
            Some(Home::Scalar(register)) => register,
            _ => u,
        };
        let mut address = Address::default();
        for Batch {
            counters,
            word,
            has_products,
            ..
        } in plan.batches.iter().filter(|batch| !batch.is_spread(plan))
        {
            text.joint();
            for (place, number) in (0..).zip(counters) {
                let counter = &plan.counters[*number];
                match counter.home {
                    Home::Bit(register, bit) => encoder.take_bit(text, t, register, bit),
                    Home::Scalar(register) => {
                        encoder.move_32(text, t, Source::Scalar(register));
                    }
                    Home::Lane(vector, lane) => {
                        encoder.read_lane(text, t, vector, lane);
                        encoder.wait_behind_lane(text);
                    }
                    Home::Product(waves, factor) => self.multiply(text, t, waves, factor, false),
                    Home::Each(_) => {}
                }
                if counter.is_checked {
                    encoder.wait_for_scalars(text);
                    encoder.add(text, t, t, Source::Constant(plan.rounds));
                }
                if let Some((register, bit)) = counter.guard {
                    encoder.take_bit(text, u, register, bit);
                    encoder.wait_for_scalars(text);
                    encoder.multiply(text, t, t, u);
                }
                if plan.counting == Counting::Reached {
                    encoder.at_most_one(text, t);
                }
                encoder.vector_move(text, data, Source::Scalar(t));
                let distance = address.reach(text, encoder, base, word + place);
                encoder.atomic_add(text, offset, data, base, distance);
                if *has_products {
                    encoder.multiply(text, t, t, entry_lanes);
                    encoder.vector_move(text, data, Source::Scalar(t));
                    let word = word + place + u64::from(encoder.lanes);
                    let distance = address.reach(text, encoder, base, word);
                    encoder.atomic_add(text, offset, data, base, distance);
                }
            }
        }
        if let Some(marks) = &plan.marks {
            let first = marks.bits.first().map_or(marks.word, |bits| bits.word);
            encoder.address(text, base, Goal::Counter(first));
            marking::add(text, encoder, marks, data, |word| {
                (base, offset, ((word - first) * WORD) as u32)
            });
        }
        self.flush_spread(text, base, offset, data);
        // Lanes at their start.
        let in_lanes = |batch: &&Batch| batch.vector.is_some() && !batch.is_spread(plan);
        for batch in plan.batches.iter().filter(in_lanes) {
            text.joint();
            encoder.move_32(text, t, Source::Constant(self.plan.rounds.wrapping_neg()));
            for number in &batch.counters {
                let counter = &plan.counters[*number];
                let start = match counter.is_checked {
                    true => Source::Scalar(t),
                    false => Source::Constant(0),
                };
                if let Home::Lane(vector, lane) = counter.home {
                    encoder.write_lane(text, vector, start, lane);
                }
            }
        }
        self.set_scalars(text, None);
        for (number, vector) in (2..).zip(kept_vectors.iter().copied()) {
            let value = match kept {
                Home::Lane(kept, lane) => {
                    encoder.read_lane(text, t, kept, lane + number);
                    encoder.wait_behind_lane(text);
                    t
                }
                Home::Scalar(register)
                | Home::Each(register)
                | Home::Bit(register, _)
                | Home::Product(_, register) => register + number,
            };
            encoder.write_lane(text, vector, Source::Scalar(value), 0);
        }
        for half in 0..halves {
            match kept {
                Home::Lane(kept, lane) => encoder.read_lane(text, t + half, kept, lane + half),
                Home::Scalar(register)
                | Home::Each(register)
                | Home::Bit(register, _)
                | Home::Product(_, register) => {
                    encoder.move_32(text, t + half, Source::Scalar(register + half));
                }
            }
        }
        encoder.wait_for_scalars(text);
        encoder.move_mask(text, EXEC, Source::Scalar(t));
        encoder.jump(text, back);
    }

    /// Adds the counters in whose registers each lane counts itself to memory, and sets them to their start.
    fn flush_spread(&self, text: &mut Text, base: u16, offset: u16, data: u16) {
        let (plan, encoder) = (self.plan, self.encoder);
        let spread = plan.batches.iter().filter(|batch| batch.is_spread(plan));
        let mut address = Address::default();
        for Batch { vector, word, .. } in spread {
            text.joint();
            if address.word.is_none() {
                encoder.move_mask(text, EXEC, Source::Constant(u32::MAX));
                let goal = Goal::Counter(*word);
                encoder.lane_words(text, base, offset, goal, encoder.lanes == 64);
                encoder.vector_move(text, data + 1, Source::Constant(0));
                address.word = Some(*word);
            }
            if let Some(vector) = *vector {
                encoder.vector_copy(text, data, vector);
                let place = address.reach(text, encoder, base, *word);
                encoder.atomic_add(text, offset, data, base, place);
                encoder.vector_move(text, vector, Source::Constant(0));
            }
        }
    }
}

/// Vector registers that await no load where waves end: one, and a pair.
fn last_vectors(plan: &Plan, functions: &[&Function<'_>]) -> Option<[u16; 2]> {
    let ends = |function: &&&Function<'_>| {
        let mut all = function.all.iter();
        all.any(|ins| matches!(ins.flow, Flow::End))
    };
    let ends = functions.iter().filter(ends);
    let pending = ends.fold(0, |all, function| all | pending::at_ends(function));
    let is_free = |number: u16| number < FirstVectors::BITS as u16 && pending >> number & 1 == 0;
    let all = || (0..plan.vectors.start).filter(|number| is_free(*number));
    let pair = all().find(|number| number % 2 == 0 && is_free(number + 1))?;
    let single = all().find(|number| number / 2 != pair / 2)?;
    (pair + 1 < plan.vectors.start).then_some([single, pair])
}

/// Returns whether an instruction is a vector comparison whose result is in EXEC.
fn writes_exec_by_vectors(ins: &Ins) -> bool {
    ins.mnemonic.starts_with("v_") && ins.writes_exec
}

/// The address in a pair of scalar registers, as the number of a counter.
#[derive(Clone, Copy, Debug, Default)]
struct Address {
    word: Option<u64>,
}

impl Address {
    /// Lets a pair and the returned offset in bytes lead to a counter.
    fn reach(&mut self, text: &mut Text, encoder: Encoder, pair: u16, word: u64) -> u32 {
        let known = self.word.filter(|known| *known <= word);
        let Some(known) = known else {
            encoder.address(text, pair, Goal::Counter(word));
            self.word = Some(word);
            return 0;
        };
        let offset = (word - known) * WORD;
        if offset <= MAX_OFFSET.into() {
            return offset as u32;
        }
        encoder.advance(text, pair, offset as u32);
        self.word = Some(word);
        0
    }
}
