//! One workgroup: its waves take turns on the calling thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::decoder::Decoder;
use crate::error::Fault;
use crate::execute::{LdsWatch, Surroundings, Wait, execute};
use crate::hazards::HazardWatch;
use crate::lanes::Words;
use crate::trace::ActiveLanes;
use crate::wave::{Arrival, State, Wave};

/// Instructions that a wave executes before the next one has its turn. The number is small, so that
/// waves that wait for each other in memory make progress, and large, so that switches cost little.
const TURN: u32 = 4096;
/// Looks at memory with one result after which a wave counts as waiting.
const POLLS: u32 = 16;
/// Looks at the clock in one turn after which a wave counts as waiting. The compiler divides times of 64 bits
/// in 200 instructions, so a turn has not many looks.
const CLOCK_LOOKS: u32 = 8;
/// Instructions after which a workgroup leaves its thread to others although none of its waves seems
/// to wait: a kernel may wait in a way that `Poll` does not recognise.
const SLICE: u64 = 1 << 22;

/// A workgroup.
#[derive(Default)]
pub(crate) struct Workgroup {
    /// Its number in the dispatch.
    pub number: u64,
    pub id: [u32; 3],
    pub waves: Vec<Wave>,
    pub lds: Vec<u8>,
    /// Looks for mistakes with `lds`.
    pub watch: Option<Box<LdsWatch>>,
    /// Looks for results that code uses too early.
    pub hazards: Option<Box<HazardWatch>>,
}

/// The state of a workgroup after its turn on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All waves have ended.
    Ended,
    /// The workgroup gives way.
    Paused(Pause),
}

/// The reason why a wave or a workgroup gives way. If waves have several, the workgroup has the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pause {
    /// It has executed its share of instructions.
    Share,
    /// It seems to wait for another workgroup or for the host.
    Others,
    /// It seems to wait until some time has passed.
    Clock,
}

/// The reason why a workgroup did not end.
pub(crate) enum Interruption {
    Cancelled,
    Fault { wave: usize, pc: u64, fault: Fault },
}

impl Workgroup {
    /// Runs the waves until all have ended, or the workgroup's turn is over.
    ///
    /// `current` gets the number of the wave that has its turn, for the caller's callbacks.
    pub(crate) fn run(
        &mut self,
        code: &mut Decoder,
        surroundings: &mut Surroundings<'_>,
        current: &Cell<usize>,
        cancelled: &[&AtomicBool],
    ) -> Result<Progress, Interruption> {
        std::mem::swap(&mut self.lds, &mut surroundings.lds);
        std::mem::swap(&mut self.watch, &mut surroundings.watch);
        let result = self.take_turns(code, surroundings, current, cancelled);
        std::mem::swap(&mut self.lds, &mut surroundings.lds);
        std::mem::swap(&mut self.watch, &mut surroundings.watch);
        result
    }

    fn take_turns(
        &mut self,
        code: &mut Decoder,
        surroundings: &mut Surroundings<'_>,
        current: &Cell<usize>,
        cancelled: &[&AtomicBool],
    ) -> Result<Progress, Interruption> {
        let first = surroundings.instructions;
        let take_turn = match (code.tally().is_some(), self.hazards.is_some()) {
            (true, true) => take_turn::<true, true>,
            (true, false) => take_turn::<true, false>,
            (false, true) => take_turn::<false, true>,
            (false, false) => take_turn::<false, false>,
        };
        loop {
            let mut pause = Pause::Share;
            for (number, wave) in self.waves.iter_mut().enumerate() {
                if cancelled.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                    return Err(Interruption::Cancelled);
                }
                current.set(number);
                if let Some(watch) = &mut surroundings.watch {
                    watch.wave = number;
                }
                let hazards = self.hazards.as_deref_mut().map(|watch| (watch, number));
                let turn =
                    take_turn(wave, code, surroundings, hazards).map_err(|(pc, fault)| {
                        Interruption::Fault {
                            wave: number,
                            pc,
                            fault,
                        }
                    })?;
                pause = pause.max(turn);
            }
            let has_arrived =
                |wave: &Wave| wave.state != State::Running || wave.arrival == Arrival::Signalled;
            if self.waves.iter().all(has_arrived) {
                // A barrier waits for the waves that have not ended.
                let mut all_ended = true;
                for wave in &mut self.waves {
                    if wave.state == State::AtBarrier {
                        wave.state = State::Running;
                        wave.arrival = Arrival::None;
                        all_ended = false;
                    } else if wave.state == State::Running {
                        wave.arrival = Arrival::Complete;
                        all_ended = false;
                    }
                }
                if all_ended {
                    return Ok(Progress::Ended);
                }
                if let Some(watch) = &mut surroundings.watch {
                    watch.barrier();
                }
                // The workgroup has made progress.
                continue;
            }
            if pause != Pause::Share || surroundings.instructions - first > SLICE {
                return Ok(Progress::Paused(pause));
            }
        }
    }
}

