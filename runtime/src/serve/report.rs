//! Lines and notes about the outcome of a drain.

use std::sync::Once;

use rocov::device::DeviceError;
use rocov::drain::error::Error;
use rocov::drain::{Cause, Copied, Outcome, Taken};
use rocov::store::KeepError;
use rocov::support::diagnostic::{Remedy, diagnostic};

use crate::guest::journal::{self, Note};
use crate::guest::{log, process};

/// The place of a drain among others, which determines what a failure costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// More drains follow, as after a snapshot. A failure costs nothing yet.
    Between,
    /// More drains follow, and somebody waits for the result of this one.
    Asked,
    /// No later drain can write these counts.
    Last,
}

/// Reports an outcome, in the words of LLVM's own drain.
pub(super) fn report(outcome: &Outcome, moment: Moment) {
    report_losses(outcome, moment);
    for Copied { sections, copies } in &outcome.copied {
        log::verbose(format_args!(
            "Copied device sections: Counters={}, Data={}, Names={}, UniformCounters={}",
            sections.counters, sections.data, sections.names, sections.uniform
        ));
        if *copies > 0 {
            log::verbose(format_args!(
                "Copied areas with copies of counters: {copies} bytes"
            ));
        }
    }
    report_files(outcome);
    log::verbose(format_args!(
        "HSA walk complete: agents={} pairs={} found={} drained={} iter-failures={}",
        outcome.agents,
        outcome.pairs,
        outcome.found,
        outcome.files.len(),
        outcome.failures()
    ));
}

/// Reports the code that rocov could not read, and the files that it could not keep.
pub(super) fn report_missing(outcome: &Outcome, moment: Moment) {
    report_losses(outcome, moment);
    report_not_kept(&outcome.not_kept, moment);
}

/// Reports the files that rocov could not keep beside profiles. It tries again with later drains.
pub(super) fn report_not_kept(errors: &[KeepError], moment: Moment) {
    let is_final = |error: &&KeepError| moment == Moment::Last || !error.may_pass();
    let messages = errors.iter().filter(is_final).map(Remedy::diagnostic);
    messages.for_each(log::warn_once);
}

/// Reports the profiles that rocov has written. One line for the process says that another has the name of some.
pub(super) fn report_files(outcome: &Outcome) {
    static IS_SAID: Once = Once::new();
    if let Some(Taken { path, place }) = outcome.taken.first() {
        IS_SAID.call_once(|| {
            log::warn(diagnostic!(
                "{} is the profile of another process, so rocov keeps it: the counts of this process are in {}",
                path.display(), place.display();
                "put %p into LLVM_PROFILE_FILE to get one file per process, or %m to get one file with all counts"
            ));
        });
    }
    if let Some(file) = outcome.files.first().filter(|_| process::has_other_root()) {
        log::warn_once(diagnostic!(
            "the program has changed its root directory: later files are below the new one, in {}",
            file.parent().unwrap_or(file).display();
            "also pass that directory to `rocov report`"
        ));
    }
    if !outcome.files.is_empty() {
        journal::note(Note::Wrote);
    }
    log_files(outcome);
}

/// Names the files that rocov has written, if the user asks for it.
pub(super) fn log_files(outcome: &Outcome) {
    for file in &outcome.files {
        log::verbose(format_args!("wrote {}", file.display()));
    }
}

fn report_losses(outcome: &Outcome, moment: Moment) {
    for loss in &outcome.losses {
        let not_yet = loss.not_yet().filter(|_| moment != Moment::Last);
        if not_yet.is_none() && loss.loses_counts() {
            journal::note(Note::Lost);
        }
        match (&loss.cause, not_yet) {
            (_, Some(line)) if moment == Moment::Asked => log::warn_once(line),
            (_, Some(line)) => log::verbose(format_args!("{line}")),
            // One kernel costs the counts of all code in its context: one line is enough.
            (Cause::Failed(Error::Device(error @ DeviceError::Faulted { .. })), None) => {
                log::warn_once(
                    error
                        .diagnostic()
                        .within("counts since the last drain are lost"),
                );
            }
            (_, None) => log::warn_once(loss.diagnostic()),
        }
    }
}
