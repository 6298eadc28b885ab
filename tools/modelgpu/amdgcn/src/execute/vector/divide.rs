//! The three instructions that turn a reciprocal estimate into a correctly rounded quotient, after
//! the pseudocode in the instruction set guides. v_div_scale brings denominator and numerator into
//! a range in which the iteration neither overflows nor loses bits. v_div_fmas undoes the scaling
//! in the last step. v_div_fixup handles zeros, infinities and NaNs.

use super::super::value::{Half, Value};
use super::super::{Operation, float};
use super::{CarryDirection, VectorOperation, carry, kinds, vector};
use crate::wave::LANES;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_div_scale_f32",
        carry!(Out, |a: f32,
                     b: f32,
                     c: f32,
                     _unused: bool|
         -> (f32, bool) {
            let (scaled, flag) = SINGLE.scale(a.into(), b.into(), c.into());
            (scaled as f32, flag)
        }),
    ),
    (
        "v_div_scale_f64",
        carry!(Out, |a: f64,
                     b: f64,
                     c: f64,
                     _unused: bool|
         -> (f64, bool) { DOUBLE.scale(a, b, c) }),
    ),
    (
        "v_div_fmas_f32",
        carry!(In, |a: f32, b: f32, c: f32, scaled: bool| -> (f32, bool) {
            let sum = a.mul_add(b, c);
            let unscale = SINGLE.unscale_exponent(c.into());
            (
                if scaled {
                    float::ldexp(sum.into(), unscale) as f32
                } else {
                    sum
                },
                false,
            )
        }),
    ),
    (
        "v_div_fmas_f64",
        carry!(In, |a: f64, b: f64, c: f64, scaled: bool| -> (f64, bool) {
            let sum = a.mul_add(b, c);
            (
                if scaled {
                    float::ldexp(sum, DOUBLE.unscale_exponent(c))
                } else {
                    sum
                },
                false,
            )
        }),
    ),
    (
        "v_div_fixup_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            fixup(a.into(), b.into(), c.into()) as f32
        }),
    ),
    (
        "v_div_fixup_f64",
        vector!(Long, |a: f64, b: f64, c: f64| -> f64 { fixup(a, b, c) }),
    ),
    (
        "v_div_fixup_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            fixup_half(a, b, c)
        }),
    ),
    (
        "v_div_fixup_legacy_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            fixup_half(a, b, c)
        }),
    ),
];

fn fixup_half(a: Half, b: Half, c: Half) -> Half {
    let [a, b, c] = [a, b, c].map(|half| half.to_f32().into());
    Half::from_f64(fixup(a, b, c))
}

/// The constants of a format. Single precision is computed in double, which holds its denormals and
/// the scaled values exactly.
struct Format {
    /// Unbiased exponent of the smallest normal number.
    min_exponent: i32,
    /// v_div_scale scales up a numerator with at most this biased exponent.
    tiny_numerator: i32,
    /// With at least this difference of the exponents, the quotient may overflow.
    large_quotient: i32,
    /// The power of two of the scaling.
    scale: i32,
}

const SINGLE: Format = Format {
    min_exponent: -126,
    tiny_numerator: 23,
    large_quotient: 96,
    scale: 64,
};
const DOUBLE: Format = Format {
    min_exponent: -1022,
    tiny_numerator: 53,
    large_quotient: 768,
    scale: 128,
};

impl Format {
    /// Scales `value`, which is the denominator or the numerator. The flag says that v_div_fmas
    /// must scale the quotient back.
    fn scale(&self, value: f64, denominator: f64, numerator: f64) -> (f64, bool) {
        if denominator == 0.0 || numerator == 0.0 {
            return (f64::NAN, false);
        }
        let scaled_up = float::ldexp(value, self.scale);
        let difference = self.biased_exponent(numerator) - self.biased_exponent(denominator);
        let scale_if = |wanted: bool| (if wanted { scaled_up } else { value }, true);
        if difference >= self.large_quotient {
            return scale_if(value == denominator);
        }
        if self.is_denormal(denominator) {
            return (scaled_up, false);
        }
        match (
            self.is_denormal(1.0 / denominator),
            self.is_denormal(numerator / denominator),
        ) {
            (true, true) => scale_if(value == denominator),
            (true, false) => (float::ldexp(value, -self.scale), false),
            (false, true) => scale_if(value == numerator),
            (false, false) if self.biased_exponent(numerator) <= self.tiny_numerator => {
                (scaled_up, false)
            }
            (false, false) => (value, false),
        }
    }

    /// The power of two that v_div_fmas applies. A large addend shows that the quotient was scaled
    /// down.
    fn unscale_exponent(&self, addend: f64) -> i32 {
        let bias = 1 - self.min_exponent;
        if self.biased_exponent(addend) > bias {
            self.scale
        } else {
            -self.scale
        }
    }

    /// The exponent field in the format.
    fn biased_exponent(&self, value: f64) -> i32 {
        if value == 0.0 || self.is_denormal(value) {
            return 0;
        }
        if !value.is_finite() {
            return 2 * (1 - self.min_exponent) + 1;
        }
        float::frexp(value).1 - self.min_exponent
    }

    fn is_denormal(&self, value: f64) -> bool {
        // Before rounding, a single-precision quotient is below its smallest normal number.
        value != 0.0 && value.abs() < float::ldexp(1.0, self.min_exponent)
    }
}

/// The quotient, with the special cases put right.
fn fixup(quotient: f64, denominator: f64, numerator: f64) -> f64 {
    if numerator.is_nan() {
        return numerator;
    }
    if denominator.is_nan() {
        return denominator;
    }
    if denominator == 0.0 && numerator == 0.0
        || denominator.is_infinite() && numerator.is_infinite()
    {
        return -f64::NAN;
    }
    let magnitude = if denominator == 0.0 || numerator.is_infinite() {
        f64::INFINITY
    } else if denominator.is_infinite() || numerator == 0.0 {
        0.0
    } else if !quotient.is_finite() {
        // The iteration overflowed on the way. The published pseudocode would lose the quotient.
        (numerator / denominator).abs()
    } else {
        quotient.abs()
    };
    let negative = denominator.is_sign_negative() != numerator.is_sign_negative();
    if negative { -magnitude } else { magnitude }
}
