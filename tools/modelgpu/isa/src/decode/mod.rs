//! Decodes up to four dwords into an instruction. This module distinguishes the encodings and has one
//! submodule per group of encodings. A generation has its own layout of some of them.

mod fields;
mod memory;
mod scalar;
mod vector;

use crate::implicit;
use crate::instruction::Instruction;
use crate::opcode::Table;
use crate::target::{Generation, Target};
use fields::Words;

/// The bytes do not encode an instruction of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{:#010x} {:#010x} encode no instruction of the target", words[0], words[1])]
pub struct DecodeError {
    /// The first two dwords.
    pub words: [u32; 2],
}

/// A group of encodings with common fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// VOP1, VOP2 and VOPC.
    ShortVector,
    /// VOP3.
    LongVector,
    /// VOP3P.
    PackedVector,
    /// VOPD.
    DualVector,
    /// VOPD with three sources each.
    WideDualVector,
    /// SOP1, SOP2, SOPC, SOPK and SOPP.
    Scalar,
    ScalarMemory,
    Lds,
    Flat,
    Buffer,
    TypedBuffer,
    Image,
    /// VSAMPLE.
    SampledImage,
}

impl Layout {
    /// The layout of an instruction that begins with a dword.
    fn from_word(first: u32, target: Target) -> Option<Self> {
        Some(match (target.generation(), first >> 26) {
            (_, 0..=0x1f) => Self::ShortVector,
            (_, 0x20..=0x2f) => Self::Scalar,
            (Generation::Gfx9, 0x30) => Self::ScalarMemory,
            (Generation::Gfx9, 0x34) if first >> 23 == 0x1a7 => Self::PackedVector,
            (Generation::Gfx9, 0x34) => Self::LongVector,
            (Generation::Gfx11 | Generation::Gfx12, 0x32) => Self::DualVector,
            (Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12, 0x33)
                if first >> 24 == 0xcc =>
            {
                Self::PackedVector
            }
            (_, 0x33) if target == Target::Gfx1250 && first >> 24 == 0xcf => Self::WideDualVector,
            (Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12, 0x35) => Self::LongVector,
            (Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12, 0x3d) => Self::ScalarMemory,
            (_, 0x36) => Self::Lds,
            (Generation::Gfx12, 0x31) => Self::Buffer,
            (Generation::Gfx12, 0x34) => Self::Image,
            (Generation::Gfx12, 0x39) => Self::SampledImage,
            (Generation::Gfx12, 0x3b) => Self::Flat,
            (Generation::Gfx12, _) => return None,
            (_, 0x37) => Self::Flat,
            (_, 0x38) => Self::Buffer,
            (_, 0x3a) => Self::TypedBuffer,
            (_, 0x3c) => Self::Image,
            _ => return None,
        })
    }
}

/// Decodes the instruction that begins with `words[0]`. Dwords past the end of the code are 0.
///
/// # Errors
///
/// Fails if the target has no instruction with this encoding.
pub fn decode(words: [u32; 4], target: Target) -> Result<Instruction, DecodeError> {
    let error = DecodeError {
        words: [words[0], words[1]],
    };
    let words = Words { words, target };
    let first = words.words[0];
    let layout = Layout::from_word(first, target).ok_or(error)?;
    let scales = vector::scales(words);
    let words = if scales.is_some() {
        words.behind_scales()
    } else {
        words
    };
    let mut fields = match layout {
        Layout::ShortVector => vector::decode_short(words),
        Layout::LongVector => vector::decode_long(words),
        Layout::PackedVector => vector::decode_packed(words),
        Layout::DualVector => vector::decode_dual(words),
        Layout::WideDualVector => vector::decode_wide_dual(words),
        Layout::Scalar => scalar::decode(words),
        Layout::ScalarMemory => scalar::decode_memory(words),
        Layout::Lds => memory::decode_lds(words),
        Layout::Flat if words.is_gfx12() => memory::decode_wide_flat(words),
        Layout::Flat => memory::decode_flat(words),
        Layout::Buffer => memory::decode_buffer(words),
        Layout::TypedBuffer => memory::decode_typed_buffer(words),
        Layout::Image => memory::decode_image(words),
        Layout::SampledImage => memory::decode_sampled_image(words),
    };
    if scales.is_some() {
        fields.table = &words.tables().vop3px;
        fields.instruction.size = 16;
        fields.opcode += vector::first_scaled(first);
    }
    let instruction = &mut fields.instruction;
    let facts = |(table, opcode): (&'static Table, u32)| table.facts(opcode, target).ok_or(error);
    instruction.facts = facts((fields.table, fields.opcode))?;
    instruction.mnemonic = instruction.facts.mnemonic;
    if let (Some(second), Some(opcode)) = (&mut instruction.second, fields.second) {
        second.facts = facts(opcode)?;
        second.mnemonic = second.facts.mnemonic;
    }
    // The tables name barriers and counters of all workgroups apart. Other opcodes would be those of LDS.
    let is_named = |name: &str| name.starts_with("ds_gws_") || name.starts_with("ds_ordered_");
    if is_global_data(first, target) && !is_named(instruction.mnemonic) {
        return Err(error);
    }
    implicit::complete(instruction, layout_of_vector(layout), words.words, target);
    instruction.matrix.scales = scales;
    Ok(fields.instruction)
}

fn layout_of_vector(layout: Layout) -> implicit::Vector {
    match layout {
        Layout::ShortVector => implicit::Vector::Short,
        Layout::LongVector | Layout::PackedVector => implicit::Vector::Long,
        Layout::DualVector | Layout::WideDualVector => implicit::Vector::Dual,
        _ => implicit::Vector::Not,
    }
}

/// Returns whether an instruction that begins with a dword accesses the data that all workgroups share (GDS), and not
/// LDS. RDNA 4 has no such data.
fn is_global_data(first: u32, target: Target) -> bool {
    let bit = match target.generation() {
        Generation::Gfx9 => 16,
        Generation::Gfx10 | Generation::Gfx11 => 17,
        Generation::Gfx12 => return false,
    };
    first >> 26 == 0x36 && first >> bit & 1 == 1
}
