//! Decoded instructions, and the facts about them that counters need.

use std::ops::Range;

use modelgpu_isa::{
    Access, AccessKind, File, FloatFormat, Flow, Generation, Instruction, Operand, Target,
    WaveSize, decode, inline_constant,
};

/// A set of scalar registers: a bit for each number up to EXEC's.
pub(super) type Scalars = u128;

/// A set of the first vector registers: a bit for each.
pub(super) type FirstVectors = u32;

/// The beginnings of the names of instructions whose results arrive later.
const MEMORY: [&str; 7] = [
    "global_", "flat_", "buffer_", "tbuffer_", "scratch_", "ds_", "image_",
];

/// One instruction of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ins {
    /// The ELF address.
    pub(super) address: u64,
    pub(super) mnemonic: &'static str,
    pub(super) flow: Flow,
    /// The size in bytes.
    pub(super) size: u8,
    pub(super) reads_scc: bool,
    pub(super) writes_scc: bool,
    pub(super) writes_exec: bool,
    /// The scalar registers that it writes.
    pub(super) writes: Scalars,
    /// The first vector registers that it reads or writes.
    pub(super) vectors: FirstVectors,
    /// The first vector registers that it writes as soon as memory has answered.
    pub(super) loads: FirstVectors,
}

impl Ins {
    /// The address after it.
    pub(super) fn end(&self) -> u64 {
        self.address + u64::from(self.size)
    }

    /// The address that a direct branch or call leads to.
    pub(super) fn target(&self) -> Option<u64> {
        let (Flow::Branch { to, .. } | Flow::Call { to }) = self.flow else {
            return None;
        };
        Some(self.end().wrapping_add_signed(4 * i64::from(to)))
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.flow, Flow::Call { .. } | Flow::IndirectCall)
    }

    pub(super) fn falls_through(&self) -> bool {
        !matches!(
            self.flow,
            Flow::Branch {
                condition: None,
                ..
            } | Flow::Indirect
                | Flow::End
        )
    }

    pub(super) fn ends_block(&self) -> bool {
        !matches!(self.flow, Flow::Next | Flow::Trap)
    }
}

/// The numbers of instructions by address.
#[derive(Clone, Debug)]
pub(super) struct Index {
    start: u64,
    /// The number of the instruction at each word, or [`Self::NONE`].
    numbers: Vec<u32>,
}

impl Index {
    const NONE: u32 = u32::MAX;
    const WORD: u64 = 4;

    pub(super) fn new(all: &[Ins]) -> Self {
        let start = all.first().map_or(0, |ins| ins.address);
        let end = all.last().map_or(0, |ins| ins.address + Self::WORD);
        let mut numbers = vec![Self::NONE; ((end - start) / Self::WORD) as usize];
        for (ins, number) in all.iter().zip(0..) {
            numbers[((ins.address - start) / Self::WORD) as usize] = number;
        }
        Self { start, numbers }
    }

    pub(super) fn get(&self, address: u64) -> Option<usize> {
        let distance = address.checked_sub(self.start)?;
        let is_aligned = distance.is_multiple_of(Self::WORD);
        let word = usize::try_from(distance / Self::WORD).ok()?;
        let number = self.numbers.get(word).copied();
        let number = number.filter(|number| is_aligned && *number != Self::NONE);
        number.map(|number| number as usize)
    }
}

/// The registers that code uses: the number after the highest one of each file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) scalars: u32,
    /// The scalar registers in use.
    pub(super) scalar_set: Scalars,
    pub(super) vectors: u32,
    /// The vector registers in use, as bits.
    pub(super) vector_set: [u128; 2],
    pub(super) accumulators: u32,
    /// The code computes the numbers of some vector registers.
    pub(super) has_indexed_vectors: bool,
    /// The code computes the numbers of some scalar registers.
    pub(super) has_indexed_scalars: bool,
}

impl Used {
    /// Adds the registers of an instruction for a target.
    fn add(&mut self, access: &Access, target: Target) {
        let first = u32::from(access.first);
        let end = first + u32::from(access.count);
        match access.file {
            File::Scalar if first < scalars(target) => {
                let end = end.min(scalars(target));
                self.scalars = self.scalars.max(end);
                self.scalar_set |= registers(first, end);
            }
            File::Scalar => {}
            File::Vector => {
                self.vectors = self.vectors.max(end);
                for number in first..end {
                    if let Some(half) = self.vector_set.get_mut((number / u128::BITS) as usize) {
                        *half |= 1 << (number % u128::BITS);
                    }
                }
            }
            File::Accumulator => self.accumulators = self.accumulators.max(end),
        }
    }

    /// Adds the registers of other code.
    pub(super) fn join(&mut self, other: Self) {
        self.scalars = self.scalars.max(other.scalars);
        self.scalar_set |= other.scalar_set;
        self.vectors = self.vectors.max(other.vectors);
        for (own, other) in self.vector_set.iter_mut().zip(other.vector_set) {
            *own |= other;
        }
        self.accumulators = self.accumulators.max(other.accumulators);
        self.has_indexed_vectors |= other.has_indexed_vectors;
        self.has_indexed_scalars |= other.has_indexed_scalars;
    }

