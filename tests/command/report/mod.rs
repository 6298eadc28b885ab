//! `rocov report` and `rocov diff` on data directories that the tests make up: device ELFs of a small kernel and raw
//! profiles with counts of their choice.

mod annotated;
mod archs;
mod baseline;
mod browser;
mod changed;
mod checkouts;
mod comment;
mod diff;
mod directories;
mod earlier;
mod exclusions;
mod filters;
mod formats;
mod gates;
mod gates_of_parts;
mod host;
mod hostile;
mod instances;
mod labels;
mod left_out;
mod missing;
mod objects;
mod page_sizes;
mod pages;
mod parts;
mod per_test;
mod provenance;
mod repository;
mod schemas;
mod sources;
mod tables;
mod terminal;
mod tests_of_lines;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rocov_tests::cli::device::{
    INSTRUMENTED, compile, compile_bundle, compile_source, compile_with, embed,
};
use rocov_tests::cli::place::{Place, RAW_VERSION};
use rocov_tests::cli::{data, failure, profile, rocov, run, stderr, stdout};
use rocov_tests::json::json;

use archs::Archs;

/// `rocov report` in a place.
trait Report {
    fn command(&self) -> Command;
    fn report(&self, arguments: &[&dyn AsRef<OsStr>]) -> Output;
}

impl Report for Place {
    fn command(&self) -> Command {
        let mut command = rocov();
        command.current_dir(self.path()).arg("report");
        command
    }

    fn report(&self, arguments: &[&dyn AsRef<OsStr>]) -> Output {
        let mut command = self.command();
        command.args(arguments.iter().map(AsRef::as_ref));
        command.output().unwrap()
    }
}

/// The columns of `name`'s line in a table of llvm-cov.
fn columns<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line for {name} in {table}"));
    line.split_whitespace().collect()
}

/// Lines and missed lines of the total, in llvm-cov's columns.
fn total_lines(table: &str) -> (&str, &str) {
    let columns = columns(table, "TOTAL");
    (columns[7], columns[8])
}

/// The count next to a line of annotated source.
fn shown_count<'a>(shown: &'a str, source: &str) -> &'a str {
    let line = shown.lines().find(|line| line.contains(source));
    line.unwrap().split('|').nth(1).unwrap().trim()
}
