//! Kernels that call functions: each has copies of them, with registers of its own.

use std::path::{Path, PathBuf};

use rocov::format::codeobject::{CodeObject, Kernel};
use rocov::instrument::amdgcn::{AmdgcnOptions, Sharing, instrument};
use rocov::support::counting::Counting;
use rocov_tests::compile::{clang, device_only};

use crate::occupancy::waves;
use crate::run::compare;

/// Two kernels call the same functions: one needs few registers, and the other one many. A third calls one of them by its
/// address, which the first one stores.
pub(crate) const SOURCE: &str = r#"
#include "dev.h"
using Function = u32 (*)(u32);
__device__ Function stored;
__device__ __noinline__ u32 turns(u32 x) {
  u32 count = 0;
  while (x > 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    ++count;
  }
  return count;
}
__device__ __noinline__ u32 twice(u32 x) { return x % 3 == 0 ? turns(x) : 2 * turns(x + 1); }
__global__ void small(u32 *out, u32 n) {
  u32 i = global_x();
  stored = twice;
  if (i < n)
    out[i] = twice(i + 1);
}
REGISTER_KERNEL(small);
__global__ void wide(u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 kept[72];
  for (u32 k = 0; k < 72; ++k)
    kept[k] = out[(i + k) % n];
  u32 sum = twice(i + 7);
  for (u32 k = 0; k < 72; ++k)
    sum = sum * 31 + kept[k];
  if (i % 5 == 2)
    sum += turns(i);
  out[n + i] = sum;
}
REGISTER_KERNEL(wide);
__global__ void by_address(u32 *out, u32 n) {
  u32 i = global_x();
  if (i < n && stored)
    out[2 * n + i] = stored(i + 3);
}
REGISTER_KERNEL(by_address);
"#;

fn kernels(object: &[u8]) -> Vec<(Kernel, u32)> {
    let parsed = CodeObject::parse(object).expect("an object");
    let memory = parsed.memory().expect("its memory");
    let target = parsed.target().expect("its processor");
    let kernels = parsed.kernels().expect("its kernels").into_iter();
    kernels
        .map(|kernel| {
            let waves = waves(&target, &memory[kernel.descriptor as usize..]);
            (kernel, waves)
        })
        .collect()
}

/// Writes a spec that launches these kernels, and their buffer. Returns the path of the spec.
pub(crate) fn launches(directory: &Path) -> PathBuf {
    const ITEMS: usize = 150;
    let buffer = directory.join("buffer");
    let contents = (0..3 * ITEMS as u32).flat_map(u32::to_le_bytes);
    std::fs::write(&buffer, contents.collect::<Vec<_>>()).expect("a test can write there");
    let spec = directory.join("spec");
    let launches = ["small", "wide", "by_address", "wide"];
    let launches = launches.map(|kernel| {
        let name = format!("_Z{}{kernel}Pjj", kernel.len());
        format!("launch {name} 3 1 1 64 1 1 p0 h96000000\n")
    });
    let text = format!("buf {}\n{}", buffer.display(), launches.concat());
    std::fs::write(&spec, text).expect("a test can write there");
    spec
}

#[test]
fn kernels_have_their_own_copies_of_functions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("copies.hip");
    std::fs::write(&path, SOURCE).expect("a test can write into its directory");
    let spec = launches(directory.path());
    for target in ["gfx90a", "gfx942", "gfx1100", "gfx1201"] {
        for level in ["-O1", "-O3"] {
            let object = device_only(clang(), &[target], 6)
                .arguments([level])
                .source(&path)
                .output(&format!("copies.{target}{level}"));
            let object = std::fs::read(object).expect("the compiler's output");
            let title = format!("copies {target} {level}");
            for sharing in [Sharing::Separate, Sharing::Shared] {
                let options = AmdgcnOptions {
                    sharing,
                    rounds: 3,
                    ..AmdgcnOptions::default()
                };
                for counting in [Counting::Exact, Counting::Reached] {
                    let options = AmdgcnOptions {
                        counting,
                        ..options
                    };
                    compare(&title, &object, &spec, &options);
                }
            }
            // The kernel with few registers still has few of them.
            let made = instrument(&object, &AmdgcnOptions::default());
            let made = made.expect("an object with counters");
            let both = kernels(&object).into_iter().zip(kernels(&made.code));
            for ((kernel, before), (_, after)) in both {
                if kernel.name.contains("small") {
                    assert_eq!(after, before, "{title}: {}", kernel.name);
                }
            }
        }
    }
}
