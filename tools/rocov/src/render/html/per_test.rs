//! The tests of a report: a page with all of them, a page for each with the lines that it reaches, and the sets of
//! tests that reach the lines of a source.
//!
//! A line refers to a numbered set, and a set to numbered tests: the name of a test is on few pages, however
//! many lines it reaches.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use anyhow::Result;
use askama::Template;

use super::frame::{Frame, Source, page, render};
use super::single::Site;
use crate::coverage::file::File;
use crate::coverage::view::View;
use crate::render::breakdown::{self, Listing};
use crate::term::line_ranges::{range, spans};

/// The largest set whose tests have their names on the page of a source. Larger sets have numbers.
const NAMED: usize = 8;

/// The tests that reach each line of a source, by their numbers.
pub(super) type LineTests = BTreeMap<u32, Vec<usize>>;

/// A test and the lines that it reaches.
struct Tested<'a> {
    name: &'a str,
    /// The page, from the folder.
    page: String,
    files: Vec<TestedFile<'a>>,
}

/// The lines of a file that a test reaches.
struct TestedFile<'a> {
    source: &'a Source<'a>,
    lines: Ranges,
    /// The lines that no other test reaches, with the label of their column if there are several columns.
    only: Vec<(Option<String>, Ranges)>,
}

/// Lines of a file.
#[derive(Default)]
struct Ranges {
    number: usize,
    /// The ranges of lines, between which there is code that is not among them.
    ranges: Vec<(u32, u32)>,
    /// The place of the last line among the lines with code.
    last: usize,
}

impl Ranges {
    /// Adds a line after the others, which is at `place` among those with code.
    fn add(&mut self, place: usize, line: u32) {
        match self.ranges.last_mut() {
            Some((_, last)) if self.last + 1 == place => *last = line,
            _ => self.ranges.push((line, line)),
        }
        self.number += 1;
        self.last = place;
    }

    /// The ranges of lines: `1-3, 7`. The script of the pages makes links of them.
    fn numbers(&self) -> String {
        let ranges: Vec<_> = self.ranges.iter().copied().map(range).collect();
        ranges.join(", ")
    }
}

/// All tests of a report, in the order of their numbers.
pub(super) struct Tests<'a>(Vec<Tested<'a>>);

impl<'a> Tests<'a> {
    /// The tests of `view`, without their lines.
    pub(super) fn new(view: &'a View) -> Self {
        let tests = view.tests.iter().map(|test| Tested {
            name: &test.name,
            page: page("test", &test.name),
            files: Vec::new(),
        });
        Self(tests.collect())
    }

    /// Adds the lines of `file`, whose page is that of `source`, with the tests that reach them.
    pub(super) fn add(
        &mut self,
        view: &View,
        source: &'a Source<'a>,
        file: &File,
        lines: &LineTests,
    ) {
        let number = |line: &crate::coverage::line::Line| line.number;
        let place = |line: &u32| file.lines.binary_search_by_key(line, number).ok();
        for (line, tests) in lines {
            let Some(place) = place(line) else {
                continue;
            };
            for test in tests {
                self.0[*test].file(source).lines.add(place, *line);
            }
        }
        for (test, columns) in view.line_tests.alone(source.path) {
            let columns = columns.into_iter().map(|(label, lines)| {
                let mut ranges = Ranges::default();
                for line in lines {
                    if let Some(place) = place(&line) {
                        ranges.add(place, line);
                    }
                }
                let label = (view.columns.len() > 1).then(|| label.to_owned());
                (label, ranges)
            });
            self.0[test].file(source).only = columns.collect();
        }
    }

    /// Writes the page with all tests, the page of each, and the script with their names.
    pub(super) fn write(&self, frame: &Frame<'_>, site: &Site) -> Result<()> {
        let Some(listing) = breakdown::tests(frame.view) else {
            return Ok(());
        };
        let all = AllPage {
            frame,
            root: "",
            listing: &listing,
            tests: &self.0,
        };
        site.write("tests.html", |out| render(&all, out))?;
        site.write("assets/tests.js", |out| self.write_names(out))?;
        for (number, test) in self.0.iter().enumerate() {
            let page = TestPage {
                frame,
                root: "../",
                listing: &listing,
                number,
                test,
            };
            site.write(&test.page, |out| render(&page, out))?;
        }
        Ok(())
    }

