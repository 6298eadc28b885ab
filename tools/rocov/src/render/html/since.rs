//! The things of an earlier report that are lost: functions that do not run any more, and sources that are gone.

use std::collections::BTreeMap;

use super::figures::Shown;
use super::frame::Frame;
use super::functions::Listed;
use crate::coverage::Earlier;

/// The largest numbers of functions and of sources that the first page lists.
const LISTED: usize = 20;

/// The losses since an earlier report.
pub(super) struct Since<'a> {
    pub(super) earlier: &'a Earlier,
    /// The first functions that do not run any more.
    pub(super) functions: Vec<LostFunction<'a>>,
    pub(super) more_functions: usize,
    /// The first sources that are not there any more.
    pub(super) gone: Vec<&'a str>,
    pub(super) more_gone: usize,
}

/// A function that does not run any more.
pub(super) struct LostFunction<'a> {
    pub(super) name: &'a str,
    pub(super) is_kernel: bool,
    /// The columns in which it does not run any more.
    pub(super) columns: String,
    /// The name of its source, the path of the page, and the line.
    pub(super) source: &'a str,
    pub(super) page: &'a str,
    pub(super) line: u32,
}

impl<'a> Since<'a> {
    /// `None` if the report is compared with none.
    pub(super) fn find(
        frame: &'a Frame<'_>,
        listed: &'a [Listed<'_>],
        gone: &'a [(String, Shown)],
    ) -> Option<Self> {
        let earlier = frame.earlier?;
        let mut lost: BTreeMap<_, (_, Vec<&str>)> = BTreeMap::new();
        for function in earlier.lost_functions() {
            let place = (
                function.filename.as_str(),
                function.line,
                function.symbol.as_str(),
            );
            let (_, columns) = lost.entry(place).or_insert_with(|| (function, Vec::new()));
            columns.push(&function.arch);
        }
        let sources = listed.iter().map(|file| (file.source.path, file.source));
        let sources: BTreeMap<_, _> = sources.collect();
        let functions = lost
            .into_iter()
            .filter_map(|((path, line, _), (function, columns))| {
                let source = sources.get(path)?;
                Some(LostFunction {
                    name: &function.name,
                    is_kernel: function.is_kernel,
                    columns: columns.join(", "),
                    source: &source.name,
                    page: &source.page,
                    line,
                })
            });
        let mut functions: Vec<_> = functions.collect();
        let more_functions = functions.len().saturating_sub(LISTED);
        functions.truncate(LISTED);
        Some(Self {
            earlier,
            functions,
            more_functions,
            gone: gone.iter().take(LISTED).map(|(path, _)| &**path).collect(),
            more_gone: gone.len().saturating_sub(LISTED),
        })
    }
}
