//! What this process has loaded, and when it is drained.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rocov::device::{DeviceError, DeviceRange, Executable};
use rocov::drain::{Idle, Outcome, Scopes, Session, Window};
use rocov::hsa::{self, Copying, HsaDevice};
use rocov::output::ProfileName;
use rocov::registry::{KeepError, Keeper};

use crate::demangle::demangle;
use crate::exports::RocovStatus;
use crate::journal::{self, Note};
use crate::neighbour::{Neighbour, Stance};
use crate::queues::{self, Waited};
use crate::{builds, caller, config, election, exit, log, process, zeros};

static STATE: Mutex<Option<State>> = Mutex::new(None);

pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) name: ProfileName,
    /// Where the session is told that counts go.
    pub(crate) scopes: Scopes,
    /// What LLVM's own drain in the process makes us do.
    neighbour: Neighbour,
}

impl State {
    /// Whether LLVM's own runtime drains this program.
    pub(crate) fn stands_down(&self) -> bool {
        self.neighbour.stance() == Stance::StandDown
    }

    /// Looks for LLVM's runtime again, and returns whether it drains this program.
    pub(crate) fn stands_aside(&mut self) -> bool {
        self.neighbour.look() == Stance::StandDown
    }
}

/// An executable was frozen: its code objects are loaded.
pub(crate) fn frozen(executable: Executable) {
    if !process::claim() {
        return;
    }
    let Some(device) = attach() else { return };
    zeros::note_agents(&device);
    with_state(|state| {
        if state.session.knows(&device, executable) {
            return;
        }
        let loaded = state
            .session
            .loaded_by(&device, executable, &caller::loader);
        match loaded {
            Ok(outcome) => {
                report_missing(&outcome);
                note_loads(&outcome);
                log::verbose(format_args!(
                    "executable {:#x} loaded: {} code objects, {} instrumented, {} left out",
                    executable.0, outcome.pairs, outcome.found, outcome.skipped
                ));
            }
            Err(error) => lost_sight(&error),
        }
        came_in(state, &device);
    });
}

/// After code was loaded: has what counts drained before HIP's destructors run, and kept from LLVM's
/// own drain, if that is there.
fn came_in(state: &mut State, device: &HsaDevice) {
    if !state.session.is_empty() && look_for_neighbour(state, device) != Stance::StandDown {
        exit::register_early();
    }
}

/// Looks for LLVM's own drain, and leaves nothing for it to find if rocov drains in its stead.
fn look_for_neighbour(state: &mut State, device: &HsaDevice) -> Stance {
    let stance = state.neighbour.look();
    if stance == Stance::TakeOver {
        report_missing(&state.session.blank_tables(device));
    }
    stance
}

/// Code was loaded past the hooks.
pub(crate) fn look() -> RocovStatus {
    let looked = with_owned(|state, device| {
        look_for_unseen(state, device);
        came_in(state, device);
        RocovStatus::Ok
    });
    looked.unwrap_or(RocovStatus::Nothing)
}

fn look_for_unseen(state: &mut State, device: &HsaDevice) {
    let outcome = state.session.look_for_unseen(device);
    report_missing(&outcome);
    note_loads(&outcome);
}

fn note_loads(outcome: &Outcome) {
    if outcome.pairs > 0 {
        journal::note(Note::Loaded);
    }
    if outcome.found > 0 {
        journal::note(Note::Counts);
    }
    if outcome.skipped > 0 {
        journal::note(Note::Skipped);
    }
}

/// An executable is about to be destroyed. Says whether it may be: a copy that was given up may still
/// read its memory, which must not be freed then. ROCr takes no copy back.
pub(crate) fn destroying(executable: Executable) -> RocovStatus {
    let memory = match process::is_user() {
        true => with_state(|state| state.session.memory_of(executable)),
        false => Vec::new(),
    };
    drain_destroyed(executable);
    let is_touched = |range: &DeviceRange| copying().may_touch(Some(*range));
    may_go(!memory.iter().any(is_touched))
}

/// HSA is about to be shut down: whatever is still loaded is drained, because it goes with HSA.
pub(crate) fn shutting_down() -> RocovStatus {
    let idle = wait_and_say(None);
    drain(&idle);
    keep_before_exit();
    may_go(!process::is_user() || !copying().may_touch(None))
}

fn may_go(may: bool) -> RocovStatus {
    if may {
        return RocovStatus::Ok;
    }
    say_once(
        &"a copy has not ended and may still read what the program unloads now: it stays in GPU \
         memory until the program ends",
    );
    RocovStatus::Loss
}

