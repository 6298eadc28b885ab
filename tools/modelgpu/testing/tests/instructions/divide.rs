//! Compares the division sequences that LLVM writes with the host's division, and checks the corner
//! cases of v_div_scale, v_div_fmas and v_div_fixup one by one.

use crate::half::f64_to_half;
use crate::harness::{Case, Want};
use crate::inputs::{doubles, singles};

/// v10 = v2 / v4, as LLVM expands an IEEE division. Denormals are on.
const SINGLE: &str = "
    v_div_scale_f32 v14, s[20:21], v4, v4, v2
    v_div_scale_f32 v15, vcc, v2, v4, v2
    v_rcp_f32 v16, v14
    v_fma_f32 v17, -v14, v16, 1.0
    v_fma_f32 v16, v17, v16, v16
    v_mul_f32 v17, v15, v16
    v_fma_f32 v18, -v14, v17, v15
    v_fma_f32 v17, v18, v16, v17
    v_fma_f32 v14, -v14, v17, v15
    v_div_fmas_f32 v14, v14, v16, v17
    v_div_fixup_f32 v10, v14, v4, v2";

/// v[10:11] = v[2:3] / v[4:5].
const DOUBLE: &str = "
    v_div_scale_f64 v[14:15], s[20:21], v[4:5], v[4:5], v[2:3]
    v_rcp_f64 v[16:17], v[14:15]
    v_fma_f64 v[18:19], -v[14:15], v[16:17], 1.0
    v_fma_f64 v[16:17], v[16:17], v[18:19], v[16:17]
    v_fma_f64 v[18:19], -v[14:15], v[16:17], 1.0
    v_fma_f64 v[16:17], v[16:17], v[18:19], v[16:17]
    v_div_scale_f64 v[18:19], vcc, v[2:3], v[4:5], v[2:3]
    v_mul_f64 v[20:21], v[18:19], v[16:17]
    v_fma_f64 v[14:15], -v[14:15], v[20:21], v[18:19]
    v_div_fmas_f64 v[14:15], v[14:15], v[16:17], v[20:21]
    v_div_fixup_f64 v[10:11], v[14:15], v[4:5], v[2:3]";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in ["v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32"] {
        cases.push(Case::new(name, SINGLE, singles(), |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| f32::from_bits(bits as u32));
            Want::Single(a / b)
        }));
    }
    for name in ["v_div_scale_f64", "v_div_fmas_f64", "v_div_fixup_f64"] {
        cases.push(Case::new(name, DOUBLE, doubles(), |all, lane| {
            let [a, b, ..] = all[lane].map(f64::from_bits);
            Want::Double(a / b)
        }));
    }
    cases.extend(scales());
    cases.extend(fixups());
    cases
}

