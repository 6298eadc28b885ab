//! Arithmetic with a rounding other than to nearest even, in integers. MODE holds the rounding of
//! single precision, and that of halves and doubles.
//!
//! Approximate instructions (reciprocal, roots, exponentials, trigonometry) and exact ones do not
//! depend on it. The model refuses other instructions that would.

use modelgpu_isa::Instruction;

use super::super::names::canonical;
use super::super::unmodelled;
use super::super::value::Kind;
use super::gather::Gather;
use super::scatter;
use crate::error::Fault;
use crate::lanes::Longs;
use crate::wave::{Mode, Wave};

/// A direction of rounding. Nearest even is here too: MODE has two fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    Nearest,
    Up,
    Down,
    Zero,
}

impl Rounding {
    /// The rounding of a kind's results.
    fn new(mode: Mode, kind: Kind) -> Self {
        let field = match kind {
            Kind::F32 => mode.0,
            _ => mode.0 >> 2,
        };
        [Self::Nearest, Self::Up, Self::Down, Self::Zero][(field & 3) as usize]
    }
}

/// An instruction that rounds: the kinds of its sources and its result, and its function.
struct Rounded {
    sources: [Kind; 3],
    result: Kind,
    function: Function,
}

#[derive(Clone, Copy)]
enum Function {
    Sum,
    Difference,
    ReverseDifference,
    Product,
    Fused,
    /// Rounds the product and the sum.
    MultiplyAdd,
    /// A number of another format, or an integer.
    Float,
    Signed,
    Unsigned,
    /// A number times a power of two.
    Scaled,
}

/// Executes an instruction whose result depends on the rounding. Returns `None` if it does not.
pub(super) fn execute(instruction: &Instruction, wave: &mut Wave) -> Option<Result<(), Fault>> {
    let mnemonic = canonical(instruction.mnemonic);
    match rounded(&mnemonic) {
        Some(rounded) => Some(rounded.execute(instruction, wave)),
        None if depends(&mnemonic) => Some(Err(unmodelled(instruction, "this rounding mode"))),
        None => None,
    }
}

/// A half of a packed instruction, which rounds as the mode says.
pub(super) struct PackedRounding {
    half: Rounded,
    rounding: Rounding,
}

impl PackedRounding {
    /// Returns `None` if the mode is nearest even, or the instruction does not depend on it.
    pub(super) fn new(instruction: &Instruction, mode: Mode) -> Option<Self> {
        if mode.rounds_to_nearest() {
            return None;
        }
        let half = rounded(&instruction.mnemonic.replacen("_pk_", "_", 1))?;
        let rounding = Rounding::new(mode, half.result);
        Some(Self { half, rounding })
    }

    pub(super) fn result(&self, sources: [u32; 3]) -> u32 {
        self.half.result(sources.map(u64::from), self.rounding) as u32
    }
}

fn rounded(name: &str) -> Option<Rounded> {
    use Function::{
        Difference, Float, Fused, MultiplyAdd, Product, ReverseDifference, Scaled, Signed, Sum,
        Unsigned,
    };
    let of = |kind: Kind, count: usize, function| {
        let sources = std::array::from_fn(|n| if n < count { kind } else { Kind::None });
        Some(Rounded {
            sources,
            result: kind,
            function,
        })
    };
    let convert = |source: Kind, result: Kind, function| {
        Some(Rounded {
            sources: [source, Kind::None, Kind::None],
            result,
            function,
        })
    };
    let (stem, kind) = match name.rsplit_once('_')? {
        (stem, "f16") => (stem, Kind::F16),
        (stem, "f32") => (stem, Kind::F32),
        (stem, "f64") => (stem, Kind::F64),
        _ => match name {
            "v_cvt_f32_i32" => return convert(Kind::B32, Kind::F32, Signed),
            "v_cvt_f32_u32" => return convert(Kind::B32, Kind::F32, Unsigned),
            "v_cvt_f16_i16" => return convert(Kind::B16, Kind::F16, Signed),
            "v_cvt_f16_u16" => return convert(Kind::B16, Kind::F16, Unsigned),
            _ => return None,
        },
    };
    match stem {
        "v_add" => of(kind, 2, Sum),
        "v_sub" => of(kind, 2, Difference),
        "v_subrev" => of(kind, 2, ReverseDifference),
        "v_mul" => of(kind, 2, Product),
        "v_fma" | "v_fmac" | "v_fmamk" | "v_fmaak" | "v_fma_legacy" => of(kind, 3, Fused),
        "v_mad" | "v_mac" | "v_madmk" | "v_madak" => of(kind, 3, MultiplyAdd),
        "v_mad_legacy" if kind == Kind::F16 => of(kind, 3, MultiplyAdd),
        "v_cvt_f32" if kind == Kind::F64 => convert(Kind::F64, Kind::F32, Float),
        "v_cvt_f16" => convert(Kind::F32, Kind::F16, Float),
        "v_ldexp" => Some(Rounded {
            sources: [
                kind,
                if kind == Kind::F16 {
                    Kind::B16
                } else {
                    Kind::B32
                },
                Kind::None,
            ],
            result: kind,
            function: Scaled,
        }),
        _ => None,
    }
}

