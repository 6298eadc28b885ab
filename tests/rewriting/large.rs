//! Kernels whose branches are too long for one instruction.

use std::fmt::Write as _;

use rocov::instrument::amdgcn::{AmdgcnOptions, Sharing};
use rocov::support::counting::Counting;
use rocov_tests::compile::{clang, device_only};

use crate::run::compare;

/// The conditions in the loop of the kernel, and the steps under each of them, which have some 20 bytes of code.
const CONDITIONS: u32 = 150;
const STEPS: u32 = 75;

/// A kernel with a loop around many conditions, which calls a function at one of them.
fn source() -> String {
    let mut text = String::from(
        "#include \"dev.h\"\n\
         __device__ __attribute__((noinline)) u32 twice(u32 x) { return x & 1 ? 2 * x : x + 7; }\n\
         __global__ void large(u32 *out, u32 n) {\n\
         u32 i = global_x();\n\
         if (i >= n) return;\n\
         u32 x = i;\n\
         for (u32 turn = 0; turn < 3; ++turn) {\n",
    );
    for number in 0..CONDITIONS {
        let _ = writeln!(text, "if ((x ^ {number}u) % 5 == {}u) {{", number % 5);
        for step in 0..STEPS {
            let (shift, sum) = (1 + (number + step) % 13, step % 60);
            let _ = writeln!(text, "x ^= x << {shift}; x += {sum}u; x ^= x >> {shift};");
        }
        text.push_str("} else x ^= x >> 3;\n");
        if number == CONDITIONS / 2 {
            text.push_str("if (x % 3 == 0) x = twice(x);\n");
        }
    }
    text.push_str("}\nout[i] = x;\n}\nREGISTER_KERNEL(large);\n");
    text
}

#[test]
fn branches_over_long_code_lead_where_they_did() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("large.hip");
    std::fs::write(&path, source()).expect("a test can write into its directory");
    let spec = directory.path().join("spec");
    let buffer = directory.path().join("buffer");
    std::fs::write(&buffer, vec![0; 4 * 200]).expect("a test can write into its directory");
    let launch = format!(
        "buf {}\nlaunch _Z5largePjj 2 1 1 128 1 1 p0 hc8000000\n",
        buffer.display()
    );
    std::fs::write(&spec, launch).expect("a test can write into its directory");
    let object = device_only(clang(), &["gfx942"], 6)
        .arguments(["-O1"])
        .source(&path)
        .output("large.gfx942");
    let object = std::fs::read(object).expect("the compiler's output");
    // A branch reaches 128 KiB.
    assert!(object.len() > 3 << 16, "{} bytes", object.len());
    for sharing in [Sharing::Separate, Sharing::Shared] {
        let options = AmdgcnOptions {
            sharing,
            rounds: 2,
            ..AmdgcnOptions::default()
        };
        compare("large", &object, &spec, &options);
    }
    let options = AmdgcnOptions {
        counting: Counting::Reached,
        ..AmdgcnOptions::default()
    };
    compare("large", &object, &spec, &options);
}
