//! Instructions and forms that RDNA has and CDNA lacks, in waves of 64. `amdgcn/tests/wave_sizes` has
//! waves of 32, and dual instructions.

use modelgpu_amdgcn::Target;

use crate::float::f;
use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{self, Case, Inputs, KEPT, Want, executed};
use crate::inputs::{doubles, halves, integers, singles};

const RDNA: &[Target] = &[Target::Gfx1030, Target::Gfx1100, Target::Gfx1201];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = without_effect();
    cases.extend(modes());
    cases.extend(updates_of_exec());
    cases.extend(comparisons());
    cases.extend(extremes());
    cases.extend(sixteen_bits());
    cases.extend(moves());
    cases.extend(lanes());
    cases.extend(dots());
    cases.extend(integers_of_singles());
    cases.extend(forms());
    let mut cases: Vec<Case> = cases.into_iter().map(|case| case.only(RDNA)).collect();
    cases.extend(permutations_of_halves());
    cases
}

/// Two numbers of 16 bits, towards zero and to the limits; of a NaN, 0.
fn integers_of_singles() -> Vec<Case> {
    [
        ("v_cvt_pk_i16_f32", -32768.0, 32767.0),
        ("v_cvt_pk_u16_f32", 0.0, 65535.0),
    ]
    .into_iter()
    .flat_map(|(name, least, most)| {
        // The second one has numbers in the type's range.
        [("v2, -v4", false), ("v14, v15", true)].map(|(sources, small)| {
            let body = format!(
                "v_cvt_f32_i32 v14, v0
                 v_mul_f32 v15, 0xc3a0199a, v14
                 v_mul_f32 v14, 0x4436accd, v14
                 {name} v10, {sources}"
            );
            Case::new(name, body, singles(), move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| f64::from(f(bits)));
                let n = lane as f32;
                let numbers = match small {
                    true => [
                        f64::from(f32::from_bits(0x4436_accd) * n),
                        f64::from(f32::from_bits(0xc3a0_199a) * n),
                    ],
                    false => [a, -b],
                };
                let [low, high] = numbers.map(|number| match number.is_nan() {
                    true => 0,
                    false => number.trunc().clamp(least, most) as i64 as u32 & 0xffff,
                });
                Want::Word(low | high << 16)
            })
        })
    })
    .collect()
}

fn without_effect() -> Vec<Case> {
    harness::without_effect(&[
        ("s_clause", "s_clause 0x1"),
        ("s_delay_alu", "s_delay_alu instid0(VALU_DEP_1)"),
        ("s_gl1_inv", "s_gl1_inv"),
        (
            "s_set_inst_prefetch_distance",
            "s_set_inst_prefetch_distance 0x1",
        ),
        ("s_ttracedata_imm", "s_ttracedata_imm 0x1"),
        ("s_wait_event", "s_wait_event 0x0"),
        ("s_wait_idle", "s_wait_idle"),
        ("s_waitcnt_depctr", "s_waitcnt_depctr 0xfffe"),
        ("s_waitcnt_expcnt", "s_waitcnt_expcnt null, 0x0"),
        ("s_waitcnt_lgkmcnt", "s_waitcnt_lgkmcnt null, 0x0"),
        ("s_waitcnt_vmcnt", "s_waitcnt_vmcnt null, 0x0"),
        ("s_waitcnt_vscnt", "s_waitcnt_vscnt null, 0x0"),
        ("v_pipeflush", "v_pipeflush"),
        ("buffer_gl0_inv", "buffer_gl0_inv"),
        ("buffer_gl1_inv", "buffer_gl1_inv"),
    ])
}

