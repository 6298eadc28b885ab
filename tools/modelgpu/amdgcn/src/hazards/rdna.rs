//! Hazards of RDNA that need an instruction in between (LLVM's `GCNHazardRecognizer` and `AMDGPUWaitSGPRHazards`).

use std::ops::Range;

use modelgpu_isa::{Generation, Target, WaveSize};

use super::finding::{Earlier, Finding, Remedy, rule};
use super::history::{History, Writer};
use super::nature::{EXEC, M0, Nature, Unit, VCC, VECTORS, name, overlap};

/// The scalar registers that instructions name.
const SCALARS: usize = 128;

/// A write of a scalar register that some reads do not see.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    /// A vector instruction wrote it.
    by_vector: bool,
    by: Earlier,
}

/// The past of a wave, for the rules.
#[derive(Clone, Debug)]
pub(super) struct RdnaRules {
    target: Target,
    wave: WaveSize,
    /// The number of vector instructions at the last wait for their results.
    waited: u64,
    /// Scalar writes of EXEC: the numbers of vector instructions before them, the last ones.
    exec: [u64; 4],
    /// The last vector instruction: its result if it was a matrix product, and whether it compared and wrote EXEC.
    last: Option<(Option<Range<u16>>, bool, Earlier)>,
    /// The instruction before this one.
    previous: Earlier,
    /// Registers that vector instructions have read: as masks on RDNA 3, and by pairs of two on RDNA 4.
    read: [bool; SCALARS],
    hidden: [Option<Hidden>; SCALARS],
    /// `ds_nop` instructions in a row.
    empty: u32,
}

impl RdnaRules {
    pub(super) fn new(target: Target, wave: WaveSize) -> Self {
        Self {
            target,
            wave,
            waited: 0,
            exec: [0; 4],
            last: None,
            previous: Earlier {
                pc: 0,
                mnemonic: "",
            },
            read: [false; SCALARS],
            hidden: [None; SCALARS],
            empty: 0,
        }
    }

    pub(super) fn previous(&self) -> Earlier {
        self.previous
    }

    pub(super) fn check(
        &mut self,
        nature: &Nature,
        history: &History,
        by: Earlier,
        found: &mut dyn FnMut(Finding),
    ) {
        // LLVM has no rule for RDNA 2: `FeatureISAVersion10_3_0` lacks the faults of RDNA 1, and GFX10 has
        // `FeatureNoDataDepHazard`.
        if self.target.generation() == Generation::Gfx10 {
            return;
        }
        let is_gfx11 = self.target.generation() == Generation::Gfx11;
        if nature.unit == Unit::Vector {
            self.check_last(nature, found);
            if is_gfx11 {
                self.check_slow(nature, history, found);
                self.check_forwarding(nature, history, found);
                check_mad(nature, found);
            }
        }
        match is_gfx11 {
            true if self.wave == WaveSize::W64 => self.follow_masks(nature, by, found),
            true => {}
            // LLVM never waits for the results of scalar instructions there.
            false if self.target == Target::Gfx1250 => {}
            false => self.follow_scalars(nature, by, found),
        }
    }

    /// Adds an instruction that the history has.
    pub(super) fn add(&mut self, nature: &Nature, history: &History, by: Earlier) {
        self.previous = by;
        let waits = nature.dependencies.is_some_and(|fields| fields >> 12 == 0);
        if waits || nature.reads_vectors_for_memory() {
            self.waited = history.now.vectors;
        }
        if nature.unit == Unit::Vector {
            let product = nature
                .is_wave_product
                .then(|| nature.writes.first().cloned());
            let compares = nature.mnemonic.starts_with("v_cmpx_");
            // The hardware drops a v_nop in front of a permutation.
            let keeps = nature.mnemonic == "v_nop"
                && self.last.as_ref().is_some_and(|(_, compares, _)| *compares);
            if !keeps {
                self.last = Some((product.flatten(), compares, by));
            }
        }
        if nature.unit == Unit::Scalar && nature.writes_exec() {
            self.exec.rotate_right(1);
            self.exec[0] = history.now.vectors;
        }
    }

    /// The rule for an instruction that releases the registers.
    pub(super) fn check_release(&self, found: &mut dyn FnMut(Finding)) {
        // LLVM releases them directly on gfx1250.
        if self.previous.mnemonic != "s_nop" && self.target != Target::Gfx1250 {
            found(Finding {
                rule: rule::RELEASE,
                problem: "releases the registers directly behind".into(),
                earlier: Some(self.previous),
                remedy: Remedy::Nop,
            });
        }
    }

