//! Results of accesses to memory.

use modelgpu_amdgcn::Target;

use crate::run::{GFX9, GFX11, GFX12, GFX90A, check, planted, run};

const BOTH: &[Target] = &[
    Target::Gfx90a,
    Target::Gfx942,
    Target::Gfx950,
    Target::Gfx1100,
];

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
        // CDNA counts stores with loads, and RDNA 3 counts them apart.
        planted(
            "vmcnt",
            GFX9,
            format!(
                "{load}global_store_dword v1, v0, s[12:13]\n{{s_waitcnt vmcnt(1)}}\nv_mov_b32 v4, v2"
            ),
        ),
        planted(
            "vmcnt",
            GFX11,
            format!(
                "{load}global_store_dword v1, v0, s[12:13]\ns_waitcnt vmcnt(1)\n{{s_waitcnt vmcnt(0)}}\nv_mov_b32 v4, v2"
            ),
        ),
        planted(
            "vmcnt",
            GFX90A,
            "global_atomic_add v2, v1, v0, s[12:13] glc\n{s_waitcnt vmcnt(0)}\nv_mov_b32 v4, v2",
        ),
        planted(
            "vmcnt",
            GFX9,
            "global_load_dword a2, v1, s[12:13]\n{s_waitcnt vmcnt(0)}\nv_accvgpr_read_b32 v4, a2",
        ),
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
