//! Data-parallel primitives: a lane's first source comes from another lane of its wave.

use modelgpu_isa::{Dpp, DppControl};

use crate::lanes::{LANES, Words};

/// The way of a source between lanes.
pub(super) struct Route {
    /// The lane that each lane reads.
    pub from: Words,
    /// The lanes for which it lies inside of the row or wave.
    inside: u64,
    /// The lanes that the masks enable.
    enabled: u64,
    /// A lane without a source reads 0. Otherwise it does not write.
    bound_control: bool,
    /// Inactive lanes are sources too.
    fetches_inactive: bool,
}

/// The lanes of a route in a wave.
pub(super) struct RouteLanes {
    /// Those that have a source. The others read 0.
    pub present: u64,
    /// Those that write.
    pub writing: u64,
}

impl Route {
    /// Returns `None` for a control that is not modelled.
    pub(super) fn new(dpp: &Dpp) -> Option<Self> {
        let (from, inside) = sources(dpp.control)?;
        let mut enabled = 0;
        for quad in 0..LANES / 4 {
            let (row, bank) = (quad / 4, quad % 4);
            let is_enabled = u64::from(dpp.row_mask >> row & dpp.bank_mask >> bank & 1);
            enabled |= (0xf * is_enabled) << (4 * quad);
        }
        Some(Self {
            from: from.map(|from| u32::from(from) % LANES as u32),
            inside,
            enabled,
            bound_control: dpp.bound_control,
            fetches_inactive: dpp.fetches_inactive,
        })
    }

    /// The lanes in a wave with these active ones of all its lanes.
    pub(super) fn lanes(&self, active: u64, all: u64) -> RouteLanes {
        let mut present = self.inside;
        if !self.fetches_inactive && active != all {
            let mut active_sources = 0;
            for (lane, from) in self.from.iter().enumerate() {
                active_sources |= (active >> from & 1) << lane;
            }
            present &= active_sources;
        }
        let mut writing = self.enabled & active;
        if !self.bound_control {
            writing &= present;
        }
        RouteLanes { present, writing }
    }

    pub(super) fn apply(&self, words: &mut Words, present: u64) {
        let source = *words;
        for (lane, (word, from)) in words.iter_mut().zip(self.from).enumerate() {
            let is_present = 0u32.wrapping_sub((present >> lane) as u32 & 1);
            *word = source[from as usize % LANES] & is_present;
        }
    }
}

/// The lane that each lane reads, and the lanes for which it lies inside of the row or wave. Returns `None`
/// for a control that is not modelled.
fn sources(control: DppControl) -> Option<([u8; LANES], u64)> {
    const ALL: u64 = u64::MAX;
    // These lanes of each row of 16.
    let in_rows = |lanes: u16| u64::from(lanes) * 0x0001_0001_0001_0001;
    let control = match control {
        DppControl::Pattern(control) => control,
        DppControl::Eight(lanes) => {
            let from = each(|lane| lane & !7 | (lanes >> (3 * (lane & 7)) & 7) as u8);
            return Some((from, ALL));
        }
    };
    let amount = (control & 15) as u8;
    Some(match control {
        // quad_perm: two bits for each lane of four.
        0..=0xff => (
            each(|lane| lane & !3 | (control >> (2 * (lane & 3)) & 3) as u8),
            ALL,
        ),
        // row_shl, row_shr, row_ror.
        0x101..=0x10f => (
            each(|lane| lane.wrapping_add(amount)),
            in_rows(0xffff >> amount),
        ),
        0x111..=0x11f => (
            each(|lane| lane.wrapping_sub(amount)),
            in_rows(0xffff << amount),
        ),
        0x121..=0x12f => (
            each(|lane| lane & !15 | lane.wrapping_sub(amount) & 15),
            ALL,
        ),
        // wave_shl:1, wave_rol:1, wave_shr:1, wave_ror:1.
        0x130 => (each(|lane| lane.wrapping_add(1)), ALL >> 1),
        0x134 => (each(|lane| lane.wrapping_add(1)), ALL),
        0x138 => (each(|lane| lane.wrapping_sub(1)), ALL << 1),
        0x13c => (each(|lane| lane.wrapping_sub(1)), ALL),
        // row_mirror, row_half_mirror.
        0x140 => (each(|lane| lane ^ 15), ALL),
        0x141 => (each(|lane| lane ^ 7), ALL),
        // row_bcast:15 copies the last lane of each row to the next row. row_bcast:31 copies the
        // last lane of row 1 to rows 2 and 3.
        0x142 => (each(|lane| (lane & !15).wrapping_sub(1)), ALL << 16),
        0x143 => (each(|_| 31), ALL << 32),
        // row_newbcast, or row_share on RDNA: copies a lane to its whole row.
        0x150..=0x15f => (each(|lane| lane & !15 | amount), ALL),
        // row_xmask.
        0x160..=0x16f => (each(|lane| lane ^ amount), ALL),
        _ => return None,
    })
}

/// A lane for each lane, in a wave that goes round.
fn each(source: impl Fn(u8) -> u8) -> [u8; LANES] {
    std::array::from_fn(|lane| source(lane as u8) % LANES as u8)
}
