//! Floating-point instructions: single and double precision, and modifiers.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, GCN, Want};
use crate::inputs::{doubles, singles};

/// The targets with a fused form of a constant.
const FUSED_CONSTANTS: &[Target] = &[
    Target::Gfx942,
    Target::Gfx950,
    Target::Gfx1030,
    Target::Gfx1100,
    Target::Gfx1201,
];

pub(crate) fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

pub(crate) fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// A number wins over a NaN, and -0 is less than 0.
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() { b } else { a };
    }
    if a.total_cmp(&b).is_lt() { a } else { b }
}

pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() { b } else { a };
    }
    if a.total_cmp(&b).is_gt() { a } else { b }
}

fn lesser32(a: f32, b: f32) -> f32 {
    lesser(a.into(), b.into()) as f32
}

fn greater32(a: f32, b: f32) -> f32 {
    greater(a.into(), b.into()) as f32
}

pub(crate) fn middle(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return lesser32(lesser32(a, b), c);
    }
    let mut all = [a, b, c];
    all.sort_by(f32::total_cmp);
    all[1]
}

/// The power of two that brings a number's magnitude into [0.5, 1).
pub(crate) fn exponent(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let mut exponent = 0;
    let mut magnitude = value.abs();
    while magnitude >= 1.0 {
        magnitude /= 2.0;
        exponent += 1;
    }
    while magnitude < 0.5 {
        magnitude *= 2.0;
        exponent -= 1;
    }
    exponent
}

/// Multiplies by two `power` times, in steps that are exact until the last.
pub(crate) fn scaled(value: f64, power: i32) -> f64 {
    let own = exponent(value);
    if value == 0.0 || !value.is_finite() || own + power > 1024 {
        return if power > 0 && value.is_finite() && value != 0.0 {
            f64::INFINITY.copysign(value)
        } else {
            value
        };
    }
    if own + power < -1075 {
        return 0f64.copysign(value);
    }
    // Through a mantissa that all the steps but the last keep exact.
    let mut result = value;
    for _ in 0..own.unsigned_abs() {
        result = if own > 0 { result / 2.0 } else { result * 2.0 };
    }
    let total = own + power;
    if total < -1021 {
        let denormal_units = result * 2f64.powi(total + 1074 - 52) * 2f64.powi(52);
        return denormal_units.round_ties_even() * f64::from_bits(1);
    }
    for _ in 0..total.unsigned_abs() {
        result = if total > 0 {
            result * 2.0
        } else {
            result / 2.0
        };
    }
    result
}

type Single1 = fn(f32) -> f32;
type Single2 = fn(f32, f32) -> f32;
type Single3 = fn(f32, f32, f32) -> f32;
pub(crate) type Double1 = fn(f64) -> f64;
pub(crate) type Double2 = fn(f64, f64) -> f64;

const SINGLE1: &[(&str, Single1)] = &[
    ("v_trunc_f32", |a| {
        if a.is_sign_negative() {
            a.ceil()
        } else {
            a.floor()
        }
    }),
    ("v_floor_f32", f32::floor),
    ("v_ceil_f32", |a| -(-a).floor()),
    ("v_rndne_f32", |a| {
        let (down, up) = (f64::from(a).floor(), f64::from(a).ceil());
        let (below, above) = (f64::from(a) - down, up - f64::from(a));
        let even = if down % 2.0 == 0.0 { down } else { up };
        let chosen = if below < above {
            down
        } else if above < below {
            up
        } else {
            even
        };
        chosen.copysign(a.into()) as f32
    }),
    ("v_fract_f32", |a| {
        if !a.is_finite() {
            return f32::NAN;
        }
        lesser32(a - a.floor(), 1.0 - f32::EPSILON / 2.0)
    }),
    ("v_frexp_mant_f32", |a| {
        scaled(a.into(), -exponent(a.into())) as f32
    }),
    ("v_sqrt_f32", |a| f64::from(a).sqrt() as f32),
];

