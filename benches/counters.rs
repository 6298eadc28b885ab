//! The instructions that counting adds to kernels: `cargo bench -p rocov --bench counters`, or `tools/dev/bench
//! counters`. benches/README.md explains the table.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use rocov_tests::compilers::Compiler;
use rocov_tests::instructions::{Build, KERNELS, mean};
use rocov_tests::program::TARGET;

/// The releases of clang, and the ways to count.
const RELEASES: [u32; 3] = [22, 23, 24];
const WAYS: [&str; 3] = ["llvm", "reached", "fast"];

fn main() {
    for compiler in RELEASES.into_iter().filter_map(Compiler::find) {
        table(compiler);
    }
}

fn table(compiler: &'static Compiler) {
    println!(
        "instructions of all waves on the modelled {TARGET}, -O2, clang {}",
        compiler.release
    );
    println!("kernel            plain      llvm  ratio   reached  ratio      fast  ratio");
    let mut plain = Build::plain(compiler);
    let counters = WAYS.map(|way| format!("--counters={way}"));
    let mut builds = counters
        .each_ref()
        .map(|option| Build::counting(compiler, &[option]));
    let mut ratios = WAYS.map(|_| Vec::new());
    let mut uniform = compiler
        .has_uniform_counters()
        .then(|| Build::counting(compiler, &["--counters=fast", "--uniformity"]));
    let mut uniform_ratios = Vec::new();
    for kernel in &KERNELS {
        let without = plain.instructions(kernel);
        print!("{:13} {without:9}", kernel.name);
        for (build, ratios) in builds.iter_mut().zip(&mut ratios) {
            let count = build.instructions(kernel);
            let ratio = count as f64 / without as f64;
            ratios.push(ratio);
            print!(" {count:9} {ratio:6.2}");
        }
        if let Some(build) = &mut uniform {
            uniform_ratios.push(build.instructions(kernel) as f64 / without as f64);
        }
        println!();
    }
    let [llvm, reached, fast] = ratios.map(|ratios| mean(&ratios));
    print!("geometric means to plain: llvm {llvm:.2}, reached {reached:.2}, fast {fast:.2}");
    if uniform.is_some() {
        print!(", fast with --uniformity {:.2}", mean(&uniform_ratios));
    }
    println!("\n");
}
