//! The value of EXEC in each stretch of a function, as far as it follows from the code, and the ways of lanes.
//!
//! Compilers narrow EXEC at a condition, keep the lanes from before in scalar registers, and add them again after it. The lanes
//! of the entry need no counter: their sum is the number of waves that come there, each times its lanes. And lanes that a
//! condition makes inactive wait in its [pool](LaneEnd::Pool), until an instruction activates them. As many lanes leave a pool
//! as enter it, if all such instructions are known.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use modelgpu_isa::{Flow, Instruction, Operand, WaveSize};

use super::code::{Ins, Scalars, constant};
use super::function::Function;

/// The most stretches of a function whose masks are followed.
const MAX_STRETCHES: usize = 600;

/// A set of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Set {
    /// Those with which the wave began.
    Entry,
    /// Those that the condition of this instruction keeps, of the lanes before it.
    Kept(usize),
    /// The others of the lanes before it.
    Rest(usize),
    /// The lanes before it, if nothing else is known of them.
    Before(usize),
}

impl Set {
    /// The condition that it depends on.
    fn condition(self) -> Option<usize> {
        match self {
            Self::Entry => None,
            Self::Kept(at) | Self::Rest(at) | Self::Before(at) => Some(at),
        }
    }
}

/// An end of a way of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LaneEnd {
    /// The stretch with this number.
    Stretch(usize),
    /// Lanes that a condition does not keep wait there, or those that it keeps while the others run.
    Pool(usize),
    /// Another place, or one that is not known.
    Outside,
}

/// The ways of lanes where EXEC changes.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneWays {
    pub(super) ways: BTreeSet<(LaneEnd, LaneEnd)>,
    /// The stretches at whose end EXEC changes, and whose ways are among these.
    pub(super) known: BTreeSet<usize>,
    /// The stretches in which the lanes of the entry are active.
    pub(super) entry: BTreeSet<usize>,
    /// The stretches in which all lanes that a condition keeps are active, with the stretch behind the condition.
    pub(super) kept: BTreeMap<usize, usize>,
    pub(super) pools: usize,
}

/// A value of EXEC, or of a mask in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mask {
    /// This set.
    Is(Set),
    /// A part of this set.
    PartOf(Set),
    Unknown,
}

impl Mask {
    /// The set that it is, or is a part of.
    fn bound(self) -> Option<Set> {
        match self {
            Self::Is(set) | Self::PartOf(set) => Some(set),
            Self::Unknown => None,
        }
    }

    /// A part of this mask.
    fn part(self) -> Self {
        self.bound().map_or(Self::Unknown, Self::PartOf)
    }
}

/// The lanes before each condition.
type Parents = BTreeMap<usize, Mask>;

/// The name of the lanes before a condition.
fn before(condition: usize, parents: &Parents) -> Set {
    match parents.get(&condition) {
        Some(Mask::Is(set)) => *set,
        _ => Set::Before(condition),
    }
}

/// The set that comes next around a set.
fn next_around(set: Set, parents: &Parents) -> Option<Set> {
    match set {
        Set::Kept(at) | Set::Rest(at) => Some(before(at, parents)),
        Set::Before(at) => parents.get(&at).and_then(|parent| parent.bound()),
        Set::Entry => None,
    }
}

/// The sets that a set is a part of: itself, and those around it.
fn around(set: Set, parents: &Parents) -> Vec<Set> {
    let mut all = vec![set];
    loop {
        let next = all.last().and_then(|last| next_around(*last, parents));
        match next {
            // A condition in a loop may be around itself.
            Some(next) if !all.contains(&next) => all.push(next),
            _ => return all,
        }
    }
}

/// Returns whether a set is a part of another one.
fn is_within(inner: Set, outer: Set, parents: &Parents) -> bool {
    // More are looked at together, as sets may be around themselves.
    const MAX_NEAR: usize = 32;
    let mut set = inner;
    for _ in 0..MAX_NEAR {
        if set == outer {
            return true;
        }
        match next_around(set, parents) {
            Some(next) => set = next,
            None => return false,
        }
    }
    around(inner, parents).contains(&outer)
}

