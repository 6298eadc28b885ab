//! Buffer resources: the four dwords in scalar registers that describe a buffer.
//!
//! Sources of the fields and of the rules for addresses and ranges: AMD's CDNA3 and RDNA3 instruction set
//! guides, "Buffer Resource Descriptor" and "Buffer Addressing". LLVM documents that the scalar offset takes no
//! part in RDNA's check (IntrinsicsAMDGPU.td).

use modelgpu_isa::{BufferFormat, Generation, Target};

/// A decoded buffer resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferResource {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes of a record; 0 for a raw buffer.
    pub stride: u32,
    /// The number of records, or of bytes if the stride is 0.
    pub records: u32,
    /// Records of a group lie interleaved.
    pub swizzled: bool,
    /// The lane's number is part of the index.
    pub adds_lane: bool,
    /// Records of an interleaved group.
    pub group: u32,
    /// The source of each of the four components: 0, 1, or 4 to 7 for a component in memory.
    pub selection: [u8; 4],
    pub format: BufferFormat,
    pub bounds: Bounds,
}

/// The check that a place lies in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// CDNA's: records for an instruction with an index, else bytes.
    OfIndex,
    /// The index is one of a record, and the bytes lie in the record.
    Record,
    /// The index is one of a record.
    Index,
    /// The buffer has a record.
    NotEmpty,
    /// The offset is below the number of records.
    Bytes,
    /// That of records on gfx1250, which the model lacks.
    Unknown,
}

/// The place of an access in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferPlace {
    pub index: u32,
    /// The offset from the instruction and its vector register.
    pub offset: u32,
    /// The scalar offset.
    pub scalar: u32,
    /// The instruction has an index register.
    pub indexed: bool,
}

impl BufferResource {
    pub(crate) fn new(words: [u32; 4], target: Target) -> Self {
        let [low, high, records, control] = words;
        // With the lane's number in the index, the data format holds high bits of the stride.
        let adds_lane = control >> 23 & 1 == 1;
        let more = if adds_lane {
            (control >> 15 & 15) << 14
        } else {
            0
        };
        let of_cdna = Self {
            base: u64::from(low) | u64::from(high & 0xffff) << 32,
            stride: high >> 16 & 0x3fff | more,
            records,
            swizzled: high >> 31 == 1,
            adds_lane,
            group: 8 << (control >> 21 & 3),
            selection: std::array::from_fn(|place| (control >> (3 * place) & 7) as u8),
            format: BufferFormat::Split((control >> 15 & 15) as u8, (control >> 12 & 7) as u8),
            bounds: Bounds::OfIndex,
        };
        if target.generation() == Generation::Gfx9 {
            return of_cdna;
        }
        if target == Target::Gfx1250 {
            // LLVM's `lowerPointerAsRsrcIntrin`: an address of 57 bits, a number of 45 bits, and a stride of 14 bits.
            let end = u64::from(records) | u64::from(control & 0x3f) << 32;
            let count = u64::from(high >> 25) | end << 7;
            let stride = control >> 12 & 0x3fff;
            return Self {
                base: u64::from(low) | u64::from(high & 0x1ff_ffff) << 32,
                stride,
                records: u32::try_from(count).unwrap_or(u32::MAX),
                swizzled: false,
                adds_lane: false,
                format: BufferFormat::Joined(0),
                bounds: if stride == 0 {
                    Bounds::Bytes
                } else {
                    Bounds::Unknown
                },
                ..of_cdna
            };
        }
        // RDNA 2 has a bit for the caches where later targets have the low one of two.
        let swizzle = match target.generation() {
            Generation::Gfx10 => high >> 31,
            _ => high >> 30,
        };
        Self {
            stride: high >> 16 & 0x3fff,
            swizzled: swizzle != 0,
            format: BufferFormat::Joined((control >> 12 & 0x3f) as u8),
            bounds: match control >> 28 & 3 {
                0 => Bounds::Record,
                1 => Bounds::Index,
                2 => Bounds::NotEmpty,
                _ => Bounds::Bytes,
            },
            ..of_cdna
        }
    }

    /// A part of a resource of RDNA that the model lacks.
    pub(crate) fn unmodelled(&self, indexed: bool) -> Option<&'static str> {
        match self.bounds {
            Bounds::OfIndex => None,
            Bounds::Unknown => Some("records of a size"),
            _ if self.swizzled => Some("an interleaved buffer"),
            _ if self.adds_lane => Some("a lane's number as an index"),
            Bounds::Record if self.stride == 0 => Some("records without a size"),
            Bounds::Bytes if self.stride != 0 && indexed => Some("an index into bytes"),
            _ => None,
        }
    }

    /// The size in bytes that scalar instructions check.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.records) * u64::from(self.stride.max(1))
    }

    /// The address of `size` bytes at a place, `None` beyond the buffer: reads there give 0, and
    /// writes are dropped.
    pub(crate) fn address(&self, place: BufferPlace, size: u32) -> Option<u64> {
        let BufferPlace {
            index,
            offset,
            scalar,
            indexed,
        } = place;
        let end = u64::from(offset) + u64::from(size);
        let within = match self.bounds {
            // On gfx9, records count bytes for an instruction without an index (Mesa, si_descriptors.c).
            Bounds::OfIndex if self.stride == 0 || !indexed => {
                end + u64::from(scalar) <= u64::from(self.records)
            }
            Bounds::OfIndex => index < self.records && (!self.swizzled || offset < self.stride),
            Bounds::Record => index < self.records && end <= u64::from(self.stride),
            Bounds::Index => index < self.records,
            Bounds::NotEmpty => self.records != 0,
            Bounds::Unknown => false,
            Bounds::Bytes => end <= u64::from(self.records),
        };
        if !within {
            return None;
        }
        let (index, offset, stride) = (u64::from(index), u64::from(offset), u64::from(self.stride));
        let linear = if self.swizzled {
            /// Bytes that stay together in an interleaved group.
            const ELEMENT: u64 = 4;
            let group = u64::from(self.group);
            (index / group * stride + offset / ELEMENT * ELEMENT) * group
                + index % group * ELEMENT
                + offset % ELEMENT
        } else {
            index * stride + offset
        };
        Some(self.base.wrapping_add(linear).wrapping_add(scalar.into()))
    }
}
