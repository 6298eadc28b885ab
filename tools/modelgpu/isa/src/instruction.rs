//! A decoded instruction.

use crate::facts::{Facts, Group, effect};
use crate::operand::Operand;

/// One decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// The mnemonic without an encoding suffix such as `_e64`.
    pub mnemonic: &'static str,
    /// The facts about the opcode.
    pub facts: &'static Facts,
    /// Size in bytes: 4, 8, 12 or 16.
    pub size: u8,
    /// The result, or the data of a store's or atomic's return.
    pub dst: Operand,
    /// The destination of a carry or of a comparison's mask; for some instructions also its source.
    pub sdst: Operand,
    /// Memory instructions: address, data, and second data (LDS) or scalar address.
    pub src: [Operand; 3],
    /// The literal constant, if an operand is [`Operand::LITERAL`] (32 bits) or [`Operand::LITERAL64`].
    pub literal: u64,
    /// SIMM16, branch displacement in dwords, or the memory offset in bytes.
    pub immediate: i32,
    /// The modifiers of a vector instruction.
    pub modifiers: Modifiers,
    /// The control word of sub-dword addressing, if there is one.
    pub sdwa: Option<Sdwa>,
    /// The control word of data-parallel primitives, if there is one.
    pub dpp: Option<Dpp>,
    /// The modifiers of a matrix product.
    pub matrix: MatrixControl,
    /// The fields of a buffer instruction.
    pub buffer: BufferControl,
    /// The fields of an image instruction.
    pub image: ImageControl,
    /// The other half of a dual instruction.
    pub second: Option<SecondInstruction>,
    /// The access goes around the caches: a volatile or atomic load.
    pub coherent: bool,
    /// The instruction is an atomic that returns the old value.
    pub returns: bool,
    /// Scratch and buffer accesses: the instruction adds the vector address.
    pub has_vector_address: bool,
    /// The offset in a register counts elements of the access's size.
    pub scales_offset: bool,
}

/// The second of two vector instructions that one encoding holds. They read their sources before either
/// writes its result. A literal constant belongs to both.
#[derive(Clone, Copy, Debug)]
pub struct SecondInstruction {
    /// The mnemonic, as that of an instruction of its own.
    pub mnemonic: &'static str,
    /// The facts about the opcode.
    pub facts: &'static Facts,
    /// The result.
    pub dst: Operand,
    /// The sources.
    pub src: [Operand; 3],
    /// The modifiers.
    pub modifiers: Modifiers,
    /// The table of a function of bits.
    pub immediate: i32,
}

/// The banks of 256 vector registers that the operands of instructions name registers of: two bits for each of
/// three sources, and for the result (`s_set_vgpr_msb`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Banks(
    /// From the lowest bit on: the sources, and the result.
    pub u8,
);

impl Banks {
    /// The banks that a value for the register MODE has. It has the result's before the sources'.
    pub fn from_mode(mode: u32) -> Self {
        Self(((mode >> 12 & 0xff) as u8).rotate_right(2))
    }

    /// The bits of the register MODE.
    pub fn to_mode(self) -> u32 {
        u32::from(self.0.rotate_left(2)) << 12
    }

    /// The registers of a result and of sources.
    fn select(self, facts: &Facts, dst: Operand, mut src: [Operand; 3]) -> (Operand, [Operand; 3]) {
        let dst = dst.in_bank(self.result());
        for (place, source) in src.iter_mut().enumerate() {
            *source = source.in_bank(self.source(place));
        }
        if facts.has(effect::ADDS) {
            // The sum and the result have one field.
            src[2] = dst;
        }
        (dst, src)
    }

    fn source(self, place: usize) -> u8 {
        self.0 >> (2 * place) & 3
    }

    fn result(self) -> u8 {
        self.0 >> 6
    }
}

impl Instruction {
    /// The instruction with the registers of these banks. LLVM's pass `AMDGPULowerVGPREncoding` has the operands that
    /// each pair of bits is for.
    #[must_use]
    pub fn in_banks(mut self, banks: Banks) -> Self {
        if banks == Banks::default() {
            return self;
        }
        if self.mnemonic.starts_with("ds_cmpstore_") {
            // The data are in the order of the encoding there.
            self.src.swap(1, 2);
            (self.dst, self.src) = banks.select(self.facts, self.dst, self.src);
            self.src.swap(1, 2);
        } else {
            (self.dst, self.src) = banks.select(self.facts, self.dst, self.src);
        }
        if self.facts.group == Group::Buffer {
            // The data have the place of the result.
            self.src[1] = self.dst;
        }
        if let Some(second) = &mut self.second {
            let encoded = second.src[1];
            (second.dst, second.src) = banks.select(second.facts, second.dst, second.src);
            if second.mnemonic.starts_with("v_fmamk_") {
                // The register comes last, behind the constant.
                second.src[1] = encoded.in_bank(banks.source(2));
            }
        }
        if let Some(scales) = &mut self.matrix.scales {
            for (place, source) in scales.sources.iter_mut().enumerate() {
                *source = source.in_bank(banks.source(place));
            }
        }
        self
    }

    /// An instruction of `size` bytes without operands.
    pub(crate) fn empty(size: u8) -> Self {
        Self {
            mnemonic: "",
            facts: &Facts::NONE,
            size,
            dst: Operand::NONE,
            sdst: Operand::NONE,
            src: [Operand::NONE; 3],
            literal: 0,
            immediate: 0,
            modifiers: Modifiers::default(),
            sdwa: None,
            dpp: None,
            matrix: MatrixControl::default(),
            buffer: BufferControl::default(),
            image: ImageControl::default(),
            second: None,
            coherent: false,
            returns: false,
            has_vector_address: false,
            scales_offset: false,
        }
    }
}

