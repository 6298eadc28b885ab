//! Compiles and copies what shows that `rocov run --instrument` works on a GPU. instrument.py runs it there, with the
//! compiler of the machine: programs that its nvcc has made are the ones that have no counters.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rocov::format::ptx::Module;
use rocov::instrument::ptx::{PtxOptions, instrument};

use crate::drain::{Drain, host_program, lines_on_host, stripped, with_short_paths};
use crate::samples::PROGRAMS;
use crate::support::artifacts::{files_with_extension, repository};
use crate::support::compile::{Compilation, clang};
use crate::{ONLY_AMD, Pack, fresh};

/// The levels of kernels that clang compiles without counters.
const LEVELS: [&str; 3] = ["-O0", "-O1", "-O3"];

/// More programs of cuda-samples, and their arguments. nvcc compiles them, so they need not be fit for clang.
const MORE: [(&str, &str); 20] = [
    ("0_Introduction/asyncAPI", ""),
    ("0_Introduction/fp16ScalarProduct", ""),
    ("0_Introduction/mergeSort", ""),
    ("0_Introduction/simpleAtomicIntrinsics", ""),
    ("0_Introduction/simpleMultiCopy", ""),
    ("0_Introduction/simpleStreams", ""),
    ("0_Introduction/simpleTemplates", ""),
    ("0_Introduction/simpleVoteIntrinsics", ""),
    ("0_Introduction/vectorAdd", ""),
    ("2_Concepts_and_Techniques/convolutionTexture", ""),
    ("2_Concepts_and_Techniques/shfl_scan", ""),
    ("2_Concepts_and_Techniques/threadFenceReduction", ""),
    ("3_CUDA_Features/binaryPartitionCG", ""),
    ("3_CUDA_Features/globalToShmemAsyncCopy", ""),
    ("3_CUDA_Features/warpAggregatedAtomicsCG", ""),
    ("5_Domain_Specific/HSOpticalFlow", ""),
    ("5_Domain_Specific/dwtHaar1D", ""),
    ("5_Domain_Specific/dxtc", ""),
    ("5_Domain_Specific/stereoDisparity", ""),
    ("6_Performance/transpose", ""),
];

/// The places of the counters of marks.cu, and how it is compiled: the level, and the architecture that the text is for.
const MARKS: [(&str, &str); 3] = [("-O3", "sm_90"), ("-O3", "sm_75"), ("-O0", "sm_90")];

/// Launches of marks.cu.
const LAUNCHES: [(&str, u32, u32); 10] = [
    ("barrier", 20, 1024),
    ("collatz", 90, 224),
    ("calls", 90, 224),
    ("cases", 90, 224),
    ("leaves", 90, 224),
    ("indirect", 90, 224),
    ("bits", 90, 224),
    ("many", 90, 224),
    ("spin", 4, 48),
    ("votes", 90, 224),
];

fn source(name: &str) -> PathBuf {
    repository("testdata/hardware").join(name)
}

fn copy(from: &Path, folder: &Path) {
    let name = from.file_name().unwrap_or_default();
    fs::copy(from, folder.join(name)).expect("a file can be copied");
}

impl Pack {
    pub(crate) fn instrument(&self, samples: Option<&Path>) {
        let folder = fresh("instrument");
        let built = [
            "rocov",
            "librocov.so",
            "librocov_instrument.so",
            "rocov-ptxas",
        ];
        stripped(&built, &folder);
        for name in ["instrument.py", "reasons.py", "drain.py", "in_torch.py"] {
            copy(&source(name), &folder);
        }
        for name in ["extension.cpp", "extension.cu", "extension.h", "doses.h"] {
            copy(&source(name), &folder);
        }
        copy(&source("instrument/in_triton.py"), &folder);
        let expected = fresh("instrument/expected");
        let lines = lines_on_host(&host_program(), "h3", &expected);
        fs::write(expected.join("h3"), lines).expect("a file can be written");
        let kernels = files_with_extension("testdata/kernels", "hip");
        let names = kernels.iter().filter_map(|path| path.file_stem());
        for name in names.map(|name| name.to_string_lossy()) {
            if !ONLY_AMD.contains(&&*name) {
                self.referee(&name);
            }
        }
        for (level, target) in MARKS {
            self.marks(level, target);
        }
        let forms = fresh("instrument/forms");
        for name in ["forms.cu", "tally.cu", "step.cu"] {
            copy(&source(&format!("instrument/{name}")), &forms);
        }
        self.decode();
        let trap = fresh("instrument/trap");
        copy(&source("instrument/trap.ptx"), &trap);
        fs::write(
            trap.join("spec"),
            "noise u32 4 0 0\nlaunch stops 1 1 1 32 1 1 p0\n",
        )
        .expect("a file can be written");
        if let Some(samples) = samples {
            copy_samples(samples);
        }
    }

    /// The source of decode.cu, and programs that clang has made of it: plain, and with its single bytes.
    fn decode(&self) {
        let folder = fresh("instrument/decode");
        copy(&source("instrument/decode.cu"), &folder);
        let drain = Drain {
            cuda: self.cuda.clone(),
            torch: None,
            profile: None,
        };
        for (name, way) in [("plain", None), ("reached", Some("reached"))] {
            let program = Compilation::by(clang())
                .arguments([
                    "-x",
                    "cuda",
                    "-std=c++17",
                    "-O3",
                    "-Wno-unknown-cuda-version",
                ])
                .arguments(drain.flags(clang(), way))
                .arguments([format!("-L{}/lib", self.cuda.display())]);
            let made = with_short_paths(program)
                .source(source("instrument/decode.cu"))
                // After the source, whose references they resolve.
                .arguments(["-lcudart_static", "-ldl", "-lrt", "-lpthread"])
                .output(&format!("decode.{name}"));
            fs::copy(made, folder.join(name)).expect("a file can be copied");
        }
    }

