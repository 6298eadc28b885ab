//! `rocov query`: asks a data set questions in SQL.

#[cfg(feature = "query")]
mod answer;
#[cfg(feature = "query")]
mod old_lines;

#[cfg(feature = "query")]
use self::answer::answer;
use crate::cli::QueryArguments;
#[cfg(not(feature = "query"))]
use crate::support::failure::failure;
use crate::term::exit_status::CommandResult;
use crate::term::print;

/// Prints the answer to a question, or its SQL.
pub(crate) fn query(arguments: &QueryArguments) -> CommandResult {
    let named = arguments.named();
    if let (true, Some(sql)) = (arguments.print, named) {
        print::text(sql.as_bytes())?;
        return Ok(0);
    }
    answer(arguments, named)
}

/// There is no engine for SQL.
#[cfg(not(feature = "query"))]
fn answer(arguments: &QueryArguments, _: Option<&str>) -> CommandResult {
    let error = failure!(
        "cannot query {}: this rocov has no SQL engine", arguments.dataset.display();
        "build one that has it with `ROCOV_PARTS= cargo install --path tools/rocov --features query` in a clone of \
         rocov, or use examples/fleet/duckdb_questions.py"
    );
    Err(error.into())
}
