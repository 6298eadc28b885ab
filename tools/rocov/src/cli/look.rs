//! Looks at what is in files: kernels, device ELFs, anything.

use super::DEFAULT_DATA_DIRECTORY;
use crate::kernels::{Address, Column};
use clap::{Args, ValueEnum};
use glob::Pattern;
use std::path::PathBuf;

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

    /// Add up the runs of all builds of a program or library, not only those of the newest
    #[arg(long)]
    pub(crate) all_builds: bool,

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

/// Remove what rocov has written, and nothing else
///
/// Profiles, device ELFs, kernel registries, what `rocov merge` and `rocov export` have written there, and
/// what killed processes have left half written; also what lies beside the profiles of an own
/// `LLVM_PROFILE_FILE`. Files are told by their names and, if need be, by how they start. Everything else
/// stays, with the directories that it is in. Links are not followed.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, also when nothing was there; 1 when something could not be removed, which standard error \
says; 2 for a usage error.")]
pub(crate) struct CleanArguments {
    /// The directory that `rocov run` wrote to, or the program by its own `LLVM_PROFILE_FILE`
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directory: PathBuf,

    /// Remove nothing, and list what would be removed
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
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
