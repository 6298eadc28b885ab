//! Moves between lanes: DPP, SDWA's parts of registers, readlane and similar instructions, LDS
//! permutations.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, KEPT, LANES, Want};
use crate::inputs::integers;

/// The targets that permute all lanes of a wave of 64. RDNA 2 and 3 permute 32 lanes at a time.
const WHOLE_WAVE: &[Target] = &[
    Target::Gfx906,
    Target::Gfx908,
    Target::Gfx90a,
    Target::Gfx942,
    Target::Gfx950,
    Target::Gfx1201,
];

/// The lane that a DPP control reads; `None` outside of the row or wave.
type Source = fn(usize) -> Option<usize>;

const CONTROLS: &[(&str, Source)] = &[
    ("quad_perm:[3,0,2,1]", |lane| {
        Some(lane / 4 * 4 + [3, 0, 2, 1][lane % 4])
    }),
    ("row_shl:1", |lane| (lane % 16 < 15).then(|| lane + 1)),
    ("row_shl:15", |lane| (lane % 16 == 0).then(|| lane + 15)),
    ("row_shr:1", |lane| (lane % 16 > 0).then(|| lane - 1)),
    ("row_shr:8", |lane| (lane % 16 >= 8).then(|| lane - 8)),
    ("row_ror:3", |lane| {
        Some(lane / 16 * 16 + (lane % 16 + 13) % 16)
    }),
    ("wave_shl:1", |lane| (lane < 63).then(|| lane + 1)),
    ("wave_rol:1", |lane| Some((lane + 1) % 64)),
    ("wave_shr:1", |lane| (lane > 0).then(|| lane - 1)),
    ("wave_ror:1", |lane| Some((lane + 63) % 64)),
    ("row_mirror", |lane| Some(lane / 16 * 16 + 15 - lane % 16)),
    ("row_half_mirror", |lane| Some(lane / 8 * 8 + 7 - lane % 8)),
    ("row_bcast:15", |lane| {
        (lane >= 16).then(|| lane / 16 * 16 - 1)
    }),
    ("row_bcast:31", |lane| (lane >= 32).then_some(31)),
    ("row_newbcast:5", |lane| Some(lane / 16 * 16 + 5)),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = data_parallel();
    cases.extend(sub_dword());
    cases.extend(scalar_exchange());
    cases.extend(permutations());
    cases
}

fn data_parallel() -> Vec<Case> {
    let mut cases = Vec::new();
    for (control, source) in CONTROLS.iter().copied() {
        for bound in [false, true] {
            let suffix = if bound { " bound_ctrl:0" } else { "" };
            let body =
                format!("v_mov_b32_dpp v10, v2 {control} row_mask:0xf bank_mask:0xf{suffix}");
            cases.push(Case::new(
                "v_mov_b32",
                body,
                integers(),
                move |all, lane| {
                    Want::Word(match source(lane) {
                        Some(from) => all[from][0] as u32,
                        None if bound => 0,
                        None => KEPT,
                    })
                },
            ));
        }
    }
    // Masked rows and banks keep their results; inactive lanes are no source.
    cases.push(Case::new(
        "v_add_u32",
        "v_add_u32_dpp v10, v2, v4 quad_perm:[1,0,3,2] row_mask:0x5 bank_mask:0xe",
        integers(),
        |all, lane| {
            let written = lane / 16 % 2 == 0 && lane % 16 >= 4;
            let sum = (all[lane ^ 1][0] as u32).wrapping_add(all[lane][1] as u32);
            Want::Word(if written { sum } else { KEPT })
        },
    ));
    cases.push(Case::new(
        "v_mov_b32",
        "s_mov_b64 exec, 0xfff7
         v_mov_b32_dpp v10, v2 quad_perm:[3,3,3,3] row_mask:0xf bank_mask:0xf",
        integers(),
        |all, lane| {
            let written = (4..16).contains(&lane);
            Want::Word(if written {
                all[lane | 3][0] as u32
            } else {
                KEPT
            })
        },
    ));
    cases.push(Case::new(
        "v_add_f32",
        "v_mov_b32 v14, 1.0
         v_add_f32_dpp v10, -v14, |v14| row_shl:1 row_mask:0xf bank_mask:0xf",
        integers(),
        |_, lane| Want::Word(if lane % 16 < 15 { 0 } else { KEPT }),
    ));
    cases
}