    /// The rules for the vector instruction before this one.
    fn check_last(&self, nature: &Nature, found: &mut dyn FnMut(Finding)) {
        let Some((product, compares, by)) = &self.last else {
            return;
        };
        if let Some(result) = product
            && nature.is_wave_product
        {
            let read = nature.factors.iter().find(|range| overlap(range, result));
            if let Some(read) = read {
                found(Finding {
                    rule: rule::WMMA,
                    problem: format!("multiplies by {} directly after", name(read.start)),
                    earlier: Some(*by),
                    remedy: Remedy::Vector,
                });
            }
        }
        let permutes = nature.mnemonic.starts_with("v_permlane");
        if *compares && permutes {
            found(Finding {
                rule: rule::EXEC_PERMLANE,
                problem: "permutes lanes directly after".into(),
                earlier: Some(*by),
                remedy: Remedy::Vector,
            });
        }
    }

    /// RDNA 3: an instruction reads the result of a transcendental one.
    fn check_slow(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        const ORDINARY: u64 = 5;
        const SLOW: u64 = 1;
        for (slot, half) in nature.read_halves() {
            let writer = history.writer(slot);
            if writer.is_slow
                && writer.half & half != 0
                && writer.place.vectors > self.waited
                && history.now.vectors - writer.place.vectors <= ORDINARY
                && history.now.slow - writer.place.slow <= SLOW
            {
                found(Finding {
                    rule: rule::TRANS,
                    problem: format!("reads {} soon after", name(slot)),
                    earlier: Some(writer.by),
                    remedy: Remedy::Depctr("va_vdst(0)"),
                });
                return;
            }
        }
    }

    /// RDNA 3 in waves of 64: two sources, with a scalar write of EXEC between the instructions that wrote them.
    fn check_forwarding(&self, nature: &Nature, history: &History, found: &mut dyn FnMut(Finding)) {
        const AROUND_EXEC: u64 = 2;
        const AFTER_LAST: u64 = 4;
        if self.wave != WaveSize::W64 {
            return;
        }
        let is_near = |writer: &&Writer| {
            writer.is_vector()
                && writer.place.vectors > self.waited
                && history.now.vectors - writer.place.vectors <= AFTER_LAST + AROUND_EXEC + 2
        };
        // The last writer of each source.
        let writers = || {
            let sources = nature.reads.iter().filter(|range| range.start >= VECTORS);
            let writer = |slot| history.writer(slot);
            sources
                .filter_map(move |range| {
                    range
                        .clone()
                        .map(writer)
                        .max_by_key(|writer| writer.place.vectors)
                })
                .filter(is_near)
        };
        let last = writers().map(|writer| writer.place.vectors).max();
        // The last write of EXEC before the last of the writers.
        let exec = self.exec.into_iter().find(|exec| last > Some(*exec));
        let Some(exec) = exec else {
            return;
        };
        let number = |writer: &&Writer| writer.place.vectors;
        let before = writers()
            .filter(|writer| number(writer) <= exec)
            .max_by_key(number);
        let behind = writers()
            .filter(|writer| number(writer) > exec)
            .max_by_key(number);
        let (Some(before), Some(behind)) = (before, behind) else {
            return;
        };
        let between = behind.place.vectors - before.place.vectors - 1;
        let after = history.now.vectors - behind.place.vectors;
        if between <= AROUND_EXEC && after <= AFTER_LAST {
            found(Finding {
                rule: rule::PARTIAL,
                problem: format!(
                    "reads results from before and from behind a write of EXEC, soon after {} and",
                    before.by.mnemonic
                ),
                earlier: Some(behind.by),
                remedy: Remedy::Depctr("va_vdst(0)"),
            });
        }
    }

    /// Settles the writes that a wait with these fields waits for.
    fn settle_waited(&mut self, fields: u16) {
        let (scalar, vcc, vector) = wait_counts(fields);
        self.settle(|slot, hidden| match hidden.by_vector {
            false => scalar == 0,
            true if is_vcc(slot) => vcc == 0,
            true => vector == 0,
        });
    }

    /// RDNA 3 in waves of 64: a vector instruction reads a mask, another instruction writes its register, and a third
    /// one reads it.
    fn follow_masks(&mut self, nature: &Nature, by: Earlier, found: &mut dyn FnMut(Finding)) {
        let is_vector = nature.unit == Unit::Vector;
        if let Some(fields) = nature.dependencies {
            let (scalar, vcc, vector) = wait_counts(fields);
            for (slot, read) in self.read.iter_mut().enumerate() {
                let by_vector = if is_vcc(slot as u16) { vcc } else { vector };
                *read &= scalar != 0 && by_vector != 0;
            }
            self.settle_waited(fields);
            return;
        }
        if nature.leaves_function {
            // LLVM looks at one function at a time.
            self.read = [false; SCALARS];
            self.hidden = [None; SCALARS];
            return;
        }
        if !is_vector && nature.unit != Unit::Scalar {
            return;
        }
        self.report(
            nature,
            nature.scalar_reads().filter(|slot| *slot != M0),
            found,
        );
        for slot in nature.scalar_writes().filter(|slot| *slot != M0) {
            let slot = usize::from(slot);
            self.hidden[slot] = self.read[slot].then_some(Hidden {
                by_vector: is_vector,
                by,
            });
        }
        if is_vector {
            // Other scalars or a literal give the hardware the time that it needs.
            if nature.has_literal || nature.scalar_reads().next().is_some() {
                self.read = [false; SCALARS];
            }
            for slot in nature.mask.clone() {
                self.read[usize::from(slot)] = true;
            }
        }
    }

