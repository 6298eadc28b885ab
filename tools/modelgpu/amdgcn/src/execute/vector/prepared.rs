//! The frequent forms of vector instructions, with operands that are resolved when the instruction
//! is decoded: no SDWA of results, no output modifiers, whole registers. [`super::VectorOperation`]
//! executes all forms.

use modelgpu_isa::{Instruction, Operand, Sdwa, SdwaSource, Selection};

use super::super::pull::PULL;
use super::super::simd::{
    CarryFunction, CompareFunction, Leveled, LongsFunction, Selected, Simd, Wide, WordsFunction,
    leveled, select,
};
use super::super::value::Kind;
use super::dpp::Route;
use super::operation::{CarryDirection, Comparison, VectorOperation};
use crate::lanes::Words;
use crate::registers::{BUFFERS, Registers};
use crate::wave::{Wave, constant};

/// A vector instruction that is ready to run.
pub(crate) struct VectorStep {
    run: Run,
    sources: Sources,
    /// DPP: the way of the first source, and its register.
    route: Option<Box<(Route, usize)>>,
    /// The first register of the result.
    target: usize,
    /// The modes of denormal numbers and of rounding matter.
    is_float: bool,
    /// The result's register is none of the sources.
    is_apart: bool,
}

enum Run {
    Words(Selected<WordsFunction>),
    /// A result of 16 bits that keeps the other half of its register, and a function that joins both.
    Half(Selected<WordsFunction>, Selected<WordsFunction>),
    /// v_cndmask_b32: the second source in the lanes of a mask, the first one in the others.
    Select(Operand),
    /// Two results of 32 bits, each with sources of its own.
    Twice(Selected<WordsFunction>, Box<Sources>),
    Longs {
        run: Selected<LongsFunction>,
        wide: bool,
    },
    Carry {
        run: Selected<CarryFunction>,
        wide: bool,
        carry_in: Option<Operand>,
        carry_out: Option<Operand>,
    },
    Compare {
        run: Selected<CompareFunction>,
        accepted: u8,
        target: Operand,
        writes_exec: bool,
    },
}

/// The sources of an instruction.
struct Sources {
    /// The registers that hold them, or buffers behind the registers.
    places: [usize; 3],
    /// Those that go to a buffer before each execution, with the buffer: they are no vector registers, or
    /// change their signs.
    filled: Box<[(usize, Source)]>,
}

#[derive(Clone, Copy)]
struct Source {
    place: Place,
    /// Both halves of a value of 64 bits.
    wide: bool,
    /// SDWA, or a half of the word: the part of it.
    part: Option<SdwaSource>,
    /// Bits to clear and to flip in the last word.
    signs: Option<(u32, u32)>,
}

#[derive(Clone, Copy)]
enum Place {
    Vector(usize),
    Scalar(Operand),
    Constant(u64),
}

/// The buffer of the first source.
const FIRST_BUFFER: usize = BUFFERS;

/// A source that the function does not read.
const UNUSED: Source = Source {
    place: Place::Vector(0),
    wide: false,
    part: None,
    signs: None,
};

