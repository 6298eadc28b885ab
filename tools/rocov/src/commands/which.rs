//! `rocov which`: finds the tests that reach a line.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::store::Label;
use rocov::support::diagnostic::Diagnostic;
use serde::Serialize;

use crate::cli::{LineOfSource, WhichArguments};
use crate::coverage::checkouts::Checkouts;
use crate::coverage::{By, Collected, Report, Selection, SourceTexts, View, misfit};
use crate::data::components::Components;
use crate::data::{DataListing, Origins};
use crate::dataset::DataSetInputs;
use crate::llvm::LlvmTools;
use crate::profdata::{MergedProfiles, per_label};
use crate::render::SHARED;
use crate::support::parallel;
use crate::support::paths::{below, here};
use crate::term::exit_status::CommandResult;
use crate::term::lines::Lines;
use crate::term::remedy::explained;
use crate::term::table::Heading;
use crate::term::warnings::Warnings;
use crate::term::{exit_status, print};

/// The version of the output of `--json`.
const VERSION: u32 = 1;

/// The output of `--json`.
#[derive(Serialize)]
struct LineAnswers<'a> {
    /// [`VERSION`].
    rocov_which: u32,
    /// The answers, in the order of the arguments.
    lines: &'a [LineAnswer],
}

/// The tests that reach one line.
#[derive(Serialize)]
struct LineAnswer {
    /// The path of the source file, as it was compiled or as it was moved.
    source: String,
    line: u32,
    /// The archs that have code on the line.
    archs: Vec<String>,
    /// The reason why reports leave the line out, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    excluded: Option<String>,
    /// The tests by label; the counts without a label come first.
    tests: Vec<TestCounts>,
}

/// The counts of one test on a line.
#[derive(Serialize)]
struct TestCounts {
    /// `None` for counts without a label.
    label: Option<String>,
    /// The labels of other tests that these counts may be of.
    shared_with: Vec<String>,
    /// The counts by arch, without archs on which the test loaded no code of the line.
    counts: BTreeMap<String, u64>,
}

/// Prints which tests reach lines.
pub(crate) fn which(arguments: &WhichArguments) -> CommandResult {
    let (lines, directory) = arguments.asked();
    let archs = &arguments.arch;
    let selection = Selection::new(arguments.moved.maps(), &[], &[], &[])?;
    let inputs = DataSetInputs::read(&[directory], &arguments.conditions)?;
    let data = Warnings::printing(|warnings| {
        DataListing::open(inputs.directories(), warnings)?
            .called(vec![directory.to_owned()])
            .complete(arguments.all_builds, warnings)?
            .for_report(&arguments.objects, archs, warnings)
    })?;
    let mut installed = LlvmTools::find_any(arguments.llvm_bin.as_deref())?;
    let all = Components::default();
    let mut matched =
        Warnings::printing(|warnings| data.match_elfs(archs, &all, &mut installed, warnings))?;
    let labels = per_label::labels(&matched, &data)?;
    let merged = Warnings::printing(|warnings| {
        MergedProfiles::merge_data(&mut matched, &data, &installed, warnings)
    })?;
    let report = Report::new(&merged, &data, &Origins::default());
    let Collected {
        sources,
        checkouts,
        warnings,
    } = report.collected(&selection, &installed)?;
    print::warn(&warnings);
    print::warn(&checkouts.alike);
    let paths = sources
        .iter()
        .map(|source| (source.identity.clone(), source.paths()));
    let paths: Vec<_> = paths.collect();
    let view = |sources| View::new(sources, By::Arch, |_| true);
    let mut whole = view(sources);
    let places: Vec<_> = whole.everything().into_iter().map(PathBuf::from).collect();
    print::warn(&selection.idle(&places));
    let (mut answers, errors) = answers(&lines, &whole, &checkouts);
    let exclusions = arguments.exclusions.exclusions(SourceTexts::default());
    for answer in &mut answers {
        let reason = whole.reason(&exclusions, &answer.source, answer.line);
        answer.excluded = reason.map(|reason| reason.to_string());
    }
    whole.misfits = exclusions.stale(|_| true);
    let edited = exclusions.edited(&whole.ran_lines, |_| true);
    whole.add_misfits(edited);
    print::warn(&stale(&answers, &whole));

    // No other code objects say anything of these lines.
    let of_answers: HashSet<Arc<str>> = answers
        .iter()
        .map(|answer| answer.source.as_str().into())
        .collect();
    let has_answers = |(_, paths): &&(String, HashSet<Arc<str>>)| !paths.is_disjoint(&of_answers);
    let identities = paths.iter().filter(has_answers);
    let identities: BTreeSet<&str> = identities.map(|(identity, _)| &**identity).collect();
    matched.select(&[], |identity| identities.contains(identity));
    let evaluator = report.test_evaluator(&selection, &checkouts, &installed, |identity| {
        identities.contains(identity)
    })?;
    let mut profiles = matched.grouped(|label| BTreeSet::from([label]));
    let profiles = labels
        .into_iter()
        .filter_map(|label| Some((label, profiles.remove(&label)?)));
    let profiles: Vec<_> = profiles.collect();
    let counted = parallel::map(&profiles, |(_, profiles)| {
        Ok(view(evaluator.in_files(profiles, &of_answers)?))
    })?;
    for ((label, _), counted) in profiles.iter().zip(&counted) {
        for answer in &mut answers {
            answer.add(*label, counted);
        }
    }
    print(&answers, arguments.json)?;
    for error in &errors {
        print::message(explained(error));
    }
    Ok(if errors.is_empty() {
        0
    } else {
        exit_status::FAILED
    })
}

