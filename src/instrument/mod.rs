//! Inserts counters into code that was compiled without them: machine code of AMD GPUs, and PTX.

pub mod amdgcn;
mod dominators;
pub mod ptx;
