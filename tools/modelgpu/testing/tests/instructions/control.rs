//! Branches, calls, hardware registers, indexed registers, scalar memory, and instructions that
//! must do nothing.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, GCN, KEPT, Want, memory_byte};
use crate::inputs::integers;

/// gfx942 and its successor.
const GFX942: &[Target] = &[Target::Gfx942, Target::Gfx950];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = nothing();
    cases.extend(branches());
    cases.extend(calls());
    cases.extend(registers());
    cases.extend(scalar_memory());
    cases
}

/// A case with one result for all lanes.
fn uniform(mnemonic: &'static str, body: &str, want: [u32; 2]) -> Case {
    Case::new(mnemonic, body, integers(), move |_, _| {
        Want::All([want[0], want[1], KEPT, KEPT])
    })
}

fn nothing() -> Vec<Case> {
    let both = Target::WAVE64;
    [
        ("s_nop", "s_nop 3", both),
        ("s_waitcnt", "s_waitcnt vmcnt(0)", both),
        ("s_sleep", "s_sleep 1", both),
        ("s_setprio", "s_setprio 2", both),
        ("s_wakeup", "s_wakeup", both),
        ("s_incperflevel", "s_incperflevel 1", both),
        ("s_decperflevel", "s_decperflevel 1", both),
        ("s_ttracedata", "s_ttracedata", both),
        ("v_clrexcp", "v_clrexcp", both),
        ("ds_nop", "ds_nop", both),
        ("s_dcache_inv_vol", "s_dcache_inv_vol", both),
        ("s_dcache_wb_vol", "s_dcache_wb_vol", both),
        ("s_dcache_discard", "s_dcache_discard s[12:13], 0", both),
        (
            "s_dcache_discard_x2",
            "s_dcache_discard_x2 s[12:13], 0",
            both,
        ),
        ("s_atc_probe", "s_atc_probe 0, s[12:13], 0", both),
        (
            "s_atc_probe_buffer",
            "s_atc_probe_buffer 0, s[12:15], 0",
            both,
        ),
        ("s_cbranch_cdbgsys", "s_cbranch_cdbgsys 1000", both),
        ("s_cbranch_cdbguser", "s_cbranch_cdbguser 1000", both),
        (
            "s_cbranch_cdbgsys_or_user",
            "s_cbranch_cdbgsys_or_user 1000",
            both,
        ),
        (
            "s_cbranch_cdbgsys_and_user",
            "s_cbranch_cdbgsys_and_user 1000",
            both,
        ),
        ("s_barrier", "s_barrier", both),
        ("s_icache_inv", "s_icache_inv", both),
        ("s_dcache_inv", "s_dcache_inv", both),
        ("s_dcache_wb", "s_dcache_wb", both),
        ("v_nop", "v_nop", both),
        ("buffer_wbl2", "buffer_wbl2", both),
        ("buffer_wbinvl1", "buffer_wbinvl1", GCN),
        ("buffer_wbinvl1_vol", "buffer_wbinvl1_vol", GCN),
        ("buffer_invl2", "buffer_invl2", both),
        ("buffer_inv", "buffer_inv sc1", GFX942),
    ]
    .into_iter()
    .map(|(mnemonic, text, targets)| {
        let body = format!("v_mov_b32 v11, v2\n{text}\nv_mov_b32 v10, v11");
        let case = Case::new(mnemonic, body, integers(), |all, lane| {
            let a = all[lane][0] as u32;
            Want::All([a, a, KEPT, KEPT])
        });
        case.only(targets)
    })
    .collect()
}