/// The lanes that have left a loop, in a register: compilers set it to 0 before the loop, add lanes to it, and make these inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    /// The instruction that sets it to 0. It is a condition whose others are the lanes that have left.
    start: usize,
    /// The lanes that are those before the start, together with the register. `None`: the active ones.
    with: Option<Set>,
}

/// The knowledge before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    exec: Mask,
    /// By the number of the first register.
    registers: BTreeMap<u16, Mask>,
    /// The registers with lanes that have left a loop.
    left: BTreeMap<u16, Left>,
    /// Conditions in whose pools lanes may wait.
    open: BTreeSet<usize>,
    /// Sets of which lanes may be inactive and in no pool.
    lost: BTreeSet<Set>,
}

impl State {
    /// The knowledge if both may be the case.
    fn join(&self, other: &Self, parents: &Parents) -> Self {
        let join = |a: Mask, b: Mask| match a == b {
            true => a,
            false => common(a, b, parents),
        };
        let registers = self.registers.iter().filter_map(|(number, mask)| {
            let joined = join(*mask, *other.registers.get(number)?);
            (joined != Mask::Unknown).then_some((*number, joined))
        });
        let left = self.left.iter().filter_map(|(number, one)| {
            let another = other.left.get(number)?;
            let is_active = self.is_active(*one) && other.is_active(*another);
            let with = match one.with == another.with {
                true => one.with,
                false => is_active.then_some(None)?,
            };
            let start = one.start;
            (start == another.start).then_some((*number, Left { start, with }))
        });
        Self {
            exec: join(self.exec, other.exec),
            registers: registers.collect(),
            left: left.collect(),
            open: self.open.union(&other.open).copied().collect(),
            lost: self.lost.union(&other.lost).copied().collect(),
        }
    }

    /// The mask in an operand.
    fn mask(&self, operand: Operand) -> Mask {
        if operand == Operand::EXEC {
            return self.exec;
        }
        let number = operand.scalar_index().map(|number| number as u16);
        let known = number.and_then(|number| self.registers.get(&number).copied());
        known.unwrap_or(Mask::Unknown)
    }

    /// Returns whether the active lanes, together with these, are those before the loop.
    fn is_active(&self, left: Left) -> bool {
        left.with.is_none_or(|set| self.exec == Mask::Is(set))
    }

    /// The lanes in an operand that have left a loop, if all others of it are active.
    fn left(&self, operand: Operand) -> Option<(u16, Left)> {
        let number = operand.scalar_index()? as u16;
        let left = self.left.get(&number).copied();
        left.filter(|left| self.is_active(*left))
            .map(|left| (number, left))
    }

    /// Gives the active lanes a name: those before this condition. Returns whether less is known of them than before.
    fn name_active(&mut self, condition: usize, parents: &mut Parents) -> bool {
        self.forget(condition, parents);
        let is_new = set_parent(condition, self.exec, parents);
        let set = before(condition, parents);
        self.exec = Mask::Is(set);
        for left in self.left.values_mut() {
            left.with = left.with.or(Some(set));
        }
        is_new
    }

    /// Forgets what follows from a condition, which is evaluated again.
    fn forget(&mut self, condition: usize, parents: &Parents) {
        if !parents.contains_key(&condition) {
            // It is evaluated for the first time.
            return;
        }
        let depends = |set: &Set| {
            let sets = around(*set, parents);
            sets.iter().any(|set| set.condition() == Some(condition))
        };
        let is_foreign = |mask: &Mask| !mask.bound().is_some_and(|set| depends(&set));
        self.registers.retain(|_, mask| is_foreign(mask));
        let exec = self.exec;
        self.left.retain(|_, left| {
            if left.with.is_some_and(|set| exec == Mask::Is(set)) {
                left.with = None;
            }
            let is_over = left.start == condition || depends(&before(left.start, parents));
            !is_over && !left.with.is_some_and(|set| depends(&set))
        });
        let outer = |set: Set| {
            let sets = around(set, parents);
            let last = sets
                .iter()
                .rposition(|set| set.condition() == Some(condition));
            last.and_then(|last| sets.get(last + 1).copied())
        };
        if !is_foreign(&self.exec) {
            let next = self.exec.bound().and_then(outer);
            self.exec = next.map_or(Mask::Unknown, Mask::PartOf);
        }
        let (old, kept): (BTreeSet<Set>, BTreeSet<Set>) =
            self.lost.iter().copied().partition(|set| depends(set));
        self.lost = kept;
        self.lost
            .extend(old.into_iter().map(|set| outer(set).unwrap_or(Set::Entry)));
    }
}

