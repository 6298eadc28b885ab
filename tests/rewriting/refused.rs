//! Functions whose callers stay as they are, and code objects that stay as a whole.

use rocov::instrument::amdgcn::{AmdgcnOptions, Refusal, Sharing, instrument};
use rocov_tests::compile::{clang, code_object, device_only};

use crate::run::compare_without;

/// Two kernels that call a function. One has an instruction that a copy cannot have, which no wave executes.
const SOURCE: &str = r#"
#include "dev.h"
__device__ __attribute__((noinline)) u32 twice(u32 x) { return x & 1 ? 2 * x : x + 7; }
__global__ void foreign(u32 *out, u32 n) {
  u32 i = global_x();
  if (n == 12345) asm volatile("s_cbranch_cdbgsys 0");
  for (u32 turn = 0; turn < 3; ++turn) out[i] = twice(out[i] + i);
}
__global__ void known(u32 *out, u32 n) { out[global_x()] = twice(n); }
REGISTER_KERNEL(foreign);
REGISTER_KERNEL(known);
"#;

#[test]
fn functions_count_for_kernels_that_stay_as_they_are() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("foreign.hip");
    std::fs::write(&path, SOURCE).expect("a test can write into its directory");
    let buffer = directory.path().join("buffer");
    std::fs::write(&buffer, vec![1; 4 * 256]).expect("a test can write into its directory");
    let object = device_only(clang(), &["gfx942"], 6)
        .arguments(["-O1"])
        .source(&path)
        .output("foreign.gfx942");
    let object = std::fs::read(object).expect("the compiler's output");
    for kernel in ["_Z7foreignPjj", "_Z5knownPjj"] {
        let spec = directory.path().join("spec");
        let launch = format!(
            "buf {}\nlaunch {kernel} 2 1 1 128 1 1 p0 hc8000000\n",
            buffer.display()
        );
        std::fs::write(&spec, launch).expect("a test can write into its directory");
        for sharing in [Sharing::Separate, Sharing::Borrowed] {
            let options = AmdgcnOptions {
                sharing,
                ..AmdgcnOptions::default()
            };
            compare_without(&["_Z7foreignPjj"], kernel, &object, &spec, &options);
        }
    }
}

/// An operand of gfx1250 names a register by a mode of the wave. The rewriter has no code for RDNA 2.
#[test]
fn code_for_unsupported_targets_is_refused() {
    for processor in ["gfx1030", "gfx1250"] {
        let object =
            std::fs::read(code_object("histogram", processor, "-O1", 5)).expect("a code object");
        let refused = instrument(&object, &AmdgcnOptions::default());
        let Err(Refusal::Target { target, supported }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(target, processor);
        assert!(!supported.contains(processor), "{supported}");
    }
}

#[test]
fn instrumented_code_is_not_instrumented_again() {
    let object =
        std::fs::read(code_object("histogram", "gfx90a", "-O1", 5)).expect("a code object");
    let options = AmdgcnOptions::default();
    let once = instrument(&object, &options).expect("it has one kernel");
    let section = ".rocov.map";
    assert_eq!(
        instrument(&once.code, &options),
        Err(Refusal::Instrumented { section })
    );
}

/// The file of the instrumented code has room for variables that take none in the original.
#[test]
fn code_behind_large_variables_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let with = |megabytes: u64| {
        let path = directory.path().join(format!("{megabytes}.hip"));
        let source = format!(
            "#include \"dev.h\"\n__device__ char area[{megabytes}ull << 20];\n\
             __global__ void touch(u32 *out, u32 n) {{ out[0] = area[n]++; }}\nREGISTER_KERNEL(touch);\n"
        );
        std::fs::write(&path, source).expect("a test can write into its directory");
        let object = device_only(clang(), &["gfx90a"], 5)
            .arguments(["-O1"])
            .source(&path)
            .output("large.gfx90a");
        std::fs::read(object).expect("the compiler's output")
    };
    let options = AmdgcnOptions::default();
    instrument(&with(63), &options).expect("it has one kernel");
    let refused = instrument(&with(65), &options);
    let Err(Refusal::Variables { bytes, max }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(max, 64 << 20);
    assert!((65 << 20..66 << 20).contains(&bytes), "{bytes}");
}

/// Names of sections that instrumented code gets come after those of the original.
#[test]
fn a_section_without_a_name_gets_none_of_the_new_ones() {
    let object =
        std::fs::read(code_object("histogram", "gfx90a", "-O1", 5)).expect("a code object");
    let number = |at: usize, size: usize| {
        let bytes = object[at..at + size].iter().rev();
        bytes.fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    // "ELF Header" and "Sections" of the System V ABI: e_shoff, e_shnum and e_shstrndx; sh_name and sh_size.
    let (headers, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let names_bytes = number(headers + 64 * names + 32, 8);
    for behind in [0, 1, ".rocov.text\0.rocov.counters\0".len()] {
        let mut damaged = object.clone();
        let name = (names_bytes + behind) as u32;
        // The last one is not that of a section that is loaded.
        let last = headers + 64 * (count - 1);
        damaged[last..last + 4].copy_from_slice(&name.to_le_bytes());
        let refused = instrument(&damaged, &AmdgcnOptions::default());
        let text = "the name of a section is past the table of names".to_owned();
        assert_eq!(refused, Err(Refusal::Damaged(text)), "{behind} behind");
    }
}
