//! Compares the division sequences that LLVM writes with the host's division, and checks the corner
//! cases of v_div_scale, v_div_fmas and v_div_fixup one by one.

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
/// denominator, the result, and the resulting flag. From the guides' pseudocode.
fn scales() -> Vec<Case> {
    let up = 2f32.powi(64);
    let rows: [(f32, f32, bool, f32, bool); 9] = [
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
    ];
    rows.into_iter()
        .map(|(numerator, denominator, of_denominator, want, flag)| {
            let scaled = if of_denominator { "v15" } else { "v14" };
            let body = format!(
                "v_mov_b32 v14, {:#x}
                 v_mov_b32 v15, {:#x}
                 v_div_scale_f32 v10, vcc, {scaled}, v15, v14
                 v_cndmask_b32 v11, 0, 1, vcc",
                numerator.to_bits(),
                denominator.to_bits()
            );
            Case::new("v_div_scale_f32", body, singles(), move |_, _| {
                Want::Long(u64::from(want.to_bits()) | u64::from(flag) << 32)
            })
        })
        .collect()
}

/// v_div_fixup with a quotient of 7: only the special cases replace it.
fn fixups() -> Vec<Case> {
    let infinity = f64::INFINITY;
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
    rows.into_iter()
        .map(|(numerator, denominator, want): (f64, f64, f64)| {
            let body = format!(
                "v_mov_b32 v14, 0
                 v_mov_b32 v15, 0x401c0000
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
        })
        .collect()
}
