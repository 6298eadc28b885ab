//! Wait states behind matrix products of CDNA (LLVM's `checkMAIHazards90A` and `checkMAIVALUHazards`).

use std::collections::VecDeque;
use std::ops::Range;

use modelgpu_isa::Target;

use super::finding::{Earlier, Finding, Remedy, rule};
use super::history::{History, Place, apart};
use super::nature::{EXEC, Nature, Product, Unit, name, slots};

/// The most wait states that a product needs.
const MOST: u64 = 20;

/// An earlier product.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) product: Product,
    pub(super) result: Range<u16>,
    pub(super) addend: Range<u16>,
    pub(super) place: Place,
    pub(super) by: Earlier,
}

impl Past {
    /// The finding of an instruction that comes less than so many wait states after the product; `problem` takes the
    /// distance.
    pub(super) fn too_near(
        &self,
        rule: &'static str,
        states: u64,
        history: &History,
        problem: impl FnOnce(String) -> String,
    ) -> Option<Finding> {
        let since = history.states_since(self.place);
        (since < states).then(|| Finding {
            rule,
            problem: problem(apart(since)),
            earlier: Some(self.by),
            remedy: Remedy::States(states - since),
        })
    }

    /// As [`Self::too_near`], for an instruction that overwrites a register of the product's addend.
    pub(super) fn overwritten(&self, slot: u16, states: u64, history: &History) -> Option<Finding> {
        self.too_near(rule::MFMA_KEPT, states, history, |distance| {
            format!(
                "overwrites {}, which is the addend, {distance} after",
                name(slot)
            )
        })
    }
}

/// The products of a wave that are not far away.
#[derive(Clone, Debug)]
pub(super) struct MatrixRules {
    target: Target,
    pub(super) past: VecDeque<Past>,
    /// The last move between the files of registers.
    pub(super) moved: Option<Place>,
}

