//! Runtimes and compilers of other Debian releases that tools/stacks has unpacked.

use super::artifacts::repository;
use super::command::{limited, run};
use std::io::{Write as _, stderr};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The output of `tools/stacks VERB NAME`; `None` if NAME is not unpacked. `without` names the
/// limit of a test run without it.
pub(crate) fn asked(verb: &str, name: &str, without: &str) -> Option<String> {
    let ended = run(limited(repository("tools/stacks")).args([verb, name]));
    if ended.status.success() {
        return Some(ended.stdout);
    }
    // Another failure must not look like a missing stack.
    ended.says(&["is not here"]);
    let expected = std::env::var("ROCOV_STACKS_EXPECTED").unwrap_or_default();
    assert!(
        !expected.split_whitespace().any(|it| it == name),
        "{name} was fetched (ROCOV_STACKS_EXPECTED) and is not there"
    );
    not_run(&format!("{name} is not unpacked: {without}"));
    None
}

/// Reports a skipped test, around the capture of passing tests' output. `tools/test` counts these
/// lines.
pub(crate) fn not_run(what: &str) {
    let _ = writeln!(stderr(), "not run: {what}");
}

/// clang 23, which is no package of Debian 12, and its tools.
pub(crate) struct Clang23 {
    /// The compiler's path.
    pub(crate) clang: &'static str,
    directory: PathBuf,
}

impl Clang23 {
    /// Returns clang 23 if it is unpacked.
    pub(crate) fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Clang23>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let directory = asked("bin", "clang-23", "nothing is compiled by clang 23")?;
            let directory = PathBuf::from(directory.trim_end());
            let clang = directory.join("clang++-23");
            let clang = clang.to_str().expect("a path in UTF-8").to_owned();
            Some(Self {
                clang: clang.leak(),
                directory,
            })
        });
        found.as_ref()
    }

    /// The path of a tool of clang 23, such as `llvm-profdata`.
    pub(crate) fn tool(&self, name: &str) -> &'static str {
        let path = self.directory.join(format!("{name}-23"));
        let path = path.to_str().expect("a path in UTF-8").to_owned();
        path.leak()
    }

    /// The directory of its tools.
    pub(crate) fn directory(&self) -> &std::path::Path {
        &self.directory
    }
}
