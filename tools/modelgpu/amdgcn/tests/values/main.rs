//! Compares numbers with sources that share no code with the model: Clang, which folds functions of constants and
//! uses output modifiers only if the hardware obeys them, and the host's division.

use std::path::{Path, PathBuf};

use modelgpu_amdgcn::{Generation, Target};
use modelgpu_testing::{arbitrary, compile_hip, compiled_targets, run, text, tool};

const WORKGROUP: usize = 128;

/// The instructions that Clang computes itself for constants. Each has a kernel with its name.
const FOLDED: [&str; 11] = [
    "fract_f16",
    "fract_f32",
    "fract_f64",
    "sin_f16",
    "sin_f32",
    "cos_f16",
    "cos_f32",
    "frexp_mant_f32",
    "frexp_mant_f64",
    "frexp_exp_i32_f32",
    "frexp_exp_i32_f64",
];

fn compile(target: Target, options: &[&str], directory: &Path) -> (Vec<u8>, String) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/values/kernels.hip");
    let object: PathBuf = directory.join("kernels.co");
    let code = compile_hip(&source, target.name(), options, &object);
    let listing = tool("llvm-objdump-22", &["-d", text(&object)]);
    (code, listing)
}

/// The kernel's part of a listing.
fn body<'a>(listing: &'a str, kernel: &str) -> &'a str {
    let (_, rest) = listing
        .split_once(&format!("<{kernel}>:"))
        .expect("the kernel's listing");
    rest.split("\n\n").next().unwrap_or_default()
}

/// Returns whether a value is a NaN, of which Clang and the hardware have different ones.
fn is_nan(kernel: &str, bits: u64) -> bool {
    match kernel.rsplit_once('_') {
        _ if kernel.contains("exp_i32") => false,
        Some((_, "f16")) => bits & 0x7fff > 0x7c00,
        Some((_, "f32")) => f32::from_bits(bits as u32).is_nan(),
        _ => f64::from_bits(bits).is_nan(),
    }
}

#[test]
fn functions_have_the_values_that_clang_computes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let input = [0; WORKGROUP];
    for target in compiled_targets() {
        let (hidden, in_registers) = compile(target, &["-O1", "-DHIDDEN"], directory.path());
        let (folded, constant) = compile(target, &["-O1"], directory.path());
        for kernel in FOLDED {
            let mnemonic = format!("v_{kernel}");
            assert!(
                body(&in_registers, kernel).contains(&mnemonic),
                "{target} {kernel}"
            );
            assert!(
                !body(&constant, kernel).contains(&mnemonic),
                "{target} {kernel}"
            );
            let found = run(&hidden, kernel, &input, WORKGROUP);
            let wanted = run(&folded, kernel, &input, WORKGROUP);
            assert!(wanted.iter().any(|value| *value != 0), "{target} {kernel}");
            for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let agree = found == wanted || is_nan(kernel, *found) && is_nan(kernel, *wanted);
                assert!(
                    agree,
                    "{target} {kernel} of number {place}: {found:#x}, Clang has {wanted:#x}"
                );
            }
        }
    }
}

/// Every pair of exponents of single precision, with significands that the seed determines: denominators in the high
/// halves.
fn singles() -> Vec<u64> {
    let fractions = arbitrary(37, 256 * 256);
    let pairs = fractions.into_iter().enumerate().map(|(pair, fraction)| {
        let exponents = (pair as u64 >> 8) << 23 | (pair as u64 & 255) << 55;
        exponents | fraction & 0x807f_ffff_807f_ffff
    });
    pairs.collect()
}

/// Numbers of double precision, each with its numerator or denominator: any, and pairs of exponents whose quotients
/// are about the smallest or the largest numbers.
fn doubles() -> Vec<u64> {
    let edges = [
        0, 1, 2, 52, 53, 54, 254, 255, 767, 768, 769, 1021, 1022, 1023, 1024, 1074, 1075, 1076,
        2044, 2045, 2046,
    ];
    let mut numbers = arbitrary(38, 128 * 128);
    for (pair, numbers) in numbers.chunks_exact_mut(2).enumerate() {
        let Some(edge) = edges.get(pair % 32) else {
            continue;
        };
        let first = numbers[0] >> 52 & 0x7ff;
        let second = first.saturating_sub(*edge);
        numbers[1] = numbers[1] & !(0x7ff << 52) | second << 52;
    }
    numbers
}

#[test]
fn quotients_are_those_of_the_host() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (singles, doubles) = (singles(), doubles());
    for target in compiled_targets() {
        let (code, listing) = compile(target, &["-O1"], directory.path());
        for kernel in ["quotients_f32", "quotients_f64"] {
            assert!(
                body(&listing, kernel).contains("v_div_fixup"),
                "{target} {kernel}"
            );
        }
        let found = run(&code, "quotients_f32", &singles, WORKGROUP);
        let mut wrong = Vec::new();
        for (pair, found) in singles.iter().zip(found) {
            let [numerator, denominator] = [*pair as u32, (*pair >> 32) as u32].map(f32::from_bits);
            let (found, wanted) = (f32::from_bits(found as u32), numerator / denominator);
            if found.to_bits() != wanted.to_bits() && !(found.is_nan() && wanted.is_nan()) {
                wrong.push(format!(
                    "{numerator:e} / {denominator:e}: {found:e} for {wanted:e}"
                ));
            }
        }
        let found = run(&code, "quotients_f64", &doubles, WORKGROUP);
        for (place, found) in found.into_iter().enumerate() {
            let [numerator, denominator] =
                [place, place ^ 1].map(|place| f64::from_bits(doubles[place]));
            let (found, wanted) = (f64::from_bits(found), numerator / denominator);
            if found.to_bits() != wanted.to_bits() && !(found.is_nan() && wanted.is_nan()) {
                wrong.push(format!(
                    "{numerator:e} / {denominator:e}: {found:e} for {wanted:e}"
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{target}: {} quotients differ: {}",
            wrong.len(),
            wrong[..wrong.len().min(20)].join("; ")
        );
    }
}

#[test]
fn output_modifiers_are_obeyed_if_clang_uses_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Sums of numbers from 1 to 4 are normal, and so are their products.
    let input = arbitrary(39, WORKGROUP).into_iter();
    let input = input.map(|bits| bits & 0x00ff_ffff_00ff_ffff | 0x3f80_0000_3f80_0000);
    let input: Vec<u64> = input.collect();
    let wanted = input.iter().map(|bits| {
        let [a, b] = [*bits as u32, (*bits >> 32) as u32].map(f32::from_bits);
        u64::from(((a + b) * 4.0).to_bits())
    });
    let wanted: Vec<u64> = wanted.collect();
    let without_ieee = ["-mno-amdgpu-ieee", "-fno-honor-nans"];
    for target in compiled_targets() {
        for (ieee, flushes) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut options = vec!["-O1", "-fno-signed-zeros"];
            if !ieee {
                options.extend(without_ieee);
            }
            options.extend(flushes.then_some("-fgpu-flush-denormals-to-zero"));
            let (code, listing) = compile(target, &options, directory.path());
            let how = format!("{target}, IEEE {ieee}, denormals flushed {flushes}");
            let uses = body(&listing, "products_f32").contains("mul:4");
            // Clang never uses one on RDNA 4.
            assert_eq!(
                uses,
                flushes && !ieee && target.generation() != Generation::Gfx12,
                "{how}"
            );
            let found = run(&code, "products_f32", &input, WORKGROUP);
            assert_eq!(found, wanted, "{how}");
        }
    }
}
