//! The order in which a dispatch's workgroups run, and the threads that run them.
//!
//! Workgroups start by number. A thread runs a workgroup to its end, and then takes the next one. A
//! workgroup that seems to wait, perhaps for a later one, gives way: the thread keeps it, and starts the next one. Once the modelled GPU is full, or all
//! workgroups have started, those that a thread keeps take turns.
//!
//! A dispatch begins on the calling thread. Further threads join after some milliseconds
//! ([`Workers::alone`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::code::{Code, Core, Spare};
use crate::error::DispatchError;
use crate::execute::{LdsAccess, Surroundings};
use crate::launch::{Dispatch, STUCK, Statistics};
use crate::memory::{Span, View};
use crate::warning::Stuck;
use crate::wave::{State, Wave};
use crate::workers::Workers;
use crate::workgroup::{Interruption, Pause, Progress, Workgroup};

/// The most waves that a thread keeps between dispatches. Each has up to 140 KiB.
const KEPT_WAVES: usize = 64;

/// Instructions of a thread after which it hands over its counts. A dump of a kernel that runs for long sees them.
const FLUSH: u64 = 1 << 20;

/// The state that the threads of a dispatch share.
struct Shared<'a> {
    dispatch: &'a Dispatch<'a>,
    cancelled: &'a AtomicBool,
    workgroups: u64,
    capacity: u64,
    counters: Counters,
    /// A workgroup was interrupted: the others end too.
    failed: AtomicBool,
    /// The interrupted workgroup with the lowest number.
    failure: Mutex<Option<(u64, DispatchError)>>,
    /// A thread has told of an access beyond LDS.
    told: AtomicBool,
    /// A thread has told that the dispatch is stuck.
    is_stuck: AtomicBool,
}

/// The counters that the threads change at the start and at the end of each workgroup. They have a line of the
/// host's caches of their own: the threads look at the rest again and again.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    /// The number of the next workgroup to start.
    next: AtomicU64,
    /// Workgroups that have started and not ended.
    resident: AtomicU64,
    /// Turns after which a workgroup did not wait.
    progress: AtomicU64,
}

/// One thread's part of a dispatch.
struct Worker<'a> {
    core: &'a mut Core,
    /// Workgroups that have given way.
    paused: VecDeque<Workgroup>,
    /// Turns in a row after which the workgroup seemed to wait.
    idle: usize,
    /// The dispatch's progress at this thread's last look, and instructions since then.
    since: (u64, u64),
    statistics: Statistics,
}

/// Ends the other threads of a dispatch if this one panics: they may wait for it.
struct EndOthers<'a>(&'a AtomicBool);

impl Drop for EndOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs all workgroups of a dispatch.
pub(crate) fn run(
    dispatch: &Dispatch<'_>,
    code: &mut Code,
    workers: &dyn Workers,
    cancelled: &AtomicBool,
) -> Result<Statistics, DispatchError> {
    let shared = Shared {
        dispatch,
        cancelled,
        workgroups: dispatch.workgroups(),
        capacity: dispatch.capacity(),
        counters: Counters::default(),
        failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        told: AtomicBool::new(false),
        is_stuck: AtomicBool::new(false),
    };
    let threads = shared.workgroups.min(workers.count() as u64).max(1) as usize;
    let parts: Vec<_> = code
        .begin_dispatch(
            threads,
            dispatch.context.trace.is_some(),
            &dispatch.descriptor,
        )
        .iter_mut()
        .map(|core| Mutex::new(Worker::new(core)))
        .collect();
    let work = |number: usize, limit| {
        let _guard = EndOthers(&shared.failed);
        let mut worker = parts[number].lock().unwrap_or_else(PoisonError::into_inner);
        worker.run(&shared, limit)
    };
    let alone = if threads == 1 {
        u64::MAX
    } else {
        workers.alone()
    };
    if !work(0, alone) {
        workers.run(threads, &|number| {
            work(number, u64::MAX);
        });
    }
    let mut statistics = Statistics::default();
    for part in parts {
        // A thread that has panicked leaves workgroups that nobody ends.
        let mut worker = part
            .into_inner()
            .unwrap_or_else(|_| panic!("a thread of this dispatch has panicked"));
        worker.release();
        statistics.instructions += worker.statistics.instructions;
        statistics.waves += worker.statistics.waves;
        statistics.workgroups += worker.statistics.workgroups;
    }
    let failure = shared.failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(statistics),
    }
}

impl Shared<'_> {
    /// Begins the next workgroup; `None` if all have started or the GPU is full.
    fn begin(&self, spare: &mut Spare) -> Option<Workgroup> {
        if self.counters.resident.fetch_add(1, Ordering::Relaxed) < self.capacity {
            let number = self.counters.next.fetch_add(1, Ordering::Relaxed);
            if number < self.workgroups {
                let mut workgroup = spare.workgroups.pop().unwrap_or_default();
                (self.dispatch).begin(number, &mut workgroup, &mut spare.waves);
                return Some(workgroup);
            }
        }
        self.counters.resident.fetch_sub(1, Ordering::Relaxed);
        None
    }

    fn fail(&self, workgroup: &Workgroup, interruption: Interruption) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // A cancelled workgroup shows nothing if another one has failed.
        let told_to_end = self.failed.load(Ordering::Relaxed);
        if told_to_end && matches!(interruption, Interruption::Cancelled) {
            return;
        }
        let is_first = failure
            .as_ref()
            .is_none_or(|(number, _)| workgroup.number < *number);
        if is_first {
            let error = self.dispatch.error(workgroup.id, interruption);
            *failure = Some((workgroup.number, error));
        }
        self.failed.store(true, Ordering::Relaxed);
    }
}

