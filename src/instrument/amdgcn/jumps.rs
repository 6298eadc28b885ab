//! Jumps to addresses that the code computes from constants: the long branches of compilers and of Tensile.

use std::collections::{BTreeMap, HashMap};

use modelgpu_isa::{Condition, Flow, Instruction, Operand};

use super::code::{Code, Index, Ins, constant};

/// The most instructions between `s_getpc_b64` and the jump.
const MAX_WAY: usize = 14;

/// The goals of jumps, by the number of the jump: ELF addresses. `index` has the numbers of instructions by address.
///
/// The instructions between `s_getpc_b64` and `s_setpc_b64` are executed on what is known. A branch on a known condition is
/// followed: Tensile jumps forward or back by the sign of a constant.
pub(super) fn known(code: &Code<'_>, all: &[Ins], index: &Index) -> BTreeMap<usize, u64> {
    let starts: Vec<usize> = (0..all.len())
        .filter(|number| all[*number].mnemonic == "s_getpc_b64")
        .collect();
    let mut found = BTreeMap::new();
    if starts.is_empty() {
        return found;
    }
    let mut sources: HashMap<usize, Vec<usize>> = HashMap::new();
    for (number, ins) in all.iter().enumerate() {
        if let Some(goal) = ins.target().and_then(|target| index.get(target)) {
            sources.entry(goal).or_default().push(number);
        }
    }
    for first in starts {
        follow(code, all, index, &sources, first, &mut found);
    }
    found
}

/// Follows the code from one `s_getpc_b64`.
fn follow(
    code: &Code<'_>,
    all: &[Ins],
    index: &Index,
    sources: &HashMap<usize, Vec<usize>>,
    first: usize,
    found: &mut BTreeMap<usize, u64>,
) {
    let last = (first + MAX_WAY).min(all.len());
    let mut state = State::default();
    let mut seen = Vec::new();
    let mut at = first;
    while (first..last).contains(&at) && seen.len() < 2 * MAX_WAY {
        let ins = &all[at];
        let Some(decoded) = code.decode(ins.address) else {
            return;
        };
        seen.push(at);
        let leads = |from: usize, to: usize| {
            let sources = sources.get(&to).map_or(&[][..], Vec::as_slice);
            sources.contains(&from)
        };
        match ins.flow {
            Flow::Indirect => {
                let Some(goal) = state.pair(decoded.src[0]) else {
                    return;
                };
                // Nothing else leads into the way.
                let is_entered = (first + 1..=at).any(|to| {
                    let mut sources = sources.get(&to).into_iter().flatten();
                    sources.any(|from| !(first..last).contains(from))
                });
                if is_entered || found.contains_key(&at) {
                    return;
                }
                found.insert(at, goal);
                // One that a constant condition leads past never runs.
                let is_jump = |number: &usize| matches!(all[*number].flow, Flow::Indirect);
                for other in (first + 1..at).filter(is_jump) {
                    if !seen.contains(&other) {
                        found.entry(other).or_insert(goal);
                    }
                }
                for other in (at + 1..last).filter(is_jump) {
                    let same = code.decode(all[other].address);
                    let is_same = same.is_some_and(|same| same.src[0] == decoded.src[0]);
                    let is_led_to =
                        (at + 1..=other).any(|to| seen.iter().any(|from| leads(*from, to)));
                    if is_same && is_led_to {
                        found.entry(other).or_insert(goal);
                    }
                }
                return;
            }
            Flow::Branch {
                condition: Some(condition),
                ..
            } => {
                let taken = match (condition, state.scc) {
                    (Condition::Scc0, Some(scc)) => !scc,
                    (Condition::Scc1, Some(scc)) => scc,
                    _ => return,
                };
                match (taken, ins.target().and_then(|target| index.get(target))) {
                    (false, _) => at += 1,
                    (true, Some(goal)) => at = goal,
                    (true, None) => return,
                }
            }
            Flow::Branch {
                condition: None, ..
            } => {
                let Some(goal) = ins.target().and_then(|target| index.get(target)) else {
                    return;
                };
                at = goal;
            }
            Flow::Next => {
                state.step(ins, &decoded);
                at += 1;
            }
            _ => return,
        }
    }
}

/// The known values of scalar registers.
#[derive(Clone, Debug, Default)]
struct State {
    values: BTreeMap<u16, u32>,
    /// SCC as a carry, and as the result of a comparison.
    scc: Option<bool>,
}

impl State {
    fn value(&self, instruction: &Instruction, operand: Operand) -> Option<u32> {
        let register = operand.scalar_index();
        let known = register.and_then(|number| self.values.get(&(number as u16)).copied());
        known.or_else(|| constant(instruction, operand))
    }

    /// The address in a pair.
    fn pair(&self, operand: Operand) -> Option<u64> {
        let low = operand.scalar_index()? as u16;
        let (low, high) = (self.values.get(&low)?, self.values.get(&(low + 1))?);
        Some(u64::from(*low) | u64::from(*high) << 32)
    }

    /// Executes an instruction.
    fn step(&mut self, ins: &Ins, decoded: &Instruction) {
        let goal = decoded.dst.scalar_index().map(|number| number as u16);
        if ins.mnemonic == "s_getpc_b64" {
            if let Some(low) = goal {
                self.values.insert(low, ins.end() as u32);
                self.values.insert(low + 1, (ins.end() >> 32) as u32);
            }
            return;
        }
        let first = self.value(decoded, decoded.src[0]);
        let second = self.value(decoded, decoded.src[1]);
        let result = match (ins.mnemonic, first, second) {
            ("s_cmp_ge_i32", Some(a), Some(b)) => {
                self.scc = Some(a.cast_signed() >= b.cast_signed());
                return;
            }
            ("s_add_u32" | "s_add_co_u32", Some(a), Some(b)) => {
                let (sum, carry) = a.overflowing_add(b);
                Some((sum, Some(carry)))
            }
            ("s_add_i32" | "s_add_co_i32", Some(a), Some(b)) => Some((a.wrapping_add(b), None)),
            ("s_addc_u32" | "s_add_co_ci_u32", Some(a), Some(b)) => self.scc.map(|carry| {
                let sum = u64::from(a) + u64::from(b) + u64::from(carry);
                (sum as u32, Some(sum >> 32 != 0))
            }),
            ("s_sub_u32" | "s_sub_co_u32", Some(a), Some(b)) => {
                let (rest, borrow) = a.overflowing_sub(b);
                Some((rest, Some(borrow)))
            }
            ("s_subb_u32" | "s_sub_co_ci_u32", Some(a), Some(b)) => self.scc.map(|borrow| {
                let rest = i64::from(a) - i64::from(b) - i64::from(borrow);
                (rest as u32, Some(rest < 0))
            }),
            ("s_abs_i32", Some(a), _) => Some((a.cast_signed().unsigned_abs(), None)),
            ("s_mov_b32", Some(a), _) => Some((a, self.scc)),
            _ => None,
        };
        self.values
            .retain(|number, _| ins.writes >> number & 1 == 0);
        match (result, goal) {
            (Some((value, scc)), Some(goal)) => {
                self.values.insert(goal, value);
                self.scc = scc;
            }
            _ if ins.writes_scc => self.scc = None,
            _ => {}
        }
    }
}
