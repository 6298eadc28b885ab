//! Vector integer instructions.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, Want};
use crate::inputs::integers;

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;
type Ternary = fn(u32, u32, u32) -> u32;

const UNARY: &[(&str, Unary)] = &[
    ("v_mov_b32", |a| a),
    ("v_not_b32", |a| a ^ 0xffff_ffff),
    ("v_bfrev_b32", |a| {
        (0..32).fold(0, |r, bit| r | (a >> bit & 1) << (31 - bit))
    }),
    ("v_ffbh_u32", |a| {
        (0..32).find(|n| a << n >> 31 == 1).unwrap_or(u32::MAX)
    }),
    ("v_ffbl_b32", |a| {
        (0..32).find(|n| a >> n & 1 == 1).unwrap_or(u32::MAX)
    }),
    ("v_ffbh_i32", |a| {
        (1..32)
            .find(|n| a << n >> 31 != a >> 31)
            .unwrap_or(u32::MAX)
    }),
];

const BINARY: &[(&str, Binary)] = &[
    ("v_and_b32", |a, b| a & b),
    ("v_or_b32", |a, b| a | b),
    ("v_xor_b32", |a, b| (a | b) - (a & b)),
    ("v_xnor_b32", |a, b| !((a | b) & !(a & b))),
    ("v_lshlrev_b32", |a, b| (u64::from(b) << (a % 32)) as u32),
    ("v_lshrrev_b32", |a, b| b / (1 << (a % 32))),
    ("v_ashrrev_i32", |a, b| {
        i64::from(b as i32).div_euclid(1 << (a % 32)) as u32
    }),
    ("v_add_u32", |a, b| (u64::from(a) + u64::from(b)) as u32),
    ("v_sub_u32", |a, b| (i64::from(a) - i64::from(b)) as u32),
    ("v_subrev_u32", |a, b| (i64::from(b) - i64::from(a)) as u32),
    ("v_add_i32", |a, b| (i64::from(a) + i64::from(b)) as u32),
    ("v_sub_i32", |a, b| (i64::from(a) - i64::from(b)) as u32),
    ("v_min_u32", |a, b| if a < b { a } else { b }),
    ("v_max_u32", |a, b| if a < b { b } else { a }),
    (
        "v_min_i32",
        |a, b| if (a as i32) < b as i32 { a } else { b },
    ),
    (
        "v_max_i32",
        |a, b| if (a as i32) < b as i32 { b } else { a },
    ),
    ("v_mul_lo_u32", |a, b| {
        (u64::from(a) * u64::from(b) % (1 << 32)) as u32
    }),
    ("v_mul_hi_u32", |a, b| {
        (u64::from(a) * u64::from(b) / (1 << 32)) as u32
    }),
    ("v_mul_hi_i32", |a, b| {
        (i128::from(a as i32) * i128::from(b as i32)).div_euclid(1 << 32) as u32
    }),
    ("v_mul_u32_u24", |a, b| {
        (u64::from(a % (1 << 24)) * u64::from(b % (1 << 24))) as u32
    }),
    ("v_mul_hi_u32_u24", |a, b| {
        (u64::from(a % (1 << 24)) * u64::from(b % (1 << 24)) / (1 << 32)) as u32
    }),
    ("v_mul_i32_i24", |a, b| (signed24(a) * signed24(b)) as u32),
    ("v_mul_hi_i32_i24", |a, b| {
        (signed24(a) * signed24(b)).div_euclid(1 << 32) as u32
    }),
    ("v_bfm_b32", |a, b| {
        (((1u64 << (a % 32)) - 1) << (b % 32)) as u32
    }),
    ("v_bcnt_u32_b32", |a, b| {
        ((0..32).map(|bit| u64::from(a >> bit & 1)).sum::<u64>() + u64::from(b)) as u32
    }),
];