impl<'a> Worker<'a> {
    fn new(core: &'a mut Core) -> Self {
        Self {
            core,
            paused: VecDeque::new(),
            idle: 0,
            since: (0, 0),
            statistics: Statistics::default(),
        }
    }

    /// Runs workgroups until none is left, or this thread has executed `limit` instructions. Returns
    /// whether none is left for it.
    fn run(&mut self, shared: &Shared<'_>, limit: u64) -> bool {
        let dispatch = shared.dispatch;
        let (workgroup_id, wave) = (Cell::new([0; 3]), Cell::new(0));
        let beyond_lds = |access: LdsAccess| {
            if !shared.told.swap(true, Ordering::Relaxed) {
                let warning = dispatch.beyond_lds(workgroup_id.get(), wave.get(), access);
                (dispatch.context.beyond_lds)(warning);
            }
        };
        let mut surroundings = Surroundings {
            memory: View::new(dispatch.memory),
            span: Box::new(Span::new()),
            lds: Vec::new(),
            watch: None,
            beyond_lds: &beyond_lds,
            interrupt: dispatch.context.interrupt,
            clock: dispatch.context.clock,
            barriers: &dispatch.barriers,
            target: dispatch.target,
            instructions: self.statistics.instructions,
        };
        let mut flushed = surroundings.instructions;
        let ended = loop {
            if surroundings.instructions >= limit {
                break false;
            }
            if surroundings.instructions - flushed >= FLUSH {
                flushed = surroundings.instructions;
                self.flush(shared);
            }
            let Some(mut workgroup) = self.take(shared) else {
                break true;
            };
            workgroup_id.set(workgroup.id);
            let before = surroundings.instructions;
            let progress = workgroup.run(
                &mut self.core.decoder,
                &mut surroundings,
                &wave,
                &[shared.cancelled, &shared.failed],
            );
            dispatch.tell_mistakes(&mut workgroup);
            dispatch.report_hazards(&mut workgroup);
            match progress {
                Ok(Progress::Ended) => self.end(shared, workgroup),
                Ok(Progress::Paused(pause)) => {
                    if pause == Pause::Others {
                        let executed = surroundings.instructions - before;
                        self.wait(shared, &workgroup, executed);
                    } else {
                        shared.counters.progress.fetch_add(1, Ordering::Relaxed);
                    }
                    self.paused.push_back(workgroup);
                    self.idle = if pause == Pause::Share {
                        0
                    } else {
                        self.idle + 1
                    };
                    if self.idle > self.paused.len() {
                        // All wait, for another thread, the host or the clock.
                        self.idle = 0;
                        std::thread::yield_now();
                    }
                }
                Err(interruption) => {
                    shared.fail(&workgroup, interruption);
                    break true;
                }
            }
        };
        self.statistics.instructions = surroundings.instructions;
        self.flush(shared);
        ended
    }

    /// Hands over the counts of a traced dispatch.
    fn flush(&mut self, shared: &Shared<'_>) {
        if let Some(trace) = shared.dispatch.context.trace {
            self.core.decoder.flush(trace);
        }
    }

    /// The workgroup that has its turn: a new one, or the one that has waited longest.
    fn take(&mut self, shared: &Shared<'_>) -> Option<Workgroup> {
        shared
            .begin(&mut self.core.spare)
            .or_else(|| self.paused.pop_front())
    }

    /// Counts a turn in which the workgroup only waited. Tells if the dispatch is stuck.
    fn wait(&mut self, shared: &Shared<'_>, workgroup: &Workgroup, instructions: u64) {
        /// A turn at a barrier of the grid executes nothing.
        const LEAST: u64 = 64;
        let progress = shared.counters.progress.load(Ordering::Relaxed);
        if self.since.0 != progress {
            self.since = (progress, 0);
        }
        self.since.1 += instructions.max(LEAST);
        if self.since.1 < STUCK || shared.is_stuck.swap(true, Ordering::Relaxed) {
            return;
        }
        let waits = |wave: &&Wave| wave.state == State::Running;
        let Some(wave) = workgroup.waves.iter().position(|wave| waits(&wave)) else {
            return;
        };
        let count = |state| {
            workgroup
                .waves
                .iter()
                .filter(|wave| wave.state == state)
                .count()
        };
        let pc = workgroup.waves[wave].pc;
        (shared.dispatch.context.stuck)(Stuck {
            site: Box::new(shared.dispatch.site(workgroup.id, wave, pc)),
            workgroups: shared.counters.resident.load(Ordering::Relaxed),
            at_barrier: count(State::AtBarrier),
            waves: count(State::AtBarrier) + count(State::Running),
        });
    }

    fn end(&mut self, shared: &Shared<'_>, workgroup: Workgroup) {
        self.idle = 0;
        shared.counters.progress.fetch_add(1, Ordering::Relaxed);
        self.statistics.workgroups += 1;
        self.statistics.waves += workgroup.waves.len() as u64;
        self.core.spare.workgroups.push(workgroup);
        shared.counters.resident.fetch_sub(1, Ordering::Relaxed);
    }

    /// Keeps some workgroups for the next dispatch.
    fn release(&mut self) {
        let spare = &mut self.core.spare;
        let mut waves = 0;
        spare.workgroups.retain(|workgroup| {
            waves += workgroup.waves.len();
            waves <= KEPT_WAVES
        });
        spare.waves.truncate(KEPT_WAVES.saturating_sub(waves));
    }
}
