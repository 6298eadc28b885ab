//! Packs what tools/dev/hardware runs on an NVIDIA GPU: `cargo bench -p rocov --bench hardware -- FOLDER CUDA [PART=PATH]...`.
//! FOLDER is empty or absent, CUDA is a toolkit. The kernels of testdata/kernels are compiled here, in each way of counting,
//! and their counts and buffers are made here, on the host. With `samples=`, a checkout of NVIDIA/cuda-samples, its programs
//! are compiled instead. With `drain=`, a folder with PyTorch's headers or nothing, the programs of testdata/hardware are;
//! `profile=` has the profile of one. With `instrument=`, a checkout or nothing, the pack is for `rocov run --instrument`.
#![allow(clippy::print_stderr, reason = "a benchmark prints its figures")]

mod drain;
mod instrument;
mod samples;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rocov_tests as support;
use rocov_tests::artifacts::{files_with_extension, repository};
use rocov_tests::command::{limited, run};
use rocov_tests::compile::{Compilation, Counters, clang, host_oracle};
use rocov_tests::profile::{functions, merge};
use rocov_tests::spec::expand;

/// The target of the cubins.
pub(crate) const TARGET: &str = "sm_90";
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The kernels that use instructions of AMD GPUs, or waves of 64 lanes.
pub(crate) const ONLY_AMD: [&str; 5] = ["dots", "halves", "mfma", "saturate", "wave"];

/// A kernel whose times are measured: its source, and a spec (see testdata/oracle/spec.h) of a size that keeps an
/// H200 busy.
const TIMED: [(&str, &str); 7] = [
    (
        "matmul",
        "noise f32 4194304 -1 1\n\
         noise f32 4194304 -1 1\n\
         noise f32 4194304 0 0\n\
         launch _Z6matmulPKfS0_Pfj 256 256 1 8 8 1 p0 p1 p2 u32:2048\n",
    ),
    (
        "mandelbrot",
        "noise u32 16777216 0 0\n\
         launch _Z10mandelbrotPjjjj 256 512 1 16 8 1 p0 u32:4096 u32:4096 u32:1000\n",
    ),
    (
        "bitonic",
        "noise u32 33554432 0 1000000\n\
         launch _Z7bitonicPjjjj 131072 1 1 256 1 1 p0 u32:33554432 u32:4096 u32:8192\n",
    ),
    (
        "stencil",
        "noise f32 67108864 -5 5\n\
         noise f32 67108864 0 0\n\
         launch _Z11five_pointsPKfPfj 256 1024 1 32 8 1 p0 p1 u32:8192\n",
    ),
    (
        "steps",
        "noise f32 16777216 -3 3\n\
         launch _Z5stepsPfjj 65536 1 1 256 1 1 p0 u32:16777216 u32:32\n",
    ),
    (
        "histogram",
        "noise u32 67108864 0 70000\n\
         noise u32 64 0 0\n\
         launch _Z4binsPKjPjjj 4096 1 1 256 1 1 p0 p1 u32:67108864 u32:1048576\n",
    ),
    (
        "reduce",
        "noise f32 67108864 -1 1\n\
         noise f32 262144 0 0\n\
         launch _Z6reducePKfPfj 262144 1 1 256 1 1 p0 p1 u32:67108864\n",
    ),
];

/// The way in which a kernel counts, and the name of its cubin.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Plain,
    Reached,
    Counting(Counters),
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [
        Self::Plain,
        Self::Counting(Counters::Llvm),
        Self::Reached,
        Self::Counting(Counters::Pass),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Reached => "reached",
            Self::Counting(Counters::Llvm) => "llvm",
            Self::Counting(_) => "fast",
        }
    }

    /// Makes a compilation for the device count in this way. clang ignores the usual flags of instrumentation for CUDA,
    /// and PTX has no distances between symbols, so data records have the addresses of their counters
    /// (`-profile-correlate=binary`).
    pub(crate) fn in_device_code(self, compilation: Compilation) -> Compilation {
        let for_device = |option| ["-Xclang", option];
        let for_llvm = |option| ["-mllvm", option];
        let counting = |compilation: Compilation| {
            let options = [
                "-fprofile-instrument=clang",
                "-fcoverage-mapping",
                "-fprofile-update=atomic",
            ];
            compilation
                .arguments(options.into_iter().flat_map(for_device))
                .arguments(for_llvm("-profile-correlate=binary"))
        };
        match self {
            Self::Plain => compilation,
            Self::Reached => {
                let bytes = [
                    "-enable-single-byte-coverage",
                    "-conditional-counter-update",
                ];
                counting(compilation).arguments(bytes.into_iter().flat_map(for_llvm))
            }
            Self::Counting(counters) => counting(compilation).counting_in(counters),
        }
    }
}