fn branches() -> Vec<Case> {
    // (branch, code that makes it taken, code that makes it not taken)
    let conditions = [
        ("s_branch", "", None),
        (
            "s_cbranch_scc0",
            "s_cmp_lg_u32 s0, s0",
            Some("s_cmp_eq_u32 s0, s0"),
        ),
        (
            "s_cbranch_scc1",
            "s_cmp_eq_u32 s0, s0",
            Some("s_cmp_lg_u32 s0, s0"),
        ),
        (
            "s_cbranch_vccz",
            "s_mov_b64 vcc, 0",
            Some("s_mov_b64 vcc, 4"),
        ),
        (
            "s_cbranch_vccnz",
            "s_mov_b64 vcc, 4",
            Some("s_mov_b64 vcc, 0"),
        ),
        (
            "s_cbranch_execz",
            "s_mov_b64 exec, 0",
            Some("s_mov_b64 exec, 8"),
        ),
        (
            "s_cbranch_execnz",
            "s_mov_b64 exec, 8",
            Some("s_mov_b64 exec, 0"),
        ),
    ];
    let mut cases = Vec::new();
    for (branch, taken, not_taken) in conditions {
        let body = |setup: &str| {
            format!(
                "s_mov_b32 s20, 1
                 {setup}
                 {branch} 1f
                 s_mov_b32 s20, 2
                 1:
                 s_mov_b64 exec, -1
                 v_mov_b32 v10, s20"
            )
        };
        cases.push(uniform(branch, &body(taken), [1, KEPT]));
        if let Some(setup) = not_taken {
            cases.push(uniform(branch, &body(setup), [2, KEPT]));
        }
    }
    // Backwards, and an end in the middle.
    cases.push(uniform(
        "s_cbranch_scc1",
        "s_mov_b32 s20, 0
         1:
         s_add_u32 s20, s20, 3
         s_cmp_lt_u32 s20, 100
         s_cbranch_scc1 1b
         v_mov_b32 v10, s20",
        [102, KEPT],
    ));
    cases.push(uniform(
        "s_endpgm",
        "v_mov_b32 v10, 7
         v_lshlrev_b32 v1, 4, v0
         global_store_dwordx4 v1, v[10:13], s[10:11]
         s_endpgm
         v_mov_b32 v10, 8",
        [7, KEPT],
    ));
    cases
}

fn calls() -> Vec<Case> {
    vec![
        uniform(
            "s_getpc_b64",
            "s_getpc_b64 s[20:21]
             1:
             s_add_u32 s20, s20, (2f-1b)
             s_addc_u32 s21, s21, 0
             s_setpc_b64 s[20:21]
             v_mov_b32 v10, 1
             2:
             v_mov_b32 v11, 2",
            [KEPT, 2],
        ),
        uniform(
            "s_setpc_b64",
            "s_getpc_b64 s[20:21]
             1:
             s_add_u32 s20, s20, (2f-1b)
             s_addc_u32 s21, s21, 0
             s_setpc_b64 s[20:21]
             2:
             v_mov_b32 v11, 2",
            [KEPT, 2],
        ),
        uniform(
            "s_swappc_b64",
            "s_getpc_b64 s[20:21]
             1:
             s_add_u32 s20, s20, (2f-1b)
             s_addc_u32 s21, s21, 0
             s_swappc_b64 s[22:23], s[20:21]
             v_mov_b32 v10, 1
             s_branch 3f
             2:
             v_mov_b32 v11, 2
             s_setpc_b64 s[22:23]
             3:",
            [1, 2],
        ),
        uniform(
            "s_call_b64",
            "s_call_b64 s[22:23], 2f
             v_mov_b32 v10, 1
             s_branch 3f
             2:
             v_mov_b32 v11, 2
             s_setpc_b64 s[22:23]
             3:",
            [1, 2],
        ),
    ]
}

