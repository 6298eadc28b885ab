//! Shared parts of the whole-program tests: they find build output, compile testdata, run commands
//! and read profiles.

pub mod allocated;
pub mod artifacts;
pub mod cli;
pub mod command;
pub mod comments;
pub mod compile;
pub mod compilers;
pub mod cuda;
pub mod data;
pub mod delegate;
pub mod fake_device;
pub mod gpu;
pub mod instructions;
pub mod json;
pub mod made_up;
pub mod profile;
pub mod program;
pub mod records;
pub mod released;
pub mod sample;
pub mod schemas;
pub mod spec;
pub mod unpacked;
pub mod zstd;
