//! DS, FLAT (with GLOBAL and SCRATCH), MUBUF, MTBUF and MIMG.

use super::{Fields, Words, sign_extend};
use crate::isa::ImageControl;
use crate::isa::operand::Operand;
use crate::target::Target;

pub(super) fn decode_lds(words: Words) -> Fields {
    let mut fields = Fields::new(&words.tables().ds, words.first(24, 17), 8);
    let instruction = &mut fields.instruction;
    instruction.src = [
        Operand::vgpr(words.second(7, 0)),
        Operand::vgpr(words.second(15, 8)),
        Operand::vgpr(words.second(23, 16)),
    ];
    instruction.dst = Operand::vgpr(words.second(31, 24));
    instruction.immediate = words.first(15, 0) as i32;
    if words.first_bit(25) {
        instruction.src[2] = instruction.src[2].to_agpr();
        use_agpr_data(&mut fields);
    }
    fields
}

pub(super) fn decode_flat(words: Words) -> Fields {
    const FLAT: u32 = 0;
    const SCRATCH: u32 = 1;
    /// The saddr field of an instruction without a scalar address.
    const NO_SADDR: u32 = 0x7f;
    let segment = words.first(15, 14);
    let table = match segment {
        FLAT => &words.tables().flat,
        SCRATCH => &words.tables().scratch,
        _ => &words.tables().global,
    };
    let mut fields = Fields::new(table, words.first(24, 18), 8);
    let instruction = &mut fields.instruction;
    instruction.src[0] = Operand::vgpr(words.second(7, 0));
    instruction.src[1] = Operand::vgpr(words.second(15, 8));
    let saddr = words.second(22, 16);
    if segment != FLAT && saddr != NO_SADDR {
        instruction.src[2] = Operand::scalar(saddr);
    }
    instruction.dst = Operand::vgpr(words.second(31, 24));
    instruction.immediate = if segment == FLAT {
        words.first(11, 0) as i32
    } else {
        sign_extend(words.first(12, 0), 13)
    };
    instruction.returns = words.first_bit(16);
    instruction.buffer.to_lds = words.target == Target::Gfx90a && words.first_bit(13);
    instruction.has_vector_address = match words.target {
        // Scratch takes a vector or a scalar address; gfx942 has a bit for the vector address.
        Target::Gfx90a => instruction.src[2].is_none(),
        Target::Gfx942 | Target::Gfx950 => words.first_bit(13),
    };
    if words.second_bit(23) {
        use_agpr_data(&mut fields);
    }
    fields
}

pub(super) fn decode_buffer(words: Words) -> Fields {
    let mut fields = Fields::new(&words.tables().mubuf, words.first(24, 18), 8);
    fields.instruction.buffer.to_lds = words.first_bit(16);
    complete_buffer(words, &mut fields);
    fields
}

pub(super) fn decode_typed_buffer(words: Words) -> Fields {
    let mut fields = Fields::new(&words.tables().mtbuf, words.first(18, 15), 8);
    let format = (words.first(22, 19) as u8, words.first(25, 23) as u8);
    fields.instruction.buffer.format = Some(format);
    complete_buffer(words, &mut fields);
    fields
}

pub(super) fn decode_image(words: Words) -> Fields {
    let mut fields = Fields::new(&words.tables().mimg, words.first(24, 18), 8);
    let instruction = &mut fields.instruction;
    instruction.src[0] = Operand::vgpr(words.second(7, 0));
    instruction.src[1] = Operand::vgpr(words.second(15, 8));
    // The resource and the sampler count groups of four registers.
    instruction.sdst = Operand::scalar(words.second(20, 16) * 4);
    instruction.src[2] = Operand::scalar(words.second(25, 21) * 4);
    instruction.dst = instruction.src[1];
    instruction.returns = words.first_bit(13);
    instruction.image = ImageControl {
        mask: words.first(11, 8) as u8,
        in_texels: words.first_bit(12),
        has_layer: words.first_bit(14),
        short_coordinates: words.first_bit(15),
        halves: words.second_bit(31),
    };
    if words.first_bit(16) {
        use_agpr_data(&mut fields);
    }
    fields
}

/// The fields that typed and other buffer instructions share.
fn complete_buffer(words: Words, fields: &mut Fields) {
    let instruction = &mut fields.instruction;
    instruction.src[0] = Operand::vgpr(words.second(7, 0));
    instruction.src[1] = Operand::vgpr(words.second(15, 8));
    instruction.src[2] = Operand::scalar(words.second(31, 24));
    // SRSRC counts groups of four registers.
    instruction.sdst = Operand::scalar(words.second(20, 16) * 4);
    instruction.dst = instruction.src[1];
    instruction.immediate = words.first(11, 0) as i32;
    instruction.returns = words.first_bit(14);
    instruction.has_vector_address = words.first_bit(12);
    instruction.buffer.indexed = words.first_bit(13);
    if words.second_bit(23) {
        use_agpr_data(fields);
    }
}

/// The ACC bit: the data are in accumulation registers.
fn use_agpr_data(fields: &mut Fields) {
    let instruction = &mut fields.instruction;
    instruction.src[1] = instruction.src[1].to_agpr();
    instruction.dst = instruction.dst.to_agpr();
}
