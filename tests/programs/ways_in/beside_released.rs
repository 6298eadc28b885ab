//! The released form of LLVM's own drain for HIP: clang 23's clang_rt.profile_rocm, linked into
//! programs on HIP 7.2.4. Under `rocov run` rocov drains, under `rocov run --drain=llvm` LLVM's
//! drain does, and the other one writes nothing. LLVM's drain reads device memory through HIP,
//! which crashes if the host cannot reach that memory.

use super::programs::{KERNEL, on_model, source};
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::{Compilation, device_header};
use crate::support::compilers::Compiler;
use crate::support::gpu::{Stack, data};
use crate::support::profile::{functions_by, merge_by, raw_profiles};
use crate::support::program::flags_for;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const GPU: &str = "gfx942";

/// Calls, and calls below the limit, of one launch.
const CALLS: u64 = 128;
const TALLIED: u64 = 100;

struct Tools {
    clang: &'static Compiler,
    stack: Stack,
}

impl Tools {
    /// Returns `None` if one of them is not unpacked. Standard error then names it and reports the
    /// skipped test.
    fn find() -> Option<Tools> {
        let (clang, stack) = (Compiler::find(23)?, Stack::hip_7()?);
        Some(Tools { clang, stack })
    }

    /// A source as an object or another output of clang, with the flags of `rocov flags OPTIONS`.
    fn compiled(&self, source: PathBuf, options: &[&str], more: &[&str], name: &str) -> PathBuf {
        Compilation::by(self.clang.clang)
            .arguments(["-x", "hip", "-c", "-O1"])
            .arguments([format!("--offload-arch={GPU}")])
            .arguments(self.stack.compile_flags())
            .arguments(flags_for(self.clang.clang, options))
            .arguments(more)
            .source(source)
            .reads([device_header(), self::source("tally.h")])
            .output(name)
    }

    /// A program of these sources with LLVM's drain in it.
    fn program(&self, sources: &[PathBuf], options: &[&str], name: &str) -> PathBuf {
        let mut resources = limited(self.clang.clang);
        let resources = run(resources.arg("-print-resource-dir")).success().stdout;
        let drain = format!(
            "{}/lib/linux/libclang_rt.profile_rocm-x86_64.a",
            resources.trim()
        );
        let mut link = Compilation::by(self.clang.clang);
        for source in sources {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            link = link.source(self.compiled(source.clone(), options, &[], &format!("{stem}.o")));
        }
        link.source(drain)
            .arguments(["-fprofile-instr-generate"])
            // Instrumented host code of HIP programs refers to this symbol.
            .arguments(["-Wl,-u,__llvm_profile_hip_collect_device_data"])
            .arguments(self.stack.linking())
            .output(name)
    }

    /// Expects the device code's counts of this number of launches in the only device profile.
    /// Returns its name.
    #[track_caller]
    fn device_profile(&self, data: &Path, launches: u64, ended: &Ended) -> String {
        let name = |path: &PathBuf| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let is_device = |path: &PathBuf| name(path).starts_with(GPU);
        let (device, host): (Vec<_>, Vec<_>) = raw_profiles(data).into_iter().partition(is_device);
        assert_eq!(host.len(), 1, "the host's own profile: {host:?}: {ended}");
        assert_eq!(device.len(), 1, "{device:?}: {ended}");
        let (profdata, merged) = (
            self.clang.tool("llvm-profdata"),
            data.join("device.profdata"),
        );
        merge_by(profdata, &device, &merged);
        let functions = functions_by(profdata, &merged);
        let kernel = functions.get(KERNEL).expect("the kernel");
        let expected = (CALLS * launches, vec![TALLIED * launches]);
        assert_eq!((kernel.calls, kernel.blocks.clone()), expected, "{ended}");
        name(&device[0])
    }

    /// Runs a program and expects its counts once, from the chosen drain.
    fn one_drains(&self, program: &[OsString], launches: u64) {
        for (bar, options, is_llvms) in [
            ("small", &[][..], false),
            ("large", &[], false),
            ("large", &["--drain=rocov"], false),
            ("large", &["--drain=llvm"], true),
        ] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let data = data(directory.path());
            let mut command = limited(built("rocov"));
            command
                .args(["run", "--gpu", &format!("model:{GPU}"), "-o"])
                .arg(&data);
            command.args(options).arg("--").args(self.stack.starter());
            command.args(program).env("ROCOV_MODELGPU_BAR", bar);
            let ended = run(&mut command).success();
            let name = self.device_profile(&data, launches, &ended);
            assert_eq!(
                is_of_llvm(&name),
                is_llvms,
                "{bar}, {options:?}: {name}: {ended}"
            );
            let words = ended.stderr.contains("rocov:") || ended.stderr.contains("LLVM Profile");
            assert!(!words, "{bar}, {options:?}: {ended}");
        }
    }
}

/// Returns whether a file of device counts has a name from LLVM's drain: with the target's
/// features, or with a position in its walk.
fn is_of_llvm(name: &str) -> bool {
    name.contains(':') || name.contains(".hsa")
}

/// The program without its symbols.
fn stripped(program: &Path) -> PathBuf {
    let stripped = program.with_extension("stripped");
    run(limited("strip").arg(program).arg("-o").arg(&stripped)).success();
    stripped
}

#[test]
fn linked_into_a_program() {
    let Some(tools) = Tools::find() else { return };
    let sources = ["main.cpp", "tally.hip"].map(source);
    for (options, name) in [
        (&[][..], "tally-released"),
        (&["--host"], "tally-host-released"),
    ] {
        let program = tools.program(&sources, options, name);
        for program in [stripped(&program), program] {
            tools.one_drains(&[program.into()], 2);
        }
    }
}

/// LLVM's drain takes a module's counts when the program unloads it.
#[test]
fn linked_into_a_program_that_unloads_modules() {
    let Some(tools) = Tools::find() else { return };
    let modules = repository("testdata/programs/found/modules.cpp");
    let program = tools.program(&[modules], &["--host"], "modules-released");
    let device_only = ["--cuda-device-only", "--no-gpu-bundle-output"];
    let module = tools.compiled(
        source("tally.hip"),
        &[],
        &device_only,
        "tally-released.module",
    );
    let launch = format!("launch:{KERNEL}:{TALLIED}");
    let steps = ["data", &launch, "sync", "unload"].map(OsString::from);
    let words = [&[program.into(), module.into()][..], &steps].concat();
    tools.one_drains(&words, 1);
}

/// Like with a linked librocov: no setting chooses the drain.
#[test]
fn without_rocov_run_that_one_drains() {
    let Some(tools) = Tools::find() else { return };
    let sources = ["main.cpp", "tally.hip"].map(source);
    let program = tools.program(&sources, &[], "tally-released");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let mut command: Command = on_model(&data, &[built("librocov.so")]);
    command.args([&format!("ROCOV_MODELGPU={GPU}"), "ROCOV_MODELGPU_BAR=large"]);
    command.arg(format!(
        "LLVM_PROFILE_FILE={}",
        data.join("%p.profraw").display()
    ));
    let ended = run(command.args(tools.stack.starter()).arg(&program)).success();
    let name = tools.device_profile(&data, 2, &ended);
    assert!(is_of_llvm(&name), "{name}: {ended}");
    let warning = "set ROCOV_DRAIN=rocov to let rocov do it";
    assert_eq!(ended.stderr.matches(warning).count(), 1, "{ended}");
}
