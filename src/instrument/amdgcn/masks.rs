//! The value of EXEC in each stretch of a function, as far as it follows from the code, and the ways of lanes.
//!
//! Compilers narrow EXEC at a condition, keep the lanes from before in scalar registers, and add them again after it. The lanes
//! of the entry need no counter: their sum is the number of waves that come there, each times its lanes. And lanes that a
//! condition makes inactive wait in its [pool](LaneEnd::Pool), until an instruction activates them. As many lanes leave a pool
//! as enter it, if all such instructions are known.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use modelgpu_isa::{Flow, Operand, WaveSize};

use super::code::{Ins, Scalars, constant};
use super::function::Function;
use super::lanes::{LaneEnd, LaneWays, StretchLanes};

/// The most stretches of a function whose masks are followed.
const MAX_STRETCHES: usize = 600;

/// The number of an instruction that is a condition.
type Condition = u32;

/// A set of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Set {
    /// Those with which the wave began.
    Entry,
    /// Those that the condition of this instruction keeps, of the lanes before it.
    Kept(Condition),
    /// The others of the lanes before it.
    Rest(Condition),
    /// The lanes before it, if nothing else is known of them.
    Before(Condition),
}

impl Set {
    /// The condition that it depends on.
    fn condition(self) -> Option<Condition> {
        match self {
            Self::Entry => None,
            Self::Kept(at) | Self::Rest(at) | Self::Before(at) => Some(at),
        }
    }
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

/// The lanes before each condition, by the number of the instruction.
#[derive(Clone, Debug)]
struct Parents {
    masks: Vec<Option<Mask>>,
    /// The number of the visit to a stretch.
    visit: u32,
    /// The first visit that depends on each condition, or a later number.
    first_read: Vec<Cell<u32>>,
    /// The first visit that would find other lanes now.
    changed: u32,
}

impl Parents {
    fn new(function: &Function<'_>) -> Self {
        Self {
            masks: vec![None; function.all.len()],
            visit: 0,
            first_read: vec![Cell::new(u32::MAX); function.all.len()],
            changed: u32::MAX,
        }
    }

    /// Forgets all of them.
    fn clear(&mut self) {
        self.masks.fill(None);
        self.rewind(0);
    }

    /// The visit with this number comes next, again.
    fn rewind(&mut self, visit: u32) {
        self.visit = visit;
        for first in self.first_read.iter().filter(|first| first.get() >= visit) {
            first.set(u32::MAX);
        }
        self.changed = u32::MAX;
    }

    fn get(&self, condition: Condition) -> Option<Mask> {
        let first = self.first_read.get(condition as usize)?;
        first.set(first.get().min(self.visit));
        self.masks.get(condition as usize).copied().flatten()
    }

    fn set(&mut self, condition: Condition, mask: Mask) {
        let place = condition as usize;
        if let (Some(known), Some(first)) = (self.masks.get_mut(place), self.first_read.get(place))
            && *known != Some(mask)
        {
            *known = Some(mask);
            self.changed = self.changed.min(first.get());
        }
    }
}

/// The name of the lanes before a condition.
fn before(condition: Condition, parents: &Parents) -> Set {
    match parents.get(condition) {
        Some(Mask::Is(set)) => set,
        _ => Set::Before(condition),
    }
}

/// The set that comes next around a set.
fn next_around(set: Set, parents: &Parents) -> Option<Set> {
    match set {
        Set::Kept(at) | Set::Rest(at) => Some(before(at, parents)),
        Set::Before(at) => parents.get(at).and_then(Mask::bound),
        Set::Entry => None,
    }
}

/// The sets that a set is a part of: itself, and those around it. A condition in a loop may be around itself: then some come
/// twice.
fn around(set: Set, parents: &Parents) -> impl Iterator<Item = Set> {
    // One of those before is kept, and compared with all that follow (Brent, "An improved Monte Carlo factorization
    // algorithm", 1980).
    let (mut known, mut steps, mut length) = (None, 0_u32, 32_u32);
    std::iter::successors(Some(set), move |last| {
        let next = next_around(*last, parents);
        if next == known {
            return None;
        }
        steps += 1;
        if steps == length {
            (known, steps, length) = (next, 0, 2 * length);
        }
        next
    })
}

/// Returns whether a set is a part of another one: one of [`around`].
fn is_within(inner: Set, outer: Set, parents: &Parents) -> bool {
    let (mut known, mut steps, mut length) = (None, 0_u32, 32_u32);
    let mut set = inner;
    while set != outer {
        let next = match next_around(set, parents) {
            Some(next) if Some(next) != known => next,
            _ => return false,
        };
        steps += 1;
        if steps == length {
            (known, steps, length) = (Some(next), 0, 2 * length);
        }
        set = next;
    }
    true
}

/// The lanes that have left a loop, in a register: compilers set it to 0 before the loop, add lanes to it, and make these inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    /// The instruction that sets it to 0. It is a condition whose others are the lanes that have left.
    start: Condition,
    /// The lanes that are those before the start, together with the register. `None`: the active ones.
    with: Option<Set>,
}

/// The knowledge before an instruction.
#[derive(Debug)]
struct State {
    exec: Mask,
    /// By the number of the first register.
    registers: Few<u16, Mask>,
    /// The registers with lanes that have left a loop.
    left: Few<u16, Left>,
    /// Conditions in whose pools lanes may wait.
    open: Few<Condition, ()>,
    /// Sets of which lanes may be inactive and in no pool.
    lost: Few<Set, ()>,
}

/// The knowledge before an instruction, elsewhere in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
struct View<'a> {
    exec: Mask,
    registers: &'a [(u16, Mask)],
    left: &'a [(u16, Left)],
    open: &'a [(Condition, ())],
    lost: &'a [(Set, ())],
}

impl View<'_> {
    /// The registers that something is known about.
    fn held(self) -> Scalars {
        let registers = self.registers.iter().map(|(number, _)| *number);
        let registers = registers.chain(self.left.iter().map(|(number, _)| *number));
        registers.fold(0, |all, number| all | 1 << number)
    }

    /// Returns whether the active lanes, together with these, are those before the loop.
    fn is_active(self, left: Left) -> bool {
        left.with.is_none_or(|set| self.exec == Mask::Is(set))
    }
}

