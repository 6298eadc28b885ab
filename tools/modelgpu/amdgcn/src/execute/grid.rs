//! Global wave sync: barriers of all workgroups of a dispatch, which a cooperative launch has.
//!
//! Semantics: DS_GWS_INIT and DS_GWS_BARRIER in AMD's Vega and MI200 instruction set guides. A waiting
//! wave executes its instruction again in its next turn.

use modelgpu_isa::Instruction;

use super::operation::GridOperation;
use super::{Operation, Surroundings};
use crate::error::Fault;
use crate::grid_barriers::{GridWait, RESOURCES};
use crate::wave::Wave;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("ds_gws_init", Operation::Grid(GridOperation::Init)),
    ("ds_gws_barrier", Operation::Grid(GridOperation::Barrier)),
];

impl GridOperation {
    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        // Bits 16 to 21 of M0 select the resource, together with the offset.
        let offset = instruction.immediate as u32 + (wave.m0() >> 16);
        let mut barriers = surroundings.barriers.lock();
        let resource = &mut barriers[offset as usize % RESOURCES];
        // The first active lane has the number of waves, less one.
        let lane = wave.exec().trailing_zeros() as usize % crate::lanes::LANES;
        let others = wave.lane(instruction.src[0], lane);
        match self {
            Self::Init => resource.missing = others,
            Self::Barrier => match wave.grid_wait {
                Some(GridWait(rounds)) if rounds != resource.rounds => wave.grid_wait = None,
                None if resource.missing == 0 => {
                    resource.rounds = resource.rounds.wrapping_add(1);
                    resource.missing = others;
                }
                waiting => {
                    if waiting.is_none() {
                        resource.missing -= 1;
                        wave.grid_wait = Some(GridWait(resource.rounds));
                    }
                    wave.pc = wave.pc.wrapping_sub(instruction.size.into());
                    surroundings.instructions -= 1;
                }
            },
        }
        Ok(())
    }
}
