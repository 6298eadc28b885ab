//! The stand-in, and cubins that count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol};
use tempfile::TempDir;

use crate::support::artifacts::repository;
use crate::support::command::{Ended, limited, rocov_run, run, run_once};
use crate::support::compile::clang;
use crate::support::profile::{Functions, functions_by, merge_by, profdata};
use crate::support::unpacked::asked;

/// A function's counts as LLVM's tools print them: the calls, then the other counters.
pub(crate) type Counts = BTreeMap<String, Vec<u64>>;

/// The stand-in's libraries and program, and a cubin. They are built once.
pub(crate) struct Setup {
    toolkit: PathBuf,
    directory: TempDir,
    pub(crate) cubin: PathBuf,
}

impl Setup {
    /// `None` if the CUDA toolkit is not unpacked.
    pub(crate) fn get() -> Option<&'static Self> {
        static SETUP: OnceLock<Option<Setup>> = OnceLock::new();
        SETUP.get_or_init(Self::make).as_ref()
    }

    fn make() -> Option<Self> {
        let toolkit = asked("bin", "cuda-12.9", "cubins are not made and not drained")?;
        let directory = TempDir::new().expect("a directory can be made");
        let within = |name: &str| directory.path().join(name);
        let source = |name: &str| repository("testdata/cuda").join(name);
        let library = |name: &str, from: &str, options: &[&str]| {
            let mut command = limited("gcc");
            command
                .args(["-shared", "-fPIC", "-O1", "-Wl,-soname"])
                .args(options);
            command.arg(format!("-Wl,{name}")).arg("-o");
            run(command.arg(within(name)).arg(source(from))).success();
        };
        library("libcuda.so.1", "driver.c", &[]);
        library("libcupti.so.12", "cupti.c", &[]);
        library("older.so", "cupti.c", &["-DOLDER"]);
        library("compilers.so", "compilers.c", &[]);
        let mut command = limited("gcc");
        command
            .arg("-o")
            .arg(within("steps"))
            .arg(source("steps.c"));
        run(command
            .arg(within("libcuda.so.1"))
            .arg("-ldl")
            .arg("-pthread"))
        .success();
        let cubin = within("kernels.cubin");
        let plain = within("plain.cubin");
        let setup = Self {
            toolkit: PathBuf::from(toolkit.trim()),
            directory,
            cubin,
        };
        setup.compile(
            clang(),
            "kernels.cu",
            ["--counters=llvm", "-O1"],
            &setup.cubin,
        );
        setup.assemble(clang(), "kernels.cu", &["-O1"], &plain);
        Some(setup)
    }

    /// The folder of the CUDA toolkit.
    pub(crate) fn toolkit(&self) -> &Path {
        self.toolkit.parent().unwrap_or(&self.toolkit)
    }

    /// A tool of the CUDA toolkit.
    pub(crate) fn tool(&self, name: &str) -> Command {
        limited(self.toolkit.join(name))
    }

    /// The cubin without counters.
    pub(crate) fn plain(&self) -> PathBuf {
        self.directory.path().join("plain.cubin")
    }

    /// The program with `steps`, under `rocov run`.
    pub(crate) fn command(&self, data: &Path, steps: &[String]) -> Command {
        let mut command = rocov_run(None, data);
        self.program(&mut command, "steps").args(steps);
        command
    }

    /// Adds a program to a command that runs it, with the stand-in's libraries.
    pub(crate) fn program<'a>(&self, command: &'a mut Command, name: &str) -> &'a mut Command {
        command.arg(self.directory.path().join(name));
        command.env("LD_LIBRARY_PATH", self.directory.path());
        command.env("ROCOV_CUPTI", self.directory.path().join("libcupti.so.12"))
    }

    /// A library of the stand-in.
    pub(crate) fn library(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the program with `steps`, under `rocov run`.
    pub(crate) fn run(&self, data: &Path, steps: &[String]) -> Ended {
        run(&mut self.command(data, steps))
    }

    /// A cubin of the source by another clang, with a way of counting and a level of optimization.
    pub(crate) fn compiled_by(&self, clang: &str, source: &str, options: [&str; 2]) -> PathBuf {
        let release = Path::new(clang).file_name().unwrap_or_default();
        let name = format!("{}{}", release.to_string_lossy(), options.concat());
        let cubin = self.directory.path().join(name).with_extension("cubin");
        self.compile(clang, source, options, &cubin);
        cubin
    }

    /// Compiles a source of testdata/cuda with the flags that `rocov flags` prints.
    fn compile(&self, clang: &str, source: &str, [counters, level]: [&str; 2], cubin: &Path) {
        let mut flags = limited(crate::support::artifacts::built("rocov"));
        flags.args(["flags", "--offload-arch=sm_90", "--clang", clang, counters]);
        let flags = run_once(&mut flags).success().stdout;
        let flags: Vec<&str> = flags.split_whitespace().chain([level]).collect();
        self.assemble(clang, source, &flags, cubin);
    }

    /// The LLVM IR of a source of testdata/cuda.
    pub(crate) fn ir(&self, source: &str, flags: &[&str]) -> String {
        let mut command = self.clang(clang(), source);
        command.args(["-emit-llvm", "-S", "-o", "-"]).args(flags);
        run(&mut command).success().stdout
    }

    pub(crate) fn assemble(&self, clang: &str, source: &str, flags: &[&str], cubin: &Path) {
        let ptx = cubin.with_extension("ptx");
        let mut command = self.clang(clang, source);
        command.args(["--cuda-device-only", "-S", "--offload-arch=sm_90"]);
        run(command.args(flags).arg("-o").arg(&ptx)).success();
        let mut ptxas = limited(self.toolkit.join("ptxas"));
        ptxas.arg("-arch=sm_90").arg(&ptx).arg("-o").arg(cubin);
        run(&mut ptxas).success();
    }

    fn clang(&self, clang: &str, source: &str) -> Command {
        let mut command = limited(clang);
        command.args(["-x", "cuda", "-Wno-unknown-cuda-version"]);
        command.arg(format!("--cuda-path={}", self.toolkit().display()));
        command.arg(repository("testdata/cuda").join(source));
        command
    }
}

