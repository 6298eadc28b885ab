//! Releases of LLVM that are installed, or that tools/stacks has unpacked.

use std::io::{Write, stderr};
use std::path::PathBuf;
use std::process::Command;

use crate::artifacts::repository;

/// A release of LLVM: its compiler and tools.
pub struct Release {
    /// Its major version.
    pub number: u32,
    /// The directory of its programs.
    programs: PathBuf,
}

impl Release {
    /// The release of this number; `None` if it is not here, which leaves out a test of `what`.
    pub fn find(number: u32, what: &str) -> Option<Self> {
        let installed = PathBuf::from(format!("/usr/lib/llvm-{number}/bin"));
        let of_system = ["/usr/bin".into(), installed];
        let mut places = of_system.into_iter().chain(unpacked(number));
        let has_clang = |path: &PathBuf| path.join(format!("clang++-{number}")).exists();
        let found = places.find(has_clang);
        if found.is_none() {
            // Around the capture of passing tests' output: tools/test counts these lines.
            let _ = writeln!(
                stderr(),
                "not run: {what} by clang {number}, which is not here"
            );
        }
        Some(Self {
            number,
            programs: found?,
        })
    }

    /// The path of one of its programs, such as `llvm-cov`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(format!("{name}-{}", self.number))
    }
}

/// The directory of the programs of an unpacked release.
fn unpacked(number: u32) -> Option<PathBuf> {
    let mut stacks = Command::new(repository("tools/stacks"));
    let output = stacks.args(["bin", &format!("clang-{number}")]).output();
    let output = output.ok().filter(|output| output.status.success())?;
    let directory = String::from_utf8(output.stdout).ok()?;
    Some(directory.trim_end().into())
}
