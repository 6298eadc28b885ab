//! Arithmetic on bytes, cube maps, normalized numbers, and multiply-adds of halves that round twice.
//!
//! The expected values are the definitions in AMD's instruction set guides, in other words than the
//! interpreter's: sums over bytes as numbers, faces by their axes, roundings by comparison of
//! distances.

use crate::float::f;
use crate::half::{f64_to_half, half_to_f64, want_half};
use crate::harness::{Case, GCN, Inputs, Want};
use crate::inputs::{halves, integers, singles};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = bytes();
    cases.extend(four_sums());
    cases.extend(packed_bytes());
    cases.extend(cubes());
    cases.extend(conversions());
    cases.extend(halves_of_three());
    cases
}

fn byte(word: u64, place: usize) -> i64 {
    i64::from(word.to_le_bytes()[place])
}

fn half_word(word: u64, place: usize) -> i64 {
    (word as i64 >> (16 * place)) & 0xffff
}

/// The sum of the differences of bytes `first..first + 4` of `a` and the bytes of a reference, with
/// or without those whose reference is 0.
fn difference(a: u64, first: usize, reference: u64, masked: bool) -> i64 {
    (0..4)
        .filter(|place| !masked || byte(reference, *place) > 0)
        .map(|place| (byte(a, first + place) - byte(reference, place)).abs())
        .sum()
}

fn saturated(sum: i64, clamps: bool) -> u32 {
    if clamps && sum > 0xffff_ffff {
        0xffff_ffff
    } else {
        sum as u32
    }
}

type Sum = fn(u64, u64, i64) -> i64;

const SUMS: &[(&str, Sum)] = &[
    ("v_sad_u8", |a, b, c| difference(a, 0, b, false) + c),
    ("v_sad_hi_u8", |a, b, c| {
        difference(a, 0, b, false) * 0x1_0000 + c
    }),
    ("v_msad_u8", |a, b, c| difference(a, 0, b, true) + c),
    ("v_sad_u16", |a, b, c| {
        let part = |place| (half_word(a, place) - half_word(b, place)).abs();
        part(0) + part(1) + c
    }),
];

fn bytes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, sum) in SUMS.iter().copied() {
        for clamps in [false, true] {
            let flag = if clamps { " clamp" } else { "" };
            let body = format!("{name} v10, v2, v4, v6{flag}");
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                let [a, b, c, _] = all[lane];
                Want::Word(saturated(sum(a, b, c as i64 & 0xffff_ffff), clamps))
            }));
        }
    }
    cases.push(Case::new(
        "v_lerp_u8",
        "v_lerp_u8 v10, v2, v4, v6",
        integers(),
        |all, lane| {
            let [a, b, c, _] = all[lane];
            let mean = |n| (byte(a, n) + byte(b, n) + byte(c, n) % 2) / 2;
            Want::Word((0..4).map(|n| (mean(n) as u32) << (8 * n)).sum())
        },
    ));
    cases.push(Case::new(
        "v_sat_pk_u8_i16",
        "v_sat_pk_u8_i16 v10, v2",
        integers(),
        |all, lane| {
            let limited = |place| match half_word(all[lane][0], place) {
                value @ 0..=255 => value as u32,
                256..=0x7fff => 255,
                _ => 0,
            };
            Want::Word(limited(0) + 256 * limited(1))
        },
    ));
    cases
}

fn four_sums() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, masked) in [("v_qsad_pk_u16_u8", false), ("v_mqsad_pk_u16_u8", true)] {
        // The result may not lie in its sources' registers, so it has others.
        let body = format!("{name} v[10:11], v[2:3], v4, v[6:7]");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            let sum = |place: usize| {
                let whole = difference(a, place, b, masked) + half_word(c, place);
                (whole as u64 % 0x1_0000) << (16 * place)
            };
            Want::Long((0..4).map(sum).sum())
        }));
    }
    for clamps in [false, true] {
        let flag = if clamps { " clamp" } else { "" };
        // The addends are c and d.
        let body = format!("v_mqsad_u32_u8 v[10:13], v[2:3], v4, v[6:9]{flag}");
        cases.push(Case::new(
            "v_mqsad_u32_u8",
            body,
            integers(),
            move |all, lane| {
                let [a, b, c, d] = all[lane];
                let addends = [c, c >> 32, d, d >> 32].map(|word| word as i64 & 0xffff_ffff);
                Want::All(std::array::from_fn(|place| {
                    saturated(difference(a, place, b, true) + addends[place], clamps)
                }))
            },
        ));
    }
    cases
}

