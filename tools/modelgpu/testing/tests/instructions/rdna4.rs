//! Instructions that RDNA 4 has and RDNA 3 lacks, in waves of 64. `amdgcn/tests/wave_sizes` has waves of 32, and
//! `amdgcn/tests/waiting` barriers that signal and wait apart.

use modelgpu_amdgcn::Target;

use crate::atomics::{Function, atomic};
use crate::float::{d, f, greater, lesser};
use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{self, Case, Inputs, KEPT, Want, memory_byte};
use crate::inputs::{doubles, halves, integers, singles};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = without_effect();
    cases.extend(scalar_floats());
    cases.extend(scalar_comparisons());
    cases.extend(scalar_conversions());
    cases.extend(scalar_approximations());
    cases.extend(wide_scalars());
    cases.extend(scalar_loads());
    cases.extend(extremes());
    cases.extend(lanes());
    cases.extend(counters());
    let mut cases: Vec<Case> = cases
        .into_iter()
        .map(|case| case.only(&[Target::Gfx1201]))
        .collect();
    // RDNA 3 has one of these, under another name.
    cases.extend(differences());
    cases
}

fn without_effect() -> Vec<Case> {
    harness::without_effect(&[
        ("s_sleep_var", "s_sleep_var 0"),
        ("s_wait_alu", "s_wait_alu 0xfffe"),
        ("s_wait_loadcnt", "s_wait_loadcnt 0x0"),
        ("s_wait_storecnt", "s_wait_storecnt 0x0"),
        ("s_wait_samplecnt", "s_wait_samplecnt 0x0"),
        ("s_wait_bvhcnt", "s_wait_bvhcnt 0x0"),
        ("s_wait_expcnt", "s_wait_expcnt 0x0"),
        ("s_wait_dscnt", "s_wait_dscnt 0x0"),
        ("s_wait_kmcnt", "s_wait_kmcnt 0x0"),
        ("s_wait_loadcnt_dscnt", "s_wait_loadcnt_dscnt 0x0"),
        ("s_wait_storecnt_dscnt", "s_wait_storecnt_dscnt 0x0"),
        ("s_prefetch_inst", "s_prefetch_inst s[12:13], 0x0, s14, 0"),
        (
            "s_prefetch_inst_pc_rel",
            "s_prefetch_inst_pc_rel 0x0, s14, 0",
        ),
        ("s_prefetch_data", "s_prefetch_data s[12:13], 0x0, s14, 0"),
        (
            "s_buffer_prefetch_data",
            "s_buffer_prefetch_data s[12:15], 0x0, s14, 0",
        ),
        (
            "s_prefetch_data_pc_rel",
            "s_prefetch_data_pc_rel 0x0, s14, 0",
        ),
        ("global_inv", "global_inv scope:SCOPE_DEV"),
        ("global_wb", "global_wb scope:SCOPE_DEV"),
        ("global_wbinv", "global_wbinv scope:SCOPE_DEV"),
        ("s_barrier_signal", "s_barrier_signal -1\ns_barrier_wait -1"),
        ("s_barrier_wait", "s_barrier_signal -1\ns_barrier_wait -1"),
    ])
}

/// Executes scalar instructions for each lane in turn. They find the low words of the lane's inputs a to c in
/// s20 to s22, and leave their result in s23, which holds c at first.
fn for_each_lane(instructions: &str) -> String {
    format!(
        "s_mov_b32 s40, 0
         1:
         v_readlane_b32 s20, v2, s40
         v_readlane_b32 s21, v4, s40
         v_readlane_b32 s22, v6, s40
         s_mov_b32 s23, s22
         {instructions}
         v_writelane_b32 v10, s23, s40
         s_add_co_u32 s40, s40, 1
         s_cmp_lg_u32 s40, 64
         s_cbranch_scc1 1b"
    )
}

type Single = fn(f32, f32, f32) -> f32;
type Double = fn(f64, f64, f64) -> f64;

/// IEEE 754-2019's minimum and maximum: a NaN if one of the two is a NaN.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        lesser(a, b)
    }
}

fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        greater(a, b)
    }
}

