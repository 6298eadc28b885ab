//! The properties of an instruction that the rules of hazards ask for. They follow from the instruction alone.

use std::ops::Range;

use modelgpu_isa::{AccessKind, File, Flow, Generation, Instruction, Operand, Target, WaveSize};

/// The first vector register among the slots. The slots before it are those of scalar registers, VCC, M0 and EXEC.
pub(super) const VECTORS: u16 = 128;
/// The first accumulation register among the slots.
pub(super) const ACCUMULATORS: u16 = VECTORS + 1024;
/// The number of slots, with room behind the last register for a wide access.
pub(super) const SLOTS: usize = ACCUMULATORS as usize + 256 + 32;

pub(super) const VCC: u16 = 106;
pub(super) const M0: u16 = 124;
pub(super) const EXEC: u16 = 126;

/// Both halves of a register.
pub(super) const WHOLE: u8 = 3;

/// The unit that executes an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    #[default]
    Scalar,
    ScalarMemory,
    Vector,
    Lds,
    Buffer,
    Image,
    /// Flat, global and scratch accesses.
    Flat,
}

/// A counter of outstanding accesses to memory. Several of them are one counter on some targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Load,
    Store,
    Sample,
    Ray,
    Lds,
    Scalar,
    /// Copies between global memory and LDS on gfx1250.
    Async,
}

/// The number of counters.
pub(super) const COUNTERS: usize = 7;

/// A kind of events that a counter counts. Events of one kind come in order, apart from those of [`Event::Scalar`].
/// Events of two kinds come in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Memory,
    /// A store to scratch, on targets that count stores apart.
    Scratch,
    Lds,
    GlobalData,
    Scalar,
    Message,
}

/// The number of kinds of events.
pub(super) const EVENTS: usize = 6;

/// An access to memory, for the counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryAccess {
    pub counter: Counter,
    pub event: Event,
    /// The instruction uses flat addresses, and counts as an access to LDS, too.
    pub is_flat: bool,
    /// Results of two kinds of vector memory do not come in order.
    pub texture: Texture,
}

/// A kind of vector memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texture {
    Plain,
    Sampled,
    Ray,
}

/// A matrix product of CDNA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// Passes of four cycles.
    pub passes: u8,
    /// The product is of doubles.
    pub is_double: bool,
    /// The matrix unit computes it, and not the vector unit.
    pub is_xdl: bool,
}

/// The properties of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(super) mnemonic: &'static str,
    pub(super) unit: Unit,
    /// The slots of the registers that it reads.
    pub(super) reads: Box<[Range<u16>]>,
    /// The slots of the registers that it writes.
    pub(super) writes: Box<[Range<u16>]>,
    /// The halves of registers in `reads` and `writes`: bit 0 is the low one.
    halves: [Box<[u8]>; 2],
    /// The wait states that it takes.
    pub(super) states: u8,
    pub(super) access: Option<MemoryAccess>,
    /// The counters that the instruction waits for, with the most events that may be outstanding then.
    pub(super) waits: Box<[(Counter, u32)]>,
    /// The fields of `s_waitcnt_depctr` or `s_wait_alu`.
    pub(super) dependencies: Option<u16>,
    /// The result is that of a slow function, such as a reciprocal.
    pub(super) is_slow: bool,
    pub(super) is_dot: bool,
    pub(super) product: Option<Product>,
    /// The instruction is a matrix product of RDNA.
    pub(super) is_wave_product: bool,
    /// The instruction moves its result to another part of the register.
    pub(super) shifts_result: bool,
    pub(super) has_dpp: bool,
    /// The register that says which lane is read or written.
    pub(super) lane_select: Option<u16>,
    /// The registers of A and B, or the ones of the first two sources.
    pub(super) factors: Box<[Range<u16>]>,
    /// The registers of C of a matrix product.
    pub(super) addend: Range<u16>,
    /// The mask that a vector instruction reads.
    pub(super) mask: Range<u16>,
    /// The vector registers of more than two dwords that a store reads as data.
    pub(super) wide_data: Range<u16>,
    /// The hardware register that the instruction reads or writes.
    pub(super) hardware_register: Option<u8>,
    /// The way on is not a branch in the function.
    pub(super) leaves_function: bool,
    /// The instruction reads M0 in a way that needs a wait state.
    pub(super) indexes_by_m0: bool,
    /// A constant of the instruction is a literal.
    pub(super) has_literal: bool,
}