impl VectorStep {
    /// Prepares an instruction; `None` if it has another form.
    pub(crate) fn new(
        operation: &VectorOperation,
        instruction: &Instruction,
        simd: Simd,
    ) -> Option<Self> {
        let modifiers = &instruction.modifiers;
        let is_part = |sdwa: &Sdwa| sdwa.dst != Selection::Dword;
        if instruction.sdwa.as_ref().is_some_and(is_part) || modifiers.output != 0 {
            return None;
        }
        let source = |place: usize, kind| Source::new(instruction, place, kind);
        let sources_of = |kinds: [Kind; 3]| {
            Some([
                source(0, kinds[0])?,
                source(1, kinds[1])?,
                source(2, kinds[2])?,
            ])
        };
        let step = |run, kinds: [Kind; 3], result: Kind| {
            let is_right =
                matches!(run, Run::Half(..)) || other_half(instruction, result).is_none();
            let target = match result {
                Kind::None => Some(0),
                _ => instruction.dst.vector_index().filter(|_| is_right),
            };
            let (mut sources, target) = (Sources::new(sources_of(kinds)?), target?);
            let route = match &instruction.dpp {
                // The sign would change before the lanes move, and a long has two registers.
                Some(_) if sources.places[0] == FIRST_BUFFER || kinds[0].is_long() => return None,
                Some(dpp) => {
                    let register = std::mem::replace(&mut sources.places[0], FIRST_BUFFER);
                    Some(Box::new((Route::new(dpp)?, register)))
                }
                None => None,
            };
            Some(Self {
                run,
                route,
                is_apart: !sources.places.contains(&target),
                sources,
                target,
                is_float: result.is_float() || kinds.iter().any(|kind| kind.is_float()),
            })
        };
        let saturates = |result: Kind| modifiers.clamp && !result.is_float();
        let is_clamped_float = |result: Kind| modifiers.clamp && result.is_float();
        match *operation {
            VectorOperation::Words {
                run,
                clamped,
                sources,
                result,
            } if !is_clamped_float(result) => {
                let run = if saturates(result) { clamped? } else { run }.select(simd);
                let run = match other_half(instruction, result) {
                    Some(join) => Run::Half(run, join.select(simd)),
                    None => Run::Words(run),
                };
                step(run, sources, result)
            }
            VectorOperation::Longs {
                run,
                sources,
                result,
            } if !modifiers.clamp => {
                let (run, wide) = (run.select(simd), result.is_long());
                step(Run::Longs { run, wide }, sources, result)
            }
            VectorOperation::Carry {
                run,
                clamped,
                sources,
                result,
                direction,
            } if !is_clamped_float(result) => {
                let run = if saturates(result) { clamped? } else { run };
                let carry_in = match direction {
                    CarryDirection::Out => None,
                    _ if sources[2] != Kind::None => Some(instruction.sdst),
                    _ => Some(instruction.src[2]),
                };
                if carry_in.is_some_and(|operand| operand.scalar_index().is_none()) {
                    return None;
                }
                if instruction.mnemonic == "v_cndmask_b32" {
                    return step(Run::Select(carry_in?), sources, result);
                }
                let run = Run::Carry {
                    run: run.select(simd),
                    wide: result.is_long(),
                    carry_in,
                    carry_out: (direction != CarryDirection::In).then_some(instruction.sdst),
                };
                step(run, sources, result)
            }
            VectorOperation::Compare(comparison) => {
                let (run, accepted, kinds, writes_exec) = match comparison {
                    Comparison::Relation {
                        accepted,
                        run,
                        kind,
                        writes_exec,
                    } => (run, accepted, [kind, kind, Kind::None], writes_exec),
                    Comparison::Class {
                        run,
                        kind,
                        writes_exec,
                    } => (run, 0, [kind, Kind::B32, Kind::None], writes_exec),
                };
                let run = Run::Compare {
                    run: run.select(simd),
                    accepted,
                    target: instruction.sdst,
                    writes_exec,
                };
                step(run, kinds, Kind::None)
            }
            VectorOperation::Packed(packed) if !modifiers.clamp && instruction.dpp.is_none() => {
                let (run, count, picks) = packed.single()?;
                let half = |high: usize| -> Option<Sources> {
                    let mut sources = [UNUSED; 3];
                    for (place, source) in sources.iter_mut().enumerate().take(count) {
                        *source = Source::half(instruction, place, high)?;
                    }
                    if picks {
                        // Each half of the result has its own source.
                        sources[0] = Source::half_of(instruction, high, modifiers.op_sel, 0)?;
                    }
                    Some(Sources::new(sources))
                };
                Some(Self {
                    run: Run::Twice(run.select(simd), Box::new(half(1)?)),
                    sources: half(0)?,
                    route: None,
                    target: instruction.dst.vector_index()?,
                    is_float: !picks,
                    is_apart: false,
                })
            }
            _ => None,
        }
    }

    /// A step for counts of the set bits below each lane in a mask.
    pub(crate) fn count_below(high: bool, instruction: &Instruction, simd: Simd) -> Option<Self> {
        if instruction.sdwa.is_some() || instruction.dpp.is_some() {
            return None;
        }
        let run = if high { COUNT_HIGH } else { COUNT_LOW };
        Some(Self {
            is_apart: false,
            route: None,
            run: Run::Words(run.select(simd)),
            sources: Sources::new([
                Source::new(instruction, 0, Kind::B32)?,
                Source::new(instruction, 1, Kind::B32)?,
                UNUSED,
            ]),
            target: instruction.dst.vector_index()?,
            is_float: false,
        })
    }

