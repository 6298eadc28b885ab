//! The sources of code that hipRTC compiled.
//!
//! hipRTC compiles in a temporary directory, which has a new name each time and is gone afterwards. Its compiler
//! can put the text of the sources into the code object. rocov names such a source
//! `hiprtc/HASH/NAME`: NAME is the name that the program gave it, and HASH is that of its text. Programs often give
//! one name to several texts. The functions of hipRTC's own header are left out, as no source of the user has
//! them.

mod embedded;
mod preprocessed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::sync::Arc;

use object::File;
use xxhash_rust::xxh3::xxh3_64;

use self::preprocessed::Preprocessed;
use super::function::{Function, Location};

/// The texts of sources, by the paths that reports have of them.
pub(crate) type Texts = BTreeMap<Arc<str>, Arc<[u8]>>;

/// The start of the names of hipRTC's temporary directories, which are in another.
const DIRECTORY: &str = "/comgr-";

/// hipRTC's own header, in the folder of headers.
const OWN_HEADER: &str = "hiprtc_runtime.h";

/// The ending of the file that a compiler preprocesses a HIP source to.
const PREPROCESSED: &str = ".hipi";

/// A source of code that hipRTC compiled, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin<'a> {
    /// hipRTC's own header.
    OwnHeader,
    /// A source or a header that the program gave to hipRTC, by its name.
    Program(&'a str),
    /// The file that the compiler made of several sources.
    Preprocessed,
}

impl<'a> Origin<'a> {
    /// The origin of the source at `path`; `None` if hipRTC has nothing to do with it.
    fn parse(path: &'a str) -> Option<Self> {
        if path.ends_with(PREPROCESSED) {
            return Some(Self::Preprocessed);
        }
        let (_, inside) = path.split_once(DIRECTORY)?;
        let (_, inside) = inside.split_once('/')?;
        match inside.split_once('/')? {
            ("include", OWN_HEADER) => Some(Self::OwnHeader),
            ("input" | "include", name) => Some(Self::Program(name)),
            _ => None,
        }
    }
}

/// Returns whether hipRTC compiled the source at `path`, which no file has the text of.
pub(crate) fn is_temporary(path: &str) -> bool {
    Origin::parse(path).is_some()
}

/// The sources of a code object that hipRTC compiled.
#[derive(Debug, Default)]
pub(crate) struct RunTimeSources {
    /// The texts of the sources, by the paths that they were compiled from.
    compiled: BTreeMap<String, Vec<u8>>,
    /// The sources in each file that the compiler made of them, if it did: one for each unit of the code object.
    preprocessed: Vec<Preprocessed>,
}

impl RunTimeSources {
    /// Reads the sources in a code object. There are none if hipRTC has nothing to do with its `paths`, or if the
    /// code object does not have their text.
    pub(crate) fn read<'a>(elf: &File<'_>, paths: impl IntoIterator<Item = &'a str>) -> Self {
        if !paths.into_iter().any(is_temporary) {
            return Self::default();
        }
        let mut compiled = embedded::texts(elf);
        // A line table has the files and lines before the preprocessor, but the text after it.
        let texts: BTreeSet<_> = compiled.values().collect();
        let preprocessed: Vec<_> = texts
            .into_iter()
            .filter_map(|text| preprocessed(text))
            .collect();
        if !preprocessed.is_empty() {
            compiled = preprocessed.iter().flat_map(Preprocessed::texts).collect();
        }
        Self {
            compiled,
            preprocessed,
        }
    }

    /// Gives the sources of a function their names in reports, and adds their texts to `texts`. Returns whether
    /// the function is the user's.
    pub(crate) fn rename(&self, function: &mut Function, texts: &mut Texts) -> bool {
        if !function.filenames.iter().any(|path| is_temporary(path)) {
            return true;
        }
        resolve(function, &self.preprocessed);
        if Origin::parse(function.main_path()) == Some(Origin::OwnHeader) {
            return false;
        }
        for path in &mut function.filenames {
            let Some((name, text)) = self.name(path) else {
                continue;
            };
            let name: Arc<str> = name.into();
            if let Some(text) = text {
                texts
                    .entry(Arc::clone(&name))
                    .or_insert_with(|| text.into());
            }
            *path = name;
        }
        true
    }

    /// The name in reports of the source at `path`, and its text if that is known.
    fn name(&self, path: &str) -> Option<(String, Option<&[u8]>)> {
        let Some(Origin::Program(name)) = Origin::parse(path) else {
            return None;
        };
        let text = self.compiled.get(path).map(Vec::as_slice);
        // A header that no code comes from has no text: the program's source distinguishes it from others.
        let hashed = text.or_else(|| {
            let mut programs = self.compiled.iter();
            let program = programs.find(|(path, _)| path.contains("/input/"));
            program.map(|(_, text)| text.as_slice())
        });
        let hash = xxh3_64(hashed?) >> 32;
        let name = plain(name);
        Some((format!("hiprtc/{hash:08x}/{name}"), text))
    }
}

