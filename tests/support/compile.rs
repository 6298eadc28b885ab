//! Compiles the sources in testdata, and keeps each result until one of its inputs changes.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::artifacts::{cache_directory, files_with_extension, repository};
use super::command::{limited, run, run_once};
use super::compilers::Compiler;
use super::gpu::Stack;

/// The clang++ of the tests' compiler.
pub fn clang() -> &'static str {
    Compiler::usual().clang
}

/// The flags that make clang count, on the device and on the host.
pub const INSTRUMENTATION: [&str; 3] = [
    "-fprofile-instr-generate",
    "-fcoverage-mapping",
    "-fprofile-update=atomic",
];

/// The flags and the header for HIP 5.2.
const DEBIAN12: [&str; 2] = ["testdata/sample/debian12.cfg", "testdata/sample/debian12.h"];

/// The way in which device code counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// As LLVM does: all waves add to one word.
    Llvm,
    /// By librocov_pass: in registers, and in a copy for each compute unit.
    Pass,
    /// By librocov_pass, with the uniform counters that code from clang 23 has.
    PassUniform,
}

impl Counters {
    /// The ways of the tests' compiler.
    pub fn all() -> Vec<Self> {
        let compiler = Compiler::usual();
        let pass = plugin(compiler.release).map(|_| Self::Pass);
        let uniform = pass
            .filter(|_| compiler.has_uniform_counters())
            .map(|_| Self::PassUniform);
        let all = [Some(Self::Llvm), pass, uniform];
        all.into_iter().flatten().collect()
    }
}

/// librocov_pass for this release of LLVM. Reports a test as not run if there is none for the release.
///
/// # Panics
///
/// Panics if it is not built, and the release is one that tools/dev/pass must build.
pub fn plugin(release: u32) -> Option<PathBuf> {
    const RELEASES: [u32; 3] = [19, 22, 23];
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(repository("target"), PathBuf::from);
    let plugin = target.join(format!("pass/librocov_pass-{release}.so"));
    if !RELEASES.contains(&release) && !plugin.exists() {
        println!("not run: librocov_pass of clang {release}: tools/dev/pass has built none");
        return None;
    }
    assert!(
        plugin.exists(),
        "no {}: run tools/dev/pass",
        plugin.display()
    );
    Some(plugin)
}

/// Returns whether tests compile all that they can, and not a part in turn: `ROCOV_TEST_LEVELS` is `all`, as
/// `tools/test --stacks all` sets it.
pub fn has_all_levels() -> bool {
    std::env::var("ROCOV_TEST_LEVELS").is_ok_and(|levels| levels == "all")
}

/// One compilation: its command, and the inputs of its result.
pub struct Compilation {
    compiler: &'static str,
    arguments: Vec<OsString>,
    inputs: Vec<PathBuf>,
}

impl Compilation {
    /// By the compiler that the tests are run with.
    pub fn usual() -> Self {
        Self::by(clang())
    }

    /// By the compiler of programs for this stack.
    pub fn on(stack: Stack) -> Self {
        Self::by(stack.compiler().clang)
    }

