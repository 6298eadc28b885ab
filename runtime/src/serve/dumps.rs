//! Dumps: the counts of a time, written under a label.

use std::sync::atomic::{AtomicU64, Ordering};

use rocov::drain::Scope;
use rocov::store::LabelError;
use rocov::support::diagnostic::Remedy;

use super::drain;
use super::kernel_wait::Waited;
use super::labels::{invalid, mark, status_of, turn, warn_in_flight};
use super::report::Moment;
use super::state::{with_owned, with_state};
use crate::guest::process;
use crate::guest::status::RocovStatus;

/// A dump that was made.
#[derive(Debug)]
pub(super) struct Dumped {
    pub(super) status: RocovStatus,
    /// Its label; empty if no window is open.
    pub(super) label: String,
    /// The number of files.
    pub(super) files: usize,
    /// Set if kernels still ran. The dump does not contain their later counts.
    pub(super) in_flight: bool,
}

/// Opens a dump: the counts from now on go to `label`, within the open labels, until [`close`]. It
/// includes code that is drained or unloaded meanwhile. `None` takes a numbered label. Returns the label.
///
/// # Errors
/// Fails if `label` is not a label.
pub(super) fn open(label: Option<&str>) -> Result<String, LabelError> {
    let label = or_numbered(label);
    with_state(|state| state.scopes.below(&label))?;
    turn(&mut |scopes| {
        scopes.set_dump(Some(label.clone()));
        RocovStatus::Ok
    });
    Ok(label)
}

/// Closes a dump, and writes its counts. The number of files in the result counts all files of the label,
/// also those of drains since [`open`].
///
/// # Errors
/// Fails if `label` is not a label.
pub(super) fn close(label: &str, reset: bool) -> Result<Dumped, LabelError> {
    let mut dumped = write(label, reset)?;
    with_state(|state| {
        if let Ok(Scope::Labelled(label)) = state.scopes.below(label) {
            dumped.files = state.session.files_of(&label);
        }
        state.scopes.set_dump(None);
        state.session.go_on_in(state.scopes.current());
    });
    Ok(dumped)
}

/// Writes the counts since the last dump, drain, or change of labels or windows for `label`, within the
/// open labels. `None` takes a numbered label. Then zeroes the counters if `reset` is set.
///
/// # Errors
/// Fails if `label` is not a label.
pub(super) fn dump(label: Option<&str>, reset: bool) -> Result<Dumped, LabelError> {
    write(&or_numbered(label), reset)
}

/// Serves `rocov_dump`.
pub(super) fn dump_of_program(label: Option<&str>) -> RocovStatus {
    dump(label, false).map_or_else(
        |error| invalid("rocov_dump", error.diagnostic()),
        |dumped| {
            if dumped.in_flight {
                warn_in_flight();
            }
            dumped.status
        },
    )
}

fn or_numbered(label: Option<&str>) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    label.map_or_else(
        || format!("dump-{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        str::to_owned,
    )
}

fn write(label: &str, reset: bool) -> Result<Dumped, LabelError> {
    let mut dumped = Dumped {
        status: RocovStatus::Nothing,
        label: String::new(),
        files: 0,
        in_flight: false,
    };
    if !process::may_use_hsa() {
        return Ok(dumped);
    }
    with_state(|state| state.scopes.below(label))?;
    let Waited { idle, in_flight } = drain::wait_for_kernels(None);
    dumped.in_flight = in_flight;
    let marked = with_owned(|state, device| {
        let scope = state.scopes.below(label)?;
        if let Scope::Labelled(label) = &scope {
            dumped.label = label.to_string();
        }
        let outcome = mark(state, device, scope, &idle);
        dumped.files = outcome.files.len();
        dumped.status = status_of(&outcome);
        Ok(())
    });
    marked.transpose()?;
    if reset {
        // Earlier counts with another label, or none, may not have been written yet.
        let statuses = [drain::draining(Moment::Asked), drain::reset()];
        if statuses.contains(&RocovStatus::Loss) {
            dumped.status = RocovStatus::Loss;
        }
    }
    drain::keep(Moment::Between);
    Ok(dumped)
}
