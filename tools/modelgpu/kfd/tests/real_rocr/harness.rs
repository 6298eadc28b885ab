//! Compiles test programs and runs them on the model.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The last line of a program that finished without a failed check.
pub(crate) const FINISHED: &str = "finished, failures: 0";

/// Seconds until a program counts as hanging.
const TIMEOUT: &str = "120";

/// The library under test, in the directory above this test's executable. Tests do not make cargo
/// build it, so the test fails if it is older than its sources.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(find_library)
}

fn find_library() -> PathBuf {
    let executable = std::env::current_exe().expect("a test has an executable");
    let directory = executable.parent().and_then(Path::parent);
    let path = directory
        .expect("cargo puts tests into target/PROFILE/deps")
        .join("librocov_modelgpu.so");
    let build = "build it first: cargo build --release -p modelgpu-kfd";
    let built = modified(&path);
    assert!(built.is_some(), "{} is missing; {build}", path.display());
    for part in ["kfd", "queue", "amdgcn"] {
        let sources = repository().join("tools/modelgpu").join(part).join("src");
        assert!(
            built >= newest(&sources),
            "{} is older than {}; {build}",
            path.display(),
            sources.display()
        );
    }
    path
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

/// The newest modification time of a directory's files, subdirectories included. Cargo does not build a library anew for tests
/// of its modules.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).expect("the sources are there");
    let times = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        match path.is_dir() {
            true => newest(&path),
            false if path.to_string_lossy().ends_with("_tests.rs") => None,
            false => modified(&path),
        }
    });
    times.max()
}

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    root.expect("the crate lies in tools/modelgpu/kfd").into()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// The directory for this test's files.
pub(crate) fn scratch() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modelgpu-kfd");
    fs::create_dir_all(&directory).expect("cargo's directory for tests is writable");
    directory
}

/// Runs a compiler that makes `output`, unless `output` is newer than every source.
fn compile(output: &str, mut compiler: Command) -> PathBuf {
    let output = scratch().join(output);
    // Tests run in parallel and share programs. One compiles, others wait.
    let lock = File::create(output.with_added_extension("lock")).expect("a file can be made");
    lock.lock().expect("a file can be locked");
    if modified(&output) > newest(&source("")) {
        return output;
    }
    let result = compiler.arg("-o").arg(&output).output();
    let result = result.unwrap_or_else(|error| panic!("{compiler:?}: {error}; run tools/setup"));
    assert!(
        result.status.success(),
        "{compiler:?}\n{}",
        String::from_utf8_lossy(&result.stderr)
    );
    output
}

/// A C program for HSA.
pub(crate) fn c_program(name: &str) -> PathBuf {
    let mut compiler = Command::new("clang-22");
    compiler
        .args(["-O1", "-Wall", "-Wextra", "-Werror"])
        .arg(source(&format!("{name}.c")))
        .arg("-lhsa-runtime64");
    compile(name, compiler)
}

/// Flags of clang 22 for this machine's HIP 5.2.
pub(crate) const HIP_5_2: [&str; 6] = [
    "-D__AMDGCN_WAVEFRONT_SIZE=64",
    "--rocm-path=/usr",
    "--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
    // HIP 5.2 cannot load newer versions.
    "-mcode-object-version=4",
    "--hip-link",
    "-lamdhip64",
];

/// A HIP program for this machine's HIP and gfx90a.
pub(crate) fn hip_program(name: &str) -> PathBuf {
    hip_program_with(name, name, &["gfx90a"], &HIP_5_2)
}

/// A HIP program with the caller's flags.
pub(crate) fn hip_program_with(
    name: &str,
    output: &str,
    targets: &[&str],
    flags: &[&str],
) -> PathBuf {
    let mut compiler = Command::new("clang++-22");
    compiler.args(["-x", "hip", "-O1", "-Wall"]);
    compiler.args(
        targets
            .iter()
            .map(|target| format!("--offload-arch={target}")),
    );
    compiler.arg(source(&format!("{name}.hip"))).args(flags);
    compile(output, compiler)
}

/// The code object of `kernels.hip`.
pub(crate) fn code_object(target: &str) -> PathBuf {
    let mut compiler = Command::new("clang++-22");
    compiler
        .args([
            "-x",
            "hip",
            "-O1",
            "--cuda-device-only",
            "-nogpulib",
            "-nogpuinc",
        ])
        .args(["-mcode-object-version=4", "--no-gpu-bundle-output"])
        .arg(format!("--offload-arch={target}"))
        .arg(source("kernels.hip"));
    compile(&format!("kernels.{target}.co"), compiler)
}

/// The result of a program.
pub(crate) struct Ended {
    /// Its exit status; 128 plus the signal's number if a signal ended it; 124 if it hung.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts that the program finished and found no errors.
    pub(crate) fn assert_finished(&self) -> &Self {
        assert!(
            self.status == 0 && self.stdout.contains(FINISHED),
            "{}",
            self.text()
        );
        self
    }

    /// The whole result, for a failed assertion.
    pub(crate) fn text(&self) -> String {
        format!("status {}\n{}\n{}", self.status, self.stdout, self.stderr)
    }
}

/// A program to run on the model.
pub(crate) struct Run {
    command: Command,
}

impl Run {
    /// `program` with the library preloaded and one modelled gfx90a.
    pub(crate) fn new(program: &Path) -> Self {
        Self::under(&[], program)
    }

    /// Like `new`, with a launcher's command line before the program.
    pub(crate) fn under(launcher: &[&str], program: &Path) -> Self {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", TIMEOUT]);
        // The launcher's interpreter need not run under the model; the program must.
        command.args(launcher).arg(program);
        let run = Self { command };
        run.env("LD_PRELOAD", library())
            .env("ROCOV_MODELGPU", "gfx90a")
            .env("ROCOV_MODELGPU_TMP", scratch())
            // Programs that crash on purpose must not leave core files in the source tree.
            .current_directory(&scratch())
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    fn current_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs the program to its end.
    pub(crate) fn output(mut self) -> Ended {
        let output = self.command.output();
        let Output {
            status,
            stdout,
            stderr,
        } = output.unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended {
            status: exit_status(status),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}

fn exit_status(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).expect("it ended one way or other")
}
