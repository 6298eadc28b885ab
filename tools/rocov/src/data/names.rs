//! The kinds of files in a data directory, by their names. The library makes and parses the names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rocov::store::layout::{
    PROFRAW, SECTIONS, SIDE, elf_identity, is_registry, profile_label, source_identity,
};
use rocov::store::{LABELS, Label, PARTIAL, ProfileNameParts};

/// The name of the indexed profile of host code in a pooled directory. `rocov merge -o DIR` writes
/// another name, so that a merge of DIR counts it only once.
pub(crate) const POOLED_HOST: &str = "pooled-host.profdata";

/// The start of the names of profiles that LLVM's offload runtime writes. Their counts are those of the
/// code objects that rocov has drained.
const OF_OFFLOAD_RUNTIME: &str = "amdgcn-amd-amdhsa.";

/// The database that `rocov export` writes to a data directory if the user gives no other name.
pub(crate) const DATABASE: &str = "rocpd.db";

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
    /// The label of the test that it is of, if there is one.
    pub(crate) label: Option<Label>,
    /// True if it is of code that was never launched.
    pub(crate) is_of_zeros: bool,
}

/// The end of the names of profiles that `rocov merge` has added up, which differs from those of all processes.
const MERGED: &str = ".merged.profraw";

/// The end of the name of the registry that `rocov merge` has made of others.
const MERGED_REGISTRY: &str = ".merged.kernels.json";

/// The kind of a file of a data directory, by its name.
#[derive(Debug)]
pub(crate) enum FileKind {
    /// The raw profile of a code object, with any extension: the user chooses it with
    /// `LLVM_PROFILE_FILE`.
    Device(DeviceProfile),
    /// A raw profile of anything else: of instrumented host code.
    Host,
    /// A raw profile that LLVM's offload runtime has written, of device code.
    OfOffloadRuntime,
    /// The indexed profile of host code in a pooled directory.
    PooledHost,
    /// Sections that librocov saved whole.
    Sections,
    /// A device ELF that was kept, with this identity.
    Elf(String),
    /// The PTX that the device ELF with this identity was made of.
    Ptx(String),
    /// The kernels that a process loaded.
    Registry,
    /// None of these.
    None,
}

impl FileKind {
    /// Returns the kind of the file at `path`.
    pub(crate) fn from_path(path: &Path) -> Self {
        let ends_in = |ending| {
            path.extension()
                .is_some_and(|extension| extension == ending)
        };
        match DeviceProfile::from_path(path) {
            _ if path.file_name() == Some(OsStr::new(POOLED_HOST)) => Self::PooledHost,
            _ if is_registry(path) => Self::Registry,
            Some(_) if ends_in(SECTIONS) => Self::Sections,
            Some(profile) => Self::Device(profile),
            None if ends_in(PROFRAW) && is_of_offload_runtime(path) => Self::OfOffloadRuntime,
            None if ends_in(PROFRAW) => Self::Host,
            None => match (elf_identity(path), source_identity(path)) {
                (Some(identity), _) => Self::Elf(identity.to_owned()),
                (None, Some(identity)) => Self::Ptx(identity.to_owned()),
                (None, None) => Self::None,
            },
        }
    }
}

/// Returns whether `rocov merge` has made this registry of others.
pub(super) fn is_merged_registry(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.ends_with(MERGED_REGISTRY))
}

impl DeviceProfile {
    /// Returns whether `rocov merge` has added it up from others.
    pub(crate) fn is_merged(&self) -> bool {
        let path = self.path.as_os_str().as_encoded_bytes();
        path.ends_with(MERGED.as_bytes())
    }

    /// `None` when the name is not one that librocov gives.
    fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let parts = ProfileNameParts::parse(name)?;
        if is_number_of_gpu(parts.identity) {
            return None;
        }
        Some(Self {
            arch: parts.arch.to_owned(),
            identity: parts.identity.to_owned(),
            agent: parts.agent,
            path: path.to_path_buf(),
            label: profile_label(path),
            is_of_zeros: parts.is_of_zeros(),
        })
    }
}

fn is_of_offload_runtime(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(OF_OFFLOAD_RUNTIME))
}

/// Returns whether a file is a device profile that LLVM's own drain has named: `ARCH.BASE`, with the target's
/// features or the number of the GPU before `BASE`.
pub(crate) fn is_of_llvms_drain(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let arch = name.and_then(|name| Some(name.strip_prefix("gfx")?.split_once(['.', ':'])?.0));
    let is_arch = |arch: &str| !arch.is_empty() && arch.chars().all(|c| c.is_ascii_hexdigit());
    arch.is_some_and(is_arch) && DeviceProfile::from_path(path).is_none()
}

/// Returns whether an identity is the number of a GPU. LLVM's drain has it in the place of an identity, which is
/// longer.
fn is_number_of_gpu(identity: &str) -> bool {
    identity.len() <= 2 && identity.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns whether the directory `name` in `directory` may have files of a data directory. Hidden ones have
/// none, except the folder of sides and all below a label. An unfinished one has none either.
pub(crate) fn is_searched(name: &OsStr, directory: &Path) -> bool {
    let bytes = name.as_bytes();
    let is_label = || directory.iter().any(|name| name == LABELS);
    let is_side = name == SIDE;
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
    fn a_profile_of_the_offload_runtime_is_not_of_host_code() {
        let kind = |name| FileKind::from_path(Path::new(name));
        assert!(matches!(
            kind("d/amdgcn-amd-amdhsa.7.profraw"),
            FileKind::OfOffloadRuntime
        ));
        assert!(matches!(kind("d/amdgcn.7.profraw"), FileKind::Host));
    }

    #[test]
    fn other_names_are_not_device_profiles() {
        for name in [
            "4711.profraw",
            "default.profraw",
            "gfx90a.hsa0.0.4711.profraw",
            "gfx90a.1.4711.profraw",
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
    fn names_of_llvms_own_drain_are_known() {
        let is_llvms = |name: &str| is_of_llvms_drain(Path::new(name));
        assert!(is_llvms("d/gfx942:sramecc+:xnack-.4711.profraw"));
        assert!(is_llvms("gfx90a.4711.profraw"));
        assert!(is_llvms("gfx90a.1.4711.profraw"));
        assert!(is_llvms("gfx90a.hsa0.4711.profraw"));
        assert!(!is_llvms("gfx90a_xnack-.0f3c9b.11.4711.profraw"));
        assert!(!is_llvms("4711.profraw"));
        assert!(!is_llvms("gfx-tests.profraw"));
    }
}
