//! A decoded instruction.

use super::operand::Operand;

/// One decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    /// The mnemonic without an encoding suffix such as `_e64`.
    pub mnemonic: &'static str,
    /// Size in bytes: 4, 8, 12 or 16.
    pub size: u8,
    /// The result, or the data of a store's or atomic's return.
    pub dst: Operand,
    /// The destination of a carry or of a comparison's mask; for some instructions also its source.
    pub sdst: Operand,
    /// Memory instructions: address, data, and second data (LDS) or scalar address.
    pub src: [Operand; 3],
    /// The 32-bit literal constant, if an operand is [`Operand::LITERAL`].
    pub literal: u32,
    /// SIMM16, branch displacement in dwords, or the memory offset in bytes.
    pub immediate: i32,
    pub modifiers: Modifiers,
    pub sdwa: Option<Sdwa>,
    pub dpp: Option<Dpp>,
    pub matrix: MatrixControl,
    pub buffer: BufferControl,
    pub image: ImageControl,
    /// The other half of a dual instruction.
    pub second: Option<SecondInstruction>,
    /// The access goes around the caches: a volatile or atomic load.
    pub coherent: bool,
    /// The instruction is an atomic that returns the old value.
    pub returns: bool,
    /// Scratch and buffer accesses: the instruction adds the vector address.
    pub has_vector_address: bool,
}

/// The second of two vector instructions that one encoding holds. They read their sources before either
/// writes its result. A literal constant belongs to both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecondInstruction {
    pub mnemonic: &'static str,
    pub dst: Operand,
    pub src: [Operand; 3],
}

impl Instruction {
    /// An instruction of `size` bytes without operands.
    pub(super) fn empty(size: u8) -> Self {
        Self {
            mnemonic: "",
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
        }
    }
}

/// Source and result modifiers of vector instructions. Bit n of a mask belongs to source n.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Modifiers {
    pub abs: u8,
    pub neg: u8,
    /// Bit 3 selects the result's high half.
    pub op_sel: u8,
    /// A 16-bit result keeps the register's other half.
    pub keeps_half: bool,
    /// VOP3P: the selection for the high result; the field below is its negation.
    pub op_sel_hi: u8,
    pub neg_hi: u8,
    pub clamp: bool,
    /// 0: none, 1: times 2, 2: times 4, 3: divided by 2.
    pub output: u8,
}

/// The modifiers of a matrix product.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MatrixControl {
    /// CBSZ: 2 to this power blocks of B share a block of A; or A's format.
    pub broadcast: u8,
    /// ABID: the block among them that they share; the set of places in a sparse product.
    pub block: u8,
    /// BLGP: the pattern that moves B's lanes; the signs of doubles on gfx942; or B's format.
    pub lanes: u8,
    pub scales: Option<MatrixScales>,
}

/// The scales of A and B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixScales {
    pub sources: [Operand; 2],
    /// The byte of each register that is the scale.
    pub bytes: [u8; 2],
}

/// The fields of buffer instructions, and of other loads to LDS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BufferControl {
    /// The instruction adds an index register.
    pub indexed: bool,
    /// The result goes to LDS.
    pub to_lds: bool,
    /// TFE: another register tells whether the memory is there.
    pub tells_residence: bool,
    /// The format of elements, if the instruction has its own.
    pub format: Option<BufferFormat>,
}

/// A format of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferFormat {
    /// CDNA's DATA_FORMAT and NUM_FORMAT.
    Split(u8, u8),
    /// RDNA's FORMAT, which stands for both.
    Joined(u8),
}

/// The fields of image instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImageControl {
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
    /// TFE and LWE: another register tells whether the memory is there.
    pub tells_residence: bool,
    /// RDNA's DIM: the number of coordinates without that of a layer; 0 for cubes and multisampled images.
    pub dimensions: Option<u8>,
    /// The numbers of address registers that the encoding has, and those behind the first. Further addresses
    /// follow the last one.
    pub listed_addresses: u8,
    pub more_addresses: [u8; 4],
}

impl ImageControl {
    /// The register of an address: a register, and the number of registers behind it.
    pub(crate) fn address(self, first: Operand, number: usize) -> (Operand, usize) {
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
pub(crate) struct Sdwa {
    pub src: [SdwaSource; 2],
    pub dst: Selection,
    pub unused: Unused,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SdwaSource {
    pub selection: Selection,
    pub sign_extend: bool,
}

impl SdwaSource {
    /// A register without a selection.
    pub(crate) const WHOLE: Self = Self {
        selection: Selection::Dword,
        sign_extend: false,
    };
}

/// A part of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Byte(u8),
    Half(u8),
    Dword,
}

/// The effect of an SDWA result on the rest of its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unused {
    Zero,
    SignExtend,
    Preserve,
}

/// Data-parallel primitives: the first source comes from another lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dpp {
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
pub(crate) enum DppControl {
    /// The 9-bit DPP_CTRL field.
    Pattern(u16),
    /// Three bits for each lane of eight: the number of its source among them.
    Eight(u32),
}
