//! Comparisons of all types. v10 holds the mask, v11 holds EXEC after a v_cmpx.

use std::cmp::Ordering;

use crate::harness::{Case, Inputs, Want};
use crate::inputs::{doubles, halves, integers, singles};

/// A type's inputs and the comparison of two of them; `None` for a NaN.
struct Type {
    name: &'static str,
    wide: bool,
    inputs: fn() -> Inputs,
    compare: fn(u64, u64) -> Option<Ordering>,
}

const FLOATS: &[Type] = &[
    Type {
        name: "f16",
        wide: false,
        inputs: halves,
        compare: |a, b| half(a).partial_cmp(&half(b)),
    },
    Type {
        name: "f32",
        wide: false,
        inputs: singles,
        compare: |a, b| f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
    },
    Type {
        name: "f64",
        wide: true,
        inputs: doubles,
        compare: |a, b| f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
    },
];

const INTEGERS: &[Type] = &[
    Type {
        name: "i16",
        wide: false,
        inputs: integers,
        compare: |a, b| Some((a as i16).cmp(&(b as i16))),
    },
    Type {
        name: "u16",
        wide: false,
        inputs: integers,
        compare: |a, b| Some((a as u16).cmp(&(b as u16))),
    },
    Type {
        name: "i32",
        wide: false,
        inputs: integers,
        compare: |a, b| Some((a as i32).cmp(&(b as i32))),
    },
    Type {
        name: "u32",
        wide: false,
        inputs: integers,
        compare: |a, b| Some((a as u32).cmp(&(b as u32))),
    },
    Type {
        name: "i64",
        wide: true,
        inputs: integers,
        compare: |a, b| Some((a as i64).cmp(&(b as i64))),
    },
    Type {
        name: "u64",
        wide: true,
        inputs: integers,
        compare: |a, b| Some(a.cmp(&b)),
    },
];

fn half(bits: u64) -> f64 {
    crate::half::half_to_f64(bits as u16)
}

type Test = fn(Option<Ordering>) -> bool;

const FLOAT_TESTS: &[(&str, Test)] = &[
    ("f", |_| false),
    ("lt", |o| o == Some(Ordering::Less)),
    ("eq", |o| o == Some(Ordering::Equal)),
    ("le", |o| o.is_some_and(Ordering::is_le)),
    ("gt", |o| o == Some(Ordering::Greater)),
    ("lg", |o| o.is_some_and(Ordering::is_ne)),
    ("ge", |o| o.is_some_and(Ordering::is_ge)),
    ("o", |o| o.is_some()),
    ("u", |o| o.is_none()),
    ("nge", |o| !o.is_some_and(Ordering::is_ge)),
    ("nlg", |o| !o.is_some_and(Ordering::is_ne)),
    ("ngt", |o| !o.is_some_and(Ordering::is_gt)),
    ("nle", |o| !o.is_some_and(Ordering::is_le)),
    ("neq", |o| !o.is_some_and(Ordering::is_eq)),
    ("nlt", |o| !o.is_some_and(Ordering::is_lt)),
    ("tru", |_| true),
];

const INTEGER_TESTS: &[(&str, Test)] = &[
    ("f", |_| false),
    ("lt", |o| o == Some(Ordering::Less)),
    ("eq", |o| o == Some(Ordering::Equal)),
    ("le", |o| o.is_some_and(Ordering::is_le)),
    ("gt", |o| o == Some(Ordering::Greater)),
    ("ne", |o| o.is_some_and(Ordering::is_ne)),
    ("ge", |o| o.is_some_and(Ordering::is_ge)),
    ("t", |_| true),
];

/// Lanes 3 to 62 are active.
const ACTIVE: u64 = 0x7fff_ffff_ffff_fff8;

