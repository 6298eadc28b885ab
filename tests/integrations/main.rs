//! rocov in other people's tools: CMake projects, and the scripts of CI services.

mod action;
mod cmake;
mod pipelines;

#[path = "../support/mod.rs"]
#[allow(
    dead_code,
    reason = "shared with the whole-program tests, which use all of it"
)]
mod support;
