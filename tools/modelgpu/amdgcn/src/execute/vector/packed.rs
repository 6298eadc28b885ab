//! Packed arithmetic (VOP3P) computes two results from two halves of each source. The op_sel
//! modifiers select each half. Halves are 32 bits of a register pair, or 16 bits of a register.

use modelgpu_isa::Instruction;

use super::super::simd::{Leveled, WordsFunction, leveled};
use super::super::value::{Brain, Half, Kind};
use super::super::{Operation, float, unmodelled};
use super::gather::Gather;
use super::operation::{HalfKind, Packed, Run, VectorOperation};
use super::rounding::PackedRounding;
use super::scatter::{self, Output};
use crate::error::Fault;
use crate::lanes::{LANES, Longs, Words};
use crate::wave::Wave;

const fn packed(half: HalfKind, sources: u8, run: Run) -> Operation {
    Operation::Vector(VectorOperation::Packed(Packed {
        run,
        sources,
        half,
        function: None,
    }))
}

/// Makes an operation on two words or halves of words from a closure over the bits of one.
macro_rules! two_words {
    ($half:ident, $sources:literal, |$a:ident, $b:ident, $c:ident| $body:expr) => {
        Operation::Vector(VectorOperation::Packed(Packed {
            run: Run::Bits(|[$a, $b, $c]| $body),
            sources: $sources,
            half: HalfKind::$half,
            function: Some(leveled!(|first: &Words,
                                     second: &Words,
                                     third: &Words,
                                     results: &mut Words|
             -> () {
                for lane in 0..LANES {
                    let ($a, $b, $c) = (first[lane], second[lane], third[lane]);
                    results[lane] = $body;
                }
            })),
        }))
    };
}

const fn unsigned(sources: u8, run: fn([i64; 3]) -> i64) -> Operation {
    packed(HalfKind::Unsigned, sources, Run::Exact(run))
}

