//! Lookup in the generated opcode tables.

use crate::target::Target;

/// The opcodes of one encoding, each list sorted by number.
pub(super) struct Table {
    /// Opcodes that all modelled targets share.
    pub common: &'static [(u16, &'static str)],
    pub gfx90a: &'static [(u16, &'static str)],
    pub gfx942: &'static [(u16, &'static str)],
}

impl Table {
    /// The target's opcode numbers and mnemonics.
    pub(super) fn opcodes(&self, target: Target) -> impl Iterator<Item = (u16, &'static str)> {
        self.common.iter().chain(self.own(target)).copied()
    }

    /// The opcodes that only this target has.
    fn own(&self, target: Target) -> &'static [(u16, &'static str)] {
        match target {
            Target::Gfx90a => self.gfx90a,
            Target::Gfx942 => self.gfx942,
        }
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
