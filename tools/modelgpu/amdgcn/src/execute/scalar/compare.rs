//! Scalar comparisons: SCC is their only result.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::operation::{ScalarOperation, scalar};

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "s_cmp_eq_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a == b }),
    ),
    (
        "s_cmp_lg_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a != b }),
    ),
    (
        "s_cmp_gt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a > b }),
    ),
    (
        "s_cmp_ge_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a >= b }),
    ),
    (
        "s_cmp_lt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a < b }),
    ),
    (
        "s_cmp_le_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a <= b }),
    ),
    (
        "s_cmp_eq_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a == b }),
    ),
    (
        "s_cmp_lg_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a != b }),
    ),
    (
        "s_cmp_gt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a > b }),
    ),
    (
        "s_cmp_ge_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >= b }),
    ),
    (
        "s_cmp_lt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a < b }),
    ),
    (
        "s_cmp_le_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a <= b }),
    ),
    (
        "s_cmp_eq_u64",
        scalar!(Test, |a: u64, b: u64| -> bool { a == b }),
    ),
    (
        "s_cmp_lg_u64",
        scalar!(Test, |a: u64, b: u64| -> bool { a != b }),
    ),
    (
        "s_cmpk_eq_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a == b }),
    ),
    (
        "s_cmpk_lg_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a != b }),
    ),
    (
        "s_cmpk_gt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a > b }),
    ),
    (
        "s_cmpk_ge_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a >= b }),
    ),
    (
        "s_cmpk_lt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a < b }),
    ),
    (
        "s_cmpk_le_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a <= b }),
    ),
    (
        "s_cmpk_eq_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a == b }),
    ),
    (
        "s_cmpk_lg_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a != b }),
    ),
    (
        "s_cmpk_gt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a > b }),
    ),
    (
        "s_cmpk_ge_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >= b }),
    ),
    (
        "s_cmpk_lt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a < b }),
    ),
    (
        "s_cmpk_le_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a <= b }),
    ),
    (
        "s_bitcmp0_b32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >> (b & 31) & 1 == 0 }),
    ),
    (
        "s_bitcmp1_b32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >> (b & 31) & 1 == 1 }),
    ),
    (
        "s_bitcmp0_b64",
        scalar!(Test, |a: u64, b: u32| -> bool { a >> (b & 63) & 1 == 0 }),
    ),
    (
        "s_bitcmp1_b64",
        scalar!(Test, |a: u64, b: u32| -> bool { a >> (b & 63) & 1 == 1 }),
    ),
];
