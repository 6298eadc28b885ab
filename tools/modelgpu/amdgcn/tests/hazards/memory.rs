//! Results of accesses to memory.

use modelgpu_amdgcn::{Standing, Target};

use crate::run::{GCN, GFX9, GFX10, GFX12, UNIFIED, check, planted, run};

const BOTH: &[Target] = &[
    Target::Gfx906,
    Target::Gfx908,
    Target::Gfx90a,
    Target::Gfx942,
    Target::Gfx950,
    Target::Gfx1030,
    Target::Gfx1100,
];

/// The targets of RDNA before RDNA 4, whose counters have other names.
const RDNA_COUNTERS: &[Target] = &[Target::Gfx1030, Target::Gfx1100];

#[test]
fn vector_loads() {
    let load = "global_load_dword v2, v1, s[12:13]\n";
    let two = format!("{load}global_load_dword v3, v1, s[12:13]\n");
    check(&[
        planted(
            "vmcnt",
            BOTH,
            format!("{load}{{s_waitcnt vmcnt(0)}}\nv_mov_b32 v4, v2"),
        ),
        planted(
            "vmcnt",
            BOTH,
            format!("{load}{{s_waitcnt vmcnt(0)}}\nv_mov_b32 v2, 0"),
        ),
        // Loads come in order.
        planted(
            "vmcnt",
            BOTH,
            format!("{two}{{s_waitcnt vmcnt(1)}}\nv_mov_b32 v4, v2"),
        ),
        planted(
            "vmcnt",
            BOTH,
            format!("{two}s_waitcnt vmcnt(1)\n{{s_waitcnt vmcnt(0)}}\nv_mov_b32 v4, v3"),
        ),
        planted(
            "vmcnt",
            BOTH,
            format!("{load}{load}s_waitcnt vmcnt(0)\nv_mov_b32 v4, v2"),
        ),
        // An address is a source, and the data of a store.
        planted(
            "vmcnt",
            BOTH,
            format!("{load}{{s_waitcnt vmcnt(0)}}\nglobal_load_dword v3, v2, s[12:13]"),
        ),
        planted(
            "vmcnt",
            BOTH,
            format!("{load}{{s_waitcnt vmcnt(0)}}\nglobal_store_dword v1, v2, s[12:13]"),
        ),
        // CDNA counts stores with loads, and RDNA 2 and 3 count them apart.
        planted(
            "vmcnt",
            GFX9,
            format!(
                "{load}global_store_dword v1, v0, s[12:13]\n{{s_waitcnt vmcnt(1)}}\nv_mov_b32 v4, v2"
            ),
        ),
        planted(
            "vmcnt",
            RDNA_COUNTERS,
            format!(
                "{load}global_store_dword v1, v0, s[12:13]\ns_waitcnt vmcnt(1)\n{{s_waitcnt vmcnt(0)}}\nv_mov_b32 v4, v2"
            ),
        ),
        planted(
            "vmcnt",
            GCN,
            "global_atomic_add v2, v1, v0, s[12:13] glc\n{s_waitcnt vmcnt(0)}\nv_mov_b32 v4, v2",
        ),
        planted(
            "vmcnt",
            UNIFIED,
            "global_load_dword a2, v1, s[12:13]\n{s_waitcnt vmcnt(0)}\nv_accvgpr_read_b32 v4, a2",
        ),
    ]);
}

/// gfx1030 is the only target with SDWA on which halves of registers count.
#[test]
fn sdwa_reads_both_halves() {
    let sdwa = "v_cvt_f32_f16_sdwa v4, v2 dst_sel:DWORD dst_unused:UNUSED_PAD";
    let high = "global_load_short_d16_hi v2, v1, s[12:13]\n";
    let low = "global_load_short_d16 v2, v1, s[12:13]\n";
    check(&[
        planted(
            "vmcnt",
            GFX10,
            format!("{high}{{s_waitcnt vmcnt(0)}}\n{sdwa} src0_sel:WORD_1"),
        ),
        planted(
            "vmcnt",
            GFX10,
            format!("{low}{{s_waitcnt vmcnt(0)}}\n{sdwa} src0_sel:WORD_0"),
        ),
        // Without SDWA, this reads the low half only.
        planted("", GFX10, format!("{high}v_cvt_f32_f16 v4, v2")),
    ]);
}

