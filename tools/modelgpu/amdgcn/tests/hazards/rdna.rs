//! Hazards of RDNA. Waves have 64 lanes here.

use modelgpu_amdgcn::Target;

use crate::run::{GFX10, GFX11, GFX12, RDNA, check, planted, run};

const WAIT: &str = "{s_waitcnt_depctr 0xfff}\n";

#[test]
fn results_of_vector_instructions() {
    check(&[
        planted(
            "trans-use",
            GFX11,
            format!("v_rcp_f32 v2, v3\n{WAIT}v_add_f32 v4, v2, v2"),
        ),
        // Six other instructions are enough.
        planted(
            "trans-use",
            GFX11,
            format!(
                "v_rcp_f32 v2, v3\n{}{{v_nop}}\nv_add_f32 v4, v2, v2",
                "v_nop\n".repeat(5)
            ),
        ),
        planted("", GFX12, "v_rcp_f32 v2, v3\nv_add_f32 v4, v2, v2"),
        planted(
            "partial-forwarding",
            GFX11,
            format!(
                "v_mov_b32 v2, v0\ns_mov_b64 exec, -1\nv_mov_b32 v3, v0\n{WAIT}v_add_f32 v4, v2, v3"
            ),
        ),
        planted(
            "",
            GFX11,
            "v_mov_b32 v2, v0\ns_mov_b64 exec, -1\nv_mov_b32 v3, v0\nv_mov_b32 v4, v3",
        ),
        planted(
            "vcmpx-permlane",
            RDNA,
            "v_cmpx_eq_u32 v2, v2\n{v_mov_b32 v5, v5}\nv_permlane64_b32 v4, v3",
        ),
        planted("", GFX11, "v_mad_u64_u32 v[2:3], null, v4, v5, v[2:3]"),
    ]);
    let overlapping = "v_mad_u64_u32 v[2:3], null, v2, v5, 0".to_owned();
    let hazards = run(Target::Gfx1100, &[overlapping]);
    assert_eq!(hazards[0][0].rule, "mad-forwarding");
}

#[test]
fn scalars_that_vector_instructions_have_read() {
    let mask = "v_cndmask_b32 v2, v3, v4, s[20:21]\n";
    check(&[
        planted(
            "mask-write",
            GFX11,
            format!(
                "{mask}s_mov_b64 s[20:21], 0\n{{s_waitcnt_depctr 0xfffe}}\ns_or_b64 s[22:23], s[20:21], s[20:21]"
            ),
        ),
        planted(
            "mask-write",
            GFX11,
            format!(
                "{mask}v_cmp_eq_u32 s[20:21], v0, v0\n{{s_waitcnt_depctr 0xf1ff}}\ns_or_b64 s[22:23], s[20:21], s[20:21]"
            ),
        ),
        // Another scalar gives the hardware the time that it needs.
        planted(
            "mask-write",
            GFX11,
            format!(
                "{mask}{{v_mov_b32 v5, s24}}\ns_mov_b64 s[20:21], 0\ns_or_b64 s[22:23], s[20:21], s[20:21]"
            ),
        ),
        planted(
            "sgpr-read",
            GFX12,
            "v_mov_b32 v2, s20\ns_mov_b32 s20, 0\n{s_wait_alu 0xfffe}\nv_mov_b32 v3, s20",
        ),
        planted(
            "sgpr-read",
            GFX12,
            "v_mov_b32 v2, s20\nv_readfirstlane_b32 s20, v3\n{s_wait_alu 0xf1ff}\nv_mov_b32 v3, s20",
        ),
        planted(
            "sgpr-read",
            GFX12,
            "v_cndmask_b32 v2, v3, v4, vcc\nv_cmp_eq_u32 vcc, v0, v1\n{s_wait_alu 0xfffd}\nv_cndmask_b32 v5, v3, v4, vcc",
        ),
        // A scalar instruction waits for vector ones.
        planted(
            "",
            GFX12,
            "v_mov_b32 v2, s20\nv_readfirstlane_b32 s20, v3\ns_mov_b32 s22, s20\nv_mov_b32 v3, s20",
        ),
        planted("", GFX12, "s_mov_b32 s20, 0\nv_mov_b32 v3, s20"),
    ]);
}

/// LLVM's `GCNHazardRecognizer` adds nothing for gfx1030: the manual of RDNA 2 says that no code needs `s_nop`.
#[test]
fn rdna_2_waits_itself() {
    let bodies = [
        "v_rcp_f32 v2, v3\nv_add_f32 v4, v2, v2",
        "v_cmpx_eq_u32 v2, v2\nv_permlane16_b32 v4, v3, s20, s21",
        "v_mad_u64_u32 v[2:3], null, v2, v5, 0",
        "v_cndmask_b32 v2, v3, v4, s[20:21]\ns_mov_b64 s[20:21], 0\ns_or_b64 s[22:23], s[20:21], s[20:21]",
        "v_mov_b32 v2, s20\ns_mov_b32 s20, 0\nv_mov_b32 v3, s20",
        "v_readfirstlane_b32 s20, v2\nv_readlane_b32 s21, v3, s20",
        "v_cmp_eq_u32 vcc, v0, v1\nv_div_fmas_f32 v2, v3, v4, v5",
        "v_mov_b32 v4, s12\nv_readfirstlane_b32 s12, v4\nglobal_load_dword v2, v1, s[12:13]",
    ];
    check(&bodies.map(|body| planted("", GFX10, body)));
}

#[test]
fn products_of_matrices() {
    let first = "v_wmma_f32_16x16x16_f16 v[20:23], v[24:31], v[32:39], v[20:23]\n";
    let short = "v_wmma_f32_16x16x16_f16 v[20:23], v[24:25], v[32:33], v[20:23]\n";
    check(&[
        planted(
            "wmma",
            GFX11,
            format!(
                "{first}{{v_nop}}\nv_wmma_f32_16x16x16_f16 v[40:43], v[20:27], v[32:39], v[40:43]"
            ),
        ),
        planted("", GFX11, format!("{first}{first}")),
        planted(
            "wmma",
            GFX12,
            format!(
                "{short}{{v_nop}}\nv_wmma_f32_16x16x16_f16 v[40:43], v[32:33], v[22:23], v[40:43]"
            ),
        ),
    ]);
}

#[test]
fn releases_of_registers() {
    let release = "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)";
    check(&[
        planted(
            "dealloc-vgprs",
            RDNA,
            format!("v_mov_b32 v2, v0\n{{s_nop 0}}\n{release}"),
        ),
        planted(
            "dealloc-vgprs",
            GFX11,
            format!(
                "scratch_store_dword off, v0, off\n{{s_waitcnt_vscnt null, 0x0}}\ns_nop 0\n{release}"
            ),
        ),
        planted(
            "dealloc-vgprs",
            GFX12,
            format!(
                "scratch_store_dword off, v0, off\n{{s_wait_storecnt 0x0}}\ns_nop 0\n{release}"
            ),
        ),
    ]);
}
