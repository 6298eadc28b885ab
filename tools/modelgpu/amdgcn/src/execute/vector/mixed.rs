//! Multiply-adds of mixed precision. Each source is single precision, or one half of a register in
//! half precision. op_sel_hi selects the precision, op_sel the half; neg_hi takes the place of abs.

use modelgpu_isa::{Instruction, Modifiers};

use super::super::value::{Brain, Half, Kind};
use super::super::{Operation, unmodelled};
use super::gather::Gather;
use super::operation::{MixedResult, VectorOperation};
use super::scatter;
use crate::error::Fault;
use crate::lanes::{LANES, Words};
use crate::wave::Wave;

const fn mixed(result: MixedResult, is_brain: bool) -> Operation {
    Operation::Vector(VectorOperation::Mixed { result, is_brain })
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("v_fma_mix_f32", mixed(MixedResult::Single, false)),
    ("v_fma_mixlo_f16", mixed(MixedResult::Low, false)),
    ("v_fma_mixhi_f16", mixed(MixedResult::High, false)),
    ("v_fma_mix_f32_bf16", mixed(MixedResult::Single, true)),
    ("v_fma_mixlo_bf16", mixed(MixedResult::Low, true)),
    ("v_fma_mixhi_bf16", mixed(MixedResult::High, true)),
];

impl MixedResult {
    pub(super) fn execute(
        self,
        is_brain: bool,
        instruction: &Instruction,
        wave: &mut Wave,
    ) -> Result<(), Fault> {
        if is_brain && self != Self::Single && instruction.modifiers.clamp {
            return Err(unmodelled(instruction, "the clamp modifier"));
        }
        let gather = Gather::new(instruction, wave)?;
        let lanes = gather.lanes();
        let [a, b, c] = sources(instruction, &gather, is_brain)?;
        let sums: [f32; LANES] = std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]));
        // The result must not get the source modifiers again.
        let modifiers = Modifiers {
            clamp: instruction.modifiers.clamp,
            keeps_half: true,
            op_sel: if self == Self::High { 8 } else { 0 },
            ..Modifiers::default()
        };
        let plain = Instruction {
            modifiers,
            ..*instruction
        };
        // A half is rounded from the sum in single precision, because the compiler uses the
        // instruction as a conversion of v_fma_mix_f32's result.
        let (kind, mut results): (Kind, Words) = match self {
            Self::Single => (Kind::F32, sums.map(f32::to_bits)),
            _ if is_brain => (Kind::B16, sums.map(|sum| Brain::nearest(sum).0.into())),
            _ => (
                Kind::F16,
                sums.map(|sum| Half::from_f64(sum.into()).0.into()),
            ),
        };
        scatter::words(&plain, wave, lanes, kind, &mut results)
    }
}

fn sources(
    instruction: &Instruction,
    gather: &Gather<'_>,
    is_brain: bool,
) -> Result<[[f32; LANES]; 3], Fault> {
    let modifiers = instruction.modifiers;
    let mut sources = [[0f32; LANES]; 3];
    for (place, values) in sources.iter_mut().enumerate() {
        let of_halves = modifiers.op_sel_hi >> place & 1 == 1;
        // A constant has the source's format; a half fills the low half.
        let kind = if of_halves { Kind::F16 } else { Kind::F32 };
        let mut words: Words = [0; LANES];
        gather.raw(place, kind, &mut words)?;
        if let Some(constant) = Brain::constant(instruction.src[place])
            && is_brain
            && of_halves
        {
            words.fill(constant.0.into());
        }
        for (value, word) in values.iter_mut().zip(words) {
            *value = if of_halves && is_brain {
                Brain((word >> (16 * (modifiers.op_sel >> place & 1))) as u16).to_f32()
            } else if of_halves {
                Half((word >> (16 * (modifiers.op_sel >> place & 1))) as u16).to_f32()
            } else {
                f32::from_bits(word)
            };
            if modifiers.neg_hi >> place & 1 == 1 {
                *value = value.abs();
            }
            if modifiers.neg >> place & 1 == 1 {
                *value = -*value;
            }
        }
    }
    Ok(sources)
}
