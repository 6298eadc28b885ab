//! 16-bit instructions: half precision, and integers.

use crate::convert::truncated;
use crate::float::{Double1, Double2, f, greater, lesser};
use crate::harness::{Case, Want};
use crate::inputs::{halves, integers};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = arithmetic();
    cases.extend(other_halves());
    cases
}

/// The value of a half, from its definition.
pub(crate) fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    sign * match (exponent, fraction) {
        (31, 0.0) => f64::INFINITY,
        (31, _) => f64::NAN,
        (0, _) => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

/// The half nearest to a value, ties to even, found by a search among all halves.
pub(crate) fn f64_to_half(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7e00;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    // The magnitudes of positive halves grow with their bits; 0x7c00 stands for 2^16 here.
    let real = |bits: u16| {
        if bits == 0x7c00 {
            65536.0
        } else {
            half_to_f64(bits)
        }
    };
    let (mut below, mut above) = (0, 0x7c00);
    if magnitude >= 65536.0 {
        return sign | 0x7c00;
    }
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if real(middle) <= magnitude {
            below = middle
        } else {
            above = middle
        }
    }
    let (down, up) = (magnitude - real(below), real(above) - magnitude);
    sign | if down < up || down == up && below % 2 == 0 {
        below
    } else {
        above
    }
}

/// A half in v10. The harness compares NaNs after a conversion back, which only NaNs of single
/// precision survive; no others occur.
pub(crate) fn want_half(value: f64) -> Want {
    Want::Word(f64_to_half(value).into())
}

fn arithmetic() -> Vec<Case> {
    let two: [(&'static str, Double2); 6] = [
        ("v_add_f16", |a, b| a + b),
        ("v_sub_f16", |a, b| a - b),
        ("v_subrev_f16", |a, b| b - a),
        ("v_mul_f16", |a, b| a * b),
        ("v_min_f16", lesser),
        ("v_max_f16", greater),
    ];
    let mut cases: Vec<Case> = two
        .into_iter()
        .map(|(name, run)| {
            // The body replaces a NaN result with a fixed one, because its bits are not specified
            // here.
            let body = format!(
                "{name} v10, v2, v4
                 v_cmp_u_f16 vcc, v10, v10
                 v_mov_b32 v14, 0x7e00
                 v_cndmask_b32 v10, v10, v14, vcc"
            );
            Case::new(name, body, halves(), move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| half_to_f64(bits as u16));
                want_half(run(a, b))
            })
        })
        .collect();
    type Short2 = fn(u32, u32) -> u32;
    let shorts: [(&'static str, Short2); 13] = [
        ("v_add_i16", |a, b| a + b),
        ("v_sub_i16", |a, b| a + 0x1_0000 - b),
        ("v_add_u16", |a, b| a + b),
        ("v_sub_u16", |a, b| a + 0x1_0000 - b),
        ("v_subrev_u16", |a, b| b + 0x1_0000 - a),
        ("v_mul_lo_u16", |a, b| a * b),
        ("v_lshlrev_b16", |a, b| b << (a % 16)),
        ("v_lshrrev_b16", |a, b| b >> (a % 16)),
        ("v_ashrrev_i16", |a, b| {
            i32::from(b as i16).div_euclid(1 << (a % 16)) as u32
        }),
        ("v_min_u16", |a, b| a.min(b)),
        ("v_max_u16", |a, b| a.max(b)),
        (
            "v_min_i16",
            |a, b| if (a as i16) < b as i16 { a } else { b },
        ),
        (
            "v_max_i16",
            |a, b| if (a as i16) < b as i16 { b } else { a },
        ),
    ];
    for (name, run) in shorts {
        let body = format!("{name} v10, v2, v4");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| bits as u32 & 0xffff);
            Want::Word(run(a, b) & 0xffff)
        }));
    }
    type Short3 = fn([i64; 3]) -> i64;
    let of_three: [(&'static str, Short3); 10] = [
        ("v_mad_u16", |[a, b, c]| a * b + c),
        ("v_mad_i16", |[a, b, c]| a * b + c),
        ("v_mad_legacy_u16", |[a, b, c]| a * b + c),
        ("v_mad_legacy_i16", |[a, b, c]| a * b + c),
        ("v_min3_u16", |all| sorted(all)[0]),
        ("v_med3_u16", |all| sorted(all)[1]),
        ("v_max3_u16", |all| sorted(all)[2]),
        ("v_min3_i16", |all| sorted(all)[0]),
        ("v_med3_i16", |all| sorted(all)[1]),
        ("v_max3_i16", |all| sorted(all)[2]),
    ];
    for (name, run) in of_three {
        // Instructions that are new in gfx9 keep the high half.
        let kept = if ["v_mad_u16", "v_mad_i16"].contains(&name) {
            0x5a5a_0000
        } else {
            0
        };
        let body = format!("{name} v10, v2, v4, v6");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| match name.ends_with("i16") {
                true => i64::from(bits as i16),
                false => i64::from(bits as u16),
            });
            Want::Word(run([a, b, c]) as u32 & 0xffff | kept)
        }));
    }
    // The high half of a source, and the high half of the result with the low one kept.
    cases.push(Case::new(
        "v_mad_u16",
        "v_mov_b32 v10, v6
         v_mad_u16 v10, v2, v4, 1 op_sel:[1,0,0,1]",
        integers(),
        |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| bits as u32);
            let sum = u64::from(a >> 16) * u64::from(b & 0xffff) + 1;
            Want::Word((sum as u32) << 16 | c & 0xffff)
        },
    ));
    cases
}

