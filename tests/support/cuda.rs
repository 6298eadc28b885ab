//! CUDA, as tools/stacks unpacks it, and code for NVIDIA's GPUs that clang and ptxas make.

use std::path::{Path, PathBuf};

use super::artifacts::{files_with_extension, repository};
use super::command::{limited, run};
use super::compile::Compilation;
use super::unpacked::asked;

/// The directory of CUDA. `None` if it is not unpacked.
pub fn toolkit() -> Option<PathBuf> {
    let programs = asked("bin", "cuda-12.9", "no cubin is read")?;
    Path::new(programs.trim()).parent().map(Path::to_owned)
}

/// Compiles to PTX for `target` without CUDA's headers. clang takes the version of PTX from the toolkit.
pub fn to_ptx(toolkit: &Path, target: &str, level: &str) -> Compilation {
    Compilation::usual()
        .arguments([
            "-x",
            "cuda",
            "--cuda-device-only",
            "-nocudainc",
            "-nocudalib",
            "-S",
        ])
        .arguments(["--cuda-path=".to_owned() + &toolkit.to_string_lossy()])
        .arguments([
            format!("--cuda-gpu-arch={target}"),
            "-Wno-unknown-cuda-version".into(),
        ])
        .arguments(["-std=c++17", "-ffp-contract=off", level, "-I"])
        .arguments([repository("testdata/kernels")])
        .reads(files_with_extension("testdata/kernels", "h"))
}

/// Makes NVPTX code count. clang ignores the usual flags of instrumentation for CUDA, and PTX has no distances between
/// symbols, so data records have the addresses of their counters (`-profile-correlate=binary`).
pub fn counting(compilation: Compilation) -> Compilation {
    let for_device = [
        "-fprofile-instrument=clang",
        "-fcoverage-mapping",
        "-fprofile-update=atomic",
    ];
    compilation
        .arguments(
            for_device
                .into_iter()
                .flat_map(|option| ["-Xclang", option]),
        )
        .arguments(["-mllvm", "-profile-correlate=binary"])
}

/// Assembles PTX into a cubin in `directory`. Returns it, and what the assembler says of its kernels.
pub fn assembled(
    toolkit: &Path,
    assembler: &str,
    ptx: &Path,
    arguments: &[&str],
    directory: &Path,
) -> (PathBuf, String) {
    let name = ptx.file_name().expect("a file").to_string_lossy();
    let cubin = directory.join(format!("{name}.{assembler}.cubin"));
    let mut ptxas = limited(toolkit.join("bin").join(assembler));
    ptxas
        .arg("-v")
        .args(arguments)
        .arg(ptx)
        .arg("-o")
        .arg(&cubin);
    (cubin, run(&mut ptxas).success().stderr)
}
