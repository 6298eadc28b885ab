//! gfx950's conversions with a scale. A number of few bits is a multiple of the scale's power of two.

use modelgpu_amdgcn::Target;

use crate::harness::{Case, Inputs, LANES, Want, memory_byte};
use crate::small::{BF6, BF8, BRAIN, FP4, FP6, FP8, Format, HALF, SINGLE};

const GFX950: &[Target] = &[Target::Gfx950];

/// The results' registers before a case.
const OLD: u32 = 0x5a5a_5a5a;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for small in [FP8, BF8, FP4] {
        for large in [SINGLE, HALF, BRAIN] {
            cases.extend(widened(small, large));
            cases.extend(narrowed(small, large));
        }
    }
    for small in [FP6, BF6] {
        for large in [SINGLE, HALF, BRAIN] {
            cases.extend(long_widened(small, large));
            cases.extend(long_narrowed(small, large, false));
            cases.extend(long_narrowed(small, large, true));
        }
    }
    cases.into_iter().map(|case| case.only(GFX950)).collect()
}

/// Repeatable numbers.
fn random(place: usize) -> u64 {
    let mixed = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// Two numbers of a format in a and b (or in the halves of a), a random number in c, and a scale in d. Most numbers
/// lie near 1, most scales are small powers of two, and the others are any bits.
fn inputs(large: Format) -> Inputs {
    std::array::from_fn(|lane| {
        let number = |place: usize| {
            let bits = random(4 * lane + place) as u32;
            match (large.name, lane % 8) {
                (_, 7) => bits,
                ("f32", _) => bits & 0x83ff_ffff | 0x3c00_0000,
                ("bf16", _) => bits & 0x83ff_83ff | 0x3c00_3c00,
                _ => bits & 0x9fff_9fff | 0x2000_2000,
            }
        };
        let scale = match lane % 16 {
            14 => 0x7fc0_0000,
            15 => 1,
            5 => random(4 * lane + 3) as u32,
            // The fraction and the sign do not count.
            n => (124 + n as u32 / 2) << 23 | if n % 2 == 1 { 0x8012_3456 } else { 0 },
        };
        [number(0), number(1), random(4 * lane + 2) as u32, scale].map(u64::from)
    })
}

/// The power of two of a scale.
fn power(scale: u64) -> f64 {
    match scale >> 23 & 255 {
        255 => f64::NAN,
        exponent => 2f64.powi(exponent as i32 - 127),
    }
}

/// Puts `bits` over a part of the old register.
fn part(bits: u32, shift: u32, width: u32) -> u32 {
    let mask = (u32::MAX >> (32 - width)) << shift;
    OLD & !mask | bits << shift
}

/// A number times a power, in a format. A NaN has the sign of the number.
fn grown(large: Format, number: f64, power: f64) -> u32 {
    match number * power {
        product if product.is_nan() => large.nearest(f64::NAN) | sign_of(large, number),
        product => large.nearest(product),
    }
}

fn sign_of(large: Format, number: f64) -> u32 {
    u32::from(number.is_sign_negative()) << (large.width() - 1)
}

/// A number divided by a power, in a format of few bits.
fn shrunk(small: Format, number: f64, power: f64) -> u32 {
    match number / power {
        quotient if quotient.is_nan() => small.nearest(f64::NAN.copysign(number)),
        quotient => small.nearest(quotient),
    }
}

fn shrunk_by_random(small: Format, large: Format, number: f64, power: f64, random: u32) -> u32 {
    match number / power {
        quotient if quotient.is_nan() => small.by_random(f64::NAN.copysign(number), large, random),
        quotient => small.by_random(quotient, large, random),
    }
}

/// The op_sel of a byte, and of a half.
const BYTES: [&str; 4] = ["", "op_sel:[1,0,0]", "op_sel:[0,1,0]", "op_sel:[1,1,0]"];

fn widened(small: Format, large: Format) -> Vec<Case> {
    let mut cases = Vec::new();
    let name = |prefix: &str| -> &'static str {
        format!("v_cvt_scalef32_{prefix}{}_{}", large.name, small.name).leak()
    };
    let two = name("pk_");
    let registers = if large == SINGLE { "v[10:11]" } else { "v10" };
    let group = 2 * small.width();
    for select in 0..32 / group {
        let body = format!("{two} {registers}, v2, v8 {}", BYTES[select as usize]);
        let case = Case::new(two, body, inputs(SINGLE), move |all, lane| {
            let [a, _, _, scale] = all[lane];
            let number = |place: u32| {
                let bits = a as u32 >> (group * select + place * small.width());
                grown(large, small.value(bits), power(scale))
            };
            Want::Long(match large.width() {
                32 => u64::from(number(0)) | u64::from(number(1)) << 32,
                _ => u64::from(number(0) | number(1) << 16) | u64::from(OLD) << 32,
            })
        });
        cases.push(case);
    }
    if small == FP4 || large == BRAIN {
        return cases;
    }
    let one = name("");
    for (select, text) in BYTES.into_iter().enumerate() {
        for high in [false, true] {
            let (text, shift) = match high {
                true if large == SINGLE => continue,
                // The last of the three is the result's.
                true => (
                    [
                        "op_sel:[0,0,1]",
                        "op_sel:[1,0,1]",
                        "op_sel:[0,1,1]",
                        "op_sel:[1,1,1]",
                    ][select],
                    16,
                ),
                false => (text, 0),
            };
            let body = format!("{one} v10, v2, v8 {text}");
            let case = Case::new(one, body, inputs(SINGLE), move |all, lane| {
                let [a, _, _, scale] = all[lane];
                let bits = grown(large, small.value(a as u32 >> (8 * select)), power(scale));
                Want::Word(part(bits, shift, large.width()))
            });
            cases.push(case);
        }
    }
    cases
}

