//! Comparisons write a bit per lane to a scalar register pair; v_cmpx also writes EXEC.

use modelgpu_isa::{Instruction, Operand};

use super::super::simd::{CompareFunction, Leveled, Wide, leveled};
use super::super::value::{Half, Kind};
use super::super::{Operation, Table};
use super::gather::Gather;
use super::operands::{wide, write_mask};
use super::operation::{Comparison, VectorOperation};
use crate::error::Fault;
use crate::lanes::{LANES, Words};
use crate::wave::Wave;

const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// Compares lane by lane after a conversion of the bits.
macro_rules! mask_by {
    ($convert:expr) => {
        leveled!(
            |first: Wide<'_>, second: Wide<'_>, accepted: u8, flags: &mut Words| -> () {
                let accepts = |relation| 0u32.wrapping_sub((accepted & relation != 0).into());
                let less = accepts(LESS);
                let equal = accepts(EQUAL);
                let greater = accepts(GREATER);
                let unordered = accepts(UNORDERED);
                for lane in 0..LANES {
                    let (a, b) = ($convert(first.bits(lane)), $convert(second.bits(lane)));
                    let flag = if a < b {
                        less
                    } else if a > b {
                        greater
                    } else if a == b {
                        equal
                    } else {
                        unordered
                    };
                    flags[lane] = flag;
                }
            }
        )
    };
}

macro_rules! relations {
    ($type:literal, $run:expr, $kind:expr; $($name:literal: $accepted:expr,)*) => {
        &[$(
            (concat!("v_cmp_", $name, "_", $type), relation($accepted, $run, $kind, false)),
            (concat!("v_cmpx_", $name, "_", $type), relation($accepted, $run, $kind, true)),
        )*]
    };
}

macro_rules! float_relations {
    ($type:literal, $run:expr, $kind:expr) => {
        relations! {
            $type, $run, $kind;
            "f": 0,
            "lt": LESS,
            "eq": EQUAL,
            "le": LESS | EQUAL,
            "gt": GREATER,
            "lg": LESS | GREATER,
            "ge": GREATER | EQUAL,
            "o": LESS | EQUAL | GREATER,
            "u": UNORDERED,
            "nge": LESS | UNORDERED,
            "nlg": EQUAL | UNORDERED,
            "ngt": LESS | EQUAL | UNORDERED,
            "nle": GREATER | UNORDERED,
            "neq": LESS | GREATER | UNORDERED,
            "nlt": EQUAL | GREATER | UNORDERED,
            "tru": LESS | EQUAL | GREATER | UNORDERED,
        }
    };
}

macro_rules! integer_relations {
    ($type:literal, $run:expr, $kind:expr) => {
        relations! {
            $type, $run, $kind;
            "f": 0,
            "lt": LESS,
            "eq": EQUAL,
            "le": LESS | EQUAL,
            "gt": GREATER,
            "ne": LESS | GREATER,
            "ge": GREATER | EQUAL,
            "t": LESS | EQUAL | GREATER,
        }
    };
}

const fn relation(
    accepted: u8,
    run: Leveled<CompareFunction>,
    kind: Kind,
    writes_exec: bool,
) -> Operation {
    Operation::Vector(VectorOperation::Compare(Comparison::Relation {
        accepted,
        run,
        kind,
        writes_exec,
    }))
}

const fn class(run: Leveled<CompareFunction>, kind: Kind, writes_exec: bool) -> Operation {
    Operation::Vector(VectorOperation::Compare(Comparison::Class {
        run,
        kind,
        writes_exec,
    }))
}

