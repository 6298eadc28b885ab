//! Compares the library's reading of a code object with that of LLVM's tools.

mod cubins;
mod damage;
mod functions;
mod headers;
mod llvm;
mod memory;
mod metadata;
mod non_atomic;
mod targets;

use std::path::{Path, PathBuf};

use object::read::{ReadCache, ReadRef};
use rocov::format::codeobject::{CodeObject, CodeObjectError, Kernel};
use rocov_tests as support;
use rocov_tests::artifacts::{files_with_extension, repository};
use rocov_tests::compile::{code_object, device_header, device_only};

/// Compilers and their targets.
const COMPILERS: [(&str, &[&str]); 3] = [
    ("clang++-15", &["gfx90a"]),
    ("clang++-19", &["gfx90a", "gfx942"]),
    ("clang++-22", &["gfx90a", "gfx942"]),
];

/// Instrumentation by front-end flags: the driver of clang up to 19 ignores the usual flags on the
/// device.
const FRONT_END: [&str; 6] = [
    "-Xclang",
    "-fprofile-instrument=clang",
    "-Xclang",
    "-fcoverage-mapping",
    "-Xclang",
    "-fprofile-update=atomic",
];

const SOURCES: &str = "testdata/programs/code_objects";

/// kinds.hip, instrumented.
fn kinds(compiler: &'static str, target: &str, version: u8) -> PathBuf {
    device_only(compiler, &[target], version)
        .arguments(["-O1", "-DROCOV_DEVICE_INSTRUMENTED"])
        .arguments(FRONT_END)
        .arguments(["-include"])
        .source(device_header())
        .source(repository(SOURCES).join("kinds.hip"))
        .reads(files_with_extension(SOURCES, "h"))
        .output("kinds")
}

/// kinds.hip by every compiler for every target that it knows.
fn all_kinds() -> Vec<PathBuf> {
    let compile_all = |&(compiler, targets): &(&'static str, &[&str])| {
        let compiled = targets.iter().map(move |target| kinds(compiler, target, 4));
        compiled.collect::<Vec<_>>()
    };
    COMPILERS.iter().flat_map(compile_all).collect()
}

/// The sources of testdata/kernels for both targets, as other tests run them.
fn all_sources() -> Vec<PathBuf> {
    let names = files_with_extension("testdata/kernels", "hip");
    let compiled = |path: &PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy();
        [("gfx90a", 4), ("gfx942", 5)]
            .map(|(target, version)| code_object(&name, target, "-O1", version))
    };
    names.iter().flat_map(compiled).collect()
}

fn kernels_of<'data>(data: impl ReadRef<'data>) -> Result<Vec<Kernel>, CodeObjectError> {
    CodeObject::parse(data)?.kernels()
}

/// The kernels of a code object in a file. Expects one result from a whole read and from a read in
/// parts.
fn kernels(path: &Path) -> Vec<Kernel> {
    let bytes = std::fs::read(path).expect("a file");
    let kernels =
        kernels_of(bytes.as_slice()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = std::fs::File::open(path).expect("a file");
    let lazily = kernels_of(&ReadCache::new(file)).expect("the same");
    assert_eq!(lazily, kernels, "{}", path.display());
    kernels
}
