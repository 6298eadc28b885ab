//! Images: texels at coordinates, and samples between them.
//!
//! Sources of the fields: AMD's GCN3 and Vega instruction set guides ("Image Resource", "Image
//! Sampler"), and ROCr's resource_ai.h. Rows lie one behind the other, also where hardware would
//! interleave them: a program sees a texture in an array only through such instructions.

use super::super::{Operation, Surroundings, unmodelled};
use super::access::{resource_atomic, unmapped};
use super::format::{Format, Precision, chunks};
use super::segment::Segment;
use super::{Action, AtomicFunction, MemoryOperation};
use crate::error::{Access, Fault};
use crate::isa::{ImageControl, Instruction, Operand};
use crate::wave::{LANES, Wave};

#[derive(Clone, Copy)]
pub(super) enum Image {
    Load,
    /// With a level, of which the model has one.
    LoadLevel,
    Store,
    StoreLevel,
    Sample,
    Size,
    Atomic(AtomicFunction),
}

const fn image(image: Image) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Global,
        action: Action::Image(image),
    })
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("image_load", image(Image::Load)),
    ("image_load_mip", image(Image::LoadLevel)),
    ("image_store", image(Image::Store)),
    ("image_store_mip", image(Image::StoreLevel)),
    ("image_sample", image(Image::Sample)),
    ("image_get_resinfo", image(Image::Size)),
    (
        "image_atomic_swap",
        image(Image::Atomic(AtomicFunction::Swap)),
    ),
    (
        "image_atomic_cmpswap",
        image(Image::Atomic(AtomicFunction::CompareSwap)),
    ),
    (
        "image_atomic_add",
        image(Image::Atomic(AtomicFunction::Add)),
    ),
    (
        "image_atomic_sub",
        image(Image::Atomic(AtomicFunction::Sub)),
    ),
    (
        "image_atomic_smin",
        image(Image::Atomic(AtomicFunction::SignedMin)),
    ),
    (
        "image_atomic_umin",
        image(Image::Atomic(AtomicFunction::UnsignedMin)),
    ),
    (
        "image_atomic_smax",
        image(Image::Atomic(AtomicFunction::SignedMax)),
    ),
    (
        "image_atomic_umax",
        image(Image::Atomic(AtomicFunction::UnsignedMax)),
    ),
    (
        "image_atomic_and",
        image(Image::Atomic(AtomicFunction::And)),
    ),
    ("image_atomic_or", image(Image::Atomic(AtomicFunction::Or))),
    (
        "image_atomic_xor",
        image(Image::Atomic(AtomicFunction::Xor)),
    ),
    (
        "image_atomic_inc",
        image(Image::Atomic(AtomicFunction::Increment)),
    ),
    (
        "image_atomic_dec",
        image(Image::Atomic(AtomicFunction::Decrement)),
    ),
];

/// An image resource of eight dwords.
struct Resource {
    base: u64,
    format: Format,
    /// Width, height, and depth or number of layers.
    size: [u32; 3],
    /// Texels from one row to the next.
    pitch: u32,
    /// The number of coordinates, without that of a layer.
    dimensions: usize,
    has_layers: bool,
    levels: u32,
    selection: [u8; 4],
}

impl Resource {
    fn of(instruction: &Instruction, wave: &Wave) -> Result<Self, Fault> {
        let words: [u32; 8] =
            std::array::from_fn(|n| wave.word(Operand(instruction.sdst.0 + n as u16)));
        let (data, number) = (words[1] >> 20 & 0x3f, words[1] >> 26 & 15);
        let format = u8::try_from(data)
            .ok()
            .and_then(|data| Format::new(data, number as u8))
            .filter(|format| format.size() != 0)
            .ok_or_else(|| unmodelled(instruction, "this format"))?;
        let (dimensions, has_layers) = match words[3] >> 28 {
            8 => (1, false),
            9 => (2, false),
            10 => (3, false),
            12 => (1, true),
            13 => (2, true),
            _ => return Err(unmodelled(instruction, "this type of image")),
        };
        let levels = (words[3] >> 16 & 15) + 1;
        if levels > 1 {
            return Err(unmodelled(instruction, "an image with several levels"));
        }
        let [width, height] = [words[2] & 0x3fff, words[2] >> 14 & 0x3fff].map(|last| last + 1);
        Ok(Self {
            base: u64::from(words[0]) << 8 | u64::from(words[1] & 0xff) << 40,
            format,
            size: [
                width,
                if dimensions == 1 { 1 } else { height },
                (words[4] & 0x1fff) + 1,
            ],
            pitch: (words[4] >> 13 & 0xffff) + 1,
            dimensions,
            has_layers,
            levels,
            selection: std::array::from_fn(|n| (words[3] >> (3 * n) & 7) as u8),
        })
    }

