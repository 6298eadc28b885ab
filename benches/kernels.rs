//! The time to read the kernels of a code object: `cargo bench -p rocov --bench kernels`.
//!
//! The benchmark compiles code objects with 1 to 1000 instrumented kernels, each with many
//! arguments. It reads each many times, from memory and from a file as a drain does. Times are
//! medians of whole readings: the ELF, its target, and all its kernels.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use object::read::{ReadCache, ReadRef};
use rocov::format::codeobject::CodeObject;

/// Kernels in a code object.
const KERNELS: [usize; 3] = [1, 100, 1000];
/// Arguments of each kernel, besides the compiler's own.
const ARGUMENTS: usize = 32;
/// Readings of each code object.
const READINGS: usize = 101;

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    println!("kernels     size      memory        file     file, per kernel");
    for count in KERNELS {
        let path = compile(directory.path(), count);
        let bytes = fs::read(&path).expect("a code object");
        let memory = median(|| read(bytes.as_slice(), count));
        let file = median(|| {
            let cache = ReadCache::new(File::open(&path).expect("a code object"));
            read(&cache, count);
        });
        println!(
            "{count:>7} {:>4} KiB {:>8.1} us {:>8.1} us {:>8.2} us",
            bytes.len() / 1024,
            micros(memory),
            micros(file),
            micros(file) / count as f64,
        );
    }
}

fn read<'data>(data: impl ReadRef<'data>, count: usize) {
    let code_object = CodeObject::parse(data).expect("a code object");
    black_box(code_object.target().expect("a target"));
    let kernels = code_object.kernels().expect("kernels");
    assert!(kernels.len() == count && kernels.iter().all(|kernel| kernel.source.is_some()));
}

fn compile(directory: &Path, count: usize) -> PathBuf {
    let parameters: Vec<String> = (0..ARGUMENTS)
        .map(|number| format!("float *p{number}"))
        .collect();
    let parameters = parameters.join(", ");
    let mut text = String::new();
    for kernel in 0..count {
        let body = format!("p0[{kernel}] = p1[0] > 0 ? p2[0] : p3[0];");
        let head = format!("__attribute__((global)) void kernel_{kernel}");
        writeln!(text, "{head}({parameters}) {{ {body} }}").expect("a string takes all");
    }
    let source = directory.join(format!("{count}.hip"));
    let object = source.with_extension("co");
    fs::write(&source, text).expect("a source file");
    let mut clang = Command::new("clang++-22");
    clang
        .args(["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output"])
        .args(["-nogpuinc", "-nogpulib", "--offload-arch=gfx90a", "-O1"])
        .args(["-fprofile-instr-generate", "-fcoverage-mapping"])
        .arg(&source)
        .arg("-o")
        .arg(&object);
    let status = clang.status().expect("clang++-22 can be started");
    assert!(status.success(), "{clang:?}: {status}");
    object
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..READINGS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[READINGS / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