fn modes() -> Vec<Case> {
    let mode = |mnemonic, value: u32, want: u32, back: &str| {
        let body = format!(
            "{mnemonic} {value:#x}
             s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)
             v_mov_b32 v10, s20
             {back}"
        );
        Case::new(mnemonic, body, integers(), move |_, _| Want::Word(want))
    };
    vec![
        // All denormal numbers are on, and all rounding is to nearest even at first.
        mode("s_round_mode", 6, 0xf6, "s_round_mode 0x0"),
        mode("s_denorm_mode", 5, 0x50, "s_denorm_mode 0xf"),
        Case::new(
            "s_sendmsg_rtn_b64",
            "s_sendmsg_rtn_b64 s[20:21], sendmsg(MSG_RTN_GET_REALTIME)
             s_sendmsg_rtn_b64 s[22:23], sendmsg(MSG_RTN_GET_REALTIME)
             s_waitcnt lgkmcnt(0)
             s_sub_u32 s22, s22, s20
             v_mov_b32 v10, s22",
            integers(),
            // The test's clock has a tick for each look.
            |_, _| Want::Word(1),
        ),
        Case::new(
            "s_pack_hl_b32_b16",
            "s_mov_b32 s20, 0x12345678
             s_mov_b32 s21, 0x9abcdef0
             s_pack_hl_b32_b16 s20, s20, s21
             v_mov_b32 v10, s20",
            integers(),
            |_, _| Want::Word(0xdef0_1234),
        ),
        // The register NULL reads as 0 and takes any result.
        Case::new(
            "s_mov_b32",
            "s_mov_b32 s20, null
             s_mov_b32 null, 7
             s_mov_b32 s21, null
             s_or_b32 s20, s20, s21
             v_mov_b32 v10, s20",
            integers(),
            |_, _| Want::Word(0),
        ),
    ]
}

type Update = fn(u32, u32) -> u32;

