//! The price of counters in instructions, on the modelled GPU. benches/README.md has the numbers of each kernel.

use crate::support::compile::plugin;
use crate::support::compilers::Compiler;
use crate::support::instructions::{Build, KERNELS, mean};

const FAST: &str = "--counters=fast";

/// The most instructions of waves that count by the plugin, to those of waves without counters, by geometric mean.
const LIMITS: [(u32, &[&str], f64); 5] = [
    (22, &[FAST], 1.5),
    (23, &[FAST], 1.5),
    (24, &[FAST], 1.5),
    // With counts of the runs in which all lanes of a wave are active.
    (23, &[FAST, "--uniformity"], 1.7),
    (24, &[FAST, "--uniformity"], 1.7),
];

#[test]
fn fast_counters_cost_few_instructions() {
    for (release, options, most) in LIMITS {
        let Some(compiler) = Compiler::find(release) else {
            continue;
        };
        if plugin(release).is_none() {
            continue;
        }
        let mut builds = [
            Build::plain(compiler),
            Build::counting(compiler, &["--counters=llvm"]),
            Build::counting(compiler, options),
        ];
        let counts = KERNELS.each_ref().map(|kernel| {
            let counts = builds.each_mut().map(|build| build.instructions(kernel));
            counts.map(|count| count as f64)
        });
        let ratios = counts.map(|[plain, _, fast]| fast / plain);
        let fast = mean(&ratios);
        let names = KERNELS.each_ref().map(|kernel| kernel.name);
        let each: Vec<_> = names.iter().zip(&ratios).collect();
        assert!(
            fast <= most,
            "clang {release} {options:?}: {fast:.3} to plain: {each:.2?}"
        );
        let llvm = mean(&counts.map(|[plain, llvm, _]| llvm / plain));
        assert!(
            fast < llvm,
            "clang {release} {options:?}: {fast:.3}, and LLVM's {llvm:.3}"
        );
    }
}
