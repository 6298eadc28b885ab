//! The command line of `rocov kernels`.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use glob::Pattern;

use super::DEFAULT_DATA_DIRECTORY;
use super::exclusions::ExclusionArguments;

/// List the kernels that programs loaded, with their resources and coverage
///
/// Reads the kernel registries in DIR, one for each process, and lists each kernel in each code object: its registers,
/// bytes of LDS and scratch, spilled registers, work-items per wave, the loads of its code object, whether it is
/// instrumented, how many work-items entered it, the lines that ran, its name and its source. A dash stands for a value
/// that no profile contains. Leaves out HIP's own kernels unless you use --all. With --uncovered or --arch, also lists
/// the programs' kernels for archs on which nothing ran. The exclusions in the table `[report]` of rocov.toml apply.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, even if no kernel is listed; 1 if no kernel matches an arch or a name that you gave, or if a registry \
could not be read or an address is not known, although the rest is printed; 2 for a usage error.")]
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

    /// List only kernels for this target, with or without features; can be repeated
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Vec<String>,

    /// List only kernels whose symbol or name, with or without its signature, matches; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) name: Vec<Pattern>,

    /// Also list HIP's own kernels, such as those that it uses for copies: `__amd_rocclr_...`
    #[arg(long)]
    pub(crate) all: bool,

    /// List only instrumented kernels
    #[arg(long)]
    pub(crate) instrumented: bool,

    /// List only kernels that never ran, including those for archs on which nothing ran. Leaves out excluded kernels
    #[arg(long)]
    pub(crate) uncovered: bool,

    #[command(flatten)]
    pub(crate) exclusions: ExclusionArguments,

    /// Sort by this column: numbers from the largest down, text from A to Z
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<KernelColumn>,

    /// Instead, show the kernel or load at this device address, such as a kernel object; can be repeated
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with_all = ["arch", "name", "all", "instrumented", "uncovered", "sort"]
    )]
    pub(crate) address: Vec<Address>,

    /// The moment for which to look up --address, as the number of the process's last load or unload
    #[arg(long, value_name = "N", requires = "address")]
    pub(crate) generation: Option<u64>,

    /// The process in which to look up --address
    #[arg(long, value_name = "PID", requires = "address")]
    pub(crate) pid: Option<u32>,

    /// Add up the runs of all builds of a program or library, not only those of the newest
    #[arg(long)]
    pub(crate) all_builds: bool,

    /// Also look for device ELFs in these files, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Use llvm-profdata and llvm-cov from this directory for profiles with a raw version that rocov does not support
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}

/// An address on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) u64);

impl FromStr for Address {
    type Err = ParseIntError;

    /// Takes hexadecimal digits, with 0x before them or not.
    fn from_str(value: &str) -> Result<Self, ParseIntError> {
        let digits = value.strip_prefix("0x").unwrap_or(value);
        u64::from_str_radix(digits, 16).map(Self)
    }
}

/// A column, as `--sort` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelColumn {
    /// Target with features.
    Arch,
    /// Vector registers.
    Vgprs,
    /// Scalar registers.
    Sgprs,
    /// Accumulation registers.
    Agprs,
    /// Bytes of LDS per workgroup.
    Lds,
    /// Bytes of scratch per work-item.
    Scratch,
    /// Spilled registers.
    Spills,
    /// Work-items per wave.
    Wavefront,
    /// Loads of the code object.
    Loads,
    /// Yes if it has counters.
    Instrumented,
    /// Work-items that entered it.
    Count,
    /// Share of its lines that ran.
    Lines,
    /// Name.
    Kernel,
    /// Source file.
    Source,
}
