//! Wait states of CDNA.

use crate::run::{GCN, GFX9, GFX90A, GFX94, GFX950, UNIFIED, check, planted};

/// A comparison of all lanes with themselves, which writes EXEC.
const WRITE_EXEC: &str = "v_cmpx_eq_u32 s[20:21], v0, v0\n";
const DPP: &str = "v_mov_b32_dpp v3, v2 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf\n";

#[test]
fn scalars_from_vector_instructions() {
    check(&[
        planted(
            "valu-sgpr-vmem",
            GFX9,
            "v_mov_b32 v4, s12\ns_nop 1\nv_readfirstlane_b32 s12, v4\n{s_nop 4}\nglobal_load_dword v2, v1, s[12:13]",
        ),
        planted(
            "valu-sgpr-lane-select",
            GFX9,
            "v_readfirstlane_b32 s20, v2\n{s_nop 3}\nv_readlane_b32 s21, v3, s20",
        ),
        planted(
            "valu-sgpr-lane-select",
            GFX9,
            "v_readfirstlane_b32 s20, v2\n{s_nop 3}\nv_writelane_b32 v3, 0, s20",
        ),
        planted(
            "valu-vcc-div-fmas",
            GFX9,
            "v_cmp_eq_u32 vcc, v0, v1\n{s_nop 3}\nv_div_fmas_f32 v2, v3, v4, v5",
        ),
        planted(
            "valu-sgpr-valu",
            GFX94,
            "v_readfirstlane_b32 s20, v2\n{s_nop 1}\nv_mov_b32 v3, s20",
        ),
        // gfx90a waits itself.
        planted("", GCN, "v_readfirstlane_b32 s20, v2\nv_mov_b32 v3, s20"),
    ]);
}

#[test]
fn other_lanes() {
    check(&[
        planted(
            "vgpr-dpp",
            GFX9,
            format!("v_mov_b32 v2, v0\n{{s_nop 1}}\n{DPP}"),
        ),
        planted(
            "valu-exec-dpp",
            GFX9,
            format!("{WRITE_EXEC}{{s_nop 4}}\n{DPP}"),
        ),
        planted(
            "vgpr-readlane",
            GFX94,
            "v_mov_b32 v2, v0\n{s_nop 0}\nv_readfirstlane_b32 s20, v2",
        ),
        planted(
            "valu-exec-lane",
            GFX94,
            format!("{WRITE_EXEC}{{s_nop 3}}\nv_readfirstlane_b32 s22, v2"),
        ),
        planted(
            "valu-permlane-swap",
            GFX950,
            "v_mov_b32 v2, v0\n{s_nop 1}\nv_permlane32_swap_b32 v2, v3",
        ),
        planted(
            "vcmpx-permlane",
            GFX950,
            format!("{WRITE_EXEC}{{s_nop 3}}\nv_permlane32_swap_b32 v2, v3"),
        ),
    ]);
}

#[test]
fn results_that_come_late() {
    check(&[
        planted(
            "trans-use",
            GFX94,
            "v_rcp_f32 v2, v3\n{s_nop 0}\nv_add_f32 v4, v2, v2",
        ),
        planted("", GFX94, "v_rcp_f32 v2, v3\nv_rcp_f32 v4, v2"),
        planted("", GCN, "v_rcp_f32 v2, v3\nv_add_f32 v4, v2, v2"),
        planted(
            "shifted-result",
            GFX94,
            "v_cvt_f16_f32_sdwa v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PAD\n{s_nop 0}\nv_mov_b32 v4, v2",
        ),
        planted(
            "dot-result",
            UNIFIED,
            "v_dot2_f32_f16 v2, v3, v4, v5\n{s_nop 2}\nv_mov_b32 v6, v2",
        ),
        planted(
            "dot-result",
            UNIFIED,
            "v_dot2_f32_f16 v2, v3, v4, v5\n{s_nop 2}\nv_mov_b32 v2, 0",
        ),
        planted(
            "dot-result",
            UNIFIED,
            "v_dot2_f32_f16 v2, v3, v4, v5\n{s_nop 2}\nv_dot2_f32_f16 v6, v2, v4, v5",
        ),
        planted(
            "",
            GFX9,
            "v_dot2_f32_f16 v2, v3, v4, v5\nv_dot2_f32_f16 v2, v3, v4, v2",
        ),
    ]);
}

#[test]
fn data_of_stores() {
    let store = "global_store_dwordx4 v1, v[4:7], s[12:13]\n";
    check(&[
        planted(
            "store-data",
            GCN,
            format!("{store}{{s_nop 0}}\nv_mov_b32 v5, 0"),
        ),
        planted(
            "store-data",
            GFX94,
            format!("{store}{{s_nop 1}}\nv_mov_b32 v5, 0"),
        ),
        planted(
            "",
            GFX9,
            "global_store_dwordx2 v1, v[4:5], s[12:13]\nv_mov_b32 v5, 0",
        ),
    ]);
}

#[test]
fn registers_of_the_wave() {
    let set = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\n";
    check(&[
        planted(
            "setreg-getreg",
            GFX9,
            format!("{set}{{s_nop 1}}\ns_getreg_b32 s20, hwreg(HW_REG_MODE)"),
        ),
        planted("setreg-setreg", GFX9, format!("{set}{{s_nop 1}}\n{set}")),
        planted(
            "salu-m0",
            GFX9,
            "s_mov_b32 m0, 0\n{s_nop 0}\ns_sendmsg sendmsg(MSG_INTERRUPT)",
        ),
    ]);
}

#[test]
fn the_last_register_as_the_count_of_a_shift() {
    let bad = "v_lshlrev_b64 v[2:3], v127, v[4:5]\n";
    check(&[
        planted("", GFX90A, "v_lshlrev_b64 v[2:3], v126, v[4:5]"),
        planted("", GFX94, bad),
    ]);
    let hazards = crate::run::run(modelgpu_amdgcn::Target::Gfx90a, &[bad.to_owned()]);
    let rules: Vec<&str> = hazards[0].iter().map(|hazard| hazard.rule).collect();
    assert_eq!(rules, ["shift64-last-vgpr"]);
}
