//! Samplers, and the samples that they take.

use modelgpu_isa::{Instruction, Operand};

use super::super::super::unmodelled;
use super::super::super::value::Half;
use super::super::operation::{Sampling, Selector};
use super::access::ImageAccess;
use crate::error::Fault;
use crate::wave::Wave;

impl Sampling {
    pub(super) const fn by(selector: Selector) -> Self {
        Self {
            has_offset: false,
            selector,
        }
    }

    pub(super) const fn with_offset(self) -> Self {
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

/// The way to find texels for coordinates: a sampler of four dwords.
pub(super) struct Sampler {
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
    pub(super) fn new(instruction: &Instruction, wave: &Wave) -> Result<Self, Fault> {
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

impl ImageAccess<'_, '_> {
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

    /// The place of a sample in texels, and the layer.
    fn point(
        &self,
        wave: &Wave,
        sampler: &Sampler,
        sampling: Sampling,
    ) -> Result<([f64; 3], Option<i64>), Fault> {
        let (dimensions, has_layer) = self.axes();
        let is_of_type =
            dimensions == self.resource.dimensions && (self.resource.has_layers || !has_layer);
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

    pub(super) fn sample(
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
    pub(super) fn gather(
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
}
