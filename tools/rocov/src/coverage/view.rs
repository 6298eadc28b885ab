//! The view of a report: columns of counts, and the figures of each source file in each column and in
//! all of them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::fast::RandomState;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::activity::{self, Activities, Activity};
use super::baseline_column::Carried;
use super::changed::covered::Changed;
use super::exclusions::{
    ExcludedBranch, ExcludedBranches, ExcludedCode, ExcludedLines, Exclusions, Reason,
};
use super::figures::Figures;
use super::function::{Function, Place};
use super::function_coverage::FunctionCoverage;
use super::inferred::infer;
use super::joined_file::LabelCounts;
use super::line_table::is_without_lines;
use super::line_tests::LineTests;
use super::mapped_functions::MappedFunctions;
use super::misfit::{self, Misfit};
use super::model::{Record, Side, Source, combine};
use super::part::Part;
use super::ran_lines::RanLines;
use super::selection::SourceGlobs;
use super::source_text::SourceTexts;
use crate::profdata::{CountKind, CountKinds, CountUnit};

/// The grouping of code objects to columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// All code objects of an arch
    Arch,
    /// Each code object by itself
    Binary,
}

/// The rules for the counts of lines, and for figures of templates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Rules {
    /// A line has the count that it ran. A part of a template is covered if an instance covers it.
    #[default]
    Own,
    /// Those of llvm-cov, which reports some lines that ran with a count of 0. A template counts as well as its best
    /// instance.
    LlvmCov,
}

impl Rules {
    /// The figures of a function, from those of its instances.
    fn together(self, instances: Vec<FunctionCoverage>) -> Figures {
        let each = instances.iter().map(FunctionCoverage::figures);
        let sum = each
            .clone()
            .fold(Figures::default(), |sum, figures| sum.plus(&figures));
        let all = match self {
            Self::LlvmCov => each.fold(Figures::default(), |best, figures| best.max(&figures)),
            Self::Own => {
                let joined = instances.into_iter().reduce(|mut joined, instance| {
                    joined.join(instance);
                    joined
                });
                joined.unwrap_or_default().figures()
            }
        };
        Figures {
            instantiations: sum.instantiations,
            ..all
        }
    }

    /// The figures of functions, by the places that they start at. Those that start at one place are instances.
    fn sum(self, functions: impl IntoIterator<Item = (Place, FunctionCoverage)>) -> Figures {
        let mut by_start: BTreeMap<Place, Vec<FunctionCoverage>> = BTreeMap::new();
        for (start, coverage) in functions {
            by_start.entry(start).or_default().push(coverage);
        }
        let functions = by_start
            .into_values()
            .map(|function| self.together(function));
        functions.fold(Figures::default(), |sum, figures| sum.plus(&figures))
    }

    /// The figures of functions, each of which has one record.
    fn sum_of<'a>(self, records: impl IntoIterator<Item = &'a Record>) -> Figures {
        let mut by_start: BTreeMap<Place, Vec<&Record>> = BTreeMap::new();
        for record in records {
            let start = record.function.start();
            by_start.entry(start).or_default().push(record);
        }
        let functions = by_start.into_values().map(|records| match &records[..] {
            [record] => FunctionCoverage::figures_of(record),
            records => {
                let instances = records
                    .iter()
                    .map(|record| FunctionCoverage::from_record(record));
                self.together(instances.collect())
            }
        });
        functions.fold(Figures::default(), |sum, figures| sum.plus(&figures))
    }
}

