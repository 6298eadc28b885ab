//! Every kernel of testdata/kernels gives on the modelled GPU the results of its source on the
//! host: equal bytes in every buffer and equal counts in every function, whichever way it counts.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};
use rocov::format::profraw::Sum;

use crate::support::artifacts::{files_with_extension, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{
    Counters, clang, code_object, code_object_counting, device_only, has_all_levels, host_oracle,
    kernel_source,
};
use crate::support::compilers::Compiler;
use crate::support::gpu::{Stack, the_profile};
use crate::support::profile::{Functions, functions, merge};
use crate::support::spec::expand;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
const TARGETS: [&str; 2] = ["gfx90a", "gfx942"];

/// Kernels with recursive functions or with loops that lanes leave one by one. LLVM decides which lanes are active
/// together there, and decides by how the code is instrumented (docs/src/internals/counting.md).
const REGROUPED: [&str; 3] = ["callees", "calls", "mandelbrot"];

/// The place of a kernel in the list.
fn place_of(kernel: &str) -> usize {
    let place = COMPARED.iter().position(|name| *name == kernel);
    place.expect("a kernel of the list")
}

/// The levels of a kernel, with their numbers. Compilers take most of the time, so each kernel has every second level, for one
/// target in turn, unless all are asked for.
fn levels_of(kernel: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let (all, place) = (has_all_levels(), place_of(kernel));
    let levels = LEVELS.into_iter().enumerate();
    levels.filter(move |(number, _)| all || (number + place) % 2 == 0)
}

/// The targets of a kernel at the level with this number.
fn targets_of(kernel: &str, level: usize) -> Vec<&'static str> {
    if has_all_levels() {
        return TARGETS.to_vec();
    }
    vec![TARGETS[(level / 2 + place_of(kernel) / 2) % TARGETS.len()]]
}

/// A further target, for `amdgcn-run`: its name in messages, its processor, and clang's other flags.
struct Variant {
    name: &'static str,
    processor: &'static str,
    flags: &'static [&'static str],
}

const VARIANTS: [Variant; 14] = [
    variant("gfx906", "gfx906", &[]),
    variant("gfx908", "gfx908", &[]),
    variant("gfx950", "gfx950", &[]),
    variant("gfx9-4-generic", "gfx9-4-generic", &[]),
    variant("gfx1030", "gfx1030", &[]),
    variant("gfx1030-wave64", "gfx1030", &["-mwavefrontsize64"]),
    variant("gfx10-3-generic", "gfx10-3-generic", &[]),
    variant("gfx1100", "gfx1100", &[]),
    variant("gfx1100-wave64", "gfx1100", &["-mwavefrontsize64"]),
    variant("gfx11-generic", "gfx11-generic", &[]),
    variant("gfx1201", "gfx1201", &[]),
    variant("gfx1201-wave64", "gfx1201", &["-mwavefrontsize64"]),
    variant("gfx12-generic", "gfx12-generic", &[]),
    variant("gfx1250", "gfx1250", &[]),
];

const fn variant(
    name: &'static str,
    processor: &'static str,
    flags: &'static [&'static str],
) -> Variant {
    Variant {
        name,
        processor,
        flags,
    }
}

impl Variant {
    fn is_rdna(&self) -> bool {
        ["gfx10", "gfx11", "gfx12"]
            .iter()
            .any(|prefix| self.processor.starts_with(prefix))
    }

    /// Returns whether a kernel is for this target: RDNA and gfx906 have no such matrix instructions, and one source
    /// counts on waves of 64.
    fn takes(&self, kernel: &str) -> bool {
        match kernel {
            "mfma" => !self.is_rdna() && self.processor != "gfx906",
            "wave" => !self.is_rdna() || self.name.ends_with("-wave64"),
            _ => true,
        }
    }

    fn object(&self, kernel: &str, level: &str, counters: Counters) -> PathBuf {
        // The first version with generic targets.
        const VERSION: u8 = 6;
        device_only(clang(), &[self.processor], VERSION)
            .arguments([level])
            .arguments(self.flags.iter().copied())
            .counting()
            .counting_in(counters)
            .source(kernel_source(kernel))
            .output(&format!("{kernel}.{}{level}", self.name))
    }
}

