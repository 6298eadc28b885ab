//! Buffer resources: the four dwords in scalar registers that describe a buffer.
//!
//! Source of the fields and of the rules for addresses and ranges: AMD's CDNA3 instruction set
//! guide, "Buffer Resource Descriptor" and "Buffer Addressing".

/// A decoded buffer resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) struct BufferResource {
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
    /// NUM_FORMAT and DATA_FORMAT.
    pub number_format: u8,
    pub data_format: u8,
}

/// The place of an access in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) struct BufferPlace {
    pub index: u32,
    /// The offset from the instruction and its vector register.
    pub offset: u32,
    /// The scalar offset.
    pub scalar: u32,
    /// The instruction has an index register.
    pub indexed: bool,
}

impl BufferResource {
    pub(in crate::execute) fn new(words: [u32; 4]) -> Self {
        let [low, high, records, control] = words;
        // With the lane's number in the index, the data format holds high bits of the stride.
        let adds_lane = control >> 23 & 1 == 1;
        let more = if adds_lane {
            (control >> 15 & 15) << 14
        } else {
            0
        };
        Self {
            base: u64::from(low) | u64::from(high & 0xffff) << 32,
            stride: high >> 16 & 0x3fff | more,
            records,
            swizzled: high >> 31 == 1,
            adds_lane,
            group: 8 << (control >> 21 & 3),
            selection: std::array::from_fn(|place| (control >> (3 * place) & 7) as u8),
            number_format: (control >> 12 & 7) as u8,
            data_format: (control >> 15 & 15) as u8,
        }
    }

    /// The size in bytes that scalar instructions check.
    pub(in crate::execute) fn size(&self) -> u64 {
        u64::from(self.records) * u64::from(self.stride.max(1))
    }

    /// The address of `size` bytes at a place, `None` beyond the buffer: reads there give 0, and
    /// writes are dropped.
    pub(in crate::execute) fn address(&self, place: BufferPlace, size: u32) -> Option<u64> {
        let BufferPlace {
            index,
            offset,
            scalar,
            indexed,
        } = place;
        // On gfx9, records count bytes for an instruction without an index (Mesa, si_descriptors.c).
        let within = if self.stride == 0 || !indexed {
            let end = u64::from(offset) + u64::from(size) + u64::from(scalar);
            end <= u64::from(self.records)
        } else {
            index < self.records && (!self.swizzled || offset < self.stride)
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
