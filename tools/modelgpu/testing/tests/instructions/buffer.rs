//! Buffers: typed elements, records, ranges; loads to LDS; LDS accesses of other kinds.
//!
//! The expected values are the formats' definitions in AMD's instruction set guides, computed in double
//! precision from the bytes in memory; `memory.rs` has the plain loads and stores of buffers.

use modelgpu_amdgcn::Target;

use crate::float::f;
use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{Case, GCN, GFX9, Inputs, LANES, Want, memory_byte};
use crate::inputs::{integers, singles};
use crate::media::nearest;
use crate::memory::{KEPT, SETUP};

/// gfx942 and its successor.
const GFX942: &[Target] = &[Target::Gfx942, Target::Gfx950];
const CDNA: &[Target] = GFX9;
const RDNA: &[Target] = &[Target::Gfx1030, Target::Gfx1100, Target::Gfx1201];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = typed_loads();
    cases.extend(typed_stores());
    cases.extend(halves());
    cases.extend(records());
    cases.extend(ranges());
    cases.extend(to_lds());
    cases.extend(local());
    cases
}

const KEPT_WORD: u32 = u32::from_le_bytes(KEPT);

/// The widths of a data format's components, from the low bits on.
const DATA: [&[u32]; 15] = [
    &[],
    &[8],
    &[16],
    &[8, 8],
    &[32],
    &[16, 16],
    &[11, 11, 10],
    &[10, 11, 11],
    &[2, 10, 10, 10],
    &[10, 10, 10, 2],
    &[8, 8, 8, 8],
    &[32, 32],
    &[16, 16, 16, 16],
    &[32, 32, 32],
    &[32, 32, 32, 32],
];

const UNSIGNED_NORM: u32 = 0;
const SIGNED_NORM: u32 = 1;
const UNSIGNED_SCALED: u32 = 2;
const SIGNED_SCALED: u32 = 3;
const UNSIGNED: u32 = 4;
const SIGNED: u32 = 5;
const FLOAT: u32 = 7;

/// The formats: numbers of 16 bits at most, and integers and floats of 32. There are no floats of 8
/// or 2 bits.
fn formats() -> Vec<(usize, u32)> {
    let mut formats = Vec::new();
    for (data, widths) in DATA.iter().enumerate().skip(1) {
        for number in [0, 1, 2, 3, 4, 5, 7] {
            let is_float = number == FLOAT;
            let sensible = match widths[0] {
                32 => [UNSIGNED, SIGNED, FLOAT].contains(&number),
                8 | 2 => !is_float,
                10 if widths.len() == 4 => !is_float,
                16 => true,
                _ => true,
            };
            if sensible {
                formats.push((data, number));
            }
        }
    }
    formats
}

/// A component of memory: its bits, and its value.
#[derive(Clone, Copy)]
enum Component {
    Integer(u32),
    Float(f64),
}

fn component(bits: u32, width: u32, number: u32) -> Component {
    let signed = if width < 32 && bits >> (width - 1) == 1 {
        i64::from(bits) - (1 << width)
    } else {
        i64::from(bits as i32)
    };
    let largest = |bits: u32| 2f64.powi(bits as i32) - 1.0;
    Component::Float(match number {
        UNSIGNED => return Component::Integer(bits),
        SIGNED => return Component::Integer(signed as u32),
        UNSIGNED_NORM => f64::from(bits) / largest(width),
        SIGNED_NORM => (signed as f64 / largest(width - 1)).max(-1.0),
        UNSIGNED_SCALED => f64::from(bits),
        SIGNED_SCALED => signed as f64,
        _ if width == 32 => f(bits.into()).into(),
        _ if width == 16 => half_to_f64(bits as u16),
        // Five bits of an exponent, with the bias of a half, and no sign.
        _ => half_to_f64((bits << (15 - width)) as u16),
    })
}

/// The element of a lane: 64 bytes for each lane, from byte 16 on.
fn element(lane: usize, (data, number): (usize, u32)) -> [Option<Component>; 4] {
    let bytes: [u8; 16] = std::array::from_fn(|n| memory_byte(64 * lane as u32 + 16 + n as u32));
    let mut bits = u128::from_le_bytes(bytes);
    std::array::from_fn(|place| {
        let width = *DATA[data].get(place)?;
        let value = (bits % (1u128 << width)) as u32;
        bits >>= width;
        Some(component(value, width, number))
    })
}

/// The register of a loaded component. A NaN is not compared.
fn loaded(component: Option<Component>) -> Option<u32> {
    match component {
        None => Some(0),
        Some(Component::Integer(bits)) => Some(bits),
        Some(Component::Float(value)) if value.is_nan() => None,
        Some(Component::Float(value)) => Some((value as f32).to_bits()),
    }
}

