//! Compiles the programs of testdata/hardware, which show that the drain works on a GPU. drain.py runs them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{Compilation, clang, device_header};
use crate::support::compilers::Compiler;
use crate::support::profile::{cov, merge};
use crate::{TARGET, fresh};

/// The values of `--counters=` of `rocov flags`, and programs that do not count.
const WAYS: [Option<&str>; 3] = [Some("llvm"), Some("fast"), None];

const SHARED: [&str; 3] = ["-l:libcudart.so.12", "-Wl,-rpath,$ORIGIN/..", "-ldl"];
const STATIC: [&str; 4] = ["-lcudart_static", "-ldl", "-lrt", "-lpthread"];

/// The libraries of PyTorch that have the functions which the extension calls.
const OF_TORCH: [&str; 3] = ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so"];

/// The makings of the part drain.
pub(crate) struct Drain {
    pub(crate) cuda: PathBuf,
    /// A folder with the headers of PyTorch, and the CUDA runtime that it comes with.
    pub(crate) torch: Option<PathBuf>,
    /// A profile of calibrate.cu.
    pub(crate) profile: Option<PathBuf>,
}

fn source(name: &str) -> PathBuf {
    repository("testdata/hardware").join(name)
}

/// Makes a library without symbols. A program that is linked with it needs a library of this name.
fn empty_library(path: PathBuf, name: &str) -> PathBuf {
    let mut link = limited(clang());
    link.args(["-shared", "-nostdlib", "-x", "c", "/dev/null"]);
    link.arg(format!("-Wl,-soname={name}")).arg("-o").arg(&path);
    run(&mut link).success();
    path
}

/// Copies what is built into a folder, without symbols.
pub(crate) fn stripped(names: &[&str], folder: &Path) {
    for name in names {
        let copy = folder.join(name);
        fs::copy(built(name), &copy).expect("a file can be copied");
        run(limited("strip").arg(&copy)).success();
    }
}

/// The kernels on the host, with clang's counters.
pub(crate) fn host_program() -> PathBuf {
    with_short_paths(Compilation::usual())
        .arguments(["-std=c++17", "-O1"])
        .arguments(["-fprofile-instr-generate", "-fcoverage-mapping"])
        .source(source("host.cpp"))
        .output("host")
}

/// The lines of launches on the host, as llvm-cov tells them in LCOV.
pub(crate) fn lines_on_host(host: &Path, doses: &str, directory: &Path) -> String {
    let raw = directory.join("profraw");
    let merged = directory.join("profdata");
    let mut oracle = limited(host);
    run(oracle.arg(doses).env("LLVM_PROFILE_FILE", &raw)).success();
    merge(std::slice::from_ref(&raw), &merged);
    let mut export = limited(cov());
    export.args(["export", "--format=lcov", "--instr-profile"]);
    let lcov = run(export.arg(&merged).arg(host)).success().stdout;
    for unneeded in [raw, merged] {
        fs::remove_file(unneeded).expect("the file was made above");
    }
    lcov
}

fn headers() -> Vec<PathBuf> {
    let names = ["doses.h", "other.h", "on_host.h", "extension.h"];
    names.into_iter().map(source).collect()
}

/// The files in a report are those of the pack, wherever the repository is.
pub(crate) fn with_short_paths(compilation: Compilation) -> Compilation {
    let repository = repository("");
    let root = repository.to_string_lossy();
    let root = root.trim_end_matches('/');
    compilation
        .arguments([
            format!("-ffile-prefix-map={root}=."),
            "-fcoverage-compilation-dir=.".into(),
            // That of code only for the device, which has no unit of host code.
            "-Wno-unused-command-line-argument".into(),
        ])
        .reads(headers())
}

