//! The registers that an instruction reads and writes, and the way on from it.

use crate::facts::{Condition, Group, Memory, WaveSize, Way, effect};
use crate::instruction::{DppControl, Instruction, Unused};
use crate::operand::Operand;

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// SGPRs by their numbers, 106 and 107: VCC, 108 to 123: trap registers, 124: M0, 126 and 127: EXEC. In waves of
    /// 32, 107 is an ordinary register.
    Scalar,
    /// VGPRs.
    Vector,
    /// Accumulation VGPRs.
    Accumulator,
}

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// The instruction reads the registers.
    Read,
    /// The instruction writes the registers. Inactive lanes of vector registers keep their values.
    Write,
}

/// An access of an instruction to registers with successive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The registers' file.
    pub file: File,
    /// The first register.
    pub first: u16,
    /// The number of registers.
    pub count: u8,
    /// The direction.
    pub kind: AccessKind,
}

/// The most accesses of an instruction.
const MOST: usize = 24;

/// The accesses of an instruction: see [`Instruction::accesses`].
#[derive(Clone, Debug)]
pub struct Accesses {
    list: [Access; MOST],
    next: u8,
    end: u8,
}

impl Accesses {
    const fn new() -> Self {
        const NOTHING: Access = Access {
            file: File::Scalar,
            first: 0,
            count: 0,
            kind: AccessKind::Read,
        };
        Self {
            list: [NOTHING; MOST],
            next: 0,
            end: 0,
        }
    }

    fn add(&mut self, operand: Operand, count: u8, kind: AccessKind) {
        let (file, first) = match operand.0 {
            _ if count == 0 => return,
            code @ 0..128 if code != 125 => (File::Scalar, code),
            251 => (File::Scalar, Operand::VCC.0),
            252 => (File::Scalar, Operand::EXEC.0),
            code @ 256..512 => (File::Vector, code - 256),
            code @ 512..768 => (File::Accumulator, code - 512),
            code @ 768..1536 => (File::Vector, code - 512),
            _ => return,
        };
        let access = Access {
            file,
            first,
            count,
            kind,
        };
        if let Some(place) = self.list.get_mut(usize::from(self.end)) {
            *place = access;
            self.end += 1;
        }
    }

    fn read(&mut self, operand: Operand, count: u8) {
        self.add(operand, count, AccessKind::Read);
    }

    fn write(&mut self, operand: Operand, count: u8) {
        self.add(operand, count, AccessKind::Write);
    }
}

impl Iterator for Accesses {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        let access = self.list[..usize::from(self.end)].get(usize::from(self.next))?;
        self.next += 1;
        Some(*access)
    }
}

/// The way on from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To another place, or to the next instruction if a condition does not hold.
    Branch {
        /// The distance from the next instruction, in dwords.
        to: i32,
        /// The condition of the branch.
        condition: Option<Condition>,
    },
    /// To another place, which finds the address of the next instruction in registers.
    Call {
        /// The distance from the next instruction, in dwords.
        to: i32,
    },
    /// To the address in registers.
    Indirect,
    /// To the address in registers, with the address of the next instruction in others.
    IndirectCall,
    /// The wave ends.
    End,
    /// To the trap handler, which may end the wave.
    Trap,
}

impl Instruction {
    /// The way on from the instruction.
    pub fn flow(&self) -> Flow {
        match self.facts.way {
            Way::Next => Flow::Next,
            Way::Branch(condition) => Flow::Branch {
                to: self.immediate,
                condition,
            },
            Way::Call => Flow::Call { to: self.immediate },
            Way::Indirect => Flow::Indirect,
            Way::IndirectCall => Flow::IndirectCall,
            Way::End => Flow::End,
            Way::Trap => Flow::Trap,
        }
    }

    /// Returns whether the instruction reads SCC.
    pub fn reads_scc(&self) -> bool {
        self.facts.has(effect::READS_SCC) || self.src.contains(&Operand::SCC)
    }

    /// Returns whether the instruction writes SCC, at least for some values.
    pub fn writes_scc(&self) -> bool {
        self.facts.has(effect::WRITES_SCC)
    }

    /// Returns whether the instruction writes EXEC or a half of it.
    pub fn writes_exec(&self) -> bool {
        if self.facts.has(effect::WRITES_EXEC) {
            return true;
        }
        // Only scalar results can be EXEC.
        let mut results = [self.dst, self.sdst].into_iter();
        results.any(|result| (125..128).contains(&result.0))
            && self.accesses(WaveSize::W64).any(|access| {
                access.kind == AccessKind::Write
                    && access.file == File::Scalar
                    && access.first + u16::from(access.count) > Operand::EXEC.0
            })
    }

