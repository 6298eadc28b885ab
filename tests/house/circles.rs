//! The files of a crate form no circle: a file never imports a file that needs it, by itself or through others.
//!
//! A `pub use` is the front of a folder and no import: an import through it leads to the file that defines the name.
//! Code under `#[cfg(test)]` may import everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::paths::{Written, module_of, resolve, written};
use crate::tokens::{Token, tokens, without_tests};
use crate::{CRATES, Source, read};

#[test]
fn the_files_of_a_crate_form_no_circle() {
    let mut found = String::new();
    for folder in CRATES {
        let sources = read(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        found += &circles(folder, &sources);
    }
    assert!(
        found.is_empty(),
        "these files import each other: move what both need to a file that imports neither\n{found}"
    );
}

/// A module by its path from the root of the crate.
type Module = Vec<String>;

/// The files of a crate, and what they import of each other.
#[derive(Debug, Default)]
struct Crate {
    files: BTreeMap<Module, File>,
    /// The modules behind names that a `pub use` of a module shows.
    exports: BTreeMap<(Module, String), Module>,
}

#[derive(Debug, Default)]
struct File {
    path: PathBuf,
    written: Vec<Written>,
    /// The files that it imports, each with the line and the path of the first import.
    imports: BTreeMap<Module, (usize, String)>,
}

impl Crate {
    fn new(sources: &[Source]) -> Self {
        let mut all: BTreeMap<_, _> = sources
            .iter()
            .map(|source| (module_of(&source.path), source))
            .collect();
        let mut this = Self::default();
        // Modules that only tests declare are not reached.
        let mut open = vec![Module::new()];
        while let Some(module) = open.pop() {
            let Some(source) = all.remove(&module) else {
                continue;
            };
            let tokens = without_tests(&tokens(&source.text));
            for window in tokens.windows(3) {
                if let [
                    (Token::Word(word), _),
                    (Token::Word(name), _),
                    (Token::Sign(';'), _),
                ] = window
                    && word == "mod"
                {
                    open.push(module.iter().chain([name]).cloned().collect());
                }
            }
            let file = File {
                path: source.path.clone(),
                written: written(&tokens, &module),
                imports: BTreeMap::new(),
            };
            this.files.insert(module, file);
        }
        this.find_exports();
        this.find_imports();
        this
    }

    fn find_exports(&mut self) {
        let mut exports = BTreeMap::new();
        for path in self.files.values().flat_map(|file| &file.written) {
            if let (Some(name), Some((target, _))) = (&path.export, self.target(path)) {
                exports.insert((path.module.clone(), name.clone()), target);
            }
        }
        self.exports = exports;
    }

    fn find_imports(&mut self) {
        let mut imports = Vec::new();
        for (module, file) in &self.files {
            for path in file.written.iter().filter(|path| path.export.is_none()) {
                let target = self
                    .target(path)
                    .map(|(target, name)| self.definer(target, name));
                if let Some(target) = target.filter(|target| target != module) {
                    imports.push((module.clone(), target, path.line, path.words.join("::")));
                }
            }
        }
        for (module, target, line, words) in imports {
            if let Some(file) = self.files.get_mut(&module) {
                file.imports.entry(target).or_insert((line, words));
            }
        }
    }

    /// Returns the file that a path leads to, and the next word of the path.
    fn target(&self, path: &Written) -> Option<(Module, Option<String>)> {
        let segments = resolve(&path.words, &path.module).or_else(|| {
            let segments: Module = path.module.iter().chain(&path.words).cloned().collect();
            let child = segments.get(..=path.module.len())?;
            self.files.contains_key(child).then_some(segments)
        })?;
        let length = (0..=segments.len())
            .rev()
            .find(|length| self.files.contains_key(&segments[..*length]))?;
        Some((segments[..length].to_vec(), segments.get(length).cloned()))
    }

    /// Returns the file that defines a name that a file shows.
    fn definer(&self, file: Module, name: Option<String>) -> Module {
        let Some(name) = name else { return file };
        let mut key = (file, name);
        // An export that leads to itself would never end.
        let mut seen = BTreeSet::new();
        while let Some(target) = self.exports.get(&key)
            && seen.insert(target)
        {
            key.0.clone_from(target);
        }
        key.0
    }

    /// Returns the modules that a module imports, by itself or through others.
    fn reached<'a>(&'a self, module: &'a Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![module];
        while let Some(module) = open.pop() {
            let imports = self.files[module].imports.keys();
            open.extend(imports.filter(|import| reached.insert(*import)));
        }
        reached
    }
}