fn registers() -> Vec<Case> {
    vec![
        // The default MODE: all denormals. RDNA 4 lacks the bits DX10_CLAMP and IEEE.
        uniform(
            "s_getreg_b32",
            "s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)
             v_mov_b32 v10, s20
             s_getreg_b32 s20, hwreg(HW_REG_MODE, 6, 2)
             v_mov_b32 v11, s20",
            [0xf0, 3],
        ),
        // The Linux driver puts LDS at 1 << 48 and scratch at 2 << 48.
        uniform(
            "s_getreg_b32",
            "s_getreg_b32 s20, hwreg(HW_REG_SH_MEM_BASES, 16, 16)
             v_mov_b32 v10, s20
             s_getreg_b32 s20, hwreg(HW_REG_SH_MEM_BASES, 0, 16)
             v_mov_b32 v11, s20",
            [1, 2],
        ),
        uniform(
            "s_setreg_b32",
            "s_mov_b32 s20, 0xf2
             s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s20
             s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)
             v_mov_b32 v10, s20",
            [0xe0, KEPT],
        ),
        uniform(
            "s_setreg_imm32_b32",
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 1
             s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)
             v_mov_b32 v10, s20",
            [0x70, KEPT],
        ),
        // Registers that M0 chooses: as a source, as a destination, and with a new index.
        Case::new(
            "s_set_gpr_idx_on",
            "s_mov_b32 s20, 3
             s_set_gpr_idx_on s20, gpr_idx(SRC0)
             v_mov_b32 v10, v2
             s_set_gpr_idx_off
             s_set_gpr_idx_on s20, gpr_idx(DST)
             v_mov_b32 v9, v4
             s_set_gpr_idx_off",
            integers(),
            // v2 + 3 is v5, the high half of b; v9 + 3 is v12.
            |all, lane| {
                let b = all[lane][1];
                Want::All([(b >> 32) as u32, KEPT, b as u32, KEPT])
            },
        ),
        Case::new(
            "s_set_gpr_idx_off",
            "s_mov_b32 s20, 3
             s_set_gpr_idx_on s20, gpr_idx(SRC0,SRC1,DST)
             s_set_gpr_idx_off
             v_add_u32 v10, v2, v4",
            integers(),
            |all, lane| Want::Word((all[lane][0] as u32).wrapping_add(all[lane][1] as u32)),
        ),
        Case::new(
            "s_set_gpr_idx_idx",
            "s_mov_b32 s20, 3
             s_mov_b32 s21, 2
             s_set_gpr_idx_on s20, gpr_idx(SRC1)
             s_set_gpr_idx_idx s21
             v_sub_u32 v10, v2, v4
             s_set_gpr_idx_off",
            integers(),
            // v4 + 2 is v6, c.
            |all, lane| Want::Word((all[lane][0] as u32).wrapping_sub(all[lane][2] as u32)),
        ),
        Case::new(
            "s_set_gpr_idx_mode",
            "s_mov_b32 s20, 3
             s_set_gpr_idx_on s20, gpr_idx(SRC0)
             s_set_gpr_idx_mode gpr_idx(SRC1)
             v_sub_u32 v10, v2, v4
             s_set_gpr_idx_off
             s_set_gpr_idx_mode gpr_idx(SRC0)
             v_mov_b32 v11, v2",
            integers(),
            // v4 + 3 is v7, the high half of c.
            |all, lane| {
                let [a, _, c, _] = all[lane];
                let difference = (a as u32).wrapping_sub((c >> 32) as u32);
                Want::Long(u64::from(difference) | a << 32)
            },
        ),
        uniform(
            "s_movrels_b32",
            "s_mov_b32 s23, 17
             s_mov_b32 m0, 3
             s_movrels_b32 s30, s20
             v_mov_b32 v10, s30",
            [17, KEPT],
        ),
        uniform(
            "s_movrels_b64",
            "s_mov_b32 s22, 18
             s_mov_b32 s23, 19
             s_mov_b32 m0, 2
             s_movrels_b64 s[30:31], s[20:21]
             v_mov_b32 v10, s30
             v_mov_b32 v11, s31",
            [18, 19],
        ),
        uniform(
            "s_movreld_b32",
            "s_mov_b32 s20, 20
             s_mov_b32 m0, 1
             s_movreld_b32 s30, s20
             v_mov_b32 v10, s31",
            [20, KEPT],
        ),
        uniform(
            "s_movreld_b64",
            "s_mov_b32 m0, 4
             s_movreld_b64 s[30:31], 21
             v_mov_b32 v10, s34
             v_mov_b32 v11, s35",
            [21, 0],
        ),
        uniform(
            "s_memtime",
            "s_memtime s[20:21]
             s_nop 0
             s_memtime s[22:23]
             s_waitcnt lgkmcnt(0)
             s_sub_u32 s22, s22, s20
             s_cmp_lg_u32 s22, 0
             s_cselect_b32 s22, 1, 0
             v_mov_b32 v10, s22",
            [1, KEPT],
        ),
        uniform(
            "s_memrealtime",
            "s_memrealtime s[20:21]
             s_nop 0
             s_memrealtime s[22:23]
             s_waitcnt lgkmcnt(0)
             s_sub_u32 s22, s22, s20
             s_cmp_lg_u32 s22, 0
             s_cselect_b32 s22, 1, 0
             v_mov_b32 v10, s22",
            [1, KEPT],
        ),
    ]
}