fn scalar_floats() -> Vec<Case> {
    let one = "s23, s20";
    let two = "s23, s20, s21";
    let singles_of: [(&str, &str, Single); 14] = [
        ("s_add_f32", two, |a, b, _| a + b),
        ("s_sub_f32", two, |a, b, _| a - b),
        ("s_mul_f32", two, |a, b, _| a * b),
        ("s_min_num_f32", two, |a, b, _| {
            lesser(a.into(), b.into()) as f32
        }),
        ("s_max_num_f32", two, |a, b, _| {
            greater(a.into(), b.into()) as f32
        }),
        ("s_minimum_f32", two, |a, b, _| {
            minimum(a.into(), b.into()) as f32
        }),
        ("s_maximum_f32", two, |a, b, _| {
            maximum(a.into(), b.into()) as f32
        }),
        ("s_fmac_f32", two, |a, b, c| a.mul_add(b, c)),
        ("s_fmamk_f32", "s23, s20, 0x40a00000, s21", |a, b, _| {
            a.mul_add(5.0, b)
        }),
        ("s_fmaak_f32", "s23, s20, s21, 0x40a00000", |a, b, _| {
            a.mul_add(b, 5.0)
        }),
        ("s_ceil_f32", one, |a, _, _| a.ceil()),
        ("s_floor_f32", one, |a, _, _| a.floor()),
        ("s_trunc_f32", one, |a, _, _| a.trunc()),
        ("s_rndne_f32", one, |a, _, _| a.round_ties_even()),
    ];
    let mut cases = Vec::new();
    for (name, operands, function) in singles_of {
        let body = for_each_lane(&format!("{name} {operands}"));
        cases.push(Case::new(name, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(f);
            Want::Single(function(a, b, c))
        }));
    }
    let halves_of: [(&str, &str, Double); 12] = [
        ("s_add_f16", two, |a, b, _| a + b),
        ("s_sub_f16", two, |a, b, _| a - b),
        ("s_mul_f16", two, |a, b, _| a * b),
        ("s_min_num_f16", two, |a, b, _| lesser(a, b)),
        ("s_max_num_f16", two, |a, b, _| greater(a, b)),
        ("s_minimum_f16", two, |a, b, _| minimum(a, b)),
        ("s_maximum_f16", two, |a, b, _| maximum(a, b)),
        ("s_fmac_f16", two, |a, b, c| a.mul_add(b, c)),
        ("s_ceil_f16", one, |a, _, _| a.ceil()),
        ("s_floor_f16", one, |a, _, _| a.floor()),
        ("s_trunc_f16", one, |a, _, _| a.trunc()),
        ("s_rndne_f16", one, |a, _, _| a.round_ties_even()),
    ];
    for (name, operands, function) in halves_of {
        let body = for_each_lane(&format!("{name} {operands}"));
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| half_to_f64(bits as u16));
            Want::Half(f64_to_half(function(a, b, c)))
        }));
    }
    // Without denormal numbers, those of both signs count as zero, as sources and as results.
    for (name, operands, want) in [
        ("s_add_f32", "0x00000001, 0", 0),
        ("s_add_f32", "0x80000001, 0x80000000", 0x8000_0000),
        ("s_mul_f32", "0x00800000, 0.5", 0),
    ] {
        let [first, second] = operands.split_once(", ").map_or([""; 2], |(a, b)| [a, b]);
        let body = format!(
            "s_mov_b32 s20, {first}
             s_mov_b32 s21, {second}
             s_denorm_mode 0x0
             {name} s23, s20, s21
             s_denorm_mode 0xf
             v_mov_b32 v10, s23"
        );
        cases.push(Case::new(name, body, integers(), move |_, _| {
            Want::Word(want)
        }));
    }
    cases
}

