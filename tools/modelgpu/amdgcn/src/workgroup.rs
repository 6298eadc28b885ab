//! One workgroup: its waves take turns on the calling thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::code::Code;
use crate::error::Fault;
use crate::execute::{Surroundings, execute};
use crate::wave::{State, Wave};

/// Instructions that a wave executes before the next one has its turn. The number is small, so that
/// waves that wait for each other in memory make progress, and large, so that switches cost little.
const TURN: u32 = 4096;

/// The reason why a workgroup did not end.
pub(crate) enum Interruption {
    Cancelled,
    Fault { wave: usize, pc: u64, fault: Fault },
}

/// Runs the waves until all have ended.
///
/// `current` gets the number of the wave that has its turn, for the caller's callbacks.
pub(crate) fn run(
    waves: &mut [Wave],
    code: &mut Code,
    surroundings: &mut Surroundings<'_>,
    current: &Cell<usize>,
    cancelled: &AtomicBool,
) -> Result<(), Interruption> {
    loop {
        for (number, wave) in waves.iter_mut().enumerate() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Interruption::Cancelled);
            }
            current.set(number);
            take_turn(wave, code, surroundings).map_err(|(pc, fault)| Interruption::Fault {
                wave: number,
                pc,
                fault,
            })?;
        }
        if waves.iter().any(|wave| wave.state == State::Running) {
            continue;
        }
        // A barrier waits for the waves that have not ended.
        let mut all_ended = true;
        for wave in waves
            .iter_mut()
            .filter(|wave| wave.state == State::AtBarrier)
        {
            wave.state = State::Running;
            all_ended = false;
        }
        if all_ended {
            return Ok(());
        }
    }
}

/// Executes until the turn is over, or until the wave waits or ends.
fn take_turn(
    wave: &mut Wave,
    code: &mut Code,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), (u64, Fault)> {
    for _ in 0..TURN {
        if wave.state != State::Running {
            break;
        }
        let pc = wave.pc;
        let decoded = code
            .fetch(pc, &mut surroundings.memory)
            .map_err(|fault| (pc, fault))?;
        let instruction = &decoded.instruction;
        let Some(operation) = decoded.operation else {
            let mnemonic = instruction.mnemonic;
            return Err((
                pc,
                Fault::Unmodelled {
                    mnemonic,
                    detail: None,
                },
            ));
        };
        surroundings.instructions += 1;
        wave.pc = pc.wrapping_add(instruction.size.into());
        execute(operation, instruction, wave, surroundings).map_err(|fault| (pc, fault))?;
    }
    Ok(())
}
