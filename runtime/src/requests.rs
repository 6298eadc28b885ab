//! What the program, or a user from outside, asks for before the end: labels, windows, dumps.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use rocov::drain::{Idle, Outcome, Scope, Scopes, Window};
use rocov::hsa::HsaDevice;
use rocov::output::LabelError;

use crate::exports::RocovStatus;
use crate::lifecycle::{self, State, with_owned, with_state};
use crate::queues::Waited;
use crate::{boundary, config, log, process};

/// A dump that was made.
#[derive(Debug)]
pub(crate) struct Dumped {
    pub(crate) status: RocovStatus,
    /// The label that it has; empty where no window is open.
    pub(crate) label: String,
    /// Files that were written.
    pub(crate) files: usize,
    /// Whether kernels still ran: what they count later is not in it.
    pub(crate) in_flight: bool,
}

/// What there is to drain, and where it goes.
#[derive(Debug)]
pub(crate) struct Status {
    /// GPU agents.
    pub(crate) agents: usize,
    /// Instrumented code objects that are loaded, each as often as it is.
    pub(crate) loads: usize,
    /// Where what is counted now goes.
    pub(crate) scope: Scope,
    /// The directory of the profiles.
    pub(crate) directory: PathBuf,
}

/// The calling thread opens a label; none is one that cannot be used.
pub(crate) fn label_push(label: Option<&str>) -> RocovStatus {
    let label = label.unwrap_or_default();
    turn(&mut |scopes| match scopes.push(this_thread(), label) {
        Ok(()) => RocovStatus::Ok,
        Err(error) => invalid("rocov_label_push", &error),
    })
}

/// The calling thread closes the label that it has opened last.
pub(crate) fn label_pop() -> RocovStatus {
    turn(&mut |scopes| match scopes.pop(this_thread()) {
        true => RocovStatus::Ok,
        false => RocovStatus::Nothing,
    })
}

/// A window opens: what was counted since the last one closed, or ever, is left out.
pub(crate) fn start() -> RocovStatus {
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

/// The window closes, and what was counted in it is written.
pub(crate) fn stop() -> RocovStatus {
    let closed = turn(&mut |scopes| match scopes.window() {
        Window::Closed => RocovStatus::Nothing,
        Window::None | Window::Open => {
            scopes.set_window(Window::Closed);
            RocovStatus::Ok
        }
    });
    match closed {
        RocovStatus::Ok => lifecycle::draining(),
        other => other,
    }
}

/// What is counted from now on is for a dump of `label` within those that are open (`None`: one with a
/// number of its own), until [`close_dump`], whatever is drained or unloaded meanwhile. Returns the label.
///
/// # Errors
/// Fails where `label` is none.
pub(crate) fn open_dump(label: Option<&str>) -> Result<String, LabelError> {
    let label = or_numbered(label);
    with_state(|state| state.scopes.below(&label))?;
    turn(&mut |scopes| {
        scopes.set_dump(Some(label.clone()));
        RocovStatus::Ok
    });
    Ok(label)
}

/// Ends such a dump. The files are those of the label by now.
///
/// # Errors
/// As for [`dump`].
pub(crate) fn close_dump(label: &str, reset: bool) -> Result<Dumped, LabelError> {
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

/// Writes what was counted since the last dump or drain, or change of labels or windows, for `label`
/// within those that are open (`None`: one with a number of its own). Then zeroes the counters, if it is
/// to `reset` them.
///
/// # Errors
/// Fails where `label` is none.
pub(crate) fn dump(label: Option<&str>, reset: bool) -> Result<Dumped, LabelError> {
    write(&or_numbered(label), reset)
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
    let Waited { idle, in_flight } = lifecycle::wait_for_kernels(None);
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
        // What was counted before and has another label, or none, may not have been written yet.
        let statuses = [lifecycle::draining(), lifecycle::reset()];
        if statuses.contains(&RocovStatus::Loss) {
            dumped.status = RocovStatus::Loss;
        }
    }
    lifecycle::keep();
    Ok(dumped)
}

/// The same for the C interface.
pub(crate) fn dump_of_program(label: Option<&str>) -> RocovStatus {
    dump(label, false).map_or_else(
        |error| invalid("rocov_dump", &error),
        |dumped| {
            if dumped.in_flight {
                say_in_flight();
            }
            dumped.status
        },
    )
}

/// What is going on.
pub(crate) fn status() -> Status {
    with_state(|state| Status {
        agents: state.session.agents(),
        loads: state.session.loads(),
        scope: match (state.scopes.current(), state.name.label()) {
            (Scope::Unlabelled, Some(label)) => Scope::Labelled(label.clone()),
            (scope, _) => scope,
        },
        directory: state.name.layout().directory().to_owned(),
    })
}

/// The argument of the C interface's `function`; `None` for null.
///
/// # Errors
/// Fails where it is not UTF-8, which is said.
///
/// # Safety
/// `argument` is null or NUL terminated, and stays so as long as the text is used.
pub(crate) unsafe fn text<'a>(
    function: &str,
    argument: *const c_char,
) -> Result<Option<&'a str>, RocovStatus> {
    if argument.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(argument) }.to_str();
    text.map(Some).map_err(|_| {
        log::warn(format_args!("{function}: the argument is not UTF-8"));
        RocovStatus::Invalid
    })
}