fn updates_of_exec() -> Vec<Case> {
    let saves: [(&str, Update); 10] = [
        ("s_and_saveexec_b32", |s, e| s & e),
        ("s_or_saveexec_b32", |s, e| s | e),
        ("s_xor_saveexec_b32", |s, e| s ^ e),
        ("s_nand_saveexec_b32", |s, e| !(s & e)),
        ("s_nor_saveexec_b32", |s, e| !(s | e)),
        ("s_xnor_saveexec_b32", |s, e| !(s ^ e)),
        ("s_andn1_saveexec_b32", |s, e| !s & e),
        ("s_orn1_saveexec_b32", |s, e| !s | e),
        ("s_andn2_saveexec_b32", |s, e| s & !e),
        ("s_orn2_saveexec_b32", |s, e| s | !e),
    ];
    let writes: [(&str, Update); 2] = [
        ("s_andn1_wrexec_b32", |s, e| !s & e),
        ("s_andn2_wrexec_b32", |s, e| s & !e),
    ];
    let mut cases = Vec::new();
    for (name, update) in saves.into_iter().chain(writes) {
        for [source, exec] in [[0x1234_5678u32, 0x0ff0_f00f], [0, 0], [!0, !0]] {
            let body = format!(
                "s_mov_b64 s[24:25], exec
                 s_mov_b32 exec_lo, {exec:#x}
                 s_mov_b32 s20, {source:#x}
                 {name} s21, s20
                 s_cselect_b32 s23, 1, 0
                 s_mov_b32 s22, exec_lo
                 s_mov_b64 exec, s[24:25]
                 v_mov_b32 v10, s21
                 v_mov_b32 v11, s22
                 v_mov_b32 v12, s23"
            );
            let new = update(source, exec);
            let told = if name.contains("_saveexec_") {
                exec
            } else {
                new
            };
            cases.push(Case::new(name, body, integers(), move |_, _| {
                Want::All([told, new, u32::from(new != 0), KEPT])
            }));
        }
    }
    cases
}

/// The comparisons that write EXEC give the mask of those that write a register, and leave VCC.
fn comparisons() -> Vec<Case> {
    // Some have other names on RDNA 2.
    let names = [Target::Gfx1030, Target::Gfx1100]
        .into_iter()
        .flat_map(|target| executed(target).values());
    let names: std::collections::BTreeSet<_> =
        names.filter(|name| name.starts_with("v_cmpx_")).collect();
    let mut cases = Vec::new();
    for name in names {
        let plain = name.replace("v_cmpx_", "v_cmp_");
        let is_class = name.contains("_class_");
        let (inputs, operands): (Inputs, _) = match &name[name.len() - 3..] {
            "f16" => (halves(), "v2, v4"),
            "f32" => (singles(), "v2, v4"),
            "f64" if is_class => (doubles(), "v[2:3], v4"),
            "f64" => (doubles(), "v[2:3], v[4:5]"),
            "i64" | "u64" => (integers(), "v[2:3], v[4:5]"),
            _ => (integers(), "v2, v4"),
        };
        let body = format!(
            "s_mov_b64 s[24:25], exec
             s_mov_b32 exec_hi, 0x7fffffff
             {plain} s[20:21], {operands}
             s_mov_b32 vcc_lo, 0x1234
             s_mov_b32 vcc_hi, 0x5678
             {name} {operands}
             s_mov_b64 s[22:23], exec
             s_mov_b64 exec, s[24:25]
             s_xor_b64 s[20:21], s[20:21], s[22:23]
             v_mov_b32 v10, s20
             v_mov_b32 v11, s21
             v_mov_b32 v12, vcc_lo
             v_mov_b32 v13, vcc_hi"
        );
        cases.push(Case::new(name, body, inputs, |_, _| {
            Want::All([0, 0, 0x1234, 0x5678])
        }));
    }
    cases
}

fn extremes() -> Vec<Case> {
    let mut cases = Vec::new();
    let integer = |name: &'static str, want: fn(i64, i64, i64) -> i64, signed: bool| {
        Case::new(
            name,
            format!("{name} v10, v2, v4, v6"),
            integers(),
            move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| match signed {
                    true => i64::from(bits as i32),
                    false => i64::from(bits as u32),
                });
                Want::Word(want(a, b, c) as u32)
            },
        )
    };
    for (name, signed) in [("v_maxmin_i32", true), ("v_maxmin_u32", false)] {
        cases.push(integer(name, |a, b, c| a.max(b).min(c), signed));
    }
    for (name, signed) in [("v_minmax_i32", true), ("v_minmax_u32", false)] {
        cases.push(integer(name, |a, b, c| a.min(b).max(c), signed));
    }
    // NaNs have tests in the plain minima and maxima.
    for (name, is_maxmin) in [("v_maxmin_f32", true), ("v_minmax_f32", false)] {
        let body = format!("{name} v10, v2, v4, v6");
        cases.push(Case::new(name, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(f);
            if a.is_nan() || b.is_nan() || c.is_nan() || a == b || a == c || b == c {
                return Want::Any;
            }
            Want::Single(if is_maxmin {
                a.max(b).min(c)
            } else {
                a.min(b).max(c)
            })
        }));
    }
    for (name, is_maxmin) in [("v_maxmin_f16", true), ("v_minmax_f16", false)] {
        let body = format!("{name} v10, v2, v4, v6\nv_and_b32 v10, 0xffff, v10");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| half_to_f64(bits as u16));
            if a.is_nan() || b.is_nan() || c.is_nan() || a == b || a == c || b == c {
                return Want::Any;
            }
            Want::Half(f64_to_half(if is_maxmin {
                a.max(b).min(c)
            } else {
                a.min(b).max(c)
            }))
        }));
    }
    cases.push(Case::new(
        "v_xor3_b32",
        "v_xor3_b32 v10, v2, v4, v6",
        integers(),
        |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| bits as u32);
            // The sum of bits modulo 2.
            let odd = |place: u32| (a >> place & 1) + (b >> place & 1) + (c >> place & 1);
            Want::Word((0..32).fold(0, |bits, place| bits | (odd(place) & 1) << place))
        },
    ));
    cases
}

type Short = fn(u32, u32, u32) -> u32;