fn body(name: &str, operands: &str) -> String {
    format!(
        "s_mov_b64 exec, {ACTIVE:#x} & 0xffffffff
         s_mov_b32 exec_hi, {ACTIVE:#x} >> 32
         {name} s[20:21], {operands}
         s_mov_b64 s[22:23], exec
         s_mov_b64 exec, -1
         v_cndmask_b32 v10, 0, 1, s[20:21]
         v_cndmask_b32 v11, 0, 1, s[22:23]"
    )
}

fn want(extended: bool, result: bool, lane: usize) -> Want {
    let active = ACTIVE >> lane & 1 == 1;
    let exec = if extended { active && result } else { active };
    Want::Long(u64::from(active && result) | u64::from(exec) << 32)
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (types, tests) in [(FLOATS, FLOAT_TESTS), (INTEGERS, INTEGER_TESTS)] {
        for of in types {
            for (test, holds) in tests {
                for extended in [false, true] {
                    let prefix = if extended { "v_cmpx" } else { "v_cmp" };
                    let name: &'static str = format!("{prefix}_{test}_{}", of.name).leak();
                    let operands = if of.wide { "v[2:3], v[4:5]" } else { "v2, v4" };
                    let (compare, holds) = (of.compare, *holds);
                    cases.push(Case::new(
                        name,
                        body(name, operands),
                        (of.inputs)(),
                        move |all, lane| {
                            let [a, b, ..] = all[lane];
                            want(extended, holds(compare(a, b)), lane)
                        },
                    ));
                }
            }
        }
    }
    cases.extend(classes());
    cases
}

/// The ten classes, in the order of their bits.
fn class(negative: bool, nan: Option<bool>, magnitude: f64, denormal: bool) -> u32 {
    match (nan, magnitude) {
        (Some(quiet), _) => quiet.into(),
        (_, x) if x.is_infinite() => {
            if negative {
                2
            } else {
                9
            }
        }
        (_, 0.0) => {
            if negative {
                5
            } else {
                6
            }
        }
        _ if denormal => {
            if negative {
                4
            } else {
                7
            }
        }
        _ => {
            if negative {
                3
            } else {
                8
            }
        }
    }
}

fn classes() -> Vec<Case> {
    fn class16(bits: u64) -> u32 {
        let value = half(bits);
        let nan = value.is_nan().then_some(bits >> 9 & 1 == 1);
        class(
            bits >> 15 & 1 == 1,
            nan,
            value,
            value.abs() < 2f64.powi(-14),
        )
    }
    fn class32(bits: u64) -> u32 {
        let value = f32::from_bits(bits as u32);
        let nan = value.is_nan().then_some(bits >> 22 & 1 == 1);
        class(bits >> 31 & 1 == 1, nan, value.into(), value.is_subnormal())
    }
    fn class64(bits: u64) -> u32 {
        let value = f64::from_bits(bits);
        let nan = value.is_nan().then_some(bits >> 51 & 1 == 1);
        class(bits >> 63 == 1, nan, value, value.is_subnormal())
    }
    let mut cases = Vec::new();
    for (name, extended, inputs, wide, of) in [
        (
            "v_cmp_class_f16",
            false,
            halves as fn() -> Inputs,
            false,
            class16 as fn(u64) -> u32,
        ),
        ("v_cmpx_class_f16", true, halves, false, class16),
        ("v_cmp_class_f32", false, singles, false, class32),
        ("v_cmpx_class_f32", true, singles, false, class32),
        ("v_cmp_class_f64", false, doubles, true, class64),
        ("v_cmpx_class_f64", true, doubles, true, class64),
    ] {
        let operands = if wide { "v[2:3], v14" } else { "v2, v14" };
        // The class mask is the lane's number times 17, ten bits of it.
        let body = format!("v_mul_u32_u24 v14, 17, v0\n{}", body(name, operands));
        cases.push(Case::new(name, body, inputs(), move |all, lane| {
            want(
                extended,
                (17 * lane as u32) >> of(all[lane][0]) & 1 == 1,
                lane,
            )
        }));
    }
    // A signalling NaN differs from a quiet one.
    cases.push(Case::new(
        "v_cmp_class_f32",
        "v_mov_b32 v14, 0x7f800001
         v_cmp_class_f32 s[20:21], v14, 1
         v_cmp_class_f32 s[22:23], v14, 2
         v_mov_b32 v10, s20
         v_mov_b32 v11, s22",
        singles(),
        |_, _| Want::Long(0xffff_ffff),
    ));
    cases
}
