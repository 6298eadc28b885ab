//! Data directories: everything in them, listed and parsed once for every command.
//!
//! ```text
//! names: a file name -> walk: the files that are there -> DataDirectory: all of them, each once
//!     -> builds: without what older builds counted -> device_elfs: with the ELFs of the code objects
//!     -> match_elfs: profiles and device ELFs, paired (non_atomic: whose counts are too low) -> labels: of some tests only -> completeness: what a report lacks
//! ```
//!
//! Nothing here prints: each step collects `Warnings`, and the command prints them.

mod archives;
mod builds;
pub(crate) mod changes;
pub(crate) mod code_cache;
mod completeness;
pub(crate) mod components;
mod data_directory;
pub(crate) mod device_elfs;
mod host_code;
pub(crate) mod labels;
pub(crate) mod match_elfs;
pub(crate) mod matched_elfs;
mod names;
mod no_profiles;
pub(crate) mod non_atomic;
pub(crate) mod notes;
pub(crate) mod other_archs;
mod partial_profiles;
mod process_place;
pub(crate) mod profile_header;
pub(crate) mod ptx;
mod registries;
mod walk;
pub(crate) mod zeros;

pub(crate) use self::builds::Builds;
pub(crate) use self::data_directory::{DataDirectory, check_archs, is_missing, refuse_data_set};
pub(crate) use self::names::{
    DATA_SET, DATABASE, DeviceProfile, FileKind, IN_BUCKETS, POOLED_HOST, in_bucket, is_data_set,
    is_searched,
};
pub(crate) use self::process_place::{ProcessPlace, ProcessPlaces};
pub(crate) use self::registries::{Origins, Registries, RegistryProcess, paths_start};
pub(crate) use self::walk::DirectoryWalk;
