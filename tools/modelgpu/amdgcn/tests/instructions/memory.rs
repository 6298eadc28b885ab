//! Loads, stores and atomics of every segment. Each lane has 64 bytes of its own, which are
//! filled with the same pattern in global memory, LDS and scratch.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, Inputs, Want, memory_byte};
use crate::inputs::{doubles, integers, singles};

const GFX90A: &[Target] = &[Target::Gfx90a];
const GFX942: &[Target] = &[Target::Gfx942];
const KEPT: [u8; 4] = [0x5a; 4];

/// How a segment's instructions are written.
struct Segment {
    prefix: &'static str,
    targets: &'static [Target],
    /// Address and trailing operands of a load with an offset.
    load: fn(u32) -> String,
    /// The same around a store's data.
    store: fn(&str, u32) -> String,
}

const SEGMENTS: &[Segment] = &[
    Segment {
        prefix: "global",
        targets: &Target::ALL,
        load: |offset| format!("v14, s[12:13] offset:{offset}"),
        store: |data, offset| format!("v14, {data}, s[12:13] offset:{offset}"),
    },
    Segment {
        prefix: "global",
        targets: &Target::ALL,
        load: |offset| format!("v[58:59], off offset:{}", offset as i32 - 64),
        store: |data, offset| format!("v[58:59], {data}, off offset:{}", offset as i32 - 64),
    },
    Segment {
        prefix: "flat",
        targets: &Target::ALL,
        load: |offset| format!("v[60:61] offset:{offset}"),
        store: |data, offset| format!("v[60:61], {data} offset:{offset}"),
    },
    // LDS and scratch through the flat address space.
    Segment {
        prefix: "flat",
        targets: &Target::ALL,
        load: |offset| format!("v[62:63] offset:{offset}"),
        store: |data, offset| format!("v[62:63], {data} offset:{offset}"),
    },
    Segment {
        prefix: "flat",
        targets: &Target::ALL,
        load: |offset| format!("v[56:57] offset:{offset}"),
        store: |data, offset| format!("v[56:57], {data} offset:{offset}"),
    },
    Segment {
        prefix: "scratch",
        targets: &Target::ALL,
        load: |offset| format!("v15, off offset:{offset}"),
        store: |data, offset| format!("v15, {data}, off offset:{offset}"),
    },
    Segment {
        prefix: "scratch",
        targets: &Target::ALL,
        load: |offset| format!("off, s24 offset:{offset}"),
        store: |data, offset| format!("off, {data}, s24 offset:{offset}"),
    },
    Segment {
        prefix: "buffer",
        targets: GFX90A,
        load: |offset| format!("v15, s[0:3], 0 offen offset:{offset}"),
        store: |data, offset| format!("{data}, v15, s[0:3], 0 offen offset:{offset}"),
    },
    Segment {
        prefix: "buffer",
        targets: GFX90A,
        // The scalar offset counts the whole wave's bytes.
        load: |offset| format!("off, s[0:3], s25 offset:{offset}"),
        store: |data, offset| format!("{data}, off, s[0:3], s25 offset:{offset}"),
    },
    Segment {
        prefix: "ds",
        targets: &Target::ALL,
        load: |offset| format!("v14 offset:{offset}"),
        store: |data, offset| format!("v14, {data} offset:{offset}"),
    },
];

