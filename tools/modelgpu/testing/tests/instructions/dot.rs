//! Dot products.

use modelgpu_amdgcn::Target;

use crate::half::half_to_f64;
use crate::harness::{Case, GCN, Want};
use crate::inputs::{halves, integers};
use crate::small::{BF8, BRAIN, FP8, Format, HALF};

/// Mnemonic, number of elements, and a flag for signed elements.
const OF_INTEGERS: &[(&str, u32, bool)] = &[
    ("v_dot2_i32_i16", 2, true),
    ("v_dot2_u32_u16", 2, false),
    ("v_dot4_i32_i8", 4, true),
    ("v_dot4_u32_u8", 4, false),
    ("v_dot8_i32_i4", 8, true),
    ("v_dot8_u32_u4", 8, false),
];

/// The instructions that add to their result.
const ACCUMULATING: &[(&str, u32)] = &[
    ("v_dot2c_i32_i16", 2),
    ("v_dot4c_i32_i8", 4),
    ("v_dot8c_i32_i4", 8),
];

/// The exact sum, by digits of base 2^(32 / count).
fn sum(a: u64, b: u64, c: u64, count: u32, signed: bool) -> i128 {
    let base = 1i128 << (32 / count);
    let digits = |word: u64| {
        let mut rest = i128::from(word as u32);
        std::iter::repeat_with(move || {
            let digit = rest.rem_euclid(base);
            rest = rest.div_euclid(base);
            if signed && digit >= base / 2 {
                digit - base
            } else {
                digit
            }
        })
    };
    let addend = if signed {
        i128::from(c as i32)
    } else {
        i128::from(c as u32)
    };
    let products = digits(a).zip(digits(b)).map(|(a, b)| a * b);
    products.take(count as usize).sum::<i128>() + addend
}

/// The sum of two products of halves and a number, all small: every order of addition gives one
/// result.
fn half_sum(a: [u64; 2], b: [u64; 2], c: f64) -> Want {
    let [a, b] = [a, b].map(|pair| pair.map(|bits| half_to_f64(bits as u16)));
    Want::Single((a[0] * b[0] + a[1] * b[1] + c) as f32)
}

/// Halves that are small integers, from the bytes of random numbers.
const SMALL_HALVES: &str = "v_cvt_f16_u16 v14, v0
     v_bfe_i32 v15, v2, 0, 6
     v_cvt_f16_i16 v15, v15
     v_lshl_or_b32 v14, v15, 16, v14
     v_bfe_i32 v16, v4, 0, 8
     v_cvt_f16_i16 v16, v16
     v_and_b32 v16, 0xffff, v16
     v_bfe_i32 v17, v6, 0, 7
     v_cvt_f16_i16 v17, v17
     v_lshl_or_b32 v15, v17, 16, v16
     v_cvt_f32_i32 v16, v0";

/// The four halves of `SMALL_HALVES`, and the number.
fn small(all: [u64; 4], lane: usize) -> [f64; 5] {
    let field = |bits: u64, width: u32| f64::from((bits as i32) << (32 - width) >> (32 - width));
    let [a, b, c, _] = all;
    [
        lane as f64,
        field(a, 6),
        field(b, 8),
        field(c, 7),
        lane as f64,
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, count, signed) in OF_INTEGERS.iter().copied() {
        let body = format!("{name} v10, v2, v4, v6");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            Want::Word(sum(a, b, c, count, signed) as u32)
        }));
        let body = format!("{name} v10, v2, v4, v6 clamp");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            let exact = sum(a, b, c, count, signed);
            Want::Word(match signed {
                true => i32::try_from(exact).unwrap_or(if exact < 0 { i32::MIN } else { i32::MAX })
                    as u32,
                false => u32::try_from(exact).unwrap_or(u32::MAX),
            })
        }));
        let body = format!("{name} v10, v2, -1, 7");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            Want::Word(sum(all[lane][0], u64::MAX, 7, count, signed) as u32)
        }));
    }
    for (name, count) in ACCUMULATING.iter().copied() {
        let body = format!("v_mov_b32 v10, v6\n{name} v10, v2, v4");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            Want::Word(sum(a, b, c, count, true) as u32)
        }));
        // Each lane multiplies with its neighbour's value.
        let body = format!(
            "v_mov_b32 v10, v6
             {name} v10, v2, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
        );
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [_, b, c, _] = all[lane];
            Want::Word(sum(all[lane ^ 1][0], b, c, count, true) as u32)
        }));
    }
    cases.extend(selected());
    cases.extend(of_halves());
    cases.extend(of_brains());
    cases.extend(of_short_sums());
    cases.extend(of_eights());
    cases
}

const GFX950: &[Target] = &[Target::Gfx950];
const RDNA: &[Target] = &[Target::Gfx1100, Target::Gfx1201];

