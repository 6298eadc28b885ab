//! Coverage mappings: the files and regions of each function.
//!
//! `__llvm_covfun` has a record for each function. The record names its files by their places in a list, and
//! names the list by a hash. `__llvm_covmap` has the lists, one for each translation unit (LLVM's
//! CoverageMappingFormat, versions 4 to 7, which LLVM 11 to 24 write). Neither section is loaded onto the
//! device.

mod error;
mod expansions;
mod file_list;
mod function;
mod function_record;
mod reader;
mod region;
mod source_place;
mod sources;

pub use error::CoverageError;
pub use function::{MappedFunction, mapped_functions};
pub use region::{Counter, Expression, MappedRegion, RegionKind};
pub use source_place::SourcePlace;
pub(super) use sources::sources;
