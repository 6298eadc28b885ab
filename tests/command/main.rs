//! The command as its users call it, on profiles and directories that the tests make up from what real compilers
//! write.

mod clean;
mod dataset;
mod doctor;
mod export;
mod extract;
mod flags;
mod help;
mod kernels;
mod merge;
mod packages;
mod pass;
mod project_file;
mod python;
mod report;
mod run;
mod show;
mod signals;
mod slips;
mod streams;
mod untrusted;
