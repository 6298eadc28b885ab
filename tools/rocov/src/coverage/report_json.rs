//! A report that was written as JSON, to be compared with another.
//!
//! llvm-cov's own format says neither which functions are kernels nor which sides of branches are
//! folded: that is in `rocov.columns`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::activity::Activities;
use super::export;
use super::hiprtc::Texts;
use super::model::{SharedFunctions, Side, Source};

/// The description of a column of a report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) side: Side,
    pub(crate) binaries: Vec<PathBuf>,
    /// The mangled names of functions that are kernels.
    pub(crate) kernels: Vec<String>,
    /// Sides of branches that the compiler folded: the numbers of the function and of its branch, in
    /// the order of the export, and 0 for the true side or 1 for the false one.
    pub(crate) folded: Vec<(usize, usize, usize)>,
}

#[derive(Deserialize)]
struct Saved {
    rocov: Rocov,
}

#[derive(Deserialize)]
struct Rocov {
    columns: Vec<Head>,
}

/// Reads such a report: a source of counts for each column. `place` gives the present path of a source
/// file.
///
/// # Errors
///
/// Fails if the file cannot be read, or is none that `rocov report --json` has written.
pub(crate) fn read(path: &Path, place: impl Fn(&str) -> String) -> Result<Vec<Source>> {
    let is_none = || {
        format!(
            "{} is no report that `rocov report --json` of this version wrote; give one, or a data directory",
            path.display()
        )
    };
    let open = || File::open(path).with_context(|| format!("cannot read {}", path.display()));
    let saved: Saved = serde_json::from_reader(BufReader::new(open()?)).with_context(is_none)?;
    let exports = export::read_all(open()?).with_context(is_none)?;
    if exports.iter().all(|export| export.records.is_empty()) {
        bail!(
            "{} has no functions: write it without --summary-only",
            path.display()
        );
    }
    if exports.len() != saved.rocov.columns.len() {
        bail!(is_none());
    }
    let mut shared = SharedFunctions::default();
    let sources = saved.rocov.columns.into_iter().zip(exports);
    let sources = sources.map(|(head, export)| {
        let mut records = export.records;
        for (function, branch, side) in head.folded {
            let record = records.get_mut(function).with_context(is_none)?;
            let function = Arc::get_mut(&mut record.function).with_context(is_none)?;
            let branch = function.branches.get_mut(branch).with_context(is_none)?;
            *branch.folded.get_mut(side).with_context(is_none)? = true;
        }
        shared.share(records.iter_mut().map(|it| &mut it.function), &place);
        Ok(Source {
            identity: String::new(),
            side: head.side,
            arch: head.name,
            binary: head.binaries.into_iter().next().unwrap_or_default(),
            compiler: None,
            kernels: head.kernels,
            records,
            texts: Texts::new(),
            activities: Activities::new(),
        })
    });
    sources.collect()
}
