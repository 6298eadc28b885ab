//! The command line of `rocov selftest`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::flags::Counters;
use super::gpu::ModelGpus;

/// Check that GPU counts are right on this machine, with a kernel whose counts are known
///
/// Compiles the kernel with your compiler and flags, runs it on your runtime and GPU, and reports on it. Prints each
/// step that succeeds. At the first one that fails, rocov prints what it found, what it expected, and what to do next.
#[derive(Args)]
#[command(override_usage = "rocov selftest [OPTIONS] [-- FLAG...]")]
#[command(after_help = "\
Exit status: 0 if all steps succeed; 1 if one fails; 2 for a usage error.")]
pub(crate) struct SelftestArguments {
    /// Run on a modelled GPU instead of the machine's own, as `rocov run --gpu` does
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<ModelGpus>,

    /// The compiler that you use [default: the newest clang++ or amdclang++ found]
    #[arg(long, value_name = "CLANG")]
    pub(crate) clang: Option<PathBuf>,

    /// The command that calls this compiler, such as hipcc or 'ccache clang++' [default: the compiler itself]
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) compiler: Option<String>,

    /// Compile for this AMD (gfx90a) or NVIDIA (sm_90) GPU; can be repeated [default: the GPUs in this machine]
    #[arg(long, value_name = "ARCH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) offload_arch: Vec<String>,

    /// The CUDA toolkit, for NVIDIA GPUs
    #[arg(long, value_name = "PATH")]
    pub(crate) cuda_path: Option<PathBuf>,

    /// The kind of counters in GPU code [default: fast if a plugin fits this compiler, otherwise llvm]
    #[arg(long, value_name = "WAY", value_enum)]
    pub(crate) counters: Option<Counters>,

    /// Start the program with this command, such as 'srun -n1' or 'mpirun -n 1'
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) launcher: Option<String>,

    /// Keep the program, its profiles and their report in this directory, which must be new or empty
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// The flags that your programs need, such as --rocm-path=DIR or -O3
    #[arg(value_name = "FLAG", last = true)]
    pub(crate) flags: Vec<OsString>,
}
