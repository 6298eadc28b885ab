//! What comes before a report: compiling, running, and whether all is there for it.

use crate::gpu::ModelGpus;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use rocov::control::words::{Interval, SnapshotSignal};
use rocov::drain::Drainer;
use rocov::output::Label;
use std::ffi::OsString;
use std::path::PathBuf;

/// What `--control` without a directory stands for, as librocov reads it.
pub(crate) const USUAL_CONTROL: &str = "1";

/// Print the compile flags that make a program's GPU code drainable
///
/// For use as `clang++ $(rocov flags) -x hip ...`. Asks clang which flags it passes on to GPU code:
/// new ones (22) the usual -fprofile-instr-generate -fcoverage-mapping; old ones (15 to 19) need
/// their front end's own flags, which cannot be kept from host code: that counts too, to no effect.
#[derive(Args)]
pub(crate) struct FlagsArguments {
    /// The compiler that will be used [default: the newest clang++ or amdclang++ found]
    #[arg(long, value_name = "CLANG")]
    pub(crate) clang: Option<PathBuf>,

    /// Print --offload-arch=ARCH too; can be repeated
    #[arg(long, value_name = "ARCH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) offload_arch: Vec<String>,

    /// Instrument host code too; its profiles are written by LLVM's own runtime
    #[arg(long)]
    pub(crate) host: bool,

    /// Print the flags that link librocov.a into a program or a shared library instead
    ///
    /// To be put last on the linker's command line. What is linked so is drained without `rocov
    /// run`; `tools/librocov-a` makes the library.
    #[arg(long, conflicts_with_all = ["clang", "offload_arch", "host"])]
    pub(crate) link: bool,
}

/// Run a program and drain the counters of its GPU code into a directory
///
/// The program needs no change beyond being compiled with the flags that `rocov flags` prints.
/// librocov.so is preloaded into it and every process it starts; the directory and its profiles
/// are written by that library, so a program that never uses a GPU leaves nothing behind.
/// Static and setuid programs cannot be preloaded and run as without rocov.
#[derive(Args)]
#[command(override_usage = "rocov run [OPTIONS] -- CMD [ARGUMENT]...")]
#[command(after_help = "\
Exit status: the program's own; 128+N when signal N ended it; 127 when it was not found, 126 when \
it could not be started, 125 when rocov failed before that, 2 for a usage error.

Signals sent to rocov are forwarded to the program, except those from the terminal (Ctrl-C), \
which the program gets itself.")]
pub(crate) struct RunArguments {
    /// Run on a modelled GPU instead of the machine's own: model[:TARGET[xN][,TARGET[xN]...]]
    ///
    /// TARGET is gfx90a (the default) or gfx942, N the number of such GPUs; 1 to 8 GPUs in all.
    /// For example model, model:gfx942, model:gfx90ax2,gfx942.
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<ModelGpus>,

    /// Where the profiles go [default: rocov-data, or where LLVM_PROFILE_FILE says]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Label the profiles, as those of this test: `rocov report --per-test` tells labels apart
    ///
    /// One name or, for tests within suites, several with / between them.
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<Label>,

    /// CMD is ctest: label the profiles of each test with its name
    ///
    /// All else is as without: parallel runs, fixtures, options of ctest. The build directory is the
    /// current one or that of ctest's own --test-dir. What cannot be in a label, as a part of a
    /// name of more than 128 bytes, is shortened, which standard error says. Needs CMake 3.20 or later.
    #[arg(long, conflicts_with = "label")]
    pub(crate) per_test: bool,

    /// Let `rocov dump` and `rocov status` ask the program while it runs, by a socket in DIR
    ///
    /// Only this user and root may. Without DIR, the socket is in $XDG_RUNTIME_DIR/rocov, or in
    /// /tmp/rocov-UID where there is no such directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = USUAL_CONTROL)]
    pub(crate) control: Option<PathBuf>,

    /// Drain the counters every so often too, such as 500ms, 30s or 5m, and on SIGTERM and SIGINT
    ///
    /// A program that is killed then loses what it has counted since at most.
    #[arg(long, value_name = "TIME")]
    pub(crate) snapshot_every: Option<Interval>,

    /// Drain them on this signal too, HUP, USR1 or USR2, and on SIGTERM and SIGINT
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) snapshot_on: Option<SnapshotSignal>,

    /// Who drains a program with LLVM's own drain for HIP in it: rocov or llvm [default: rocov]
    ///
    /// The other one writes nothing. Compilers link LLVM's drain (clang_rt.profile_rocm) from clang 23 on.
    /// With llvm, rocov writes no profiles of any program, and keeps device ELFs and registries.
    #[arg(long, value_name = "WHO")]
    pub(crate) drain: Option<Drainer>,

    /// Take the program's ROCTx ranges as labels, and its marks as dumps
    #[arg(long)]
    pub(crate) roctx: bool,

    /// Count nothing until the program opens a window (`rocov_start`)
    #[arg(long)]
    pub(crate) paused: bool,

    /// Leave code that was never launched out of the report
    ///
    /// Without this option, kernels that no process launches count as not run: those of the program
    /// and of every library that was in a process, also of libraries that were closed again.
    #[arg(long)]
    pub(crate) no_zero: bool,

    /// Say on standard error what is set, what the drain does and how many profiles there are
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        num_args = 1..,
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
}

/// Say what is there and what is missing for coverage of GPU code here
///
/// Looks for the libraries that programs run on, GPUs and the right to use them, compilers, LLVM's
/// tools and the raw versions that they read, and at variables that get in the way. In each BINARY,
/// whether its GPU code is instrumented, which tools read its profiles, and what keeps it from being
/// drained. None of them is run, and no library is loaded.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 when something is missing that coverage needs, each with what to do about it; 2 for \
a usage error. A warning is no reason for 1.")]
pub(crate) struct DoctorArguments {
    /// Programs, libraries with kernels, or device ELFs to look into
    #[arg(value_name = "BINARY")]
    pub(crate) binaries: Vec<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}
