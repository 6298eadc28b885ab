//! DS, FLAT (with GLOBAL and SCRATCH), MUBUF, MTBUF and MIMG. RDNA 4 has three dwords for all but the
//! first, and calls them VFLAT, VGLOBAL, VSCRATCH, VBUFFER, VIMAGE and VSAMPLE.

use super::fields::{Fields, Words, sign_extend};
use crate::operand::Operand;
use crate::target::{Generation, Target};
use crate::{BufferFormat, ImageControl, Instruction};

pub(super) fn decode_lds(words: Words) -> Fields {
    let opcode = match words.is_gfx9() {
        true => words.first(24, 17),
        false => words.first(25, 18),
    };
    let mut fields = Fields::new(&words.tables().ds, opcode, 8);
    let instruction = &mut fields.instruction;
    instruction.src = [
        Operand::vgpr(words.second(7, 0)),
        Operand::vgpr(words.second(15, 8)),
        Operand::vgpr(words.second(23, 16)),
    ];
    instruction.dst = Operand::vgpr(words.second(31, 24));
    instruction.immediate = words.first(15, 0) as i32;
    if words.target.has_unified_registers() && words.first_bit(25) {
        instruction.src[2] = instruction.src[2].to_agpr();
        use_agpr_data(&mut fields);
    }
    fields
}

pub(super) fn decode_flat(words: Words) -> Fields {
    const FLAT: u32 = 0;
    const SCRATCH: u32 = 1;
    let is_early = words.has_early_forms();
    let segment = match is_early {
        true => words.first(15, 14),
        false => words.first(17, 16),
    };
    let tables = words.tables();
    let table = match segment {
        FLAT => &tables.flat,
        SCRATCH => &tables.scratch,
        _ => &tables.global,
    };
    let mut fields = Fields::new(table, words.first(24, 18), 8);
    let instruction = &mut fields.instruction;
    instruction.src[0] = Operand::vgpr(words.second(7, 0));
    instruction.src[1] = Operand::vgpr(words.second(15, 8));
    // The saddr field of an instruction without a scalar address is NULL, or 0x7f on gfx9. On gfx10, scratch with 0x7f
    // has no vector address, either.
    const NO_ADDRESS: u32 = 0x7f;
    let address = words.second(22, 16);
    let has_saddr = match words.is_gfx9() {
        true => address != NO_ADDRESS,
        false => {
            words.scalar(address) != Operand::NULL && !(words.is_gfx10() && address == NO_ADDRESS)
        }
    };
    let saddr = match has_saddr {
        true => Operand::scalar(address),
        false => Operand::NONE,
    };
    if segment != FLAT {
        instruction.src[2] = saddr;
    }
    instruction.dst = Operand::vgpr(words.second(31, 24));
    instruction.immediate = match (segment, words.target.generation()) {
        (FLAT, Generation::Gfx9) => words.first(11, 0) as i32,
        (FLAT, Generation::Gfx10) => words.first(10, 0) as i32,
        (_, Generation::Gfx10) => sign_extend(words.first(11, 0), 12),
        _ => sign_extend(words.first(12, 0), 13),
    };
    let has_lds_bit = matches!(
        words.target,
        Target::Gfx906 | Target::Gfx908 | Target::Gfx90a | Target::Gfx1030
    );
    instruction.buffer.to_lds = has_lds_bit && words.first_bit(13);
    instruction.has_vector_address = match words.target {
        // Scratch takes a vector or a scalar address; later targets have a bit for the vector address.
        Target::Gfx906 | Target::Gfx908 | Target::Gfx90a => instruction.src[2].is_none(),
        Target::Gfx942 | Target::Gfx950 => words.first_bit(13),
        Target::Gfx1030 => !has_saddr && address != NO_ADDRESS,
        Target::Gfx1100 | Target::Gfx1201 | Target::Gfx1250 => words.second_bit(23),
    };
    // GLC. On gfx942, it is SC0, and there also is SC1.
    instruction.returns = words.first_bit(if is_early { 16 } else { 14 });
    let has_sc1 = matches!(words.target, Target::Gfx942 | Target::Gfx950) && words.first_bit(25);
    instruction.coherent = segment != SCRATCH && (instruction.returns || has_sc1);
    if words.target.has_unified_registers() && words.second_bit(23) {
        use_agpr_data(&mut fields);
    }
    fields
}

/// VFLAT, VGLOBAL and VSCRATCH.
pub(super) fn decode_wide_flat(words: Words) -> Fields {
    const FLAT: u32 = 0xec;
    const SCRATCH: u32 = 0xed;
    let tables = words.tables();
    let segment = words.first(31, 24);
    let table = match segment {
        FLAT => &tables.flat,
        SCRATCH => &tables.scratch,
        _ => &tables.global,
    };
    let mut fields = Fields::new(table, words.first(21, 14), 12);
    let instruction = &mut fields.instruction;
    let [_, _, third, _] = words.words;
    instruction.src[0] = Operand::vgpr(third & 0xff);
    instruction.src[1] = Operand::vgpr(words.second(30, 23));
    let address = words.first(6, 0);
    if (segment != FLAT || words.is_gfx1250()) && words.scalar(address) != Operand::NULL {
        instruction.src[2] = Operand::scalar(address);
    }
    instruction.dst = Operand::vgpr(words.second(7, 0));
    instruction.immediate = sign_extend(third >> 8, 24);
    instruction.has_vector_address = words.second_bit(17);
    instruction.scales_offset = words.is_gfx1250() && words.second_bit(16);
    // The lowest bit of the temporal hint of an atomic.
    instruction.returns = words.second_bit(20);
    // The scope is more than a compute unit.
    instruction.coherent = segment != SCRATCH && words.second(19, 18) != 0;
    fields
}

