//! The functions of atomics.

use super::super::float;
use super::super::value::{Brain, Half};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicFunction {
    Swap,
    CompareSwap,
    Add,
    Sub,
    /// The operand minus the old value.
    ReverseSub,
    /// Subtracts the operand if the result is not negative.
    ConditionalSub,
    /// Subtracts the operand, down to 0 at least.
    ClampedSub,
    SignedMin,
    UnsignedMin,
    SignedMax,
    UnsignedMax,
    And,
    Or,
    Xor,
    /// Adds 1; from the operand on, goes back to 0.
    Increment,
    /// Subtracts 1; from 0 or from above the operand, goes to the operand.
    Decrement,
    FloatAdd,
    FloatMin,
    FloatMax,
    /// Two sums, of the low and the high halves.
    PackedHalfAdd,
    PackedBrainAdd,
}

impl AtomicFunction {
    /// The new value. `bytes` is 4 or 8; values of 4 bytes are zero-extended.
    pub(crate) fn apply(self, bytes: u8, old: u64, operand: u64, compared: u64) -> u64 {
        let signed = |value: u64| match bytes {
            4 => i64::from(value as i32),
            _ => value as i64,
        };
        let choose = |takes_operand: bool| if takes_operand { operand } else { old };
        let new = match self {
            Self::Swap => operand,
            Self::CompareSwap => choose(old == compared),
            Self::Add => old.wrapping_add(operand),
            Self::Sub => old.wrapping_sub(operand),
            Self::ReverseSub => operand.wrapping_sub(old),
            Self::ConditionalSub => old.checked_sub(operand).unwrap_or(old),
            Self::ClampedSub => old.saturating_sub(operand),
            Self::SignedMin => choose(signed(operand) < signed(old)),
            Self::SignedMax => choose(signed(operand) > signed(old)),
            Self::UnsignedMin => choose(operand < old),
            Self::UnsignedMax => choose(operand > old),
            Self::And => old & operand,
            Self::Or => old | operand,
            Self::Xor => old ^ operand,
            Self::Increment => {
                if old >= operand {
                    0
                } else {
                    old + 1
                }
            }
            Self::Decrement => {
                if old == 0 || old > operand {
                    operand
                } else {
                    old - 1
                }
            }
            Self::FloatAdd if bytes == 4 => (f32::from_bits(old as u32)
                + f32::from_bits(operand as u32))
            .to_bits()
            .into(),
            Self::FloatAdd => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
            Self::PackedHalfAdd => of_halves(old, operand, |a, b| {
                Half::from_f64(f64::from(Half(a).to_f32()) + f64::from(Half(b).to_f32())).0
            }),
            Self::PackedBrainAdd => of_halves(old, operand, |a, b| {
                Brain::nearest(Brain(a).to_f32() + Brain(b).to_f32()).0
            }),
            Self::FloatMin => float_function(bytes, old, operand, float::min),
            Self::FloatMax => float_function(bytes, old, operand, float::max),
        };
        if bytes == 4 { new & 0xffff_ffff } else { new }
    }
}

fn of_halves(old: u64, operand: u64, function: fn(u16, u16) -> u16) -> u64 {
    let half = |shift: u32| function((old >> shift) as u16, (operand >> shift) as u16);
    u64::from(half(0)) | u64::from(half(16)) << 16
}

/// A function that is exact in double precision for operands of either size.
fn float_function(bytes: u8, old: u64, operand: u64, function: fn(f64, f64) -> f64) -> u64 {
    if bytes == 4 {
        let (old, operand) = (f32::from_bits(old as u32), f32::from_bits(operand as u32));
        (function(old.into(), operand.into()) as f32)
            .to_bits()
            .into()
    } else {
        function(f64::from_bits(old), f64::from_bits(operand)).to_bits()
    }
}
