//! Conversions of floating-point numbers of 8 bits without a scale. gfx942 has formats of its own.

use modelgpu_amdgcn::Target;

use crate::float::f;
use crate::harness::{Case, Want};
use crate::inputs::{integers, singles};
use crate::small::{BF8, BF8_FNUZ, BRAIN, FP8, FP8_FNUZ, Format, HALF, SINGLE};

const GFX942: &[Target] = &[Target::Gfx942];
const GFX950: &[Target] = &[Target::Gfx950];
const GFX1201: &[Target] = &[Target::Gfx1201];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (formats, targets) in [
        ([FP8_FNUZ, BF8_FNUZ], GFX942),
        ([FP8, BF8], GFX950),
        ([FP8, BF8], GFX1201),
    ] {
        for format in formats {
            cases.extend(values(format, targets));
            cases.extend(roundings(format, targets));
            cases.extend(random_roundings(format, targets));
        }
    }
    for format in [HALF, BRAIN] {
        cases.extend(random_halves(format));
    }
    cases
}

fn values(format: Format, targets: &'static [Target]) -> Vec<Case> {
    let mut cases = Vec::new();
    let one: &'static str = format!("v_cvt_f32_{}", format.name).leak();
    let two: &'static str = format!("v_cvt_pk_f32_{}", format.name).leak();
    for byte in 0..4 {
        // A byte takes all values, four lanes' numbers in each.
        let set = format!(
            "v_lshl_add_u32 v14, v0, 2, {byte}
             v_lshlrev_b32 v14, {}, v14",
            8 * byte
        );
        let form = match targets == GFX1201 {
            true => format!("{one}_e64 v10, v14 byte_sel:{byte}"),
            false => format!("{one}_sdwa v10, v14 src0_sel:BYTE_{byte}"),
        };
        let case = Case::new(one, format!("{set}\n{form}"), integers(), move |_, lane| {
            Want::Single(format.value(4 * lane as u32 + byte) as f32)
        });
        cases.push(case.only(targets));
    }
    let plain = Case::new(
        one,
        format!("{one} v10, v2"),
        integers(),
        move |all, lane| Want::Single(format.value(all[lane][0] as u32) as f32),
    );
    cases.push(plain.only(targets));
    let second = match targets == GFX1201 {
        true => format!("{two}_e64 v[10:11], v2 op_sel:[1,0]"),
        false => format!("{two}_sdwa v[10:11], v2 src0_sel:WORD_1"),
    };
    for (form, shift) in [(format!("{two} v[10:11], v2"), 0), (second, 16)] {
        // v10 compares NaNs as NaNs. The bits of a NaN in v11 are not specified here.
        let case = Case::new(two, form, integers(), move |all, lane| {
            let bits = all[lane][0] as u32 >> shift;
            let [low, high] = [bits, bits >> 8].map(|bits| format.value(bits) as f32);
            match (low.is_nan(), high.is_nan()) {
                (false, false) => {
                    Want::Long(u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32)
                }
                (_, true) => Want::Single(low),
                (true, false) => Want::Single(f32::NAN),
            }
        });
        cases.push(case.only(targets));
    }
    cases
}

fn roundings(format: Format, targets: &'static [Target]) -> Vec<Case> {
    let mut cases = Vec::new();
    let name: &'static str = format!("v_cvt_pk_{}_f32", format.name).leak();
    for (select, shift) in [("", 0), (" op_sel:[0,0,1]", 16)] {
        // Numbers that are small compared with single precision: the lane's number and halves of it.
        for (sources, small) in [("v2, v4", false), ("v14, -v15", true)] {
            let body = format!(
                "v_cvt_f32_u32 v14, v0
                 v_mul_f32 v15, 0x3d4ccccd, v14
                 v_mul_f32 v14, v14, v14
                 v_mul_f32 v14, 0x3dcccccd, v14
                 {name} v10, {sources}{select}"
            );
            let case = Case::new(name, body, singles(), move |all, lane| {
                let [mut a, mut b, ..] = all[lane].map(f);
                if small {
                    let n = lane as f32;
                    (a, b) = (n * n * 0.1, -(n * 0.05));
                }
                let both = format.nearest(a.into()) | format.nearest(b.into()) << 8;
                Want::Word(0x5a5a_5a5a & !(0xffff << shift) | both << shift)
            });
            cases.push(case.only(targets));
        }
    }
    cases
}

/// Rounding by a random number. Without one, numbers go towards zero; with the largest one, away from
/// zero unless nothing that counts is lost. One half of all random numbers round an odd half up.
fn random_roundings(format: Format, targets: &'static [Target]) -> Vec<Case> {
    let mut cases = Vec::new();
    let name: &'static str = format!("v_cvt_sr_{}_f32", format.name).leak();
    let selects = [
        "",
        " op_sel:[0,0,1,0]",
        " op_sel:[0,0,0,1]",
        " op_sel:[0,0,1,1]",
    ];
    for (byte, random) in [0u32, u32::MAX, 0x7fff_ffff, 0x8000_0000]
        .into_iter()
        .enumerate()
    {
        // Numbers with five bits of a fraction from 1.0 on; and any numbers.
        for (source, any) in [("v14", false), ("v2", true)] {
            let select = match targets == GFX1201 {
                true => format!(" byte_sel:{byte}"),
                false => selects[byte].to_owned(),
            };
            let body = format!(
                "v_and_b32 v14, 31, v0
                     v_add_u32 v14, 32, v14
                     v_cvt_f32_u32 v14, v14
                     v_mul_f32 v14, 0x3d000000, v14
                     v_mov_b32 v15, {random:#x}
                     {name} v10, {source}, v15{select}"
            );
            let case = Case::new(name, body, singles(), move |all, lane| {
                let number = match any {
                    true => f(all[lane][0]),
                    false => (32 + lane % 32) as f32 / 32.0,
                };
                let bits = format.by_random(number.into(), SINGLE, random);
                Want::Word(0x5a5a_5a5a & !(0xff << (8 * byte)) | bits << (8 * byte))
            });
            cases.push(case.only(targets));
        }
    }
    cases
}

/// The high bits of a random number decide here too. A NaN becomes quiet, and keeps the high bits of its payload.
fn random_halves(format: Format) -> Vec<Case> {
    let name: &'static str = format!("v_cvt_sr_{}_f32", format.name).leak();
    let mut cases = Vec::new();
    for (select, shift) in [("", 0), (" op_sel:[0,0,1]", 16)] {
        for nan in [None, Some(0x7fa1_2345), Some(0xffc0_0000)] {
            let set = nan.map_or("v_mov_b32 v14, v2".into(), |nan| {
                format!("v_mov_b32 v14, {nan:#x}")
            });
            let body = format!("{set}\n{name} v10, -v14, v4{select}");
            let case = Case::new(name, body, singles(), move |all, lane| {
                let [a, random, ..] = all[lane];
                let number = -nan.map_or(f(a), f32::from_bits);
                let bits = match number.is_nan() {
                    true => format.of_nan(number),
                    false => format.by_random(number.into(), SINGLE, random as u32),
                };
                Want::Word(0x5a5a_5a5a & !(0xffff << shift) | bits << shift)
            });
            cases.push(case.only(GFX950));
        }
    }
    cases
}