/// RDNA's numbers of the formats: the names that LLVM prints, in order from 1 on.
const NAMES: [&str; 63] = [
    "8_UNORM",
    "8_SNORM",
    "8_USCALED",
    "8_SSCALED",
    "8_UINT",
    "8_SINT",
    "16_UNORM",
    "16_SNORM",
    "16_USCALED",
    "16_SSCALED",
    "16_UINT",
    "16_SINT",
    "16_FLOAT",
    "8_8_UNORM",
    "8_8_SNORM",
    "8_8_USCALED",
    "8_8_SSCALED",
    "8_8_UINT",
    "8_8_SINT",
    "32_UINT",
    "32_SINT",
    "32_FLOAT",
    "16_16_UNORM",
    "16_16_SNORM",
    "16_16_USCALED",
    "16_16_SSCALED",
    "16_16_UINT",
    "16_16_SINT",
    "16_16_FLOAT",
    "10_11_11_FLOAT",
    "11_11_10_FLOAT",
    "10_10_10_2_UNORM",
    "10_10_10_2_SNORM",
    "10_10_10_2_UINT",
    "10_10_10_2_SINT",
    "2_10_10_10_UNORM",
    "2_10_10_10_SNORM",
    "2_10_10_10_USCALED",
    "2_10_10_10_SSCALED",
    "2_10_10_10_UINT",
    "2_10_10_10_SINT",
    "8_8_8_8_UNORM",
    "8_8_8_8_SNORM",
    "8_8_8_8_USCALED",
    "8_8_8_8_SSCALED",
    "8_8_8_8_UINT",
    "8_8_8_8_SINT",
    "32_32_UINT",
    "32_32_SINT",
    "32_32_FLOAT",
    "16_16_16_16_UNORM",
    "16_16_16_16_SNORM",
    "16_16_16_16_USCALED",
    "16_16_16_16_SSCALED",
    "16_16_16_16_UINT",
    "16_16_16_16_SINT",
    "16_16_16_16_FLOAT",
    "32_32_32_UINT",
    "32_32_32_SINT",
    "32_32_32_FLOAT",
    "32_32_32_32_UINT",
    "32_32_32_32_SINT",
    "32_32_32_32_FLOAT",
];

/// The number of a format on RDNA, which lacks some. Its name has the components from the high bits on.
fn joined(data: usize, number: u32) -> Option<u32> {
    let widths = DATA[data].iter().rev().map(u32::to_string);
    let suffix = match number {
        UNSIGNED_NORM => "UNORM",
        SIGNED_NORM => "SNORM",
        UNSIGNED_SCALED => "USCALED",
        SIGNED_SCALED => "SSCALED",
        UNSIGNED => "UINT",
        SIGNED => "SINT",
        _ => "FLOAT",
    };
    let name = format!("{}_{suffix}", widths.collect::<Vec<_>>().join("_"));
    let place = NAMES.iter().position(|other| *other == name)?;
    Some(place as u32 + 1)
}

/// The fields of a format in a resource and in an instruction, for the targets that have them.
fn fields((data, number): (usize, u32)) -> Vec<(&'static [Target], u32, u32)> {
    let split = (
        CDNA,
        number << 12 | (data as u32) << 15,
        data as u32 | number << 4,
    );
    let joined = joined(data, number).map(|code| (RDNA, code << 12, code));
    [split].into_iter().chain(joined).collect()
}

/// Components in order.
const IN_ORDER: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;

