//! `rocov kernels`: lists the kernels that programs loaded, their resources, and their coverage.

mod address;
mod columns;
mod measured;
mod row;
mod schema;

use std::collections::BTreeSet;

use anyhow::Result;
use glob::Pattern;
use rocov::format::registry::model::Document;
use rocov::support::diagnostic::{diagnostic, fail};
use serde::Serialize;

use crate::cli::KernelsArguments;
use crate::coverage::{Exclusions, SourceTexts, misfit};
use crate::data::components::Components;
use crate::data::{CompletedData, DataListing};
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::look::Look;
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
    let data = Warnings::printing(|warnings| {
        DataListing::open(&[&arguments.directory], warnings)?
            .complete(arguments.all_builds, warnings)
    })?;
    let mut registry = data.merged_registry()?;
    for error in &registry.unread {
        print::message(explained(error).within("left out"));
    }
    let is_partial = !registry.unread.is_empty();
    if !arguments.address.is_empty() {
        print::warn(registry.about_groups().as_slice());
        let all_are_known = address::print(&registry.document, arguments)?;
        return Ok(status(is_partial || !all_are_known));
    }
    print::warn(&data.older);
    data.builds.leave_out(&mut registry.document);
    let exclusions = arguments.exclusions.exclusions(SourceTexts::default());
    let mut rows = Warnings::printing(|warnings| {
        listed(data, registry.document, arguments, &exclusions, warnings)
    })?;
    print::warn(&exclusions.faults());
    print::warn(&exclusions.idle());
    print::warn(&misfit::about_all(&exclusions.stale(|_| true)));
    check_filters(&rows, arguments)?;
    let with_hips = rows.len();
    if !arguments.all && arguments.name.is_empty() {
        rows.retain(|row| !row.is_hips_own());
    }
    let all = rows.len();
    rows.retain(|row| row.is_asked_for(arguments));
    if arguments.uncovered {
        let before = rows.len();
        rows.retain(|row| row.excluded.is_none());
        let excluded = before - rows.len();
        if excluded > 0 {
            let kernels = count(excluded, "kernel");
            let are = if excluded == 1 { "is" } else { "are" };
            print::warn(&[diagnostic!(
                "{kernels} that never ran {are} excluded";
                "leave out --uncovered to list all kernels"
            )]);
        }
    }
    if all == 0 && with_hips > 0 {
        let kernels = count(with_hips, "kernel");
        print::warn(&[diagnostic!(
            "the program loaded only kernels of HIP itself ({kernels})";
            "use --all to list them"
        )]);
    } else if rows.is_empty() && all > 0 {
        let kernels = count(all, "kernel");
        let options = [
            (arguments.instrumented, "--instrumented"),
            (arguments.uncovered, "--uncovered"),
        ];
        let given = options.iter().filter(|(is_given, _)| *is_given);
        let given: Vec<_> = given.map(|(_, option)| *option).collect();
        print::warn(&[diagnostic!(
            "none of {kernels} is listed";
            "leave out {} to list more", given.join(" or ")
        )]);
    }
    rows.sort_by(|one, other| compare(one, other, arguments.sort));
    if arguments.json {
        print::json(&KernelList {
            rocov_kernels: VERSION,
            kernels: &rows,
        })?;
    } else {
        let look = Look::for_stdout(false);
        print::lines(|out| columns::write(&rows, arguments.mangled, look, out))?;
    }
    Ok(status(is_partial))
}

/// The kernels of a registry; and if the user may look for them, those for archs that nothing ran on.
///
/// # Errors
///
/// Fails if an object cannot be read.
fn listed(
    data: CompletedData,
    document: Document,
    arguments: &KernelsArguments,
    exclusions: &Exclusions,
    warnings: &mut Warnings,
) -> Result<Vec<Row>> {
    let data = data.with_elfs(&arguments.objects, warnings)?;
    let measured = measured::measure(&data, arguments, exclusions, warnings)?;
    let mut listed = rows(document, &measured);
    if !arguments.uncovered && arguments.arch.is_empty() {
        return Ok(listed);
    }
    if let Some(others) = data.other_archs(&[], &Components::default(), warnings)? {
        let measured = measured::measure(&others.data, arguments, exclusions, warnings)?;
        let document = Document {
            code_objects: others.code_objects,
            ..Document::default()
        };
        listed.extend(rows(document, &measured));
    }
    Ok(listed)
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
        fail!(
            "no kernel for {arch} in {directory}";
            "run the program on that GPU, or choose one of these archs: {}", archs.join(", ")
        );
    }
    let matches_none = |glob: &&Pattern| !rows.iter().any(|row| row.is_called(glob));
    if let Some(glob) = arguments.name.iter().find(matches_none) {
        fail!(
            "no kernel in {directory} matches --name {glob}";
            "`rocov kernels {directory} --all` lists all names"
        );
    }
    Ok(())
}

fn status(has_failed: bool) -> u8 {
    if has_failed { FAILED } else { 0 }
}