/// The knowledge before each stretch that can be reached. `None`: the function is too large.
fn states(function: &Function<'_>, parents: &mut Parents) -> Option<Vec<Option<Rc<State>>>> {
    if function.stretches.len() > MAX_STRETCHES {
        return None;
    }
    for restart in [Restart::AtOnce, Restart::AtEnd] {
        parents.clear();
        // The steps in all. Few conditions in loops make it start again.
        let mut steps = 8 * function.stretches.len() + 1024;
        while steps > 0 {
            let known = states_once(function, parents, &mut steps, restart);
            if known.is_some() {
                return known;
            }
        }
    }
    None
}

/// The time when all knowledge is collected again, after less turned out to be known of the lanes before a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    /// More is known in the end, but each loop may cause it.
    AtOnce,
    /// Many loops cause few of them.
    AtEnd,
}

/// The knowledge before each stretch. `None` if less is known of the lanes before a condition than before, or if there are no
/// more steps.
fn states_once(
    function: &Function<'_>,
    parents: &mut Parents,
    steps: &mut usize,
    restart: Restart,
) -> Option<Vec<Option<Rc<State>>>> {
    let mut is_stale = false;
    let mut before: Vec<Option<Rc<State>>> = vec![None; function.stretches.len()];
    let start = Rc::new(State {
        exec: Mask::Is(Set::Entry),
        registers: BTreeMap::new(),
        left: BTreeMap::new(),
        open: BTreeSet::new(),
        lost: BTreeSet::new(),
    });
    let mut waiting: BTreeSet<usize> = BTreeSet::new();
    for entry in &function.entries {
        let stretch = function.stretch_of(*entry);
        before[stretch] = Some(start.clone());
        waiting.insert(stretch);
    }
    while let Some(stretch) = waiting.pop_first() {
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return None;
        }
        let Some(mut state) = before[stretch].clone() else {
            continue;
        };
        let range = function.instructions_of(stretch);
        for number in range.clone() {
            if !matters(&function.all[number], &state) {
                continue;
            }
            if step(function, number, Rc::make_mut(&mut state), parents) {
                // Knowledge that follows from the lanes before the condition is no longer true.
                is_stale = true;
                if restart == Restart::AtOnce {
                    return None;
                }
            }
        }
        let Some(last) = range.last() else { continue };
        for next in function.following(last) {
            let next = function.stretch_of(next);
            let joined = match &before[next] {
                Some(known) if Rc::ptr_eq(known, &state) || **known == *state => continue,
                Some(known) => {
                    let joined = known.join(&state, parents);
                    if joined == **known {
                        continue;
                    }
                    Rc::new(joined)
                }
                None => state.clone(),
            };
            before[next] = Some(joined);
            waiting.insert(next);
        }
    }
    (!is_stale).then_some(before)
}

/// Returns whether [`step`] may change what is known.
fn matters(ins: &Ins, state: &State) -> bool {
    const OF_MASKS: [&str; 5] = ["s_mov_", "s_and", "s_or", "s_xor_", "v_cmp_"];
    if ins.writes == 0 {
        return ins.is_call() || ins.writes_exec || matches!(ins.flow, Flow::Trap);
    }
    let mut registers = state.registers.keys().chain(state.left.keys());
    ins.is_call()
        || ins.writes_exec
        || matches!(ins.flow, Flow::Trap)
        || OF_MASKS.iter().any(|name| ins.mnemonic.starts_with(name))
        || registers.any(|number| ins.writes >> number & 3 != 0)
}