/// The slot of an operand; `None` if it is no register.
pub(super) fn slot(operand: Operand) -> Option<u16> {
    match operand.0 {
        code @ 0..128 => Some(code),
        code @ 256..512 => Some(code - 256 + VECTORS),
        code @ 512..768 => Some(code - 512 + ACCUMULATORS),
        code @ 768..1536 => Some(code - 768 + VECTORS + 256),
        _ => None,
    }
}

/// The name of a slot's register.
pub(super) fn name(slot: u16) -> String {
    match slot {
        VCC => "vcc_lo".into(),
        107 => "vcc_hi".into(),
        M0 => "m0".into(),
        EXEC => "exec_lo".into(),
        127 => "exec_hi".into(),
        108..124 => format!("ttmp{}", slot - 108),
        0..VECTORS => format!("s{slot}"),
        VECTORS..ACCUMULATORS => format!("v{}", slot - VECTORS),
        _ => format!("a{}", slot - ACCUMULATORS),
    }
}

impl Nature {
    pub(crate) fn new(instruction: &Instruction, target: Target, wave: WaveSize) -> Self {
        let name = instruction.mnemonic;
        let unit = unit(name);
        let all = |kind| -> Box<[Range<u16>]> {
            let accesses = instruction.accesses(wave);
            let accesses = accesses.filter(|access| access.kind == kind);
            accesses
                .map(|access| {
                    let first = access.first
                        + match access.file {
                            File::Scalar => 0,
                            File::Vector => VECTORS,
                            File::Accumulator => ACCUMULATORS,
                        };
                    // The numbers of an image's addresses are not known exactly.
                    let count = match unit == Unit::Image && kind == AccessKind::Read {
                        true => 1,
                        false => u16::from(access.count),
                    };
                    first..first + count
                })
                .collect()
        };
        let reads = all(AccessKind::Read);
        let of_source = |number: usize| {
            let first = slot(instruction.src[number])?;
            reads.iter().find(|range| range.start == first).cloned()
        };
        let is_sparse = name.starts_with("v_smfmac_");
        let is_swmmac = name.starts_with("v_swmmac_");
        let product = product(instruction, target);
        let factors = (0..3)
            .filter(|number| *number < 2 || is_sparse || is_swmmac)
            .filter_map(of_source)
            .collect();
        let writes = all(AccessKind::Write);
        let addend = match is_sparse {
            true => writes.first().cloned(),
            false => slot(instruction.src[2])
                .and_then(|first| reads.iter().rfind(|range| range.start == first).cloned()),
        };
        let is_lane = matches!(name, "v_readlane_b32" | "v_writelane_b32");
        let is_register = ["s_getreg_", "s_setreg_"]
            .iter()
            .any(|form| name.starts_with(form));
        Self {
            mnemonic: name,
            unit,
            states: match name {
                "s_nop" => instruction.immediate as u8 & 0xf,
                _ => 0,
            } + 1,
            access: access(instruction, unit, target),
            waits: waits(instruction, target).into(),
            dependencies: matches!(name, "s_waitcnt_depctr" | "s_wait_alu")
                .then_some(instruction.immediate as u16),
            is_slow: is_slow(name),
            is_dot: name.starts_with("v_dot"),
            product,
            is_wave_product: name.starts_with("v_wmma_") || is_swmmac,
            shifts_result: shifts_result(instruction),
            has_dpp: instruction.dpp.is_some(),
            lane_select: slot(instruction.src[1]).filter(|slot| is_lane && *slot < VECTORS),
            factors,
            addend: addend.unwrap_or_default(),
            mask: mask(instruction, &reads),
            wide_data: wide_data(instruction, unit, &reads),
            hardware_register: is_register.then_some(instruction.immediate as u8 & 0x3f),
            leaves_function: matches!(
                instruction.flow(),
                Flow::Call { .. } | Flow::Indirect | Flow::IndirectCall
            ),
            indexes_by_m0: indexes_by_m0(name, &reads),
            has_literal: instruction.src.contains(&Operand::LITERAL),
            halves: [
                halves(instruction, unit, target, &reads, true),
                halves(instruction, unit, target, &writes, false),
            ],
            reads,
            writes,
        }
    }

