//! The compilers of the tests: those of Debian 12, and those that tools/stacks has unpacked.

use std::env;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::artifacts::built;
use super::command::limited;
use super::unpacked::asked;

/// A clang, and the LLVM tools of its release.
#[derive(Debug)]
pub struct Compiler {
    /// Its major version.
    pub release: u32,
    /// The name or path of its clang++.
    pub clang: &'static str,
    /// The directory of an unpacked compiler; `None` if it is on the `PATH`.
    directory: Option<PathBuf>,
}

/// The releases that rocov is tested with, oldest first.
pub const RELEASES: [u32; 9] = [15, 16, 17, 18, 19, 21, 22, 23, 24];
/// The release of most tests. It takes the headers of each HIP.
const TAKES_ALL_HEADERS: u32 = 22;
/// The releases that tools/setup installs.
const INSTALLED: [u32; 3] = [15, 19, 22];

/// Compilers that do not take the headers of a HIP. HIP loads their code objects of sources without
/// these headers.
#[derive(Debug)]
pub struct Hindrance {
    /// The releases of clang.
    pub releases: RangeInclusive<u32>,
    /// The titles of the runtimes start with one of these.
    pub runtimes: &'static [&'static str],
    /// A name in the compiler's error.
    pub error: &'static str,
    /// The reason, as tests print it.
    pub reason: &'static str,
}

const HINDRANCES: [Hindrance; 3] = [
    Hindrance {
        releases: 23..=24,
        runtimes: &["HIP 5", "HIP 6"],
        error: "__ocml_floor_f64",
        reason: "This HIP's headers call `__ocml_floor_f64`, which Clang 23 no longer declares. HIP loads a \
                 code object that needs no headers.",
    },
    Hindrance {
        releases: 15..=15,
        runtimes: &["HIP 6"],
        error: "__builtin_amdgcn_ballot_w64",
        reason: "This HIP's headers call `__builtin_amdgcn_ballot_w64`, which Clang 15 lacks. HIP loads a code \
                 object that needs no headers.",
    },
    Hindrance {
        releases: 15..=18,
        runtimes: &["HIP 7"],
        error: "__builtin_amdgcn_wavefrontsize",
        reason: "This HIP's headers call `__builtin_amdgcn_wavefrontsize`, which Clang up to 18 lacks. HIP loads \
                 a code object that needs no headers.",
    },
];

impl Compiler {
    /// Returns the compiler of this release if it is here. Reports a test as not run if it is not.
    pub fn find(release: u32) -> Option<&'static Self> {
        static FOUND: [OnceLock<Option<Compiler>>; RELEASES.len()] =
            [const { OnceLock::new() }; RELEASES.len()];
        let place = RELEASES.iter().position(|known| *known == release);
        FOUND[place.expect("a release of the list")]
            .get_or_init(|| Self::locate(release))
            .as_ref()
    }

    /// Returns whether its code can count the runs in which all lanes of a wave are active.
    #[must_use]
    pub fn has_uniform_counters(&self) -> bool {
        self.release >= 23
    }

    /// The compiler of most tests: clang 22, or the release that `ROCOV_TEST_CLANG` names.
    pub fn usual() -> &'static Self {
        let named = env::var("ROCOV_TEST_CLANG").ok();
        let release = named
            .as_deref()
            .map_or(Ok(TAKES_ALL_HEADERS), str::parse)
            .expect("ROCOV_TEST_CLANG is a release of clang");
        Self::find(release).unwrap_or_else(|| panic!("clang {release} is not here"))
    }

    /// The compiler of programs for the HIP with this title: that of most tests, or its substitute if it
    /// does not take the headers of this HIP.
    pub fn for_headers_of(title: &str) -> &'static Self {
        let usual = Self::usual();
        match usual.hindrance(title) {
            None => usual,
            Some(_) => Self::substitute(),
        }
    }

    /// clang 22, which compiles a program if the usual compiler cannot.
    pub fn substitute() -> &'static Self {
        Self::find(TAKES_ALL_HEADERS).expect("clang 22 is installed")
    }

    /// Returns why it does not compile programs for the HIP with this title.
    pub fn hindrance(&self, title: &str) -> Option<&'static Hindrance> {
        HINDRANCES.iter().find(|hindrance| {
            let mut runtimes = hindrance.runtimes.iter();
            hindrance.releases.contains(&self.release)
                && runtimes.any(|start| title.starts_with(start))
        })
    }

    fn locate(release: u32) -> Option<Self> {
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
    pub fn tool(&self, name: &str) -> &'static str {
        let name = format!("{name}-{}", self.release);
        match &self.directory {
            Some(directory) => text(&directory.join(name)),
            None => name.leak(),
        }
    }

    /// `rocov SUBCOMMAND`, which finds the tools of this release first.
    pub fn rocov(&self, subcommand: &str) -> Command {
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
    pub fn raw_version(&self) -> u64 {
        raw_version_of(self.release)
    }
}

/// The version of the raw profiles that the runtime of this release writes.
pub fn raw_version_of(release: u32) -> u64 {
    match release {
        ..18 => 8,
        18 => 9,
        19..23 => 10,
        _ => 11,
    }
}

fn text(path: &Path) -> &'static str {
    let text = path.to_str().expect("a path in UTF-8");
    text.to_owned().leak()
}
