//! The command line of `rocov run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rocov::settings::{Drainer, Interval, SnapshotSignal};
use rocov::store::Label;

use super::gpu::ModelGpus;

/// The value that librocov takes for `--control` without a directory.
pub(crate) const USUAL_CONTROL: &str = "1";

/// The counters of `--instrument`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstrumentCounters {
    /// Exact counts
    Fast,
    /// No counts: only whether code was reached, at almost no cost
    #[value(alias = "hit")]
    Reached,
}

/// The tests of `--per-test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PerTestKind {
    /// The tests of ctest if CMD is ctest or a script, and of GoogleTest if it is another program
    Auto,
    /// The tests of all GoogleTest programs, within those of ctest
    Gtest,
}

/// Run a program and drain the counters of its GPU code into a directory
///
/// Compile the program with the flags that `rocov flags` prints; it needs no other change. rocov preloads librocov.so
/// into it and every process it starts. That library writes the directory and its profiles, so nothing is written for a
/// program that never uses a GPU. Static and setuid programs cannot be preloaded, and run as they do without rocov.
#[derive(Args)]
#[command(override_usage = "rocov run [OPTIONS] -- CMD [ARGUMENT]...")]
#[command(after_help = "\
Exit status: the program's own; 128+N if signal N ended it; 127 if it was not found, 126 if it \
could not be started, 125 if rocov failed before that, 2 for a usage error; 3 with --strict if the \
program ended with 0 but counts are lost or too low, or nothing was drained.

rocov forwards signals to the program, except those from the terminal (Ctrl-C), which the program receives directly.")]
pub(crate) struct RunArguments {
    /// Run on a modelled GPU instead of the machine's own: model[:TARGET[xN][,TARGET[xN]...]]
    ///
    /// TARGET is gfx90a (the default), gfx942, gfx950, gfx1100 or gfx1201, and N is the number of such GPUs; 1 to 8
    /// GPUs in total. For example model, model:gfx942, model:gfx90ax2,gfx942. With ,race at the end, the model also
    /// reports data races in shared memory, and with ,hazards code that uses a result before the hardware has it.
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<ModelGpus>,

    /// Count each instruction that the modelled GPU executes, even in code without counters
    ///
    /// Works with any HIP program, unchanged: with -g or -gline-tables-only, `rocov report` shows its lines,
    /// and otherwise its kernels. Needs --gpu.
    #[arg(long)]
    pub(crate) trace: bool,

    /// The directory for the profiles [default: rocov-data, or that of LLVM_PROFILE_FILE]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Label the profiles as those of this test: `rocov report --per-test` shows each label
    ///
    /// One name or, for tests within suites, several with / between them.
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<Label>,

    /// Label the profiles of each test with its name, for ctest or a GoogleTest program
    ///
    /// Without KIND, it is auto.
    ///
    /// Parallel runs, fixtures and options of ctest work as they do without this option. The build directory is the
    /// current directory, or that of ctest's own --test-dir. A script, such as `sh -e FILE`, must call `ctest` by this
    /// name. Needs CMake 3.20 or later.
    ///
    /// GoogleTest programs need no change: they report their tests through GoogleTest's own option
    /// --gtest_stream_result_to.
    ///
    /// rocov shortens names that cannot be labels, such as a part of more than 128 bytes, and prints them on standard
    /// error.
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        conflicts_with = "label"
    )]
    pub(crate) per_test: Option<PerTestKind>,

    /// Let `rocov dump` and `rocov status` query the running program, through a socket in DIR
    ///
    /// Only this user and root may do so. Without DIR, the socket is in $XDG_RUNTIME_DIR/rocov, or in /tmp/rocov-UID if
    /// there is no such directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = USUAL_CONTROL)]
    pub(crate) control: Option<PathBuf>,

    /// Also drain the counters at this interval, such as 500ms, 30s or 5m, and on SIGTERM and SIGINT
    ///
    /// A program that is killed then loses at most the counts since the last drain.
    #[arg(long, value_name = "TIME")]
    pub(crate) snapshot_every: Option<Interval>,

    /// Also drain the counters on this signal, HUP, USR1 or USR2, and on SIGTERM and SIGINT
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) snapshot_on: Option<SnapshotSignal>,

    /// The drain for a program that contains LLVM's own drain for HIP: rocov or llvm [default: rocov]
    ///
    /// The other drain writes nothing. Compilers link LLVM's drain (clang_rt.profile_rocm) from clang 23 on. With llvm,
    /// rocov writes no profiles at all, but keeps device ELFs and registries.
    #[arg(long, value_name = "WHO")]
    pub(crate) drain: Option<Drainer>,

    /// Insert counters into GPU code while the program loads it, even into code built without coverage flags
    ///
    /// On AMD GPUs, rocov inserts them into the machine code, including assembly and prebuilt libraries. Lines need -g
    /// or -gline-tables-only. On NVIDIA GPUs, the code must contain PTX, and lines need -lineinfo. rocov names the code
    /// that runs uncounted. Later runs read the code with counters from a cache in $XDG_CACHE_HOME/rocov.
    #[arg(long)]
    pub(crate) instrument: bool,

    /// The counters of --instrument [default: fast]
    #[arg(long, value_name = "WAY", value_enum, requires = "instrument")]
    pub(crate) counters: Option<InstrumentCounters>,

    /// Use the program's ROCTx ranges as labels, and its marks as dumps
    #[arg(long)]
    pub(crate) roctx: bool,

    /// Use the program's NVTX ranges as labels, and its marks as dumps
    #[arg(long)]
    pub(crate) nvtx: bool,

    /// Count nothing until the program opens a window (`rocov_start`)
    #[arg(long)]
    pub(crate) paused: bool,

    /// Leave code that was never launched out of the report
    ///
    /// Without this option, kernels that no process launches are reported as not run: those of the
    /// program and of every library that a process loaded, even if it closed the library again.
    #[arg(long)]
    pub(crate) no_zero: bool,

    /// Exit with 3 if the program exits with 0 but counts are lost or too low, or nothing was drained
    ///
    /// The line that rocov prints at the end then gives the reason.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print on standard error the variables, the steps of the drain and the number of profiles
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
