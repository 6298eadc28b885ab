//! Kernels that leave few scalar registers free, none of which lie in a row of three.

use rocov::instrument::amdgcn::{AmdgcnOptions, instrument};
use rocov_tests::compile::{clang, device_only};

use crate::run::compare;

/// The scalar registers that the kernel does not name: one pair, and two others.
const FREE: [u32; 4] = [40, 41, 63, 91];

/// The source of a kernel that names all scalar registers before `end` but these, in code that no wave executes.
fn source(end: u32, free: &[u32]) -> String {
    let named = (0..end).filter(|number| !free.contains(number));
    let named: String = named
        .map(|number| format!("s_mov_b32 s{number}, 0\\n"))
        .collect();
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

#[test]
fn a_pair_and_one_more_scalar_register_are_enough() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let buffer = directory.path().join("buffer");
    std::fs::write(&buffer, vec![1; 4 * 256]).expect("a test can write into its directory");
    let spec = directory.path().join("spec");
    let launch = format!(
        "buf {}\nlaunch _Z9scatteredPjj 2 1 1 128 1 1 p0 hc8000000\n",
        buffer.display()
    );
    std::fs::write(&spec, launch).expect("a test can write into its directory");
    for (target, end) in [("gfx90a", 102), ("gfx942", 102), ("gfx1100", 106)] {
        let compile = |free: &[u32]| {
            let path = directory.path().join(format!("{}.hip", free.len()));
            std::fs::write(&path, source(end, free)).expect("a test can write into its directory");
            let object = device_only(clang(), &[target], 6)
                .arguments(["-O2"])
                .source(&path)
                .output(&format!("scattered.{target}.{}", free.len()));
            std::fs::read(object).expect("the compiler's output")
        };
        let options = AmdgcnOptions::default();
        let (plain, rewritten) = compare(target, &compile(&FREE), &spec, &options);
        assert!(rewritten > plain, "{target}");
        // Without the pair there is no place for an address.
        let made = instrument(&compile(&FREE[1..]), &options);
        assert!(made.is_err(), "{target}");
    }
}