/// The knowledge before many stretches: it takes few pieces of memory.
#[derive(Default)]
struct Store {
    /// EXEC, and the ends of what is in the other pieces.
    all: Vec<(Mask, [usize; 4])>,
    registers: Vec<(u16, Mask)>,
    left: Vec<(u16, Left)>,
    open: Vec<(Condition, ())>,
    lost: Vec<(Set, ())>,
}

impl Store {
    /// Adds knowledge, and returns its number.
    fn add(&mut self, view: View<'_>) -> u32 {
        self.registers.extend_from_slice(view.registers);
        self.left.extend_from_slice(view.left);
        self.open.extend_from_slice(view.open);
        self.lost.extend_from_slice(view.lost);
        self.all.push((view.exec, self.ends()));
        self.all.len() as u32 - 1
    }

    fn ends(&self) -> [usize; 4] {
        let Self {
            registers,
            left,
            open,
            lost,
            ..
        } = self;
        [registers.len(), left.len(), open.len(), lost.len()]
    }

    fn get(&self, number: u32) -> View<'_> {
        let number = number as usize;
        let (exec, ends) = self.all[number];
        let starts = number
            .checked_sub(1)
            .map_or([0; 4], |last| self.all[last].1);
        View {
            exec,
            registers: &self.registers[starts[0]..ends[0]],
            left: &self.left[starts[1]..ends[1]],
            open: &self.open[starts[2]..ends[2]],
            lost: &self.lost[starts[3]..ends[3]],
        }
    }

    /// Keeps the first so many.
    fn truncate(&mut self, count: usize) {
        let ends = count.checked_sub(1).map_or([0; 4], |last| self.all[last].1);
        self.all.truncate(count);
        self.registers.truncate(ends[0]);
        self.left.truncate(ends[1]);
        self.open.truncate(ends[2]);
        self.lost.truncate(ends[3]);
    }
}

/// A map or a set of few keys, which is often copied and compared: in one piece of memory, by rising key.
#[derive(Debug)]
struct Few<K, V>(Vec<(K, V)>);

impl<K: Ord + Copy, V: Copy> Few<K, V> {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn get(&self, key: K) -> Option<V> {
        value_of(&self.0, key)
    }

    /// Sets it to these entries, and keeps the memory that it has.
    fn set(&mut self, entries: &[(K, V)]) {
        self.0.clear();
        self.0.extend_from_slice(entries);
    }

    fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    fn insert(&mut self, key: K, value: V) {
        let place = self.0.partition_point(|(own, _)| *own < key);
        match self.0.get_mut(place) {
            Some(entry) if entry.0 == key => entry.1 = value,
            _ => self.0.insert(place, (key, value)),
        }
    }

    fn retain(&mut self, mut is_kept: impl FnMut(K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| is_kept(*key, value));
    }

    fn keys(&self) -> impl Iterator<Item = K> {
        self.0.iter().map(|(key, _)| *key)
    }
}

impl<K: Ord + Copy> Few<K, ()> {
    /// Sets it to all keys of two others.
    fn unite(&mut self, one: &[(K, ())], another: &[(K, ())]) {
        let all = &mut self.0;
        all.clear();
        if one == another {
            all.extend_from_slice(one);
            return;
        }
        let (mut one, mut another) = (one.iter().peekable(), another.iter().peekable());
        while let (Some(a), Some(b)) = (one.peek().copied(), another.peek().copied()) {
            all.push(*a.min(b));
            one.next_if(|_| a <= b);
            another.next_if(|_| b <= a);
        }
        all.extend(one.chain(another));
    }
}

/// The value of a key in the entries of a map.
fn value_of<K: Eq, V: Copy>(entries: &[(K, V)], key: K) -> Option<V> {
    let mut entries = entries.iter();
    entries
        .find(|(own, _)| *own == key)
        .map(|(_, value)| *value)
}

impl State {
    /// The knowledge at the start of a function.
    const fn new() -> Self {
        Self {
            exec: Mask::Is(Set::Entry),
            registers: Few::new(),
            left: Few::new(),
            open: Few::new(),
            lost: Few::new(),
        }
    }