#[test]
fn local_and_scalar_memory() {
    let read = "ds_read_b32 v2, v1\n";
    check(&[
        planted(
            "lgkmcnt",
            BOTH,
            format!("{read}{{s_waitcnt lgkmcnt(0)}}\nv_mov_b32 v4, v2"),
        ),
        planted(
            "lgkmcnt",
            BOTH,
            format!("{read}{{s_waitcnt lgkmcnt(0)}}\nv_mov_b32 v2, v0"),
        ),
        planted(
            "lgkmcnt",
            BOTH,
            format!("{read}ds_read_b32 v3, v1\n{{s_waitcnt lgkmcnt(1)}}\nv_mov_b32 v4, v2"),
        ),
        // The counter has six bits on RDNA, and four on CDNA.
        planted(
            "lgkmcnt",
            RDNA_COUNTERS,
            format!(
                "{read}{}{{s_waitcnt lgkmcnt(20)}}\nv_mov_b32 v4, v2",
                "ds_read_b32 v3, v1\n".repeat(20)
            ),
        ),
        // Scalar loads come in any order.
        planted(
            "lgkmcnt",
            BOTH,
            format!(
                "{read}s_load_dword s20, s[12:13], 0x0\ns_waitcnt lgkmcnt(1)\n{{s_waitcnt lgkmcnt(0)}}\nv_mov_b32 v4, v2"
            ),
        ),
        planted(
            "lgkmcnt",
            BOTH,
            "s_load_dword s20, s[12:13], 0x0\ns_load_dword s21, s[12:13], 0x4\ns_waitcnt lgkmcnt(1)\n\
             {s_waitcnt lgkmcnt(0)}\ns_add_u32 s22, s20, s20",
        ),
        planted(
            "lgkmcnt",
            BOTH,
            "s_load_dword s20, s[12:13], 0x0\n{s_waitcnt lgkmcnt(0)}\ns_mov_b32 s20, 0",
        ),
    ]);
}

#[test]
fn flat_addresses_are_in_memory_or_in_lds() {
    let global = "v_mov_b32 v4, s12\nv_mov_b32 v5, s13\nflat_load_dword v2, v[4:5]\n";
    let local = "s_mov_b64 s[20:21], src_shared_base\nv_mov_b32 v4, 0\nv_mov_b32 v5, s21\nflat_load_dword v2, v[4:5]\n";
    check(&[
        planted(
            "vmcnt",
            BOTH,
            format!("{global}s_waitcnt lgkmcnt(0)\n{{s_waitcnt vmcnt(0)}}\nv_mov_b32 v6, v2"),
        ),
        planted(
            "lgkmcnt",
            BOTH,
            format!("{local}s_waitcnt vmcnt(0)\n{{s_waitcnt lgkmcnt(0)}}\nv_mov_b32 v6, v2"),
        ),
        planted(
            "loadcnt",
            GFX12,
            format!("{global}s_wait_dscnt 0x0\n{{s_wait_loadcnt 0x0}}\nv_mov_b32 v6, v2"),
        ),
        planted(
            "dscnt",
            GFX12,
            format!("{local}s_wait_loadcnt 0x0\n{{s_wait_dscnt 0x0}}\nv_mov_b32 v6, v2"),
        ),
    ]);
}

#[test]
fn counters_of_rdna_4() {
    let load = "global_load_dword v2, v1, s[12:13]\n";
    check(&[
        planted(
            "loadcnt",
            GFX12,
            format!("{load}{{s_wait_loadcnt 0x0}}\nv_mov_b32 v4, v2"),
        ),
        // Results come in any order.
        planted(
            "loadcnt",
            GFX12,
            format!("{load}{{s_wait_loadcnt 0x0}}\n{load}"),
        ),
        planted(
            "loadcnt",
            GFX12,
            format!(
                "{load}global_store_dword v1, v0, s[12:13]\ns_wait_storecnt 0x0\n{{s_wait_loadcnt 0x0}}\nv_mov_b32 v4, v2"
            ),
        ),
        planted(
            "loadcnt",
            GFX12,
            format!("{load}ds_read_b32 v3, v1\n{{s_wait_loadcnt_dscnt 0x1}}\nv_mov_b32 v4, v2"),
        ),
        planted(
            "dscnt",
            GFX12,
            "ds_read_b32 v2, v1\n{s_wait_dscnt 0x0}\nv_mov_b32 v4, v2",
        ),
        planted(
            "dscnt",
            GFX12,
            "ds_read_b32 v2, v1\n{s_wait_loadcnt_dscnt 0x3f00}\nv_mov_b32 v4, v2",
        ),
        planted(
            "kmcnt",
            GFX12,
            "s_load_dword s20, s[12:13], 0x0\n{s_wait_kmcnt 0x0}\ns_mov_b32 s21, s20",
        ),
    ]);
}

