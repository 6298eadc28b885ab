//! All functions of all sources of counts, and which are taken together.
//!
//! A source of counts is one code object on one arch, or the host's program. Counts of one function
//! are added within an arch and over archs, and never over the sides: a `__host__ __device__`
//! function is one function twice.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::activity::Activities;
use super::function::{Counts, Decision, DecisionOutcome, Function, Key};
use super::hiprtc::Texts;
use super::ran_lines::RanLines;
use super::segments::CountedRegion;
use crate::profdata::{CountKinds, CountUnit};

/// The side that code runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Device,
    Host,
}

/// One code object on one arch, or a program on the host.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) side: Side,
    /// The arch; `host` on the host.
    pub(crate) arch: String,
    /// The identity of the code object; empty on the host, and if it is not known.
    pub(crate) identity: String,
    /// The file that the code is in.
    pub(crate) binary: PathBuf,
    /// The mangled names of its functions that are kernels.
    pub(crate) kernels: Vec<String>,
    /// The compiler's name of itself, such as `clang version 22.1.8`. `None` on the host, and if it is not
    /// known.
    pub(crate) compiler: Option<String>,
    pub(crate) records: Vec<Record>,
    /// The texts of its sources that hipRTC compiled.
    pub(crate) texts: Texts,
    /// The lines of its sources as they were when it ran.
    pub(crate) ran_lines: RanLines,
    /// The instructions that were executed of its lines, as far as they are counted.
    pub(crate) activities: Activities,
    /// The kinds of its counts.
    pub(crate) kinds: CountKinds,
    /// The unit of its counts, if a user can choose it.
    pub(crate) unit: Option<CountUnit>,
}

impl Source {
    /// The source files that it has something in.
    pub(crate) fn paths(&self) -> HashSet<Arc<str>> {
        let paths = self
            .records
            .iter()
            .flat_map(|record| &record.function.filenames);
        paths.map(Arc::clone).collect()
    }
}

/// A function and its counts.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) function: Arc<Function>,
    pub(crate) counts: Counts,
    /// The regions that its mapping lacks; none under the rules of llvm-cov.
    pub(crate) inferred: Vec<Inferred>,
    /// The function as the code object describes it, if a part of it is left out.
    pub(crate) described: Option<Arc<Function>>,
    /// True if the function is no function of the figures, though lines of it are reported.
    pub(crate) is_entry_excluded: bool,
}

impl Record {
    pub(crate) fn new(function: Arc<Function>, counts: Counts) -> Self {
        Self {
            function,
            counts,
            inferred: Vec::new(),
            described: None,
            is_entry_excluded: false,
        }
    }

    /// The function as the code object describes it, with the parts that the report leaves out.
    pub(crate) fn description(&self) -> &Arc<Function> {
        self.described.as_ref().unwrap_or(&self.function)
    }

    /// The MC/DC decisions with their outcomes.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = (&Decision, &DecisionOutcome)> {
        let decisions = self.function.decisions.iter();
        decisions.zip(&self.counts.decisions)
    }
}

/// Descriptions of functions and paths, which many code objects share.
#[derive(Debug, Default)]
pub(crate) struct SharedFunctions {
    functions: HashSet<Arc<Function>>,
    paths: HashMap<Arc<str>, Arc<str>>,
}

impl SharedFunctions {
    /// Makes descriptions that were just read those that are known. `place` gives the present path of a source
    /// file for the path that it was compiled from.
    pub(crate) fn share<'a>(
        &mut self,
        functions: impl IntoIterator<Item = &'a mut Arc<Function>>,
        place: impl Fn(&str) -> String,
    ) {
        for function in functions {
            // A description that was just read has no other owner yet.
            if let Some(function) = Arc::get_mut(function) {
                for path in &mut function.filenames {
                    let paths = self.paths.entry(Arc::clone(path));
                    let place = paths.or_insert_with(|| place(path).into());
                    rename(&mut function.name, path, place);
                    *path = Arc::clone(place);
                }
            }
            match self.functions.get(function) {
                Some(known) => *function = Arc::clone(known),
                None => _ = self.functions.insert(Arc::clone(function)),
            }
        }
    }
}

/// Moves the source in the name of a static function: `/a/k.hip;_ZL4stepi`.
fn rename(name: &mut Arc<str>, path: &Arc<str>, place: &Arc<str>) {
    if path == place {
        return;
    }
    if let Some(symbol) = name.strip_prefix(&**path)
        && symbol.starts_with([';', ':'])
    {
        *name = format!("{place}{symbol}").into();
    }
}

/// Gives the functions of `sources` the paths of `place`, after all of them share their descriptions.
pub(crate) fn move_all(sources: &mut [Source], place: impl Fn(&str) -> String) {
    let mut shared = SharedFunctions::default();
    // Each with its former self, which keeps its address.
    let mut moved: HashMap<*const Function, [Arc<Function>; 2]> = HashMap::new();
    let records = sources.iter_mut().flat_map(|source| &mut source.records);
    let functions = records.map(|record| &mut record.function);
    for function in functions {
        let known = moved.entry(Arc::as_ptr(function)).or_insert_with(|| {
            let mut copy = Arc::new(Function::clone(function));
            shared.share([&mut copy], &place);
            [Arc::clone(function), copy]
        });
        *function = Arc::clone(&known[1]);
    }
}

/// The functions of several sources of counts, those of each function added.
///
/// A unit that does not use a function of a header may describe it as one region without a counter;
/// that is dropped if another source has the function itself.
pub(crate) fn combine(records: impl IntoIterator<Item = Record>) -> Vec<Record> {
    let mut combined: Vec<Record> = Vec::new();
    // A line table describes another function than a coverage mapping.
    let mut known: HashMap<(Key, bool), Vec<usize>> = HashMap::new();
    for record in records {
        let function = Arc::clone(&record.function);
        let same_name = known.entry((function.key(), function.line_table.is_some()));
        let same_name = same_name.or_default();
        if let Some(same) = same_name
            .iter()
            .find(|index| Arc::ptr_eq(&combined[**index].function, &function))
        {
            combined[*same].counts.add(&record.counts);
        } else if let Some(placeholder) = same_name.iter().find(|index| {
            let placeholder = &combined[**index];
            placeholder.function.may_be_placeholder() && placeholder.counts.calls == 0
        }) {
            combined[*placeholder] = record;
        } else if !(function.may_be_placeholder()
            && record.counts.calls == 0
            && !same_name.is_empty())
        {
            same_name.push(combined.len());
            combined.push(record);
        }
    }
    combined
}

/// A region that the mapping of a function lacks.
#[derive(Debug, Clone)]
pub(crate) struct Inferred {
    /// Index into [`Function::filenames`].
    pub(super) file: u32,
    pub(super) region: CountedRegion,
    /// True if the mapping of another instance has the region.
    pub(super) is_mapped: bool,
}