/// The further targets of a kernel at the level with this number: all, or one in turn.
fn variants_of(kernel: &str, level: usize) -> Vec<&'static Variant> {
    let release = Compiler::usual().release;
    if release >= 23 {
        println!(
            "not run: clang {release} on further targets: amdgcn-run writes no profile of its code"
        );
        return Vec::new();
    }
    let all: Vec<_> = VARIANTS
        .iter()
        .filter(|variant| variant.takes(kernel))
        .collect();
    if has_all_levels() {
        return all;
    }
    vec![all[(place_of(kernel) + level) % all.len()]]
}

/// The counters of the further targets: LLVM's, or all kinds.
fn counters_of_variants() -> Vec<Counters> {
    match has_all_levels() {
        true => Counters::all(),
        false => vec![Counters::Llvm],
    }
}

macro_rules! kernels_match_host {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                matches_host(stringify!($name));
            }
        )*

        const COMPARED: &[&str] = &[$(stringify!($name)),*];
    };
}

kernels_match_host![
    atomics, bitonic, branches, callees, calls, collatz, dots, ends, fmath, grid, halves,
    histogram, image, indirect, intdiv, mandelbrot, many, matmul, mfma, reduce, saturate, scratch,
    spins, stencil, steps, templates, vecadd, wave, wide,
];