/// Counts that are taken together.
#[derive(Debug)]
pub(crate) struct Column {
    /// The arch, or `host`; by binary, with the binary's name.
    pub(crate) label: String,
    pub(crate) side: Side,
    /// The files that the code is in, each once.
    pub(crate) binaries: BTreeSet<PathBuf>,
    /// The mangled names of functions that are kernels.
    pub(crate) kernels: HashSet<String>,
    /// The compilers of the code objects, by their names of themselves.
    pub(crate) compilers: BTreeSet<String>,
    /// The identities of the code objects.
    pub(crate) identities: BTreeSet<String>,
    pub(crate) records: Vec<Record>,
    /// The instructions that were executed of each line, as far as they are counted.
    pub(crate) activities: Activities,
    /// The kinds of counts of the code objects.
    pub(crate) kinds: CountKinds,
    /// The unit of the counts, if a user can choose it.
    pub(crate) unit: Option<CountUnit>,
    /// The number of functions whose counts are too low, as they add without atomic operations.
    pub(crate) non_atomic: usize,
    /// The lines that are left out.
    pub(crate) excluded: ExcludedLines,
    /// The conditions on other lines of which a side is left out.
    pub(crate) excluded_branches: ExcludedBranches,
    /// Indices of the records that have something in a file.
    by_path: HashMap<Arc<str>, Vec<usize>, RandomState>,
}

impl Column {
    fn new(
        label: String,
        side: Side,
        sources: Vec<Source>,
        rules: Rules,
        left_out: impl FnOnce(&mut Vec<Record>) -> ExcludedCode,
    ) -> Self {
        let binaries = sources.iter().map(|source| source.binary.clone()).collect();
        let kernels = sources.iter().flat_map(|source| &source.kernels);
        let kernels = kernels.cloned().collect();
        let compilers = sources.iter().filter_map(|source| source.compiler.clone());
        let compilers = compilers.collect();
        let identities = sources.iter().map(|source| source.identity.clone());
        let identities = identities.collect();
        let mut activities = Activities::new();
        for source in &sources {
            activity::add(&mut activities, &source.activities);
        }
        let kinds = sources.iter().flat_map(|source| &source.kinds).copied();
        let kinds = kinds.collect();
        let unit = sources.iter().filter_map(|source| source.unit).max();
        let mut records = combine(sources.into_iter().flat_map(|source| source.records));
        if rules == Rules::Own {
            infer(&mut records);
        }
        let excluded = left_out(&mut records);
        let mut by_path: HashMap<_, Vec<usize>, RandomState> = HashMap::default();
        for (index, record) in records.iter().enumerate() {
            for path in &record.function.filenames {
                let of_path = by_path.entry(Arc::clone(path)).or_default();
                // A function has a file for each macro that it expands.
                if of_path.last() != Some(&index) {
                    of_path.push(index);
                }
            }
        }
        Self {
            label,
            side,
            binaries,
            kernels,
            compilers,
            identities,
            records,
            activities,
            kinds,
            unit,
            non_atomic: 0,
            excluded: excluded.lines,
            excluded_branches: excluded.branches,
            by_path,
        }
    }

    /// Returns whether regions and branches are known of some of its code. Line tables do not list them.
    pub(crate) fn has_regions(&self) -> bool {
        self.kinds.contains(&CountKind::Mapping)
    }

    /// Returns whether any of the code has something in this file.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// The functions that have something in this file: that are defined in it, or expand a macro of
    /// it.
    pub(crate) fn touching<'a>(&'a self, path: &str) -> impl Iterator<Item = &'a Record> + Clone {
        let indices = self.by_path.get(path).map_or(&[][..], Vec::as_slice);
        indices.iter().map(|index| &self.records[*index])
    }

    /// The functions that are defined in this file.
    pub(crate) fn defined_in<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Record> {
        self.touching(path)
            .filter(move |record| &**record.function.main_path() == path)
    }

    /// The functions that are defined in this file, but for those whose entries are left out.
    pub(crate) fn entries<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Record> {
        self.defined_in(path)
            .filter(|record| !record.is_entry_excluded)
    }

    /// The calls of the functions that are defined in this file, by their lines.
    pub(crate) fn calls(&self, path: &str) -> Vec<(u32, u64)> {
        let records = self.entries(path);
        let calls = records.map(|record| (record.function.start().line, record.counts.calls));
        calls.collect()
    }

    /// Returns whether a line of a file is left out.
    pub(crate) fn excludes_line(&self, path: &str, line: u32) -> bool {
        let lines = self.excluded.get(path);
        lines.is_some_and(|lines| lines.contains_key(&line))
    }

    /// Returns whether a side of a condition is left out, of a line of a file that stays.
    pub(crate) fn excludes_side(&self, path: &str, condition: Place, side: usize) -> bool {
        let branches = self.excluded_branches.get(path);
        let branch = branches.and_then(|branches| branches.get(&condition));
        branch.is_some_and(|branch| branch.sides[side].is_some())
    }

    /// The figures of a file. `None` if a function is there several times in different forms, which must be
    /// joined.
    fn figures(&self, path: &str, rules: Rules) -> Option<Figures> {
        let mut known = HashSet::new();
        let functions = self.defined_in(path).map(|record| {
            let function = &record.function;
            let is_new = known.insert((function.start(), &*function.name));
            is_new.then_some(record)
        });
        Some(rules.sum_of(functions.collect::<Option<Vec<_>>>()?))
    }
}