/// A part of a register as SDWA names it.
fn part(name: &str, word: u32) -> u32 {
    match name {
        "BYTE_0" => word % 256,
        "BYTE_1" => word / 0x100 % 256,
        "BYTE_2" => word / 0x1_0000 % 256,
        "BYTE_3" => word / 0x100_0000,
        "WORD_0" => word % 0x1_0000,
        "WORD_1" => word / 0x1_0000,
        _ => word,
    }
}

const PARTS: [&str; 7] = [
    "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD",
];

fn sub_dword() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, name) in PARTS.into_iter().enumerate() {
        let other = PARTS[(number + 3) % 7];
        let body = format!(
            "v_add_u32_sdwa v10, v2, v4 dst_sel:DWORD dst_unused:UNUSED_PAD \
             src0_sel:{name} src1_sel:{other}"
        );
        cases.push(Case::new(
            "v_add_u32",
            body,
            integers(),
            move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| bits as u32);
                Want::Word(part(name, a).wrapping_add(part(other, b)))
            },
        ));
        let body = format!(
            "v_add_u32_sdwa v10, sext(v2), v4 dst_sel:DWORD dst_unused:UNUSED_PAD \
             src0_sel:{name} src1_sel:DWORD"
        );
        cases.push(Case::new(
            "v_add_u32",
            body,
            integers(),
            move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| bits as u32);
                let extended = match name.split_at(4).0 {
                    "BYTE" => part(name, a) as i8 as u32,
                    "WORD" => part(name, a) as i16 as u32,
                    _ => a,
                };
                Want::Word(extended.wrapping_add(b))
            },
        ));
        for (unused, fill) in [
            ("UNUSED_PAD", 0),
            ("UNUSED_SEXT", 1),
            ("UNUSED_PRESERVE", 2),
        ] {
            let body = format!(
                "v_add_u32_sdwa v10, v2, v4 dst_sel:{name} dst_unused:{unused} \
                 src0_sel:DWORD src1_sel:DWORD"
            );
            cases.push(Case::new(
                "v_add_u32",
                body,
                integers(),
                move |all, lane| {
                    let [a, b, ..] = all[lane].map(|bits| bits as u32);
                    Want::Word(placed(name, fill, a.wrapping_add(b)))
                },
            ));
        }
    }
    // A comparison writes its mask to the register that the instruction names.
    cases.push(Case::new(
        "v_cmp_gt_u32",
        "v_cmp_gt_u32_sdwa s[20:21], v2, v4 src0_sel:BYTE_1 src1_sel:WORD_1
         v_cndmask_b32 v10, 0, 1, s[20:21]",
        integers(),
        |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| bits as u32);
            Want::Word((part("BYTE_1", a) > part("WORD_1", b)).into())
        },
    ));
    cases
}

/// A result in its part of the register. `fill` fills the rest: 0 with zeros, 1 with its sign above
/// and zeros below, 2 with the old contents.
fn placed(name: &str, fill: u32, result: u32) -> u32 {
    let (width, place) = match name.split_once('_') {
        Some(("BYTE", number)) => (8, number.parse::<u32>().expect("a number") * 8),
        Some((_, number)) => (16, number.parse::<u32>().expect("a number") * 16),
        None => return result,
    };
    let part = (result % (1 << width)) << place;
    let above = u64::from(u32::MAX) << (place + width);
    match fill {
        0 => part,
        1 if result >> (width - 1) & 1 == 1 => part | above as u32,
        1 => part,
        _ => {
            let mask = ((1u32 << width) - 1) << place;
            KEPT & !mask | part
        }
    }
}

