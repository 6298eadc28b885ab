//! The source files that are shown, and their present paths.

use std::env;
use std::path::{Path, PathBuf};
use std::slice;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use regex::Regex;
use rocov::discover::filter::Filter;
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};

/// A directory that sources have moved to since they were compiled: `FROM=TO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathMap {
    from: PathBuf,
    to: PathBuf,
}

/// The places of sources: directories that they have moved to, and the roots of their checkouts.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathMaps {
    pub(crate) maps: Vec<PathMap>,
    /// Absolute; the first that has a source is the one that it is reported in.
    pub(crate) roots: Vec<PathBuf>,
}

impl FromStr for PathMap {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(Self {
                from: from.into(),
                to: std::path::absolute(to)?,
            }),
            _ => fail!("not a pair of directories"; "use FROM=TO"),
        }
    }
}

impl PathMap {
    /// The number of the first of `maps` that fits, and the path that it gives to the source at `path`.
    fn first(maps: &[Self], path: &Path) -> Option<(usize, PathBuf)> {
        maps.iter().enumerate().find_map(|(number, map)| {
            let rest = path.strip_prefix(&map.from).ok()?;
            Some((number, map.to.join(rest)))
        })
    }
}

/// The source files that are shown, and their present paths.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    maps: Vec<PathMap>,
    /// True if each of these has moved a source.
    has_moved: Vec<AtomicBool>,
    /// The roots of checkouts.
    roots: Vec<PathBuf>,
    /// True if each of these has a source.
    has_source: Vec<AtomicBool>,
    filter: Filter,
    /// Each glob with its option.
    globs: Vec<(String, Filter)>,
    ignored: Vec<Regex>,
}

impl Selection {
    /// Shows the files that match `include`, all if that is empty, and neither `exclude` nor `ignored`: globs
    /// and regular expressions over the places that `maps` gives, the first that fits, and then the first of `roots`
    /// that has the source.
    ///
    /// A glob without a slash matches the file's name. A glob that does not start with a slash matches
    /// files below the current directory.
    ///
    /// # Errors
    ///
    /// Fails if a glob is not valid.
    pub(crate) fn new(
        PathMaps { maps, roots }: PathMaps,
        include: &[String],
        exclude: &[String],
        ignored: &[Regex],
    ) -> Result<Self> {
        let here = env::current_dir().context("cannot find the current directory")?;
        let filter = Filter::new(&globs(include, &here), &globs(exclude, &here))?;
        let mut each = Vec::new();
        for (option, list) in [("--include", include), ("--exclude", exclude)] {
            for glob in list {
                let filter = Filter::new(&globs(slice::from_ref(glob), &here), "")?;
                each.push((format!("{option} {glob}"), filter));
            }
        }
        Ok(Self {
            has_moved: maps.iter().map(|_| AtomicBool::new(false)).collect(),
            maps,
            has_source: roots.iter().map(|_| AtomicBool::new(false)).collect(),
            roots,
            filter,
            globs: each,
            ignored: ignored.to_vec(),
        })
    }

    /// The present path of a source that was compiled from `path`.
    pub(crate) fn place(&self, path: &str) -> String {
        let Some((number, place)) = PathMap::first(&self.maps, Path::new(path)) else {
            return self.joined(path);
        };
        self.has_moved[number].store(true, Ordering::Relaxed);
        self.joined(&place.to_string_lossy())
    }

    /// The path of a source in the first checkout that has it, or in the first of all.
    fn joined(&self, path: &str) -> String {
        let place = Path::new(path);
        let inside = self.roots.iter().enumerate();
        let inside =
            inside.filter_map(|(number, root)| Some((number, place.strip_prefix(root).ok()?)));
        // The innermost root leaves the shortest path.
        let Some((number, inside)) = inside.min_by_key(|(_, inside)| inside.components().count())
        else {
            return path.to_owned();
        };
        self.has_source[number].store(true, Ordering::Relaxed);
        let mut places = self.roots.iter().map(|root| root.join(inside));
        let joined = places.find(|place| place.exists());
        let joined = joined.unwrap_or_else(|| self.roots[0].join(inside));
        joined.to_string_lossy().into_owned()
    }

    /// One line for each glob and regular expression that matches none of the files at these places, and for
    /// each map and root that fits none of those that were placed.
    pub(crate) fn idle(&self, places: &[PathBuf]) -> Vec<Diagnostic> {
        let matches = |filter: &Filter| {
            let mut places = places.iter();
            places.any(|place| filter.admits(Some(place)))
        };
        let globs = self.globs.iter().filter(|(_, filter)| !matches(filter));
        let globs = globs.map(
            |(option, _)| diagnostic!("{option} matches no source"; "fix it, or leave it out"),
        );
        let has_none = |regex: &&Regex| {
            let mut places = places.iter();
            !places.any(|place| regex.is_match(&place.to_string_lossy()))
        };
        let ignored = self.ignored.iter().filter(has_none);
        let ignored = ignored.map(|regex| {
            diagnostic!(
                "--ignore-filename-regex {regex} matches no source";
                "fix it, or leave it out"
            )
        });
        let maps = self.maps.iter().zip(&self.has_moved);
        let maps = maps.filter(|(_, has_moved)| !has_moved.load(Ordering::Relaxed));
        let maps = maps.map(|(PathMap { from, to }, _)| {
            let (from, to) = (from.display(), to.display());
            diagnostic!(
                "--path-map {from}={to} moves no source: none was compiled in {from}";
                "fix it, or leave it out"
            )
        });
        let roots = self.roots.iter().zip(&self.has_source);
        let roots = roots.filter(|(_, has_source)| !has_source.load(Ordering::Relaxed));
        let roots = roots.map(|(root, _)| {
            let root = root.display();
            diagnostic!(
                "no source is below --source-root {root}: none was compiled in {root}";
                "fix it, or leave it out"
            )
        });
        globs.chain(ignored).chain(maps).chain(roots).collect()
    }