const fn signed(sources: u8, run: fn([i64; 3]) -> i64) -> Operation {
    packed(HalfKind::Signed, sources, Run::Exact(run))
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_pk_add_f32",
        two_words!(Single, 2, |a, b, _c| (f(a) + f(b)).to_bits()),
    ),
    (
        "v_pk_mul_f32",
        two_words!(Single, 2, |a, b, _c| (f(a) * f(b)).to_bits()),
    ),
    (
        "v_pk_fma_f32",
        two_words!(Single, 3, |a, b, c| f(a).mul_add(f(b), f(c)).to_bits()),
    ),
    // The low half of the result comes from the first source, the high half from the second.
    ("v_pk_mov_b32", two_words!(Word, 2, |a, _b, _c| a)),
    ("v_pk_add_u16", unsigned(2, |[a, b, _]| a + b)),
    ("v_pk_sub_u16", unsigned(2, |[a, b, _]| a - b)),
    ("v_pk_add_i16", signed(2, |[a, b, _]| a + b)),
    ("v_pk_sub_i16", signed(2, |[a, b, _]| a - b)),
    ("v_pk_mul_lo_u16", unsigned(2, |[a, b, _]| a * b)),
    ("v_pk_mad_u16", unsigned(3, |[a, b, c]| a * b + c)),
    ("v_pk_mad_i16", signed(3, |[a, b, c]| a * b + c)),
    ("v_pk_min_u16", unsigned(2, |[a, b, _]| a.min(b))),
    ("v_pk_max_u16", unsigned(2, |[a, b, _]| a.max(b))),
    ("v_pk_min_i16", signed(2, |[a, b, _]| a.min(b))),
    ("v_pk_max_i16", signed(2, |[a, b, _]| a.max(b))),
    (
        "v_pk_add_bf16",
        two_words!(Brain, 2, |a, b, _c| w(e(a) + e(b))),
    ),
    (
        "v_pk_mul_bf16",
        two_words!(Brain, 2, |a, b, _c| w(e(a) * e(b))),
    ),
    (
        "v_pk_fma_bf16",
        two_words!(Brain, 3, |a, b, c| w(e(a).mul_add(e(b), e(c)))),
    ),
    (
        "v_pk_min_num_bf16",
        two_words!(Brain, 2, |a, b, _c| w(float::min(e(a), e(b)))),
    ),
    (
        "v_pk_max_num_bf16",
        two_words!(Brain, 2, |a, b, _c| w(float::max(e(a), e(b)))),
    ),
    ("v_pk_min3_u16", unsigned(3, |[a, b, c]| a.min(b).min(c))),
    ("v_pk_max3_u16", unsigned(3, |[a, b, c]| a.max(b).max(c))),
    ("v_pk_min3_i16", signed(3, |[a, b, c]| a.min(b).min(c))),
    ("v_pk_max3_i16", signed(3, |[a, b, c]| a.max(b).max(c))),
    ("v_pk_lshlrev_b16", unsigned(2, |[a, b, _]| b << (a & 15))),
    ("v_pk_lshrrev_b16", unsigned(2, |[a, b, _]| b >> (a & 15))),
    ("v_pk_ashrrev_i16", signed(2, |[a, b, _]| b >> (a & 15))),
    (
        "v_pk_add_f16",
        two_words!(HalfPrecision, 2, |a, b, _c| h(d(a) + d(b))),
    ),
    (
        "v_pk_mul_f16",
        two_words!(HalfPrecision, 2, |a, b, _c| h(d(a) * d(b))),
    ),
    (
        "v_pk_fma_f16",
        two_words!(HalfPrecision, 3, |a, b, c| h(d(a).mul_add(d(b), d(c)))),
    ),
    (
        "v_pk_fmac_f16",
        two_words!(HalfPrecision, 3, |a, b, c| h(d(a).mul_add(d(b), d(c)))),
    ),
    (
        "v_pk_minimum3_f16",
        two_words!(HalfPrecision, 3, |a, b, c| {
            h(float::minimum(float::minimum(d(a), d(b)), d(c)))
        }),
    ),
    (
        "v_pk_maximum3_f16",
        two_words!(HalfPrecision, 3, |a, b, c| {
            h(float::maximum(float::maximum(d(a), d(b)), d(c)))
        }),
    ),
    (
        "v_pk_minimum_f16",
        two_words!(HalfPrecision, 2, |a, b, _c| h(float::minimum(d(a), d(b)))),
    ),
    (
        "v_pk_maximum_f16",
        two_words!(HalfPrecision, 2, |a, b, _c| h(float::maximum(d(a), d(b)))),
    ),
    (
        "v_pk_min3_f16",
        two_words!(HalfPrecision, 3, |a, b, c| {
            h(float::min(float::min(d(a), d(b)), d(c)))
        }),
    ),
    (
        "v_pk_max3_f16",
        two_words!(HalfPrecision, 3, |a, b, c| {
            h(float::max(float::max(d(a), d(b)), d(c)))
        }),
    ),
    (
        "v_pk_min_f16",
        two_words!(HalfPrecision, 2, |a, b, _c| h(float::min(d(a), d(b)))),
    ),
    (
        "v_pk_max_f16",
        two_words!(HalfPrecision, 2, |a, b, _c| h(float::max(d(a), d(b)))),
    ),
];

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn d(bits: u32) -> f64 {
    Half(bits as u16).to_f32().into()
}

fn h(value: f64) -> u32 {
    Half::from_f64(value).0.into()
}

/// The value of a bfloat16.
fn e(bits: u32) -> f64 {
    Brain(bits as u16).to_f32().into()
}

fn w(value: f64) -> u32 {
    Brain::from_f64(value).0.into()
}

