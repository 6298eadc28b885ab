//! Executes kernels that Clang compiled for gfx1250, and compares with values from arithmetic. The kernels use what
//! older targets lack: more than 256 vector registers, signed and scaled offsets, scratch of other lanes, integers of
//! 64 bits, and copies to LDS.
#![allow(clippy::print_stdout, reason = "a test reports what it did not run")]

use std::path::{Path, PathBuf};

use modelgpu_amdgcn::Program;
use modelgpu_testing::{arbitrary, compile_hip_by, has_all_levels, repository, run_in, text};

const ITEMS: usize = 192;
const WORKGROUP: usize = 64;

/// The compiler of most tests and, if all levels are asked for, the one that `tools/stacks` unpacks.
fn compilers() -> Vec<PathBuf> {
    if !has_all_levels() {
        return vec!["clang++-22".into()];
    }
    let unpacked = repository(".stacks/clang-23/usr/lib/llvm-23/bin/clang++");
    if !unpacked.exists() {
        println!("not run: kernels by Clang 23: it is not unpacked (tools/stacks fetch clang-23)");
        return vec!["clang++-22".into()];
    }
    vec!["clang++-22".into(), unpacked]
}

fn compile(compiler: &Path, directory: &Path) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gfx1250/kernels.hip");
    let object = directory.join("kernels.co");
    compile_hip_by(text(compiler), &source, "gfx1250", &["-O2"], &object)
}

/// Runs a kernel on the input, and requires these instructions. Returns the output.
fn run(object: &[u8], kernel: &str, input: &[u64], instructions: &[&str]) -> Vec<u64> {
    let mut program = Program::load(object).expect("an object that was just linked");
    program.watch_hazards();
    let output = run_in(&mut program, kernel, input, WORKGROUP);
    assert!(
        program.hazards().is_empty(),
        "{kernel}: {:?}",
        program.hazards()
    );
    let executed = program.executed_mnemonics();
    for instruction in instructions {
        assert!(executed.contains(instruction), "{kernel}: {instruction}");
    }
    output
}

/// The results of one work-item, from the input and its number.
type Expected = fn(&[u64], usize) -> u64;

const KERNELS: &[(&str, &[&str], Expected)] = &[
    ("many_registers", &["s_set_vgpr_msb"], many_registers),
    ("signed_offsets", &["global_load_u8"], |input, item| {
        let back = (input[item] % (item as u64 + 1)) as usize;
        let forth = (input[item] as u32 % (item as u32 + 1)) as usize;
        let byte = input[item - back.div_ceil(8)].to_le_bytes()[(8 - back % 8) % 8];
        input[item - back] ^ input[forth] ^ u64::from(byte) << 8
    }),
    ("scratch_offsets", &["flat_load_b32"], |input, item| {
        let number = |place: u64| u64::from((input[item] as u32).wrapping_add(place as u32));
        number(input[item] % 64) << 32 | number(input[item] % 32 + 3)
    }),
    ("scratch_of_others", &["flat_load_b64"], |input, item| {
        input[item ^ 1]
    }),
    ("scratch_of_one", &["flat_load_b64"], |input, item| {
        input[item & !31]
    }),
    (
        "long_integers",
        &["v_mul_u64", "v_min_u64", "v_max_i64", "v_mad_nc_u64_u32"],
        |input, item| {
            let a = input[item];
            let b = a.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let most = (a as i64).max(b as i64) as u64;
            let product = most.wrapping_mul(a.wrapping_add(0x1234_5678_9abc_def0));
            let short = u64::from(a as u32) * u64::from(b as u32);
            a.min(b).wrapping_sub(product).wrapping_add(short)
        },
    ),
    (
        "brain_floats",
        &[
            "v_pk_add_bf16",
            "v_pk_mul_bf16",
            "v_pk_fma_bf16",
            "v_pk_min_num_bf16",
            "v_pk_max_num_bf16",
            "v_fma_mix_f32_bf16",
        ],
        brain_floats,
    ),
    (
        "copies_to_lds",
        &[
            "global_load_async_to_lds_b32",
            "global_store_async_from_lds_b32",
            "s_wait_asynccnt",
        ],
        |input, item| {
            let low = (input[item] as u32).wrapping_add(1);
            input[item] & !0xffff_ffff | u64::from(low)
        },
    ),
];

fn many_registers(input: &[u64], item: usize) -> u64 {
    const MANY: usize = 400;
    let first = input[item] as u32;
    let mut values: [u32; MANY] = std::array::from_fn(|place| first.wrapping_mul(place as u32 + 1));
    for _ in 0..first % 5 + 1 {
        for place in 0..MANY {
            let product = values[place].wrapping_mul(values[(place * 7 + 3) % MANY]);
            values[place] = product.wrapping_add(values[(place * 5 + 1) % MANY]);
        }
    }
    let sum = values
        .into_iter()
        .fold(0u32, |sum, value| sum.wrapping_mul(31).wrapping_add(value));
    sum.into()
}

/// The bits of the bfloat16 that is nearest to a whole number, ties to even.
fn brain(number: i64) -> u64 {
    const KEPT: u32 = 8;
    let length = 64 - number.unsigned_abs().leading_zeros();
    let unit = 1i64 << length.saturating_sub(KEPT);
    let (below, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let is_up = 2 * rest > unit || 2 * rest == unit && below % 2 != 0;
    let rounded = (below + i64::from(is_up)) * unit;
    // Exact now.
    u64::from((rounded as f32).to_bits() >> 16)
}

fn brain_floats(input: &[u64], item: usize) -> u64 {
    let bytes = input[item]
        .to_le_bytes()
        .map(|byte| i64::from(byte | 1) - 128);
    let [ax, ay, bx, by, cx, cy, ..] = bytes;
    let pair = |low: i64, high: i64| brain(low) | brain(high) << 16;
    let single = u64::from(((ax * by + cx) as f32).to_bits());
    let parts = [
        pair(ax + bx, ay + by),
        pair(ax * bx, ay * by),
        pair(ax * bx + cx, ay * by + cy),
        pair(ax.min(bx), ay.min(by)),
        pair(bx.max(cx), by.max(cy)),
        single,
        pair(ay * bx + cy, ax * bx + cy),
    ];
    parts
        .into_iter()
        .fold(0u64, |sum, part| sum.wrapping_mul(31).wrapping_add(part))
}

#[test]
fn kernels_have_the_values_of_arithmetic() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let input = arbitrary(11, ITEMS);
    for compiler in compilers() {
        let object = compile(&compiler, directory.path());
        for (kernel, instructions, expected) in KERNELS {
            let found = run(&object, kernel, &input, instructions);
            let wanted: Vec<u64> = (0..ITEMS).map(|item| expected(&input, item)).collect();
            assert_eq!(found, wanted, "{kernel} by {}", compiler.display());
        }
    }
}
