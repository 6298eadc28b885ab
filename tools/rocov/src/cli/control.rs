//! Asks a program that runs.

use clap::Args;
use rocov::control::words::Interval;
use rocov::output::Label;

/// Have a running program write down what it has counted
///
/// The program was started with `rocov run --control`, as this user. What it counted since its last
/// dump, or its start, becomes profiles of a label, below labels in its data directory: a report takes
/// all of them together, and tells them apart with --per-test. Nothing is counted twice.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, also when nothing was counted; 1 when the program could not be asked, or some counts \
are lost; 2 for a usage error.")]
pub(crate) struct DumpArguments {
    /// The program's process id
    #[arg(value_name = "PID", value_parser = process_id)]
    pub(crate) pid: u32,

    /// The label of the profiles [default: dump-1, dump-2 and so on]
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<Label>,

    /// Zero the counters on the GPU afterwards
    #[arg(long)]
    pub(crate) reset: bool,

    /// Take what is counted within this time from now alone, such as 500ms, 2s or 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<Interval>,
}

/// Say what a running program has to drain, and where its profiles go
///
/// The program was started with `rocov run --control`, as this user.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 when the program could not be asked; 2 for a usage error.")]
pub(crate) struct StatusArguments {
    /// The program's process id
    #[arg(value_name = "PID", value_parser = process_id)]
    pub(crate) pid: u32,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads the number of a process.
fn process_id(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| {
        format!("a process id is a number; `pgrep -x {word}` prints that of a program by its name")
    })
}
