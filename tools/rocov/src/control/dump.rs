//! `rocov dump`: what a running program has counted becomes profiles.

use super::ask::ask;
use crate::cli::DumpArguments;
use crate::status::Outcome;
use crate::words::count;
use anyhow::anyhow;
use rocov::control::{DumpRequest, Request};

/// Has the program write what it has counted.
pub(crate) fn dump(arguments: &DumpArguments) -> Outcome {
    let request = Request::Dump(DumpRequest {
        label: arguments.label.clone(),
        reset: arguments.reset,
        window: arguments.window.map(|window| window.0),
    });
    let answer = ask(arguments.pid, &request)?;
    let label = answer.get("label");
    if label.is_empty() {
        println!(
            "left out: no window is open (rocov_start), or LLVM's own runtime drains the program"
        );
        return Ok(0);
    }
    let files = usize::try_from(answer.number("files")).unwrap_or(usize::MAX);
    let written = match files {
        0 => "nothing was counted".to_owned(),
        files => count(files, "file"),
    };
    let in_flight = match answer.get("in-flight") {
        "yes" => "; kernels still run, and what they count goes to the next",
        _ => "",
    };
    println!("{label}: {written}{in_flight}");
    if answer.get("lost") == "yes" {
        let lost = anyhow!(
            "some counts of process {} are lost: its standard error says which and why",
            arguments.pid
        );
        return Err(lost.into());
    }
    Ok(0)
}
