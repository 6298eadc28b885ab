//! The facts that an opcode alone determines: the widths of its operands and its effects on registers that
//! it does not name.

/// The number of lanes of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveSize {
    /// 32 lanes.
    W32,
    /// 64 lanes.
    W64,
}

impl WaveSize {
    /// The registers of a mask with a bit for each lane.
    pub(crate) const fn mask(self) -> u8 {
        match self {
            Self::W32 => 1,
            Self::W64 => 2,
        }
    }
}

/// A group of encodings whose operands have the same directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Scalar,
    ScalarMemory,
    Vector,
    Lds,
    Flat,
    Global,
    Scratch,
    Buffer,
    Image,
}

/// The accesses to memory, and their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Load,
    Store,
    Atomic,
}

/// The way on from an instruction, by its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Next,
    Branch(Option<Condition>),
    Call,
    Indirect,
    IndirectCall,
    End,
    Trap,
}

/// A condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// SCC is 0.
    Scc0,
    /// SCC is 1.
    Scc1,
    /// VCC is 0.
    Vccz,
    /// VCC is not 0.
    Vccnz,
    /// EXEC is 0.
    Execz,
    /// EXEC is not 0.
    Execnz,
    /// A state of a debugger, or of a loop over the halves of a wave.
    Other,
}

/// Sets of effects.
pub(crate) mod effect {
    pub(crate) const READS_SCC: u32 = 1 << 0;
    pub(crate) const WRITES_SCC: u32 = 1 << 1;
    pub(crate) const READS_EXEC: u32 = 1 << 2;
    pub(crate) const WRITES_EXEC: u32 = 1 << 3;
    pub(crate) const READS_VCC: u32 = 1 << 4;
    pub(crate) const READS_M0: u32 = 1 << 5;
    pub(crate) const WRITES_M0: u32 = 1 << 6;
    /// The result's register is a source, too.
    pub(crate) const KEEPS: u32 = 1 << 7;
    /// The result's field has a source.
    pub(crate) const READS_RESULT: u32 = 1 << 8;
    /// The first source is a result, too.
    pub(crate) const SWAPS: u32 = 1 << 9;
    /// The scalar result is a source, such as a resource.
    pub(crate) const READS_SCALAR_RESULT: u32 = 1 << 10;
    /// The numbers of registers come from M0.
    pub(crate) const INDEXES: u32 = 1 << 11;
    /// A result of 16 bits.
    pub(crate) const HALF: u32 = 1 << 12;
    /// Formats in the encoding give the widths of the first two sources.
    pub(crate) const FORMATS: u32 = 1 << 13;
    /// The image's result has four components.
    pub(crate) const GATHERS: u32 = 1 << 14;
    /// An atomic that compares: half of its data are the new value.
    pub(crate) const COMPARES: u32 = 1 << 15;
    /// VCC is a mask that the instruction writes.
    pub(crate) const WRITES_MASK: u32 = 1 << 16;
    /// The third source is a mask.
    pub(crate) const READS_MASK: u32 = 1 << 17;
    /// The third source is the result.
    pub(crate) const ADDS: u32 = 1 << 18;
    /// The result goes to LDS.
    pub(crate) const TO_LDS: u32 = 1 << 19;
}

/// The facts about an opcode.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub(crate) mnemonic: &'static str,
    pub(crate) group: Group,
    /// The registers of the result, the scalar result, and three sources, in waves of 32 and of 64 lanes.
    pub(crate) widths: [[u8; 5]; 2],
    pub(crate) memory: Memory,
    pub(crate) effects: u32,
    pub(crate) way: Way,
}

impl Facts {
    /// The facts of an instruction that no table has.
    pub(crate) const NONE: Self = Self {
        mnemonic: "",
        group: Group::Scalar,
        widths: [[0; 5]; 2],
        memory: Memory::Load,
        effects: 0,
        way: Way::Next,
    };

    /// The facts of a mnemonic in an encoding, with the widths as the tables have them; `None` if these are not as
    /// their script writes them.
    pub(crate) fn new(encoding: &str, mnemonic: &'static str, widths: &str) -> Option<Self> {
        let (narrow, wide) = widths.split_once('/').unwrap_or((widths, widths));
        let mut facts = Self {
            mnemonic,
            group: group(encoding),
            widths: [parse(narrow)?, parse(wide)?],
            memory: memory(mnemonic),
            effects: 0,
            way: way(mnemonic),
        };
        facts.effects = match facts.group {
            Group::Scalar => scalar_effects(mnemonic),
            Group::Vector => vector_effects(encoding, mnemonic),
            _ => memory_effects(mnemonic),
        };
        for wave in [WaveSize::W32, WaveSize::W64] {
            let widths = &mut facts.widths[wave as usize];
            complete(widths, encoding, mnemonic, facts.effects, wave);
        }
        Some(facts)
    }

    pub(crate) const fn has(&self, effect: u32) -> bool {
        self.effects & effect != 0
    }
}

