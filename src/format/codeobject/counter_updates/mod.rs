//! The way in which code adds to counters: with atomic operations, or with a load and a store.
//!
//! A wave executes an instruction for all of its lanes at once. If code loads a counter, adds one and stores the sum,
//! all lanes store the same value: the counter counts once for each wave, and additions of other waves are lost.
//!
//! The code says which it is. An address of a counter is a sum of the program counter and a constant, or lies in the
//! global offset table. [`flow`] follows it through the registers to the instructions that access memory there.
//! [`instruction`] decodes these as far as that needs. A function adds without atomic operations if it loads a
//! counter and also stores one. Counters of one byte are stored to and never loaded, and bitmaps of MC/DC lie
//! elsewhere.

mod flow;
mod instruction;

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;

use object::read::ReadRef;

use crate::format::codeobject::counter_updates::flow::Surroundings;
use crate::format::codeobject::counter_updates::instruction::Generation;
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The functions that add to counters without atomic operations, by their mangled names. Their counts are too low.
    /// Empty for targets whose instructions are not known, such as those of NVIDIA GPUs.
    ///
    /// # Errors
    /// Fails if the symbols, a section with code or the relocations are damaged.
    pub fn non_atomic_functions(&self) -> Result<Vec<&'data str>, CodeObjectError> {
        let counters = self.profile_sections().counters;
        let Some(counters) = counters.filter(|section| section.size > 0) else {
            return Ok(Vec::new());
        };
        if self.is_cubin() {
            return Ok(Vec::new());
        }
        let Some(generation) = Generation::for_target(&self.target()?) else {
            return Ok(Vec::new());
        };
        let relocations = OnceCell::new();
        let relocated = |address: u64| {
            let all = relocations.get_or_init(|| {
                let mut all = HashMap::new();
                // A damaged table has no addresses.
                let _ = self.each_relocated(|address, value| _ = all.insert(address, value));
                all
            });
            all.get(&address).copied()
        };
        let surroundings = Surroundings {
            generation,
            counters,
            relocated: &relocated,
        };
        let mut functions = self.functions()?;
        // One function may have several names. Different ones do not share their code.
        functions.sort_by_key(|function| (function.address, Reverse(function.code.len())));
        functions.dedup_by_key(|function| function.address);
        let sizes = functions.iter().map(|function| function.code.len() as u64);
        self.check_total("functions", sizes)?;
        let found = functions
            .iter()
            .filter(|function| flow::adds_plainly(function.code, function.address, &surroundings));
        Ok(found.map(|function| function.name).collect())
    }
}
