//! Data-parallel primitives: a lane's first source comes from another lane of its wave.

use super::unmodelled;
use crate::error::Fault;
use crate::isa::{Dpp, DppControl, Instruction};
use crate::wave::{LANES, Words};

const ROW: usize = 16;

/// The source lane of each lane, and the lanes that write.
pub(super) struct Route {
    /// `None` reads 0.
    from: [Option<u8>; LANES],
    /// The lanes that write. The masks, or a missing source without bound control, disable the
    /// others.
    pub lanes: u64,
}

impl Route {
    pub(super) fn new(instruction: &Instruction, dpp: &Dpp, exec: u64) -> Result<Self, Fault> {
        let mut route = Self {
            from: [None; LANES],
            lanes: 0,
        };
        for lane in 0..LANES {
            let (row, bank) = (lane / ROW, lane % ROW / 4);
            if dpp.row_mask >> row & 1 == 0 || dpp.bank_mask >> bank & 1 == 0 {
                continue;
            }
            let source = source_lane(dpp.control, lane)
                .ok_or_else(|| unmodelled(instruction, "this DPP control"))?;
            let is_source = |from: &usize| dpp.fetches_inactive || exec >> from & 1 == 1;
            let source = source.filter(is_source);
            if source.is_some() || dpp.bound_control {
                route.lanes |= 1 << lane;
                route.from[lane] = source.map(|from| from as u8);
            }
        }
        Ok(route)
    }

    pub(super) fn apply(&self, words: &mut Words) {
        let source = *words;
        for (word, from) in words.iter_mut().zip(self.from) {
            *word = from.map_or(0, |from| source[usize::from(from)]);
        }
    }
}

/// The lane that `lane` reads. Returns `None` for a control that is not modelled and `Some(None)`
/// for a place outside of the row or wave.
fn source_lane(control: DppControl, lane: usize) -> Option<Option<usize>> {
    let control = match control {
        DppControl::Pattern(control) => control,
        DppControl::Eight(lanes) => {
            return Some(Some(lane & !7 | (lanes >> (3 * (lane & 7)) & 7) as usize));
        }
    };
    let row = lane / ROW * ROW;
    let place = lane % ROW;
    let amount = usize::from(control & 15);
    Some(match control {
        // quad_perm: two bits for each lane of four.
        0..=0xff => Some(lane & !3 | usize::from(control) >> (2 * (lane & 3)) & 3),
        // row_shl, row_shr, row_ror.
        0x101..=0x10f => (place + amount < ROW).then_some(lane + amount),
        0x111..=0x11f => (place >= amount).then(|| lane - amount),
        0x121..=0x12f => Some(row + (place + ROW - amount) % ROW),
        // wave_shl:1, wave_rol:1, wave_shr:1, wave_ror:1.
        0x130 => (lane + 1 < LANES).then_some(lane + 1),
        0x134 => Some((lane + 1) % LANES),
        0x138 => lane.checked_sub(1),
        0x13c => Some((lane + LANES - 1) % LANES),
        // row_mirror, row_half_mirror.
        0x140 => Some(row + (ROW - 1 - place)),
        0x141 => Some(lane & !7 | (7 - (lane & 7))),
        // row_bcast:15 copies the last lane of each row to the next row. row_bcast:31 copies the
        // last lane of row 1 to rows 2 and 3.
        0x142 => row.checked_sub(1),
        0x143 => (lane >= 32).then_some(31),
        // row_newbcast, or row_share on RDNA: copies a lane to its whole row.
        0x150..=0x15f => Some(row + amount),
        // row_xmask.
        0x160..=0x16f => Some(row + (place ^ amount)),
        _ => return None,
    })
}