    fn view(&self) -> View<'_> {
        View {
            exec: self.exec,
            registers: &self.registers.0,
            left: &self.left.0,
            open: &self.open.0,
            lost: &self.lost.0,
        }
    }

    /// Sets it to other knowledge, and keeps the memory that it has.
    fn set(&mut self, view: View<'_>) {
        self.exec = view.exec;
        self.registers.set(view.registers);
        self.left.set(view.left);
        self.open.set(view.open);
        self.lost.set(view.lost);
    }

    /// Sets it to the knowledge if one or another may be the case.
    fn join(&mut self, one: View<'_>, other: View<'_>, parents: &Parents) {
        let join = |a: Mask, b: Mask| match a == b {
            true => a,
            false => common(a, b, parents),
        };
        self.exec = join(one.exec, other.exec);
        let registers = one.registers.iter().filter_map(|(number, mask)| {
            let joined = join(*mask, value_of(other.registers, *number)?);
            (joined != Mask::Unknown).then_some((*number, joined))
        });
        self.registers.0.clear();
        self.registers.0.extend(registers);
        let left = one.left.iter().filter_map(|(number, known)| {
            let another = value_of(other.left, *number)?;
            let is_active = one.is_active(*known) && other.is_active(another);
            let with = match known.with == another.with {
                true => known.with,
                false => is_active.then_some(None)?,
            };
            let start = known.start;
            (start == another.start).then_some((*number, Left { start, with }))
        });
        self.left.0.clear();
        self.left.0.extend(left);
        self.open.unite(one.open, other.open);
        self.lost.unite(one.lost, other.lost);
    }

    /// The mask in an operand.
    fn mask(&self, operand: Operand) -> Mask {
        if operand == Operand::EXEC {
            return self.exec;
        }
        let number = operand.scalar_index().map(|number| number as u16);
        let known = number.and_then(|number| self.registers.get(number));
        known.unwrap_or(Mask::Unknown)
    }

    /// The registers that something is known about.
    fn held(&self) -> Scalars {
        self.view().held()
    }

    /// Returns whether the active lanes, together with these, are those before the loop.
    fn is_active(&self, left: Left) -> bool {
        self.view().is_active(left)
    }

    /// The lanes in an operand that have left a loop, if all others of it are active.
    fn left(&self, operand: Operand) -> Option<(u16, Left)> {
        let number = operand.scalar_index()? as u16;
        let left = self.left.get(number);
        left.filter(|left| self.is_active(*left))
            .map(|left| (number, left))
    }

    /// Gives the active lanes a name: those before this condition. Returns whether less is known of them than before.
    fn name_active(&mut self, condition: Condition, parents: &mut Parents) -> bool {
        self.forget(condition, parents);
        let is_new = set_parent(condition, self.exec, parents);
        let set = before(condition, parents);
        self.exec = Mask::Is(set);
        for (_, left) in &mut self.left.0 {
            left.with = left.with.or(Some(set));
        }
        is_new
    }

    /// Forgets what follows from a condition, which is evaluated again.
    fn forget(&mut self, condition: Condition, parents: &Parents) {
        if parents.get(condition).is_none() {
            // It is evaluated for the first time.
            return;
        }
        let depends = |set: Set| {
            let mut sets = around(set, parents);
            sets.any(|set| set.condition() == Some(condition))
        };
        let is_foreign = |mask: Mask| !mask.bound().is_some_and(depends);
        self.registers.retain(|_, mask| is_foreign(*mask));
        let exec = self.exec;
        self.left.retain(|_, left| {
            if left.with.is_some_and(|set| exec == Mask::Is(set)) {
                left.with = None;
            }
            let is_over = left.start == condition || depends(before(left.start, parents));
            !is_over && !left.with.is_some_and(depends)
        });
        let outer = |set: Set| {
            let mut sets = Vec::new();
            for set in around(set, parents) {
                if sets.contains(&set) {
                    break;
                }
                sets.push(set);
            }
            let last = sets
                .iter()
                .rposition(|set| set.condition() == Some(condition));
            last.and_then(|last| sets.get(last + 1).copied())
        };
        if !is_foreign(self.exec) {
            let next = self.exec.bound().and_then(outer);
            self.exec = next.map_or(Mask::Unknown, Mask::PartOf);
        }
        let old: Vec<Set> = self.lost.keys().filter(|set| depends(*set)).collect();
        self.lost.retain(|set, ()| !depends(set));
        for set in old {
            self.lost.insert(outer(set).unwrap_or(Set::Entry), ());
        }
    }
}

/// The knowledge before each stretch, if it can be reached.
struct States {
    store: Store,
    /// The numbers in the store.
    numbers: Vec<Option<u32>>,
}

impl States {
    fn get(&self, stretch: usize) -> Option<View<'_>> {
        self.numbers[stretch].map(|number| self.store.get(number))
    }
}

