//! The index for the search of the pages. It is a script, as a page that was opened from a file may
//! load scripts and nothing else.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use super::functions::Listed;

/// Files, and functions by the number of their file.
#[derive(Serialize)]
struct Index<'a> {
    /// Name and page.
    files: Vec<(&'a str, &'a str)>,
    /// Name, file and line.
    functions: Vec<(&'a str, usize, u32)>,
}

pub(super) fn write(listed: &[Listed<'_>], out: &mut dyn Write) -> Result<()> {
    let files = listed
        .iter()
        .map(|listed| (&*listed.source.name, &*listed.source.page));
    let functions = listed.iter().enumerate().flat_map(|(file, listed)| {
        let functions = listed.functions.iter();
        functions.map(move |function| (&*function.name, file, function.line))
    });
    let index = Index {
        files: files.collect(),
        functions: functions.collect(),
    };
    write!(out, "rocovSearchIndex(")?;
    serde_json::to_writer(&mut *out, &index)?;
    writeln!(out, ");")?;
    Ok(())
}