/// A resource in s[28:31] for all of the memory, with records of `stride` bytes, and these bits in
/// its last dword. Without records, it counts bytes.
fn resource(stride: u32, records: u32, control: u32) -> String {
    const BYTES: u32 = 3 << 28;
    let control = if stride == 0 {
        control | BYTES
    } else {
        control
    };
    format!(
        "s_mov_b32 s28, s12
         s_or_b32 s29, s13, {:#x}
         s_mov_b32 s30, {records:#x}
         s_mov_b32 s31, {control:#x}",
        stride << 16
    )
}

fn typed_loads() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in formats() {
        let of_targets = fields(format);
        let both = of_targets.into_iter().flat_map(|(targets, control, own)| {
            [
                ("buffer_load_format_xyzw", String::new()),
                ("tbuffer_load_format_xyzw", format!("format:{own}")),
            ]
            .map(|(name, own)| (targets, control, name, own))
        });
        for (targets, control, name, own) in both {
            // A typed instruction has its own format; that of the resource must be a valid one.
            let control = match own.is_empty() {
                true => IN_ORDER | control,
                false => 1 << 15,
            };
            let body = format!(
                "{SETUP}
                 {}
                 {name} v[10:13], v14, s[28:31], 0 {own} offen offset:16",
                resource(0, 4096, control)
            );
            let case = Case::new(name, body, integers(), move |_, lane| {
                let wanted = element(lane, format).map(loaded);
                // The cases of single precision have no NaN in the memory's pattern.
                match wanted {
                    [Some(a), Some(b), Some(c), Some(d)] => Want::All([a, b, c, d]),
                    _ => Want::Any,
                }
            });
            cases.push(case.only(targets));
        }
    }
    for (suffix, count) in [("x", 1), ("xy", 2), ("xyz", 3)] {
        for (prefix, (targets, control, own)) in with_prefixes((10, UNSIGNED_NORM)) {
            let name: &'static str = format!("{prefix}_load_format_{suffix}").leak();
            // The resource takes 1, the third, the first component and 0, in this order.
            let swapped = 1 | 6 << 3 | 4 << 6 | control;
            let registers = match count {
                1 => "v10".to_owned(),
                _ => format!("v[10:{}]", 9 + count),
            };
            let body = format!(
                "{SETUP}
                 {}
                 {name} {registers}, v14, s[28:31], 0 {own} offen offset:16",
                resource(0, 4096, swapped)
            );
            let case = Case::new(name, body, integers(), move |_, lane| {
                let [first, second, third, _] =
                    element(lane, (10, 0)).map(|offset| loaded(offset).unwrap_or(0));
                let all = match prefix {
                    "tbuffer" => [first, second, third],
                    _ => [1f32.to_bits(), third, first],
                };
                Want::All(std::array::from_fn(|n| {
                    if n < count { all[n] } else { KEPT_WORD }
                }))
            });
            cases.push(case.only(targets));
        }
    }
    // Without a format, a resource is no buffer.
    cases.push(
        Case::new(
            "tbuffer_load_format_x",
            format!(
                "{SETUP}\n{}\ntbuffer_load_format_x v10, v14, s[28:31], 0 format:20 offen",
                resource(0, 4096, 0)
            ),
            integers(),
            |_, _| Want::Word(0),
        )
        .only(CDNA),
    );
    cases
}

/// The format of a typed instruction or of a resource, for each kind of instruction and of target.
fn with_prefixes(
    format: (usize, u32),
) -> impl Iterator<Item = (&'static str, (&'static [Target], u32, String))> {
    fields(format)
        .into_iter()
        .flat_map(|(targets, control, own)| {
            [
                ("buffer", (targets, control, String::new())),
                ("tbuffer", (targets, control, format!("format:{own}"))),
            ]
        })
}

/// Numbers without NaN, as single precision.
fn numbers() -> Inputs {
    singles().map(|lane| {
        lane.map(|bits| {
            if f(bits).is_nan() {
                0.7f32.to_bits().into()
            } else {
                bits
            }
        })
    })
}

/// The bits of a stored component.
fn stored(component: u32, width: u32, number: u32) -> u32 {
    let value = f64::from(f(component.into()));
    let largest = |bits: u32| (1i64 << bits) - 1;
    let mask = (1u64 << width) as u32;
    let bits = match number {
        UNSIGNED | SIGNED => component,
        UNSIGNED_NORM => nearest(value * largest(width) as f64, 0, largest(width)) as u32,
        SIGNED_NORM => {
            let limit = largest(width - 1);
            nearest(value * limit as f64, -limit, limit) as u32
        }
        UNSIGNED_SCALED => nearest(value.trunc(), 0, largest(width)) as u32,
        SIGNED_SCALED => {
            let limit = largest(width - 1);
            nearest(value.trunc(), -limit - 1, limit) as u32
        }
        _ if width == 32 => component,
        _ => f64_to_half(value).into(),
    };
    if mask == 0 { bits } else { bits % mask }
}

fn typed_stores() -> Vec<Case> {
    let mut cases = Vec::new();
    let storable = formats()
        .into_iter()
        // The model has no conversion to floats of 10 and 11 bits.
        .filter(|(data, number)| *number != FLOAT || !matches!(data, 6 | 7));
    for (data, number) in storable {
        let widths = DATA[data];
        for (prefix, (targets, control, own)) in with_prefixes((data, number)) {
            let name: &'static str = format!("{prefix}_store_format_xyzw").leak();
            // The components are a, b, c and d.
            let body = format!(
                "{SETUP}
                 {}
                 v_mov_b32 v16, v2
                 v_mov_b32 v17, v4
                 v_mov_b32 v18, v6
                 v_mov_b32 v19, v8
                 {name} v[16:19], v14, s[28:31], 0 {own} offen offset:16
                 s_waitcnt vmcnt(0)
                 global_load_dwordx4 v[10:13], v14, s[12:13] offset:16",
                resource(0, 4096, IN_ORDER | control)
            );
            let case = Case::new(name, body, numbers(), move |all, lane| {
                let mut memory: u128 = 0;
                let mut bit = 0;
                for (component, width) in all[lane].into_iter().zip(widths) {
                    memory |= u128::from(stored(component as u32, *width, number)) << bit;
                    bit += width;
                }
                let size = bit as usize / 8;
                let bytes = memory.to_le_bytes();
                let byte = |n: usize| match n < size {
                    true => bytes[n],
                    false => memory_byte(64 * lane as u32 + 16 + n as u32),
                };
                let word = |n: usize| u32::from_le_bytes(std::array::from_fn(|m| byte(4 * n + m)));
                Want::All(std::array::from_fn(word))
            });
            cases.push(case.only(targets));
        }
    }
    // The first component stands for those that the instruction lacks.
    for (suffix, count) in [("x", 1), ("xy", 2), ("xyz", 3)] {
        for (prefix, (targets, control, own)) in with_prefixes((14, UNSIGNED)) {
            let name: &'static str = format!("{prefix}_store_format_{suffix}").leak();
            let registers = match count {
                1 => "v2".to_owned(),
                _ => format!("v[2:{}]", 1 + count),
            };
            let body = format!(
                "{SETUP}
                 {}
                 {name} {registers}, v14, s[28:31], 0 {own} offen offset:16
                 s_waitcnt vmcnt(0)
                 global_load_dwordx4 v[10:13], v14, s[12:13] offset:16",
                resource(0, 4096, IN_ORDER | control)
            );
            let case = Case::new(name, body, integers(), move |all, lane| {
                let [a, b, ..] = all[lane];
                let words = [a, a >> 32, b].map(|word| word as u32);
                Want::All(std::array::from_fn(|n| {
                    words[if n < count { n } else { 0 }]
                }))
            });
            cases.push(case.only(targets));
        }
    }
    cases
}

/// Components of 16 bits.
fn halves() -> Vec<Case> {
    let mut cases = Vec::new();
    // Single precision is truncated; other numbers are rounded.
    let toward_zero = |value: f64| {
        let nearest = f64_to_half(value);
        let beyond = half_to_f64(nearest).abs() > value.abs();
        nearest - u16::from(beyond)
    };
    for (data, number) in [(10, UNSIGNED_NORM), (12, FLOAT), (14, FLOAT), (12, SIGNED)] {
        for (suffix, count) in [("x", 1), ("xy", 2), ("xyz", 3), ("xyzw", 4)] {
            for (prefix, (targets, control, own)) in with_prefixes((data, number)) {
                let name: &'static str = format!("{prefix}_load_format_d16_{suffix}").leak();
                let registers = if count > 2 { "v[10:11]" } else { "v10" };
                // A number's other half is not specified.
                let body = format!(
                    "{SETUP}
                     v_mov_b32 v10, 0
                     v_mov_b32 v11, 0
                     {}
                     {name} {registers}, v14, s[28:31], 0 {own} offen offset:16",
                    resource(0, 4096, IN_ORDER | control)
                );
                let case = Case::new(name, body, integers(), move |_, lane| {
                    let mut all = 0u64;
                    let components = element(lane, (data, number)).into_iter().take(count);
                    for (place, component) in components.enumerate() {
                        let half = match component {
                            Some(Component::Float(value)) if value.is_nan() => return Want::Any,
                            Some(Component::Float(value)) if data == 14 => toward_zero(value),
                            Some(Component::Float(value)) => f64_to_half(value),
                            Some(Component::Integer(bits)) => bits as u16,
                            None => 0,
                        };
                        all |= u64::from(half) << (16 * place);
                    }
                    Want::Long(all)
                });
                cases.push(case.only(targets));
            }
        }
    }
    for (suffix, count) in [("x", 1), ("xy", 2), ("xyz", 3), ("xyzw", 4)] {
        for (prefix, (targets, control, own)) in with_prefixes((14, FLOAT)) {
            let name: &'static str = format!("{prefix}_store_format_d16_{suffix}").leak();
            // Halves become single precision.
            let data = if count > 2 { "v[2:3]" } else { "v2" };
            let body = format!(
                "{SETUP}
                 {}
                 {name} {data}, v14, s[28:31], 0 {own} offen offset:16
                 s_waitcnt vmcnt(0)
                 global_load_dwordx4 v[10:13], v14, s[12:13] offset:16",
                resource(0, 4096, IN_ORDER | control)
            );
            let case = Case::new(name, body, crate::inputs::halves(), move |all, lane| {
                let value = |place: usize| {
                    let place = if place < count { place } else { 0 };
                    half_to_f64((all[lane][0] >> (16 * place)) as u16)
                };
                let values: [f64; 4] = std::array::from_fn(value);
                if values.iter().any(|value| value.is_nan()) {
                    return Want::Any;
                }
                Want::All(values.map(|value| (value as f32).to_bits()))
            });
            cases.push(case.only(targets));
        }
    }
    for (targets, control, _) in fields((2, UNSIGNED)) {
        let resource = resource(0, 4096, IN_ORDER | control);
        let load = Case::new(
            "buffer_load_format_d16_hi_x",
            format!(
                "{SETUP}\n{resource}\nbuffer_load_format_d16_hi_x v10, v14, s[28:31], 0 offen offset:16"
            ),
            integers(),
            |_, lane| match element(lane, (2, UNSIGNED))[0] {
                Some(Component::Integer(bits)) => Want::Word(bits << 16 | KEPT_WORD & 0xffff),
                _ => Want::Any,
            },
        );
        let store = Case::new(
            "buffer_store_format_d16_hi_x",
            format!(
                "{SETUP}
                 {resource}
                 buffer_store_format_d16_hi_x v2, v14, s[28:31], 0 offen offset:16
                 s_waitcnt vmcnt(0)
                 global_load_ushort v10, v14, s[12:13] offset:16"
            ),
            integers(),
            |all, lane| Want::Word(all[lane][0] as u32 >> 16),
        );
        cases.extend([load.only(targets), store.only(targets)]);
    }
    cases
}

fn dword(offset: u32) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|n| memory_byte(offset + n as u32)))
}