/// The steps of a function, and the knowledge before each stretch. `None`: the function is too large.
fn states(function: &Function<'_>, parents: &mut Parents) -> Option<(Steps, States)> {
    let steps = Steps::new(function)?;
    for restart in [Restart::AtOnce, Restart::AtEnd] {
        parents.clear();
        let mut search = MaskSearch::new(function, &steps, restart);
        // The stretches that are looked at in all. Few conditions in loops make it start again.
        let mut rest = 8 * function.stretches.len() + 1024;
        while rest > 0 {
            let is_stale = search.visit_all(parents, &mut rest);
            if !is_stale {
                let before = search.before;
                return Some((steps, before));
            }
            if rest == 0 {
                break;
            }
            // All visits up to this one would be the same.
            let again = parents.changed;
            rest = rest.saturating_sub(again as usize);
            search.go_back(again);
            parents.rewind(again);
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

/// A search for the knowledge before each stretch.
struct MaskSearch<'a, 'data> {
    function: &'a Function<'data>,
    steps: &'a Steps,
    restart: Restart,
    before: States,
    /// The stretches that are to be visited: the first one comes next.
    waiting: Waiting,
    /// The visited stretches, and the knowledge that was in the store before each visit.
    visits: Vec<(usize, usize)>,
    changes: Vec<Change>,
    /// The knowledge within a stretch, and that of two ways.
    state: State,
    joined: State,
}

/// A set of stretches, a bit for each.
struct Waiting(Vec<u64>);

impl Waiting {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn pop_first(&mut self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        let bit = self.0[word].trailing_zeros() as usize;
        let stretch = 64 * word + bit;
        self.remove(stretch);
        Some(stretch)
    }

    /// Returns whether the stretch was not in the set.
    fn insert(&mut self, stretch: usize) -> bool {
        let word = &mut self.0[stretch / 64];
        let bit = 1 << (stretch % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn remove(&mut self, stretch: usize) {
        self.0[stretch / 64] &= !(1 << (stretch % 64));
    }
}

/// A change of the knowledge before a stretch.
struct Change {
    /// The number of the visit.
    visit: u32,
    stretch: usize,
    /// The knowledge before the change.
    old: Option<u32>,
    /// The stretch was not waiting.
    is_new: bool,
}

impl<'a, 'data> MaskSearch<'a, 'data> {
    fn new(function: &'a Function<'data>, steps: &'a Steps, restart: Restart) -> Self {
        let mut store = Store::default();
        let start = store.add(State::new().view());
        let mut numbers = vec![None; function.stretches.len()];
        let mut waiting = Waiting::new(function.stretches.len());
        for entry in &function.entries {
            let stretch = function.stretch_of(*entry);
            numbers[stretch] = Some(start);
            waiting.insert(stretch);
        }
        Self {
            function,
            steps,
            restart,
            before: States { store, numbers },
            waiting,
            visits: Vec::new(),
            changes: Vec::new(),
            state: State::new(),
            joined: State::new(),
        }
    }

    /// Visits all stretches that are waiting. Returns whether less is known of the lanes before a condition than before, or
    /// there are no more stretches to look at.
    fn visit_all(&mut self, parents: &mut Parents, rest: &mut usize) -> bool {
        let mut is_stale = false;
        while let Some(stretch) = self.waiting.pop_first() {
            parents.visit = self.visits.len() as u32;
            self.visits.push((stretch, self.before.store.all.len()));
            *rest = rest.saturating_sub(1);
            if *rest == 0 {
                return true;
            }
            is_stale |= self.visit(stretch, parents);
            if is_stale && self.restart == Restart::AtOnce {
                return true;
            }
        }
        is_stale
    }

    /// Follows the knowledge from a stretch to those that come next. Returns whether less is known of the lanes before a
    /// condition than before.
    fn visit(&mut self, stretch: usize, parents: &mut Parents) -> bool {
        let States { store, numbers } = &mut self.before;
        let Some(number) = numbers[stretch] else {
            return false;
        };
        let start = store.get(number);
        let function = self.function;
        let mut is_stale = false;
        let mut held = start.held();
        // The knowledge changes in one place that keeps its memory.
        let state = &mut self.state;
        let mut is_changed = false;
        for step in self.steps.of(stretch) {
            if !step.matters(held) {
                continue;
            }
            if !std::mem::replace(&mut is_changed, true) {
                state.set(start);
            }
            if step.take(function, state, parents) {
                // Knowledge that follows from the lanes before the condition is no longer true.
                is_stale = true;
                if self.restart == Restart::AtOnce {
                    return true;
                }
            }
            held = state.held();
        }
        let mut stored = (!is_changed).then_some(number);
        for next in function.stretches_behind(stretch).iter().copied() {
            let joined = match numbers[next] {
                Some(known) if Some(known) == stored => continue,
                Some(known) => {
                    let known = store.get(known);
                    let state = stored.map_or(self.state.view(), |number| store.get(number));
                    if known == state {
                        continue;
                    }
                    self.joined.join(known, state, parents);
                    if self.joined.view() == known {
                        continue;
                    }
                    store.add(self.joined.view())
                }
                None => *stored.get_or_insert_with(|| store.add(self.state.view())),
            };
            self.changes.push(Change {
                visit: parents.visit,
                stretch: next,
                old: numbers[next].replace(joined),
                is_new: self.waiting.insert(next),
            });
        }
        is_stale
    }

    /// Takes back all visits from the one with this number on.
    fn go_back(&mut self, visit: u32) {
        while self.visits.len() > visit as usize {
            let Some((stretch, stored)) = self.visits.pop() else {
                return;
            };
            let number = self.visits.len() as u32;
            let is_own = |change: &mut Change| change.visit == number;
            while let Some(change) = self.changes.pop_if(is_own) {
                self.before.numbers[change.stretch] = change.old;
                if change.is_new {
                    self.waiting.remove(change.stretch);
                }
            }
            self.waiting.insert(stretch);
            self.before.store.truncate(stored);
        }
    }
}

/// An instruction that may change what is known, decoded once: most are looked at several times.
#[derive(Clone, Copy, Debug)]
struct Step {
    number: usize,
    effect: Effect,
    /// The scalar registers that it writes, or a callee.
    writes: Scalars,
    /// These registers, and those before each of them: pairs that start there change, too.
    touches: Scalars,
    writes_exec: bool,
    /// It may change what is known, whatever that is.
    matters: bool,
    /// It keeps only active lanes that are not in this mask.
    without: Option<Operand>,
}

/// The effect of an instruction on masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// A call of a function that keeps the active lanes.
    KeptCall,
    /// All may be different behind it.
    Unknown,
    /// An operation on masks of whole waves.
    Masks(Operation, Operands),
    /// A vector comparison whose result is in scalar registers.
    Compare,
    /// A vector comparison that keeps a part of the active lanes.
    CompareExec,
    /// It writes registers.
    Write,
}

/// An operation on masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Move,
    AndSave,
    /// The first source's inverse and EXEC.
    RestSave,
    /// The first source and EXEC's inverse.
    InactiveSave,
    XorSave,
    OrSave,
    Or,
    And,
    AndNot,
    Xor,
}

/// The operands of an operation on masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operands {
    dst: Operand,
    src: [Operand; 2],
    /// The first source is the constant 0.
    is_empty: bool,
}

impl Step {
    fn new(function: &Function<'_>, number: usize) -> Option<Self> {
        const OF_MASKS: [&str; 5] = ["s_mov_", "s_and", "s_or", "s_xor_", "v_cmp_"];
        let ins = &function.all[number];
        let is_trap = matches!(ins.flow, Flow::Trap);
        let is_always = ins.is_call() || ins.writes_exec || is_trap;
        let leaves = matches!(ins.flow, Flow::End | Flow::Indirect);
        if ins.writes == 0 && !is_always && !leaves {
            return None;
        }
        let name = ins.mnemonic;
        let is_of_masks = || OF_MASKS.iter().any(|start| name.starts_with(start));
        let kept = function.kept_calls.get(&number);
        let effect = match kept {
            Some(_) => Effect::KeptCall,
            None if ins.is_call() || is_trap => Effect::Unknown,
            None if name.starts_with("v_cmpx") => Effect::CompareExec,
            None if name.starts_with("v_cmp_") => Effect::Compare,
            None => Self::operation(function, ins).unwrap_or(Effect::Write),
        };
        let is_rest = name.starts_with("s_andn2_b") || name.starts_with("s_and_not1_b");
        let without = || {
            let decoded = function.code.decode(ins.address)?;
            let is_own = decoded.dst == Operand::EXEC && decoded.src[0] == Operand::EXEC;
            is_own.then_some(decoded.src[1])
        };
        let without = (is_rest && ins.writes_exec).then(without).flatten();
        let writes = ins.writes | kept.copied().unwrap_or_default();
        Some(Self {
            number,
            effect,
            writes,
            touches: writes | writes >> 1,
            writes_exec: ins.writes_exec,
            matters: is_always || ins.writes != 0 && is_of_masks(),
            without,
        })
    }

    /// The operation of an instruction on masks of whole waves.
    fn operation(function: &Function<'_>, ins: &Ins) -> Option<Effect> {
        let suffix = match function.code.wave {
            WaveSize::W32 => "_b32",
            WaveSize::W64 => "_b64",
        };
        let name = ins.mnemonic.strip_prefix("s_")?.strip_suffix(suffix)?;
        let operation = match name {
            "mov" => Operation::Move,
            "and_saveexec" => Operation::AndSave,
            "andn1_saveexec" | "and_not0_saveexec" => Operation::RestSave,
            "andn2_saveexec" | "and_not1_saveexec" => Operation::InactiveSave,
            "xor_saveexec" => Operation::XorSave,
            "or_saveexec" => Operation::OrSave,
            "or" => Operation::Or,
            "and" => Operation::And,
            "andn2" | "and_not1" => Operation::AndNot,
            "xor" => Operation::Xor,
            _ => return None,
        };
        let decoded = function.code.decode(ins.address)?;
        let operands = Operands {
            dst: decoded.dst,
            src: [decoded.src[0], decoded.src[1]],
            is_empty: constant(&decoded, decoded.src[0]) == Some(0),
        };
        Some(Effect::Masks(operation, operands))
    }

    /// Returns whether it may change what is known, if this is about the registers that are `held`.
    fn matters(&self, held: Scalars) -> bool {
        self.matters || self.touches & held != 0
    }
}

/// The instructions of a function that may change what is known, and those that leave it.
struct Steps {
    all: Vec<Step>,
    /// The end of those of each stretch.
    ends: Vec<usize>,
}

impl Steps {
    fn new(function: &Function<'_>) -> Option<Self> {
        let count = function.stretches.len();
        if count > MAX_STRETCHES {
            return None;
        }
        let mut all = Vec::new();
        let mut ends = Vec::with_capacity(count);
        for stretch in 0..count {
            let numbers = function.instructions_of(stretch);
            all.extend(numbers.filter_map(|number| Step::new(function, number)));
            ends.push(all.len());
        }
        Some(Self { all, ends })
    }

    /// Those of a stretch.
    fn of(&self, stretch: usize) -> &[Step] {
        let start = stretch.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[stretch]]
    }
}

/// Finds the ways of lanes in a function, and the stretches whose lanes are those of its entry.
/// `callees_end`: a callee may end the wave.
pub(super) fn find(function: &Function<'_>, callees_end: bool) -> Arc<LaneWays> {
    let callees_end = callees_end && function.calls;
    let find = || KnownMasks::find(function).map(|known| known.ways(callees_end));
    let lanes = &function.lanes;
    lanes.get_or_find(callees_end, || find().unwrap_or_default())
}

/// As [`find`], and the stretches with an active lane. `begins_active`: at the entry, there is one.
pub(super) fn find_active(
    function: &Function<'_>,
    callees_end: bool,
    begins_active: bool,
) -> LaneWays {
    let Some(known) = KnownMasks::find(function) else {
        return LaneWays::default();
    };
    let mut found = known.ways(callees_end);
    for stretch in known.active(begins_active) {
        found.stretches[stretch].is_active = true;
    }
    for (number, stretch) in found.stretches.iter_mut().enumerate() {
        // A mask may have a name whose lanes come from one that is not known.
        let is_of_entry = |mask: Mask| {
            let bound = mask.bound();
            bound.is_some_and(|set| is_within(set, Set::Entry, &known.parents))
        };
        let exec = known.before.get(number).map(|state| state.exec);
        stretch.is_bounded = exec.is_none_or(is_of_entry);
    }
    found
}

/// Returns whether the lanes of the entry are active wherever a function returns. Its ways of lanes are known after that.
pub(super) fn returns_whole(function: &Function<'_>) -> bool {
    let known = KnownMasks::find(function);
    let callees: &[bool] = match function.calls {
        true => &[false, true],
        false => &[false],
    };
    for callees_end in callees {
        let ways = || known.as_ref().map(|known| known.ways(*callees_end));
        let lanes = &function.lanes;
        lanes.get_or_find(*callees_end, || ways().unwrap_or_default());
    }
    known.is_some_and(|known| known.returns_whole())
}

/// Sets of lanes that are known not to be empty, and whether EXEC is not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Present {
    sets: BTreeSet<Set>,
    is_active: bool,
}

