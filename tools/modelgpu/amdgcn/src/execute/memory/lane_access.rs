//! One lane's access: its bytes, its memory and its registers.

use modelgpu_isa::{Instruction, Operand};

use super::super::{LdsAccess, Surroundings};
use super::atomic::AtomicFunction;
use super::operation::Part;
use crate::error::{Access, Fault, Space};
use crate::memory::AtomicFailure;
use crate::wave::Wave;

/// The access of one lane of an instruction.
pub(super) struct LaneAccess<'a, 'space> {
    pub instruction: &'a Instruction,
    /// The instruction is one of the LDS unit.
    pub is_lds: bool,
    pub lane: usize,
    /// The lane whose scratch it is.
    pub owner: usize,
    pub space: Space,
    pub surroundings: &'a mut Surroundings<'space>,
}

impl LaneAccess<'_, '_> {
    pub(super) fn load(
        &mut self,
        wave: &mut Wave,
        address: u64,
        bytes: u8,
        sign_extend: bool,
        part: Part,
    ) -> Result<(), Fault> {
        let register = self.instruction.dst;
        if bytes >= 4 {
            return self.load_words(wave, register, address, bytes);
        }
        let value = self.read(wave, address, bytes.into())? as u32;
        let unused = 32 - 8 * u32::from(bytes);
        let value = if sign_extend {
            (value << unused) as i32 >> unused
        } else {
            value as i32
        } as u32;
        let old = wave.lane(register, self.lane);
        let value = match part {
            Part::Whole => value,
            Part::Low => old & 0xffff_0000 | value & 0xffff,
            Part::High => old & 0xffff | value << 16,
        };
        wave.set_lane_at(register, 0, self.lane, value);
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        wave: &mut Wave,
        address: u64,
        bytes: u8,
        part: Part,
    ) -> Result<(), Fault> {
        let register = self.instruction.src[1];
        if bytes >= 4 {
            return self.store_words(wave, register, address, bytes);
        }
        let value = wave.lane(register, self.lane);
        let value = if part == Part::High {
            value >> 16
        } else {
            value
        };
        self.write(wave, address, bytes.into(), value.into())
    }

    /// Loads two elements of `bytes` each.
    pub(super) fn load_two(
        &mut self,
        wave: &mut Wave,
        addresses: [u64; 2],
        bytes: u8,
    ) -> Result<(), Fault> {
        for (place, address) in addresses.into_iter().enumerate() {
            let register = Operand(self.instruction.dst.0 + (place as u16) * u16::from(bytes / 4));
            self.load_words(wave, register, address, bytes)?;
        }
        Ok(())
    }

    pub(super) fn store_two(
        &mut self,
        wave: &mut Wave,
        addresses: [u64; 2],
        bytes: u8,
    ) -> Result<(), Fault> {
        for (place, address) in addresses.into_iter().enumerate() {
            let register = self.instruction.src[1 + place];
            self.store_words(wave, register, address, bytes)?;
        }
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        wave: &mut Wave,
        address: u64,
        function: AtomicFunction,
        bytes: u8,
        returns: bool,
    ) -> Result<(), Fault> {
        let (size, lane) = (u64::from(bytes), self.lane);
        let data = self.instruction.src[1];
        let read = |register| match bytes {
            4 => u64::from(wave.lane(register, lane)),
            _ => wave.lane_pair(register, lane),
        };
        let (operand, compared) = match (function, self.is_lds) {
            // LDS compares with the first data operand; other memory has both operands in one
            // tuple.
            (AtomicFunction::CompareSwap, true) => (read(self.instruction.src[2]), read(data)),
            (AtomicFunction::CompareSwap, false) => {
                (read(data), read(Operand(data.0 + u16::from(bytes / 4))))
            }
            _ => (read(data), 0),
        };
        let update = |old| function.apply(bytes, old, operand, compared);
        let old = match self.space {
            Space::Global => self
                .surroundings
                .memory
                .atomic(address, size, update)
                .map_err(|failure| match failure {
                    AtomicFailure::Unmapped => {
                        self.out_of_bounds(Access::Atomic, address, size, None)
                    }
                    AtomicFailure::Misaligned => Fault::MisalignedAtomic {
                        mnemonic: self.instruction.mnemonic,
                        size,
                        address,
                        lane: Some(self.lane as u8),
                    },
                })?,
            // Only this wave or workgroup sees this memory, and it runs on one thread.
            Space::Lds | Space::Scratch => {
                match self.local(wave, Access::Atomic, address, size)? {
                    Some(local) => {
                        let old = self.read_local(wave, local, size);
                        self.write_local(wave, local, size, update(old));
                        old
                    }
                    None => 0,
                }
            }
        };
        if returns {
            write_old(self.instruction, wave, lane, bytes, old);
        }
        Ok(())
    }

    fn load_words(
        &mut self,
        wave: &mut Wave,
        register: Operand,
        address: u64,
        bytes: u8,
    ) -> Result<(), Fault> {
        for place in 0..usize::from(bytes / 4) {
            let value = self.read(wave, address.wrapping_add(4 * place as u64), 4)?;
            wave.set_lane_at(register, place, self.lane, value as u32);
        }
        Ok(())
    }