fn scalar_comparisons() -> Vec<Case> {
    type Test = fn(f64, f64) -> bool;
    let unordered: Test = |a, b| a.is_nan() || b.is_nan();
    let tests: [(&str, Test); 14] = [
        ("lt", |a, b| a < b),
        ("eq", |a, b| a == b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("lg", |a, b| a != b && !a.is_nan() && !b.is_nan()),
        ("ge", |a, b| a >= b),
        ("o", |a, b| a <= b || a >= b),
        ("u", unordered),
        ("nge", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("nlg", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("ngt", |a, b| a <= b || a.is_nan() || b.is_nan()),
        ("nle", |a, b| a > b || a.is_nan() || b.is_nan()),
        ("neq", |a, b| a != b),
        ("nlt", |a, b| a >= b || a.is_nan() || b.is_nan()),
    ];
    let mut cases = Vec::new();
    for (relation, test) in tests {
        for (kind, inputs) in [("f32", singles()), ("f16", halves())] {
            let name: &'static str = format!("s_cmp_{relation}_{kind}").leak();
            let body = for_each_lane(&format!("{name} s20, s21\ns_cselect_b32 s23, 1, 0"));
            cases.push(Case::new(name, body, inputs, move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| match kind {
                    "f32" => f64::from(f(bits)),
                    _ => half_to_f64(bits as u16),
                });
                Want::Word(test(a, b).into())
            }));
        }
    }
    cases
}

fn scalar_conversions() -> Vec<Case> {
    type Convert = fn(u32, u32) -> Want;
    let conversions: [(&str, &str, Inputs, Convert); 8] = [
        ("s_cvt_f32_i32", "s23, s20", integers(), |a, _| {
            Want::Single(a as i32 as f32)
        }),
        ("s_cvt_f32_u32", "s23, s20", integers(), |a, _| {
            Want::Single(a as f32)
        }),
        ("s_cvt_i32_f32", "s23, s20", singles(), |a, _| {
            let value = f64::from(f32::from_bits(a)).trunc();
            let clamped = value.clamp(i32::MIN.into(), i32::MAX.into());
            Want::Word(if value.is_nan() {
                0
            } else {
                clamped as i64 as u32
            })
        }),
        ("s_cvt_u32_f32", "s23, s20", singles(), |a, _| {
            let value = f64::from(f32::from_bits(a)).trunc();
            let clamped = value.clamp(0.0, u32::MAX.into());
            Want::Word(if value.is_nan() {
                0
            } else {
                clamped as i64 as u32
            })
        }),
        ("s_cvt_f16_f32", "s23, s20", singles(), |a, _| {
            Want::Half(f64_to_half(f32::from_bits(a).into()))
        }),
        ("s_cvt_f32_f16", "s23, s20", halves(), |a, _| {
            Want::Single(half_to_f64(a as u16) as f32)
        }),
        ("s_cvt_hi_f32_f16", "s23, s20", integers(), |a, _| {
            Want::Single(half_to_f64((a >> 16) as u16) as f32)
        }),
        (
            "s_cvt_pk_rtz_f16_f32",
            "s23, s20, s21",
            singles(),
            |a, b| {
                let [low, high] = [a, b].map(|bits| towards_zero(f32::from_bits(bits)));
                match (low, high) {
                    (Some(low), Some(high)) => Want::Word(u32::from(low) | u32::from(high) << 16),
                    _ => Want::Any,
                }
            },
        ),
    ];
    conversions
        .into_iter()
        .map(|(name, operands, inputs, want)| {
            let body = for_each_lane(&format!("{name} {operands}"));
            Case::new(name, body, inputs, move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| bits as u32);
                want(a, b)
            })
        })
        .collect()
}

/// The half next to a number, among those whose magnitude is not larger; `None` for a NaN.
fn towards_zero(value: f32) -> Option<u16> {
    if value.is_nan() {
        return None;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = f64::from(value.abs());
    let last = if value.is_infinite() { 0x7c00 } else { 0x7bff };
    let found = (0..=last).rev().find(|bits| match bits {
        0x7c00 => true,
        bits => half_to_f64(*bits) <= magnitude,
    });
    found.map(|bits| sign | bits)
}

/// Functions of one scalar in the vector unit.
fn scalar_approximations() -> Vec<Case> {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function); 5] = [
        ("exp", f64::exp2),
        ("log", f64::log2),
        ("rcp", f64::recip),
        ("rsq", |a| 1.0 / a.sqrt()),
        ("sqrt", f64::sqrt),
    ];
    let mut cases = Vec::new();
    for (function, compute) in functions {
        let single: &'static str = format!("v_s_{function}_f32").leak();
        let body = for_each_lane(&format!("{single} s23, s20"));
        cases.push(Case::new(single, body, singles(), move |all, lane| {
            Want::NearSingle(compute(f(all[lane][0]).into()) as f32)
        }));
        let half: &'static str = format!("v_s_{function}_f16").leak();
        let body = for_each_lane(&format!("{half} s23, s20"));
        cases.push(Case::new(half, body, halves(), move |all, lane| {
            let a = half_to_f64(all[lane][0] as u16);
            Want::NearHalf(f64_to_half(compute(a)))
        }));
    }
    // The modifiers of the long encoding: -|4| to the root of 4, clamped. Results may be denormal, so the factor has no
    // effect.
    for (operands, want) in [
        ("s23, |s20|", 2.0f32),
        ("s23, |s20| mul:2", 2.0),
        ("s23, |s20| clamp", 1.0),
    ] {
        let body = format!(
            "s_mov_b32 s20, -4.0
             v_s_sqrt_f32 {operands}
             s_nop 0
             v_mov_b32 v10, s23"
        );
        cases.push(Case::new("v_s_sqrt_f32", body, integers(), move |_, _| {
            Want::Single(want)
        }));
    }
    cases
}

