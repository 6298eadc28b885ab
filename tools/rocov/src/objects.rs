//! Device ELFs: found in the files that the user names, kept where llvm-cov can read them.

use crate::mapped;
use anyhow::{Context, Result, bail};
use memmap2::Mmap;
use rocov::codeobject::{CodeObjectError, Identity, bundle};
use rocov::output::write_atomic;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Directory for extracted device ELFs, inside the data directory.
pub(crate) const DIRECTORY: &str = "objects";

/// One file that the user named.
pub(crate) struct ObjectFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The device ELFs in it.
    pub(crate) elfs: Vec<DeviceElf>,
    contents: Mmap,
}

/// A device ELF inside an [`ObjectFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceElf {
    /// Identity of the code object, as in the names of its profiles.
    pub(crate) identity: String,
    /// The target that a bundle gives, such as `gfx90a:xnack-`.
    pub(crate) target: Option<String>,
    /// Where the ELF is in the file.
    range: Range<usize>,
}

impl ObjectFile {
    /// Opens the file at `path`: a device ELF, a bundle, or a host ELF with bundles in it.
    ///
    /// # Errors
    ///
    /// When it is something else, has no device code in it, or is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            bail!(
                "{} is a directory, not an object file: the data directory comes before --object",
                path.display()
            );
        }
        let contents = mapped::map(path)?;
        let elfs =
            device_elfs(&contents).with_context(|| format!("cannot use {}", path.display()))?;
        Ok(Self {
            path: path.to_path_buf(),
            elfs,
            contents,
        })
    }

    /// A path at which `elf` lies by itself: the file's own, or one in `data_directory` that it is
    /// copied to.
    ///
    /// # Errors
    ///
    /// When it cannot be written there.
    pub(crate) fn place(
        &self,
        elf: &DeviceElf,
        arch: &str,
        data_directory: &Path,
    ) -> Result<PathBuf> {
        if elf.range == (0..self.contents.len()) {
            return Ok(self.path.clone());
        }
        let name = format!("{arch}.{}.elf", elf.identity);
        let path = data_directory.join(DIRECTORY).join(name);
        write_atomic(&path, &self.contents[elf.range.clone()])?;
        Ok(path)
    }
}

/// The device ELFs in the bytes of a file.
fn device_elfs(contents: &[u8]) -> Result<Vec<DeviceElf>> {
    if bundle::is_bundle(contents) {
        return bundled(contents, contents);
    }
    match Identity::of(contents) {
        Ok(identity) => Ok(vec![DeviceElf {
            identity: identity.to_string(),
            target: None,
            range: 0..contents.len(),
        }]),
        // An ELF of the host.
        Err(CodeObjectError::WrongMachine { .. }) => match bundle::fat_binary(contents)? {
            Some(section) => bundled(contents, section),
            None => bail!("it has no device code: no .hip_fatbin section"),
        },
        Err(error) => Err(error.into()),
    }
}

/// The device ELFs in the bundles of `section`, a part of `contents`.
fn bundled(contents: &[u8], section: &[u8]) -> Result<Vec<DeviceElf>> {
    let mut elfs = Vec::new();
    for bundle in bundle::bundles(section) {
        for entry in bundle?.entries {
            let Some(target) = entry.target().filter(|_| !entry.bytes.is_empty()) else {
                continue;
            };
            let identity = Identity::of(entry.bytes)
                .with_context(|| format!("entry {} of a bundle", entry.target_id))?;
            // Both are in the same mapping.
            let start = entry.bytes.as_ptr().addr() - contents.as_ptr().addr();
            elfs.push(DeviceElf {
                identity: identity.to_string(),
                target: Some(target.to_owned()),
                range: start..start + entry.bytes.len(),
            });
        }
    }
    Ok(elfs)
}