    /// The longest row of vector registers from `start` on that are not in use, but lie before others that are.
    pub(super) fn vector_gap(&self, start: u32) -> Range<u32> {
        let is_used = |number: u32| {
            let half = self.vector_set.get((number / u128::BITS) as usize);
            half.is_none_or(|half| half >> (number % u128::BITS) & 1 == 1)
        };
        let mut longest = start..start;
        let mut first = start;
        for number in start..self.vectors {
            if is_used(number) {
                first = number + 1;
            } else if number + 1 - first > longest.len() as u32 {
                longest = first..number + 1;
            }
        }
        longest
    }
}

/// The set of the scalar registers from the number `first` to `end`, both of which are at most 128.
fn registers(first: u32, end: u32) -> Scalars {
    let below = |number: u32| match number {
        0..Scalars::BITS => (1 << number) - 1,
        _ => Scalars::MAX,
    };
    below(end) & !below(first)
}

/// Returns whether an instruction's results arrive later.
fn is_memory(mnemonic: &str) -> bool {
    // Most names start in one of these ways.
    let is_plain = mnemonic.starts_with("v_") || mnemonic.starts_with("s_");
    !is_plain && MEMORY.iter().any(|memory| mnemonic.starts_with(memory))
}

/// The number of general scalar registers. On gfx9, four of the others lie between them and VCC (`FLAT_SCRATCH` and `XNACK_MASK`).
pub(super) fn scalars(target: Target) -> u32 {
    match target.generation() {
        Generation::Gfx9 => 102,
        _ => 106,
    }
}

/// Machine code of a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'data> {
    pub(super) bytes: &'data [u8],
    /// The ELF address of the first byte.
    pub(super) address: u64,
    pub(super) target: Target,
    pub(super) wave: WaveSize,
}

/// The code of a function, its name, and the kernel descriptors that lead there.
#[derive(Clone, Debug)]
pub(super) struct NamedCode<'data> {
    pub(super) name: &'data str,
    pub(super) code: Code<'data>,
    /// The ELF addresses of the descriptors. Empty for a device function.
    pub(super) descriptors: Vec<u64>,
    /// It is a kernel with a second entry.
    pub(super) has_preloaded_entry: bool,
}

impl NamedCode<'_> {
    pub(super) fn is_kernel(&self) -> bool {
        !self.descriptors.is_empty()
    }
}

impl Code<'_> {
    /// The words at an ELF address: those of the longest instruction, with zeros past the end.
    pub(super) fn words(&self, address: u64) -> [u32; 4] {
        let at = (address - self.address) as usize;
        std::array::from_fn(|word| {
            let bytes = self.bytes.get(at + 4 * word..);
            let bytes = bytes.and_then(|bytes| bytes.first_chunk());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        })
    }

    /// The instruction at an ELF address.
    pub(super) fn decode(&self, address: u64) -> Option<Instruction> {
        decode(self.words(address), self.target).ok()
    }

    /// The facts about the instruction at an ELF address.
    fn facts(&self, words: [u32; 4], address: u64) -> Option<(Ins, Used)> {
        let found = decode(words, self.target).ok()?;
        let mut used = Used::default();
        let mut writes = 0;
        let (mut vectors, mut written) = (0, 0);
        for access in found.accesses(self.wave) {
            used.add(&access, self.target);
            if access.file == File::Vector {
                let count = u64::from(access.count).min(32);
                let all = ((1_u64 << count) - 1)
                    .checked_shl(access.first.into())
                    .unwrap_or_default();
                vectors |= all as FirstVectors;
                if access.kind == AccessKind::Write {
                    written |= all as FirstVectors;
                }
            }
            if access.kind == AccessKind::Write && access.file == File::Scalar {
                let first = u32::from(access.first);
                let end = (first + u32::from(access.count)).min(Scalars::BITS);
                writes |= registers(first.min(end), end);
            }
        }
        let name = found.mnemonic;
        let is_indexed = found.indexes_registers() || name.starts_with("s_set_gpr_idx");
        match name.starts_with("s_movrel") {
            true => used.has_indexed_scalars = true,
            false => used.has_indexed_vectors = is_indexed,
        }
        let ins = Ins {
            address,
            mnemonic: name,
            flow: found.flow(),
            size: found.size,
            reads_scc: found.reads_scc(),
            writes_scc: found.writes_scc(),
            writes_exec: found.writes_exec(),
            writes,
            vectors,
            loads: if is_memory(name) { written } else { 0 },
        };
        Some((ins, used))
    }
}

/// An instruction of one or two words that came before.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    words: [u32; 2],
    has_two: bool,
    /// The number of the last code that has it. 0: there is none.
    code: u32,
}

impl Seen {
    fn is(&self, first: u32, second: u32) -> bool {
        let is_own = self.words[0] == first && (!self.has_two || self.words[1] == second);
        is_own && self.code != 0
    }
}

