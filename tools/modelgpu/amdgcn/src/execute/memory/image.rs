//! Images: texels at coordinates, and samples between them.
//!
//! Sources of the fields: AMD's GCN3, Vega, RDNA 3 and RDNA 4 instruction set guides ("Image Resource", "Image
//! Sampler"), and ROCr's resource_ai.h, resource_gfx11.h and resource_gfx12.h. Rows lie one behind the other,
//! also where hardware would interleave them: a program sees a texture in an array only through such
//! instructions.

use super::super::value::Half;
use super::super::{Operation, Surroundings, unmodelled};
use super::access::{resource_atomic, unmapped};
use super::format::{Format, Precision, chunks};
use super::segment::Segment;
use super::{Action, AtomicFunction, MemoryOperation};
use crate::error::{Access, Fault};
use crate::isa::{BufferFormat, ImageControl, Instruction, Operand};
use crate::target::{Generation, Target};
use crate::wave::{LANES, Wave};

#[derive(Clone, Copy)]
pub(super) enum Image {
    Load,
    /// With a level, of which the model has one.
    LoadLevel,
    Store,
    StoreLevel,
    Sample(Sampling),
    /// One component of each of the four texels between which a linear filter would choose.
    Gather(Sampling),
    Size,
    Atomic(AtomicFunction),
}

/// The registers before the coordinates of a sample, and in this order. A bias and derivatives select the level,
/// and so do registers behind the coordinates. The model has one level.
#[derive(Clone, Copy)]
pub(super) struct Sampling {
    has_offset: bool,
    selector: Selector,
}

#[derive(Clone, Copy)]
enum Selector {
    None,
    Bias,
    /// Of each coordinate, in two directions.
    Derivatives,
    /// With 16 bits.
    ShortDerivatives,
}

impl Sampling {
    const fn by(selector: Selector) -> Self {
        Self {
            has_offset: false,
            selector,
        }
    }

    const fn with_offset(self) -> Self {
        Self {
            has_offset: true,
            ..self
        }
    }

    /// The number of registers before the coordinates.
    fn registers(self, dimensions: usize) -> usize {
        let selectors = match self.selector {
            Selector::None => 0,
            Selector::Bias => 1,
            Selector::Derivatives => 2 * dimensions,
            Selector::ShortDerivatives => 2 * dimensions.div_ceil(2),
        };
        usize::from(self.has_offset) + selectors
    }
}

const PLAIN: Sampling = Sampling::by(Selector::None);
const BIASED: Sampling = Sampling::by(Selector::Bias);
const DERIVED: Sampling = Sampling::by(Selector::Derivatives);
const SHORT_DERIVED: Sampling = Sampling::by(Selector::ShortDerivatives);

const fn image(image: Image) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Global,
        action: Action::Image(image),
    })
}

const fn sample(sampling: Sampling) -> Operation {
    image(Image::Sample(sampling))
}

