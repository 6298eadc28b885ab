//! The instructions that kernels execute on the modelled GPU, without counters and with them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::artifacts::{built, files_with_extension, repository};
use super::command::{limited, run};
use super::compile::{Compilation, device_header};
use super::compilers::Compiler;
use super::program::TARGET;
use super::spec::expand;

/// The folders of the sources: tests, and the benchmark of the modelled GPU.
const TESTS: &str = "testdata/kernels";
const BENCHMARK: &str = "tools/modelgpu/amdgcn/benches/speed";

/// A kernel of a usual size.
pub struct Kernel {
    /// The name of the kernel.
    pub name: &'static str,
    folder: &'static str,
    source: &'static str,
    /// A spec (see testdata/README.md).
    spec: &'static str,
}

const fn test_kernel(name: &'static str, spec: &'static str) -> Kernel {
    Kernel {
        name,
        folder: TESTS,
        source: name,
        spec,
    }
}

const fn benchmark_kernel(name: &'static str, spec: &'static str) -> Kernel {
    Kernel {
        name,
        folder: BENCHMARK,
        source: "kernels",
        spec,
    }
}

/// Sixteen kernels: loops and branches, LDS, atomic operations, functions, arithmetic, and memory only.
pub const KERNELS: [Kernel; 16] = [
    test_kernel(
        "matmul",
        "buffer f32 16384 random -1 1\n\
         buffer f32 16384 random -1 1\n\
         buffer f32 16384\n\
         launch _Z6matmulPKfS0_Pfj 16 16 1 8 8 1 p0 p1 p2 u32:128\n",
    ),
    test_kernel(
        "mandelbrot",
        "buffer u32 16384\n\
         launch _Z10mandelbrotPjjjj 8 16 1 16 8 1 p0 u32:128 u32:128 u32:256\n",
    ),
    test_kernel(
        "bitonic",
        "buffer u32 16384 random 0 1000000\n\
         launch _Z7bitonicPjjjj 64 1 1 256 1 1 p0 u32:16384 u32:32 u32:512\n\
         launch _Z7bitonicPjjjj 64 1 1 256 1 1 p0 u32:16384 u32:4096 u32:8192\n",
    ),
    test_kernel(
        "stencil",
        "buffer f32 65536 random -5 5\n\
         buffer f32 65536\n\
         launch _Z11five_pointsPKfPfj 8 32 1 32 8 1 p0 p1 u32:256\n",
    ),
    test_kernel(
        "steps",
        "buffer f32 16384 random -3 3\n\
         launch _Z5stepsPfjj 64 1 1 256 1 1 p0 u32:16384 u32:32\n",
    ),
    test_kernel(
        "histogram",
        "buffer u32 262144 random 0 70000\n\
         buffer u32 64\n\
         launch _Z4binsPKjPjjj 16 1 1 256 1 1 p0 p1 u32:262144 u32:4096\n",
    ),
    test_kernel(
        "reduce",
        "buffer f32 16384 random -1 1\n\
         buffer f32 64\n\
         launch _Z6reducePKfPfj 64 1 1 256 1 1 p0 p1 u32:16384\n",
    ),
    test_kernel(
        "collatz",
        "buffer u32 16384 random 1 100000\n\
         buffer u32 16384\n\
         launch _Z7collatzPKjPjjj 64 1 1 256 1 1 p0 p1 u32:200 u32:16384\n",
    ),
    test_kernel(
        "vecadd",
        "buffer f32 65536 random -1 1\n\
         buffer f32 65536 random -1 1\n\
         buffer f32 65536\n\
         launch _Z6vecaddPKfS0_Pfj 256 1 1 256 1 1 p0 p1 p2 u32:65536\n",
    ),
    benchmark_kernel(
        "saxpy",
        "buffer f32 65536 random -1 1\n\
         buffer f32 65536 random -1 1\n\
         launch saxpy 256 1 1 256 1 1 p0 p1 u32:65536 f32:2.5\n",
    ),
    benchmark_kernel(
        "heat",
        "buffer f64 65536 random -5 5\n\
         buffer f64 65536\n\
         launch heat 16 16 1 16 16 1 p0 p1 u32:256\n",
    ),
    benchmark_kernel(
        "hash",
        "buffer u32 4096 random 0 4000000000\n\
         buffer u32 4096\n\
         launch hash 16 1 1 256 1 1 p0 p1 u32:64\n",
    ),
    benchmark_kernel(
        "black_scholes",
        "buffer f32 16384 random 5 30\n\
         buffer f32 16384 random 1 100\n\
         buffer f32 16384 random 0.25 10\n\
         buffer f32 16384\n\
         launch black_scholes 64 1 1 256 1 1 p0 p1 p2 p3 u32:16384\n",
    ),
    benchmark_kernel(
        "scan",
        "buffer u32 16384 random 0 1000\n\
         buffer u32 16384\n\
         launch scan 64 1 1 256 1 1 p0 p1\n",
    ),
    benchmark_kernel(
        "transpose",
        "buffer f32 65536 random -1 1\n\
         buffer f32 65536\n\
         launch transpose 16 16 1 16 16 1 p0 p1 u32:256\n",
    ),
    benchmark_kernel(
        "nbody",
        "buffer f32 4096 random -1 1\n\
         buffer f32 4096\n\
         launch nbody 4 1 1 256 1 1 p0 p1 u32:1024\n",
    ),
];

