//! Half precision: functions of one number, mixed precision, and instructions that combine two
//! halves.

use crate::float::{exponent, f, middle, scaled};
use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{Case, Want};
use crate::inputs::{halves, integers, singles};

type Function = fn(f64) -> f64;

/// Functions with correctly rounded results.
const EXACT: &[(&str, Function)] = &[
    ("v_fract_f16", |a| {
        if !a.is_finite() {
            f64::NAN
        } else {
            a.rem_euclid(1.0).min(1.0 - 1.0 / 2048.0)
        }
    }),
    ("v_frexp_mant_f16", |a| scaled(a, -exponent(a))),
];

/// Approximate functions, each computed here in an unusual way.
const APPROXIMATE: &[(&str, Function)] = &[
    ("v_rsq_f16", |a| match a {
        0.0 => 1.0 / a,
        f64::NEG_INFINITY => f64::NAN,
        _ => a.powf(-0.5),
    }),
    ("v_exp_f16", |a| (a * std::f64::consts::LN_2).exp()),
    ("v_log_f16", |a| a.ln() / std::f64::consts::LN_2),
    // From the angle's complement.
    ("v_sin_f16", |a| {
        (std::f64::consts::TAU * (0.25 - a % 1.0)).cos()
    }),
    ("v_cos_f16", |a| {
        (std::f64::consts::TAU * (0.25 - a % 1.0)).sin()
    }),
];

fn halves_of(lane: &[u64; 4]) -> [f64; 4] {
    lane.map(|bits| half_to_f64(bits as u16))
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, run) in EXACT.iter().copied() {
        let body = format!("{name} v10, v2");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let value = run(halves_of(&all[lane])[0]);
            // The fraction of -0 is 0, whose sign is not specified here.
            if value == 0.0 {
                Want::NearHalf(0)
            } else {
                Want::Half(f64_to_half(value))
            }
        }));
    }
    for (name, run) in APPROXIMATE.iter().copied() {
        let body = format!("{name} v10, v2");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            Want::NearHalf(f64_to_half(run(halves_of(&all[lane])[0])))
        }));
    }
    // A modifier of a source, and those of the result.
    cases.push(Case::new(
        "v_exp_f16",
        "v_exp_f16 v10, -|v2| clamp",
        halves(),
        |all, lane| {
            let a = halves_of(&all[lane])[0];
            Want::NearHalf(if a.is_nan() {
                0
            } else {
                f64_to_half((-a.abs()).exp2())
            })
        },
    ));
    cases.extend(exponents());
    cases.extend(of_three());
    cases.extend(two_in_one());
    cases.extend(mixed());
    cases
}

fn exponents() -> Vec<Case> {
    vec![
        Case::new(
            "v_frexp_exp_i16_f16",
            "v_frexp_exp_i16_f16 v10, v2",
            halves(),
            |all, lane| Want::Word(exponent(halves_of(&all[lane])[0]) as u32 & 0xffff),
        ),
        Case::new(
            "v_ldexp_f16",
            "v_bfe_i32 v14, v4, 0, 6\nv_ldexp_f16 v10, v2, v14",
            halves(),
            |all, lane| {
                let power = (all[lane][1] as i32) << 26 >> 26;
                Want::Half(f64_to_half(scaled(halves_of(&all[lane])[0], power)))
            },
        ),
        // The power has 16 bits: the smallest and the largest of them.
        Case::new(
            "v_ldexp_f16",
            "v_mov_b32 v14, 0x18000\nv_ldexp_f16 v10, v2, v14",
            halves(),
            |all, lane| match halves_of(&all[lane])[0] {
                a if a.is_finite() => Want::Half(f64_to_half(0f64.copysign(a))),
                a => Want::Half(f64_to_half(a)),
            },
        ),
    ]
}

fn of_three() -> Vec<Case> {
    type Three = fn(f32, f32, f32) -> f32;
    let three: [(&'static str, Three); 4] = [
        ("v_min3_f16", |a, b, c| a.min(b).min(c)),
        ("v_max3_f16", |a, b, c| a.max(b).max(c)),
        ("v_med3_f16", middle),
        ("v_fma_legacy_f16", |a, b, c| {
            // Double precision rounds to the same half here.
            half_to_f64(f64_to_half(f64::from(a).mul_add(b.into(), c.into()))) as f32
        }),
    ];
    let mut cases: Vec<Case> = three
        .into_iter()
        .map(|(name, run)| {
            let body = format!("{name} v10, v2, v4, v6");
            Case::new(name, body, halves(), move |all, lane| {
                let [a, b, c, _] = halves_of(&all[lane]).map(|half| half as f32);
                match run(a, b, c) {
                    // For zeros with different signs, either sign.
                    0.0 => Want::NearHalf(0),
                    value => Want::Half(f64_to_half(value.into())),
                }
            })
        })
        .collect();
    // An exact quotient stays, whatever its factors. Zeros and infinities decide.
    cases.push(Case::new(
        "v_div_fixup_legacy_f16",
        "v_cvt_f32_f16 v14, v4
         v_cvt_f32_f16 v15, v6
         v_rcp_f32 v14, v14
         v_mul_f32 v14, v15, v14
         v_cvt_f16_f32 v2, v14
         v_div_fixup_legacy_f16 v10, v2, v4, v6",
        halves().map(|lane| {
            lane.map(|bits| {
                [
                    0x0000, 0x3c00, 0xbc00, 0x4000, 0x4400, 0x7c00, 0xfc00, 0x7e00, 0x8000, 0x3800,
                ][bits as usize % 10]
            })
        }),
        |all, lane| {
            let [_, denominator, numerator, _] = halves_of(&all[lane]);
            Want::Half(f64_to_half(numerator / denominator))
        },
    ));
    cases
}

/// The half nearest to a value among those that are not farther from zero.
fn toward_zero(value: f32) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = f64::from(value.abs());
    if magnitude.is_nan() {
        return 0x7e00;
    }
    if magnitude.is_infinite() {
        return sign | 0x7c00;
    }
    let below = (0..0x7c00)
        .rev()
        .find(|bits| half_to_f64(*bits) <= magnitude);
    sign | below.unwrap_or(0)
}

