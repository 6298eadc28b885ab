//! Inserts counters into code that was compiled without them.

pub mod amdgcn;