/// The whole number nearest to `value` in a range; of two equally near, the even one; 0 for NaN.
pub(crate) fn nearest(value: f64, low: i64, high: i64) -> i64 {
    if value.is_nan() {
        return 0;
    }
    if value <= low as f64 || value >= high as f64 {
        return if value <= low as f64 { low } else { high };
    }
    let below = value.floor() as i64;
    let (down, up) = (value - below as f64, (below + 1) as f64 - value);
    if down < up || down == up && below % 2 == 0 {
        below
    } else {
        below + 1
    }
}

fn packed_bytes() -> Vec<Case> {
    [
        "v_cvt_pk_u8_f32 v10, v14, v4, v6",
        "v_cvt_pkaccum_u8_f32 v10, v14, v4",
    ]
    .into_iter()
    .flat_map(|instruction| {
        let name = instruction.split(' ').next().expect("a mnemonic");
        // Any numbers; and each multiple of a half from -16 on, with ties.
        [
            ("v_mov_b32 v14, v2", false),
            ("v_cvt_f32_u32 v14, v0\nv_mul_f32 v14, 4.5, v14", true),
        ]
        .map(|(source, counts)| {
            let body = format!("v_mov_b32 v10, v6\n{source}\n{instruction}");
            Case::new(name, body, singles(), move |all, lane| {
                let [a, b, c, _] = all[lane];
                let value = if counts {
                    4.5 * lane as f64
                } else {
                    f(a).into()
                };
                let mut bytes = (c as u32).to_le_bytes();
                bytes[b as usize % 4] = nearest(value, 0, 255) as u8;
                Want::Word(u32::from_le_bytes(bytes))
            })
        })
    })
    .collect()
}

/// A vector's face: its number, and the coordinates on it and across it.
fn face(vector: [f32; 3]) -> [f32; 4] {
    // The largest magnitude wins; of equal ones z before y before x.
    let axis = (0..3)
        .max_by(|a, b| vector[*a].abs().total_cmp(&vector[*b].abs()))
        .expect("three axes");
    let [x, y, z] = vector;
    let negative = vector[axis] < 0.0;
    let sign = if negative { -1.0 } else { 1.0 };
    let [s, t] = match axis {
        0 => [-sign * z, -y],
        1 => [x, sign * z],
        _ => [sign * x, -y],
    };
    let number = 2 * axis + usize::from(negative);
    [number as f32, s, t, 2.0 * vector[axis]]
}

fn cubes() -> Vec<Case> {
    // Numbers without NaN. The high bits of the integers serve as such.
    let numbers: Inputs = integers()
        .map(|lane| lane.map(|bits| u64::from(((bits as i64 % 7) as f32 * 0.75).to_bits())));
    [
        "v_cubeid_f32",
        "v_cubesc_f32",
        "v_cubetc_f32",
        "v_cubema_f32",
    ]
    .into_iter()
    .enumerate()
    .map(|(place, name)| {
        // Zeros of either sign are equal here.
        let body = format!("{name} v10, v2, v4, v6\nv_add_f32 v10, 0, v10");
        Case::new(name, body, numbers, move |all, lane| {
            let [x, y, z, _] = all[lane].map(f);
            Want::Single(face([x, y, z])[place] + 0.0)
        })
    })
    .collect()
}