/// Masks that make numbers from 1 to 2 of all bits: products of those have few bits.
const NEAR_ONE: [(Format, u32, u32); 4] = [
    (BRAIN, 0x8070_8070, 0x3f80_3f80),
    (HALF, 0x83c0_83c0, 0x3c00_3c00),
    (FP8, 0x8787_8787, 0x3838_3838),
    (BF8, 0x8383_8383, 0x3c3c_3c3c),
];

/// Makes v14, v15 and v16 of a, b and c.
fn near_one(formats: [Format; 3]) -> String {
    let mut text = String::new();
    for (place, format) in formats.into_iter().enumerate() {
        let (_, and, or) = masks(format);
        let (register, source) = (14 + place, 2 + 2 * place);
        text += &format!(
            "v_and_b32 v{register}, {and:#x}, v{source}
             v_or_b32 v{register}, {or:#x}, v{register}\n"
        );
    }
    text
}

fn masks(format: Format) -> (Format, u32, u32) {
    let found = NEAR_ONE.into_iter().find(|(other, ..)| *other == format);
    found.expect("a format of the table")
}

/// The elements that `near_one` makes of a register.
fn elements(format: Format, bits: u64) -> Vec<f64> {
    let (_, and, or) = masks(format);
    let word = bits as u32 & and | or;
    (0..32 / format.width())
        .map(|place| {
            let element = word >> (place * format.width());
            format.value((u64::from(element) % (1 << format.width())) as u32)
        })
        .collect()
}

fn plain_dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn of_brains() -> Vec<Case> {
    let set = format!("{}v_cvt_f32_i32 v16, v0", near_one([BRAIN; 3]));
    let dot = |all: [u64; 4], signs: [f64; 2]| {
        let [a, b] = [all[0], all[1]].map(|bits| elements(BRAIN, bits));
        signs[0] * a[0] * b[0] + signs[1] * a[1] * b[1]
    };
    let mut cases = vec![
        Case::new(
            "v_dot2_f32_bf16",
            format!("{set}\nv_dot2_f32_bf16 v10, v14, v15, v16"),
            integers(),
            move |all, lane| Want::Single((dot(all[lane], [1.0, 1.0]) + lane as f64) as f32),
        ),
        Case::new(
            "v_dot2_f32_bf16",
            format!(
                "{set}\nv_dot2_f32_bf16 v10, v14, v15, 1.0 neg_lo:[1,0,0] neg_hi:[1,1,0] clamp"
            ),
            integers(),
            move |all, lane| {
                let sum = dot(all[lane], [-1.0, 1.0]) + 1.0;
                Want::Single(sum.clamp(0.0, 1.0) as f32)
            },
        ),
        Case::new(
            "v_dot2c_f32_bf16",
            format!("{set}\nv_mov_b32 v10, v16\nv_dot2c_f32_bf16 v10, v14, v15"),
            integers(),
            move |all, lane| Want::Single((dot(all[lane], [1.0, 1.0]) + lane as f64) as f32),
        )
        .only(GFX950),
        Case::new(
            "v_dot2c_f32_bf16",
            format!(
                "{set}\nv_mov_b32 v10, v16
                 v_dot2c_f32_bf16 v10, v14, v15 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
            ),
            integers(),
            move |all, lane| {
                let crossed = [all[lane ^ 1][0], all[lane][1], 0, 0];
                Want::Single((dot(crossed, [1.0, 1.0]) + lane as f64) as f32)
            },
        )
        .only(GFX950),
        // The guide's order: the large products come first and leave nothing.
        Case::new(
            "v_dot2_f32_bf16",
            "v_mov_b32 v14, 0x71807180
             v_mov_b32 v15, 0xbf803f80
             v_dot2_f32_bf16 v10, v14, v15, 1.0",
            integers(),
            |_, _| Want::Single(1.0),
        ),
    ];
    // A dual instruction alone has the sum on RDNA, here together with v_dual_mov_b32 v21, v20.
    cases.push(
        Case::new(
            "v_dot2c_f32_bf16",
            format!("{set}\nv_mov_b32 v10, v16\n.long 0xcb501f0e, 0x0a140114"),
            integers(),
            move |all, lane| Want::Single((dot(all[lane], [1.0, 1.0]) + lane as f64) as f32),
        )
        .only(RDNA),
    );
    cases
}

/// The sum is in the elements' format, here without a rounding of the products. op_sel selects its half, and that
/// of the addend.
fn of_short_sums() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, format) in [("v_dot2_f16_f16", HALF), ("v_dot2_bf16_bf16", BRAIN)] {
        for (select, shift, half) in [("", 0, 0), (" op_sel:[0,0,1,1]", 16, 1)] {
            let body = format!("{}{name} v10, v14, v15, v16{select}", near_one([format; 3]));
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                let [a, b, c, _] = all[lane].map(|bits| elements(format, bits));
                let sum = format.nearest(plain_dot(&a, &b) + c[half]);
                Want::Word(0x5a5a_5a5a & !(0xffff << shift) | sum << shift)
            }));
        }
        // One element is a NaN with all bits set; its bits of a payload do not count.
        let body = format!(
            "{}v_mov_b32 v14, 0x7fff\n{name} v10, v14, v15, v16",
            near_one([format; 3])
        );
        cases.push(Case::new(name, body, integers(), move |_, _| {
            Want::Word(0x5a5a_0000 | format.of_nan(f32::from_bits(0x7fc0_0000)))
        }));
    }
    cases
}