/// VSAMPLE.
pub(super) fn decode_sampled_image(words: Words) -> Fields {
    let fields = Fields::new(&words.tables().vsample, words.first(21, 14), 12);
    let mut fields = complete_wide_image(words, fields);
    let instruction = &mut fields.instruction;
    instruction.src[2] = Operand::scalar(words.second(31, 23));
    let image = &mut instruction.image;
    image.in_texels = words.first_bit(13);
    image.tells_residence = words.first_bit(3) || words.second_bit(8);
    image.listed_addresses = 4;
    fields
}

/// VIMAGE.
fn decode_wide_image(words: Words) -> Fields {
    let fields = Fields::new(&words.tables().mimg, words.first(21, 14), 12);
    let mut fields = complete_wide_image(words, fields);
    let image = &mut fields.instruction.image;
    image.tells_residence = words.second_bit(23);
    image.listed_addresses = 5;
    image.more_addresses[3] = words.second(31, 24) as u8;
    fields
}

/// The fields that VIMAGE and VSAMPLE share.
fn complete_wide_image(words: Words, mut fields: Fields) -> Fields {
    let instruction = &mut fields.instruction;
    let [_, _, third, _] = words.words;
    let [first, second, third, fourth] = third.to_le_bytes();
    instruction.src[0] = Operand::vgpr(first.into());
    instruction.src[1] = Operand::vgpr(words.second(7, 0));
    instruction.sdst = Operand::scalar(words.second(17, 9));
    instruction.dst = instruction.src[1];
    // The lowest bit of the temporal hint of an atomic.
    instruction.returns = words.second_bit(20);
    instruction.image = ImageControl {
        mask: words.first(25, 22) as u8,
        short_coordinates: words.first_bit(6),
        halves: words.first_bit(5),
        short_resource: words.first_bit(4),
        more_addresses: [second, third, fourth, 0, 0, 0, 0, 0],
        ..dimension_control(words.first(2, 0))
    };
    fields
}

/// MIMG of RDNA 3. A bit says that a dword of further addresses follows.
fn decode_listed_image(words: Words) -> Fields {
    let [_, _, third, _] = words.words;
    let (size, listed_addresses) = if words.first_bit(0) { (12, 5) } else { (8, 1) };
    let mut fields = Fields::new(&words.tables().mimg, words.first(25, 18), size);
    let instruction = &mut fields.instruction;
    set_image_registers(instruction, words, words.second(30, 26));
    instruction.returns = words.first_bit(14);
    instruction.image = ImageControl {
        mask: words.first(11, 8) as u8,
        in_texels: words.first_bit(7),
        short_coordinates: words.first_bit(16),
        halves: words.first_bit(17),
        short_resource: words.first_bit(15),
        tells_residence: words.second(22, 21) != 0,
        listed_addresses,
        more_addresses: addresses([third, 0]),
        ..dimension_control(words.first(4, 2))
    };
    fields
}

/// The addresses in the dwords behind an image instruction.
fn addresses(words: [u32; 2]) -> [u8; 8] {
    let [first, second] = words.map(u64::from);
    (first | second << 32).to_le_bytes()
}

/// MIMG of RDNA 2. Up to three dwords of further addresses follow. The last four addresses of three dwords are not
/// among those listed.
fn decode_grouped_image(words: Words) -> Fields {
    let [_, _, third, fourth] = words.words;
    let groups = words.first(2, 1);
    let opcode = words.first(24, 18) | words.first(0, 0) << 7;
    let mut fields = Fields::new(&words.tables().mimg, opcode, 8 + 4 * groups as u8);
    let instruction = &mut fields.instruction;
    set_image_registers(instruction, words, words.second(25, 21));
    instruction.returns = words.first_bit(13);
    instruction.image = ImageControl {
        mask: words.first(11, 8) as u8,
        in_texels: words.first_bit(12),
        short_coordinates: words.second_bit(30),
        halves: words.second_bit(31),
        short_resource: words.first_bit(15),
        tells_residence: words.first(17, 16) != 0,
        listed_addresses: 1 + 4 * groups.min(2) as u8,
        more_addresses: addresses([third, fourth]),
        ..dimension_control(words.first(5, 3))
    };
    fields
}

