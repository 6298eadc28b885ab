//! SonarQube's generic test coverage, version 1, for `sonar.coverageReportPaths`: the columns joined.
//!
//! A path is as seen from the current directory, which should be the project's base.

use std::io::{self, Write};

use quick_xml::Writer;

use crate::coverage::figures::Figure;
use crate::coverage::view::View;
use crate::support::paths::{below, here};

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let here = here();
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 1);
    let root = xml
        .create_element("coverage")
        .with_attribute(("version", "1"));
    root.write_inner_content(|xml| {
        for path in view.paths_with_lines() {
            let file = view.file(path);
            let branches = view.branches_by_line(&file);
            let element = xml.create_element("file");
            let element = element.with_attribute(("path", &*below(path, &here)));
            element.write_inner_content(|xml| {
                for line in &file.lines {
                    let is_covered = view.joined(&line.counts) > Some(0);
                    let mut element = xml
                        .create_element("lineToCover")
                        .with_attribute(("lineNumber", &*line.number.to_string()))
                        .with_attribute(("covered", &*is_covered.to_string()));
                    if let Some(branches) = branches.get(&line.number) {
                        let sides = branches.iter().flatten().flatten();
                        let figure = Figure::of(sides.map(|count| *count > 0));
                        element = element
                            .with_attribute(("branchesToCover", &*figure.total.to_string()))
                            .with_attribute(("coveredBranches", &*figure.covered.to_string()));
                    }
                    element.write_empty()?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    writeln!(out)
}