impl Present {
    /// Returns whether a set has a part that is not empty.
    fn has(&self, set: Set, parents: &Parents) -> bool {
        let mut sets = self.sets.iter();
        sets.any(|part| is_within(*part, set, parents))
    }

    /// Notes behind a branch that EXEC is this set, and, if the branch looked for an active lane, whether there is one.
    fn note(&mut self, set: Set, is_active: Option<bool>, parents: &Parents) {
        let other = match set {
            Set::Kept(at) => Some((at, Set::Rest(at))),
            Set::Rest(at) => Some((at, Set::Kept(at))),
            Set::Entry | Set::Before(_) => None,
        };
        match (is_active, other) {
            (Some(false), Some((at, other))) if self.has(before(at, parents), parents) => {
                // One part of lanes is empty, and both together are not.
                self.sets.insert(other);
            }
            _ if self.is_active => _ = self.sets.insert(set),
            _ => {}
        }
    }

    /// The knowledge if both may be the case.
    fn join(&self, other: &Self, parents: &Parents) -> Self {
        let both = self.sets.union(&other.sets).copied();
        let both = both.filter(|set| self.has(*set, parents) && other.has(*set, parents));
        Self {
            sets: both.collect(),
            is_active: self.is_active && other.is_active,
        }
    }
}

/// The knowledge before each stretch of a function.
struct KnownMasks<'a, 'data> {
    function: &'a Function<'data>,
    steps: Steps,
    parents: Parents,
    before: States,
}

impl<'a, 'data> KnownMasks<'a, 'data> {
    /// `None`: the function is too large.
    fn find(function: &'a Function<'data>) -> Option<Self> {
        let mut parents = Parents::new(function);
        let (steps, before) = states(function, &mut parents)?;
        Some(Self {
            function,
            steps,
            parents,
            before,
        })
    }

    /// The ways of lanes.
    fn ways(&self, callees_end: bool) -> LaneWays {
        let function = self.function;
        let mut found = ways(
            function,
            &self.steps,
            &self.before,
            &mut self.parents.clone(),
            callees_end,
        );
        for (number, stretch) in found.stretches.iter_mut().enumerate() {
            match self.before.get(number).map(|state| state.exec) {
                Some(Mask::Is(Set::Entry)) => stretch.are_of_entry = true,
                Some(Mask::Is(Set::Kept(at))) => {
                    stretch.behind = Some(function.stretch_of(at as usize) as u32 + 1);
                }
                _ => {}
            }
        }
        found
    }

