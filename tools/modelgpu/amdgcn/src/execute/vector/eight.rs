//! Conversions of floating-point numbers of 8 bits, without a scale; and those that round to 16 bits by a
//! random number.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::macros::{kinds, vector};
use super::operation::VectorOperation;
use super::small::{BF8, BF8_FNUZ, BRAIN, FP8, FP8_FNUZ, Format, HALF, SINGLE};

macro_rules! conversions {
    ($fp8:ident, $bf8:ident, $($more:expr),*) => {
        &[
            (
                "v_cvt_f32_fp8",
                vector!(Word, |a: u32| -> f32 { $fp8.decode(a & 0xff) as f32 }),
            ),
            (
                "v_cvt_f32_bf8",
                vector!(Word, |a: u32| -> f32 { $bf8.decode(a & 0xff) as f32 }),
            ),
            (
                "v_cvt_pk_f32_fp8",
                vector!(Long, |a: u32| -> u64 { decode_two($fp8, a) }),
            ),
            (
                "v_cvt_pk_f32_bf8",
                vector!(Long, |a: u32| -> u64 { decode_two($bf8, a) }),
            ),
            (
                "v_cvt_pk_fp8_f32",
                vector!(Word, |a: f32, b: f32| -> u16 { encode_two($fp8, a, b) }),
            ),
            (
                "v_cvt_pk_bf8_f32",
                vector!(Word, |a: f32, b: f32| -> u16 { encode_two($bf8, a, b) }),
            ),
            // The second source is a random number.
            (
                "v_cvt_sr_fp8_f32",
                vector!(Word, |a: f32, b: u32| -> u32 {
                    $fp8.encode_randomly(a.into(), SINGLE, b)
                }),
            ),
            (
                "v_cvt_sr_bf8_f32",
                vector!(Word, |a: f32, b: u32| -> u32 {
                    $bf8.encode_randomly(a.into(), SINGLE, b)
                }),
            ),
            $($more),*
        ]
    };
}

/// gfx942's.
pub(super) const OPERATIONS: &[(&str, Operation)] = conversions!(FP8_FNUZ, BF8_FNUZ,);

/// Those of later targets.
pub(super) const OF_OCP: &[(&str, Operation)] = conversions!(
    FP8,
    BF8,
    (
        "v_cvt_sr_f16_f32",
        vector!(Word, |a: f32, b: u32| -> u16 {
            HALF.encode_randomly(a.into(), SINGLE, b) as u16
        })
    ),
    (
        "v_cvt_sr_bf16_f32",
        vector!(Word, |a: f32, b: u32| -> u16 {
            BRAIN.encode_randomly(a.into(), SINGLE, b) as u16
        })
    )
);

fn decode_two(format: Format, word: u32) -> u64 {
    let [low, high] = [word, word >> 8].map(|bits| (format.decode(bits & 0xff) as f32).to_bits());
    u64::from(low) | u64::from(high) << 32
}

fn encode_two(format: Format, low: f32, high: f32) -> u16 {
    let [low, high] = [low, high].map(|value| format.encode(value.into()) as u16);
    low | high << 8
}
