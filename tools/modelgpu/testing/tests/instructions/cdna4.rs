//! Instructions that gfx950 has and its predecessors lack, other than matrix products.

use crate::atomics::f64_to_brain;
use crate::float::f;
use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{Case, LANES, Want, memory_byte};
use crate::inputs::{halves, integers, singles};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = tables();
    cases.extend(exchanges());
    cases.extend(conversions());
    cases.extend(extremes());
    cases.extend(shifts());
    cases.push(wide_to_lds());
    cases.extend(transposes());
    cases
}

/// Sixteen lanes read a matrix with sixteen columns by rows, and each gets a column. Each lane writes its part of
/// the matrix, and reads the part of another lane of its sixteen.
fn transposes() -> Vec<Case> {
    [
        ("ds_read_b64_tr_b4", 4, 8),
        ("ds_read_b96_tr_b6", 6, 12),
        ("ds_read_b64_tr_b8", 8, 8),
        ("ds_read_b64_tr_b16", 16, 8),
    ]
    .into_iter()
    .map(|(name, width, bytes)| {
        let last = 9 + bytes / 4;
        let body = format!(
            "v_lshlrev_b32 v14, 4, v0
             ds_write_b64 v14, v[2:3]
             ds_write_b64 v14, v[4:5] offset:8
             s_waitcnt lgkmcnt(0)
             v_xor_b32 v14, 0x50, v14
             {name} v[10:{last}], v14"
        );
        Case::new(name, body, integers(), move |all, lane| {
            let group = lane / 16 * 16;
            // All bits of the matrix, row by row.
            let bits: Vec<u32> = (group..group + 16)
                .flat_map(|lane| {
                    let [low, high, ..] = all[lane ^ 5];
                    let both = u128::from(low) | u128::from(high) << 64;
                    (0..8 * bytes).map(move |bit| (both >> bit) as u32 & 1)
                })
                .collect();
            let mut words = [0u32; 4];
            for row in 0..8 * bytes / width {
                for bit in 0..width {
                    let from = (16 * row + lane % 16) * width + bit;
                    let to = row * width + bit;
                    words[to / 32] |= bits[from] << (to % 32);
                }
            }
            for word in &mut words[bytes / 4..] {
                *word = 0x5a5a_5a5a;
            }
            Want::All(words)
        })
    })
    .collect()
}

/// Bit n of the table is the result for the three bits of n.
fn tables() -> Vec<Case> {
    let looked_up = |table: u32, a: u32, b: u32, c: u32| {
        (0..32).fold(0, |bits, place| {
            let bit = |word: u32| word >> place & 1;
            bits | (table >> (4 * bit(a) + 2 * bit(b) + bit(c)) & 1) << place
        })
    };
    let mut cases = Vec::new();
    for table in [0x00, 0x01, 0x08, 0x40, 0x96, 0xe8, 0xd8, 0xff] {
        let body = format!("v_bitop3_b32 v10, v2, v4, v6 bitop3:{table:#x}");
        cases.push(Case::new(
            "v_bitop3_b32",
            body,
            integers(),
            move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| bits as u32);
                Want::Word(looked_up(table, a, b, c))
            },
        ));
        // The other half of the register stays.
        for (select, shift) in [("", 0), (" op_sel:[0,0,0,1]", 16)] {
            let body = format!("v_bitop3_b16 v10, v2, v4, v6 bitop3:{table:#x}{select}");
            cases.push(Case::new(
                "v_bitop3_b16",
                body,
                integers(),
                move |all, lane| {
                    let [a, b, c, _] = all[lane].map(|bits| bits as u32);
                    let result = looked_up(table, a, b, c) & 0xffff;
                    Want::Word(0x5a5a_5a5a & !(0xffff << shift) | result << shift)
                },
            ));
        }
    }
    cases
}

/// The odd groups of lanes of one register and the even ones of another change places.
fn exchanges() -> Vec<Case> {
    [("v_permlane16_swap_b32", 16), ("v_permlane32_swap_b32", 32)]
        .into_iter()
        .map(|(name, size)| {
            let body = format!("v_mov_b32 v10, v2\nv_mov_b32 v11, v4\n{name} v10, v11");
            Case::new(name, body, integers(), move |all, lane| {
                let is_odd = lane / size % 2 == 1;
                let first = if is_odd {
                    all[lane - size][1]
                } else {
                    all[lane][0]
                };
                let second = if is_odd {
                    all[lane][1]
                } else {
                    all[lane + size][0]
                };
                Want::Long(u64::from(first as u32) | second << 32)
            })
        })
        .collect()
}

