//! Images, which only gfx90a has: texels, samples, sizes, atomics. The expected values are computed
//! from the bytes in memory by the formats' definitions, and by the rules of OpenCL for addresses and
//! linear filters. The weights of the filters here are exact in eight bits.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, Want, memory_byte};
use crate::inputs::integers;
use crate::memory::KEPT;

const GFX90A: &[Target] = &[Target::Gfx90a];
const KEPT_WORD: u32 = u32::from_le_bytes(KEPT);

/// DATA_FORMAT and NUM_FORMAT.
const BYTES: (u32, u32) = (10, 0);
const FLOATS: (u32, u32) = (4, 7);
const WORDS: (u32, u32) = (4, 4);
const LONGS: (u32, u32) = (11, 4);

/// An image: its format, TYPE, width, height, depth, pitch.
#[derive(Clone, Copy)]
struct Image {
    format: (u32, u32),
    kind: u32,
    size: [u32; 3],
    pitch: u32,
    /// The source of each of the four components.
    selection: [u32; 4],
}

const PLAIN: [u32; 4] = [4, 5, 6, 7];

impl Image {
    /// The resource in s[36:43], on the case's memory.
    fn resource(self) -> String {
        let [width, height, depth] = self.size;
        let (data, number) = self.format;
        let [x, y, z, w] = self.selection;
        format!(
            "s_lshr_b64 s[36:37], s[12:13], 8
             s_or_b32 s37, s37, {:#x}
             s_mov_b32 s38, {:#x}
             s_mov_b32 s39, {:#x}
             s_mov_b32 s40, {:#x}
             s_mov_b32 s41, 0
             s_mov_b32 s42, 0
             s_mov_b32 s43, 0\n",
            data << 20 | number << 26,
            (width - 1) | (height - 1) << 14,
            x | y << 3 | z << 6 | w << 9 | self.kind << 28,
            (depth - 1) | (self.pitch - 1) << 13,
        )
    }

    /// The offset of a texel of four bytes; `None` outside.
    fn offset(self, place: [i64; 3]) -> Option<u32> {
        // A line has no rows, and a plane no layers.
        let axes = match self.kind {
            8 => 1,
            9 => 2,
            _ => 3,
        };
        let place: [i64; 3] = std::array::from_fn(|axis| if axis < axes { place[axis] } else { 0 });
        let inside =
            (0..3).all(|axis| place[axis] >= 0 && place[axis] < i64::from(self.size[axis]));
        let [x, y, z] = place.map(|place| place as u32);
        inside.then(|| 4 * ((z * self.size[1] + y) * self.pitch + x))
    }

    /// The value of a component of a texel of bytes; 0 outside.
    fn byte(self, place: [i64; 3], component: u32) -> f32 {
        self.offset(place).map_or(0.0, |offset| {
            f32::from(memory_byte(offset + component)) / 255.0
        })
    }
}

const PLANE: Image = Image {
    format: BYTES,
    kind: 9,
    size: [9, 5, 1],
    pitch: 16,
    selection: PLAIN,
};

/// Coordinates from -1 on, over more than the image: x in v20, y in v21, z in v22.
const PLACES: &str = "v_mul_u32_u24 v23, 0x1746, v0
     v_lshrrev_b32 v23, 16, v23
     v_mul_u32_u24 v24, 11, v23
     v_sub_u32 v20, v0, v24
     v_subrev_u32 v20, 1, v20
     v_subrev_u32 v21, 1, v23
     v_and_b32 v22, 1, v0\n";

/// The coordinates of a lane there.
fn place(lane: usize) -> [i64; 3] {
    let lane = lane as i64;
    [lane % 11 - 1, lane / 11 - 1, lane % 2]
}

fn dword(offset: u32) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|n| memory_byte(offset + n as u32)))
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = loads();
    cases.extend(stores());
    cases.extend(samples());
    cases.extend(atomics());
    cases.into_iter().map(|case| case.only(GFX90A)).collect()
}

fn loads() -> Vec<Case> {
    let whole = move |image: Image, place: [i64; 3]| {
        Want::All(std::array::from_fn(|n| {
            image.byte(place, n as u32).to_bits()
        }))
    };
    let load = |body: &str, image: Image, want: fn(Image, [i64; 3]) -> Want| {
        let name: &'static str = body
            .split(' ')
            .next()
            .expect("a mnemonic")
            .to_owned()
            .leak();
        let body = format!("{}{PLACES}{body}", image.resource());
        Case::new(name, body, integers(), move |_, lane| {
            want(image, place(lane))
        })
    };
    let volume = Image {
        kind: 10,
        size: [9, 4, 2],
        ..PLANE
    };
    let layers = Image { kind: 13, ..volume };
    let line = Image {
        kind: 8,
        size: [7, 1, 1],
        ..PLANE
    };
    let swapped = Image {
        selection: [6, 1, 4, 0],
        ..PLANE
    };
    let size = |image: Image, text: &str, want: [u32; 4]| {
        let body = format!("{}v_mov_b32 v20, 0\n{text}", image.resource());
        Case::new("image_get_resinfo", body, integers(), move |_, _| {
            Want::All(want)
        })
    };
    vec![
        load(
            "image_load v[10:13], v[20:21], s[36:43] dmask:0xf unorm",
            PLANE,
            whole,
        ),
        load(
            "image_load v[10:13], v[20:22], s[36:43] dmask:0xf unorm",
            volume,
            whole,
        ),
        load(
            "image_load v[10:13], v[20:22], s[36:43] dmask:0xf unorm da",
            layers,
            whole,
        ),
        load(
            "image_load v[10:13], v20, s[36:43] dmask:0xf unorm",
            line,
            |image, [x, ..]| {
                Want::All(std::array::from_fn(|n| {
                    image.byte([x, 0, 0], n as u32).to_bits()
                }))
            },
        ),
        // The second and the fourth component; and those that the resource exchanges.
        load(
            "image_load v[10:11], v[20:21], s[36:43] dmask:0xa unorm",
            PLANE,
            |image, place| {
                let [a, b] = [1, 3].map(|n| image.byte(place, n).to_bits());
                Want::All([a, b, KEPT_WORD, KEPT_WORD])
            },
        ),
        load(
            "image_load v[10:13], v[20:21], s[36:43] dmask:0xf unorm",
            swapped,
            |image, place| {
                let one = if image.offset(place).is_some() {
                    1.0
                } else {
                    0.0
                };
                let all = [image.byte(place, 2), one, image.byte(place, 0), 0.0];
                Want::All(all.map(f32::to_bits))
            },
        ),
        load(
            "image_load v[10:11], v[20:21], s[36:43] dmask:0xf unorm d16",
            PLANE,
            |image, place| {
                let half = |n: u32| {
                    let value = f64::from(image.byte(place, n));
                    u64::from(crate::half::f64_to_half(value)) << (16 * n)
                };
                Want::Long((0..4).map(half).sum())
            },
        ),
        // The level is the last coordinate: 0 in even lanes, and one that the image lacks.
        load(
            "image_load_mip v[10:13], v[20:22], s[36:43] dmask:0xf unorm",
            PLANE,
            |image, place| {
                let [x, y, level] = place;
                let x = if level == 0 { x } else { -1 };
                Want::All(std::array::from_fn(|n| {
                    image.byte([x, y, 0], n as u32).to_bits()
                }))
            },
        ),
        size(
            volume,
            "image_get_resinfo v[10:13], v20, s[36:43] dmask:0xf unorm",
            [9, 4, 2, 1],
        ),
        size(
            PLANE,
            "image_get_resinfo v10, v20, s[36:43] dmask:0x2 unorm",
            [5, KEPT_WORD, KEPT_WORD, KEPT_WORD],
        ),
    ]
}

/// Lane n has texel n of a line.
fn stores() -> Vec<Case> {
    let line = |format, selection| Image {
        format,
        kind: 8,
        size: [40, 1, 1],
        pitch: 64,
        selection,
    };
    let case = |name: &'static str, image: Image, operands: &str, want: fn(usize, u32) -> u32| {
        let body = format!(
            "{}
             v_mov_b32 v20, v0
             v_and_b32 v21, 1, v0
             v_cvt_f32_u32 v14, v0
             v_mul_f32 v14, 0x3b808081, v14
             v_add_f32 v15, v14, v14
             v_mov_b32 v16, 1.0
             v_mov_b32 v17, 0.5
             {name} {operands}
             s_waitcnt vmcnt(0)
             v_lshlrev_b32 v18, 2, v0
             global_load_dword v10, v18, s[12:13]",
            image.resource()
        );
        Case::new(name, body, integers(), move |_, lane| {
            Want::Word(want(lane, dword(4 * lane as u32)))
        })
    };
    vec![
        // n/255, 2n/255, 1, 1/2; beyond 39 nothing.
        case(
            "image_store",
            line(BYTES, PLAIN),
            "v[14:17], v20, s[36:43] dmask:0xf unorm",
            |lane, old| {
                let n = lane as u32;
                if n < 40 {
                    n | (2 * n) << 8 | 255 << 16 | 128 << 24
                } else {
                    old
                }
            },
        ),
        // The first register is the third component in memory, the second the first.
        case(
            "image_store",
            line(BYTES, [6, 4, 5, 7]),
            "v[14:15], v20, s[36:43] dmask:0x3 unorm",
            |lane, old| {
                let n = lane as u32;
                if n < 40 { (2 * n) | (n << 16) } else { old }
            },
        ),
        case(
            "image_store",
            line(WORDS, [4, 0, 0, 1]),
            "v0, v20, s[36:43] dmask:0x1 unorm",
            |lane, old| {
                if lane < 40 { lane as u32 } else { old }
            },
        ),
        case(
            "image_store_mip",
            line(WORDS, [4, 0, 0, 1]),
            "v0, v[20:21], s[36:43] dmask:0x1 unorm",
            |lane, old| {
                if lane < 40 && lane % 2 == 0 {
                    lane as u32
                } else {
                    old
                }
            },
        ),
    ]
}