const APPROXIMATE1: &[(&str, Single1)] = &[
    ("v_rcp_f32", |a| (1.0 / f64::from(a)) as f32),
    ("v_rcp_iflag_f32", |a| (1.0 / f64::from(a)) as f32),
    ("v_rsq_f32", |a| f64::from(a).sqrt().recip() as f32),
    ("v_exp_f32", |a| 2f64.powf(a.into()) as f32),
    ("v_log_f32", |a| {
        (f64::from(a).ln() / std::f64::consts::LN_2) as f32
    }),
];

const SINGLE2: &[(&str, Single2)] = &[
    ("v_add_f32", |a, b| (f64::from(a) + f64::from(b)) as f32),
    ("v_sub_f32", |a, b| (f64::from(a) - f64::from(b)) as f32),
    ("v_subrev_f32", |a, b| (f64::from(b) - f64::from(a)) as f32),
    ("v_mul_f32", |a, b| (f64::from(a) * f64::from(b)) as f32),
    ("v_mul_legacy_f32", |a, b| match (a, b) {
        (0.0, _) | (_, 0.0) => 0.0,
        _ => (f64::from(a) * f64::from(b)) as f32,
    }),
    ("v_min_f32", lesser32),
    ("v_max_f32", greater32),
];

const SINGLE3: &[(&str, &[Target], Single3)] = &[
    ("v_fma_f32", Target::WAVE64, f32::mul_add),
    ("v_mad_f32", GCN, |a, b, c| a * b + c),
    ("v_min3_f32", Target::WAVE64, |a, b, c| {
        lesser32(a, lesser32(b, c))
    }),
    ("v_max3_f32", Target::WAVE64, |a, b, c| {
        greater32(a, greater32(b, c))
    }),
    ("v_med3_f32", Target::WAVE64, middle),
];

const DOUBLE1: &[(&str, Double1)] = &[
    ("v_trunc_f64", |a| {
        if a.is_sign_negative() {
            a.ceil()
        } else {
            a.floor()
        }
    }),
    ("v_floor_f64", f64::floor),
    ("v_ceil_f64", |a| -(-a).floor()),
    ("v_rndne_f64", |a| {
        let (down, up) = (a.floor(), a.ceil());
        let even = if down % 2.0 == 0.0 { down } else { up };
        let (below, above) = (a - down, up - a);
        (if below < above {
            down
        } else if above < below {
            up
        } else {
            even
        })
        .copysign(a)
    }),
    ("v_fract_f64", |a| {
        if !a.is_finite() {
            return f64::NAN;
        }
        lesser(a - a.floor(), 1.0 - f64::EPSILON / 2.0)
    }),
    ("v_frexp_mant_f64", |a| scaled(a, -exponent(a))),
];

const APPROXIMATE_DOUBLE1: &[(&str, Double1)] = &[
    ("v_rcp_f64", |a| a.powi(-1)),
    ("v_rsq_f64", |a| a.sqrt().recip()),
    ("v_sqrt_f64", f64::sqrt),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, run) in SINGLE1.iter().copied() {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            singles(),
            move |all, lane| Want::Single(run(f(all[lane][0]))),
        ));
    }
    for (name, run) in APPROXIMATE1.iter().copied() {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            singles(),
            move |all, lane| Want::NearSingle(run(f(all[lane][0]))),
        ));
    }
    for (name, run) in SINGLE2.iter().copied() {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2, v4"),
            singles(),
            move |all, lane| {
                let [a, b, ..] = all[lane];
                Want::Single(run(f(a), f(b)))
            },
        ));
    }
    for (name, targets, run) in SINGLE3.iter().copied() {
        let body = format!("{name} v10, v2, v4, v6");
        let case = Case::new(name, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            Want::Single(run(f(a), f(b), f(c)))
        });
        cases.push(case.only(targets));
    }
    for (name, run) in DOUBLE1.iter().copied() {
        let body = format!("{name} v[10:11], v[2:3]");
        cases.push(Case::new(name, body, doubles(), move |all, lane| {
            Want::Double(run(d(all[lane][0])))
        }));
    }
    for (name, run) in APPROXIMATE_DOUBLE1.iter().copied() {
        let body = format!("{name} v[10:11], v[2:3]");
        cases.push(Case::new(name, body, doubles(), move |all, lane| {
            Want::NearDouble(run(d(all[lane][0])))
        }));
    }
    cases.extend(accumulating());
    cases.extend(doubles_of_several());
    cases.extend(exponents());
    cases.extend(modifiers());
    cases
}