fn scalar_exchange() -> Vec<Case> {
    vec![
        Case::new(
            "v_readlane_b32",
            "s_mov_b32 s20, 77
             v_readlane_b32 s21, v2, s20
             v_mov_b32 v10, s21",
            integers(),
            // Hardware uses 6 bits of the lane's number.
            |all, _| Want::Word(all[13][0] as u32),
        ),
        Case::new(
            "v_readfirstlane_b32",
            "s_mov_b64 exec, 0xff00
             v_readfirstlane_b32 s20, v2
             s_mov_b64 exec, 0
             v_readfirstlane_b32 s21, v2
             s_mov_b64 exec, -1
             v_mov_b32 v10, s20
             v_mov_b32 v11, s21",
            integers(),
            |all, _| Want::Long(u64::from(all[8][0] as u32) | all[0][0] << 32),
        ),
        Case::new(
            "v_writelane_b32",
            "s_mov_b64 exec, 0
             v_writelane_b32 v10, 33, 5
             s_mov_b64 exec, -1",
            integers(),
            |_, lane| Want::Word(if lane == 5 { 33 } else { KEPT }),
        ),
        Case::new(
            "v_mbcnt_lo_u32_b32",
            "v_mbcnt_lo_u32_b32 v10, v2, v4",
            integers(),
            |all, lane| {
                let [a, b, ..] = all[lane];
                let below = (0..lane.min(32)).filter(|n| a >> n & 1 == 1).count();
                Want::Word((b as u32).wrapping_add(below as u32))
            },
        ),
        Case::new(
            "v_mbcnt_hi_u32_b32",
            "v_mbcnt_hi_u32_b32 v10, v2, v4",
            integers(),
            |all, lane| {
                let [a, b, ..] = all[lane];
                let below = (32..lane.max(32))
                    .filter(|n| a >> (n - 32) & 1 == 1)
                    .count();
                Want::Word((b as u32).wrapping_add(below as u32))
            },
        ),
    ]
}

fn permutations() -> Vec<Case> {
    vec![
        Case::new(
            "ds_bpermute_b32",
            "v_mul_u32_u24 v14, 28, v0
             ds_bpermute_b32 v10, v14, v2 offset:8",
            integers(),
            |all, lane| Want::Word(all[(7 * lane + 2) % LANES][0] as u32),
        )
        .only(WHOLE_WAVE),
        Case::new(
            "ds_bpermute_b32",
            "v_xor_b32 v14, 1, v0
             v_lshlrev_b32 v14, 2, v14
             s_mov_b64 exec, 0x7fff
             ds_bpermute_b32 v10, v14, v2",
            integers(),
            // Lane 14 reads lane 15, which is inactive.
            |all, lane| match lane {
                14 => Want::Word(0),
                0..14 => Want::Word(all[lane ^ 1][0] as u32),
                _ => Want::Word(KEPT),
            },
        ),
        Case::new(
            "ds_permute_b32",
            "v_mul_u32_u24 v14, 20, v0
             ds_permute_b32 v10, v14, v2",
            integers(),
            // 5 times 13 is 1 modulo 64.
            |all, lane| Want::Word(all[13 * lane % LANES][0] as u32),
        )
        .only(WHOLE_WAVE),
        Case::new(
            "ds_swizzle_b32",
            "ds_swizzle_b32 v10, v2 offset:swizzle(QUAD_PERM,2,3,1,0)",
            integers(),
            |all, lane| Want::Word(all[lane / 4 * 4 + [2, 3, 1, 0][lane % 4]][0] as u32),
        ),
        Case::new(
            "ds_swizzle_b32",
            "ds_swizzle_b32 v10, v2 offset:swizzle(SWAP,8)",
            integers(),
            |all, lane| Want::Word(all[lane ^ 8][0] as u32),
        ),
        Case::new(
            "ds_swizzle_b32",
            "ds_swizzle_b32 v10, v2 offset:swizzle(BROADCAST,16,3)",
            integers(),
            |all, lane| Want::Word(all[lane / 16 * 16 + 3][0] as u32),
        ),
    ]
}