    /// Executes the instruction. Returns `false`, without an effect, if the wave is in a mode that
    /// makes it another form.
    #[inline(always)]
    pub(crate) fn execute(&self, wave: &mut Wave) -> bool {
        if wave.indexed != 0 || self.is_float && !wave.mode.is_plain() {
            return false;
        }
        let (simd, size) = (wave.simd, wave.size);
        let mut lanes = wave.exec();
        if let Some(route) = &self.route {
            lanes = pass(route, wave);
        }
        match &self.run {
            Run::Words(run) if self.is_apart && lanes == wave.all_lanes => {
                let [a, b, c] = self.sources.places(wave);
                let (before, rest) = wave.vectors.split_at_mut(self.target);
                let Some((target, behind)) = rest.split_first_mut() else {
                    return false;
                };
                let source = |place: usize| match place.checked_sub(self.target + 1) {
                    Some(place) => &behind[place],
                    None => &before[place],
                };
                run.fit(size)
                    .call([source(a), source(b), source(c)], target);
            }
            Run::Select(mask) => {
                let mask = wave.mask(*mask);
                let [first, second, _] = self.sources.places(wave);
                for (source, lanes) in [(first, lanes & !mask), (second, lanes & mask)] {
                    // A source that is the target stays as it is.
                    let registers = wave.vectors.get_disjoint_mut([self.target, source]);
                    if let Ok([target, source]) = registers {
                        simd.blend(target, source, lanes);
                    }
                }
            }
            Run::Words(run) => {
                let [a, b, c] = self.sources.places(wave);
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                run.fit(size)
                    .call([&vectors[a], &vectors[b], &vectors[c]], &mut results[0]);
                simd.blend(&mut vectors[self.target], &results[0], lanes);
            }
            Run::Half(run, join) => {
                let [a, b, c] = self.sources.places(wave);
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                let [half, joined, ..] = results;
                (run.fit(size)).call([&vectors[a], &vectors[b], &vectors[c]], half);
                let old = &vectors[self.target];
                join.fit(size).call([half, old, old], joined);
                simd.blend(&mut vectors[self.target], joined, lanes);
            }
            Run::Twice(run, second) => {
                for (number, sources) in [&self.sources, second].into_iter().enumerate() {
                    let [a, b, c] = sources.places(wave);
                    let Registers {
                        vectors, results, ..
                    } = &mut *wave.vectors;
                    let sources = [&vectors[a], &vectors[b], &vectors[c]];
                    run.fit(size).call(sources, &mut results[number]);
                }
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                for (number, results) in results.iter().enumerate().take(2) {
                    simd.blend(&mut vectors[self.target + number], results, lanes);
                }
            }
            Run::Longs { run, wide } => {
                let [a, b, c] = self.sources.places(wave);
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                let sources = [both(vectors, a), both(vectors, b), both(vectors, c)];
                run.fit(size).call(sources, results);
                simd.blend(&mut vectors[self.target], &results[0], lanes);
                if *wide {
                    simd.blend(&mut vectors[self.target + 1], &results[1], lanes);
                }
            }
            Run::Carry {
                run,
                wide,
                carry_in,
                carry_out,
            } => {
                let carry = carry_in.map(|operand| wave.mask(operand));
                let [a, b, c] = self.sources.places(wave);
                let Registers {
                    vectors,
                    results,
                    carries: [incoming, outgoing],
                } = &mut *wave.vectors;
                if let Some(carry) = carry {
                    simd.spread(carry, incoming);
                }
                let sources = [both(vectors, a), both(vectors, b), both(vectors, c)];
                run.fit(size).call(sources, incoming, results, outgoing);
                simd.blend(&mut vectors[self.target], &results[0], lanes);
                if *wide {
                    simd.blend(&mut vectors[self.target + 1], &results[1], lanes);
                }
                if let Some(operand) = *carry_out {
                    let carry = simd.pack(outgoing);
                    wave.set_mask(operand, carry & lanes);
                }
            }
            Run::Compare {
                run,
                accepted,
                target,
                writes_exec,
            } => {
                let [a, b, _] = self.sources.places(wave);
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                let sources = [both(vectors, a), both(vectors, b)];
                run.fit(size).call(sources, *accepted, &mut results[0]);
                let mask = simd.pack(&results[0]) & lanes;
                wave.set_mask(*target, mask);
                if *writes_exec {
                    wave.set_mask(Operand::EXEC, mask);
                }
            }
        }
        true
    }
}

