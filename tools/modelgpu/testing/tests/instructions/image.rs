//! Images, which gfx90a and RDNA have: texels, samples, sizes, atomics. The expected values are computed
//! from the bytes in memory by the formats' definitions, and by the rules of OpenCL for addresses and
//! linear filters. The weights of the filters here are exact in eight bits. The fields of resources are those
//! of ROCr's headers `resource_ai.h`, `resource_gfx11.h` and `resource_gfx12.h`.

use modelgpu_amdgcn::Target;

use crate::half::f64_to_half;
use crate::harness::{Case, GCN, Want, memory_byte};
use crate::inputs::integers;
use crate::memory::KEPT;

const KEPT_WORD: u32 = u32::from_le_bytes(KEPT);

/// The targets with one layout of instructions and resources.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Cdna,
    Rdna3,
    Rdna4,
}

const LAYOUTS: [Layout; 3] = [Layout::Cdna, Layout::Rdna3, Layout::Rdna4];
const RDNA: [Layout; 2] = [Layout::Rdna3, Layout::Rdna4];

impl Layout {
    fn targets(self) -> &'static [Target] {
        match self {
            Self::Cdna => GCN,
            Self::Rdna3 => &[Target::Gfx1100],
            Self::Rdna4 => &[Target::Gfx1201],
        }
    }

    /// Address registers from one on.
    fn addresses(self, first: u32, count: u32) -> String {
        let last = first + count - 1;
        match self {
            _ if count == 1 => format!("v{first}"),
            Self::Rdna4 if count > 4 => {
                format!(
                    "[v{first}, v{}, v{}, v[{}:{last}]]",
                    first + 1,
                    first + 2,
                    first + 3
                )
            }
            Self::Rdna4 => {
                let all: Vec<String> = (first..=last)
                    .map(|register| format!("v{register}"))
                    .collect();
                format!("[{}]", all.join(", "))
            }
            _ => format!("v[{first}:{last}]"),
        }
    }

    /// An access to an image without a sampler. Flags may follow the mask.
    fn access(self, name: &str, data: &str, addresses: &str, image: Image, mask: &str) -> String {
        // All these count texels. RDNA 4 has no flag for it.
        let flag = match self {
            Self::Rdna4 => "",
            _ => " unorm",
        };
        let mask = self.with_kind(image.kind, mask, flag);
        format!("{name} {data}, {addresses}, s[36:43] {mask}")
    }

    /// A sample, with the sampler in s[44:47].
    fn sample(self, name: &str, data: &str, addresses: &str, image: Image, mask: &str) -> String {
        let mask = self.with_kind(image.kind, mask, "");
        format!("{name} {data}, {addresses}, s[36:43], s[44:47] {mask}")
    }

    /// A mask with the kind of image and a flag after it, and before further flags.
    fn with_kind(self, kind: u32, mask: &str, flag: &str) -> String {
        let (mask, more) = mask.split_at(mask.find(' ').unwrap_or(mask.len()));
        let kind = match kind {
            12.. if self == Self::Cdna => return format!("{mask}{flag}{more} da"),
            _ if self == Self::Cdna => return format!("{mask}{flag}{more}"),
            8 => "1D",
            9 => "2D",
            10 => "3D",
            12 => "1D_ARRAY",
            _ => "2D_ARRAY",
        };
        format!("{mask} dim:SQ_RSRC_IMG_{kind}{flag}{more}")
    }
}

/// A format: CDNA's DATA_FORMAT and NUM_FORMAT, and RDNA's FORMAT.
#[derive(Clone, Copy)]
struct Format(u32, u32, u32);

const BYTES: Format = Format(10, 0, 42);
const FLOATS: Format = Format(4, 7, 22);
const WORDS: Format = Format(4, 4, 20);
const LONGS: Format = Format(11, 4, 48);
const SRGB: Format = Format(10, 9, 66);

/// An image: its format, TYPE, width, height, depth, pitch.
#[derive(Clone, Copy)]
struct Image {
    format: Format,
    kind: u32,
    size: [u32; 3],
    pitch: u32,
    /// The source of each of the four components.
    selection: [u32; 4],
}

