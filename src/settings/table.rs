//! The environment variables of rocov, in one table.
//!
//! The chapter on them in the book is printed from it. A test of the crate `rocov-docs` compares it with
//! the sources: every `ROCOV_` variable of the product has a row, and every row is named in a source. The
//! table leaves out the variables by which a test talks to its own children.

use super::defaults::markdown;

/// A variable of the environment that a part of rocov reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The part that reads it.
    pub reader: Reader,
    /// The values that it may have, in Markdown.
    pub values: &'static str,
    /// The value that holds if it is not set, or is empty, in Markdown.
    pub default: &'static str,
    /// Its effect: a sentence or two, in Markdown.
    pub meaning: &'static str,
    /// The option of a command that sets it, or the name of the tool that does; empty if only users set it.
    pub set_by: &'static str,
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

    /// Its name as people know it.
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

/// A row of [`SETTINGS`].
const fn setting(
    name: &'static str,
    reader: Reader,
    [values, default, set_by]: [&'static str; 3],
    meaning: &'static str,
) -> Setting {
    Setting {
        name,
        reader,
        values,
        default,
        meaning,
        set_by,
    }
}

/// All variables, by reader.
pub const SETTINGS: &[Setting] = &[
    setting(
        "LLVM_PROFILE_FILE",
        Reader::Librocov,
        [
            "a [pattern](files.md#names-of-profiles)",
            markdown::PROFILE_FILE,
            "`rocov run`",
        ],
        "Names the profiles, as in LLVM. `rocov run` sets it to `DIR/profraw/%p-RUN.profraw` with a word of the \
         run, unless it is set already and `-o` is not given. `/dev/null` means no profile.",
    ),
    setting(
        "ROCOV_DATA",
        Reader::Librocov,
        ["an absolute path", "none", "`rocov run`"],
        "Names the data directory, to which device ELFs, registries and saved sections go. It holds for \
         profiles in its `profraw` or below; files that go with other profiles lie [beside \
         them](files.md#a-pattern-of-your-own).",
    ),
    setting(
        "ROCOV_ONLY",
        Reader::Librocov,
        ["globs, separated by commas", "none", ""],
        "Drains only code objects from files that match one of these \
         [globs](../guides/run.md#drain-some-libraries-only).",
    ),
    setting(
        "ROCOV_SKIP",
        Reader::Librocov,
        ["globs, separated by commas", "none", ""],
        "Does not drain code objects from files that match one of these globs.",
    ),
    setting(
        "ROCOV_VERBOSE",
        Reader::Librocov,
        ["`0`, or anything else", "`0`", "`rocov run -v`"],
        "Prints each step of the drain on standard error.",
    ),
    setting(
        "LLVM_PROFILE_VERBOSE",
        Reader::Librocov,
        ["`0`, or anything else", "`0`", ""],
        "Does what `ROCOV_VERBOSE` does.",
    ),
    setting(
        "ROCOV_ZERO",
        Reader::Librocov,
        ["`0`, `1`", markdown::ZERO, "`rocov run --no-zero`"],
        "`0` leaves [code that was never launched](../guides/run.md#code-that-was-never-launched) out of the \
         report.",
    ),
    setting(
        "ROCOV_WAIT",
        Reader::Librocov,
        ["seconds, `0` to `86400`", markdown::WAIT, ""],
        "Limits how long the unload of code and the end of the program wait for kernels that still run. `0` \
         does not wait. Copies out of GPU memory have this limit too, but at least a second, counted from \
         the last copy that arrived.",
    ),
    setting(
        "ROCOV_REGISTRY",
        Reader::Librocov,
        ["`auto`, `always`, `none`", markdown::REGISTRY, ""],
        "Chooses when the [registry](registry.md) is written: `auto` if instrumented code was loaded or could \
         have been, `always` if any code was. `rocov run` removes one that has no such code.",
    ),
    setting(
        "ROCOV_OBJECTS",
        Reader::Librocov,
        ["`instrumented`, `all`, `none`", markdown::OBJECTS, ""],
        "Chooses the device ELFs that librocov and `rocov run` keep.",
    ),
    setting(
        "ROCOV_OBJECTS_MAX",
        Reader::Librocov,
        ["bytes, with `K`, `M` or `G`", markdown::OBJECTS_MAX, ""],
        "Limits the bytes of device ELFs that a process writes. `rocov run` adds those of code that was never \
         launched, as long as all ELFs of the directory stay below the limit. One line reports the first ELF \
         that has no room.",
    ),
    setting(
        "ROCOV_CUPTI",
        Reader::Librocov,
        ["path of `libcupti.so`", "found", ""],
        "The CUPTI library, for [NVIDIA GPUs](../guides/nvidia.md).",
    ),
    setting(
        "ROCOV_DRAIN",
        Reader::Librocov,
        ["`rocov`, `llvm`", "none", "`rocov run --drain`"],
        "Chooses who drains a program that contains [LLVM's own \
         drain](../guides/compile.md#llvms-own-drain). `rocov run` sets it to `rocov`. If it is not set, \
         librocov stands down for LLVM's drain and reports that. librocov always drains code with [copies of \
         its counters](../internals/beside-llvm.md#code-with-copies-of-its-counters).",
    ),
    setting(
        "ROCOV_JOURNAL",
        Reader::Librocov,
        ["a file", "none", "`rocov run`"],
        "Names the file in which each process notes for `rocov run` what became of its counters. The modelled GPU notes \
         mistakes of kernels and kernels without progress there.",
    ),
    setting(
        "ROCOV_PAUSED",
        Reader::Librocov,
        ["`0`, `1`", markdown::PAUSED, "`rocov run --paused`"],
        "`1` counts nothing until the program calls `rocov_start`.",
    ),
    setting(
        "ROCOV_LABEL",
        Reader::Librocov,
        [
            "a [label](../guides/labels.md)",
            "none",
            "`rocov run --label`",
        ],
        "Labels the profiles, which then lie in a directory of that label.",
    ),
    setting(
        "ROCOV_CONTROL",
        Reader::Librocov,
        [
            "`0`, `1`, or the absolute path of a directory",
            "`0`",
            "`rocov run --control`",
        ],
        "Makes the [socket](control.md) for `rocov dump` and `rocov status`, in that directory or in the \
         usual one.",
    ),
    setting(
        "ROCOV_SNAPSHOT_EVERY",
        Reader::Librocov,
        [
            "`10ms` to `1440m`, in `ms`, `s` or `m`",
            "none",
            "`rocov run --snapshot-every`",
        ],
        "Drains the counters at this interval.",
    ),
    setting(
        "ROCOV_SNAPSHOT_SIGNAL",
        Reader::Librocov,
        ["`HUP`, `USR1`, `USR2`", "none", "`rocov run --snapshot-on`"],
        "Drains the counters on this signal.",
    ),
    setting(
        "ROCOV_ROCTX",
        Reader::Librocov,
        ["`0`, `1`", markdown::ROCTX, "`rocov run --roctx`"],
        "`1` takes [ROCTx ranges](../guides/roctx.md) as labels, and marks as dumps.",
    ),
    setting(
        "ROCOV_INSTRUMENT",
        Reader::Librocov,
        [
            "`0`, `1`, `reached`",
            markdown::INSTRUMENT,
            "`rocov run --instrument`",
        ],
        "`1` has `librocov_instrument.so` put counters into [CUDA code](../guides/instrument.md) while the program \
         loads it, and `reached` those that only record whether code ran.",
    ),
    setting(
        "ROCOV_CACHE",
        Reader::Librocov,
        [
            "an absolute path",
            "`$XDG_CACHE_HOME/rocov` or `~/.cache/rocov`",
            "",
        ],
        "Names the directory of the [cache](../guides/instrument.md#the-cache) of `--instrument`. A relative path means \
         no cache.",
    ),
    setting(
        "ROCOV_CACHE_MAX",
        Reader::Librocov,
        [
            "bytes, with `K`, `M` or `G` behind",
            markdown::CACHE_MAX,
            "",
        ],
        "Limits the size of each folder of the cache. rocov removes what was not used for the longest time.",
    ),
    setting(
        "XDG_RUNTIME_DIR",
        Reader::Librocov,
        ["a directory", "none", ""],
        "Holds the directory `rocov` with the socket, if it belongs to the user. The command reads it too. \
         Without it, the socket is in `/tmp/rocov-UID`.",
    ),
    setting(
        "ROCR_VISIBLE_DEVICES",
        Reader::Librocov,
        ["as ROCr reads it", "none", ""],
        "Limits the GPUs for which code that was never launched counts as not run.",
    ),
    setting(
        "HSA_TOOLS_LIB",
        Reader::Librocov,
        ["as ROCr reads it", "none", ""],
        "ROCr loads the libraries that it names as tools. librocov adds itself if the program is [linked \
         with ROCr first](../guides/without-run.md#how-hip-finds-librocov).",
    ),
    setting(
        "ROCOV_PTXAS",
        Reader::Command,
        [
            "path of ptxas",
            "Triton's own, or that on the `PATH`",
            "`rocov run --instrument`",
        ],
        "Names the assembler to which the stand-in for Triton's hands the changed PTX: the value that \
         `TRITON_PTXAS_PATH` had.",
    ),
    setting(
        "ROCOV_PTXAS_BLACKWELL",
        Reader::Command,
        [
            "path of ptxas",
            "Triton's own, or that on the `PATH`",
            "`rocov run --instrument`",
        ],
        "Does that for `TRITON_PTXAS_BLACKWELL_PATH`.",
    ),
    setting(
        "LD_PRELOAD",
        Reader::Command,
        ["as the loader reads it", "none", "`rocov run`"],
        "`rocov run` puts its libraries before those that it names.",
    ),
    setting(
        "XDG_CACHE_HOME",
        Reader::Command,
        ["an absolute path", "`~/.cache`", ""],
        "Holds the directory `rocov` with the [cache](files.md#the-cache) of device code in host files, and that of \
         `--instrument`.",
    ),
    setting(
        "ROCOV_LIBRARY_DIR",
        Reader::Command,
        ["a directory", "none", ""],
        "Holds `librocov.so` and `librocov_modelgpu.so`, if they are neither beside the command nor in \
         `../lib`.",
    ),
    setting(
        "ROCM_PATH",
        Reader::Command,
        ["a directory", markdown::ROCM_PATH, ""],
        "Names the directory of ROCm, with its clang and LLVM tools.",
    ),
    setting(
        "SOURCE_DATE_EPOCH",
        Reader::Command,
        ["seconds since 1970", "the present time", ""],
        "Sets the time stamp of a Cobertura report and of pages, so that two reports can be equal byte by byte.",
    ),
    setting(
        "ROCOV_LIBRARY",
        Reader::Pytest,
        ["a file", "none", ""],
        "Names the `librocov.so` to call, if it is neither preloaded nor linked into the program.",
    ),
    setting(
        "ROCOV_MODELGPU",
        Reader::ModelGpu,
        [
            "`TARGET[xN][,TARGET[xN]...]`",
            "none: no model",
            "`rocov run --gpu`",
        ],
        "Lists the modelled GPUs: 1 to 8 of the targets `gfx90a`, `gfx942`, `gfx950`, `gfx1100` and `gfx1201`.",
    ),
    setting(
        "ROCOV_MODELGPU_BAR",
        Reader::ModelGpu,
        ["`small`, `large`", "`large`", ""],
        "`large` lets the host reach GPU memory. With `small` it cannot, as without a large (resizable) BAR.",
    ),
    setting(
        "ROCOV_MODELGPU_VRAM_MIB",
        Reader::ModelGpu,
        ["`1` to `1048576`", "`16384`", ""],
        "Sets the memory of each GPU, in MiB.",
    ),
    setting(
        "ROCOV_MODELGPU_XGMI",
        Reader::ModelGpu,
        ["`0`, `1`", "`0`", ""],
        "`1` links the GPUs by XGMI instead of PCIe.",
    ),
    setting(
        "ROCOV_MODELGPU_LOG",
        Reader::ModelGpu,
        ["`FILE[:LEVEL]`, with `2` for standard error", "none", ""],
        "Logs queues, copies and dispatches with the number of instructions that their waves executed (level \
         1, the default), or every call (level 2).",
    ),
    setting(
        "ROCOV_MODELGPU_INSTRUCTIONS",
        Reader::ModelGpu,
        ["a file, or `2` for standard error", "none", ""],
        "Appends a line for each kernel when the program ends: [the instructions that its waves \
         executed](../internals/model-gpu.md#count-instructions).",
    ),
    setting(
        "ROCOV_MODELGPU_TRACE",
        Reader::ModelGpu,
        ["`0`, `1`", "`0`", "`rocov run --trace`"],
        "`1` counts [the executions of each instruction](../guides/trace.md), and librocov adds them to the \
         profiles.",
    ),
    setting(
        "ROCOV_MODELGPU_THREADS",
        Reader::ModelGpu,
        [
            "`1` to `1024`",
            "the processors that the program may use",
            "",
        ],
        "Sets the most threads that [run the workgroups of a kernel](../internals/model-gpu.md#threads).",
    ),
    setting(
        "ROCOV_MODELGPU_TMP",
        Reader::ModelGpu,
        ["a directory", "`$TMPDIR`, then `/tmp`", ""],
        "Takes the files of the model.",
    ),
    setting(
        "ROCOV_BLESS",
        Reader::Tests,
        ["anything", "none", "`cargo xtask bless`"],
        "Makes tests write the records that they compare: help texts, generated chapters, `rocov.h` and others.",
    ),
    setting(
        "ROCOV_STACKS_DIR",
        Reader::Tests,
        ["a directory", "`.stacks`", ""],
        "Holds the compilers and runtimes that `tools/stacks` unpacks.",
    ),
    setting(
        "ROCOV_TEST_KILLS",
        Reader::Tests,
        ["a number", "see the test", "`tools/dev/kill`"],
        "Sets the number of processes that the test of kills starts.",
    ),
    setting(
        "ROCOV_TEST_MUTANTS",
        Reader::Tests,
        ["a range of seeds, such as `0..9999`", "see the test", ""],
        "Chooses the seeds by which code objects are damaged.",
    ),
    setting(
        "ROCOV_TEST_LEVELS",
        Reader::Tests,
        [
            "`all`, or empty",
            "each GPU has a part of the levels",
            "`tools/test --stacks all`",
        ],
        "Compiles the kernels of tests for each modelled GPU at all levels of optimization.",
    ),
    setting(
        "ROCOV_TEST_CLANG",
        Reader::Tests,
        ["a release, such as `23`", "`22`", ""],
        "Names the clang that compiles most tests. Its LLVM tools must be the first on `PATH`.",
    ),
    setting(
        "ROCOV_TEST_STACK",
        Reader::Tests,
        [
            "`debian12` or a runtime of `tools/stacks`",
            "the newest that is fetched",
            "",
        ],
        "Names the HIP and ROCr that most tests of programs run on.",
    ),
];
