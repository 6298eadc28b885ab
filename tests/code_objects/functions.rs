//! The instrumented functions and the kernels' source places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocov::format::blocks::trace;
use rocov::format::codeobject::CodeObject;

use crate::llvm;
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::clang;
use crate::{SOURCES, all_kinds, all_sources, kernels};

/// No kernel of kinds.hip, then all the others: for kernels with counters, the counters' symbols.
#[test]
fn instrumented_are_those_with_counters() {
    for path in all_kinds().iter().chain(&all_sources()) {
        let symbols = llvm::symbols(path);
        for kernel in kernels(path) {
            let counters = format!("__profc_{}", kernel.name);
            let is_counted = symbols.contains_key(&counters);
            let at = path.display();
            assert_eq!(kernel.instrumented, is_counted, "{}, {at}", kernel.name);
        }
    }
    for path in all_kinds() {
        let kernels = kernels(&path).into_iter();
        let is_ours = |name: &str| !name.starts_with("amdgcn.device.");
        let uncounted = kernels.filter(|kernel| !kernel.instrumented && is_ours(&kernel.name));
        let names: Vec<String> = uncounted.map(|kernel| kernel.name).collect();
        assert_eq!(names, ["_Z9uncountedPi"], "{}", path.display());
    }
}

/// Names, addresses and sizes, in the order of the addresses.
#[test]
fn functions_are_those_of_the_symbol_table() {
    for path in all_sources() {
        let bytes = std::fs::read(&path).expect("a file");
        let code_object = CodeObject::parse(bytes.as_slice()).expect("a code object");
        let functions = trace::functions(&code_object).expect("its functions");
        let found = functions.iter().map(|function| {
            (
                function.address,
                function.code.len() as u64,
                function.name.to_owned(),
            )
        });
        let found: Vec<_> = found.collect();
        assert!(!found.is_empty());
        assert_eq!(found, llvm::functions(&path), "{}", path.display());
    }
}

fn have_llvm_covs_sources(path: &Path) -> BTreeMap<String, String> {
    let sources = llvm::sources(path);
    for kernel in kernels(path) {
        let source = sources.get(&kernel.name);
        let at = path.display();
        assert_eq!(kernel.source.as_ref(), source, "{}, {at}", kernel.name);
    }
    sources
}

#[test]
fn sources_are_those_of_llvm_cov() {
    for path in all_kinds() {
        let sources = have_llvm_covs_sources(&path);
        let file = |name: &str| repository(SOURCES).join(name).display().to_string();
        assert_eq!(sources["i"], file("kinds.hip"));
        assert_eq!(sources["_Z11from_headerIfEvPT_i"], file("inlined.h"));
    }
    for path in all_sources() {
        have_llvm_covs_sources(&path);
    }
}

/// A source compiled in `directory`, with a name relative to it.
fn compiled_in(directory: &Path, name: &str, text: &str, flags: &[&str]) -> PathBuf {
    std::fs::write(directory.join("kernel.hip"), text).expect("a source");
    let object = directory.join("kernel.co");
    let mut clang = limited(clang());
    clang
        .args(["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output"])
        .args(["-nogpuinc", "-nogpulib", "--offload-arch=gfx90a"])
        .args(["-fprofile-instr-generate", "-fcoverage-mapping"])
        .args(flags)
        .arg(name)
        .arg("-o")
        .arg(&object)
        .current_dir(directory);
    run(&mut clang).success();
    object
}

#[test]
fn relative_and_compressed_names_are_whole_paths() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let long = directory
        .path()
        .join("a-directory-with-a-long-name".repeat(6));
    std::fs::create_dir_all(long.join("below")).expect("a directory");
    let text = "__attribute__((global)) void k(int *p) { *p = *p ? 1 : 2; }";
    for (name, flags) in [
        ("kernel.hip", &[][..]),
        ("./below/../kernel.hip", &[]),
        (
            "./below/../kernel.hip",
            &["-mllvm", "-enable-name-compression=false"],
        ),
        ("kernel.hip", &["-fcoverage-compilation-dir=/nowhere"]),
        (
            "kernel.hip",
            &["-fcoverage-prefix-map=kernel.hip=/mapped/other.hip"],
        ),
    ] {
        let object = compiled_in(&long, name, text, flags);
        let sources = have_llvm_covs_sources(&object);
        assert!(sources["_Z1kPi"].ends_with(".hip"), "{sources:?}");
    }
}

#[test]
fn names_beyond_4096_bytes_are_found_lazily_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = "k".repeat(5000);
    let text = format!("extern \"C\" __attribute__((global)) void {name}(int *p) {{ *p = 1; }}");
    let object = compiled_in(directory.path(), "kernel.hip", &text, &[]);
    let names: Vec<String> = kernels(&object)
        .into_iter()
        .map(|kernel| kernel.name)
        .collect();
    assert_eq!(names, [name]);
    let file = std::fs::File::open(&object).expect("a file");
    let cache = object::read::ReadCache::new(file);
    let code_object = CodeObject::parse(&cache).expect("a code object");
    let variables = code_object.variables(b"__hip_cuid_").expect("symbols");
    assert_eq!(variables.len(), 1);
}
