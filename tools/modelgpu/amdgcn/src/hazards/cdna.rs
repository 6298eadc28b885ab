//! Wait states that code for CDNA must have between two instructions (AMD's instruction set guides of CDNA, "Manually
//! inserted wait states", and LLVM's `GCNHazardRecognizer`).

use std::collections::VecDeque;
use std::ops::Range;

use modelgpu_isa::{Instruction, Target};

use super::finding::{Earlier, Finding, Remedy, rule};
use super::history::{History, Place, apart};
use super::nature::{EXEC, M0, Nature, Unit, VCC, VECTORS, name, overlap, slot};

/// The other facts about a wave's past that the rules need.
#[derive(Clone, Debug)]
pub(super) struct CdnaRules {
    target: Target,
    /// The target forwards results: it is gfx942 or a later one.
    forwards: bool,
    /// The VGPRs of the wave.
    vectors: u16,
    /// The data of the last stores of more than two dwords.
    stores: VecDeque<(Range<u16>, Place, Earlier)>,
    /// The last writes of hardware registers.
    registers: VecDeque<(u8, Place, Earlier)>,
    /// The last matrix product of doubles.
    doubles: Option<(Place, Earlier)>,
}

impl CdnaRules {
    pub(super) fn new(target: Target, vectors: u16) -> Self {
        Self {
            target,
            forwards: matches!(target, Target::Gfx942 | Target::Gfx950),
            vectors,
            stores: VecDeque::new(),
            registers: VecDeque::new(),
            doubles: None,
        }
    }

    pub(super) fn check(
        &self,
        nature: &Nature,
        instruction: &Instruction,
        history: &History,
        found: &mut dyn FnMut(Finding),
    ) {
        if nature.is_vector_memory() {
            for slot in nature.scalar_reads() {
                if history.writer(slot).is_vector() {
                    history.need(rule::SGPR_VMEM, 5, "reads", slot, found);
                }
            }
        }
        if nature.indexes_by_m0 && history.writer(M0).unit == Unit::Scalar {
            history.need(rule::M0, 1, "uses", M0, found);
        }
        self.check_registers(nature, history, found);
        if nature.unit == Unit::Vector {
            self.check_vector(nature, instruction, history, found);
        }
        let uses_vectors = nature.unit == Unit::Vector || nature.reads_vectors_for_memory();
        if self.target.has_unified_registers() && uses_vectors {
            check_dots(nature, history, found);
            self.check_doubles(nature, history, found);
        }
    }

    fn check_vector(
        &self,
        nature: &Nature,
        instruction: &Instruction,
        history: &History,
        found: &mut dyn FnMut(Finding),
    ) {
        let mnemonic = nature.mnemonic;
        if mnemonic.starts_with("v_div_fmas_") {
            for slot in [VCC, VCC + 1] {
                if history.writer(slot).is_vector() {
                    history.need(rule::DIVISION, 4, "reads", slot, found);
                }
            }
        }
        if let Some(slot) = nature
            .lane_select
            .filter(|slot| history.writer(*slot).is_vector())
        {
            history.need(rule::LANE_SELECT, 4, "selects the lane by", slot, found);
        }
        let exec_by_vector = history.writer(EXEC).is_vector();
        if nature.has_dpp {
            for slot in nature.vector_reads() {
                history.need(rule::DPP, 2, "reads", slot, found);
            }
            if exec_by_vector {
                history.need(rule::EXEC_DPP, 5, "executes with", EXEC, found);
            }
        }
        if self.forwards {
            self.check_forwarding(nature, history, found);
        }
        let is_swap = mnemonic.starts_with("v_permlane") && mnemonic.contains("_swap");
        if is_swap {
            for slot in nature.vector_reads() {
                if history.writer(slot).is_vector() {
                    history.need(rule::SWAP, 2, "reads", slot, found);
                }
            }
            if exec_by_vector {
                history.need(rule::EXEC_PERMLANE, 4, "executes with", EXEC, found);
            }
        }
        let states = if self.forwards { 2 } else { 1 };
        for (range, place, by) in &self.stores {
            let since = history.states_since(*place);
            let written = nature.writes.iter().find(|written| overlap(written, range));
            if let Some(written) = written.filter(|_| since < states) {
                found(Finding {
                    rule: rule::STORE,
                    problem: format!(
                        "overwrites {}, which has data of a store, {} after",
                        name(written.start.max(range.start)),
                        apart(since)
                    ),
                    earlier: Some(*by),
                    remedy: Remedy::States(states - since),
                });
            }
        }
        self.check_shift(mnemonic, instruction, found);
    }

