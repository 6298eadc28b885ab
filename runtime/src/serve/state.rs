//! The state of the drainer: the session, the name of profiles, labels and windows, LLVM's drain.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rocov::device::hsa::exchange::Exchanged;
use rocov::device::hsa::{Copying, Runtime};
use rocov::device::{DeviceError, Executable, Gpus};
use rocov::discover::Loader;
use rocov::drain::{Outcome, Scope, Scopes, Session, Window};
use rocov::store::{Keeper, ProfileName};
use rocov::support::diagnostic::diagnostic;

use super::host_builds;
use super::modules::{Late, late, modules};
use super::report::{Moment, report_missing, report_not_kept};
use crate::elect::llvm_drain::{LlvmDrain, Stance};
use crate::guest::journal::{self, Note};
use crate::guest::{log, process, settings};

static STATE: Mutex<Option<State>> = Mutex::new(None);

pub(super) struct State {
    /// The number of the process. A child that was forked before HSA started inherits the state of its parent.
    of: u32,
    pub(super) session: Session,
    pub(super) name: ProfileName,
    /// The pattern that the program has given the name, if it has.
    pattern: Option<String>,
    /// The labels and windows that determine where the session's counts go.
    pub(super) scopes: Scopes,
    llvm_drain: LlvmDrain,
}

impl State {
    fn new() -> Self {
        Self::with_pattern(None)
    }

    /// Makes the state of a process whose program has given this pattern for names, which is valid.
    fn with_pattern(pattern: Option<String>) -> Self {
        let name = pattern.as_deref().map(settings::parse_name);
        let name = name
            .and_then(Result::ok)
            .unwrap_or_else(settings::profile_name);
        let keeper = Keeper::new(settings::keeping(), settings::process(), &name);
        let mut session = Session::filtered(settings::filter())
            .with_keeper(keeper)
            .with_files(host_builds::files());
        let mut scopes = Scopes::new(name.label().cloned());
        if settings::paused() {
            scopes.set_window(Window::Closed);
            session.go_on_in(scopes.current());
        }
        Self {
            of: std::process::id(),
            session,
            name,
            pattern,
            scopes,
            llvm_drain: LlvmDrain::new(),
        }
    }

    /// Gives this process names of its own, if its parent has made the state. Labels and windows of the forking thread
    /// stay open.
    fn follow_fork(&mut self) {
        if self.of != std::process::id() {
            let own = Self::with_pattern(self.pattern.take());
            let Self { scopes, .. } = std::mem::replace(self, own);
            self.scopes = scopes;
            self.session.go_on_in(self.scopes.current());
        }
    }

    /// Gives profiles another name from now on; `None` for the name of the environment.
    pub(super) fn rename(&mut self, pattern: Option<&str>, name: ProfileName) {
        self.session.go_on_beside(&name);
        self.name = name;
        self.pattern = pattern.map(str::to_owned);
    }

    /// Follows the modules that have come, and forgets those that have gone. A module whose call has not returned waits: its
    /// handle is not known, and nothing of it has run.
    pub(super) fn catch_up(&mut self, device: &Gpus) {
        let events = std::mem::take(&mut *late());
        for event in events {
            match event {
                Late::Loaded(executable, _) if modules().is_being_loaded(executable) => {
                    late().push(event);
                }
                Late::Loaded(executable, origin) => {
                    static ONCE: Once = Once::new();
                    ONCE.call_once(|| self.session.forget_agents());
                    let loader = Loader {
                        file: origin,
                        is_hip: false,
                    };
                    self.examine(device, executable, &loader);
                }
                Late::Gone(executable) => {
                    let not_kept = self.session.gone(executable, &self.name);
                    report_not_kept(&not_kept, Moment::Between);
                }
            }
        }
    }

    /// Examines an executable that `loader` is loading. Returns false if it is known.
    pub(super) fn examine(
        &mut self,
        device: &Gpus,
        executable: Executable,
        loader: &Loader,
    ) -> bool {
        if self.session.knows(device, executable) {
            return false;
        }
        let loaded = self.session.loaded_by(device, executable, loader);
        match loaded {
            Ok(outcome) => {
                report_missing(&outcome, Moment::Last);
                note_loads(&outcome);
                log::verbose(format_args!(
                    "executable {:#x} loaded: {} code objects, {} instrumented, {} left out",
                    executable.0, outcome.pairs, outcome.found, outcome.skipped
                ));
            }
            Err(error) => warn_blind(&error),
        }
        true
    }

