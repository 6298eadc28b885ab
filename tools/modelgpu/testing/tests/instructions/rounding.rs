//! Roundings other than to nearest even, against rustc_apfloat, a port of LLVM's own soft floats.

use modelgpu_amdgcn::Target;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::harness::{Case, GCN, Want};
use crate::inputs::{doubles, halves, integers, singles};

/// gfx942 and its successor.
const GFX942: &[Target] = &[Target::Gfx942, Target::Gfx950];

/// MODE's numbers of the roundings. The last one leaves single precision, or the others, at nearest.
const MODES: [(u32, Round); 3] = [
    (1, Round::TowardPositive),
    (2, Round::TowardNegative),
    (3, Round::TowardZero),
];

#[derive(Clone, Copy)]
enum Operation {
    Add,
    Subtract,
    Reverse,
    Multiply,
    Fused,
    MultiplyAdd,
}
use Operation::{Add, Fused, Multiply, MultiplyAdd, Reverse, Subtract};

/// The result of an operation; `None` for a NaN, whose bits are not specified here.
fn apply<F: Float>(operation: Operation, [a, b, c]: [u64; 3], round: Round) -> Option<u64> {
    let [a, b, c] = [a, b, c].map(|bits| F::from_bits(bits.into()));
    let result = match operation {
        Add => a.add_r(b, round).value,
        Subtract => a.sub_r(b, round).value,
        Reverse => b.sub_r(a, round).value,
        Multiply => a.mul_r(b, round).value,
        Fused => a.mul_add_r(b, c, round).value,
        MultiplyAdd => a.mul_r(b, round).value.add_r(c, round).value,
    };
    (!result.is_nan()).then(|| result.to_bits() as u64)
}

/// Instructions: the name, the text with the sources' places, targets, operation.
type Instruction = (&'static str, &'static str, &'static [Target], Operation);

const SINGLES: &[Instruction] = &[
    ("v_add_f32", "v10, v2, v4", Target::WAVE64, Add),
    ("v_sub_f32", "v10, v2, v4", Target::WAVE64, Subtract),
    ("v_subrev_f32", "v10, v2, v4", Target::WAVE64, Reverse),
    ("v_mul_f32", "v10, v2, v4", Target::WAVE64, Multiply),
    ("v_fma_f32", "v10, v2, v4, v6", Target::WAVE64, Fused),
    ("v_fmac_f32", "v10, v2, v4", Target::WAVE64, Fused),
    ("v_mad_f32", "v10, v2, v4, v6", GCN, MultiplyAdd),
    ("v_mac_f32", "v10, v2, v4", GCN, MultiplyAdd),
];

const DOUBLES: &[Instruction] = &[
    ("v_add_f64", "v[10:11], v[2:3], v[4:5]", Target::WAVE64, Add),
    (
        "v_mul_f64",
        "v[10:11], v[2:3], v[4:5]",
        Target::WAVE64,
        Multiply,
    ),
    (
        "v_fma_f64",
        "v[10:11], v[2:3], v[4:5], v[6:7]",
        Target::WAVE64,
        Fused,
    ),
    (
        "v_fmac_f64",
        "v[10:11], v[2:3], v[4:5]",
        Target::WAVE64,
        Fused,
    ),
];

const HALVES: &[Instruction] = &[
    ("v_add_f16", "v10, v2, v4", Target::WAVE64, Add),
    ("v_sub_f16", "v10, v2, v4", Target::WAVE64, Subtract),
    ("v_subrev_f16", "v10, v2, v4", Target::WAVE64, Reverse),
    ("v_mul_f16", "v10, v2, v4", Target::WAVE64, Multiply),
    ("v_fma_legacy_f16", "v10, v2, v4, v6", Target::WAVE64, Fused),
    (
        "v_mad_legacy_f16",
        "v10, v2, v4, v6",
        Target::WAVE64,
        MultiplyAdd,
    ),
];

/// `field` is the first bit of the rounding in MODE: 0 for single precision, 2 for the others.
fn in_mode(field: u32, mode: u32, body: &str) -> String {
    format!(
        "v_mov_b32 v10, v6
         v_mov_b32 v11, v7
         s_setreg_imm32_b32 hwreg(HW_REG_MODE, {field}, 2), {mode}
         {body}
         s_setreg_imm32_b32 hwreg(HW_REG_MODE, {field}, 2), 0"
    )
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (mode, round) in MODES {
        for (name, operands, targets, operation) in SINGLES.iter().copied() {
            let body = in_mode(0, mode, &format!("{name} {operands}"));
            let case = Case::new(name, body, singles(), move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| bits & 0xffff_ffff);
                apply::<Single>(operation, [a, b, c], round)
                    .map_or(Want::Any, |bits| Want::Word(bits as u32))
            });
            cases.push(case.only(targets));
        }
        for (name, operands, targets, operation) in DOUBLES.iter().copied() {
            let body = in_mode(2, mode, &format!("{name} {operands}"));
            let case = Case::new(name, body, doubles(), move |all, lane| {
                let [a, b, c, _] = all[lane];
                apply::<Double>(operation, [a, b, c], round).map_or(Want::Any, Want::Long)
            });
            cases.push(case.only(targets));
        }
        for (name, operands, targets, operation) in HALVES.iter().copied() {
            // RDNA keeps the other half.
            let body = format!("{name} {operands}\nv_and_b32 v10, 0xffff, v10");
            let body = in_mode(2, mode, &body);
            let case = Case::new(name, body, halves(), move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| bits & 0xffff);
                apply::<Half>(operation, [a, b, c], round)
                    .map_or(Want::Any, |bits| Want::Word(bits as u32))
            });
            cases.push(case.only(targets));
        }
        cases.extend(conversions(mode, round));
    }
    // One field does not change the other's formats, also where nearest even differs.
    for (name, field) in [("v_add_f32", 2), ("v_mul_f32", 2)] {
        let body = in_mode(field, 1, &format!("{name} v10, v2, v4"));
        let operation = if name == "v_add_f32" { Add } else { Multiply };
        cases.push(Case::new(name, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| bits & 0xffff_ffff);
            apply::<Single>(operation, [a, b, c], Round::NearestTiesToEven)
                .map_or(Want::Any, |bits| Want::Word(bits as u32))
        }));
    }
    cases.extend(constants());
    cases.extend(packed());
    cases
}

