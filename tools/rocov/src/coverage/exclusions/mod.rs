//! The exclusions of a report: lines and functions that comments or the user exclude, and by default code that nobody
//! expects to run.
//!
//! The default ones are the failing side of `assert`, and code that ends at `__builtin_unreachable()`, at
//! `__builtin_trap()`, at `std::unreachable()` or at a function that does not return. llvm-cov has no exclusions.

mod flow;
mod left_out;
mod never_return;
mod reason;
mod source_marks;

pub(crate) use reason::{ExcludedBranch, Reason};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use regex::RegexSet;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::function::{Function, Place};
use super::misfit::{Lines, Misfit, Stale, misplaced};
use super::model::Record;
use super::ran_lines::RanLines;
use super::source_text::SourceTexts;
use crate::support::demangle::shown;
use left_out::LeftOut;
use never_return::Names;
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

/// The lines with code that are left out, by source, each with the reason.
pub(crate) type ExcludedLines = BTreeMap<Arc<str>, BTreeMap<u32, Reason>>;

/// The conditions on lines that stay of which a side is left out, by source and place.
pub(crate) type ExcludedBranches = BTreeMap<Arc<str>, BTreeMap<Place, ExcludedBranch>>;

/// The code that is left out.
#[derive(Debug, Default)]
pub(crate) struct ExcludedCode {
    pub(crate) lines: ExcludedLines,
    pub(crate) branches: ExcludedBranches,
    /// Whole functions, by their mangled names.
    pub(crate) functions: BTreeMap<Arc<str>, Reason>,
    /// Functions whose signatures are left out, and of which lines stay.
    pub(crate) entries: BTreeMap<Arc<str>, Reason>,
}

/// The marks of a source, and the functions that do not return which these know.
#[derive(Debug)]
struct Known {
    marks: Arc<SourceMarks>,
    never_return: Arc<Names>,
}

/// The exclusions of a report. Each source is read once, or twice if it has functions that do not return.
#[derive(Debug, Default)]
pub(crate) struct Exclusions {
    /// `None` if nothing is left out.
    rules: Option<ExclusionRules>,
    /// The texts of sources that no code object has.
    texts: Mutex<SourceTexts>,
    known: Mutex<HashMap<Arc<str>, Known>>,
    /// The regular expressions that the name of a function matches.
    used: Mutex<BTreeSet<usize>>,
    /// The sources with exclusions that have changed since they were compiled.
    stale: Mutex<BTreeMap<Arc<str>, Stale>>,
}

impl Exclusions {
    /// Leaves out what these rules and the marks in `texts` exclude.
    pub(crate) fn new(rules: ExclusionRules, texts: SourceTexts) -> Self {
        Self {
            rules: Some(rules),
            texts: Mutex::new(texts),
            known: Mutex::default(),
            used: Mutex::default(),
            stale: Mutex::default(),
        }
    }

