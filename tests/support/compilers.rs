//! The compilers of the tests: those of Debian 12, and those that tools/stacks has unpacked.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::artifacts::built;
use super::command::limited;
use super::unpacked::asked;

/// A clang, and the LLVM tools of its release.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// Its major version.
    pub(crate) release: u32,
    /// The name or path of its clang++.
    pub(crate) clang: &'static str,
    /// The directory of an unpacked compiler; `None` if it is on the `PATH`.
    directory: Option<PathBuf>,
}

/// The releases that rocov is tested with, oldest first.
pub(crate) const RELEASES: [u32; 9] = [15, 16, 17, 18, 19, 21, 22, 23, 24];
/// The releases that tools/setup installs.
const INSTALLED: [u32; 3] = [15, 19, 22];

impl Compiler {
    /// Returns the compiler of this release if it is here. Reports a test as not run if it is not.
    pub(crate) fn find(release: u32) -> Option<&'static Self> {
        static FOUND: [OnceLock<Option<Compiler>>; RELEASES.len()] =
            [const { OnceLock::new() }; RELEASES.len()];
        let place = RELEASES.iter().position(|it| *it == release);
        FOUND[place.expect("a release of the list")]
            .get_or_init(|| Self::of(release))
            .as_ref()
    }

    /// The compiler of most tests: clang 22, or the release that `ROCOV_TEST_CLANG` names.
    pub(crate) fn usual() -> &'static Self {
        let named = env::var("ROCOV_TEST_CLANG").ok();
        let release = named.as_deref().map_or(Ok(22), str::parse);
        let release = release.expect("ROCOV_TEST_CLANG is a release of clang");
        Self::find(release).unwrap_or_else(|| panic!("clang {release} is not here"))
    }

    fn of(release: u32) -> Option<Self> {
        let name = format!("clang++-{release}");
        if INSTALLED.contains(&release) {
            return Some(Self {
                release,
                clang: name.leak(),
                directory: None,
            });
        }
        let without = format!("nothing is compiled by clang {release}");
        let directory = asked("bin", &format!("clang-{release}"), &without)?;
        let directory = PathBuf::from(directory.trim_end());
        Some(Self {
            release,
            clang: text(&directory.join(name)),
            directory: Some(directory),
        })
    }

    /// The name or path of a tool of its release, such as `llvm-profdata`.
    pub(crate) fn tool(&self, name: &str) -> &'static str {
        let name = format!("{name}-{}", self.release);
        match &self.directory {
            Some(directory) => text(&directory.join(name)),
            None => name.leak(),
        }
    }

    /// `rocov SUBCOMMAND`, which finds the tools of this release first.
    pub(crate) fn rocov(&self, subcommand: &str) -> Command {
        let mut rocov = limited(built("rocov"));
        rocov.arg(subcommand);
        if let Some(directory) = &self.directory {
            let path = env::var_os("PATH").unwrap_or_default();
            let places = [directory.clone()]
                .into_iter()
                .chain(env::split_paths(&path));
            rocov.env(
                "PATH",
                env::join_paths(places).expect("paths without colons"),
            );
        }
        rocov
    }

    /// The version of the raw profiles that its runtime writes for host code. LLVM's own tools reject
    /// any other.
    pub(crate) fn raw_version(&self) -> u64 {
        match self.release {
            ..18 => 8,
            18 => 9,
            19..23 => 10,
            _ => 11,
        }
    }
}

fn text(path: &Path) -> &'static str {
    let text = path.to_str().expect("a path in UTF-8");
    text.to_owned().leak()
}
