//! Loads that move elements between lanes: a group of lanes loads a matrix by rows, and each lane gets a column.
//!
//! AMD's guides name the instructions. Sources of the places of elements: a test of AMD's rocRoller
//! (TransposeLoadsTest) for CDNA 4, and measurements of public projects on a gfx1201 for RDNA 4.

use modelgpu_isa::Instruction;

use super::super::{Operation, Surroundings, unmodelled};
use super::operation::{Action, MemoryOperation, Part, Segment, Shape, Transpose};
use crate::error::Fault;
use crate::lanes::{LANES, WaveSize};
use crate::wave::Wave;

const fn transpose(segment: Segment, width: u8, bytes: u8, shape: Shape) -> Operation {
    Operation::Memory(MemoryOperation {
        segment,
        action: Action::Transposed(Transpose {
            width,
            bytes,
            shape,
        }),
    })
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "ds_read_b64_tr_b4",
        transpose(Segment::Lds, 4, 8, Shape::Rows),
    ),
    (
        "ds_read_b96_tr_b6",
        transpose(Segment::Lds, 6, 12, Shape::Rows),
    ),
    (
        "ds_read_b64_tr_b8",
        transpose(Segment::Lds, 8, 8, Shape::Rows),
    ),
    (
        "ds_read_b64_tr_b16",
        transpose(Segment::Lds, 16, 8, Shape::Rows),
    ),
    (
        "global_load_tr_b64",
        transpose(Segment::Global, 8, 8, Shape::Halves),
    ),
    (
        "global_load_tr_b128",
        transpose(Segment::Global, 16, 16, Shape::Eight),
    ),
];

impl Transpose {
    pub(super) fn execute(
        self,
        lanes: u64,
        segment: Segment,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        if segment == Segment::Global && wave.size == WaveSize::Wave64 {
            return Err(unmodelled(instruction, "waves of 64"));
        }
        if lanes != wave.all_lanes {
            return Err(unmodelled(instruction, "an inactive lane"));
        }
        let load = MemoryOperation {
            segment,
            action: Action::Load {
                bytes: self.bytes,
                sign_extend: false,
                part: Part::Whole,
            },
        };
        load.execute(instruction, wave, surroundings)?;
        let words = usize::from(self.bytes / 4);
        let loaded: Vec<u128> = (0..LANES)
            .map(|lane| {
                (0..words).rev().fold(0, |row, word| {
                    row << 32 | u128::from(wave.lane_at(instruction.dst, word, lane))
                })
            })
            .collect();
        let width = u32::from(self.width);
        let mask = (1 << width) - 1;
        for lane in 0..wave.size.lanes() {
            let column = (0..self.count()).fold(0, |column, number| {
                let (source, place) = self.source(lane, number);
                let element = loaded[source] >> (width * place as u32) & mask;
                column | element << (width * number as u32)
            });
            for word in 0..words {
                wave.set_lane_at(instruction.dst, word, lane, (column >> (32 * word)) as u32);
            }
        }
        Ok(())
    }

    /// The elements of a lane.
    fn count(self) -> usize {
        8 * usize::from(self.bytes) / usize::from(self.width)
    }

    /// The lane that loads an element of a lane's column, and the element's number there.
    fn source(self, lane: usize, number: usize) -> (usize, usize) {
        let (first, own) = (lane / 16 * 16, lane % 16);
        match self.shape {
            Shape::Rows => {
                let place = 16 * number + own;
                (first + place / self.count(), place % self.count())
            }
            Shape::Eight => (lane / 8 * 8 + number, lane % 8),
            Shape::Halves => {
                let source = number / 4 * 8 + own / 8 * 4 + number % 4;
                (first + source, own % 8)
            }
        }
    }
}
