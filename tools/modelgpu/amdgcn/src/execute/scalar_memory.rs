//! Scalar loads, stores, atomics and clocks.

use modelgpu_isa::{Instruction, Operand, Target};

use super::memory::{AtomicFunction, BufferResource};
use super::operation::{ScalarAction, ScalarBase, ScalarMemoryOperation};
use super::value::Kind;
use super::{Operation, Surroundings, Table, scalar_source};
use crate::error::{Access, Fault, Space};
use crate::memory::AtomicFailure;
use crate::wave::Wave;

const fn access(action: ScalarAction, base: ScalarBase) -> Operation {
    Operation::ScalarMemory(ScalarMemoryOperation::Access { action, base })
}

/// Cycles in a tick of 10 ns: the driver reports 1700 MHz.
pub(super) const CYCLES: u64 = 17;

const fn clock(cycles: u64) -> Operation {
    Operation::ScalarMemory(ScalarMemoryOperation::Clock(cycles))
}

const fn load_part(bytes: u8, sign_extend: bool) -> ScalarAction {
    ScalarAction::LoadPart { bytes, sign_extend }
}

macro_rules! atomic_entry {
    ($prefix:literal, $name:literal, $suffix:literal, $function:ident, $dwords:literal, $base:expr) => {
        (
            concat!($prefix, "atomic_", $name, $suffix),
            access(
                ScalarAction::Atomic(AtomicFunction::$function, $dwords),
                $base,
            ),
        )
    };
}

macro_rules! accesses {
    ($prefix:literal, $base:expr) => {
        &[
            (
                concat!($prefix, "load_dword"),
                access(ScalarAction::Load(1), $base),
            ),
            (
                concat!($prefix, "load_dwordx2"),
                access(ScalarAction::Load(2), $base),
            ),
            (
                concat!($prefix, "load_dwordx3"),
                access(ScalarAction::Load(3), $base),
            ),
            (
                concat!($prefix, "load_ubyte"),
                access(load_part(1, false), $base),
            ),
            (
                concat!($prefix, "load_sbyte"),
                access(load_part(1, true), $base),
            ),
            (
                concat!($prefix, "load_ushort"),
                access(load_part(2, false), $base),
            ),
            (
                concat!($prefix, "load_sshort"),
                access(load_part(2, true), $base),
            ),
            (
                concat!($prefix, "load_dwordx4"),
                access(ScalarAction::Load(4), $base),
            ),
            (
                concat!($prefix, "load_dwordx8"),
                access(ScalarAction::Load(8), $base),
            ),
            (
                concat!($prefix, "load_dwordx16"),
                access(ScalarAction::Load(16), $base),
            ),
            (
                concat!($prefix, "store_dword"),
                access(ScalarAction::Store(1), $base),
            ),
            (
                concat!($prefix, "store_dwordx2"),
                access(ScalarAction::Store(2), $base),
            ),
            (
                concat!($prefix, "store_dwordx4"),
                access(ScalarAction::Store(4), $base),
            ),
            atomic_entry!($prefix, "swap", "", Swap, 1, $base),
            atomic_entry!($prefix, "swap", "_x2", Swap, 2, $base),
            atomic_entry!($prefix, "cmpswap", "", CompareSwap, 1, $base),
            atomic_entry!($prefix, "cmpswap", "_x2", CompareSwap, 2, $base),
            atomic_entry!($prefix, "add", "", Add, 1, $base),
            atomic_entry!($prefix, "add", "_x2", Add, 2, $base),
            atomic_entry!($prefix, "sub", "", Sub, 1, $base),
            atomic_entry!($prefix, "sub", "_x2", Sub, 2, $base),
            atomic_entry!($prefix, "smin", "", SignedMin, 1, $base),
            atomic_entry!($prefix, "smin", "_x2", SignedMin, 2, $base),
            atomic_entry!($prefix, "umin", "", UnsignedMin, 1, $base),
            atomic_entry!($prefix, "umin", "_x2", UnsignedMin, 2, $base),
            atomic_entry!($prefix, "smax", "", SignedMax, 1, $base),
            atomic_entry!($prefix, "smax", "_x2", SignedMax, 2, $base),
            atomic_entry!($prefix, "umax", "", UnsignedMax, 1, $base),
            atomic_entry!($prefix, "umax", "_x2", UnsignedMax, 2, $base),
            atomic_entry!($prefix, "and", "", And, 1, $base),
            atomic_entry!($prefix, "and", "_x2", And, 2, $base),
            atomic_entry!($prefix, "or", "", Or, 1, $base),
            atomic_entry!($prefix, "or", "_x2", Or, 2, $base),
            atomic_entry!($prefix, "xor", "", Xor, 1, $base),
            atomic_entry!($prefix, "xor", "_x2", Xor, 2, $base),
            atomic_entry!($prefix, "inc", "", Increment, 1, $base),
            atomic_entry!($prefix, "inc", "_x2", Increment, 2, $base),
            atomic_entry!($prefix, "dec", "", Decrement, 1, $base),
            atomic_entry!($prefix, "dec", "_x2", Decrement, 2, $base),
        ]
    };
}