/// The sources that `text` was made of, if the first of them is a program's.
fn preprocessed(text: &[u8]) -> Option<Preprocessed> {
    let preprocessed = Preprocessed::parse(text)?;
    let first = Origin::parse(preprocessed.path(0));
    matches!(first, Some(Origin::Program(_))).then_some(preprocessed)
}

/// The name without components that lead elsewhere.
fn plain(name: &str) -> String {
    let components = Path::new(name).components();
    let names = components.filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

/// Returns whether the compiler names the file that it makes of the source at `source` like `made`:
/// `scale-gfx90a-6bb3f4.hipi` of `scale.hip`.
fn is_made_of(made: &str, source: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let source = name(source);
    let stem = source.split('.').next().unwrap_or_default();
    let made = name(made);
    made.strip_prefix(stem)
        .is_some_and(|rest| rest.starts_with('-'))
}

/// Gives the locations of a function the files and lines that they had before the preprocessor.
fn resolve(function: &mut Function, preprocessed: &[Preprocessed]) {
    for file in 0..function.filenames.len() {
        if Origin::parse(&function.filenames[file]) != Some(Origin::Preprocessed) {
            continue;
        }
        let is_here = |location: &Location| location.file as usize == file;
        let mut locations: Vec<&mut Location> = Vec::new();
        locations.extend(
            function
                .regions
                .iter_mut()
                .map(|region| &mut region.location),
        );
        locations.extend(
            function
                .branches
                .iter_mut()
                .map(|branch| &mut branch.location),
        );
        locations.extend(
            function
                .decisions
                .iter_mut()
                .map(|decision| &mut decision.location),
        );
        let folded = function.marks.folded_branches.iter_mut();
        locations.extend(folded.map(|branch| &mut branch.location));
        locations.retain(|location| is_here(location));
        let starts = locations.iter().map(|location| location.span.start);
        let starts: Vec<_> = starts.map(|start| (start.line, start.column)).collect();
        let path = &function.filenames[file];
        let of_name = preprocessed
            .iter()
            .filter(|preprocessed| is_made_of(path, preprocessed.path(0)));
        // A program may give one name to several units: code is where regions of the function start.
        let fits = |made: &&Preprocessed| {
            let here = starts
                .iter()
                .filter(|(line, column)| made.has_code_at(*line, *column));
            here.count()
        };
        let Some(preprocessed) = of_name.max_by_key(fits) else {
            continue;
        };
        let first = starts.first().map(|(line, _)| *line);
        let Some(origin) = first.and_then(|line| preprocessed.file_at(line)) else {
            continue;
        };
        for location in locations {
            for place in [&mut location.span.start, &mut location.span.end] {
                place.line = preprocessed.line_in(origin, place.line);
            }
        }
        function.filenames[file] = preprocessed.path(origin).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_file_has_the_name_of_its_source() {
        let made = "/tmp/scale-gfx90a:sramecc+:xnack--6bb3f4.hipi";
        assert!(is_made_of(made, "/tmp/comgr-7-0-ab/input/scale.hip"));
        assert!(!is_made_of(made, "/tmp/comgr-7-0-ab/input/sca.hip"));
        assert!(!is_made_of(made, "/tmp/comgr-7-0-ab/input/twice.hip"));
    }

    #[test]
    fn paths_in_the_directories_of_hiprtc_have_an_origin() {
        let origin = Origin::parse;
        let program = |name| Some(Origin::Program(name));
        assert_eq!(
            origin("/tmp/comgr-ab12/input/scale.hip"),
            program("scale.hip")
        );
        assert_eq!(origin("/tmp/comgr-7-0-ab/include/a/b.h"), program("a/b.h"));
        let own = "/tmp/comgr-ab12/include/hiprtc_runtime.h";
        assert_eq!(origin(own), Some(Origin::OwnHeader));
        let made = "/tmp/scale-gfx90a:sramecc+:xnack--6bb3f4.hipi";
        assert_eq!(origin(made), Some(Origin::Preprocessed));
        for other in [
            "/src/include/hiprtc_runtime.h",
            "/src/comgr-x/a.hip",
            "a.hip",
        ] {
            assert_eq!(origin(other), None, "{other}");
        }
    }
}