/// One table per type.
pub(super) const TABLES: [Table; 10] = [
    float_relations!(
        "f16",
        mask_by!(|bits| Half(bits as u16).to_f32()),
        Kind::F16
    ),
    float_relations!(
        "f32",
        mask_by!(|bits| f32::from_bits(bits as u32)),
        Kind::F32
    ),
    float_relations!("f64", mask_by!(f64::from_bits), Kind::F64),
    integer_relations!("i16", mask_by!(|bits| bits as i16), Kind::B16),
    integer_relations!("u16", mask_by!(|bits| bits as u16), Kind::B16),
    integer_relations!("i32", mask_by!(|bits| bits as i32), Kind::B32),
    integer_relations!("u32", mask_by!(|bits| bits as u32), Kind::B32),
    integer_relations!("i64", mask_by!(|bits| bits as i64), Kind::I64),
    integer_relations!("u64", mask_by!(|bits| bits), Kind::B64),
    &[
        ("v_cmp_class_f16", class(HALF_CLASS, Kind::F16, false)),
        ("v_cmpx_class_f16", class(HALF_CLASS, Kind::F16, true)),
        ("v_cmp_class_f32", class(SINGLE_CLASS, Kind::F32, false)),
        ("v_cmpx_class_f32", class(SINGLE_CLASS, Kind::F32, true)),
        ("v_cmp_class_f64", class(DOUBLE_CLASS, Kind::F64, false)),
        ("v_cmpx_class_f64", class(DOUBLE_CLASS, Kind::F64, true)),
    ],
];

impl Comparison {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let gather = Gather::new(instruction, wave)?;
        let lanes = gather.lanes();
        let (mask, writes_exec) = match self {
            Self::Relation {
                accepted,
                run,
                kind,
                writes_exec,
            } => {
                let sources = gather.all_halves([kind, kind, Kind::None])?;
                let [a, b, _] = wide(&sources);
                let mut flags = [0; LANES];
                run.for_wave(wave).call([a, b], accepted, &mut flags);
                (wave.simd.pack(&flags), writes_exec)
            }
            Self::Class {
                run,
                kind,
                writes_exec,
            } => {
                let sources = gather.all_halves([kind, Kind::B32, Kind::None])?;
                let [values, masks, _] = wide(&sources);
                let mut flags = [0; LANES];
                run.for_wave(wave).call([values, masks], 0, &mut flags);
                (wave.simd.pack(&flags), writes_exec)
            }
        };
        write_mask(instruction, wave, mask & lanes);
        if writes_exec {
            wave.set_mask(Operand::EXEC, mask & lanes);
        }
        Ok(())
    }
}

/// Tests the class of a number, 0 to 9 as v_cmp_class numbers them, against a mask of classes.
macro_rules! class_by {
    ($Bits:ident, $bits:literal, fraction: $fraction:literal) => {
        leveled!(
            |values: Wide<'_>, masks: Wide<'_>, accepted: u8, flags: &mut Words| -> () {
                const SIGN: $Bits = 1 << ($bits - 1);
                const NORMAL: $Bits = 1 << $fraction;
                const INFINITY: $Bits = SIGN - NORMAL;
                for lane in 0..LANES {
                    let bits = values.bits(lane) as $Bits & (SIGN | (SIGN - 1));
                    let magnitude = bits & !SIGN;
                    // From 0: zero, denormal, normal, infinity.
                    let distance = u32::from(magnitude != 0)
                        + u32::from(magnitude >= NORMAL)
                        + u32::from(magnitude >= INFINITY);
                    let number = if bits & SIGN == 0 {
                        6 + distance
                    } else {
                        5 - distance
                    };
                    let quiet = (bits >> ($fraction - 1)) as u32 & 1;
                    let class = if magnitude > INFINITY { quiet } else { number };
                    flags[lane] = 0u32.wrapping_sub(masks.low[lane] >> class & 1);
                }
            }
        )
    };
}

const HALF_CLASS: Leveled<CompareFunction> = class_by!(u32, 16, fraction: 10);
const SINGLE_CLASS: Leveled<CompareFunction> = class_by!(u32, 32, fraction: 23);
const DOUBLE_CLASS: Leveled<CompareFunction> = class_by!(u64, 64, fraction: 52);
