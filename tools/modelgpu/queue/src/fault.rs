//! Faults in the processing of a packet, and their reports to ROCr.

use thiserror::Error;

/// The reason why the processing of a packet stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// An access to an address that is not mapped on the GPU.
    #[error("{what}: {len} bytes at {address:#x} are not mapped on this GPU")]
    Unmapped {
        /// The accessed object, for example `SDMA copy source`.
        what: &'static str,
        /// First byte of the access.
        address: u64,
        /// Length of the access in bytes.
        len: u64,
    },
    /// An access that the packet's format requires to be naturally aligned.
    #[error("{what}: address {address:#x} is not aligned to {align} bytes")]
    Misaligned {
        /// The accessed object.
        what: &'static str,
        /// The address.
        address: u64,
        /// The required alignment in bytes.
        align: u64,
    },
    /// A kernel accessed memory that is not mapped. The message names kernel, wave, pc and address.
    #[error("{message}")]
    KernelMemory {
        /// The interpreter's message.
        message: String,
        /// The address that the kernel accessed.
        address: u64,
    },
    /// A kernel stopped for another reason, most often an instruction that is not modelled.
    #[error("{message}")]
    Kernel {
        /// The interpreter's message.
        message: String,
        /// The error that the queue reports to ROCr.
        error: QueueError,
    },
    /// A packet that this queue does not support.
    #[error("unknown {queue} packet {packet:#x}")]
    UnknownPacket {
        /// `AQL`, `PM4` or `SDMA`.
        queue: &'static str,
        /// The packet's type or first dword.
        packet: u32,
    },
    /// A PM4 packet that no queue supports, but whose name is known.
    #[error("PM4 packet {name} is not modelled")]
    Pm4Packet {
        /// The packet's name.
        name: &'static str,
    },
    /// A value that is not modelled in a field of a PM4 packet.
    #[error("PM4 packet {packet}: {field} {value:#x} is not modelled")]
    Pm4Field {
        /// The packet's name.
        packet: &'static str,
        /// The field's name.
        field: &'static str,
        /// The value.
        value: u32,
    },
    /// A register, or a register's value, that is not modelled.
    #[error("PM4 packet SET_SH_REG: register {register:#x} with value {value:#x} is not modelled")]
    Pm4Register {
        /// The register.
        register: u32,
        /// The value.
        value: u32,
    },
    /// A dword that is no header of a PM4 packet of type 3.
    #[error("PM4 header {header:#x} is not modelled")]
    Pm4Header {
        /// The dword.
        header: u32,
    },
    /// The queue was destroyed during the processing of the packet.
    #[error("the queue was destroyed")]
    Cancelled,
}

/// A queue error in the terms of the GPU's firmware and trap handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// A wave reached an instruction that it cannot execute.
    IllegalInstruction,
    /// A wave ended itself by `s_trap 2`: `__builtin_trap`, a failed assertion.
    Abort,
    /// The dispatch packet names no usable code.
    InvalidCode,
    /// The queue processor does not support the packet.
    InvalidPacket,
}

impl QueueError {
    /// The bit in the queue's exception word, for a driver with exception debugging: bit n-1 for
    /// the exception code n of the driver's `enum kfd_dbg_trap_exception_code` (wave abort 1, wave
    /// illegal instruction 4, dispatch code invalid 18, packet unsupported 20).
    pub fn exception_mask(self) -> i64 {
        match self {
            Self::IllegalInstruction => 1 << 3,
            Self::Abort => 1,
            Self::InvalidCode => 1 << 17,
            Self::InvalidPacket => 1 << 19,
        }
    }

    /// The value of the queue's inactive signal. Firmware and trap handler write it under a driver
    /// without exception debugging (ROCr 5): 8 invalid code, 32 invalid packet format, bit 30
    /// illegal instruction, bit 31 trap.
    pub fn inactive_code(self) -> i64 {
        match self {
            Self::IllegalInstruction => 0x4000_0000,
            Self::Abort => 0x8000_0000,
            Self::InvalidCode => 8,
            Self::InvalidPacket => 32,
        }
    }
}