/// Instructions that add to their result, or have their own constant.
fn accumulating() -> Vec<Case> {
    let single = |name: &'static str, body: &str, run: fn(f32, f32, f32) -> f32| {
        let body = format!("v_mov_b32 v10, v6\n{name} {body}");
        Case::new(name, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            Want::Single(run(f(a), f(b), f(c)))
        })
    };
    vec![
        single("v_fmac_f32", "v10, v2, v4", |a, b, c| a.mul_add(b, c)),
        single("v_mac_f32", "v10, v2, v4", |a, b, c| a * b + c).only(GCN),
        single("v_madmk_f32", "v10, v2, 0x40490fdb, v4", |a, b, _| {
            a * f32::from_bits(0x4049_0fdb) + b
        })
        .only(GCN),
        single("v_madak_f32", "v10, v2, v4, 0x40490fdb", |a, b, _| {
            a * b + f32::from_bits(0x4049_0fdb)
        })
        .only(GCN),
        single("v_fmamk_f32", "v10, v2, 0x40490fdb, v4", |a, b, _| {
            a.mul_add(f32::from_bits(0x4049_0fdb), b)
        })
        .only(FUSED_CONSTANTS),
        single("v_fmaak_f32", "v10, v2, v4, 0x40490fdb", |a, b, _| {
            a.mul_add(b, f32::from_bits(0x4049_0fdb))
        })
        .only(FUSED_CONSTANTS),
        Case::new(
            "v_fmac_f64",
            "v_mov_b32 v10, v6
             v_mov_b32 v11, v7
             v_fmac_f64 v[10:11], v[2:3], v[4:5]",
            doubles(),
            |all, lane| {
                let [a, b, c, _] = all[lane].map(d);
                Want::Double(a.mul_add(b, c))
            },
        ),
    ]
}

fn doubles_of_several() -> Vec<Case> {
    let two: [(&'static str, Double2); 4] = [
        ("v_add_f64", |a, b| a + b),
        ("v_mul_f64", |a, b| a * b),
        ("v_min_f64", lesser),
        ("v_max_f64", greater),
    ];
    let mut cases: Vec<Case> = two
        .into_iter()
        .map(|(name, run)| {
            let body = format!("{name} v[10:11], v[2:3], v[4:5]");
            Case::new(name, body, doubles(), move |all, lane| {
                let [a, b, ..] = all[lane].map(d);
                Want::Double(run(a, b))
            })
        })
        .collect();
    cases.push(Case::new(
        "v_fma_f64",
        "v_fma_f64 v[10:11], v[2:3], v[4:5], v[6:7]",
        doubles(),
        |all, lane| {
            let [a, b, c, _] = all[lane].map(d);
            Want::Double(a.mul_add(b, c))
        },
    ));
    cases
}

fn exponents() -> Vec<Case> {
    vec![
        Case::new(
            "v_ldexp_f32",
            "v_bfe_i32 v14, v4, 0, 9\nv_ldexp_f32 v10, v2, v14",
            singles(),
            |all, lane| {
                let [a, b, ..] = all[lane];
                let power = ((b as i32) << 23) >> 23;
                Want::Single(scaled(f(a).into(), power) as f32)
            },
        ),
        Case::new(
            "v_ldexp_f64",
            "v_bfe_i32 v14, v4, 0, 12\nv_ldexp_f64 v[10:11], v[2:3], v14",
            doubles(),
            |all, lane| {
                let [a, b, ..] = all[lane];
                let power = ((b as i32) << 20) >> 20;
                Want::Double(scaled(d(a), power))
            },
        ),
        Case::new(
            "v_frexp_exp_i32_f32",
            "v_frexp_exp_i32_f32 v10, v2",
            singles(),
            |all, lane| Want::Word(exponent(f(all[lane][0]).into()) as u32),
        ),
        Case::new(
            "v_frexp_exp_i32_f64",
            "v_frexp_exp_i32_f64 v10, v[2:3]",
            doubles(),
            |all, lane| Want::Word(exponent(d(all[lane][0])) as u32),
        ),
        // Angles count in turns; the lane's number makes 64 of them.
        Case::new(
            "v_sin_f32",
            "v_cvt_f32_u32 v14, v0\nv_mul_f32 v14, 0x3c800000, v14\nv_sin_f32 v10, v14",
            singles(),
            |_, lane| Want::NearSingle(sine_of(lane)),
        ),
        Case::new(
            "v_cos_f32",
            "v_cvt_f32_u32 v14, v0\nv_mul_f32 v14, 0x3c800000, v14\nv_cos_f32 v10, v14",
            singles(),
            |_, lane| Want::NearSingle(sine_of(lane + 16)),
        ),
    ]
}

/// The sine of an angle in 64ths of a turn.
fn sine_of(parts: usize) -> f32 {
    match parts % 64 {
        0 | 32 => 0.0,
        parts => (parts as f64 / 64.0 * std::f64::consts::TAU).sin() as f32,
    }
}

/// A number, or zero for a denormal one.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() {
        0f32.copysign(x)
    } else {
        x
    }
}

