//! The environment variables of rocov, in one table.
//!
//! Each is a constant: its readers name it by that, and take its default from it. The chapter on them in the book is
//! printed from the table. A test of the crate `rocov-docs` compares it with the sources: every `ROCOV_` variable of the
//! product has a row, and every row is named in a source. The table leaves out the variables by which a test talks to its
//! own children.

use std::ffi::OsStr;
use std::fmt;

use super::error::SettingError;

/// A variable of the environment that a part of rocov reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The part that reads it.
    pub reader: Reader,
    /// The values that it may have, in Markdown.
    pub values: &'static str,
    /// The value that holds if it is not set, or is empty.
    pub default: DefaultValue,
    /// Its effect: a sentence or two, in Markdown.
    pub meaning: &'static str,
    /// The option of a command that sets it, or the name of the tool that does; empty if only users set it.
    pub set_by: &'static str,
}

impl Setting {
    /// Returns the value of `word`, or of the default if it is empty or not set, or if `parse` refuses it. `refused` is
    /// called with the error first.
    ///
    /// # Panics
    /// Panics if `parse` does not accept the default.
    pub fn value<T>(
        &self,
        word: Option<&OsStr>,
        parse: impl Fn(&str) -> Result<T, SettingError>,
        refused: impl FnOnce(&SettingError),
    ) -> T {
        let word = word.filter(|word| !word.is_empty());
        let value = word.and_then(|word| parse(&word.to_string_lossy()).inspect_err(refused).ok());
        value.unwrap_or_else(|| parse(self.default.literal()).expect("the default is a good value"))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// The value of a [`Setting`] that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// As a user could write it.
    Literal(&'static str),
    /// In Markdown: there is no one value.
    Described(&'static str),
}

impl DefaultValue {
    /// The value as a user could write it; empty if there is no one value.
    #[must_use]
    pub const fn literal(self) -> &'static str {
        match self {
            Self::Literal(value) => value,
            Self::Described(_) => "",
        }
    }
}

/// In Markdown.
impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(value) => write!(f, "`{value}`"),
            Self::Described(words) => f.write_str(words),
        }
    }
}

/// The part of rocov that reads a [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// `librocov.so` and `librocov.a`, in the program.
    Librocov,
    /// The command `rocov`.
    Command,
    /// The plugin for pytest.
    Pytest,
    /// The modelled GPU.
    ModelGpu,
    /// The tests and tools of this repository.
    Tests,
}

impl Reader {
    /// All readers, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Librocov,
        Self::Command,
        Self::Pytest,
        Self::ModelGpu,
        Self::Tests,
    ];

    /// Its name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Librocov => "librocov",
            Self::Command => "The command rocov",
            Self::Pytest => "rocov-pytest",
            Self::ModelGpu => "The modelled GPU",
            Self::Tests => "Tests and tools of the repository",
        }
    }
}

/// Defines the variables: a constant for each, and [`SETTINGS`].
macro_rules! settings {
    ($($reader:ident { $($name:ident = $variable:literal {
        values: $values:literal,
        default: $kind:ident($default:literal),
        $(set_by: $set_by:literal,)?
        meaning: $meaning:literal,
    })* })*) => {
        $($(
            #[doc = concat!("`", $variable, "`")]
            pub const $name: Setting = Setting {
                name: $variable,
                reader: Reader::$reader,
                values: $values,
                default: DefaultValue::$kind($default),
                meaning: $meaning,
                set_by: concat!($($set_by)?),
            };
        )*)*

        /// All variables, by reader.
        pub const SETTINGS: &[Setting] = &[$($($name),*),*];
    };
}

