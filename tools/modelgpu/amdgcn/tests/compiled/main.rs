//! Executes kernels that Clang compiled for CDNA, and compares with values from arithmetic.
//! `tests/wave_sizes` has those for RDNA.
//!
//! The kernels use the operations that instrumentation needs to count per wave and per compute unit.

use std::io::{Write, stderr};
use std::path::Path;

use modelgpu_amdgcn::Target;
use modelgpu_isa::Generation;
use modelgpu_testing::{arbitrary, compiled_targets, in_turn, run, text, tool};

const COMPILERS: [&str; 2] = ["clang++-19", "clang++-22"];

/// Returns whether a target has waves of 64 work-items only.
fn is_gfx9(target: &Target) -> bool {
    target.generation() == Generation::Gfx9
}

/// Returns whether a compiler supports a target: Clang 20 is the first one with gfx950.
fn knows(compiler: &str, target: Target) -> bool {
    compiler != "clang++-19" || target != Target::Gfx950
}

/// The last one makes whole-wave code of atomics.
const OPTIONS: [&[&str]; 5] = [
    &["-O0"],
    &["-O1"],
    &["-O2"],
    &["-O3"],
    &["-O3", "-mllvm", "-amdgpu-atomic-optimizer-strategy=DPP"],
];

const WAVE: usize = 64;
const WORKGROUP: usize = 128;
const WORKGROUPS: usize = 3;
const ITEMS: usize = WORKGROUP * WORKGROUPS;

/// A kernel's name, and the expected output for an input.
type Expectation = (&'static str, fn(Target, &[u64]) -> Vec<u64>);

/// Compiles a source of this folder, and checks each of its kernels on each target. Each compiler has one of the ways
/// for a target, or all of them ([`in_turn`]).
fn check(source: &str, language: &[&str], expectations: &[Expectation]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("kernels.co");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/compiled")
        .join(source);
    let input = arbitrary(18, ITEMS);
    let mut number = 0;
    for compiler in COMPILERS {
        for target in compiled_targets().filter(is_gfx9) {
            if !knows(compiler, target) {
                // Written around the capture of passing tests' output, so that the line is always visible.
                let _ = writeln!(
                    stderr(),
                    "not run: {} by {compiler} for {target}, which it does not know",
                    source.display()
                );
                continue;
            }
            for options in in_turn(&OPTIONS, number) {
                let arch = match language {
                    ["-x", "hip", ..] => format!("--offload-arch={target}"),
                    _ => format!("-mcpu={target}"),
                };
                let place = ["-nogpulib", &arch, text(&source), "-o", text(&object)];
                tool(compiler, &[language, *options, &place].concat());
                let bytes = std::fs::read(&object).expect("clang's output");
                for (kernel, expected) in expectations {
                    let found = run(&bytes, kernel, &input, WORKGROUP);
                    let wanted = expected(target, &input);
                    let difference = (0..ITEMS).find(|&item| found[item] != wanted[item]);
                    if let Some(item) = difference {
                        panic!(
                            "{compiler} {options:?} {target} {kernel}: item {item}, input {:#x}: \
                             {:#x}, wanted {:#x}",
                            input[item], found[item], wanted[item]
                        );
                    }
                }
            }
            number += 1;
        }
    }
}

/// The output if each work-item's value depends on its own input.
fn each(input: &[u64], value: impl Fn(usize, u64) -> u64) -> Vec<u64> {
    let items = input.iter().enumerate();
    items.map(|(item, &input)| value(item, input)).collect()
}

/// The output if each work-item's value depends on its wave's inputs and its lane.
fn by_wave(input: &[u64], value: impl Fn(&[u64], usize) -> u64) -> Vec<u64> {
    let waves = input.chunks(WAVE);
    waves
        .flat_map(|wave| (0..wave.len()).map(|lane| value(wave, lane)))
        .collect()
}

/// The output if only its first words are written.
fn first(words: &[u64]) -> Vec<u64> {
    let mut output = words.to_vec();
    output.resize(ITEMS, 0);
    output
}

fn count(values: &[u64], condition: impl Fn(u64) -> bool) -> u64 {
    values.iter().filter(|&&value| condition(value)).count() as u64
}

fn sum(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::wrapping_add)
}

/// The sum of the low halves, modulo 2^32.
fn low_sum<'a>(values: impl IntoIterator<Item = &'a u64>) -> u64 {
    sum(values.into_iter().copied()) & 0xffff_ffff
}

fn is_odd(value: u64) -> bool {
    value & 1 == 1
}

fn fibonacci(n: u64) -> u64 {
    let step = |(a, b), _| (b, a + b);
    (0..n).fold((0, 1), step).0
}

