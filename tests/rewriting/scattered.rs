//! Kernels that leave few registers free, which lie between others.

use std::ops::Range;
use std::path::Path;

use rocov::instrument::amdgcn::{AmdgcnOptions, instrument};
use rocov::support::counting::Counting;
use rocov_tests::compile::{clang, device_only};

use crate::run::compare;

/// The scalar registers that the kernel does not name: one pair, and two others.
const FREE: [u32; 4] = [40, 41, 63, 91];

/// Instructions that name all scalar registers before `end` but these.
fn scalars(end: u32, free: &[u32]) -> String {
    let named = (0..end).filter(|number| !free.contains(number));
    named
        .map(|number| format!("s_mov_b32 s{number}, 0\\n"))
        .collect()
}

/// Instructions that name all vector registers but these.
fn vectors(free: Range<u32>) -> String {
    let named = (0..256).filter(|number| !free.contains(number));
    named
        .map(|number| format!("v_mov_b32 v{number}, 0\\n"))
        .collect()
}

/// The source of a kernel with instructions that no wave executes.
fn source(named: &str) -> String {
    format!(
        r#"#include "dev.h"
__global__ void scattered(u32 *out, u32 n) {{
  u32 i = global_x();
  if (n == 12345) asm volatile("{named}");
  u32 x = out[i] + i, turns = 0;
  while (x > 1) {{
    x = x & 1 ? 3 * x + 1 : x / 2;
    ++turns;
  }}
  if (i < n) out[i] = turns;
}}
REGISTER_KERNEL(scattered);
"#
    )
}

/// Compiles a kernel with these instructions, and calls `check` with it and the file that launches it.
fn with_kernel(target: &str, named: &str, check: impl FnOnce(&[u8], &Path)) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name);
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(place(name), bytes).expect("a test can write into its directory");
    };
    write("buffer", &[1; 4 * 256]);
    let launch = format!(
        "buf {}\nlaunch _Z9scatteredPjj 2 1 1 128 1 1 p0 hc8000000\n",
        place("buffer").display()
    );
    write("spec", launch.as_bytes());
    write("scattered.hip", source(named).as_bytes());
    let object = device_only(clang(), &[target], 6)
        .arguments(["-O2"])
        .source(place("scattered.hip"))
        .output(&format!("scattered.{target}"));
    let object = std::fs::read(object).expect("the compiler's output");
    check(&object, &place("spec"));
}

/// Options for counters, and for marks of what was reached.
fn both() -> [AmdgcnOptions; 2] {
    [Counting::Exact, Counting::Reached].map(|counting| AmdgcnOptions {
        counting,
        ..AmdgcnOptions::default()
    })
}

const TARGETS: [(&str, u32); 3] = [("gfx90a", 102), ("gfx942", 102), ("gfx1100", 106)];

#[test]
fn a_pair_and_one_more_scalar_register_are_enough() {
    let options = AmdgcnOptions::default();
    for (target, end) in TARGETS {
        with_kernel(target, &scalars(end, &FREE), |object, spec| {
            for options in both() {
                let (plain, rewritten) = compare(target, object, spec, &options);
                assert!(rewritten > plain, "{target}");
            }
        });
        // Without the pair there is no place for an address.
        with_kernel(target, &scalars(end, &FREE[1..]), |object, _| {
            assert!(instrument(object, &options).is_err(), "{target}");
        });
    }
}

#[test]
fn vector_registers_between_others_hold_counters() {
    let options = AmdgcnOptions::default();
    for (target, end) in TARGETS {
        // Counters in lanes of one vector register.
        let named = scalars(end, &FREE) + &vectors(100..101);
        with_kernel(target, &named, |object, spec| {
            for options in both() {
                compare(target, object, spec, &options);
            }
        });
        // Registers in which each lane counts itself.
        with_kernel(target, &vectors(97..110), |object, spec| {
            for options in both() {
                compare(target, object, spec, &options);
            }
        });
        let named = scalars(end, &FREE) + &vectors(0..0);
        with_kernel(target, &named, |object, _| {
            assert!(instrument(object, &options).is_err(), "{target}");
        });
    }
}
