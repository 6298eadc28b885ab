//! The AQL kernel dispatch packet (HSA System Architecture Specification 1.2, section 2.9.6).

/// The contents of a kernel dispatch packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchPacket {
    /// Work-items per workgroup; 1 in unused dimensions.
    pub workgroup_size: [u32; 3],
    /// Work-items in the grid. It need not be a multiple of the workgroup size: the last workgroup
    /// of a dimension is then partial.
    pub grid_size: [u32; 3],
    /// Scratch per work-item, in bytes.
    pub private_segment_size: u32,
    /// LDS per workgroup, in bytes, dynamic LDS included.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the kernel arguments.
    pub kernarg_address: u64,
    /// Handle of the signal that the queue's owner decrements when the kernel has ended; 0 for
    /// none. The interpreter does not use it.
    pub completion_signal: u64,
}

impl DispatchPacket {
    /// Size of an AQL packet in bytes.
    pub const SIZE: usize = 64;

    /// Reads a packet. Ignores the header.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let field = |offset: usize, size: usize| {
            bytes[offset..offset + size]
                .iter()
                .rev()
                .fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let dimensions = (field(2, 2) & 3) as usize;
        let sizes = |offset: usize, size: usize| {
            std::array::from_fn(|dimension| {
                if dimension < dimensions.max(1) {
                    field(offset + dimension * size, size) as u32
                } else {
                    1
                }
            })
        };
        Self {
            workgroup_size: sizes(4, 2),
            grid_size: sizes(12, 4),
            private_segment_size: field(24, 4) as u32,
            group_segment_size: field(28, 4) as u32,
            kernel_object: field(32, 8),
            kernarg_address: field(40, 8),
            completion_signal: field(56, 8),
        }
    }

    /// The packet's bytes, with three dimensions and the header of a kernel dispatch.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        /// HSA_PACKET_TYPE_KERNEL_DISPATCH.
        const KERNEL_DISPATCH: u64 = 2;
        let mut bytes = [0; Self::SIZE];
        let mut put = |offset: usize, size: usize, value: u64| {
            bytes[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
        };
        put(0, 2, KERNEL_DISPATCH);
        put(2, 2, 3);
        for dimension in 0..3 {
            put(4 + 2 * dimension, 2, self.workgroup_size[dimension].into());
            put(12 + 4 * dimension, 4, self.grid_size[dimension].into());
        }
        put(24, 4, self.private_segment_size.into());
        put(28, 4, self.group_segment_size.into());
        put(32, 8, self.kernel_object);
        put(40, 8, self.kernarg_address);
        put(56, 8, self.completion_signal);
        bytes
    }
}
