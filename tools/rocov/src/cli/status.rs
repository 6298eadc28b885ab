//! The command line of `rocov status`.

use clap::Args;

use super::process_id;

/// Show the code objects that a running program has loaded, and the location of its profiles
///
/// Start the program with `rocov run --control`, as this user.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 if the program could not be reached; 2 for a usage error.")]
pub(crate) struct StatusArguments {
    /// The program's process id
    #[arg(value_name = "PID", value_parser = process_id)]
    pub(crate) pid: u32,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