/// Instructions that depend on the rounding in a way that the model lacks.
fn depends(name: &str) -> bool {
    [
        "v_mul_legacy_f32",
        "v_mad_legacy_f32",
        "v_cvt_pk_u8_f32",
        "v_cvt_pk_f16_f32",
        "v_cvt_pk_bf16_f32",
        "v_cvt_pkaccum_u8_f32",
    ]
    .contains(&name)
        || [
            "v_div_",
            "v_fma_mix",
            "v_dot2_f",
            "v_dot2_bf16",
            "v_dot2c_f32",
            "v_dot4_f32",
        ]
        .iter()
        .any(|stem| name.starts_with(stem))
}

impl Rounded {
    fn execute(&self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let gather = Gather::new(instruction, wave)?;
        let sources = gather.all_longs(self.sources)?;
        let lanes = gather.lanes();
        let rounding = Rounding::new(wave.mode, self.result);
        let mut results: Longs = std::array::from_fn(|lane| {
            self.result(
                [sources[0][lane], sources[1][lane], sources[2][lane]],
                rounding,
            )
        });
        scatter::longs(instruction, wave, lanes, self.result, &mut results)
    }

    fn result(&self, [a, b, c]: [u64; 3], rounding: Rounding) -> u64 {
        let kind = self.result;
        let sign = kind.sign_bit();
        let one = kind.encode_float(1.0);
        match self.function {
            Function::Sum => fused(kind, [a, one, b], rounding),
            Function::Difference => fused(kind, [a, one, b ^ sign], rounding),
            Function::ReverseDifference => fused(kind, [b, one, a ^ sign], rounding),
            Function::Product => product(kind, a, b, rounding),
            Function::Fused => fused(kind, [a, b, c], rounding),
            Function::MultiplyAdd => fused(kind, [product(kind, a, b, rounding), one, c], rounding),
            Function::Float => {
                let source = self.sources[0];
                match Number::new(source, a) {
                    Some(number) => number.round(kind, rounding),
                    None => kind.encode_float(source.decode_float(a)),
                }
            }
            Function::Signed => {
                let value = if self.sources[0] == Kind::B16 {
                    i64::from(a as i16)
                } else {
                    i64::from(a as i32)
                };
                integer(value).round(kind, rounding)
            }
            Function::Unsigned => integer(a as i64).round(kind, rounding),
            Function::Scaled => {
                let power = if self.sources[1] == Kind::B16 {
                    i32::from(b as i16)
                } else {
                    b as i32
                };
                match Number::new(kind, a) {
                    Some(mut number) => {
                        number.exponent = number.exponent.saturating_add(power);
                        number.round(kind, rounding)
                    }
                    None => a,
                }
            }
        }
    }
}

/// A finite number: a sign, and a whole number times a power of two.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    units: u128,
    exponent: i32,
}

/// The fraction bits of a format, and the bias of its exponents.
fn layout(kind: Kind) -> (u32, i32) {
    match kind {
        Kind::F16 => (10, 15),
        Kind::F64 => (52, 1023),
        _ => (23, 127),
    }
}

fn integer(value: i64) -> Number {
    Number {
        negative: value < 0,
        units: value.unsigned_abs().into(),
        exponent: 0,
    }
}

impl Number {
    /// Returns `None` for infinities and NaNs.
    fn new(kind: Kind, bits: u64) -> Option<Self> {
        let (width, bias) = layout(kind);
        let magnitude = bits & (kind.sign_bit() - 1);
        let (field, fraction) = (magnitude >> width, magnitude & ((1 << width) - 1));
        if field as i32 == 2 * bias + 1 {
            return None;
        }
        let leading = if field == 0 { 0 } else { 1 << width };
        Some(Self {
            negative: bits & kind.sign_bit() != 0,
            units: (fraction | leading).into(),
            exponent: (field as i32).max(1) - bias - width as i32,
        })
    }