fn two_in_one() -> Vec<Case> {
    vec![
        Case::new(
            "v_pack_b32_f16",
            "v_pack_b32_f16 v10, v2, v4",
            integers(),
            |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| bits as u32);
                Want::Word(a & 0xffff | b << 16)
            },
        ),
        Case::new(
            "v_pack_b32_f16",
            "v_pack_b32_f16 v10, -v2, |v4| op_sel:[1,0,0]",
            integers(),
            |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| bits as u32);
                Want::Word((a >> 16 ^ 0x8000) | (b & 0x7fff) << 16)
            },
        ),
        Case::new(
            "v_pack_b32_f16",
            "s_mov_b32 s20, 0x12345678\nv_pack_b32_f16 v10, s20, 1.0",
            integers(),
            |_, _| Want::Word(0x3c00_5678),
        ),
        Case::new(
            "v_cvt_pkrtz_f16_f32",
            "v_cvt_pkrtz_f16_f32 v14, v2, v4
             v_and_b32 v10, 0xffff, v14
             v_lshrrev_b32 v11, 16, v14",
            singles(),
            |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| toward_zero(f(bits)));
                // The bits of a NaN are not specified here.
                if a == 0x7e00 || b == 0x7e00 {
                    Want::Any
                } else {
                    Want::Long(u64::from(a) | u64::from(b) << 32)
                }
            },
        ),
        // Both halves at once, with changed signs.
        Case::new(
            "v_pk_fmac_f16",
            "v_mov_b32 v10, 0xbc003800
             v_mov_b32 v14, 0x42004000
             v_mov_b32 v15, 0x44003c00
             v_pk_fmac_f16 v10, v14, v15",
            integers(),
            // 2 * 1 + 0.5 and 3 * 4 - 1.
            |_, _| Want::Word(0x4980_4100),
        ),
        // Each half separately: 2 - 0.25 is above 1, and 0.5 - 1 below 0.
        Case::new(
            "v_pk_add_f16",
            "v_mov_b32 v14, 0x38004000
             v_mov_b32 v15, 0xbc00b400
             v_pk_add_f16 v10, v14, v15 clamp",
            integers(),
            |_, _| Want::Word(0x0000_3c00),
        ),
        Case::new(
            "v_pk_add_f32",
            "v_mov_b32 v14, 2.0
             v_mov_b32 v15, 0.5
             v_pk_add_f32 v[10:11], v[14:15], v[14:15] neg_lo:[1,1] neg_hi:[0,0] clamp",
            integers(),
            // -2 - 2, and 0.5 + 0.5.
            |_, _| Want::Long(0x3f80_0000_0000_0000),
        ),
    ]
}

/// The sources are the high half of a, the low half of b with its sign changed, and c in single
/// precision without its sign.
fn mixed() -> Vec<Case> {
    const OPERANDS: &str = "v2, -v4, |v6| op_sel:[1,0,0] op_sel_hi:[1,1,0]";
    let sum = |[a, b, c, _]: [u64; 4]| {
        let a = half_to_f64((a >> 16) as u16) as f32;
        let b = -half_to_f64(b as u16) as f32;
        a.mul_add(b, f(c).abs())
    };
    let mut cases: Vec<Case> = [
        ("v_fma_mixlo_f16", 0, 0x5a5a_0000u32),
        ("v_fma_mixhi_f16", 16, 0x5a5a),
    ]
    .into_iter()
    .map(|(name, shift, kept)| {
        let body = format!("{name} v10, {OPERANDS}");
        Case::new(name, body, halves(), move |all, lane| {
            let half = f64_to_half(sum(all[lane]).into());
            // The bits of a NaN are not specified here.
            if half == 0x7e00 {
                Want::Any
            } else {
                Want::Word(u32::from(half) << shift | kept)
            }
        })
    })
    .collect();
    cases.extend([
        // Halves of a scalar register, and constants of both formats.
        Case::new(
            "v_fma_mix_f32",
            "s_mov_b32 s20, 0x44004200
             v_fma_mix_f32 v10, s20, s20, 2.0 op_sel:[1,0,0] op_sel_hi:[1,1,0]",
            integers(),
            |_, _| Want::Single(4.0 * 3.0 + 2.0),
        ),
        Case::new(
            "v_fma_mix_f32",
            "v_mov_b32 v14, 0x44004200
             v_fma_mix_f32 v10, v14, -v14, 0.5 op_sel_hi:[1,1,1]",
            integers(),
            |_, _| Want::Single(-3.0 * 3.0 + 0.5),
        ),
        Case::new(
            "v_fma_mixlo_f16",
            "v_mov_b32 v10, 0
             v_mov_b32 v14, 3.0
             v_fma_mixlo_f16 v10, v14, v14, 1.0 clamp",
            integers(),
            |_, _| Want::Word(0x3c00),
        ),
    ]);
    cases
}