/// A plane of 9 times 5 texels of four bytes in s[36:43], and a sampler in s[44:47]: the fields of ROCr's header
/// `resource_gfx12.h`.
const PLANE: &str = "s_lshr_b64 s[36:37], s[12:13], 8
    s_or_b32 s37, s37, 0x540000
    s_mov_b32 s38, 0x10002
    s_mov_b32 s39, 0x90000fac
    s_mov_b32 s40, 8
    s_mov_b32 s41, 0
    s_mov_b32 s42, 0
    s_mov_b32 s43, 0
    s_mov_b32 s44, 0x8000
    s_mov_b32 s45, 0xfff000
    s_mov_b32 s46, 0
    s_mov_b32 s47, 0
    v_mov_b32 v20, 0
    v_mov_b32 v21, 0
    s_nop 7
";

#[test]
fn samples_have_their_own_counter_on_rdna_4() {
    let sample = format!(
        "{PLANE}image_sample v[24:27], [v20, v21], s[36:43], s[44:47] dmask:0xf dim:SQ_RSRC_IMG_2D\n"
    );
    let load =
        format!("{PLANE}image_load v[24:27], [v20, v21], s[36:43] dmask:0xf dim:SQ_RSRC_IMG_2D\n");
    check(&[
        planted(
            "samplecnt",
            GFX12,
            format!("{sample}{{s_wait_samplecnt 0x0}}\nv_mov_b32 v28, v25"),
        ),
        planted(
            "samplecnt",
            GFX12,
            format!("{sample}{{s_wait_samplecnt 0x0}}\nv_mov_b32 v27, 0"),
        ),
        // A wait for loads is not one for samples, nor the other way round.
        planted(
            "samplecnt",
            GFX12,
            format!("{sample}s_wait_loadcnt 0x0\n{{s_wait_samplecnt 0x0}}\nv_mov_b32 v28, v24"),
        ),
        planted(
            "loadcnt",
            GFX12,
            format!("{load}s_wait_samplecnt 0x0\n{{s_wait_loadcnt 0x0}}\nv_mov_b32 v28, v24"),
        ),
    ]);
}

/// No result can be outstanding in `bvhcnt`, so that no hazard of it can be planted.
#[test]
fn ray_intersections_are_refused() {
    let opcodes = modelgpu_amdgcn::opcodes(Target::Gfx1201);
    let rays: Vec<_> = opcodes
        .iter()
        .filter(|opcode| opcode.mnemonic.starts_with("image_bvh"))
        .collect();
    assert!(!rays.is_empty());
    for opcode in rays {
        assert!(
            matches!(opcode.standing, Standing::Refused(_)),
            "{}: plant a hazard of bvhcnt",
            opcode.mnemonic
        );
    }
}

#[test]
fn a_message_says_what_happened_and_what_to_do() {
    let body =
        "global_load_dword v2, v1, s[12:13]\nglobal_load_dword v3, v1, s[12:13]\nv_mov_b32 v4, v2"
            .to_owned();
    let hazards = run(Target::Gfx90a, &[body]);
    let [hazard] = &hazards[0][..] else {
        panic!("{hazards:?}")
    };
    let message = hazard.to_string();
    for part in [
        "kernel case_0, workgroup (0, 0, 0), wave 0, pc 0x",
        ": hazard vmcnt: v_mov_b32 reads v2 before the result has come of global_load_dword at pc 0x",
        ". The model goes on with the right value, and the hardware may not: wait before it until vmcnt is 1",
    ] {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}
