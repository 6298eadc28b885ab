//! librocov on a stand-in for the CUDA driver and CUPTI (testdata/cuda), which loads real cubins into memory. The
//! programs plant counts, and LLVM's own tools must find them in what rocov writes.
//!
//! `tools/dev/hardware` has the tests on a GPU.

mod assembler;
mod compilers;
mod contexts;
mod damage;
mod instrument;
mod kept_ptx;
mod kinds;
mod labels;
mod loads;
mod names;
mod per_program;
mod ptx;
mod python;
mod run_time;
mod setup;
mod tools;

use rocov_tests as support;
