//! The three instructions that turn a reciprocal estimate into a correctly rounded quotient, after
//! the pseudocode in the instruction set guides. v_div_scale brings denominator and numerator into
//! a range in which the iteration neither overflows nor loses bits. v_div_fmas undoes the scaling
//! in the last step. v_div_fixup handles zeros, infinities and NaNs.
//!
//! gfx1100 differs from the pseudocode, as tests show that others ran on it: v_div_scale sets its flag
//! also for a zero, and for every quotient whose exponent may be that of a denormal number.
//! v_div_fixup makes an infinity of an estimate that is a NaN.
//!
//! The functions choose between values instead of branching, so that the host's vectors run them.

use super::super::Operation;
use super::super::value::{Half, Value};
use super::macros::{carry, kinds, vector};
use super::operation::{CarryDirection, VectorOperation};

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_div_scale_f32",
        carry!(Out, |a: f32,
                     b: f32,
                     c: f32,
                     _unused: bool|
         -> (f32, bool) { single::scale(a, b, c) }),
    ),
    (
        "v_div_scale_f64",
        carry!(Out, |a: f64,
                     b: f64,
                     c: f64,
                     _unused: bool|
         -> (f64, bool) { double::scale(a, b, c) }),
    ),
    (
        "v_div_fmas_f32",
        carry!(In, |a: f32, b: f32, c: f32, scaled: bool| -> (f32, bool) {
            (single::unscaled(a, b, c, scaled), false)
        }),
    ),
    (
        "v_div_fmas_f64",
        carry!(In, |a: f64, b: f64, c: f64, scaled: bool| -> (f64, bool) {
            (double::unscaled(a, b, c, scaled), false)
        }),
    ),
    (
        "v_div_fixup_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            single::fixup(a, b, c)
        }),
    ),
    (
        "v_div_fixup_f64",
        vector!(Long, |a: f64, b: f64, c: f64| -> f64 {
            double::fixup(a, b, c)
        }),
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
    Half::from_f64(double::fixup(a, b, c))
}

