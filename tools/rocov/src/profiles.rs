//! The data directory: which raw profiles are in it, and of which code object and GPU.

use rocov::codeobject::Identity;
use rocov::output::{LABELS, Label, is_of_zeros};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Extension of raw profiles.
const EXTENSION: &str = "profraw";
/// Extension of saved sections.
const SECTIONS: &str = "sections";
/// End of the names of kernel registries.
const REGISTRY: &[u8] = b".kernels.json";
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
    /// The test that it is of, where that was said.
    pub(crate) label: Option<Label>,
}

/// What a file of a data directory is by its name.
#[derive(Debug)]
pub(crate) enum Kind {
    /// The raw profile of a code object, whatever it ends in: the user chooses that with
    /// `LLVM_PROFILE_FILE`.
    Device(DeviceProfile),
    /// A raw profile of anything else: of instrumented host code.
    Other,
    /// Sections that librocov saved whole.
    Sections,
    /// The indexed profile of host code in a pooled directory.
    PooledHost,
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
            .is_some_and(|name| name.as_encoded_bytes().ends_with(REGISTRY));
        match DeviceProfile::from_path(path) {
            _ if path.ends_with(POOLED_HOST) => Self::PooledHost,
            _ if is_registry => Self::Registry,
            Some(_) if ends_in(SECTIONS) => Self::Sections,
            Some(profile) => Self::Device(profile),
            None if ends_in(EXTENSION) => Self::Other,
            None => Self::None,
        }
    }
}

/// What lies in a data directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Device profiles, ordered by arch, identity and agent.
    pub(crate) device: Vec<DeviceProfile>,
    /// Raw profiles of anything else: those of instrumented host code.
    pub(crate) other: Vec<PathBuf>,
    /// Sections that librocov saved whole, as it does not know their raw version.
    pub(crate) sections: Vec<PathBuf>,
}

/// Lists the raw profiles directly in `directory`, and those of its labels.
///
/// # Errors
///
/// When a directory cannot be read; one that does not exist has no profiles.
pub(crate) fn list(directory: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    listing.add(directory, None)?;
    listing.add_labels(&directory.join(LABELS), Path::new(""))?;
    listing.device.sort();
    listing.other.sort();
    listing.sections.sort();
    Ok(listing)
}

impl Listing {
    /// Adds what lies directly in a directory, as of this label. Returns the directories in it.
    fn add(&mut self, directory: &Path, label: Option<&Label>) -> io::Result<Vec<OsString>> {
        let mut directories = Vec::new();
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(directories),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if path.is_dir() {
                // No links, which may lead back here.
                if entry.file_type()?.is_dir() {
                    directories.push(entry.file_name());
                }
                continue;
            }
            match Kind::of(&path) {
                Kind::Device(profile) => self.device.push(DeviceProfile {
                    label: label.cloned(),
                    ..profile
                }),
                Kind::Sections => self.sections.push(path),
                Kind::Other => self.other.push(path),
                Kind::PooledHost | Kind::Registry | Kind::None => {}
            }
        }
        Ok(directories)
    }

    /// Adds what lies in the directory of a label, which is `below` the one of all labels, and in
    /// those of labels below it.
    fn add_labels(&mut self, labels: &Path, below: &Path) -> io::Result<()> {
        let label = Label::from_directory(below);
        for name in self.add(&labels.join(below), label.as_ref())? {
            self.add_labels(labels, &below.join(name))?;
        }
        Ok(())
    }
}

impl DeviceProfile {
    /// Whether it is of code that was never launched.
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
            label: None,
        })
    }
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
    fn a_listing_is_ordered_and_leaves_out_what_is_no_profile() {
        let directory = tempfile::tempdir().unwrap();
        let names = [
            "gfx942.aa.0.1.profraw",
            "gfx90a.bb.1.1.profraw",
            "gfx90a.bb.0.x-1.raw",
            "gfx90a.bb.0.1.7.sections",
            "1.profraw",
            "gfx90a.profdata",
        ];
        for name in names {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let listing = list(directory.path()).unwrap();
        let found: Vec<_> = listing
            .device
            .iter()
            .map(|profile| (profile.arch.as_str(), profile.agent))
            .collect();
        assert_eq!(found, [("gfx90a", 0), ("gfx90a", 1), ("gfx942", 0)]);
        assert_eq!(listing.other, [directory.path().join("1.profraw")]);
        let sections = directory.path().join("gfx90a.bb.0.1.7.sections");
        assert_eq!(listing.sections, [sections]);
    }

    #[test]
    fn profiles_of_labels_lie_in_their_directories() {
        let directory = tempfile::tempdir().unwrap();
        let name = "gfx90a.aa.0.1.profraw";
        for below in ["", "labels/unit%20tests", "labels/unit%20tests/.add"] {
            let below = directory.path().join(below);
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join(name), "").unwrap();
        }
        let listing = list(directory.path()).unwrap();
        let labels = listing.device.iter().map(|profile| {
            assert_eq!(profile.identity, "aa");
            profile.label.as_ref().map(ToString::to_string)
        });
        let expected = [None, Some("unit tests/.add"), Some("unit tests")];
        let expected = expected.map(|label| label.map(str::to_owned));
        assert_eq!(labels.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_missing_directory_has_no_profiles() {
        let listing = list(Path::new("/nonexistent/rocov-data")).unwrap();
        assert!(listing.device.is_empty() && listing.other.is_empty());
    }
}
