//! The operations of vector memory instructions.

use super::atomic::AtomicFunction;

/// The semantics of a vector memory instruction.
#[derive(Clone, Copy)]
pub(crate) struct MemoryOperation {
    pub(super) segment: Segment,
    pub(super) action: Action,
}

#[derive(Clone, Copy)]
pub(crate) enum Action {
    Load {
        bytes: u8,
        sign_extend: bool,
        part: Part,
    },
    Store {
        bytes: u8,
        part: Part,
    },
    /// Returns the old value if the mnemonic or the instruction's bit asks for it.
    Atomic {
        function: AtomicFunction,
        bytes: u8,
        returns: bool,
    },
    /// Two LDS accesses with two offsets, which count units of `stride` elements.
    LoadTwo {
        bytes: u8,
        stride: u8,
    },
    StoreTwo {
        bytes: u8,
        stride: u8,
    },
    Permute(Permutation),
    /// Elements of a typed buffer.
    Typed(Typed),
    Image(Image),
    /// An LDS access of another kind.
    Local(Local),
    /// A copy to LDS or, if it stores, from LDS, at the address in a register.
    Copy {
        bytes: u8,
        stores: bool,
    },
    /// A load that moves elements between lanes.
    Transposed(Transpose),
}

impl Action {
    /// The bytes of an element in memory.
    pub(super) fn bytes(self) -> u8 {
        match self {
            Self::Load { bytes, .. }
            | Self::Store { bytes, .. }
            | Self::Atomic { bytes, .. }
            | Self::LoadTwo { bytes, .. }
            | Self::StoreTwo { bytes, .. }
            | Self::Copy { bytes, .. } => bytes,
            _ => 1,
        }
    }
}

/// The part of a register that a smaller access uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole register: a load extends its value, a store takes the low bytes.
    Whole,
    /// The low half; a load keeps the high half.
    Low,
    /// The high half; a load keeps the low half.
    High,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment {
    Flat,
    Global,
    Scratch,
    Buffer,
    Lds,
}

/// A way to move a register's values between lanes.
#[derive(Clone, Copy)]
pub(crate) enum Permutation {
    /// Each lane names the lane that gets its value.
    Push,
    /// Each lane names the lane that it reads.
    Pull,
    /// Each lane names the lane that it reads, active or not.
    PullAny,
    /// The instruction's offset encodes a pattern.
    Swizzle,
}

/// The registers of typed elements.
#[derive(Clone, Copy)]
pub(crate) struct Typed {
    pub(super) components: u8,
    pub(super) halves: Halves,
    pub(super) stores: bool,
}

/// The use of registers by components.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halves {
    /// A component in each register.
    None,
    /// Two components in each register.
    Packed,
    /// One component in the high half.
    High,
}

#[derive(Clone, Copy)]
pub(crate) enum Image {
    Load,
    /// With a level, of which the model has one.
    LoadLevel,
    Store,
    StoreLevel,
    Sample(Sampling),
    /// One component of each of the four texels between which a linear filter would choose.
    Gather(Sampling),
    Size,
    Atomic(AtomicFunction),
}

/// The registers before the coordinates of a sample, and in this order. A bias and derivatives select the level,
/// and so do registers behind the coordinates. The model has one level.
#[derive(Clone, Copy)]
pub(crate) struct Sampling {
    pub(super) has_offset: bool,
    pub(super) selector: Selector,
}

#[derive(Clone, Copy)]
pub(crate) enum Selector {
    None,
    Bias,
    /// Each coordinate has two.
    Derivatives,
    /// Each has 16 bits.
    ShortDerivatives,
}

#[derive(Clone, Copy)]
pub(crate) enum Local {
    /// Replaces the bits of a mask.
    Masked {
        bytes: u8,
        returns: bool,
    },
    /// Replaces a number that is equal to another.
    FloatCompareSwap {
        bytes: u8,
        returns: bool,
    },
    /// Subtracts a number from one that is not below it; adds another to one that is.
    Wrap,
    /// Exchanges two numbers with offsets that count units of `stride` numbers.
    ExchangeTwo {
        bytes: u8,
        stride: u8,
    },
    /// Exchanges each half of 64 bits whose new value has its highest bit set, without this bit.
    ExchangeMarked,
    /// Accesses a dword for each lane, from M0 on.
    ReadByLane,
    WriteByLane,
    /// Adds or subtracts the number of active lanes at the address in M0.
    Append,
    Consume,
}

/// A matrix whose rows a group of lanes loads.
#[derive(Clone, Copy)]
pub(crate) struct Transpose {
    /// Bits of an element.
    pub(super) width: u8,
    /// Bytes that a lane loads.
    pub(super) bytes: u8,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// 16 lanes load rows of 16 elements, each with as many lanes as it takes, one behind the other.
    Rows,
    /// RDNA 4: eight lanes load eight rows of eight elements.
    Eight,
    /// RDNA 4: 16 lanes load eight rows of 16 elements. Four lanes load the first halves of four rows, the next
    /// four the second halves.
    Halves,
}