fn conversions() -> Vec<Case> {
    let mut cases = Vec::new();
    // A NaN's result is not specified.
    type Whole = fn(f64) -> f64;
    let floors: [(&str, Whole); 2] = [
        ("v_cvt_rpi_i32_f32", |a| (a + 0.5).floor()),
        ("v_cvt_flr_i32_f32", f64::floor),
    ];
    for (name, run) in floors {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            singles(),
            move |all, lane| {
                let value = f64::from(f(all[lane][0]));
                if value.is_nan() {
                    return Want::Any;
                }
                let whole = run(value).clamp(-2_147_483_648.0, 2_147_483_647.0);
                Want::Word(whole as i64 as u32)
            },
        ));
    }
    cases.push(Case::new(
        "v_cvt_off_f32_i4",
        "v_cvt_off_f32_i4 v10, v2",
        integers(),
        |all, lane| {
            let number = all[lane][0] % 16;
            let signed = if number < 8 {
                number as f32
            } else {
                number as f32 - 16.0
            };
            Want::Single(signed * 0.0625)
        },
    ));
    let norm = |value: f64, signed: bool| match signed {
        true => nearest(value * 32767.0, -32767, 32767) as u32 & 0xffff,
        false => nearest(value * 65535.0, 0, 65535) as u32,
    };
    for (name, signed) in [("v_cvt_norm_i16_f16", true), ("v_cvt_norm_u16_f16", false)] {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            halves(),
            move |all, lane| Want::Word(norm(half_to_f64(all[lane][0] as u16), signed)),
        ));
    }
    for (name, signed) in [
        ("v_cvt_pknorm_i16_f16", true),
        ("v_cvt_pknorm_u16_f16", false),
    ] {
        // The high half of a and the low half of b.
        let body = format!("{name} v10, v2, v4 op_sel:[1,0,0]");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let [a, b, ..] = all[lane];
            let [a, b] = [a >> 16, b].map(|bits| norm(half_to_f64(bits as u16), signed));
            Want::Word(a + 0x1_0000 * b)
        }));
    }
    for (name, signed) in [
        ("v_cvt_pknorm_i16_f32", true),
        ("v_cvt_pknorm_u16_f32", false),
    ] {
        let body = format!("{name} v10, v2, -v4");
        cases.push(Case::new(name, body, singles(), move |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| f64::from(f(bits)));
            Want::Word(norm(a, signed) + 0x1_0000 * norm(-b, signed))
        }));
    }
    cases.push(Case::new(
        "v_cvt_pk_u16_u32",
        "v_cvt_pk_u16_u32 v10, v2, v4",
        integers(),
        |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| (bits as u32).min(65535));
            Want::Word(a + 0x1_0000 * b)
        },
    ));
    cases.push(Case::new(
        "v_cvt_pk_i16_i32",
        "v_cvt_pk_i16_i32 v10, v2, v4",
        integers(),
        |all, lane| {
            let [a, b, ..] = all[lane].map(|bits| nearest(f64::from(bits as i32), -32768, 32767));
            Want::Word(a as u32 & 0xffff | (b as u32) << 16)
        },
    ));
    for (name, run) in [("v_exp_legacy_f32", true), ("v_log_legacy_f32", false)] {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            singles(),
            move |all, lane| {
                let a = f64::from(f(all[lane][0]));
                Want::NearSingle(match run {
                    true => 2f64.powf(a) as f32,
                    false => (a.ln() / std::f64::consts::LN_2) as f32,
                })
            },
        ));
    }
    cases.push(
        Case::new(
            "v_mad_legacy_f32",
            "v_mad_legacy_f32 v10, v2, v4, v6",
            singles(),
            |all, lane| {
                let [a, b, c, _] = all[lane].map(f);
                Want::Single(if a == 0.0 || b == 0.0 { c } else { a * b + c })
            },
        )
        .only(GCN),
    );
    cases
}

fn halves_of_three() -> Vec<Case> {
    // The product is rounded, then the sum. The bits of a NaN are not specified.
    let twice = |a: u64, b: u64, c: u64| {
        let [a, b, c] = [a, b, c].map(|bits| half_to_f64(bits as u16));
        half_to_f64(f64_to_half(a * b)) + c
    };
    let settle = "v_cmp_u_f16 vcc, v10, v10
                  v_mov_b32 v14, 0x7e00
                  v_cndmask_b32 v10, v10, v14, vcc";
    let mut cases = Vec::new();
    for (name, instruction) in [
        ("v_mad_legacy_f16", "v_mad_legacy_f16 v10, v2, v4, v6"),
        // The rest of its register stays.
        ("v_mad_f16", "v_mov_b32 v10, 0\nv_mad_f16 v10, v2, v4, v6"),
        ("v_mac_f16", "v_mov_b32 v10, v6\nv_mac_f16 v10, v2, v4"),
        ("v_madmk_f16", "v_madmk_f16 v10, v2, 0x4248, v6"),
        ("v_madak_f16", "v_madak_f16 v10, v2, v4, 0x4248"),
    ] {
        let body = format!("{instruction}\n{settle}");
        cases.push(Case::new(name, body, halves(), move |all, lane| {
            let [a, mut b, mut c, _] = all[lane];
            match name {
                "v_madmk_f16" => b = 0x4248,
                "v_madak_f16" => c = 0x4248,
                _ => {}
            }
            want_half(twice(a, b, c))
        }));
    }
    cases.push(Case::new(
        "v_mad_f16",
        "v_mad_f16 v10, 1.0, 0, 2.0",
        halves(),
        |_, _| Want::Word(0x5a5a_4000),
    ));
    cases
}
