//! Integer instructions with the clamp modifier: the result saturates instead of wrapping.

use crate::harness::{Case, Want};
use crate::inputs::integers;

/// Maps the sources, numbers of the instruction's type, to the exact result.
type Exact = fn([i128; 3]) -> i128;

/// The type of sources and results: bits, and a flag for signed numbers.
#[derive(Clone, Copy)]
struct Type(u32, bool);

impl Type {
    fn read(self, bits: u64) -> i128 {
        let unsigned = i128::from(bits) % (1 << self.0);
        if self.1 && unsigned >= 1 << (self.0 - 1) {
            unsigned - (1 << self.0)
        } else {
            unsigned
        }
    }

    /// The nearest number of the type, as bits.
    fn saturate(self, exact: i128) -> u64 {
        let (low, high) = if self.1 {
            (-(1 << (self.0 - 1)), (1 << (self.0 - 1)) - 1)
        } else {
            (0, (1 << self.0) - 1)
        };
        let limited = if exact < low {
            low
        } else if exact > high {
            high
        } else {
            exact
        };
        limited as u64 & (u64::MAX >> (64 - self.0))
    }
}

const U16: Type = Type(16, false);
const I16: Type = Type(16, true);
const U24: Type = Type(24, false);
const I24: Type = Type(24, true);
const U32: Type = Type(32, false);
const I32: Type = Type(32, true);
const U64: Type = Type(64, false);
const I64: Type = Type(64, true);

const SUM: Exact = |[a, b, _]| a + b;
const DIFFERENCE: Exact = |[a, b, _]| a - b;
const REVERSED: Exact = |[a, b, _]| b - a;
const PRODUCT: Exact = |[a, b, _]| a * b;
const MULTIPLY_ADD: Exact = |[a, b, c]| a * b + c;
const SMALLEST: Exact = |[a, b, c]| *[a, b, c].iter().min().expect("three");
const LARGEST: Exact = |[a, b, c]| *[a, b, c].iter().max().expect("three");
const MIDDLE: Exact = |all| all.iter().sum::<i128>() - SMALLEST(all) - LARGEST(all);

/// Mnemonic, type of the factors, of the addend and the result, and the exact result.
const PLAIN: &[(&str, Type, Type, Exact)] = &[
    ("v_add_u16", U16, U16, SUM),
    ("v_sub_u16", U16, U16, DIFFERENCE),
    ("v_subrev_u16", U16, U16, REVERSED),
    ("v_add_i16", I16, I16, SUM),
    ("v_sub_i16", I16, I16, DIFFERENCE),
    ("v_add_u32", U32, U32, SUM),
    ("v_sub_u32", U32, U32, DIFFERENCE),
    ("v_subrev_u32", U32, U32, REVERSED),
    ("v_add_i32", I32, I32, SUM),
    ("v_sub_i32", I32, I32, DIFFERENCE),
    ("v_mul_u32_u24", U24, U32, PRODUCT),
    ("v_mul_i32_i24", I24, I32, PRODUCT),
];

const OF_THREE: &[(&str, Type, Type, Exact)] = &[
    ("v_mad_u16", U16, U16, MULTIPLY_ADD),
    ("v_mad_i16", I16, I16, MULTIPLY_ADD),
    ("v_mad_legacy_u16", U16, U16, MULTIPLY_ADD),
    ("v_mad_legacy_i16", I16, I16, MULTIPLY_ADD),
    ("v_mad_u32_u16", U16, U32, MULTIPLY_ADD),
    ("v_mad_i32_i16", I16, I32, MULTIPLY_ADD),
    ("v_mad_u32_u24", U24, U32, MULTIPLY_ADD),
    ("v_mad_i32_i24", I24, I32, MULTIPLY_ADD),
    ("v_sad_u32", U32, U32, |[a, b, c]| (a - b).abs() + c),
    ("v_min3_u16", U16, U16, SMALLEST),
    ("v_min3_i16", I16, I16, SMALLEST),
    ("v_med3_u16", U16, U16, MIDDLE),
    ("v_med3_i16", I16, I16, MIDDLE),
    ("v_max3_u16", U16, U16, LARGEST),
    ("v_max3_i16", I16, I16, LARGEST),
];

const CARRIES: &[(&str, bool, Exact)] = &[
    ("v_add_co_u32", false, SUM),
    ("v_sub_co_u32", false, DIFFERENCE),
    ("v_subrev_co_u32", false, REVERSED),
    ("v_addc_co_u32", true, |[a, b, carry]| a + b + carry),
    ("v_subb_co_u32", true, |[a, b, borrow]| a - b - borrow),
    ("v_subbrev_co_u32", true, |[a, b, borrow]| b - a - borrow),
];

const PACKED: &[(&str, bool, Type, Exact)] = &[
    ("v_pk_add_u16", false, U16, SUM),
    ("v_pk_sub_u16", false, U16, DIFFERENCE),
    ("v_pk_mul_lo_u16", false, U16, PRODUCT),
    ("v_pk_mad_u16", true, U16, MULTIPLY_ADD),
    ("v_pk_add_i16", false, I16, SUM),
    ("v_pk_sub_i16", false, I16, DIFFERENCE),
    ("v_pk_mad_i16", true, I16, MULTIPLY_ADD),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (table, more) in [(PLAIN, ""), (OF_THREE, ", v6")] {
        for (name, factor, result, exact) in table.iter().copied() {
            let body = format!("v_mov_b32 v10, 0\n{name} v10, v2, v4{more} clamp");
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                let [a, b, c, _] = all[lane];
                let sources = [factor.read(a), factor.read(b), result.read(c)];
                Want::Word(result.saturate(exact(sources)) as u32)
            }));
        }
    }
    for (name, reads, exact) in CARRIES.iter().copied() {
        // The carry in is set if d is odd. The carry out is that of the exact result.
        let source = if reads { ", vcc" } else { "" };
        let body = format!(
            "v_and_b32 v14, 1, v8
             v_cmp_ne_u32 vcc, 0, v14
             {name} v10, vcc, v2, v4{source} clamp
             v_cndmask_b32 v11, 3, v0, vcc"
        );
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, _, d] = all[lane];
            let sum = exact([U32.read(a), U32.read(b), i128::from(d & 1)]);
            let carry = !(0..1 << 32).contains(&sum);
            let told = if carry { lane as u64 } else { 3 };
            Want::Long(U32.saturate(sum) | told << 32)
        }));
    }
    for (name, factor, result) in [("v_mad_u64_u32", U32, U64), ("v_mad_i64_i32", I32, I64)] {
        let body = format!("{name} v[10:11], vcc, v2, v4, v[6:7] clamp");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            let sources = [factor.read(a), factor.read(b), result.read(c)];
            Want::Long(result.saturate(MULTIPLY_ADD(sources)))
        }));
    }
    for (name, three, kind, exact) in PACKED.iter().copied() {
        let more = if three { ", v6" } else { "" };
        let body = format!("{name} v10, v2, v4{more} clamp");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let half = |shift: u32| {
                let [a, b, c, _] = all[lane].map(|bits| kind.read(bits >> shift));
                kind.saturate(exact([a, b, c])) as u32
            };
            Want::Word(half(0) | half(16) << 16)
        }));
    }
    cases
}
