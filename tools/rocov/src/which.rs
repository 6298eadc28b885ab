//! `rocov which`: which tests reach a line.

use crate::cli::{LineOfSource, WhichArguments};
use crate::components::Components;
use crate::coverage::{By, Collected, SHARED, Selection, Texts, View, below, here, misfit};
use crate::data::{DataDirectory, Origins};
use crate::llvm_tools::Installed;
use crate::merged::Merged;
use crate::status::{self, Outcome};
use crate::table::{Heading, table};
use crate::{child, per_test, report};
use anyhow::{Context, Result};
use rocov::output::Label;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// The version of what `--json` prints.
const VERSION: u32 = 1;

/// What `--json` prints.
#[derive(Serialize)]
struct Answers<'a> {
    /// [`VERSION`].
    rocov_which: u32,
    /// In the order in which they were asked for.
    lines: &'a [Answer],
}

/// What reaches one line.
#[derive(Serialize)]
struct Answer {
    /// The source file, where it was compiled or as it was moved.
    source: String,
    line: u32,
    /// Those that have code on the line.
    archs: Vec<String>,
    /// By label, those without one first.
    tests: Vec<Test>,
}

/// What one test counted on a line.
#[derive(Serialize)]
struct Test {
    /// None of what was counted without one.
    label: Option<String>,
    /// The labels of other tests that these counts may be of.
    shared_with: Vec<String>,
    /// By arch; those on which the test loaded no code of the line are left out.
    counts: BTreeMap<String, u64>,
}

/// Prints which tests reach lines.
pub(crate) fn which(arguments: &WhichArguments) -> Outcome {
    let (lines, directory) = arguments.asked();
    let archs = &arguments.arch;
    let selection = Selection::new(&arguments.path_map, &[], &[])?;
    let inputs = report::read(
        DataDirectory::open_builds(&[directory], arguments.all_builds)?,
        &arguments.objects,
        archs,
    )?;
    let mut installed = Installed::find(arguments.llvm_bin.as_deref())?;
    let all = Components::default();
    let (mut matching, _) = report::matched(&inputs, archs, &all, &mut installed)?;
    let labels = per_test::labels(&matching, &inputs.data)?;
    let (merged, _) = report::merged(&mut matching, &inputs, &installed)?;
    let collected = |merged: &Merged<'_>| {
        let report = report::of_device(merged, &inputs, &Origins::default());
        report.collected(&selection, &installed)
    };
    let view = |sources| View::new(sources, By::Arch, |_| true);

    let Collected { sources, warnings } = collected(&merged)?;
    child::say(&warnings);
    let paths = sources.iter().map(|it| (it.identity.clone(), it.paths()));
    let paths: Vec<_> = paths.collect();
    let whole = view(sources);
    let (mut answers, errors) = answers(&lines, &whole);
    child::say(&stale(&answers, &whole));

    // No other code objects say anything of these lines.
    let is_asked = |(_, paths): &&(String, HashSet<Arc<str>>)| {
        let mut answers = answers.iter();
        answers.any(|answer| paths.contains(&*answer.source))
    };
    let identities = paths
        .iter()
        .filter(is_asked)
        .map(|(identity, _)| &**identity);
    let identities: BTreeSet<&str> = identities.collect();
    matching.select(&[], |identity| identities.contains(identity));
    for label in labels {
        let mut matching = matching.of_labels(|it| it == label);
        let (merged, _) = Merged::of(&mut matching, &installed)?;
        let counted = view(collected(&merged)?.sources);
        for answer in &mut answers {
            answer.add(label, &counted);
        }
    }
    print(&answers, arguments.json)?;
    for error in &errors {
        eprintln!("rocov: {error:#}");
    }
    Ok(if errors.is_empty() { 0 } else { status::FAILED })
}

/// Looks for lines in all that was counted. What cannot be answered is an error.
fn answers(lines: &[&LineOfSource], whole: &View) -> (Vec<Answer>, Vec<anyhow::Error>) {
    let (mut answers, mut errors) = (Vec::new(), Vec::new());
    for line in lines {
        match Answer::of(line, whole) {
            Ok(answer) => answers.push(answer),
            Err(error) => errors.push(error),
        }
    }
    (answers, errors)
}

/// One line for each source that is known not to be what was compiled, so that the line may be another.
fn stale(answers: &[Answer], whole: &View) -> Vec<String> {
    let sources: BTreeSet<_> = answers.iter().map(|answer| &answer.source).collect();
    let misfits = sources.into_iter().filter_map(|source| {
        let misfit = misfit(whole, source, &Texts::default())?;
        misfit.stale().is_some().then(|| misfit.about(source))
    });
    misfits.collect()
}

impl Answer {
    /// What is asked for, without any test yet.
    ///
    /// # Errors
    ///
    /// When there is no such line, or no code on it.
    fn of(asked: &LineOfSource, whole: &View) -> Result<Self> {
        let found = whole.source(&asked.file).and_then(|source| {
            let line = whole.line(source, asked.line.get())?;
            Ok((source, line))
        });
        let (source, line) = found.with_context(|| format!("cannot answer for {asked}"))?;
        let columns = whole.columns.iter().zip(line.counts);
        let archs = columns.filter_map(|(column, count)| count.map(|_| column.label.clone()));
        Ok(Self {
            source: source.to_owned(),
            line: line.number,
            archs: archs.collect(),
            tests: Vec::new(),
        })
    }

    /// Adds what was counted with this label to each of the tests that share it, if it reached the line.
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
        let tests = per_test::sharing(label);
        for test in &tests {
            let others = tests.iter().filter(|other| *other != test);
            self.tests.push(Test {
                label: test.as_ref().map(ToString::to_string),
                shared_with: others.flatten().map(ToString::to_string).collect(),
                counts: counts.clone(),
            });
        }
        let order = |test: &Test| (test.label.clone(), test.shared_with.clone());
        self.tests.sort_by_key(order);
    }

    /// As a text.
    fn text(&self) -> String {
        let title = format!("{}:{}\n", below(&self.source, &here()), self.line);
        if self.tests.is_empty() {
            return title + "no test reaches this line\n";
        }
        let [word, number] = [false, true].map(|is_number| move |text| Heading { text, is_number });
        let mut headings = vec![word("Test")];
        headings.extend(self.archs.iter().map(|arch| number(arch)));
        if self.tests.iter().any(|test| !test.shared_with.is_empty()) {
            headings.push(word(SHARED));
        }
        let row = |test: &Test| {
            let name = test.label.as_deref().unwrap_or(per_test::UNLABELLED);
            let count = |arch| match test.counts.get(arch) {
                Some(count) => count.to_string(),
                None => "-".to_owned(),
            };
            let cells = [name.to_owned()].into_iter();
            let cells = cells.chain(self.archs.iter().map(count));
            cells.chain([test.shared_with.join(", ")]).collect()
        };
        let rows: Vec<_> = self.tests.iter().map(row).collect();
        title + &table(&headings, &rows)
    }
}

fn print(answers: &[Answer], json: bool) -> Result<()> {
    if json {
        return child::print_json(&Answers {
            rocov_which: VERSION,
            lines: answers,
        });
    }
    let texts: Vec<_> = answers.iter().map(Answer::text).collect();
    child::print(texts.join("\n").as_bytes())
}