    /// Returns whether the instruction reads or writes further registers, whose numbers are known at run time only.
    pub fn indexes_registers(&self) -> bool {
        self.facts.has(effect::INDEXES)
    }

    /// The registers that the instruction reads and writes, named and implied. EXEC is among them if the instruction
    /// reads it as a value or writes it, and not because lanes are inactive. A result that replaces a part of its
    /// register is a read, too.
    pub fn accesses(&self, wave: WaveSize) -> Accesses {
        let mut accesses = Accesses::new();
        match self.facts.group {
            Group::Scalar | Group::Vector => self.add_plain(&mut accesses, wave),
            Group::ScalarMemory => self.add_scalar_memory(&mut accesses),
            Group::Lds => self.add_lds(&mut accesses),
            Group::Flat | Group::Global | Group::Scratch => self.add_flat(&mut accesses),
            Group::Buffer => self.add_buffer(&mut accesses),
            Group::Image => self.add_image(&mut accesses),
        }
        if let Some(second) = self.second() {
            second.add_plain(&mut accesses, wave);
        }
        if let Some(scales) = self.matrix.scales {
            for source in scales.sources {
                accesses.read(source, scales.registers);
            }
        }
        self.add_implied(&mut accesses, wave);
        accesses
    }

    fn add_implied(&self, accesses: &mut Accesses, wave: WaveSize) {
        const IMPLIED: u32 = effect::READS_EXEC
            | effect::WRITES_EXEC
            | effect::READS_VCC
            | effect::READS_M0
            | effect::WRITES_M0
            | effect::TO_LDS;
        if !self.facts.has(IMPLIED) && !self.buffer.to_lds {
            return;
        }
        let effects = [
            (effect::READS_EXEC, Operand::EXEC, AccessKind::Read),
            (effect::WRITES_EXEC, Operand::EXEC, AccessKind::Write),
            (effect::READS_VCC, Operand::VCC, AccessKind::Read),
        ];
        for (effect, operand, kind) in effects {
            if self.facts.has(effect) {
                accesses.add(operand, wave.mask(), kind);
            }
        }
        if self.facts.has(effect::READS_M0 | effect::TO_LDS) || self.buffer.to_lds {
            accesses.read(Operand::M0, 1);
        }
        if self.facts.has(effect::WRITES_M0) {
            accesses.write(Operand::M0, 1);
        }
    }

    fn add_plain(&self, accesses: &mut Accesses, wave: WaveSize) {
        let facts = self.facts;
        let [result, scalar_result, mut widths @ ..] = facts.widths[wave as usize];
        if facts.has(effect::FORMATS) {
            let registers = |format| match format {
                0 | 1 => 8,
                2 | 3 => 6,
                _ => 4,
            };
            widths[0] = registers(self.matrix.broadcast);
            widths[1] = registers(self.matrix.lanes);
        }
        for (source, width) in self.src.into_iter().zip(widths) {
            accesses.read(source, width);
        }
        match facts.has(effect::READS_SCALAR_RESULT) {
            true => accesses.read(self.sdst, scalar_result),
            false => accesses.write(self.sdst, scalar_result),
        }
        if facts.has(effect::SWAPS) {
            accesses.write(self.src[0], widths[0]);
            accesses.read(self.dst, result);
        }
        if facts.has(effect::READS_RESULT) {
            accesses.read(self.dst, result);
            return;
        }
        if facts.has(effect::KEEPS) || self.keeps_part() {
            accesses.read(self.dst, result);
        }
        accesses.write(self.dst, result);
    }

    /// Returns whether a part of the result's register keeps its value in active lanes.
    fn keeps_part(&self) -> bool {
        let keeps_half = self.modifiers.keeps_half || self.modifiers.op_sel & 8 != 0;
        let of_word = self
            .sdwa
            .is_some_and(|sdwa| sdwa.unused == Unused::Preserve);
        let of_lanes = self.dpp.is_some_and(|dpp| {
            let is_pattern = matches!(dpp.control, DppControl::Pattern(_));
            is_pattern && !(dpp.bound_control && dpp.row_mask == 15 && dpp.bank_mask == 15)
        });
        self.facts.has(effect::HALF) && keeps_half || of_word || of_lanes
    }

    fn add_scalar_memory(&self, accesses: &mut Accesses) {
        let [result, _, base, ..] = self.facts.widths[0];
        accesses.read(self.src[0], base);
        // The base of some is the program counter.
        let has_offset = base != 0 || self.mnemonic.starts_with("s_prefetch_");
        accesses.read(self.src[1], u8::from(has_offset));
        let memory = self.facts.memory;
        if memory != Memory::Load {
            accesses.read(self.dst, result);
        }
        let written = match memory {
            Memory::Load => result,
            Memory::Store => 0,
            Memory::Atomic if !self.returns => 0,
            Memory::Atomic => self.returned(result),
        };
        accesses.write(self.dst, written);
    }

