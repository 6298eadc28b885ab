//! Joins sources that were compiled in several checkouts of one repository.
//!
//! Shards of a test run are often built in a checkout each, so one source has several paths. Two paths are of one
//! source if they lead to one file, or if they have one place in two work trees of one repository and their texts
//! are equal. Other paths that look like copies of a source stay apart, with a line: they may be of two projects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::function::{Function, Region, TableLine, symbol};
use super::hiprtc;
use super::path_match::common_suffix;
use crate::support::mmap;
use crate::support::paths::here;
use crate::system::git::{Repository, WorkTrees};
use crate::term::plural::count;

/// The directories of installed headers, which no project owns.
const INSTALLED: [&str; 2] = ["/usr", "/opt"];

/// The most sources of the same name that are compared with each other: more are no copies, but named by habit (`main.hip`).
const MOST_OF_NAME: usize = 64;

/// The paths of sources in other checkouts.
#[derive(Debug, Default)]
pub(crate) struct Checkouts {
    /// The path that a source is reported by, for each of its other paths.
    joined: HashMap<Arc<str>, Arc<str>>,
    /// A line for each two directories with sources that look alike, and were not joined.
    pub(crate) alike: Vec<Diagnostic>,
}

impl Checkouts {
    /// Finds the sources of `functions` that have several paths.
    pub(crate) fn find<'a>(functions: impl Iterator<Item = &'a Arc<Function>> + Clone) -> Self {
        let paths = functions.clone().flat_map(|function| &function.filenames);
        let mut by_name: BTreeMap<&OsStr, BTreeSet<&Arc<str>>> = BTreeMap::new();
        for path in paths {
            let place = Path::new(&**path);
            if let Some(name) = place.file_name().filter(|_| place.is_absolute())
                && !INSTALLED.iter().any(|folder| place.starts_with(folder))
                && !hiprtc::is_temporary(path)
            {
                by_name.entry(name).or_default().insert(path);
            }
        }
        by_name.retain(|_, paths| paths.len() > 1);
        if by_name.is_empty() {
            return Self::default();
        }
        let mut search = Search::default();
        let mut apart: Vec<Vec<&Arc<str>>> = Vec::new();
        for paths in by_name.into_values() {
            apart.push(search.join(paths));
        }
        let alike = search.find_alike(&apart, functions);
        Self {
            joined: search.joined,
            alike,
        }
    }

    /// Returns whether no source has several paths.
    pub(crate) fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    /// The path that the source at `path` is reported by.
    pub(crate) fn place(&self, path: &str) -> String {
        let joined = self.joined.get(path);
        joined.map_or_else(|| path.to_owned(), ToString::to_string)
    }
}

/// The path of a source at some place in a work tree, and the root of that tree.
type InTree<'a> = (&'a Arc<str>, Arc<Path>);

/// A search for paths of one source.
#[derive(Default)]
struct Search {
    trees: WorkTrees,
    /// True for two work trees of one repository, by their roots.
    related: HashMap<[Arc<Path>; 2], bool>,
    joined: HashMap<Arc<str>, Arc<str>>,
}