/// The text of a source's two numbers, and the numbers.
type Pair = (&'static str, &'static str, fn(Format, [u64; 4]) -> [f64; 2]);

fn pair_of(large: Format) -> Pair {
    match large.width() {
        32 => ("", "v2, v4", |large, [a, b, ..]| {
            [a, b].map(|bits| large.value(bits as u32))
        }),
        _ => ("", "v2", |large, [a, ..]| {
            [a, a >> 16].map(|bits| large.value(bits as u32 & 0xffff))
        }),
    }
}

fn narrowed(small: Format, large: Format) -> Vec<Case> {
    let mut cases = Vec::new();
    let name = |prefix: &str| -> &'static str {
        format!("v_cvt_scalef32_{prefix}{}_{}", small.name, large.name).leak()
    };
    let (_, sources, numbers) = pair_of(large);
    let both = move |[low, high]: [u32; 2]| low | high << small.width();
    let group = 2 * small.width();
    let pairs = name("pk_");
    // With the number of operands, one more zero in front of the result's bit.
    let filler = if large == SINGLE { "0," } else { "" };
    for select in 0..32 / group {
        let text = match (group, select) {
            (_, 0) => String::new(),
            (16, _) => format!(" op_sel:[0,0,{filler}1]"),
            (_, n) => format!(" op_sel:[0,0,{},{}]", n & 1, n >> 1),
        };
        let body = format!("{pairs} v10, {sources}, v8{text}");
        let case = Case::new(pairs, body, inputs(large), move |all, lane| {
            let results =
                numbers(large, all[lane]).map(|number| shrunk(small, number, power(all[lane][3])));
            Want::Word(part(both(results), group * select, group))
        });
        cases.push(case);
    }
    let body = format!("{pairs} v10, -{sources}, v8");
    let negated = if large == SINGLE {
        [-1.0, 1.0]
    } else {
        [-1.0; 2]
    };
    cases.push(Case::new(pairs, body, inputs(large), move |all, lane| {
        let [first, second] = numbers(large, all[lane]);
        let results = [first * negated[0], second * negated[1]]
            .map(|number| shrunk(small, number, power(all[lane][3])));
        Want::Word(part(both(results), 0, group))
    }));
    let (set, source, count) = match (small, large) {
        (FP4, SINGLE) => ("v_mov_b32 v14, v2\nv_mov_b32 v15, v4\n", "v[14:15]", 2),
        (FP4, _) => ("", "v2", 2),
        _ => ("", "v2", 1),
    };
    let by_random = name(if count == 2 { "sr_pk_" } else { "sr_" });
    for select in 0..4 {
        let text = match select {
            0 => String::new(),
            n => format!(" op_sel:[0,0,{},{}]", n & 1, n >> 1),
        };
        let body = format!("{set}{by_random} v10, {source}, v6, v8{text}");
        let case = Case::new(by_random, body, inputs(large), move |all, lane| {
            let [.., random, scale] = all[lane];
            let results = numbers(large, all[lane])
                .map(|number| shrunk_by_random(small, large, number, power(scale), random as u32));
            let bits = if count == 2 {
                both(results)
            } else {
                results[0]
            };
            Want::Word(part(bits, 8 * select, 8))
        });
        cases.push(case);
    }
    cases
}

/// The first register of 32 numbers, and of the results.
const SOURCE: u32 = 14;
const RESULT: u32 = 46;

/// The bytes of memory that a lane's numbers begin with.
fn first_byte(lane: usize) -> u32 {
    32 * lane as u32
}