/// Finds lines in all counts. A line that cannot be found is an error.
fn answers(
    lines: &[&LineOfSource],
    whole: &View,
    checkouts: &Checkouts,
) -> (Vec<LineAnswer>, Vec<anyhow::Error>) {
    let (mut answers, mut errors) = (Vec::new(), Vec::new());
    for line in lines {
        match LineAnswer::find(line, whole, checkouts) {
            Ok(answer) => answers.push(answer),
            Err(error) => errors.push(error),
        }
    }
    (answers, errors)
}

/// Returns a line for each source that has changed since it was compiled, so that the line may be
/// another.
fn stale(answers: &[LineAnswer], whole: &View) -> Vec<Diagnostic> {
    let sources: BTreeSet<_> = answers.iter().map(|answer| &answer.source).collect();
    let misfits = sources.into_iter().filter_map(|source| {
        let misfit = misfit(whole, source, &SourceTexts::default())?;
        misfit.stale().is_some().then(|| misfit.about(source))
    });
    misfits.collect()
}

impl LineAnswer {
    /// Finds the line, without any test yet.
    ///
    /// # Errors
    ///
    /// Fails if there is no such line, or no code on it.
    fn find(asked: &LineOfSource, whole: &View, checkouts: &Checkouts) -> Result<Self> {
        // The source may be reported by its path in another checkout.
        let file = match asked.file.canonicalize() {
            Ok(here) => PathBuf::from(checkouts.place(&here.to_string_lossy())),
            Err(_) => asked.file.clone(),
        };
        let found = whole.source(&file).and_then(|source| {
            let line = whole.line(source, asked.line.get())?;
            Ok((source, line))
        });
        let (source, line) = found.with_context(|| format!("cannot look up {asked}"))?;
        let columns = whole.columns.iter().zip(line.counts);
        let archs = columns.filter_map(|(column, count)| count.map(|_| column.label.clone()));
        Ok(Self {
            source: source.to_owned(),
            line: line.number,
            archs: archs.collect(),
            excluded: None,
            tests: Vec::new(),
        })
    }

    /// Adds the counts with this label to each of the tests that share it, if it reached the line.
    fn add(&mut self, label: Option<&Label>, counted: &View) {
        let Ok(line) = counted.line(&self.source, self.line) else {
            return;
        };
        let columns = counted.columns.iter().zip(line.counts);
        let counts = columns.filter_map(|(column, count)| Some((column.label.clone(), count?)));
        let counts: BTreeMap<_, _> = counts.collect();
        if counts.values().all(|count| *count == 0) {
            return;
        }
        let tests = per_label::sharing(label);
        for test in &tests {
            let others = tests.iter().filter(|other| *other != test);
            self.tests.push(TestCounts {
                label: test.as_ref().map(ToString::to_string),
                shared_with: others.flatten().map(ToString::to_string).collect(),
                counts: counts.clone(),
            });
        }
        let order = |test: &TestCounts| (test.label.clone(), test.shared_with.clone());
        self.tests.sort_by_key(order);
    }

    /// Writes the answer as text.
    fn write(&self, out: &mut Lines<'_>) -> io::Result<()> {
        out.line(format_args!(
            "{}:{}",
            below(&self.source, &here()),
            self.line
        ))?;
        if let Some(reason) = &self.excluded {
            out.line(format_args!("excluded from reports: {reason}"))?;
        }
        if self.tests.is_empty() {
            return out.line("no test reaches this line");
        }
        let [word, number] = [false, true].map(|is_number| move |text| Heading { text, is_number });
        let mut headings = vec![word("Test")];
        headings.extend(self.archs.iter().map(|arch| number(arch)));
        if self.tests.iter().any(|test| !test.shared_with.is_empty()) {
            headings.push(word(SHARED));
        }
        let row = |test: &TestCounts| {
            let name = test.label.as_deref().unwrap_or(per_label::UNLABELLED);
            let count = |arch| match test.counts.get(arch) {
                Some(count) => count.to_string(),
                None => "-".to_owned(),
            };
            let cells = [name.to_owned()].into_iter();
            let cells = cells.chain(self.archs.iter().map(count));
            cells.chain([test.shared_with.join(", ")]).collect()
        };
        let rows: Vec<_> = self.tests.iter().map(row).collect();
        out.table(&headings, &rows)
    }
}

fn print(answers: &[LineAnswer], json: bool) -> Result<()> {
    if json {
        return print::json(&LineAnswers {
            rocov_which: VERSION,
            lines: answers,
        });
    }
    print::lines(|out| {
        for (number, answer) in answers.iter().enumerate() {
            if number > 0 {
                out.gap()?;
            }
            answer.write(out)?;
        }
        Ok(())
    })
}