impl MatrixRules {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            past: VecDeque::new(),
            moved: None,
        }
    }

    /// Adds an instruction that the history has.
    pub(super) fn add(&mut self, nature: &Nature, history: &History, by: Earlier) {
        while let Some(first) = self.past.front()
            && history.states_since(first.place) > MOST
        {
            self.past.pop_front();
        }
        if nature.mnemonic.starts_with("v_accvgpr_") {
            self.moved = Some(history.now);
        }
        let (Some(product), Some(result)) = (nature.product, nature.writes.first()) else {
            return;
        };
        self.past.push_back(Past {
            product,
            result: result.clone(),
            addend: nature.addend.clone(),
            place: history.now,
            by,
        });
    }

    pub(super) fn check(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        match nature.product {
            Some(product) => self.check_product(product, nature, history, found),
            None if self.past.is_empty() => {}
            None if nature.unit == Unit::Vector || nature.reads_vectors_for_memory() => {
                self.check_other(nature, history, found);
            }
            None => {}
        }
    }

    fn check_product(
        &self,
        product: Product,
        nature: &Nature,
        history: &History,
        found: &mut dyn FnMut(Finding),
    ) {
        let exec = history.writer(EXEC);
        if exec.is_vector() && !exec.is_product {
            history.need(rule::EXEC_MFMA, 4, "executes with", EXEC, found);
        }
        for slot in nature.vector_reads() {
            let writer = history.writer(slot);
            if writer.is_vector() && !writer.is_product && !writer.is_dot {
                history.need(rule::VALU_MFMA, 2, "reads", slot, found);
            }
        }
        for range in &nature.factors {
            self.need(
                rule::MFMA_FACTOR,
                "reads",
                range.clone(),
                history,
                found,
                |past| self.states_before_factor(past.product),
            );
        }
        let addend = nature.addend.clone();
        self.need(
            rule::MFMA_ADDEND,
            "reads",
            addend.clone(),
            history,
            found,
            |past| self.states_before_addend(past.product, product, past.result == addend),
        );
    }

    /// The checks of an instruction that is no product.
    fn check_other(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        let is_memory = nature.reads_vectors_for_memory();
        for range in &nature.reads {
            self.need(
                rule::MFMA_READ,
                "reads",
                range.clone(),
                history,
                found,
                |past| self.states_before_read(past.product, is_memory),
            );
        }
        for range in &nature.writes {
            self.need(
                rule::MFMA_OVERWRITE,
                "overwrites",
                range.clone(),
                history,
                found,
                |past| self.states_before_overwrite(past.product),
            );
            self.check_kept(range, history, found);
        }
    }

    /// Reports a use of a register of a product's result after too few wait states.
    pub(super) fn need(
        &self,
        rule: &'static str,
        verb: &str,
        range: Range<u16>,
        history: &History,
        found: &mut dyn FnMut(Finding),
        states: impl Fn(&Past) -> u64,
    ) {
        for slot in slots(&[range]) {
            // A later result has waited for an earlier one.
            let past = self.past.iter().rfind(|past| past.result.contains(&slot));
            let Some(past) = past else {
                continue;
            };
            let finding = past.too_near(rule, states(past), history, |distance| {
                format!("{verb} {} {distance} after", name(slot))
            });
            if let Some(finding) = finding {
                found(finding);
                return;
            }
        }
    }

    /// A product reads its addend late: others must not overwrite it before.
    fn check_kept(&self, range: &Range<u16>, history: &History, found: &mut dyn FnMut(Finding)) {
        for slot in slots(std::slice::from_ref(range)) {
            let keeps = |past: &&Past| {
                let is_late = !past.product.is_double
                    && (self.target == Target::Gfx90a || past.product.is_xdl);
                is_late && past.addend.contains(&slot)
            };
            let Some(past) = self.past.iter().rfind(keeps) else {
                continue;
            };
            let states = match past.product.passes {
                2 => 1,
                4 => 3,
                8 => 7,
                _ => 15,
            };
            if let Some(finding) = past.overwritten(slot, states, history) {
                found(finding);
                return;
            }
        }
    }

    /// The wait states between a product and another one that adds to its result.
    fn states_before_addend(&self, past: Product, product: Product, is_whole: bool) -> u64 {
        let passes = u64::from(past.passes);
        let is_gfx90a = self.target == Target::Gfx90a;
        if is_gfx90a && !product.is_double && past.is_double {
            return 0;
        }
        if is_whole {
            return match past.is_double {
                // Both are of the small shape.
                true if past.passes == 4 && product.is_double && product.passes == 4 => 4,
                _ if !is_gfx90a && past.passes == 2 => 2,
                _ => 0,
            };
        }
        match past.is_double {
            true if product.is_xdl => 0,
            true if past.passes == 4 => 4,
            true => match self.target {
                Target::Gfx950 => 17,
                _ => 9,
            },
            false if is_gfx90a => passes + u64::from(product.is_double),
            false if product.is_xdl && !past.is_xdl => 0,
            false if past.is_xdl => passes + 1 + u64::from(self.target == Target::Gfx950),
            false => passes,
        }
    }

    /// The wait states between a product and another one that multiplies by its result.
    fn states_before_factor(&self, past: Product) -> u64 {
        self.states_before_read(past, false)
    }

    /// The wait states between a product and an instruction that overwrites its result.
    fn states_before_overwrite(&self, past: Product) -> u64 {
        match past.is_double && past.passes == 16 {
            true => 11,
            false => self.states_before_read(past, false),
        }
    }

    /// The wait states between a product and an instruction that reads its result.
    fn states_before_read(&self, past: Product, is_memory: bool) -> u64 {
        let passes = u64::from(past.passes);
        if past.is_double {
            return match (past.passes, is_memory, self.target) {
                (4, true, _) => 9,
                (4, false, _) => 6,
                (_, true, _) => 18,
                (_, false, Target::Gfx950) => 19,
                (_, false, _) => 11,
            };
        }
        let is_late = self.target == Target::Gfx950 && passes > 2;
        match past.is_xdl {
            true => passes + 3 + u64::from(is_late),
            false => passes + 2,
        }
    }
}
