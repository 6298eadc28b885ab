//! Loads from global memory whose result goes to LDS, not to a register.

use modelgpu_isa::Instruction;

use super::super::{Operation, Surroundings, unmodelled};
use super::format::chunks;
use super::lds;
use super::operation::{Action, MemoryOperation, Part, Segment};
use crate::error::{Access, Fault, Space};
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

/// gfx942's names. On gfx90a, a bit of a plain load says the same.
pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("global_load_lds_ubyte", load(1, false)),
    ("global_load_lds_sbyte", load(1, true)),
    ("global_load_lds_ushort", load(2, false)),
    ("global_load_lds_sshort", load(2, true)),
    ("global_load_lds_dword", load(4, false)),
    ("global_load_lds_dwordx4", load(16, false)),
];

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
    let addresses = operation.addresses(instruction, wave)?;
    for lane in active(lanes) {
        let (_, address) = addresses.place(lane, instruction, wave);
        for (start, size) in chunks(bytes.into()) {
            let address = address.wrapping_add(start.into());
            let value = surroundings
                .memory
                .load(address, size.into())
                .map_err(|_| Fault::OutOfBounds {
                    mnemonic: instruction.mnemonic,
                    space: Space::Global,
                    access: Access::Read,
                    size: size.into(),
                    address,
                    limit: None,
                    lane: Some(lane as u8),
                })? as u32;
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
