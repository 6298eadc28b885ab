//! LLVM's own drain for HIP as released: clang 23's `libclang_rt.profile_rocm`, on HIP 7.2.4. It
//! reads device memory through HIP with the CPU, so the modelled GPU needs a large BAR.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::artifacts::{built, files_with_extension};
use super::command::{Ended, limited, run};
use super::compile::{Compilation, device_header};
use super::compilers::Compiler;
use super::gpu::Stack;
use super::profile::{Functions, functions_by, raw_profiles};
use super::program::{flags_for, is_of_zeros};

/// The architecture of these programs.
pub const GPU: &str = "gfx942";

/// The switch of the modelled GPU's BAR.
pub const BAR: &str = "ROCOV_MODELGPU_BAR";

/// clang 23, and HIP 7.2.4.
#[derive(Clone, Copy)]
pub struct Released {
    /// The compiler.
    pub clang: &'static Compiler,
    /// The runtime.
    pub stack: Stack,
}

impl Released {
    /// Returns `None` if one of them is not unpacked. Standard error then names it and reports the
    /// skipped test.
    pub fn find() -> Option<Self> {
        Self::on(Stack::hip_7()?)
    }

    /// Programs for another HIP. Returns `None` if clang 23 is not unpacked.
    pub fn on(stack: Stack) -> Option<Self> {
        let clang = Compiler::find(23)?;
        Some(Self { clang, stack })
    }

    /// A source as an object or another output of clang, with the flags of `rocov flags OPTIONS`.
    pub fn compiled(&self, source: &Path, options: &[&str], more: &[&str], name: &str) -> PathBuf {
        let folder = source
            .parent()
            .expect("a file is in a directory")
            .to_string_lossy();
        Compilation::by(self.clang.clang)
            .arguments(["-x", "hip", "-c", "-O1", "-fPIC"])
            .arguments([format!("--offload-arch={GPU}")])
            .arguments(self.stack.compile_flags_for(self.clang))
            // LLVM's drain knows nothing of copies of counters.
            .arguments(flags_for(
                self.clang.clang,
                &[options, &["--counters=llvm"]].concat(),
            ))
            .arguments(more)
            .source(source)
            .reads([device_header()])
            .reads(files_with_extension(&folder, "h"))
            .output(name)
    }

    /// The code object of a source.
    pub fn code_object(&self, source: &Path, more: &[&str], name: &str) -> PathBuf {
        let device_only = ["--cuda-device-only", "--no-gpu-bundle-output"];
        self.compiled(source, &[], &[&device_only, more].concat(), name)
    }

    /// Links a program, or with `-shared` a library, with HIP and with no drain.
    pub fn linked(&self, objects: &[PathBuf], more: &[&str], name: &str) -> PathBuf {
        self.link(objects, more).output(name)
    }

    /// Links a program, or with `-shared` a library, with HIP and LLVM's drain.
    pub fn linked_with_drain(&self, objects: &[PathBuf], more: &[&str], name: &str) -> PathBuf {
        self.link_with(&self.drain(), objects, more, name)
    }

    /// LLVM's drain, an archive.
    pub fn drain(&self) -> PathBuf {
        let mut resources = limited(self.clang.clang);
        let resources = run(resources.arg("-print-resource-dir")).success().stdout;
        PathBuf::from(resources.trim()).join("lib/linux/libclang_rt.profile_rocm-x86_64.a")
    }

    /// Links with HIP and this form of LLVM's drain.
    pub fn link_with(
        &self,
        drain: &Path,
        objects: &[PathBuf],
        more: &[&str],
        name: &str,
    ) -> PathBuf {
        self.link(objects, more)
            .source(drain)
            .arguments(["-fprofile-instr-generate"])
            // Instrumented host code of HIP programs refers to this symbol.
            .arguments(["-Wl,-u,__llvm_profile_hip_collect_device_data"])
            .output(name)
    }

    fn link(&self, objects: &[PathBuf], more: &[&str]) -> Compilation {
        let link = Compilation::by(self.clang.clang);
        let link = objects
            .iter()
            .fold(link, |link, object| link.source(object));
        link.arguments(more.iter().copied())
            .arguments(self.stack.linking())
    }

    /// The program that the caller appends, on these modelled GPUs with this BAR, without rocov.
    /// LLVM's drain writes its profiles to `data`.
    pub fn with_llvms(&self, gpus: &str, bar: &str, data: &Path) -> Command {
        self.on_model(gpus, bar, data, &[])
    }

    /// The program that the caller appends, on these modelled GPUs with this BAR and with the
    /// libraries in `preloaded`. Profiles go to `data`.
    pub fn on_model(&self, gpus: &str, bar: &str, data: &Path, preloaded: &[PathBuf]) -> Command {
        let mut libraries = built("librocov_modelgpu.so").into_os_string();
        for library in preloaded {
            libraries.push(":");
            libraries.push(library);
        }
        let mut command = limited("env");
        command.arg(format!("LD_PRELOAD={}", libraries.display()));
        command.args([
            format!("ROCOV_MODELGPU={gpus}"),
            format!("{BAR}={bar}"),
            format!("LLVM_PROFILE_FILE={}", data.join("%p.profraw").display()),
        ]);
        command.args(self.stack.starter());
        command
    }

    /// The program that the caller appends, under `rocov run OPTIONS` on these modelled GPUs.
    pub fn under_rocov(&self, gpus: &str, bar: &str, options: &[&str], data: &Path) -> Command {
        let mut command = limited(built("rocov"));
        command
            .args(["run", "--gpu", &format!("model:{gpus}"), "-o"])
            .arg(data);
        command.args(options).arg("--").args(self.stack.starter());
        command.env(BAR, bar);
        command
    }

    /// The counts of device code in a directory.
    #[track_caller]
    pub fn counted(&self, data: &Path, ended: &Ended) -> Functions {
        let profiles = device_profiles(data);
        if profiles.is_empty() {
            return Functions::new();
        }
        let profdata = self.clang.tool("llvm-profdata");
        let merged = data.join("device.profdata");
        let mut command = limited(profdata);
        command.arg("merge").args(&profiles).arg("-o").arg(&merged);
        let merging = run(&mut command);
        assert!(merging.status.success(), "{merging} after {ended}");
        functions_by(profdata, &merged)
    }
}

/// The profiles of device code of either drain, without those of zeros only.
pub fn device_profiles(data: &Path) -> Vec<PathBuf> {
    let is_device = |path: &PathBuf| name(path).starts_with(GPU) && !is_of_zeros(path);
    raw_profiles(data).into_iter().filter(is_device).collect()
}

/// Returns whether a file of device counts has a name from LLVM's drain: with the target's
/// features, or with a position in its walk.
pub fn is_of_llvm(profile: &Path) -> bool {
    name(profile).contains(':') || name(profile).contains(".hsa")
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
