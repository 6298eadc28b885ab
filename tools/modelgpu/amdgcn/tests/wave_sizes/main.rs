//! Executes kernels that Clang compiled for RDNA, in waves of 32 and of 64 work-items, and compares with
//! values from arithmetic.

mod products;

use std::path::Path;

use modelgpu_testing::{arbitrary, compile_hip, in_turn, run};

/// The last workgroup has waves of which some lanes are no work-items.
const WORKGROUP: usize = 96;
const ITEMS: usize = 4 * WORKGROUP - 11;

const PROCESSORS: [&str; 5] = [
    "gfx1030",
    "gfx1100",
    "gfx11-generic",
    "gfx1201",
    "gfx12-generic",
];
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The inputs of a wave, the place of a lane among them, and the wave's size, to the lane's output.
type Expected = fn(&[u64], usize, usize) -> u64;

const KERNELS: [(&str, Expected); 7] = [
    ("ballots", |wave, lane, _| {
        let mask = |bit: u64, from: u64| {
            let lanes = wave.iter().enumerate();
            lanes.fold(0, |mask, (lane, value)| {
                mask | u64::from(value & from == from && value & bit != 0) << lane
            })
        };
        let odd = mask(1, 0);
        if wave[lane] & 2 != 0 {
            odd ^ mask(4, 2)
        } else {
            odd
        }
    }),
    ("sizes", |_, lane, size| (size as u64) << 32 | lane as u64),
    ("broadcasts", |wave, lane, _| {
        let chosen = wave[(wave[0] as u32 % 21) as usize] & 0xffff_ffff;
        let first = wave.iter().find(|value| *value & 2 != 0);
        match first {
            Some(first) if wave[lane] & 2 != 0 => chosen << 32 | first & 0xffff_ffff,
            _ => chosen << 32,
        }
    }),
    ("prefix_sums", |wave, lane, _| {
        let all = &wave[lane / 32 * 32..=lane];
        all.iter()
            .fold(0, |sum: u32, value| sum.wrapping_add(*value as u32))
            .into()
    }),
    ("products", |wave, lane, _| {
        let byte = |place: u32| f64::from((wave[lane] >> (8 * place)) as u8);
        let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(byte);
        for _ in 0..3 {
            let (x, y, z, w) = (a + b, c - d, a / 2.0, b / 4.0);
            (a, b, c, d) = (y, x, z + w, z - w);
        }
        let word = |value: f64| u64::from((64.0 * value) as i32 as u32);
        word(a + c) << 32 | word(b - d)
    }),
    ("divergent_loops", |wave, lane, _| {
        let step = |value: &u64| match value {
            1 => None,
            _ if value % 2 == 1 => Some(3 * value + 1),
            _ => Some(value / 2),
        };
        std::iter::successors(Some(wave[lane] % 97 + 1), step).count() as u64 - 1
    }),
    ("wide_sums", |wave, lane, _| {
        let value = u128::from(wave[lane]);
        let start = value.wrapping_mul(0x0123_4567_89ab_cdef);
        let sum = (0..4).fold(start, |sum, _| sum.wrapping_add(sum << 7 | value));
        (sum >> 64) as u64 ^ sum as u64
    }),
];

#[test]
fn waves_of_both_sizes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("kernels.co");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wave_sizes/kernels.hip");
    let input = arbitrary(5, ITEMS);
    for (number, processor) in PROCESSORS.into_iter().enumerate() {
        let sizes = [(32, &[][..]), (64, &["-mwavefrontsize64", "-DWAVE64"])];
        for (place, (size, flags)) in sizes.into_iter().enumerate() {
            for level in in_turn(&LEVELS, number + 2 * place) {
                let options = [&["-ffp-contract=off", *level], flags].concat();
                let bytes = compile_hip(&source, processor, &options, &object);
                for (kernel, expected) in KERNELS {
                    let found = run(&bytes, kernel, &input, WORKGROUP);
                    for (group, items) in input.chunks(WORKGROUP).enumerate() {
                        for (number, wave) in items.chunks(size).enumerate() {
                            for lane in 0..wave.len() {
                                let item = group * WORKGROUP + number * size + lane;
                                assert_eq!(
                                    found[item],
                                    expected(wave, lane, size),
                                    "{processor} {level} wave{size} {kernel}: item {item}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
