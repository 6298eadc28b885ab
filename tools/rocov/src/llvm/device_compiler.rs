//! Compiles a kernel: the releases of clang, and their vendors' builds, differ in device code.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use rocov::support::diagnostic::fail;

use super::Clang;
use crate::support::temporary;
use crate::system::command;

/// A target that every clang with an AMDGPU back end supports, to ask about its flags.
const ANY_ARCH: &str = "gfx90a";

/// The start of the names of NVIDIA's architectures.
pub(crate) const CUDA_ARCH: &str = "sm_";

/// The architecture for which clang compiles CUDA code without a toolkit: that tells it of a newer PTX, which newer
/// architectures need.
const ANY_CUDA_ARCH: &str = "sm_52";

/// The options of LLVM without which it cannot instrument CUDA code. A data record has the distance to its counters
/// otherwise, and PTX cannot express it.
const CUDA_OPTIONS: [&str; 1] = ["-profile-correlate=binary"];

/// A kernel: all that clang needs to write down the names of functions.
const KERNEL: &[u8] = b"__attribute__((global)) void kernel(int *value) { *value = 1; }\n";

/// The form of the flags by which a clang instruments device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The driver's flags reach the device compilation.
    Driver,
    /// The driver keeps them from it, so they go to the front end directly. `-Xarch_device` takes no
    /// option with an argument and refuses `-Xclang`, so the host's front end gets them, too.
    FrontEnd,
}

/// A clang that compiles device code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceCompiler<'a> {
    pub(crate) clang: &'a Clang,
    pub(crate) form: Form,
    /// The architecture that it compiles for.
    arch: &'a str,
    pub(crate) language: Language,
}

/// The language of GPU code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Hip,
    Cuda,
}

impl Language {
    /// The language of code for all of `archs`; HIP without any.
    ///
    /// # Errors
    ///
    /// Fails if they are of both.
    pub(crate) fn for_archs(archs: &[String]) -> Result<Self> {
        let is_cuda = |arch: &&String| arch.starts_with(CUDA_ARCH);
        let (cuda, hip): (Vec<_>, Vec<_>) = archs.iter().partition(is_cuda);
        match (cuda.first(), hip.first()) {
            (Some(cuda), Some(hip)) => {
                fail!(
                    "one compilation cannot target both AMD and NVIDIA GPUs ({hip} and {cuda})";
                    "run `rocov flags` for each"
                )
            }
            (Some(_), None) => Ok(Self::Cuda),
            (None, _) => Ok(Self::Hip),
        }
    }

    /// The options of the driver for code in this language that needs no headers and libraries.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Hip => &["-x", "hip"],
            // Toolkits that are newer than clang's list work, too.
            Self::Cuda => &["-x", "cuda", "-Wno-unknown-cuda-version"],
        }
    }

    /// The options of LLVM that its device code needs.
    pub(crate) fn llvm_options(self) -> &'static [&'static str] {
        match self {
            Self::Hip => &[],
            Self::Cuda => &CUDA_OPTIONS,
        }
    }
}

impl<'a> DeviceCompiler<'a> {
    /// Asks `clang` whether it passes instrumentation on to a device compilation for all of `archs`, or for any.
    ///
    /// # Errors
    ///
    /// Fails if it cannot compile for one of them.
    pub(crate) fn new(clang: &'a Clang, archs: &'a [String]) -> Result<Self> {
        let language = Language::for_archs(archs)?;
        Ok(Self {
            clang,
            language,
            form: Form::probe(clang, language, archs)?,
            arch: match language {
                Language::Hip => archs.first().map_or(ANY_ARCH, String::as_str),
                Language::Cuda => ANY_CUDA_ARCH,
            },
        })
    }

