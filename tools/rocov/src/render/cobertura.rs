//! Cobertura's XML, as its coverage-04.dtd describes it: the columns joined.
//!
//! A directory is a package and a source file a class. Files below the current directory, which is
//! the `source`, have paths from there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::coverage::figures::Figure;
use crate::coverage::file::{File, Joined};
use crate::coverage::view::View;
use crate::support::demangle::shown;
use crate::support::paths::{below, here};
use crate::support::time;

/// Lines and branches of something.
#[derive(Default, Clone, Copy)]
struct Rates {
    lines: Figure,
    branches: Figure,
    /// True if a coverage mapping tells branches.
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

type Xml<'a> = Writer<&'a mut dyn Write>;

pub(super) fn write(view: &View, out: &mut dyn Write) -> Result<()> {
    let here = here();
    // Sums stand before their parts. So every file is read twice, and none is kept.
    let mut total = Rates::default();
    let mut packages: BTreeMap<String, (Rates, Vec<&str>)> = BTreeMap::new();
    for path in view.paths_with_lines() {
        let class = Class::of(view, path, &here);
        let parent = Path::new(&class.path).parent().unwrap_or(Path::new(""));
        let package = packages.entry(parent.display().to_string()).or_default();
        package.0.add(class.rates);
        package.1.push(path);
        total.add(class.rates);
    }

    let mut xml: Xml<'_> = Writer::new_with_indent(&mut *out, b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let doctype = r#"coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd""#;
    xml.write_event(Event::DocType(BytesText::from_escaped(doctype)))?;
    let numbers = [
        ("lines-covered", total.lines.covered),
        ("lines-valid", total.lines.total),
        ("branches-covered", total.branches.covered),
        ("branches-valid", total.branches.total),
        ("complexity", 0),
        ("timestamp", time::of_report()?.saturating_mul(1000)),
    ]
    .map(|(name, number)| (name, number.to_string()));
    xml.create_element("coverage")
        .with_attributes(numbers.iter().map(|(name, number)| (*name, &**number)))
        .with_attributes(total.attributes())
        .with_attribute(("version", env!("CARGO_PKG_VERSION")))
        .write_inner_content(|xml| {
            xml.create_element("sources").write_inner_content(|xml| {
                let here = here.to_string_lossy();
                xml.create_element("source")
                    .write_text_content(BytesText::new(&here))?;
                Ok(())
            })?;
            xml.create_element("packages").write_inner_content(|xml| {
                for (name, (rates, paths)) in &packages {
                    write_package(view, name, *rates, paths, &here, xml)?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
    writeln!(out)?;
    Ok(())
}

fn write_package(
    view: &View,
    name: &str,
    rates: Rates,
    paths: &[&str],
    here: &Path,
    xml: &mut Xml<'_>,
) -> io::Result<()> {
    xml.create_element("package")
        .with_attribute(("name", name))
        .with_attributes(rates.attributes())
        .with_attribute(("complexity", "0"))
        .write_inner_content(|xml| {
            xml.create_element("classes").write_inner_content(|xml| {
                for path in paths {
                    Class::of(view, path, here).write(xml)?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
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

    fn attributes(self) -> [(&'static str, Cow<'static, str>); 2] {
        // The format needs a rate. That of lines or branches that are not known must not look like all.
        let rate = |figure: Figure, is_known: bool| {
            let of_nothing = if is_known { 100.0 } else { 0.0 };
            let percent = figure.percent().unwrap_or(of_nothing);
            Cow::from(format!("{:.4}", percent / 100.0))
        };
        [
            ("line-rate", rate(self.lines, false)),
            ("branch-rate", rate(self.branches, self.knows_branches)),
        ]
    }
}

impl Class {
    fn of(view: &View, path: &str, here: &Path) -> Self {
        let file: File = view.file(path);
        let lines: Vec<_> = file
            .lines
            .iter()
            .map(|line| (line.number, view.joined(&line.counts).unwrap_or(0)))
            .collect();
        let branches = view.branches_by_line(&file);
        let methods = file.functions.iter().map(|function| {
            let calls = view.joined(&function.calls).unwrap_or(0);
            (shown(&function.name), function.line, calls)
        });
        let rates = Rates {
            lines: Figure::of(lines.iter().map(|(_, count)| *count > 0)),
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
        xml.create_element("class")
            .with_attribute(("name", &*name.to_string_lossy()))
            .with_attribute(("filename", &*self.path))
            .with_attributes(self.rates.attributes())
            .with_attribute(("complexity", "0"))
            .write_inner_content(|xml| {
                xml.create_element("methods").write_inner_content(|xml| {
                    for (name, line, calls) in &self.methods {
                        write_method(name, *line, *calls, self.rates.knows_branches, xml)?;
                    }
                    Ok(())
                })?;
                xml.create_element("lines").write_inner_content(|xml| {
                    for (number, count) in &self.lines {
                        let branches = self.branches.get(number).map_or(&[][..], Vec::as_slice);
                        write_line(*number, *count, branches, xml)?;
                    }
                    Ok(())
                })?;
                Ok(())
            })?;
        Ok(())
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
        lines: Figure::of([calls > 0]),
        branches: Figure::default(),
        knows_branches,
    };
    // The name of a C++ function has its signature.
    xml.create_element("method")
        .with_attribute(("name", name))
        .with_attribute(("signature", ""))
        .with_attributes(rates.attributes())
        .with_attribute(("complexity", "0"))
        .write_inner_content(|xml| {
            xml.create_element("lines")
                .write_inner_content(|xml| write_line(line, calls, &[], xml))?;
            Ok(())
        })?;
    Ok(())
}

fn write_line(number: u32, count: u64, branches: &[Joined], xml: &mut Xml<'_>) -> io::Result<()> {
    let element = xml
        .create_element("line")
        .with_attribute(("number", &*number.to_string()))
        .with_attribute(("hits", &*count.to_string()));
    if branches.is_empty() {
        element.with_attribute(("branch", "false")).write_empty()?;
        return Ok(());
    }
    let all = figure(branches);
    let percent = |figure: Figure| format!("{:.0}%", figure.percent().unwrap_or(100.0));
    let coverage = format!("{} ({}/{})", percent(all), all.covered, all.total);
    element
        .with_attribute(("branch", "true"))
        .with_attribute(("condition-coverage", &*coverage))
        .write_inner_content(|xml| {
            xml.create_element("conditions")
                .write_inner_content(|xml| {
                    for (index, branch) in branches.iter().enumerate() {
                        xml.create_element("condition")
                            .with_attribute(("number", &*index.to_string()))
                            .with_attribute(("type", "jump"))
                            .with_attribute(("coverage", &*percent(figure([branch]))))
                            .write_empty()?;
                    }
                    Ok(())
                })?;
            Ok(())
        })?;
    Ok(())
}

/// The sides of branches that ran.
fn figure<'a>(branches: impl IntoIterator<Item = &'a Joined>) -> Figure {
    let sides = branches.into_iter().flatten().flatten();
    Figure::of(sides.map(|count| *count > 0))
}