/// A dword of the case's memory.
fn dword(offset: u32) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|place| {
        memory_byte(offset + place as u32)
    }))
}

fn scalar_memory() -> Vec<Case> {
    let wide = [
        ("s_load_dword", "s32", 1),
        ("s_load_dwordx2", "s[32:33]", 2),
        ("s_load_dwordx4", "s[32:35]", 4),
        ("s_load_dwordx8", "s[32:39]", 8),
        ("s_load_dwordx16", "s[32:47]", 16),
    ];
    let mut cases: Vec<Case> = wide
        .into_iter()
        .map(|(mnemonic, registers, count)| {
            let last = 31 + count;
            let body = format!(
                "{mnemonic} {registers}, s[12:13], 0x104
                 s_waitcnt lgkmcnt(0)
                 v_mov_b32 v10, s32
                 v_mov_b32 v11, s{last}"
            );
            uniform(mnemonic, &body, [dword(0x104), dword(0x100 + 4 * count)])
        })
        .collect();
    cases.push(uniform(
        "s_load_dword",
        "s_mov_b32 s20, 0x203
         s_load_dword s21, s[12:13], s20
         s_load_dword s22, s[12:13], s20 offset:0x11
         s_waitcnt lgkmcnt(0)
         v_mov_b32 v10, s21
         v_mov_b32 v11, s22",
        // Hardware ignores the two low bits of the address.
        [dword(0x200), dword(0x214)],
    ));
    cases.push(uniform(
        "s_load_dword",
        "s_add_u32 s20, s12, 0x100
         s_addc_u32 s21, s13, 0
         s_load_dword s22, s[20:21], -8
         s_waitcnt lgkmcnt(0)
         v_mov_b32 v10, s22",
        [dword(0xf8), KEPT],
    ));
    cases.extend(scalar_buffers());
    cases.extend(scalar_stores());
    cases.extend(scalar_atomics());
    cases
}

/// A buffer of 64 bytes in s[16:19], from byte 0x100 of the memory on.
const BUFFER: &str = "s_add_u32 s16, s12, 0x100
    s_addc_u32 s17, s13, 0
    s_mov_b32 s18, 64
    s_mov_b32 s19, 0x00020000";

/// Loads from a buffer. Dwords beyond it read as 0.
fn scalar_buffers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (mnemonic, count) in [
        ("s_buffer_load_dword", 1),
        ("s_buffer_load_dwordx2", 2),
        ("s_buffer_load_dwordx4", 4),
        ("s_buffer_load_dwordx8", 8),
        ("s_buffer_load_dwordx16", 16),
    ] {
        let registers = match count {
            1 => "s32".to_owned(),
            _ => format!("s[32:{}]", 31 + count),
        };
        for offset in [0, 0x14, 0x3c, 0x40] {
            let body = format!(
                "{BUFFER}
                 s_mov_b32 s20, {offset}
                 {mnemonic} {registers}, s[16:19], s20
                 s_waitcnt lgkmcnt(0)
                 v_mov_b32 v10, s32
                 v_mov_b32 v11, s{}",
                31 + count
            );
            let want = |place: u32| match offset + 4 * place {
                inside @ 0..64 => dword(0x100 + inside),
                _ => 0,
            };
            cases.push(uniform(mnemonic, &body, [want(0), want(count - 1)]));
        }
    }
    // With a stride, the buffer has as many records.
    cases.push(uniform(
        "s_buffer_load_dword",
        "s_mov_b32 s16, s12
         s_or_b32 s17, s13, 0x00080000
         s_mov_b32 s18, 4
         s_mov_b32 s19, 0x00020000
         s_buffer_load_dword s20, s[16:19], 0x1c
         s_buffer_load_dword s21, s[16:19], 0x20
         s_waitcnt lgkmcnt(0)
         v_mov_b32 v10, s20
         v_mov_b32 v11, s21",
        [dword(0x1c), 0],
    ));
    cases
}

