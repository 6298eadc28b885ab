//! The coverage of lines that a change added or modified.

pub(crate) mod covered;
mod unified;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::support::diagnostic::{diagnostic, fail};

use super::figures::Figure;
use super::misfit::{Lines, Stale};
use super::path_match::{Match, PathIndex};
use super::selection::Selection;
use super::staleness::stale;
use super::view::View;
use crate::support::mmap;
use crate::system::git::Repository;
use covered::{Changed, ChangedSource};
use unified::ChangedFile;

/// Extensions of sources that are always for GPUs.
const GPU_EXTENSIONS: [&str; 4] = ["hip", "cu", "cuh", "cl"];
/// Extensions of sources that may have code for GPUs.
const SOURCE_EXTENSIONS: [&str; 14] = [
    "c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "h++", "inc", "inl", "ipp",
];
/// Words that only sources with GPU code have.
const GPU_WORDS: [&str; 4] = [
    "__global__",
    "__device__",
    "omp target",
    "omp declare target",
];

/// A change: the files of a diff.
#[derive(Debug)]
pub(crate) struct Change {
    /// The name that the user gave.
    base: String,
    /// The directory that the paths of the diff start from, if it is known.
    root: Option<PathBuf>,
    files: Vec<ChangedFile>,
}

impl ChangedSource {
    /// The numbers of its changed lines that ran, in each column and in all.
    pub(crate) fn figures(&self, view: &View) -> Vec<Figure> {
        let covered = |counts: &mut dyn Iterator<Item = Option<u64>>| {
            Figure::count_all(counts.flatten().map(|count| count > 0))
        };
        let all = covered(&mut self.lines.iter().map(|line| view.joined(&line.counts)));
        view.each(
            |index| covered(&mut self.lines.iter().map(|line| line.counts[index])),
            all,
        )
    }
}

impl Changed {
    /// The numbers of all changed lines that ran, in each column and in all.
    pub(crate) fn totals(&self, view: &View) -> Vec<Figure> {
        let mut totals = view.each(|_| Figure::default(), Figure::default());
        for file in &self.files {
            for (total, figure) in totals.iter_mut().zip(file.figures(view)) {
                *total = total.plus(figure);
            }
        }
        totals
    }
}

impl Change {
    /// Reads the change `base`: a revision or range of the repository that the current directory or
    /// `repository` is in, a file with a unified diff, or `-` for one on standard input.
    ///
    /// # Errors
    ///
    /// Fails if it is none of these, is ambiguous, or is damaged.
    pub(crate) fn read(base: &OsStr, repository: Option<&Path>) -> Result<Self> {
        let is_input = base == "-";
        // Also a pipe of the shell: `--diff <(git diff)`.
        let is_file = || fs::metadata(base).is_ok_and(|found| !found.is_dir());
        let file = (!is_input && is_file()).then(|| PathBuf::from(base));
        let directory = repository.unwrap_or(Path::new("."));
        let found = Repository::discover(directory);
        if let (Some(file), Ok(found)) = (&file, &found)
            && found.has_revision(base)
        {
            let file = file.display();
            fail!(
                "{file} is both a revision and a file";
                "use ./{file} for the diff in the file, or {file}.. for the commits since the revision"
            );
        }
        let name = base.to_string_lossy().into_owned();
        let (diff, root) = if is_input || file.is_some() {
            let diff = match &file {
                Some(file) => mmap::read_text(file),
                None => mmap::read_input_text().context("cannot read standard input"),
            };
            let diff = diff.with_context(|| format!("cannot read the diff in {name}"))?;
            // It need not be of the repository that happens to be here.
            (diff, None)
        } else {
            let repository = found.with_context(|| format!("no diff against {name}"))?;
            (repository.diff(base)?, repository.root)
        };
        let files = unified::read(&diff).with_context(|| format!("cannot use the diff {name}"))?;
        Ok(Self {
            base: if is_input {
                "standard input".to_owned()
            } else {
                name
            },
            root,
            files,
        })
    }