/// Executes until the turn is over, or until the wave waits or ends. Returns why the turn is over. Counts the
/// executions if the dispatch is `TRACED`, and looks for hazards if it is `WATCHED`.
#[inline(never)]
fn take_turn<const TRACED: bool, const WATCHED: bool>(
    wave: &mut Wave,
    code: &mut Decoder,
    surroundings: &mut Surroundings<'_>,
    mut hazards: Option<(&mut HazardWatch, usize)>,
) -> Result<Pause, (u64, Fault)> {
    let mut poll = Poll::default();
    let mut clock_looks = 0;
    let mut fetched = None;
    let mut active = ActiveLanes::default();
    for _ in 0..TURN {
        if wave.state != State::Running {
            break;
        }
        let pc = wave.pc;
        // Most instructions follow the one before.
        let index = match fetched {
            Some((index, next)) if next == pc => {
                code.following(index, (pc, wave.banks), &mut surroundings.memory)
            }
            _ => code.fetch((pc, wave.banks), &mut surroundings.memory),
        }
        .map_err(|fault| (pc, fault))?;
        let lanes = if TRACED { active.count(wave.exec()) } else { 0 };
        if let (true, Some(tally)) = (TRACED, code.tally()) {
            tally.count(index, lanes);
        }
        if let (true, Some((watch, number))) = (WATCHED, &mut hazards) {
            let (nature, instruction) = code.nature(index);
            watch.look(*number, pc, nature, instruction, wave);
        }
        let entry = code.at(index);
        let next = pc.wrapping_add(entry.size.into());
        fetched = Some((index, next));
        surroundings.instructions += 1;
        wave.pc = next;
        if entry.step.execute(wave) {
            continue;
        }
        let decoded = code.decoded(index);
        if let Some(dual) = &decoded.second {
            dual.execute(wave, surroundings)
                .map_err(|fault| (pc, fault))?;
            continue;
        }
        let instruction = &decoded.instruction;
        let Some(operation) = decoded.operation else {
            surroundings.instructions -= 1;
            wave.pc = pc;
            let mnemonic = instruction.mnemonic;
            if let (true, Some(tally)) = (TRACED, code.tally()) {
                tally.take_back(index, lanes);
            }
            return Err((
                pc,
                Fault::Unmodelled {
                    mnemonic,
                    detail: None,
                },
            ));
        };
        execute(operation, instruction, wave, surroundings).map_err(|fault| (pc, fault))?;
        let waits = match decoded.wait {
            Wait::No => false,
            Wait::Sleep => true,
            Wait::Poll => poll.waits(pc, wave.vector(instruction.dst)),
            Wait::Clock => {
                clock_looks += 1;
                clock_looks == CLOCK_LOOKS
            }
        };
        if waits {
            return Ok(match clock_looks {
                0 => Pause::Others,
                _ => Pause::Clock,
            });
        }
    }
    Ok(Pause::Share)
}

/// The looks of a wave at memory that others write. A wave that waits has one result at one
/// instruction, again and again.
#[derive(Default)]
struct Poll {
    pc: u64,
    /// The result of the last look, from the second look in a row on.
    result: Option<u64>,
    /// Looks with this result.
    count: u32,
}

impl Poll {
    /// Adds a look. Returns whether the wave seems to wait.
    fn waits(&mut self, pc: u64, result: Option<&Words>) -> bool {
        if self.pc != pc {
            // Most waves look once, so only a second look pays for the comparison.
            *self = Self {
                pc,
                ..Self::default()
            };
            return false;
        }
        // FNV's multiplication tells results apart; a mistake only makes a workgroup give way.
        let result = result.map_or(0, |words| {
            words.iter().fold(0u64, |hash, word| {
                (hash ^ u64::from(*word)).wrapping_mul(0x100_0000_01b3)
            })
        });
        if self.result != Some(result) {
            self.result = Some(result);
            self.count = 0;
        }
        self.count += 1;
        self.count >= POLLS
    }
}