/// Gives what was counted until now to where it belongs, then has `change` say where it goes from now
/// on: also in a process that has no code loaded yet.
fn turn(change: &mut dyn FnMut(&mut Scopes) -> RocovStatus) -> RocovStatus {
    if !process::may_use_hsa() {
        return RocovStatus::Nothing;
    }
    let Waited { idle, in_flight } = lifecycle::wait_for_kernels(None);
    if in_flight {
        say_in_flight();
    }
    let device = lifecycle::attach_own();
    with_state(|state| {
        if state.stands_down() {
            return RocovStatus::Nothing;
        }
        let scope = state.scopes.current();
        let marked = device.map(|device| mark(state, &device, scope, &idle));
        let changed = change(&mut state.scopes);
        state.session.go_on_in(state.scopes.current());
        if state.scopes.are_too_many() {
            lifecycle::say_once(
                &"the labels that threads have open are too long for one directory's \
                                  name: what is counted meanwhile goes to profiles without a label",
            );
        }
        match marked.as_ref().map(status_of) {
            Some(RocovStatus::Loss) if changed == RocovStatus::Ok => RocovStatus::Loss,
            _ => changed,
        }
    })
}

/// Gives what was counted since the last mark to `scope`.
fn mark(state: &mut State, device: &HsaDevice, scope: Scope, idle: &Idle) -> Outcome {
    let outcome = state.session.mark(device, &state.name, scope, idle);
    lifecycle::report_missing(&outcome);
    lifecycle::report_files(&outcome);
    outcome
}

fn status_of(outcome: &Outcome) -> RocovStatus {
    if !outcome.losses.is_empty() {
        RocovStatus::Loss
    } else if outcome.files.is_empty() {
        RocovStatus::Nothing
    } else {
        RocovStatus::Ok
    }
}

fn invalid(function: &str, why: &dyn Display) -> RocovStatus {
    lifecycle::say_once(&format_args!("{function}: {why}"));
    RocovStatus::Invalid
}

fn say_in_flight() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::warn(format_args!(
            "a kernel still runs after {} s (ROCOV_WAIT) at a label, window or dump: what it counts \
             from now on goes to the next",
            config::patience().as_secs()
        ));
    });
}

/// The number of a thread that has opened a label: no two threads have the same, not even one after the
/// other.
struct Thread(Cell<u64>);

impl Drop for Thread {
    /// What it has left open ends with it.
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

fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static THREAD: Thread = const { Thread(Cell::new(0)) };
    }
    // Where the thread is ending already, it opens nothing that would end with it.
    let number = THREAD.try_with(|thread| {
        if thread.0.get() == 0 {
            thread.0.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        thread.0.get()
    });
    number.unwrap_or(0)
}