impl Drain {
    pub(crate) fn pack(&self) {
        let folder = fresh("drain");
        stripped(&["rocov", "librocov.so"], &folder);
        let usual = clang();
        for way in WAYS {
            let name = way.unwrap_or("plain");
            let object = |file: &str, options: &[&str]| self.object(usual, way, file, options);
            let program = object("runtime.cu", &[]);
            self.link(
                &folder.join(format!("shared-{name}")),
                usual,
                &[&program],
                &SHARED,
            );
            self.link(
                &folder.join(format!("static-{name}")),
                usual,
                &[&program],
                &STATIC,
            );
            let library = object("runtime.cu", &["-DLIBRARY", "-fPIC"]);
            let options = [&["-shared"][..], &STATIC].concat();
            self.link(
                &folder.join(format!("library-{name}.so")),
                usual,
                &[&library],
                &options,
            );
            for module in ["doses", "other", "counters"] {
                let cubin = self
                    .compilation(usual, way)
                    .arguments(["--cuda-device-only"]);
                self.keep(
                    cubin,
                    &format!("{module}.cu"),
                    &folder.join(format!("{module}-{name}.cubin")),
                );
            }
            let calibrate = object("calibrate.cu", &[]);
            self.link(
                &folder.join(format!("calibrate-{name}")),
                usual,
                &[&calibrate],
                &STATIC,
            );
        }
        for way in ["llvm", "fast"] {
            self.counting(&folder, way);
        }
        if let Some(profile) = &self.profile {
            // As `rocov merge --pgo` prints it.
            let path = profile.display();
            let options = [
                format!("-Xarch_{TARGET}"),
                format!("-Wp,-fprofile-instrument-use=clang,-fprofile-instrument-use-path={path}"),
            ];
            let compilation = self.compilation(usual, None).arguments(options);
            let compilation = compilation.reads([profile.clone()]);
            let object = compilation
                .arguments(["-c"])
                .source(source("calibrate.cu"))
                .output("calibrate.pgo.o");
            self.link(&folder.join("calibrate-pgo"), usual, &[&object], &STATIC);
        }
        self.expected(&folder);
    }

    /// Makes the programs that exist only with counters.
    fn counting(&self, folder: &Path, way: &str) {
        let usual = clang();
        let file = |name: &str| folder.join(format!("{name}-{way}"));
        let ptx = self
            .compilation(usual, Some(way))
            .arguments(["--cuda-device-only", "-S"]);
        self.keep(ptx, "doses.cu", &folder.join(format!("doses-{way}.ptx")));
        self.link(
            &file("ptx"),
            usual,
            &[&self.with_image(usual, way, "ptx")],
            &STATIC,
        );
        self.link_device_code(&file("rdc"), way);
        // Two units that the driver links. Only one may count: see `link_device_code`.
        for (module, way) in [("doses", Some(way)), ("other", None)] {
            let relocatable =
                self.compilation(usual, way)
                    .arguments(["--cuda-device-only", "-fgpu-rdc", "-c"]);
            let name = format!("{module}-{}.o", way.unwrap_or("plain"));
            self.keep(relocatable, &format!("{module}.cu"), &folder.join(name));
        }
        for release in [19, 23] {
            let Some(compiler) = Compiler::find(release) else {
                continue;
            };
            let object = self.with_image(compiler.clang, way, "elf");
            let path = folder.join(format!("clang{release}-{way}"));
            self.link(&path, compiler.clang, &[&object], &STATIC);
        }
        if let Some(torch) = &self.torch {
            let kernel = self.object(usual, Some(way), "extension.cu", &["-fPIC"]);
            let include = torch.join("include");
            // clang 18 and later write the names of PyTorch's templates in a way of their own.
            let binding = folder.join("extension.o");
            let mut compile = limited("g++");
            compile.args(["-c", "-std=c++17", "-O1", "-fPIC", "-w", "-I"]);
            compile
                .arg(&include)
                .arg("-I")
                .arg(self.cuda.join("include"));
            compile
                .arg("-I")
                .arg(include.join("torch/csrc/api/include"));
            compile.arg(source("extension.cpp")).arg("-o").arg(&binding);
            run(&mut compile).success();
            // PyTorch has loaded its libraries and its CUDA runtime before it loads the extension, but only for
            // those who name them.
            let mut link = limited(usual);
            link.args(["-shared", "-s", "-Wl,--no-as-needed", "-o"]);
            link.arg(folder.join(format!("extension-{way}.so")));
            link.args([&kernel, &binding]);
            let libraries = OF_TORCH.map(|name| empty_library(folder.join(name), name));
            link.args(&libraries);
            run(link.arg(torch.join("libcudart.so.13"))).success();
            for unneeded in libraries.iter().chain([&binding]) {
                fs::remove_file(unneeded).expect("the file was made above");
            }
        }
    }

    /// The program with one image: PTX, which the driver compiles, or a cubin. NVIDIA's fatbinary of CUDA 13 does not know
    /// the options of clang 19, so it is called here.
    fn with_image(&self, compiler: &'static str, way: &str, kind: &str) -> PathBuf {
        let device = self.compilation(compiler, Some(way)).arguments([
            "--cuda-device-only",
            if kind == "ptx" { "-S" } else { "-c" },
        ]);
        let image = device
            .source(source("runtime.cu"))
            .output(&format!("runtime.{kind}"));
        let fat = PathBuf::from(format!("{}.fatbin", image.display()));
        let mut fatbinary = limited(self.cuda.join("bin/fatbinary"));
        let sm = TARGET.trim_start_matches("sm_");
        fatbinary.arg("--64").arg("--create").arg(&fat);
        fatbinary.arg(format!(
            "--image3=kind={kind},sm={sm},file={}",
            image.display()
        ));
        run(&mut fatbinary).success();
        self.compilation(compiler, None)
            .arguments(["--cuda-host-only", "-c"])
            .arguments(["-Xclang", "-fcuda-include-gpubinary", "-Xclang"])
            .source(fat)
            .source(source("runtime.cu"))
            .output(&format!("runtime.{kind}.o"))
    }