settings! {
    Librocov {
        PROFILE_FILE = "LLVM_PROFILE_FILE" {
            values: "a [pattern](files.md#names-of-profiles)",
            default: Literal("default.profraw"),
            set_by: "`rocov run`",
            meaning: "Names the profiles, as in LLVM. `rocov run` sets it to `DIR/profraw/%p-RUN.profraw`, where RUN \
                is a random word, unless the variable is already set and `-o` is not given. With `/dev/null`, no \
                profiles are written.",
        }
        DATA = "ROCOV_DATA" {
            values: "an absolute path",
            default: Described("none"),
            set_by: "`rocov run`",
            meaning: "Names the data directory, to which device ELFs, registries and saved sections go. It applies to \
                profiles in its folder `profraw` or below; the files for other profiles are [next to \
                them](files.md#a-pattern-of-your-own).",
        }
        ONLY = "ROCOV_ONLY" {
            values: "globs, separated by commas",
            default: Described("none"),
            meaning: "Drains only code objects from files that match one of these \
                [globs](../guides/run.md#drain-only-some-libraries).",
        }
        SKIP = "ROCOV_SKIP" {
            values: "globs, separated by commas",
            default: Described("none"),
            meaning: "Does not drain code objects from files that match one of these globs.",
        }
        VERBOSE = "ROCOV_VERBOSE" {
            values: "`0`, or anything else",
            default: Literal("0"),
            set_by: "`rocov run -v`",
            meaning: "Prints each step of the drain on standard error.",
        }
        PROFILE_VERBOSE = "LLVM_PROFILE_VERBOSE" {
            values: "`0`, or anything else",
            default: Literal("0"),
            meaning: "Has the same effect as `ROCOV_VERBOSE`.",
        }
        ZERO = "ROCOV_ZERO" {
            values: "`0`, `1`",
            default: Literal("1"),
            set_by: "`rocov run --no-zero`",
            meaning: "`0` leaves [code that was never launched](../guides/run.md#code-that-was-never-launched) out of the \
                report.",
        }
        WAIT = "ROCOV_WAIT" {
            values: "seconds, `0` to `86400`",
            default: Literal("10"),
            meaning: "Limits how long librocov waits for running kernels when code is unloaded and when the program \
                ends. With `0`, it does not wait. This limit also applies to copies out of GPU memory, but it is then \
                at least one second, measured from the last copy that arrived.",
        }
        REGISTRY = "ROCOV_REGISTRY" {
            values: "`auto`, `always`, `none`",
            default: Literal("auto"),
            meaning: "Selects when the [registry](registry.md) is written: with `auto`, if instrumented code was \
                loaded or could have been loaded; with `always`, if any code was loaded. `rocov run` removes a \
                registry without such code.",
        }
        OBJECTS = "ROCOV_OBJECTS" {
            values: "`instrumented`, `all`, `none`",
            default: Literal("instrumented"),
            meaning: "Selects the device ELFs that librocov and `rocov run` save.",
        }
        OBJECTS_MAX = "ROCOV_OBJECTS_MAX" {
            values: "bytes, with `K`, `M` or `G`",
            default: Literal("4G"),
            meaning: "Limits the total size of the device ELFs that a process writes. `rocov run` adds the ELFs of \
                code that was never launched, as long as all ELFs in the directory together stay below the limit. One \
                line reports the first ELF that does not fit.",
        }
        CUPTI = "ROCOV_CUPTI" {
            values: "path of `libcupti.so`",
            default: Described("found"),
            meaning: "Names the CUPTI library, for [NVIDIA GPUs](../guides/nvidia.md).",
        }
        DRAIN = "ROCOV_DRAIN" {
            values: "`rocov`, `llvm`",
            default: Described("none"),
            set_by: "`rocov run --drain`",
            meaning: "Selects the drain for a program that contains [LLVM's own \
                drain](../guides/compile.md#llvms-own-drain). `rocov run` sets it to `rocov`. If it is not set, \
                librocov leaves such programs to LLVM's drain and prints a message. librocov always drains code with \
                [copies of its counters](../internals/beside-llvm.md#code-with-copies-of-its-counters).",
        }
        JOURNAL = "ROCOV_JOURNAL" {
            values: "a file",
            default: Described("none"),
            set_by: "`rocov run`",
            meaning: "Names the file in which each process records the state of its counters for `rocov run`. The \
                modelled GPU also uses this file to record mistakes in kernels, and kernels that make no progress.",
        }
        PAUSED = "ROCOV_PAUSED" {
            values: "`0`, `1`",
            default: Literal("0"),
            set_by: "`rocov run --paused`",
            meaning: "With `1`, nothing is counted until the program calls `rocov_start`.",
        }
        LABEL = "ROCOV_LABEL" {
            values: "a [label](../guides/labels.md)",
            default: Described("none"),
            set_by: "`rocov run --label`",
            meaning: "Labels the profiles, which are then written to a directory for that label.",
        }
        CONTROL = "ROCOV_CONTROL" {
            values: "`0`, `1`, or the absolute path of a directory",
            default: Literal("0"),
            set_by: "`rocov run --control`",
            meaning: "Creates the [socket](control.md) for `rocov dump` and `rocov status`, in this directory or in \
                the default one.",
        }
        SNAPSHOT_EVERY = "ROCOV_SNAPSHOT_EVERY" {
            values: "`10ms` to `1440m`, in `ms`, `s` or `m`",
            default: Described("none"),
            set_by: "`rocov run --snapshot-every`",
            meaning: "Drains the counters at this interval.",
        }
        SNAPSHOT_SIGNAL = "ROCOV_SNAPSHOT_SIGNAL" {
            values: "`HUP`, `USR1`, `USR2`",
            default: Described("none"),
            set_by: "`rocov run --snapshot-on`",
            meaning: "Drains the counters on this signal.",
        }
        ROCTX = "ROCOV_ROCTX" {
            values: "`0`, `1`",
            default: Literal("0"),
            set_by: "`rocov run --roctx`",
            meaning: "With `1`, [ROCTx ranges](../guides/roctx.md) become labels, and marks become dumps.",
        }
        GTEST = "ROCOV_GTEST" {
            values: "`0`, `1`",
            default: Literal("0"),
            set_by: "`rocov run --per-test`",
            meaning: "With `1`, the [tests of a GoogleTest program](../guides/per-test.md#googletest) become labels. \
                The program must stream its results, so `GTEST_STREAM_RESULT_TO` must name an address that accepts \
                connections.",
        }
        INSTRUMENT = "ROCOV_INSTRUMENT" {
            values: "`0`, `1`, `reached`",
            default: Literal("0"),
            set_by: "`rocov run --instrument`",
            meaning: "With `1`, `librocov_instrument.so` inserts counters into code for [AMD \
                GPUs](../guides/instrument-amd.md) and [CUDA code](../guides/instrument.md) as the program loads it. \
                With `reached`, the counters only record whether code ran.",
        }
        CACHE = "ROCOV_CACHE" {
            values: "an absolute path",
            default: Described("`$XDG_CACHE_HOME/rocov` or `~/.cache/rocov`"),
            meaning: "Names the directory for the [cache](../guides/instrument.md#the-cache) of `--instrument`. If the \
                path is relative, there is no cache.",
        }
        CACHE_MAX = "ROCOV_CACHE_MAX" {
            values: "bytes, with an optional `K`, `M` or `G`",
            default: Literal("1G"),
            meaning: "Limits the size of each folder in the cache. rocov removes the least recently used entries.",
        }
        XDG_RUNTIME_DIR = "XDG_RUNTIME_DIR" {
            values: "a directory",
            default: Described("none"),
            meaning: "Names the directory that contains the folder `rocov` with the socket. The directory must belong \
                to the user. The command also reads this variable. Without it, the socket is in `/tmp/rocov-UID`.",
        }
        ROCR_VISIBLE_DEVICES = "ROCR_VISIBLE_DEVICES" {
            values: "see ROCr's documentation",
            default: Described("none"),
            meaning: "Limits the GPUs for which code that was never launched is reported as not run.",
        }
        HSA_TOOLS_LIB = "HSA_TOOLS_LIB" {
            values: "see ROCr's documentation",
            default: Described("none"),
            meaning: "ROCr loads the libraries that this variable names as tools. librocov adds itself if the program \
                is [linked with ROCr first](../guides/without-run.md#how-hip-finds-librocov).",
        }
    }
    Command {
        PTXAS = "ROCOV_PTXAS" {
            values: "path of ptxas",
            default: Described("Triton's own, or the one on the `PATH`"),
            set_by: "`rocov run --instrument`",
            meaning: "Names the assembler that gets the modified PTX from the stand-in for Triton's ptxas. This is the \
                original value of `TRITON_PTXAS_PATH`.",
        }
        PTXAS_BLACKWELL = "ROCOV_PTXAS_BLACKWELL" {
            values: "path of ptxas",
            default: Described("Triton's own, or the one on the `PATH`"),
            set_by: "`rocov run --instrument`",
            meaning: "Has the same effect as `ROCOV_PTXAS`, for `TRITON_PTXAS_BLACKWELL_PATH`.",
        }
        CUDA_TOOLKIT = "ROCOV_CUDA_TOOLKIT" {
            values: "a directory",
            default: Described("none"),
            set_by: "`rocov run --instrument`",
            meaning: "Names the directory that Python programs get as `CUDA_ROOT`, where JAX looks for ptxas.",
        }
        LD_PRELOAD = "LD_PRELOAD" {
            values: "paths, separated by colons or spaces",
            default: Described("none"),
            set_by: "`rocov run`",
            meaning: "`rocov run` adds its own libraries in front of those that this variable names.",
        }
        XDG_CACHE_HOME = "XDG_CACHE_HOME" {
            values: "an absolute path",
            default: Literal("~/.cache"),
            meaning: "Names the directory that contains the folder `rocov`, with the [cache](files.md#the-cache) of \
                device code in host files and the cache of `--instrument`.",
        }
        LIBRARY_DIR = "ROCOV_LIBRARY_DIR" {
            values: "a directory",
            default: Described("none"),
            meaning: "Names the directory that contains `librocov.so` and `librocov_modelgpu.so`, if it is neither the \
                command's directory nor `../lib`.",
        }
        ROCM_PATH = "ROCM_PATH" {
            values: "a directory",
            default: Literal("/opt/rocm"),
            meaning: "Names the ROCm directory, which contains its clang and LLVM tools.",
        }
        SOURCE_DATE_EPOCH = "SOURCE_DATE_EPOCH" {
            values: "seconds since 1970",
            default: Described("the present time"),
            meaning: "Sets the time stamp in Cobertura reports and pages, so that two reports can be identical, byte \
                for byte.",
        }
    }
    Pytest {
        LIBRARY = "ROCOV_LIBRARY" {
            values: "a file",
            default: Described("none"),
            meaning: "Names the `librocov.so` to call, if it is neither preloaded nor linked into the program.",
        }
    }
    ModelGpu {
        MODELGPU = "ROCOV_MODELGPU" {
            values: "`TARGET[xN][,TARGET[xN]...][,race][,hazards]`",
            default: Described("none: no model"),
            set_by: "`rocov run --gpu`",
            meaning: "Lists 1 to 8 modelled GPUs, with the targets `gfx906`, `gfx908`, `gfx90a`, `gfx942`, `gfx950`, \
                `gfx1030`, `gfx1100`, `gfx1201` and `gfx1250`. With `race` and `hazards`, the model reports \
                [mistakes](../internals/model-gpu.md#mistakes-in-kernels).",
        }
        MODELGPU_BAR = "ROCOV_MODELGPU_BAR" {
            values: "`small`, `large`",
            default: Literal("large"),
            meaning: "With `large`, the host can access GPU memory. With `small`, it cannot, as on a machine without a \
                large (resizable) BAR.",
        }
        MODELGPU_VRAM_MIB = "ROCOV_MODELGPU_VRAM_MIB" {
            values: "`1` to `1048576`",
            default: Literal("16384"),
            meaning: "Sets the memory of each GPU, in MiB.",
        }
        MODELGPU_XGMI = "ROCOV_MODELGPU_XGMI" {
            values: "`0`, `1`",
            default: Literal("0"),
            meaning: "With `1`, the GPUs are linked through XGMI instead of PCIe.",
        }
        MODELGPU_LOG = "ROCOV_MODELGPU_LOG" {
            values: "`FILE[:LEVEL]`, with `2` for standard error",
            default: Described("none"),
            meaning: "Logs queues, copies, and dispatches with the number of instructions that their waves executed \
                (level 1, the default), or every call (level 2).",
        }
        MODELGPU_INSTRUCTIONS = "ROCOV_MODELGPU_INSTRUCTIONS" {
            values: "a file, or `2` for standard error",
            default: Described("none"),
            meaning: "When the program ends, appends a line for each kernel with [the number of instructions that its \
                waves executed](../internals/model-gpu.md#count-instructions).",
        }
        MODELGPU_FIDELITY = "ROCOV_MODELGPU_FIDELITY" {
            values: "a file, or `2` for standard error",
            default: Described("none"),
            meaning: "When the program ends, appends the opcodes that its kernels executed, by the [evidence for their \
                behaviour](../internals/silicon.md#evidence-for-each-opcode).",
        }
        MODELGPU_TRACE = "ROCOV_MODELGPU_TRACE" {
            values: "`0`, `1`",
            default: Literal("0"),
            set_by: "`rocov run --trace`",
            meaning: "With `1`, the model counts [how often each instruction is executed](../guides/trace.md), and \
                librocov adds these counts to the profiles.",
        }
        MODELGPU_THREADS = "ROCOV_MODELGPU_THREADS" {
            values: "`1` to `1024`",
            default: Described("the processors that the program may use"),
            meaning: "Sets the maximum number of threads that [run the workgroups of a \
                kernel](../internals/model-gpu.md#threads).",
        }
        MODELGPU_TMP = "ROCOV_MODELGPU_TMP" {
            values: "a directory",
            default: Described("`$TMPDIR`, then `/tmp`"),
            meaning: "Names the directory for the model's temporary files.",
        }
    }
    Tests {
        BLESS = "ROCOV_BLESS" {
            values: "anything",
            default: Described("none"),
            set_by: "`cargo xtask bless`",
            meaning: "Makes tests write the records that they compare, such as help texts, generated chapters and \
                `rocov.h`.",
        }
        STACKS_DIR = "ROCOV_STACKS_DIR" {
            values: "a directory",
            default: Literal(".stacks"),
            meaning: "Contains the compilers and runtimes that `tools/stacks` unpacks.",
        }
        TEST_KILLS = "ROCOV_TEST_KILLS" {
            values: "a number",
            default: Described("see the test"),
            set_by: "`tools/dev/kill`",
            meaning: "Sets the number of processes that the kill test starts.",
        }
        TEST_MUTANTS = "ROCOV_TEST_MUTANTS" {
            values: "a range of seeds, such as `0..9999`",
            default: Described("see the test"),
            meaning: "Selects the seeds with which code objects are damaged.",
        }
        TEST_LEVELS = "ROCOV_TEST_LEVELS" {
            values: "`all`, or empty",
            default: Described("a part of the levels for each GPU"),
            set_by: "`tools/test --stacks all`",
            meaning: "Compiles the kernels in tests for each modelled GPU at all optimization levels.",
        }
        TEST_CORPUS = "ROCOV_TEST_CORPUS" {
            values: "a directory",
            default: Described("prebuilt code is not rewritten"),
            meaning: "Names a directory with folders of packages, whose GPU code the test `rewriting` rewrites.",
        }
        TEST_CLANG = "ROCOV_TEST_CLANG" {
            values: "a release, such as `23`",
            default: Literal("22"),
            meaning: "Selects the clang that compiles most tests. Its LLVM tools must come first on the `PATH`.",
        }
        TEST_STACK = "ROCOV_TEST_STACK" {
            values: "`debian12` or a runtime of `tools/stacks`",
            default: Described("the newest one that has been fetched"),
            meaning: "Selects the HIP and ROCr that most tests with programs run on.",
        }
    }
}
