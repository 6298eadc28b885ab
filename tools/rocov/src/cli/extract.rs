//! The command line of `rocov extract`.

use std::path::PathBuf;

use clap::Args;
use glob::Pattern;

/// Extract device ELFs and PTX from the file that contains them
///
/// The file is a program, a library, a bundle from clang-offload-bundler (compressed or not), a binary from
/// clang-offload-packager, or a CUDA fat binary. rocov writes each device ELF to TARGET.IDENTITY.elf, and each PTX to
/// TARGET.IDENTITY.ptx. If a file already has these contents, it is not changed.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 if there is no device ELF for such a target, or if part of the file is damaged and the rest is \
written; 2 for a usage error.")]
pub(crate) struct ExtractArguments {
    /// The program, library, or bundle
    #[arg(value_name = "BINARY")]
    pub(crate) file: PathBuf,

    /// The directory for the device ELFs
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,

    /// Extract only device ELFs and PTX for targets that match, such as gfx90a*, gfx90a:xnack- or sm_90
    #[arg(long, value_name = "GLOB")]
    pub(crate) target: Option<Pattern>,

    /// Print the target, identity and size of each, without writing anything
    #[arg(long)]
    pub(crate) list: bool,
}
