//! Loads from global memory whose result goes to LDS, not to a register.

use modelgpu_isa::Instruction;

use super::super::{Operation, Surroundings, unmodelled};
use super::format::chunks;
use super::lane_access::unmapped;
use super::lds;
use super::operation::{Action, MemoryOperation, Part, Segment};
use crate::error::{Access, Fault};
use crate::lanes::active;
use crate::wave::Wave;

const fn load(bytes: u8, sign_extend: bool) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Global,
        action: Action::Load {
            bytes,
            sign_extend,
            part: Part::Whole,
        },
    })
}

const fn copy(bytes: u8, stores: bool) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Global,
        action: Action::Copy { bytes, stores },
    })
}

/// gfx942's names, and gfx1250's. On gfx90a, a bit of a plain load says the same.
pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("global_load_lds_ubyte", load(1, false)),
    ("global_load_lds_sbyte", load(1, true)),
    ("global_load_lds_ushort", load(2, false)),
    ("global_load_lds_sshort", load(2, true)),
    ("global_load_lds_dword", load(4, false)),
    ("global_load_lds_dwordx4", load(16, false)),
    ("global_load_async_to_lds_b8", copy(1, false)),
    ("global_load_async_to_lds_b32", copy(4, false)),
    ("global_load_async_to_lds_b64", copy(8, false)),
    ("global_load_async_to_lds_b128", copy(16, false)),
    ("global_store_async_from_lds_b8", copy(1, true)),
    ("global_store_async_from_lds_b32", copy(4, true)),
    ("global_store_async_from_lds_b64", copy(8, true)),
    ("global_store_async_from_lds_b128", copy(16, true)),
];

/// Copies bytes between global memory and the address in LDS that a register has. The instruction's offset is for
/// both addresses: LLVM folds no offset of one of them into it. The copy is complete before the next instruction.
pub(super) fn by_address(
    lanes: u64,
    operation: MemoryOperation,
    instruction: &Instruction,
    wave: &Wave,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Fault> {
    let Action::Copy { bytes, stores } = operation.action else {
        return Err(unmodelled(instruction, "a copy to LDS"));
    };
    let addresses = operation.addresses(instruction, wave, surroundings.target)?;
    let (register, access) = match stores {
        true => (instruction.src[1], Access::Write),
        false => (instruction.dst, Access::Read),
    };
    for lane in active(lanes) {
        let (_, address) = addresses.place(lane, instruction, wave);
        let place = wave
            .lane(register, lane)
            .wrapping_add_signed(instruction.immediate);
        for (start, size) in chunks(bytes.into()) {
            let (address, place) = (
                address.wrapping_add(start.into()),
                place.wrapping_add(start),
            );
            let outside = |_| unmapped(instruction, lane, access, size, address);
            if stores {
                let from = lds::words_at(
                    instruction,
                    wave,
                    surroundings,
                    Access::Read,
                    place,
                    size as usize,
                );
                let mut value = [0; 8];
                if let Some(from) = from {
                    value[..from.len()].copy_from_slice(from);
                }
                let value = u64::from_le_bytes(value);
                surroundings
                    .memory
                    .store(address, size.into(), value)
                    .map_err(outside)?;
                continue;
            }
            let value = surroundings
                .memory
                .load(address, size.into())
                .map_err(outside)?;
            let to = lds::words_at(
                instruction,
                wave,
                surroundings,
                Access::Write,
                place,
                size as usize,
            );
            if let Some(to) = to {
                to.copy_from_slice(&value.to_le_bytes()[..size as usize]);
            }
        }
    }
    Ok(())
}

/// Copies a number for each active lane.
pub(super) fn execute(
    lanes: u64,
    operation: MemoryOperation,
    instruction: &Instruction,
    wave: &Wave,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Fault> {
    let MemoryOperation {
        segment: Segment::Global,
        action:
            Action::Load {
                bytes,
                sign_extend,
                part: Part::Whole,
            },
    } = operation
    else {
        return Err(unmodelled(instruction, "a copy to LDS"));
    };
    let addresses = operation.addresses(instruction, wave, surroundings.target)?;
    for lane in active(lanes) {
        let (_, address) = addresses.place(lane, instruction, wave);
        for (start, size) in chunks(bytes.into()) {
            let address = address.wrapping_add(start.into());
            let value = surroundings
                .memory
                .load(address, size.into())
                .map_err(|_| unmapped(instruction, lane, Access::Read, size, address))?
                as u32;
            let unused = 32 - 8 * size;
            let value = if sign_extend {
                ((value << unused) as i32 >> unused) as u32
            } else {
                value
            };
            let place = (start, u32::from(bytes.max(4)));
            lds::copy(instruction, wave, surroundings, lane, place, value);
        }
    }
    Ok(())
}