/// Sets the addresses up, and copies the pattern into LDS and scratch.
const SETUP: &str = "
    v_lshlrev_b32 v14, 6, v0
    v_mov_b32 v15, 64
    s_mov_b32 s24, 64
    s_movk_i32 s25, 4096
    v_mov_b32 v61, s13
    v_add_co_u32 v60, vcc, s12, v14
    v_addc_co_u32 v61, vcc, 0, v61, vcc
    v_add_co_u32 v58, vcc, 64, v60
    v_addc_co_u32 v59, vcc, 0, v61, vcc
    s_mov_b64 s[26:27], src_shared_base
    v_mov_b32 v62, v14
    v_mov_b32 v63, s27
    s_mov_b64 s[26:27], src_private_base
    v_mov_b32 v56, 64
    v_mov_b32 v57, s27
    global_load_dwordx4 v[16:19], v14, s[12:13]
    global_load_dwordx4 v[20:23], v14, s[12:13] offset:16
    global_load_dwordx4 v[24:27], v14, s[12:13] offset:32
    global_load_dwordx4 v[28:31], v14, s[12:13] offset:48
    s_waitcnt vmcnt(0)
    ds_write_b128 v14, v[16:19]
    ds_write_b128 v14, v[20:23] offset:16
    ds_write_b128 v14, v[24:27] offset:32
    ds_write_b128 v14, v[28:31] offset:48
    scratch_store_dwordx4 v15, v[16:19], off
    scratch_store_dwordx4 v15, v[20:23], off offset:16
    scratch_store_dwordx4 v15, v[24:27], off offset:32
    scratch_store_dwordx4 v15, v[28:31], off offset:48
    s_waitcnt vmcnt(0) lgkmcnt(0)";

/// What a small load does with its value: extend it, or put it into one half of the register.
#[derive(Clone, Copy)]
enum Small {
    Zero,
    Sign,
    Low,
    High,
}

/// Names as vector memory and as LDS instructions, bytes, offset, and what becomes of a small
/// value. Vector memory does not tell the halves' extension apart from what is loaded.
type Load = (&'static str, &'static str, usize, u32, Small, bool);

const LOADS: &[Load] = &[
    ("load_ubyte", "read_u8", 1, 7, Small::Zero, false),
    ("load_sbyte", "read_i8", 1, 9, Small::Sign, true),
    ("load_ushort", "read_u16", 2, 10, Small::Zero, false),
    ("load_sshort", "read_i16", 2, 6, Small::Sign, true),
    ("load_ubyte_d16", "read_u8_d16", 1, 7, Small::Low, false),
    ("load_sbyte_d16", "read_i8_d16", 1, 9, Small::Low, true),
    ("load_short_d16", "read_u16_d16", 2, 10, Small::Low, false),
    (
        "load_ubyte_d16_hi",
        "read_u8_d16_hi",
        1,
        7,
        Small::High,
        false,
    ),
    (
        "load_sbyte_d16_hi",
        "read_i8_d16_hi",
        1,
        9,
        Small::High,
        true,
    ),
    (
        "load_short_d16_hi",
        "read_u16_d16_hi",
        2,
        10,
        Small::High,
        false,
    ),
    ("load_dword", "read_b32", 4, 4, Small::Zero, false),
    ("load_dwordx2", "read_b64", 8, 8, Small::Zero, false),
    ("load_dwordx3", "read_b96", 12, 4, Small::Zero, false),
    ("load_dwordx4", "read_b128", 16, 16, Small::Zero, false),
];

/// Names, bytes, offset, and whether the high half is stored.
const STORES: &[(&str, &str, usize, u32, bool)] = &[
    ("store_byte", "write_b8", 1, 7, false),
    ("store_short", "write_b16", 2, 10, false),
    ("store_byte_d16_hi", "write_b8_d16_hi", 1, 9, true),
    ("store_short_d16_hi", "write_b16_d16_hi", 2, 6, true),
    ("store_dword", "write_b32", 4, 4, false),
    ("store_dwordx2", "write_b64", 8, 8, false),
    ("store_dwordx3", "write_b96", 12, 4, false),
    ("store_dwordx4", "write_b128", 16, 0, false),
];

fn registers(first: u32, bytes: usize) -> String {
    match bytes.div_ceil(4) as u32 {
        1 => format!("v{first}"),
        count => format!("v[{first}:{}]", first + count - 1),
    }
}

