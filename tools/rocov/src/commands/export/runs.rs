//! Runs, into a data set.

use std::path::Path;

use anyhow::Result;
use rocov::store::layout::DATA_SET;

use crate::cli::ExportArguments;
use crate::dataset::{DataSet, ImportOptions, import};
use crate::support::failure::failure;
use crate::system::git::Repository;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use crate::term::warnings::Warnings;

/// Adds each directory to the data set.
pub(super) fn export(arguments: &ExportArguments) -> CommandResult {
    let output = arguments.output.as_deref().unwrap_or(Path::new(DATA_SET));
    let commit = match &arguments.commit {
        Some(commit) => commit.clone(),
        None => commit_here()?,
    };
    let options = ImportOptions {
        commit: &commit,
        date: arguments.date.as_deref(),
        run: arguments.run.as_deref(),
        objects: &arguments.objects,
    };
    let mut set = DataSet::open_or_begin(output)?;
    let added = Warnings::printing(|warnings| {
        import(&mut set, &arguments.directories, &options, warnings)
    })?;
    for reason in &added.refused {
        print::message(reason);
    }
    let known = match added.known {
        0 => String::new(),
        known => format!(", {} there already", count(known, "run")),
    };
    let line = format!(
        "{}: {} of commit {commit} added{known}\n",
        output.display(),
        count(added.added, "run"),
    );
    print::text(line.as_bytes())?;
    Ok(if added.refused.is_empty() { 0 } else { FAILED })
}

/// The commit of the work tree.
fn commit_here() -> Result<String> {
    let commit = Repository::discover(Path::new("."))
        .ok()
        .and_then(|repository| repository.commit())
        .ok_or_else(|| {
            failure!(
                "the current directory is not in a git work tree, so the tested commit is unknown";
                "name it with --commit"
            )
        })?;
    Ok(commit.hash)
}
