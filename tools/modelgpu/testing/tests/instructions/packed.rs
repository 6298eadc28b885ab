//! Packed arithmetic.

use crate::harness::{Case, Want};
use crate::inputs::{halves, integers, singles};

/// Maps two halves to the exact result.
type Double = fn(f64, f64) -> f64;
/// Maps the halves of two pairs to the halves of the result.
type Single = fn((f32, f32, f32, f32)) -> (f32, f32);
/// Maps the low or the high halves of the sources to a half of the result.
type Short = fn(u32, u32, u32) -> u32;

const SHORTS: &[(&str, bool, Short)] = &[
    ("v_pk_add_u16", false, |a, b, _| a + b),
    ("v_pk_sub_u16", false, |a, b, _| a + 0x1_0000 - b),
    ("v_pk_add_i16", false, |a, b, _| a + b),
    ("v_pk_sub_i16", false, |a, b, _| a + 0x1_0000 - b),
    ("v_pk_mul_lo_u16", false, |a, b, _| a * b),
    ("v_pk_mad_u16", true, |a, b, c| (a * b % 0x1_0000) + c),
    ("v_pk_mad_i16", true, |a, b, c| (a * b % 0x1_0000) + c),
    ("v_pk_min_u16", false, |a, b, _| if a < b { a } else { b }),
    ("v_pk_max_u16", false, |a, b, _| if a < b { b } else { a }),
    ("v_pk_min_i16", false, |a, b, _| {
        if (a as i16) < b as i16 { a } else { b }
    }),
    ("v_pk_max_i16", false, |a, b, _| {
        if (a as i16) < b as i16 { b } else { a }
    }),
    ("v_pk_lshlrev_b16", false, |a, b, _| b << (a % 16)),
    ("v_pk_lshrrev_b16", false, |a, b, _| b >> (a % 16)),
    ("v_pk_ashrrev_i16", false, |a, b, _| {
        i32::from(b as i16).div_euclid(1 << (a % 16)) as u32
    }),
];

fn half_of(bits: u64, high: bool) -> u32 {
    (if high { bits >> 16 } else { bits }) as u32 & 0xffff
}

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, three, run) in SHORTS.iter().copied() {
        let more = if three { ", v6" } else { "" };
        let plain = format!("{name} v10, v2, v4{more}");
        cases.push(Case::new(name, plain, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            let half = |high| run(half_of(a, high), half_of(b, high), half_of(c, high)) & 0xffff;
            Want::Word(half(false) | half(true) << 16)
        }));
        // The low result from a's high and b's low half, the high one the other way round.
        let (low, high) = if three {
            ("[1,0,0]", "[0,1,1]")
        } else {
            ("[1,0]", "[0,1]")
        };
        let crossed = format!("{name} v10, v2, v4{more} op_sel:{low} op_sel_hi:{high}");
        cases.push(Case::new(name, crossed, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            let half =
                |high: bool| run(half_of(a, !high), half_of(b, high), half_of(c, high)) & 0xffff;
            Want::Word(half(false) | half(true) << 16)
        }));
    }
    cases.extend(half_precision());
    cases.extend(single_precision());
    cases
}

