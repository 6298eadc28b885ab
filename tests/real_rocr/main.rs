//! The drain on the real HIP and ROCr over the modelled GPU: every way into the runtime, every kind
//! of compilation, and code that damages its own profile.

mod compilers;
mod damage;
mod hsa_abi;
mod hsa_alone;
mod modules;
mod origins;
mod programs;
mod registry;
mod reports;
mod sample;
mod state;
mod threads;
mod units;
mod unused;

use rocov_tests as support;