    /// The address of a texel; `None` outside.
    fn address(&self, place: [i64; 3]) -> Option<u64> {
        let inside = place
            .iter()
            .zip(self.size)
            .all(|(place, size)| (0..i64::from(size)).contains(place));
        let [x, y, z] = place.map(|place| place as u64);
        let row = z * u64::from(self.size[1]) + y;
        let texel = row * u64::from(self.pitch.max(self.size[0])) + x;
        inside.then(|| self.base + texel * u64::from(self.format.size()))
    }
}

/// The way to find texels for coordinates: a sampler of four dwords.
struct Sampler {
    edges: [Edge; 3],
    in_texels: bool,
    linear: bool,
}

#[derive(Clone, Copy)]
enum Edge {
    Wrap,
    Mirror,
    Last,
    MirrorOnce,
    Border,
}

impl Sampler {
    fn of(instruction: &Instruction, wave: &Wave) -> Result<Self, Fault> {
        let word = |place| wave.word(Operand(instruction.src[2].0 + place));
        let edge = |field: u32| match field & 7 {
            0 => Ok(Edge::Wrap),
            1 => Ok(Edge::Mirror),
            2 => Ok(Edge::Last),
            3 => Ok(Edge::MirrorOnce),
            6 => Ok(Edge::Border),
            _ => Err(unmodelled(instruction, "this address mode")),
        };
        let linear = match word(2) >> 20 & 3 {
            0 => false,
            1 => true,
            _ => return Err(unmodelled(instruction, "an anisotropic filter")),
        };
        // Other border colours are not 0.
        let edges = [edge(word(0))?, edge(word(0) >> 3)?, edge(word(0) >> 6)?];
        let has_border = edges.iter().any(|edge| matches!(edge, Edge::Border));
        if has_border && word(3) >> 30 != 0 {
            return Err(unmodelled(instruction, "this border colour"));
        }
        Ok(Self {
            edges,
            in_texels: word(0) >> 15 & 1 == 1 || instruction.image.in_texels,
            linear,
        })
    }
}

impl Edge {
    /// The texel for a place; `None` in the border.
    fn texel(self, place: i64, size: u32) -> Option<i64> {
        let size = i64::from(size);
        let mirrored = |place: i64| if place < 0 { -1 - place } else { place };
        Some(match self {
            Self::Wrap => place.rem_euclid(size),
            Self::Mirror => {
                let place = place.rem_euclid(2 * size);
                place.min(2 * size - 1 - place)
            }
            Self::Last => place.clamp(0, size - 1),
            Self::MirrorOnce => mirrored(place).min(size - 1),
            Self::Border => return (0..size).contains(&place).then_some(place),
        })
    }
}

impl Image {
    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        let control = instruction.image;
        if control.short_coordinates {
            return Err(unmodelled(instruction, "coordinates of 16 bits"));
        }
        let resource = Resource::of(instruction, wave)?;
        let sampler = match self {
            Self::Sample => Some(Sampler::of(instruction, wave)?),
            _ => None,
        };
        let exec = wave.exec();
        for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
            let mut access = ImageAccess {
                resource: &resource,
                instruction,
                lane,
                surroundings,
            };
            match (self, &sampler) {
                (Self::Sample, Some(sampler)) => access.sample(wave, sampler)?,
                (Self::Load | Self::LoadLevel | Self::Sample, _) => {
                    let place = access.place(wave, matches!(self, Self::LoadLevel));
                    let components = access.texel(place)?;
                    access.set(wave, components);
                }
                (Self::Store | Self::StoreLevel, _) => {
                    let place = access.place(wave, matches!(self, Self::StoreLevel));
                    access.store(wave, place)?;
                }
                (Self::Size, _) => {
                    let [width, height, depth] = resource.size;
                    access.set(wave, [width, height, depth, resource.levels]);
                }
                (Self::Atomic(function), _) => {
                    let place = access.place(wave, false);
                    access.atomic(wave, place, function)?;
                }
            }
        }
        Ok(())
    }
}

/// The access of one lane.
struct ImageAccess<'a, 'space> {
    resource: &'a Resource,
    instruction: &'a Instruction,
    lane: usize,
    surroundings: &'a mut Surroundings<'space>,
}

impl ImageAccess<'_, '_> {
    fn coordinate(&self, wave: &Wave, number: usize) -> u32 {
        wave.lane_at(self.instruction.src[0], number, self.lane)
    }

    /// The number of the layer's coordinate, if there is one.
    fn layer(&self) -> Option<usize> {
        (self.resource.has_layers && self.instruction.image.has_layer)
            .then_some(self.resource.dimensions)
    }