    /// Two units whose device code is linked. Without `-foffload-lto`, nvlink takes only one unit that counts:
    /// both have a variable with the name `__llvm_prf_nm`.
    fn link_device_code(&self, path: &Path, way: &str) {
        let mut clang = limited(clang());
        let root = repository("");
        let root = root.to_string_lossy();
        clang.args([
            "-x",
            "cuda",
            "-std=c++17",
            "-O2",
            "-fgpu-rdc",
            "-foffload-lto",
        ]);
        clang.args([
            "-Wno-unknown-cuda-version",
            "-DWITH_OTHER",
            "-DWEIGHT_ELSEWHERE",
        ]);
        clang.arg(format!(
            "-ffile-prefix-map={}=.",
            root.trim_end_matches('/')
        ));
        clang.arg("-fcoverage-compilation-dir=.");
        clang.args(self.flags("clang++-22", Some(way)));
        clang.arg(source("runtime.cu")).arg(source("unit.cu"));
        clang
            .args(["-x", "none", "-s", "-L"])
            .arg(self.cuda.join("lib"));
        clang.args(STATIC).arg("-o").arg(path);
        clang.env("PATH", self.path());
        run(&mut clang).success();
    }

    /// The linker of device code is next to the assembler.
    fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}/bin:{path}", self.cuda.display())
    }

    pub(crate) fn flags(&self, compiler: &str, way: Option<&str>) -> Vec<String> {
        let Some(way) = way else {
            return vec![
                format!("--offload-arch={TARGET}"),
                format!("--cuda-path={}", self.cuda.display()),
            ];
        };
        let mut flags = limited(built("rocov"));
        flags.args(["flags", "--clang", compiler, "--counters", way]);
        flags.arg(format!("--offload-arch={TARGET}"));
        flags.arg(format!("--cuda-path={}", self.cuda.display()));
        let flags = run(&mut flags).success().stdout;
        flags.split_whitespace().map(str::to_owned).collect()
    }

    fn compilation(&self, compiler: &'static str, way: Option<&str>) -> Compilation {
        let compilation = Compilation::by(compiler)
            .arguments(["-x", "cuda", "-std=c++17", "-O2"])
            .arguments(["-Wno-unknown-cuda-version", "-Wno-pass-failed"])
            .arguments(self.flags(compiler, way));
        with_short_paths(compilation).reads([device_header()])
    }

    fn object(
        &self,
        compiler: &'static str,
        way: Option<&str>,
        name: &str,
        options: &[&str],
    ) -> PathBuf {
        self.compilation(compiler, way)
            .arguments(options.iter().copied())
            .arguments(["-c"])
            .source(source(name))
            .output(&format!("{name}.{}.o", way.unwrap_or("plain")))
    }

    fn keep(&self, compilation: Compilation, name: &str, path: &Path) {
        let made = compilation.source(source(name)).output(name);
        fs::copy(made, path).expect("a file can be copied");
    }

    fn link(&self, path: &Path, compiler: &str, objects: &[&PathBuf], options: &[&str]) {
        let mut link = limited(compiler);
        link.arg("-s")
            .args(objects)
            .arg("-L")
            .arg(self.cuda.join("lib"));
        link.arg(format!("--cuda-path={}", self.cuda.display()));
        link.arg("-Wno-unknown-cuda-version");
        link.args(options);
        run(link.arg("-o").arg(path)).success();
    }

    /// The lines, functions and branches of each run that drain.py asks for, by llvm-cov, with the kernels on the host.
    fn expected(&self, folder: &Path) {
        let expected = fresh("drain/expected");
        let host = host_program();
        let script = folder.join("drain.py");
        fs::copy(source("drain.py"), &script).expect("a file can be copied");
        let asked = run(limited("python3").arg(&script).arg("doses")).success();
        for doses in asked.stdout.split_whitespace() {
            fs::write(expected.join(doses), lines_on_host(&host, doses, &expected))
                .expect("a file can be written");
        }
        // `rocov report --show` prints them.
        let sources = fresh("drain/testdata/hardware");
        for header in headers() {
            let name = header.file_name().unwrap_or_default();
            fs::copy(&header, sources.join(name)).expect("a file can be copied");
        }
        for name in ["in_python.py", "in_torch.py"] {
            fs::copy(source(name), folder.join(name)).expect("a file can be copied");
        }
    }
}