/// Moves the first source to its buffer, by its way between lanes. Returns the lanes that write.
#[inline(never)]
fn pass((route, register): &(Route, usize), wave: &mut Wave) -> u64 {
    let lanes = route.lanes(wave.exec(), wave.all_lanes);
    let pull = PULL.for_wave(wave);
    let Registers {
        vectors, results, ..
    } = &mut *wave.vectors;
    let pulled = &mut results[0];
    pull.call([&vectors[*register], &route.from, &route.from], pulled);
    let buffer = &mut vectors[FIRST_BUFFER];
    wave.simd.fill(buffer, 0);
    wave.simd.blend(buffer, pulled, lanes.present);
    lanes.writing
}

impl Sources {
    fn new(sources: [Source; 3]) -> Self {
        let mut places = [0; 3];
        let mut filled = Vec::new();
        for (number, source) in sources.into_iter().enumerate() {
            places[number] = match source {
                Source {
                    place: Place::Vector(index),
                    part: None,
                    signs: None,
                    ..
                } => index,
                _ => {
                    let buffer = FIRST_BUFFER + 2 * number;
                    filled.push((buffer, source));
                    buffer
                }
            };
        }
        Self {
            places,
            filled: filled.into(),
        }
    }

    /// Fills the buffers. Returns where the sources lie.
    #[inline(always)]
    fn places(&self, wave: &mut Wave) -> [usize; 3] {
        for (buffer, source) in &self.filled {
            source.fill(*buffer, wave);
        }
        self.places
    }
}

#[inline(always)]
fn both(vectors: &[Words], place: usize) -> Wide<'_> {
    Wide {
        low: &vectors[place],
        high: &vectors[place + 1],
    }
}

impl Source {
    fn new(instruction: &Instruction, place: usize, kind: Kind) -> Option<Self> {
        let modifiers = &instruction.modifiers;
        if kind == Kind::None {
            return Some(UNUSED);
        }
        let sign = |mask: u8| match mask >> place & 1 {
            1 => (kind.sign_bit() >> if kind.is_long() { 32 } else { 0 }) as u32,
            _ => 0,
        };
        let signs = (sign(modifiers.abs), sign(modifiers.neg));
        let part = match &instruction.sdwa {
            Some(_) if kind.is_long() => return None,
            Some(sdwa) if place < 2 => Some(sdwa.src[place]),
            _ if kind.is_half() && modifiers.op_sel >> place & 1 == 1 => Some(SdwaSource {
                selection: Selection::Half(1),
                sign_extend: false,
            }),
            _ => None,
        };
        Some(Self {
            part: part.filter(|part| part.selection != Selection::Dword),
            place: Place::new(instruction.src[place], kind, instruction.literal)?,
            wide: kind.is_long(),
            signs: (signs != (0, 0)).then_some(signs),
        })
    }

    /// The source of one half of a packed result.
    fn half(instruction: &Instruction, place: usize, high: usize) -> Option<Self> {
        let modifiers = &instruction.modifiers;
        let (select, negate) = match high {
            0 => (modifiers.op_sel, modifiers.neg),
            _ => (modifiers.op_sel_hi, modifiers.neg_hi),
        };
        Self::half_of(instruction, place, select, negate)
    }

    fn half_of(instruction: &Instruction, place: usize, select: u8, negate: u8) -> Option<Self> {
        let half = select >> place & 1;
        let operand = instruction.src[place];
        let is_register = operand.vector_index().is_some() || operand.scalar_index().is_some();
        let place_of_half = match half {
            // A constant fills the low half.
            1 if !is_register => Place::Constant(0),
            1 => Place::new(Operand(operand.0 + 1), Kind::F32, 0)?,
            _ => Place::new(operand, Kind::F32, instruction.literal)?,
        };
        Some(Self {
            place: place_of_half,
            wide: false,
            part: None,
            signs: (negate >> place & 1 == 1).then_some((0, 1 << 31)),
        })
    }

