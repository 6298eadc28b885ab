//! Fourth station: the ways into librocov.
//!
//! All exported symbols are here, and nowhere else. The program's calls arrive at hooks ([`interpose`],
//! [`tool_table`], [`hip_hooks`], [`link_hooks`], [`roctx`], [`nvtx`], [`gtest`], [`exec`], [`immediate_exit`]), at exit
//! handlers ([`exit`], [`early_exit`])
//! or at the C interface ([`c_api`]). Each way sends an event, and other copies of librocov send theirs
//! to [`copy`].

pub mod c_api;
mod code_objects;
mod copy;
mod cupti;
mod early_exit;
mod exchange;
mod exec;
mod exit;
mod gtest;
mod hip_hooks;
mod hsa_hooks;
mod immediate_exit;
mod injection;
mod interpose;
mod link_hooks;
mod load;
mod losses;
mod nesting;
mod next_symbol;
mod nvtx;
mod roctx;
mod tool_table;
