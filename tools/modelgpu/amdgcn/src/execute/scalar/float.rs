//! Floating-point arithmetic on scalars, of RDNA 4. A result of 16 bits clears the high half of its
//! register.

use std::cmp::Ordering::{Equal, Greater, Less};

use super::super::value::{Half, Kind, Value};
use super::super::{Operation, float};
use super::operation::ScalarOperation;

/// Makes an operation from a closure. `Test` has no result other than SCC: whether the order of the sources is
/// an accepted one.
macro_rules! real {
    (Test, $T:ty, $accepted:expr) => {
        Operation::Scalar(ScalarOperation::Float {
            run: |[a, b, _]| {
                let [a, b] = [a, b].map(|bits| <$T as Value>::KIND.decode_float(bits));
                u64::from($accepted.contains(&a.partial_cmp(&b)))
            },
            sources: [<$T as Value>::KIND, <$T as Value>::KIND, Kind::None],
            result: Kind::None,
        })
    };
    (|$a:ident: $A:ty| -> $R:ty $body:block) => {
        real!(@ [<$A as Value>::KIND, Kind::None, Kind::None], $R, |a, _b, _c| {
            let $a = <$A as Value>::from_bits(a);
            $body
        })
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        real!(@ [<$A as Value>::KIND, <$B as Value>::KIND, Kind::None], $R, |a, b, _c| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            $body
        })
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        real!(
            @ [<$A as Value>::KIND, <$B as Value>::KIND, <$C as Value>::KIND], $R,
            |a, b, c| {
                let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
                let $c = <$C as Value>::from_bits(c);
                $body
            }
        )
    };
    (@ $sources:expr, $R:ty, |$a:ident, $b:ident, $c:ident| $body:block) => {
        Operation::Scalar(ScalarOperation::Float {
            run: |[$a, $b, $c]| {
                let result: $R = $body;
                <$R as Value>::to_bits(result)
            },
            sources: $sources,
            result: <$R as Value>::KIND,
        })
    };
}

/// The comparisons of a type; NaNs have no order.
macro_rules! comparisons {
    ($suffix:literal, $T:ty) => {
        &[
            (concat!("s_cmp_lt_", $suffix), real!(Test, $T, [Some(Less)])),
            (
                concat!("s_cmp_eq_", $suffix),
                real!(Test, $T, [Some(Equal)]),
            ),
            (
                concat!("s_cmp_le_", $suffix),
                real!(Test, $T, [Some(Less), Some(Equal)]),
            ),
            (
                concat!("s_cmp_gt_", $suffix),
                real!(Test, $T, [Some(Greater)]),
            ),
            (
                concat!("s_cmp_lg_", $suffix),
                real!(Test, $T, [Some(Less), Some(Greater)]),
            ),
            (
                concat!("s_cmp_ge_", $suffix),
                real!(Test, $T, [Some(Greater), Some(Equal)]),
            ),
            (
                concat!("s_cmp_o_", $suffix),
                real!(Test, $T, [Some(Less), Some(Equal), Some(Greater)]),
            ),
            (concat!("s_cmp_u_", $suffix), real!(Test, $T, [None])),
            (
                concat!("s_cmp_nge_", $suffix),
                real!(Test, $T, [None, Some(Less)]),
            ),
            (
                concat!("s_cmp_nlg_", $suffix),
                real!(Test, $T, [None, Some(Equal)]),
            ),
            (
                concat!("s_cmp_ngt_", $suffix),
                real!(Test, $T, [None, Some(Less), Some(Equal)]),
            ),
            (
                concat!("s_cmp_nle_", $suffix),
                real!(Test, $T, [None, Some(Greater)]),
            ),
            (
                concat!("s_cmp_neq_", $suffix),
                real!(Test, $T, [None, Some(Less), Some(Greater)]),
            ),
            (
                concat!("s_cmp_nlt_", $suffix),
                real!(Test, $T, [None, Some(Greater), Some(Equal)]),
            ),
        ]
    };
}

