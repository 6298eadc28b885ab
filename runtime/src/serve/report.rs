//! Lines and notes about the outcome of a drain.

use rocov::device::DeviceError;
use rocov::drain::error::Error;
use rocov::drain::{Cause, Copied, Outcome};
use rocov::store::KeepError;

use crate::guest::journal::{self, Note};
use crate::guest::log;

/// Reports an outcome, in the words of LLVM's own drain.
pub(super) fn report(outcome: &Outcome) {
    report_losses(outcome);
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
pub(super) fn report_missing(outcome: &Outcome) {
    report_losses(outcome);
    report_not_kept(&outcome.not_kept);
}

/// Reports the files that rocov could not keep beside profiles.
pub(super) fn report_not_kept(errors: &[KeepError]) {
    errors.iter().for_each(log::warn_once);
}

/// Reports the profiles that rocov has written.
pub(super) fn report_files(outcome: &Outcome) {
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

fn report_losses(outcome: &Outcome) {
    if outcome.loses_counts() {
        journal::note(Note::Lost);
    }
    for loss in &outcome.losses {
        match &loss.cause {
            // One kernel costs the counts of all code in its context: one line is enough.
            Cause::Failed(Error::Device(error @ DeviceError::Faulted { .. })) => {
                log::warn_once(&format_args!(
                    "counts since the last drain are lost: {error}; run the program under compute-sanitizer to find the kernel"
                ));
            }
            _ => log::warn_once(loss),
        }
    }
}