const PLAIN: [u32; 4] = [4, 5, 6, 7];

impl Image {
    /// The image as a layout can describe it: RDNA's has no pitch for volumes and arrays, whose rows the model
    /// puts side by side.
    fn on(self, layout: Layout) -> Self {
        match layout {
            Layout::Cdna => self,
            _ if self.kind < 10 => self,
            _ => Self {
                pitch: self.size[0],
                ..self
            },
        }
    }

    /// The resource in s[36:43], on the case's memory.
    fn resource(self, layout: Layout) -> String {
        let [width, height, depth] = self.size.map(|size| size - 1);
        let Format(data, number, joined) = self.format;
        let [x, y, z, w] = self.selection;
        let selection = x | y << 3 | z << 6 | w << 9 | self.kind << 28;
        let pitch = self.pitch - 1;
        let last = if self.kind < 10 { pitch } else { depth };
        let [second, third, fifth] = match layout {
            Layout::Cdna => [
                data << 20 | number << 26,
                width | height << 14,
                depth | pitch << 13,
            ],
            Layout::Rdna3 => [joined << 20 | width << 30, width >> 2 | height << 14, last],
            Layout::Rdna4 => [joined << 17 | width << 30, width >> 2 | height << 14, last],
        };
        format!(
            "s_lshr_b64 s[36:37], s[12:13], 8
             s_or_b32 s37, s37, {second:#x}
             s_mov_b32 s38, {third:#x}
             s_mov_b32 s39, {selection:#x}
             s_mov_b32 s40, {fifth:#x}
             s_mov_b32 s41, 0
             s_mov_b32 s42, 0
             s_mov_b32 s43, 0\n",
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
    let of = |layout: Layout| {
        let families = [loads, stores, samples, colours, atomics, variants, gathers];
        let cases = families.into_iter().flat_map(move |family| family(layout));
        cases.map(move |case| case.only(layout.targets()))
    };
    let common = LAYOUTS.into_iter().flat_map(of);
    let of_rdna = RDNA.into_iter().flat_map(|layout| {
        let families = [scattered_addresses, float_atomics];
        let cases = families.into_iter().flat_map(move |family| family(layout));
        cases.map(move |case| case.only(layout.targets()))
    });
    common.chain(of_rdna).collect()
}

/// All components of the texel at a place.
fn whole(image: Image, place: [i64; 3]) -> Want {
    Want::All(std::array::from_fn(|n| {
        image.byte(place, n as u32).to_bits()
    }))
}

fn loads(layout: Layout) -> Vec<Case> {
    let load =
        |name: &'static str, data, count, image: Image, more, want: fn(Image, [i64; 3]) -> Want| {
            let image = image.on(layout);
            let access = layout.access(name, data, &layout.addresses(20, count), image, more);
            let body = format!("{}{PLACES}{access}", image.resource(layout));
            Case::new(name, body, integers(), move |_, lane| {
                want(image, place(lane))
            })
        };
    let all = |count, image| load("image_load", "v[10:13]", count, image, "dmask:0xf", whole);
    let volume = Image {
        kind: 10,
        size: [9, 4, 2],
        ..PLANE
    };
    let layers = Image { kind: 13, ..volume };
    let rows = Image {
        kind: 12,
        size: [9, 1, 5],
        ..PLANE
    };
    let line = Image {
        kind: 8,
        size: [7, 1, 1],
        ..PLANE
    };
    let swapped = Image {
        selection: [6, 1, 4, 0],
        ..PLANE
    };
    let size = |image: Image, data, mask, want: [u32; 4]| {
        let access = layout.access("image_get_resinfo", data, "v20", image, mask);
        let body = format!("{}v_mov_b32 v20, 0\n{access}", image.resource(layout));
        Case::new("image_get_resinfo", body, integers(), move |_, _| {
            Want::All(want)
        })
    };
    let short = layout.access("image_load", "v[10:13]", "v20", PLANE, "dmask:0xf a16");
    let short = format!(
        "{}{PLACES}v_lshlrev_b32 v21, 16, v21\nv_and_b32 v20, 0xffff, v20\nv_or_b32 v20, v20, v21\n{short}",
        PLANE.resource(layout)
    );
    vec![
        all(2, PLANE),
        all(3, volume),
        all(3, layers),
        load(
            "image_load",
            "v[10:13]",
            2,
            rows,
            "dmask:0xf",
            |image, [x, layer, _]| whole(image, [x, 0, layer]),
        ),
        load(
            "image_load",
            "v[10:13]",
            1,
            line,
            "dmask:0xf",
            |image, [x, ..]| whole(image, [x, 0, 0]),
        ),
        // The second and the fourth component; and those that the resource exchanges.
        load(
            "image_load",
            "v[10:11]",
            2,
            PLANE,
            "dmask:0xa",
            |image, place| {
                let [a, b] = [1, 3].map(|n| image.byte(place, n).to_bits());
                Want::All([a, b, KEPT_WORD, KEPT_WORD])
            },
        ),
        load(
            "image_load",
            "v[10:13]",
            2,
            swapped,
            "dmask:0xf",
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
            "image_load",
            "v[10:11]",
            2,
            PLANE,
            "dmask:0xf d16",
            |image, place| {
                let half = |n: u32| {
                    let value = f64::from(image.byte(place, n));
                    u64::from(f64_to_half(value)) << (16 * n)
                };
                Want::Long((0..4).map(half).sum())
            },
        ),
        // Two coordinates in a register.
        Case::new("image_load", short, integers(), |_, lane| {
            whole(PLANE, place(lane))
        }),
        // The level is the last coordinate: 0 in even lanes, and one that the image lacks.
        load(
            "image_load_mip",
            "v[10:13]",
            3,
            PLANE,
            "dmask:0xf",
            |image, [x, y, level]| whole(image, [if level == 0 { x } else { -1 }, y, 0]),
        ),
        size(volume, "v[10:13]", "dmask:0xf", [9, 4, 2, 1]),
        size(
            PLANE,
            "v10",
            "dmask:0x2",
            [5, KEPT_WORD, KEPT_WORD, KEPT_WORD],
        ),
    ]
}

/// Lane n has texel n of a line.
fn stores(layout: Layout) -> Vec<Case> {
    let line = |format, selection| Image {
        format,
        kind: 8,
        size: [40, 1, 1],
        pitch: 64,
        selection,
    };
    let case =
        |name: &'static str, image: Image, data, count, mask, want: fn(usize, u32) -> u32| {
            let access = layout.access(name, data, &layout.addresses(20, count), image, mask);
            let body = format!(
                "{}
             v_mov_b32 v20, v0
             v_and_b32 v21, 1, v0
             v_cvt_f32_u32 v14, v0
             v_mul_f32 v14, 0x3b808081, v14
             v_add_f32 v15, v14, v14
             v_mov_b32 v16, 1.0
             v_mov_b32 v17, 0.5
             {access}
             s_waitcnt vmcnt(0)
             v_lshlrev_b32 v18, 2, v0
             global_load_dword v10, v18, s[12:13]",
                image.resource(layout)
            );
            Case::new(name, body, integers(), move |_, lane| {
                Want::Word(want(lane, dword(4 * lane as u32)))
            })
        };
    let words = line(WORDS, [4, 0, 0, 1]);
    vec![
        // n/255, 2n/255, 1, 1/2; beyond 39 nothing.
        case(
            "image_store",
            line(BYTES, PLAIN),
            "v[14:17]",
            1,
            "dmask:0xf",
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
            "v[14:15]",
            1,
            "dmask:0x3",
            |lane, old| {
                let n = lane as u32;
                if n < 40 { (2 * n) | (n << 16) } else { old }
            },
        ),
        case("image_store", words, "v0", 1, "dmask:0x1", |lane, old| {
            if lane < 40 { lane as u32 } else { old }
        }),
        case(
            "image_store_mip",
            words,
            "v0",
            2,
            "dmask:0x1",
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

/// A sampler in s[44:47], with one address mode and filter for all axes.
fn sampler(mode: u32, linear: bool, in_texels: bool) -> String {
    let linear = u32::from(linear);
    format!(
        "s_mov_b32 s44, {:#x}
         s_mov_b32 s45, 0xfff000
         s_mov_b32 s46, {:#x}
         s_mov_b32 s47, 0\n",
        mode | mode << 3 | mode << 6 | u32::from(in_texels) << 15,
        linear << 20 | linear << 22
    )
}

/// Coordinates of samples: 9/16 and 1/4 of the lane's number from -36 on, in v20 and v21. So they go from -9
/// on beyond the row of 9 and the column of 5 texels.
const POINTS: &str = "v_cvt_f32_u32 v14, v0
     v_add_f32 v14, 0xc2100000, v14
     v_mul_f32 v20, 0x3f100000, v14
     v_mul_f32 v21, 0x3e800000, v14\n";

/// The coordinates of a lane there.
fn point(lane: usize) -> [f64; 2] {
    let n = lane as f64 - 36.0;
    [n * 0.5625, n * 0.25]
}

/// A component of the plane's texel that an address mode gives; 0 in the border.
fn texel(mode: u32, x: i64, y: i64, component: u32) -> f64 {
    match (at_edge(mode, x, 9), at_edge(mode, y, 5)) {
        (Some(x), Some(y)) => f64::from(PLANE.byte([x, y, 0], component)),
        _ => 0.0,
    }
}

/// The first component of a sample of the plane.
fn sampled(mode: u32, linear: bool, [x, y]: [f64; 2]) -> f32 {
    let texel = |x: i64, y: i64| texel(mode, x, y, 0);
    if !linear {
        return texel(x.floor() as i64, y.floor() as i64) as f32;
    }
    let (u, v) = (x - 0.5, y - 0.5);
    let (left, top) = (u.floor(), v.floor());
    let (a, b) = (u - left, v - top);
    let (left, top) = (left as i64, top as i64);
    let sum = texel(left, top) * (1.0 - a) * (1.0 - b)
        + texel(left + 1, top) * a * (1.0 - b)
        + texel(left, top + 1) * (1.0 - a) * b
        + texel(left + 1, top + 1) * a * b;
    sum as f32
}

fn samples(layout: Layout) -> Vec<Case> {
    let mut cases = Vec::new();
    let pair = layout.addresses(20, 2);
    for mode in [0, 1, 2, 3, 6] {
        for linear in [false, true] {
            let access = layout.sample("image_sample", "v[10:13]", &pair, PLANE, "dmask:0xf");
            let body = format!(
                "{}{}{POINTS}{access}",
                PLANE.resource(layout),
                sampler(mode, linear, true)
            );
            cases.push(Case::new(
                "image_sample",
                body,
                integers(),
                move |_, lane| Want::NearSingle(sampled(mode, linear, point(lane))),
            ));
        }
    }
    // Normalized coordinates: middles of texels. The row and the layer of an array.
    let layers = Image {
        kind: 13,
        size: [8, 4, 2],
        ..PLANE
    }
    .on(layout);
    let access = layout.sample(
        "image_sample",
        "v[10:13]",
        &layout.addresses(20, 3),
        layers,
        "dmask:0xf",
    );
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
         {access}",
        layers.resource(layout),
        sampler(2, true, false)
    );
    cases.push(Case::new(
        "image_sample",
        body,
        integers(),
        move |_, lane| {
            let lane = lane as i64;
            whole(layers, [lane % 8, lane / 8 % 4, lane / 32])
        },
    ));
    // A volume of floats, at a middle. The instruction tells that coordinates count texels.
    let volume = Image {
        format: FLOATS,
        kind: 10,
        size: [4, 4, 4],
        pitch: 4,
        selection: [4, 0, 0, 1],
    };
    let access = layout.sample(
        "image_sample",
        "v[10:11]",
        &layout.addresses(20, 3),
        volume,
        "dmask:0x9 unorm",
    );
    let body = format!(
        "{}{}
         v_and_b32 v14, 3, v0
         v_cvt_f32_u32 v20, v14
         v_bfe_u32 v14, v0, 2, 2
         v_cvt_f32_u32 v21, v14
         v_lshrrev_b32 v14, 4, v0
         v_cvt_f32_u32 v22, v14
         {access}",
        volume.resource(layout),
        sampler(2, false, false)
    );
    cases.push(Case::new(
        "image_sample",
        body,
        integers(),
        move |_, lane| {
            Want::Long(u64::from(dword(4 * lane as u32)) | u64::from(1f32.to_bits()) << 32)
        },
    ));
    // Two halves in a register.
    let access = layout.sample("image_sample", "v[10:13]", "v20", PLANE, "dmask:0xf a16");
    let body = format!(
        "{}{}{POINTS}
         v_cvt_f16_f32 v20, v20
         v_cvt_f16_f32 v21, v21
         v_lshlrev_b32 v21, 16, v21
         v_and_b32 v20, 0xffff, v20
         v_or_b32 v20, v20, v21
         {access}",
        PLANE.resource(layout),
        sampler(0, true, true)
    );
    cases.push(Case::new("image_sample", body, integers(), |_, lane| {
        Want::NearSingle(sampled(0, true, point(lane)))
    }));
    cases
}

/// The number from 0 to 1 that sRGB encodes in a byte: the encoding rises, so halves of the rest lead to it.
fn of_srgb(byte: u8) -> f64 {
    let encoded = |linear: f64| match linear {
        ..=0.003_130_8 => 12.92 * linear,
        _ => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match encoded(middle) < f64::from(byte) / 255.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Colours of sRGB become numbers before a filter, and their opacity is none of sRGB.
fn colours(layout: Layout) -> Vec<Case> {
    let image = Image {
        format: SRGB,
        ..PLANE
    };
    let byte = move |place, component| {
        let offset = image.offset(place);
        offset.map_or(0, |offset| memory_byte(offset + component))
    };
    let mut cases = Vec::new();
    for (component, mask) in [(1, "dmask:0x2"), (3, "dmask:0x8")] {
        let number = move |place| match component {
            3 => f64::from(byte(place, 3)) / 255.0,
            _ => of_srgb(byte(place, component)),
        };
        let addresses = layout.addresses(20, 2);
        let load = layout.access("image_load", "v10", &addresses, image, mask);
        let body = format!("{}{PLACES}{load}", image.resource(layout));
        cases.push(Case::new("image_load", body, integers(), move |_, lane| {
            Want::NearSingle(number(place(lane)) as f32)
        }));
        // In the middle between a texel and the next one of its row.
        let sample = layout.sample("image_sample", "v10", &addresses, image, mask);
        let body = format!(
            "{}{}
             v_and_b32 v14, 7, v0
             v_cvt_f32_u32 v14, v14
             v_add_f32 v20, 1.0, v14
             v_bfe_u32 v14, v0, 3, 2
             v_cvt_f32_u32 v14, v14
             v_add_f32 v21, 0.5, v14
             {sample}",
            image.resource(layout),
            sampler(2, true, true)
        );
        let case = Case::new("image_sample", body, integers(), move |_, lane| {
            let [x, y] = [lane as i64 % 8, lane as i64 / 8 % 4];
            let sum = number([x, y, 0]) + number([x + 1, y, 0]);
            Want::NearSingle((sum / 2.0) as f32)
        });
        cases.push(case);
    }
    cases
}

/// Offsets of 3 and -2 texels, each of six bits.
const OFFSETS: u32 = 3 | (64 - 2) << 8;

/// Samples that have more than coordinates: texels to add to them, and what selects a level. An image of one
/// level has always this level. The coordinates are after the offset, a bias or derivatives, and before a level
/// or the least level.
fn variants(layout: Layout) -> Vec<Case> {
    let mut cases = Vec::new();
    // The number of registers before the coordinates, and after them.
    for (name, before, behind) in [
        ("", 0, 0),
        ("_l", 0, 1),
        ("_lz", 0, 0),
        ("_cl", 0, 1),
        ("_b", 1, 0),
        ("_b_cl", 1, 1),
        ("_d", 4, 0),
        ("_d_cl", 4, 1),
        ("_cd", 4, 0),
        ("_cd_cl", 4, 1),
        ("_d*_g16", 2, 0),
        ("_d_cl*_g16", 2, 1),
    ] {
        for has_offset in [false, true] {
            // The offset's letter comes before the size of the derivatives.
            let letter = if has_offset { "_o" } else { "" };
            let name = match name.split_once('*') {
                Some((first, last)) => format!("{first}{letter}{last}"),
                None => format!("{name}{letter}"),
            };
            let name: &'static str = format!("image_sample{name}").leak();
            let before = before + u32::from(has_offset);
            let addresses = layout.addresses(20 - before, before + 2 + behind);
            let access = layout.sample(name, "v[10:13]", &addresses, PLANE, "dmask:0xf");
            // v22 is a level of 2.
            let body = format!(
                "{}{}{POINTS}
                 v_mov_b32 v15, 0x40400000
                 v_mov_b32 v16, v15
                 v_mov_b32 v17, v15
                 v_mov_b32 v18, v15
                 v_mov_b32 v19, v15
                 v_mov_b32 v22, 2.0
                 v_mov_b32 v{}, {:#x}
                 {access}",
                PLANE.resource(layout),
                sampler(1, true, true),
                if has_offset { 20 - before } else { 30 },
                OFFSETS,
            );
            cases.push(Case::new(name, body, integers(), move |_, lane| {
                let [x, y] = point(lane);
                let (right, down) = if has_offset { (3.0, -2.0) } else { (0.0, 0.0) };
                Want::NearSingle(sampled(1, true, [x + right, y + down]))
            }));
        }
    }
    cases
}

/// One component of the four texels round a point, from the lower left one on, against the clock (AMD's RDNA 3
/// instruction set guide, "Gather4").
fn gathers(layout: Layout) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, before, behind) in [
        ("", 0, 0),
        ("_l", 0, 1),
        ("_lz", 0, 0),
        ("_cl", 0, 1),
        ("_b", 1, 0),
        ("_b_cl", 1, 1),
        ("_o", 1, 0),
        ("_l_o", 1, 1),
        ("_lz_o", 1, 0),
        ("_cl_o", 1, 1),
        ("_b_o", 2, 0),
        ("_b_cl_o", 2, 1),
    ] {
        let offset = if name.ends_with("_o") {
            (3, -2)
        } else {
            (0, 0)
        };
        for component in [0, 2] {
            let name: &'static str = format!("image_gather4{name}").leak();
            let addresses = layout.addresses(20 - before, before + 2 + behind);
            let mask = format!("dmask:{:#x}", 1 << component);
            let access = layout.sample(name, "v[10:13]", &addresses, PLANE, &mask);
            let body = format!(
                "{}{}{POINTS}
                 v_mov_b32 v19, 0x40400000
                 v_mov_b32 v22, 2.0
                 v_mov_b32 v{}, {:#x}
                 {access}",
                PLANE.resource(layout),
                sampler(0, false, true),
                if before == 0 { 30 } else { 20 - before },
                OFFSETS,
            );
            cases.push(Case::new(name, body, integers(), move |_, lane| {
                let [x, y] = point(lane).map(|place| (place - 0.5).floor() as i64);
                let (x, y) = (x + offset.0, y + offset.1);
                let texels = [(0, 1), (1, 1), (1, 0), (0, 0)];
                Want::All(texels.map(|(right, down)| {
                    (texel(0, x + right, y + down, component) as f32).to_bits()
                }))
            }));
        }
    }
    cases
}

/// Addresses in registers that do not follow each other.
fn scattered_addresses(layout: Layout) -> Vec<Case> {
    let image = PLANE.resource(layout);
    let load = layout.access("image_load", "v[10:13]", "[v31, v30]", PLANE, "dmask:0xf");
    let load = format!("{image}{PLACES}v_mov_b32 v31, v20\nv_mov_b32 v30, v21\n{load}");
    // RDNA 3 lists five registers, and RDNA 4 four. Further addresses follow the last one.
    let list = match layout {
        Layout::Rdna4 => "[v15, v17, v16, v[19:21]]",
        _ => "[v15, v17, v16, v18, v[20:21]]",
    };
    let sample = layout.sample("image_sample_d", "v[10:13]", list, PLANE, "dmask:0xf");
    let sample = format!("{image}{}{POINTS}{sample}", sampler(6, true, true));
    vec![
        Case::new("image_load", load, integers(), |_, lane| {
            whole(PLANE, place(lane))
        }),
        Case::new("image_sample_d", sample, integers(), |_, lane| {
            Want::NearSingle(sampled(6, true, point(lane)))
        }),
    ]
}

/// Atomics of floats, which RDNA 4 has: sums of small integers, so that each is exact.
fn float_atomics(layout: Layout) -> Vec<Case> {
    let line = Image {
        format: FLOATS,
        kind: 8,
        size: [50, 1, 1],
        pitch: 64,
        selection: PLAIN,
    };
    // The old value is lane - 20, and the operand 2 * lane - 61: in single precision, and in both halves.
    let value = |lane: usize| lane as f64 - 20.0;
    let operand = |lane: usize| 2.0 * lane as f64 - 61.0;
    type Bits = fn(f64) -> u32;
    type Function = fn(f64, f64) -> f64;
    let single: Bits = |value| (value as f32).to_bits();
    let halves: Bits = |value| u32::from(f64_to_half(value)) * 0x1_0001;
    let brains: Bits = |value| ((value as f32).to_bits() >> 16) * 0x1_0001;
    let all: [(&str, Bits, Function); 5] = [
        ("image_atomic_add_flt", single, |a, b| a + b),
        ("image_atomic_min_flt", single, f64::min),
        ("image_atomic_max_flt", single, f64::max),
        ("image_atomic_pk_add_f16", halves, |a, b| a + b),
        ("image_atomic_pk_add_bf16", brains, |a, b| a + b),
    ];
    let to_register = |name: &str, register: u32| match name {
        "image_atomic_pk_add_f16" => format!(
            "v_cvt_f16_f32 v{register}, v{register}
             v_and_b32 v{register}, 0xffff, v{register}
             v_mul_u32_u24 v{register}, 0x10001, v{register}\n"
        ),
        "image_atomic_pk_add_bf16" => format!(
            "v_lshrrev_b32 v{register}, 16, v{register}
             v_mul_u32_u24 v{register}, 0x10001, v{register}\n"
        ),
        _ => String::new(),
    };
    if layout != Layout::Rdna4 {
        return Vec::new();
    }
    let case = |(name, bits, function): (&'static str, Bits, Function)| {
        let access = layout.access(name, "v16", "v0", line, "dmask:0x1 RETURN_OLD");
        let body = format!(
            "{}
             v_cvt_f32_u32 v14, v0
             v_add_f32 v15, 0xc1a00000, v14
             v_add_f32 v16, v14, v14
             v_add_f32 v16, 0xc2740000, v16
             {}{}
             v_lshlrev_b32 v26, 2, v0
             global_store_dword v26, v15, s[12:13]
             s_waitcnt vmcnt(0)
             {access}
             s_waitcnt vmcnt(0)
             v_mov_b32 v10, v16
             global_load_dword v11, v26, s[12:13]",
            line.resource(layout),
            to_register(name, 15),
            to_register(name, 16),
        );
        Case::new(name, body, integers(), move |_, lane| {
            let old = bits(value(lane));
            let (told, new) = match lane < 50 {
                true => (old, bits(function(value(lane), operand(lane)))),
                false => (0, old),
            };
            Want::Long(u64::from(told) | u64::from(new) << 32)
        })
    };
    all.into_iter().map(case).collect()
}

/// Each lane has a texel of a line. The last ones lie outside.
fn atomics(layout: Layout) -> Vec<Case> {
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
            let flag = if returns { " RETURN_OLD" } else { "" };
            let mask = format!("dmask:{:#x}{flag}", (1u32 << data) - 1);
            let access = layout.access(mnemonic, &registers, "v20", line, &mask);
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
                 {access}
                 s_waitcnt vmcnt(0)
                 v_mov_b32 v10, v16
                 global_load_dwordx2 v[24:25], v27, s[12:13]
                 s_waitcnt vmcnt(0)
                 v_mov_b32 v11, v24",
                line.resource(layout),
                if bytes == 4 { 1 } else { 0 },
                if name == "cmpswap" && bytes == 4 {
                    "v24"
                } else {
                    "v3"
                },
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