macro_rules! division {
    (
        $name:ident, $Float:ident, $Bits:ident,
        // Bits of the fraction, and the exponent field of 1.
        fraction: $fraction:literal, bias: $bias:literal,
        // v_div_scale scales up a numerator with at most this biased exponent.
        tiny: $tiny:literal,
        // With at least this difference of the exponents, the quotient may overflow.
        large: $large:literal,
        // The power of two of the scaling, and its inverse.
        scale: $scale:expr, $inverse:expr,
        // Tells whether the quotient of two numbers is denormal.
        denormal: $denormal:ident
    ) => {
        mod $name {
            const SIGN: $Bits = 1 << ($Bits::BITS - 1);
            const EXPONENTS: i32 = 2 * $bias + 1;

            /// The exponent field.
            #[inline(always)]
            fn exponent(value: $Float) -> i32 {
                (value.to_bits() >> $fraction) as i32 & EXPONENTS
            }

            /// Scales `value`, which is the denominator or the numerator. The flag says that
            /// v_div_fmas must scale the quotient back.
            #[inline(always)]
            pub(super) fn scale(
                value: $Float,
                denominator: $Float,
                numerator: $Float,
            ) -> ($Float, bool) {
                // 2 to $bias - 1, whose reciprocal is the smallest normal number.
                const LARGE_DENOMINATOR: $Float = 1.0 / $Float::MIN_POSITIVE;
                let difference = exponent(numerator) - exponent(denominator);
                let is_large = difference >= $large;
                let is_denormal = exponent(denominator) == 0;
                let reciprocal_is_denormal = (denominator.abs() > LARGE_DENOMINATOR)
                    & (denominator.abs() < $Float::INFINITY);
                // The exponents alone decide for normal numbers.
                let quotient_is_denormal = super::$denormal(denominator, numerator)
                    | (difference < 2 - $bias) & (exponent(denominator) < EXPONENTS);
                let is_denominator = value == denominator;
                let is_numerator = value == numerator;
                let is_usual = !is_large & !is_denormal;
                let up = (is_large & is_denominator)
                    | (!is_large & is_denormal)
                    | (is_usual & !reciprocal_is_denormal & quotient_is_denormal & is_numerator)
                    | (is_usual
                        & !reciprocal_is_denormal
                        & !quotient_is_denormal
                        & (exponent(numerator) <= $tiny));
                // The pseudocode scales a denominator up if the quotient is denormal, too. It would
                // become infinite.
                let down =
                    is_usual & reciprocal_is_denormal & (!quotient_is_denormal | is_denominator);
                let factor = if up {
                    $scale
                } else if down {
                    $inverse
                } else {
                    1.0
                };
                let is_zero = (denominator == 0.0) | (numerator == 0.0);
                let scaled = if is_zero { $Float::NAN } else { value * factor };
                (scaled, is_zero | is_large | is_usual & quotient_is_denormal)
            }

            /// The sum of a product and a number, with its scaling undone, rounded once. A large addend shows
            /// that the quotient was scaled down.
            #[inline(always)]
            pub(super) fn unscaled(a: $Float, b: $Float, addend: $Float, scaled: bool) -> $Float {
                let sum = a.mul_add(b, addend);
                if !scaled {
                    sum
                } else if exponent(addend) > $bias {
                    sum * $scale
                } else {
                    lowered(a, b, addend)
                }
            }

            /// The sum of a product and a number, times the inverse of the scaling. A denormal result has fewer
            /// bits than the sum, which was rounded itself.
            #[inline(always)]
            fn lowered(a: $Float, b: $Float, addend: $Float) -> $Float {
                let rounded = a.mul_add(b, addend) * $inverse;
                if exponent(rounded) > 1 {
                    return rounded;
                }
                // In a range in which no part becomes denormal. The parts of the product and of the sums are exact.
                let (a, addend) = (a * $scale, addend * $scale);
                let sum = a.mul_add(b, addend);
                let product = a * b;
                let low_product = a.mul_add(b, -product);
                let (middle, low) = parts(addend, low_product);
                let (high, more) = parts(product, middle);
                // The exact sum is larger than the rounded one by this.
                let error = ((high - sum) + more) + low;
                let rest = sum - rounded * $scale * $scale;
                let half = $Float::from_bits(1) * $scale * $scale * 0.5;
                // A tie between two denormal numbers is none if the sum was rounded towards it.
                if (rest == half) & (error > 0.0) | (rest == -half) & (error < 0.0) {
                    rounded + $Float::from_bits(1).copysign(rest)
                } else {
                    rounded
                }
            }

            /// The rounded sum of two numbers, and the rest.
            #[inline(always)]
            fn parts(a: $Float, b: $Float) -> ($Float, $Float) {
                let sum = a + b;
                let second = sum - a;
                (sum, (a - (sum - second)) + (b - second))
            }

            /// The quotient, with the special cases put right.
            #[inline(always)]
            pub(super) fn fixup(
                quotient: $Float,
                denominator: $Float,
                numerator: $Float,
            ) -> $Float {
                const QUIET: $Bits = 1 << ($fraction - 1);
                let infinity = $Float::INFINITY;
                let (over, under) = (numerator.abs(), denominator.abs());
                let quiet = |nan: $Float| $Float::from_bits(nan.to_bits() | QUIET);
                let is_undefined =
                    (under == 0.0) & (over == 0.0) | (under == infinity) & (over == infinity);
                let usual = if quotient.is_nan() {
                    infinity
                } else {
                    quotient.abs()
                };
                let magnitude = if (under == 0.0) | (over == infinity) {
                    infinity
                } else if (under == infinity) | (over == 0.0) {
                    0.0
                } else {
                    usual
                };
                let sign = (denominator.to_bits() ^ numerator.to_bits()) & SIGN;
                let signed = $Float::from_bits(magnitude.to_bits() & !SIGN | sign);
                if numerator.is_nan() {
                    quiet(numerator)
                } else if denominator.is_nan() {
                    quiet(denominator)
                } else if is_undefined {
                    -$Float::NAN
                } else {
                    signed
                }
            }
        }
    };
}

/// Double precision holds the product of a denominator and a power of two exactly, so no quotient
/// needs to be rounded.
#[inline(always)]
fn is_denormal_single(denominator: f32, numerator: f32) -> bool {
    let limit = f64::from(denominator.abs()) * f64::from(f32::MIN_POSITIVE);
    (f64::from(numerator.abs()) < limit) & (denominator.abs() < f32::INFINITY) & (numerator != 0.0)
}

#[inline(always)]
fn is_denormal_double(denominator: f64, numerator: f64) -> bool {
    let quotient = (numerator / denominator).abs();
    (quotient != 0.0) & (quotient < f64::MIN_POSITIVE)
}

division!(
    single, f32, u32,
    fraction: 23, bias: 127, tiny: 23, large: 96,
    scale: f32::from_bits((127 + 64) << 23), f32::from_bits((127 - 64) << 23),
    denormal: is_denormal_single
);
division!(
    double, f64, u64,
    fraction: 52, bias: 1023, tiny: 53, large: 768,
    scale: f64::from_bits((1023 + 128) << 52), f64::from_bits((1023 - 128) << 52),
    denormal: is_denormal_double
);
