//! Programs of several translation units: one code object per unit, or one for all with
//! `-fgpu-rdc`.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::compilers::compilers;
use crate::programs::{Ran, source};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::{Compilation, device_header, has_all_levels};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::profile::{functions_by, merge_by};
use crate::support::program::flags_for;
use crate::support::unpacked::not_run;

/// Units of the program without `-fgpu-rdc`.
const UNITS: usize = 12;
/// Units that call each other.
const RDC: &[&str] = &["-fgpu-rdc", "-DSHARED"];
/// Releases that lose the data records of inline functions that several units share. Their
/// constructors refer to these.
const LINKS_NO_SHARED_UNITS: [u32; 2] = [16, 17];
/// Work-items of each unit's launch.
const WORK_ITEMS: u64 = 64;

/// The tools that compile, link, run and read units.
#[derive(Clone, Copy)]
struct Toolchain {
    stack: Stack,
    target: &'static str,
    compiler: &'static Compiler,
}

impl Toolchain {
    /// The compiler with a HIP whose headers it compiles. `None` if the HIP is not unpacked.
    fn for_compiler(compiler: &'static Compiler) -> Option<Self> {
        let (stack, target) = match compiler.release {
            ..23 => (Stack::Debian12, "gfx90a"),
            _ => (Stack::hip_7()?, "gfx942"),
        };
        Some(Self {
            stack,
            target,
            compiler,
        })
    }

    /// clang 22 with Debian 12's HIP.
    fn usual() -> Self {
        let compiler = Compiler::find(22).expect("clang 22 is installed");
        Self::for_compiler(compiler).expect("its HIP is installed")
    }

    /// Compiles or links with only the flags that `rocov flags` prints.
    fn compilation(self, stack: Vec<OsString>, flags: &[&str]) -> Compilation {
        Compilation::by(self.compiler.clang)
            .arguments(stack)
            .arguments([format!("--offload-arch={}", self.target), "-O1".into()])
            .arguments(flags_for(self.compiler.clang, &[]))
            .reads([device_header(), repository("runtime/device/rdc/lld")])
            .arguments(flags.iter().copied())
    }

    fn unit(self, number: usize, flags: &[&str]) -> PathBuf {
        let compiled = self
            .compilation(self.stack.compile_flags_for(self.compiler), flags)
            .arguments([format!("-DUNIT={number}"), "-c".into()])
            .source(source("unit.hip"))
            .output(&format!("unit{number}"));
        placed(&compiled.with_extension("o"), &compiled)
    }

    fn linked(self, units: &[PathBuf], flags: &[&str]) -> PathBuf {
        let mut program = self
            .compilation(self.stack.flags_for(self.compiler), flags)
            // clang 15 omits the section when it embeds the code object.
            .arguments(["--hip-link", "-Wl,-z,noexecstack"]);
        for unit in units {
            program = program.source(unit);
        }
        program.source(source("units.cpp")).output("units")
    }

    /// Runs the program and expects one count of each unit's kernel. Returns the number of
    /// profiles.
    fn all_are_counted(self, program: PathBuf, units: usize) -> usize {
        let ran = Ran::new(self.stack, self.target, &[], [program]);
        let profiles = ran.profiles();
        let merged = ran.directory.path().join("merged.profdata");
        let profdata = self.compiler.tool("llvm-profdata");
        merge_by(profdata, &profiles, &merged);
        let functions = functions_by(profdata, &merged);
        for unit in 0..units {
            let kernel = &functions[&format!("unit_{unit}")];
            let taken = vec![unit as u64 + 1];
            assert_eq!(
                (kernel.calls, &kernel.blocks),
                (WORK_ITEMS, &taken),
                "{unit}"
            );
        }
        ran.ended.silently();
        profiles.len()
    }

    /// Units that call each other form one code object, and have the counts of separate code
    /// objects.
    fn links_units_of_one_code_object(self) {
        let compiled =
            |flags| -> Vec<PathBuf> { (0..3).map(|number| self.unit(number, flags)).collect() };
        let apart = self.linked(&compiled(&[]), &[]);
        assert_eq!(self.all_are_counted(apart, 3), 3);
        let together = self.linked(&compiled(RDC), RDC);
        assert_eq!(self.all_are_counted(together, 3), 1);
    }
}

/// Copies an object to a name with an extension that clang knows. The copy is whole at any time.
fn placed(path: &Path, object: &Path) -> PathBuf {
    let directory = path.parent().expect("a file is in a directory");
    let copy = tempfile::NamedTempFile::new_in(directory).expect("a temporary file");
    std::fs::copy(object, copy.path()).expect("an object can be copied");
    copy.persist(path).expect("a file can be renamed");
    path.to_owned()
}

#[test]
fn each_unit_is_a_code_object() {
    let clang = Toolchain::usual();
    let units: Vec<PathBuf> = (0..UNITS).map(|number| clang.unit(number, &[])).collect();
    let program = clang.linked(&units, &[]);
    assert_eq!(clang.all_are_counted(program, UNITS), UNITS);
}

#[test]
fn one_unit_with_rdc() {
    let clang = Toolchain::usual();
    let program = clang.linked(&[clang.unit(0, &["-fgpu-rdc"])], &["-fgpu-rdc"]);
    assert_eq!(clang.all_are_counted(program, 1), 1);
}

/// The oldest and the newest compiler link them, and all others if `ROCOV_TEST_LEVELS` is `all`.
#[test]
fn units_with_rdc_are_one_code_object() {
    let links = |compiler: &&Compiler| !LINKS_NO_SHARED_UNITS.contains(&compiler.release);
    let mut compilers: Vec<_> = compilers().filter(links).collect();
    if !has_all_levels() && compilers.len() > 2 {
        compilers.drain(1..compilers.len() - 1);
    }
    for compiler in compilers {
        println!("{compiler:?}");
        match Toolchain::for_compiler(compiler) {
            Some(toolchain) => toolchain.links_units_of_one_code_object(),
            None => not_run(&format!("-fgpu-rdc by clang {}", compiler.release)),
        }
    }
}

#[test]
fn clang_16_and_17_link_no_units_that_share_functions() {
    for compiler in LINKS_NO_SHARED_UNITS.into_iter().filter_map(Compiler::find) {
        let toolchain = Toolchain::for_compiler(compiler).expect("Debian 12's HIP is installed");
        let units = [0, 1].map(|number| toolchain.unit(number, RDC));
        let mut link = limited(compiler.clang);
        link.args(toolchain.stack.flags_for(compiler))
            .args(flags_for(compiler.clang, &[]))
            .args(RDC)
            .args(["--hip-link", "-o", "/dev/null"]);
        let ended = run(link.args(units)).with_status(1);
        ended.says(&["undefined symbol: __profd_"]);
    }
}
