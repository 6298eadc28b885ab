//! Arithmetic on bytes for images and video, and the faces of cube maps.

use modelgpu_isa::{Instruction, Operand};

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::gather::Gather;
use super::macros::{exact, kinds, vector};
use super::operands::indexed;
use super::operation::VectorOperation;
use crate::error::Fault;
use crate::lanes::{LANES, active};
use crate::wave::Wave;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_lerp_u8",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            let [a, b, c] = [a, b, c].map(u32::to_le_bytes);
            u32::from_le_bytes(std::array::from_fn(|n| {
                ((u16::from(a[n]) + u16::from(b[n]) + u16::from(c[n] & 1)) >> 1) as u8
            }))
        }),
    ),
    (
        "v_sad_u8",
        exact!(|a: u32, b: u32, c: u32| -> u32 { i64::from(differences(a, b)) + i64::from(c) }),
    ),
    (
        "v_sad_hi_u8",
        exact!(|a: u32, b: u32, c: u32| -> u32 {
            (i64::from(differences(a, b)) << 16) + i64::from(c)
        }),
    ),
    (
        "v_sad_u16",
        exact!(|a: u32, b: u32, c: u32| -> u32 {
            let difference = |shift: u32| (a >> shift & 0xffff).abs_diff(b >> shift & 0xffff);
            i64::from(difference(0)) + i64::from(difference(16)) + i64::from(c)
        }),
    ),
    (
        "v_msad_u8",
        exact!(|a: u32, b: u32, c: u32| -> u32 {
            i64::from(masked_differences(a, b)) + i64::from(c)
        }),
    ),
    (
        "v_qsad_pk_u16_u8",
        vector!(Long, |a: u64, b: u32, c: u64| -> u64 {
            four_sums(a, b, c, differences)
        }),
    ),
    (
        "v_mqsad_pk_u16_u8",
        vector!(Long, |a: u64, b: u32, c: u64| -> u64 {
            four_sums(a, b, c, masked_differences)
        }),
    ),
    (
        "v_mqsad_u32_u8",
        Operation::Vector(VectorOperation::FourSums),
    ),
    (
        "v_sat_pk_u8_i16",
        vector!(Word, |a: u32| -> u16 {
            let saturated = |shift: u32| ((a >> shift) as i16).clamp(0, 255) as u16;
            saturated(0) | saturated(16) << 8
        }),
    ),
    // A byte of the third source changes. It is the result's old value in the accumulating form.
    (
        "v_cvt_pk_u8_f32",
        vector!(Word, |a: f32, b: u32, c: u32| -> u32 { with_byte(a, b, c) }),
    ),
    (
        "v_cvt_pkaccum_u8_f32",
        vector!(Word, |a: f32, b: u32, c: u32| -> u32 { with_byte(a, b, c) }),
    ),
    // The faces of a cube: +x, -x, +y, -y, +z, -z. Among equal magnitudes z wins, then y.
    (
        "v_cubeid_f32",
        vector!(Word, |x: f32, y: f32, z: f32| -> f32 {
            let (face, negative) = match major_axis(x, y, z) {
                Axis::X => (0.0, x < 0.0),
                Axis::Y => (2.0, y < 0.0),
                Axis::Z => (4.0, z < 0.0),
            };
            if negative { face + 1.0 } else { face }
        }),
    ),
    (
        "v_cubesc_f32",
        vector!(Word, |x: f32, y: f32, z: f32| -> f32 {
            match major_axis(x, y, z) {
                Axis::X if x < 0.0 => z,
                Axis::X => -z,
                Axis::Y => x,
                Axis::Z if z < 0.0 => -x,
                Axis::Z => x,
            }
        }),
    ),
    (
        "v_cubetc_f32",
        vector!(Word, |x: f32, y: f32, z: f32| -> f32 {
            match major_axis(x, y, z) {
                Axis::Y if y < 0.0 => -z,
                Axis::Y => z,
                _ => -y,
            }
        }),
    ),
    (
        "v_cubema_f32",
        vector!(Word, |x: f32, y: f32, z: f32| -> f32 {
            2.0 * match major_axis(x, y, z) {
                Axis::X => x,
                Axis::Y => y,
                Axis::Z => z,
            }
        }),
    ),
];

enum Axis {
    X,
    Y,
    Z,
}

fn major_axis(x: f32, y: f32, z: f32) -> Axis {
    let [x, y, z] = [x, y, z].map(f32::abs);
    if z >= x && z >= y {
        Axis::Z
    } else if y >= x {
        Axis::Y
    } else {
        Axis::X
    }
}

/// The sum of the differences of four bytes.
fn differences(a: u32, b: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

/// Like [`differences`], without the bytes that are 0 in the reference `b`.
fn masked_differences(a: u32, b: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs
        .filter(|(_, b)| *b != 0)
        .map(|(a, b)| u32::from(a.abs_diff(b)))
        .sum()
}

/// Four sums of 16 bits: of the differences between the reference and each four bytes that begin
/// with one of `a`'s first four.
fn four_sums(a: u64, reference: u32, addends: u64, differences: fn(u32, u32) -> u32) -> u64 {
    (0..4).fold(0, |sums, place| {
        let difference = differences((a >> (8 * place)) as u32, reference);
        let sum = (addends >> (16 * place)) as u16;
        sums | u64::from(sum.wrapping_add(difference as u16)) << (16 * place)
    })
}

/// Four sums of 32 bits in four registers.
pub(super) fn four_wide_sums(instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let gather = Gather::new(instruction, wave)?;
    let [a, b, _] = gather.all_longs([Kind::B64, Kind::B32, Kind::None])?;
    let lanes = gather.lanes();
    let mut addends = [[0; LANES]; 4];
    for (place, words) in addends.iter_mut().enumerate() {
        let operand = indexed(instruction.src[2], 2, wave);
        match operand.vector_index() {
            Some(index) => *words = wave.vectors[index + place],
            // A constant is the low 32 bits.
            None if operand.scalar_index().is_none() && place > 0 => {}
            None if operand.scalar_index().is_none() => gather.raw(2, Kind::B32, words)?,
            None => words.fill(wave.word(Operand(operand.0 + place as u16))),
        }
    }
    let result = indexed(instruction.dst, 3, wave);
    for lane in active(lanes) {
        for (place, words) in addends.iter().enumerate() {
            let difference = masked_differences((a[lane] >> (8 * place)) as u32, b[lane] as u32);
            let exact = u64::from(words[lane]) + u64::from(difference);
            let sum = if instruction.modifiers.clamp {
                exact.min(u32::MAX.into())
            } else {
                exact
            };
            wave.set_lane_at(result, place, lane, sum as u32);
        }
    }
    Ok(())
}

/// Rounds to nearest even and saturates.
fn with_byte(value: f32, place: u32, word: u32) -> u32 {
    let shift = 8 * (place & 3);
    word & !(0xff << shift) | u32::from(value.round_ties_even() as u8) << shift
}