fn wide_scalars() -> Vec<Case> {
    type Wide = fn(u64, u64) -> u64;
    let operations: [(&str, Wide); 3] = [
        ("s_add_nc_u64", u64::wrapping_add),
        ("s_sub_nc_u64", u64::wrapping_sub),
        ("s_mul_u64", |a, b| (u128::from(a) * u128::from(b)) as u64),
    ];
    operations
        .into_iter()
        .map(|(name, function)| {
            let body = for_each_lane(&format!(
                "v_readlane_b32 s24, v2, s40
                 v_readlane_b32 s25, v3, s40
                 v_readlane_b32 s26, v4, s40
                 v_readlane_b32 s27, v5, s40
                 {name} s[24:25], s[24:25], s[26:27]
                 s_mov_b32 s23, s24
                 v_writelane_b32 v11, s25, s40"
            ));
            Case::new(name, body, integers(), move |all, lane| {
                let [a, b, ..] = all[lane];
                Want::Long(function(a, b))
            })
        })
        .collect()
}

/// The little-endian number of some bytes of the case's memory.
fn number(offset: u32, bytes: u32) -> u32 {
    (0..bytes).fold(0, |value, place| {
        value | u32::from(memory_byte(offset + place)) << (8 * place)
    })
}

fn scalar_loads() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, bytes, signed) in [
        ("s_load_u8", 1, false),
        ("s_load_i8", 1, true),
        ("s_load_u16", 2, false),
        ("s_load_i16", 2, true),
    ] {
        // Hardware ignores the lowest bit of the address of two bytes.
        for offset in [0x100, 0x101, 0x103, 0x207] {
            let body = format!(
                "s_mov_b32 s20, {offset}
                 {name} s21, s[12:13], 0x8
                 {name} s22, s[12:13], s20 offset:0x10
                 s_wait_kmcnt 0x0
                 v_mov_b32 v10, s21
                 v_mov_b32 v11, s22"
            );
            let want = move |offset: u32| {
                let value = number(offset / bytes * bytes, bytes);
                let unused = 32 - 8 * bytes;
                if signed {
                    ((value << unused) as i32 >> unused) as u32
                } else {
                    value
                }
            };
            cases.push(Case::new(name, body, integers(), move |_, _| {
                Want::All([want(8), want(offset + 0x10), KEPT, KEPT])
            }));
        }
    }
    // A buffer of 64 bytes: what lies after it reads as 0.
    const BUFFER: &str = "s_mov_b32 s16, s12
         s_mov_b32 s17, s13
         s_mov_b32 s18, 64
         s_mov_b32 s19, 0x00020000";
    for (name, bytes, signed) in [
        ("s_buffer_load_u8", 1, false),
        ("s_buffer_load_i8", 1, true),
        ("s_buffer_load_u16", 2, false),
        ("s_buffer_load_i16", 2, true),
    ] {
        let body = format!(
            "{BUFFER}
             s_mov_b32 s20, 0x20
             {name} s21, s[16:19], s20 offset:0x1c
             {name} s22, s[16:19], s20 offset:0x20
             s_wait_kmcnt 0x0
             v_mov_b32 v10, s21
             v_mov_b32 v11, s22"
        );
        cases.push(Case::new(name, body, integers(), move |_, _| {
            let unused = 32 - 8 * bytes;
            let value = number(0x3c, bytes) << unused;
            let value = match signed {
                true => (value as i32 >> unused) as u32,
                false => value >> unused,
            };
            Want::All([value, 0, KEPT, KEPT])
        }));
    }
    let body = format!(
        "{BUFFER}
         s_buffer_load_b96 s[20:22], s[16:19], 0x38
         s_wait_kmcnt 0x0
         v_mov_b32 v10, s20
         v_mov_b32 v11, s21
         v_mov_b32 v12, s22"
    );
    cases.push(Case::new("s_buffer_load_b96", body, integers(), |_, _| {
        Want::All([number(0x38, 4), number(0x3c, 4), 0, KEPT])
    }));
    // The offset has 24 bits.
    let body = "s_add_nc_u64 s[20:21], s[12:13], 0x7ffff0
         s_load_b96 s[24:26], s[20:21], -0x7fffe0
         s_wait_kmcnt 0x0
         v_mov_b32 v10, s24
         v_mov_b32 v11, s25
         v_mov_b32 v12, s26";
    cases.push(Case::new("s_load_b96", body, integers(), |_, _| {
        let word = |place: u32| number(0x10 + 4 * place, 4);
        Want::All([word(0), word(1), word(2), KEPT])
    }));
    // A vector access has such an offset too, and a scalar and a vector address at once.
    let body = "s_add_nc_u64 s[20:21], s[12:13], 0x7ffff0
         v_lshlrev_b32 v14, 3, v0
         global_load_b64 v[10:11], v14, s[20:21] offset:-8388560
         s_wait_loadcnt 0x0";
    cases.push(Case::new("global_load_b64", body, integers(), |_, lane| {
        let at = 0x20 + 8 * lane as u32;
        Want::All([number(at, 4), number(at + 4, 4), KEPT, KEPT])
    }));
    cases
}