/// The model as it is shown.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) columns: Vec<Column>,
    /// The source files, sorted.
    pub(crate) paths: Vec<Arc<str>>,
    /// The text of the source files.
    pub(crate) texts: SourceTexts,
    /// The lines of the source files as they were when code ran.
    pub(crate) ran_lines: RanLines,
    /// The source files that are missing or have changed since they were compiled, of those that were
    /// checked. Those that exclude code always are.
    pub(crate) misfits: BTreeMap<Arc<str>, Misfit>,
    /// The coverage of a change, if one is reported.
    pub(crate) changed: Option<Changed>,
    /// The columns of earlier runs that this report has none of, if the user wants them.
    pub(crate) carried: Vec<Carried>,
    /// The code for archs that programs were compiled for and never ran on, if a gate asks for it.
    pub(crate) other_archs: Option<Box<Self>>,
    /// The selected components.
    pub(crate) components: Vec<Part>,
    /// The tests that profiles are labelled with, if the user asks for them.
    pub(crate) tests: Vec<Part>,
    /// The tests of each line, by their numbers in `tests`.
    pub(crate) line_tests: LineTests,
    pub(crate) rules: Rules,
    /// The counts under each label, if the user asks for them.
    pub(crate) label_counts: Vec<LabelCounts>,
    table: OnceCell<Table>,
}

/// The figures of one file, or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The figures in each column; `None` if the file is not in it.
    pub(crate) columns: Vec<Option<Figures>>,
    /// The figures of all columns joined.
    pub(crate) all: Figures,
}

impl Row {
    /// Adds the figures of another file.
    fn add(&mut self, row: &Self) {
        self.all = self.all.plus(&row.all);
        for (sum, figures) in self.columns.iter_mut().zip(&row.columns) {
            if let Some(figures) = figures {
                *sum = Some(sum.unwrap_or_default().plus(figures));
            }
        }
    }
}

impl View {
    /// The reason why a line of a source is left out. `None` if some function of this view,
    /// which leaves nothing out, still has the line.
    pub(crate) fn reason(&self, exclusions: &Exclusions, path: &str, line: u32) -> Option<Reason> {
        let mut found = None;
        for column in &self.columns {
            let mut records: Vec<_> = column.defined_in(path).cloned().collect();
            let excluded = exclusions.leave_out(&mut records, &self.texts);
            let has = |record: &Record| {
                let here = record.lines(&record.segments());
                here.iter().any(|(other, _)| *other == line)
            };
            if records.iter().any(has) {
                return None;
            }
            let here = excluded.lines.get(path).and_then(|lines| lines.get(&line));
            found = found.or(here.cloned());
        }
        found
    }

    /// Shows these sources of counts by rocov's own rules, with nothing left out, and of the source files those that
    /// `is_wanted`.
    pub(crate) fn new(sources: Vec<Source>, by: By, is_wanted: impl Fn(&str) -> bool) -> Self {
        Self::by_rules(Rules::Own, &Exclusions::none(), sources, by, is_wanted)
    }

