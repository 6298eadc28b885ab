//! The price of counters in instructions, on the modelled GPU. benches/README.md has the numbers of each kernel.

use crate::support::compile::plugin;
use crate::support::compilers::Compiler;
use crate::support::instructions::{Build, KERNELS, mean};

/// The most instructions of waves that count by the plugin, to those of waves without counters, by geometric mean.
/// From clang 23 on, code also counts the runs in which all lanes of a wave are active.
const FAST: [(u32, f64); 3] = [(22, 1.5), (23, 1.7), (24, 1.9)];

#[test]
fn fast_counters_cost_few_instructions() {
    for (release, most) in FAST {
        let Some(compiler) = Compiler::find(release) else {
            continue;
        };
        if plugin(release).is_none() {
            continue;
        }
        let mut builds = [
            Build::plain(compiler),
            Build::counting(compiler, "llvm"),
            Build::counting(compiler, "fast"),
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
            "clang {release}: {fast:.3} to plain: {each:.2?}"
        );
        let llvm = mean(&counts.map(|[plain, llvm, _]| llvm / plain));
        assert!(
            fast < llvm,
            "clang {release}: {fast:.3}, and LLVM's {llvm:.3}"
        );
    }
}
