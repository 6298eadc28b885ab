//! Buffers with a resource of their own, not the scratch buffer: loads, stores, atomics, typed
//! elements.

use modelgpu_isa::{BufferFormat, Instruction, Operand, Target};

use super::super::value::Kind;
use super::super::{Operation, Surroundings, scalar_source, unmodelled};
use super::format::{Format, Precision, chunks};
use super::lane_access::{resource_atomic, unmapped};
use super::lds;
use super::operation::{Action, Halves, MemoryOperation, Part, Segment, Typed};
use super::resource::{BufferPlace, BufferResource};
use super::segment::PRIVATE_SEGMENT_BUFFER;
use crate::error::{Access, Fault};
use crate::lanes::active;
use crate::wave::Wave;

const fn typed(components: u8, halves: Halves, stores: bool) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Buffer,
        action: Action::Typed(Typed {
            components,
            halves,
            stores,
        }),
    })
}

macro_rules! typed_accesses {
    ($prefix:literal) => {
        &[
            (
                concat!($prefix, "load_format_x"),
                typed(1, Halves::None, false),
            ),
            (
                concat!($prefix, "load_format_xy"),
                typed(2, Halves::None, false),
            ),
            (
                concat!($prefix, "load_format_xyz"),
                typed(3, Halves::None, false),
            ),
            (
                concat!($prefix, "load_format_xyzw"),
                typed(4, Halves::None, false),
            ),
            (
                concat!($prefix, "store_format_x"),
                typed(1, Halves::None, true),
            ),
            (
                concat!($prefix, "store_format_xy"),
                typed(2, Halves::None, true),
            ),
            (
                concat!($prefix, "store_format_xyz"),
                typed(3, Halves::None, true),
            ),
            (
                concat!($prefix, "store_format_xyzw"),
                typed(4, Halves::None, true),
            ),
            (
                concat!($prefix, "load_format_d16_x"),
                typed(1, Halves::Packed, false),
            ),
            (
                concat!($prefix, "load_format_d16_xy"),
                typed(2, Halves::Packed, false),
            ),
            (
                concat!($prefix, "load_format_d16_xyz"),
                typed(3, Halves::Packed, false),
            ),
            (
                concat!($prefix, "load_format_d16_xyzw"),
                typed(4, Halves::Packed, false),
            ),
            (
                concat!($prefix, "store_format_d16_x"),
                typed(1, Halves::Packed, true),
            ),
            (
                concat!($prefix, "store_format_d16_xy"),
                typed(2, Halves::Packed, true),
            ),
            (
                concat!($prefix, "store_format_d16_xyz"),
                typed(3, Halves::Packed, true),
            ),
            (
                concat!($prefix, "store_format_d16_xyzw"),
                typed(4, Halves::Packed, true),
            ),
        ]
    };
}

pub(super) const TABLES: [super::super::Table; 3] = [
    typed_accesses!("buffer_"),
    typed_accesses!("tbuffer_"),
    &[
        ("buffer_load_format_d16_hi_x", typed(1, Halves::High, false)),
        ("buffer_store_format_d16_hi_x", typed(1, Halves::High, true)),
    ],
];

/// A buffer and the parts of an instruction's addresses that all lanes share.
pub(super) struct Buffer {
    resource: BufferResource,
    scalar: u32,
}

impl Buffer {
    /// Returns `None` for the scratch buffer.
    pub(super) fn new(
        instruction: &Instruction,
        wave: &Wave,
        target: Target,
    ) -> Result<Option<Self>, Fault> {
        let words: [u32; 4] =
            std::array::from_fn(|place| wave.word(Operand(instruction.sdst.0 + place as u16)));
        if words == PRIVATE_SEGMENT_BUFFER {
            return Ok(None);
        }
        let resource = BufferResource::new(words, target);
        let lacks = match instruction.buffer.tells_residence {
            true => Some("tfe"),
            false => resource.unmodelled(instruction.buffer.indexed),
        };
        if let Some(detail) = lacks {
            return Err(unmodelled(instruction, detail));
        }
        Ok(Some(Self {
            resource,
            scalar: scalar_source(instruction, 2, Kind::B32, wave)? as u32,
        }))
    }