/// Records with an index, of the instruction or of the lane, in order and interleaved.
fn records() -> Vec<Case> {
    let case = |setup: String, operands: &str, place: fn(usize) -> u32| {
        let body = format!(
            "v_xor_b32 v20, 5, v0
             v_mov_b32 v21, 8
             s_mov_b32 s36, 16
             {setup}
             buffer_load_dwordx2 v[10:11], {operands}"
        );
        Case::new("buffer_load_dwordx2", body, integers(), move |_, lane| {
            let first = place(lane);
            Want::Long(u64::from(dword(first)) | u64::from(dword(first + 4)) << 32)
        })
    };
    const PLAIN: u32 = 4 << 15;
    const LANES_TOO: u32 = PLAIN | 1 << 23;
    // Groups of 16 records.
    const GROUPS: u32 = PLAIN | 1 << 21;
    let swizzled = |stride: u32| stride | 1 << 15;
    let mut cases = vec![
        // An index, the instruction's offset, and the scalar one.
        case(
            resource(20, 64, PLAIN),
            "v20, s[28:31], s36 idxen offset:4",
            |lane| 20 * (lane as u32 ^ 5) + 4 + 16,
        ),
        // The index comes first.
        case(
            resource(32, 64, PLAIN),
            "v[20:21], s[28:31], 0 idxen offen",
            |lane| 32 * (lane as u32 ^ 5) + 8,
        ),
        // The lane's number is an index, and has the effect of one without the instruction's.
        case(
            resource(24, 4096, LANES_TOO & !(15 << 15)),
            "off, s[28:31], 0 offset:4",
            |lane| 24 * lane as u32 + 4,
        )
        .only(CDNA),
    ];
    // Interleaved: dword 2 of record n lies n % 16 dwords behind the first record's.
    let body = format!(
        "v_xor_b32 v20, 5, v0
         {}
         buffer_load_dwordx2 v[10:11], v20, s[28:31], 0 idxen offset:8",
        resource(swizzled(16), 64, GROUPS)
    );
    cases.push(
        Case::new("buffer_load_dwordx2", body, integers(), |_, lane| {
            let record = lane as u32 ^ 5;
            let at = |word: u32| dword(record / 16 * 256 + word * 64 + record % 16 * 4);
            Want::Long(u64::from(at(2)) | u64::from(at(3)) << 32)
        })
        .only(CDNA),
    );
    cases
}

