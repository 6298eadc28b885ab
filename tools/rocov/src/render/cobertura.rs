//! Cobertura's XML, as its coverage-04.dtd describes it: the columns joined.
//!
//! A directory is a package and a source file a class. Files below the current directory, which is
//! the `source`, have paths from there.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use super::xml::{Attribute, Xml};
use crate::coverage::figures::Figure;
use crate::coverage::file::File;
use crate::coverage::joined_file::Joined;
use crate::coverage::view::View;
use crate::support::demangle::shown;
use crate::support::paths::{below, here};
use crate::support::time;

/// Lines and branches of something.
#[derive(Default, Clone, Copy)]
struct Rates {
    lines: Figure,
    branches: Figure,
    /// True if a coverage mapping lists branches.
    knows_branches: bool,
}

/// A source file with the counts of all columns joined.
struct Class {
    path: String,
    lines: Vec<(u32, u64)>,
    branches: BTreeMap<u32, Vec<Joined>>,
    /// Name, line and calls.
    methods: Vec<(String, u32, u64)>,
    rates: Rates,
}

/// Writes the report, with no count above `max_count`.
pub(super) fn write(view: &View, max_count: u64, out: &mut dyn Write) -> Result<()> {
    let here = here();
    // Sums come before their parts. So every file is read twice, and none is kept.
    let mut total = Rates::default();
    let mut packages: BTreeMap<String, (Rates, Vec<&str>)> = BTreeMap::new();
    for path in view.paths_with_lines() {
        let class = Class::new(view, max_count, path, &here);
        let parent = Path::new(&class.path).parent().unwrap_or(Path::new(""));
        let package = packages.entry(parent.display().to_string()).or_default();
        package.0.add(class.rates);
        package.1.push(path);
        total.add(class.rates);
    }

    let mut xml = Xml::new(out);
    xml.head(r#"coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd""#)?;
    let timestamp = time::report_time()?.saturating_mul(1000);
    let [lines, branches] = total.rates();
    let attributes: [Attribute<'_>; 9] = [
        ("lines-covered", &total.lines.covered),
        ("lines-valid", &total.lines.total),
        ("branches-covered", &total.branches.covered),
        ("branches-valid", &total.branches.total),
        ("complexity", &0),
        ("timestamp", &timestamp),
        ("line-rate", &lines),
        ("branch-rate", &branches),
        ("version", &env!("CARGO_PKG_VERSION")),
    ];
    xml.element("coverage", &attributes, |xml| {
        xml.element("sources", &[], |xml| {
            xml.text("source", &here.to_string_lossy())
        })?;
        xml.element("packages", &[], |xml| {
            for (name, (rates, paths)) in &packages {
                let [lines, branches] = rates.rates();
                let attributes: [Attribute<'_>; 4] = [
                    ("name", name),
                    ("line-rate", &lines),
                    ("branch-rate", &branches),
                    ("complexity", &0),
                ];
                xml.element("package", &attributes, |xml| {
                    xml.element("classes", &[], |xml| {
                        let classes = paths.iter();
                        let mut classes =
                            classes.map(|path| Class::new(view, max_count, path, &here));
                        classes.try_for_each(|class| class.write(xml))
                    })
                })?;
            }
            Ok(())
        })
    })?;
    xml.end()?;
    Ok(())
}

impl Rates {
    fn add(&mut self, other: Self) {
        for (sum, figure) in [
            (&mut self.lines, other.lines),
            (&mut self.branches, other.branches),
        ] {
            sum.covered += figure.covered;
            sum.total += figure.total;
        }
        self.knows_branches |= other.knows_branches;
    }

    /// The rate of lines and that of branches.
    fn rates(self) -> [String; 2] {
        // The format needs a rate. That of lines or branches that are not known must not look like all.
        let rate = |figure: Figure, is_known: bool| {
            let of_nothing = if is_known { 100.0 } else { 0.0 };
            let percent = figure.percent().unwrap_or(of_nothing);
            format!("{:.4}", percent / 100.0)
        };
        [
            rate(self.lines, false),
            rate(self.branches, self.knows_branches),
        ]
    }
}

impl Class {
    fn new(view: &View, max_count: u64, path: &str, here: &Path) -> Self {
        let file: File = view.file(path);
        let count = |counts: &[Option<u64>]| view.joined(counts).unwrap_or(0).min(max_count);
        let lines: Vec<_> = file
            .lines
            .iter()
            .map(|line| (line.number, count(&line.counts)))
            .collect();
        let branches = view.branches_by_line(&file);
        let methods = file.functions.iter().map(|function| {
            let calls = count(&function.calls);
            (shown(&function.name), function.line, calls)
        });
        let rates = Rates {
            lines: Figure::count_all(lines.iter().map(|(_, count)| *count > 0)),
            branches: figure(branches.values().flatten()),
            knows_branches: view.has_regions(),
        };
        Self {
            path: below(path, here).into_owned(),
            methods: methods.collect(),
            lines,
            branches,
            rates,
        }
    }

    fn write(&self, xml: &mut Xml<'_>) -> io::Result<()> {
        let name = Path::new(&self.path).file_name().unwrap_or_default();
        let [lines, branches] = self.rates.rates();
        let attributes: [Attribute<'_>; 5] = [
            ("name", &name.display()),
            ("filename", &self.path),
            ("line-rate", &lines),
            ("branch-rate", &branches),
            ("complexity", &0),
        ];
        xml.element("class", &attributes, |xml| {
            xml.element("methods", &[], |xml| {
                for (name, line, calls) in &self.methods {
                    write_method(name, *line, *calls, self.rates.knows_branches, xml)?;
                }
                Ok(())
            })?;
            xml.element("lines", &[], |xml| {
                for (number, count) in &self.lines {
                    let branches = self.branches.get(number).map_or(&[][..], Vec::as_slice);
                    write_line(*number, *count, branches, xml)?;
                }
                Ok(())
            })
        })
    }
}

/// A function: the line that it starts on, with its calls.
fn write_method(
    name: &str,
    line: u32,
    calls: u64,
    knows_branches: bool,
    xml: &mut Xml<'_>,
) -> io::Result<()> {
    let rates = Rates {
        lines: Figure::count_all([calls > 0]),
        branches: Figure::default(),
        knows_branches,
    };
    let [lines, branches] = rates.rates();
    // The name of a C++ function has its signature.
    let attributes: [Attribute<'_>; 5] = [
        ("name", &name),
        ("signature", &""),
        ("line-rate", &lines),
        ("branch-rate", &branches),
        ("complexity", &0),
    ];
    xml.element("method", &attributes, |xml| {
        xml.element("lines", &[], |xml| write_line(line, calls, &[], xml))
    })
}

fn write_line(number: u32, count: u64, branches: &[Joined], xml: &mut Xml<'_>) -> io::Result<()> {
    let line: [Attribute<'_>; 2] = [("number", &number), ("hits", &count)];
    if branches.is_empty() {
        return xml.empty("line", &[&line[..], &[("branch", &false)]].concat());
    }
    let all = figure(branches);
    let percent = |figure: Figure| format!("{:.0}%", figure.percent().unwrap_or(100.0));
    let coverage = format!("{} ({}/{})", percent(all), all.covered, all.total);
    let of_branches: [Attribute<'_>; 2] = [("branch", &true), ("condition-coverage", &coverage)];
    xml.element("line", &[line, of_branches].concat(), |xml| {
        xml.element("conditions", &[], |xml| {
            for (index, branch) in branches.iter().enumerate() {
                let coverage = percent(figure([branch]));
                let condition: [Attribute<'_>; 3] = [
                    ("number", &index),
                    ("type", &"jump"),
                    ("coverage", &coverage),
                ];
                xml.empty("condition", &condition)?;
            }
            Ok(())
        })
    })
}

/// The sides of branches that ran.
fn figure<'a>(branches: impl IntoIterator<Item = &'a Joined>) -> Figure {
    let sides = branches.into_iter().flatten().flatten();
    Figure::count_all(sides.map(|count| *count > 0))
}