/// Finds the ways of lanes in a function, and the stretches whose lanes are those of its entry.
/// `callees_end`: a callee may end the wave.
pub(super) fn find(function: &Function<'_>, callees_end: bool) -> LaneWays {
    let mut parents = Parents::new();
    let Some(before) = states(function, &mut parents) else {
        return LaneWays::default();
    };
    let mut found = ways(function, &before, &mut parents, callees_end);
    let has_all = |state: &Option<Rc<State>>| matches!(state, Some(state) if state.exec == Mask::Is(Set::Entry));
    let numbers = before.iter().enumerate();
    found.entry = numbers
        .filter(|(_, state)| has_all(state))
        .map(|(stretch, _)| stretch)
        .collect();
    let numbers = before.iter().enumerate();
    let kept = numbers.filter_map(|(stretch, state)| match state.as_ref()?.exec {
        Mask::Is(Set::Kept(at)) => Some((stretch, function.stretch_of(at) + 1)),
        _ => None,
    });
    found.kept = kept.collect();
    found
}

/// Returns whether the lanes of the entry are active at each of these instructions.
pub(super) fn are_whole(function: &Function<'_>, numbers: &[usize]) -> bool {
    let mut parents = Parents::new();
    let Some(before) = states(function, &mut parents) else {
        return false;
    };
    numbers.iter().all(|number| {
        let stretch = function.stretch_of(*number);
        let Some(mut state) = before[stretch].as_deref().cloned() else {
            // No wave comes there.
            return true;
        };
        for earlier in function.stretches[stretch].first..*number {
            step(function, earlier, &mut state, &mut parents);
        }
        state.exec == Mask::Is(Set::Entry)
    })
}

