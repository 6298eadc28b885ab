//! Conversions between number formats.

use crate::float::{d, f};
use crate::half::{half_to_f64, want_half};
use crate::harness::{Case, Want};
use crate::inputs::{doubles, halves, integers, singles};

/// A float truncated and clamped into an integer's range, NaN as 0.
pub(crate) fn truncated(value: f64, low: f64, high: f64) -> u32 {
    if value.is_nan() {
        0
    } else {
        value.trunc().max(low).min(high) as i64 as u32
    }
}

pub(crate) fn cases() -> Vec<Case> {
    const I32: (f64, f64) = (-2_147_483_648.0, 2_147_483_647.0);
    const U32: (f64, f64) = (0.0, 4_294_967_295.0);
    let from_integer = |name: &'static str, run: fn(u32) -> f32| {
        Case::new(
            name,
            format!("{name} v10, v2"),
            integers(),
            move |all, lane| Want::Single(run(all[lane][0] as u32)),
        )
    };
    let to_double = |name: &'static str, run: fn(u32) -> f64| {
        let body = format!("{name} v[10:11], v2");
        Case::new(name, body, integers(), move |all, lane| {
            Want::Double(run(all[lane][0] as u32))
        })
    };
    vec![
        // Through a double, which holds any 32-bit integer.
        from_integer("v_cvt_f32_u32", |a| f64::from(a) as f32),
        from_integer("v_cvt_f32_i32", |a| f64::from(a as i32) as f32),
        from_integer("v_cvt_f32_ubyte0", |a| (a % 256) as f32),
        from_integer("v_cvt_f32_ubyte1", |a| (a / 0x100 % 256) as f32),
        from_integer("v_cvt_f32_ubyte2", |a| (a / 0x1_0000 % 256) as f32),
        from_integer("v_cvt_f32_ubyte3", |a| (a / 0x100_0000) as f32),
        to_double("v_cvt_f64_u32", f64::from),
        to_double("v_cvt_f64_i32", |a| f64::from(a as i32)),
        Case::new(
            "v_cvt_u32_f32",
            "v_cvt_u32_f32 v10, v2",
            singles(),
            |all, lane| Want::Word(truncated(f(all[lane][0]).into(), U32.0, U32.1)),
        ),
        Case::new(
            "v_cvt_i32_f32",
            "v_cvt_i32_f32 v10, v2",
            singles(),
            |all, lane| Want::Word(truncated(f(all[lane][0]).into(), I32.0, I32.1)),
        ),
        Case::new(
            "v_cvt_u32_f64",
            "v_cvt_u32_f64 v10, v[2:3]",
            doubles(),
            |all, lane| Want::Word(truncated(d(all[lane][0]), U32.0, U32.1)),
        ),
        Case::new(
            "v_cvt_i32_f64",
            "v_cvt_i32_f64 v10, v[2:3]",
            doubles(),
            |all, lane| Want::Word(truncated(d(all[lane][0]), I32.0, I32.1)),
        ),
        Case::new(
            "v_cvt_f64_f32",
            "v_cvt_f64_f32 v[10:11], v2",
            singles(),
            |all, lane| Want::Double(f(all[lane][0]).into()),
        ),
        Case::new(
            "v_cvt_f32_f64",
            "v_cvt_f32_f64 v10, v[2:3]",
            doubles(),
            |all, lane| Want::Single(d(all[lane][0]) as f32),
        ),
        Case::new(
            "v_cvt_f32_f16",
            "v_cvt_f32_f16 v10, v2",
            halves(),
            |all, lane| Want::Single(half_to_f64(all[lane][0] as u16) as f32),
        ),
        Case::new(
            "v_cvt_f16_f32",
            "v_cvt_f16_f32 v10, v2",
            singles(),
            |all, lane| want_half(f(all[lane][0]).into()),
        ),
    ]
}