fn drain_destroyed(executable: Executable) {
    let idle = wait_and_say(Some(executable));
    let drained = with_owned(|state, device| {
        if !state.session.has_seen(executable) {
            return;
        }
        if state.session.is_complete(executable, &idle) {
            log::verbose(format_args!(
                "executable {:#x} destroyed: nothing has run since it was drained",
                executable.0
            ));
            report_not_kept(&state.session.gone(executable, &state.name));
            return;
        }
        let outcome = state.session.unloading(device, executable, &state.name);
        if outcome.found > 0 || !outcome.losses.is_empty() {
            report(&outcome);
        }
        report_not_kept(&outcome.not_kept);
    });
    if drained.is_none() && process::is_user() {
        // Whoever drains it, or nobody: it is gone.
        with_state(|state| report_not_kept(&state.session.gone(executable, &state.name)));
    }
}

/// The process may go: whatever is loaded is drained once its kernels are done.
pub(crate) fn ending() -> RocovStatus {
    let idle = wait_and_say(None);
    let status = drain(&idle);
    keep();
    status
}

/// Waits for the kernels on agents that have loads of `executable`, or any.
pub(crate) fn wait_for_kernels(executable: Option<Executable>) -> Waited {
    let counting = with_owned(|state, _| state.session.counting_agents(executable));
    // Not under the lock: other threads have code objects to load meanwhile.
    let waited = counting.and_then(|agents| Some(queues::finish(&attach_own()?, &agents)));
    waited.unwrap_or_default()
}

/// The same for code that is unloaded.
fn wait_and_say(executable: Option<Executable>) -> Idle {
    static ONCE: Once = Once::new();
    let Waited { idle, in_flight } = wait_for_kernels(executable);
    let patience = config::patience();
    // On a thread of the runtime's, nothing was waited for.
    if in_flight && !patience.is_zero() && !caller::is_runtimes_thread() {
        ONCE.call_once(|| {
            journal::note(Note::Lost);
            log::warn(format_args!(
                "a kernel still runs after {} s (ROCOV_WAIT) while code is unloaded; if it is of \
                 that code, what it counts from now on is lost",
                patience.as_secs()
            ));
        });
    }
    idle
}

/// The last drain of this process, which loads no more code: code that it never loaded counts as zero.
pub(crate) fn leaving() -> RocovStatus {
    let idle = wait_and_say(None);
    let status = drain(&idle);
    zeros::of_process();
    keep();
    journal::note(Note::Ended);
    status
}

/// Whatever is loaded is drained, as it is now.
pub(crate) fn draining() -> RocovStatus {
    let status = drain(&Idle::new());
    keep();
    status
}

/// Drains what may have counted since it was last drained: nothing of agents that have been `idle`.
fn drain(idle: &Idle) -> RocovStatus {
    let drained = with_owned(|state, device| {
        if look_for_neighbour(state, device) == Stance::StandDown {
            return RocovStatus::Nothing;
        }
        let outcome = state.session.drain_busy(device, &state.name, idle);
        let is_done = outcome.pairs == 0 && outcome.losses.is_empty() && !state.session.is_empty();
        if is_done {
            log::verbose(format_args!("nothing has run since the last drain"));
        } else {
            report(&outcome);
        }
        report_not_kept(&outcome.not_kept);
        // What has come past the hooks was found only now.
        look_for_neighbour(state, device);
        if !outcome.losses.is_empty() {
            RocovStatus::Loss
        } else if outcome.found == 0 {
            RocovStatus::Nothing
        } else {
            RocovStatus::Ok
        }
    });
    drained.unwrap_or(RocovStatus::Nothing)
}

/// Another program is about to take the process over, and may write files of the same names.
pub(crate) fn handing_over() {
    for renamed in with_state(|state| state.session.hand_over()) {
        match renamed {
            Ok(file) => log::verbose(format_args!("left {}", file.display())),
            Err(error) => log::warn(format_args!(
                "the next program of this process may overwrite a profile: {error}"
            )),
        }
    }
    // Which files hold what has changed.
    keep();
}

/// Whether HSA is still there or not, and whoever drains: what was loaded is written down.
pub(crate) fn keep() {
    if process::is_user() {
        with_state(|state| report_not_kept(&state.session.keep(&state.name)));
    }
}

/// The program wants the counters zeroed.
pub(crate) fn reset() -> RocovStatus {
    let zeroed = with_owned(|state, device| {
        look_for_unseen(state, device);
        state.session.zero(device)
    });
    match zeroed {
        None => RocovStatus::Nothing,
        Some(Ok(())) => RocovStatus::Ok,
        Some(Err(error)) => {
            log::warn(format_args!("cannot zero all counters: {error}"));
            RocovStatus::Loss
        }
    }
}

/// Profiles have this name from now on; `None`: the one of the environment.
pub(crate) fn set_file(pattern: Option<&str>) -> RocovStatus {
    let name = match pattern.map(config::parse_name).transpose() {
        Ok(name) => name.unwrap_or_else(config::profile_name),
        Err(error) => {
            log::warn(format_args!("rocov_set_file: {error}"));
            return RocovStatus::Invalid;
        }
    };
    with_state(|state| {
        state.session.go_on_beside(&name);
        state.name = name;
    });
    RocovStatus::Ok
}

