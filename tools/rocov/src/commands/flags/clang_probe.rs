//! Probes a clang by compiling device code: releases differ, and so do their vendors' builds.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use rocov::support::diagnostic::fail;

use crate::llvm::{DeviceCompiler, Language, for_device};
use crate::system::command;

/// Options of LLVM that device code is compiled with by each clang that supports them.
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

/// The start of the options that only AMD's code needs.
const AMDGPU_OPTION: &str = "-amdgpu-";

/// The name of LLVM's list of constructors.
const CONSTRUCTORS: &str = "\n@llvm.global_ctors = ";

/// The end of the path of LLVM's device runtime. clang 24 links it, and Debian's has none.
const RUNTIME: &str = "/libclang_rt.profile.a";

/// The name under which clang before 23 has the names of each translation unit's functions.
const NAMES: &str = "\n@__llvm_prf_nm = ";

/// The device runtime among the words of a link command.
fn runtime(commands: &str) -> Option<&Path> {
    let mut words = commands.split('"');
    words.find(|word| word.ends_with(RUNTIME)).map(Path::new)
}

/// The words that give an option of LLVM's to device code.
fn llvm_option(option: &str) -> [OsString; 2] {
    for_device(format!("-mllvm={option}"))
}

/// The properties of one clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClangProbe {
    /// The options that it supports, of [`OPTIONS`] and [`NO_CONSTRUCTORS`].
    pub(super) options: Vec<&'static str>,
    /// True if two units of one code object (`-fgpu-rdc`) define the same symbol.
    pub(super) units_clash: bool,
    /// True if it links its own device runtime into counting code, and does not have it.
    pub(super) lacks_runtime: bool,
}

impl ClangProbe {
    /// Compiles a kernel, and asks how device code is linked.
    ///
    /// # Errors
    ///
    /// Fails if that is not possible with any options.
    pub(super) fn run(compiler: &DeviceCompiler<'_>) -> Result<Self> {
        let plain = compiler.compile(&[])?;
        if !plain.status.success() {
            let clang = compiler.clang.path.display();
            fail!(
                "{clang} reports: {}", command::reason(&plain);
                "fix that, or name another compiler with --clang"
            );
        }
        let ir = String::from_utf8_lossy(&plain.stdout);
        let registers = ir.contains(CONSTRUCTORS).then_some(NO_CONSTRUCTORS);
        let mut options = Vec::new();
        let is_for_it = |option: &&str| {
            compiler.language == Language::Hip || !option.starts_with(AMDGPU_OPTION)
        };
        for option in OPTIONS.into_iter().chain(registers).filter(is_for_it) {
            if compiler.ir(&llvm_option(option))?.is_some() {
                options.push(option);
            }
        }
        // -### prints the commands without running them.
        let mut link = compiler.command();
        let link = command::ended(link.args(["-###", "/dev/null", "-o", "/dev/null"]))?;
        Ok(Self {
            options,
            units_clash: ir.contains(NAMES),
            lacks_runtime: runtime(&String::from_utf8_lossy(&link.stderr))
                .is_some_and(|path| !path.exists()),
        })
    }

    /// The flags that give the options to the linking of OpenMP's device code, when it becomes machine code.
    pub(super) fn openmp_linking(&self) -> Vec<OsString> {
        let given = self
            .options
            .iter()
            .flat_map(|option| ["-Xoffload-linker".into(), format!("-mllvm={option}").into()]);
        given.collect()
    }

    /// The flags that give the options to device code, for its compilation and its linking.
    pub(super) fn for_device(&self) -> Vec<OsString> {
        self.options
            .iter()
            .flat_map(|option| llvm_option(option))
            .collect()
    }
}