    pub(super) fn is_vector_memory(&self) -> bool {
        matches!(self.unit, Unit::Buffer | Unit::Image | Unit::Flat)
    }

    /// Returns whether the instruction accesses memory from vector registers.
    pub(super) fn reads_vectors_for_memory(&self) -> bool {
        self.is_vector_memory() || self.unit == Unit::Lds
    }

    /// The slots that the instruction reads, with their halves.
    pub(super) fn read_halves(&self) -> impl Iterator<Item = (u16, u8)> {
        with_halves(&self.reads, &self.halves[0])
    }

    /// The slots that the instruction writes, with their halves.
    pub(super) fn written_halves(&self) -> impl Iterator<Item = (u16, u8)> {
        with_halves(&self.writes, &self.halves[1])
    }

    /// The slots of the vector registers that the instruction reads.
    pub(super) fn vector_reads(&self) -> impl Iterator<Item = u16> {
        slots(&self.reads).filter(|slot| *slot >= VECTORS)
    }

    /// The slots of the scalar registers that the instruction reads, EXEC apart.
    pub(super) fn scalar_reads(&self) -> impl Iterator<Item = u16> {
        slots(&self.reads).filter(|slot| *slot < EXEC)
    }

    /// The slots of the scalar registers that the instruction writes, EXEC apart.
    pub(super) fn scalar_writes(&self) -> impl Iterator<Item = u16> {
        slots(&self.writes).filter(|slot| *slot < EXEC)
    }

    /// The slots of the vector registers that the instruction writes.
    pub(super) fn vector_writes(&self) -> impl Iterator<Item = u16> {
        slots(&self.writes).filter(|slot| *slot >= VECTORS)
    }

    pub(super) fn writes_exec(&self) -> bool {
        slots(&self.writes).any(|slot| slot == EXEC || slot == EXEC + 1)
    }
}

/// All slots of some ranges.
pub(super) fn slots(ranges: &[Range<u16>]) -> impl Iterator<Item = u16> {
    ranges.iter().flat_map(Range::clone)
}

/// Returns whether two ranges have a slot in common.
pub(super) fn overlap(a: &Range<u16>, b: &Range<u16>) -> bool {
    a.start < b.end && b.start < a.end
}

fn with_halves(ranges: &[Range<u16>], halves: &[u8]) -> impl Iterator<Item = (u16, u8)> {
    let pairs = ranges.iter().zip(halves);
    pairs.flat_map(|(range, half)| range.clone().map(|slot| (slot, *half)))
}

/// The halves of registers that an instruction of RDNA reads or writes, for each range. Compilers keep two values of
/// 16 bits in a register there. A source of 32 bits counts as its low half if others have 16 bits: the tables do not
/// tell them apart. A source of SDWA counts as a whole, because SDWA has its own selection of parts, and compilers wait
/// for whole registers on gfx1030, the only target of RDNA that has it.
fn halves(
    instruction: &Instruction,
    unit: Unit,
    target: Target,
    ranges: &[Range<u16>],
    are_read: bool,
) -> Box<[u8]> {
    let name = instruction.mnemonic;
    let is_vector = unit == Unit::Vector;
    let is_packed = begins(
        name,
        &["v_pk_", "v_dot", "v_wmma", "v_swmmac", "v_cvt_pk", "v_perm"],
    );
    let is_short = match is_vector {
        true => name.contains("16") && !is_packed,
        false => ["d16", "b16", "b8", "u16", "u8", "i8"]
            .iter()
            .any(|form| name.contains(form)),
    };
    let select = instruction.modifiers.op_sel;
    let bit = |number: usize| 1 << (select >> number & 1);
    let half_of = |range: &Range<u16>| {
        let has_halves = target.generation() != Generation::Gfx9 && instruction.sdwa.is_none();
        if !has_halves || !is_short || range.len() != 1 {
            return WHOLE;
        }
        let is = |operand| slot(operand) == Some(range.start);
        match (is_vector, are_read) {
            // The other half of the result stays, too.
            (true, true) => (0..3)
                .filter(|number| is(instruction.src[*number]))
                .fold(0, |halves, number| halves | bit(number)),
            (true, false) => match is(instruction.dst) && has_short_result(name) {
                true if name.contains("mixhi") => 2,
                true => bit(3),
                false => WHOLE,
            },
            (false, true) if is(instruction.src[1]) || is(instruction.dst) => {
                match (name.contains("store"), name.contains("d16_hi")) {
                    (true, true) => 2,
                    (true, false) => 1,
                    // The other half of the result stays.
                    (false, _) => 0,
                }
            }
            (false, false) if name.contains("d16") => match name.contains("d16_hi") {
                true => 2,
                false => 1,
            },
            _ => WHOLE,
        }
    };
    ranges.iter().map(half_of).collect()
}