fn sorted(mut values: [i64; 3]) -> [i64; 3] {
    values.sort();
    values
}

/// Instructions on halves with one, three, or differently typed operands.
fn other_halves() -> Vec<Case> {
    type Double3 = fn(f64, f64, f64) -> f64;
    // The body replaces a NaN result with a fixed one, because its bits are not specified here.
    let settle = "v_cmp_u_f16 vcc, v10, v10
                  v_mov_b32 v14, 0x7e00
                  v_cndmask_b32 v10, v10, v14, vcc";
    let one: [(&'static str, Double1); 6] = [
        ("v_trunc_f16", f64::trunc),
        ("v_floor_f16", f64::floor),
        ("v_ceil_f16", f64::ceil),
        ("v_rndne_f16", f64::round_ties_even),
        ("v_rcp_f16", f64::recip),
        ("v_sqrt_f16", f64::sqrt),
    ];
    let mut cases: Vec<Case> = one
        .into_iter()
        .map(|(name, run)| {
            let body = format!("{name} v10, v2\n{settle}");
            Case::new(name, body, halves(), move |all, lane| {
                want_half(run(half_to_f64(all[lane][0] as u16)))
            })
        })
        .collect();
    let three: [(&'static str, Double3); 2] = [
        ("v_fma_f16", f64::mul_add),
        // The first source is the exact quotient, rounded. All but the special cases keep it.
        ("v_div_fixup_f16", |_, denominator, numerator| {
            numerator / denominator
        }),
    ];
    for (name, run) in three {
        let prepare = if name == "v_div_fixup_f16" {
            "v_cvt_f32_f16 v14, v4
             v_cvt_f32_f16 v15, v6
             v_rcp_f32 v14, v14
             v_mul_f32 v14, v15, v14
             v_cvt_f16_f32 v2, v14"
        } else {
            ""
        };
        // These keep the high half of their register.
        let body = format!("{prepare}\nv_mov_b32 v10, 0\n{name} v10, v2, v4, v6\n{settle}");
        // Small integers and powers of two, whose quotients and sums are exact in a half.
        let inputs = halves().map(|lane| {
            lane.map(|bits| {
                [
                    0x0000, 0x3c00, 0xbc00, 0x4000, 0x4400, 0x7c00, 0xfc00, 0x7e00, 0x8000, 0x3800,
                ][bits as usize % 10]
            })
        });
        cases.push(Case::new(name, body, inputs, move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| half_to_f64(bits as u16));
            want_half(run(a, b, c))
        }));
    }
    cases.push(Case::new(
        "v_fma_f16",
        "v_fma_f16 v10, v2, v4, v6",
        halves(),
        |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| half_to_f64(bits as u16));
            let sum = a.mul_add(b, c);
            // The bits of a NaN are not specified here.
            if sum.is_nan() {
                Want::Any
            } else {
                Want::Word(0x5a5a_0000 | u32::from(f64_to_half(sum)))
            }
        },
    ));
    cases.extend([
        Case::new(
            "v_cvt_f16_u16",
            "v_cvt_f16_u16 v10, v2",
            integers(),
            |all, lane| want_half(f64::from(all[lane][0] as u16)),
        ),
        Case::new(
            "v_cvt_f16_i16",
            "v_cvt_f16_i16 v10, v2",
            integers(),
            |all, lane| want_half(f64::from(all[lane][0] as i16)),
        ),
        Case::new(
            "v_cvt_u16_f16",
            "v_cvt_u16_f16 v10, v2",
            halves(),
            |all, lane| Want::Word(truncated(half_to_f64(all[lane][0] as u16), 0.0, 65535.0)),
        ),
        Case::new(
            "v_cvt_i16_f16",
            "v_cvt_i16_f16 v10, v2",
            halves(),
            |all, lane| {
                let value = half_to_f64(all[lane][0] as u16);
                Want::Word(truncated(value, -32768.0, 32767.0) & 0xffff)
            },
        ),
        // The sources are the high half of a, the low half of b with its sign flipped, and c in
        // single precision without its sign.
        Case::new(
            "v_fma_mix_f32",
            "v_fma_mix_f32 v10, v2, -v4, |v6| op_sel:[1,0,0] op_sel_hi:[1,1,0]",
            halves(),
            |all, lane| {
                let [a, b, c, _] = all[lane];
                let a = half_to_f64((a >> 16) as u16) as f32;
                let b = -half_to_f64(b as u16) as f32;
                Want::Single(a.mul_add(b, f(c).abs()))
            },
        ),
    ]);
    cases
}