/// Two halves of 32 or of 16 bits.
fn packed() -> Vec<Case> {
    let down = Round::TowardNegative;
    let mut cases = Vec::new();
    for (name, operands, operation) in [
        ("v_pk_add_f32", "v[10:11], v[2:3], v[4:5]", Add),
        ("v_pk_mul_f32", "v[10:11], v[2:3], v[4:5]", Multiply),
        ("v_pk_fma_f32", "v[10:11], v[2:3], v[4:5], v[6:7]", Fused),
    ] {
        let body = in_mode(0, 2, &format!("{name} {operands}"));
        // The high halves are the low ones of the next lane.
        let numbers = singles();
        let inputs = std::array::from_fn(|lane| {
            let next = numbers[(lane + 1) % 64];
            std::array::from_fn(|n| numbers[lane][n] & 0xffff_ffff | next[n] << 32)
        });
        cases.push(Case::new(name, body, inputs, move |all, lane| {
            let half = |shift: u32| {
                let [a, b, c, _] = all[lane].map(|bits| bits >> shift & 0xffff_ffff);
                apply::<Single>(operation, [a, b, c], down)
            };
            match (half(0), half(32)) {
                (Some(low), Some(high)) => Want::Long(low | high << 32),
                _ => Want::Any,
            }
        }));
    }
    for (name, operands, operation) in [
        ("v_pk_add_f16", "v10, v2, v4", Add),
        ("v_pk_mul_f16", "v10, v2, v4", Multiply),
        ("v_pk_fma_f16", "v10, v2, v4, v6", Fused),
    ] {
        let body = in_mode(2, 2, &format!("{name} {operands}"));
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let half = |shift: u32| {
                let [a, b, c, _] = all[lane].map(|bits| bits >> shift & 0xffff);
                apply::<Half>(operation, [a, b, c], down)
            };
            match (half(0), half(16)) {
                (Some(low), Some(high)) => Want::Word((low | high << 16) as u32),
                _ => Want::Any,
            }
        }));
    }
    cases
}

/// Instructions with a constant of their own.
fn constants() -> Vec<Case> {
    let pi = 0x4049_0fdb;
    [
        (
            "v_fmamk_f32",
            "v10, v2, 0x40490fdb, v4",
            GFX942,
            Fused,
            true,
        ),
        (
            "v_fmaak_f32",
            "v10, v2, v4, 0x40490fdb",
            GFX942,
            Fused,
            false,
        ),
        (
            "v_madmk_f32",
            "v10, v2, 0x40490fdb, v4",
            GCN,
            MultiplyAdd,
            true,
        ),
        (
            "v_madak_f32",
            "v10, v2, v4, 0x40490fdb",
            GCN,
            MultiplyAdd,
            false,
        ),
    ]
    .into_iter()
    .map(|(name, operands, targets, operation, second)| {
        let body = in_mode(0, 1, &format!("{name} {operands}"));
        let case = Case::new(name, body, singles(), move |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| bits & 0xffff_ffff);
            let sources = if second { [a, pi, b] } else { [a, b, pi] };
            apply::<Single>(operation, sources, Round::TowardPositive)
                .map_or(Want::Any, |bits| Want::Word(bits as u32))
        });
        case.only(targets)
    })
    .collect()
}