/// The ways of lanes where EXEC changes, by what is known before each stretch.
fn ways(
    function: &Function<'_>,
    states: &[Option<Rc<State>>],
    parents: &mut Parents,
    callees_end: bool,
) -> LaneWays {
    // Two pools for each condition: for the lanes that it keeps, and for the others.
    let pool =
        |condition: usize, is_rest: bool| LaneEnd::Pool(2 * condition + usize::from(is_rest));
    let both = |condition: usize| [pool(condition, true), pool(condition, false)];
    let mut found = LaneWays::default();
    // Pools whose lanes may go to places that are not known.
    let mut leaking: BTreeSet<usize> = BTreeSet::new();
    for (stretch, state) in states.iter().enumerate() {
        let Some(mut state) = state.clone() else {
            continue;
        };
        for number in function.instructions_of(stretch) {
            let ins = &function.all[number];
            let is_way = matches!(ins.flow, Flow::End | Flow::Indirect);
            if !is_way && !matters(ins, &state) {
                continue;
            }
            let state = Rc::make_mut(&mut state);
            let is_plain = matches!(ins.flow, Flow::Next | Flow::Branch { .. });
            if is_plain && (!ins.writes_exec || ins.ends_block()) {
                if state.open.contains(&number) {
                    // Lanes that have left a loop still wait when it starts again.
                    leaking.insert(number);
                }
                step(function, number, state, parents);
                continue;
            }
            let earlier = state.clone();
            let left = leaves_loop(function, number, &earlier);
            step(function, number, state, parents);
            let leaves =
                matches!(ins.flow, Flow::Indirect) && !function.jumps.contains_key(&number);
            let is_kept = !callees_end && function.kept_calls.contains_key(&number);
            if leaves || ins.is_call() && !is_kept {
                leaking.extend(&earlier.open);
            }
            if matches!(ins.flow, Flow::End | Flow::Trap) {
                // Lanes that wait end with the wave.
                let pools = earlier.open.iter().flat_map(|condition| both(*condition));
                let ways = pools.map(|pool| (pool, LaneEnd::Outside));
                found.ways.extend(ways);
            }
            if !ins.writes_exec || ins.ends_block() {
                continue;
            }
            let (own, next) = (LaneEnd::Stretch(stretch), LaneEnd::Stretch(stretch + 1));
            found.known.insert(stretch);
            let mut add = |from: LaneEnd, to: LaneEnd| _ = found.ways.insert((from, to));
            if let Some((_, Left { start, .. })) = left {
                add(own, next);
                add(own, pool(start, true));
                continue;
            }
            match (earlier.exec, state.exec) {
                (_, Mask::Is(Set::Kept(at))) if at == number => {
                    if earlier.open.contains(&at) {
                        leaking.insert(at);
                    }
                    add(own, next);
                    add(own, pool(at, true));
                }
                (Mask::Unknown, _) | (_, Mask::Unknown) => {
                    leaking.extend(&earlier.open);
                    add(own, next);
                    add(own, LaneEnd::Outside);
                    add(LaneEnd::Outside, next);
                }
                // The other lanes of a condition.
                (Mask::Is(Set::Kept(one)), Mask::Is(Set::Rest(other))) if one == other => {
                    add(own, pool(one, false));
                    add(pool(one, true), next);
                }
                (Mask::Is(Set::Rest(one)), Mask::Is(Set::Kept(other))) if one == other => {
                    add(own, pool(one, true));
                    add(pool(one, false), next);
                }
                (Mask::Is(one), Mask::Is(other)) if one == other => add(own, next),
                // A part of the lanes before a condition, all of which were active again.
                (Mask::Is(whole), Mask::Is(Set::Kept(at))) if before(at, parents) == whole => {
                    add(own, next);
                    add(own, pool(at, true));
                }
                (Mask::Is(whole), Mask::Is(Set::Rest(at))) if before(at, parents) == whole => {
                    add(own, next);
                    add(own, pool(at, false));
                }
                (exec, Mask::Is(outer))
                    if exec
                        .bound()
                        .is_some_and(|set| is_within(set, outer, parents)) =>
                {
                    add(own, next);
                    for condition in &earlier.open {
                        let is_whole = is_within(before(*condition, parents), outer, parents);
                        // A pool of active lanes is empty.
                        for end in both(*condition) {
                            // One part of the lanes before it may be active without the other.
                            let is_part = outer == Set::Kept(*condition)
                                && end == pool(*condition, false)
                                || outer == Set::Rest(*condition) && end == pool(*condition, true);
                            if !is_whole && !is_part {
                                continue;
                            }
                            let is_active = exec == Mask::Is(Set::Kept(*condition))
                                && end == pool(*condition, false)
                                || exec == Mask::Is(Set::Rest(*condition))
                                    && end == pool(*condition, true);
                            if !is_active {
                                add(end, next);
                            }
                        }
                    }
                    let mut lost = earlier.lost.iter();
                    if lost.any(|set| is_within(*set, outer, parents)) {
                        add(LaneEnd::Outside, next);
                    }
                }
                (_, Mask::PartOf(_)) if is_narrowing(function, number) => {
                    add(own, next);
                    add(own, LaneEnd::Outside);
                }
                _ => {
                    leaking.extend(&earlier.open);
                    add(own, next);
                    add(own, LaneEnd::Outside);
                    add(LaneEnd::Outside, next);
                }
            }
        }
    }
    // No lanes leave a pool that none enter.
    let entered: BTreeSet<LaneEnd> = found.ways.iter().map(|(_, to)| *to).collect();
    found.ways.retain(|(from, _)| match from {
        LaneEnd::Pool(_) => entered.contains(from),
        LaneEnd::Stretch(_) | LaneEnd::Outside => true,
    });
    // Pools get numbers one after the other.
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let mut renamed = |end: LaneEnd| match end {
        LaneEnd::Pool(pool) if leaking.contains(&(pool / 2)) => LaneEnd::Outside,
        LaneEnd::Pool(pool) => {
            let next = numbers.len();
            LaneEnd::Pool(*numbers.entry(pool).or_insert(next))
        }
        other => other,
    };
    let ways = found.ways.iter();
    found.ways = ways
        .map(|(from, to)| (renamed(*from), renamed(*to)))
        .collect();
    found.pools = numbers.len();
    found
}

/// Returns whether an instruction keeps only active lanes.
fn is_narrowing(function: &Function<'_>, number: usize) -> bool {
    let ins = &function.all[number];
    let Some(decoded) = function.code.decode(ins.address) else {
        return false;
    };
    let name = ins.mnemonic;
    let reads_exec = decoded.src[..2].contains(&Operand::EXEC);
    name.starts_with("v_cmpx")
        || name.starts_with("s_and_b") && reads_exec
        || (name.starts_with("s_andn2_b") || name.starts_with("s_and_not1_b"))
            && decoded.src[0] == Operand::EXEC
        || name.starts_with("s_andn1_saveexec")
        || name.starts_with("s_and_not0_saveexec")
}