/// Returns the circles of a crate: the imports inside of each, one a line.
fn circles(folder: &str, sources: &[Source]) -> String {
    let this = Crate::new(sources);
    let reached: BTreeMap<_, _> = this
        .files
        .keys()
        .map(|module| (module, this.reached(module)))
        .collect();
    let mut found = String::new();
    let mut named = BTreeSet::new();
    for module in this.files.keys() {
        if !reached[module].contains(module) || named.contains(module) {
            continue;
        }
        let circle: BTreeSet<_> = reached[module]
            .iter()
            .copied()
            .filter(|other| reached[other].contains(module))
            .collect();
        found += &format!("a circle of {} files in {folder}:\n", circle.len());
        for member in &circle {
            let file = &this.files[*member];
            let path = Path::new(folder).join(&file.path);
            let inside = file
                .imports
                .iter()
                .filter(|(target, _)| circle.contains(target));
            for (_, (line, words)) in inside {
                found += &format!("  {}:{line}: {words}\n", path.display());
            }
        }
        named.extend(circle);
    }
    found
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    files
        .iter()
        .map(|(path, text)| Source {
            path: path.into(),
            text: (*text).to_owned(),
        })
        .collect()
}

#[test]
fn a_circle_is_found_in_each_form() {
    for (wall, door) in [
        ("use crate::house::door::Key;", "use crate::house::wall;"),
        ("use super::door;", "use super::wall::Brick;"),
        (
            "fn f() { super::door::open() }",
            "use super::{wall::{self, Brick}};",
        ),
        // Through the front of the folder.
        ("use super::Key;", "use crate::house::Brick;"),
        ("use crate::Key;", "use super::Stone;"),
    ] {
        let found = circles(
            "made/up",
            &made_up(&[
                ("lib.rs", "mod house; pub use house::Key;"),
                (
                    "house/mod.rs",
                    "mod door; mod wall; pub(crate) use door::Key; pub use wall::{Brick as Stone, Brick};",
                ),
                ("house/door.rs", door),
                ("house/wall.rs", wall),
            ]),
        );
        assert!(
            found.starts_with("a circle of 2 files in made/up:\n"),
            "{wall} {door}: {found}"
        );
        assert!(found.contains("  made/up/house/door.rs:1: "), "{found}");
        assert!(found.contains("  made/up/house/wall.rs:1: "), "{found}");
    }
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "\nuse crate::b::B;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "use crate::{a, d};"),
        ("d.rs", ""),
    ];
    assert_eq!(
        circles("made", &made_up(&files)),
        "a circle of 3 files in made:\n  made/a.rs:2: crate::b::B\n  made/b.rs:1: crate::c::C\n  \
         made/c.rs:1: crate::a\n"
    );
    // A folder's own file is a member like others.
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; fn f() { b::g() }"),
        ("a/b.rs", "use super::f;"),
    ];
    let found = circles("made", &made_up(&files));
    assert!(found.starts_with("a circle of 2 files"), "{found}");
}

#[test]
fn imports_in_one_direction_are_no_circle() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        (
            "a.rs",
            "use crate::B; #[cfg(test)] mod tests; #[cfg(test)] mod inner { use crate::b; }",
        ),
        ("a/tests.rs", "use super::A;"),
        (
            "b.rs",
            "#[cfg(test)] use crate::A; /// See [`crate::A`].\nstruct B;",
        ),
    ];
    assert_eq!(circles("made", &made_up(&files)), "");
}