fn extremes() -> Vec<Case> {
    let mut cases = Vec::new();
    let of: [(&str, &str, Double); 8] = [
        ("v_minimum_", "v2, v4", |a, b, _| minimum(a, b)),
        ("v_maximum_", "v2, v4", |a, b, _| maximum(a, b)),
        ("v_minimum3_", "v2, v4, v6", |a, b, c| {
            minimum(minimum(a, b), c)
        }),
        ("v_maximum3_", "v2, v4, v6", |a, b, c| {
            maximum(maximum(a, b), c)
        }),
        ("v_minimummaximum_", "v2, v4, v6", |a, b, c| {
            maximum(minimum(a, b), c)
        }),
        ("v_maximumminimum_", "v2, v4, v6", |a, b, c| {
            minimum(maximum(a, b), c)
        }),
        // A number wins over a NaN in these.
        ("v_minmax_num_", "v2, v4, v6", |a, b, c| {
            greater(lesser(a, b), c)
        }),
        ("v_maxmin_num_", "v2, v4, v6", |a, b, c| {
            lesser(greater(a, b), c)
        }),
    ];
    for (stem, operands, function) in of {
        let single: &'static str = format!("{stem}f32").leak();
        let body = format!("{single} v10, {operands}");
        cases.push(Case::new(single, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| f64::from(f(bits)));
            Want::Single(function(a, b, c) as f32)
        }));
        let half: &'static str = format!("{stem}f16").leak();
        let body = format!("{half} v10, {operands}\nv_and_b32 v10, 0xffff, v10");
        cases.push(Case::new(half, body, halves(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| half_to_f64(bits as u16));
            Want::Half(f64_to_half(function(a, b, c)))
        }));
    }
    for (name, function) in [
        ("v_minimum_f64", minimum as fn(f64, f64) -> f64),
        ("v_maximum_f64", maximum),
    ] {
        let body = format!("{name} v[10:11], v[2:3], v[4:5]");
        cases.push(Case::new(name, body, doubles(), move |all, lane| {
            let [a, b, ..] = all[lane].map(d);
            Want::Double(function(a, b))
        }));
    }
    for (name, function) in [
        ("v_pk_minimum_f16", minimum as fn(f64, f64) -> f64),
        ("v_pk_maximum_f16", maximum),
    ] {
        let body = format!("{name} v10, v2, v4");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let [a, b, ..] = all[lane];
            let half = |shift: u32| {
                let [a, b] = [a, b].map(|bits| half_to_f64((bits >> shift) as u16));
                (!a.is_nan() && !b.is_nan()).then(|| u32::from(f64_to_half(function(a, b))))
            };
            match (half(0), half(16)) {
                (Some(low), Some(high)) => Want::Word(low | high << 16),
                _ => Want::Any,
            }
        }));
    }
    cases
}