fn conversions(mode: u32, round: Round) -> Vec<Case> {
    fn converted<F: FloatConvert<T>, T: Float>(bits: u64, round: Round) -> Option<u64> {
        let value = F::from_bits(bits.into());
        let result = value.convert_r(round, &mut false).value;
        (!result.is_nan()).then(|| result.to_bits() as u64)
    }
    let word = |bits: Option<u64>| bits.map_or(Want::Any, |bits| Want::Word(bits as u32));
    vec![
        Case::new(
            "v_cvt_f32_f64",
            in_mode(0, mode, "v_cvt_f32_f64 v10, v[2:3]"),
            doubles(),
            move |all, lane| word(converted::<Double, Single>(all[lane][0], round)),
        ),
        Case::new(
            "v_cvt_f16_f32",
            in_mode(2, mode, "v_cvt_f16_f32 v10, v2\nv_and_b32 v10, 0xffff, v10"),
            singles(),
            move |all, lane| word(converted::<Single, Half>(all[lane][0] & 0xffff_ffff, round)),
        ),
        Case::new(
            "v_cvt_f32_i32",
            in_mode(0, mode, "v_cvt_f32_i32 v10, v2"),
            integers(),
            move |all, lane| {
                let value = Single::from_i128_r((all[lane][0] as i32).into(), round).value;
                Want::Word(value.to_bits() as u32)
            },
        ),
        Case::new(
            "v_cvt_f32_u32",
            in_mode(0, mode, "v_cvt_f32_u32 v10, v2"),
            integers(),
            move |all, lane| {
                let value = Single::from_u128_r((all[lane][0] as u32).into(), round).value;
                Want::Word(value.to_bits() as u32)
            },
        ),
        Case::new(
            "v_cvt_f16_i16",
            in_mode(2, mode, "v_cvt_f16_i16 v10, v2\nv_and_b32 v10, 0xffff, v10"),
            integers(),
            move |all, lane| {
                let value = Half::from_i128_r((all[lane][0] as i16).into(), round).value;
                Want::Word(value.to_bits() as u32)
            },
        ),
        Case::new(
            "v_cvt_f16_u16",
            in_mode(2, mode, "v_cvt_f16_u16 v10, v2\nv_and_b32 v10, 0xffff, v10"),
            integers(),
            move |all, lane| {
                let value = Half::from_u128_r((all[lane][0] as u16).into(), round).value;
                Want::Word(value.to_bits() as u32)
            },
        ),
        // A power of two moves a number into the denormal ones, or out of all.
        Case::new(
            "v_ldexp_f32",
            in_mode(0, mode, "v_bfe_i32 v14, v4, 0, 9\nv_ldexp_f32 v10, v2, v14"),
            singles(),
            move |all, lane| {
                let [a, b, ..] = all[lane];
                let value = Single::from_bits((a & 0xffff_ffff).into());
                if value.is_nan() {
                    return Want::Any;
                }
                let power = ((b << 55) as i64 >> 55) as i32;
                Want::Word(value.scalbn_r(power, round).to_bits() as u32)
            },
        ),
        Case::new(
            "v_ldexp_f16",
            in_mode(
                2,
                mode,
                "v_bfe_i32 v14, v4, 0, 6\nv_ldexp_f16 v10, v2, v14\nv_and_b32 v10, 0xffff, v10",
            ),
            halves(),
            move |all, lane| {
                let [a, b, ..] = all[lane];
                let value = Half::from_bits((a & 0xffff).into());
                if value.is_nan() {
                    return Want::Any;
                }
                let power = ((b << 58) as i64 >> 58) as i32;
                Want::Word(value.scalbn_r(power, round).to_bits() as u32)
            },
        ),
        Case::new(
            "v_ldexp_f64",
            in_mode(
                2,
                mode,
                "v_bfe_i32 v14, v4, 0, 12\nv_ldexp_f64 v[10:11], v[2:3], v14",
            ),
            doubles(),
            move |all, lane| {
                let [a, b, ..] = all[lane];
                let value = Double::from_bits(a.into());
                if value.is_nan() {
                    return Want::Any;
                }
                let power = ((b << 52) as i64 >> 52) as i32;
                Want::Long(value.scalbn_r(power, round).to_bits() as u64)
            },
        ),
    ]
}