fn main() {
    // cargo passes --bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let [folder, cuda, options @ ..] = arguments.as_slice() else {
        eprintln!("usage: cargo bench -p rocov --bench hardware -- FOLDER CUDA [PART=PATH]...");
        std::process::exit(2);
    };
    let option = |name: &str| {
        let mut values = options
            .iter()
            .filter_map(|option| option.strip_prefix(name));
        values
            .find_map(|value| value.strip_prefix('='))
            .map(PathBuf::from)
    };
    let cuda = PathBuf::from(cuda);
    // The specs name their files relative to the folder.
    fs::create_dir_all(folder).expect("the folder can be made");
    std::env::set_current_dir(folder).expect("the folder was made");
    fs::write("compiler", compiler()).expect("a file can be written");
    if let Some(samples) = option("instrument") {
        let samples = (!samples.as_os_str().is_empty()).then_some(samples);
        Pack { cuda }.instrument(samples.as_deref());
    } else if let Some(torch) = option("drain") {
        let torch = (!torch.as_os_str().is_empty()).then_some(torch);
        let profile = option("profile");
        drain::Drain {
            cuda,
            torch,
            profile,
        }
        .pack();
    } else if let Some(samples) = option("samples") {
        Pack { cuda }.samples(&samples);
    } else {
        Pack { cuda }.kernels();
    }
}

pub(crate) struct Pack {
    pub(crate) cuda: PathBuf,
}

impl Pack {
    fn kernels(&self) {
        for source in files_with_extension("testdata/kernels", "hip") {
            let name = source.file_stem().unwrap_or_default().to_string_lossy();
            if !ONLY_AMD.contains(&&*name) {
                for level in LEVELS {
                    self.counts(&name, level);
                }
            }
        }
        for (name, spec) in TIMED {
            self.times(name, spec);
        }
        fs::write("not_run", ONLY_AMD.join(" ")).expect("a file can be written");
    }

    /// A kernel with its buffers and counts on the host.
    fn counts(&self, name: &str, level: &str) {
        let directory = fresh(&format!("counts/{name}{level}"));
        let raw = self.on_host(name, level, &directory);
        let merged = directory.join("host.profdata");
        merge(std::slice::from_ref(&raw), &merged);
        let mut counts = String::new();
        for (name, function) in functions(&merged) {
            let _ = write!(counts, "{name} {}", function.calls);
            for count in function.blocks {
                let _ = write!(counts, " {count}");
            }
            counts.push('\n');
        }
        fs::write(directory.join("counts"), counts).expect("a file can be written");
        for unneeded in [raw, merged] {
            fs::remove_file(unneeded).expect("the file was made above");
        }
        for counters in [Counters::Llvm, Counters::Pass] {
            self.cubin(name, level, Way::Counting(counters), &directory);
        }
    }

    /// Runs a kernel on the host, with the spec and the buffers in `directory`, and returns the raw profile.
    pub(crate) fn on_host(&self, name: &str, level: &str, directory: &Path) -> PathBuf {
        let template = repository("testdata/kernels")
            .join(name)
            .with_extension("spec");
        let spec = expand(&template, directory);
        let raw = directory.join("host.profraw");
        let mut oracle = limited(host_oracle(name, level));
        oracle.arg(&spec).arg(directory);
        run(oracle.env("LLVM_PROFILE_FILE", &raw)).success();
        raw
    }

    /// A kernel of a size that takes time.
    fn times(&self, name: &str, spec: &str) {
        let directory = fresh(&format!("times/{name}"));
        let template = directory.join("template");
        fs::write(&template, spec).expect("a file can be written");
        expand(&template, &directory);
        fs::remove_file(template).expect("the file was made above");
        for way in Way::ALL {
            self.cubin(name, "-O2", way, &directory);
        }
    }

    /// Compiles a kernel into `directory`.
    fn cubin(&self, name: &str, level: &str, way: Way, directory: &Path) {
        let compilation = self
            .ptx()
            .arguments(["-nocudainc", "-nocudalib"])
            .arguments(["-ffp-contract=off", level, "-I"])
            .arguments([repository("testdata/kernels")])
            .reads(files_with_extension("testdata/kernels", "h"));
        let source = repository("testdata/kernels")
            .join(name)
            .with_extension("hip");
        let ptx = way
            .in_device_code(compilation)
            .source(source)
            .output(&format!("{name}.{TARGET}{level}"));
        self.assemble(&ptx, &directory.join(way.name()).with_extension("cubin"));
    }

    /// The flags of code for the device, in PTX.
    pub(crate) fn ptx(&self) -> Compilation {
        Compilation::usual()
            .arguments(["-x", "cuda", "--cuda-device-only", "-S", "-std=c++17"])
            // clang takes the version of PTX from the toolkit.
            .arguments(["--cuda-path=".to_owned() + &self.cuda.to_string_lossy()])
            .arguments([
                format!("--cuda-gpu-arch={TARGET}"),
                "-Wno-unknown-cuda-version".into(),
            ])
    }

    pub(crate) fn assemble(&self, ptx: &Path, cubin: &Path) {
        let mut ptxas = limited(self.cuda.join("bin/ptxas"));
        ptxas.arg(format!("-arch={TARGET}")).arg(ptx);
        run(ptxas.arg("-o").arg(cubin)).success();
    }
}

/// An empty directory in the pack.
pub(crate) fn fresh(name: &str) -> PathBuf {
    fs::create_dir_all(name).expect("the folder of the pack is empty");
    PathBuf::from(name)
}

/// The first line of the compiler's version.
fn compiler() -> String {
    let version = run(limited(clang()).arg("--version")).success().stdout;
    version.lines().next().unwrap_or_default().to_owned()
}
