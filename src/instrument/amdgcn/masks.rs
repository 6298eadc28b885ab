//! The value of EXEC in each stretch of a kernel, as far as it follows from the code: the lanes with which the wave began, or
//! others.
//!
//! Compilers narrow EXEC at a condition, keep the lanes from before in scalar registers, and add them again behind it. Where
//! the lanes are those of the entry, they need no counter: their sum is the number of waves that come there, each times its lanes.

use std::collections::{BTreeMap, HashMap};

use modelgpu_isa::{Flow, Instruction, Operand, WaveSize};

use super::code::{Ins, Scalars};
use super::function::{Function, Lanes};

/// A set of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Set {
    /// Those with which the wave began.
    Entry,
    /// Those that the condition of this instruction keeps, of the lanes before it.
    Kept(usize),
    /// The others of the lanes before it.
    Rest(usize),
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
type Parents = HashMap<usize, Mask>;

/// The sets that a set is a part of: itself, and those around it.
fn around(set: Set, parents: &Parents) -> Vec<Set> {
    let mut all = vec![set];
    while let Some(Set::Kept(at) | Set::Rest(at)) = all.last() {
        match parents.get(at).and_then(|parent| parent.bound()) {
            // A condition in a loop may be around itself.
            Some(next) if !all.contains(&next) => all.push(next),
            _ => break,
        }
    }
    all
}

/// What is known before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    exec: Mask,
    /// By the number of the first register.
    registers: BTreeMap<u16, Mask>,
}

