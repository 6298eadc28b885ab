//! The host files that code objects come from, and the build of each file: counts of two builds of a program
//! belong to different sources.
//!
//! A build is the GNU build id of the file, which `strip` keeps, or else a hash of its contents.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::read::elf::{ElfFile64, NoteIterator};
use object::{LittleEndian, Object, ReadCache};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A file that code objects come from, as it was when they were loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFile {
    /// Its path.
    pub path: Arc<Path>,
    /// Its build: hexadecimal digits.
    pub build: String,
}

impl HostFile {
    /// The [`tag`] of this build of the file.
    #[must_use]
    pub fn tag(&self) -> String {
        tag(&self.path.to_string_lossy(), &self.build)
    }
}

/// The part of a pool's name (`%m`) for a build of the file at `path`: 16 hexadecimal digits. Copies of a
/// file at two paths have different tags, because one of them may be replaced.
#[must_use]
pub fn tag(path: &str, build: &str) -> String {
    let mut text = path.as_bytes().to_vec();
    text.push(0);
    text.extend_from_slice(build.as_bytes());
    format!("{:016x}", xxh3_64(&text))
}

/// The files of a process, and the functions that find their builds. The default contains no file.
#[derive(Clone, Debug)]
pub struct HostFiles {
    /// Returns the file that code is from. Gets the file that the runtime names, if it names one.
    place: fn(Option<PathBuf>) -> Option<PathBuf>,
    /// Returns the build of a file that is loaded or on the disk.
    build: fn(&Path) -> Option<String>,
    /// Each file once.
    known: Vec<Arc<HostFile>>,
}

impl Default for HostFiles {
    fn default() -> Self {
        Self::new(|_| None, |_| None)
    }
}

impl HostFiles {
    /// Makes an empty list that uses these functions.
    #[must_use]
    pub fn new(
        place: fn(Option<PathBuf>) -> Option<PathBuf>,
        build: fn(&Path) -> Option<String>,
    ) -> Self {
        Self {
            place,
            build,
            known: Vec::new(),
        }
    }

    /// The file that code comes from, if it is known. `named` is the file that the runtime names, if it names
    /// one.
    pub fn file(&mut self, named: Option<PathBuf>) -> Option<Arc<HostFile>> {
        let path = (self.place)(named)?;
        let build = (self.build)(&path)?;
        let is_it = |known: &&Arc<HostFile>| *known.path == *path && known.build == build;
        if let Some(known) = self.known.iter().find(is_it) {
            return Some(known.clone());
        }
        let path = path.into();
        let new = Arc::new(HostFile { path, build });
        self.known.push(new.clone());
        Some(new)
    }
}

/// The build of the file at `path`, as it is on the disk.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn build_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    if let Some(id) = build_id_of(&file) {
        return Ok(id);
    }
    file.rewind()?;
    let mut hash = Xxh3::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hash.digest128().to_be_bytes())),
            Ok(len) => hash.update(&piece[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The GNU build id of an ELF.
fn build_id_of(file: &File) -> Option<String> {
    let cache = ReadCache::new(file);
    let elf = ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
    let id = elf.build_id().ok()??;
    (!id.is_empty()).then(|| hex(id))
}

/// The GNU build id among the `notes` of a loaded object, which are aligned to `align` bytes.
#[must_use]
pub fn build_id_in(notes: &[u8], align: u64) -> Option<String> {
    type Header = object::elf::FileHeader64<LittleEndian>;
    let mut notes = NoteIterator::<Header>::new(LittleEndian, align, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        let is_id = note.name() == object::elf::ELF_NOTE_GNU
            && note.n_type(LittleEndian) == object::elf::NT_GNU_BUILD_ID;
        if is_id && !note.desc().is_empty() {
            return Some(hex(note.desc()));
        }
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Links a library and returns its file.
    fn linked(directory: &Path, name: &str, flag: &str) -> PathBuf {
        let file = directory.join(name);
        let mut link = Command::new("cc");
        link.args(["-shared", "-x", "c", "/dev/null", flag, "-o"]);
        assert!(link.arg(&file).status().unwrap().success());
        file
    }

    /// The build id that readelf prints.
    fn by_readelf(file: &Path) -> String {
        let output = Command::new("readelf")
            .arg("-n")
            .arg(file)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, id) = said.split_once("Build ID: ").expect("a build id");
        id.lines().next().unwrap().to_owned()
    }

    #[test]
    fn a_build_is_the_build_id_and_survives_strip() {
        let directory = tempfile::tempdir().unwrap();
        let file = linked(directory.path(), "a.so", "-Wl,--build-id=sha1");
        let build = build_of(&file).unwrap();
        assert_eq!(build, by_readelf(&file));
        assert!(Command::new("strip").arg(&file).status().unwrap().success());
        assert_eq!(build_of(&file).unwrap(), build);
    }

    #[test]
    fn what_has_none_is_told_by_its_contents() {
        let directory = tempfile::tempdir().unwrap();
        let file = linked(directory.path(), "a.so", "-Wl,--build-id=none");
        let build = build_of(&file).unwrap();
        assert_eq!(build.len(), 32, "128 bits");
        let copy = directory.path().join("b.so");
        std::fs::copy(&file, &copy).unwrap();
        assert_eq!(build_of(&copy).unwrap(), build);
        std::fs::write(&copy, "another").unwrap();
        assert_ne!(build_of(&copy).unwrap(), build);
        assert!(build_of(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn notes_in_memory_have_the_same() {
        let note = |name: &[u8], kind: u32, id: &[u8]| {
            let mut note = Vec::new();
            for word in [name.len() as u32, id.len() as u32, kind] {
                note.extend(word.to_le_bytes());
            }
            note.extend(name);
            note.extend(id);
            note
        };
        let other = note(b"GNU\0", 5, &[1; 16]);
        let ours = note(b"GNU\0", 3, &[0xab, 0xcd, 0xef, 0x01]);
        let notes = [other.clone(), ours].concat();
        assert_eq!(build_id_in(&notes, 4).as_deref(), Some("abcdef01"));
        assert_eq!(build_id_in(&other, 4), None);
        assert_eq!(build_id_in(&notes[..notes.len() - 1], 4), None);
        assert_eq!(build_id_in(&[], 4), None);
    }

    #[test]
    fn a_tag_is_of_the_place_and_the_build() {
        let tags = [("/a", "1"), ("/a", "2"), ("/b", "1"), ("/a1", "")];
        let tags = tags.map(|(path, build)| tag(path, build));
        for (index, tag) in tags.iter().enumerate() {
            assert_eq!(tag.len(), 16);
            assert!(!tags[..index].contains(tag));
        }
    }
}