    /// The shifts that select the part of a word: to the left, then to the right, with the sign.
    fn shifts(&self) -> (u32, u32, bool) {
        let Some(part) = self.part else {
            return (0, 0, false);
        };
        let (place, size) = match part.selection {
            Selection::Dword => (0, 32),
            Selection::Byte(place) => (8 * u32::from(place), 8),
            Selection::Half(place) => (16 * u32::from(place), 16),
        };
        (32 - size - place, 32 - size, part.sign_extend)
    }

    /// Writes the source's value to a buffer.
    fn fill(&self, buffer: usize, wave: &mut Wave) {
        let (simd, lanes) = (wave.simd, wave.size.lanes());
        let value = match self.place {
            Place::Vector(index) => {
                let last = usize::from(self.wide);
                let vectors = &mut wave.vectors.vectors;
                if self.wide {
                    vectors[buffer] = vectors[index];
                }
                let (clear, flip) = self.signs.unwrap_or_default();
                let (registers, buffers) = vectors.split_at_mut(BUFFERS);
                let to = &mut buffers[buffer - BUFFERS + last][..lanes];
                let from = &registers[index + last][..lanes];
                simd.change_bits(from, clear, flip, to, self.shifts());
                return;
            }
            Place::Scalar(operand) if self.wide => wave.pair(operand),
            Place::Scalar(operand) => wave.word(operand).into(),
            Place::Constant(value) => value,
        };
        let value = match self.part {
            Some(_) => select(value as u32, self.shifts()).into(),
            None => value,
        };
        let value = match (self.signs, self.wide) {
            (None, _) => value,
            (Some((clear, flip)), true) => {
                value & !(u64::from(clear) << 32) ^ u64::from(flip) << 32
            }
            (Some((clear, flip)), false) => value & !u64::from(clear) ^ u64::from(flip),
        };
        let vectors = &mut wave.vectors.vectors;
        simd.fill(&mut vectors[buffer][..lanes], value as u32);
        if self.wide {
            simd.fill(&mut vectors[buffer + 1][..lanes], (value >> 32) as u32);
        }
    }
}

impl Place {
    fn new(operand: Operand, kind: Kind, literal: u64) -> Option<Self> {
        if let Some(index) = operand.vector_index() {
            return Some(Self::Vector(index));
        }
        if operand.scalar_index().is_some() {
            return Some(Self::Scalar(operand));
        }
        constant(operand, kind, literal).map(Self::Constant)
    }
}

/// The function that joins a result of 16 bits and its register; `None` if the result fills the register.
fn other_half(instruction: &Instruction, result: Kind) -> Option<Leveled<WordsFunction>> {
    match &instruction.modifiers {
        _ if !result.is_half() => None,
        modifiers if modifiers.op_sel & 8 != 0 => Some(JOIN_HIGH),
        modifiers if modifiers.keeps_half => Some(JOIN_LOW),
        _ => None,
    }
}

const JOIN_HIGH: Leveled<WordsFunction> =
    leveled!(
        |halves: &Words, registers: &Words, unused: &Words, results: &mut Words| -> () {
            for lane in 0..LANES {
                results[lane] = halves[lane] << 16 | registers[lane] & 0xffff;
            }
        }
    );
const JOIN_LOW: Leveled<WordsFunction> =
    leveled!(
        |halves: &Words, registers: &Words, unused: &Words, results: &mut Words| -> () {
            for lane in 0..LANES {
                results[lane] = registers[lane] & 0xffff_0000 | halves[lane] & 0xffff;
            }
        }
    );
const COUNT_LOW: Leveled<WordsFunction> =
    leveled!(
        |masks: &Words, addends: &Words, unused: &Words, results: &mut Words| -> () {
            for lane in 0..LANES {
                let below = if lane < 32 {
                    (1u32 << lane) - 1
                } else {
                    u32::MAX
                };
                results[lane] = addends[lane].wrapping_add((masks[lane] & below).count_ones());
            }
        }
    );
const COUNT_HIGH: Leveled<WordsFunction> =
    leveled!(
        |masks: &Words, addends: &Words, unused: &Words, results: &mut Words| -> () {
            for lane in 0..LANES {
                let below = if lane < 32 {
                    0
                } else {
                    (1u32 << (lane - 32)) - 1
                };
                results[lane] = addends[lane].wrapping_add((masks[lane] & below).count_ones());
            }
        }
    );