/// Returns whether the result of a vector instruction has 16 bits.
fn has_short_result(name: &str) -> bool {
    match name.strip_prefix("v_cvt_") {
        Some(types) => types
            .split('_')
            .next()
            .is_some_and(|first| first.ends_with("16")),
        None => name.ends_with("16"),
    }
}

fn begins(name: &str, forms: &[&str]) -> bool {
    forms.iter().any(|form| name.starts_with(form))
}

fn unit(name: &str) -> Unit {
    const SCALAR_MEMORY: [&str; 10] = [
        "s_load_",
        "s_buffer_",
        "s_store_",
        "s_scratch_",
        "s_atomic_",
        "s_dcache_",
        "s_memtime",
        "s_memrealtime",
        "s_atc_probe",
        "s_prefetch_",
    ];
    if begins(name, &SCALAR_MEMORY) {
        return Unit::ScalarMemory;
    }
    match name.split('_').next() {
        Some("v") => Unit::Vector,
        Some("ds") => Unit::Lds,
        Some("buffer" | "tbuffer") => Unit::Buffer,
        Some("image") => Unit::Image,
        Some("global" | "flat" | "scratch") => Unit::Flat,
        _ => Unit::Scalar,
    }
}

fn access(instruction: &Instruction, unit: Unit, target: Target) -> Option<MemoryAccess> {
    let name = instruction.mnemonic;
    let generation = target.generation();
    let plain = |counter, event| {
        Some(MemoryAccess {
            counter,
            event,
            is_flat: false,
            texture: Texture::Plain,
        })
    };
    match unit {
        Unit::Vector => None,
        Unit::Scalar => match name.starts_with("s_sendmsg") {
            true => plain(Counter::Scalar, Event::Message),
            false => None,
        },
        Unit::ScalarMemory => match begins(name, &["s_prefetch_", "s_buffer_prefetch_"]) {
            true => None,
            false => plain(Counter::Scalar, Event::Scalar),
        },
        Unit::Lds => match name {
            "ds_nop" => None,
            _ if name.starts_with("ds_gws_") => plain(Counter::Lds, Event::GlobalData),
            _ => plain(Counter::Lds, Event::Lds),
        },
        Unit::Buffer | Unit::Image | Unit::Flat => {
            // These write no register, and no wait with a number above 0 counts them.
            if name.contains("_inv")
                || name.contains("_prefetch_")
                || name.contains("_wb") && unit == Unit::Buffer
            {
                return None;
            }
            let is_store = name.contains("_store_")
                || name.contains("_atomic_") && !instruction.returns
                || name.contains("_wb");
            let texture = match name {
                _ if unit != Unit::Image => Texture::Plain,
                _ if name.contains("_bvh") => Texture::Ray,
                _ if begins(
                    name,
                    &[
                        "image_sample",
                        "image_gather4",
                        "image_get_lod",
                        "image_msaa_load",
                    ],
                ) =>
                {
                    Texture::Sampled
                }
                _ => Texture::Plain,
            };
            let counter = match (generation, texture) {
                _ if name.contains("_async_") => Counter::Async,
                (Generation::Gfx9, _) => Counter::Load,
                _ if is_store => Counter::Store,
                (Generation::Gfx12, Texture::Sampled) => Counter::Sample,
                (Generation::Gfx12, Texture::Ray) => Counter::Ray,
                _ => Counter::Load,
            };
            let is_scratch = counter == Counter::Store && name.starts_with("scratch_");
            Some(MemoryAccess {
                counter,
                event: match is_scratch {
                    true => Event::Scratch,
                    false => Event::Memory,
                },
                is_flat: name.starts_with("flat_"),
                texture,
            })
        }
    }
}

