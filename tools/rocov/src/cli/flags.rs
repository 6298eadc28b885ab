//! The command line of `rocov flags`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

/// Print the compile flags that instrument a program's GPU code for rocov
///
/// Use it as `clang++ $(rocov flags) -x hip ...`. Queries clang to find out which flags it passes on to GPU code.
/// Recent releases (such as 22) pass on the usual -fprofile-instr-generate -fcoverage-mapping. Earlier releases (15 to
/// 19) need front-end flags, which also instrument host code, but without any effect.
#[derive(Args)]
pub(crate) struct FlagsArguments {
    /// The compiler that you use [default: the newest clang++ or amdclang++ found]
    #[arg(long, value_name = "CLANG")]
    pub(crate) clang: Option<PathBuf>,

    /// Also print --offload-arch=ARCH, for an AMD (gfx90a) or NVIDIA (sm_90) GPU; can be repeated
    #[arg(long, value_name = "ARCH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) offload_arch: Vec<String>,

    /// Also print --cuda-path=PATH, which names the CUDA toolkit for NVIDIA GPUs
    #[arg(long, value_name = "PATH")]
    pub(crate) cuda_path: Option<PathBuf>,

    /// Also instrument host code; LLVM's own runtime writes its profiles
    #[arg(long)]
    pub(crate) host: bool,

    /// Print flags for OpenMP target regions in C and C++ instead of for HIP
    ///
    /// Use it as `clang++ -fopenmp --offload-arch=ARCH $(rocov flags --openmp) ...`, both to compile and to link.
    #[arg(long)]
    pub(crate) openmp: bool,

    /// Print the options for code that hipRTC compiles instead, one element of hiprtcCompileProgram's `options` on each
    /// line
    ///
    /// hipRTC does not load plugins, so its code has LLVM's own counters. --clang names the compiler that belongs to
    /// the program's version of HIP. If PART is `header`, rocov prints the text of the device header, for programs that
    /// run on a machine without that file.
    #[arg(
        long,
        value_name = "PART",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "options",
        conflicts_with_all = ["host", "openmp"]
    )]
    pub(crate) hiprtc: Option<Hiprtc>,

    /// The kind of counters in GPU code [default: fast if a plugin fits this compiler, otherwise llvm]
    #[arg(long, value_name = "WAY", value_enum)]
    pub(crate) counters: Option<Counters>,

    /// Also count how often all lanes of a wave are active, for `rocov report --uniformity`
    ///
    /// Requires clang 23 or later and an AMD GPU. LLVM's own counters always include these counts, and --counters=reached
    /// never does.
    #[arg(long)]
    pub(crate) uniformity: bool,

    /// Print the flags that link librocov.a into a program or a shared library instead
    ///
    /// Put them last on the linker's command line. The program is then drained even without `rocov
    /// run`. `tools/dev/librocov-a` builds the library.
    #[arg(long, conflicts_with_all = ["clang", "offload_arch", "host", "openmp", "hiprtc", "counters", "uniformity"])]
    pub(crate) link: bool,
}

/// The part of hipRTC's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hiprtc {
    /// The elements of hiprtcCompileProgram's `options`
    Options,
    /// An element of hiprtcCreateProgram's `headers`; its include name is `rocov_device.h`
    Header,
}

/// The counters of GPU code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Counters {
    /// Exact counts at little cost, with a plugin that fits the compiler. Packages contain some plugins, and `rocov
    /// pass build` builds one
    Fast,
    /// Exact counts, with LLVM's own counters, which make kernels many times slower
    Llvm,
    /// Only record whether code was reached, with clang 20 or later and without a plugin; not for OpenMP. With --host,
    /// this applies to host code, too
    #[value(alias = "hit")]
    Reached,
}
