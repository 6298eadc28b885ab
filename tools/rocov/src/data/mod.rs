//! Data directories: everything in them, listed and parsed once for every command.
//!
//! ```text
//! names: a file name -> walk: the files that are there -> listing: all of them, each once
//!     -> completed: with code that was never launched (zeros), without what older builds counted (builds)
//!     -> reportable: with the ELFs of the code objects (device_elfs)
//!     -> match_elfs: profiles and device ELFs, paired (non_atomic: whose counts are too low)
//!     -> labels: of some tests only -> completeness: what a report lacks
//! ```
//!
//! Nothing here prints: each step collects `Warnings`, and the command prints them.

mod archives;
mod builds;
pub(crate) mod changes;
pub(crate) mod code_cache;
mod completed;
mod completeness;
pub(crate) mod components;
pub(crate) mod device_elfs;
mod host_code;
pub(crate) mod labels;
mod listing;
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
mod reportable;
mod walk;
pub(crate) mod zeros;

pub(crate) use self::builds::Builds;
pub(crate) use self::completed::CompletedData;
pub(crate) use self::listing::{DataListing, check_archs, is_missing, refuse_data_set};
pub(crate) use self::names::{DATABASE, DeviceProfile, FileKind, POOLED_HOST, is_searched};
pub(crate) use self::process_place::{ProcessPlace, ProcessPlaces};
pub(crate) use self::registries::{Origins, Registries, RegistryProcess, paths_start};
pub(crate) use self::reportable::ReportableData;
pub(crate) use self::walk::DirectoryWalk;