const TERNARY: &[(&str, Ternary)] = &[
    ("v_add3_u32", |a, b, c| {
        (u64::from(a) + u64::from(b) + u64::from(c)) as u32
    }),
    ("v_lshl_add_u32", |a, b, c| {
        ((u64::from(a) << (b % 32)) + u64::from(c)) as u32
    }),
    ("v_add_lshl_u32", |a, b, c| {
        ((u64::from(a) + u64::from(b)) << (c % 32)) as u32
    }),
    ("v_xad_u32", |a, b, c| {
        (u64::from(a ^ b) + u64::from(c)) as u32
    }),
    ("v_lshl_or_b32", |a, b, c| {
        (u64::from(a) << (b % 32)) as u32 | c
    }),
    ("v_and_or_b32", |a, b, c| (a & b) | c),
    ("v_or3_b32", |a, b, c| a | b | c),
    ("v_bfi_b32", |a, b, c| c ^ (a & (b ^ c))),
    ("v_bfe_u32", |a, b, c| {
        let (offset, width) = (b % 32, c % 32);
        (0..width).fold(0, |r, bit| r | (bit_of(a.into(), offset + bit)) << bit)
    }),
    ("v_bfe_i32", |a, b, c| {
        let (offset, width) = (b % 32, c % 32);
        let bit = |place: u32| bit_of(i64::from(a as i32) as u64, offset + place);
        match width {
            0 => 0,
            _ => (0..32).fold(0, |r, place| r | bit(place.min(width - 1)) << place),
        }
    }),
    ("v_alignbit_b32", |a, b, c| {
        ((u128::from(a) << 32 | u128::from(b)) >> (c % 32)) as u32
    }),
    ("v_alignbyte_b32", |a, b, c| {
        ((u128::from(a) << 32 | u128::from(b)) >> (8 * (c % 4))) as u32
    }),
    ("v_perm_b32", |a, b, c| {
        let byte = |selector: u32| match selector {
            0..=3 => b >> (8 * selector) & 255,
            4..=7 => a >> (8 * (selector - 4)) & 255,
            8 => 255 * (b >> 15 & 1),
            9 => 255 * (b >> 31),
            10 => 255 * (a >> 15 & 1),
            11 => 255 * (a >> 31),
            12 => 0,
            _ => 255,
        };
        (0..4).fold(0, |r, place| {
            r | byte(c >> (8 * place) & 255) << (8 * place)
        })
    }),
    ("v_min3_u32", |a, b, c| sorted([a, b, c])[0]),
    ("v_med3_u32", |a, b, c| sorted([a, b, c])[1]),
    ("v_max3_u32", |a, b, c| sorted([a, b, c])[2]),
    ("v_min3_i32", |a, b, c| {
        sorted([a, b, c].map(|x| x as i32))[0] as u32
    }),
    ("v_med3_i32", |a, b, c| {
        sorted([a, b, c].map(|x| x as i32))[1] as u32
    }),
    ("v_max3_i32", |a, b, c| {
        sorted([a, b, c].map(|x| x as i32))[2] as u32
    }),
    ("v_mad_u32_u24", |a, b, c| {
        (u64::from(a % (1 << 24)) * u64::from(b % (1 << 24)) + u64::from(c)) as u32
    }),
    ("v_mad_i32_i24", |a, b, c| {
        (signed24(a) * signed24(b) + i64::from(c)) as u32
    }),
    ("v_mad_u32_u16", |a, b, c| {
        (u64::from(a % 0x1_0000) * u64::from(b % 0x1_0000) + u64::from(c)) as u32
    }),
    ("v_mad_i32_i16", |a, b, c| {
        (i64::from(a as i16) * i64::from(b as i16) + i64::from(c)) as u32
    }),
    ("v_sad_u32", |a, b, c| {
        ((i64::from(a) - i64::from(b)).unsigned_abs() + u64::from(c)) as u32
    }),
];

/// Arithmetic with a carry: maps the operands and the carry to the result and the new carry.
type Carry = fn(u32, u32, bool) -> (i64, bool);

