//! The command line: what a user can type, and the help texts.

use crate::coverage::{Filters, Options};
use crate::generated::{CompletionsArguments, ManArguments};
use crate::gpu::ModelGpus;
use crate::kernels::{Address, Column};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use glob::Pattern;
use rocov::output::Label;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Where profiles go and are looked for when no directory is given.
pub(crate) const DEFAULT_DATA_DIRECTORY: &str = "rocov-data";

/// Coverage of GPU code: which lines of a HIP program's kernels ran.
#[derive(Parser)]
#[command(name = "rocov", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Report(Box<ReportArguments>),
    Diff(DiffArguments),
    Merge(MergeArguments),
    Kernels(KernelsArguments),
    Export(ExportArguments),
    Extract(ExtractArguments),
    Show(ShowArguments),
    Flags(FlagsArguments),
    Doctor(DoctorArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
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

/// Report which lines of the GPU code ran
///
/// Merges the profiles of DIR per GPU architecture into DIR/ARCH.profdata and prints a table for each
/// and, for several, of all, with the figures of llvm-cov. The device ELFs are those that librocov kept in DIR/objects when they
/// were loaded. What is missing there is taken out of the objects that are given, and kept.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 when a report was printed, also when it had to leave out a damaged profile, a source \
that is not there or what matches nothing, which standard error says; 1 when there was nothing to \
report or a tool failed; 2 for a usage error; 3 when a gate did not hold: then what had to be left \
out counts too.")]
pub(crate) struct ReportArguments {
    /// The directory that `rocov run` wrote the profiles to
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// Look in these files too: the program, libraries with kernels, or device ELFs (.hsaco,
    /// bundled or not)
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Print annotated source instead of the table, of all files or of these
    #[arg(
        long,
        value_name = "SOURCE",
        num_args = 0..,
        conflicts_with_all = ["include", "exclude"]
    )]
    pub(crate) show: Option<Vec<PathBuf>>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Say nothing on standard error but errors, and gates that do not hold
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) options: Options,
}

/// Compare what ran in two data directories or reports: what was gained and what was lost
///
/// Totals of each arch and of all, files whose figures changed, lines newly covered and newly missed,
/// and functions that now run, no longer run, are new or are gone. The two may have been compiled from
/// different sources, in different directories: a function is known by its symbol, and its lines are
/// compared by their places in it where its regions begin and end on the same lines. Where they do
/// not, the function has changed, and its figures alone are compared. Lines have the numbers that
/// they have after.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 when the comparison was printed; 1 when one of the two has nothing to compare or a tool \
failed; 2 for a usage error; 3 with --fail-on-loss when something was lost.")]
pub(crate) struct DiffArguments {
    /// The data directory of the earlier runs, or what `rocov report --json` wrote of them
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The same of the later ones
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    /// Look for device ELFs in these files too, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Fail when what ran before and is still there does not run, or an arch or a file that ran is not
    /// there
    #[arg(long)]
    pub(crate) fail_on_loss: bool,

    /// Write JSON
    #[arg(long, help_heading = "Formats")]
    pub(crate) json: bool,

    /// Write Markdown, for a pull request or $GITHUB_STEP_SUMMARY
    #[arg(long, conflicts_with = "json", help_heading = "Formats")]
    pub(crate) markdown: bool,

    /// Write to FILE instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    pub(crate) output_path: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) filters: Filters,
}

/// Merge the profiles of many processes, ranks and GPUs
///
/// Profiles of one code object are added up as fast as they can be read; llvm-profdata then merges
/// one file for each code object. What merges have put into pooled directories can be merged
/// further, in any order and grouping, to the same result. Counts stop at 2^56, the largest that
/// llvm-profdata takes. Profiles of host code are merged by llvm-profdata alone.
#[derive(Args)]
#[command(override_usage = "rocov merge INPUT... (-o OUT | --pgo OUT | --pooled DIR) [OPTIONS]")]
#[command(after_help = "\
Exit status: 0 when the merge was written, also when --failure-mode let it leave out an input, which \
standard error says; 1 when nothing was written; 2 for a usage error.")]
pub(crate) struct MergeArguments {
    /// Directories with profiles (and directories below them), profiles, and globs of either
    ///
    /// A glob is taken as one where no file has that name: quote it, and a million files do not make
    /// the command line too long. A file that is given twice counts once.
    #[arg(value_name = "INPUT", required_unless_present = "input_files")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Merge also what this file names, one input on each line; - is standard input
    #[arg(short = 'f', long, value_name = "LIST")]
    pub(crate) input_files: Option<PathBuf>,