/// abs, neg, omod, clamp, and the denormal modes.
fn modifiers() -> Vec<Case> {
    fn single(body: &str, run: fn(f32, f32) -> f32) -> Case {
        Case::new("v_add_f32", body, singles(), move |all, lane| {
            let [a, b, ..] = all[lane];
            Want::Single(run(f(a), f(b)))
        })
    }
    // Without IEEE's rules and denormal results.
    let factor = |modifier: &str, factor: f32| {
        let body = format!(
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
             s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0
             v_add_f32 v10, v2, v4 {modifier}"
        );
        Case::new("v_add_f32", body, singles(), move |all, lane| {
            let [a, b, ..] = all[lane].map(f).map(flushed);
            Want::Single(flushed((a + b) * factor))
        })
    };
    vec![
        single("v_add_f32 v10, -v2, |v4|", |a, b| -a + b.abs()),
        single("v_add_f32 v10, -|v2|, v4", |a, b| -a.abs() + b),
        single("v_add_f32 v10, v2, v4 clamp", |a, b| {
            let sum = a + b;
            if sum > 1.0 {
                1.0
            } else if sum > 0.0 {
                sum
            } else {
                0.0
            }
        }),
        // The hardware ignores a factor if results may be denormal: see `amdgcn/tests/values`.
        single("v_add_f32 v10, v2, v4 mul:4", |a, b| a + b),
        single("v_add_f32 v10, v2, v4 div:2", |a, b| a + b),
        factor("mul:2", 2.0),
        factor("mul:4", 4.0),
        factor("div:2", 0.5),
        // A program for gfx1100 of tinygrad's tests, which had this result on a GPU: v1 = 2 + 1, whatever omod is.
        Case::new(
            "v_add_f32",
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
             v_mov_b32 v14, 2.0
             v_add_f32 v10, v14, 1.0 mul:2",
            singles(),
            |_, _| Want::Single(3.0),
        )
        .only(&[
            Target::Gfx906,
            Target::Gfx908,
            Target::Gfx90a,
            Target::Gfx942,
            Target::Gfx950,
            Target::Gfx1030,
            Target::Gfx1100,
        ]),
        single("v_add_f32 v10, 0.15915494, v2", |a, _| {
            a + f32::from_bits(0x3e22_f983)
        }),
        Case::new(
            "v_mul_f64",
            "v_mul_f64 v[10:11], |v[2:3]|, -2.0 mul:2",
            doubles(),
            |all, lane| Want::Double(d(all[lane][0]).abs() * -2.0),
        ),
        // FP_DENORM of single precision allows neither denormal sources nor denormal results.
        Case::new(
            "s_setreg_imm32_b32",
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
             v_mul_f32 v10, v2, v4
             s_getreg_b32 s20, hwreg(HW_REG_MODE, 4, 4)
             v_mov_b32 v11, s20",
            singles(),
            |all, lane| {
                let [a, b, ..] = all[lane].map(f);
                let product = flushed(flushed(a) * flushed(b));
                let bits = if product.is_nan() {
                    return Want::Single(product);
                } else {
                    product
                };
                Want::Long(u64::from(bits.to_bits()) | 0xc << 32)
            },
        ),
    ]
}
