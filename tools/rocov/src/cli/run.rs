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
    /// Only record whether code was reached, at almost no cost
    #[value(alias = "hit")]
    Reached,
}

/// The tests of `--per-test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PerTestKind {
    /// The tests of ctest if CMD is ctest or a script, and those of GoogleTest if it is any other program
    Auto,
    /// The tests of all GoogleTest programs, within those of ctest
    Gtest,
}

/// Run a program and drain the counters of its GPU code into a directory
///
/// Compile the program with the flags that `rocov flags` prints; you do not have to change it in any other way. rocov
/// preloads librocov.so into it and into every process that it starts. That library writes the directory and its
/// profiles, so nothing is written for a program that never uses a GPU. librocov cannot be preloaded into static and
/// setuid programs, so these run as they do without rocov.
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
    /// TARGET is gfx90a (the default), gfx906, gfx908, gfx942, gfx950, gfx1030, gfx1100, gfx1201 or gfx1250
    /// (which needs a ROCr after 7.2.4), and N is the number of such GPUs; 1 to 8 GPUs in total. For example model, model:gfx942, model:gfx90ax2,gfx942. With ,race at the end, the model also
    /// reports data races in shared memory. With ,hazards, it reports code that uses a result before it is available on
    /// hardware.
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<ModelGpus>,

    /// Count each instruction that the modelled GPU executes, even in code without counters
    ///
    /// Works with any unmodified HIP program. `rocov report` shows its lines if it was compiled with -g or
    /// -gline-tables-only, and otherwise only its kernels. Requires --gpu.
    #[arg(long)]
    pub(crate) trace: bool,

    /// The directory for the profiles [default: rocov-data, or that of LLVM_PROFILE_FILE]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Label the profiles with this test name, which `rocov report --per-test` shows
    ///
    /// A label is a single name or, for tests within suites, several names separated by /.
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<Label>,

    /// Label the profiles of each test with its name, for ctest or a GoogleTest program
    ///
    /// The default KIND is auto.
    ///
    /// Parallel runs, fixtures and ctest's own options work as usual. The build directory is the current directory, or
    /// the one that ctest's own --test-dir names. A script, as in `sh -e FILE`, must call `ctest` by name rather than
    /// by path. Requires CMake 3.20 or later.
    ///
    /// You do not have to change GoogleTest programs, because they report their tests through
    /// GoogleTest's own option --gtest_stream_result_to.
    ///
    /// rocov shortens names that cannot be labels, such as those with a part longer than 128 bytes, and prints them on
    /// standard error.
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

    /// Allow `rocov dump` and `rocov status` to access the running program, through a socket in DIR
    ///
    /// Only this user and root have access. Without DIR, the socket is in $XDG_RUNTIME_DIR/rocov, or in /tmp/rocov-UID
    /// if there is no such directory.
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
    /// The other drain writes nothing. Clang 23 and later can link LLVM's drain (clang_rt.profile_rocm). With llvm,
    /// rocov writes no profiles at all, but still saves device ELFs and registries.
    #[arg(long, value_name = "WHO")]
    pub(crate) drain: Option<Drainer>,

    /// Insert counters into GPU code as the program loads it, even if it was built without coverage flags
    ///
    /// On AMD GPUs, rocov inserts them into the machine code, including assembly code and prebuilt libraries. To see
    /// lines, compile with -g or -gline-tables-only. On NVIDIA GPUs, the code must contain PTX; to see lines, compile
    /// with -lineinfo. rocov names the code that runs uncounted. Later runs read the instrumented code from a cache in
    /// $XDG_CACHE_HOME/rocov.
    #[arg(long)]
    pub(crate) instrument: bool,

    /// The kind of counters that --instrument inserts [default: fast]
    #[arg(long, value_name = "WAY", value_enum, requires = "instrument")]
    pub(crate) counters: Option<InstrumentCounters>,

    /// Use the program's ROCTx ranges as labels, and its marks as dumps
    #[arg(long)]
    pub(crate) roctx: bool,

    /// Use the program's NVTX ranges as labels, and its marks as dumps
    #[arg(long)]
    pub(crate) nvtx: bool,

    /// Do not count anything until the program opens a window (`rocov_start`)
    #[arg(long)]
    pub(crate) paused: bool,

    /// Leave code that was never launched out of the report
    ///
    /// Without this option, kernels that no process launched are reported as not run, both those in
    /// the program and those in every library that a process loaded, even if it closed the library
    /// again.
    #[arg(long)]
    pub(crate) no_zero: bool,

    /// Exit with status 3 if the program exits with 0 but counts are lost or too low, or nothing was drained
    ///
    /// The line that rocov prints at the end then explains the reason.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print the variables, the steps of the drain and the number of profiles on standard error
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
