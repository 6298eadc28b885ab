//! Device ELFs: found in the files that the user names, kept where llvm-cov can read them.

use crate::mapped;
use anyhow::{Context, Result, bail};
use memmap2::Mmap;
use rocov::codeobject::CodeObject;
use rocov::codeobject::bundle::{self, BundleError};
use rocov::output::write_atomic;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One file that the user named.
pub(crate) struct ObjectFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The device ELFs in it.
    pub(crate) elfs: Vec<DeviceElf>,
    /// What is wrong with the parts of it that are not among these.
    pub(crate) damage: Vec<BundleError>,
    contents: Mmap,
}

/// A device ELF inside an [`ObjectFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceElf {
    /// Identity of the code object, as in the names of its profiles.
    pub(crate) identity: String,
    /// The target that a bundle gives, such as `gfx90a:xnack-`.
    pub(crate) target: Option<String>,
    bytes: Bytes,
}

/// The bytes of a device ELF.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Bytes {
    /// They are a part of the file.
    InFile(Range<usize>),
    /// They were unpacked.
    Unpacked(Vec<u8>),
}

impl ObjectFile {
    /// Opens the file at `path`: a device ELF, or any file that holds some.
    ///
    /// # Errors
    ///
    /// When it is something else, has no device code in it, or is so damaged that none can be used.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            bail!(
                "{} is a directory, not an object file: the data directory comes before --object",
                path.display()
            );
        }
        let contents = mapped::map(path)?;
        let (elfs, damage) = device_elfs(&contents);
        let mut damage = damage.into_iter();
        if elfs.is_empty()
            && let Some(error) = damage.next()
        {
            return Err(error).with_context(|| format!("cannot use {}", path.display()));
        }
        Ok(Self {
            path: path.to_path_buf(),
            elfs,
            damage: damage.collect(),
            contents,
        })
    }

    /// Whether `elf` has counters.
    pub(crate) fn is_instrumented(&self, elf: &DeviceElf) -> bool {
        let code_object = CodeObject::parse(self.bytes(elf));
        code_object.is_ok_and(|it| it.profile_sections().counters.is_some())
    }

    /// Returns whether `elf` has the mapping from counters to source. One that cannot be read is for others to
    /// refuse.
    pub(crate) fn is_mapped(&self, elf: &DeviceElf) -> bool {
        let sections = CodeObject::parse(self.bytes(elf)).and_then(|it| it.sections());
        sections.map_or(true, |all| has_mapping(&all))
    }

    /// What the compiler of `elf` says of its version, where that was not stripped.
    pub(crate) fn compiler(&self, elf: &DeviceElf) -> Option<String> {
        CodeObject::parse(self.bytes(elf)).ok()?.compiler()
    }

    /// A path at which `elf` lies by itself: the file's own, or one in `directory` that it is copied to.
    ///
    /// # Errors
    ///
    /// When it cannot be written there.
    pub(crate) fn place(&self, elf: &DeviceElf, arch: &str, directory: &Path) -> Result<PathBuf> {
        if elf.bytes == Bytes::InFile(0..self.contents.len()) {
            return Ok(self.path.clone());
        }
        let name = format!("{arch}.{}.elf", elf.identity);
        let path = directory.join(name);
        write_atomic(&path, self.bytes(elf))?;
        Ok(path)
    }

    fn bytes<'a>(&'a self, elf: &'a DeviceElf) -> &'a [u8] {
        match &elf.bytes {
            Bytes::InFile(range) => &self.contents[range.clone()],
            Bytes::Unpacked(bytes) => bytes,
        }
    }
}

/// Returns whether a code object with these sections has the mapping from counters to source.
pub(crate) fn has_mapping(sections: &[rocov::codeobject::Section]) -> bool {
    const MAPPING: &str = "__llvm_covfun";
    sections.iter().any(|it| it.name == MAPPING && it.size > 0)
}

/// The device ELFs in the bytes of a file, and what is wrong with what is none.
fn device_elfs(contents: &[u8]) -> (Vec<DeviceElf>, Vec<BundleError>) {
    let mut elfs = Vec::new();
    let mut damage = Vec::new();
    for image in bundle::images(contents) {
        match image {
            Ok(image) => elfs.push(DeviceElf {
                identity: image.identity.to_string(),
                target: image.target,
                bytes: match image.bytes.range_in_file() {
                    Some(range) => Bytes::InFile(range),
                    None => Bytes::Unpacked(image.bytes.to_vec()),
                },
            }),
            Err(error) => damage.push(error),
        }
    }
    (elfs, damage)
}
