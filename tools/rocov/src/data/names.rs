//! What the names in a data directory say: which file is what, and of which code object and GPU.

use rocov::codeobject::Identity;
use rocov::output::layout::{OBJECTS, PROFRAW, REGISTRY, SECTIONS};
use rocov::output::{LABELS, Label, PARTIAL, is_of_zeros};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Name of the indexed profile of host code in a pooled directory. Another than `rocov merge -o DIR`
/// gives, which may be the directory of what was merged: merged again, that counts no more than once.
pub(crate) const POOLED_HOST: &str = "pooled-host.profdata";

/// The raw profile of one code object on one GPU, as librocov names it:
/// `ARCH.IDENTITY.AGENT.BASE`, for instance `gfx90a.0f3c9b.0.4711.profraw`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceProfile {
    /// Name of the agent, such as `gfx90a`.
    pub(crate) arch: String,
    /// Identity of the code object, lower-case hexadecimal.
    pub(crate) identity: String,
    /// The GPU's 0-based index in the order in which HSA enumerates agents.
    pub(crate) agent: u32,
    /// The file.
    pub(crate) path: PathBuf,
    /// The test that it is of, if it is of one.
    pub(crate) label: Option<Label>,
}

/// What a file of a data directory is by its name.
#[derive(Debug)]
pub(crate) enum Kind {
    /// The raw profile of a code object, whatever it ends in: the user chooses that with
    /// `LLVM_PROFILE_FILE`.
    Device(DeviceProfile),
    /// A raw profile of anything else: of instrumented host code.
    Host,
    /// The indexed profile of host code in a pooled directory.
    PooledHost,
    /// Sections that librocov saved whole.
    Sections,
    /// A device ELF that was kept, with this identity.
    Elf(String),
    /// The kernels that a process loaded.
    Registry,
    /// None of these.
    None,
}

impl Kind {
    /// What the file at `path` is.
    pub(crate) fn of(path: &Path) -> Self {
        let ends_in = |ending| {
            path.extension()
                .is_some_and(|extension| extension == ending)
        };
        let is_registry = path
            .file_name()
            .is_some_and(|name| name.as_bytes().ends_with(REGISTRY.as_bytes()));
        match DeviceProfile::from_path(path) {
            _ if path.ends_with(POOLED_HOST) => Self::PooledHost,
            _ if is_registry => Self::Registry,
            Some(_) if ends_in(SECTIONS) => Self::Sections,
            Some(profile) => Self::Device(profile),
            None if ends_in(PROFRAW) => Self::Host,
            None => match kept_elf(path) {
                Some(identity) => Self::Elf(identity.to_owned()),
                None => Self::None,
            },
        }
    }
}

impl DeviceProfile {
    /// Returns whether it is of code that was never launched.
    pub(crate) fn is_of_zeros(&self) -> bool {
        let name = self.path.file_name().and_then(OsStr::to_str);
        let base = name.and_then(|name| name.splitn(4, '.').nth(3));
        base.is_some_and(is_of_zeros)
    }

    /// `None` when the name is not one that librocov gives.
    fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let mut parts = name.splitn(4, '.');
        let (arch, identity, agent, base) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if !arch.starts_with("gfx") || base.is_empty() {
            return None;
        }
        Identity::from_digits(identity)?;
        Some(Self {
            arch: arch.to_owned(),
            identity: identity.to_owned(),
            agent: agent.parse().ok()?,
            path: path.to_path_buf(),
            label: label(path),
        })
    }
}

/// The label of a profile, by the directories that it lies in: those of labels are in that of all
/// profiles, whatever is above.
fn label(path: &Path) -> Option<Label> {
    let directories: Vec<_> = path.parent()?.iter().collect();
    let profiles = directories.iter().rposition(|name| *name == PROFRAW);
    let below = &directories[profiles.map_or(0, |at| at + 1)..];
    let labels = below.iter().position(|name| *name == LABELS)?;
    Label::from_directory(&below[labels + 1..].iter().collect::<PathBuf>())
}

/// The identity of a kept device ELF, `objects/TARGET.IDENTITY.elf`.
fn kept_elf(path: &Path) -> Option<&str> {
    let is_kept = path.parent()?.file_name()? == OBJECTS;
    let stem = path.file_name()?.to_str()?.strip_suffix(".elf")?;
    let (_, identity) = stem.rsplit_once('.')?;
    is_kept.then_some(identity)
}

/// Returns whether the directory `name` in `directory` may have files of a data directory. Hidden ones have none,
/// unless their name is a label's; nor has one that was not finished.
pub(crate) fn is_searched(name: &OsStr, directory: &Path) -> bool {
    let bytes = name.as_bytes();
    let is_label = || directory.iter().any(|name| name == LABELS);
    let is_side = name == rocov::output::layout::SIDE;
    !bytes.starts_with(PARTIAL.as_bytes()) && (!bytes.starts_with(b".") || is_side || is_label())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_librocov_gives_are_taken_apart() {
        let path = Path::new("/data/gfx90a_xnack-.0f3c9b.11.rank.4711.profraw");
        let profile = DeviceProfile::from_path(path).unwrap();
        assert_eq!(profile.arch, "gfx90a_xnack-");
        assert_eq!(profile.identity, "0f3c9b");
        assert_eq!(profile.agent, 11);
        assert_eq!(profile.path, path);
    }

    #[test]
    fn other_names_are_not_device_profiles() {
        for name in [
            "4711.profraw",
            "default.profraw",
            "gfx90a.hsa0.0.4711.profraw",
            "gfx90a..0.4711.profraw",
            "gfx90a.0f3c.x.4711.profraw",
            "gfx90a.0f3c.-1.4711.profraw",
            "gfx90a.0f3c.0",
            "gfx90a.0f3c.0.",
            "x86.0f3c.0.4711.profraw",
        ] {
            assert_eq!(DeviceProfile::from_path(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn kept_device_elfs_have_their_identity_before_the_ending() {
        for (path, identity) in [
            ("d/objects/gfx90a.0f3c.elf", Some("0f3c")),
            ("objects/gfx90a-xnack-.0f3c.elf", Some("0f3c")),
            ("objects/0f3c.elf", None),
            ("objects/gfx90a.0f3c.o", None),
            ("d/gfx90a.0f3c.elf", None),
        ] {
            assert_eq!(kept_elf(Path::new(path)), identity, "{path}");
        }
    }

    #[test]
    fn labels_are_directories_among_the_profiles() {
        let label = |path: &str| label(Path::new(path)).map(|label| label.to_string());
        for (path, expected) in [
            (
                "d/profraw/labels/unit%20tests/add/x",
                Some("unit tests/add"),
            ),
            ("d/labels/.add/x", Some(".add")),
            ("labels/d/profraw/x", None),
            ("labels/d/profraw/labels/a/x", Some("a")),
            ("d/profraw/labels/x", None),
            ("d/profraw/7/labels/labels/x", Some("labels")),
        ] {
            assert_eq!(label(path).as_deref(), expected, "{path}");
        }
    }
}
