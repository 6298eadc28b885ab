//! Results of vector instructions: output modifiers, sub-dword placement, and the write to the
//! active lanes.

use modelgpu_isa::{Instruction, Operand, Sdwa, Selection, Unused};

use super::super::unmodelled;
use super::super::value::Kind;
use super::operands::indexed;
use crate::error::Fault;
use crate::lanes::{Longs, Words};
use crate::wave::Wave;

/// Writes a result of at most 32 bits to `lanes`.
pub(super) fn words(
    instruction: &Instruction,
    wave: &mut Wave,
    lanes: u64,
    kind: Kind,
    results: &mut Words,
) -> Result<(), Fault> {
    if let Some(output) = Output::new(instruction, wave, kind) {
        for word in results.iter_mut() {
            *word = output.apply((*word).into()) as u32;
        }
    }
    let operand = indexed(instruction.dst, 3, wave);
    // A result of 16 bits for a whole register is written as without the control word.
    let part = instruction.sdwa.as_ref();
    if let Some(sdwa) = part.filter(|sdwa| sdwa.dst != Selection::Dword) {
        place_part(operand, wave, sdwa, results);
    } else if kind.is_half() && instruction.modifiers.op_sel & 8 != 0 {
        // Write the high half and keep the low one.
        for (lane, word) in results.iter_mut().enumerate() {
            *word = *word << 16 | wave.lane(operand, lane) & 0xffff;
        }
    } else if kind.is_half() && instruction.modifiers.keeps_half {
        for (lane, word) in results.iter_mut().enumerate() {
            *word = wave.lane(operand, lane) & 0xffff_0000 | *word & 0xffff;
        }
    }
    write(operand, 0, wave, lanes, results);
    Ok(())
}

/// Writes a result of any size to `lanes`.
pub(super) fn longs(
    instruction: &Instruction,
    wave: &mut Wave,
    lanes: u64,
    kind: Kind,
    results: &mut Longs,
) -> Result<(), Fault> {
    if !kind.is_long() {
        let mut narrow = results.map(|long| long as u32);
        return words(instruction, wave, lanes, kind, &mut narrow);
    }
    if instruction
        .sdwa
        .is_some_and(|sdwa| sdwa.dst != Selection::Dword)
    {
        return Err(unmodelled(instruction, "SDWA on a 64-bit result"));
    }
    if let Some(output) = Output::new(instruction, wave, kind) {
        for long in results.iter_mut() {
            *long = output.apply(*long);
        }
    }
    let operand = indexed(instruction.dst, 3, wave);
    write(operand, 0, wave, lanes, &results.map(|long| long as u32));
    write(
        operand,
        1,
        wave,
        lanes,
        &results.map(|long| (long >> 32) as u32),
    );
    Ok(())
}

fn write(operand: Operand, offset: usize, wave: &mut Wave, lanes: u64, results: &Words) {
    let Some(index) = operand.vector_index() else {
        return;
    };
    let simd = wave.simd;
    simd.blend(&mut wave.vectors[index + offset], results, lanes);
}

/// SDWA: moves the result to its part of the register and fills the rest.
fn place_part(operand: Operand, wave: &Wave, sdwa: &Sdwa, results: &mut Words) {
    let (shift, mask) = match sdwa.dst {
        Selection::Dword => return,
        Selection::Byte(place) => (8 * u32::from(place), 0xff),
        Selection::Half(place) => (16 * u32::from(place), 0xffff),
    };
    for (lane, word) in results.iter_mut().enumerate() {
        let part = (*word & mask) << shift;
        *word = match sdwa.unused {
            Unused::Zero => part,
            Unused::Preserve => wave.lane(operand, lane) & !(mask << shift) | part,
            Unused::SignExtend => {
                // Above the part comes its sign, below it zeros.
                let left = mask.leading_zeros() - shift;
                ((part << left) as i32 >> left) as u32
            }
        };
    }
}

/// Output modifiers of a floating-point result. The clamp modifier of integers is part of the
/// operation, because only the operation knows the exact result.
pub(super) struct Output {
    kind: Kind,
    factor: f64,
    clamp: bool,
    clamps_nan: bool,
    flush: bool,
}

impl Output {
    /// Returns `None` if the instruction writes results unchanged.
    pub(super) fn new(instruction: &Instruction, wave: &Wave, kind: Kind) -> Option<Self> {
        let modifiers = &instruction.modifiers;
        if !kind.is_float() {
            return None;
        }
        let flush = wave.mode.flushes_results(kind);
        // The hardware ignores the factor if MODE asks for IEEE 754's rules or for denormal results (LLVM's
        // SIFoldOperands; for IEEE also a test that others ran on gfx1100).
        let factor = match flush && !wave.mode.follows_ieee() {
            true => [1.0, 2.0, 4.0, 0.5][usize::from(modifiers.output & 3)],
            false => 1.0,
        };
        if factor == 1.0 && !modifiers.clamp && !flush {
            return None;
        }
        Some(Self {
            kind,
            factor,
            clamp: modifiers.clamp,
            clamps_nan: wave.mode.clamps_nan(),
            flush,
        })
    }

    pub(super) fn apply(&self, bits: u64) -> u64 {
        let mut bits = bits;
        if self.factor != 1.0 {
            bits = self
                .kind
                .encode_float(self.kind.decode_float(bits) * self.factor);
        }
        if self.flush {
            bits = self.kind.flushed(bits);
        }
        if self.clamp {
            let value = self.kind.decode_float(bits);
            if value.is_nan() {
                return if self.clamps_nan { 0 } else { bits };
            }
            // A zero of either sign clamps to +0.
            bits = self
                .kind
                .encode_float(if value > 0.0 { value.min(1.0) } else { 0.0 });
        }
        bits
    }
}
