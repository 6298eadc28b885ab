//! Floating-point numbers of 8 bits, which only gfx942 has.

use modelgpu_amdgcn::Target;

use crate::float::f;
use crate::harness::{Case, Want};
use crate::inputs::{integers, singles};

/// gfx942 and its successor.
const GFX942: &[Target] = &[Target::Gfx942, Target::Gfx950];

/// A format: its name, the bits of its fraction, its bias.
type Format = (&'static str, u32, i32);

const FORMATS: [Format; 2] = [("fp8", 3, 8), ("bf8", 2, 16)];

/// The value of 8 bits: a sign, an exponent, a fraction, and one NaN where -0 would be.
fn value((_, width, bias): Format, bits: u32) -> f64 {
    let bits = bits & 0xff;
    if bits == 0x80 {
        return f64::NAN;
    }
    let sign = if bits >= 0x80 { -1.0 } else { 1.0 };
    let (exponent, fraction) = ((bits % 0x80) >> width, bits % (1 << width));
    let fraction = f64::from(fraction) / f64::from(1 << width);
    sign * match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent as i32 - bias),
    }
}

/// The nearest of all values; of two equally near, the even one. NaN for a number that is nearer to
/// the power of two behind the largest value.
fn nearest(format: Format, number: f32) -> u32 {
    let magnitude = f64::from(number.abs());
    let largest = value(format, 0x7f);
    let behind = largest + (largest - value(format, 0x7e));
    if magnitude.is_nan() || magnitude >= (largest + behind) / 2.0 {
        return 0x80;
    }
    let distance = |bits: &u32| (value(format, *bits) - magnitude).abs();
    let found = (0..0x80).min_by(|a, b| {
        let even = |bits: &u32| bits % 2;
        distance(a)
            .total_cmp(&distance(b))
            .then(even(a).cmp(&even(b)))
    });
    match found.unwrap_or(0) {
        0 => 0,
        bits if number < 0.0 => bits | 0x80,
        bits => bits,
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in FORMATS {
        let name = format.0;
        let one: &'static str = format!("v_cvt_f32_{name}").leak();
        let two: &'static str = format!("v_cvt_pk_f32_{name}").leak();
        let back: &'static str = format!("v_cvt_pk_{name}_f32").leak();
        for byte in 0..4 {
            // The low byte takes all values, four lanes' numbers in each.
            let body = format!(
                "v_lshl_add_u32 v14, v0, 2, {byte}
                 v_lshlrev_b32 v14, {}, v14
                 {one}_sdwa v10, v14 src0_sel:BYTE_{byte}",
                8 * byte
            );
            cases.push(Case::new(one, body, integers(), move |_, lane| {
                Want::Single(value(format, 4 * lane as u32 + byte) as f32)
            }));
        }
        cases.push(Case::new(
            one,
            format!("{one} v10, v2"),
            integers(),
            move |all, lane| Want::Single(value(format, all[lane][0] as u32) as f32),
        ));
        for (select, shift) in [("", 0), (" src0_sel:WORD_1", 16)] {
            let form = if shift == 0 { "" } else { "_sdwa" };
            // v10 compares NaNs as NaNs. The bits of a NaN in v11 are not specified here.
            let body = format!("{two}{form} v[10:11], v2{select}");
            cases.push(Case::new(two, body, integers(), move |all, lane| {
                let bits = all[lane][0] as u32 >> shift;
                let [low, high] = [bits, bits >> 8].map(|bits| value(format, bits) as f32);
                match (low.is_nan(), high.is_nan()) {
                    (false, false) => {
                        Want::Long(u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32)
                    }
                    (_, true) => Want::Single(low),
                    (true, false) => Want::Single(f32::NAN),
                }
            }));
        }
        for (select, shift) in [("", 0), (" op_sel:[0,0,1]", 16)] {
            // Numbers that are small beside single precision: the lane's number and halves of it.
            for (sources, small) in [("v2, v4", false), ("v14, -v15", true)] {
                let body = format!(
                    "v_cvt_f32_u32 v14, v0
                     v_mul_f32 v15, 0x3d4ccccd, v14
                     v_mul_f32 v14, v14, v14
                     v_mul_f32 v14, 0x3dcccccd, v14
                     {back} v10, {sources}{select}"
                );
                cases.push(Case::new(back, body, singles(), move |all, lane| {
                    let [mut a, mut b, ..] = all[lane].map(f);
                    if small {
                        let n = lane as f32;
                        (a, b) = (n * n * 0.1, -(n * 0.05));
                    }
                    let both = nearest(format, a) | nearest(format, b) << 8;
                    Want::Word(0x5a5a_5a5a & !(0xffff << shift) | both << shift)
                }));
            }
        }
    }
    cases.extend(random_roundings());
    cases.into_iter().map(|case| case.only(GFX942)).collect()
}

/// Rounding by a random number. Without one, numbers go towards zero; with the largest one, away from
/// zero unless nothing that counts is lost. One half of all random numbers round an odd half up.
fn random_roundings() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in FORMATS {
        let name: &'static str = format!("v_cvt_sr_{}_f32", format.0).leak();
        for (random, byte) in [("0", 0), ("-1", 1), ("0x7fffffff", 2), ("0x80000000", 3)] {
            let select = [
                "",
                " op_sel:[0,0,1,0]",
                " op_sel:[0,0,0,1]",
                " op_sel:[0,0,1,1]",
            ][byte];
            // Numbers with four bits of a fraction: 16 to 31 and 1.0 to 1.9375, in eights and ones.
            let body = format!(
                "v_and_b32 v14, 31, v0
                 v_add_u32 v14, 32, v14
                 v_cvt_f32_u32 v14, v14
                 v_mul_f32 v14, 0x3d000000, v14
                 v_mov_b32 v15, {random}
                 {name} v10, v14, v15{select}"
            );
            cases.push(Case::new(name, body, integers(), move |_, lane| {
                let number = (32 + lane % 32) as f32 / 32.0;
                // The neighbours below and above.
                let below = (0..0x7f)
                    .rfind(|bits| value(format, *bits) <= number.into())
                    .expect("zero at least");
                let (low, high) = (value(format, below), value(format, below + 1));
                let part = (f64::from(number) - low) / (high - low);
                let up = match byte {
                    0 => false,
                    1 => part > 0.0,
                    2 => part > 0.5,
                    _ => part >= 0.5,
                };
                let bits = below + u32::from(up);
                Want::Word(0x5a5a_5a5a & !(0xff << (8 * byte)) | bits << (8 * byte))
            }));
        }
    }
    cases
}