    /// The stretches in which some lane is active whenever a wave comes there: a wave begins with one, branches look for one, and
    /// lanes that are activated again are those from before a condition.
    fn active(&self, begins_active: bool) -> Vec<usize> {
        let function = self.function;
        let parents = &mut self.parents.clone();
        let mut state = State::new();
        let mut before: Vec<Option<Present>> = vec![None; function.stretches.len()];
        let mut waiting: BTreeSet<usize> = BTreeSet::new();
        for entry in &function.entries {
            let stretch = function.stretch_of(*entry);
            let sets = begins_active.then_some(Set::Entry);
            before[stretch] = Some(Present {
                sets: sets.into_iter().collect(),
                is_active: begins_active,
            });
            waiting.insert(stretch);
        }
        let mut rest = 16 * function.stretches.len() + 1024;
        while let Some(stretch) = waiting.pop_first() {
            rest = rest.saturating_sub(1);
            let (Some(mut present), Some(start)) =
                (before[stretch].clone(), self.before.get(stretch))
            else {
                continue;
            };
            if rest == 0 {
                return Vec::new();
            }
            state.set(start);
            let range = function.instructions_of(stretch);
            for step in self.steps.of(stretch) {
                let earlier = state.exec;
                step.take(function, &mut state, parents);
                step.follow(function, &mut present, [earlier, state.exec], parents);
            }
            let Some(last) = range.last() else { continue };
            let goal = function.goal(last);
            let without_lanes = goal.and_then(|_| function.is_taken_without_lanes(last));
            for next in function.following(last) {
                let is_taken = Some(next) == goal;
                let mut behind = present.clone();
                let is_active = without_lanes.map(|is_empty| is_empty != is_taken);
                behind.is_active = is_active.unwrap_or(behind.is_active);
                if let Mask::Is(set) = state.exec {
                    behind.note(set, is_active, parents);
                }
                let next = function.stretch_of(next);
                let joined = match &before[next] {
                    Some(known) => known.join(&behind, parents),
                    None => behind,
                };
                if before[next].as_ref() != Some(&joined) {
                    before[next] = Some(joined);
                    waiting.insert(next);
                }
            }
        }
        let numbers = before.iter().enumerate();
        let active = numbers.filter(|(_, present)| {
            let present = present.as_ref();
            present.is_some_and(|present| present.is_active)
        });
        active.map(|(stretch, _)| stretch).collect()
    }

    /// Returns whether the lanes of the entry are active wherever the function returns.
    fn returns_whole(&self) -> bool {
        let function = self.function;
        let is_return = |number: &usize| {
            let is_jump = function.jumps.contains_key(number);
            matches!(function.all[*number].flow, Flow::Indirect) && !is_jump
        };
        let mut parents = self.parents.clone();
        let mut state = State::new();
        (0..function.all.len()).filter(is_return).all(|number| {
            let stretch = function.stretch_of(number);
            let Some(start) = self.before.get(stretch) else {
                // No wave comes there.
                return true;
            };
            state.set(start);
            let steps = self.steps.of(stretch).iter();
            for earlier in steps.take_while(|step| step.number < number) {
                earlier.take(function, &mut state, &mut parents);
            }
            state.exec == Mask::Is(Set::Entry)
        })
    }
}