/// Beyond a buffer, loads give 0, stores do nothing, and atomics return 0.
fn ranges() -> Vec<Case> {
    let mut cases = Vec::new();
    // A buffer of 130 bytes: each dword counts by itself. With a scalar offset of 4, too.
    for (scalar, counted, targets) in [
        (0, 0, Target::WAVE64),
        (4, 4, CDNA),
        // The scalar offset takes no part in RDNA's check.
        (4, 0, RDNA),
    ] {
        let body = format!(
            "v_lshlrev_b32 v20, 2, v0
             s_mov_b32 s36, {scalar}
             {}
             buffer_load_dwordx2 v[10:11], v20, s[28:31], s36 offen",
            resource(0, 130, 4 << 15)
        );
        let case = Case::new("buffer_load_dwordx2", body, integers(), move |_, lane| {
            let at = |offset: u32| match offset + counted + 4 <= 130 {
                true => dword(offset + scalar),
                false => 0,
            };
            let first = 4 * lane as u32;
            Want::Long(u64::from(at(first)) | u64::from(at(first + 4)) << 32)
        });
        cases.push(case.only(targets));
    }
    // RDNA's checks: by the record's size, by the index alone, and of an empty buffer.
    for (check, records, offset, want) in [
        (
            0,
            20,
            4,
            (|lane| (lane < 20).then_some(8 * lane + 4)) as fn(u32) -> Option<u32>,
        ),
        (0, 20, 8, |_| None),
        (1, 20, 8, |lane| (lane < 20).then_some(8 * lane + 8)),
        (2, 20, 8, |lane| Some(8 * lane + 8)),
        (2, 0, 8, |_| None),
    ] {
        let body = format!(
            "{}
             buffer_load_dword v10, v0, s[28:31], 0 idxen offset:{offset}",
            resource(8, records, 4 << 15 | check << 28)
        );
        let case = Case::new("buffer_load_dword", body, integers(), move |_, lane| {
            Want::Word(want(lane as u32).map_or(0, dword))
        });
        cases.push(case.only(RDNA));
    }
    // 20 records.
    let body = format!(
        "{}
         buffer_load_dword v10, v0, s[28:31], 0 idxen offset:4",
        resource(8, 20, 4 << 15)
    );
    cases.push(Case::new(
        "buffer_load_dword",
        body,
        integers(),
        |_, lane| {
            Want::Word(if lane < 20 {
                dword(8 * lane as u32 + 4)
            } else {
                0
            })
        },
    ));
    let body = format!(
        "{SETUP}
         {}
         buffer_store_dword v2, v14, s[28:31], 0 offen
         s_waitcnt vmcnt(0)
         global_load_dword v10, v14, s[12:13]",
        resource(0, 1024, 4 << 15)
    );
    cases.push(Case::new(
        "buffer_store_dword",
        body,
        integers(),
        |all, lane| {
            Want::Word(if lane < 16 {
                all[lane][0] as u32
            } else {
                dword(64 * lane as u32)
            })
        },
    ));
    let body = format!(
        "{SETUP}
         {}
         v_mov_b32 v10, v2
         buffer_atomic_add v10, v14, s[28:31], 0 offen RETURN_OLD
         s_waitcnt vmcnt(0)
         global_load_dword v11, v14, s[12:13]",
        resource(0, 1024, 4 << 15)
    );
    cases.push(Case::new(
        "buffer_atomic_add",
        body,
        integers(),
        |all, lane| {
            let old = dword(64 * lane as u32);
            let [told, new] = match lane < 16 {
                true => [old, old.wrapping_add(all[lane][0] as u32)],
                false => [0, old],
            };
            Want::Long(u64::from(told) | u64::from(new) << 32)
        },
    ));
    cases
}

