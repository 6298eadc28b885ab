//! One packet: its dwords, its name, and faults that name both.

use crate::fault::Fault;

/// A type 2 packet: one dword of padding.
const FILLER: u32 = 0x8000_0000;

/// The names of packets, by opcode. The model supports only some of them.
const NAMES: [(u32, &str); 34] = [
    (0x10, "NOP"),
    (0x11, "SET_BASE"),
    (0x12, "CLEAR_STATE"),
    (0x15, "DISPATCH_DIRECT"),
    (0x16, "DISPATCH_INDIRECT"),
    (0x1e, "ATOMIC_MEM"),
    (0x20, "SET_PREDICATION"),
    (0x22, "COND_EXEC"),
    (0x23, "PRED_EXEC"),
    (0x28, "CONTEXT_CONTROL"),
    (0x37, "WRITE_DATA"),
    (0x3c, "WAIT_REG_MEM"),
    (0x3f, "INDIRECT_BUFFER"),
    (0x40, "COPY_DATA"),
    (0x42, "PFP_SYNC_ME"),
    (0x46, "EVENT_WRITE"),
    (0x47, "EVENT_WRITE_EOP"),
    (0x49, "RELEASE_MEM"),
    (0x4a, "PREAMBLE_CNTL"),
    (0x50, "DMA_DATA"),
    (0x58, "ACQUIRE_MEM"),
    (0x59, "REWIND"),
    (0x5e, "LOAD_UCONFIG_REG"),
    (0x5f, "LOAD_SH_REG"),
    (0x60, "LOAD_CONFIG_REG"),
    (0x61, "LOAD_CONTEXT_REG"),
    (0x68, "SET_CONFIG_REG"),
    (0x69, "SET_CONTEXT_REG"),
    (0x76, "SET_SH_REG"),
    (0x77, "SET_SH_REG_OFFSET"),
    (0x79, "SET_UCONFIG_REG"),
    (0x90, "FRAME_CONTROL"),
    (0x93, "WAIT_REG_MEM64"),
    (0x9b, "SET_SH_REG_INDEX"),
];

/// A packet of type 3.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    header: u32,
    body: &'a [u32],
}

/// Returns whether this is a dword of padding.
pub(super) fn is_filler(header: u32) -> bool {
    header == FILLER
}

/// The opcode in a header of type 3.
pub(super) fn opcode(header: u32) -> u32 {
    header >> 8 & 0xff
}

/// The number of dwords after a header.
///
/// # Errors
/// Fails if the header is not one of type 3, or asks for predication.
pub(super) fn body_dwords(header: u32) -> Result<u32, Fault> {
    // Bit 0 makes the packet depend on SET_PREDICATION, and bit 1 says that it is for compute.
    if header >> 30 != 3 || header & 0xfd != 0 {
        return Err(Fault::Pm4Header { header });
    }
    Ok((header >> 16 & 0x3fff) + 1)
}

impl<'a> Packet<'a> {
    pub(super) fn new(header: u32, body: &'a [u32]) -> Result<Self, Fault> {
        let packet = Self { header, body };
        if body_dwords(header)? as usize == body.len() {
            Ok(packet)
        } else {
            Err(packet.field("number of dwords", header >> 16 & 0x3fff))
        }
    }

    pub(super) fn opcode(&self) -> u32 {
        opcode(self.header)
    }

    fn name(&self) -> Option<&'static str> {
        let mut names = NAMES.iter();
        let found = names.find(|(opcode, _)| *opcode == self.opcode());
        found.map(|(_, name)| *name)
    }

    /// The dwords after the header.
    pub(super) fn all(&self) -> &'a [u32] {
        self.body
    }

    /// The dwords after the header of a packet with a fixed length.
    pub(super) fn body<const N: usize>(&self) -> Result<[u32; N], Fault> {
        let body = self.body.try_into();
        body.map_err(|_| self.field("number of dwords", self.body.len() as u32))
    }

    /// The 64-bit value in two dwords of the body, the low half first.
    pub(super) fn address(&self, first: usize) -> u64 {
        u64::from(self.body[first]) | u64::from(self.body[first + 1]) << 32
    }

    /// The fault of a packet that the model does not support.
    pub(super) fn unknown(&self) -> Fault {
        match self.name() {
            Some(name) => Fault::Pm4Packet { name },
            None => Fault::UnknownPacket {
                queue: "PM4",
                packet: self.opcode(),
            },
        }
    }

    /// The fault of a value that the model does not support in a field of this packet.
    pub(super) fn field(&self, field: &'static str, value: u32) -> Fault {
        match self.name() {
            Some(packet) => Fault::Pm4Field {
                packet,
                field,
                value,
            },
            None => self.unknown(),
        }
    }

    /// Refuses bits of a field outside of `allowed`.
    pub(super) fn allow(&self, field: &'static str, value: u32, allowed: u32) -> Result<(), Fault> {
        match value & !allowed {
            0 => Ok(()),
            _ => Err(self.field(field, value)),
        }
    }
}
