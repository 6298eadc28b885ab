//! Real programs on the real ROCr and HIP, with the model in the driver's place.
//!
//! The programs are in `tests/programs`; each is compiled here, checks itself, and ends with the
//! line that [`harness::FINISHED`] names.

mod agents;
mod faults;
mod files;
mod harness;
mod hostcall;
mod programs;
mod stacks;