    /// The registers of an atomic's old value, which is in the first of its data.
    fn returned(&self, data: u8) -> u8 {
        match self.facts.has(effect::COMPARES) {
            true => data / 2,
            false => data,
        }
    }

    fn add_lds(&self, accesses: &mut Accesses) {
        let [result, _, widths @ ..] = self.facts.widths[0];
        for (source, width) in self.src.into_iter().zip(widths) {
            accesses.read(source, width);
        }
        if self.facts.has(effect::SWAPS) {
            accesses.write(self.src[0], widths[0]);
        }
        if self.facts.has(effect::KEEPS) {
            accesses.read(self.dst, result);
        }
        accesses.write(self.dst, result);
    }

    fn add_flat(&self, accesses: &mut Accesses) {
        let facts = self.facts;
        let [result, _, vector, data, _] = facts.widths[0];
        let scalar = self.src[2];
        let vector = match facts.group {
            _ if vector == 0 => 0,
            Group::Scratch => u8::from(self.has_vector_address),
            Group::Global | Group::Flat if !scalar.is_none() => 1,
            _ => 2,
        };
        accesses.read(self.src[0], vector);
        accesses.read(self.src[1], data);
        let scalar_width = if facts.group == Group::Scratch { 1 } else { 2 };
        accesses.read(scalar, scalar_width);
        if facts.has(effect::READS_RESULT) {
            accesses.read(self.dst, result);
            return;
        }
        if facts.memory == Memory::Atomic && !self.returns || self.buffer.to_lds {
            return;
        }
        if facts.has(effect::KEEPS) {
            accesses.read(self.dst, result);
        }
        accesses.write(self.dst, result);
    }

    fn add_buffer(&self, accesses: &mut Accesses) {
        let [_, resource, _, data, offset] = self.facts.widths[0];
        let addresses = u8::from(self.has_vector_address) + u8::from(self.buffer.indexed);
        accesses.read(self.src[0], if resource == 0 { 0 } else { addresses });
        accesses.read(self.sdst, resource);
        accesses.read(self.src[2], offset);
        if !self.buffer.to_lds {
            self.add_data(accesses, data, self.buffer.tells_residence);
        }
    }

    /// Adds the data of a buffer or an image.
    fn add_data(&self, accesses: &mut Accesses, data: u8, tells_residence: bool) {
        let memory = self.facts.memory;
        let residence = u8::from(tells_residence && data != 0);
        if memory != Memory::Load {
            accesses.read(self.src[1], data + residence);
        }
        let written = match memory {
            Memory::Load => data + residence,
            Memory::Store => 0,
            Memory::Atomic if !self.returns => 0,
            Memory::Atomic => self.returned(data) + residence,
        };
        // The word of residence is written only if memory is missing.
        let keeps = self.facts.has(effect::KEEPS) || residence != 0;
        if memory == Memory::Load && keeps {
            accesses.read(self.dst, written);
        }
        accesses.write(self.dst, written);
    }

    fn add_image(&self, accesses: &mut Accesses) {
        let [_, resource, first, data, sampler] = self.facts.widths[0];
        let image = self.image;
        let components = match image.mask.count_ones() as u8 {
            _ if self.facts.has(effect::GATHERS) => 4,
            0 => 1,
            count => count,
        };
        let is_ray = self.mnemonic.starts_with("image_bvh");
        let data = match data {
            0 => 0,
            data if is_ray => data,
            data if self.facts.has(effect::COMPARES) => components.max(data.min(2)),
            _ if image.halves && self.facts.memory != Memory::Atomic => components.div_ceil(2),
            _ => components,
        };
        self.add_data(accesses, data, image.tells_residence);
        accesses.read(self.sdst, resource);
        accesses.read(self.src[2], sampler);
        // The numbers of addresses depend on much: all that the encoding lists, or as many as there can be.
        let listed = image.listed_addresses;
        if listed > 1 {
            accesses.read(self.src[0], if is_ray { 3 } else { 1 });
            for register in &image.more_addresses[..usize::from(listed - 1)] {
                accesses.read(
                    Operand::vgpr((*register).into()),
                    if is_ray { 3 } else { 1 },
                );
            }
        } else {
            const MOST_ADDRESSES: u8 = 12;
            accesses.read(self.src[0], if is_ray { first } else { MOST_ADDRESSES });
        }
    }
}
