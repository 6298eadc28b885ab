//! Code that adds to counters without atomic operations is found, and no other code is taken for it. The flags of the
//! compiler say which code is which.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rocov::format::codeobject::CodeObject;

use crate::llvm;
use crate::support::artifacts::{files_with_extension, repository};
use crate::support::compile::{
    Compilation, Counters, code_object_counting, device_header, device_only, has_all_levels,
    kernel_source,
};
use crate::support::compilers::Compiler;
use crate::{FRONT_END, SOURCES};

/// [`FRONT_END`] without its last flag.
const NOT_ATOMIC: &[&str] = FRONT_END.split_at(4).0;

/// Releases of clang, their targets, and the level at which each is tried by default.
const TRIED: [(u32, &[(&str, &str)]); 4] = [
    (15, &[("gfx90a", "-O2")]),
    (19, &[("gfx942", "-O0"), ("gfx1100", "-O3")]),
    (
        22,
        &[
            ("gfx90a", "-O0"),
            ("gfx942", "-O3"),
            ("gfx950", "-O1"),
            ("gfx1030", "-O2"),
            ("gfx1100", "-O0"),
            ("gfx1201", "-O2"),
        ],
    ),
    (23, &[("gfx90a", "-O0"), ("gfx1201", "-O2")]),
];

/// Kernels with branches and loops, with calls, and with atomic operations of their own.
const USUAL: [&str; 3] = ["branches", "callees", "atomics"];

/// The kernels for clang 15, which lacks functions that others call.
const OLD: [&str; 3] = ["branches", "callees", "calls"];

/// From this release on, clang calls a function of the device header, which adds with atomic operations.
const CALLS: u32 = 23;

/// The compilations that are tried: release, target and level. All of them if `ROCOV_TEST_LEVELS` is `all`.
fn tried() -> Vec<(&'static Compiler, &'static str, &'static str)> {
    let is_whole = has_all_levels();
    let mut all = Vec::new();
    for (release, targets) in TRIED {
        let Some(compiler) = Compiler::find(release) else {
            continue;
        };
        for (target, usual) in targets {
            match is_whole {
                true => {
                    let levels = ["-O0", "-O1", "-O2", "-O3"].into_iter();
                    all.extend(levels.map(|level| (compiler, *target, level)));
                }
                false => all.push((compiler, *target, *usual)),
            }
        }
    }
    all
}

/// A compilation with these flags and the device header.
fn compilation(compiler: &Compiler, target: &str, level: &str, flags: &[&str]) -> Compilation {
    device_only(compiler.clang, &[target], 5)
        .arguments([level, "-DROCOV_DEVICE_INSTRUMENTED"])
        .arguments(flags.iter().copied())
        .arguments(["-include"])
        .source(device_header())
}

/// The functions in the file at `path` whose additions to counters are not atomic, as far as rocov can find out.
fn found(path: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(path).expect("a file");
    let code_object = CodeObject::parse(bytes.as_slice()).expect("a code object");
    let functions = code_object.non_atomic_functions().expect("its functions");
    functions.into_iter().map(str::to_owned).collect()
}

/// The functions that have both code and counters.
fn counted(path: &Path) -> BTreeSet<String> {
    let symbols = llvm::symbols(path);
    let functions = llvm::functions(path);
    let names = functions.into_iter().map(|(_, _, name)| name);
    names
        .filter(|name| symbols.contains_key(&format!("__profc_{name}")))
        .collect()
}

/// The sources of testdata/kernels that this compiler takes for the target: a part of them by default.
fn sources(compiler: &Compiler, target: &str) -> Vec<PathBuf> {
    match has_all_levels() {
        _ if compiler.release < 19 => return OLD.map(kernel_source).into(),
        false => return USUAL.map(kernel_source).into(),
        true => {}
    }
    let all = files_with_extension("testdata/kernels", "hip").into_iter();
    let is_for_matrix_cores =
        |path: &PathBuf| path.ends_with("mfma.hip") || path.ends_with("dots.hip");
    let has_them = target.starts_with("gfx9");
    all.filter(|path| has_them || !is_for_matrix_cores(path))
        .collect()
}