/// v_div_scale of one pair of numbers, in all lanes: numerator, denominator, a flag to scale the
/// denominator, the result, and the resulting flag. From the guides' pseudocode, and from tinygrad's tests that their
/// authors ran on gfx1100.
fn scales() -> Vec<Case> {
    let up = 2f32.powi(64);
    let wide = 2f64.powi(128);
    let singles = [
        (1.0, 3.0, true, 3.0, false),
        (1.0, 3.0, false, 1.0, false),
        // The quotient may overflow, so the instruction scales the denominator up.
        (1e30, 1e-5, true, 1e-5 * up, true),
        (1e30, 1e-5, false, 1e30, true),
        // A denormal denominator.
        (1e-38, 1e-40, true, 1e-40 * up, false),
        (1e-38, 1e-40, false, 1e-38 * up, false),
        // The reciprocal is denormal, so the instruction scales the operand down.
        (1e38, 3e38, true, 3e38 / up, false),
        // The quotient is denormal, so the instruction scales the numerator up.
        (1e-30, 1e15, false, 1e-30 * up, true),
        // A tiny numerator.
        (1e-35, 1e-10, false, 1e-35 * up, false),
        // Measured: zeros, the largest and the smallest quotient, and a denormal quotient and reciprocal.
        (1.0, 4.0, false, 1.0, false),
        (2.0, 4.0, false, 2.0, false),
        (1.0, 0.0, false, f32::NAN, true),
        (0.0, 1.0, false, f32::NAN, true),
        (f32::MAX, 1.0, true, up, true),
        (f32::MIN_POSITIVE, 1.0, false, f32::MIN_POSITIVE * up, true),
        (1.0, 2f32.powi(127), false, 1.0, true),
    ];
    let doubles = [
        (1.0, 3.0, true, 3.0, false),
        (1e300, 1e-5, true, 1e-5 * wide, true),
        (1e300, 1e-5, false, 1e300, true),
        (1e-307, 1e-310, true, 1e-310 * wide, false),
        (1e307, 1e308, true, 1e308 / wide, false),
        (1e-300, 1e15, false, 1e-300 * wide, true),
        (1e-307, 1e-100, false, 1e-307 * wide, false),
        // Measured.
        (1.0, 2f64.sqrt(), true, 2f64.sqrt(), false),
        (2.0, 2.0, false, 2.0, false),
        (1.0, 0.0, false, f64::NAN, true),
        (2.0, 0.0, false, f64::NAN, true),
    ];
    let single = |row: (f32, f32, bool, f32, bool)| {
        let (numerator, denominator, of_denominator, want, flag) = row;
        let scaled = if of_denominator { "v15" } else { "v14" };
        let body = format!(
            "v_mov_b32 v14, {:#x}
             v_mov_b32 v15, {:#x}
             v_div_scale_f32 v10, vcc, {scaled}, v15, v14
             v_cndmask_b32 v11, 0, 1, vcc",
            numerator.to_bits(),
            denominator.to_bits()
        );
        scale("v_div_scale_f32", body, Want::Single(want), flag, "v11")
    };
    let double = |row: (f64, f64, bool, f64, bool)| {
        let (numerator, denominator, of_denominator, want, flag) = row;
        let scaled = if of_denominator {
            "v[16:17]"
        } else {
            "v[14:15]"
        };
        let [n, d] = [numerator, denominator].map(f64::to_bits);
        let body = format!(
            "v_mov_b32 v14, {:#x}
             v_mov_b32 v15, {:#x}
             v_mov_b32 v16, {:#x}
             v_mov_b32 v17, {:#x}
             v_div_scale_f64 v[10:11], vcc, {scaled}, v[16:17], v[14:15]
             v_cndmask_b32 v12, 0, 1, vcc",
            n as u32,
            n >> 32,
            d as u32,
            d >> 32
        );
        scale("v_div_scale_f64", body, Want::Double(want), flag, "v12")
    };
    let singles = singles.into_iter().flat_map(single);
    singles
        .chain(doubles.into_iter().flat_map(double))
        .collect()
}

/// A case for the scaled number, and one for the flag in a register.
fn scale(name: &'static str, body: String, want: Want, flag: bool, register: &str) -> [Case; 2] {
    let of_flag = format!("{body}\nv_mov_b32 v10, {register}");
    [
        Case::new(name, body, singles(), move |_, _| want),
        Case::new(name, of_flag, singles(), move |_, _| {
            Want::Word(flag.into())
        }),
    ]
}

/// v_div_fixup with an estimate of 7, or with a NaN: only the special cases replace the estimate. The results for the
/// NaN in single precision were measured on gfx1100 (tinygrad's tests).
fn fixups() -> Vec<Case> {
    let infinity = f64::INFINITY;
    const SEVEN: u32 = 0x401c_0000;
    const NAN: u32 = 0x7ff8_0000;
    let rows = [
        (6.0, 2.0, 7.0),
        (-6.0, 2.0, -7.0),
        (6.0, -2.0, -7.0),
        (-6.0, -2.0, 7.0),
        (0.0, 0.0, f64::NAN),
        (infinity, infinity, f64::NAN),
        (1.0, -0.0, -infinity),
        (infinity, -1.0, -infinity),
        (1.0, infinity, 0.0),
        (-0.0, 5.0, -0.0),
        (f64::NAN, 1.0, f64::NAN),
        (1.0, f64::NAN, f64::NAN),
    ];
    let estimates = [
        (1.0, 1.0, infinity),
        (1.0, -1.0, -infinity),
        (0.0, 1.0, 0.0),
        (1.0, infinity, 0.0),
    ];
    let rows = rows.into_iter().map(|row| (SEVEN, row));
    let estimates = estimates.into_iter().map(|row| (NAN, row));
    let mut cases: Vec<_> = estimates
        .clone()
        .flat_map(|(_, (numerator, denominator, want))| {
            let [n, d] = [numerator, denominator].map(|number: f64| number as f32);
            let single = format!(
                "v_mov_b32 v14, 0x7fc00000
                 v_mov_b32 v15, {:#x}
                 v_mov_b32 v16, {:#x}
                 v_div_fixup_f32 v10, v14, v15, v16",
                d.to_bits(),
                n.to_bits()
            );
            let half = "v_mov_b32 v14, 0x7fc00000
                 v_mov_b32 v15, DENOMINATOR
                 v_mov_b32 v16, NUMERATOR
                 v_cvt_f16_f32 v14, v14
                 v_cvt_f16_f32 v15, v15
                 v_cvt_f16_f32 v16, v16
                 v_div_fixup_f16 v11, v14, v15, v16
                 v_and_b32 v10, 0xffff, v11"
                .replace("DENOMINATOR", &format!("{:#x}", d.to_bits()))
                .replace("NUMERATOR", &format!("{:#x}", n.to_bits()));
            [
                Case::new("v_div_fixup_f32", single, singles(), move |_, _| {
                    Want::Single(want as f32)
                }),
                Case::new("v_div_fixup_f16", half, singles(), move |_, _| {
                    Want::Half(f64_to_half(want))
                }),
            ]
        })
        .collect();
    let doubles = rows.chain(estimates).map(
        |(estimate, (numerator, denominator, want)): (u32, (f64, f64, f64))| {
            let body = format!(
                "v_mov_b32 v14, 0
                 v_mov_b32 v15, {estimate:#x}
                 v_mov_b32 v16, 0
                 v_mov_b32 v17, {:#x}
                 v_mov_b32 v18, 0
                 v_mov_b32 v19, {:#x}
                 v_div_fixup_f64 v[10:11], v[14:15], v[16:17], v[18:19]",
                denominator.to_bits() >> 32,
                numerator.to_bits() >> 32
            );
            Case::new("v_div_fixup_f64", body, doubles(), move |_, _| {
                Want::Double(want)
            })
        },
    );
    cases.extend(doubles);
    cases
}
