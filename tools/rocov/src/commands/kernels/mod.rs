//! `rocov kernels`: lists the kernels that programs loaded, their resources, and their coverage.

mod address;
mod columns;
mod measured;
mod row;
mod schema;

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use glob::Pattern;
use serde::Serialize;

use crate::cli::KernelsArguments;
use crate::data::DataDirectory;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;
use columns::compare;
use row::{Row, rows};
use schema::VERSION;

/// The output of `--json`.
#[derive(Serialize)]
struct KernelList<'a> {
    /// [`VERSION`].
    rocov_kernels: u32,
    /// The selected kernels, sorted.
    kernels: &'a [Row],
}

/// Prints the table, or the kernels at addresses.
pub(crate) fn kernels(arguments: &KernelsArguments) -> CommandResult {
    let mut data =
        Warnings::printing(|warnings| DataDirectory::open(&[&arguments.directory], warnings))?;
    Warnings::printing(|warnings| data.add_zeros(warnings))?;
    let mut registry = data.merged_registry()?;
    for error in &registry.unread {
        print::message(format_args!("left out: {}", explained(error)));
    }
    let is_partial = !registry.unread.is_empty();
    if !arguments.address.is_empty() {
        print::warn(registry.about_groups().as_slice());
        let all_are_known = address::print(&registry.document, arguments)?;
        return Ok(status(is_partial || !all_are_known));
    }
    print::warn(&data.take_builds(arguments.all_builds));
    data.builds.leave_out(&mut registry.document);
    let measured = Warnings::printing(|warnings| measured::of(data, arguments, warnings))?;
    let mut rows = rows(registry.document, &measured);
    check_filters(&rows, arguments)?;
    let with_hips = rows.len();
    if !arguments.all && arguments.name.is_empty() {
        rows.retain(|row| !row.is_hips_own());
    }
    let all = rows.len();
    rows.retain(|row| row.is_asked_for(arguments));
    if all == 0 && with_hips > 0 {
        let kernels = count(with_hips, "kernel");
        print::warn(&[format!(
            "the program loaded only {kernels} of HIP itself: give --all to list them"
        )]);
    } else if rows.is_empty() && all > 0 {
        let kernels = count(all, "kernel");
        print::warn(&[format!(
            "none of {kernels} is listed: leave out --instrumented or --uncovered to list more"
        )]);
    }
    rows.sort_by(|one, other| compare(one, other, arguments.sort));
    if arguments.json {
        print::json(&KernelList {
            rocov_kernels: VERSION,
            kernels: &rows,
        })?;
    } else {
        print::text(columns::table(&rows, arguments.mangled).as_bytes())?;
    }
    Ok(status(is_partial))
}

/// Checks that each arch and name that the user gives is one of a kernel's.
///
/// # Errors
///
/// Fails if one is not.
fn check_filters(rows: &[Row], arguments: &KernelsArguments) -> Result<()> {
    let directory = arguments.directory.display();
    let is_of_none = |arch: &&String| !rows.iter().any(|row| row.is_for(arch));
    if let Some(arch) = arguments.arch.iter().find(is_of_none) {
        let rows = rows.iter().filter(|row| !row.is_hips_own());
        let archs: BTreeSet<_> = rows.map(|row| row.target.as_str()).collect();
        let archs: Vec<_> = archs.into_iter().collect();
        bail!(
            "no kernel for {arch} in {directory}: run the program there, or choose one of these archs: {}",
            archs.join(", ")
        );
    }
    let matches_none = |glob: &&Pattern| !rows.iter().any(|row| row.is_called(glob));
    if let Some(glob) = arguments.name.iter().find(matches_none) {
        bail!(
            "no kernel in {directory} matches --name {glob}: `rocov kernels {directory} --all` lists all \
             names"
        );
    }
    Ok(())
}

fn status(has_failed: bool) -> u8 {
    if has_failed { FAILED } else { 0 }
}
