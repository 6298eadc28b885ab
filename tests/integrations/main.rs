//! rocov in other people's tools: CMake projects, and the scripts of CI services.

mod action;
mod cmake;
mod pipelines;

use rocov_tests as support;