fn of_eights() -> Vec<Case> {
    let mut cases = Vec::new();
    for first in [FP8, BF8] {
        for second in [FP8, BF8] {
            let name: &'static str = format!("v_dot4_f32_{}_{}", first.name, second.name).leak();
            let set = format!(
                "{}v_cvt_f32_i32 v16, v0\nv_sub_f32 v16, 8.0, v16",
                near_one([first, second, FP8])
            );
            let set = set.replace("8.0", "0x41000000");
            for (modifiers, of_addend) in [
                ("", (|c| c) as fn(f64) -> f64),
                (" neg_lo:[0,0,1]", |c| -c),
                (" neg_lo:[0,0,1] neg_hi:[0,0,1]", |c| -c.abs()),
            ] {
                let body = format!("{set}\n{name} v10, v14, v15, v16{modifiers}");
                cases.push(Case::new(name, body, integers(), move |all, lane| {
                    let [a, b] = [(first, all[lane][0]), (second, all[lane][1])]
                        .map(|(format, bits)| elements(format, bits));
                    let c = of_addend(8.0 - lane as f64);
                    Want::Single((plain_dot(&a, &b) + c) as f32)
                }));
            }
        }
    }
    cases
}

/// 16-bit elements with another selection. The first product takes a's high and b's low half, the
/// second a's low and b's high half. gfx942 cannot select halves.
fn selected() -> Vec<Case> {
    [("v_dot2_i32_i16", true), ("v_dot2_u32_u16", false)]
        .into_iter()
        .map(|(name, signed)| {
            let body = format!("{name} v10, v2, v4, v6 op_sel:[1,0,0] op_sel_hi:[0,1,0]");
            Case::new(name, body, integers(), move |all, lane| {
                let [a, b, c, _] = all[lane];
                let swapped = u64::from((a as u32).rotate_left(16));
                Want::Word(sum(swapped, b, c, 2, signed) as u32)
            })
            .only(GCN)
        })
        .collect()
}

fn of_halves() -> Vec<Case> {
    let plain = |[a0, a1, b0, b1, c]: [f64; 5]| a0 * b0 + a1 * b1 + c;
    let case = |mnemonic, text: &str, want: fn([f64; 5]) -> f64| {
        let body = format!("{SMALL_HALVES}\n{text}");
        Case::new(mnemonic, body, integers(), move |all, lane| {
            Want::Single(want(small(all[lane], lane)) as f32)
        })
    };
    vec![
        case("v_dot2_f32_f16", "v_dot2_f32_f16 v10, v14, v15, v16", plain),
        case(
            "v_dot2_f32_f16",
            "v_dot2_f32_f16 v10, v14, v15, v16 op_sel:[1,0,0] op_sel_hi:[0,1,0]",
            |[a0, a1, b0, b1, c]| a1 * b0 + a0 * b1 + c,
        )
        .only(GCN),
        case(
            "v_dot2_f32_f16",
            "v_dot2_f32_f16 v10, v14, v15, v16 neg_lo:[1,0,0] neg_hi:[0,1,0]",
            |[a0, a1, b0, b1, c]| -a0 * b0 - a1 * b1 + c,
        ),
        case(
            "v_dot2_f32_f16",
            "v_dot2_f32_f16 v10, v14, v15, 2.0 clamp",
            |[a0, a1, b0, b1, _]| (a0 * b0 + a1 * b1 + 2.0).clamp(0.0, 1.0),
        ),
        case(
            "v_dot2c_f32_f16",
            "v_mov_b32 v10, v16\nv_dot2c_f32_f16 v10, v14, v15",
            plain,
        ),
        // RDNA 4 has the sum in dual instructions alone, here with v_dual_mov_b32 v21, v20. An assembler takes
        // those for waves of 32; the bits are equal.
        case(
            "v_dot2c_f32_f16",
            "v_mov_b32 v10, v16\n.long 0xca180114, 0x150a1f0e",
            plain,
        )
        .only(&[Target::Gfx1201]),
        // A denormal addend is 0, and so is a denormal sum.
        Case::new(
            "v_dot2_f32_f16",
            "v_mov_b32 v14, 0\nv_mov_b32 v15, 0x400\nv_dot2_f32_f16 v10, v14, v14, v15",
            integers(),
            |_, _| Want::Word(0),
        ),
        // Infinities and NaNs among the halves.
        Case::new(
            "v_dot2_f32_f16",
            "v_dot2_f32_f16 v10, v2, v4, 0",
            halves(),
            |all, lane| {
                let [a, b, ..] = all[lane];
                let want = half_sum([a, a >> 16], [b, b >> 16], 0.0);
                match want {
                    Want::Single(value) if value.is_finite() => Want::Any,
                    special => special,
                }
            },
        ),
    ]
}
