//! The command line of `rocov dump`.

use clap::Args;
use rocov::settings::Interval;
use rocov::store::Label;

use super::process_id;

/// Make a running program write profiles of its counts
///
/// Start the program with `rocov run --control`, as this user. The counts since its last dump, or since its start,
/// become profiles with a label, in the folder labels of its data directory. A report adds up all labels, and shows
/// each of them with --per-test. Nothing is counted twice.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0, even if nothing was counted; 1 if the program could not be reached, or some \
counts are lost; 2 for a usage error.")]
pub(crate) struct DumpArguments {
    /// The program's process id
    #[arg(value_name = "PID", value_parser = process_id)]
    pub(crate) pid: u32,

    /// The label for the profiles [default: dump-1, dump-2 and so on]
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<Label>,

    /// Zero the counters on the GPU afterwards
    #[arg(long)]
    pub(crate) reset: bool,

    /// Write only the counts of a period of this length that starts now, such as 500ms, 2s or 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<Interval>,
}
