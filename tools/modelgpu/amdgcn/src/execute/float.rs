//! Floating-point functions that Rust lacks or defines differently.

/// `value` times 2 to the `exponent`, rounded once.
pub(super) fn ldexp(value: f64, exponent: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // The mantissa lies in [1, 2). So one multiplication by a power of two reaches any number,
    // exactly for a normal number and with one rounding for a denormal one.
    let (mantissa, own) = frexp(value);
    let mantissa = 2.0 * mantissa;
    let total = own.saturating_add(exponent) - 1;
    match total {
        1024.. => f64::INFINITY.copysign(value),
        -1022..=1023 => mantissa * power_of_two(total),
        // Powers down to 2^-1074 exist as denormals. An exact halving of the mantissa first reaches
        // 2^-1075, from which numbers may still round up.
        -1075..=-1023 => mantissa * 0.5 * power_of_two(total + 1),
        _ => 0f64.copysign(value),
    }
}

/// 2 to the `exponent`, for -1074 to 1023.
fn power_of_two(exponent: i32) -> f64 {
    if exponent >= -1022 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (exponent + 1074))
    }
}

/// Splits a number into mantissa in [0.5, 1) and exponent. Zero, infinity and NaN keep their value,
/// with exponent 0.
pub(super) fn frexp(value: f64) -> (f64, i32) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    // Scale a denormal into the normal range first.
    let (scaled, shift) = if value.is_subnormal() {
        (value * power_of_two(64), 64)
    } else {
        (value, 0)
    };
    let exponent = exponent_field(scaled) - 1022;
    let mantissa = scaled.to_bits() & !(0x7ff << 52) | 1022 << 52;
    (f64::from_bits(mantissa), exponent - shift)
}

/// The biased exponent of a double.
pub(super) fn exponent_field(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32
}

/// The smaller number; -0 is smaller than +0, and a number wins over a NaN.
pub(super) fn min(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => a.min(b),
    }
}

/// The larger number; +0 is larger than -0, and a number wins over a NaN.
pub(super) fn max(a: f64, b: f64) -> f64 {
    -min(-a, -b)
}

/// The smaller number, or a NaN if one of the two is a NaN (IEEE 754-2019, minimum).
pub(super) fn minimum(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => a,
        (_, true) => b,
        _ => min(a, b),
    }
}

/// The larger number, or a NaN if one of the two is a NaN (IEEE 754-2019, maximum).
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

/// The middle of three numbers; the smallest if one is a NaN.
pub(super) fn median(a: f64, b: f64, c: f64) -> f64 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min(min(a, b), c);
    }
    max(min(a, b), min(max(a, b), c))
}