/// The texel of a row of `size` that an address mode gives; `None` in the border.
fn at_edge(mode: u32, place: i64, size: i64) -> Option<i64> {
    let mut place = place;
    match mode {
        0 => {
            while place < 0 {
                place += size;
            }
            Some(place % size)
        }
        1 => {
            // Reflected at both ends, again and again.
            loop {
                if place < 0 {
                    place = -place - 1;
                } else if place >= size {
                    place = 2 * size - 1 - place;
                } else {
                    return Some(place);
                }
            }
        }
        2 => Some(place.max(0).min(size - 1)),
        3 => Some(if place < 0 { -place - 1 } else { place }.min(size - 1)),
        _ => (place >= 0 && place < size).then_some(place),
    }
}

fn samples() -> Vec<Case> {
    let mut cases = Vec::new();
    let sampler = |mode: u32, linear: u32, in_texels: u32| {
        format!(
            "s_mov_b32 s44, {:#x}
             s_mov_b32 s45, 0xfff000
             s_mov_b32 s46, {:#x}
             s_mov_b32 s47, 0\n",
            mode | mode << 3 | mode << 6 | in_texels << 15,
            linear << 20 | linear << 22
        )
    };
    for mode in [0, 1, 2, 3, 6] {
        // Quarters of texels from -9 on, in a row of 9 and a column of 5 texels.
        for linear in [false, true] {
            let body = format!(
                "{}{}
                 v_cvt_f32_u32 v14, v0
                 v_add_f32 v14, 0xc2100000, v14
                 v_mul_f32 v20, 0x3f100000, v14
                 v_mul_f32 v21, 0x3e800000, v14
                 image_sample v[10:13], v[20:21], s[36:43], s[44:47] dmask:0xf",
                PLANE.resource(),
                sampler(mode, linear.into(), 1)
            );
            cases.push(Case::new(
                "image_sample",
                body,
                integers(),
                move |_, lane| {
                    // 9/16 and 1/4 of the lane's number from -36 on.
                    let n = lane as f64 - 36.0;
                    let [x, y] = [n * 0.5625, n * 0.25];
                    let texel = |x: i64, y: i64, component: u32| match (
                        at_edge(mode, x, 9),
                        at_edge(mode, y, 5),
                    ) {
                        (Some(x), Some(y)) => f64::from(PLANE.byte([x, y, 0], component)),
                        _ => 0.0,
                    };
                    let value = |component: u32| {
                        if !linear {
                            return texel(x.floor() as i64, y.floor() as i64, component);
                        }
                        let (u, v) = (x - 0.5, y - 0.5);
                        let (left, top) = (u.floor(), v.floor());
                        let (a, b) = (u - left, v - top);
                        let (left, top) = (left as i64, top as i64);
                        texel(left, top, component) * (1.0 - a) * (1.0 - b)
                            + texel(left + 1, top, component) * a * (1.0 - b)
                            + texel(left, top + 1, component) * (1.0 - a) * b
                            + texel(left + 1, top + 1, component) * a * b
                    };
                    Want::NearSingle(value(0) as f32)
                },
            ));
        }
    }
    // Normalized coordinates: middles of texels. The row and the layer of an array.
    let layers = Image {
        kind: 13,
        size: [8, 4, 2],
        ..PLANE
    };
    let body = format!(
        "{}{}
         v_and_b32 v14, 7, v0
         v_cvt_f32_u32 v14, v14
         v_add_f32 v14, 0.5, v14
         v_mul_f32 v20, 0x3e000000, v14
         v_bfe_u32 v14, v0, 3, 2
         v_cvt_f32_u32 v14, v14
         v_add_f32 v14, 0.5, v14
         v_mul_f32 v21, 0x3e800000, v14
         v_lshrrev_b32 v14, 5, v0
         v_cvt_f32_u32 v22, v14
         image_sample v[10:13], v[20:22], s[36:43], s[44:47] dmask:0xf da",
        layers.resource(),
        sampler(2, 1, 0)
    );
    cases.push(Case::new(
        "image_sample",
        body,
        integers(),
        move |_, lane| {
            let lane = lane as i64;
            let place = [lane % 8, lane / 8 % 4, lane / 32];
            Want::All(std::array::from_fn(|n| {
                layers.byte(place, n as u32).to_bits()
            }))
        },
    ));
    // A volume of floats, at a middle.
    let volume = Image {
        format: FLOATS,
        kind: 10,
        size: [4, 4, 4],
        pitch: 4,
        selection: [4, 0, 0, 1],
    };
    let body = format!(
        "{}{}
         v_and_b32 v14, 3, v0
         v_cvt_f32_u32 v20, v14
         v_bfe_u32 v14, v0, 2, 2
         v_cvt_f32_u32 v21, v14
         v_lshrrev_b32 v14, 4, v0
         v_cvt_f32_u32 v22, v14
         image_sample v[10:11], v[20:22], s[36:43], s[44:47] dmask:0x9 unorm",
        volume.resource(),
        sampler(2, 0, 0)
    );
    cases.push(Case::new(
        "image_sample",
        body,
        integers(),
        move |_, lane| {
            Want::Long(u64::from(dword(4 * lane as u32)) | u64::from(1f32.to_bits()) << 32)
        },
    ));
    cases
}

/// Each lane has a texel of a line. The last ones lie outside.
fn atomics() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, function) in crate::atomics::scalar_functions() {
        let mnemonic: &'static str = format!("image_atomic_{name}").leak();
        for (bytes, returns) in [(4u32, true), (4, false), (8, true)] {
            let (format, count) = if bytes == 4 { (WORDS, 1) } else { (LONGS, 2) };
            let line = Image {
                format,
                kind: 8,
                size: [50, 1, 1],
                pitch: 64,
                selection: PLAIN,
            };
            // A comparison finds the compared value in memory.
            let data = if name == "cmpswap" { 2 * count } else { count };
            let registers = match data {
                1 => "v16".to_owned(),
                _ => format!("v[16:{}]", 15 + data),
            };
            let flag = if returns { " glc" } else { "" };
            let body = format!(
                "{}
                 v_lshlrev_b32 v26, 3, v0
                 v_lshrrev_b32 v27, {}, v26
                 global_load_dwordx2 v[24:25], v27, s[12:13]
                 s_waitcnt vmcnt(0)
                 v_mov_b32 v16, v2
                 v_mov_b32 v17, {}
                 v_mov_b32 v18, v24
                 v_mov_b32 v19, v25
                 v_mov_b32 v20, v0
                 {mnemonic} {registers}, v20, s[36:43] dmask:{:#x} unorm{flag}
                 s_waitcnt vmcnt(0)
                 v_mov_b32 v10, v16
                 global_load_dwordx2 v[24:25], v27, s[12:13]
                 s_waitcnt vmcnt(0)
                 v_mov_b32 v11, v24",
                line.resource(),
                if bytes == 4 { 1 } else { 0 },
                if name == "cmpswap" && bytes == 4 {
                    "v24"
                } else {
                    "v3"
                },
                (1u32 << data) - 1,
            );
            cases.push(Case::new(mnemonic, body, integers(), move |all, lane| {
                let offset = lane as u32 * bytes;
                let mask = u64::MAX >> (64 - 8 * bytes);
                let old = (u64::from(dword(offset)) | u64::from(dword(offset + 4)) << 32) & mask;
                let a = all[lane][0];
                let new = function(old, a & mask, 8 * bytes) & mask;
                let (told, new) = match lane < 50 {
                    true => (old, new),
                    false => (0, old),
                };
                let told = if returns { told } else { a };
                Want::Long(u64::from(told as u32) | new << 32)
            }));
        }
    }
    cases
}