    pub(super) fn execute(
        &self,
        lanes: u64,
        action: Action,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        let typed = match action {
            Action::Typed(_) => Some(self.format(instruction)?),
            _ => None,
        };
        for lane in active(lanes) {
            let mut access = BufferAccess {
                buffer: self,
                instruction,
                lane,
                place: self.place(instruction, lane, wave),
                surroundings,
            };
            match action {
                Action::Load {
                    bytes,
                    sign_extend,
                    part,
                } => access.load(wave, bytes, sign_extend, part)?,
                Action::Store { bytes, part } => access.store(wave, bytes, part)?,
                Action::Atomic {
                    function, bytes, ..
                } => access.atomic(wave, function, bytes)?,
                Action::Typed(registers) => {
                    if let Some(Some(format)) = typed {
                        if registers.stores {
                            access.store_typed(wave, registers, format)?;
                        } else {
                            access.load_typed(wave, registers, format)?;
                        }
                    }
                }
                _ => return Err(unmodelled(instruction, "a buffer")),
            }
        }
        Ok(())
    }

    fn place(&self, instruction: &Instruction, lane: usize, wave: &Wave) -> BufferPlace {
        let address = instruction.src[0];
        let control = instruction.buffer;
        // The index comes first if the instruction has both registers.
        let index = if control.indexed {
            wave.lane(address, lane)
        } else {
            0
        };
        let offset = match (instruction.has_vector_address, control.indexed) {
            (false, _) => 0,
            (true, false) => wave.lane(address, lane),
            (true, true) => wave.lane_at(address, 1, lane),
        };
        let own = if self.resource.adds_lane {
            lane as u32
        } else {
            0
        };
        BufferPlace {
            index: index.wrapping_add(own),
            offset: offset.wrapping_add(instruction.immediate as u32),
            scalar: self.scalar,
            indexed: control.indexed,
        }
    }

    /// The format of typed elements: the instruction's own, or the resource's.
    fn format(&self, instruction: &Instruction) -> Result<Option<Format>, Fault> {
        let resource = &self.resource;
        let format = match (instruction.buffer.format, resource.format) {
            // A resource without a format is no buffer: loads give 0, stores do nothing.
            (Some(BufferFormat::Split(_, number)), BufferFormat::Split(0, _))
            | (_, BufferFormat::Split(0, number)) => BufferFormat::Split(0, number),
            (Some(_), BufferFormat::Joined(0)) => {
                return Err(unmodelled(instruction, "a resource without a format"));
            }
            (own, other) => own.unwrap_or(other),
        };
        Format::from_buffer(format)
            .map(Some)
            .ok_or_else(|| unmodelled(instruction, "this format"))
    }
}

/// The access of one lane.
struct BufferAccess<'a, 'space> {
    buffer: &'a Buffer,
    instruction: &'a Instruction,
    lane: usize,
    place: BufferPlace,
    surroundings: &'a mut Surroundings<'space>,
}

impl BufferAccess<'_, '_> {
    fn load(
        &mut self,
        wave: &mut Wave,
        bytes: u8,
        sign_extend: bool,
        part: Part,
    ) -> Result<(), Fault> {
        const THREE_DWORDS: u8 = 12;
        let register = self.instruction.dst;
        if self.instruction.buffer.to_lds && bytes == THREE_DWORDS {
            return Err(unmodelled(self.instruction, "three dwords to LDS"));
        }
        for (start, size) in chunks(bytes.into()) {
            let value = self.read(start, size)?;
            let unused = 32 - 8 * size;
            let value = if sign_extend {
                ((value << unused) as i32 >> unused) as u32
            } else {
                value
            };
            if self.instruction.buffer.to_lds {
                let place = (start, u32::from(bytes.max(4)));
                lds::copy(
                    self.instruction,
                    wave,
                    self.surroundings,
                    self.lane,
                    place,
                    value,
                );
                continue;
            }
            let place = (start / 4) as usize;
            let old = wave.lane_at(register, place, self.lane);
            let value = match part {
                Part::Whole => value,
                Part::Low => old & 0xffff_0000 | value & 0xffff,
                Part::High => old & 0xffff | value << 16,
            };
            wave.set_lane_at(register, place, self.lane, value);
        }
        Ok(())
    }

