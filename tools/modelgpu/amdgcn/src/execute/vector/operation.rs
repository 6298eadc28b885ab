//! The operations of vector instructions.

use super::super::simd::{CarryFunction, CompareFunction, Leveled, LongsFunction, WordsFunction};
use super::super::value::Kind;
use super::small::Format;

/// The semantics of a vector instruction, for one whole wave.
#[derive(Clone, Copy)]
pub(crate) enum VectorOperation {
    /// Sources and result of at most 32 bits.
    Words {
        run: Leveled<WordsFunction>,
        /// The saturating form, for an integer operation with the clamp modifier.
        clamped: Option<Leveled<WordsFunction>>,
        sources: [Kind; 3],
        result: Kind,
    },
    /// At least one source or the result has 64 bits.
    Longs {
        run: Leveled<LongsFunction>,
        sources: [Kind; 3],
        result: Kind,
    },
    /// Has a carry bit per lane in a scalar register pair.
    Carry {
        run: Leveled<CarryFunction>,
        /// The saturating form, for the clamp modifier.
        clamped: Option<Leveled<CarryFunction>>,
        sources: [Kind; 3],
        result: Kind,
        direction: CarryDirection,
    },
    Compare(Comparison),
    Packed(Packed),
    Mixed {
        result: MixedResult,
        /// The halves are bfloat16.
        is_brain: bool,
    },
    Dot(Dot),
    Matrix(Matrix),
    WaveMatrix(WaveMatrix),
    Scaled(Scaled),
    /// v_swap_b32: exchanges two registers.
    Swap,
    /// v_swap_b16: exchanges halves of two registers.
    SwapHalves,
    /// v_bitop3: a function of three bits for each bit, whose table is the immediate.
    TruthTable(Kind),
    /// Exchanges the odd groups of this many lanes in the first register with the even groups in the
    /// second one.
    SwapGroups(usize),
    /// Moves between registers, of which M0 is added to the source's or the result's number.
    MoveRelative {
        source: bool,
    },
    /// Computes the vector instruction with this mnemonic on scalars.
    OfScalars(&'static str),
    /// v_mqsad_u32_u8: has a result and a source of four registers.
    FourSums,
}

/// The direction of the carry bit per lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarryDirection {
    In,
    Out,
    InOut,
}

#[derive(Clone, Copy)]
pub(crate) enum Comparison {
    /// True for the relations whose bits are set, among [`LESS`] and the others.
    Relation {
        accepted: u8,
        run: Leveled<CompareFunction>,
        kind: Kind,
        writes_exec: bool,
    },
    /// Compares the class of the first source with the mask in the second.
    Class {
        run: Leveled<CompareFunction>,
        kind: Kind,
        writes_exec: bool,
    },
}

#[derive(Clone, Copy)]
pub(crate) struct Packed {
    pub(super) run: Run,
    pub(super) sources: u8,
    pub(super) half: HalfKind,
    /// The function of all lanes' halves, for floats and moves.
    pub(super) function: Option<Leveled<WordsFunction>>,
}

/// Computes one half of the result from a half of each source.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Bits(fn([u32; 3]) -> u32),
    /// Gives the exact result, which wraps, or saturates with the clamp modifier.
    Exact(fn([i64; 3]) -> i64),
}

/// The format of a half.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HalfKind {
    Single,
    Word,
    Unsigned,
    Signed,
    HalfPrecision,
    /// bfloat16.
    Brain,
}

/// The destination of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MixedResult {
    /// A register, in single precision.
    Single,
    /// The low half of a register, in half precision; the high half stays.
    Low,
    /// The high half of a register, in half precision; the low half stays.
    High,
}

/// The elements of the registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dot {
    /// Two halves; the sum is in single precision.
    Halves,
    /// Two bfloat16; the sum is in single precision.
    Brains,
    /// Two numbers of 16 bits, in whose format the sum is.
    Short(Format),
    /// Four numbers of 8 bits, in the formats of both sources; the sum is in single precision.
    Eight(Format, Format),
    /// Two, four or eight integers of 16, 8 or 4 bits.
    Signed(u32),
    Unsigned(u32),
    /// Four or eight integers. The modifier that negates other sources tells that a source has signs.
    Mixed(u32),
}

#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    /// Rows of A and columns of B in a block.
    pub(super) size: usize,
    /// Columns of A and rows of B.
    pub(super) depth: usize,
    pub(super) blocks: usize,
    pub(super) element: MatrixElement,
    /// Two of each four numbers in a row of A are zero, and A's registers lack them. Src2 has the
    /// places of the others instead of C, which is D.
    pub(super) sparse: bool,
}

/// The elements of A and B. Sums have single precision, except for integers and doubles.
#[derive(Clone, Copy)]
pub(crate) enum MatrixElement {
    Single,
    /// Single precision, of which 10 bits of the fraction count.
    Short,
    Half,
    Brain,
    /// Denormal numbers count as zero, in sources and in results.
    FlushedHalf,
    FlushedBrain,
    /// The 8-bit formats of A and of B.
    Eight(Format, Format),
    /// The instruction selects the formats of A and of B, of 8, 6 or 4 bits each. It may have scales: powers of
    /// two for each 32 numbers of a row or a column.
    Scaled,
    Byte,
    Double,
    /// The field that other instructions use to move B's lanes negates A, B and C.
    NegatedDouble,
}

#[derive(Clone, Copy)]
pub(crate) struct WaveMatrix {
    /// Columns of A and rows of B.
    pub(super) depth: usize,
    pub(super) element: WaveElement,
    pub(super) sum: WaveSum,
    pub(super) layout: WaveLayout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaveLayout {
    /// RDNA 3's: each lane has a whole line.
    Whole,
    /// RDNA 4's: the groups of 16 lanes share each line.
    Split,
    /// Two of each four numbers in a row of A are zero, and A's registers lack them. Src2 has the places of the
    /// others, and C is D. RDNA 4 has this.
    Sparse,
}

/// The elements of A and B.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaveElement {
    Half,
    Brain,
    /// The 8-bit formats of A and of B.
    Eight(Format, Format),
    Byte,
    Nibble,
}

/// The elements of C and D.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaveSum {
    Single,
    Half,
    Brain,
    Integer,
}

#[derive(Clone, Copy)]
pub(crate) struct Scaled {
    pub(super) from: Format,
    pub(super) to: Format,
    /// Numbers that a lane converts.
    pub(super) count: u32,
    /// The instruction has another source: a random number by which it rounds.
    pub(super) by_random: bool,
}