/// Stores of 1, 2 or 4 dwords, read back with what lies after them.
fn scalar_stores() -> Vec<Case> {
    let mut cases = Vec::new();
    for (suffix, count) in [("dword", 1), ("dwordx2", 2), ("dwordx4", 4)] {
        let registers = match count {
            1 => "s32".to_owned(),
            _ => format!("s[32:{}]", 31 + count),
        };
        let setup = format!(
            "{BUFFER}
             s_mov_b32 s32, 71
             s_mov_b32 s33, 72
             s_mov_b32 s34, 73
             s_mov_b32 s35, 74"
        );
        let read = "s_dcache_wb
             s_load_dwordx4 s[40:43], s[12:13], 0x130
             s_load_dword s44, s[12:13], 0x140
             s_waitcnt lgkmcnt(0)
             v_mov_b32 v10, s40
             v_mov_b32 v11, s41
             v_mov_b32 v12, s43
             v_mov_b32 v13, s44";
        let stored = |first: u32, end: u32| {
            [0, 1, 3, 4].map(|place: u32| match place.checked_sub(first) {
                Some(number) if number < count && place < end => 71 + number,
                _ => dword(0x130 + 4 * place),
            })
        };
        // After the buffer's end at 0x140, a store is dropped.
        for (instruction, first, end) in [
            (
                format!("s_store_{suffix} {registers}, s[12:13], 0x130"),
                0,
                99,
            ),
            (
                format!("s_buffer_store_{suffix} {registers}, s[16:19], 0x34"),
                1,
                4,
            ),
        ] {
            let name = instruction
                .split(' ')
                .next()
                .expect("a mnemonic")
                .to_owned();
            let name: &'static str = name.leak();
            let want = stored(first, end);
            cases.push(Case::new(
                name,
                format!("{setup}\n{instruction}\n{read}"),
                integers(),
                move |_, _| Want::All(want),
            ));
        }
    }
    cases
}

/// Atomics of a scalar operand on a dword or two. The old value is in v[10:11] if the atomic returns
/// it, the new one in v[12:13].
fn scalar_atomics() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, function) in crate::atomics::scalar_functions() {
        for (suffix, bytes) in [("", 4), ("_x2", 8)] {
            for (prefix, place) in [("s_", "s[12:13], 0x108"), ("s_buffer_", "s[16:19], 0x8")] {
                for returns in [false, true] {
                    let mnemonic: &'static str = format!("{prefix}atomic_{name}{suffix}").leak();
                    let data = match (bytes, name) {
                        (4, "cmpswap") => "s[32:33]",
                        (4, _) => "s32",
                        (_, "cmpswap") => "s[32:35]",
                        _ => "s[32:33]",
                    };
                    // The compared value is equal to the old one.
                    let body = format!(
                        "{BUFFER}
                         s_mov_b32 s32, 0x89abcdef
                         s_mov_b32 s33, 0x12345678
                         s_load_dwordx2 s[34:35], s[12:13], 0x108
                         s_waitcnt lgkmcnt(0)
                         {}
                         {mnemonic} {data}, {place} {}
                         s_waitcnt lgkmcnt(0)
                         s_load_dwordx2 s[40:41], s[12:13], 0x108
                         s_waitcnt lgkmcnt(0)
                         v_mov_b32 v10, s32
                         v_mov_b32 v11, s33
                         v_mov_b32 v12, s40
                         v_mov_b32 v13, s41",
                        if bytes == 4 && name == "cmpswap" {
                            "s_mov_b32 s33, s34"
                        } else {
                            ""
                        },
                        if returns { "glc" } else { "" },
                    );
                    let old = u64::from(dword(0x108)) | u64::from(dword(0x10c)) << 32;
                    let mut data = 0x1234_5678_89ab_cdefu64;
                    if bytes == 4 && name == "cmpswap" {
                        data = 0x89ab_cdef | old << 32;
                    }
                    let mask = u64::MAX >> (64 - 8 * bytes);
                    let new = function(old & mask, data & mask, 8 * bytes) & mask | old & !mask;
                    let told = if returns {
                        old & mask | data & !mask
                    } else {
                        data
                    };
                    let want = [told, told >> 32, new, new >> 32].map(|word| word as u32);
                    cases.push(Case::new(mnemonic, body, integers(), move |_, _| {
                        Want::All(want)
                    }));
                }
            }
        }
    }
    cases
}