fn words(bytes: [u8; 16]) -> Want {
    let word = |place: usize| u32::from_le_bytes(std::array::from_fn(|n| bytes[4 * place + n]));
    Want::All(std::array::from_fn(word))
}

fn pattern(lane: usize, offset: u32) -> u8 {
    memory_byte(64 * lane as u32 + offset)
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for segment in SEGMENTS {
        let name = |global: &str, lds: &str| -> &'static str {
            let rest = if segment.prefix == "ds" { lds } else { global };
            format!("{}_{rest}", segment.prefix).leak()
        };
        for (global, lds, bytes, offset, small, signed) in LOADS.iter().copied() {
            let mnemonic = name(global, lds);
            let result = registers(10, bytes);
            let body = format!("{SETUP}\n{mnemonic} {result}, {}", (segment.load)(offset));
            let case = Case::new(mnemonic, body, integers(), move |_, lane| {
                words(loaded(lane, bytes, offset, small, signed))
            });
            cases.push(case.only(segment.targets));
        }
        for (global, lds, bytes, offset, high) in STORES.iter().copied() {
            let mnemonic = name(global, lds);
            let store = (segment.store)(&registers(2, bytes), offset);
            let body = format!(
                "{SETUP}\n{mnemonic} {store}\ns_waitcnt vmcnt(0) lgkmcnt(0)\n{} v[10:13], {}",
                name("load_dwordx4", "read_b128"),
                (segment.load)(0)
            );
            let case = Case::new(mnemonic, body, integers(), move |all, lane| {
                let mut memory: [u8; 16] = std::array::from_fn(|n| pattern(lane, n as u32));
                let [a, b, ..] = all[lane];
                let data = (u128::from(b) << 64 | u128::from(a)) >> if high { 16 } else { 0 };
                let place = offset as usize;
                memory[place..place + bytes].copy_from_slice(&data.to_le_bytes()[..bytes]);
                words(memory)
            });
            cases.push(case.only(segment.targets));
        }
    }
    cases.extend(pairs());
    cases.extend(atomics());
    cases
}

/// The bytes of v10 to v13 after a load.
fn loaded(lane: usize, bytes: usize, offset: u32, small: Small, signed: bool) -> [u8; 16] {
    let mut result: [u8; 16] = std::array::from_fn(|n| KEPT[n % 4]);
    let memory = |n: usize| pattern(lane, offset + n as u32);
    if bytes >= 4 {
        (0..bytes).for_each(|n| result[n] = memory(n));
        return result;
    }
    let fill = if signed && memory(bytes - 1) >= 0x80 {
        0xff
    } else {
        0
    };
    let extended: [u8; 4] = std::array::from_fn(|n| if n < bytes { memory(n) } else { fill });
    match small {
        Small::Zero | Small::Sign => result[..4].copy_from_slice(&extended),
        Small::Low => result[..2].copy_from_slice(&extended[..2]),
        Small::High => result[2..4].copy_from_slice(&extended[..2]),
    }
    result
}