    /// Follows code that was loaded past the hooks.
    pub(super) fn look_for_unseen(&mut self, device: &Gpus) {
        let outcome = self.session.look_for_unseen(device);
        report_missing(&outcome, Moment::Last);
        note_loads(&outcome);
    }

    /// Searches for LLVM's own runtime again. If it is there, leaves each code object to one of the drains: LLVM's finds
    /// nothing of those that rocov drains.
    pub(super) fn share_with_llvm(&mut self, device: &Gpus) {
        if device.hsa().is_none() {
            return; // LLVM's drain knows HIP only, and the search reads every object of the process.
        }
        match self.llvm_drain.look() {
            Stance::Alone => return,
            Stance::StandDown => self.session.leave_plain_counters(),
            Stance::TakeOver => {}
        }
        report_missing(&self.session.blank_tables(device), Moment::Last);
    }

    /// Returns whether LLVM's own runtime drains all loaded code, as far as it was searched for.
    pub(super) fn stands_down(&self) -> bool {
        self.llvm_drain.stance() == Stance::StandDown && self.session.is_empty()
    }
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

/// Runs `work` on the state, unless there is nothing to do in this process.
pub(super) fn with_owned<T>(work: impl FnOnce(&mut State, &Gpus) -> T) -> Option<T> {
    with_device(|state, device| (!state.stands_down()).then(|| work(state, device))).flatten()
}

/// Runs `work` on the state, even if LLVM's runtime drains all code that is known so far. Does nothing if this process
/// has loaded no code.
pub(super) fn with_device<T>(work: impl FnOnce(&mut State, &Gpus) -> T) -> Option<T> {
    let device = attach_own()?;
    Some(with_state(|state| {
        state.catch_up(&device);
        work(state, &device)
    }))
}

/// Runs `work` on the state. The first call makes the state.
pub(super) fn with_state<T>(work: impl FnOnce(&mut State) -> T) -> T {
    // A poisoned state is still consistent: each step changes it after the step has succeeded.
    let mut state: MutexGuard<'_, Option<State>> =
        STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let _holding = Holding::begin();
    let state = state.get_or_insert_with(State::new);
    state.follow_fork();
    work(state)
}

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the calling thread is inside [`with_state`]. Then a call of the CUDA driver that rocov itself has made
/// has caused an event.
pub(super) fn is_held_here() -> bool {
    HOLDS.try_with(Cell::get).unwrap_or_default()
}

/// The time in which the thread has the state.
struct Holding;

impl Holding {
    fn begin() -> Self {
        // A thread that is already ending gets no events of its own.
        let _ = HOLDS.try_with(|holds| holds.set(true));
        Self
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = HOLDS.try_with(|holds| holds.set(false));
    }
}

/// Returns the running runtimes of a process that has loaded code.
pub(super) fn attach_own() -> Option<Gpus> {
    process::uses_hsa().then(attach).flatten()
}

/// The HSA runtime of the process.
static HSA: Runtime = Runtime::new();

/// Returns the code objects that HSA has got in place of the program's.
pub(super) fn exchanged() -> &'static Exchanged {
    HSA.exchanged()
}

/// Returns the running runtimes of the process; `None` if there is none, or none any more.
pub(super) fn attach() -> Option<Gpus> {
    Gpus::attach(&HSA, copying(), modules()).unwrap_or_else(|error| {
        warn_blind(&error);
        None
    })
}

/// Returns the state of this process's copies from GPUs.
pub(super) fn copying() -> &'static Arc<Copying> {
    static COPYING: OnceLock<Arc<Copying>> = OnceLock::new();
    COPYING.get_or_init(|| Arc::new(Copying::with_patience(settings::patience())))
}

/// Prints that rocov cannot ask HSA for the loaded code.
pub(super) fn warn_blind(error: &DeviceError) {
    log::warn_once(diagnostic!(
        "cannot list the loaded code: {error}; counts may be lost";
        "run the program again"
    ));
}

/// The figures for `rocov status`.
#[derive(Debug)]
pub(super) struct Status {
    /// GPU agents.
    pub(super) agents: usize,
    /// Instrumented code objects, each counted once for each load.
    pub(super) loads: usize,
    /// The label or window of the present counts.
    pub(super) scope: Scope,
    /// The directory of the profiles.
    pub(super) directory: PathBuf,
}

/// Returns the figures for `rocov status`.
pub(super) fn status() -> Status {
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