/// Executes an instruction. Returns whether less is known of the lanes before a condition.
fn step(function: &Function<'_>, number: usize, state: &mut State, parents: &mut Parents) -> bool {
    let ins: &Ins = &function.all[number];
    if let Some(writes) = function.kept_calls.get(&number) {
        forget_written(state, ins.writes | writes, function.code.wave);
        return false;
    }
    if ins.is_call() || matches!(ins.flow, Flow::Trap) {
        state.exec = Mask::Unknown;
        state.registers.clear();
        state.left.clear();
        return false;
    }
    if ins.writes == 0 {
        return false;
    }
    let mask = |mask: Mask| (mask != Mask::Unknown).then_some(mask);
    let mut is_new = false;
    let mut result = None;
    // The lanes in its result that have left a loop, and the register with those that leave it here.
    let mut left_result = None;
    let leaving = leaves_loop(function, number, state);
    let mut exec = state.exec;
    // Instructions on masks of whole waves.
    let suffix = match function.code.wave {
        WaveSize::W32 => "_b32",
        WaveSize::W64 => "_b64",
    };
    let name = ins.mnemonic.strip_suffix(suffix);
    let name = name.filter(|name| name.starts_with("s_"));
    if let (Some(name), Some(decoded)) = (name, function.code.decode(ins.address)) {
        let goal = decoded.dst;
        let writes_exec = goal == Operand::EXEC;
        match name {
            "s_mov" => {
                let is_kept = decoded.src[0] == Operand::EXEC && !writes_exec;
                let is_empty = constant(&decoded, decoded.src[0]) == Some(0) && !writes_exec;
                if is_kept && !matches!(state.exec, Mask::Is(_)) {
                    // The lanes get a name, as a comparison may follow that narrows them.
                    is_new = state.name_active(number, parents);
                }
                if is_empty && state.exec != Mask::Unknown {
                    // A loop may follow, whose lanes leave one after the other.
                    is_new = state.name_active(number, parents);
                    left_result = Some(Left {
                        start: number,
                        with: Some(before(number, parents)),
                    });
                }
                exec = state.exec;
                let moved = state.mask(decoded.src[0]);
                match writes_exec {
                    true => exec = moved,
                    false => result = mask(moved),
                }
            }
            "s_and_saveexec" => {
                (exec, is_new) = narrow(number, state, parents);
                result = mask(state.exec);
            }
            "s_andn1_saveexec" | "s_and_not0_saveexec" => {
                result = mask(state.exec);
                exec = state.exec.part();
            }
            "s_andn2_saveexec" | "s_and_not1_saveexec" => {
                // The lanes of the source that are not active.
                let source = state.mask(decoded.src[0]);
                result = mask(state.exec);
                exec = without(source, state.exec, parents);
            }
            "s_or_saveexec" => {
                let source = state.mask(decoded.src[0]);
                result = mask(state.exec);
                exec = union(state.exec, source, parents);
            }
            "s_or" if writes_exec => {
                let [a, b] = operands(state, &decoded);
                exec = match left_and(state, &decoded) {
                    // All that have left are active again.
                    Some((left, Operand::EXEC)) if state.is_active(left) => {
                        Mask::Is(before(left.start, parents))
                    }
                    _ => union(a, b, parents),
                };
            }
            "s_or" => {
                let more = left_and(state, &decoded);
                left_result = more.and_then(|(left, other)| {
                    let all = before(left.start, parents);
                    let is_part = |set| is_within(set, all, parents);
                    state
                        .mask(other)
                        .bound()
                        .is_some_and(is_part)
                        .then_some(left)
                });
            }
            "s_and" => {
                let [a, b] = operands(state, &decoded);
                let part = match (a, b) {
                    (Mask::Unknown, b) => b.part(),
                    (a, _) => a.part(),
                };
                match writes_exec {
                    true if decoded.src[..2].contains(&Operand::EXEC) => {
                        (exec, is_new) = narrow(number, state, parents);
                    }
                    true => exec = part,
                    false => result = mask(part),
                }
            }
            "s_andn2" | "s_and_not1" => {
                let [a, b] = operands(state, &decoded);
                let rest = without(a, b, parents);
                match writes_exec {
                    true => exec = rest,
                    false => result = mask(rest),
                }
            }
            "s_xor" => {
                // The lanes of one that are not in the other, if that is a part of it.
                let [a, b] = operands(state, &decoded);
                let rest = match (a.bound(), b.bound()) {
                    (Some(inner), Some(outer))
                        if b == Mask::Is(outer) && is_within(inner, outer, parents) =>
                    {
                        without(b, a, parents)
                    }
                    (Some(outer), Some(inner))
                        if a == Mask::Is(outer) && is_within(inner, outer, parents) =>
                    {
                        without(a, b, parents)
                    }
                    _ => Mask::Unknown,
                };
                match writes_exec {
                    true => exec = rest,
                    false => result = mask(rest),
                }
            }
            _ if ins.writes_exec => exec = Mask::Unknown,
            _ => {}
        }
        forget_written(state, ins.writes, function.code.wave);
        if let (Some(register), false) = (goal.scalar_index(), writes_exec) {
            let register = register as u16;
            if let Some(left) = left_result {
                state.left.insert(register, left);
                result = Some(Mask::PartOf(before(left.start, parents)));
            }
            if let Some(mask) = result {
                state.registers.insert(register, mask);
            }
        }
    } else {
        forget_written(state, ins.writes, function.code.wave);
        if ins.mnemonic.starts_with("v_cmp_")
            && let Some(mask) = mask(state.exec.part())
        {
            // Its result has no lane that is not active.
            state
                .registers
                .insert(ins.writes.trailing_zeros() as u16, mask);
        }
        if ins.writes_exec {
            // A vector comparison that writes EXEC keeps a part of the active lanes.
            match ins.mnemonic.starts_with("v_cmpx") {
                true => (exec, is_new) = narrow(number, state, parents),
                false => exec = Mask::Unknown,
            }
        }
    }
    if ins.writes_exec {
        let leaving = leaving.filter(|_| exec != Mask::Unknown);
        match leaving {
            Some((_, left)) => _ = state.open.insert(left.start),
            None => settle(state, exec, parents),
        }
        state.left.retain(|_, left| left.with.is_some());
        if let Some((register, left)) = leaving {
            let left = Left { with: None, ..left };
            state.left.insert(register, left);
        }
    }
    state.exec = exec;
    is_new
}