    /// Leaves nothing out.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// A line for each marker without its other end, in the sources that were read.
    pub(crate) fn faults(&self) -> Vec<Diagnostic> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let faults = known.iter().flat_map(|(path, known)| {
            let faults = known.marks.faults.iter();
            faults.map(move |fault| fault.clone().at(path))
        });
        let mut faults: Vec<_> = faults.collect();
        faults.sort();
        faults
    }

    /// The sources that are wanted and have changed since they were compiled, so that what they exclude may be other code,
    /// of those that were read.
    pub(crate) fn stale(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<Arc<str>, Misfit> {
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = stale.iter().filter(|(path, _)| is_wanted(path));
        wanted
            .map(|(path, stale)| (Arc::clone(path), Misfit::Stale(stale.clone())))
            .collect()
    }

    /// The sources that are wanted and were edited after code of them ran, by the lines that they had then.
    pub(crate) fn edited(
        &self,
        ran: &RanLines,
        is_wanted: impl Fn(&str) -> bool,
    ) -> BTreeMap<Arc<str>, Misfit> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = ran.sources().filter(|path| is_wanted(path));
        let edited = wanted.filter_map(|path| {
            let text = texts.read(Path::new(&**path)).ok()?;
            let lines = Lines::new(&text);
            let line = ran.first_changed(path, |number| Some(lines.get(number)))?;
            Some((Arc::clone(path), Misfit::Stale(Stale::since_run(line))))
        });
        edited.collect()
    }

    /// A line for each regular expression of the user that has excluded nothing so far.
    pub(crate) fn idle(&self) -> Vec<Diagnostic> {
        let Some(rules) = &self.rules else {
            return Vec::new();
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of_lines: BTreeSet<usize> = known
            .values()
            .flat_map(|known| known.marks.patterns.iter().copied())
            .collect();
        let of_functions = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let idle =
            |patterns: &[String], used: &BTreeSet<usize>, line: &dyn Fn(&str) -> Diagnostic| {
                let unused = patterns.iter().enumerate();
                let unused = unused.filter(|(number, _)| !used.contains(number));
                unused.map(|(_, regex)| line(regex)).collect::<Vec<_>>()
            };
        let lines = rules.lines.as_ref().map(|set| set.patterns());
        let functions = rules.functions.as_ref().map(RegexSet::patterns);
        let mut idle_ones = idle(lines.unwrap_or_default(), &of_lines, &|regex| {
            diagnostic!(
                "--exclude-line {regex} matches no source line";
                "fix it, or leave it out"
            )
        });
        idle_ones.extend(idle(
            functions.unwrap_or_default(),
            &of_functions,
            &|regex| {
                diagnostic!(
                    "--exclude-function {regex} matches no function";
                    "fix it, or leave it out"
                )
            },
        ));
        idle_ones
    }

    /// Takes what is excluded out of `records`, and returns it. `texts` are those that code objects have.
    pub(super) fn leave_out(&self, records: &mut Vec<Record>, texts: &SourceTexts) -> ExcludedCode {
        let mut excluded = ExcludedCode::default();
        let Some(rules) = &self.rules else {
            return excluded;
        };
        let never_return = Arc::new(self.never_return(records, rules, texts));
        records.retain_mut(|record| {
            let function = Arc::clone(&record.function);
            let paths = function.filenames.iter();
            let marks = paths.map(|path| self.marks(path, rules, texts, Some(&never_return)));
            let marks: Vec<_> = marks.collect();
            let by_name = self.reason_of_name(&function, rules.functions.as_ref());
            let keeps_unreachable = rules.keeps_unreachable;
            let mut of_files = marks.iter();
            if by_name.is_none() && !of_files.any(|marks| marks.exclude_code(keeps_unreachable)) {
                return true;
            }
            self.check(&function, &marks, keeps_unreachable);
            let before = record.lines(&record.segments());
            let left_out = LeftOut::new(record, &marks, keeps_unreachable);
            let branches = match by_name {
                Some(_) => None,
                None => left_out.take_from(record),
            };
            let stays = branches.is_some();
            let after: BTreeSet<u32> = match stays {
                true => lines(record.lines(&record.segments())).collect(),
                false => BTreeSet::new(),
            };
            let branches = branches
                .into_iter()
                .flatten()
                .filter(|(place, _)| after.contains(&place.line));
            let branches: Vec<_> = branches.collect();
            if !branches.is_empty() {
                let of_path = excluded.branches.entry(Arc::clone(function.main_path()));
                of_path.or_default().extend(branches);
            }
            let reason = |line: u32| by_name.clone().unwrap_or_else(|| left_out.reason(line));
            let gone = lines(before).filter(|line| !after.contains(line));
            let gone: BTreeMap<_, _> = gone.map(|line| (line, reason(line))).collect();
            if !stays {
                let start = function.start().line;
                let whole = by_name.as_ref().or(left_out.whole());
                let whole = whole.cloned().unwrap_or_else(|| left_out.reason(start));
                excluded.functions.insert(Arc::clone(&function.name), whole);
            } else if let Some(reason) = left_out.entry() {
                let name = Arc::clone(&function.name);
                excluded.entries.insert(name, reason.clone());
            }
            if !gone.is_empty() {
                let path = Arc::clone(function.main_path());
                excluded.lines.entry(path).or_default().extend(gone);
            }
            stays
        });
        excluded
    }

    /// Checks that the texts that exclude code of a function are those that were compiled.
    fn check(&self, function: &Function, marks: &[Arc<SourceMarks>], keeps_unreachable: bool) {
        let line = |file: u32, number: u32| {
            let marks = &marks[file as usize];
            let are_used = marks.exclude_code(keeps_unreachable);
            are_used.then(|| marks.text_of(number))
        };
        for (file, mut place) in misplaced(function, line) {
            place.has_exclusions = true;
            let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
            let path = Arc::clone(function.path(file));
            stale.entry(path).or_insert(place);
        }
    }

    /// The reason why a function is left out by its name.
    fn reason_of_name(&self, function: &Function, names: Option<&RegexSet>) -> Option<Reason> {
        let names = names?;
        let matches = [
            names.matches(&function.name),
            names.matches(&shown(&function.name)),
        ];
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first = None;
        for number in matches.iter().flatten() {
            used.insert(number);
            first = first.or(Some(number));
        }
        Some(Reason::FunctionPattern(
            names.patterns()[first?].as_str().into(),
        ))
    }

    /// The functions that the sources of these records declare as ones that do not return.
    fn never_return(
        &self,
        records: &[Record],
        rules: &ExclusionRules,
        texts: &SourceTexts,
    ) -> Names {
        if rules.keeps_unreachable {
            return Names::new();
        }
        let paths = records.iter().flat_map(|record| &record.function.filenames);
        let paths: HashSet<&Arc<str>> = paths.collect();
        let marks = paths
            .into_iter()
            .map(|path| self.marks(path, rules, texts, None));
        marks.flat_map(|marks| marks.never_return.clone()).collect()
    }

    /// The marks of the source at `path`; none if it cannot be read. They have the calls of `never_return`, if that is
    /// given.
    fn marks(
        &self,
        path: &Arc<str>,
        rules: &ExclusionRules,
        texts: &SourceTexts,
        never_return: Option<&Arc<Names>>,
    ) -> Arc<SourceMarks> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |found: &&Known| never_return.is_none_or(|names| *names == found.never_return);
        if let Some(found) = known().get(path).filter(fits) {
            return Arc::clone(&found.marks);
        }
        let never_return = never_return.cloned().unwrap_or_default();
        let place = Path::new(&**path);
        let text = match texts.in_code_object(place) {
            Some(text) => Ok(text.to_vec()),
            None => {
                let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
                texts.read(place)
            }
        };
        let text = text.unwrap_or_default();
        let marks = Arc::new(SourceMarks::read(
            &text,
            rules.lines.as_ref(),
            &never_return,
        ));
        let found = Known {
            marks: Arc::clone(&marks),
            never_return,
        };
        known().insert(Arc::clone(path), found);
        marks
    }
}

fn lines(counted: Vec<(u32, u64)>) -> impl Iterator<Item = u32> {
    counted.into_iter().map(|(line, _)| line)
}