    fn store(&mut self, wave: &Wave, bytes: u8, part: Part) -> Result<(), Fault> {
        for (start, size) in chunks(bytes.into()) {
            let place = (start / 4) as usize;
            let value = wave.lane_at(self.instruction.src[1], place, self.lane);
            let value = if part == Part::High {
                value >> 16
            } else {
                value
            };
            self.write(start, size, value)?;
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        wave: &mut Wave,
        function: super::AtomicFunction,
        bytes: u8,
    ) -> Result<(), Fault> {
        let address = self.buffer.resource.address(self.place, bytes.into());
        let (instruction, lane) = (self.instruction, self.lane);
        let operation = (function, bytes);
        resource_atomic(
            instruction,
            lane,
            operation,
            address,
            wave,
            self.surroundings,
        )
    }

    fn load_typed(&mut self, wave: &mut Wave, typed: Typed, format: Format) -> Result<(), Fault> {
        let mut element = 0u128;
        for (start, size) in chunks(format.size()) {
            element |= u128::from(self.read(start, size)?) << (8 * start);
        }
        let precision = typed.precision();
        let components = format.decode(element, precision);
        let selection = match self.instruction.buffer.format {
            Some(_) => [4, 5, 6, 7],
            None => self.buffer.resource.selection,
        };
        let selected = selection.map(|source| match source {
            1 => format.one(precision),
            4..=7 => components[usize::from(source - 4)],
            _ => 0,
        });
        if self.instruction.buffer.to_lds {
            lds::copy(
                self.instruction,
                wave,
                self.surroundings,
                self.lane,
                (0, 4),
                selected[0],
            );
            return Ok(());
        }
        for (number, component) in selected
            .into_iter()
            .enumerate()
            .take(typed.components.into())
        {
            let (place, shift) = typed.register(number);
            let old = wave.lane_at(self.instruction.dst, place, self.lane);
            let value = match typed.halves {
                Halves::None => component,
                _ => old & !(0xffff << shift) | (component & 0xffff) << shift,
            };
            wave.set_lane_at(self.instruction.dst, place, self.lane, value);
        }
        Ok(())
    }

    fn store_typed(&mut self, wave: &Wave, typed: Typed, format: Format) -> Result<(), Fault> {
        // A component that the instruction lacks is its first one.
        let components: [u32; 4] = std::array::from_fn(|number| {
            let number = if number < typed.components.into() {
                number
            } else {
                0
            };
            let (place, shift) = typed.register(number);
            let word = wave.lane_at(self.instruction.src[1], place, self.lane) >> shift;
            match typed.halves {
                Halves::None => word,
                _ => word & 0xffff,
            }
        });
        let element = format
            .encode(components, typed.precision())
            .ok_or_else(|| unmodelled(self.instruction, "a store to this format"))?;
        for (start, size) in chunks(format.size()) {
            self.write(start, size, (element >> (8 * start)) as u32)?;
        }
        Ok(())
    }

    fn at(&self, offset: u32) -> BufferPlace {
        BufferPlace {
            offset: self.place.offset.wrapping_add(offset),
            ..self.place
        }
    }

    fn read(&mut self, offset: u32, size: u32) -> Result<u32, Fault> {
        match self.buffer.resource.address(self.at(offset), size) {
            None => Ok(0),
            Some(address) => match self.surroundings.memory.load(address, size.into()) {
                Ok(value) => Ok(value as u32),
                Err(_) => Err(unmapped(
                    self.instruction,
                    self.lane,
                    Access::Read,
                    size,
                    address,
                )),
            },
        }
    }

    fn write(&mut self, offset: u32, size: u32, value: u32) -> Result<(), Fault> {
        match self.buffer.resource.address(self.at(offset), size) {
            None => Ok(()),
            Some(address) => self
                .surroundings
                .memory
                .store(address, size.into(), value.into())
                .map_err(|_| unmapped(self.instruction, self.lane, Access::Write, size, address)),
        }
    }
}

impl Typed {
    fn precision(self) -> Precision {
        match self.halves {
            Halves::None => Precision::Full,
            _ => Precision::Half,
        }
    }

    /// The register of a component, and its first bit there.
    fn register(self, number: usize) -> (usize, u32) {
        match self.halves {
            Halves::None => (number, 0),
            Halves::Packed => (number / 2, number as u32 % 2 * 16),
            Halves::High => (0, 16),
        }
    }
}