    /// Returns whether the source at this place is shown.
    pub(crate) fn admits(&self, path: &str) -> bool {
        let is_ignored = self.ignored.iter().any(|regex| regex.is_match(path));
        !is_ignored && self.filter.admits(Some(Path::new(path)))
    }
}

/// Some of the source files: those that match one of a list of globs.
#[derive(Debug, Clone)]
pub(crate) struct SourceGlobs(Filter);

impl SourceGlobs {
    /// The files that match one of these globs, as with `--include`. One without a wildcard is also the folder of that
    /// name, with all files below it.
    ///
    /// # Errors
    ///
    /// Fails if one of them is not a glob.
    pub(crate) fn new(list: &[String]) -> Result<Self> {
        let here = env::current_dir().context("cannot find the current directory")?;
        let folders = list.iter().filter(|glob| !has_wildcard(glob));
        let folders = folders.map(|folder| format!("{}/**", folder.trim_end_matches('/')));
        let list: Vec<_> = list.iter().cloned().chain(folders).collect();
        Ok(Self(Filter::new(&globs(&list, &here), "")?))
    }

    /// Returns whether the source at this place is one of them.
    pub(crate) fn have(&self, path: &str) -> bool {
        self.0.admits(Some(Path::new(path)))
    }
}

/// Returns whether a glob may match several files of one folder.
pub(crate) fn has_wildcard(glob: &str) -> bool {
    glob.contains(['*', '?', '[', '{'])
}

/// The glob that only `path` matches.
fn as_glob(path: &Path) -> String {
    let is_mark = |letter: char| r"\*?[]{}".contains(letter);
    let mut glob = String::new();
    for letter in path.to_string_lossy().trim_end_matches('/').chars() {
        if is_mark(letter) {
            glob.push('\\');
        }
        glob.push(letter);
    }
    glob
}

/// A list of globs, each from the root.
fn globs(globs: &[String], here: &Path) -> String {
    let rooted = globs.iter().map(|glob| {
        if glob.contains('/') && !glob.starts_with('/') && !glob.starts_with("**/") {
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            format!("{}/{glob}", as_glob(here))
        } else {
            glob.clone()
        }
    });
    rooted.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(maps: &[&str], include: &[&str], exclude: &[&str]) -> Selection {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let maps: Vec<_> = maps.iter().map(|map| map.parse().unwrap()).collect();
        let maps = PathMaps {
            maps,
            roots: Vec::new(),
        };
        Selection::new(maps, &owned(include), &owned(exclude), &[]).unwrap()
    }

    #[test]
    fn the_first_map_that_fits_moves_a_source() {
        let maps = ["/build/gen=/tmp/gen", "/build=/home/me/src", "/b=/wrong"];
        let selection = selection(&maps, &[], &[]);
        assert_eq!(selection.place("/build/gen/a.h"), "/tmp/gen/a.h");
        assert_eq!(selection.place("/build/a.hip"), "/home/me/src/a.hip");
        // Whole components, not letters.
        assert_eq!(selection.place("/builder/a.hip"), "/builder/a.hip");
        for wrong in ["", "=", "/a=", "=/b", "/a"] {
            assert!(wrong.parse::<PathMap>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn globs_are_of_names_of_paths_and_of_what_is_below_the_current_directory() {
        let here = env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        let all = selection(&[], &[], &[]);
        assert!(all.admits("/a/b.hip"));
        let names = selection(&[], &["*.hip"], &["test_*"]);
        assert!(names.admits("/a/b.hip"));
        assert!(!names.admits("/a/b.h"));
        assert!(!names.admits("/a/test_b.hip"));
        let below = selection(&[], &["src/**", "./lib/*"], &["**/gen/**"]);
        assert!(below.admits(&format!("{here}/src/a/b.hip")));
        assert!(below.admits(&format!("{here}/lib/b.hip")));
        assert!(!below.admits(&format!("{here}/src/gen/b.hip")));
        assert!(!below.admits("/src/a/b.hip"));
    }

    #[test]
    fn a_name_without_a_wildcard_is_a_file_or_a_folder() {
        let here = env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        let have = |glob: &str, path: &str| {
            let globs = SourceGlobs::new(&[glob.to_owned()]).unwrap();
            globs.have(&path.replace("HERE", here))
        };
        for (glob, inside, outside) in [
            ("src", "HERE/src/a/b.hip", "HERE/lib/src.hip"),
            ("./src/", "HERE/src/b.hip", "/src/b.hip"),
            ("src/b.hip", "HERE/src/b.hip", "HERE/src/c.hip"),
            ("b.hip", "/a/b.hip", "/a/c.hip"),
            ("/a", "/a/b.hip", "/ab/b.hip"),
            ("src/*.hip", "HERE/src/b.hip", "HERE/src/a/b.hip"),
        ] {
            assert!(have(glob, inside), "{glob}");
            assert!(!have(glob, outside), "{glob}");
        }
        assert!(SourceGlobs::new(&["a[".to_owned()]).is_err());
    }

    #[test]
    fn marks_in_the_current_directory_match_themselves() {
        let here = Path::new(r"/a [b]{c}*");
        let filter = Filter::new(&globs(&["src/*".to_owned()], here), "").unwrap();
        assert!(filter.admits(Some(Path::new(r"/a [b]{c}*/src/x.hip"))));
        assert!(!filter.admits(Some(Path::new("/a bcd/src/x.hip"))));
        assert_eq!(globs(&["src/*".to_owned()], Path::new("/")), "/src/*");
    }
}