    /// Shows these sources of counts by these rules, without what is excluded, and of the source files those that
    /// `is_wanted`.
    pub(crate) fn by_rules(
        rules: Rules,
        exclusions: &Exclusions,
        sources: Vec<Source>,
        by: By,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let texts = sources.iter().map(|source| &source.texts);
        let texts = SourceTexts::embedded(texts);
        let mut ran_lines = RanLines::default();
        for source in &sources {
            ran_lines.add(&source.ran_lines);
        }
        let mut groups: BTreeMap<(Side, String), Vec<Source>> = BTreeMap::new();
        for source in sources {
            let label = match by {
                By::Arch => source.arch.clone(),
                By::Binary => format!("{} {}", source.arch, file_name(&source.binary)),
            };
            groups.entry((source.side, label)).or_default().push(source);
        }
        let columns: Vec<_> = groups
            .into_iter()
            .map(|((side, label), sources)| {
                let left_out = |records: &mut _| exclusions.leave_out(records, &texts);
                Column::new(label, side, sources, rules, left_out)
            })
            .collect();
        let paths: BTreeSet<_> = columns
            .iter()
            .flat_map(|column| column.by_path.keys())
            .filter(|path| is_wanted(path))
            .map(Arc::clone)
            .collect();
        Self {
            columns,
            paths: paths.into_iter().collect(),
            texts,
            ran_lines,
            misfits: BTreeMap::new(),
            changed: None,
            carried: Vec::new(),
            other_archs: None,
            components: Vec::new(),
            tests: Vec::new(),
            line_tests: LineTests::default(),
            rules,
            label_counts: Vec::new(),
            table: OnceCell::new(),
        }
    }

    /// The columns of architectures that the code was compiled for and nothing ran on, but those whose figures are carried
    /// forward; each with its view.
    pub(crate) fn idle_columns(&self) -> impl Iterator<Item = (&Self, &Column)> {
        let others = self.other_archs.iter().map(|other| &**other);
        let columns =
            others.flat_map(|other| other.columns.iter().map(move |column| (other, column)));
        columns.filter(|(_, column)| !self.carries(&column.label))
    }

    /// Returns whether figures of an earlier run of an architecture are carried forward.
    pub(crate) fn carries(&self, label: &str) -> bool {
        self.carried.iter().any(|carried| carried.label == label)
    }

    /// Adds sources that do not fit, unless they are known.
    pub(crate) fn add_misfits(&mut self, misfits: BTreeMap<Arc<str>, Misfit>) {
        for (path, misfit) in misfits {
            self.misfits.entry(path).or_insert(misfit);
        }
    }

    /// Lines about the source files that were found to have changed or to be missing, of the data called `name`.
    pub(crate) fn misfits_of(&self, name: &str) -> Vec<Diagnostic> {
        let messages = misfit::about_all(&self.misfits).into_iter();
        messages.map(|message| message.within(name)).collect()
    }

    /// Adds components that are made of sources, and returns a line for each that has none.
    pub(crate) fn add_components(
        &mut self,
        components: &[(String, SourceGlobs)],
    ) -> Vec<Diagnostic> {
        let mut empty = Vec::new();
        for (name, sources) in components {
            let part = Part::from_sources(name.clone(), self, sources);
            if part.columns.is_empty() {
                empty.push(diagnostic!(
                    "component {name}: none of its sources is in the report";
                    "use globs that match at least one"
                ));
            }
            self.components.push(part);
        }
        empty
    }

    /// All source files that the columns have something in, also those that are not shown.
    pub(crate) fn everything(&self) -> BTreeSet<&str> {
        let paths = self.columns.iter().flat_map(|column| column.by_path.keys());
        paths.map(|path| &**path).collect()
    }

    /// The instructions that were executed of each line of a file, on all archs.
    pub(crate) fn activity(&self, path: &str) -> BTreeMap<u32, Activity> {
        let mut lines: BTreeMap<u32, Activity> = BTreeMap::new();
        let columns = self.columns.iter();
        for (line, activity) in columns
            .flat_map(|column| column.activities.get(path))
            .flatten()
        {
            let known = lines.entry(*line).or_default();
            *known = known.plus(*activity);
        }
        lines
    }

