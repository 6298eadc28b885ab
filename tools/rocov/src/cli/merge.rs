//! The command line of `rocov merge`.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};

use crate::data::profile_header;

/// Merge the profiles of many processes, ranks and GPUs
///
/// rocov adds up the profiles of each code object as fast as it can read them. You can merge pooled directories again,
/// in any order and grouping, with the same result. Many tasks can share a merge: assign a part to each task (--shard),
/// and then merge their pooled directories. Counts are capped at 2^56, the largest that llvm-profdata accepts.
#[derive(Args)]
#[command(override_usage = "rocov merge INPUT... (-o OUT | --pgo OUT | --pooled DIR) [OPTIONS]")]
#[command(after_help = "\
Exit status: 0 if the merge was written, or if --if-exists=keep found an existing one; 1 if \
nothing was written, or if damaged or missing inputs were left out, which standard error names, unless --failure-mode \
allows that; 2 for a usage error.")]
pub(crate) struct MergeArguments {
    /// Profiles, directories that contain profiles at any depth, and globs that match them
    ///
    /// rocov treats a name as a glob if no file has that name. Quote globs, so that the shell does not expand them to a
    /// million names. A file that is named twice is counted only once.
    #[arg(value_name = "INPUT", required_unless_present = "input_files")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Also merge the inputs in this file, one on each line; - is standard input
    #[arg(short = 'f', long, value_name = "LIST")]
    pub(crate) input_files: Option<PathBuf>,

    /// Write indexed profiles: OUT/ARCH.profdata for each GPU architecture and OUT/host.profdata, or
    /// the file OUT if that ends in .profdata
    ///
    /// If OUT is a directory, it also gets the files that --pooled writes, so `rocov report OUT` works. If OUT is an
    /// input, contains one or is inside one, rocov does not write raw profiles to it, because they would be counted
    /// twice.
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["pooled", "pgo"])]
    pub(crate) output: Option<PathBuf>,

    /// Write indexed profiles as -o does, and print the flags that make clang optimize with them
    ///
    /// Only the flags go to standard output, so you can use `clang++ $(rocov merge DIR --pgo OUT) ...`. If functions in
    /// several code objects have the same name and control flow, their counts add up.
    #[arg(long, value_name = "OUT", conflicts_with = "output")]
    pub(crate) pgo: Option<PathBuf>,

    /// Write the profile of --pgo even if GPU code adds to its counters without atomic operations
    ///
    /// Such counts are too low, by a different factor for each branch. `-fprofile-update=atomic` makes them correct.
    #[arg(long, requires = "pgo")]
    pub(crate) allow_non_atomic: bool,

    /// Write a directory of raw profiles, one for each code object, which you can report on or merge again
    ///
    /// The profiles go to DIR/profraw. DIR also gets the device ELFs from the objects directories of the inputs, as
    /// hard links if possible, and one registry merged from the kernel registries (.kernels.json) in the directories.
    /// DIR must be empty, must not exist, or must come from an earlier merge, which is replaced. It appears only when
    /// it is complete.
    #[arg(long, value_name = "DIR")]
    pub(crate) pooled: Option<PathBuf>,

    /// If OUT or DIR already exists: replace it, keep it and merge nothing, or fail
    ///
    /// An empty directory is treated as missing. With `keep`, a job that runs again only does what is missing, because
    /// DIR appears only when it is complete.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) if_exists: IfExists,

    /// Merge only the share of task I of N. Each process in the inputs belongs to one share
    ///
    /// I is at least 0 and less than N. The shares depend on a hash of the paths, so all tasks must see the inputs
    /// under the same paths. A share may be empty; see --allow-empty.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["output", "pgo"])]
    pub(crate) shard: Option<ShardNumber>,

    /// If no input has a profile, write a pooled directory without any, and exit with status 0
    #[arg(long, requires = "pooled")]
    pub(crate) allow_empty: bool,

    /// Keep the counts of each label separate, for `rocov report --per-test` on the merged profiles
    ///
    /// A code object then has a raw profile for each label, and the merge needs memory for each of them.
    #[arg(long, conflicts_with = "pgo")]
    pub(crate) per_test: bool,

    /// Keep the record of each process, with the addresses of its kernels
    ///
    /// Without it, the merged registry has one record for all processes that ran the same build on the same kind of
    /// GPU. Reports need nothing else, but `rocov kernels --address` and `rocov export` need the records of processes.
    #[arg(long, conflicts_with = "pgo")]
    pub(crate) processes: bool,

    /// Merge only profiles for this GPU architecture, as in their names; use host for host code
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,

    /// Add up the runs of all builds of a program or library, not only those of the newest
    #[arg(long)]
    pub(crate) all_builds: bool,

    /// When damaged or missing inputs make the merge fail. In every mode, rocov names them and merges the others
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) failure_mode: FailureMode,

    /// The number of threads that read and add up profiles [default: one for each processor]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) num_threads: Option<NonZeroUsize>,

    /// Leave functions that never ran out of indexed profiles, to make them smaller for -fprofile-use
    #[arg(long)]
    pub(crate) sparse: bool,

    /// Print only problems
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Merge with llvm-profdata from this directory
    ///
    /// Without it, rocov writes indexed profiles itself.
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}

impl MergeArguments {
    /// The place of indexed profiles, if any are written.
    pub(crate) fn indexed(&self) -> Option<&Path> {
        self.output.as_deref().or(self.pgo.as_deref())
    }

    /// The directory that is written in addition to indexed profiles that a report can be made of.
    pub(crate) fn data(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|output| !profile_header::is_indexed(output))
    }
}

/// The treatment of an output that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfExists {
    /// Replace it, if it comes from an earlier merge
    #[default]
    Replace,
    /// Keep it, and merge nothing
    Keep,
    /// Fail
    Fail,
}

/// The number of a task among those that do one merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardNumber {
    /// From 0 on.
    pub(crate) index: u32,
    /// The number of all tasks.
    pub(crate) of: u32,
}

impl FromStr for ShardNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of => Ok(Self { index, of }),
            Some((index, of)) => Err(format!(
                "task {index} of {of}: the first number is 0 or more, and less than the second"
            )),
            None => Err("expected I/N, such as 0/32 for the first of 32 tasks".to_owned()),
        }
    }
}

/// When damaged inputs make a merge fail, by its exit status. The names are llvm-profdata's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailureMode {
    /// When there are any
    #[default]
    Any,
    /// When all inputs are damaged or missing
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