/// Loads to LDS: lane n's number goes to dword n after M0 and the instruction's offset.
fn to_lds() -> Vec<Case> {
    let mut cases = Vec::new();
    for (suffix, bytes, signed) in [
        ("ubyte", 1, false),
        ("sbyte", 1, true),
        ("ushort", 2, false),
        ("sshort", 2, true),
        ("dword", 4, false),
    ] {
        let new: &'static str = format!("global_load_lds_{suffix}").leak();
        let old: &'static str = format!("global_load_{suffix}").leak();
        let buffer: &'static str = format!("buffer_load_{suffix}").leak();
        for (name, instruction, targets) in [
            (new, format!("{new} v14, s[12:13] offset:4"), GFX942),
            (new, format!("{new} v[60:61], off offset:4"), GFX942),
            (old, format!("{old} v14, s[12:13] offset:4 lds"), GCN),
            (
                buffer,
                format!("{buffer} v14, s[28:31], 0 offen offset:4 lds"),
                Target::WAVE64,
            ),
        ] {
            // Odd lanes do nothing. Lane n reads dword n of LDS, from 0x104 on.
            let body = format!(
                "{SETUP}
                 {}
                 v_lshlrev_b32 v20, 2, v0
                 v_mov_b32 v21, 77
                 ds_write_b32 v20, v21 offset:0x104
                 s_mov_b32 m0, 0x100
                 s_mov_b64 s[36:37], exec
                 s_mov_b32 exec_lo, 0x55555555
                 s_mov_b32 exec_hi, 0x55555555
                 {instruction}
                 s_waitcnt vmcnt(0)
                 s_mov_b64 exec, s[36:37]
                 ds_read_b32 v10, v20 offset:0x104",
                resource(0, 4096, 4 << 15)
            );
            let case = Case::new(name, body, integers(), move |_, lane| {
                if lane % 2 == 1 {
                    return Want::Word(77);
                }
                let whole = dword(64 * lane as u32 + 4);
                Want::Word(match (bytes, signed) {
                    (1, false) => whole & 0xff,
                    (1, true) => whole as i8 as u32,
                    (2, false) => whole & 0xffff,
                    (2, true) => whole as i16 as u32,
                    _ => whole,
                })
            });
            cases.push(case.only(targets));
        }
    }
    // A typed one.
    let body = format!(
        "{SETUP}
         {}
         s_mov_b32 m0, 0x100
         buffer_load_format_x v14, s[28:31], 0 offen offset:16 lds
         s_waitcnt vmcnt(0)
         v_lshlrev_b32 v20, 2, v0
         ds_read_b32 v10, v20 offset:0x110",
        resource(0, 4096, IN_ORDER | UNSIGNED_NORM << 12 | 1 << 15)
    );
    cases.push(Case::new(
        "buffer_load_format_x",
        body,
        integers(),
        |_, lane| Want::Word(loaded(element(lane, (1, UNSIGNED_NORM))[0]).unwrap_or(0)),
    ));
    cases
}