/// Reads five digits of base 36.
fn parse(digits: &str) -> Option<[u8; 5]> {
    let mut widths = [0; 5];
    let mut characters = digits.chars();
    for width in &mut widths {
        *width = match characters.next()? {
            '-' => 0,
            digit => digit.to_digit(36)? as u8,
        };
    }
    Some(widths)
}

fn group(encoding: &str) -> Group {
    match encoding {
        "SMEM" => Group::ScalarMemory,
        "DS" => Group::Lds,
        "FLAT" => Group::Flat,
        "GLOBAL" => Group::Global,
        "SCRATCH" => Group::Scratch,
        "MUBUF" | "MTBUF" => Group::Buffer,
        "MIMG" | "VSAMPLE" => Group::Image,
        scalar if scalar.starts_with("SOP") => Group::Scalar,
        _ => Group::Vector,
    }
}

fn memory(mnemonic: &str) -> Memory {
    match mnemonic {
        atomic if atomic.contains("_atomic_") => Memory::Atomic,
        store if store.contains("_store_") => Memory::Store,
        _ => Memory::Load,
    }
}

fn way(mnemonic: &str) -> Way {
    match mnemonic {
        "s_branch" => Way::Branch(None),
        "s_cbranch_scc0" => Way::Branch(Some(Condition::Scc0)),
        "s_cbranch_scc1" => Way::Branch(Some(Condition::Scc1)),
        "s_cbranch_vccz" => Way::Branch(Some(Condition::Vccz)),
        "s_cbranch_vccnz" => Way::Branch(Some(Condition::Vccnz)),
        "s_cbranch_execz" => Way::Branch(Some(Condition::Execz)),
        "s_cbranch_execnz" => Way::Branch(Some(Condition::Execnz)),
        // These take their ways from a stack of registers.
        "s_cbranch_g_fork" | "s_cbranch_i_fork" | "s_cbranch_join" => Way::Indirect,
        other if other.starts_with("s_cbranch_") || other.starts_with("s_subvector_loop") => {
            Way::Branch(Some(Condition::Other))
        }
        "s_call_b64" | "s_call_i64" => Way::Call,
        "s_setpc_b64" | "s_rfe_b64" | "s_rfe_restore_b64" | "s_set_pc_i64" | "s_rfe_i64"
        | "s_add_pc_i64" => Way::Indirect,
        "s_swappc_b64" | "s_swap_pc_i64" => Way::IndirectCall,
        "s_endpgm" | "s_endpgm_saved" | "s_endpgm_ordered_ps_done" | "s_code_end" => Way::End,
        "s_trap" => Way::Trap,
        _ => Way::Next,
    }
}

fn begins(name: &str, forms: &[&str]) -> bool {
    forms.iter().any(|form| name.starts_with(form))
}

fn scalar_effects(name: &str) -> u32 {
    use effect::*;

    let mut effects = 0;
    let mut add = |effect, holds: bool| effects |= if holds { effect } else { 0 };
    let saves = name.contains("_saveexec_") || name.contains("_wrexec_");
    let forks = begins(
        name,
        &["s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join"],
    );
    let loops = name.starts_with("s_subvector_loop");
    add(READS_EXEC | WRITES_EXEC, saves || forks || loops);
    add(
        READS_SCC,
        begins(
            name,
            &["s_addc_", "s_subb_", "s_cselect_", "s_cmov_", "s_cmovk_"],
        ) || name.contains("_ci_")
            || name.starts_with("s_cbranch_scc"),
    );
    add(WRITES_SCC, writes_scc(name) || saves);
    add(
        READS_VCC,
        name.starts_with("s_cbranch_vcc") || name.starts_with("s_cbranch_cdbgsys_or_vcc"),
    );
    add(READS_EXEC, name.starts_with("s_cbranch_exec"));
    let moves = begins(name, &["s_movrel", "s_set_gpr_idx_"]);
    add(INDEXES, moves);
    add(
        READS_M0,
        moves || begins(name, &["s_sendmsg", "s_ttracedata"]) && name != "s_ttracedata_imm",
    );
    add(
        WRITES_M0,
        begins(
            name,
            &[
                "s_set_gpr_idx_on",
                "s_set_gpr_idx_idx",
                "s_set_gpr_idx_mode",
            ],
        ),
    );
    add(
        KEEPS,
        begins(name, &["s_cmov_", "s_cmovk_", "s_bitset", "s_movreld"]) || loops,
    );
    let reads = begins(name, &["s_setreg_b32", "s_cbranch_i_fork"])
        || begins(name, &["s_waitcnt_"]) && name != "s_waitcnt_depctr";
    add(READS_RESULT, reads);
    add(ADDS, name.starts_with("s_fmac_"));
    effects
}

