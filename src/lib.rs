//! rocov: brings the coverage and PGO counters of GPU code home.
//!
//! A HIP program whose device code was built with `-fprofile-instr-generate -fcoverage-mapping`
//! (or `-fprofile-generate`) counts executions in GPU memory. This library finds those counters
//! in a running process, checks them, and writes them as raw profiles that `llvm-profdata` and
//! `llvm-cov` read.
//!
//! Data flows one way, and a stage imports only earlier ones:
//!
//! ```text
//! discover -> read -> validate -> encode  -> write
//! load        device  sections    profraw    output
//! codeobject
//! filter
//! ```
//!
//! [`drain`] is the one place that calls them in a row; start reading there. [`device`] is the
//! interface to whatever holds the counters, [`hsa`] its implementation on the real runtime, and
//! [`at_rest`] the one for code objects that were never loaded.
//!
//! [`control`] is how a running process is asked for a drain; [`reserve`] is memory for small allocations
//! where the system has none left.
//!
//! The library has no process-wide state but what keeps its files apart, exports no C symbol and prints
//! nothing: what hooks into a program is the crate `rocov-runtime`, what people type is the crate
//! `rocov-cli`.

pub mod at_rest;
pub mod codeobject;
pub mod control;
pub mod device;
pub mod drain;
pub mod error;
pub mod filter;
pub mod host;
pub mod hsa;
pub mod load;
mod order;
pub mod output;
pub mod pauses;
pub mod profraw;
pub mod registry;
pub mod reserve;
pub mod sections;
