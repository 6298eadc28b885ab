//! However and however often librocov, HIP and the kernels enter a process, each count of the
//! kernels is in a profile exactly once.

mod beside_llvm;
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