/// HW_ID and XCC_ID of a work-item: workgroup n is on engine n of a GPU before gfx942, and on XCC n of a gfx942.
fn hardware_ids(target: Target, item: usize) -> [u64; 2] {
    let workgroup = (item / WORKGROUP) as u64;
    let simd = (item % WORKGROUP / WAVE) as u64;
    match target {
        Target::Gfx906 | Target::Gfx908 | Target::Gfx90a => [workgroup << 13 | simd << 4, 0],
        _ => [simd << 4, workgroup],
    }
}

#[test]
fn hip_kernels() {
    let language = [
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-nogpuinc",
        "-Wall",
        "-Wextra",
        "-Werror",
    ];
    check(
        "waves.hip",
        &language,
        &[
            ("ballots", |_, input| {
                by_wave(input, |wave, lane| {
                    let odd_below = count(&wave[..lane], is_odd);
                    match is_odd(wave[lane]) {
                        true => count(wave, is_odd) << 32 | odd_below,
                        false => odd_below,
                    }
                })
            }),
            ("broadcasts", |_, input| {
                by_wave(input, |wave, lane| {
                    let chosen = wave[(wave[0] & 63) as usize] & 0xffff_ffff;
                    let in_branch = |value: u64| value & 2 != 0;
                    let first = wave.iter().find(|&&value| in_branch(value));
                    match first {
                        Some(first) if in_branch(wave[lane]) => chosen << 32 | first & 0xffff_ffff,
                        _ => chosen << 32,
                    }
                })
            }),
            ("hardware_ids", |target, input| {
                each(input, |item, _| {
                    let [hw_id, xcc_id] = hardware_ids(target, item);
                    xcc_id << 32 | hw_id
                })
            }),
            ("copies", |target, input| {
                let mut copies = vec![0u64; 256];
                for (item, value) in input.iter().enumerate() {
                    let workgroup = item / WORKGROUP;
                    let copy = match target {
                        Target::Gfx906 | Target::Gfx908 | Target::Gfx90a => workgroup << 4,
                        _ => workgroup << 6,
                    };
                    copies[copy] = copies[copy].wrapping_add(*value);
                }
                first(&copies)
            }),
            ("shifts", |_, input| {
                each(input, |item, value| {
                    let amount = item % 64;
                    value << amount ^ value >> (63 - amount) ^ (value as i64 >> amount) as u64
                })
            }),
            ("prefix_sums", |_, input| {
                by_wave(input, |wave, lane| {
                    low_sum(wave) << 32 | low_sum(&wave[..=lane])
                })
            }),
            ("adds", |_, input| {
                each(input, |item, _| {
                    let other = input[item ^ 1];
                    if other % 3 == 0 { other } else { 0 }
                })
            }),
            ("adds_with_results", |_, input| {
                each(input, |_, value| match value % 3 {
                    0 => value.wrapping_mul(2),
                    _ => 0,
                })
            }),
            ("adds_to_one", |_, input| {
                let odd = input.iter().copied().filter(|&value| is_odd(value));
                first(&[sum(odd), count(input, |value| !is_odd(value))])
            }),
            ("adds_for_waves", |_, input| {
                first(&[count(input, |value| value % 5 < 2)])
            }),
            ("divergent_loops", |_, input| {
                each(input, |_, value| {
                    let step = |&value: &u64| match value {
                        1 => None,
                        _ if is_odd(value) => Some(3 * value + 1),
                        _ => Some(value / 2),
                    };
                    let start = Some(value % 97 + 1);
                    let rounds = std::iter::successors(start, step).count() as u64 - 1;
                    ((rounds / 4) << 32) | rounds
                })
            }),
            ("ends", |_, input| {
                each(input, |item, value| match item / WAVE % 2 {
                    0 => value.wrapping_add(1),
                    _ => value,
                })
            }),
            ("recursion", |_, input| {
                each(input, |_, value| fibonacci(value % 11))
            }),
            ("indirect_calls", |_, input| {
                each(input, |_, value| {
                    (0..3).fold(value, |value, round| match (value ^ round) & 3 {
                        0 => value.wrapping_add(1),
                        1 => value.wrapping_mul(3),
                        2 => !value,
                        _ => fibonacci(value % 9),
                    })
                })
            }),
        ],
    );
}

#[test]
fn whole_wave_code() {
    let language = ["-x", "ir", "--target=amdgcn-amd-amdhsa"];
    check(
        "whole_wave.ll",
        &language,
        &[("odd_sums", |_, input| {
            by_wave(input, |wave, lane| {
                let odd = wave.iter().filter(|&&value| is_odd(value));
                if is_odd(wave[lane]) { low_sum(odd) } else { 0 }
            })
        })],
    );
}