const CARRIES: &[(&str, bool, Carry)] = &[
    ("v_add_co_u32", false, |a, b, _| {
        carry(i64::from(a) + i64::from(b))
    }),
    ("v_sub_co_u32", false, |a, b, _| {
        carry(i64::from(a) - i64::from(b))
    }),
    ("v_subrev_co_u32", false, |a, b, _| {
        carry(i64::from(b) - i64::from(a))
    }),
    ("v_addc_co_u32", true, |a, b, c| {
        carry(i64::from(a) + i64::from(b) + i64::from(c))
    }),
    ("v_subb_co_u32", true, |a, b, c| {
        carry(i64::from(a) - i64::from(b) - i64::from(c))
    }),
    ("v_subbrev_co_u32", true, |a, b, c| {
        carry(i64::from(b) - i64::from(a) - i64::from(c))
    }),
];

fn carry(sum: i64) -> (i64, bool) {
    (sum, !(0..1 << 32).contains(&sum))
}

fn signed24(value: u32) -> i64 {
    let low = i64::from(value % (1 << 24));
    if low >= 1 << 23 { low - (1 << 24) } else { low }
}

fn bit_of(value: u64, place: u32) -> u32 {
    (value >> place & 1) as u32
}

fn sorted<T: Ord>(mut values: [T; 3]) -> [T; 3] {
    values.sort();
    values
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, run) in UNARY.iter().copied() {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2"),
            integers(),
            move |all, lane| Want::Word(run(all[lane][0] as u32)),
        ));
    }
    for (name, run) in BINARY.iter().copied() {
        cases.push(Case::new(
            name,
            format!("{name} v10, v2, v4"),
            integers(),
            move |all, lane| {
                let [a, b, ..] = all[lane];
                Want::Word(run(a as u32, b as u32))
            },
        ));
    }
    for (name, run) in TERNARY.iter().copied() {
        let body = format!("{name} v10, v2, v4, v6");
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, c, _] = all[lane];
            Want::Word(run(a as u32, b as u32, c as u32))
        }));
    }
    for (name, reads, run) in CARRIES.iter().copied() {
        // The carry in is set if d is odd; v11 holds the carry out.
        let source = if reads { ", vcc" } else { "" };
        let body = format!(
            "v_and_b32 v14, 1, v8
             v_cmp_ne_u32 vcc, 0, v14
             {name} v10, vcc, v2, v4{source}
             v_cndmask_b32 v11, 3, v0, vcc"
        );
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, _, d] = all[lane];
            let (sum, carry) = run(a as u32, b as u32, d & 1 == 1);
            let told = if carry { lane as u64 } else { 3 };
            Want::Long(u64::from(sum as u32) | told << 32)
        }));
    }
    cases.extend(wide());
    cases.extend(operands());
    cases
}