    /// The number with its highest bit in place 125, so that a sum fits. Zero stays zero.
    fn normalized(mut self) -> Self {
        let shift = self.units.leading_zeros().saturating_sub(2);
        if self.units != 0 {
            self.units <<= shift;
            self.exponent -= shift as i32;
        }
        self
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            units: self.units * other.units,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The exact sum; its last bit stands for all lower ones. `rounding` gives a zero its sign.
    fn plus(self, other: Self, rounding: Rounding) -> Self {
        let (a, b) = (self.normalized(), other.normalized());
        if a.units == 0 && b.units == 0 {
            let negative = if a.negative == b.negative {
                a.negative
            } else {
                rounding == Rounding::Down
            };
            return Self { negative, ..a };
        }
        if a.units == 0 || b.units == 0 {
            return if a.units == 0 { b } else { a };
        }
        let (large, small) = if a.exponent >= b.exponent {
            (a, b)
        } else {
            (b, a)
        };
        let distance = (large.exponent - small.exponent) as u32;
        let kept = small.units.checked_shr(distance).unwrap_or(0);
        let lost = kept.checked_shl(distance).unwrap_or(0) != small.units;
        let moved = kept | u128::from(lost);
        let exponent = large.exponent;
        if large.negative == small.negative {
            return Self {
                negative: large.negative,
                units: large.units + moved,
                exponent,
            };
        }
        let negative = match large.units.cmp(&moved) {
            std::cmp::Ordering::Greater => large.negative,
            std::cmp::Ordering::Less => small.negative,
            std::cmp::Ordering::Equal => rounding == Rounding::Down,
        };
        Self {
            negative,
            units: large.units.abs_diff(moved),
            exponent,
        }
    }

    fn round(self, kind: Kind, rounding: Rounding) -> u64 {
        let (width, bias) = layout(kind);
        let sign = if self.negative { kind.sign_bit() } else { 0 };
        if self.units == 0 {
            return sign;
        }
        let away = match rounding {
            Rounding::Up => !self.negative,
            Rounding::Down => self.negative,
            Rounding::Nearest | Rounding::Zero => false,
        };
        let highest = 127 - self.units.leading_zeros() as i32 + self.exponent;
        let exponent = highest.max(1 - bias);
        let dropped = exponent - width as i32 - self.exponent;
        let kept = if dropped <= 0 {
            self.units << dropped.unsigned_abs()
        } else {
            let dropped = dropped as u32;
            let kept = self.units.checked_shr(dropped).unwrap_or(0);
            // The rest, in units of which the number's last place has two halves.
            let rest = self.units ^ kept.checked_shl(dropped).unwrap_or(0);
            let half = 1u128.checked_shl(dropped - 1).unwrap_or(u128::MAX);
            let up = rest != 0
                && match rounding {
                    Rounding::Nearest => rest > half || rest == half && kept & 1 == 1,
                    _ => away,
                };
            kept + u128::from(up)
        };
        // A carry out of the fraction goes into the exponent.
        let normal = kept >> width != 0;
        let field = if normal { exponent + bias - 1 } else { 0 };
        let bits = ((field as u128) << width) + kept;
        let infinity = (2 * bias as u128 + 1) << width;
        if exponent > bias || bits >= infinity {
            let becomes_infinite = rounding == Rounding::Nearest || away;
            return sign | (infinity as u64 - u64::from(!becomes_infinite));
        }
        sign | bits as u64
    }
}

/// The product of the first two numbers plus the third, rounded once.
fn fused(kind: Kind, bits: [u64; 3], rounding: Rounding) -> u64 {
    match bits.map(|bits| Number::new(kind, bits)) {
        [Some(a), Some(b), Some(c)] => a.times(b).plus(c, rounding).round(kind, rounding),
        // Infinities and NaNs do not depend on the rounding.
        _ => {
            let [a, b, c] = bits.map(|bits| kind.decode_float(bits));
            kind.encode_float(a.mul_add(b, c))
        }
    }
}

fn product(kind: Kind, a: u64, b: u64, rounding: Rounding) -> u64 {
    match (Number::new(kind, a), Number::new(kind, b)) {
        (Some(a), Some(b)) => a.times(b).round(kind, rounding),
        _ => kind.encode_float(kind.decode_float(a) * kind.decode_float(b)),
    }
}