/// 16-bit results, in either half: the other half stays.
fn sixteen_bits() -> Vec<Case> {
    let mut cases = Vec::new();
    let shorts: [(&str, &str, Short); 6] = [
        ("v_and_b16", "v2, v4", |a, b, _| a & b),
        ("v_or_b16", "v2, v4", |a, b, _| a | b),
        ("v_xor_b16", "v2, v4", |a, b, _| a ^ b),
        ("v_add_nc_u16", "v2, v4", |a, b, _| a + b),
        ("v_mul_lo_u16", "v2, v4", |a, b, _| a * b),
        ("v_max_u16", "v2, v4", |a, b, _| a.max(b)),
    ];
    for (name, operands, want) in shorts {
        for (select, shifts) in [("", [0, 0, 0]), (" op_sel:[1,0,1]", [16, 0, 16])] {
            let body = format!("{name} v10, {operands}{select}");
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| bits as u32);
                let result = want(a >> shifts[0] & 0xffff, b & 0xffff, c & 0xffff) & 0xffff;
                Want::Word(KEPT & !(0xffff << shifts[2]) | result << shifts[2])
            }));
        }
    }
    for (name, negates) in [("v_mov_b16", false), ("v_not_b16", true)] {
        let flip = if negates { 0xffff } else { 0 };
        // With the long and the short encoding; the highest bit of a short register's number selects the
        // high half: v130 for v2.
        for (body, shifts) in [
            (format!("{name}_e64 v10, v2"), [0, 0]),
            (format!("{name}_e64 v10, v2 op_sel:[1,0]"), [16, 0]),
            (format!("{name}_e64 v10, v2 op_sel:[0,1]"), [0, 16]),
            (short(name, 10, 2 + 128), [16, 0]),
            (short(name, 10 + 128, 2), [0, 16]),
        ] {
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                let result = (all[lane][0] as u32 >> shifts[0] & 0xffff) ^ flip;
                Want::Word(KEPT & !(0xffff << shifts[1]) | result << shifts[1])
            }));
        }
    }
    let swap = short("v_swap_b16", 10, 11);
    let body = format!("v_mov_b32 v10, v2\nv_mov_b32 v11, v4\n{swap}");
    cases.push(Case::new("v_swap_b16", body, integers(), |all, lane| {
        let [a, b, ..] = all[lane].map(|bits| bits as u32);
        let mixed = |high: u32, low: u32| u64::from(high & 0xffff_0000 | low & 0xffff);
        Want::Long(mixed(a, b) | mixed(b, a) << 32)
    }));
    let body = "s_mov_b32 vcc_lo, 0x55555555
         s_mov_b32 vcc_hi, 0x33333333
         v_cndmask_b16 v10, v2, v4, vcc";
    cases.push(Case::new("v_cndmask_b16", body, integers(), |all, lane| {
        let mask = if lane < 32 {
            0x5555_5555u32
        } else {
            0x3333_3333
        };
        let chosen = all[lane][(mask >> (lane % 32) & 1) as usize];
        Want::Word(KEPT & 0xffff_0000 | chosen as u32 & 0xffff)
    }));
    for (name, signed) in [("v_cvt_i32_i16", true), ("v_cvt_u32_u16", false)] {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            integers(),
            move |all, lane| {
                let low = all[lane][0] as u16;
                Want::Word(if signed {
                    low as i16 as u32
                } else {
                    low.into()
                })
            },
        ));
    }
    // Sums of products, rounded once.
    for (name, text, order) in [
        ("v_fmac_f16", "v_fmac_f16 v10, v2, v4", [0, 1, 2]),
        ("v_fma_f16", "v_fma_f16 v10, v2, v4, v6", [0, 1, 2]),
        // The constant 0x4248 is pi.
        ("v_fmamk_f16", "v_fmamk_f16 v10, v2, 0x4248, v4", [0, 3, 1]),
        ("v_fmaak_f16", "v_fmaak_f16 v10, v2, v4, 0x4248", [0, 1, 3]),
    ] {
        let body = format!("v_mov_b32 v10, v6\n{text}\nv_and_b32 v10, 0xffff, v10");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| bits as u16);
            let numbers = [a, b, c, 0x4248].map(half_to_f64);
            let [a, b, c] = order.map(|place| numbers[place]);
            // Exact in double precision, unless the terms are far apart.
            if a * b + c - c != a * b || a * b + c - a * b != c {
                return Want::Any;
            }
            Want::Half(f64_to_half(a * b + c))
        }));
    }
    cases
}

