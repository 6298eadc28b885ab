//! Lookup in the generated opcode tables.

use super::tables;
use crate::target::{Generation, Target};

/// The opcodes of one encoding, each list sorted by number.
pub(super) struct Table {
    /// Opcodes that all modelled targets of the generation share.
    pub common: &'static [(u16, &'static str)],
    /// The other opcodes of each target.
    pub own: &'static [(Target, &'static [(u16, &'static str)])],
}

/// The tables of a generation. The three segments of FLAT count as encodings. A table is empty if
/// the generation lacks its encoding.
pub(super) struct Tables {
    pub sop2: Table,
    pub sopk: Table,
    pub sop1: Table,
    pub sopc: Table,
    pub sopp: Table,
    pub smem: Table,
    pub vop2: Table,
    pub vop1: Table,
    pub vopc: Table,
    pub vop3: Table,
    pub vop3p: Table,
    /// Matrix products behind their scales.
    pub vop3px: Table,
    /// The first and the second instruction of a dual one.
    pub vopdx: Table,
    pub vopdy: Table,
    pub ds: Table,
    pub flat: Table,
    pub scratch: Table,
    pub global: Table,
    pub mubuf: Table,
    pub mtbuf: Table,
    pub mimg: Table,
    /// Image accesses with a sampler, on RDNA 4.
    pub vsample: Table,
    /// The instructions of VOP1, VOP2 and VOPC whose operands are halves of registers: bit 0 and 1 for
    /// sources, bit 3 for the result. Sorted by name.
    pub halves: &'static [(&'static str, u8)],
}

impl Tables {
    /// The tables of a target's generation.
    pub(super) fn of(target: Target) -> &'static Self {
        match target.generation() {
            Generation::Gfx9 => &tables::GFX9,
            Generation::Gfx11 => &tables::GFX11,
            Generation::Gfx12 => &tables::GFX12,
        }
    }

    /// The operands of a mnemonic that are halves of registers, as in [`Tables::halves`].
    pub(super) fn halves_of(&self, mnemonic: &str) -> u8 {
        let place = self.halves.binary_search_by_key(&mnemonic, |entry| entry.0);
        place.map_or(0, |place| self.halves[place].1)
    }

    /// All tables, with the names of their encodings.
    pub(super) fn all(&self) -> [(&'static str, &Table); 22] {
        [
            ("SOP2", &self.sop2),
            ("SOPK", &self.sopk),
            ("SOP1", &self.sop1),
            ("SOPC", &self.sopc),
            ("SOPP", &self.sopp),
            ("SMEM", &self.smem),
            ("VOP2", &self.vop2),
            ("VOP1", &self.vop1),
            ("VOPC", &self.vopc),
            ("VOP3", &self.vop3),
            ("VOP3P", &self.vop3p),
            ("VOP3PX", &self.vop3px),
            ("VOPDX", &self.vopdx),
            ("VOPDY", &self.vopdy),
            ("DS", &self.ds),
            ("FLAT", &self.flat),
            ("SCRATCH", &self.scratch),
            ("GLOBAL", &self.global),
            ("MUBUF", &self.mubuf),
            ("MTBUF", &self.mtbuf),
            ("MIMG", &self.mimg),
            ("VSAMPLE", &self.vsample),
        ]
    }
}

impl Table {
    pub(super) const EMPTY: Self = Self {
        common: &[],
        own: &[],
    };

    /// The target's opcode numbers and mnemonics.
    pub(super) fn opcodes(&self, target: Target) -> impl Iterator<Item = (u16, &'static str)> {
        self.common.iter().chain(self.own(target)).copied()
    }

    /// The opcodes that not all targets of the generation have.
    fn own(&self, target: Target) -> &'static [(u16, &'static str)] {
        let own = self.own.iter().find(|(owner, _)| *owner == target);
        own.map_or(&[], |(_, list)| *list)
    }

    /// The mnemonic of an opcode number.
    pub(super) fn mnemonic(&self, opcode: u32, target: Target) -> Option<&'static str> {
        [self.common, self.own(target)]
            .into_iter()
            .find_map(|list| {
                let place = list
                    .binary_search_by_key(&opcode, |entry| entry.0.into())
                    .ok()?;
                Some(list[place].1)
            })
    }
}
