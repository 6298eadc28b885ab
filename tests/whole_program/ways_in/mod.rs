//! Whatever way librocov, HIP and the kernels come into a process, and however often: what the
//! kernels count is in a profile, once.

mod beside_llvm;
mod beside_released;
mod beside_tools;
mod closed;
mod late;
mod linked;
mod loaded;
mod once;
mod opened;
mod programs;
mod rocprofiler;
mod roctx;
mod shut_down;
mod tool_table;
