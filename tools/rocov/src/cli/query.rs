//! The command line of `rocov query`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::usage_error;

/// Run SQL queries on a data set
///
/// DATASET is the directory or bucket that `rocov export --format parquet` wrote to. The chapter "The data set"
/// describes its tables. Name one of rocov's own queries, or a file with your own (--sql). Except for --print, this
/// command works only if rocov was built with the feature `query`.
#[derive(Args)]
#[command(
    override_usage = "rocov query DATASET QUESTION [OPTIONS]\n       rocov query DATASET --sql FILE [OPTIONS]"
)]
#[command(after_help = "\
Exit status: 0, even if the query returns no rows; 1 if it fails; 2 for a usage error.")]
pub(crate) struct QueryArguments {
    /// The directory or bucket of a data set
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: PathBuf,

    /// The name of one of rocov's own queries
    #[arg(
        value_name = "QUESTION",
        required_unless_present = "sql",
        conflicts_with = "sql"
    )]
    question: Option<Question>,

    /// Run the SQL in FILE, or on standard input if FILE is -
    #[arg(long, value_name = "FILE")]
    pub(crate) sql: Option<PathBuf>,

    /// The commit that lost_lines and tests_to_run start from
    #[arg(long, value_name = "COMMIT")]
    pub(crate) since: Option<String>,

    /// The commit that lost_lines ends at
    #[arg(long, value_name = "COMMIT")]
    pub(crate) until: Option<String>,

    /// tests_to_run: the unified diff with the changed lines, in FILE, or on standard input if FILE is -
    #[arg(long, value_name = "FILE")]
    pub(crate) diff: Option<PathBuf>,

    /// The format of the answer
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: AnswerFormat,

    /// Use at most this much memory for rows, and files in TMPDIR beyond that
    #[arg(long, value_name = "MIB", default_value = "512")]
    pub(crate) memory: NonZeroUsize,

    /// Print the SQL of QUESTION without running it
    #[arg(long, conflicts_with = "sql")]
    pub(crate) print: bool,
}

/// A question that has a name: a file in `examples/fleet/questions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Question {
    /// Lines and covered lines at each commit
    Trend,
    /// The files with the most missed lines at the newest commit
    WorstFiles,
    /// Lines that tests reached at one commit but not at another: --since, --until
    LostLines,
    /// The tests that reached the lines of a diff: --since, --diff
    TestsToRun,
    /// Kernels that no run launched in the last 30 days
    IdleKernels,
    /// Lines that tests reached on only one arch at the newest commit
    OneArch,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerFormat {
    /// Aligned columns
    Table,
    /// Comma-separated values, with a heading
    Csv,
    /// A list of objects
    Json,
}

impl Question {
    /// Its SQL.
    fn sql(self) -> &'static str {
        match self {
            Self::Trend => include_str!("../../questions/trend.sql"),
            Self::WorstFiles => include_str!("../../questions/worst_files.sql"),
            Self::LostLines => include_str!("../../questions/lost_lines.sql"),
            Self::TestsToRun => include_str!("../../questions/tests_to_run.sql"),
            Self::IdleKernels => include_str!("../../questions/idle_kernels.sql"),
            Self::OneArch => include_str!("../../questions/one_arch.sql"),
        }
    }
}

impl QueryArguments {
    /// The SQL of the question, if it has a name. Ends the process with a usage error if it needs an option.
    pub(crate) fn named(&self) -> Option<&'static str> {
        let question = self.question?;
        let [since, until, diff] = [
            ("--since COMMIT", self.since.is_some()),
            ("--until COMMIT", self.until.is_some()),
            ("--diff FILE", self.diff.is_some()),
        ];
        let needs: &[_] = match question {
            _ if self.print => &[],
            Question::LostLines => &[since, until],
            Question::TestsToRun => &[since, diff],
            Question::Trend | Question::WorstFiles | Question::IdleKernels | Question::OneArch => {
                &[]
            }
        };
        if let Some((option, _)) = needs.iter().find(|(_, is_given)| !is_given) {
            let name = question.to_possible_value();
            let name = name.as_ref().map_or("it", |name| name.get_name());
            let message = format!("{name} needs {option}");
            usage_error("query", ErrorKind::MissingRequiredArgument, message);
        }
        Some(question.sql())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn each_question_of_the_examples_has_its_name() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet/questions");
        let files = fs::read_dir(examples)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let files = files.map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        });
        let own = Question::value_variants().iter().map(|question| {
            let name = question.to_possible_value().unwrap().get_name().to_owned();
            (name, question.sql().to_owned())
        });
        assert_eq!(
            own.collect::<BTreeMap<_, _>>(),
            files.collect::<BTreeMap<_, _>>()
        );
    }
}