/// The 32-bit encoding of a VOP1 with the numbers of the registers' halves.
fn short(name: &str, result: u32, source: u32) -> String {
    let opcode = modelgpu_amdgcn::opcodes(Target::Gfx1100)
        .into_iter()
        .find(|opcode| opcode.encoding == "VOP1" && opcode.mnemonic == name);
    let number = u32::from(opcode.expect("an opcode").number);
    format!(
        ".long {:#x}",
        0x7e00_0000 | result << 17 | number << 9 | (0x100 + source)
    )
}

fn moves() -> Vec<Case> {
    vec![
        Case::new(
            "v_movrels_b32",
            "s_mov_b32 m0, 4\nv_movrels_b32 v10, v2",
            integers(),
            |all, lane| Want::Word(all[lane][2] as u32),
        ),
        Case::new(
            "v_movreld_b32",
            "s_mov_b32 m0, 1\nv_movreld_b32 v9, v2",
            integers(),
            |all, lane| Want::Word(all[lane][0] as u32),
        ),
    ]
}

fn lanes() -> Vec<Case> {
    let moved = |name: &'static str, text: &str, from: fn(usize) -> usize| {
        Case::new(name, text, integers(), move |all, lane| {
            Want::Word(all[from(lane)][0] as u32)
        })
    };
    // The scalars have the numbers 15 to 0 of the lanes of a row.
    let numbers = "s_mov_b32 s20, 0x89abcdef\ns_mov_b32 s21, 0x01234567";
    vec![
        moved(
            "v_permlane16_b32",
            &format!("{numbers}\nv_permlane16_b32 v10, v2, s20, s21"),
            |lane| lane ^ 15,
        ),
        moved(
            "v_permlanex16_b32",
            &format!("{numbers}\nv_permlanex16_b32 v10, v2, s20, s21"),
            |lane| lane ^ 31,
        ),
        moved("v_permlane64_b32", "v_permlane64_b32 v10, v2", |lane| {
            lane ^ 32
        }),
        // An inactive lane is a source only with the first bit of op_sel.
        Case::new(
            "v_permlanex16_b32",
            format!(
                "{numbers}
                 s_mov_b64 exec, 0xffff
                 v_permlanex16_b32 v10, v2, s20, s21
                 v_permlanex16_b32 v11, v2, s20, s21 op_sel:[1,0]
                 v_permlanex16_b32 v12, v2, s20, s21 op_sel:[0,1]"
            ),
            integers(),
            |all, lane| match lane {
                0..16 => Want::All([KEPT, all[lane ^ 31][0] as u32, 0, KEPT]),
                _ => Want::All([KEPT; 4]),
            },
        ),
    ]
}

/// RDNA 4 permutes the whole wave (`lanes.rs`).
fn permutations_of_halves() -> Vec<Case> {
    let moved = |name: &'static str, text: &str, from: fn(usize) -> usize| {
        let case = Case::new(name, text, integers(), move |all, lane| {
            Want::Word(all[from(lane)][0] as u32)
        });
        case.only(&[Target::Gfx1030, Target::Gfx1100])
    };
    vec![
        moved(
            "ds_bpermute_b32",
            "v_mul_u32_u24 v14, 28, v0\nds_bpermute_b32 v10, v14, v2 offset:8",
            |lane| lane / 32 * 32 + (7 * lane + 2) % 32,
        ),
        // 5 times 13 is 1 modulo 32.
        moved(
            "ds_permute_b32",
            "v_mul_u32_u24 v14, 20, v0\nds_permute_b32 v10, v14, v2",
            |lane| lane / 32 * 32 + 13 * lane % 32,
        ),
    ]
}

