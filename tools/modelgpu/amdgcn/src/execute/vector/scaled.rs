//! Conversions with a scale between floats of 32 or 16 bits and the OCP's formats of 8, 6 and 4 bits. The
//! last source is a single-precision number, of which only the exponent counts: small numbers are multiples
//! of it. If all its bits are set, results are NaN.
//!
//! Sources: AMD's CDNA4 instruction set guide; the order of elements in the two sources of "2xpk16" as
//! AMD's Composable Kernel uses it.

use modelgpu_isa::{Instruction, Operand};

use super::super::value::Kind;
use super::super::{Operation, unmodelled};
use super::gather::Gather;
use super::operation::{Scaled, VectorOperation};
use super::small::{self, BF6, BF8, FP4, FP6, FP8, Format, SINGLE};
use crate::error::Fault;
use crate::lanes::{LANES, Words, active};
use crate::wave::Wave;

const fn scaled(count: u32, from: Format, to: Format) -> Operation {
    conversion(count, from, to, false)
}

const fn random(count: u32, from: Format, to: Format) -> Operation {
    conversion(count, from, to, true)
}

const fn conversion(count: u32, from: Format, to: Format, by_random: bool) -> Operation {
    Operation::Vector(VectorOperation::Scaled(Scaled {
        from,
        to,
        count,
        by_random,
    }))
}

/// AMD's emulation on the host gives NaNs of 16 bits with all bits set.
const HALF: Format = small::HALF.with_full_nans();
const BRAIN: Format = small::BRAIN.with_full_nans();

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("v_cvt_scalef32_f32_fp8", scaled(1, FP8, SINGLE)),
    ("v_cvt_scalef32_f32_bf8", scaled(1, BF8, SINGLE)),
    ("v_cvt_scalef32_f16_fp8", scaled(1, FP8, HALF)),
    ("v_cvt_scalef32_f16_bf8", scaled(1, BF8, HALF)),
    ("v_cvt_scalef32_pk_f32_fp8", scaled(2, FP8, SINGLE)),
    ("v_cvt_scalef32_pk_f32_bf8", scaled(2, BF8, SINGLE)),
    ("v_cvt_scalef32_pk_f32_fp4", scaled(2, FP4, SINGLE)),
    ("v_cvt_scalef32_pk_f16_fp8", scaled(2, FP8, HALF)),
    ("v_cvt_scalef32_pk_f16_bf8", scaled(2, BF8, HALF)),
    ("v_cvt_scalef32_pk_f16_fp4", scaled(2, FP4, HALF)),
    ("v_cvt_scalef32_pk_bf16_fp8", scaled(2, FP8, BRAIN)),
    ("v_cvt_scalef32_pk_bf16_bf8", scaled(2, BF8, BRAIN)),
    ("v_cvt_scalef32_pk_bf16_fp4", scaled(2, FP4, BRAIN)),
    ("v_cvt_scalef32_pk_fp8_f32", scaled(2, SINGLE, FP8)),
    ("v_cvt_scalef32_pk_bf8_f32", scaled(2, SINGLE, BF8)),
    ("v_cvt_scalef32_pk_fp4_f32", scaled(2, SINGLE, FP4)),
    ("v_cvt_scalef32_pk_fp8_f16", scaled(2, HALF, FP8)),
    ("v_cvt_scalef32_pk_bf8_f16", scaled(2, HALF, BF8)),
    ("v_cvt_scalef32_pk_fp4_f16", scaled(2, HALF, FP4)),
    ("v_cvt_scalef32_pk_fp8_bf16", scaled(2, BRAIN, FP8)),
    ("v_cvt_scalef32_pk_bf8_bf16", scaled(2, BRAIN, BF8)),
    ("v_cvt_scalef32_pk_fp4_bf16", scaled(2, BRAIN, FP4)),
    ("v_cvt_scalef32_sr_fp8_f32", random(1, SINGLE, FP8)),
    ("v_cvt_scalef32_sr_bf8_f32", random(1, SINGLE, BF8)),
    ("v_cvt_scalef32_sr_fp8_f16", random(1, HALF, FP8)),
    ("v_cvt_scalef32_sr_bf8_f16", random(1, HALF, BF8)),
    ("v_cvt_scalef32_sr_fp8_bf16", random(1, BRAIN, FP8)),
    ("v_cvt_scalef32_sr_bf8_bf16", random(1, BRAIN, BF8)),
    ("v_cvt_scalef32_sr_pk_fp4_f32", random(2, SINGLE, FP4)),
    ("v_cvt_scalef32_sr_pk_fp4_f16", random(2, HALF, FP4)),
    ("v_cvt_scalef32_sr_pk_fp4_bf16", random(2, BRAIN, FP4)),
    ("v_cvt_scalef32_2xpk16_fp6_f32", scaled(32, SINGLE, FP6)),
    ("v_cvt_scalef32_2xpk16_bf6_f32", scaled(32, SINGLE, BF6)),
    ("v_cvt_scalef32_pk32_fp6_f16", scaled(32, HALF, FP6)),
    ("v_cvt_scalef32_pk32_bf6_f16", scaled(32, HALF, BF6)),
    ("v_cvt_scalef32_pk32_fp6_bf16", scaled(32, BRAIN, FP6)),
    ("v_cvt_scalef32_pk32_bf6_bf16", scaled(32, BRAIN, BF6)),
    ("v_cvt_scalef32_pk32_f32_fp6", scaled(32, FP6, SINGLE)),
    ("v_cvt_scalef32_pk32_f32_bf6", scaled(32, BF6, SINGLE)),
    ("v_cvt_scalef32_pk32_f16_fp6", scaled(32, FP6, HALF)),
    ("v_cvt_scalef32_pk32_f16_bf6", scaled(32, BF6, HALF)),
    ("v_cvt_scalef32_pk32_bf16_fp6", scaled(32, FP6, BRAIN)),
    ("v_cvt_scalef32_pk32_bf16_bf6", scaled(32, BF6, BRAIN)),
    ("v_cvt_scalef32_sr_pk32_fp6_f32", random(32, SINGLE, FP6)),
    ("v_cvt_scalef32_sr_pk32_bf6_f32", random(32, SINGLE, BF6)),
    ("v_cvt_scalef32_sr_pk32_fp6_f16", random(32, HALF, FP6)),
    ("v_cvt_scalef32_sr_pk32_bf6_f16", random(32, HALF, BF6)),
    ("v_cvt_scalef32_sr_pk32_fp6_bf16", random(32, BRAIN, FP6)),
    ("v_cvt_scalef32_sr_pk32_bf6_bf16", random(32, BRAIN, BF6)),
];

