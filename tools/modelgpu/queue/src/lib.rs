//! What a GPU's command processors do with queues: AQL packets, SDMA packets and signals.
//!
//! This crate knows memory, packets and signals, and nothing of ioctls or files: the driver
//! stand-in (`modelgpu-kfd`) creates a [`Processor`] per queue and lends it a [`Gpu`].
//!
//! Where to start reading: [`processor`] runs a queue's thread, [`aql`] and [`sdma`] process one
//! packet, [`signal`] holds the signal semantics, [`memory`] is the only module that touches
//! device memory, [`kernel`] hands a dispatch to the instruction interpreter.

pub mod aql;
pub mod fault;
pub mod gpu;
pub mod kernel;
pub mod memory;
pub mod processor;
pub mod sdma;
mod sigmask;
pub mod signal;
mod thread;

pub use fault::{Fault, QueueError};
pub use gpu::Gpu;
pub use processor::{Processor, QueueKind, QueueLayout};