    /// A kernel with clang's counters, and without counters: PTX of clang, and the source for nvcc.
    fn referee(&self, name: &str) {
        let directory = fresh(&format!("instrument/kernels/{name}"));
        fs::remove_file(self.on_host(name, "-O1", &directory)).expect("it was made");
        let source = repository("testdata/kernels")
            .join(name)
            .with_extension("hip");
        let drain = Drain {
            cuda: self.cuda.clone(),
            torch: None,
            profile: None,
        };
        let common = |way: Option<&str>| {
            let compilation = Compilation::by(clang())
                .arguments(["-x", "cuda", "-std=c++17", "-nocudainc", "-nocudalib"])
                .arguments(["-ffp-contract=off", "-Wno-unknown-cuda-version", "-I"])
                .arguments([repository("testdata/kernels")])
                .arguments(drain.flags(clang(), way))
                .arguments(["--cuda-device-only"]);
            with_short_paths(compilation).reads(files_with_extension("testdata/kernels", "h"))
        };
        let counting = common(Some("fast")).arguments(["-O1", "-c"]);
        let made = counting.source(&source).output(&format!("{name}.counting"));
        fs::copy(made, directory.join("counting.cubin")).expect("a file can be copied");
        for level in LEVELS {
            let plain = common(None).arguments([level, "-gline-tables-only", "-S"]);
            let made = plain
                .source(&source)
                .output(&format!("{name}.lines{level}"));
            let path = directory.join(format!("clang{level}.ptx"));
            fs::copy(made, path).expect("a file can be copied");
        }
        // nvcc has its own dev.h.
        fs::copy(&source, directory.join(format!("{name}.cu"))).expect("a file can be copied");
        copy(&self::source("instrument/dev.h"), &directory);
    }

    /// marks.cu with a counter for each block, and the places of the counters of blocks with marks.
    fn marks(&self, level: &str, target: &str) {
        let directory = fresh(&format!("instrument/marks/{target}{level}"));
        let made = Compilation::by(clang())
            .arguments([
                "-x",
                "cuda",
                "--cuda-device-only",
                "-S",
                "-std=c++17",
                level,
            ])
            .arguments([format!("--cuda-path={}", self.cuda.display())])
            .arguments([format!("--cuda-gpu-arch={target}")])
            .arguments(["-Wno-unknown-cuda-version"])
            .source(source("instrument/marks.cu"))
            .output(&format!("marks.{target}{level}"));
        let plain = fs::read_to_string(&made).expect("clang wrote it");
        let module = Module::parse(&plain).expect("clang wrote it");
        let counting = instrument(&module, &PtxOptions::default()).expect("it can count");
        let counted = directory.join("blocks.ptx");
        fs::write(&counted, counting).expect("a file can be written");
        self.assemble(&made, &directory.join("plain.cubin"));
        self.assemble(&counted, &directory.join("blocks.cubin"));
        fs::remove_file(counted).expect("it was made");
        fs::write(directory.join("marks"), places(&module)).expect("a file can be written");
        let mut spec = String::from("noise u32 32768 0 0\n");
        for (kernel, blocks, threads) in LAUNCHES {
            let _ = writeln!(
                spec,
                "launch {kernel} {blocks} 1 1 {threads} 1 1 p0 h194e0000"
            );
        }
        fs::write(directory.join("spec"), spec).expect("a file can be written");
    }
}

/// The number of each mark, and the place of the counter of its block. A mark may be in several blocks.
fn places(module: &Module<'_>) -> String {
    let lines: Vec<&str> = module.text.lines().collect();
    let mut places = String::new();
    let mut first = 0;
    for function in &module.functions {
        let last = function.line + function.text.lines().count();
        let own = lines.iter().enumerate().take(last).skip(function.line);
        for (number, line) in own {
            let Some((_, mark)) = line.split_once("// MARK ") else {
                continue;
            };
            let before = function
                .blocks
                .iter()
                .rposition(|block| block.line <= number + 1);
            let block = before.expect("a mark is in a block");
            let _ = writeln!(places, "{} {}", mark.trim(), first + block);
        }
        first += function.blocks.len();
    }
    places
}

/// Copies the sources of the programs and what they include and read.
fn copy_samples(checkout: &Path) {
    let common = fresh("instrument/samples/Common");
    copy_files(&checkout.join("Common"), &common);
    for (place, arguments) in PROGRAMS.into_iter().chain(MORE) {
        let from = checkout.join("Samples").join(place);
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        let folder = fresh(&format!("instrument/samples/{name}"));
        copy_files(&from, &folder);
        for inner in ["src", "inc", "data"] {
            if from.join(inner).is_dir() {
                copy_files(
                    &from.join(inner),
                    &fresh(&format!("{}/{inner}", folder.display())),
                );
            }
        }
        fs::write(folder.join("arguments"), arguments).expect("a file can be written");
    }
}

/// Copies the files of a folder, but not those in its folders.
fn copy_files(from: &Path, to: &Path) {
    let files = fs::read_dir(from)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", from.display()));
    for file in files {
        let path = file.expect("a folder can be listed").path();
        if path.is_file() {
            copy(&path, to);
        }
    }
}
