//! The registers that a kernel's descriptor allots to each wave, and those that an instruction names.

use modelgpu_isa::{AccessKind, File, Instruction, WaveSize};

use crate::error::Fault;

/// SGPRs with a place of their own: VCC and others follow, which every wave has.
const ORDINARY_SCALARS: u16 = 102;

/// Numbers of registers of each file: how many a wave has, or how many it must have for an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allotment {
    pub vectors: u16,
    pub accumulators: u16,
    pub scalars: u16,
}

impl Allotment {
    /// The registers that an instruction needs in waves of a size.
    pub(crate) fn needed(instruction: &Instruction, wave: WaveSize) -> Self {
        let mut needed = Self::default();
        let is_image = instruction.mnemonic.starts_with("image_");
        for access in instruction.accesses(wave) {
            // The numbers of an image's addresses are not known exactly.
            let count = match is_image && access.kind == AccessKind::Read {
                true => 1,
                false => u16::from(access.count),
            };
            let end = access.first + count;
            match access.file {
                File::Vector => needed.vectors = needed.vectors.max(end),
                File::Accumulator => needed.accumulators = needed.accumulators.max(end),
                File::Scalar if access.first < ORDINARY_SCALARS => {
                    needed.scalars = needed.scalars.max(end.min(ORDINARY_SCALARS));
                }
                File::Scalar => {}
            }
        }
        needed
    }

    /// Checks that a wave with these registers has those that an instruction needs.
    pub(crate) fn check(self, needed: Self, mnemonic: &'static str) -> Result<(), Fault> {
        let files = [
            (File::Vector, self.vectors, needed.vectors),
            (File::Accumulator, self.accumulators, needed.accumulators),
            (File::Scalar, self.scalars, needed.scalars),
        ];
        let beyond = files
            .into_iter()
            .find(|(_, allotted, needed)| needed > allotted);
        beyond.map_or(Ok(()), |(file, allotted, needed)| {
            Err(Fault::BeyondRegisters {
                mnemonic,
                file,
                needed,
                allotted,
            })
        })
    }
}