#[test]
fn every_source_is_compared() {
    let stems = |extension| -> Vec<String> {
        files_with_extension("testdata/kernels", extension)
            .iter()
            .map(|path| {
                path.file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    };
    assert_eq!(stems("hip"), COMPARED);
    assert_eq!(stems("spec"), COMPARED);
}

/// Each place at which counts go to memory has code for each of them. A function with many of both must not grow by
/// their product.
#[test]
fn the_code_for_many_loops_is_bounded() {
    // The comparison with the host compiles these too. Another version would take the compiler half a minute more.
    let (target, level) = ("gfx90a", "-O2");
    let version = Stack::for_target(target).code_object_version();
    let size = |counters| {
        let path = code_object_counting("spins", target, level, version, counters);
        let bytes = std::fs::read(path).expect("a code object");
        let elf = object::File::parse(&*bytes).expect("an ELF");
        let text = elf.section_by_name(".text").expect("code");
        text.size()
    };
    for counters in Counters::all() {
        let (size, llvm) = (size(counters), size(Counters::Llvm));
        assert!(size < 12 * llvm, "{counters:?}: {size} and {llvm} bytes");
    }
}

#[test]
fn other_stacks_agree() {
    let name = "collatz";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let spec = expand(&template(name), directory.path());
    let host = on_host(name, "-O1", &spec, &fresh(directory.path(), "host"));
    for (number, stack) in Stack::others().into_iter().enumerate() {
        for target in TARGETS {
            let directory = fresh(directory.path(), &format!("{number}-{target}"));
            let object = code_object(name, target, "-O1", stack.code_object_version());
            let device = on_device(&object, target, stack, &spec, &directory);
            assert_same(&format!("{name} on {target} by {stack:?}"), &device, &host);
        }
    }
}

/// The results of one run: the buffers, in order, and the counts.
struct Outcome {
    buffers: Vec<Vec<u8>>,
    functions: Functions,
    uniform: Uniform,
}

/// The uniform counters of each function, by the hashes of its name and structure.
type Uniform = BTreeMap<(u64, u64), Vec<u64>>;

fn matches_host(name: &str) {
    for (number, level) in levels_of(name) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spec = expand(&template(name), directory.path());
        let host = on_host(name, level, &spec, &fresh(directory.path(), "host"));
        assert!(
            host.functions.values().any(|function| function.calls > 0),
            "the host counted nothing: {:?}",
            host.functions
        );
        assert!(!host.buffers.is_empty(), "the host wrote no buffer");
        for target in targets_of(name, number) {
            let stack = Stack::for_target(target);
            let mut of_llvm = Uniform::new();
            for counters in Counters::all() {
                let directory = fresh(directory.path(), &format!("{target}-{counters:?}"));
                let version = stack.code_object_version();
                let object = code_object_counting(name, target, level, version, counters);
                let device = on_device(&object, target, stack, &spec, &directory);
                let what = format!("{name} {level} on {target} with {counters:?} counters");
                assert_same(&what, &device, &host);
                match counters {
                    Counters::Llvm => of_llvm = device.uniform,
                    Counters::Pass => {
                        let mut all = device.uniform.values();
                        assert!(all.all(Vec::is_empty), "{what}: {:?}", device.uniform);
                    }
                    Counters::PassUniform if REGROUPED.contains(&name) => {
                        assert!(device.uniform.keys().eq(of_llvm.keys()), "{what}");
                        let mut found = device.uniform.values().zip(of_llvm.values());
                        assert!(
                            found.all(|(ours, llvms)| ours.len() == llvms.len()),
                            "{what}"
                        );
                    }
                    Counters::PassUniform => assert_eq!(device.uniform, of_llvm, "{what}"),
                }
            }
        }
        for variant in variants_of(name, number) {
            for counters in counters_of_variants() {
                let what = format!("{}-{counters:?}", variant.name);
                let directory = fresh(directory.path(), &what);
                let object = variant.object(name, level, counters);
                let stack = Stack::Interpreter;
                let device = on_device(&object, variant.name, stack, &spec, &directory);
                assert_same(&format!("{name} {level} on {what}"), &device, &host);
            }
        }
    }
}

fn template(name: &str) -> PathBuf {
    repository("testdata/kernels")
        .join(name)
        .with_extension("spec")
}

fn fresh(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    std::fs::create_dir(&path).expect("a fresh directory");
    path
}

fn on_host(name: &str, level: &str, spec: &Path, directory: &Path) -> Outcome {
    let raw = directory.join("host.profraw");
    let mut oracle = limited(host_oracle(name, level));
    oracle
        .arg(spec)
        .arg(directory)
        .env("LLVM_PROFILE_FILE", &raw);
    run(&mut oracle).success();
    outcome(directory, raw)
}

fn on_device(object: &Path, target: &str, stack: Stack, spec: &Path, directory: &Path) -> Outcome {
    stack
        .run(target, object, spec, directory)
        .success()
        .silently();
    outcome(directory, the_profile(directory))
}

fn outcome(directory: &Path, raw: PathBuf) -> Outcome {
    let merged = directory.join("merged.profdata");
    let counted = Sum::new(std::fs::read(&raw).expect("a profile")).and_then(|sum| sum.functions());
    let counted = counted.expect("a good profile").into_iter();
    merge(&[raw], &merged);
    let buffers = (0..)
        .map(|number| directory.join(format!("buf{number}.bin")))
        .take_while(|path| path.exists())
        .map(|path| std::fs::read(path).expect("a file that exists can be read"))
        .collect();
    Outcome {
        buffers,
        functions: functions(&merged),
        uniform: counted
            .map(|(function, counts)| (function, counts.uniform))
            .collect(),
    }
}

fn assert_same(what: &str, device: &Outcome, host: &Outcome) {
    assert_same_buffers(what, &device.buffers, &host.buffers);
    assert_same_functions(what, &device.functions, &host.functions);
}

fn assert_same_buffers(what: &str, device: &[Vec<u8>], host: &[Vec<u8>]) {
    assert_eq!(device.len(), host.len(), "{what}: number of buffers");
    for (number, (device, host)) in device.iter().zip(host).enumerate() {
        let differing = device
            .iter()
            .zip(host)
            .position(|(device, host)| device != host);
        assert!(
            device.len() == host.len() && differing.is_none(),
            "{what}: buffer {number} differs at byte {differing:?} ({} and {} bytes)",
            device.len(),
            host.len()
        );
    }
}

fn assert_same_functions(what: &str, device: &Functions, host: &Functions) {
    for (name, expected) in host {
        assert_eq!(
            device.get(name),
            Some(expected),
            "{what}: {name} (device, host)"
        );
    }
    assert_eq!(
        device.len(),
        host.len(),
        "{what}: functions {:?}",
        device.keys()
    );
}