/// The ways of lanes where EXEC changes, by what is known before each stretch.
fn ways(
    function: &Function<'_>,
    steps: &Steps,
    states: &States,
    parents: &mut Parents,
    callees_end: bool,
) -> LaneWays {
    // Two pools for each condition: for the lanes that it keeps, and for the others.
    let pool =
        |condition: Condition, is_rest: bool| LaneEnd::Pool(2 * condition + u32::from(is_rest));
    let both = |condition: Condition| [pool(condition, true), pool(condition, false)];
    let mut found = LaneWays {
        stretches: vec![StretchLanes::default(); function.stretches.len()],
        ..LaneWays::default()
    };
    // Pools whose lanes may go to places that are not known.
    let mut leaking: BTreeSet<Condition> = BTreeSet::new();
    let (mut state, mut earlier) = (State::new(), State::new());
    for stretch in 0..function.stretches.len() {
        let Some(start) = states.get(stretch) else {
            continue;
        };
        let state = &mut state;
        state.set(start);
        for step in steps.of(stretch) {
            let number = step.number;
            let ins = &function.all[number];
            let is_way = matches!(ins.flow, Flow::End | Flow::Indirect);
            if !is_way && !step.matters(state.held()) {
                continue;
            }
            let condition = number as Condition;
            let is_plain = matches!(ins.flow, Flow::Next | Flow::Branch { .. });
            if is_plain && (!ins.writes_exec || ins.ends_block()) {
                if state.open.contains(condition) {
                    // Lanes that have left a loop still wait when it starts again.
                    leaking.insert(condition);
                }
                step.take(function, state, parents);
                continue;
            }
            earlier.set(state.view());
            let left = step.leaves_loop(&earlier);
            step.take(function, state, parents);
            let leaves =
                matches!(ins.flow, Flow::Indirect) && !function.jumps.contains_key(&number);
            let is_kept = !callees_end && function.kept_calls.contains_key(&number);
            if leaves || ins.is_call() && !is_kept {
                leaking.extend(earlier.open.keys());
            }
            if matches!(ins.flow, Flow::End | Flow::Trap) {
                // Lanes that wait end with the wave.
                let pools = earlier.open.keys().flat_map(both);
                let ways = pools.map(|pool| (pool, LaneEnd::Outside));
                found.ways.extend(ways);
            }
            if !ins.writes_exec || ins.ends_block() {
                continue;
            }
            let [own, next] =
                [stretch, stretch + 1].map(|stretch| LaneEnd::Stretch(stretch as u32));
            found.stretches[stretch].has_ways = true;
            let mut add = |from: LaneEnd, to: LaneEnd| found.ways.push((from, to));
            if let Some((_, Left { start, .. })) = left {
                add(own, next);
                add(own, pool(start, true));
                continue;
            }
            match (earlier.exec, state.exec) {
                (_, Mask::Is(Set::Kept(at))) if at == condition => {
                    if earlier.open.contains(at) {
                        leaking.insert(at);
                    }
                    add(own, next);
                    add(own, pool(at, true));
                }
                (Mask::Unknown, _) | (_, Mask::Unknown) => {
                    leaking.extend(earlier.open.keys());
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
                    for condition in earlier.open.keys() {
                        let is_whole = is_within(before(condition, parents), outer, parents);
                        // A pool of active lanes is empty.
                        for end in both(condition) {
                            // One part of the lanes before it may be active without the other.
                            let is_part = outer == Set::Kept(condition)
                                && end == pool(condition, false)
                                || outer == Set::Rest(condition) && end == pool(condition, true);
                            if !is_whole && !is_part {
                                continue;
                            }
                            let is_active = exec == Mask::Is(Set::Kept(condition))
                                && end == pool(condition, false)
                                || exec == Mask::Is(Set::Rest(condition))
                                    && end == pool(condition, true);
                            if !is_active {
                                add(end, next);
                            }
                        }
                    }
                    let mut lost = earlier.lost.keys();
                    if lost.any(|set| is_within(set, outer, parents)) {
                        add(LaneEnd::Outside, next);
                    }
                }
                (_, Mask::PartOf(_)) if is_narrowing(function, number) => {
                    add(own, next);
                    add(own, LaneEnd::Outside);
                }
                _ => {
                    leaking.extend(earlier.open.keys());
                    add(own, next);
                    add(own, LaneEnd::Outside);
                    add(LaneEnd::Outside, next);
                }
            }
        }
    }
    found.ways.sort_unstable();
    found.ways.dedup();
    // No lanes leave a pool that none enter.
    let entered: BTreeSet<LaneEnd> = found.ways.iter().map(|(_, to)| *to).collect();
    found.ways.retain(|(from, _)| match from {
        LaneEnd::Pool(_) => entered.contains(from),
        LaneEnd::Stretch(_) | LaneEnd::Outside => true,
    });
    // Pools get numbers one after the other.
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut rename = |end: &mut LaneEnd| match end {
        LaneEnd::Pool(pool) if leaking.contains(&(*pool / 2)) => *end = LaneEnd::Outside,
        LaneEnd::Pool(pool) => {
            let next = numbers.len() as u32;
            *pool = *numbers.entry(*pool).or_insert(next);
        }
        LaneEnd::Stretch(_) | LaneEnd::Outside => {}
    };
    for (from, to) in &mut found.ways {
        rename(from);
        rename(to);
    }
    found.pools = numbers.len() as u32;
    found.ways.shrink_to_fit();
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

impl Step {
    /// Executes the instruction. Returns whether less is known of the lanes before a condition.
    fn take(&self, function: &Function<'_>, state: &mut State, parents: &mut Parents) -> bool {
        let wave = function.code.wave;
        let condition = self.number as Condition;
        match self.effect {
            Effect::KeptCall => {
                forget_written(state, self.writes, wave);
                return false;
            }
            Effect::Unknown => {
                state.exec = Mask::Unknown;
                state.registers = Few::new();
                state.left = Few::new();
                return false;
            }
            _ if self.writes == 0 => return false,
            _ => {}
        }
        let mask = |mask: Mask| (mask != Mask::Unknown).then_some(mask);
        let mut is_new = false;
        let mut result = None;
        // The lanes in its result that have left a loop, and the register with those that leave it here.
        let mut left_result = None;
        let leaving = self.leaves_loop(state);
        let mut exec = state.exec;
        if let Effect::Masks(operation, found) = self.effect {
            let writes_exec = found.dst == Operand::EXEC;
            match operation {
                Operation::Move => {
                    let is_kept = found.src[0] == Operand::EXEC && !writes_exec;
                    let is_empty = found.is_empty && !writes_exec;
                    if is_kept && !matches!(state.exec, Mask::Is(_)) {
                        // The lanes get a name, as a comparison may follow that narrows them.
                        is_new = state.name_active(condition, parents);
                    }
                    if is_empty && state.exec != Mask::Unknown {
                        // A loop may follow, whose lanes leave one after the other.
                        is_new = state.name_active(condition, parents);
                        left_result = Some(Left {
                            start: condition,
                            with: Some(before(condition, parents)),
                        });
                    }
                    exec = state.exec;
                    let moved = state.mask(found.src[0]);
                    match writes_exec {
                        true => exec = moved,
                        false => result = mask(moved),
                    }
                }
                Operation::AndSave => {
                    (exec, is_new) = narrow(condition, state, parents);
                    result = mask(state.exec);
                }
                Operation::RestSave => {
                    result = mask(state.exec);
                    exec = state.exec.part();
                }
                Operation::InactiveSave => {
                    // The lanes of the source that are not active.
                    let source = state.mask(found.src[0]);
                    result = mask(state.exec);
                    exec = without(source, state.exec, parents);
                }
                Operation::XorSave => {
                    result = mask(state.exec);
                    exec = Mask::Unknown;
                }
                Operation::OrSave => {
                    let source = state.mask(found.src[0]);
                    result = mask(state.exec);
                    exec = union(state.exec, source, parents);
                }
                Operation::Or if writes_exec => {
                    let [a, b] = operands(state, &found);
                    exec = match left_and(state, &found) {
                        // All that have left are active again.
                        Some((left, Operand::EXEC)) if state.is_active(left) => {
                            Mask::Is(before(left.start, parents))
                        }
                        _ => union(a, b, parents),
                    };
                }
                Operation::Or => {
                    let more = left_and(state, &found);
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
                Operation::And => {
                    let [a, b] = operands(state, &found);
                    let part = match (a, b) {
                        (Mask::Unknown, b) => b.part(),
                        (a, _) => a.part(),
                    };
                    match writes_exec {
                        true if found.src[..2].contains(&Operand::EXEC) => {
                            (exec, is_new) = narrow(condition, state, parents);
                        }
                        true => exec = part,
                        false => result = mask(part),
                    }
                }
                Operation::AndNot => {
                    let [a, b] = operands(state, &found);
                    let rest = without(a, b, parents);
                    match writes_exec {
                        true => exec = rest,
                        false => result = mask(rest),
                    }
                }
                Operation::Xor => {
                    // The lanes of one that are not in the other, if that is a part of it.
                    let [a, b] = operands(state, &found);
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
            }
            forget_written(state, self.writes, wave);
            if let (Some(register), false) = (found.dst.scalar_index(), writes_exec) {
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
            forget_written(state, self.writes, wave);
            if self.effect == Effect::Compare
                && let Some(mask) = mask(state.exec.part())
            {
                // Its result has no lane that is not active.
                let register = self.writes.trailing_zeros() as u16;
                state.registers.insert(register, mask);
            }
            if self.writes_exec {
                // A vector comparison that writes EXEC keeps a part of the active lanes.
                match self.effect {
                    Effect::CompareExec => (exec, is_new) = narrow(condition, state, parents),
                    _ => exec = Mask::Unknown,
                }
            }
        }
        if self.writes_exec {
            let leaving = leaving.filter(|_| exec != Mask::Unknown);
            match leaving {
                Some((_, left)) => state.open.insert(left.start, ()),
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

    /// Follows which lanes are known to be there, past the instruction, with EXEC before and behind it.
    fn follow(
        &self,
        function: &Function<'_>,
        present: &mut Present,
        [earlier, exec]: [Mask; 2],
        parents: &Parents,
    ) {
        if matches!(self.effect, Effect::KeptCall) {
            return;
        }
        // A condition that is evaluated again has other lanes.
        let condition = self.number as Condition;
        let names = [Set::Kept(condition), before(condition, parents)].map(Mask::Is);
        if parents.get(condition).is_some() && names.contains(&exec) {
            let depends = |set: Set| {
                let mut sets = around(set, parents);
                sets.any(|set| set.condition() == Some(condition))
            };
            present.sets.retain(|set| !depends(*set));
            if present.is_active {
                present.sets.insert(before(condition, parents));
            }
        }
        if self.effect == Effect::Unknown {
            present.is_active = false;
        }
        if !self.writes_exec {
            return;
        }
        let decoded = function.code.decode(function.all[self.number].address);
        let name = function.all[self.number].mnemonic;
        let adds = decoded.is_some_and(|decoded| {
            name.starts_with("s_or_saveexec")
                || name.starts_with("s_or_b") && decoded.src[..2].contains(&Operand::EXEC)
        });
        let value = decoded.and_then(|decoded| constant(&decoded, decoded.src[0]));
        let is_set = name.starts_with("s_or_saveexec") || name.starts_with("s_mov_");
        // In waves of 32, no lanes have the high half.
        let is_low = decoded.is_some_and(|decoded| decoded.dst == Operand::EXEC);
        let is_set = is_set && value.is_some_and(|value| value != 0);
        let is_set = is_set && (is_low || name.starts_with("s_or_saveexec"));
        let is_present = match exec {
            Mask::Is(set) => present.has(set, parents) || exec == earlier && present.is_active,
            Mask::PartOf(_) | Mask::Unknown => false,
        };
        present.is_active = is_present || is_set || adds && present.is_active;
    }

    /// The lanes that it makes inactive, as they have left a loop, and their register.
    fn leaves_loop(&self, state: &State) -> Option<(u16, Left)> {
        let without = self.without.filter(|_| state.exec != Mask::Unknown)?;
        state.left(without)
    }
}

/// The source of an instruction that has lanes that have left a loop, and the other source.
fn left_and(state: &State, found: &Operands) -> Option<(Left, Operand)> {
    let [a, b] = found.src;
    let find = |one: Operand, other: Operand| {
        let number = one.scalar_index()? as u16;
        state.left.get(number).map(|left| (left, other))
    };
    find(a, b).or_else(|| find(b, a))
}

/// Notes that an instruction keeps some of the active lanes. Returns these, and whether less is known of the lanes before it.
fn narrow(number: Condition, state: &mut State, parents: &mut Parents) -> (Mask, bool) {
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
            state.lost.insert(bound, ());
            return;
        }
    };
    let is_outside = |set: Set| !is_within(set, outer, parents);
    // All of the lanes before it are active now.
    state
        .open
        .retain(|condition, ()| is_outside(before(condition, parents)));
    state.lost.retain(|set, ()| is_outside(set));
    let condition = match outer {
        Set::Kept(at) | Set::Rest(at) => Some(at),
        Set::Entry | Set::Before(_) => None,
    };
    let is_own = |at: Condition| {
        [Set::Kept(at), Set::Rest(at), before(at, parents)].contains(&bound)
            && state.exec == Mask::Is(bound)
    };
    match condition {
        // The others of its condition wait.
        Some(at) if is_own(at) => state.open.insert(at, ()),
        _ if is_outside(bound) || state.exec == Mask::Unknown => state.lost.insert(bound, ()),
        _ => {}
    }
}

/// The masks of both sources.
fn operands(state: &State, found: &Operands) -> [Mask; 2] {
    [state.mask(found.src[0]), state.mask(found.src[1])]
}

/// Forgets masks in registers that an instruction writes.
fn forget_written(state: &mut State, writes: Scalars, wave: WaveSize) {
    let registers = match wave {
        WaveSize::W32 => 1,
        WaveSize::W64 => 3,
    };
    let is_written = |number: u16| writes >> number & registers != 0;
    state.registers.retain(|number, _| !is_written(number));
    state.left.retain(|number, _| !is_written(number));
}

/// Notes the lanes before a condition. Returns whether others were known.
fn set_parent(condition: Condition, mask: Mask, parents: &mut Parents) -> bool {
    let known = parents.get(condition);
    let joined = match known {
        None => mask,
        Some(known) if known == mask => known,
        Some(known) => common(known, mask, parents),
    };
    parents.set(condition, joined);
    known.is_some_and(|known| known != joined)
}

/// The lanes of `a` that are not in `b`.
fn without(a: Mask, b: Mask, parents: &Parents) -> Mask {
    let is_around = |at: &Condition, set: Set| before(*at, parents) == set;
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
    let common = around(a, parents).find(|set| is_within(b, *set, parents));
    common.map_or(Mask::Unknown, Mask::PartOf)
}
