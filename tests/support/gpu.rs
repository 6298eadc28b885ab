//! The ways to run a code object: through a real HIP runtime on the modelled GPU, or with the
//! interpreter's own loader.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::artifacts::{built, repository};
use super::command::{Ended, limited, rocov_run, run, run_once};
use super::compile::module_runner;
use super::compilers::Compiler;
use super::profile::raw_profiles;
use super::unpacked::{asked, not_run};

/// A real ROCr and HIP, or their substitute.
#[derive(Debug, Clone, Copy)]
pub enum Stack {
    /// Debian 12's own packages.
    Debian12,
    /// Another release's packages, unpacked by tools/stacks.
    Unpacked(&'static Release),
    /// No HIP: `amdgcn-run` loads and runs the code object.
    Interpreter,
}

/// A release that tools/stacks knows.
#[derive(Debug)]
pub struct Release {
    name: &'static str,
    title: &'static str,
    /// The newest code object version that its HIP loads.
    code_object_version: u8,
    /// The release of LLVM that compiles for its hipRTC.
    run_time_compiler: u32,
    /// The limits of a test run without the release.
    without: &'static str,
    /// The flags with which clang builds a program for it; `None` if it is not unpacked.
    flags: OnceLock<Option<Vec<OsString>>>,
}

static ROCR_7_2: Release = Release {
    name: "rocr-7.2.4",
    title: "HIP 7.2.4, ROCr 7.2.4",
    code_object_version: 6,
    run_time_compiler: 22,
    without: "an older HIP runs gfx942 kernels, and nothing is run on HIP 7",
    flags: OnceLock::new(),
};

static ROCR_6_4: Release = Release {
    name: "rocr-6.4.3",
    title: "HIP 6.4.3, ROCr 6.4.3",
    code_object_version: 6,
    run_time_compiler: 21,
    without: "nothing is run on HIP 6",
    flags: OnceLock::new(),
};

static ROCR_6_1: Release = Release {
    name: "rocr-6.1.2",
    title: "HIP 5.7.1, ROCr 6.1.2",
    code_object_version: 5,
    run_time_compiler: 17,
    without: "nothing is run on it",
    flags: OnceLock::new(),
};

impl Release {
    /// The build flags from tools/stacks.
    fn flags(&self) -> Option<&[OsString]> {
        let flags = self.flags.get_or_init(|| {
            let flags = asked("flags", self.name, self.without)?;
            Some(flags.split_whitespace().map(OsString::from).collect())
        });
        flags.as_deref()
    }

    fn is_here(&self) -> bool {
        self.flags().is_some()
    }

    /// The flags that link with its libraries.
    fn linking(&self) -> Vec<OsString> {
        let is_for_linking = |flag: &&OsString| {
            let flag = flag.to_string_lossy();
            ["-L", "-l", "-Wl,"]
                .iter()
                .any(|prefix| flag.starts_with(prefix))
        };
        let flags = self.flags().expect("only stacks that are here are run");
        flags.iter().filter(is_for_linking).cloned().collect()
    }
}

impl Stack {
    /// The stack that runs code for this target here. Debian 12's stack does not know gfx942.
    pub fn for_target(target: &str) -> Self {
        if target == "gfx90a" {
            return Self::Debian12;
        }
        let knows = [&ROCR_7_2, &ROCR_6_4]
            .into_iter()
            .find(|stack| stack.is_here());
        knows.map_or_else(
            || {
                not_run("gfx942 on HIP: amdgcn-run runs its kernels instead");
                Self::Interpreter
            },
            Self::Unpacked,
        )
    }

    /// The stack of most tests: the newest that is here, or the one that `ROCOV_TEST_STACK` names.
    ///
    /// Panics if the tests' compiler does not take the headers of its HIP.
    pub fn usual() -> Self {
        let stack = Self::newest_or_named();
        let compiler = Compiler::usual().release;
        assert!(
            stack.compiler().release == compiler,
            "clang {compiler} does not compile programs for {}: choose another ROCOV_TEST_CLANG or \
             ROCOV_TEST_STACK, or run `tools/stacks fetch rocr-7.2.4`",
            stack.title()
        );
        stack
    }

