//! Multiply-adds of mixed precision: each source is single precision, or one half of a register
//! in half precision. op_sel_hi tells which, op_sel which half; neg_hi stands for abs.

use super::super::value::{Half, Kind};
use super::super::{Operation, unmodelled};
use super::gather::Gather;
use super::{VectorOperation, scatter};
use crate::error::Fault;
use crate::isa::{Instruction, Modifiers};
use crate::wave::{LANES, Wave, Words};

pub(super) const OPERATIONS: &[(&str, Operation)] =
    &[("v_fma_mix_f32", Operation::Vector(VectorOperation::Mixed))];

pub(super) fn execute(instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let modifiers = instruction.modifiers;
    let gather = Gather::new(instruction, wave)?;
    let lanes = gather.lanes();
    let mut sources = [[0f32; LANES]; 3];
    for (place, values) in sources.iter_mut().enumerate() {
        let of_halves = modifiers.op_sel_hi >> place & 1 == 1;
        if of_halves && instruction.src[place].vector_index().is_none() {
            return Err(unmodelled(
                instruction,
                "a scalar operand in half precision",
            ));
        }
        let mut words: Words = [0; LANES];
        gather.raw(place, Kind::F32, &mut words)?;
        for (value, word) in values.iter_mut().zip(words) {
            *value = if of_halves {
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
    let [a, b, c] = sources;
    let mut results: Words =
        std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]).to_bits());
    // What was applied to the sources is no modifier of the result.
    let plain = Instruction {
        modifiers: Modifiers {
            clamp: modifiers.clamp,
            ..Modifiers::default()
        },
        ..*instruction
    };
    scatter::words(&plain, wave, lanes, Kind::F32, &mut results)
}
