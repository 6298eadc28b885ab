//! Asks git about a repository: its changes, and its files at a revision.
//!
//! rocov runs git as a program, so that it can read everything that the user's git can. Options make
//! the output independent of the user's configuration.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::store::read_input;
use rocov::support::diagnostic::fail;

use super::command;

/// Options that make a diff independent of any configuration: only the changed lines, of files by their
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
    /// Fails if it is in none that git reads.
    pub(crate) fn discover(directory: &Path) -> Result<Self> {
        let output = command::ended(git(directory).args(["rev-parse", "--git-dir"]))?;
        if !output.status.success() {
            fail!(
                "git finds no repository in {}: {}", directory.display(), reason(&output);
                "run rocov in a repository, or use --repository DIR"
            );
        }
        let output = command::ended(git(directory).args(["rev-parse", "--show-toplevel"]))?;
        let root = output.status.success().then(|| line(output.stdout));
        Ok(Self {
            directory: directory.to_path_buf(),
            root,
        })
    }

    /// Returns whether it has a revision of this name.
    pub(crate) fn has_revision(&self, name: &OsStr) -> bool {
        let mut command = git(&self.directory);
        command.args(["rev-parse", "--quiet", "--verify", "--end-of-options"]);
        let output = command::ended(command.arg(name));
        output.is_ok_and(|output| output.status.success())
    }

    /// The commit that the work tree is at. `None` if there is none yet, or if git does not name it.
    pub(crate) fn commit(&self) -> Option<Commit> {
        let mut parse = git(&self.directory);
        parse.args(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]);
        let parsed = command::output(&mut parse).ok()?;
        let mut status = git(&self.directory);
        // git would write what it finds to the index.
        status.arg("--no-optional-locks");
        status.args(["status", "--porcelain", "--untracked-files=no"]);
        let changes = command::output(&mut status).ok()?.stdout;
        Some(Commit {
            hash: String::from_utf8_lossy(&parsed.stdout).trim().to_owned(),
            is_modified: !changes.is_empty(),
        })
    }

    /// Returns whether `other` is another checkout of this repository: one of them has the commit that the other is at.
    pub(crate) fn is_related(&self, other: &Self) -> bool {
        let has_commit_of = |one: &Self, other: &Self| {
            let commit = other.commit();
            commit.is_some_and(|commit| {
                one.has_revision(format!("{}^{{commit}}", commit.hash).as_ref())
            })
        };
        has_commit_of(self, other) || has_commit_of(other, self)
    }

    /// The unified diff of `range`: two revisions, or one and the work tree.
    ///
    /// # Errors
    ///
    /// Fails if git does not find them.
    pub(crate) fn diff(&self, range: &OsStr) -> Result<Vec<u8>> {
        let mut command = git(&self.directory);
        command.arg("diff").args(PLAIN_DIFF);
        command.arg("--end-of-options").arg(range).arg("--");
        let output = command::ended(&mut command)?;
        if !output.status.success() {
            fail!(
                "git cannot compare with {} in {}: {}",
                range.display(), self.directory.display(), reason(&output);
                "use a revision that exists, such as {}, or a file with a unified diff",
                self.some_revisions()
            );
        }
        Ok(output.stdout)
    }

    /// A few revisions that a diff can be made against: branches, and the commit before this one.
    fn some_revisions(&self) -> String {
        /// The largest number of branches.
        const MOST: &str = "--count=3";
        let mut command = git(&self.directory);
        command.args([
            "for-each-ref",
            MOST,
            "--sort=-committerdate",
            "--format=%(refname:short)",
        ]);
        command.args(["refs/heads", "refs/remotes"]);
        let output = command::ended(&mut command);
        let names = output.map(|output| output.stdout).unwrap_or_default();
        let names = String::from_utf8_lossy(&names);
        let before = "HEAD~1";
        let has_before = self.has_revision(before.as_ref());
        let names: Vec<_> = names.lines().chain(has_before.then_some(before)).collect();
        match names.is_empty() {
            true => "HEAD".to_owned(),
            false => names.join(" or "),
        }
    }

    /// A revision and the paths of its files, from the root.
    ///
    /// # Errors
    ///
    /// Fails if there is no such revision.
    pub(crate) fn revision(&self, name: &OsStr) -> Result<(Revision, BTreeSet<String>)> {
        let mut commit = name.to_owned();
        commit.push("^{commit}");
        let mut parse = git(&self.directory);
        parse.args(["rev-parse", "--verify", "--end-of-options"]);
        let output = command::ended(parse.arg(commit))?;
        if !output.status.success() {
            fail!(
                "git has no revision {} in {}: {}",
                name.display(), self.directory.display(), reason(&output);
                "use one such as HEAD or a tag"
            );
        }
        let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut list = git(&self.directory);
        list.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", &commit]);
        let files = command::output(&mut list)?.stdout;
        let files = files.split(|byte| *byte == 0);
        let mut batch = git(&self.directory);
        let mut batch = batch
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run git cat-file")?;
        let replies = batch
            .stdout
            .take()
            .context("the child process has no pipe")?;
        let revision = Revision {
            commit,
            batch,
            replies: BufReader::new(replies),
        };
        // git takes a name on each line, so no name may have a line's end.
        let files = files
            .filter_map(|name| str::from_utf8(name).ok())
            .filter(|name| !name.is_empty() && !name.contains('\n'));
        Ok((revision, files.map(str::to_owned).collect()))
    }
}

