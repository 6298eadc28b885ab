//! The command line of `rocov doctor`.

use std::path::PathBuf;

use clap::Args;

/// Check that this machine and your programs are ready for GPU code coverage
///
/// Checks the libraries that programs run on, GPUs and the permission to use them, compilers, LLVM's tools and the raw
/// versions that they read, and variables that interfere. For each BINARY, it checks the instrumentation of GPU code,
/// the tools that read its profiles, and obstacles to draining it. It does not run any BINARY, and does not load any
/// library. In contrast, `rocov selftest` compiles and runs a kernel.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, even with warnings; 1 if something that coverage needs is missing; 2 for a usage error.")]
pub(crate) struct DoctorArguments {
    /// Programs, libraries with kernels, or device ELFs to check
    #[arg(value_name = "BINARY")]
    pub(crate) binaries: Vec<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Look for llvm-profdata and llvm-cov only in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}