    /// RDNA 4: a vector instruction reads a scalar, another instruction writes it, and a third one reads it.
    fn follow_scalars(&mut self, nature: &Nature, by: Earlier, found: &mut dyn FnMut(Finding)) {
        let enough = match self.wave {
            WaveSize::W32 => 4,
            WaveSize::W64 => 8,
        };
        if nature.mnemonic == "ds_nop" {
            self.empty += 1;
            if self.empty >= enough {
                self.read = [false; SCALARS];
            }
            return;
        }
        self.empty = 0;
        match nature.unit {
            Unit::ScalarMemory | Unit::Buffer | Unit::Image => {
                self.hidden = [None; SCALARS];
                return;
            }
            Unit::Scalar | Unit::Vector => {}
            Unit::Lds | Unit::Flat => return,
        }
        if let Some(fields) = nature.dependencies {
            self.settle_waited(fields);
            return;
        }
        if nature.leaves_function {
            // The jump takes longer than the write of the address to return to.
            return;
        }
        let is_vector = nature.unit == Unit::Vector;
        let tracked = |slot: &u16| *slot != M0 && *slot < EXEC;
        if !is_vector {
            // A scalar instruction sees what vector instructions wrote, and everyone does so after it.
            let reads_vcc = nature.scalar_reads().any(is_vcc);
            let reads_others = nature
                .scalar_reads()
                .any(|slot| !is_vcc(slot) && tracked(&slot));
            self.settle(|slot, hidden| {
                hidden.by_vector
                    && if is_vcc(slot) {
                        reads_vcc
                    } else {
                        reads_others
                    }
            });
        }
        self.report(nature, nature.scalar_reads().filter(tracked), found);
        let pair = |slot: u16| usize::from(slot) & !1;
        if is_vector {
            for slot in nature.scalar_reads().filter(tracked) {
                self.read[pair(slot)] = true;
            }
        }
        for slot in nature.scalar_writes().filter(tracked) {
            let is_read = self.read[pair(slot)];
            self.hidden[usize::from(slot)] = is_read.then_some(Hidden {
                by_vector: is_vector,
                by,
            });
        }
    }

    /// Forgets the hidden writes for which a condition holds.
    fn settle(&mut self, condition: impl Fn(u16, Hidden) -> bool) {
        for (slot, hidden) in self.hidden.iter_mut().enumerate() {
            if hidden.is_some_and(|hidden| condition(slot as u16, hidden)) {
                *hidden = None;
            }
        }
    }

    /// Reports the first hidden write among some reads.
    fn report(
        &mut self,
        nature: &Nature,
        mut reads: impl Iterator<Item = u16>,
        found: &mut dyn FnMut(Finding),
    ) {
        let is_gfx11 = self.target.generation() == Generation::Gfx11;
        let hidden = reads.find_map(|slot| Some((slot, self.hidden[usize::from(slot)]?)));
        let Some((slot, hidden)) = hidden else {
            return;
        };
        let field = match hidden.by_vector {
            false => "sa_sdst(0)",
            true if is_vcc(slot) => "va_vcc(0)",
            true => "va_sdst(0)",
        };
        let earlier = match nature.unit {
            Unit::Vector => "which a vector instruction read before it was written by",
            _ => "which a vector instruction has read, and which was then written by",
        };
        found(Finding {
            rule: if is_gfx11 {
                rule::MASK
            } else {
                rule::SGPR_READ
            },
            problem: format!("reads {}, {earlier}", name(slot)),
            earlier: Some(hidden.by),
            remedy: match is_gfx11 {
                true => Remedy::Depctr(field),
                false => Remedy::Alu(field),
            },
        });
        self.hidden[usize::from(slot)] = None;
    }
}

/// The counts of writes to scalars that may be left after a wait: by scalar instructions, and by vector ones to VCC and to others.
fn wait_counts(fields: u16) -> (u16, u16, u16) {
    (fields & 1, fields >> 1 & 1, fields >> 9 & 7)
}

fn is_vcc(slot: u16) -> bool {
    slot == VCC || slot == VCC + 1
}

/// gfx1100 forwards the result of a 64-bit multiplication to its own sources (LLVM's `hasMADIntraFwdBug`).
fn check_mad(nature: &Nature, found: &mut dyn FnMut(Finding)) {
    if !matches!(nature.mnemonic, "v_mad_u64_u32" | "v_mad_i64_i32") {
        return;
    }
    let Some(result) = nature.writes.iter().find(|range| range.start >= VECTORS) else {
        return;
    };
    let read = nature.factors.iter().find(|range| overlap(range, result));
    if let Some(read) = read {
        found(Finding {
            rule: rule::MAD,
            problem: format!("writes {}, which it also reads", name(read.start)),
            earlier: None,
            remedy: Remedy::Registers,
        });
    }
}