/// The roots of the work trees that directories are in, found without git.
#[derive(Debug, Default)]
pub(crate) struct WorkTrees {
    by_directory: HashMap<PathBuf, Option<Arc<Path>>>,
}

impl WorkTrees {
    /// The root of the work tree that the file at `path` is in, or was in. A submodule is a part of the tree around it.
    pub(crate) fn root_of(&mut self, path: &Path) -> Option<Arc<Path>> {
        let directory = path.parent().filter(|parent| parent.is_absolute())?;
        if let Some(known) = self.by_directory.get(directory) {
            return known.clone();
        }
        let root = directory
            .ancestors()
            .find(|ancestor| is_root(ancestor))
            .map(Arc::from);
        self.by_directory
            .insert(directory.to_path_buf(), root.clone());
        root
    }
}

/// Returns whether `directory` is the root of a work tree that is no submodule. A submodule and a linked work tree have
/// a file with the place of git's directory.
fn is_root(directory: &Path) -> bool {
    /// The limit in bytes of such a file.
    const MAX_LINK: u64 = 1 << 16;
    let git = directory.join(".git");
    match fs::metadata(&git) {
        Ok(found) if found.is_file() => {
            let text = read_input(&git, MAX_LINK).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let place = text.trim_start_matches("gitdir:").trim();
            let is_linked = Path::new(place)
                .parent()
                .is_some_and(|parent| parent.ends_with("worktrees"));
            is_linked || !place.contains("/modules/")
        }
        found => found.is_ok(),
    }
}

/// The commit that a work tree is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) hash: String,
    /// True if files that git tracks differ from the commit.
    pub(crate) is_modified: bool,
}

impl Commit {
    /// The start of the hash.
    pub(crate) fn short(&self) -> &str {
        self.hash.get(..12).unwrap_or(&self.hash)
    }
}

/// The files of a revision, which one process of git reads.
#[derive(Debug)]
pub(crate) struct Revision {
    /// The hash of its commit.
    pub(crate) commit: String,
    /// `git cat-file --batch`
    batch: Child,
    replies: BufReader<ChildStdout>,
}

impl Revision {
    /// The contents of one of the files.
    ///
    /// # Errors
    ///
    /// Fails if git does not give them.
    pub(crate) fn read(&mut self, path: &str) -> Result<Vec<u8>> {
        let reply = self.ask(path);
        reply.with_context(|| format!("cannot read {path} of {} from git", self.commit))
    }

    /// The reply is `OBJECT TYPE SIZE`, the contents and a line's end, or `REQUEST missing`.
    fn ask(&mut self, path: &str) -> Result<Vec<u8>> {
        let requests = self
            .batch
            .stdin
            .as_mut()
            .context("the child process has no pipe")?;
        writeln!(requests, "{}:{path}", self.commit)?;
        requests.flush()?;
        let mut reply = String::new();
        self.replies.read_line(&mut reply)?;
        let size = reply.trim_end().rsplit(' ').next();
        let size: usize = size
            .and_then(|size| size.parse().ok())
            .with_context(|| format!("git says '{}'", reply.trim_end()))?;
        let mut contents = vec![0; size + 1];
        self.replies.read_exact(&mut contents)?;
        contents.pop();
        Ok(contents)
    }
}

impl Drop for Revision {
    fn drop(&mut self) {
        // git ends at the end of its input.
        drop(self.batch.stdin.take());
        self.batch.wait().ok();
    }
}

/// git in `directory`, without the settings of the environment for diffs.
fn git(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(directory).env("LC_ALL", "C");
    for variable in ["GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS"] {
        git.env_remove(variable);
    }
    git
}

/// The reason that git prints for its failure.
fn reason(output: &Output) -> String {
    let said = command::reason(output);
    said.trim_start_matches("fatal: ").to_owned()
}

/// A path that git printed.
fn line(mut printed: Vec<u8>) -> PathBuf {
    printed.pop_if(|last| *last == b'\n');
    std::ffi::OsString::from_vec(printed).into()
}