    /// The start of a command that compiles instrumented code for the device only.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.clang.path);
        command.args(self.language.options());
        command.args(["--cuda-device-only", "-nogpuinc", "-nogpulib"]);
        for option in self.language.llvm_options() {
            command.args(for_device(format!("-mllvm={option}")));
        }
        command.arg(format!("--offload-arch={}", self.arch));
        command.args(self.form.instrumentation(false));
        command
    }

    /// Compiles a kernel with `options` to LLVM IR on standard output. Warnings are errors, because clang only
    /// warns of an option that it does not pass on.
    ///
    /// # Errors
    ///
    /// Fails if clang cannot be run.
    pub(crate) fn compile(&self, options: &[OsString]) -> Result<Output> {
        let mut source = temporary::unnamed()?;
        source
            .write_all(KERNEL)
            .and_then(|()| source.rewind())
            .context("cannot write a temporary file")?;
        let mut command = self.command();
        command.args(options).arg("-Werror");
        command.args(["-S", "-emit-llvm", "-o", "-", "-"]);
        command::ended(command.stdin(Stdio::from(source)))
    }

    /// The LLVM IR of a kernel that clang compiles with `options`; `None` if it does not take them.
    ///
    /// # Errors
    ///
    /// Fails if clang cannot be run.
    pub(crate) fn ir(&self, options: &[OsString]) -> Result<Option<String>> {
        let output = self.compile(options)?;
        let ir = || String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(output.status.success().then(ir))
    }
}

impl Form {
    /// Asks `clang` whether it passes instrumentation on to a device compilation.
    fn probe(clang: &Clang, language: Language, archs: &[String]) -> Result<Self> {
        let mut command = Command::new(&clang.path);
        // -### prints the commands without running them.
        command.arg("-###").args(language.options());
        command.args(["--cuda-device-only", "-nogpuinc", "-nogpulib"]);
        if archs.is_empty() {
            command.arg(format!("--offload-arch={ANY_ARCH}"));
        }
        command.args(archs.iter().map(|arch| format!("--offload-arch={arch}")));
        command.args(["-fprofile-instr-generate", "-S", "/dev/null"]);
        let output = command::ended(&mut command)?;
        if !output.status.success() {
            fail!(
                "{} reports: {}", clang.path.display(), command::reason(&output);
                "fix that, or name another compiler with --clang"
            );
        }
        let commands = String::from_utf8_lossy(&output.stderr);
        Ok(if commands.contains("\"-fprofile-instrument=clang\"") {
            Self::Driver
        } else {
            Self::FrontEnd
        })
    }

    /// The flags that instrument device code, and host code too if the user wants it.
    pub(crate) fn instrumentation(self, host: bool) -> Vec<&'static str> {
        const DRIVER: [&str; 3] = [
            "-fprofile-instr-generate",
            "-fcoverage-mapping",
            // Without it counters are plain loads and stores, and lanes lose each other's updates.
            "-fprofile-update=atomic",
        ];
        const FRONT_END: [&str; 3] = [
            "-fprofile-instrument=clang",
            "-fcoverage-mapping",
            "-fprofile-update=atomic",
        ];
        match (self, host) {
            (Self::Driver, true) => DRIVER.to_vec(),
            (Self::Driver, false) => each_after("-Xarch_device", DRIVER),
            (Self::FrontEnd, host) => {
                let mut flags = each_after("-Xclang", FRONT_END);
                // Tells the device header that the code is instrumented: clang before 19 has no macro
                // for it.
                flags.push("-DROCOV_DEVICE_INSTRUMENTED");
                if host {
                    // Only these link LLVM's host runtime, which writes the host's profile.
                    flags.extend(["-fprofile-instr-generate", "-fcoverage-mapping"]);
                }
                flags
            }
        }
    }
}

fn each_after(prefix: &'static str, flags: [&'static str; 3]) -> Vec<&'static str> {
    flags.into_iter().flat_map(|flag| [prefix, flag]).collect()
}

/// The words that give `flag` to device code only.
pub(crate) fn for_device(flag: impl Into<OsString>) -> [OsString; 2] {
    ["-Xarch_device".into(), flag.into()]
}
