//! `rocov kernels`: the kernels that programs loaded, what they take, and how much of them ran.

mod address;
mod columns;
mod measured;
mod row;

pub(crate) use address::Address;
pub(crate) use columns::Column;

use crate::child;
use crate::cli::KernelsArguments;
use crate::data::DataDirectory;
use crate::status::{FAILED, Outcome};
use crate::words::count;
use columns::compare;
use row::{Row, rows};
use serde::Serialize;

/// Number of the schema of `--json`. A field that is only added does not change it.
const VERSION: u32 = 1;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    /// [`VERSION`].
    rocov_kernels: u32,
    /// The kernels that are asked for, sorted.
    kernels: &'a [Row],
}

/// Prints the table, or what addresses were.
pub(crate) fn kernels(arguments: &KernelsArguments) -> Outcome {
    let mut data = DataDirectory::open(&[&arguments.directory])?;
    let mut registries = data.registries()?;
    let is_partial = registries.say_unread();
    if !arguments.address.is_empty() {
        let all_are_known = address::print(&registries.document, arguments)?;
        return Ok(status(is_partial || !all_are_known));
    }
    child::say(&data.take_builds(arguments.all_builds));
    data.builds.leave_out(&mut registries.document);
    let measured = measured::of(data, arguments)?;
    let mut rows = rows(registries.document, &measured);
    let all = rows.len();
    rows.retain(|row| row.is_asked_for(arguments));
    if rows.is_empty() && all > 0 {
        child::say(&[format!("none of {} matches", count(all, "kernel"))]);
    }
    rows.sort_by(|one, other| compare(one, other, arguments.sort));
    if arguments.json {
        child::print_json(&Document {
            rocov_kernels: VERSION,
            kernels: &rows,
        })?;
    } else {
        child::print(columns::table(&rows, arguments.mangled).as_bytes())?;
    }
    Ok(status(is_partial))
}

fn status(has_failed: bool) -> u8 {
    if has_failed { FAILED } else { 0 }
}