pub(super) const TABLES: [Table; 3] = [
    accesses!("s_", ScalarBase::Address),
    accesses!("s_buffer_", ScalarBase::Buffer),
    &[("s_memtime", clock(CYCLES)), ("s_memrealtime", clock(1))],
];

impl ScalarMemoryOperation {
    pub(super) fn reads_clock(self) -> bool {
        matches!(self, Self::Clock(_))
    }

    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        match self {
            Self::Clock(cycles) => {
                let now = (surroundings.clock)().wrapping_mul(cycles);
                wave.set_pair(instruction.dst, now);
                Ok(())
            }
            Self::Access { action, base } => {
                surroundings.memory.refresh();
                let mut offset = i64::from(instruction.immediate);
                if !instruction.src[1].is_none() {
                    let scale = if instruction.scales_offset {
                        action.bytes()
                    } else {
                        1
                    };
                    offset += scalar_source(instruction, 1, Kind::B32, wave)? as i64 * scale;
                }
                let range = Range::new(
                    base,
                    instruction.src[0],
                    offset,
                    (wave, surroundings.target),
                    action.alignment(),
                );
                match action {
                    ScalarAction::LoadPart { bytes, sign_extend } => {
                        let size = u64::from(bytes);
                        let value = match range.start_of(size) {
                            Some(address) => surroundings
                                .memory
                                .load(address, size)
                                .map_err(|_| outside(instruction, Access::Read, size, address))?,
                            None => 0,
                        };
                        let unused = 32 - 8 * u32::from(bytes);
                        let value = if sign_extend {
                            ((value as u32) << unused) as i32 >> unused
                        } else {
                            value as i32
                        };
                        wave.set_word(instruction.dst, value as u32);
                        Ok(())
                    }
                    ScalarAction::Load(dwords) => {
                        load(instruction, wave, surroundings, range, dwords)
                    }
                    ScalarAction::Store(dwords) => {
                        store(instruction, wave, surroundings, range, dwords)
                    }
                    ScalarAction::Atomic(function, dwords) => {
                        atomic(instruction, wave, surroundings, range, (function, dwords))
                    }
                }
            }
        }
    }
}

impl ScalarAction {
    /// The bytes of the whole access.
    fn bytes(self) -> i64 {
        match self {
            Self::LoadPart { bytes, .. } => bytes.into(),
            Self::Load(dwords) | Self::Store(dwords) | Self::Atomic(_, dwords) => {
                4 * i64::from(dwords)
            }
        }
    }

    /// The alignment of the address, in bytes.
    fn alignment(self) -> u8 {
        match self {
            Self::LoadPart { bytes, .. } => bytes,
            _ => 4,
        }
    }
}

