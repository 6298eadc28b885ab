//! `tools/dev/programs` tells of each program of a checkout how it compiled and ran, and sums up.

use std::path::Path;

use crate::support::artifacts::repository;
use crate::support::command::{limited, run};

/// Prints what its last argument says, and returns the number before.
const PROGRAM: &str = "
#include <hip/hip_runtime.h>
#include <cstdio>
extern \"C\" __global__ void store(int *to) { to[threadIdx.x] = 1; }
extern \"C\" __global__ void unused(int *to) { to[threadIdx.x] = 2; }
int main() {
  int *memory;
  if (hipMalloc(&memory, 256) != hipSuccess) return 7;
  store<<<1, 64>>>(memory);
  if (hipDeviceSynchronize() != hipSuccess) return 8;
  std::puts(SAYS);
  return STATUS;
}
";

fn write(checkout: &Path, name: &str, start: &str) {
    let file = checkout.join(name);
    let folder = file.parent().expect("a file in the checkout");
    std::fs::create_dir_all(folder).expect("a test can write into its directory");
    std::fs::write(&file, format!("{start}\n{PROGRAM}")).expect("the folder was just made");
}

#[test]
fn each_program_has_a_line_and_each_repository_a_sum() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let corpus = directory.path().join("corpus");
    let tiny = corpus.join("tiny");
    write(
        &tiny,
        "good.hip",
        "#define SAYS \"PASSED\"\n#define STATUS 0",
    );
    write(
        &tiny,
        "deep/bad.hip",
        "#define SAYS \"2 mismatches\"\n#define STATUS 3",
    );
    write(
        &tiny,
        "quiet.hip",
        "#define SAYS \"done\"\n#define STATUS 0",
    );
    write(&tiny, "broken.hip", "this is no C++");
    write(&tiny, "no_main.hip", "#define main other");
    // The layout of this repository is known: a program is a folder.
    let examples = corpus.join("rocm-examples/HIP-Basic/example");
    write(
        &examples,
        "main.hip",
        "#define SAYS \"Validation passed\"\n#define STATUS 0",
    );
    let out = directory.path().join("out");
    let mut command = limited(repository("tools/dev/programs"));
    command.args([
        "-s",
        "debian12",
        "-g",
        "gfx90a",
        "-l",
        "60",
        "-k",
        "tiny/[bdgq]|rocm",
        "-o",
    ]);
    let ended = run(command.arg(&out).arg(&corpus)).success();
    let lines: Vec<Vec<&str>> = (ended.stdout.lines())
        .map(|line| line.split_whitespace().collect())
        .collect();
    for wanted in [
        "tiny/good yes 0 passed 1/2 yes",
        "tiny/deep/bad yes 3 failed 1/2 yes",
        "tiny/quiet yes 0 none 1/2 yes",
        "tiny/broken no - - - - -",
        "rocm-examples/example yes 0 passed 1/2 yes",
    ] {
        let wanted: Vec<&str> = wanted.split_whitespace().collect();
        assert!(
            lines.iter().any(|line| line.starts_with(&wanted)),
            "no line {wanted:?}: {ended}"
        );
    }
    assert!(!ended.stdout.contains("no_main"), "{ended}");
    for sums in [
        "tiny at no commit on debian12, gfx90a: 4 programs, 3 compiled, 2 ended with 0, 1 passed their own \
         check, 1 failed it, 0 skipped it, 0 out of time, 3 counted, 3 reported",
        "rocm-examples at no commit on debian12, gfx90a: 1 programs, 1 compiled",
    ] {
        assert!(ended.stdout.contains(sums), "no {sums:?}: {ended}");
    }
}

#[test]
fn a_wrong_folder_is_named() {
    let mut command = limited(repository("tools/dev/programs"));
    let ended = run(command.arg("/nowhere/at/all"));
    assert_eq!(ended.status.code(), Some(2), "{ended}");
    ended.says(&["/nowhere/at/all is no directory: name one with checkouts"]);
}
