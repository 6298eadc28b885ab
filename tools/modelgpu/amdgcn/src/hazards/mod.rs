//! Looks for hazards: code that uses a result before it is there. The interpreter completes each instruction before the
//! next one, so such code gives right results here and wrong ones on the hardware.
//!
//! - [`memory`] follows the counters of outstanding accesses to memory.
//! - [`cdna`] and [`matrix`] have the wait states that CDNA needs between two instructions, and [`accumulation`] those of
//!   gfx908's matrix products.
//! - [`rdna`] has the rules of RDNA.
//!
//! [`Nature`] is what the rules ask about an instruction. `history` has the last writer of each register.

mod accumulation;
mod cdna;
mod finding;
mod history;
mod matrix;
mod memory;
mod nature;
mod rdna;

use modelgpu_isa::{Generation, Instruction, Target, WaveSize};

use self::cdna::CdnaRules;
use self::history::History;
use self::matrix::MatrixRules;
use self::memory::OutstandingResults;
use self::nature::Unit;
use self::rdna::RdnaRules;
use crate::wave::Wave;

pub(crate) use self::finding::{Earlier, Finding};
pub(crate) use self::nature::Nature;

/// The message that releases the registers of a wave (RDNA).
const DEALLOC_VGPRS: u8 = 3;

/// The rules of a generation.
#[derive(Clone, Debug)]
enum Rules {
    Cdna(Box<CdnaRules>, MatrixRules),
    Rdna(Box<RdnaRules>),
}

/// The instructions that a wave has executed, for the rules.
#[derive(Clone, Debug)]
struct WaveWatch {
    memory: OutstandingResults,
    history: History,
    rules: Rules,
    /// Results of matrix products are in a file of their own.
    has_separate_registers: bool,
}

/// A hazard, and the place of the instruction that uses a result too early.
#[derive(Clone, Debug)]
pub(crate) struct HazardSighting {
    pub wave: usize,
    pub at: Earlier,
    pub finding: Finding,
}

/// The watch over the waves of a workgroup.
pub(crate) struct HazardWatch {
    waves: Vec<WaveWatch>,
    /// The sightings that nobody has reported.
    sightings: Vec<HazardSighting>,
    /// All places and rules so far.
    known: Vec<(u64, &'static str)>,
}

impl HazardWatch {
    /// Creates a watch over waves that have a number of VGPRs.
    pub(crate) fn new(target: Target, size: WaveSize, waves: usize, vectors: u16) -> Self {
        let rules = match target.generation() {
            Generation::Gfx9 => Rules::Cdna(
                Box::new(CdnaRules::new(target, vectors)),
                MatrixRules::new(target),
            ),
            _ => Rules::Rdna(Box::new(RdnaRules::new(target, size))),
        };
        let wave = WaveWatch {
            memory: OutstandingResults::new(target),
            history: History::new(),
            rules,
            has_separate_registers: target == Target::Gfx908,
        };
        Self {
            waves: vec![wave; waves],
            sightings: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Looks at an instruction of a wave before it executes.
    pub(crate) fn look(
        &mut self,
        number: usize,
        pc: u64,
        nature: &Nature,
        instruction: &Instruction,
        wave: &Wave,
    ) {
        let Self {
            waves,
            sightings,
            known,
        } = self;
        let Some(watch) = waves.get_mut(number) else {
            return;
        };
        let at = Earlier {
            pc,
            mnemonic: nature.mnemonic,
        };
        watch.look(nature, instruction, wave, at, &mut |finding| {
            let key = (pc, finding.rule);
            if !known.contains(&key) {
                known.push(key);
                sightings.push(HazardSighting {
                    wave: number,
                    at,
                    finding,
                });
            }
        });
    }

    /// Takes the sightings since the last call.
    pub(crate) fn take(&mut self) -> Vec<HazardSighting> {
        std::mem::take(&mut self.sightings)
    }
}

impl WaveWatch {
    fn look(
        &mut self,
        nature: &Nature,
        instruction: &Instruction,
        wave: &Wave,
        at: Earlier,
        found: &mut dyn FnMut(Finding),
    ) {
        self.memory.look(nature, instruction, wave, at, found);
        let history = &mut self.history;
        match &mut self.rules {
            Rules::Cdna(cdna, matrix) => {
                cdna.check(nature, instruction, history, found);
                match self.has_separate_registers {
                    true => matrix.check_accumulation(nature, history, found),
                    false => matrix.check(nature, history, found),
                }
                history.add(nature, at);
                cdna.add(nature, history, at);
                matrix.add(nature, history, at);
            }
            Rules::Rdna(rdna) => {
                rdna.check(nature, history, at, found);
                let releases = nature.unit == Unit::Scalar
                    && nature.mnemonic == "s_sendmsg"
                    && instruction.immediate as u8 == DEALLOC_VGPRS;
                if releases {
                    rdna.check_release(found);
                    if self.memory.has_scratch_store() {
                        found(self.memory.release(rdna.previous()));
                    }
                }
                history.add(nature, at);
                rdna.add(nature, history, at);
            }
        }
    }
}