fn half_precision() -> Vec<Case> {
    let operations: [(&'static str, Double); 4] = [
        ("v_pk_add_f16", |a, b| a + b),
        ("v_pk_mul_f16", |a, b| a * b),
        ("v_pk_min_f16", f64::min),
        ("v_pk_max_f16", f64::max),
    ];
    // The results are in single precision, because a conversion of the result is exact. Both
    // operands are small integers, so every result is exact too.
    operations
        .into_iter()
        .map(|(name, run)| {
            let body = format!(
                "v_cvt_f32_ubyte0 v14, v2
                 v_cvt_f16_f32 v14, v14
                 v_and_b32 v14, 0xffff, v14
                 v_cvt_f32_u32 v15, v0
                 v_cvt_f16_f32 v15, v15
                 v_lshl_or_b32 v16, v15, 16, v14
                 {name} v16, v16, v16 op_sel:[0,1] op_sel_hi:[1,1] neg_lo:[0,1] neg_hi:[1,0]
                 v_cvt_f32_f16 v10, v16
                 v_lshrrev_b32 v16, 16, v16
                 v_cvt_f32_f16 v11, v16"
            );
            Case::new(name, body, halves(), move |all, lane| {
                let (low, high) = (f64::from(all[lane][0] as u8), lane as f64);
                let round = |value: f64| {
                    // Products exceed 2048. Round them to the nearest even multiple of a half's
                    // unit.
                    let mut unit = 1.0;
                    while value.abs() >= 2048.0 * unit {
                        unit *= 2.0;
                    }
                    ((value / unit).round_ties_even() * unit) as f32
                };
                // The min and max of zeros of both signs.
                let zero = |value: f64| {
                    if value == 0.0 {
                        signed_zero(name, value)
                    } else {
                        value
                    }
                };
                let results = [zero(run(low, -high)), zero(run(-high, high))];
                let [a, b] = results.map(|value| round(value).to_bits());
                Want::Long(u64::from(a) | u64::from(b) << 32)
            })
        })
        .collect()
}

/// Zeros of different signs meet in lane 0 and in lanes whose byte is 0.
fn signed_zero(name: &str, value: f64) -> f64 {
    match name {
        "v_pk_min_f16" => -0.0,
        "v_pk_max_f16" => 0.0,
        _ => value,
    }
}

fn single_precision() -> Vec<Case> {
    let both = |low: f32, high: f32| {
        Want::Long(u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32)
    };
    // The numbers contain no NaNs: the lane's number and small constants.
    let numbers = "v_cvt_f32_u32 v14, v0
                   v_add_f32 v15, 0.5, v14
                   v_mul_f32 v16, -4.0, v14
                   v_add_f32 v17, 2.0, v16";
    let values = |lane: usize| {
        let n = lane as f32;
        (n, n + 0.5, n * -4.0, n * -4.0 + 2.0)
    };
    let case = |name: &'static str, operands: &str, want: Single| {
        let body = format!("{numbers}\n{name} v[10:11], {operands}");
        Case::new(name, body, singles(), move |_, lane| {
            let (low, high) = want(values(lane));
            both(low, high)
        })
    };
    vec![
        // 2, 3 and 0.5 in one half each, 4 and -1 in the other.
        Case::new(
            "v_pk_fma_f16",
            "v_mov_b32 v14, 0x42004000
             v_mov_b32 v15, 0xbc003800
             v_pk_fma_f16 v10, v14, v14, v15 op_sel:[0,1,0] op_sel_hi:[0,1,1]",
            singles(),
            // 2 * 3 + 0.5 and 2 * 3 - 1.
            |_, _| Want::Word(0x4500_4680),
        ),
        case("v_pk_add_f32", "v[14:15], v[16:17]", |(a, b, c, d)| {
            (a + c, b + d)
        }),
        case(
            "v_pk_add_f32",
            "v[14:15], v[16:17] op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1] neg_hi:[1,0]",
            |(a, b, c, d)| (b - c, d - a),
        ),
        case("v_pk_mul_f32", "v[14:15], v[16:17]", |(a, b, c, d)| {
            (a * c, b * d)
        }),
        case(
            "v_pk_mul_f32",
            "v[14:15], 2.0 op_sel_hi:[1,0]",
            |(a, b, ..)| (a * 2.0, b * 2.0),
        ),
        case(
            "v_pk_fma_f32",
            "v[14:15], v[16:17], v[14:15]",
            |(a, b, c, d)| (a.mul_add(c, a), b.mul_add(d, b)),
        ),
        Case::new(
            "v_pk_mov_b32",
            "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[1,0]",
            singles(),
            |all, lane| {
                let [a, b, ..] = all[lane];
                Want::Long(u64::from(f((a >> 32) as u32).to_bits()) | b << 32)
            },
        ),
    ]
}
