//! The state that a wave shares with others.

use modelgpu_isa::Target;

use super::memory::LdsWatch;
use crate::error::Access;
use crate::grid_barriers::GridBarriers;
use crate::memory::{Span, View};

/// The state that a wave shares with other waves while it executes.
pub(crate) struct Surroundings<'a> {
    pub memory: View<'a>,
    /// A buffer for the addresses of a wave.
    pub span: Box<Span>,
    /// The workgroup's local data share.
    pub lds: Vec<u8>,
    /// Looks for mistakes with `lds`, if the user asks for it.
    pub watch: Option<Box<LdsWatch>>,
    /// The interpreter calls this when an access goes beyond `lds`.
    pub beyond_lds: &'a dyn Fn(LdsAccess),
    /// The interpreter calls this with M0 when a wave interrupts the host.
    pub interrupt: &'a dyn Fn(u32),
    /// The GPU's clock, in ticks of 10 ns.
    pub clock: &'a dyn Fn() -> u64,
    /// The barriers of the queue's cooperative launches.
    pub barriers: &'a GridBarriers,
    /// The processor.
    pub target: Target,
    /// Instructions executed so far in this dispatch.
    pub instructions: u64,
}

/// An access that goes beyond LDS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LdsAccess {
    /// Address of the instruction.
    pub pc: u64,
    pub mnemonic: &'static str,
    pub access: Access,
    pub size: u64,
    pub address: u64,
}