/// The counters that an instruction waits for (AMD's instruction set guides, S_WAITCNT and S_WAIT_*CNT).
fn waits(instruction: &Instruction, target: Target) -> Vec<(Counter, u32)> {
    let immediate = instruction.immediate as u32 & 0xffff;
    let has_register = slot(instruction.dst).is_some();
    let all = [
        Counter::Load,
        Counter::Store,
        Counter::Sample,
        Counter::Ray,
        Counter::Lds,
        Counter::Scalar,
        Counter::Async,
    ];
    match (instruction.mnemonic, target.generation()) {
        ("s_waitcnt", Generation::Gfx9) => vec![
            (Counter::Load, immediate & 0xf | immediate >> 14 << 4),
            (Counter::Lds, immediate >> 8 & 0xf),
        ],
        ("s_waitcnt", Generation::Gfx10) => vec![
            (Counter::Load, immediate & 0xf | immediate >> 14 << 4),
            (Counter::Lds, immediate >> 8 & 0x3f),
        ],
        ("s_waitcnt", _) => vec![
            (Counter::Load, immediate >> 10),
            (Counter::Lds, immediate >> 4 & 0x3f),
        ],
        ("s_wait_idle", _) => all.map(|counter| (counter, 0)).into(),
        // A register may hold the number.
        (_, Generation::Gfx10 | Generation::Gfx11) if has_register => Vec::new(),
        ("s_waitcnt_vmcnt", _) => vec![(Counter::Load, immediate)],
        ("s_waitcnt_vscnt", _) => vec![(Counter::Store, immediate)],
        ("s_waitcnt_lgkmcnt", _) => vec![(Counter::Lds, immediate)],
        ("s_wait_loadcnt", _) => vec![(Counter::Load, immediate)],
        ("s_wait_storecnt", _) => vec![(Counter::Store, immediate)],
        ("s_wait_samplecnt", _) => vec![(Counter::Sample, immediate)],
        ("s_wait_bvhcnt", _) => vec![(Counter::Ray, immediate)],
        ("s_wait_dscnt", _) => vec![(Counter::Lds, immediate)],
        ("s_wait_asynccnt", _) => vec![(Counter::Async, immediate)],
        ("s_wait_kmcnt", _) => vec![(Counter::Scalar, immediate)],
        ("s_wait_loadcnt_dscnt", _) => vec![
            (Counter::Load, immediate >> 8 & 0x3f),
            (Counter::Lds, immediate & 0x3f),
        ],
        ("s_wait_storecnt_dscnt", _) => vec![
            (Counter::Store, immediate >> 8 & 0x3f),
            (Counter::Lds, immediate & 0x3f),
        ],
        _ => Vec::new(),
    }
}

/// Returns whether the instruction is a transcendental one.
fn is_slow(name: &str) -> bool {
    const FORMS: [&str; 13] = [
        "v_rcp_",
        "v_rsq_",
        "v_sqrt_",
        "v_exp_",
        "v_log_",
        "v_sin_",
        "v_cos_",
        "v_s_rcp_",
        "v_s_rsq_",
        "v_s_sqrt_",
        "v_s_exp_",
        "v_s_log_",
        "v_tanh_",
    ];
    begins(name, &FORMS)
}

