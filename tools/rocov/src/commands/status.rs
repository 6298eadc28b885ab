//! `rocov status`: prints the loaded code objects of a running program, and the place of its profiles.

use rocov::control::{Answer, Request};
use serde::Serialize;

use crate::cli::StatusArguments;
use crate::system::control::ask;
use crate::term::exit_status::CommandResult;
use crate::term::plural::count;
use crate::term::print;

/// Version of the JSON. Fields may be added to it.
const SCHEMA: u32 = 1;

/// The answer of a process.
#[derive(Serialize)]
struct ProcessStatus<'a> {
    rocov_status: u32,
    pid: u32,
    /// GPUs.
    agents: u64,
    /// Instrumented code objects that are loaded, each as often as it is.
    loads: u64,
    /// The label of the present counts: null without one.
    label: Option<&'a str>,
    /// True if the present counts are left out, as the program has no window open.
    left_out: bool,
    /// The directory of the profiles.
    directory: &'a str,
}

impl<'a> ProcessStatus<'a> {
    fn new(pid: u32, answer: &'a Answer) -> Self {
        Self {
            rocov_status: SCHEMA,
            pid,
            agents: answer.number("agents"),
            loads: answer.number("loads"),
            label: answer.all("label").next(),
            left_out: answer.get("left-out") == "yes",
            directory: answer.get("directory"),
        }
    }
}

/// Prints the answer of the program.
pub(crate) fn status(arguments: &StatusArguments) -> CommandResult {
    let answer = ask(arguments.pid, &Request::Status)?;
    let state = ProcessStatus::new(arguments.pid, &answer);
    if arguments.json {
        let json = serde_json::to_string(&state).map_err(anyhow::Error::from)?;
        print::text(format!("{json}\n").as_bytes())?;
        return Ok(0);
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut text = format!(
        "process    {}: {}, {}\nprofiles   {}\n",
        state.pid,
        count(number(state.agents), "GPU"),
        count(number(state.loads), "instrumented code object"),
        state.directory
    );
    if let Some(label) = state.label {
        text += &format!("label      {label}\n");
    }
    if state.left_out {
        text += "left out   the current counts: no window is open (rocov_start)\n";
    }
    print::text(text.as_bytes())?;
    Ok(0)
}