/// The bits of neg_lo tell which source has signs.
fn dots() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, bits) in [("v_dot4_i32_iu8", 8u32), ("v_dot8_i32_iu4", 4)] {
        for signs in 0..4u32 {
            for clamp in [false, true] {
                let body = format!(
                    "{name} v10, v2, v4, v6 neg_lo:[{},{},0]{}",
                    signs & 1,
                    signs >> 1,
                    if clamp { " clamp" } else { "" }
                );
                cases.push(Case::new(name, body, integers(), move |all, lane| {
                    let [a, b, c, _] = all[lane];
                    let element = |word: u64, place: u32, signed: bool| {
                        let value = (word >> (place * bits)) as i64 & ((1 << bits) - 1);
                        value
                            - if signed && value >> (bits - 1) == 1 {
                                1 << bits
                            } else {
                                0
                            }
                    };
                    let sum: i64 = (0..32 / bits)
                        .map(|place| {
                            element(a, place, signs & 1 == 1) * element(b, place, signs >> 1 == 1)
                        })
                        .sum::<i64>()
                        + i64::from(c as i32);
                    let limited = sum.max(i32::MIN.into()).min(i32::MAX.into());
                    Want::Word(if clamp { limited } else { sum } as u32)
                }));
            }
        }
    }
    cases
}

/// Encodings of known instructions that CDNA lacks.
fn forms() -> Vec<Case> {
    let sum = |text: &str, from: fn(usize) -> usize| {
        Case::new("v_add_nc_u32", text, integers(), move |all, lane| {
            let other = all[from(lane)][0] as u32;
            Want::Word(other.wrapping_add(all[lane][1] as u32))
        })
    };
    let masks = "row_mask:0xf bank_mask:0xf";
    let mut cases = vec![
        sum(
            "v_add_nc_u32_dpp v10, v2, v4 dpp8:[7,6,5,4,3,2,1,0]",
            |lane| lane ^ 7,
        ),
        sum(
            "v_add_nc_u32_e64_dpp v10, v2, v4 dpp8:[1,0,3,2,5,4,7,6]",
            |lane| lane ^ 1,
        ),
        sum(
            &format!("v_add_nc_u32_dpp v10, v2, v4 row_xmask:5 {masks}"),
            |lane| lane ^ 5,
        ),
        sum(
            &format!("v_add_nc_u32_dpp v10, v2, v4 row_share:3 {masks}"),
            |lane| lane / 16 * 16 + 3,
        ),
        sum(
            &format!("v_add_nc_u32_e64_dpp v10, v2, v4 row_ror:3 {masks}"),
            |lane| lane / 16 * 16 + (lane + 13) % 16,
        ),
    ];
    // An inactive lane is a source with the bit fi.
    for (fetches, text) in [(false, ""), (true, " fi:1")] {
        let body = format!(
            "s_mov_b64 exec, 0xfff7
             v_mov_b32_dpp v10, v2 quad_perm:[3,3,3,3] {masks}{text}"
        );
        cases.push(Case::new(
            "v_mov_b32",
            body,
            integers(),
            move |all, lane| {
                let is_active = lane < 16 && lane != 3;
                Want::Word(if is_active && (fetches || lane > 3) {
                    all[lane | 3][0] as u32
                } else {
                    KEPT
                })
            },
        ));
    }
    cases.push(Case::new(
        "v_add3_u32",
        "v_add3_u32 v10, v2, 0x12345678, v4",
        integers(),
        |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| bits as u32);
            Want::Word(a.wrapping_add(b).wrapping_add(0x1234_5678))
        },
    ));
    cases.push(Case::new(
        "v_add_co_u32",
        "v_add_co_u32 v10, null, v2, v4",
        integers(),
        |all, lane| Want::Word((all[lane][0] as u32).wrapping_add(all[lane][1] as u32)),
    ));
    cases
}
