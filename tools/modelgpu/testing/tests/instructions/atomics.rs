//! Atomics on global memory, through flat addresses, and on LDS.

use modelgpu_amdgcn::Target;

use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{Case, Inputs, Want};
use crate::inputs::{self, doubles, integers, singles};
use crate::memory::{KEPT, SETUP, registers};

const RDNA: &[Target] = &[Target::Gfx1030, Target::Gfx1100, Target::Gfx1201];
const NOT_GFX90A: &[Target] = &[
    Target::Gfx942,
    Target::Gfx950,
    Target::Gfx1100,
    Target::Gfx1201,
];
/// Targets with packed sums in all memory.
const WITH_PACKED_SUMS: &[Target] = &[Target::Gfx942, Target::Gfx950, Target::Gfx1201];

/// Maps the old value and the operand, numbers of `bits` bits, to the new value.
pub(crate) type Function = fn(old: u64, operand: u64, bits: u32) -> u64;

/// The name of a vector memory atomic without `_x2`, and of an LDS atomic without its type; the
/// types of the LDS atomic; the function.
type Atomic = (Option<&'static str>, &'static str, &'static str, Function);

fn sign(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

const ATOMICS: &[Atomic] = &[
    (Some("swap"), "wrxchg", "b", |_, x, _| x),
    (Some("add"), "add", "u", |old, x, _| {
        (u128::from(old) + u128::from(x)) as u64
    }),
    (Some("sub"), "sub", "u", |old, x, _| {
        (i128::from(old) - i128::from(x)) as u64
    }),
    (None, "rsub", "u", |old, x, _| {
        (i128::from(x) - i128::from(old)) as u64
    }),
    (Some("smin"), "min", "i", |old, x, bits| {
        sign(old, bits).min(sign(x, bits)) as u64
    }),
    (Some("smax"), "max", "i", |old, x, bits| {
        sign(old, bits).max(sign(x, bits)) as u64
    }),
    (Some("umin"), "min", "u", |old, x, _| old.min(x)),
    (Some("umax"), "max", "u", |old, x, _| old.max(x)),
    (Some("and"), "and", "b", |old, x, _| old & x),
    (Some("or"), "or", "b", |old, x, _| old | x),
    (Some("xor"), "xor", "b", |old, x, _| old ^ x),
    (
        Some("inc"),
        "inc",
        "u",
        |old, x, _| if old < x { old + 1 } else { 0 },
    ),
    (Some("dec"), "dec", "u", |old, x, _| match old {
        0 => x,
        old if old > x => x,
        old => old - 1,
    }),
];

/// The integer atomics that scalar memory has. A comparison finds the compared value.
pub(crate) fn scalar_functions() -> Vec<(&'static str, Function)> {
    let swap: (&'static str, Function) = ("cmpswap", |_, x, _| x);
    let named = ATOMICS
        .iter()
        .filter_map(|(name, _, _, function)| Some(((*name)?, *function)));
    named.chain([swap]).collect()
}

fn as_f32(function: fn(f32, f32) -> f32, a: u64, b: u64) -> u64 {
    function(f32::from_bits(a as u32), f32::from_bits(b as u32))
        .to_bits()
        .into()
}

fn as_f64(function: fn(f64, f64) -> f64, a: u64, b: u64) -> u64 {
    function(f64::from_bits(a), f64::from_bits(b)).to_bits()
}

/// Floating-point atomics: name, bytes, targets, function.
const FLOAT_ATOMICS: &[(&str, usize, &[Target], Function)] = &[
    ("global_atomic_add_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("buffer_atomic_add_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("buffer_atomic_add_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("buffer_atomic_min_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("buffer_atomic_max_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("global_atomic_min_f32", 4, RDNA, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("global_atomic_max_f32", 4, RDNA, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("flat_atomic_min_f32", 4, RDNA, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("flat_atomic_max_f32", 4, RDNA, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("buffer_atomic_min_f32", 4, RDNA, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("buffer_atomic_max_f32", 4, RDNA, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("flat_atomic_add_f32", 4, NOT_GFX90A, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("global_atomic_add_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("flat_atomic_add_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("global_atomic_min_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("flat_atomic_min_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("global_atomic_max_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("flat_atomic_max_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("ds_add_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("ds_add_rtn_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("ds_add_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("ds_add_rtn_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("ds_min_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("ds_min_rtn_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("ds_min_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("ds_min_rtn_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("ds_max_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("ds_max_rtn_f32", 4, Target::WAVE64, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("ds_max_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("ds_max_rtn_f64", 8, Target::WAVE64, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
];

/// Replaces NaNs and zeros: the host may choose either sign for the minimum of zeros.
fn plain(inputs: Inputs, double: bool) -> Inputs {
    inputs.map(|lane| {
        lane.map(|bits| {
            if double {
                let value = f64::from_bits(bits);
                if value.is_nan() || value == 0.0 {
                    1.5f64.to_bits()
                } else {
                    bits
                }
            } else {
                let value = f32::from_bits(bits as u32);
                let bits = if value.is_nan() || value == 0.0 {
                    1.5f32
                } else {
                    value
                };
                bits.to_bits().into()
            }
        })
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (global, lds, kind, function) in ATOMICS.iter().copied() {
        for (bytes, suffix) in [(4, ""), (8, "_x2")] {
            let bits = 8 * bytes as u32;
            for segment in ["global", "flat", "buffer"]
                .into_iter()
                .filter(|_| global.is_some())
            {
                let name = format!("{segment}_atomic_{}{suffix}", global.unwrap_or_default());
                for returns in [false, true] {
                    cases.push(atomic(name.clone(), bytes, returns, integers(), function));
                }
                if segment == "global" {
                    cases.push(shared(name, bytes, function));
                }
            }
            let plain = format!("ds_{lds}_{kind}{bits}");
            if lds != "wrxchg" {
                cases.push(atomic(plain, bytes, false, integers(), function));
            }
            let returning = format!("ds_{lds}_rtn_{kind}{bits}");
            cases.push(atomic(returning, bytes, true, integers(), function));
        }
    }
    for (name, bytes, targets, function) in FLOAT_ATOMICS.iter().copied() {
        let inputs = plain(if bytes == 8 { doubles() } else { singles() }, bytes == 8);
        let both: &[bool] = if name.starts_with("ds_") {
            if name.contains("_rtn_") {
                &[true]
            } else {
                &[false]
            }
        } else {
            &[false, true]
        };
        for returns in both {
            let case = atomic(name.to_owned(), bytes, *returns, inputs, function);
            cases.push(case.only(targets));
        }
    }
    cases.extend(compare_swaps());
    cases.extend(packed_sums());
    cases
}

/// The bfloat16 nearest to a value, ties to even, by search among all of them.
pub(crate) fn f64_to_brain(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let real = |bits: u16| match bits {
        0x7f80 => 2f64.powi(128),
        _ => f64::from(f32::from_bits(u32::from(bits) << 16)),
    };
    let (mut below, mut above) = (0, 0x7f80);
    while above - below > 1 {
        let middle = (below + above) / 2;
        if real(middle) <= value.abs() {
            below = middle;
        } else {
            above = middle;
        }
    }
    let (down, up) = (value.abs() - real(below), real(above) - value.abs());
    sign | if down < up || down == up && below % 2 == 0 {
        below
    } else {
        above
    }
}

/// Two sums at once, of halves or of bfloat16.
fn packed_sums() -> Vec<Case> {
    fn each_half(old: u64, x: u64, sum: fn(u16, u16) -> u16) -> u64 {
        [0, 16].into_iter().fold(0, |all, shift| {
            all | u64::from(sum((old >> shift) as u16, (x >> shift) as u16)) << shift
        })
    }
    let halves: Function =
        |old, x, _| each_half(old, x, |a, b| f64_to_half(half_to_f64(a) + half_to_f64(b)));
    let brains: Function = |old, x, _| {
        each_half(old, x, |a, b| {
            let [a, b] = [a, b].map(|bits| f64::from(f32::from_bits(u32::from(bits) << 16)));
            f64_to_brain(a + b)
        })
    };
    let mut cases = Vec::new();
    for (kind, function, special) in [("f16", halves, 0x7c00), ("bf16", brains, 0x7f80)] {
        // Finite numbers only: the mask clears the largest exponent.
        let inputs = inputs::halves().map(|lane| {
            lane.map(|bits| {
                [0, 16, 32, 48].into_iter().fold(bits, |bits, shift| {
                    let found = bits >> shift & special == special;
                    bits ^ if found {
                        (special & 0x4400) << shift
                    } else {
                        0
                    }
                })
            })
        });
        for (name, returns) in [
            ("buffer_atomic_pk_add_", false),
            ("buffer_atomic_pk_add_", true),
            ("global_atomic_pk_add_", false),
            ("global_atomic_pk_add_", true),
            ("flat_atomic_pk_add_", false),
            ("flat_atomic_pk_add_", true),
            ("ds_pk_add_", false),
            ("ds_pk_add_rtn_", true),
        ] {
            let on_both = name.starts_with("buffer") || name.starts_with("global") && kind == "f16";
            let targets = if on_both {
                Target::WAVE64
            } else {
                WITH_PACKED_SUMS
            };
            let case = atomic(format!("{name}{kind}"), 4, returns, inputs, function);
            cases.push(case.only(targets));
        }
    }
    cases
}

/// Stores c and applies the atomic with a. The old value, if it returns one, goes to v[10:11], the
/// new one to v[12:13].
pub(crate) fn atomic(
    mnemonic: String,
    bytes: usize,
    returns: bool,
    inputs: Inputs,
    function: Function,
) -> Case {
    let body = atomic_body(&mnemonic, bytes, returns, &registers(2, bytes), "v[6:7]");
    Case::new(mnemonic.leak(), body, inputs, move |all, lane| {
        let [a, _, c, _] = all[lane];
        told(bytes, returns, c, |old| {
            let bits = 8 * bytes as u32;
            function(old, a & mask(bytes), bits)
        })
    })
}

/// Applies the atomic with a of most lanes to one address, which holds c of lane 0. The old values go to v[10:11],
/// the last new one to v[12:13].
fn shared(mnemonic: String, bytes: usize, function: Function) -> Case {
    const ACTIVE: u64 = 0xfedc_ba98_7654_3211;
    let (low, high) = (ACTIVE as u32, ACTIVE >> 32);
    let (result, data) = (registers(10, bytes), registers(2, bytes));
    let body = format!(
        "{SETUP}
         v_mov_b32 v50, 0
         v_readfirstlane_b32 s16, v6
         v_readfirstlane_b32 s17, v7
         v_mov_b32 v52, s16
         v_mov_b32 v53, s17
         global_store_dwordx2 v50, v[52:53], s[12:13] offset:16
         s_mov_b32 exec_lo, {low:#x}
         s_mov_b32 exec_hi, {high:#x}
         {mnemonic} {result}, v50, {data}, s[12:13] offset:16 RETURN_OLD
         s_mov_b64 exec, -1
         global_load_dwordx2 v[12:13], v50, s[12:13] offset:16"
    );
    Case::new(mnemonic.leak(), body, integers(), move |all, lane| {
        let mut value = all[0][2] & mask(bytes);
        let mut old = None;
        for (number, [a, ..]) in all.iter().enumerate() {
            if ACTIVE >> number & 1 == 1 {
                old = old.or((number == lane).then_some(value));
                value = function(value, a & mask(bytes), 8 * bytes as u32) & mask(bytes);
            }
        }
        let kept = u64::from(u32::from_le_bytes(KEPT)) * 0x1_0000_0001;
        let old = old.map_or(kept, |old| old | kept & !mask(bytes));
        let last = value | all[0][2] & !mask(bytes);
        Want::All([
            old as u32,
            (old >> 32) as u32,
            last as u32,
            (last >> 32) as u32,
        ])
    })
}

fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

/// The registers after an atomic on memory that held `before`.
fn told(bytes: usize, returns: bool, before: u64, new: impl Fn(u64) -> u64) -> Want {
    let old = before & mask(bytes);
    let after = new(old) & mask(bytes) | before & !mask(bytes);
    let kept = u64::from(u32::from_le_bytes(KEPT)) * 0x1_0000_0001;
    let result = if returns {
        old | kept & !mask(bytes)
    } else {
        kept
    };
    Want::All([
        result as u32,
        (result >> 32) as u32,
        after as u32,
        (after >> 32) as u32,
    ])
}

fn atomic_body(mnemonic: &str, bytes: usize, returns: bool, data: &str, before: &str) -> String {
    let result = if returns {
        format!("{}, ", registers(10, bytes))
    } else {
        String::new()
    };
    let flag = if returns { "RETURN_OLD" } else { "" };
    let (init, operation, read) = match mnemonic.split('_').next() {
        Some("ds") => (
            format!("ds_write_b64 v14, {before} offset:16"),
            format!("{mnemonic} {result}v14, {data} offset:16"),
            "ds_read_b64 v[12:13], v14 offset:16",
        ),
        Some("flat") => (
            format!("flat_store_dwordx2 v[60:61], {before} offset:16"),
            format!("{mnemonic} {result}v[60:61], {data} offset:16 {flag}"),
            "flat_load_dwordx2 v[12:13], v[60:61] offset:16",
        ),
        // A buffer's result lies in its data.
        Some("buffer") => {
            let old = if returns {
                let count = bytes / 4;
                let moves = (0..count).map(|n| format!("v_mov_b32 v{}, v{}", 10 + n, 20 + n));
                moves.collect::<Vec<_>>().join("\n")
            } else {
                String::new()
            };
            let first: usize = data
                .trim_start_matches("v")
                .trim_start_matches('[')
                .split(':')
                .next()
                .and_then(|number| number.parse().ok())
                .expect("a register");
            let count = data.split_once(':').map_or(1, |(_, last)| {
                last.trim_end_matches(']')
                    .parse::<usize>()
                    .expect("a register")
                    - first
                    + 1
            });
            let copies = (0..count).map(|n| format!("v_mov_b32 v{}, v{}", 20 + n, first + n));
            let copies = copies.collect::<Vec<_>>().join("\n");
            let place = registers(20, 4 * count);
            return format!(
                "{SETUP}
                 {copies}
                 buffer_store_dwordx2 {before}, v14, s[28:31], 0 offen offset:16
                 {mnemonic} {place}, v14, s[28:31], 0 offen offset:16 {flag}
                 {old}
                 buffer_load_dwordx2 v[12:13], v14, s[28:31], 0 offen offset:16"
            );
        }
        _ => (
            format!("global_store_dwordx2 v14, {before}, s[12:13] offset:16"),
            format!("{mnemonic} {result}v14, {data}, s[12:13] offset:16 {flag}"),
            "global_load_dwordx2 v[12:13], v14, s[12:13] offset:16",
        ),
    };
    format!("{SETUP}\n{init}\n{operation}\n{read}")
}

/// Even lanes find the compared value in memory. Vector memory takes the new and the compared value
/// from one tuple; LDS takes the compared value first.
fn compare_swaps() -> Vec<Case> {
    let mut cases = Vec::new();
    for (bytes, suffix) in [(4, ""), (8, "_x2")] {
        // The compared value is a's high half after its low one, or b after a.
        let compared = move |[a, b, ..]: [u64; 4]| if bytes == 4 { a >> 32 } else { b };
        let source = if bytes == 4 {
            ["v3", "v5"]
        } else {
            ["v4", "v5"]
        };
        let prepare = format!(
            "v_and_b32 v50, 1, v0
             v_cmp_eq_u32 vcc, 1, v50
             v_cndmask_b32 v52, {}, v6, vcc
             v_cndmask_b32 v53, {}, v7, vcc",
            source[0], source[1]
        );
        let before = move |all: &Inputs, lane: usize| {
            let [_, b, c, _] = all[lane];
            let compared = compared(all[lane]);
            match (lane % 2, bytes) {
                (1, _) => c,
                (_, 4) => compared & 0xffff_ffff | b & !0xffff_ffff,
                _ => compared,
            }
        };
        let want = move |all: &Inputs, lane: usize, returns: bool| {
            let [a, ..] = all[lane];
            let compared = compared(all[lane]) & mask(bytes);
            told(bytes, returns, before(all, lane), |old| {
                if old == compared { a } else { old }
            })
        };
        for segment in ["global", "flat", "buffer"] {
            for returns in [false, true] {
                let name: &'static str = format!("{segment}_atomic_cmpswap{suffix}").leak();
                let data = registers(2, 2 * bytes);
                let body = atomic_body(name, bytes, returns, &data, "v[52:53]");
                let body = format!("{prepare}\n{body}");
                cases.push(Case::new(name, body, integers(), move |all, lane| {
                    want(all, lane, returns)
                }));
            }
        }
        for returns in [false, true] {
            let rtn = if returns { "_rtn" } else { "" };
            let name: &'static str = format!("ds_cmpst{rtn}_b{}", 8 * bytes).leak();
            let compared = if bytes == 4 { "v3" } else { "v[4:5]" };
            let data = format!("{compared}, {}", registers(2, bytes));
            let body = atomic_body(name, bytes, returns, &data, "v[52:53]");
            let body = format!("{prepare}\n{body}");
            cases.push(Case::new(name, body, integers(), move |all, lane| {
                want(all, lane, returns)
            }));
        }
    }
    cases
}