impl Search {
    /// Joins those of these paths that are of one source, and returns one path of each source.
    fn join<'a>(&mut self, paths: BTreeSet<&'a Arc<str>>) -> Vec<&'a Arc<str>> {
        // The checkout of the current directory comes first, because users look there.
        let here = here();
        let own = self.trees.root_of(&here.join("any"));
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort_by_cached_key(|path| {
            let root = self.trees.root_of(Path::new(&***path));
            (root.is_none() || root != own, Arc::clone(path))
        });
        let mut apart: Vec<&Arc<str>> = Vec::new();
        let mut by_file: HashMap<PathBuf, &Arc<str>> = HashMap::new();
        let mut by_place: HashMap<&Path, Vec<InTree<'_>>> = HashMap::new();
        for path in paths {
            let file = Path::new(&**path);
            let target = file.canonicalize().ok();
            let mut known = target
                .as_ref()
                .and_then(|target| by_file.get(target))
                .copied();
            if let (None, Some(root)) = (known, self.trees.root_of(file))
                && let Ok(place) = file.strip_prefix(&root)
            {
                let sources = by_place.entry(place).or_default();
                let one = sources.iter().find(|(source, other_root)| {
                    root != *other_root
                        && are_equal(Path::new(&***source), file)
                        && self.compare_roots([other_root, &root])
                });
                known = one.map(|(source, _)| *source);
                if known.is_none() {
                    sources.push((path, root));
                }
            }
            if let Some(target) = target {
                by_file.entry(target).or_insert(known.unwrap_or(path));
            }
            match known {
                Some(known) => _ = self.joined.insert(Arc::clone(path), Arc::clone(known)),
                None => apart.push(path),
            }
        }
        apart
    }

    /// Returns whether the work trees with these roots are of one repository.
    fn compare_roots(&mut self, roots: [&Arc<Path>; 2]) -> bool {
        let key = roots.map(Arc::clone);
        if let Some(known) = self.related.get(&key) {
            return *known;
        }
        let are_related = match (Repository::discover(&key[0]), Repository::discover(&key[1])) {
            (Ok(one), Ok(other)) => one.is_related(&other),
            _ => false,
        };
        self.related.insert(key, are_related);
        are_related
    }

    /// A line for each two directories with sources of the same name that look alike. Each list of `apart` has the sources
    /// of one name.
    fn find_alike<'a>(
        &mut self,
        apart: &[Vec<&Arc<str>>],
        functions: impl Iterator<Item = &'a Arc<Function>>,
    ) -> Vec<Diagnostic> {
        let mut outlines: HashMap<&str, Outline<'_>> = HashMap::new();
        if apart.iter().any(|paths| paths.len() > 1) {
            for function in functions {
                let outline = outlines.entry(function.main_path()).or_default();
                outline.insert(
                    symbol(&function.name),
                    (&function.regions, lines_of(function)),
                );
            }
        }
        let mut alike: BTreeMap<[PathBuf; 2], Vec<[&str; 2]>> = BTreeMap::new();
        for paths in apart.iter().filter(|paths| paths.len() <= MOST_OF_NAME) {
            for (number, path) in paths.iter().enumerate() {
                let mut earlier = paths[..number].iter();
                if let Some(known) = earlier.find(|known| {
                    let [one, other] = [known, path].map(|path| Path::new(&***path));
                    let [root, other_root] = [one, other].map(|path| self.trees.root_of(path));
                    (root.is_none() || root != other_root)
                        && look_alike(one, other, [known, path].map(|path| outlines.get(&***path)))
                }) {
                    let pair: [&str; 2] = [known, path];
                    alike
                        .entry(roots(pair.map(Path::new)))
                        .or_default()
                        .push(pair);
                }
            }
        }
        alike
            .iter()
            .map(|(roots, pairs)| about(roots, pairs))
            .collect()
    }
}

/// The functions of a source, with their shapes.
type Outline<'a> = BTreeMap<&'a str, (&'a [Region], &'a [TableLine])>;

fn lines_of(function: &Function) -> &[TableLine] {
    let table = function.line_table.as_ref();
    table.map_or(&[], |table| &table.lines)
}

/// Returns whether both files are there, with one text.
fn are_equal(one: &Path, other: &Path) -> bool {
    let [size, other_size] =
        [one, other].map(|path| fs::metadata(path).ok().map(|metadata| metadata.len()));
    if size.is_none() || size != other_size {
        return false;
    }
    match [one, other].map(mmap::read) {
        [Ok(text), Ok(other)] => text == other,
        _ => false,
    }
}

/// Returns whether two sources of one name look like copies: their texts are equal; or one is not here, and all
/// functions that both have are alike.
fn look_alike(one: &Path, other: &Path, outlines: [Option<&Outline<'_>>; 2]) -> bool {
    if one.exists() && other.exists() {
        return are_equal(one, other);
    }
    let [Some(outline), Some(other)] = outlines else {
        return false;
    };
    let mut common = outline
        .iter()
        .filter_map(|(name, shape)| Some((shape, other.get(name)?)))
        .peekable();
    common.peek().is_some() && common.all(|(shape, other)| shape == other)
}

/// The directories that two sources lie in at one place.
fn roots([one, other]: [&Path; 2]) -> [PathBuf; 2] {
    let common = common_suffix(one, other);
    [one, other].map(|path| path.ancestors().nth(common).unwrap_or(path).to_path_buf())
}

/// The line about sources that look alike in directories with these roots.
fn about([root, other_root]: &[PathBuf; 2], pairs: &[[&str; 2]]) -> Diagnostic {
    let [one, other] = pairs[0];
    let more = match pairs.len() - 1 {
        0 => String::new(),
        more => format!(", as do {}", count(more, "other pair")),
    };
    let [root, other_root] = [root, other_root].map(|path| path.display());
    diagnostic!(
        "{one} and {other} look like one source, and are reported as two{more}";
        "to join them, use --source-root {root} --source-root {other_root}"
    )
}
