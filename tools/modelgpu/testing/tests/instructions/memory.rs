//! Loads and stores of every segment. Each lane has 64 bytes of its own, with one pattern in global
//! memory, LDS and scratch.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, GCN, Want, memory_byte};
use crate::inputs::integers;

pub(crate) const KEPT: [u8; 4] = [0x5a; 4];

/// The assembly syntax of a segment's instructions.
struct Segment {
    prefix: &'static str,
    targets: &'static [Target],
    /// Address and trailing operands of a load with an offset.
    load: fn(u32) -> String,
    /// Address, data and trailing operands of a store with an offset.
    store: fn(&str, u32) -> String,
}

const SEGMENTS: &[Segment] = &[
    Segment {
        prefix: "global",
        targets: Target::WAVE64,
        load: |offset| format!("v14, s[12:13] offset:{offset}"),
        store: |data, offset| format!("v14, {data}, s[12:13] offset:{offset}"),
    },
    Segment {
        prefix: "global",
        targets: Target::WAVE64,
        load: |offset| format!("v[58:59], off offset:{}", offset as i32 - 64),
        store: |data, offset| format!("v[58:59], {data}, off offset:{}", offset as i32 - 64),
    },
    Segment {
        prefix: "flat",
        targets: Target::WAVE64,
        load: |offset| format!("v[60:61] offset:{offset}"),
        store: |data, offset| format!("v[60:61], {data} offset:{offset}"),
    },
    // LDS and scratch through the flat address space.
    Segment {
        prefix: "flat",
        targets: Target::WAVE64,
        load: |offset| format!("v[62:63] offset:{offset}"),
        store: |data, offset| format!("v[62:63], {data} offset:{offset}"),
    },
    Segment {
        prefix: "flat",
        targets: Target::WAVE64,
        load: |offset| format!("v[56:57] offset:{offset}"),
        store: |data, offset| format!("v[56:57], {data} offset:{offset}"),
    },
    Segment {
        prefix: "scratch",
        targets: Target::WAVE64,
        load: |offset| format!("v15, off offset:{offset}"),
        store: |data, offset| format!("v15, {data}, off offset:{offset}"),
    },
    Segment {
        prefix: "scratch",
        targets: Target::WAVE64,
        load: |offset| format!("off, s24 offset:{offset}"),
        store: |data, offset| format!("off, {data}, s24 offset:{offset}"),
    },
    Segment {
        prefix: "buffer",
        targets: GCN,
        load: |offset| format!("v15, s[0:3], 0 offen offset:{offset}"),
        store: |data, offset| format!("{data}, v15, s[0:3], 0 offen offset:{offset}"),
    },
    Segment {
        prefix: "buffer",
        targets: GCN,
        // The scalar offset counts bytes of the whole wave.
        load: |offset| format!("off, s[0:3], s25 offset:{offset}"),
        store: |data, offset| format!("{data}, off, s[0:3], s25 offset:{offset}"),
    },
    // A buffer with a resource: an offset for each lane, and an index.
    Segment {
        prefix: "buffer",
        targets: Target::WAVE64,
        load: |offset| format!("v14, s[28:31], 0 offen offset:{offset}"),
        store: |data, offset| format!("{data}, v14, s[28:31], 0 offen offset:{offset}"),
    },
    Segment {
        prefix: "buffer",
        targets: Target::WAVE64,
        load: |offset| format!("v0, s[32:35], 0 idxen offset:{offset}"),
        store: |data, offset| format!("{data}, v0, s[32:35], 0 idxen offset:{offset}"),
    },
    Segment {
        prefix: "ds",
        targets: Target::WAVE64,
        load: |offset| format!("v14 offset:{offset}"),
        store: |data, offset| format!("v14, {data} offset:{offset}"),
    },
    // A negative register, of which an offset makes an address.
    Segment {
        prefix: "buffer",
        targets: GCN,
        load: |offset| format!("v54, s[0:3], 0 offen offset:{}", offset + 1024),
        store: |data, offset| format!("{data}, v54, s[0:3], 0 offen offset:{}", offset + 1024),
    },
    Segment {
        prefix: "scratch",
        targets: &[Target::Gfx1201],
        load: |offset| format!("v54, off offset:{}", offset + 1024),
        store: |data, offset| format!("v54, {data}, off offset:{}", offset + 1024),
    },
];

/// Sets up the addresses and copies the pattern into LDS and scratch.
pub(crate) const SETUP: &str = "
    v_lshlrev_b32 v14, 6, v0
    v_mov_b32 v15, 64
    v_mov_b32 v54, 0xfffffc40
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
    s_mov_b32 s28, s12
    s_mov_b32 s29, s13
    s_movk_i32 s30, 4096
    s_mov_b32 s31, 0x30027000
    s_mov_b32 s32, s12
    s_or_b32 s33, s13, 0x00400000
    s_mov_b32 s34, 64
    s_mov_b32 s35, 0x00027000
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

/// The effect of a small load: it extends its value, or writes one half of the register.
#[derive(Clone, Copy)]
enum Small {
    Zero,
    Sign,
    Low,
    High,
}

/// Names as vector memory and as LDS instructions, bytes, offset, kind of small load, and a flag
/// for a signed value.
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

/// Names, bytes, offset, and a flag for a store of the high half.
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

pub(crate) fn registers(first: u32, bytes: usize) -> String {
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
        // Lanes 0 to 7 share all of 512 bytes, so that strides reach beyond a lane's own.
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