fn writes_scc(name: &str) -> bool {
    const EXACT: [&str; 6] = [
        "s_add_u32",
        "s_sub_u32",
        "s_add_i32",
        "s_sub_i32",
        "s_barrier_signal_isfirst",
        "s_barrier_leave",
    ];
    const BITS: [&str; 30] = [
        "s_addc_",
        "s_subb_",
        "s_and_",
        "s_or_",
        "s_xor_",
        "s_andn1_",
        "s_andn2_",
        "s_orn1_",
        "s_orn2_",
        "s_nand_",
        "s_nor_",
        "s_xnor_",
        "s_lshl_",
        "s_lshr_",
        "s_ashr_",
        "s_bfe_",
        "s_absdiff_",
        "s_lshl1_",
        "s_lshl2_",
        "s_lshl3_",
        "s_lshl4_",
        "s_not_",
        "s_wqm_",
        "s_bcnt0_",
        "s_bcnt1_",
        "s_abs_",
        "s_quadmask_",
        "s_cmp",
        "s_bitcmp",
        "s_addk_",
    ];
    EXACT.contains(&name)
        || begins(name, &BITS)
        || name == "s_alloc_vgpr"
        || name.contains("_co_") && name.starts_with("s_")
        || begins(name, &["s_min_i32", "s_min_u32", "s_max_i32", "s_max_u32"])
}

fn vector_effects(encoding: &str, name: &str) -> u32 {
    use effect::*;

    let mut effects = 0;
    let mut add = |effect, holds: bool| effects |= if holds { effect } else { 0 };
    let compares_to_exec = name.starts_with("v_cmpx_");
    add(READS_EXEC | WRITES_EXEC, compares_to_exec);
    let is_short = matches!(encoding, "VOP2" | "VOPDX" | "VOPDY");
    let takes_carry = begins(name, &["v_addc_co_", "v_subb_co_", "v_subbrev_co_"])
        || name.contains("_co_ci_")
        || name.starts_with("v_cndmask_b32");
    add(READS_MASK, is_short && takes_carry);
    add(
        WRITES_MASK,
        is_short && name.contains("_co_") || encoding == "VOPC",
    );
    add(READS_SCALAR_RESULT, name.starts_with("v_div_fmas"));
    let moves = name.starts_with("v_movrel") || name.starts_with("v_swaprel");
    add(INDEXES | READS_M0, moves);
    let keeps = [
        "v_writelane_",
        "v_smfmac_",
        "v_swmmac_",
        "v_movreld",
        "v_movrelsd",
        "v_permlane",
        "v_cvt_sr_",
        "v_cvt_scalef32_",
        "v_cvt_pkaccum",
    ];
    add(KEEPS, begins(name, &keeps));
    add(
        SWAPS,
        name.starts_with("v_swap") || name.starts_with("v_permlane") && name.contains("_swap"),
    );
    add(
        HALF,
        name.contains("16") || name.contains("fp8") || name.contains("bf8"),
    );
    add(
        FORMATS,
        name.ends_with("_f8f6f4") && name.starts_with("v_mfma_"),
    );
    let dot = [
        "v_dot2c_",
        "v_dot4c_",
        "v_dot8c_",
        "v_dot2acc_",
        "v_fmac",
        "v_mac_",
        "v_pk_fmac",
        "v_cvt_pkaccum",
    ];
    add(ADDS, begins(name, &dot));
    effects
}

fn memory_effects(name: &str) -> u32 {
    use effect::*;

    let mut effects = 0;
    let mut add = |effect, holds: bool| effects |= if holds { effect } else { 0 };
    add(KEEPS, name.contains("d16"));
    let to_lds = name.contains("_load_lds_");
    add(TO_LDS, to_lds);
    let parts = ["ds_gws_", "ds_ordered_", "ds_append", "ds_consume"];
    add(
        READS_M0,
        to_lds || begins(name, &parts) || name.starts_with("ds_") && name.contains("addtid"),
    );
    add(SWAPS, name.starts_with("ds_bvh_stack"));
    add(
        GATHERS,
        name.contains("_gather4") || name.contains("_msaa_"),
    );
    add(COMPARES, name.contains("_cmpswap"));
    // The result's field has the address in LDS.
    add(READS_RESULT, name.contains("_load_async_to_lds_"));
    effects
}

/// Moves widths to the places where the decoder has the operands, and adds those of implied operands.
fn complete(widths: &mut [u8; 5], encoding: &str, name: &str, effects: u32, wave: WaveSize) {
    let [result, scalar_result, first, second, third] = widths;
    if matches!(encoding, "VOPDX" | "VOPDY") {
        (*result, *first) = (1, 1);
        *second = u8::from(!name.starts_with("v_mov_"));
    }
    if encoding == "VOP3" && name.starts_with("v_cmp") {
        (*scalar_result, *result) = (*result, 0);
    }
    if effects & effect::WRITES_MASK != 0 || name.starts_with("v_div_fmas") {
        *scalar_result = wave.mask();
    }
    if effects & effect::READS_MASK != 0 {
        *third = wave.mask();
    }
    if effects & effect::ADDS != 0 {
        *third = *result;
    }
    if begins(name, &["v_madmk_", "v_fmamk_", "s_fmamk_"]) {
        (*second, *third) = (0, *second);
    }
    if begins(name, &["s_cmpk_", "s_addk_", "s_mulk_"]) {
        *first = *result;
    }
    if name.starts_with("ds_cmpstore_") {
        std::mem::swap(second, third);
    }
}
