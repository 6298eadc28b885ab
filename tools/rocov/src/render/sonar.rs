//! SonarQube's generic test coverage, version 1, for `sonar.coverageReportPaths`: the columns joined.
//!
//! A path is as seen from the current directory, which should be the project's base.

use std::fmt::Display;
use std::io::{self, Write};

use super::xml::Xml;
use crate::coverage::figures::Figure;
use crate::coverage::view::View;
use crate::support::paths::{below, here};

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let here = here();
    let mut xml = Xml::new(out);
    xml.element("coverage", &[("version", &1)], |xml| {
        for path in view.paths_with_lines() {
            let file = view.file(path);
            let branches = view.branches_by_line(&file);
            xml.element("file", &[("path", &below(path, &here))], |xml| {
                for line in &file.lines {
                    let is_covered = view.joined(&line.counts) > Some(0);
                    let covered: [(_, &dyn Display); 2] =
                        [("lineNumber", &line.number), ("covered", &is_covered)];
                    let Some(branches) = branches.get(&line.number) else {
                        xml.empty("lineToCover", &covered)?;
                        continue;
                    };
                    let sides = branches.iter().flatten().flatten();
                    let figure = Figure::count_all(sides.map(|count| *count > 0));
                    let sides: [(_, &dyn Display); 2] = [
                        ("branchesToCover", &figure.total),
                        ("coveredBranches", &figure.covered),
                    ];
                    xml.empty("lineToCover", &[covered, sides].concat())?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    xml.end()
}
