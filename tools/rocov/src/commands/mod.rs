//! The subcommands, one file or folder for each. None imports another.

pub(crate) mod baseline;
pub(crate) mod clean;
pub(crate) mod comment;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod extract;
pub(crate) mod flags;
pub(crate) mod kernels;
pub(crate) mod merge;
pub(crate) mod packaging;
pub(crate) mod pass;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod selftest;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod which;