fn lanes() -> Vec<Case> {
    let moved = |name: &'static str, body: &str, from: fn(usize) -> usize| {
        Case::new(name, body, integers(), move |all, lane| {
            Want::Word(all[from(lane)][0] as u32)
        })
    };
    // Lane n of a row names lane 15 - n. More bits than four do not count.
    let places = "v_sub_nc_u32 v14, 0x6f, v0";
    let mut cases = vec![
        moved(
            "v_permlane16_var_b32",
            &format!("{places}\nv_permlane16_var_b32 v10, v2, v14"),
            |lane| lane ^ 15,
        ),
        moved(
            "v_permlanex16_var_b32",
            &format!("{places}\nv_permlanex16_var_b32 v10, v2, v14"),
            |lane| lane ^ 31,
        ),
        Case::new(
            "v_permlanex16_var_b32",
            format!(
                "{places}
                 s_mov_b64 exec, 0xffff
                 v_permlanex16_var_b32 v10, v2, v14
                 v_permlanex16_var_b32 v11, v2, v14 op_sel:[1,0]
                 v_permlanex16_var_b32 v12, v2, v14 op_sel:[0,1]"
            ),
            integers(),
            |all, lane| match lane {
                0..16 => Want::All([KEPT, all[lane ^ 31][0] as u32, 0, KEPT]),
                _ => Want::All([KEPT; 4]),
            },
        ),
    ];
    // Inactive lanes are sources of one permutation and not of the other.
    let body = "v_xor_b32 v14, 1, v0
         v_lshlrev_b32 v14, 2, v14
         s_mov_b32 s20, 0x55555555
         s_mov_b32 exec_lo, s20
         s_mov_b32 exec_hi, s20
         ds_bpermute_fi_b32 v10, v14, v2
         ds_bpermute_b32 v11, v14, v2
         s_wait_dscnt 0x0";
    cases.push(Case::new(
        "ds_bpermute_fi_b32",
        body,
        integers(),
        |all, lane| match lane % 2 {
            0 => Want::All([all[lane ^ 1][0] as u32, 0, KEPT, KEPT]),
            _ => Want::All([KEPT; 4]),
        },
    ));
    // Lane n names lane 63 - n, in the other half.
    cases.push(moved(
        "ds_bpermute_fi_b32",
        "v_sub_nc_u32 v14, 63, v0
         v_lshlrev_b32 v14, 2, v14
         ds_bpermute_fi_b32 v10, v14, v2
         s_wait_dscnt 0x0",
        |lane| 63 - lane,
    ));
    cases
}

/// The counter of cycles, in two registers, keeps counting.
fn counters() -> Vec<Case> {
    let body = "s_getreg_b32 s20, hwreg(HW_REG_SHADER_CYCLES_LO)
         s_getreg_b32 s21, hwreg(HW_REG_SHADER_CYCLES_HI)
         s_nop 0
         s_getreg_b32 s22, hwreg(HW_REG_SHADER_CYCLES_LO)
         s_getreg_b32 s23, hwreg(HW_REG_SHADER_CYCLES_HI)
         s_sub_nc_u64 s[20:21], s[22:23], s[20:21]
         s_cmp_eq_u32 s21, 0
         s_cselect_b32 s21, s20, 0
         s_cmp_gt_u32 s21, 0
         s_cselect_b32 s20, 1, 0
         v_mov_b32 v10, s20";
    // The difference is neither 0 nor negative.
    vec![Case::new("s_getreg_b32", body, integers(), |_, _| {
        Want::Word(1)
    })]
}

fn differences() -> Vec<Case> {
    let functions: [(&str, Function); 2] = [
        ("cond_sub", |old, x, _| if old < x { old } else { old - x }),
        ("sub_clamp", |old, x, _| old - old.min(x)),
    ];
    let mut cases = Vec::new();
    for (function, new) in functions {
        for segment in ["global", "flat", "buffer"] {
            let name = format!("{segment}_atomic_{function}_u32");
            for returns in [false, true] {
                cases.push(atomic(name.clone(), 4, returns, integers(), new));
            }
        }
        for (name, returns) in [
            (format!("ds_{function}_u32"), false),
            (format!("ds_{function}_rtn_u32"), true),
        ] {
            cases.push(atomic(name, 4, returns, integers(), new));
        }
    }
    cases
}