/// Sets the registers of MIMG: of the first address, the data, the resource and the sampler.
fn set_image_registers(instruction: &mut Instruction, words: Words, sampler: u32) {
    instruction.src[0] = Operand::vgpr(words.second(7, 0));
    instruction.src[1] = Operand::vgpr(words.second(15, 8));
    // The resource and the sampler count groups of four registers.
    instruction.sdst = Operand::scalar(words.second(20, 16) * 4);
    instruction.src[2] = Operand::scalar(sampler * 4);
    instruction.dst = instruction.src[1];
}

/// RDNA's DIM.
fn dimension_control(code: u32) -> ImageControl {
    let (dimensions, has_layer) = match code {
        0 => (1, false),
        1 => (2, false),
        2 => (3, false),
        4 => (1, true),
        5 => (2, true),
        _ => (0, false),
    };
    ImageControl {
        dimensions: Some(dimensions),
        has_layer,
        ..ImageControl::default()
    }
}

pub(super) fn decode_buffer(words: Words) -> Fields {
    let table = &words.tables().mubuf;
    if words.is_gfx12() {
        return decode_wide_buffer(words);
    }
    let opcode = match words.is_gfx9() {
        true => words.first(24, 18),
        false => words.first(25, 18),
    };
    let mut fields = Fields::new(table, opcode, 8);
    fields.instruction.buffer.to_lds = words.has_early_forms() && words.first_bit(16);
    complete_buffer(words, &mut fields);
    fields
}

pub(super) fn decode_typed_buffer(words: Words) -> Fields {
    // RDNA 2 has a bit for coherence between the fields, and the highest bit of the number in the second dword.
    let opcode = match words.is_gfx10() {
        true => words.first(18, 16) | words.second(21, 21) << 3,
        false => words.first(18, 15),
    };
    let mut fields = Fields::new(&words.tables().mtbuf, opcode, 8);
    fields.instruction.buffer.format = Some(match words.is_gfx9() {
        true => BufferFormat::Split(words.first(22, 19) as u8, words.first(25, 23) as u8),
        false => BufferFormat::Joined(words.first(25, 19) as u8),
    });
    complete_buffer(words, &mut fields);
    fields
}

/// VBUFFER, which has typed and other accesses.
fn decode_wide_buffer(words: Words) -> Fields {
    const TYPED: u32 = 128;
    let opcode = words.first(21, 14);
    let mut fields = Fields::new(&words.tables().mubuf, opcode, 12);
    let instruction = &mut fields.instruction;
    let [_, _, third, _] = words.words;
    instruction.src[0] = Operand::vgpr(third & 0xff);
    instruction.src[1] = Operand::vgpr(words.second(7, 0));
    instruction.src[2] = Operand::scalar(words.first(6, 0));
    instruction.sdst = Operand::scalar(words.second(17, 9));
    instruction.dst = instruction.src[1];
    instruction.immediate = sign_extend(third >> 8, 24);
    // The lowest bit of the temporal hint of an atomic.
    instruction.returns = words.second_bit(20);
    instruction.has_vector_address = words.second_bit(30);
    instruction.buffer.indexed = words.second_bit(31);
    instruction.buffer.format =
        (opcode >= TYPED).then(|| BufferFormat::Joined(words.second(29, 23) as u8));
    instruction.buffer.tells_residence = words.first_bit(22);
    fields
}

pub(super) fn decode_image(words: Words) -> Fields {
    if words.is_gfx12() {
        return decode_wide_image(words);
    }
    if words.is_gfx10() {
        return decode_grouped_image(words);
    }
    if !words.is_gfx9() {
        return decode_listed_image(words);
    }
    let mut fields = Fields::new(&words.tables().mimg, words.first(24, 18), 8);
    let instruction = &mut fields.instruction;
    set_image_registers(instruction, words, words.second(25, 21));
    instruction.returns = words.first_bit(13);
    instruction.image = ImageControl {
        mask: words.first(11, 8) as u8,
        in_texels: words.first_bit(12),
        has_layer: words.first_bit(14),
        short_coordinates: words.first_bit(15),
        halves: words.second_bit(31),
        ..ImageControl::default()
    };
    if words.target.has_unified_registers() {
        if words.first_bit(16) {
            use_agpr_data(&mut fields);
        }
    } else {
        fields.instruction.image.tells_residence = words.first(17, 16) != 0;
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
    if words.has_early_forms() {
        instruction.has_vector_address = words.first_bit(12);
        instruction.buffer.indexed = words.first_bit(13);
        // The bit of targets without unified registers is TFE.
        if !words.target.has_unified_registers() {
            instruction.buffer.tells_residence = words.second_bit(23);
        } else if words.second_bit(23) {
            use_agpr_data(fields);
        }
        return;
    }
    instruction.buffer.tells_residence = words.second_bit(21);
    instruction.has_vector_address = words.second_bit(22);
    instruction.buffer.indexed = words.second_bit(23);
}

/// The ACC bit: the data are in accumulation registers.
fn use_agpr_data(fields: &mut Fields) {
    let instruction = &mut fields.instruction;
    instruction.src[1] = instruction.src[1].to_agpr();
    instruction.dst = instruction.dst.to_agpr();
}
