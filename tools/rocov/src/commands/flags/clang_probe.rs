//! Probes a clang by compiling device code: releases differ, and so do their vendors' builds.

use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

use super::{ANY_ARCH, Form};
use crate::llvm::Clang;
use crate::support::temporary;
use crate::system::command;

/// Options of LLVM that device code is compiled with by each clang that knows them.
const OPTIONS: [&str; 2] = [
    // Counters make functions large. LLVM reserves registers for branches that could become long,
    // and may choose those with the return address (llvm/llvm-project#224205): such code hangs.
    "-amdgpu-long-branch-factor=0",
    // clang 23 counts in one block of 8, unless the runtime decides otherwise, as the header does.
    "-offload-pgo-sampling=0",
];

/// The option that drops the constructors of a code object. clang up to 17 emits one that registers the
/// data records with the runtime, and nothing needs it. HIP runs it as a kernel. clang 17's calls
/// through a table, so LLVM marks it as one that may enqueue kernels, and HIP 5.2 crashes on such a
/// kernel.
const NO_CONSTRUCTORS: &str = "-amdgpu-lower-global-ctor-dtor=0";

/// The name of LLVM's list of constructors.
const CONSTRUCTORS: &str = "\n@llvm.global_ctors = ";

/// A kernel: all that clang needs to write down the names of functions.
const KERNEL: &[u8] = b"__attribute__((global)) void kernel(int *value) { *value = 1; }\n";

/// The end of the path of LLVM's device runtime. clang 24 links it, and Debian's has none.
const RUNTIME: &str = "/libclang_rt.profile.a";

/// The name under which clang before 23 has the names of each translation unit's functions.
const NAMES: &str = "\n@__llvm_prf_nm = ";

/// The device runtime among the words of a link command.
fn runtime(commands: &str) -> Option<&Path> {
    let mut words = commands.split('"');
    words.find(|it| it.ends_with(RUNTIME)).map(Path::new)
}

/// The words that give an option of LLVM's to device code.
fn for_device(option: &str) -> [String; 2] {
    ["-Xarch_device".to_owned(), format!("-mllvm={option}")]
}

/// The properties of one clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClangProbe {
    /// The options that it knows, of [`OPTIONS`] and [`NO_CONSTRUCTORS`].
    pub(super) options: Vec<&'static str>,
    /// True if two units of one code object (`-fgpu-rdc`) define the same symbol.
    pub(super) units_clash: bool,
    /// True if it links its own device runtime into counting code, and does not have it.
    pub(super) lacks_runtime: bool,
}

impl ClangProbe {
    /// Compiles a kernel for the first of `archs`, or for any.
    ///
    /// # Errors
    ///
    /// Fails if that is not possible with any options.
    pub(super) fn of(clang: &Clang, form: Form, archs: &[String]) -> Result<Self> {
        let arch = archs.first().map_or(ANY_ARCH, String::as_str);
        let device_only = || {
            let mut command = Command::new(&clang.path);
            command.args(["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib"]);
            command.arg(format!("--offload-arch={arch}"));
            command.args(form.instrumentation(false));
            command
        };
        let compile = |option: Option<&str>| -> Result<Output> {
            let mut source = temporary::unnamed()?;
            source
                .write_all(KERNEL)
                .and_then(|()| source.rewind())
                .context("cannot write a temporary file")?;
            let mut command = device_only();
            // An option that clang would not pass on is a warning of clang's.
            command.args(option.into_iter().flat_map(for_device));
            command.arg("-Werror");
            command.args(["-S", "-emit-llvm", "-o", "-", "-"]);
            command::ended(command.stdin(Stdio::from(source)))
        };
        let plain = compile(None)?;
        if !plain.status.success() {
            bail!("{} says: {}", clang.path.display(), command::reason(&plain));
        }
        let ir = String::from_utf8_lossy(&plain.stdout);
        let registers = ir.contains(CONSTRUCTORS).then_some(NO_CONSTRUCTORS);
        let mut options = Vec::new();
        for option in OPTIONS.into_iter().chain(registers) {
            if compile(Some(option))?.status.success() {
                options.push(option);
            }
        }
        // -### prints the commands without running them.
        let link = command::ended(device_only().args(["-###", "/dev/null", "-o", "/dev/null"]))?;
        Ok(Self {
            options,
            units_clash: ir.contains(NAMES),
            lacks_runtime: runtime(&String::from_utf8_lossy(&link.stderr))
                .is_some_and(|path| !path.exists()),
        })
    }

    /// The flags that give the options to the linking of OpenMP's device code, when it becomes machine code.
    pub(super) fn openmp_linking(&self) -> Vec<String> {
        let given = self.options.iter();
        let given = given.flat_map(|it| ["-Xoffload-linker".to_owned(), format!("-mllvm={it}")]);
        given.collect()
    }

    /// The flags that give the options to device code, for its compilation and its linking.
    pub(super) fn flags(&self, form: Form) -> Vec<String> {
        let given = self.options.iter().flat_map(|it| for_device(it));
        match form {
            Form::FrontEnd if !self.options.is_empty() => {
                // Such a clang warns of them if it links no device code.
                let quiet = ["--start-no-unused-arguments", "--end-no-unused-arguments"];
                let [start, end] = quiet.map(String::from);
                [start].into_iter().chain(given).chain([end]).collect()
            }
            _ => given.collect(),
        }
    }
}
