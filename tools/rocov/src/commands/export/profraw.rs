//! Raw profiles, device ELFs and a registry of a data set.

use std::path::Path;

use rocov::store::layout::DATA_SET;

use crate::cli::ExportArguments;
use crate::dataset::{DataSet, Taken, pool};
use crate::profdata::pooled;
use crate::support::atomic;
use crate::term::exit_status::CommandResult;
use crate::term::plural::count;
use crate::term::print;

/// Writes a pooled directory with the sums of the runs.
pub(super) fn export(arguments: &ExportArguments) -> CommandResult {
    let output = arguments.output.as_deref().unwrap_or(Path::new(DATA_SET));
    pooled::check_free(output)?;
    let set = DataSet::open(arguments.directory())?;
    let place = atomic::parent(output);
    let Taken {
        pool,
        runs,
        profiles,
    } = pool(&set, &arguments.conditions, Some(place))?;
    pool.put(output)?;
    let line = format!(
        "{}: {} of {}\n",
        output.display(),
        count(profiles, "profile"),
        count(runs, "run"),
    );
    print::text(line.as_bytes())?;
    Ok(0)
}