/// The memory from the accessed address on.
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    /// The bytes behind `start` that belong to the buffer.
    size: u64,
}

impl Range {
    /// Hardware ignores the low bits of an address that is not a multiple of `alignment`.
    fn new(
        base: ScalarBase,
        operand: Operand,
        offset: i64,
        (wave, target): (&Wave, Target),
        alignment: u8,
    ) -> Self {
        let low = u64::from(alignment) - 1;
        match base {
            ScalarBase::Address => Self {
                start: wave.pair(operand).wrapping_add_signed(offset) & !low,
                size: u64::MAX,
            },
            ScalarBase::Buffer => {
                let words = std::array::from_fn(|n| wave.word(Operand(operand.0 + n as u16)));
                let resource = BufferResource::new(words, target);
                let offset = offset & !(low as i64);
                Self {
                    start: resource.base.wrapping_add_signed(offset) & !low,
                    size: match u64::try_from(offset) {
                        Ok(offset) => resource.size().saturating_sub(offset),
                        Err(_) => 0,
                    },
                }
            }
        }
    }

    /// The address of the first bytes; `None` beyond the buffer.
    fn start_of(self, bytes: u64) -> Option<u64> {
        (bytes <= self.size).then_some(self.start)
    }

    /// The address of a dword; `None` beyond the buffer.
    fn dword(self, place: u16) -> Option<u64> {
        let offset = 4 * u64::from(place);
        (offset + 4 <= self.size).then(|| self.start.wrapping_add(offset))
    }
}

fn outside(instruction: &Instruction, access: Access, size: u64, address: u64) -> Fault {
    Fault::OutOfBounds {
        mnemonic: instruction.mnemonic,
        space: Space::Global,
        access,
        size,
        address,
        limit: None,
        lane: None,
    }
}

fn load(
    instruction: &Instruction,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
    range: Range,
    dwords: u8,
) -> Result<(), Fault> {
    for place in 0..dwords.into() {
        let value = match range.dword(place) {
            Some(address) => surroundings
                .memory
                .load(address, 4)
                .map_err(|_| outside(instruction, Access::Read, 4, address))?,
            None => 0,
        };
        wave.set_word(Operand(instruction.dst.0 + place), value as u32);
    }
    Ok(())
}

fn store(
    instruction: &Instruction,
    wave: &Wave,
    surroundings: &mut Surroundings<'_>,
    range: Range,
    dwords: u8,
) -> Result<(), Fault> {
    for place in 0..dwords.into() {
        let value = wave.word(Operand(instruction.dst.0 + place));
        if let Some(address) = range.dword(place) {
            surroundings
                .memory
                .store(address, 4, value.into())
                .map_err(|_| outside(instruction, Access::Write, 4, address))?;
        }
    }
    Ok(())
}

fn atomic(
    instruction: &Instruction,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
    range: Range,
    (function, dwords): (AtomicFunction, u8),
) -> Result<(), Fault> {
    let size = 4 * u64::from(dwords);
    let read = |register: Operand| match dwords {
        1 => u64::from(wave.word(register)),
        _ => wave.pair(register),
    };
    let operand = read(instruction.dst);
    let compared = read(Operand(instruction.dst.0 + u16::from(dwords)));
    let old = match range.dword(u16::from(dwords) - 1) {
        None => 0,
        Some(_) => surroundings
            .memory
            .atomic(range.start, size, |old| {
                function.apply(4 * dwords, old, operand, compared)
            })
            .map_err(|failure| match failure {
                AtomicFailure::Unmapped => outside(instruction, Access::Atomic, size, range.start),
                AtomicFailure::Misaligned => Fault::MisalignedAtomic {
                    mnemonic: instruction.mnemonic,
                    size,
                    address: range.start,
                    lane: None,
                },
            })?,
    };
    if instruction.returns {
        let kind = if dwords == 1 { Kind::B32 } else { Kind::B64 };
        wave.set_scalar(instruction.dst, kind, old);
    }
    Ok(())
}