/// A build of the kernels: by a compiler, without counters or with those of `rocov flags OPTIONS`.
pub struct Build {
    compiler: &'static Compiler,
    flags: Vec<OsString>,
    /// The code objects so far, by their source.
    objects: BTreeMap<(&'static str, &'static str), PathBuf>,
}

impl Build {
    /// Without counters.
    pub fn plain(compiler: &'static Compiler) -> Self {
        Self {
            compiler,
            flags: Vec::new(),
            objects: BTreeMap::new(),
        }
    }

    /// With the counters that `rocov flags OPTIONS` chooses.
    pub fn counting(compiler: &'static Compiler, options: &[&str]) -> Self {
        let mut flags = compiler.rocov("flags");
        flags.args(["--clang", compiler.clang]).args(options);
        let line = run(&mut flags).success().stdout;
        Self {
            flags: line.split_whitespace().map(OsString::from).collect(),
            ..Self::plain(compiler)
        }
    }

    /// The instructions of all waves that run the kernel.
    pub fn instructions(&mut self, kernel: &Kernel) -> u64 {
        let object = self.object(kernel);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let directory = directory.path();
        let template = directory.join("template");
        fs::write(&template, kernel.spec).expect("a test can write into its directory");
        executed(&object, &expand(&template, directory), directory)
    }

    fn object(&mut self, kernel: &Kernel) -> PathBuf {
        let place = (kernel.folder, kernel.source);
        let (compiler, flags) = (self.compiler, &self.flags);
        let object = self.objects.entry(place).or_insert_with(|| {
            let source = repository(kernel.folder).join(kernel.source);
            Compilation::by(compiler.clang)
                .arguments(["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output"])
                .arguments(["-nogpuinc", "-nogpulib", "-std=c++17", "-ffp-contract=off"])
                .arguments([format!("--offload-arch={TARGET}"), "-O2".to_owned()])
                .arguments(["-mcode-object-version=5", "-I"])
                .arguments([repository(kernel.folder).into_os_string()])
                .arguments(flags.iter().cloned())
                .reads(files_with_extension(kernel.folder, "h"))
                .reads([device_header()])
                .source(source.with_extension("hip"))
                .output(&format!("instructions-{}", kernel.source))
        });
        object.clone()
    }
}

/// The instructions of all launches of a spec, each counted once for a wave.
fn executed(object: &Path, spec: &Path, directory: &Path) -> u64 {
    let mut interpreter = limited(built("amdgcn-run"));
    interpreter
        .args([object, spec, directory])
        .env("AMDGCN_RUN_STATISTICS", "1");
    let output = run(&mut interpreter).success().stderr;
    let (count, _) = output
        .split_once(" wave instructions")
        .unwrap_or_else(|| panic!("no number of instructions: {output}"));
    let count = count.lines().last().unwrap_or_default();
    count
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {count}"))
}

/// The geometric mean of ratios.
pub fn mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logarithms / ratios.len() as f64).exp()
}
