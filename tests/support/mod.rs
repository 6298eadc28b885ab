//! Shared parts of the whole-program tests: they find build output, compile testdata, run commands
//! and read profiles.

pub(crate) mod artifacts;
pub(crate) mod command;
pub(crate) mod compile;
pub(crate) mod compilers;
pub(crate) mod cuda;
pub(crate) mod data;
pub(crate) mod gpu;
pub(crate) mod instructions;
#[path = "../../tools/rocov/tests/common/json.rs"]
pub(crate) mod json;
pub(crate) mod profile;
pub(crate) mod program;
pub(crate) mod released;
pub(crate) mod sample;
pub(crate) mod spec;
pub(crate) mod unpacked;
