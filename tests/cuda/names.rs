//! Counters of functions with names of all kinds, by each clang that compiles CUDA. PTX takes few characters in
//! a name.

use tempfile::TempDir;

use crate::setup::{Setup, counters, counts_by, profiles, step};
use crate::support::compilers::Compiler;

/// The mangled names of the functions in testdata/cuda/names.cu, as their profiles have them.
const FUNCTIONS: [&str; 5] = [
    "_Z6globali",
    "_Z6kernelPi",
    "_Z6sharedILi5EEii",
    "names.cu:_ZL7of_uniti",
    "names.cu:_ZN12_GLOBAL__N_17unnamedEi",
];

#[test]
fn functions_of_all_kinds_are_drained() {
    let Some(setup) = Setup::get() else { return };
    for release in [19, 22, 23] {
        let Some(compiler) = Compiler::find(release) else {
            continue;
        };
        for way in ["fast", "llvm"] {
            for level in ["-O0", "-O2"] {
                let what = format!("clang {release}, {way}, {level}");
                let options = [&*format!("--counters={way}"), level];
                let cubin = setup.compiled_by(compiler.clang, "names.cu", options);
                let mut all = vec![step("load", &cubin)];
                // A number for each variable, and one more for each of its words.
                for (number, (name, words)) in (1..).zip(counters(&cubin)) {
                    let words: Vec<_> = (0..words)
                        .map(|word| (number * 100 + word).to_string())
                        .collect();
                    all.push(format!("plant:{name}:{}", words.join(",")));
                }
                assert_eq!(all.len(), 1 + FUNCTIONS.len(), "{what}: {all:?}");
                let data = TempDir::new().expect("a directory can be made");
                setup.run(data.path(), &all).success().silently();
                let profdata = compiler.tool("llvm-profdata");
                let found = counts_by(profdata, &profiles(data.path()), data.path());
                let names: Vec<_> = found.keys().map(|name| name.replace(';', ":")).collect();
                assert_eq!(names, FUNCTIONS, "{what}");
                let planted = counters(&cubin);
                for (function, counts) in &found {
                    let end = &function[function.rfind("_Z").expect("mangled")..];
                    let place = planted.iter().position(|(name, _)| name.contains(end));
                    let place = place.expect("a variable has the name of its function") as u64 + 1;
                    let expected: Vec<_> =
                        (0..counts.len() as u64).map(|n| place * 100 + n).collect();
                    assert_eq!(*counts, expected, "{what}: {function}");
                }
            }
        }
    }
}
