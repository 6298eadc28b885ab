//! The access of one lane to an image: its address registers, texels and data registers.

use modelgpu_isa::{ImageControl, Instruction};

use super::super::super::{Surroundings, unmodelled};
use super::super::atomic::AtomicFunction;
use super::super::format::{Precision, chunks};
use super::super::lane_access::{resource_atomic, unmapped};
use super::resource::Resource;
use crate::error::{Access, Fault};
use crate::wave::Wave;

/// The access of one lane.
pub(super) struct ImageAccess<'a, 'space> {
    pub resource: &'a Resource,
    pub instruction: &'a Instruction,
    pub lane: usize,
    pub surroundings: &'a mut Surroundings<'space>,
}

impl ImageAccess<'_, '_> {
    /// The register of an address.
    pub(super) fn address(&self, wave: &Wave, number: usize) -> u32 {
        let first = self.instruction.src[0];
        let (register, offset) = self.instruction.image.address(first, number);
        wave.lane_at(register, offset, self.lane)
    }

    /// A coordinate's bits, behind other addresses.
    pub(super) fn coordinate(&self, wave: &Wave, before: usize, number: usize) -> u32 {
        if self.instruction.image.short_coordinates {
            let pair = self.address(wave, before + number / 2);
            pair >> (number % 2 * 16) & 0xffff
        } else {
            self.address(wave, before + number)
        }
    }

    /// The number of coordinates without that of a layer, and whether there is one. RDNA's instructions tell
    /// both; CDNA's resource tells the first.
    pub(super) fn axes(&self) -> (usize, bool) {
        let ImageControl {
            dimensions,
            has_layer,
            ..
        } = self.instruction.image;
        match dimensions {
            Some(count) => (count.into(), has_layer),
            None => (
                self.resource.dimensions,
                has_layer && self.resource.has_layers,
            ),
        }
    }

    /// The texel that whole coordinates name, in an image of any type: HIP copies to and from all of them as to
    /// layers of planes. A texel of another level than the first lies outside.
    pub(super) fn place(&self, wave: &Wave, has_level: bool) -> [i64; 3] {
        let coordinate = |number| self.coordinate(wave, 0, number);
        let (dimensions, has_layer) = self.axes();
        let mut place = [0; 3];
        for (number, place) in place.iter_mut().enumerate().take(dimensions) {
            *place = coordinate(number).into();
        }
        let mut next = dimensions;
        if has_layer {
            place[2] = coordinate(next).into();
            next += 1;
        }
        if has_level && coordinate(next) != 0 {
            place[0] = -1;
        }
        place
    }

    /// A texel's components as the resource selects them; 0 outside.
    pub(super) fn texel(&mut self, place: [i64; 3]) -> Result<[u32; 4], Fault> {
        let Some(address) = self.resource.address(place) else {
            return Ok([0; 4]);
        };
        let format = self.resource.format;
        let mut element = 0;
        for (start, size) in chunks(format.size()) {
            let address = address + u64::from(start);
            let part = self
                .surroundings
                .memory
                .load(address, size.into())
                .map_err(|_| unmapped(self.instruction, self.lane, Access::Read, size, address))?;
            element |= u128::from(part) << (8 * start);
        }
        let precision = self.precision();
        let components = format.decode(element, precision);
        Ok(self.resource.selection.map(|source| match source {
            1 => format.one(precision),
            4..=7 => components[usize::from(source - 4)],
            _ => 0,
        }))
    }

    fn precision(&self) -> Precision {
        match self.instruction.image.halves {
            true => Precision::Half,
            false => Precision::Full,
        }
    }

    /// The register of a component's data: its number among those of the mask, and its first bit.
    fn register(&self, component: usize, mask: u8) -> Option<(usize, u32)> {
        let halves = self.instruction.image.halves;
        if mask >> component & 1 == 0 {
            return None;
        }
        let number = (mask & ((1 << component) - 1)).count_ones() as usize;
        Some(match halves {
            true => (number / 2, number as u32 % 2 * 16),
            false => (number, 0),
        })
    }

    pub(super) fn set(&self, wave: &mut Wave, components: [u32; 4], mask: u8) {
        let register = self.instruction.dst;
        for (component, value) in components.into_iter().enumerate() {
            let Some((place, shift)) = self.register(component, mask) else {
                continue;
            };
            let value = match self.precision() {
                Precision::Full => value,
                Precision::Half => {
                    let old = wave.lane_at(register, place, self.lane);
                    old & !(0xffff << shift) | (value & 0xffff) << shift
                }
            };
            wave.set_lane_at(register, place, self.lane, value);
        }
    }

    pub(super) fn store(&mut self, wave: &Wave, place: [i64; 3]) -> Result<(), Fault> {
        let Some(address) = self.resource.address(place) else {
            return Ok(());
        };
        // The component that a load would take from here.
        let components = std::array::from_fn(|stored: usize| {
            let selected = |source: &u8| usize::from(*source) == stored + 4;
            let component = self.resource.selection.iter().position(selected);
            let mask = self.instruction.image.mask;
            let register = component.and_then(|component| self.register(component, mask));
            register.map_or(0, |(place, shift)| {
                let word = wave.lane_at(self.instruction.src[1], place, self.lane) >> shift;
                match self.precision() {
                    Precision::Full => word,
                    Precision::Half => word & 0xffff,
                }
            })
        });
        let format = self.resource.format;
        let element = format
            .encode(components, self.precision())
            .ok_or_else(|| unmodelled(self.instruction, "a store to this format"))?;
        for (start, size) in chunks(format.size()) {
            let address = address + u64::from(start);
            let part = (element >> (8 * start)) as u32;
            self.surroundings
                .memory
                .store(address, size.into(), part.into())
                .map_err(|_| unmapped(self.instruction, self.lane, Access::Write, size, address))?;
        }
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        wave: &mut Wave,
        place: [i64; 3],
        function: AtomicFunction,
    ) -> Result<(), Fault> {
        let size = self.resource.format.size();
        let is_whole = match function {
            AtomicFunction::FloatAdd
            | AtomicFunction::FloatMin
            | AtomicFunction::FloatMax
            | AtomicFunction::PackedHalfAdd
            | AtomicFunction::PackedBrainAdd => false,
            _ => size == 8,
        };
        if size != 4 && !is_whole {
            return Err(unmodelled(self.instruction, "this format"));
        }
        let address = self.resource.address(place);
        let (instruction, lane) = (self.instruction, self.lane);
        let operation = (function, size as u8);
        resource_atomic(
            instruction,
            lane,
            operation,
            address,
            wave,
            self.surroundings,
        )
    }
}