    /// Writes the names and pages of all tests, for the sets that have numbers.
    fn write_names(&self, out: &mut dyn Write) -> Result<()> {
        let names: Vec<_> = self.0.iter().map(|test| (test.name, &test.page)).collect();
        write!(out, "rocovTests(")?;
        serde_json::to_writer(&mut *out, &names)?;
        writeln!(out, ");")?;
        Ok(())
    }
}

impl<'a> Tested<'a> {
    /// The lines of a file, which is the last one or a new one.
    fn file(&mut self, source: &'a Source<'a>) -> &mut TestedFile<'a> {
        let is_last = |file: &TestedFile<'_>| file.source.path == source.path;
        if !self.files.last().is_some_and(is_last) {
            self.files.push(TestedFile {
                source,
                lines: Ranges::default(),
                only: Vec::new(),
            });
        }
        let last = self.files.len() - 1;
        &mut self.files[last]
    }

    /// Returns whether it reaches lines that no other test does.
    fn has_only(&self) -> bool {
        self.files.iter().any(|file| !file.only.is_empty())
    }
}

impl TestedFile<'_> {
    /// The first line.
    fn first(&self) -> u32 {
        self.lines.ranges.first().map_or(1, |(first, _)| *first)
    }
}

/// The sets of tests that reach lines of a source.
pub(super) struct TestSets<'a> {
    /// The sets in the order of the lines that have them first.
    pub(super) sets: Vec<TestSet<'a>>,
    /// The index of the set of each line.
    by_line: BTreeMap<u32, usize>,
}

/// A set of tests.
pub(super) struct TestSet<'a> {
    pub(super) size: usize,
    /// The names and pages of the tests of a small set.
    pub(super) named: Vec<(&'a str, String)>,
    /// The numbers of the tests of a larger set: `1-3, 7`.
    pub(super) numbers: String,
}

impl<'a> TestSets<'a> {
    /// The sets of tests that reach these lines.
    pub(super) fn new(view: &'a View, lines: &'a LineTests) -> Self {
        let mut known: HashMap<&[usize], usize> = HashMap::new();
        let (mut sets, mut by_line) = (Vec::new(), BTreeMap::new());
        for (line, tests) in lines {
            let index = *known.entry(tests).or_insert_with(|| {
                sets.push(TestSet::new(view, tests));
                sets.len() - 1
            });
            by_line.insert(*line, index);
        }
        Self { sets, by_line }
    }

    /// The number of a line's set, from 1, and the number of its tests.
    pub(super) fn on(&self, line: u32) -> Option<(usize, usize)> {
        let index = *self.by_line.get(&line)?;
        Some((index + 1, self.sets[index].size))
    }
}

impl<'a> TestSet<'a> {
    fn new(view: &'a View, tests: &[usize]) -> Self {
        let named = tests.iter().filter(|_| tests.len() <= NAMED).map(|test| {
            let name = &*view.tests[*test].name;
            (name, page("test", name))
        });
        let numbers = tests.iter().filter_map(|test| u32::try_from(test + 1).ok());
        let numbers: Vec<_> = spans(numbers).into_iter().map(range).collect();
        Self {
            size: tests.len(),
            named: named.collect(),
            numbers: numbers.join(", "),
        }
    }
}

#[derive(Template)]
#[template(path = "tests.html")]
struct AllPage<'a> {
    frame: &'a Frame<'a>,
    root: &'static str,
    listing: &'a Listing<'a>,
    tests: &'a [Tested<'a>],
}

#[derive(Template)]
#[template(path = "test.html")]
struct TestPage<'a> {
    frame: &'a Frame<'a>,
    root: &'static str,
    listing: &'a Listing<'a>,
    /// The index of the test.
    number: usize,
    test: &'a Tested<'a>,
}
