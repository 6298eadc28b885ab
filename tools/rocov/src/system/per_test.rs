//! The tests that `rocov run --per-test` labels.

use std::ffi::OsString;

use anyhow::{Context, Result};
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::ctest::{self, Ctest};
use super::gtest::GtestStream;

/// The labels for tests of a command.
pub(crate) struct PerTest {
    ctest: Option<Ctest>,
    gtest: Option<GtestStream>,
}

impl PerTest {
    /// Prepares the labels: those of GoogleTest's tests if the command is another program than ctest or a script, or if
    /// `has_gtest` is true. Prints the tests of ctest that cannot be labelled by their names.
    ///
    /// # Errors
    ///
    /// Fails if ctest's list of tests cannot be read, or GoogleTest programs cannot report theirs.
    pub(crate) fn new(command: &[OsString], has_gtest: bool) -> Result<Self> {
        let program = command
            .first()
            .with_context(|| diagnostic!("no program is given"; "name one after `--`"))?;
        let starts_ctest = ctest::is_ctest(program) || ctest::is_script(program);
        let ctest = starts_ctest
            .then(|| Ctest::from_command(command))
            .transpose()?;
        let has_gtest = has_gtest || !starts_ctest;
        let gtest = has_gtest.then(GtestStream::new).transpose()?;
        Ok(Self { ctest, gtest })
    }

    /// The command, if it is another one.
    pub(crate) fn command(&self) -> Option<&[OsString]> {
        self.ctest.as_ref().map(|ctest| ctest.command.as_slice())
    }

    /// The `PATH` of the command, if it is another one.
    pub(crate) fn path(&self) -> Option<OsString> {
        self.ctest.as_ref()?.path()
    }

    /// More variables of the command.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let gtest = self.gtest.as_ref();
        gtest.map_or_else(Vec::new, GtestStream::variables)
    }

    /// A line for a command that has ended without any test.
    pub(crate) fn missed(&self) -> Option<Diagnostic> {
        let has_missed_ctest = self.ctest.as_ref().is_some_and(Ctest::missed);
        let has_begun = self.gtest.as_ref().map(GtestStream::has_begun);
        Some(match (has_begun, &self.ctest) {
            (None, _) if has_missed_ctest => {
                diagnostic!(
                    "no test has a label, because the command did not start ctest by name";
                    "call it as `ctest`, use --per-test=gtest if it starts GoogleTest programs, or leave out \
                     --per-test"
                )
            }
            (Some(false), None) => {
                diagnostic!(
                    "no test has a label, because the command did not start a GoogleTest program";
                    "run one, or ctest, or a script that starts ctest, or run each test under `rocov run --label \
                     NAME`"
                )
            }
            (Some(false), Some(_)) if has_missed_ctest => {
                diagnostic!(
                    "no test has a label, because the command started neither ctest by name nor a GoogleTest program";
                    "leave out --per-test, or run each test under `rocov run --label NAME`"
                )
            }
            _ => return None,
        })
    }
}
