//! The ways a code object can be run: through a real HIP runtime on the modelled GPU, or by the
//! interpreter's own loader.

use super::artifacts::{built, repository};
use super::command::{Ended, limited, rocov_run, run};
use super::compile::module_runner;
use super::profile::raw_profiles;
use std::path::{Path, PathBuf};

/// A real ROCr and HIP, or what stands in for them.
pub(crate) enum Stack {
    /// Debian 12's own packages.
    Debian12,
    /// Another release's packages, unpacked by tools/stacks; with the path of its libamdhip64.
    Unpacked(&'static str, PathBuf),
    /// No HIP: `amdgcn-run` loads and runs the code object.
    Interpreter,
}

/// The release that is used for gfx942, which Debian 12's HIP does not know.
const NEWER: &str = "rocr-6.4.3";

impl Stack {
    /// The stack that runs code for this target here.
    pub(crate) fn for_target(target: &str) -> Self {
        if target == "gfx90a" {
            return Self::Debian12;
        }
        match unpacked_hip(NEWER) {
            Some(library) => Self::Unpacked(NEWER, library),
            None => {
                println!("{NEWER} is not unpacked: amdgcn-run runs {target} instead of HIP");
                Self::Interpreter
            }
        }
    }

    /// The newest code object version that this HIP loads.
    pub(crate) fn code_object_version(&self) -> u8 {
        match self {
            Self::Debian12 => 4,
            Self::Unpacked(..) | Self::Interpreter => 5,
        }
    }

    /// Runs a spec from a code object; the buffers go into `directory`, the profiles into a folder
    /// `data` there. Both are empty before.
    pub(crate) fn run(&self, target: &str, object: &Path, spec: &Path, directory: &Path) -> Ended {
        let data = data(directory);
        let gpu = format!("model:{target}");
        let mut command = match self {
            Self::Debian12 => {
                let mut command = rocov_run(Some(&gpu), &data);
                command.arg(module_runner(Path::new(DEBIAN12_HIP)));
                command
            }
            Self::Unpacked(name, library) => {
                let mut command = rocov_run(Some(&gpu), &data);
                command
                    .arg(repository("tools/stacks"))
                    .args(["run", name, "--"]);
                command.arg(module_runner(library));
                command
            }
            Self::Interpreter => limited(built("amdgcn-run")),
        };
        let ended = run(command.arg(object).arg(spec).arg(directory));
        if let Self::Interpreter = self {
            collect_interpreter_profile(directory, &data);
        }
        ended
    }
}

/// Where a run leaves its profiles.
pub(crate) fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

/// The one profile that a run left.
pub(crate) fn the_profile(directory: &Path) -> PathBuf {
    let profiles = raw_profiles(&data(directory));
    assert_eq!(profiles.len(), 1, "one profile was expected: {profiles:?}");
    profiles[0].clone()
}

pub(crate) const DEBIAN12_HIP: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";

/// The libamdhip64 of a release that tools/stacks has unpacked.
fn unpacked_hip(_release: &str) -> Option<PathBuf> {
    None
}

/// amdgcn-run writes its profile beside the buffers.
fn collect_interpreter_profile(directory: &Path, data: &Path) {
    std::fs::create_dir_all(data).expect("a directory can be made");
    let profile = directory.join("dev.profraw");
    std::fs::rename(&profile, data.join("dev.profraw")).expect("amdgcn-run writes a profile");
}
