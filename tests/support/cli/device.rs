//! Device code compiled by the tests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::{data, run};
use crate::artifacts::repository;

/// The clang of the tests that do not compare several.
pub const CLANG: &str = "clang++-22";
/// Flags that instrument device code, written out: what `rocov flags` prints is under test.
pub const INSTRUMENTED: [&str; 3] = [
    "-fprofile-instr-generate",
    "-fcoverage-mapping",
    "-fprofile-update=atomic",
];

/// A command that compiles the kernel for the device alone.
pub fn compiler(clang: &str) -> Command {
    compiler_of(clang, &data("kernel.hip"))
}

fn compiler_of(clang: &str, source: &Path) -> Command {
    let mut command = Command::new(clang);
    command
        .args(["-x", "hip", "-nogpuinc", "-nogpulib", "-O1"])
        // No hash of the command line in the code: one kernel, one identity.
        .args(["-fuse-cuid=none", "--cuda-device-only"])
        .arg(source);
    command
}

/// Compiles the kernel into the device ELF `name` in `directory`.
pub fn compile(directory: &Path, name: &str, arch: &str, flags: &[&str]) -> PathBuf {
    compile_with(CLANG, directory, name, arch, flags)
}

/// Compiles it with another clang.
pub fn compile_with(
    clang: &str,
    directory: &Path,
    name: &str,
    arch: &str,
    flags: &[&str],
) -> PathBuf {
    compile_by(compiler(clang), directory, name, arch, flags)
}

/// Compiles another source.
pub fn compile_source(
    source: &Path,
    directory: &Path,
    name: &str,
    arch: &str,
    flags: &[&str],
) -> PathBuf {
    compile_source_with(CLANG, source, directory, name, arch, flags)
}

/// Compiles it with another clang.
pub fn compile_source_with(
    clang: &str,
    source: &Path,
    directory: &Path,
    name: &str,
    arch: &str,
    flags: &[&str],
) -> PathBuf {
    compile_by(compiler_of(clang, source), directory, name, arch, flags)
}

fn compile_by(
    mut command: Command,
    directory: &Path,
    name: &str,
    arch: &str,
    flags: &[&str],
) -> PathBuf {
    let path = directory.join(name);
    command.arg(format!("--offload-arch={arch}"));
    command.args(["--no-gpu-bundle-output", "-c"]).args(flags);
    if !has_sources_of_this_package(&command) {
        run(command.arg("-o").arg(&path));
        return path;
    }
    // Many tests start with one of a few ELFs.
    static COMPILED: Mutex<BTreeMap<Vec<OsString>, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(OsStr::to_owned)
        .collect();
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    match compiled.entry(words) {
        Entry::Occupied(elf) => std::fs::write(&path, elf.get()).unwrap(),
        Entry::Vacant(place) => {
            run(command.arg("-o").arg(&path));
            place.insert(std::fs::read(&path).unwrap());
        }
    }
    path
}

/// Returns whether all files that a compilation reads are those of this package, which no test changes.
fn has_sources_of_this_package(compilation: &Command) -> bool {
    let package = repository("tests");
    let mut paths = compilation.get_args().map(Path::new);
    compilation.get_current_dir().is_none()
        && paths.all(|path| path.is_relative() || path.starts_with(&package))
}

/// Compiles the kernel for `archs` into one bundle.
pub fn compile_bundle(directory: &Path, archs: &[&str], flags: &[&str]) -> PathBuf {
    let path = directory.join("kernel.hipfb");
    let mut command = compiler(CLANG);
    command.args(archs.iter().map(|arch| format!("--offload-arch={arch}")));
    command.args(["--gpu-bundle-output", "-c", "-o"]).arg(&path);
    run(command.args(flags));
    path
}

/// Puts `bundle` into a host ELF, in the section where a HIP program has it.
pub fn embed(bundle: &Path, directory: &Path) -> PathBuf {
    let path = directory.join("program.so");
    let source = format!(
        ".section .hip_fatbin,\"a\",@progbits\n.p2align 12\n.incbin \"{}\"\n.p2align 12\n.incbin \"{0}\"\n",
        bundle.display()
    );
    let assembly = directory.join("program.s");
    std::fs::write(&assembly, source).unwrap();
    run(Command::new("cc")
        .arg("-shared")
        .arg(&assembly)
        .arg("-o")
        .arg(&path));
    path
}
