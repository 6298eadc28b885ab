//! Operand values that find mistakes: corners of the number formats, and random bits.

use crate::harness::{Inputs, LANES};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Lanes with operands from `corners`; every fourth operand is random.
fn drawn(corners: &[u64], seed: u64) -> Inputs {
    let mut random = Random(seed);
    std::array::from_fn::<_, LANES, _>(|_| {
        std::array::from_fn(|_| {
            let (choice, bits) = (random.next(), random.next());
            if choice % 4 == 0 {
                bits
            } else {
                corners[bits as usize % corners.len()]
            }
        })
    })
}

pub(crate) fn integers() -> Inputs {
    drawn(
        &[
            0,
            1,
            2,
            5,
            31,
            32,
            33,
            63,
            64,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x0010_0004,
            0x7f_ffff,
            0x80_0000,
            0xff_ffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_fffe,
            0xffff_ffff,
            0x1_0000_0000,
            0x7fff_ffff_ffff_ffff,
            0x8000_0000_0000_0000,
            0xffff_ffff_8000_0000,
            0xffff_ffff_ffff_ffff,
        ],
        1,
    )
}

pub(crate) fn singles() -> Inputs {
    let values = [
        0.0f32,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        1.0 / 3.0,
        std::f32::consts::PI,
        0.999_999_94,
        16_777_217.0,
        2_147_483_648.0,
        -2_147_483_904.0,
        4_294_967_296.0,
        1e10,
        1e-40,
        -1e-45,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-20,
        3e38,
        65504.0,
        65520.0,
        6e-8,
    ];
    drawn(&values.map(|value| value.to_bits().into()), 2)
}

pub(crate) fn doubles() -> Inputs {
    let values = [
        0.0f64,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        1.0 / 3.0,
        std::f64::consts::PI,
        0.999_999_999_999_999_9,
        2_147_483_648.5,
        -2_147_483_649.0,
        4_294_967_296.0,
        1e300,
        1e-310,
        -5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-200,
        1e-40,
        16_777_217.0,
    ];
    drawn(&values.map(f64::to_bits), 3)
}

/// Half precision in the low halves; the high halves are other numbers.
pub(crate) fn halves() -> Inputs {
    let values: [u64; 20] = [
        0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0x4100, 0x4248, 0x3555, 0x7bff, 0xfbff,
        0x7c00, 0xfc00, 0x7e00, 0x0001, 0x8001, 0x03ff, 0x0400, 0x6400, 0x1400,
    ];
    let pairs: Vec<u64> = values
        .iter()
        .enumerate()
        .map(|(place, low)| low | values[(7 * place + 3) % values.len()] << 16)
        .collect();
    drawn(&pairs, 4)
}
