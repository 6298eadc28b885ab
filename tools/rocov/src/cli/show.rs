//! The command line of `rocov show`.

use std::path::PathBuf;

use clap::Args;

/// Describe files: their kind, contents and damage; or show the instructions of a function that ran
///
/// FILE can be any file in the data directory, such as a raw profile of any version, a registry (.kernels.json),
/// sections with an unknown raw version (.sections) or a device ELF. It can also be any file that contains device code,
/// such as a program, a library, a bundle, an offload binary or a kpack archive.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 if a file is of none of these kinds, or is damaged, although the rest is shown; 2 for a usage \
error.")]
pub(crate) struct ShowArguments {
    /// Raw profiles, registries, saved sections, device ELFs, programs, libraries, bundles
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,

    /// Print the instructions of a kernel or function, with the waves and lanes that executed each. FILE is a data
    /// directory that `rocov run --trace` or `rocov run --instrument` wrote to
    ///
    /// Use the mangled name, or the demangled name with or without parameters. llvm-objdump disassembles traced code.
    /// PTX is shown with the number of threads that entered each basic block.
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) disassemble: Option<String>,
}
