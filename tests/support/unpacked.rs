//! Runtimes and compilers of other Debian releases that tools/stacks has unpacked.

use std::io::{Write as _, stderr};

use super::artifacts::repository;
use super::command::{limited, run_once};

/// The output of `tools/stacks VERB NAME`; `None` if NAME is not unpacked. `without` names the
/// limit of a test run without it.
pub fn asked(verb: &str, name: &str, without: &str) -> Option<String> {
    let ended = run_once(limited(repository("tools/stacks")).args([verb, name]));
    if ended.status.success() {
        return Some(ended.stdout);
    }
    // Another failure must not look like a missing stack.
    ended.says(&["is not here"]);
    let expected = std::env::var("ROCOV_STACKS_EXPECTED").unwrap_or_default();
    assert!(
        !expected.split_whitespace().any(|word| word == name),
        "{name} was fetched (ROCOV_STACKS_EXPECTED) and is not there"
    );
    not_run(&format!("{name} is not unpacked: {without}"));
    None
}

/// Reports a skipped test, around the capture of passing tests' output. `tools/test` counts these
/// lines.
pub fn not_run(what: &str) {
    let _ = writeln!(stderr(), "not run: {what}");
}