/// Every function with counters is found if the flag is left out, and none if it is there.
#[test]
fn found_are_all_functions_that_are_compiled_without_the_flag_and_no_others() {
    for (compiler, target, level) in tried() {
        for source in sources(compiler, target) {
            let stem = source.file_stem().expect("a name").to_string_lossy();
            for (flags, is_atomic) in [(&FRONT_END[..], true), (NOT_ATOMIC, false)] {
                let path = compilation(compiler, target, level, flags)
                    .source(&source)
                    .output(&format!("{stem}.{target}{level}"));
                let expected = match is_atomic || compiler.release >= CALLS {
                    true => BTreeSet::new(),
                    false => counted(&path),
                };
                let release = compiler.release;
                let what =
                    format!("clang {release}, {target} {level}, atomic: {is_atomic}, {stem}");
                assert_eq!(found(&path), expected, "{what}: {}", path.display());
                assert!(
                    is_atomic || release >= CALLS || !expected.is_empty(),
                    "{what}"
                );
            }
        }
    }
}

/// Fast counters have atomic operations, too.
#[test]
fn fast_counters_are_atomic() {
    for counters in Counters::all() {
        for level in ["-O0", "-O2"] {
            let path = code_object_counting("callees", "gfx90a", level, 5, counters);
            assert_eq!(found(&path), BTreeSet::new(), "{counters:?} {level}");
        }
    }
}

/// Other ways to count, and code that adds to a counter of its own.
#[test]
fn each_way_to_count_is_what_it_is() {
    let compiler = Compiler::find(22).expect("Debian's clang 22");
    let both = || BTreeSet::from(["_Z6halvesi", "_Z4bothPiPy"].map(str::to_owned));
    let atomic = |flags: &[&'static str]| [flags, &FRONT_END[4..]].concat();
    let with = |more: &[&'static str]| [NOT_ATOMIC, more].concat();
    let of_llvm = vec![
        "-Xclang",
        "-fprofile-instrument=llvm",
        "-mllvm",
        "-disable-vp",
    ];
    let conditions = with(&["-Xclang", "-fcoverage-mcdc"]);
    let promoted = with(&["-mllvm", "-do-counter-promotion"]);
    // They are stored to, and never added to.
    let bytes = with(&[
        "-Xclang",
        "-mllvm",
        "-Xclang",
        "-enable-single-byte-coverage",
        "-DROCOV_REACHED",
    ]);
    for target in ["gfx90a", "gfx1100"] {
        for (flags, expected) in [
            (with(&[]), both()),
            (of_llvm.clone(), both()),
            (conditions.clone(), both()),
            (promoted.clone(), both()),
            (bytes.clone(), BTreeSet::new()),
        ] {
            for level in ["-O0", "-O2"] {
                for (flags, expected) in [
                    (flags.clone(), expected.clone()),
                    (atomic(&flags), BTreeSet::new()),
                ] {
                    let path = compilation(compiler, target, level, &flags)
                        .source(repository(SOURCES).join("own_counter.hip"))
                        .output("own_counter");
                    let what = format!("{target} {level} {flags:?}");
                    assert_eq!(found(&path), expected, "{what}: {}", path.display());
                }
            }
        }
    }
}

/// Damaged code ends the search soon, and is no error.
#[test]
fn damaged_code_is_looked_at_to_its_end() {
    let compiler = Compiler::find(22).expect("Debian's clang 22");
    for target in ["gfx90a", "gfx1100", "gfx1201"] {
        let path = compilation(compiler, target, "-O0", NOT_ATOMIC)
            .source(kernel_source("branches"))
            .output(&format!("branches.{target}-O0"));
        let whole = std::fs::read(&path).expect("a file");
        let code_object = CodeObject::parse(whole.as_slice()).expect("a code object");
        let functions = code_object.functions().expect("its functions");
        let range = |code: &[u8]| {
            let start = code.as_ptr() as usize - whole.as_ptr() as usize;
            start..start + code.len()
        };
        let ranges: Vec<_> = functions
            .iter()
            .map(|function| range(function.code))
            .collect();
        // Every word in turn has other bits.
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..200 {
            let mut damaged = whole.clone();
            for range in &ranges {
                for word in damaged[range.clone()].chunks_exact_mut(4) {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    if random & 15 == 0 {
                        word.copy_from_slice(&(random as u32).to_le_bytes());
                    }
                }
            }
            let code_object = CodeObject::parse(damaged.as_slice()).expect("a code object");
            code_object.non_atomic_functions().expect("a list");
        }
    }
}