impl Packed {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let clamp = instruction.modifiers.clamp;
        if clamp && matches!(self.half, HalfKind::Word | HalfKind::Brain) {
            return Err(unmodelled(instruction, "the clamp modifier"));
        }
        let rounding = PackedRounding::new(instruction, wave.mode);
        let output = Output::new(instruction, wave, self.kind());
        let gather = Gather::new(instruction, wave)?;
        let lanes = gather.lanes();
        let mut sources = [[[0; LANES]; 2]; 3];
        for (place, halves) in sources.iter_mut().enumerate().take(self.sources.into()) {
            *halves = self.halves(&gather, instruction, place, wave)?;
        }
        let modifiers = &instruction.modifiers;
        let mut results = [[0; LANES]; 2];
        for (high, result) in results.iter_mut().enumerate() {
            let (select, negate) = match high {
                0 => (modifiers.op_sel, modifiers.neg),
                _ => (modifiers.op_sel_hi, modifiers.neg_hi),
            };
            if self.half == HalfKind::Word {
                // Each half of the result has its own source; op_sel selects for both.
                *result = sources[high][usize::from(modifiers.op_sel >> high & 1)];
            } else {
                let sources: [Words; 3] = std::array::from_fn(|place| {
                    let half = usize::from(select >> place & 1);
                    let flip = if negate >> place & 1 == 1 {
                        self.kind().sign_bit() as u32
                    } else {
                        0
                    };
                    sources[place][half].map(|bits| bits ^ flip)
                });
                match (self.function, &rounding) {
                    (Some(function), None) => {
                        let function = function.for_wave(wave);
                        function.call(sources.each_ref(), result);
                    }
                    _ => {
                        for (lane, value) in result.iter_mut().enumerate() {
                            let sources = sources.each_ref().map(|words| words[lane]);
                            *value = match &rounding {
                                Some(rounding) => rounding.result(sources),
                                None => self.half_result(sources, clamp),
                            };
                        }
                    }
                }
            }
            if let Some(output) = &output {
                for value in result {
                    *value = output.apply((*value).into()) as u32;
                }
            }
        }
        let [low, high] = results;
        if self.is_wide() {
            let mut joined: Longs =
                std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32);
            scatter::longs(&plain(instruction), wave, lanes, Kind::B64, &mut joined)
        } else {
            let mut joined: Words =
                std::array::from_fn(|lane| low[lane] & 0xffff | high[lane] << 16);
            scatter::words(&plain(instruction), wave, lanes, Kind::B32, &mut joined)
        }
    }

    /// For packed single precision and for moves: the function of one half, its number of sources,
    /// and whether each half of the result has a source of its own.
    pub(super) fn single(self) -> Option<(Leveled<WordsFunction>, usize, bool)> {
        let function = self.function.filter(|_| self.is_wide())?;
        Some((function, self.sources.into(), self.half == HalfKind::Word))
    }

    fn is_wide(self) -> bool {
        matches!(self.half, HalfKind::Single | HalfKind::Word)
    }

    fn kind(self) -> Kind {
        match self.half {
            HalfKind::Single => Kind::F32,
            HalfKind::Word => Kind::B32,
            HalfKind::Unsigned | HalfKind::Signed | HalfKind::Brain => Kind::B16,
            HalfKind::HalfPrecision => Kind::F16,
        }
    }

    fn half_result(self, sources: [u32; 3], clamp: bool) -> u32 {
        match (self.run, self.half) {
            (Run::Bits(run), _) => run(sources),
            (Run::Exact(run), HalfKind::Signed) => {
                let exact = run(sources.map(|half| (half as i16).into()));
                (if clamp {
                    exact.clamp(i16::MIN.into(), i16::MAX.into())
                } else {
                    exact
                }) as u32
            }
            (Run::Exact(run), _) => {
                let exact = run(sources.map(i64::from));
                (if clamp {
                    exact.clamp(0, u16::MAX.into())
                } else {
                    exact
                }) as u32
            }
        }
    }

    /// A source's low and high halves, each widened to 32 bits.
    fn halves(
        self,
        gather: &Gather<'_>,
        instruction: &Instruction,
        place: usize,
        wave: &Wave,
    ) -> Result<[Words; 2], Fault> {
        let operand = instruction.src[place];
        if self.is_wide() {
            if let Some(index) = operand.vector_index() {
                return Ok([wave.vectors[index], wave.vectors[index + 1]]);
            }
            if operand.scalar_index().is_some() {
                let pair = wave.pair(operand);
                return Ok([[pair as u32; LANES], [(pair >> 32) as u32; LANES]]);
            }
            // A constant has 32 bits and fills the low half.
            let value = super::super::scalar_source(instruction, place, Kind::F32, wave)?;
            return Ok([[value as u32; LANES], [0; LANES]]);
        }
        if operand.vector_index().is_none() && operand.scalar_index().is_none() {
            let kind = match self.half {
                HalfKind::HalfPrecision => Kind::F16,
                _ => Kind::B32,
            };
            let value = super::super::scalar_source(instruction, place, kind, wave)? as u32;
            let value = match Brain::constant(operand) {
                Some(constant) if self.half == HalfKind::Brain => constant.0.into(),
                _ => value,
            };
            return Ok([[value & 0xffff; LANES], [value >> 16; LANES]]);
        }
        let mut words = [0; LANES];
        gather.raw(place, Kind::B32, &mut words)?;
        Ok([
            words.map(|word| word & 0xffff),
            words.map(|word| word >> 16),
        ])
    }
}

/// The instruction without the modifiers that the halves already have applied.
fn plain(instruction: &Instruction) -> Instruction {
    Instruction {
        modifiers: Default::default(),
        ..*instruction
    }
}
