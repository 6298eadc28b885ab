//! What llvm-cov says of device ELFs and their indexed profile, as data.

use crate::child;
use crate::llvm_tools::Tools;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What is known of a function that was compiled with coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    /// How often it was entered.
    pub(crate) count: u64,
    /// Its lines.
    pub(crate) lines: Option<Lines>,
}

/// Lines of source with code in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Lines {
    /// All of them.
    pub(crate) total: u64,
    /// Those that ran.
    pub(crate) covered: u64,
}

/// A command of llvm-cov about `elfs` and the indexed profile `merged`; options and sources may
/// follow.
pub(crate) fn llvm_cov(tools: &Tools, verb: &str, elfs: &[PathBuf], merged: &Path) -> Command {
    let mut command = Command::new(&tools.cov);
    command.arg(verb).arg("-instr-profile").arg(merged);
    // The first object is the positional argument, and everything after it is a source.
    let mut elfs = elfs.iter();
    if let Some(first) = elfs.next() {
        command.arg(first);
    }
    for elf in elfs {
        command.arg("-object").arg(elf);
    }
    command
}

/// The source files that coverage is known of, as they were named when they were compiled.
///
/// # Errors
///
/// When llvm-cov fails.
pub(crate) fn sources(tools: &Tools, elfs: &[PathBuf], merged: &Path) -> Result<Vec<PathBuf>> {
    let mut command = llvm_cov(tools, "export", elfs, merged);
    let data = export(command.arg("-summary-only"))?;
    Ok(data.files.into_iter().map(|file| file.filename).collect())
}

/// The functions of one device ELF, by their symbols.
///
/// # Errors
///
/// When llvm-cov fails.
pub(crate) fn functions(
    tools: &Tools,
    elf: &Path,
    merged: &Path,
) -> Result<BTreeMap<String, Function>> {
    let elfs = [elf.to_path_buf()];
    let mut command = llvm_cov(tools, "export", &elfs, merged);
    let data = export(command.arg("-skip-expansions"))?;
    let mut functions = BTreeMap::new();
    for function in &data.functions {
        let found: &mut Function = functions.entry(symbol(&function.name)).or_default();
        found.count = function.count;
    }
    let files: Vec<_> = data
        .files
        .iter()
        .map(|file| file.filename.as_path())
        .collect();
    for (name, lines) in lines_of_functions(tools, &elfs, merged, &files)? {
        if let Some(function) = functions.get_mut(&name) {
            function.lines = Some(lines);
        }
    }
    Ok(functions)
}

/// The symbol in the name of a function in a profile, where a static one has its file before it:
/// `dir/a.hip;_ZL4stepi`, up to LLVM 17 `a.hip:_ZL4stepi`.
fn symbol(name: &str) -> String {
    name.rsplit([':', ';']).next().unwrap_or(name).to_owned()
}

/// The part of `llvm-cov export`'s JSON that is used here.
#[derive(Deserialize)]
struct Export {
    data: Vec<ExportData>,
}

#[derive(Deserialize)]
struct ExportData {
    files: Vec<ExportFile>,
    // Not in a summary.
    #[serde(default)]
    functions: Vec<ExportFunction>,
}

#[derive(Deserialize)]
struct ExportFile {
    filename: PathBuf,
}

#[derive(Deserialize)]
struct ExportFunction {
    name: String,
    count: u64,
}

fn export(command: &mut Command) -> Result<ExportData> {
    let output = child::output(command)?;
    let mut export: Export = serde_json::from_slice(&output.stdout)
        .context("cannot read what `llvm-cov export` said")?;
    export.data.pop().context("`llvm-cov export` said nothing")
}

/// Lines of each function, which only llvm-cov's table of the functions in given files has.
fn lines_of_functions(
    tools: &Tools,
    elfs: &[PathBuf],
    merged: &Path,
    files: &[&Path],
) -> Result<Vec<(String, Lines)>> {
    // Sources that are not there are left out of it, though it reads none of them. So it is told to
    // look for them where there are empty files of their names.
    let stand_ins = TempDir::new().context("cannot make a temporary directory")?;
    let mut command = llvm_cov(tools, "report", elfs, merged);
    command.arg("-show-functions");
    let root = stand_ins.path().join("");
    command.arg(format!("-path-equivalence=/,{}", root.display()));
    for file in files {
        let Ok(relative) = file.strip_prefix("/") else {
            continue;
        };
        let stand_in = root.join(relative);
        let parent = stand_in.parent().unwrap_or(&root);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&stand_in, ""))
            .with_context(|| format!("cannot make {}", stand_in.display()))?;
        command.arg(stand_in);
    }
    let output = child::output(&mut command)?;
    let table = String::from_utf8_lossy(&output.stdout);
    Ok(table.lines().filter_map(row).collect())
}

/// A row of llvm-cov's table of functions: a name, then number, missed and percentage of regions,
/// and the same of lines and of branches.
fn row(line: &str) -> Option<(String, Lines)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, numbers) = words.split_at_checked(words.len().checked_sub(9)?)?;
    if name == ["TOTAL"] {
        return None;
    }
    let total: u64 = numbers[3].parse().ok()?;
    let missed: u64 = numbers[4].parse().ok()?;
    let covered = total.checked_sub(missed)?;
    Some((symbol(name.last()?), Lines { total, covered }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_function_is_found_by_its_symbol() {
        for name in ["_ZL4stepi", "a b.hip:_ZL4stepi", "/x/a.hip;_ZL4stepi"] {
            assert_eq!(symbol(name), "_ZL4stepi");
        }
    }

    #[test]
    fn rows_of_functions_are_told_from_other_lines() {
        let lines = Lines {
            total: 21,
            covered: 18,
        };
        let numbers = "12 1  91.67%   21   3  85.71%   8   1  87.50%";
        for name in ["steps", "my file.hip:steps"] {
            let line = format!("{name}   {numbers}");
            assert_eq!(row(&line), Some(("steps".to_owned(), lines)));
        }
        for line in [
            "",
            "File '/a/main.hip':",
            "Name  Regions    Miss   Cover     Lines    Miss   Cover  Branches    Miss   Cover",
        ] {
            assert_eq!(row(line), None, "{line}");
        }
    }
}