    fn store_words(
        &mut self,
        wave: &mut Wave,
        register: Operand,
        address: u64,
        bytes: u8,
    ) -> Result<(), Fault> {
        for place in 0..usize::from(bytes / 4) {
            let value = wave.lane_at(register, place, self.lane);
            self.write(
                wave,
                address.wrapping_add(4 * place as u64),
                4,
                value.into(),
            )?;
        }
        Ok(())
    }

    fn read(&mut self, wave: &mut Wave, address: u64, size: u64) -> Result<u64, Fault> {
        if self.space == Space::Global {
            return self
                .surroundings
                .memory
                .load(address, size)
                .map_err(|_| self.out_of_bounds(Access::Read, address, size, None));
        }
        let local = self.local(wave, Access::Read, address, size)?;
        Ok(local.map_or(0, |local| self.read_local(wave, local, size)))
    }

    fn write(&mut self, wave: &mut Wave, address: u64, size: u64, value: u64) -> Result<(), Fault> {
        if self.space == Space::Global {
            return self
                .surroundings
                .memory
                .store(address, size, value)
                .map_err(|_| self.out_of_bounds(Access::Write, address, size, None));
        }
        if let Some(local) = self.local(wave, Access::Write, address, size)? {
            self.write_local(wave, local, size, value);
        }
        Ok(())
    }

    /// An offset in LDS, or in this lane's scratch. Returns `None` beyond LDS: AMD's instruction set
    /// guides say that reads there give 0 and that hardware drops writes.
    fn local(
        &self,
        wave: &Wave,
        access: Access,
        address: u64,
        size: u64,
    ) -> Result<Option<usize>, Fault> {
        let limit = match self.space {
            Space::Scratch => wave.scratch.per_lane,
            _ => self.surroundings.lds.len(),
        };
        if address
            .checked_add(size)
            .is_none_or(|end| end > limit as u64)
        {
            if self.space == Space::Lds {
                (self.surroundings.beyond_lds)(LdsAccess {
                    pc: wave.pc.wrapping_sub(self.instruction.size.into()),
                    mnemonic: self.instruction.mnemonic,
                    access,
                    size,
                    address,
                });
                return Ok(None);
            }
            return Err(self.out_of_bounds(access, address, size, Some(limit as u64)));
        }
        Ok(Some(address as usize))
    }

    fn read_local(&self, wave: &Wave, address: usize, size: u64) -> u64 {
        match self.space {
            Space::Scratch => wave.scratch.read(self.owner, address, size as usize),
            _ => from_bytes(&self.surroundings.lds[address..][..size as usize]),
        }
    }

    fn write_local(&mut self, wave: &mut Wave, address: usize, size: u64, value: u64) {
        match self.space {
            Space::Scratch => wave
                .scratch
                .write(self.owner, address, size as usize, value),
            _ => to_bytes(
                &mut self.surroundings.lds[address..][..size as usize],
                value,
            ),
        }
    }

    fn out_of_bounds(&self, access: Access, address: u64, size: u64, limit: Option<u64>) -> Fault {
        Fault::OutOfBounds {
            mnemonic: self.instruction.mnemonic,
            space: self.space,
            access,
            size,
            address,
            limit,
            lane: Some(self.lane as u8),
        }
    }
}

/// Writes the old value of an atomic to the lane's result.
fn write_old(instruction: &Instruction, wave: &mut Wave, lane: usize, bytes: u8, old: u64) {
    let register = instruction.dst;
    wave.set_lane_at(register, 0, lane, old as u32);
    if bytes == 8 {
        wave.set_lane_at(register, 1, lane, (old >> 32) as u32);
    }
}

/// Executes one lane's atomic by a resource. Without an `address`, the place lies beyond the resource: nothing
/// changes there, and the old value is 0.
pub(super) fn resource_atomic(
    instruction: &Instruction,
    lane: usize,
    (function, bytes): (AtomicFunction, u8),
    address: Option<u64>,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Fault> {
    let returns = instruction.returns;
    let Some(address) = address else {
        if returns {
            write_old(instruction, wave, lane, bytes, 0);
        }
        return Ok(());
    };
    let mut access = LaneAccess {
        instruction,
        is_lds: false,
        lane,
        owner: lane,
        space: Space::Global,
        surroundings,
    };
    access.atomic(wave, address, function, bytes, returns)
}

/// The fault of one lane's access to global memory that is not mapped.
pub(super) fn unmapped(
    instruction: &Instruction,
    lane: usize,
    access: Access,
    size: u32,
    address: u64,
) -> Fault {
    Fault::OutOfBounds {
        mnemonic: instruction.mnemonic,
        space: Space::Global,
        access,
        size: size.into(),
        address,
        limit: None,
        lane: Some(lane as u8),
    }
}

fn from_bytes(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn to_bytes(bytes: &mut [u8], value: u64) {
    for (byte, part) in bytes.iter_mut().zip(value.to_le_bytes()) {
        *byte = part;
    }
}
