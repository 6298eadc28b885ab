//! Scalar sums, products, minima and maxima.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::operation::{ScalarOperation, scalar};

/// A sum whose first term is shifted; SCC reports an overflow of the whole.
macro_rules! shifted_add {
    ($shift:literal) => {
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            let sum = (u64::from(a) << $shift) + u64::from(b);
            (sum as u32, sum >> 32 != 0)
        })
    };
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "s_add_nc_u64",
        scalar!(Keep, |a: u64, b: u64| -> u64 { a.wrapping_add(b) }),
    ),
    (
        "s_sub_nc_u64",
        scalar!(Keep, |a: u64, b: u64| -> u64 { a.wrapping_sub(b) }),
    ),
    (
        "s_mul_u64",
        scalar!(Keep, |a: u64, b: u64| -> u64 { a.wrapping_mul(b) }),
    ),
    // Arithmetic.
    (
        "s_sext_i32_i8",
        scalar!(Keep, |a: u32| -> i32 { (a as i8).into() }),
    ),
    (
        "s_sext_i32_i16",
        scalar!(Keep, |a: u32| -> i32 { (a as i16).into() }),
    ),
    (
        "s_abs_i32",
        scalar!(Nonzero, |a: i32| -> i32 { a.wrapping_abs() }),
    ),
    (
        "s_absdiff_i32",
        scalar!(Nonzero, |a: i32, b: i32| -> i32 {
            a.wrapping_sub(b).wrapping_abs()
        }),
    ),
    (
        "s_add_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            a.overflowing_add(b)
        }),
    ),
    (
        "s_addc_u32",
        scalar!(Flag, |a: u32, b: u32, scc: bool| -> (u32, bool) {
            a.carrying_add(b, scc)
        }),
    ),
    (
        "s_sub_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            a.overflowing_sub(b)
        }),
    ),
    (
        "s_subb_u32",
        scalar!(Flag, |a: u32, b: u32, scc: bool| -> (u32, bool) {
            a.borrowing_sub(b, scc)
        }),
    ),
    (
        "s_add_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            a.overflowing_add(b)
        }),
    ),
    (
        "s_addk_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            a.overflowing_add(b)
        }),
    ),
    (
        "s_sub_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            a.overflowing_sub(b)
        }),
    ),
    (
        "s_mul_i32",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) }),
    ),
    (
        "s_mulk_i32",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) }),
    ),
    (
        "s_mul_hi_u32",
        scalar!(Keep, |a: u32, b: u32| -> u32 {
            ((u64::from(a) * u64::from(b)) >> 32) as u32
        }),
    ),
    (
        "s_mul_hi_i32",
        scalar!(Keep, |a: i32, b: i32| -> i32 {
            ((i64::from(a) * i64::from(b)) >> 32) as i32
        }),
    ),
    ("s_lshl1_add_u32", shifted_add!(1)),
    ("s_lshl2_add_u32", shifted_add!(2)),
    ("s_lshl3_add_u32", shifted_add!(3)),
    ("s_lshl4_add_u32", shifted_add!(4)),
    // SCC is set if the result is the first source.
    (
        "s_min_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            (a.min(b), a < b)
        }),
    ),
    (
        "s_max_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            (a.max(b), a > b)
        }),
    ),
    (
        "s_min_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            (a.min(b), a < b)
        }),
    ),
    (
        "s_max_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            (a.max(b), a > b)
        }),
    ),
    (
        "s_pack_ll_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a & 0xffff | b << 16 }),
    ),
    (
        "s_pack_lh_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a & 0xffff | b & !0xffff }),
    ),
    (
        "s_pack_hl_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a >> 16 | b << 16 }),
    ),
    (
        "s_pack_hh_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a >> 16 | b & !0xffff }),
    ),
];