/// Source and result modifiers of vector instructions. Bit n of a mask belongs to source n.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modifiers {
    /// The sources whose absolute value counts.
    pub abs: u8,
    /// The sources that are negated; of VOP3P, for the low result.
    pub neg: u8,
    /// Bit 3 selects the result's high half.
    pub op_sel: u8,
    /// A 16-bit result keeps the register's other half.
    pub keeps_half: bool,
    /// VOP3P: the selection for the high result; the field below is its negation.
    pub op_sel_hi: u8,
    /// VOP3P: the sources that are negated for the high result.
    pub neg_hi: u8,
    /// The result is limited to a range.
    pub clamp: bool,
    /// 0: none, 1: times 2, 2: times 4, 3: divided by 2.
    pub output: u8,
}

/// The modifiers of a matrix product.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatrixControl {
    /// CBSZ: 2 to this power blocks of B share a block of A; or A's format.
    pub broadcast: u8,
    /// ABID: the block among them that they share; the set of places in a sparse product.
    pub block: u8,
    /// BLGP: the pattern that moves B's lanes; the signs of doubles on gfx942; or B's format.
    pub lanes: u8,
    /// The scales in front of the product, if there are any.
    pub scales: Option<MatrixScales>,
}

/// The scales of A and B.
#[derive(Clone, Copy, Debug)]
pub struct MatrixScales {
    /// Their registers.
    pub sources: [Operand; 2],
    /// The byte of each register that is the scale.
    pub bytes: [u8; 2],
    /// The registers of each.
    pub registers: u8,
}

/// The fields of buffer instructions, and of other loads to LDS.
#[derive(Clone, Copy, Debug, Default)]
pub struct BufferControl {
    /// The instruction adds an index register.
    pub indexed: bool,
    /// The result goes to LDS.
    pub to_lds: bool,
    /// TFE: another register shows whether the memory is there.
    pub tells_residence: bool,
    /// The format of elements, if the instruction has its own.
    pub format: Option<BufferFormat>,
}

/// A format of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferFormat {
    /// CDNA's DATA_FORMAT and NUM_FORMAT.
    Split(u8, u8),
    /// RDNA's FORMAT, which stands for both.
    Joined(u8),
}

/// The fields of image instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImageControl {
    /// DMASK: the components that have registers.
    pub mask: u8,
    /// Coordinates count texels.
    pub in_texels: bool,
    /// The coordinates have one of a layer.
    pub has_layer: bool,
    /// Coordinates have 16 bits.
    pub short_coordinates: bool,
    /// Components have 16 bits.
    pub halves: bool,
    /// R128: the resource has four dwords.
    pub short_resource: bool,
    /// TFE and LWE: another register shows whether the memory is there.
    pub tells_residence: bool,
    /// RDNA's DIM: the number of coordinates without that of a layer; 0 for cubes and multisampled images.
    pub dimensions: Option<u8>,
    /// The number of address registers that the encoding has. Further addresses
    /// follow the last one.
    pub listed_addresses: u8,
    /// The registers after the first address.
    pub more_addresses: [u8; 8],
}

impl ImageControl {
    /// The register of an address: a register, and the number of registers after it.
    pub fn address(self, first: Operand, number: usize) -> (Operand, usize) {
        let place = number.min(usize::from(self.listed_addresses).saturating_sub(1));
        let register = match place.checked_sub(1) {
            Some(place) => Operand::vgpr(self.more_addresses[place].into()),
            None => first,
        };
        (register, number - place)
    }
}

/// Sub-dword addressing.
#[derive(Clone, Copy, Debug)]
pub struct Sdwa {
    /// The parts of the sources.
    pub src: [SdwaSource; 2],
    /// The part of the result.
    pub dst: Selection,
    /// The effect on the rest of the result's register.
    pub unused: Unused,
}

/// A source of sub-dword addressing.
#[derive(Clone, Copy, Debug)]
pub struct SdwaSource {
    /// The part of the register.
    pub selection: Selection,
    /// The part is a signed number.
    pub sign_extend: bool,
}

impl SdwaSource {
    /// A register without a selection.
    pub const WHOLE: Self = Self {
        selection: Selection::Dword,
        sign_extend: false,
    };
}

/// A part of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A byte, from 0 to 3.
    Byte(u8),
    /// A half: 0 or 1.
    Half(u8),
    /// All of it.
    Dword,
}

/// The effect of an SDWA result on the rest of its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// The rest becomes 0.
    Zero,
    /// The rest becomes copies of the result's sign.
    SignExtend,
    /// The rest stays.
    Preserve,
}

/// Data-parallel primitives: the first source comes from another lane.
#[derive(Clone, Copy, Debug)]
pub struct Dpp {
    /// The source lanes.
    pub control: DppControl,
    /// The rows of 16 lanes to write.
    pub row_mask: u8,
    /// The banks of 4 lanes in each row to write.
    pub bank_mask: u8,
    /// A lane without a source reads 0 instead of keeping its old result.
    pub bound_control: bool,
    /// Inactive lanes are sources too.
    pub fetches_inactive: bool,
}

/// The source lanes of data-parallel primitives.
#[derive(Clone, Copy, Debug)]
pub enum DppControl {
    /// The 9-bit DPP_CTRL field.
    Pattern(u16),
    /// Three bits for each lane of eight: the number of its source among them.
    Eight(u32),
}