    /// Returns whether something is left out.
    pub(crate) fn has_exclusions(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| !column.excluded.is_empty() || !column.excluded_branches.is_empty())
    }

    /// The lines of a file that are left out in each column that has code there, with the reasons.
    pub(crate) fn excluded(&self, path: &str) -> BTreeMap<u32, &Reason> {
        let columns = self.columns.iter().rev();
        let excluded = columns.filter_map(|column| column.excluded.get(path));
        let lines = excluded.flatten();
        lines.map(|(line, reason)| (*line, reason)).collect()
    }

    /// The conditions of a file of which a side is left out in some column, by their places. Those of excluded lines are
    /// not among them.
    pub(crate) fn excluded_branches(&self, path: &str) -> BTreeMap<Place, &ExcludedBranch> {
        let columns = self.columns.iter().rev();
        let excluded = columns.filter_map(|column| column.excluded_branches.get(path));
        let branches = excluded.flatten();
        branches.map(|(place, branch)| (*place, branch)).collect()
    }

    /// The lines of a file that are left out, by the reasons, in the order of the first line.
    pub(crate) fn excluded_by_reason(&self, path: &str) -> Vec<(&Reason, Vec<u32>)> {
        let mut by_reason: Vec<(&Reason, Vec<u32>)> = Vec::new();
        for (line, reason) in self.excluded(path) {
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, lines)) => lines.push(line),
                None => by_reason.push((reason, vec![line])),
            }
        }
        by_reason
    }

    /// The number of lines that are left out of the files shown.
    pub(crate) fn excluded_lines(&self) -> usize {
        let paths = self.paths.iter();
        paths.map(|path| self.excluded(path).len()).sum()
    }

    /// Calls `of` for each column, by its index, and adds `all` if there are several columns.
    pub(crate) fn each<T>(&self, of: impl FnMut(usize) -> T, all: T) -> Vec<T> {
        let several = self.columns.len() > 1;
        let columns = (0..self.columns.len()).map(of);
        columns.chain(several.then_some(all)).collect()
    }

    /// The names of the columns, and `all` if there are several.
    pub(crate) fn labels(&self, all: &str) -> Vec<String> {
        self.each(|index| self.columns[index].label.clone(), all.to_owned())
    }

    /// The figures of a file.
    ///
    /// Instances of one template count once, by the rules of the view. On archs on which a function is not the same, what any
    /// of them has is joined first. So are the coverage mapping and the line table of a function.
    fn row(&self, path: &str) -> Row {
        let mapped = self.mapped(path);
        if let [column] = &self.columns[..]
            && mapped.is_empty()
            && let Some(all) = column.figures(path, self.rules)
        {
            let columns = vec![column.has(path).then_some(all)];
            return Row { columns, all };
        }
        let mut everywhere: BTreeMap<(Place, &str), FunctionCoverage> = BTreeMap::new();
        let mut columns = Vec::new();
        for column in &self.columns {
            let here = joined(column.defined_in(path), &mapped);
            let figures = here
                .iter()
                .map(|((start, _), detail)| (*start, detail.clone()));
            columns.push(column.has(path).then(|| self.rules.sum(figures)));
            for (key, detail) in here {
                everywhere.entry(key).or_default().join(detail);
            }
        }
        let everywhere = everywhere.into_iter();
        let all = self
            .rules
            .sum(everywhere.map(|((start, _), detail)| (start, detail)));
        Row { columns, all }
    }

    /// The functions of a file that some code has in its coverage mapping, and other code in its line table.
    pub(crate) fn mapped(&self, path: &str) -> MappedFunctions {
        let columns = self.columns.iter();
        let kinds = columns.clone().map(|column| &column.kinds);
        let records = columns.flat_map(|column| column.defined_in(path));
        MappedFunctions::new(kinds, records.map(|record| &record.function))
    }

    /// The figures of the functions of a column that are defined in shown files, by `group`. Functions that
    /// start at one place must be of one group, and so must the coverage mapping and the line table of a function.
    pub(crate) fn figures_by<G: Eq + Hash>(
        &self,
        column: &Column,
        mapped: &MappedFunctions,
        group: impl Fn(&Arc<Function>) -> Option<G>,
    ) -> HashMap<G, Figures> {
        let mut groups: HashMap<G, Figures> = HashMap::new();
        for path in &self.paths {
            let mut records: HashMap<G, Vec<&Record>> = HashMap::new();
            for record in column.defined_in(path) {
                if let Some(group) = group(record.description()) {
                    records.entry(group).or_default().push(record);
                }
            }
            for (group, records) in records {
                let more = match mapped.is_empty() {
                    true => self.rules.sum_of(records),
                    false => {
                        let functions = joined(records, mapped).into_iter();
                        let functions = functions.map(|((start, _), detail)| (start, detail));
                        self.rules.sum(functions)
                    }
                };
                let figures = groups.entry(group).or_default();
                *figures = figures.plus(&more);
            }
        }
        groups
    }

    /// The figures of all files and their sum, which are found once.
    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let rows: Vec<_> = self.paths.iter().map(|path| self.row(path)).collect();
            let mut total = Row {
                columns: vec![Some(Figures::default()); self.columns.len()],
                all: Figures::default(),
            };
            rows.iter().for_each(|row| total.add(row));
            Table { rows, total }
        })
    }

    /// The sum of the figures of the source files that are wanted.
    pub(crate) fn sum(&self, is_wanted: impl Fn(&str) -> bool) -> Row {
        let mut sum = Row {
            columns: vec![None; self.columns.len()],
            all: Figures::default(),
        };
        let rows = self.rows().filter(|(path, _)| is_wanted(path));
        rows.for_each(|(_, row)| sum.add(row));
        sum
    }

    /// Returns whether regions and branches are known of some code.
    pub(crate) fn has_regions(&self) -> bool {
        self.columns.iter().any(Column::has_regions)
    }

    /// The source files that have lines, sorted.
    pub(crate) fn paths_with_lines(&self) -> impl Iterator<Item = &Arc<str>> {
        self.paths.iter().filter(|path| !is_without_lines(path))
    }

    /// The source files with their figures.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &Row)> {
        let paths = self.paths.iter().map(|path| &**path);
        paths.zip(&self.table().rows)
    }

    /// One count of those in all columns, `None` if none has one: the sum over the archs, or the count
    /// of the host if that is larger. The counts of the two sides are not added.
    pub(crate) fn joined(&self, counts: &[Option<u64>]) -> Option<u64> {
        let of_side = |side| {
            let columns = self.columns.iter().zip(counts);
            columns
                .filter(|(column, _)| column.side == side)
                .filter_map(|(_, count)| *count)
                .reduce(u64::saturating_add)
        };
        of_side(Side::Device).max(of_side(Side::Host))
    }
}

/// The figures of all files.
#[derive(Debug)]
pub(crate) struct Table {
    /// The rows, in the order of the paths.
    rows: Vec<Row>,
    pub(crate) total: Row,
}

/// The coverage of functions of a column. The coverage mapping and the line table of a function are joined.
fn joined<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    mapped: &'a MappedFunctions,
) -> Vec<((Place, &'a str), FunctionCoverage)> {
    let mut functions: Vec<((Place, &str), FunctionCoverage)> = Vec::new();
    let mut listed: BTreeMap<(Place, &str), FunctionCoverage> = BTreeMap::new();
    for record in records {
        let detail = FunctionCoverage::from_record(record);
        let key = mapped.key(&record.function);
        match record.function.line_table {
            None => functions.push((key, detail)),
            Some(_) => listed.entry(key).or_default().join(detail),
        }
    }
    for (key, detail) in &mut functions {
        if let Some(more) = listed.remove(key) {
            detail.join(more);
        }
    }
    functions.extend(listed);
    functions
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
