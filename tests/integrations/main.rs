//! rocov in other people's tools: CMake projects, the scripts of CI services, and editors.

mod action;
mod cmake;
mod editors;
mod pipelines;

use rocov_tests as support;
