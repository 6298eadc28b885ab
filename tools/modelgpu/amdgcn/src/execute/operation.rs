//! The operations of instructions, as data. The modules of the families have the tables of these, and execute them.

use super::memory::{AtomicFunction, MemoryOperation};
use super::scalar::ScalarOperation;
use super::vector::VectorOperation;

/// The semantics of a mnemonic.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    Control(Control),
    Grid(GridOperation),
    Lane(LaneOperation),
    Memory(MemoryOperation),
    Scalar(ScalarOperation),
    ScalarMemory(ScalarMemoryOperation),
    Vector(VectorOperation),
    /// Ends the kernel with this reason.
    Refused(&'static str),
}

/// The way in which a wave waits by an instruction, if it executes it again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    /// It lets others go first.
    Sleep,
    /// It looks at memory that other workgroups or the host may write.
    Poll,
    /// It looks at the clock.
    Clock,
}

pub(crate) type Table = &'static [(&'static str, Operation)];

#[derive(Clone, Copy)]
pub(crate) enum Control {
    Nothing,
    End,
    Barrier,
    /// Tells the workgroup's barrier that the wave has arrived.
    Signal,
    /// Waits until all waves have arrived.
    Wait,
    Trap,
    SendMessage,
    /// Sends a message and waits for the answer.
    Ask,
    /// Sets four bits of MODE, from this one on.
    SetModeField(u32),
    Branch(Condition),
    GetPc,
    SetPc,
    SwapPc,
    Call,
    GetRegister,
    SetRegister,
    SetRegisterLiteral,
    /// A counter of cycles.
    Cycles,
    /// Chooses the banks of vector registers.
    SetBanks,
    /// Jumps by a distance in registers.
    AddPc,
    IndexOn,
    IndexOff,
    IndexValue,
    IndexOperands,
}

#[derive(Clone, Copy)]
pub(crate) enum Condition {
    Always,
    Never,
    SccIs(bool),
    VccIsZero(bool),
    ExecIsZero(bool),
}

#[derive(Clone, Copy)]
pub(crate) enum GridOperation {
    Init,
    Barrier,
}

#[derive(Clone, Copy)]
pub(crate) enum LaneOperation {
    /// Reads the first active lane into a scalar register.
    ReadFirst,
    /// Reads a numbered lane, active or not, into a scalar register.
    Read,
    /// Writes a scalar to a numbered lane, active or not.
    Write,
    /// Each lane reads a lane of its row of 16, or of the other row of two, whose number two scalars
    /// have.
    Rows { crosses: bool },
    /// Each lane reads such a lane, whose number its second source has.
    RowsByLane { crosses: bool },
    /// Exchanges the halves of a wave of 64.
    Halves,
    /// Counts the set bits below this lane in the low or high half of a mask, and adds to the
    /// count.
    CountBelow { high: bool },
}

#[derive(Clone, Copy)]
pub(crate) enum ScalarMemoryOperation {
    Access {
        action: ScalarAction,
        base: ScalarBase,
    },
    /// The GPU's clock, or a counter of its cycles: this many in a tick of the clock.
    Clock(u64),
}

#[derive(Clone, Copy)]
pub(crate) enum ScalarAction {
    /// Loads this number of dwords.
    Load(u8),
    /// Loads a part of a dword of this number of bytes.
    LoadPart {
        bytes: u8,
        sign_extend: bool,
    },
    Store(u8),
    /// Changes this number of dwords, and returns the old ones if the instruction's bit asks for it.
    Atomic(AtomicFunction, u8),
}

/// The contents of the base operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarBase {
    Address,
    /// A resource of four dwords. Beyond it, loads give 0 and stores are dropped.
    Buffer,
}