/// `hsa_shut_down` has returned. If that was the last reference, all executables went with it.
pub(crate) fn shut_down() {
    if !process::is_user() || attach().is_some() {
        return;
    }
    queues::forget_all();
    copying().forget_all();
    with_state(|state| state.session.forget_all());
    keep_before_exit();
}

/// HIP shuts HSA down as the process exits, before our last exit handler or after it: that one keeps.
fn keep_before_exit() {
    if !exit::is_under_way() {
        keep();
    }
}

/// The process ends by `exit` or by returning from main. Besides what was seen, what was loaded
/// past the hooks is looked for.
pub(crate) fn exiting() {
    if drains_at_exit() {
        leaving();
    }
}

/// The same when exit handlers begin to run: `exiting` comes again as the last of them.
pub(crate) fn exit_begins() {
    if drains_at_exit() {
        with_state(|state| state.session.ends());
        let idle = wait_and_say(None);
        drain(&idle);
    }
}

fn drains_at_exit() -> bool {
    // Most processes of a test suite use no GPU: this is all that happens in them. Of several copies
    // that saw nothing, one looks.
    hsa::is_loaded() && election::drains() && process::claim()
}

/// Runs `work` on the state, unless there is nothing to do in this process.
pub(crate) fn with_owned<T>(work: impl FnOnce(&mut State, &HsaDevice) -> T) -> Option<T> {
    let device = attach_own()?;
    with_state(|state| (!state.stands_down()).then(|| work(state, &device)))
}

/// The running HSA runtime, of a process that has loaded code.
pub(crate) fn attach_own() -> Option<HsaDevice> {
    process::is_user().then(attach).flatten()
}

/// What is known of the process's copies.
fn copying() -> &'static Arc<Copying> {
    static COPYING: OnceLock<Arc<Copying>> = OnceLock::new();
    COPYING.get_or_init(|| Arc::new(Copying::with_patience(config::patience())))
}

/// The running HSA runtime of the process; `None` where there is none (any more).
fn attach() -> Option<HsaDevice> {
    HsaDevice::attach(copying()).unwrap_or_else(|error| {
        lost_sight(&error);
        None
    })
}

/// Runs `work` on the state, which is made when it is first needed.
pub(crate) fn with_state<T>(work: impl FnOnce(&mut State) -> T) -> T {
    work(locked().as_mut().expect("it is made where it is locked"))
}

/// Not a part of each function that uses the state: librocov is to be small.
#[inline(never)]
fn locked() -> MutexGuard<'static, Option<State>> {
    // A poisoned state is still a consistent one: each step changes it after it succeeded.
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.get_or_insert_with(|| {
        let name = config::profile_name();
        let keeper = Keeper::new(config::keeping(), config::process(), &name);
        let mut session = Session::filtered(config::filter())
            .with_keeper(keeper)
            .with_demangler(demangle)
            .with_files(builds::files());
        let mut scopes = Scopes::new(name.label().cloned());
        if config::paused() {
            scopes.set_window(Window::Closed);
            session.go_on_in(scopes.current());
        }
        State {
            session,
            name,
            scopes,
            neighbour: Neighbour::new(),
        }
    });
    state
}

fn lost_sight(error: &DeviceError) {
    say_once(&format_args!(
        "cannot see what is loaded: {error}; counts may be lost"
    ));
}

/// Says what a pass could not read, or not keep.
pub(crate) fn report_missing(outcome: &Outcome) {
    report_losses(outcome);
    report_not_kept(&outcome.not_kept);
}

fn report_losses(outcome: &Outcome) {
    if outcome.failures() > 0 {
        journal::note(Note::Lost);
    }
    outcome.losses.iter().for_each(say_once);
}

fn report_not_kept(errors: &[KeepError]) {
    errors.iter().for_each(say_once);
}

/// Says which files a pass has written.
pub(crate) fn report_files(outcome: &Outcome) {
    if !outcome.files.is_empty() {
        journal::note(Note::Wrote);
    }
    for file in &outcome.files {
        log::verbose(format_args!("wrote {}", file.display()));
    }
}

/// Says what is missing, each thing once: code objects are drained again and again. After many different
/// things nothing more is said, nor remembered.
pub(crate) fn say_once(loss: &impl ToString) {
    say_line_once(loss.to_string());
}

fn say_line_once(loss: String) {
    const MOST: usize = 100;
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() == MOST {
        return;
    }
    if !said.contains(&loss) {
        log::warn(format_args!("{loss}"));
        said.insert(loss);
        if said.len() == MOST {
            log::warn(format_args!(
                "{MOST} different lines are enough: what else is missing is not said"
            ));
        }
    }
}

/// Says what a pass did, in the words of LLVM's own drain.
pub(crate) fn report(outcome: &Outcome) {
    report_losses(outcome);
    for copied in &outcome.copied {
        log::verbose(format_args!(
            "Copied device sections: Counters={}, Data={}, Names={}, UniformCounters={}",
            copied.counters, copied.data, copied.names, copied.uniform
        ));
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
