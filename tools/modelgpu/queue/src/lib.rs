//! The command processors of a GPU: AQL packets, PM4 packets, SDMA packets and signals.
//!
//! This crate handles memory, packets and signals, but no ioctls or files. The driver stand-in
//! (`modelgpu-kfd`) creates a [`Processor`] per queue and gives it a [`Gpu`].
//!
//! Start reading here: [`processor`] runs a queue's thread, `bells` wakes it, and `turn` lets kernels of other
//! queues go first. [`aql`], [`pm4`] and [`sdma`] process one packet. [`signal`] holds the signal semantics. [`memory`]
//! is the only module that accesses device memory. [`kernel`] hands a dispatch to the instruction interpreter.

pub mod aql;
mod bells;
pub mod fault;
pub mod gpu;
pub mod kernel;
pub mod memory;
mod pause;
pub mod pm4;
pub mod processor;
mod rank;
pub mod sdma;
mod sigmask;
pub mod signal;
mod thread;
mod turn;
mod wait;

pub use bells::Bells;
pub use fault::{Fault, QueueError};
pub use gpu::Gpu;
pub use pause::Pause;
pub use processor::{Processor, QueueKind, QueueLayout};
pub use thread::{DispatchThreads, run_within};
