//! `rocov dump`: has a running program write its counts as profiles.

use rocov::control::{DumpRequest, Request};

use crate::cli::DumpArguments;
use crate::support::failure::failure;
use crate::system::control::ask;
use crate::term::exit_status::CommandResult;
use crate::term::plural::count;
use crate::term::print;

/// The answer if there are no counts to dump.
const LEFT_OUT: &str = "left out: no window is open, or LLVM's own runtime drains the program: have it call \
rocov_start, \
                        or set ROCOV_DRAIN=rocov\n";

/// Asks the program to write its counts.
pub(crate) fn dump(arguments: &DumpArguments) -> CommandResult {
    let request = Request::Dump(DumpRequest {
        label: arguments.label.clone(),
        reset: arguments.reset,
        window: arguments.window.map(|window| window.0),
    });
    let answer = ask(arguments.pid, &request)?;
    let label = answer.get("label");
    if label.is_empty() {
        print::text(LEFT_OUT.as_bytes())?;
        return Ok(0);
    }
    let files = usize::try_from(answer.number("files")).unwrap_or(usize::MAX);
    let written = match files {
        0 => "nothing was counted".to_owned(),
        files => count(files, "file"),
    };
    let in_flight = match answer.get("in-flight") {
        "yes" => "; kernels are still running, and their counts go to the next dump",
        _ => "",
    };
    print::text(format!("{label}: {written}{in_flight}\n").as_bytes())?;
    if answer.get("lost") == "yes" {
        let lost =
            failure!("some counts of process {} are lost", arguments.pid; "see its standard error");
        return Err(lost.into());
    }
    Ok(0)
}
