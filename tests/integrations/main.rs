//! rocov in other people's tools: CMake projects, the scripts of CI services, and editors. And the records of tests.

mod action;
mod cmake;
mod corpus;
mod editors;
mod libraries;
mod pipelines;
mod records;

use rocov_tests as support;