fn conversions() -> Vec<Case> {
    let two = |name: &'static str, round: fn(f64) -> u16| {
        Case::new(
            name,
            format!("{name} v10, v2, -v4"),
            singles(),
            move |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| f64::from(f(bits)));
                let [a, b] = [a, -b];
                // A NaN's other bits are those of the source.
                if a.is_nan() || b.is_nan() {
                    return Want::Any;
                }
                Want::Word(u32::from(round(a)) | u32::from(round(b)) << 16)
            },
        )
    };
    vec![
        two("v_cvt_pk_f16_f32", f64_to_half),
        two("v_cvt_pk_bf16_f32", f64_to_brain),
        Case::new(
            "v_cvt_pk_bf16_f32",
            "v_mov_b32 v14, 0x7f800001\nv_mov_b32 v15, 0xff812345\nv_cvt_pk_bf16_f32 v10, v14, v15",
            singles(),
            |_, _| Want::Word(0xffc1_7fc0),
        ),
        Case::new(
            "v_cvt_f32_bf16",
            "v_cvt_f32_bf16 v10, v2",
            singles(),
            |all, lane| Want::Single(brain(all[lane][0])),
        ),
    ]
}

/// A bfloat16 from its definition.
fn brain(bits: u64) -> f32 {
    let sign = if bits >> 15 & 1 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = ((bits >> 7 & 255) as i32, (bits & 127) as f64);
    let value = match (exponent, fraction) {
        (255, 0.0) => f64::INFINITY,
        (255, _) => f64::NAN,
        (0, _) => fraction * 2f64.powi(-133),
        _ => (128.0 + fraction) * 2f64.powi(exponent - 134),
    };
    (sign * value) as f32
}

/// IEEE 754-2019: a NaN wins, and -0 is less than +0.
fn least(a: f64, b: f64) -> f64 {
    match () {
        () if a.is_nan() || b.is_nan() => f64::NAN,
        () if a < b || a == b && a.is_sign_negative() => a,
        () => b,
    }
}

fn most(a: f64, b: f64) -> f64 {
    -least(-a, -b)
}

type Choice = fn(f64, f64) -> f64;

fn extremes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, choose) in [
        ("v_minimum3_f32", least as Choice),
        ("v_maximum3_f32", most),
    ] {
        let body = format!("{name} v10, v2, v4, v6");
        cases.push(Case::new(name, body, singles(), move |all, lane| {
            let [a, b, c, _] = all[lane].map(|bits| f64::from(f(bits)));
            Want::Single(choose(choose(a, b), c) as f32)
        }));
    }
    for (name, choose) in [
        ("v_pk_minimum3_f16", least as Choice),
        ("v_pk_maximum3_f16", most),
    ] {
        for high in [false, true] {
            let shift = if high { 16 } else { 0 };
            let body = format!("{name} v14, v2, v4, v6\nv_bfe_u32 v10, v14, {shift}, 16");
            cases.push(Case::new(name, body, halves(), move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| half_to_f64((bits >> shift) as u16));
                Want::Half(f64_to_half(choose(choose(a, b), c)))
            }));
        }
    }
    cases
}

fn shifts() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, low, high) in [
        ("v_ashr_pk_i8_i32", -128, 127),
        ("v_ashr_pk_u8_i32", 0, 255),
    ] {
        for (select, place) in [("", 0), (" op_sel:[0,0,0,1]", 16)] {
            let body = format!("{name} v10, v2, v4, v6{select}");
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                let [a, b, c, _] = all[lane];
                let byte = |bits: u64| {
                    let shifted = i64::from(bits as i32).div_euclid(1 << (c % 32));
                    shifted.max(low).min(high) as u32 & 255
                };
                let both = byte(a) | byte(b) << 8;
                Want::Word(0x5a5a_5a5a & !(0xffff << place) | both << place)
            }));
        }
    }
    // A step of one bit with feedback to the bits 0, 2, 6 and 7.
    cases.push(Case::new(
        "v_prng_b32",
        "v_prng_b32 v10, v2",
        integers(),
        |all, lane| {
            let a = all[lane][0] as u32;
            let fed = a >> 31;
            Want::Word((a.wrapping_add(a)) ^ (fed | fed << 2 | fed << 6 | fed << 7))
        },
    ));
    cases
}

/// Four dwords of each lane go to LDS, those of neighbouring lanes side by side.
fn wide_to_lds() -> Case {
    let body = "v_lshlrev_b32 v14, 6, v0
         s_mov_b32 m0, 0x100
         global_load_lds_dwordx4 v14, s[12:13] offset:16
         s_waitcnt vmcnt(0)
         v_lshlrev_b32 v20, 4, v0
         ds_read_b128 v[10:13], v20 offset:0x110";
    Case::new(
        "global_load_lds_dwordx4",
        body,
        [[0; 4]; LANES],
        |_, lane| {
            let byte = |n: u32| memory_byte(64 * lane as u32 + 16 + n);
            Want::All(std::array::from_fn(|word| {
                u32::from_le_bytes(std::array::from_fn(|n| byte((4 * word + n) as u32)))
            }))
        },
    )
}