    /// Write indexed profiles: OUT/ARCH.profdata for each GPU architecture and OUT/host.profdata, or
    /// the file OUT if that ends in .profdata
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["pooled", "pgo"])]
    pub(crate) output: Option<PathBuf>,

    /// Write indexed profiles as -o does, and print the flags that have clang optimize by them
    ///
    /// The flags are all that goes to standard output, for use as `clang++ $(rocov merge DIR --pgo
    /// OUT) ...`. Functions of one name and control flow in several code objects add up.
    #[arg(long, value_name = "OUT", conflicts_with = "output")]
    pub(crate) pgo: Option<PathBuf>,

    /// Write a directory of raw profiles, one for each code object, to report on or to merge further
    ///
    /// Device ELFs in objects directories of the inputs go with them, by hard links where possible, and
    /// the kernel registries (.kernels.json) of the directories, as one. DIR must be empty or not exist; it appears when all is in it.
    #[arg(long, value_name = "DIR")]
    pub(crate) pooled: Option<PathBuf>,

    /// Take only profiles of this GPU architecture, as their names have it; host for host code
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,

    /// When to fail for inputs that are damaged or missing; each is named
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) failure_mode: FailureMode,

    /// Threads that read and add [default: one for each processor]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) num_threads: Option<NonZeroUsize>,

    /// Leave functions that never ran out of indexed profiles: smaller, for -fprofile-use
    #[arg(long)]
    pub(crate) sparse: bool,

    /// Say nothing but what is wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Take llvm-profdata from this directory instead of looking for it
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}

impl MergeArguments {
    /// Where indexed profiles go, if any are written.
    pub(crate) fn indexed(&self) -> Option<&Path> {
        self.output.as_deref().or(self.pgo.as_deref())
    }
}

/// When damaged inputs make a merge fail. The names are llvm-profdata's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailureMode {
    /// When there is one
    #[default]
    Any,
    /// When all are
    All,
    /// Never
    Warn,
}

impl fmt::Display for FailureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::All => "all",
            Self::Warn => "warn",
        })
    }
}

/// Take device ELFs out of the file that holds them
///
/// The file is a program or library, or what its kernels were bundled into: a bundle of
/// clang-offload-bundler, compressed or not, or a binary of clang-offload-packager. Each device ELF
/// is written to TARGET.IDENTITY.elf. A file that has the same contents already is left as it is.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 when there is no device ELF of such a target, or a part of the file is damaged; 2 \
for a usage error. What can be read of a damaged file is written all the same.")]
pub(crate) struct ExtractArguments {
    /// The program, library, or bundle
    #[arg(value_name = "BINARY")]
    pub(crate) file: PathBuf,

    /// Where the device ELFs go
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,

    /// Take only those for targets that match, such as gfx90a* or gfx90a:xnack-
    #[arg(long, value_name = "GLOB")]
    pub(crate) target: Option<Pattern>,

    /// Print target, identity and size of each, and write nothing
    #[arg(long)]
    pub(crate) list: bool,
}

/// List the kernels that programs loaded: what they take, and how much of them ran
///
/// Reads the kernel registries of DIR, one for each process, and lists each kernel of each code
/// object: registers, bytes of LDS and scratch, spilled registers, work-items of a wave, loads of its
/// code object, whether it counts, entries by work-items, lines that ran, name and source. What no
/// profile says is a dash.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 when a registry could not be read or an address is not known, which the others do \
not suffer from; 2 for a usage error.")]
pub(crate) struct KernelsArguments {
    /// The directory that `rocov run` wrote to
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print symbols instead of demangled names
    #[arg(long)]
    pub(crate) mangled: bool,

    /// Only kernels for this target, with features or without; can be repeated
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Vec<String>,

    /// Only kernels whose symbol or name, with its signature or without, matches; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) name: Vec<Pattern>,

    /// Only kernels that count
    #[arg(long)]
    pub(crate) instrumented: bool,

    /// Only kernels that a profile says never ran
    #[arg(long)]
    pub(crate) uncovered: bool,

    /// Sort by this column: numbers from the largest, text from A
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<Column>,

    /// Say instead what was at this device address, such as a kernel object; can be repeated
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with_all = ["arch", "name", "instrumented", "uncovered", "sort"]
    )]
    pub(crate) address: Vec<Address>,

    /// The moment that --address asks about: the number of the process's last load or unload
    #[arg(long, value_name = "N", requires = "address")]
    pub(crate) generation: Option<u64>,

    /// The process that --address asks about
    #[arg(long, value_name = "PID", requires = "address")]
    pub(crate) pid: Option<u32>,

    /// Look for device ELFs in these files too, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}

/// Write what is known of the kernels that programs loaded for other tools
///
/// Reads the kernel registries of DIR, one for each process. The format rocpd is the SQLite database
/// of ROCm's rocprofv3, schema version 3: nodes, processes, agents, code objects and kernel symbols,
/// to be joined with one that rocprofv3 wrote by URI and kernel name.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 when nothing could be written, or a registry could not be read, which the others \
do not suffer from; 2 for a usage error.")]
pub(crate) struct ExportArguments {
    /// The directory that `rocov run` wrote to
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// What to write
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Format,

    /// Where to [default: rocpd.db in DIR]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
}

/// A file format of other tools.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// ROCm's database of a profile.
    Rocpd,
}

/// Say what a file is, what is in it, and what is wrong with it
///
/// The file can be anything of the data directory: raw profiles of all versions, registries
/// (.kernels.json), sections that were saved whole as their raw version is not known (.sections),
/// device ELFs. Or anything that holds device code: programs, libraries, bundles, offload binaries.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 when a file is none of these or damaged, of which the rest is shown all the same; 2 \
for a usage error.")]
pub(crate) struct ShowArguments {
    /// Raw profiles, registries, saved sections, device ELFs, programs, libraries, bundles
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
}

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