/// Returns whether the result moves to the high half, or to a byte (LLVM's `hasDstSelForwardingHazard`).
fn shifts_result(instruction: &Instruction) -> bool {
    let is_part = instruction
        .sdwa
        .is_some_and(|sdwa| sdwa.dst != modelgpu_isa::Selection::Dword);
    is_part || instruction.modifiers.op_sel & 8 != 0
}

/// The mask that a vector instruction reads: of a selection, a carry or a division.
fn mask(instruction: &Instruction, reads: &[Range<u16>]) -> Range<u16> {
    let name = instruction.mnemonic;
    let operand = match name {
        _ if name.starts_with("v_cndmask_") => instruction.src[2],
        _ if name.starts_with("v_div_fmas_") => Operand::VCC,
        _ if begins(name, &["v_addc_", "v_subb_", "v_subbrev_"]) || name.contains("_co_ci_") => {
            instruction.src[2]
        }
        _ => return 0..0,
    };
    slot(operand)
        .filter(|first| *first < VECTORS)
        .and_then(|first| reads.iter().rfind(|range| range.start == first).cloned())
        .unwrap_or_default()
}

/// The data of a store of more than two dwords that the next instructions must not overwrite (LLVM's `createsVALUHazard`).
fn wide_data(instruction: &Instruction, unit: Unit, reads: &[Range<u16>]) -> Range<u16> {
    let name = instruction.mnemonic;
    let stores = name.contains("_store_") || name.contains("_atomic_");
    let may = match unit {
        // A register as the offset takes as long.
        Unit::Buffer => slot(instruction.src[2]).is_none(),
        Unit::Flat => true,
        _ => false,
    };
    if !stores || !may {
        return 0..0;
    }
    slot(instruction.src[1])
        .and_then(|first| reads.iter().find(|range| range.start == first).cloned())
        .filter(|range| range.len() > 2)
        .unwrap_or_default()
}

/// Returns whether the instruction takes an index or an address from M0 without the check that operands have.
fn indexes_by_m0(name: &str, reads: &[Range<u16>]) -> bool {
    let reads_it = slots(reads).any(|slot| slot == M0);
    let forms = [
        "s_movrel",
        "s_sendmsg",
        "s_ttracedata",
        "ds_",
        "buffer_",
        "global_",
    ];
    reads_it && begins(name, &forms)
}

/// The passes of a matrix product (LLVM's scheduling models of gfx908, gfx90a, gfx942 and gfx950).
fn product(instruction: &Instruction, target: Target) -> Option<Product> {
    let name = instruction.mnemonic;
    let is_sparse = name.starts_with("v_smfmac_");
    if !is_sparse && !name.starts_with("v_mfma_") {
        return None;
    }
    let shape = name
        .split('_')
        .find(|part| part.contains('x') && part.as_bytes()[0].is_ascii_digit())?;
    let mut sizes = shape.split('x');
    let rows: u8 = sizes.next()?.parse().ok()?;
    let depth = sizes.nth(1)?;
    // The type follows without a space before gfx942.
    let digits = depth.bytes().take_while(u8::is_ascii_digit).count();
    let depth: u8 = depth[..digits].parse().ok()?;
    let is_double = name.ends_with("f64");
    let is_single = name.ends_with("f32") && !name.ends_with("xf32");
    let is_before_gfx942 = matches!(target, Target::Gfx908 | Target::Gfx90a);
    let passes = match rows {
        4 if is_double => 4,
        4 => 2,
        16 if is_double => match target {
            Target::Gfx950 => 16,
            _ => 8,
        },
        16 if !is_before_gfx942 && (is_sparse || depth >= 8) => 4,
        16 => 8,
        _ if !is_before_gfx942 && (is_sparse || depth >= 8 || name.ends_with("xf32")) => 8,
        _ => 16,
    };
    // Formats of eight bits take twice as long as smaller ones.
    let is_wide = |format: u8| format < 2;
    let is_byte = name.ends_with("_f8f6f4")
        && (is_wide(instruction.matrix.broadcast) || is_wide(instruction.matrix.lanes));
    Some(Product {
        passes: if is_byte { 2 * passes } else { passes },
        is_double,
        is_xdl: !is_double && (is_before_gfx942 || !is_single),
    })
}
