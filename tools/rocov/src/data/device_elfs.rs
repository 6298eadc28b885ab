//! Device ELFs: in the files that the user names, and in the data directory.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use memmap2::Mmap;
use rocov::format::bundle;
use rocov::format::bundle::{BundleError, Containers, SplitOff};
use rocov::format::codeobject::cuda::with_sections;
use rocov::format::codeobject::{CodeObject, Identity, without_host_functions};
use rocov::store::layout::{PTX, device_elf_name, elf_identity};
use rocov::store::write_atomic;
use rocov::support::diagnostic::fail;

use super::archives::archives_beside;
use crate::support::mmap;

/// A file that device ELFs are looked for in.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The host file that it was taken from, if it is temporary.
    pub(crate) origin: Option<PathBuf>,
    /// The device ELFs in it.
    pub(crate) elfs: Vec<DeviceElf>,
    /// The errors in other parts of the file.
    pub(crate) damage: Vec<BundleError>,
    contents: Mmap,
}

/// A device ELF inside an [`ObjectFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceElf {
    /// Identity of the code object, as in the names of its profiles.
    pub(crate) identity: Identity,
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
    /// Fails if it is something else, has no device code in it, or is so damaged that none can be used.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            fail!(
                "{} is a directory, not an object file", path.display();
                "put the data directory before --object"
            );
        }
        let contents = mmap::map(path)?;
        let (elfs, damage) = match bundle::split_off(&contents) {
            None => device_elfs(bundle::containers(&contents)),
            Some(reference) => in_archives(path, &reference)?,
        };
        let mut damage = damage.into_iter();
        if elfs.is_empty()
            && let Some(error) = damage.next()
        {
            return Err(error).with_context(|| format!("cannot use {}", path.display()));
        }
        Ok(Self {
            path: path.to_path_buf(),
            origin: None,
            elfs,
            damage: damage.collect(),
            contents,
        })
    }

    /// Returns whether `elf` has counters.
    pub(crate) fn is_instrumented(&self, elf: &DeviceElf) -> bool {
        let code_object = CodeObject::parse(self.bytes(elf));
        code_object.is_ok_and(|code_object| code_object.profile_sections().counters.is_some())
    }

    /// Returns whether `elf` has the mapping from counters to source. One that cannot be read is for others to
    /// refuse.
    pub(crate) fn is_mapped(&self, elf: &DeviceElf) -> bool {
        let is_mapped =
            CodeObject::parse(self.bytes(elf)).and_then(|code_object| code_object.is_mapped());
        is_mapped.unwrap_or(true)
    }

    /// The version that the compiler of `elf` wrote into it, if that was not stripped.
    pub(crate) fn compiler(&self, elf: &DeviceElf) -> Option<String> {
        CodeObject::parse(self.bytes(elf)).ok()?.compiler()
    }

    /// A path at which `elf` lies by itself for llvm-cov: the file's own, or one in `directory` that it is
    /// copied to. A copy of OpenMP's lacks the host's functions.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written there.
    pub(crate) fn place(&self, elf: &DeviceElf, arch: &str, directory: &Path) -> Result<PathBuf> {
        let of_device = without_host_functions(self.bytes(elf));
        if of_device.is_none() && elf.bytes == Bytes::InFile(0..self.contents.len()) {
            return Ok(self.path.clone());
        }
        let path = directory.join(device_elf_name(arch, &elf.identity));
        write_atomic(&path, of_device.as_deref().unwrap_or(self.bytes(elf)))?;
        Ok(path)
    }

    /// The path of the PTX that a kept device ELF was made of, if rocov has made that count. It is next to the ELF.
    pub(crate) fn ptx(&self) -> Option<PathBuf> {
        elf_identity(&self.path)?;
        Some(self.path.with_extension(PTX)).filter(|path| path.is_file())
    }

    /// The bytes of a device ELF.
    pub(crate) fn bytes<'a>(&'a self, elf: &'a DeviceElf) -> &'a [u8] {
        match &elf.bytes {
            Bytes::InFile(range) => &self.contents[range.clone()],
            Bytes::Unpacked(bytes) => bytes,
        }
    }
}

/// The device ELFs of a data directory (`objects/TARGET.IDENTITY.elf`) that librocov kept when they were
/// loaded, for the code objects that have profiles.
#[derive(Debug, Default)]
pub(crate) struct KeptElfs {
    /// At most one for each identity.
    pub(crate) files: Vec<ObjectFile>,
    /// The files whose contents do not match their names.
    pub(crate) refused: Vec<Error>,
}

impl KeptElfs {
    /// Adds a kept device ELF, or the reason why it cannot be used.
    pub(super) fn add(&mut self, path: &Path, identity: &str) {
        match open_kept(path, identity) {
            Ok(file) => self.files.push(file),
            Err(error) => self.refused.push(error),
        }
    }
}

/// Opens a kept device ELF, and checks that it is the code object that its name says.
///
/// # Errors
///
/// Fails if it is another one, or cannot be read.
pub(super) fn open_kept(path: &Path, identity: &str) -> Result<ObjectFile> {
    let remedy = "remove it, and run the program again or name the file that it came from with \
                  --object";
    let file = ObjectFile::open(path).with_context(|| format!("damaged or foreign, {remedy}"))?;
    match file.elfs.as_slice() {
        [elf] if elf.identity.as_str() == identity => Ok(file),
        elfs => {
            let found: Vec<_> = elfs.iter().map(|elf| elf.identity.as_str()).collect();
            fail!(
                "{} has the contents of code object {}, not of the one in its name",
                path.display(), found.join(", ");
                "{remedy}"
            )
        }
    }
}

/// The device ELFs of a host file whose code was split off, and the errors in their archives.
///
/// # Errors
///
/// Fails if there is no archive, or one cannot be read.
fn in_archives(host: &Path, reference: &SplitOff) -> Result<(Vec<DeviceElf>, Vec<BundleError>)> {
    let (mut elfs, mut damage) = (Vec::new(), Vec::new());
    for archive in archives_beside(host, reference)? {
        let contents = mmap::map(&archive)?;
        let containers = bundle::containers(&contents).of_host(&reference.name);
        let (found, wrong) = device_elfs(containers);
        elfs.extend(found.into_iter().map(|elf| DeviceElf {
            bytes: match elf.bytes {
                Bytes::InFile(range) => Bytes::Unpacked(contents[range].to_vec()),
                unpacked => unpacked,
            },
            ..elf
        }));
        damage.extend(wrong);
    }
    if elfs.is_empty() && damage.is_empty() {
        fail!(
            "{} was split off into kpack archives, which do not name {}",
            host.display(), reference.name;
            "use the archives from its build"
        );
    }
    Ok((elfs, damage))
}

/// The device ELFs in the containers of a file, and the errors in its other parts.
fn device_elfs(containers: Containers<'_>) -> (Vec<DeviceElf>, Vec<BundleError>) {
    let mut elfs = Vec::new();
    let mut damage = Vec::new();
    let images = containers.flat_map(|container| match container {
        Err(error) => vec![Err(error)],
        Ok(container) => container.into_device_images(),
    });
    for image in images {
        match image {
            Ok(image) => elfs.push(DeviceElf {
                identity: image.identity,
                target: image.target,
                bytes: match (with_sections(&image.bytes), image.bytes.range_in_file()) {
                    (Cow::Borrowed(_), Some(range)) => Bytes::InFile(range),
                    (bytes, _) => Bytes::Unpacked(bytes.into_owned()),
                },
            }),
            Err(error) => damage.push(error),
        }
    }
    (elfs, damage)
}
