//! Real programs on the real ROCr and HIP, with the model instead of the driver.
//!
//! The programs are in `tests/programs`. The tests compile them. Each program checks itself and
//! ends with the line in [`harness::FINISHED`].

mod agents;
mod faults;
mod files;
mod harness;
mod hostcall;
mod programs;
mod services;
mod stacks;