const fn gather(sampling: Sampling) -> Operation {
    image(Image::Gather(sampling))
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("image_load", image(Image::Load)),
    ("image_load_mip", image(Image::LoadLevel)),
    ("image_store", image(Image::Store)),
    ("image_store_mip", image(Image::StoreLevel)),
    ("image_sample", sample(PLAIN)),
    ("image_sample_l", sample(PLAIN)),
    ("image_sample_lz", sample(PLAIN)),
    ("image_sample_cl", sample(PLAIN)),
    ("image_sample_b", sample(BIASED)),
    ("image_sample_b_cl", sample(BIASED)),
    ("image_sample_d", sample(DERIVED)),
    ("image_sample_d_cl", sample(DERIVED)),
    ("image_sample_d_g16", sample(SHORT_DERIVED)),
    ("image_sample_d_cl_g16", sample(SHORT_DERIVED)),
    ("image_sample_o", sample(PLAIN.with_offset())),
    ("image_sample_l_o", sample(PLAIN.with_offset())),
    ("image_sample_lz_o", sample(PLAIN.with_offset())),
    ("image_sample_cl_o", sample(PLAIN.with_offset())),
    ("image_sample_b_o", sample(BIASED.with_offset())),
    ("image_sample_b_cl_o", sample(BIASED.with_offset())),
    ("image_sample_d_o", sample(DERIVED.with_offset())),
    ("image_sample_d_cl_o", sample(DERIVED.with_offset())),
    ("image_sample_d_o_g16", sample(SHORT_DERIVED.with_offset())),
    (
        "image_sample_d_cl_o_g16",
        sample(SHORT_DERIVED.with_offset()),
    ),
    ("image_gather4", gather(PLAIN)),
    ("image_gather4_l", gather(PLAIN)),
    ("image_gather4_lz", gather(PLAIN)),
    ("image_gather4_cl", gather(PLAIN)),
    ("image_gather4_b", gather(BIASED)),
    ("image_gather4_b_cl", gather(BIASED)),
    ("image_gather4_o", gather(PLAIN.with_offset())),
    ("image_gather4_lz_o", gather(PLAIN.with_offset())),
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
    (
        "image_atomic_add_flt",
        image(Image::Atomic(AtomicFunction::FloatAdd)),
    ),
    (
        "image_atomic_min_flt",
        image(Image::Atomic(AtomicFunction::FloatMin)),
    ),
    (
        "image_atomic_max_flt",
        image(Image::Atomic(AtomicFunction::FloatMax)),
    ),
    (
        "image_atomic_pk_add_f16",
        image(Image::Atomic(AtomicFunction::PackedHalfAdd)),
    ),
    (
        "image_atomic_pk_add_bf16",
        image(Image::Atomic(AtomicFunction::PackedBrainAdd)),
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

/// The fields of a resource whose places differ between generations.
struct Fields {
    format: BufferFormat,
    width: u32,
    height: u32,
    depth: u32,
    /// Texels from one row to the next. RDNA has it only for images without a depth.
    pitch: u32,
    first_layer: u32,
    levels: u32,
}

impl Fields {
    fn of(words: [u32; 8], target: Target) -> Self {
        let [_, second, third, fourth, fifth, sixth, ..] = words;
        // TYPE: a volume, or several layers.
        let has_depth = fourth >> 28 >= 10;
        match target.generation() {
            Generation::Gfx9 => Self {
                format: BufferFormat::Split((second >> 20 & 0x3f) as u8, (second >> 26 & 15) as u8),
                width: (third & 0x3fff) + 1,
                height: (third >> 14 & 0x3fff) + 1,
                depth: (fifth & 0x1fff) + 1,
                pitch: (fifth >> 13 & 0xffff) + 1,
                first_layer: sixth & 0x1fff,
                levels: (fourth >> 16 & 15) + 1,
            },
            Generation::Gfx11 => Self {
                format: BufferFormat::Joined((second >> 20) as u8),
                width: (second >> 30 | (third & 0xfff) << 2) + 1,
                height: (third >> 14 & 0x3fff) + 1,
                depth: if has_depth { (fifth & 0x1fff) + 1 } else { 1 },
                pitch: if has_depth { 0 } else { (fifth & 0x3fff) + 1 },
                first_layer: fifth >> 16 & 0x1fff,
                levels: (fourth >> 16 & 15) + 1,
            },
            Generation::Gfx12 => Self {
                format: BufferFormat::Joined((second >> 17) as u8),
                width: (second >> 30 | (third & 0x3fff) << 2) + 1,
                height: (third >> 14 & 0xffff) + 1,
                depth: if has_depth { (fifth & 0x3fff) + 1 } else { 1 },
                pitch: if has_depth { 0 } else { (fifth & 0xffff) + 1 },
                first_layer: fifth >> 16 & 0x3fff,
                levels: (fourth >> 15 & 31) + 1,
            },
        }
    }
}

impl Resource {
    fn of(instruction: &Instruction, wave: &Wave, target: Target) -> Result<Self, Fault> {
        let words: [u32; 8] =
            std::array::from_fn(|n| wave.word(Operand(instruction.sdst.0 + n as u16)));
        let Fields {
            format,
            width,
            height,
            depth,
            pitch,
            first_layer,
            levels,
        } = Fields::of(words, target);
        let format = Format::of(format)
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
        if levels > 1 {
            return Err(unmodelled(instruction, "an image with several levels"));
        }
        if first_layer != 0 {
            return Err(unmodelled(instruction, "an image from a later layer on"));
        }
        Ok(Self {
            base: u64::from(words[0]) << 8 | u64::from(words[1] & 0xff) << 40,
            format,
            size: [width, if dimensions == 1 { 1 } else { height }, depth],
            pitch: pitch.max(width),
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
        let texel = row * u64::from(self.pitch) + x;
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
        // XY_MAG_FILTER and XY_MIN_FILTER.
        let linear = match word(2) >> 20 & 15 {
            0b0000 => false,
            0b0101 => true,
            0b0001 | 0b0100 => return Err(unmodelled(instruction, "two filters")),
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
        if control.short_resource {
            return Err(unmodelled(instruction, "a resource of four dwords"));
        }
        if control.dimensions == Some(0) {
            return Err(unmodelled(instruction, "a cube or several samples"));
        }
        if control.tells_residence {
            return Err(unmodelled(instruction, "a register for missing memory"));
        }
        let resource = Resource::of(instruction, wave, surroundings.target)?;
        let exec = wave.exec();
        for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
            let mut access = ImageAccess {
                resource: &resource,
                instruction,
                lane,
                surroundings,
            };
            match self {
                Self::Sample(sampling) => {
                    let components =
                        access.sample(wave, &Sampler::of(instruction, wave)?, sampling)?;
                    access.set(wave, components, control.mask);
                }
                Self::Gather(sampling) => {
                    let components =
                        access.gather(wave, &Sampler::of(instruction, wave)?, sampling)?;
                    access.set(wave, components, 15);
                }
                Self::Load | Self::LoadLevel => {
                    let place = access.place(wave, matches!(self, Self::LoadLevel));
                    let components = access.texel(place)?;
                    access.set(wave, components, control.mask);
                }
                Self::Store | Self::StoreLevel => {
                    let place = access.place(wave, matches!(self, Self::StoreLevel));
                    access.store(wave, place)?;
                }
                Self::Size => {
                    let [width, height, depth] = resource.size;
                    let size = [width, height, depth, resource.levels];
                    access.set(wave, size, control.mask);
                }
                Self::Atomic(function) => {
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
    /// The register of an address.
    fn address(&self, wave: &Wave, number: usize) -> u32 {
        let first = self.instruction.src[0];
        let (register, offset) = self.instruction.image.address(first, number);
        wave.lane_at(register, offset, self.lane)
    }

    /// A coordinate's bits, behind other addresses.
    fn coordinate(&self, wave: &Wave, before: usize, number: usize) -> u32 {
        if self.instruction.image.short_coordinates {
            let pair = self.address(wave, before + number / 2);
            pair >> (number % 2 * 16) & 0xffff
        } else {
            self.address(wave, before + number)
        }
    }

    /// A coordinate of a sample.
    fn real_coordinate(&self, wave: &Wave, before: usize, number: usize) -> f64 {
        /// Beyond each image, and far from the limits of integers.
        const FAR: f64 = 1e12;
        let bits = self.coordinate(wave, before, number);
        let value = match self.instruction.image.short_coordinates {
            true => Half(bits as u16).to_f32(),
            false => f32::from_bits(bits),
        };
        f64::from(value).clamp(-FAR, FAR)
    }

    /// The number of coordinates without that of a layer, and whether there is one. RDNA's instructions tell
    /// both; CDNA's resource tells the first.
    fn axes(&self) -> (usize, bool) {
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
    fn place(&self, wave: &Wave, has_level: bool) -> [i64; 3] {
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

    fn set(&self, wave: &mut Wave, components: [u32; 4], mask: u8) {
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

    fn store(&mut self, wave: &Wave, place: [i64; 3]) -> Result<(), Fault> {
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

    /// The place of a sample in texels, and the layer.
    fn point(
        &self,
        wave: &Wave,
        sampler: &Sampler,
        sampling: Sampling,
    ) -> Result<([f64; 3], Option<i64>), Fault> {
        let (dimensions, has_layer) = self.axes();
        let is_of_type = dimensions == self.resource.dimensions
            && (self.resource.has_layers || !has_layer);
        if !is_of_type {
            return Err(unmodelled(self.instruction, "an image of another type"));
        }
        let before = sampling.registers(dimensions);
        let offsets = match sampling.has_offset {
            true => self.address(wave, 0),
            false => 0,
        };
        let mut point = [0f64; 3];
        for (axis, place) in point.iter_mut().enumerate().take(dimensions) {
            let scale = match sampler.in_texels {
                true => 1.0,
                false => f64::from(self.resource.size[axis]),
            };
            // Six bits with a sign.
            let offset = (offsets << (26 - 8 * axis)) as i32 >> 26;
            *place = self.real_coordinate(wave, before, axis) * scale + f64::from(offset);
        }
        let layer = has_layer.then(|| {
            let value = self.real_coordinate(wave, before, dimensions);
            let last = i64::from(self.resource.size[2]) - 1;
            (value.round_ties_even() as i64).clamp(0, last)
        });
        Ok((point, layer))
    }

    fn sample(
        &mut self,
        wave: &Wave,
        sampler: &Sampler,
        sampling: Sampling,
    ) -> Result<[u32; 4], Fault> {
        let (point, layer) = self.point(wave, sampler, sampling)?;
        if !sampler.linear {
            return self.sampled(sampler, point.map(|place| place.floor() as i64), layer);
        }
        if self.instruction.image.halves || !self.resource.format.has_floats() {
            return Err(unmodelled(
                self.instruction,
                "a linear filter for this format",
            ));
        }
        let mut sums = [0f64; 4];
        let corners = 1 << self.resource.dimensions;
        let first = point.map(|place| (place - 0.5).floor());
        for corner in 0..corners {
            let mut weight = 1.0;
            let mut place = [0; 3];
            for axis in 0..self.resource.dimensions {
                // Weights have eight bits.
                let part = ((point[axis] - 0.5 - first[axis]) * 256.0).round() / 256.0;
                let next = corner >> axis & 1 == 1;
                weight *= if next { part } else { 1.0 - part };
                place[axis] = first[axis] as i64 + i64::from(next);
            }
            // A texel without weight does not count, not even a NaN.
            if weight == 0.0 {
                continue;
            }
            for (sum, component) in sums.iter_mut().zip(self.sampled(sampler, place, layer)?) {
                *sum += weight * f64::from(f32::from_bits(component));
            }
        }
        Ok(sums.map(|sum| (sum as f32).to_bits()))
    }

    /// The component that the mask names, of the texels round a place: from the lower left one on, against
    /// the clock.
    fn gather(
        &mut self,
        wave: &Wave,
        sampler: &Sampler,
        sampling: Sampling,
    ) -> Result<[u32; 4], Fault> {
        const CORNERS: [[i64; 2]; 4] = [[0, 1], [1, 1], [1, 0], [0, 0]];
        if self.resource.dimensions != 2 {
            return Err(unmodelled(self.instruction, "this type of image"));
        }
        let component = self.instruction.image.mask.trailing_zeros() as usize % 4;
        let (point, layer) = self.point(wave, sampler, sampling)?;
        let [x, y, _] = point.map(|place| (place - 0.5).floor() as i64);
        let mut gathered = [0; 4];
        for (texel, [right, down]) in gathered.iter_mut().zip(CORNERS) {
            *texel = self.sampled(sampler, [x + right, y + down, 0], layer)?[component];
        }
        Ok(gathered)
    }

    /// The components for a place that may lie outside; 0 in the border.
    fn sampled(
        &mut self,
        sampler: &Sampler,
        place: [i64; 3],
        layer: Option<i64>,
    ) -> Result<[u32; 4], Fault> {
        match self.at_edges(sampler, place, layer) {
            Some(place) => self.texel(place),
            None => Ok([0; 4]),
        }
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