/// The lanes that an instruction makes inactive, as they have left a loop, and their register.
fn leaves_loop(function: &Function<'_>, number: usize, state: &State) -> Option<(u16, Left)> {
    let ins = &function.all[number];
    let name = ins.mnemonic;
    let is_rest = name.starts_with("s_andn2_b") || name.starts_with("s_and_not1_b");
    if !is_rest || !ins.writes_exec || state.exec == Mask::Unknown {
        return None;
    }
    let decoded = function.code.decode(ins.address)?;
    let is_own = decoded.dst == Operand::EXEC && decoded.src[0] == Operand::EXEC;
    state.left(decoded.src[1]).filter(|_| is_own)
}

/// The source of an instruction that has lanes that have left a loop, and the other source.
fn left_and(state: &State, decoded: &Instruction) -> Option<(Left, Operand)> {
    let [a, b, ..] = decoded.src;
    let find = |one: Operand, other: Operand| {
        let number = one.scalar_index()? as u16;
        state.left.get(&number).map(|left| (*left, other))
    };
    find(a, b).or_else(|| find(b, a))
}

/// Notes that an instruction keeps some of the active lanes. Returns these, and whether less is known of the lanes before it.
fn narrow(number: usize, state: &mut State, parents: &mut Parents) -> (Mask, bool) {
    // All lanes before it are those that it is about.
    let is_new = state.name_active(number, parents);
    (Mask::Is(Set::Kept(number)), is_new)
}

