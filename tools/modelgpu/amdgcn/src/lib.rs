//! An interpreter for amdgcn code objects of CDNA, in waves of 64, and of RDNA, in waves of 32 and 64.
//!
//! The interpreter executes the machine code of kernels, one AQL dispatch at a time, in a GPU
//! address space that its owner provides. Start reading here:
//!
//! - [`dispatch`](fn@dispatch) runs one AQL kernel dispatch packet: [`packet`] is its geometry,
//!   `compute_units` places waves on the GPU, `schedule` gives workgroups to threads (`workers`),
//!   `workgroup` runs waves between barriers, `wave` holds registers, `code` caches decoded
//!   instructions, `trace` counts their executions if the owner asks for it.
//! - [`modelgpu_isa`] turns bytes into instructions; its opcode tables are generated from LLVM.
//! - `execute` holds the semantics of instructions, a module per family. Its tables list the
//!   modelled instructions. Any other instruction ends the dispatch with an error that names it.
//! - `hazards` looks for results that code uses too early, if the owner asks for it.
//! - `evidence` has the recorded evidence for each executed opcode.
//! - [`memory`] is a kernel's view of memory.
//! - [`code_object`] reads ELF: loaded images for names, files for [`Program`], which runs
//!   kernels without any driver or runtime.

mod account;
mod allotment;
mod code;
pub mod code_object;
mod compute_units;
mod decoder;
pub mod dispatch;
mod error;
mod evidence;
mod execute;
mod grid_barriers;
mod hazards;
mod lanes;
mod launch;
mod listing;
pub mod memory;
pub mod packet;
mod program;
mod registers;
mod schedule;
mod state;
mod trace;
mod warning;
mod wave;
mod workers;
mod workgroup;

pub use account::{Opcode, Standing, opcodes};
pub use code::Code;
pub use compute_units::ComputeUnits;
pub use dispatch::{DispatchContext, STUCK, Statistics, dispatch};
pub use error::{Access, DispatchError, Fault, LaunchProblem, Site, Space};
pub use evidence::{Evidence, LastBits};
pub use execute::Simd;
pub use listing::Listed;
pub use modelgpu_isa::{File, Generation, Target, UnknownTarget};
pub use packet::DispatchPacket;
pub use program::{Argument, Launch, LaunchError, Program};
pub use state::RegisterState;
pub use trace::{Executed, Trace};
pub use warning::{BeyondLds, Hazard, LdsMistake, Stuck};
pub use workers::{ScopedWorkers, Workers};

/// The mnemonics of all modelled instructions, sorted.
pub fn modelled_instructions() -> Vec<&'static str> {
    let mut mnemonics: Vec<_> = execute::modelled().collect();
    mnemonics.sort_unstable();
    mnemonics
}
