//! The command line of `rocov show`.

use std::path::PathBuf;

use clap::Args;

/// Describe files: their kind, contents and damage; or show the instructions of a function that ran
///
/// A file can be any file of the data directory: raw profiles of all versions, registries (.kernels.json), sections of
/// an unknown raw version (.sections), device ELFs. It can also be any file that contains device code: programs,
/// libraries, bundles, offload binaries, kpack archives.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 if a file is none of these, or is damaged and the rest is shown; 2 for a \
usage error.")]
pub(crate) struct ShowArguments {
    /// Raw profiles, registries, saved sections, device ELFs, programs, libraries, bundles
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,

    /// Print the instructions of a kernel or function, with the waves and lanes that executed each: FILE is a data
    /// directory of `rocov run --trace`, or of `rocov run --instrument`
    ///
    /// The name is the mangled one, or the demangled one with or without its parameters. llvm-objdump disassembles
    /// traced code. PTX is shown with the threads that entered each basic block.
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) disassemble: Option<String>,
}