    fn newest_or_named() -> Self {
        let Ok(name) = std::env::var("ROCOV_TEST_STACK") else {
            let newest = [&ROCR_7_2, &ROCR_6_4]
                .into_iter()
                .find(|stack| stack.is_here());
            return newest.map_or(Self::Debian12, Self::Unpacked);
        };
        if name == "debian12" {
            return Self::Debian12;
        }
        let known = [&ROCR_6_1, &ROCR_6_4, &ROCR_7_2];
        let named = known
            .into_iter()
            .find(|stack| stack.name == name && stack.is_here());
        Self::Unpacked(named.unwrap_or_else(|| panic!("ROCOV_TEST_STACK={name} is not unpacked")))
    }

    /// HIP 7.2.4, if it is unpacked here.
    pub fn hip_7() -> Option<Self> {
        ROCR_7_2.is_here().then_some(Self::Unpacked(&ROCR_7_2))
    }

    /// Returns whether its HIP is a 7. HIP 7 reports GPU faults as errors; earlier releases end the
    /// program.
    pub fn is_hip_7(self) -> bool {
        matches!(self, Self::Unpacked(release) if std::ptr::eq(release, &raw const ROCR_7_2))
    }

    /// The name of its runtime and HIP in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Debian12 => "HIP 5.2, ROCr 5.2.3",
            Self::Unpacked(release) => release.title,
            Self::Interpreter => "the interpreter",
        }
    }

    /// All runtimes that rocov is tested with, oldest first. `None` for those that are not unpacked.
    pub fn known() -> Vec<(&'static str, Option<Self>)> {
        let unpacked = [&ROCR_6_1, &ROCR_6_4, &ROCR_7_2];
        let found = unpacked.map(|stack| {
            (
                stack.title,
                stack.is_here().then_some(Self::Unpacked(stack)),
            )
        });
        let installed = (Self::Debian12.title(), Some(Self::Debian12));
        [installed].into_iter().chain(found).collect()
    }

    /// The other stacks that are unpacked here (`tools/test --stacks all`).
    pub fn others() -> Vec<Self> {
        let here = |release: &&Release| release.is_here();
        [&ROCR_6_1, &ROCR_6_4, &ROCR_7_2]
            .into_iter()
            .filter(here)
            .map(Self::Unpacked)
            .collect()
    }

    /// Debian 12's stack, and the others that are unpacked here.
    pub fn all() -> Vec<Self> {
        [Self::Debian12].into_iter().chain(Self::others()).collect()
    }

    /// All stacks whose programs the tests' compiler compiles. Reports the others as not run.
    pub fn for_programs() -> Vec<Self> {
        let compiler = Compiler::usual();
        let mut stacks = Self::all();
        stacks.retain(|stack| {
            let hindrance = compiler.hindrance(stack.title());
            if hindrance.is_some() {
                let (title, release) = (stack.title(), compiler.release);
                not_run(&format!(
                    "programs on {title}: clang {release} does not take its headers"
                ));
            }
            hindrance.is_none()
        });
        stacks
    }

    /// All stacks with a HIP 5, as in [`Self::for_programs`]: they test features that HIP 6 lacks.
    pub fn before_hip_6() -> Vec<Self> {
        let mut stacks = Self::for_programs();
        stacks.retain(|stack| stack.code_object_version() < 6);
        stacks
    }

    /// The compiler of its programs: that of most tests, if it takes the headers of this HIP.
    pub fn compiler(self) -> &'static Compiler {
        Compiler::for_headers_of(self.title())
    }

    /// The flags, without the architecture, with which [its compiler](Self::compiler) builds a HIP
    /// program for this stack.
    pub fn flags(self) -> Vec<OsString> {
        self.flags_for(self.compiler())
    }

    /// The flags for this compiler, which may need other device libraries.
    pub fn flags_for(self, compiler: &Compiler) -> Vec<OsString> {
        let release = match self {
            Self::Debian12 => {
                let config = repository("testdata/sample/debian12.cfg");
                return vec!["--config".into(), config.into()];
            }
            Self::Unpacked(release) => release,
            Self::Interpreter => panic!("the interpreter runs code objects, not programs"),
        };
        let mut flags = limited(repository("tools/stacks"));
        flags.args(["flags", release.name, &compiler.release.to_string()]);
        let flags = run_once(&mut flags).success().silently().stdout;
        flags.split_whitespace().map(OsString::from).collect()
    }

    /// The flags with which this compiler compiles without a link.
    pub fn compile_flags_for(self, compiler: &Compiler) -> Vec<OsString> {
        without_linking(self.flags_for(compiler))
    }

    /// The words before a program that start it on this stack.
    pub fn starter(self) -> Vec<OsString> {
        match self {
            Self::Debian12 | Self::Interpreter => Vec::new(),
            Self::Unpacked(release) => {
                let stacks = repository("tools/stacks");
                vec![
                    stacks.into(),
                    "run".into(),
                    release.name.into(),
                    "--".into(),
                ]
            }
        }
    }

    /// The newest code object version that this stack loads.
    pub fn code_object_version(self) -> u8 {
        match self {
            Self::Debian12 => 4,
            Self::Unpacked(release) => release.code_object_version,
            Self::Interpreter => 5,
        }
    }

    /// The release of LLVM that compiles for its hipRTC.
    pub fn run_time_compiler(self) -> u32 {
        match self {
            Self::Unpacked(release) => release.run_time_compiler,
            Self::Debian12 | Self::Interpreter => 15,
        }
    }

    /// The flags that link with its hipRTC. Up to HIP 5, that is a part of HIP's library.
    pub fn run_time_linking(self) -> &'static [&'static str] {
        match self.code_object_version() {
            6.. => &["-lhiprtc"],
            _ => &[],
        }
    }

    /// Runs a spec from a code object. The buffers go into `directory`, the profiles into its
    /// folder [`data`]. Both must be new.
    pub fn run(self, target: &str, object: &Path, spec: &Path, directory: &Path) -> Ended {
        let mut command = self.runner(target, &data(directory));
        let ended = run(command.arg(object).arg(spec).arg(directory));
        let profile = directory.join("dev.profraw");
        if matches!(self, Self::Interpreter) && profile.exists() {
            std::fs::create_dir_all(data(directory)).expect("a directory can be made");
            std::fs::rename(profile, data(directory).join("dev.profraw"))
                .expect("a file can be renamed beside itself");
        }
        ended
    }

    /// The command that runs a spec, up to its arguments.
    pub fn runner(self, target: &str, data: &Path) -> Command {
        if matches!(self, Self::Interpreter) {
            return limited(built("amdgcn-run"));
        }
        let mut command = self.launcher(target, data);
        command.arg(module_runner(&self.linking()));
        command
    }

    /// `rocov run` of the program that the caller appends, on modelled GPUs and this stack.
    pub fn launcher(self, gpus: &str, data: &Path) -> Command {
        let mut command = rocov_run(Some(&format!("model:{gpus}")), data);
        command.args(self.starter());
        command
    }

    /// The flags that link a program with this stack's HIP.
    pub fn linking(self) -> Vec<OsString> {
        match self {
            Self::Debian12 => vec!["-lamdhip64".into()],
            Self::Unpacked(release) => release.linking(),
            Self::Interpreter => panic!("the interpreter runs code objects, not programs"),
        }
    }
}

/// The flags that do not only concern the link.
fn without_linking(mut flags: Vec<OsString>) -> Vec<OsString> {
    const FOR_LINKING: [&str; 5] = ["-L", "-l", "-Wl,", "--hip-link", "-no-hip-rt"];
    flags.retain(|flag| {
        let flag = flag.to_string_lossy();
        !FOR_LINKING.iter().any(|start| flag.starts_with(start))
    });
    flags
}

/// The profile directory of a run.
pub fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

/// The only profile of a run.
pub fn the_profile(directory: &Path) -> PathBuf {
    let profiles = raw_profiles(&data(directory));
    assert_eq!(profiles.len(), 1, "one profile was expected: {profiles:?}");
    profiles[0].clone()
}
