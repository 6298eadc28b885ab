//! The instructions that counting adds to kernels: `cargo bench -p rocov --bench counters`, or `tools/dev/bench
//! counters`. benches/README.md explains the table.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::path::Path;

use rocov_tests::artifacts::{built, repository};
use rocov_tests::command::{limited, run};
use rocov_tests::compile::{Compilation, Counters, clang, device_only};
use rocov_tests::program::TARGET;
use rocov_tests::spec::expand;

/// A kernel of testdata/kernels: its source, and a spec (see testdata/README.md) of a usual size.
const KERNELS: [(&str, &str); 7] = [
    (
        "matmul",
        "buffer f32 16384 random -1 1\n\
         buffer f32 16384 random -1 1\n\
         buffer f32 16384\n\
         launch _Z6matmulPKfS0_Pfj 16 16 1 8 8 1 p0 p1 p2 u32:128\n",
    ),
    (
        "mandelbrot",
        "buffer u32 16384\n\
         launch _Z10mandelbrotPjjjj 8 16 1 16 8 1 p0 u32:128 u32:128 u32:256\n",
    ),
    (
        "bitonic",
        "buffer u32 16384 random 0 1000000\n\
         launch _Z7bitonicPjjjj 64 1 1 256 1 1 p0 u32:16384 u32:32 u32:512\n\
         launch _Z7bitonicPjjjj 64 1 1 256 1 1 p0 u32:16384 u32:4096 u32:8192\n",
    ),
    (
        "stencil",
        "buffer f32 65536 random -5 5\n\
         buffer f32 65536\n\
         launch _Z11five_pointsPKfPfj 8 32 1 32 8 1 p0 p1 u32:256\n",
    ),
    (
        "steps",
        "buffer f32 16384 random -3 3\n\
         launch _Z5stepsPfjj 64 1 1 256 1 1 p0 u32:16384 u32:32\n",
    ),
    (
        "histogram",
        "buffer u32 262144 random 0 70000\n\
         buffer u32 64\n\
         launch _Z4binsPKjPjjj 16 1 1 256 1 1 p0 p1 u32:262144 u32:4096\n",
    ),
    (
        "reduce",
        "buffer f32 16384 random -1 1\n\
         buffer f32 64\n\
         launch _Z6reducePKfPfj 64 1 1 256 1 1 p0 p1 u32:16384\n",
    ),
];

/// The way in which a kernel counts.
#[derive(Clone, Copy)]
enum Way {
    Plain,
    /// Single bytes that are set once.
    Reached,
    Counting(Counters),
}

fn main() {
    let ways = [
        Way::Plain,
        Way::Counting(Counters::Llvm),
        Way::Reached,
        Way::Counting(Counters::Pass),
    ];
    println!(
        "instructions of all waves on the modelled {TARGET}, -O2, {}",
        clang()
    );
    println!("kernel            plain      llvm  ratio   reached  ratio      fast  ratio");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut logarithms = 0.0;
    for (name, spec) in KERNELS {
        let template = directory.path().join("template");
        fs::write(&template, spec).expect("a test can write into its directory");
        let spec = expand(&template, directory.path());
        let [plain, llvm, reached, fast] =
            ways.map(|way| instructions(&code_object(name, way), &spec, directory.path()));
        let ratio = |count: u64| count as f64 / plain as f64;
        logarithms += ratio(fast).ln();
        println!(
            "{name:12} {plain:10} {llvm:9} {:6.2} {reached:9} {:6.2} {fast:9} {:6.2}",
            ratio(llvm),
            ratio(reached),
            ratio(fast)
        );
    }
    let mean = (logarithms / KERNELS.len() as f64).exp();
    println!("geometric mean of fast to plain: {mean:.2}");
}

fn code_object(name: &str, way: Way) -> std::path::PathBuf {
    // Not for the linker, which does not know them.
    const BYTES: [&str; 2] = [
        "-enable-single-byte-coverage",
        "-conditional-counter-update",
    ];
    let for_clang = |option| ["-Xclang", "-mllvm", "-Xclang", option];
    let compilation = device_only(clang(), &[TARGET], 5).arguments(["-O2"]);
    let compilation: Compilation = match way {
        Way::Plain => compilation,
        Way::Reached => compilation
            .counting()
            .arguments(BYTES.into_iter().flat_map(for_clang)),
        Way::Counting(counters) => compilation.counting().counting_in(counters),
    };
    let source = repository("testdata/kernels").join(name);
    compilation
        .source(source.with_extension("hip"))
        .output(&format!("bench-{name}"))
}

/// The instructions of all launches of a spec, each counted once for a wave.
fn instructions(object: &Path, spec: &Path, directory: &Path) -> u64 {
    let mut interpreter = limited(built("amdgcn-run"));
    interpreter
        .args([object, spec, directory])
        .env("AMDGCN_RUN_STATISTICS", "1");
    let output = run(&mut interpreter).success().stderr;
    let (count, _) = output
        .split_once(" wave instructions")
        .unwrap_or_else(|| panic!("no number of instructions: {output}"));
    let count = count.lines().last().unwrap_or_default();
    count
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {count}"))
}
