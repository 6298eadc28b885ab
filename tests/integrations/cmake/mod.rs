//! The CMake package: what it does to targets, and the target `coverage`.

mod options;
mod projects;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};

/// The directory of the package in the source.
const PACKAGE: &str = "tools/cmake";

/// An installation: links to the files of the source and of the build, where the book tells to put them.
pub(crate) struct Prefix {
    directory: TempDir,
}

impl Prefix {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let prefix = Self { directory };
        prefix.place("bin", &built("rocov"));
        for header in ["rocov.h", "rocov_gtest.h"] {
            prefix.place("include", &repository("runtime/include").join(header));
        }
        let package = fs::read_dir(repository(PACKAGE)).expect("the package");
        for file in package {
            prefix.place("lib/cmake/rocov", &file.expect("a file").path());
        }
        prefix
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn place(&self, folder: &str, file: &Path) {
        let folder = self.directory.path().join(folder);
        fs::create_dir_all(&folder).expect("a new directory");
        let name = file.file_name().expect("a file has a name");
        symlink(file, folder.join(name)).expect("a link can be made");
    }
}

/// A project and its build directory.
struct Project {
    directory: TempDir,
}

impl Project {
    /// A copy of the files of a folder in the repository.
    fn from_folder(folder: &str) -> Self {
        let project = Self::new();
        for file in fs::read_dir(repository(folder)).expect("a folder") {
            let path = file.expect("a file").path();
            let name = path.file_name().expect("a file has a name");
            fs::copy(&path, project.path(&name.to_string_lossy())).expect("it can be copied");
        }
        project
    }

    /// A project with only this text.
    fn with(text: &str) -> Self {
        let project = Self::new();
        fs::write(project.path("CMakeLists.txt"), text).expect("a file can be written");
        project
    }

    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The data of the target's run.
    fn data(&self) -> PathBuf {
        self.path("build/rocov-data")
    }

    /// The configuration, which finds the package in the source and the command of this build.
    fn configuration(&self) -> Command {
        let mut cmake = self.cmake();
        cmake.arg("-S").arg(self.directory.path());
        cmake.arg("-B").arg(self.path("build"));
        cmake.arg(format!(
            "-Drocov_DIR={}",
            repository(PACKAGE).to_string_lossy()
        ));
        cmake.arg(format!(
            "-DROCOV_EXECUTABLE={}",
            built("rocov").to_string_lossy()
        ));
        cmake
    }

    fn cmake(&self) -> Command {
        let mut cmake = limited("cmake");
        cmake.current_dir(self.directory.path());
        for variable in ["CMAKE_PREFIX_PATH", "CXXFLAGS", "HIPFLAGS", "CUDAFLAGS"] {
            cmake.env_remove(variable);
        }
        cmake
    }

    /// Builds a target.
    fn build(&self, target: &str) -> Ended {
        let mut cmake = self.cmake();
        run(cmake.args(["--build", "build", "--target", target]))
    }
}

/// The arguments of CMake for a HIP compiler of this machine, over Debian 12's HIP.
fn hip_compiler(clang: &str) -> Vec<String> {
    vec![
        format!("-DCMAKE_HIP_COMPILER={clang}"),
        format!(
            "-DCMAKE_HIP_COMPILER_ROCM_ROOT={}",
            repository("testdata/cmake/rocm").display()
        ),
        "-DCMAKE_HIP_ARCHITECTURES=gfx90a".to_owned(),
        format!("-DCMAKE_HIP_FLAGS={}", debian12()),
    ]
}

/// The flag for Debian 12's HIP.
fn debian12() -> String {
    let config = repository("testdata/sample/debian12.cfg");
    format!("--config={}", config.display())
}