/// The step that loads `file` by `how`: `load` or `library`.
pub(crate) fn step(how: &str, file: &Path) -> String {
    format!("{how}:{}", file.display())
}

/// Steps without a file.
pub(crate) fn steps<const N: usize>(all: [&str; N]) -> Vec<String> {
    all.map(str::to_owned).to_vec()
}

/// The counts of these profiles together, by llvm-profdata.
pub(crate) fn counts(profiles: &[PathBuf], data: &Path) -> Counts {
    counts_by(profdata(), profiles, data)
}

/// The counts of these profiles together, by another compiler's llvm-profdata.
pub(crate) fn counts_by(profdata: &str, profiles: &[PathBuf], data: &Path) -> Counts {
    let merged = data.join("merged.profdata");
    merge_by(profdata, profiles, &merged);
    counts_of(functions_by(profdata, &merged))
}

/// The counts of these functions.
pub(crate) fn counts_of(found: Functions) -> Counts {
    let counts = found.into_iter().map(|(name, function)| {
        let calls = [function.calls].into_iter();
        (name, calls.chain(function.blocks).collect())
    });
    counts.collect()
}

/// The names of the variables with counters in a cubin, and the numbers of these.
pub(crate) fn counters(cubin: &Path) -> Vec<(String, u64)> {
    let bytes = fs::read(cubin).expect("it was made");
    let elf = ElfFile64::<LittleEndian>::parse(&*bytes).expect("a cubin");
    let symbols = elf.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?;
        let is_one = name.starts_with("__profc_");
        is_one.then(|| (name.to_owned(), symbol.size() / 8))
    });
    symbols.collect()
}

/// The profiles of the usual GPUs in a data directory.
pub(crate) fn profiles(data: &Path) -> Vec<PathBuf> {
    profiles_of("sm_90.", data)
}

/// The profiles whose names have this start.
pub(crate) fn profiles_of(start: &str, data: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(data.join("profraw")).expect("there are profiles");
    let paths = files.map(|file| file.expect("it can be listed").path());
    let mut found: Vec<_> = paths
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(start)
        })
        .collect();
    found.sort();
    found
}

/// The mangled names of functions in testdata/cuda/kernels.cu.
pub(crate) const BIN_OF: &str = "_Z6bin_off";
pub(crate) const HISTOGRAM: &str = "_Z9histogramPKfiPj";

/// Expects these counts, and none of other functions.
pub(crate) fn expect(found: &Counts, expected: &[(&str, &[u64])]) {
    for (name, counts) in found {
        let wanted = expected.iter().find(|(function, _)| function == name);
        let zeros = vec![0; counts.len()];
        let wanted = wanted.map_or(zeros.as_slice(), |(_, counts)| *counts);
        assert_eq!(counts, wanted, "{name}");
    }
    for (name, _) in expected {
        assert!(found.contains_key(*name), "{name} is missing in {found:?}");
    }
}
