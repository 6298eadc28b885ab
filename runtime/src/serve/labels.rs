//! Labels and windows, which the program opens and closes: where counts go.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use rocov::device::Gpus;
use rocov::drain::{Idle, Outcome, Scope, Scopes, Window};
use rocov::support::diagnostic::{Diagnostic, Remedy, diagnostic};

use super::drain;
use super::kernel_wait::{self, Waited};
use super::report::{Moment, report_files, report_missing};
use super::state::{State, attach_own, with_state};
use crate::elect::event::NewRange;
use crate::guest::status::RocovStatus;
use crate::guest::{boundary, log, process};

/// Opens a label for the calling thread. Null is not a label.
pub(super) fn push(label: Option<&str>) -> RocovStatus {
    let label = label.unwrap_or_default();
    turn(&mut |scopes| match scopes.push(this_thread(), label) {
        Ok(()) => RocovStatus::Ok,
        Err(error) => invalid("rocov_label_push", error.diagnostic()),
    })
}

/// Closes the label that the calling thread has opened last.
pub(super) fn pop() -> RocovStatus {
    turn(&mut |scopes| match scopes.pop(this_thread()) {
        true => RocovStatus::Ok,
        false => RocovStatus::Nothing,
    })
}

/// The name of NVTX's ranges in messages.
pub(super) const RANGE: &str = "an NVTX range";

/// Opens a label for a range of the calling thread.
pub(super) fn push_range(range: &NewRange, label: Option<&str>) -> RocovStatus {
    let label = label.unwrap_or_default();
    turn(
        &mut |scopes| match scopes.push_in(this_thread(), range.domain, label) {
            Ok(()) => RocovStatus::Ok,
            Err(error) => invalid(RANGE, error.diagnostic()),
        },
    )
}

/// Closes the label of the calling thread's last range in `domain`.
pub(super) fn pop_range(domain: u64) -> RocovStatus {
    turn(&mut |scopes| match scopes.pop_in(this_thread(), domain) {
        true => RocovStatus::Ok,
        false => RocovStatus::Nothing,
    })
}

/// Opens a label for a range that any thread may end.
pub(super) fn start_range(range: &NewRange, label: Option<&str>) -> RocovStatus {
    let label = label.unwrap_or_default();
    let number = next_number();
    range.number.store(number, Ordering::Relaxed);
    turn(&mut |scopes| match scopes.push(number, label) {
        Ok(()) => RocovStatus::Ok,
        Err(error) => invalid(RANGE, error.diagnostic()),
    })
}

/// Closes the label of a range that any thread may end.
pub(super) fn end_range(number: u64) -> RocovStatus {
    turn(&mut |scopes| match scopes.has_open(number) {
        true => {
            scopes.close(number);
            RocovStatus::Ok
        }
        false => RocovStatus::Nothing,
    })
}

/// Opens a window. Leaves out the counts since the last window closed, or all earlier counts.
pub(super) fn start() -> RocovStatus {
    if !process::may_use_hsa() {
        return RocovStatus::Nothing;
    }
    with_state(|state| {
        if state.scopes.window() == Window::None {
            state.scopes.set_window(Window::Closed);
        }
    });
    turn(&mut |scopes| match scopes.window() {
        Window::Open => RocovStatus::Nothing,
        Window::None | Window::Closed => {
            scopes.set_window(Window::Open);
            RocovStatus::Ok
        }
    })
}

/// Closes the window, and writes its counts.
pub(super) fn stop() -> RocovStatus {
    let closed = turn(&mut |scopes| match scopes.window() {
        Window::Closed => RocovStatus::Nothing,
        Window::None | Window::Open => {
            scopes.set_window(Window::Closed);
            RocovStatus::Ok
        }
    });
    match closed {
        RocovStatus::Ok => drain::draining(Moment::Asked),
        other => other,
    }
}

/// Gives the counts up to now to the present label or window, then has `change` choose the next. Works
/// in a process without loaded code, too.
pub(super) fn turn(change: &mut dyn FnMut(&mut Scopes) -> RocovStatus) -> RocovStatus {
    if !process::may_use_hsa() {
        return RocovStatus::Nothing;
    }
    let Waited { idle, in_flight } = drain::wait_for_kernels(None);
    if in_flight {
        warn_in_flight();
    }
    let device = attach_own();
    with_state(|state| {
        let scope = state.scopes.current();
        let marked = device.map(|device| mark(state, &device, scope, &idle));
        let changed = change(&mut state.scopes);
        state.session.go_on_in(state.scopes.current());
        if state.stands_down() {
            return RocovStatus::Nothing;
        }
        if state.scopes.are_too_many() {
            log::warn_once(diagnostic!(
                "together, the open labels of all threads are too long for a directory name: \
                until some of them end, counts go to profiles without a label";
                "use shorter labels"
            ));
        }
        match marked.as_ref().map(status_of) {
            Some(RocovStatus::Loss) if changed == RocovStatus::Ok => RocovStatus::Loss,
            _ => changed,
        }
    })
}

/// Gives the counts since the last mark to `scope`.
pub(super) fn mark(state: &mut State, device: &Gpus, scope: Scope, idle: &Idle) -> Outcome {
    state.catch_up(device);
    let outcome = state.session.mark(device, &state.name, scope, idle);
    report_missing(&outcome, Moment::Asked);
    report_files(&outcome);
    outcome
}

/// Returns the status of a mark.
pub(super) fn status_of(outcome: &Outcome) -> RocovStatus {
    if !outcome.losses.is_empty() {
        RocovStatus::Loss
    } else if outcome.files.is_empty() {
        RocovStatus::Nothing
    } else {
        RocovStatus::Ok
    }
}

/// Prints that an argument of `function` is not valid.
pub(super) fn invalid(function: &str, why: Diagnostic) -> RocovStatus {
    log::warn_once(why.within(function));
    RocovStatus::Invalid
}

/// Prints, once, that a kernel still runs at a label, window or dump.
pub(super) fn warn_in_flight() {
    kernel_wait::warn_in_flight(
        "at a label, window or dump",
        "its later counts go to the next one",
    );
}

/// The number of a thread that has opened a label; 0 before the first. No two threads of a process have
/// one number, even if one has ended before the other, and no range without a thread has a thread's.
struct Thread(Cell<u64>);

impl Drop for Thread {
    /// Closes the labels that the thread has left open.
    fn drop(&mut self) {
        let number = self.0.get();
        if number != 0 {
            boundary::guest("the end of a thread", || thread_ends(number));
        }
    }
}

fn thread_ends(number: u64) {
    let has_any = process::may_use_hsa() && with_state(|state| state.scopes.has_open(number));
    if has_any {
        turn(&mut |scopes| {
            scopes.close(number);
            RocovStatus::Ok
        });
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn this_thread() -> u64 {
    thread_local! {
        static THREAD: Thread = const { Thread(Cell::new(0)) };
    }
    // A thread that is already ending opens nothing that would end with it.
    let number = THREAD.try_with(|thread| {
        if thread.0.get() == 0 {
            thread.0.set(next_number());
        }
        thread.0.get()
    });
    number.unwrap_or(0)
}