pub(super) const COMPARISONS_OF_SINGLES: &[(&str, Operation)] = comparisons!("f32", f32);
pub(super) const COMPARISONS_OF_HALVES: &[(&str, Operation)] = comparisons!("f16", Half);

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("s_add_f32", real!(|a: f32, b: f32| -> f32 { a + b })),
    ("s_sub_f32", real!(|a: f32, b: f32| -> f32 { a - b })),
    ("s_mul_f32", real!(|a: f32, b: f32| -> f32 { a * b })),
    (
        "s_min_num_f32",
        real!(|a: f32, b: f32| -> f32 { float::min(a.into(), b.into()) as f32 }),
    ),
    (
        "s_max_num_f32",
        real!(|a: f32, b: f32| -> f32 { float::max(a.into(), b.into()) as f32 }),
    ),
    (
        "s_minimum_f32",
        real!(|a: f32, b: f32| -> f32 { float::minimum(a.into(), b.into()) as f32 }),
    ),
    (
        "s_maximum_f32",
        real!(|a: f32, b: f32| -> f32 { float::maximum(a.into(), b.into()) as f32 }),
    ),
    (
        "s_fmac_f32",
        real!(|a: f32, b: f32, c: f32| -> f32 { a.mul_add(b, c) }),
    ),
    (
        "s_fmamk_f32",
        real!(|a: f32, b: f32, c: f32| -> f32 { a.mul_add(b, c) }),
    ),
    (
        "s_fmaak_f32",
        real!(|a: f32, b: f32, c: f32| -> f32 { a.mul_add(b, c) }),
    ),
    ("s_ceil_f32", real!(|a: f32| -> f32 { a.ceil() })),
    ("s_floor_f32", real!(|a: f32| -> f32 { a.floor() })),
    ("s_trunc_f32", real!(|a: f32| -> f32 { a.trunc() })),
    (
        "s_rndne_f32",
        real!(|a: f32| -> f32 { a.round_ties_even() }),
    ),
    ("s_cvt_f32_i32", real!(|a: i32| -> f32 { a as f32 })),
    ("s_cvt_f32_u32", real!(|a: u32| -> f32 { a as f32 })),
    ("s_cvt_i32_f32", real!(|a: f32| -> i32 { a as i32 })),
    ("s_cvt_u32_f32", real!(|a: f32| -> u32 { a as u32 })),
    (
        "s_cvt_f16_f32",
        real!(|a: f32| -> Half { Half::from_f64(a.into()) }),
    ),
    ("s_cvt_f32_f16", real!(|a: Half| -> f32 { a.to_f32() })),
    (
        "s_cvt_hi_f32_f16",
        real!(|a: u32| -> f32 { Half((a >> 16) as u16).to_f32() }),
    ),
    (
        "s_cvt_pk_rtz_f16_f32",
        real!(|a: f32, b: f32| -> u32 {
            let [low, high] = [a, b].map(|value| u32::from(Half::truncated(value).0));
            low | high << 16
        }),
    ),
    (
        "s_add_f16",
        real!(|a: Half, b: Half| -> Half { rounded(wide(a) + wide(b)) }),
    ),
    (
        "s_sub_f16",
        real!(|a: Half, b: Half| -> Half { rounded(wide(a) - wide(b)) }),
    ),
    (
        "s_mul_f16",
        real!(|a: Half, b: Half| -> Half { rounded(wide(a) * wide(b)) }),
    ),
    (
        "s_fmac_f16",
        real!(|a: Half, b: Half, c: Half| -> Half { rounded(wide(a).mul_add(wide(b), wide(c))) }),
    ),
    (
        "s_min_num_f16",
        real!(|a: Half, b: Half| -> Half { rounded(float::min(wide(a), wide(b))) }),
    ),
    (
        "s_max_num_f16",
        real!(|a: Half, b: Half| -> Half { rounded(float::max(wide(a), wide(b))) }),
    ),
    (
        "s_minimum_f16",
        real!(|a: Half, b: Half| -> Half { rounded(float::minimum(wide(a), wide(b))) }),
    ),
    (
        "s_maximum_f16",
        real!(|a: Half, b: Half| -> Half { rounded(float::maximum(wide(a), wide(b))) }),
    ),
    (
        "s_ceil_f16",
        real!(|a: Half| -> Half { rounded(wide(a).ceil()) }),
    ),
    (
        "s_floor_f16",
        real!(|a: Half| -> Half { rounded(wide(a).floor()) }),
    ),
    (
        "s_trunc_f16",
        real!(|a: Half| -> Half { rounded(wide(a).trunc()) }),
    ),
    (
        "s_rndne_f16",
        real!(|a: Half| -> Half { rounded(wide(a).round_ties_even()) }),
    ),
];

fn wide(half: Half) -> f64 {
    half.to_f32().into()
}

/// Sums, products and fused multiply-adds of halves in double precision round once here.
fn rounded(value: f64) -> Half {
    Half::from_f64(value)
}