/// Notes the lanes that wait, if EXEC becomes `exec`.
fn settle(state: &mut State, exec: Mask, parents: &Parents) {
    let bound = state.exec.bound().unwrap_or(Set::Entry);
    let outer = match exec {
        Mask::Is(outer) => outer,
        Mask::PartOf(_) | Mask::Unknown => {
            state.lost.insert(bound);
            return;
        }
    };
    let is_outside = |set: Set| !is_within(set, outer, parents);
    // All of the lanes before it are active now.
    state
        .open
        .retain(|condition| is_outside(before(*condition, parents)));
    state.lost.retain(|set| is_outside(*set));
    let condition = match outer {
        Set::Kept(at) | Set::Rest(at) => Some(at),
        Set::Entry | Set::Before(_) => None,
    };
    let is_own = |at: usize| {
        [Set::Kept(at), Set::Rest(at), before(at, parents)].contains(&bound)
            && state.exec == Mask::Is(bound)
    };
    match condition {
        // The others of its condition wait.
        Some(at) if is_own(at) => _ = state.open.insert(at),
        _ if is_outside(bound) || state.exec == Mask::Unknown => _ = state.lost.insert(bound),
        _ => {}
    }
}

/// The masks of both sources.
fn operands(state: &State, decoded: &Instruction) -> [Mask; 2] {
    [state.mask(decoded.src[0]), state.mask(decoded.src[1])]
}

/// Forgets masks in registers that an instruction writes.
fn forget_written(state: &mut State, writes: Scalars, wave: WaveSize) {
    let registers = match wave {
        WaveSize::W32 => 1,
        WaveSize::W64 => 3,
    };
    let is_written = |number: u16| writes >> number & registers != 0;
    state.registers.retain(|number, _| !is_written(*number));
    state.left.retain(|number, _| !is_written(*number));
}

/// Notes the lanes before a condition. Returns whether others were known.
fn set_parent(condition: usize, mask: Mask, parents: &mut Parents) -> bool {
    let known = parents.get(&condition).copied();
    let joined = match known {
        None => mask,
        Some(known) if known == mask => known,
        Some(known) => common(known, mask, parents),
    };
    parents.insert(condition, joined);
    known.is_some_and(|known| known != joined)
}

/// The lanes of `a` that are not in `b`.
fn without(a: Mask, b: Mask, parents: &Parents) -> Mask {
    let is_around = |at: &usize, set: Set| before(*at, parents) == set;
    match (a, b) {
        (Mask::Is(set), Mask::Is(Set::Kept(at))) if is_around(&at, set) => Mask::Is(Set::Rest(at)),
        (Mask::Is(set), Mask::Is(Set::Rest(at))) if is_around(&at, set) => Mask::Is(Set::Kept(at)),
        // The two parts of a set have no lane in common.
        (Mask::Is(Set::Rest(one)), Mask::Is(Set::Kept(other)))
        | (Mask::Is(Set::Kept(one)), Mask::Is(Set::Rest(other)))
            if one == other =>
        {
            a
        }
        (a, _) => a.part(),
    }
}

/// The lanes of both masks.
fn union(a: Mask, b: Mask, parents: &Parents) -> Mask {
    let is_part = |inner: Mask, outer: Set| {
        let inner = inner.bound();
        inner.is_some_and(|inner| is_within(inner, outer, parents))
    };
    match (a, b) {
        (Mask::Is(Set::Rest(one)), Mask::Is(Set::Kept(other)))
        | (Mask::Is(Set::Kept(one)), Mask::Is(Set::Rest(other)))
            if one == other =>
        {
            Mask::Is(before(one, parents))
        }
        (inner, Mask::Is(outer)) | (Mask::Is(outer), inner) if is_part(inner, outer) => {
            Mask::Is(outer)
        }
        _ => common(a, b, parents),
    }
}

/// The smallest set that both masks are parts of.
fn common(a: Mask, b: Mask, parents: &Parents) -> Mask {
    let (Some(a), Some(b)) = (a.bound(), b.bound()) else {
        return Mask::Unknown;
    };
    let (a, b) = (around(a, parents), around(b, parents));
    let common = a.into_iter().find(|set| b.contains(set));
    common.map_or(Mask::Unknown, Mask::PartOf)
}
