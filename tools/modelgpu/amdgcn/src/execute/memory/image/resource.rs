//! Image resources: the eight dwords in scalar registers that describe an image.

use modelgpu_isa::{BufferFormat, Generation, Instruction, Operand, Target};

use super::super::super::unmodelled;
use super::super::format::Format;
use crate::error::Fault;
use crate::wave::Wave;

/// An image resource of eight dwords.
pub(super) struct Resource {
    base: u64,
    pub format: Format,
    /// Width, height, and depth or number of layers.
    pub size: [u32; 3],
    /// Texels from one row to the next.
    pitch: u32,
    /// The number of coordinates, without that of a layer.
    pub dimensions: usize,
    pub has_layers: bool,
    pub selection: [u8; 4],
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
    fn new(words: [u32; 8], target: Target) -> Self {
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
            // The model refuses images on RDNA 2, whose formats have other numbers.
            Generation::Gfx10 | Generation::Gfx11 => Self {
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
    pub(super) fn new(
        instruction: &Instruction,
        wave: &Wave,
        target: Target,
    ) -> Result<Self, Fault> {
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
        } = Fields::new(words, target);
        let format = Format::from_image(format)
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
            selection: std::array::from_fn(|n| (words[3] >> (3 * n) & 7) as u8),
        })
    }

    /// The address of a texel; `None` outside.
    pub(super) fn address(&self, place: [i64; 3]) -> Option<u64> {
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