/// LDS accesses of other kinds. Each lane has 16 bytes at v20, which hold c and d.
fn local() -> Vec<Case> {
    let case =
        |name: &'static str, operation: &str, inputs: Inputs, want: fn([u64; 4]) -> [u64; 2]| {
            let body = format!(
                "v_lshlrev_b32 v20, 4, v0
             ds_write_b128 v20, v[6:9] offset:32
             {operation}
             ds_read_b64 v[12:13], v20 offset:32"
            );
            Case::new(name, body, inputs, move |all, lane| {
                let [told, new] = want(all[lane]);
                Want::All([told, told >> 32, new, new >> 32].map(|word| word as u32))
            })
        };
    const LOW: u64 = 0xffff_ffff;
    const NOT_TOLD: u64 = KEPT_WORD as u64 * 0x1_0000_0001;
    const fn low(old: u64) -> u64 {
        old & LOW | NOT_TOLD & !LOW
    }
    fn in_low(c: u64, new: u64) -> u64 {
        c & !LOW | new & LOW
    }
    let compared32: fn([u64; 4]) -> u64 = |[a, b, c, _]| if f(a) == f(c) { b } else { c };
    let compared64: fn([u64; 4]) -> u64 = |[a, b, c, _]| {
        if f64::from_bits(a) == f64::from_bits(c) {
            b
        } else {
            c
        }
    };
    let mut cases = vec![
        case(
            "ds_mskor_b32",
            "ds_mskor_b32 v20, v2, v4 offset:32",
            integers(),
            |[a, b, c, _]| [NOT_TOLD, in_low(c, c & !a | b)],
        ),
        case(
            "ds_mskor_rtn_b32",
            "ds_mskor_rtn_b32 v10, v20, v2, v4 offset:32",
            integers(),
            |[a, b, c, _]| [low(c), in_low(c, c & !a | b)],
        ),
        case(
            "ds_mskor_b64",
            "ds_mskor_b64 v20, v[2:3], v[4:5] offset:32",
            integers(),
            |[a, b, c, _]| [NOT_TOLD, c & !a | b],
        ),
        case(
            "ds_mskor_rtn_b64",
            "ds_mskor_rtn_b64 v[10:11], v20, v[2:3], v[4:5] offset:32",
            integers(),
            |[a, b, c, _]| [c, c & !a | b],
        ),
        case(
            "ds_wrap_rtn_b32",
            "ds_wrap_rtn_b32 v10, v20, v2, v4 offset:32",
            integers(),
            |[a, b, c, _]| {
                let [limit, more, old] = [a, b, c].map(|word| word & LOW);
                let new = if old >= limit {
                    old - limit
                } else {
                    old + more
                };
                [low(c), in_low(c, new)]
            },
        ),
        case(
            "ds_condxchg32_rtn_b64",
            "ds_condxchg32_rtn_b64 v[10:11], v20, v[2:3] offset:32",
            integers(),
            |[a, _, c, _]| {
                let half = |shift: u32| {
                    let [new, old] = [a, c].map(|long| (long >> shift) as u32);
                    u64::from(if new > 0x7fff_ffff {
                        new - 0x8000_0000
                    } else {
                        old
                    }) << shift
                };
                [c, half(0) | half(32)]
            },
        ),
        case(
            "ds_wrxchg2_rtn_b32",
            "ds_wrxchg2_rtn_b32 v[10:11], v20, v2, v4 offset0:9 offset1:8",
            integers(),
            |[a, b, c, _]| [c.rotate_left(32), b & LOW | a << 32],
        ),
    ];
    // In half of the lanes, the compared number is in memory, or its equal of another sign.
    let found = |inputs: Inputs, zero: u64| {
        let mut inputs = inputs;
        for (lane, [a, _, c, _]) in inputs.iter_mut().enumerate() {
            match lane % 4 {
                0 => *c = *a,
                1 => (*a, *c) = (0, zero),
                _ => {}
            }
        }
        inputs
    };
    for (name, returns) in [("ds_cmpst_f32", false), ("ds_cmpst_rtn_f32", true)] {
        let result = if returns { "v10, " } else { "" };
        let body = format!(
            "v_lshlrev_b32 v20, 4, v0
             ds_write_b128 v20, v[6:9] offset:32
             {name} {result}v20, v2, v4 offset:32
             ds_read_b64 v[12:13], v20 offset:32"
        );
        cases.push(Case::new(
            name,
            body,
            found(singles(), 0x8000_0000),
            move |all, lane| {
                let c = all[lane][2];
                let told = if returns { low(c) } else { NOT_TOLD };
                let new = in_low(c, compared32(all[lane]));
                Want::All([told, told >> 32, new, new >> 32].map(|word| word as u32))
            },
        ));
    }
    for (name, returns) in [("ds_cmpst_f64", false), ("ds_cmpst_rtn_f64", true)] {
        let result = if returns { "v[10:11], " } else { "" };
        let body = format!(
            "v_lshlrev_b32 v20, 4, v0
             ds_write_b128 v20, v[6:9] offset:32
             {name} {result}v20, v[2:3], v[4:5] offset:32
             ds_read_b64 v[12:13], v20 offset:32"
        );
        cases.push(Case::new(
            name,
            body,
            found(crate::inputs::doubles(), 1 << 63),
            move |all, lane| {
                let c = all[lane][2];
                let told = if returns { c } else { NOT_TOLD };
                let new = compared64(all[lane]);
                Want::All([told, told >> 32, new, new >> 32].map(|word| word as u32))
            },
        ));
    }
    // Two numbers at distances in units: both the old ones, and the new ones by a second exchange.
    for (name, bytes, stride) in [
        ("ds_wrxchg2_rtn_b64", 8, 8),
        ("ds_wrxchg2st64_rtn_b32", 4, 256),
        ("ds_wrxchg2st64_rtn_b64", 8, 512),
    ] {
        let (a, b, result) = match bytes {
            4 => ("v2", "v4", "v[10:11]"),
            _ => ("v[2:3]", "v[4:5]", "v[10:13]"),
        };
        let (lane_size, second) = if stride > 8 { (4, 2) } else { (32, 1) };
        let body = format!(
            "v_mul_u32_u24 v20, {lane_size}, v0
             s_mov_b64 exec, 0xffff
             v_mov_b32 v21, v20
             v_lshlrev_b32 v20, 1, v20
             {name} {result}, v20, {a}, {b} offset0:0 offset1:{second}
             {name} {result}, v20, {b}, {a} offset0:0 offset1:{second}"
        );
        cases.push(Case::new(name, body, integers(), move |all, lane| {
            let [a, b, ..] = all[lane];
            match (lane < 16, bytes) {
                (false, _) => Want::All([KEPT_WORD; 4]),
                (_, 4) => Want::All([a as u32, b as u32, KEPT_WORD, KEPT_WORD]),
                _ => Want::All([a, a >> 32, b, b >> 32].map(|word| word as u32)),
            }
        }));
    }
    // By the lane's number, from M0 and the offset on.
    for name in ["ds_write_addtid_b32", "ds_read_addtid_b32"] {
        let body = "v_lshlrev_b32 v20, 2, v0
             s_mov_b32 m0, 0x40
             ds_write_addtid_b32 v2 offset:8
             ds_read_b32 v10, v20 offset:0x48
             v_xor_b32 v20, 4, v20
             ds_write_b32 v20, v4 offset:0x48
             ds_read_addtid_b32 v11 offset:8";
        cases.push(Case::new(name, body, integers(), |all, lane| {
            Want::Long(all[lane][0] & LOW | all[lane ^ 1][1] << 32)
        }));
    }
    // The number of active lanes, twelve of them. M0 is also negative: an offset makes the address of it.
    let names = [("ds_append", 1012), ("ds_consume", 988)];
    for ((name, sum), (m0, offset)) in names
        .into_iter()
        .flat_map(|name| [(name, (0x50, 16)), (name, (-0xb0, 0x110))])
    {
        let body = format!(
            "v_mov_b32 v20, 0x60
             v_mov_b32 v21, 0x3e8
             ds_write_b32 v20, v21
             s_mov_b32 m0, {m0}
             s_mov_b64 exec, 0xfff0
             {name} v10 offset:{offset}
             s_mov_b64 exec, -1
             ds_read_b32 v11, v20"
        );
        cases.push(Case::new(name, body, [[0; 4]; LANES], move |_, lane| {
            let told = if (4..16).contains(&lane) {
                1000
            } else {
                KEPT_WORD
            };
            Want::Long(u64::from(told) | sum << 32)
        }));
    }
    cases
}