    /// The texel that whole coordinates name. One of another level than the first lies outside.
    fn place(&self, wave: &Wave, has_level: bool) -> [i64; 3] {
        let mut place = [0; 3];
        for (number, place) in place.iter_mut().enumerate().take(self.resource.dimensions) {
            *place = self.coordinate(wave, number).into();
        }
        let mut next = self.resource.dimensions;
        if let Some(layer) = self.layer() {
            place[2] = self.coordinate(wave, layer).into();
            next += 1;
        }
        if has_level && self.coordinate(wave, next) != 0 {
            place[0] = -1;
        }
        place
    }

    /// A texel's components as the resource selects them; 0 outside.
    fn texel(&mut self, place: [i64; 3]) -> Result<[u32; 4], Fault> {
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

    /// The registers of a component's data: its number among those of the mask, and its first bit.
    fn register(&self, component: usize) -> Option<(usize, u32)> {
        let ImageControl { mask, halves, .. } = self.instruction.image;
        if mask >> component & 1 == 0 {
            return None;
        }
        let number = (mask & ((1 << component) - 1)).count_ones() as usize;
        Some(match halves {
            true => (number / 2, number as u32 % 2 * 16),
            false => (number, 0),
        })
    }

    fn set(&self, wave: &mut Wave, components: [u32; 4]) {
        let register = self.instruction.dst;
        for (component, value) in components.into_iter().enumerate() {
            let Some((place, shift)) = self.register(component) else {
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

    fn store(&mut self, wave: &Wave, place: [i64; 3]) -> Result<(), Fault> {
        let Some(address) = self.resource.address(place) else {
            return Ok(());
        };
        // The component that a load would take from here.
        let components = std::array::from_fn(|stored: usize| {
            let selected = |source: &u8| usize::from(*source) == stored + 4;
            let component = self.resource.selection.iter().position(selected);
            let register = component.and_then(|component| self.register(component));
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

    fn sample(&mut self, wave: &mut Wave, sampler: &Sampler) -> Result<(), Fault> {
        let mut coordinates = [0f64; 3];
        for (number, place) in coordinates
            .iter_mut()
            .enumerate()
            .take(self.resource.dimensions)
        {
            let value = f64::from(f32::from_bits(self.coordinate(wave, number)));
            let scale = if sampler.in_texels {
                1.0
            } else {
                f64::from(self.resource.size[number])
            };
            *place = value * scale;
        }
        let layer = self.layer().map(|number| {
            let value = f64::from(f32::from_bits(self.coordinate(wave, number)));
            let last = i64::from(self.resource.size[2]) - 1;
            (value.round_ties_even() as i64).clamp(0, last)
        });
        if !sampler.linear {
            let place = self.at_edges(
                sampler,
                coordinates.map(|place| place.floor() as i64),
                layer,
            );
            let components = match place {
                Some(place) => self.texel(place)?,
                None => [0; 4],
            };
            self.set(wave, components);
            return Ok(());
        }
        if self.instruction.image.halves || !self.resource.format.has_floats() {
            return Err(unmodelled(
                self.instruction,
                "a linear filter for this format",
            ));
        }
        let mut sums = [0f64; 4];
        let corners = 1 << self.resource.dimensions;
        let first = coordinates.map(|place| (place - 0.5).floor());
        for corner in 0..corners {
            let mut weight = 1.0;
            let mut place = [0; 3];
            for axis in 0..self.resource.dimensions {
                // Weights have eight bits.
                let part = ((coordinates[axis] - 0.5 - first[axis]) * 256.0).round() / 256.0;
                let next = corner >> axis & 1 == 1;
                weight *= if next { part } else { 1.0 - part };
                place[axis] = first[axis] as i64 + i64::from(next);
            }
            // A texel without weight does not count, not even a NaN.
            if weight == 0.0 {
                continue;
            }
            if let Some(place) = self.at_edges(sampler, place, layer) {
                for (sum, component) in sums.iter_mut().zip(self.texel(place)?) {
                    *sum += weight * f64::from(f32::from_bits(component));
                }
            }
        }
        self.set(wave, sums.map(|sum| (sum as f32).to_bits()));
        Ok(())
    }

    /// The texel for a place that may lie outside; `None` in the border.
    fn at_edges(&self, sampler: &Sampler, place: [i64; 3], layer: Option<i64>) -> Option<[i64; 3]> {
        let mut found = [0; 3];
        for axis in 0..self.resource.dimensions {
            found[axis] = sampler.edges[axis].texel(place[axis], self.resource.size[axis])?;
        }
        if let Some(layer) = layer {
            found[2] = layer;
        }
        Some(found)
    }

    fn atomic(
        &mut self,
        wave: &mut Wave,
        place: [i64; 3],
        function: AtomicFunction,
    ) -> Result<(), Fault> {
        let size = self.resource.format.size();
        if size != 4 && size != 8 {
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