    /// The paths of all changed files.
    pub(crate) fn places(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|file| self.place(&file.path))
    }

    /// Returns the coverage of the change by `view`, which shows the sources that `selection` admits.
    pub(crate) fn covered(&self, view: &View, selection: &Selection) -> Changed {
        let mut changed = Changed {
            base: self.base.clone(),
            root: self.root.clone(),
            is_empty: self.files.iter().all(ChangedFile::is_empty),
            ..Changed::default()
        };
        let places = PathIndex::new(self.root.as_deref(), view.everything());
        for file in &self.files {
            let found = match places.find(&file.path) {
                // A file without added or modified lines need not be found.
                Match::Nothing | Match::Ambiguous(_) if file.is_empty() => continue,
                found => found,
            };
            if let Some(source) = self.source(file, found, selection, &mut changed) {
                self.add(file, source, view, &mut changed);
            }
        }
        changed
            .files
            .sort_by(|one, other| one.path.cmp(&other.path));
        changed
    }

    /// The source of the report that a file of the diff is. Adds a line if there is none, or doubt.
    fn source<'a>(
        &self,
        file: &ChangedFile,
        found: Match<'a>,
        selection: &Selection,
        changed: &mut Changed,
    ) -> Option<&'a str> {
        let name = &file.path;
        match found {
            Match::Source(source) => return Some(source),
            Match::Likely(source) => {
                let line = diagnostic!(
                    "rocov matches {name} with {source}";
                    "if that is wrong, use --path-map"
                );
                changed.doubts.push(line);
                return Some(source);
            }
            Match::Ambiguous(sources) => changed.left_out.push(diagnostic!(
                "{name}: it may be any of {}", sources.join(", ");
                "use --path-map FROM=TO, or --repository DIR"
            )),
            Match::Nothing => {
                if self.is_for_gpus(file) && selection.admits(&self.place(name).to_string_lossy()) {
                    let line = diagnostic!(
                        "{name}: not in any reported code object";
                        "compile it with the flags that `rocov flags` prints, or leave it out with --exclude"
                    );
                    changed.left_out.push(line);
                }
            }
        }
        None
    }

    /// Adds the changed lines of a source.
    fn add(&self, file: &ChangedFile, source: &str, view: &View, changed: &mut Changed) {
        let name = &file.path;
        let Ok(index) = view.paths.binary_search_by(|path| (**path).cmp(source)) else {
            // The user has left it out.
            return;
        };
        if file.is_binary {
            let line = diagnostic!(
                "{name}: the diff treats it as binary and contains no lines";
                "create it with --text"
            );
            changed.left_out.push(line);
            return;
        }
        let path = Arc::clone(&view.paths[index]);
        if let Some(stale) = self.stale(file, &path, view) {
            let line = diagnostic!("{name}: stale: {stale}"; "build and run it again");
            changed.left_out.push(line);
            changed.stale.insert(path);
            return;
        }
        let mut lines = view.file(&path).lines;
        lines.retain(|line| file.lines.contains_key(&line.number));
        if !lines.is_empty() {
            let name = name.clone();
            changed.files.push(ChangedSource { path, name, lines });
        }
    }

    /// Returns a place that shows that the source at `path`, which is this file, has changed since it
    /// was compiled.
    ///
    /// Its lines are those that the diff has, and otherwise those of a text that agrees with the
    /// diff: of the revision that sources are taken from, of the file in the tree, or of the one that
    /// was compiled.
    fn stale(&self, file: &ChangedFile, path: &str, view: &View) -> Option<Stale> {
        let compiled = view.texts.read(Path::new(path)).ok();
        let here = mmap::read(&self.place(&file.path)).ok();
        let texts = match view.texts.are_of_revision() {
            true => [compiled, here],
            false => [here, compiled],
        };
        let texts = texts.iter().flatten().map(|text| Lines::new(text));
        let text = texts.into_iter().find(|text| {
            let mut lines = file.lines.iter();
            lines.all(|(number, line)| text.get(*number).trim_ascii_end() == line.trim_ascii_end())
        });
        stale(view, path, |number| {
            match (file.lines.get(&number), &text) {
                (Some(line), _) => Some(line.as_slice()),
                (None, Some(text)) => Some(text.get(number)),
                (None, None) => None,
            }
        })
    }

    /// The path of a file of the diff.
    fn place(&self, path: &str) -> PathBuf {
        match &self.root {
            Some(root) => root.join(path),
            None => env::current_dir().unwrap_or_default().join(path),
        }
    }

    /// Returns whether the file has GPU code, by its name and text.
    fn is_for_gpus(&self, file: &ChangedFile) -> bool {
        let extension = Path::new(&file.path).extension().and_then(OsStr::to_str);
        if extension.is_some_and(|extension| GPU_EXTENSIONS.contains(&extension)) {
            return true;
        }
        if !extension.is_some_and(|extension| SOURCE_EXTENSIONS.contains(&extension)) {
            return false;
        }
        let text = mmap::read(&self.place(&file.path)).unwrap_or_default();
        let added = file.lines.values().flatten();
        let text: Vec<_> = text.iter().chain(added).copied().collect();
        let text = String::from_utf8_lossy(&text);
        GPU_WORDS.iter().any(|word| text.contains(word))
    }
}