/// Loads a lane's numbers, and makes them numbers near 1.
fn load(format: Format, first: u32) -> String {
    let registers = format.width();
    let mut text = format!("v_lshlrev_b32 v1, {}, v0\n", first_byte(1).trailing_zeros());
    for place in 0..registers {
        let register = first + place;
        text += &format!(
            "global_load_dword v{register}, v1, s[12:13] offset:{}\n",
            4 * place
        );
    }
    text += "s_waitcnt vmcnt(0)\n";
    let (and, or) = masks(format);
    for register in first..first + registers {
        text += &format!(
            "v_and_b32 v{register}, {and:#x}, v{register}
             v_or_b32 v{register}, {or:#x}, v{register}\n"
        );
    }
    text
}

fn masks(format: Format) -> (u32, u32) {
    match format.name {
        "f32" => (0x81ff_ffff, 0x3e00_0000),
        "f16" => (0x8fff_8fff, 0x3000_3000),
        "bf16" => (0x81ff_81ff, 0x3e00_3e00),
        _ => (u32::MAX, 0),
    }
}

/// A number that `load` makes.
fn loaded(format: Format, lane: usize, number: u32) -> f64 {
    let (and, or) = masks(format);
    let bytes = (0..format.width()).flat_map(|place| {
        let first = first_byte(lane) + 4 * place;
        let bytes = std::array::from_fn(|byte| memory_byte(first + byte as u32));
        (u32::from_le_bytes(bytes) & and | or).to_le_bytes()
    });
    let bits: Vec<u32> = bytes
        .flat_map(|byte| (0..8).map(move |bit| u32::from(byte >> bit & 1)))
        .collect();
    let start = (number * format.width()) as usize;
    let own = &bits[start..start + format.width() as usize];
    format.value(own.iter().rev().fold(0, |word, bit| word << 1 | bit))
}

fn range(first: u32, count: u32) -> String {
    format!("v[{first}:{}]", first + count - 1)
}

/// Cases for each four of `count` words of a result.
fn words(
    name: &'static str,
    body: &str,
    count: u32,
    first: u32,
    word: impl Fn(&Inputs, usize, u32) -> u32 + Clone + 'static,
) -> Vec<Case> {
    let groups = (0..count).step_by(4);
    groups
        .map(|start| {
            let end = (start + 4).min(count);
            let mut body = format!("{body}\ns_nop 7\n");
            for place in start..end {
                body += &format!("v_mov_b32 v{}, v{}\n", 10 + place - start, first + place);
            }
            let word = word.clone();
            Case::new(name, body, inputs(SINGLE), move |all, lane| {
                Want::All(std::array::from_fn(|place| {
                    let place = start + place as u32;
                    if place < end {
                        word(all, lane, place)
                    } else {
                        OLD
                    }
                }))
            })
        })
        .collect()
}

/// A word of a row of results.
fn packed(format: Format, place: u32, result: impl Fn(u32) -> u32) -> u32 {
    let (first, width) = (32 * place, format.width());
    (0..32).fold(0, |word, bit| {
        let at = first + bit;
        word | (result(at / width) >> (at % width) & 1) << bit
    })
}

fn long_widened(small: Format, large: Format) -> Vec<Case> {
    let name: &'static str = format!("v_cvt_scalef32_pk32_{}_{}", large.name, small.name).leak();
    // The results take the place of the sources, too.
    let body = format!(
        "{}{name} {}, {}, v8",
        load(small, SOURCE + 10),
        range(SOURCE, large.width()),
        range(SOURCE + 10, small.width())
    );
    words(
        name,
        &body,
        large.width(),
        SOURCE,
        move |all, lane, place| {
            packed(large, place, |number| {
                grown(large, loaded(small, lane, number), power(all[lane][3]))
            })
        },
    )
}

fn long_narrowed(small: Format, large: Format, by_random: bool) -> Vec<Case> {
    let prefix = match (by_random, large) {
        (true, _) => "sr_pk32",
        (false, SINGLE) => "2xpk16",
        (false, _) => "pk32",
    };
    let name: &'static str =
        format!("v_cvt_scalef32_{prefix}_{}_{}", small.name, large.name).leak();
    let sources = match (by_random, large) {
        (true, _) => format!("{}, v6", range(SOURCE, large.width())),
        (false, SINGLE) => format!("{}, {}", range(SOURCE, 16), range(SOURCE + 16, 16)),
        (false, _) => range(SOURCE, large.width()),
    };
    let body = format!(
        "{}{name} {}, {sources}, v8",
        load(large, SOURCE),
        range(RESULT, small.width())
    );
    words(
        name,
        &body,
        small.width(),
        RESULT,
        move |all, lane, place| {
            let [.., random, scale] = all[lane];
            packed(small, place, |number| {
                // The first and the second sixteen take turns.
                let number = match prefix {
                    "2xpk16" => number / 2 + 16 * (number % 2),
                    _ => number,
                };
                let value = loaded(large, lane, number);
                match by_random {
                    true => shrunk_by_random(small, large, value, power(scale), random as u32),
                    false => shrunk(small, value, power(scale)),
                }
            })
        },
    )
}

const _: () = assert!(LANES as u32 * 32 + 128 <= 4096);
