//! Calls of functions whose addresses the code computes from constants, as compilers write them.

use std::collections::{BTreeMap, HashSet};

use modelgpu_isa::{Flow, Operand};

use super::code::{Code, Ins, constant, scalars};

/// The first scalar register that a function leaves as its caller had it (`CSR_AMDGPU_SGPRs` in LLVM's AMDGPUCallingConv.td).
const FIRST_KEPT: u16 = 30;
/// The most instructions that compute an address.
const MAX_LENGTH: usize = 8;
/// The most instructions that are looked at for one call.
const MAX_STEPS: usize = 100_000;

/// The instructions of a function, and the ways between them.
pub(super) struct Ways<'a, 'data> {
    pub(super) code: &'a Code<'data>,
    pub(super) all: &'a [Ins],
    /// The numbers of the instructions where waves enter.
    pub(super) entries: &'a [usize],
    pub(super) sources: Sources,
}

/// For each instruction, the numbers of those that it follows.
pub(super) struct Sources {
    /// The end of each list in the numbers.
    ends: Vec<u32>,
    numbers: Vec<u32>,
}

impl Sources {
    /// The lists of so many instructions, by the ways from one to another one.
    pub(super) fn new<I: Iterator<Item = (usize, usize)>>(
        count: usize,
        ways: impl Fn() -> I,
    ) -> Self {
        let mut ends = vec![0; count];
        ways().for_each(|(_, to)| ends[to] += 1);
        let mut total = 0;
        for end in &mut ends {
            // The start of its list, until this is filled.
            total += std::mem::replace(end, total);
        }
        let mut numbers = vec![0; total as usize];
        for (from, to) in ways() {
            numbers[ends[to] as usize] = from as u32;
            ends[to] += 1;
        }
        Self { ends, numbers }
    }

    fn before(&self, number: usize) -> impl ExactSizeIterator<Item = usize> {
        let start = number.checked_sub(1).map_or(0, |last| self.ends[last]);
        let list = &self.numbers[start as usize..self.ends[number] as usize];
        list.iter().map(|number| *number as usize)
    }
}

impl Ways<'_, '_> {
    /// The ELF addresses that calls lead to, by the number of the call. A call is absent if its goal is not known.
    pub(super) fn known_calls(&self) -> BTreeMap<usize, u64> {
        let calls = self.all.iter().enumerate();
        let calls = calls.filter(|(_, ins)| ins.is_call());
        let known = calls.filter_map(|(number, ins)| {
            let goal = match ins.flow {
                Flow::IndirectCall => self.goal(number),
                _ => ins.target(),
            };
            Some((number, goal?))
        });
        known.collect()
    }

    /// The address in the register pair of a call, if all ways to the call compute the same one.
    fn goal(&self, call: usize) -> Option<u64> {
        let decoded = self.code.decode(self.all[call].address)?;
        let pair = decoded.src[0].scalar_index()? as u16;
        let mut found = None;
        let mut seen = HashSet::from([(call, pair)]);
        let mut open = vec![(call, pair)];
        // The pair has to have its value before the instruction with this number.
        while let Some((number, pair)) = open.pop() {
            if self.entries.contains(&number) || seen.len() > MAX_STEPS {
                return None;
            }
            for before in self.sources.before(number) {
                let ins = &self.all[before];
                let mut wanted = pair;
                if ins.writes >> pair & 3 != 0 {
                    if let Some(address) = self.computed_until(before, pair) {
                        if *found.get_or_insert(address) != address {
                            return None;
                        }
                        continue;
                    }
                    wanted = self.copied(before, pair)?;
                } else if ins.is_call() && pair < FIRST_KEPT {
                    return None;
                }
                if seen.insert((before, wanted)) {
                    open.push((before, wanted));
                }
            }
        }
        found
    }

    /// The pair that `s_mov_b64` copies to another one.
    fn copied(&self, number: usize, pair: u16) -> Option<u16> {
        let ins = &self.all[number];
        let decoded = self.code.decode(ins.address)?;
        let is_copy = ins.mnemonic == "s_mov_b64" && decoded.dst == Operand::scalar(pair.into());
        let source = decoded.src[0].scalar_index().filter(|_| is_copy)?;
        // Others than general ones are VCC, EXEC and the like.
        let source = u16::try_from(source).ok()?;
        (u32::from(source) < scalars(self.code.target)).then_some(source)
    }

    /// The address that the instructions up to `last` compute.
    fn computed_until(&self, last: usize, pair: u16) -> Option<u64> {
        let mut firsts = (last.saturating_sub(MAX_LENGTH)..last).rev();
        let first = firsts.find(|number| self.all[*number].mnemonic == "s_getpc_b64")?;
        let is_straight = |number: usize| self.sources.before(number).eq([number - 1]);
        let is_whole = (first + 1..=last).all(is_straight);
        let computed = computed(self.code, self.all, first, pair)?;
        (is_whole && computed.high == last).then_some(computed.address)
    }
}

/// An address that instructions compute from constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Computed {
    pub(super) address: u64,
    /// The numbers of the instructions that add the halves of the distance. The second one is the last of all.
    pub(super) low: usize,
    pub(super) high: usize,
}

/// The address that `s_getpc_b64` at `index`, and two additions of constants to its pair, compute. On RDNA 4, there are waits
/// in between, and an instruction that extends the sign of the high half: programs have addresses of 48 bits.
pub(super) fn computed(code: &Code<'_>, all: &[Ins], index: usize, pair: u16) -> Option<Computed> {
    let first = all.get(index)?;
    let decoded = code.decode(first.address)?;
    if first.mnemonic != "s_getpc_b64" || decoded.dst != Operand::scalar(pair.into()) {
        return None;
    }
    // The constant in an instruction that changes a register only.
    let part = |ins: &Ins, register: u16| {
        let decoded = code.decode(ins.address)?;
        let own = Operand::scalar(register.into());
        let is_own = decoded.dst == own && decoded.src[0] == own;
        constant(&decoded, decoded.src[1]).filter(|_| is_own)
    };
    let mut low = None;
    for (number, ins) in all.iter().enumerate().skip(index + 1).take(MAX_LENGTH - 1) {
        match (ins.mnemonic, low) {
            ("s_wait_alu" | "s_delay_alu", _) => {}
            ("s_sext_i32_i16", None) => {
                let decoded = code.decode(ins.address)?;
                let high = Operand::scalar(u32::from(pair) + 1);
                if decoded.dst != high || decoded.src[0] != high {
                    return None;
                }
            }
            ("s_add_u32" | "s_add_co_u32", None) => low = Some((number, part(ins, pair)?)),
            ("s_addc_u32" | "s_add_co_ci_u32", Some((low, constant))) => {
                let distance = u64::from(constant) | u64::from(part(ins, pair + 1)?) << 32;
                return Some(Computed {
                    address: first.end().wrapping_add(distance),
                    low,
                    high: number,
                });
            }
            _ => return None,
        }
    }
    None
}
