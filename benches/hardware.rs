//! Packs what tools/dev/hardware runs on an NVIDIA GPU: `cargo bench -p rocov --bench hardware -- FOLDER CUDA`. FOLDER
//! is empty or absent, CUDA has bin/ptxas. The kernels of testdata/kernels are compiled here, in each way of counting, and their counts and
//! buffers are made here, on the host.

#[path = "../tests/support/mod.rs"]
#[allow(
    dead_code,
    reason = "shared with the whole-program tests, which use all of it"
)]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use support::artifacts::{files_with_extension, repository};
use support::command::{limited, run};
use support::compile::{Counters, clang, host_oracle};
use support::cuda::{counting, to_ptx};
use support::profile::{functions, merge};
use support::spec::expand;

/// The target of the cubins.
const TARGET: &str = "sm_90";
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The kernels that use instructions of AMD GPUs, or waves of 64 lanes.
const ONLY_AMD: [&str; 4] = ["dots", "halves", "saturate", "wave"];

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
enum Way {
    Plain,
    Reached,
    Counting(Counters),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Reached => "reached",
            Self::Counting(Counters::Llvm) => "llvm",
            Self::Counting(_) => "fast",
        }
    }
}

fn main() {
    // cargo passes --bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let [folder, cuda] = arguments.as_slice() else {
        eprintln!("usage: cargo bench -p rocov --bench hardware -- FOLDER CUDA");
        std::process::exit(2);
    };
    let pack = Pack {
        cuda: PathBuf::from(cuda),
    };
    // The specs name their files relative to the folder.
    fs::create_dir_all(folder).expect("the folder can be made");
    std::env::set_current_dir(folder).expect("the folder was made");
    for source in files_with_extension("testdata/kernels", "hip") {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        if !ONLY_AMD.contains(&&*name) {
            for level in LEVELS {
                pack.counts(&name, level);
            }
        }
    }
    for (name, spec) in TIMED {
        pack.times(name, spec);
    }
    fs::write("compiler", compiler()).expect("a file can be written");
    fs::write("not_run", ONLY_AMD.join(" ")).expect("a file can be written");
}

struct Pack {
    cuda: PathBuf,
}

impl Pack {
    /// A kernel with its buffers and counts on the host.
    fn counts(&self, name: &str, level: &str) {
        let directory = fresh(&format!("counts/{name}{level}"));
        let template = repository("testdata/kernels")
            .join(name)
            .with_extension("spec");
        let spec = expand(&template, &directory);
        let raw = directory.join("host.profraw");
        let mut oracle = limited(host_oracle(name, level));
        oracle
            .arg(&spec)
            .arg(&directory)
            .env("LLVM_PROFILE_FILE", &raw);
        run(&mut oracle).success();
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

    /// A kernel of a size that takes time.
    fn times(&self, name: &str, spec: &str) {
        let directory = fresh(&format!("times/{name}"));
        let template = directory.join("template");
        fs::write(&template, spec).expect("a file can be written");
        expand(&template, &directory);
        fs::remove_file(template).expect("the file was made above");
        let ways = [
            Way::Plain,
            Way::Counting(Counters::Llvm),
            Way::Reached,
            Way::Counting(Counters::Pass),
        ];
        for way in ways {
            self.cubin(name, "-O2", way, &directory);
        }
    }

    /// Compiles a kernel into `directory`.
    fn cubin(&self, name: &str, level: &str, way: Way, directory: &Path) {
        let ptx = self.ptx(name, level, way);
        let mut ptxas = limited(self.cuda.join("bin/ptxas"));
        ptxas.arg(format!("-arch={TARGET}")).arg(ptx);
        ptxas
            .arg("-o")
            .arg(directory.join(way.name()).with_extension("cubin"));
        run(&mut ptxas).success();
    }

    /// A kernel in PTX.
    fn ptx(&self, name: &str, level: &str, way: Way) -> PathBuf {
        let compilation = to_ptx(&self.cuda, TARGET, level);
        let compilation = match way {
            Way::Plain => compilation,
            Way::Reached => {
                let bytes = [
                    "-enable-single-byte-coverage",
                    "-conditional-counter-update",
                ];
                let for_llvm = bytes.into_iter().flat_map(|option| ["-mllvm", option]);
                counting(compilation).arguments(for_llvm)
            }
            Way::Counting(counters) => counting(compilation).counting_in(counters),
        };
        let source = repository("testdata/kernels")
            .join(name)
            .with_extension("hip");
        compilation
            .source(source)
            .output(&format!("{name}.{TARGET}{level}"))
    }
}

/// An empty directory in the pack.
fn fresh(name: &str) -> PathBuf {
    fs::create_dir_all(name).expect("the folder of the pack is empty");
    PathBuf::from(name)
}

/// The first line of the compiler's version.
fn compiler() -> String {
    let version = run(limited(clang()).arg("--version")).success().stdout;
    version.lines().next().unwrap_or_default().to_owned()
}
