//! Counters in machine code of AMD GPUs, by the model's exact trace: rewritten kernels give the same bytes, and each instruction
//! has the waves and the lanes that the trace of the original has.

#![expect(
    clippy::print_stdout,
    reason = "prints what was measured, if it is asked to"
)]

mod copies;
mod corpus;
mod grown;
mod guards;
mod kernels;
mod large;
mod occupancy;
mod refused;
mod run;
mod scattered;