impl State {
    /// What is known if both may be the case.
    fn join(&self, other: &Self, parents: &Parents) -> Self {
        let join = |a: Mask, b: Mask| match a == b {
            true => a,
            false => common(a, b, parents),
        };
        let registers = self.registers.iter().filter_map(|(number, mask)| {
            let joined = join(*mask, *other.registers.get(number)?);
            (joined != Mask::Unknown).then_some((*number, joined))
        });
        Self {
            exec: join(self.exec, other.exec),
            registers: registers.collect(),
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

    /// Forgets what follows from a condition, which is evaluated anew.
    fn forget(&mut self, condition: usize, parents: &Parents) {
        let depends = |mask: &Mask| {
            let sets = mask.bound().map(|set| around(set, parents));
            let names = [Set::Kept(condition), Set::Rest(condition)];
            sets.is_some_and(|sets| sets.iter().any(|set| names.contains(set)))
        };
        self.registers.retain(|_, mask| !depends(mask));
        if depends(&self.exec) {
            let bound = self.exec.bound();
            let outer = bound.map(|set| around(set, parents)).unwrap_or_default();
            let last = [Set::Kept(condition), Set::Rest(condition)];
            let place = outer.iter().rposition(|set| last.contains(set));
            let next = place.and_then(|place| outer.get(place + 1).copied());
            self.exec = next.map_or(Mask::Unknown, Mask::PartOf);
        }
    }
}

/// Sets the lanes of each stretch of a kernel.
pub(super) fn find(function: &mut Function<'_>) {
    let mut parents = Parents::new();
    let mut before: Vec<Option<State>> = vec![None; function.stretches.len()];
    let start = State {
        exec: Mask::Is(Set::Entry),
        registers: BTreeMap::new(),
    };
    let mut waiting: Vec<usize> = Vec::new();
    for entry in function.entries.clone() {
        let stretch = function.stretch_of(entry);
        before[stretch] = Some(start.clone());
        waiting.push(stretch);
    }
    // Each state only loses knowledge, but a condition's lanes may change with it.
    let mut rounds = 64 * function.stretches.len() + 1024;
    while let Some(stretch) = waiting.pop() {
        rounds -= 1;
        if rounds == 0 {
            return;
        }
        let Some(mut state) = before[stretch].clone() else {
            continue;
        };
        let range = function.instructions_of(stretch);
        for number in range.clone() {
            let is_new = step(function, number, &mut state, &mut parents);
            if is_new {
                // Others that are bounded by the condition may know less now.
                waiting.extend((0..before.len()).filter(|other| before[*other].is_some()));
                waiting.dedup();
            }
        }
        let Some(last) = range.last() else { continue };
        for next in function.following(last) {
            let next = function.stretch_of(next);
            let joined = match &before[next] {
                Some(known) => known.join(&state, &parents),
                None => state.clone(),
            };
            if before[next].as_ref() != Some(&joined) {
                before[next] = Some(joined);
                waiting.push(next);
            }
        }
    }
    for (stretch, state) in function.stretches.iter_mut().zip(before) {
        if state.is_some_and(|state| state.exec == Mask::Is(Set::Entry)) {
            stretch.lanes = Lanes::Entry;
        }
    }
}

/// Executes an instruction. Returns whether less is known of the lanes before a condition.
fn step(function: &Function<'_>, number: usize, state: &mut State, parents: &mut Parents) -> bool {
    let ins: &Ins = &function.all[number];
    if ins.is_call() || matches!(ins.flow, Flow::Trap) {
        *state = State {
            exec: Mask::Unknown,
            registers: BTreeMap::new(),
        };
        return false;
    }
    if ins.writes == 0 {
        return false;
    }
    let mask = |mask: Mask| (mask != Mask::Unknown).then_some(mask);
    let mut is_new = false;
    let mut result = None;
    let mut exec = state.exec;
    // Instructions on masks of whole waves.
    let suffix = match function.code.wave {
        WaveSize::Wave32 => "_b32",
        WaveSize::Wave64 => "_b64",
    };
    let name = ins.mnemonic.strip_suffix(suffix);
    let name = name.filter(|name| name.starts_with("s_"));
    if let (Some(name), Some(decoded)) = (name, function.code.decode(ins.address)) {
        let goal = decoded.dst;
        let writes_exec = goal == Operand::EXEC;
        match name {
            "s_mov" => {
                let moved = state.mask(decoded.src[0]);
                match writes_exec {
                    true => exec = moved,
                    false => result = mask(moved),
                }
            }
            "s_and_saveexec" => {
                result = mask(state.exec);
                state.forget(number, parents);
                is_new = set_parent(number, state.exec, parents);
                exec = match state.exec {
                    Mask::Unknown => Mask::Unknown,
                    _ => Mask::Is(Set::Kept(number)),
                };
                // What was saved is the mask before, as far as it does not depend on the condition itself.
                result = result.filter(|saved| *saved == state.exec);
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
                exec = union(a, b, parents);
            }
            "s_and" => {
                let [a, b] = operands(state, &decoded);
                let part = match (a, b) {
                    (Mask::Unknown, b) => b.part(),
                    (a, _) => a.part(),
                };
                match writes_exec {
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
                        if b == Mask::Is(outer) && around(inner, parents).contains(&outer) =>
                    {
                        without(b, a, parents)
                    }
                    (Some(outer), Some(inner))
                        if a == Mask::Is(outer) && around(inner, parents).contains(&outer) =>
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
        forget_written(state, ins.writes);
        if let (Some(mask), Some(register)) = (result, goal.scalar_index()) {
            if !writes_exec {
                state.registers.insert(register as u16, mask);
            }
        }
    } else {
        forget_written(state, ins.writes);
        if ins.writes_exec {
            // A vector comparison that writes EXEC keeps a part of the active lanes.
            exec = match ins.mnemonic.starts_with("v_cmpx") {
                true => state.exec.part(),
                false => Mask::Unknown,
            };
        }
    }
    state.exec = exec;
    is_new
}

/// The masks of both sources.
fn operands(state: &State, decoded: &Instruction) -> [Mask; 2] {
    [state.mask(decoded.src[0]), state.mask(decoded.src[1])]
}

/// Forgets masks in registers that an instruction writes.
fn forget_written(state: &mut State, writes: Scalars) {
    // A pair has two registers; in waves of 32, the one behind a mask does not matter, but nothing is lost by this.
    state
        .registers
        .retain(|number, _| writes >> number & 3 == 0);
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
    let is_around = |at: &usize, set: Set| parents.get(at) == Some(&Mask::Is(set));
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
    let is_within = |inner: Mask, outer: Set| {
        let sets = inner.bound().map(|set| around(set, parents));
        sets.is_some_and(|sets| sets.contains(&outer))
    };
    match (a, b) {
        (Mask::Is(Set::Rest(one)), Mask::Is(Set::Kept(other)))
        | (Mask::Is(Set::Kept(one)), Mask::Is(Set::Rest(other)))
            if one == other =>
        {
            parents.get(&one).copied().unwrap_or(Mask::Unknown)
        }
        (inner, Mask::Is(outer)) | (Mask::Is(outer), inner) if is_within(inner, outer) => {
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
