//! Integers of 64 bits and sums of products, which gfx1250 has.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::macros::{kinds, vector};
use super::operation::VectorOperation;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_add_nc_u64",
        vector!(Long, |a: u64, b: u64| -> u64 { a.wrapping_add(b) }),
    ),
    (
        "v_sub_nc_u64",
        vector!(Long, |a: u64, b: u64| -> u64 { a.wrapping_sub(b) }),
    ),
    (
        "v_mul_u64",
        vector!(Long, |a: u64, b: u64| -> u64 { a.wrapping_mul(b) }),
    ),
    (
        "v_min_u64",
        vector!(Long, |a: u64, b: u64| -> u64 { a.min(b) }),
    ),
    (
        "v_max_u64",
        vector!(Long, |a: u64, b: u64| -> u64 { a.max(b) }),
    ),
    (
        "v_min_i64",
        vector!(Long, |a: i64, b: i64| -> i64 { a.min(b) }),
    ),
    (
        "v_max_i64",
        vector!(Long, |a: i64, b: i64| -> i64 { a.max(b) }),
    ),
    (
        "v_mad_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            a.wrapping_mul(b).wrapping_add(c)
        }),
    ),
    (
        "v_mad_nc_u64_u32",
        vector!(Long, |a: u32, b: u32, c: u64| -> u64 {
            (u64::from(a) * u64::from(b)).wrapping_add(c)
        }),
    ),
    (
        "v_mad_nc_i64_i32",
        vector!(Long, |a: i32, b: i32, c: i64| -> i64 {
            (i64::from(a) * i64::from(b)).wrapping_add(c)
        }),
    ),
];