/// Decodes code of one target and wave size. Half of all instructions are the same as one that came shortly before.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    /// The last instruction of each hash of its first word. Facts about it are elsewhere, so that this fits into the nearest cache.
    seen: Vec<Seen>,
    instructions: Vec<Ins>,
    used: Vec<Used>,
    /// Memory for the instructions of the next code.
    spare: Vec<Ins>,
    /// The number of the code.
    code: u32,
    wave: WaveSize,
}

impl Decoder {
    /// A decoder of so many bytes of code.
    pub(super) fn new(bytes: usize) -> Self {
        const MOST: usize = 4096;
        const NOTHING: Ins = Ins {
            address: 0,
            mnemonic: "",
            flow: Flow::Next,
            size: 0,
            reads_scc: false,
            writes_scc: false,
            writes_exec: false,
            writes: 0,
            vectors: 0,
            loads: 0,
        };
        let count = (bytes / 16).clamp(16, MOST).next_power_of_two();
        Self {
            seen: vec![Seen::default(); count],
            instructions: vec![NOTHING; count],
            used: vec![Used::default(); count],
            spare: Vec::new(),
            code: 0,
            wave: WaveSize::W64,
        }
    }

    /// Takes the memory of instructions that are no longer needed.
    pub(super) fn take_back(&mut self, all: Vec<Ins>) {
        self.spare = all;
    }

    /// All instructions of code up to the first bytes that are none, and the registers that they use.
    pub(super) fn instructions(&mut self, code: &Code<'_>) -> (Vec<Ins>, Used) {
        /// Knuth's multiplicative hash.
        const SPREAD: u32 = 0x9e37_79b1;
        self.code += 1;
        if code.wave != self.wave {
            self.wave = code.wave;
            self.seen.fill(Seen::default());
        }
        let shift = u32::BITS - self.seen.len().ilog2();
        let mut all = std::mem::take(&mut self.spare);
        all.clear();
        all.reserve(code.bytes.len() / 5);
        let mut used = Used::default();
        let mut address = code.address;
        let end = code.address + code.bytes.len() as u64;
        while address + 4 <= end {
            let words = code.words(address);
            let [first, second, ..] = words;
            let place = (first.wrapping_mul(SPREAD) >> shift) as usize;
            let seen = &mut self.seen[place];
            let ins = if seen.is(first, second) {
                if std::mem::replace(&mut seen.code, self.code) != self.code {
                    used.join(self.used[place]);
                }
                let known = self.instructions[place];
                Ins { address, ..known }
            } else {
                let Some((ins, own)) = code.facts(words, address) else {
                    break;
                };
                used.join(own);
                if ins.size <= 8 {
                    *seen = Seen {
                        words: [first, second],
                        has_two: ins.size == 8,
                        code: self.code,
                    };
                    self.instructions[place] = ins;
                    self.used[place] = own;
                }
                ins
            };
            all.push(ins);
            address += u64::from(ins.size);
        }
        (all, used)
    }
}

/// The value of an operand that is a constant.
pub(super) fn constant(instruction: &Instruction, operand: Operand) -> Option<u32> {
    if operand == Operand::LITERAL {
        return Some(instruction.literal as u32);
    }
    inline_constant(operand, FloatFormat::Single).map(|value| value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `s_mov_b32 s0, s1`, and `s_add_u32 s2, s3, 5` and `, 6` with literals (AMD's guide of CDNA 2, "SOP1" and "SOP2").
    const MOVE: [u32; 1] = [0xbe80_0001];
    const ADD_5: [u32; 2] = [0x8002_ff03, 5];
    const ADD_6: [u32; 2] = [0x8002_ff03, 6];

    fn decoded(decoder: &mut Decoder, words: &[&[u32]]) -> (Vec<(u64, Scalars)>, Used) {
        let words = words.iter().copied().flatten();
        let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        let code = Code {
            bytes: &bytes,
            address: 0x100,
            target: Target::Gfx90a,
            wave: WaveSize::W64,
        };
        let (all, used) = decoder.instructions(&code);
        let all = all.iter().map(|ins| (ins.address, ins.writes)).collect();
        (all, used)
    }

    #[test]
    fn instructions_that_came_before_have_their_own_addresses_and_registers() {
        let mut decoder = Decoder::new(0);
        let (all, used) = decoded(&mut decoder, &[&MOVE, &ADD_5, &MOVE]);
        assert_eq!(all, [(0x100, 1), (0x104, 4), (0x10c, 1)]);
        assert_eq!((used.scalars, used.scalar_set), (4, 0b1111));
        // Other code has some of them.
        let (all, used) = decoded(&mut decoder, &[&ADD_6, &ADD_5]);
        assert_eq!(all, [(0x100, 4), (0x108, 4)]);
        assert_eq!((used.scalars, used.scalar_set), (4, 0b1100));
        let (all, used) = decoded(&mut decoder, &[&MOVE]);
        assert_eq!(all, [(0x100, 1)]);
        assert_eq!((used.scalars, used.scalar_set), (2, 0b11));
    }
}