/// The bits of the elements of a lane, in the registers from the first one on.
type Elements = [u32; 32];

impl Scaled {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let gather = Gather::new(instruction, wave)?;
        let word = |place: usize, kind: Kind| -> Result<Words, Fault> {
            let mut words = [0; LANES];
            gather.raw(place, kind, &mut words)?;
            Ok(words)
        };
        let is_small = self.from.width() <= 8;
        let is_constant =
            |operand: Operand| operand.vector_index().is_none() && operand.scalar_index().is_none();
        if self.from.width() != 32 && is_constant(instruction.src[0]) {
            return Err(unmodelled(instruction, "a constant"));
        }
        let first = word(0, Kind::F32)?;
        let second = match self.has_two_sources() {
            true => word(1, Kind::F32)?,
            false => [0; LANES],
        };
        let random = match self.by_random {
            true => word(1, Kind::B32)?,
            false => [0; LANES],
        };
        let last = 1 + usize::from(self.by_random || self.has_two_sources());
        let scales = word(last, Kind::F32)?;
        let lanes = gather.lanes();
        let modifiers = instruction.modifiers;
        for lane in active(lanes) {
            let bits = |number: u32| {
                if self.has_two_sources() {
                    let place = number as usize % 2;
                    return match (number, place) {
                        (0, _) => first[lane],
                        (1, _) => second[lane],
                        _ => wave.lane_at(instruction.src[place], number as usize / 2, lane),
                    };
                }
                let group = self.count * self.from.width();
                let start = match is_small && group < 32 {
                    true => group * u32::from(modifiers.op_sel & 3),
                    false => 0,
                };
                let bit = start + number * self.from.width();
                let at = |register: u32| match register {
                    0 => first[lane],
                    _ => wave.lane_at(instruction.src[0], register as usize, lane),
                };
                // Six bits may lie in two registers.
                let register = bit / 32;
                let more = match bit % 32 + self.from.width() > 32 {
                    true => at(register + 1),
                    false => 0,
                };
                let both = u64::from(at(register)) | u64::from(more) << 32;
                (both >> (bit % 32)) as u32 & (u32::MAX >> (32 - self.from.width()))
            };
            let mut elements: Elements = [0; 32];
            for number in 0..self.count {
                let place = match self.has_two_sources() {
                    true => number % 2,
                    false => 0,
                };
                let sign = self.from.sign_bit();
                let mut element = bits(number);
                if modifiers.abs >> place & 1 == 1 {
                    element &= !sign;
                }
                if modifiers.neg >> place & 1 == 1 {
                    element ^= sign;
                }
                elements[number as usize] = self.convert(element, scales[lane], random[lane]);
            }
            self.write(instruction, &elements, lane, wave);
        }
        Ok(())
    }

    /// Numbers of 32 bits lie in two sources, one after the other in turn.
    fn has_two_sources(self) -> bool {
        self.from == SINGLE && !self.by_random
    }

    fn convert(self, bits: u32, scale: u32, random: u32) -> u32 {
        const ALL: u32 = 255;
        let exponent = scale >> 23 & ALL;
        let value = self.from.decode(bits);
        let power = super::super::float::ldexp(1.0, exponent as i32 - 127);
        let scaled = match self.to.width() <= 8 {
            _ if exponent == ALL => f64::NAN.copysign(value),
            true => value / power,
            false => value * power,
        };
        match self.by_random {
            true => self.to.encode_randomly(scaled, self.from, random),
            false => self.to.encode(scaled),
        }
    }

    /// Writes a lane's results one behind the other. Those of a half or a quarter of a register go to the part
    /// that op_sel selects, and the rest of the register stays.
    fn write(self, instruction: &Instruction, elements: &Elements, lane: usize, wave: &mut Wave) {
        let width = self.to.width();
        let group = self.count * width;
        let select = u32::from(instruction.modifiers.op_sel >> 2);
        let start = match group {
            8 => 8 * select,
            16 => 8 * (select & 2),
            _ => 0,
        };
        let mut words = [0u32; 33];
        for (number, element) in (0..self.count).zip(elements) {
            let bit = start + number * width;
            let both = u64::from(*element) << (bit % 32);
            words[(bit / 32) as usize] |= both as u32;
            words[(bit / 32) as usize + 1] |= (both >> 32) as u32;
        }
        if group < 32 {
            let part = ((1 << group) - 1) << start;
            words[0] |= wave.lane(instruction.dst, lane) & !part;
        }
        for (place, word) in words.iter().enumerate().take(group.div_ceil(32) as usize) {
            wave.set_lane_at(instruction.dst, place, lane, *word);
        }
    }
}
