//! The tree of source files.

use std::collections::BTreeMap;

use super::figures::Shown;
use super::frame::Source;
use super::functions::Listed;

/// A directory.
pub(super) struct Tree<'a> {
    pub(super) directories: BTreeMap<&'a str, Self>,
    pub(super) files: Vec<(&'a str, &'a Listed<'a>)>,
    pub(super) shown: Shown,
}

impl<'a> Tree<'a> {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            directories: BTreeMap::new(),
            files: Vec::new(),
            shown: Shown::none(columns),
        }
    }

    /// Adds a file whose path from here is `path`.
    pub(super) fn add(&mut self, path: &'a str, file: &'a Listed<'a>) {
        let mut tree = self;
        let mut rest = path;
        while let Some((directory, inner)) = rest.split_once('/') {
            tree.shown.add(&file.shown);
            let columns = tree.shown.columns.len();
            let known = tree.directories.entry(directory);
            tree = known.or_insert_with(|| Self::new(columns));
            rest = inner;
        }
        tree.shown.add(&file.shown);
        tree.files.push((rest, file));
    }

    /// Adds the earlier figures of a file that is gone to the directories that it was in.
    pub(super) fn add_gone(&mut self, path: &str, shown: &Shown) {
        let mut tree = self;
        let mut rest = path;
        loop {
            tree.shown.add(shown);
            let Some((directory, inner)) = rest.split_once('/') else {
                return;
            };
            let Some(inside) = tree.directories.get_mut(directory) else {
                return;
            };
            (tree, rest) = (inside, inner);
        }
    }

    /// The directory and its name with a slash. A directory with nothing but another one is one with it.
    pub(super) fn without_only_folders(&self, name: &str) -> (String, &Self) {
        let mut name = format!("{name}/");
        let mut tree = self;
        while let (Some((inner, only)), 1, true) = (
            tree.directories.first_key_value(),
            tree.directories.len(),
            tree.files.is_empty(),
        ) {
            name += &format!("{inner}/");
            tree = only;
        }
        (name, tree)
    }

    /// The number of directories inside one another, with this one.
    pub(super) fn depth(&self) -> usize {
        let inner = self.directories.iter();
        let inner = inner.map(|(name, tree)| tree.without_only_folders(name).1.depth());
        1 + inner.max().unwrap_or_default()
    }

    /// The number of files, and of directories that are `depth` levels below, where the tree is cut.
    pub(super) fn number_at(&self, depth: usize) -> usize {
        let inner = self.directories.iter().map(|(name, tree)| match depth {
            0 | 1 => 1,
            _ => tree.without_only_folders(name).1.number_at(depth - 1),
        });
        self.files.len() + inner.sum::<usize>()
    }

    /// Appends the contents of this directory. `around` has the names of those that it is in, and itself.
    pub(super) fn list(
        &self,
        around: &mut Vec<(String, usize)>,
        directories: &mut usize,
        rows: &mut Vec<Row<'a>>,
    ) {
        let depth = around.len();
        let within = |around: &[(String, usize)]| {
            let classes = around.iter().map(|(_, number)| format!("in{number} "));
            classes.collect::<String>()
        };
        for (name, tree) in &self.directories {
            let (name, tree) = tree.without_only_folders(name);
            let number = *directories;
            *directories += 1;
            let names = around.iter().map(|(name, _)| &**name);
            rows.push(Row {
                depth,
                directory: Some((names.chain([&*name]).collect(), number)),
                within: within(around),
                name: name.clone(),
                source: None,
                shown: tree.shown.clone(),
            });
            around.push((name, number));
            tree.list(around, directories, rows);
            around.pop();
        }
        for (name, file) in &self.files {
            rows.push(Row {
                depth,
                name: (*name).to_owned(),
                source: Some(file.source),
                directory: None,
                within: within(around),
                shown: file.shown.clone(),
            });
        }
    }
}

/// A line of the tree: a directory or a file.
pub(super) struct Row<'a> {
    /// The number of directories that it is in.
    pub(super) depth: usize,
    /// The path from the directory above.
    pub(super) name: String,
    /// `None` of a directory.
    pub(super) source: Option<&'a Source<'a>>,
    /// The path and the number of a directory.
    pub(super) directory: Option<(String, usize)>,
    /// Classes of the directories that it is in: `in0` and `in3`, with a space after each.
    pub(super) within: String,
    pub(super) shown: Shown,
}
