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
    /// The mnemonic of an opcode number.
    pub(super) fn mnemonic(&self, opcode: u32, target: Target) -> Option<&'static str> {
        let own = match target {
            Target::Gfx90a => self.gfx90a,
            Target::Gfx942 => self.gfx942,
        };
        [self.common, own].into_iter().find_map(|list| {
            let place = list
                .binary_search_by_key(&opcode, |entry| entry.0.into())
                .ok()?;
            Some(list[place].1)
        })
    }
}