/// LDS instructions with two addresses.
fn pairs() -> Vec<Case> {
    let mut cases = Vec::new();
    for (suffix, bytes, stride) in [
        ("2_b32", 4, 1),
        ("2_b64", 8, 1),
        ("2st64_b32", 4, 64),
        ("2st64_b64", 8, 64),
    ] {
        // Lanes 0 to 7 have all of 512 bytes between them, so that strides reach beyond.
        let offsets = [0usize, if stride == 1 { 3 } else { 2 }];
        let addresses = format!("offset0:{} offset1:{}", offsets[0], offsets[1]);
        let place = move |lane: usize, which: usize, n: usize| {
            memory_byte((64 * lane + offsets[which] * bytes * stride + n) as u32)
        };
        let read: &'static str = format!("ds_read{suffix}").leak();
        let body = format!(
            "{SETUP}
             s_mov_b64 exec, 0xff
             {read} {}, v14 {addresses}",
            registers(10, 2 * bytes)
        );
        cases.push(Case::new(read, body, integers(), move |_, lane| {
            let mut result: [u8; 16] = std::array::from_fn(|n| KEPT[n % 4]);
            if lane < 8 {
                for (n, byte) in result.iter_mut().enumerate().take(2 * bytes) {
                    *byte = place(lane, n / bytes, n % bytes);
                }
            }
            words(result)
        }));
        let write: &'static str = format!("ds_write{suffix}").leak();
        let body = format!(
            "{SETUP}
             s_mov_b64 exec, 0xff
             {write} v14, {}, {} {addresses}
             {read} {}, v14 {addresses}",
            registers(2, bytes),
            registers(4, bytes),
            registers(10, 2 * bytes)
        );
        cases.push(Case::new(write, body, integers(), move |all, lane| {
            let mut result: [u8; 16] = std::array::from_fn(|n| KEPT[n % 4]);
            if lane < 8 {
                for which in 0..2 {
                    let data = &all[lane][which].to_le_bytes()[..bytes];
                    result[which * bytes..][..bytes].copy_from_slice(data);
                }
            }
            words(result)
        }));
    }
    cases
}

/// From the old value and the operand, as numbers of `bits` bits.
type Function = fn(old: u64, operand: u64, bits: u32) -> u64;

/// Names of vector memory atomics, without `_x2`, and of LDS atomics, without their type; the
/// types that an LDS atomic has.
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
    ("global_atomic_add_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("flat_atomic_add_f32", 4, GFX942, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("global_atomic_add_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("flat_atomic_add_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("global_atomic_min_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("flat_atomic_min_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("global_atomic_max_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("flat_atomic_max_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("ds_add_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("ds_add_rtn_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(|a, b| a + b, old, x)
    }),
    ("ds_add_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("ds_add_rtn_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(|a, b| a + b, old, x)
    }),
    ("ds_min_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("ds_min_rtn_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(f32::min, old, x)
    }),
    ("ds_min_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("ds_min_rtn_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::min, old, x)
    }),
    ("ds_max_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("ds_max_rtn_f32", 4, &Target::ALL, |old, x, _| {
        as_f32(f32::max, old, x)
    }),
    ("ds_max_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
    ("ds_max_rtn_f64", 8, &Target::ALL, |old, x, _| {
        as_f64(f64::max, old, x)
    }),
];

/// Numbers that are neither NaNs nor zeros, whose signs a minimum may choose freely on the host.
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

fn atomics() -> Vec<Case> {
    let mut cases = Vec::new();
    for (global, lds, kind, function) in ATOMICS.iter().copied() {
        for (bytes, suffix) in [(4, ""), (8, "_x2")] {
            let bits = 8 * bytes as u32;
            for segment in ["global", "flat"].into_iter().filter(|_| global.is_some()) {
                let name = format!("{segment}_atomic_{}{suffix}", global.unwrap_or_default());
                for returns in [false, true] {
                    cases.push(atomic(name.clone(), bytes, returns, integers(), function));
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
    cases
}

/// Stores c, applies the atomic with a, and tells the old value, if it returns one, in v[10:11]
/// and the new one in v[12:13].
fn atomic(
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
        _ => (
            format!("global_store_dwordx2 v14, {before}, s[12:13] offset:16"),
            format!("{mnemonic} {result}v14, {data}, s[12:13] offset:16 {flag}"),
            "global_load_dwordx2 v[12:13], v14, s[12:13] offset:16",
        ),
    };
    format!("{SETUP}\n{init}\n{operation}\n{read}")
}

/// Even lanes find what they compare with. Vector memory takes the new value and the compared one
/// from one tuple, LDS the compared one first.
fn compare_swaps() -> Vec<Case> {
    let mut cases = Vec::new();
    for (bytes, suffix) in [(4, ""), (8, "_x2")] {
        // The compared value: a's high half behind its low one, or b behind a.
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
        for segment in ["global", "flat"] {
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