    /// The rules for results that gfx942 and gfx950 forward.
    fn check_forwarding(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        let mnemonic = nature.mnemonic;
        for slot in nature.vector_reads() {
            let writer = history.writer(slot);
            if writer.is_slow && !nature.is_slow {
                history.need(rule::TRANS, 1, "reads", slot, found);
            }
            if writer.shifts_result {
                history.need(rule::HALF, 1, "reads", slot, found);
            }
        }
        for slot in nature.scalar_reads() {
            if history.writer(slot).is_vector() {
                history.need(rule::SGPR_VALU, 2, "reads", slot, found);
            }
        }
        let reads_lane = matches!(mnemonic, "v_readlane_b32" | "v_readfirstlane_b32");
        if reads_lane {
            for slot in nature.vector_reads() {
                if history.writer(slot).is_vector() {
                    history.need(rule::READLANE, 1, "reads", slot, found);
                }
            }
        }
        if (reads_lane || mnemonic == "v_writelane_b32") && history.writer(EXEC).is_vector() {
            history.need(
                rule::EXEC_LANE,
                4,
                "executes behind a write of",
                EXEC,
                found,
            );
        }
    }

    /// The rules for `s_setreg` and `s_getreg`.
    fn check_registers(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        const STATES: u64 = 2;
        let Some(register) = nature.hardware_register else {
            return;
        };
        let writes = nature.mnemonic.starts_with("s_setreg_");
        let last = self
            .registers
            .iter()
            .rfind(|(number, ..)| *number == register);
        if let Some((_, place, by)) = last {
            let since = history.states_since(*place);
            if since < STATES {
                found(Finding {
                    rule: if writes { rule::SETREG } else { rule::GETREG },
                    problem: format!(
                        "{} a hardware register {} after",
                        if writes { "writes" } else { "reads" },
                        apart(since)
                    ),
                    earlier: Some(*by),
                    remedy: Remedy::States(STATES - since),
                });
            }
        }
    }

    /// The rules for instructions behind a matrix product of doubles.
    fn check_doubles(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        let Some((place, by)) = self.doubles else {
            return;
        };
        let since = history.states_since(place);
        let is_fma = matches!(nature.mnemonic, "v_fma_f64" | "v_fmac_f64");
        if is_fma && since < 2 {
            found(Finding {
                rule: rule::DOUBLES_AND_FMA,
                problem: format!("executes {} after", apart(since)),
                earlier: Some(by),
                remedy: Remedy::States(2 - since),
            });
        }
        if self.target != Target::Gfx90a || !nature.reads_vectors_for_memory() {
            return;
        }
        for slot in nature.vector_reads() {
            let writer = history.writer(slot);
            if writer.is_vector() && !writer.is_product && place.states > writer.place.states {
                history.need(rule::DOUBLES_AND_MEMORY, 2, "reads", slot, found);
            }
        }
    }

    /// gfx90a reads the count of a shift of 64 bits wrongly if it is in the last VGPR (LLVM's `fixShift64HighRegBug`).
    fn check_shift(
        &self,
        mnemonic: &str,
        instruction: &Instruction,
        found: &mut dyn FnMut(Finding),
    ) {
        let is_shift = matches!(
            mnemonic,
            "v_lshlrev_b64" | "v_lshrrev_b64" | "v_ashrrev_i64"
        );
        if self.target != Target::Gfx90a || !is_shift {
            return;
        }
        let count = slot(instruction.src[0]).and_then(|slot| slot.checked_sub(VECTORS));
        let is_last = |number: &u16| *number < 256 && number % 8 == 7 && number + 1 >= self.vectors;
        if let Some(number) = count.filter(is_last) {
            found(Finding {
                rule: rule::SHIFT,
                problem: format!(
                    "shifts by {}, the last VGPR that the kernel's descriptor allots",
                    name(number + VECTORS)
                ),
                earlier: None,
                remedy: Remedy::Registers,
            });
        }
    }

    /// Adds an instruction that the history has.
    pub(super) fn add(&mut self, nature: &Nature, history: &History, by: Earlier) {
        const MOST: usize = 4;
        if !nature.wide_data.is_empty() {
            self.stores
                .push_back((nature.wide_data.clone(), history.now, by));
            if self.stores.len() > MOST {
                self.stores.pop_front();
            }
        }
        if nature.mnemonic.starts_with("s_setreg_")
            && let Some(register) = nature.hardware_register
        {
            self.registers.push_back((register, history.now, by));
            if self.registers.len() > MOST {
                self.registers.pop_front();
            }
        }
        if nature.product.is_some_and(|product| product.is_double) {
            self.doubles = Some((history.now, by));
        }
    }
}

/// The rules for results of dot products.
fn check_dots(nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
    if nature.product.is_some() {
        return;
    }
    for slot in nature.vector_reads() {
        let writer = history.writer(slot);
        // An instruction of the same kind may add to the result.
        let is_same = writer.by.mnemonic == nature.mnemonic;
        let is_factor = || nature.factors.iter().any(|range| range.contains(&slot));
        if writer.is_dot && (!is_same || is_factor()) {
            history.need(rule::DOT, 3, "reads", slot, found);
        }
    }
    for slot in nature.vector_writes() {
        let writer = history.writer(slot);
        if writer.is_dot && writer.by.mnemonic != nature.mnemonic {
            history.need(rule::DOT, 3, "overwrites", slot, found);
        }
    }
}