/// 64-bit results, and moves between the register files.
fn wide() -> Vec<Case> {
    /// gfx942 and its successor.
    const GFX942: &[Target] = &[Target::Gfx942, Target::Gfx950];
    let long = |mnemonic: &'static str, operands: &str, run: fn([u64; 4]) -> u64| {
        let body = format!("{mnemonic} {operands}");
        Case::new(mnemonic, body, integers(), move |all, lane| {
            Want::Long(run(all[lane]))
        })
    };
    vec![
        long("v_lshlrev_b64", "v[10:11], v2, v[4:5]", |[a, b, ..]| {
            (u128::from(b) << (a as u32 % 64)) as u64
        }),
        long("v_lshrrev_b64", "v[10:11], v2, v[4:5]", |[a, b, ..]| {
            b / (1 << (a as u32 % 64))
        }),
        long("v_ashrrev_i64", "v[10:11], v2, v[4:5]", |[a, b, ..]| {
            i128::from(b as i64).div_euclid(1 << (a as u32 % 64)) as u64
        }),
        long(
            "v_lshl_add_u64",
            "v[10:11], v[2:3], v4, v[6:7]",
            |[a, b, c, _]| ((u128::from(a) << (b % 8)) + u128::from(c)) as u64,
        )
        .only(GFX942),
        long("v_mov_b64", "v[10:11], v[2:3]", |[a, ..]| a).only(GFX942),
        long(
            "v_mad_u64_u32",
            "v[10:11], vcc, v2, v4, v[6:7]",
            |[a, b, c, _]| (u128::from(a as u32) * u128::from(b as u32) + u128::from(c)) as u64,
        ),
        long(
            "v_mad_i64_i32",
            "v[10:11], vcc, v2, v4, v[6:7]",
            |[a, b, c, _]| {
                (i128::from(a as i32) * i128::from(b as i32) + i128::from(c as i64)) as u64
            },
        ),
        Case::new(
            "v_mad_u64_u32",
            "v_mad_u64_u32 v[14:15], s[20:21], v2, v4, v[6:7]
             v_cndmask_b32 v10, 0, 1, s[20:21]",
            integers(),
            |all, lane| {
                let [a, b, c, _] = all[lane];
                let sum = u128::from(a as u32) * u128::from(b as u32) + u128::from(c);
                Want::Word((sum >> 64) as u32)
            },
        ),
        // Inactive lanes keep both registers.
        Case::new(
            "v_swap_b32",
            "v_mov_b32 v10, v2
             v_mov_b32 v11, v4
             s_mov_b32 exec_lo, 0x55555555
             s_mov_b32 exec_hi, exec_lo
             v_swap_b32 v10, v11",
            integers(),
            |all, lane| {
                let [a, b, ..] = all[lane].map(|bits| bits & 0xffff_ffff);
                Want::Long(if lane % 2 == 0 {
                    b | a << 32
                } else {
                    a | b << 32
                })
            },
        ),
        Case::new(
            "v_accvgpr_write_b32",
            "v_accvgpr_write_b32 a5, v2
             v_mov_b32 v10, v5",
            integers(),
            // v5 is the high half of b, and a5 is another register.
            |all, lane| Want::Word((all[lane][1] >> 32) as u32),
        ),
        Case::new(
            "v_accvgpr_read_b32",
            "v_accvgpr_write_b32 a9, v2
             v_accvgpr_read_b32 v10, a9",
            integers(),
            |all, lane| Want::Word(all[lane][0] as u32),
        ),
        Case::new(
            "v_accvgpr_mov_b32",
            "v_accvgpr_write_b32 a9, v2
             v_accvgpr_mov_b32 a10, a9
             v_accvgpr_read_b32 v10, a10",
            integers(),
            |all, lane| Want::Word(all[lane][0] as u32),
        ),
        Case::new(
            "v_cndmask_b32",
            "v_cmp_lt_u32 s[20:21], v2, v4
             v_cndmask_b32 v10, v6, v8, s[20:21]",
            integers(),
            |all, lane| {
                let [a, b, c, d] = all[lane].map(|x| x as u32);
                Want::Word(if a < b { d } else { c })
            },
        ),
    ]
}

/// Kinds of operands: constants, literals, scalars, and inactive lanes.
fn operands() -> Vec<Case> {
    vec![
        Case::new(
            "v_add_u32",
            "v_add_u32 v10, -16, v2",
            integers(),
            |all, lane| Want::Word((all[lane][0] as u32).wrapping_sub(16)),
        ),
        Case::new(
            "v_add_u32",
            "v_add_u32 v10, 0x12345, v2",
            integers(),
            |all, lane| Want::Word((all[lane][0] as u32).wrapping_add(0x12345)),
        ),
        Case::new(
            "v_lshlrev_b64",
            "v_lshlrev_b64 v[10:11], 4, -2",
            integers(),
            |_, _| Want::Long(-32i64 as u64),
        ),
        Case::new(
            "v_xor_b32",
            "s_mov_b32 s20, 0x77
             v_xor_b32 v10, s20, v2",
            integers(),
            |all, lane| Want::Word(all[lane][0] as u32 ^ 0x77),
        ),
        Case::new(
            "v_mov_b32",
            "s_mov_b64 exec, 0xf0
             v_mov_b32 v10, v2",
            integers(),
            |all, lane| {
                let active = (4..8).contains(&lane);
                Want::Word(if active {
                    all[lane][0] as u32
                } else {
                    0x5a5a_5a5a
                })
            },
        ),
    ]
}
