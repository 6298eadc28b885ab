//! Asks git about a repository: what changed in it, and what its files were.
//!
//! git is run as a program, so that whatever the user's git can read can be read here. Options make
//! what it prints independent of how the user has set it up.

use crate::child;
use anyhow::{Result, bail};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What makes a diff as it is without any configuration: the changed lines alone, of files by their
/// paths from the root of the repository, submodules' files too.
const PLAIN_DIFF: [&str; 15] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--patch",
    "--unified=0",
    "--inter-hunk-context=0",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--find-renames",
    "--diff-algorithm=default",
    "--submodule=diff",
    "--ignore-submodules=none",
    "--output-indicator-new=+",
    "--output-indicator-old=-",
];

/// A repository.
#[derive(Debug)]
pub(crate) struct Repository {
    /// A directory in it, to start git in.
    directory: PathBuf,
    /// The root of its work tree, without symbolic links; a bare repository has none.
    pub(crate) root: Option<PathBuf>,
}

impl Repository {
    /// The repository that `directory` is in.
    ///
    /// # Errors
    ///
    /// When it is in none that git reads.
    pub(crate) fn of(directory: &Path) -> Result<Self> {
        let output = child::ended(git(directory).args(["rev-parse", "--git-dir"]))?;
        if !output.status.success() {
            bail!(
                "git finds no repository in {}: {}: go there, or give --repository DIR",
                directory.display(),
                reason(&output)
            );
        }
        let output = child::ended(git(directory).args(["rev-parse", "--show-toplevel"]))?;
        let root = output.status.success().then(|| line(output.stdout));
        Ok(Self {
            directory: directory.to_path_buf(),
            root,
        })
    }

    /// Whether it has a revision of this name.
    pub(crate) fn has_revision(&self, name: &OsStr) -> bool {
        let mut command = git(&self.directory);
        command.args(["rev-parse", "--quiet", "--verify", "--end-of-options"]);
        let output = child::ended(command.arg(name));
        output.is_ok_and(|output| output.status.success())
    }

    /// The unified diff of `range`: two revisions, or one and the work tree.
    ///
    /// # Errors
    ///
    /// When git does not know them.
    pub(crate) fn diff(&self, range: &OsStr) -> Result<Vec<u8>> {
        let mut command = git(&self.directory);
        command.arg("diff").args(PLAIN_DIFF);
        command.arg("--end-of-options").arg(range).arg("--");
        let output = child::ended(&mut command)?;
        if !output.status.success() {
            bail!(
                "git has no diff against {} in {}: {}: give a revision or range, such as main... or \
                 HEAD~1, or a file with a unified diff",
                range.display(),
                self.directory.display(),
                reason(&output)
            );
        }
        Ok(output.stdout)
    }
}

/// git in `directory`, without what the environment asks of its diffs.
fn git(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(directory).env("LC_ALL", "C");
    for variable in ["GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS"] {
        git.env_remove(variable);
    }
    git
}

/// What git gives as the reason of its failure.
fn reason(output: &Output) -> String {
    let said = child::reason(output);
    said.trim_start_matches("fatal: ").to_owned()
}

/// A path that git printed.
fn line(mut printed: Vec<u8>) -> PathBuf {
    printed.pop_if(|last| *last == b'\n');
    std::ffi::OsString::from_vec(printed).into()
}
