//! The exclusions of a report: lines and functions that comments or the user exclude, and by default code that nobody
//! expects to run.
//!
//! The default ones are the failing side of `assert`, and code that ends at `__builtin_unreachable()`, at
//! `__builtin_trap()` or at `std::unreachable()`. llvm-cov has no exclusions.

mod left_out;
mod source_marks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use regex::RegexSet;

use super::function::Function;
use super::model::Record;
use super::source_text::SourceTexts;
use crate::support::demangle::shown;
use left_out::LeftOut;
use source_marks::SourceMarks;

/// The exclusions that the user chooses.
#[derive(Debug, Default)]
pub(crate) struct ExclusionRules {
    /// True without the failing side of `assert`, and without code that is never reached.
    pub(crate) keeps_unreachable: bool,
    /// Lines that match one of these.
    pub(crate) lines: Option<regex::bytes::RegexSet>,
    /// Functions whose names, demangled or mangled, match one of these.
    pub(crate) functions: Option<RegexSet>,
}

/// The lines with code that are left out, by source.
pub(crate) type ExcludedLines = BTreeMap<Arc<str>, BTreeSet<u32>>;

/// The exclusions of a report. Each source is read once.
#[derive(Debug, Default)]
pub(crate) struct Exclusions {
    /// `None` if nothing is left out.
    rules: Option<ExclusionRules>,
    /// The texts of sources that no code object has.
    texts: Mutex<SourceTexts>,
    known: Mutex<HashMap<Arc<str>, Arc<SourceMarks>>>,
}

impl Exclusions {
    /// Leaves out what these rules and the marks in `texts` exclude.
    pub(crate) fn new(rules: ExclusionRules, texts: SourceTexts) -> Self {
        Self {
            rules: Some(rules),
            texts: Mutex::new(texts),
            known: Mutex::default(),
        }
    }

    /// Leaves nothing out.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// A line for each marker without its other end, in the sources that were read.
    pub(crate) fn faults(&self) -> Vec<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let faults = known.iter().flat_map(|(path, marks)| {
            let faults = marks.faults.iter();
            faults.map(move |fault| format!("{path}:{fault}"))
        });
        let mut faults: Vec<_> = faults.collect();
        faults.sort();
        faults
    }

    /// Takes what is excluded out of `records`, and returns the lines. `texts` are those that code objects have.
    pub(super) fn leave_out(
        &self,
        records: &mut Vec<Record>,
        texts: &SourceTexts,
    ) -> ExcludedLines {
        let mut excluded = ExcludedLines::new();
        let Some(rules) = &self.rules else {
            return excluded;
        };
        records.retain_mut(|record| {
            let function = Arc::clone(&record.function);
            let paths = function.filenames.iter();
            let marks: Vec<_> = paths.map(|path| self.marks(path, rules, texts)).collect();
            let is_named = is_named(&function, rules.functions.as_ref());
            if !is_named && marks.iter().all(|marks| marks.is_empty()) {
                return true;
            }
            let before = record.lines(&record.segments());
            let left_out = LeftOut::new(record, &marks, rules.keeps_unreachable);
            let stays = !is_named && left_out.take_from(record);
            let after: BTreeSet<u32> = match stays {
                true => lines(record.lines(&record.segments())).collect(),
                false => BTreeSet::new(),
            };
            let mut gone = lines(before)
                .filter(|line| !after.contains(line))
                .peekable();
            if gone.peek().is_some() {
                let path = Arc::clone(function.main_path());
                excluded.entry(path).or_default().extend(gone);
            }
            stays
        });
        excluded
    }

    /// The marks of the source at `path`; none if it cannot be read.
    fn marks(
        &self,
        path: &Arc<str>,
        rules: &ExclusionRules,
        texts: &SourceTexts,
    ) -> Arc<SourceMarks> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(marks) = known().get(path) {
            return Arc::clone(marks);
        }
        let place = Path::new(&**path);
        let text = match texts.in_code_object(place) {
            Some(text) => Ok(text.to_vec()),
            None => {
                let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
                texts.read(place)
            }
        };
        let marks = SourceMarks::read(text.unwrap_or_default(), rules.lines.as_ref());
        let marks = Arc::new(marks);
        known().insert(Arc::clone(path), Arc::clone(&marks));
        marks
    }
}

fn lines(counted: Vec<(u32, u64)>) -> impl Iterator<Item = u32> {
    counted.into_iter().map(|(line, _)| line)
}

fn is_named(function: &Function, names: Option<&RegexSet>) -> bool {
    let is_match = |name: &str| names.is_some_and(|names| names.is_match(name));
    is_match(&function.name) || names.is_some() && is_match(&shown(&function.name))
}
