//! Wait states of gfx908, which has a file of registers for matrix products alone (LLVM's `checkMAIHazards908` and
//! `checkMAILdStHazards`).

use std::ops::Range;

use super::finding::{Finding, rule};
use super::history::History;
use super::matrix::{MatrixRules, Past};
use super::nature::{ACCUMULATORS, EXEC, Nature, slots};

const READ: &str = "v_accvgpr_read_b32";
const WRITE: &str = "v_accvgpr_write_b32";

/// The states for a product of 2, of 8 and of 16 passes.
fn by_passes([few, more, most]: [u64; 3]) -> impl Fn(&Past) -> u64 {
    move |past| match past.product.passes {
        2 => few,
        8 => more,
        _ => most,
    }
}

impl MatrixRules {
    /// Checks an instruction of a target whose products have their results in accumulation registers only.
    pub(super) fn check_accumulation(
        &self,
        nature: &Nature,
        history: &History,
        found: &mut dyn FnMut(Finding),
    ) {
        if nature.reads_vectors_for_memory() {
            self.check_data(nature, history, found);
        }
        let is_write = nature.mnemonic == WRITE;
        if is_write || nature.product.is_some() {
            if history.writer(EXEC).is_vector() {
                history.need(rule::EXEC_MFMA, 4, "executes with", EXEC, found);
            }
            for slot in nature.vector_reads().filter(|slot| *slot < ACCUMULATORS) {
                if history.writer(slot).is_vector() {
                    history.need(rule::VALU_MFMA, 2, "reads", slot, found);
                }
            }
        }
        if nature.product.is_some() {
            for range in &nature.factors {
                self.check_source(rule::MFMA_FACTOR, range, [4, 3], history, found);
            }
            self.check_source(rule::MFMA_ADDEND, &nature.addend, [2, 1], history, found);
        }
        if nature.mnemonic == READ {
            for range in &nature.reads {
                let states = by_passes([4, 10, 18]);
                self.need(
                    rule::MFMA_READ,
                    "reads",
                    range.clone(),
                    history,
                    found,
                    states,
                );
                check_written(range, 3, history, found);
            }
        }
        if is_write {
            for range in &nature.writes {
                let states = by_passes([1, 7, 15]);
                self.need(
                    rule::MFMA_OVERWRITE,
                    "overwrites",
                    range.clone(),
                    history,
                    found,
                    states,
                );
                self.check_addend(range, history, found);
            }
        }
    }

    /// Checks a source of a product: the states behind a product with a part of it, and behind a write of it.
    fn check_source(
        &self,
        rule: &'static str,
        range: &Range<u16>,
        [product, write]: [u64; 2],
        history: &History,
        found: &mut dyn FnMut(Finding),
    ) {
        self.need(rule, "reads", range.clone(), history, found, |past| {
            // The hardware waits for a whole result.
            match past.result == *range {
                true => 0,
                false => product,
            }
        });
        check_written(range, write, history, found);
    }

    /// A product reads its addend late: a write must not come before.
    fn check_addend(&self, range: &Range<u16>, history: &History, found: &mut dyn FnMut(Finding)) {
        for slot in slots(std::slice::from_ref(range)) {
            let past = self.past.iter().rfind(|past| past.addend.contains(&slot));
            let early =
                past.and_then(|past| past.overwritten(slot, by_passes([0, 5, 13])(past), history));
            if let Some(finding) = early {
                found(finding);
            }
        }
    }

    /// Checks an address or data for memory.
    fn check_data(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        for slot in nature.vector_reads() {
            let writer = history.writer(slot);
            if writer.by.mnemonic == READ {
                history.need(rule::ACCUMULATOR_MEMORY, 2, "reads", slot, found);
                continue;
            }
            // A move between the files directly before delays the result of the instruction in front of it.
            let is_behind_move = self
                .moved
                .is_some_and(|place| history.states_since(place) == 0);
            let is_other = writer.is_vector() && writer.by.mnemonic != WRITE && !writer.is_product;
            if is_behind_move && is_other {
                history.need(rule::ACCUMULATOR_MEMORY, 2, "reads", slot, found);
            }
        }
    }
}

/// Checks a source that a move may have written.
fn check_written(
    range: &Range<u16>,
    states: u64,
    history: &History,
    found: &mut dyn FnMut(Finding),
) {
    for slot in slots(std::slice::from_ref(range)) {
        if history.writer(slot).by.mnemonic == WRITE {
            history.need(rule::ACCUMULATOR, states, "reads", slot, found);
        }
    }
}