    /// By this clang.
    pub fn by(compiler: &'static str) -> Self {
        Self {
            compiler,
            arguments: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// Adds arguments.
    pub fn arguments<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Makes the tests' compiler count in code objects that it compiles without host code, with the device
    /// header. clang 24 needs rocov's linker for that: it links a library that Debian does not have.
    pub fn counting(self) -> Self {
        let linker = repository("runtime/device/rdc");
        let linker =
            (Compiler::usual().release >= 24).then(|| ["-B".into(), linker.into_os_string()]);
        self.arguments(INSTRUMENTATION)
            .arguments(linker.into_iter().flatten())
            .arguments(["-include"])
            .source(device_header())
    }

    /// Chooses the way in which device code counts, after `counting`.
    pub fn counting_in(self, counters: Counters) -> Self {
        match counters {
            Counters::Llvm => self,
            Counters::Pass => {
                let plugin = plugin(Compiler::usual().release).expect("a way of this compiler");
                let flag = format!("-fpass-plugin={}", plugin.display());
                self.arguments([flag]).reads([plugin])
            }
            Counters::PassUniform => self
                .counting_in(Counters::Pass)
                .arguments(["-DROCOV_UNIFORMITY"]),
        }
    }

    /// Adds an input file to the command line.
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.arguments.push(path.clone().into());
        self.inputs.push(path);
        self
    }

    /// Adds input files that the command line does not name: headers.
    pub fn reads(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.inputs.extend(paths);
        self
    }

    /// Leaves out what clang includes before HIP code, the mathematics of device code, if no input includes the header of
    /// HIP that needs it: it takes longer to read than all else.
    fn without_mathematics(self) -> Self {
        let is_hip = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "hip");
        let needs_it = |path: &PathBuf| {
            let text = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&text).contains("#include <hip/hip_runtime.h>")
        };
        match self.inputs.iter().any(is_hip) && !self.inputs.iter().any(needs_it) {
            true => self
                .arguments(["-nogpuinc"])
                .reads([repository("testdata/programs/hip.h")]),
            false => self,
        }
    }

    /// Compiles, unless a kept result has these inputs. `name` starts the result's file name.
    pub fn output(self, name: &str) -> PathBuf {
        self.without_mathematics().compiled(name)
    }

    fn compiled(self, name: &str) -> PathBuf {
        let directory = cache_directory();
        let file = format!("{name}-{:016x}", self.key());
        let output = directory.join(&file);
        // One process compiles, others wait. clang derives identifiers from its whole command line,
        // so two compilations of one source give two different programs. One must not replace the
        // other while a test uses it.
        let lock =
            File::create(directory.join(format!("{file}.lock"))).expect("a file can be made");
        lock.lock().expect("a file can be locked");
        if output.exists() {
            return output;
        }
        let unfinished = directory.join(format!("{file}.unfinished"));
        let mut clang = limited(self.compiler);
        clang.args(&self.arguments).arg("-o").arg(&unfinished);
        run(&mut clang).success().silently();
        std::fs::rename(&unfinished, &output).expect("a file can be renamed beside itself");
        output
    }

    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let version = run_once(limited(self.compiler).arg("--version"));
        version.success().stdout.hash(&mut hasher);
        self.arguments.hash(&mut hasher);
        // HIP 5.2's flags name these.
        let inputs = DEBIAN12.map(repository).into_iter();
        let words = self.arguments.iter().filter_map(|word| word.to_str());
        let plugins = words.filter_map(|word| word.strip_prefix("-fpass-plugin="));
        let inputs = inputs.chain(plugins.map(PathBuf::from));
        for path in inputs.chain(self.inputs.iter().cloned()) {
            std::fs::read(&path)
                .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
                .hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The header that makes device code drainable.
pub fn device_header() -> PathBuf {
    repository("runtime/device/rocov_device.h")
}

/// The source of testdata/kernels with this name.
pub fn kernel_source(name: &str) -> PathBuf {
    repository("testdata/kernels")
        .join(name)
        .with_extension("hip")
}

/// A source of testdata/kernels as a code object. HIP 5.2 loads version 4, later releases load 5.
pub fn code_object(name: &str, target: &str, level: &str, version: u8) -> PathBuf {
    code_object_of(&kernel_source(name), target, level, version)
}

/// A source of testdata/kernels as a code object that counts in this way.
pub fn code_object_counting(
    name: &str,
    target: &str,
    level: &str,
    version: u8,
    counters: Counters,
) -> PathBuf {
    counting_code_object(
        &kernel_source(name),
        target,
        level,
        version,
        Some(counters),
        &[],
    )
}

/// A source of testdata/kernels as a code object that counts and has debug information.
pub fn code_object_with_lines(name: &str, target: &str, level: &str, version: u8) -> PathBuf {
    counting_code_object(&kernel_source(name), target, level, version, None, &["-g"])
}

/// Compiles only for GPUs, without HIP's headers and libraries and without instrumentation.
pub fn device_only(compiler: &'static str, targets: &[&str], version: u8) -> Compilation {
    let bundled = if targets.len() > 1 {
        "--gpu-bundle-output"
    } else {
        "--no-gpu-bundle-output"
    };
    Compilation::by(compiler)
        .arguments(["-x", "hip", "--cuda-device-only", bundled])
        .arguments(["-nogpuinc", "-nogpulib"])
        .arguments(["-std=c++17", "-ffp-contract=off"])
        .arguments(
            targets
                .iter()
                .map(|target| format!("--offload-arch={target}")),
        )
        .arguments([format!("-mcode-object-version={version}"), "-I".into()])
        .arguments([repository("testdata/kernels")])
        .reads(files_with_extension("testdata/kernels", "h"))
}

/// Any source that needs no HIP header as a code object, instrumented.
pub fn code_object_of(source: &Path, target: &str, level: &str, version: u8) -> PathBuf {
    counting_code_object(source, target, level, version, None, &[])
}

fn counting_code_object(
    source: &Path,
    target: &str,
    level: &str,
    version: u8,
    counters: Option<Counters>,
    more: &[&str],
) -> PathBuf {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let mut compilation = device_only(clang(), &[target], version)
        .arguments([level])
        .arguments(more)
        .counting();
    let calls_by_address = ["callees", "indirect"].contains(&&*stem);
    if (level == "-O0" || calls_by_address) && version == 4 {
        // Without the pass that infers these attributes, or if functions are called by their address,
        // clang marks every kernel as one that may enqueue kernels. HIP 5.2 then reads the address of a queue that only OpenCL makes, and
        // crashes on every GPU.
        for attribute in ["amdgpu-no-default-queue", "amdgpu-no-completion-action"] {
            compilation =
                compilation.arguments(["-Xclang", "-default-function-attr", "-Xclang", attribute]);
        }
    }
    if let Some(counters) = counters {
        compilation = compilation.counting_in(counters);
    }
    compilation
        .source(source)
        .output(&format!("{stem}.{target}{level}"))
}

/// A source of testdata/kernels for the host, with a runner that takes a spec and a directory.
pub fn host_oracle(name: &str, level: &str) -> PathBuf {
    host_oracle_with(name, level, &[])
}

/// Like `host_oracle`, with further flags for the counted source.
pub fn host_oracle_with(name: &str, level: &str, flags: &[&str]) -> PathBuf {
    host_oracle_of(&kernel_source(name), level, flags)
}

/// Like `host_oracle_with`, for any source that includes dev.h.
pub fn host_oracle_of(source: &Path, level: &str, flags: &[&str]) -> PathBuf {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let instrumented = Compilation::usual()
        .arguments(["-x", "c++", "-c", "-std=c++17", "-ffp-contract=off", level])
        .arguments(INSTRUMENTATION)
        .arguments(flags.iter().copied())
        .arguments(["-I".into(), repository("testdata/kernels")])
        .source(source)
        .reads(files_with_extension("testdata/kernels", "h"))
        .output(&format!("{name}.host{level}"));
    Compilation::usual()
        // The runner finds kernels by their dynamic symbols.
        .arguments(["-rdynamic", "-fprofile-instr-generate"])
        .source(oracle_object("spec"))
        .source(oracle_object("fibres"))
        .source(oracle_object("host_runner"))
        .source(instrumented)
        .output(&format!("{name}.oracle{level}"))
}

/// A source of testdata/oracle, not instrumented.
fn oracle_object(name: &str) -> PathBuf {
    Compilation::usual()
        .arguments(["-c", "-std=c++17", "-O1", "-Wall", "-Wextra", "-I"])
        .arguments([repository("testdata/kernels")])
        .arguments(["-D__HIP_PLATFORM_AMD__"])
        .source(
            repository("testdata/oracle")
                .join(name)
                .with_extension("cpp"),
        )
        .reads(files_with_extension("testdata/oracle", "h"))
        .reads(files_with_extension("testdata/kernels", "h"))
        .output(name)
}

/// The HIP program that runs a spec from a code object, linked with the HIP of these flags.
pub fn module_runner(linking: &[OsString]) -> PathBuf {
    Compilation::usual()
        .source(oracle_object("module_runner"))
        .source(oracle_object("spec"))
        .arguments(linking)
        .output("module_runner")
}

/// testdata/sample as a gfx90a program for the usual stack.
pub fn sample(flags: &[OsString]) -> PathBuf {
    sample_on(Stack::usual(), flags)
}

/// testdata/sample as a gfx90a program for this stack.
pub fn sample_on(stack: Stack, flags: &[OsString]) -> PathBuf {
    let mut all: Vec<OsString> = vec!["--offload-arch=gfx90a".into()];
    all.extend_from_slice(flags);
    sample_by(stack.compiler(), stack, &all, &[])
}

/// testdata/sample by this compiler, for any HIP. The flags name `profiles`.
pub fn sample_by(
    compiler: &'static Compiler,
    stack: Stack,
    flags: &[OsString],
    profiles: &[PathBuf],
) -> PathBuf {
    let folder = repository("testdata/sample");
    Compilation::by(compiler.clang)
        .arguments(stack.flags_for(compiler))
        .arguments(["-O1"])
        .arguments(flags)
        .source(folder.join("main.hip"))
        .source(folder.join("statistics.hip"))
        .reads([folder.join("statistics.h")])
        .reads([device_header()])
        .reads(profiles.iter().cloned())
        .output("sample")
}
