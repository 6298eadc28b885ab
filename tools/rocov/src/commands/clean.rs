//! `rocov clean`: removes the files that rocov wrote, by their names, places and first bytes, and nothing
//! else. A directory goes if it had such files and is empty then. `--cache` removes the caches instead.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::format::codeobject::{Identity, is_processor};
use rocov::format::profraw::{RawProfile, SavedSections};
use rocov::store::layout::{PROFRAW, REGISTRIES, SIDE, normal, sides};
use rocov::store::{InstrumentCache, PARTIAL, ProcessWord, open_input, sweep};
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};

use crate::cli::CleanArguments;
use crate::data::code_cache::CodeCache;
use crate::data::profile_header::{self, INDEXED_MAGIC};
use crate::data::{DATABASE, FileKind, is_searched};
use crate::support::failure::failure;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use crate::term::remedy::system_remedy;

/// The first bytes of device ELFs, kernel registries and databases.
const ELF_START: &[u8] = b"\x7fELF";
const REGISTRY_START: &[u8] = b"{\"rocov_registry\"";
const DATABASE_START: &[u8] = b"SQLite format 3\0";
/// The number of first bytes that show a file's kind.
const START: u64 = 32;
/// The number of directories that a folder of a cache takes, such as `rocov/device-code`.
const CACHE_DIRECTORIES: usize = 2;
/// The largest number of remaining files that are named.
const MOST_NAMED: usize = 3;

/// The result of a removal so far.
#[derive(Default)]
struct Cleaner {
    dry_run: bool,
    /// The number of files of each kind, in the singular.
    removed: BTreeMap<&'static str, usize>,
    /// Each path.
    paths: Vec<PathBuf>,
    /// Files that rocov did not write.
    foreign: Vec<PathBuf>,
    /// The reasons why files of rocov stay.
    kept: Vec<Diagnostic>,
}

/// A directory after it was cleaned.
struct Cleaned {
    /// True if it had files that rocov wrote.
    is_own: bool,
    is_empty: bool,
}

/// Removes the files, or lists them.
pub(crate) fn clean(arguments: &CleanArguments) -> CommandResult {
    if arguments.cache {
        return clean_caches(arguments.dry_run);
    }
    let directory = &arguments.directory;
    let mut cleaner = Cleaner {
        dry_run: arguments.dry_run,
        ..Cleaner::default()
    };
    for place in places(directory)? {
        cleaner.whole(&place)?;
    }
    print::text(cleaner.about(directory).as_bytes())?;
    for line in &cleaner.kept {
        print::message(line);
    }
    Ok(if cleaner.kept.is_empty() { 0 } else { FAILED })
}

/// Removes the caches: of device code in host files, and of `rocov run --instrument`.
///
/// # Errors
///
/// Fails if the user has no cache.
fn clean_caches(dry_run: bool) -> CommandResult {
    let code = CodeCache::for_user();
    let entries = || {
        let mut entries: Vec<_> = code.entries().collect();
        entries.sort();
        entries
    };
    let mut folders: Vec<_> = code
        .directory()
        .map(|directory| (directory.to_owned(), entries()))
        .into_iter()
        .collect();
    let instrumented = InstrumentCache::for_user();
    folders.extend(instrumented.iter().flat_map(InstrumentCache::folders));
    let Some((first, _)) = folders.first().cloned() else {
        return Err(
            failure!("there is no cache"; "set HOME or XDG_CACHE_HOME to an absolute path").into(),
        );
    };
    let mut status = 0;
    let mut abouts = String::new();
    for (folder, entries) in folders {
        let mut cleaner = Cleaner {
            dry_run,
            ..Cleaner::default()
        };
        for path in entries {
            cleaner.remove_entry(path);
        }
        if !dry_run {
            sweep(&folder, |path| fs::remove_file(path));
            for directory in folder.ancestors().take(CACHE_DIRECTORIES) {
                // Other files may lie there.
                let _ = fs::remove_dir(directory);
            }
        }
        if !cleaner.paths.is_empty() {
            abouts += &cleaner.about(&folder);
        }
        for line in &cleaner.kept {
            print::message(line);
            status = FAILED;
        }
    }
    if abouts.is_empty() && status == 0 {
        abouts = Cleaner::default().about(first.parent().unwrap_or(&first));
    }
    print::text(abouts.as_bytes())?;
    Ok(status)
}

/// The directory and its sides, as far as they are there.
///
/// # Errors
///
/// Fails if it is a link or no directory.
fn places(directory: &Path) -> Result<Vec<PathBuf>> {
    let absolute = std::path::absolute(directory)
        .with_context(|| format!("cannot find {}", directory.display()))?;
    let absolute = normal(&absolute);
    let written = directory.file_name().map_or(&*absolute, |_| directory);
    let mut places = Vec::new();
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_symlink() => {
            fail!(
                "{} is a symbolic link, which rocov does not follow", directory.display();
                "name the directory that it points to"
            )
        }
        Ok(found) if !found.is_dir() => {
            fail!(
                "{} is not a directory", directory.display();
                "name the directory that `rocov run` wrote to"
            )
        }
        Ok(_) => places.push(directory.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", directory.display()));
        }
    }
    let is_directory =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let beside = sides(written).into_iter().filter(is_directory);
    places.extend(beside);
    places.dedup();
    Ok(places)
}

impl Cleaner {
    /// A directory and, if nothing is left in it, the directory itself.
    fn whole(&mut self, directory: &Path) -> Result<()> {
        let cleaned = self
            .directory(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        if cleaned.is_own && cleaned.is_empty {
            self.remove_directory(directory);
            // The folder of the sides of working directories.
            let parent = directory
                .parent()
                .filter(|parent| parent.file_name() == Some(OsStr::new(SIDE)));
            if let Some(parent) = parent
                && !self.dry_run
            {
                // Others may lie there.
                let _ = fs::remove_dir(parent);
            }
        }
        Ok(())
    }

    fn directory(&mut self, directory: &Path) -> io::Result<Cleaned> {
        let mut cleaned = Cleaned {
            is_own: false,
            is_empty: true,
        };
        // Looked up before anything is removed.
        let is_data = directory.join(REGISTRIES).is_dir();
        let abandoned = RefCell::new(Vec::new());
        sweep(directory, |path| {
            abandoned.borrow_mut().push(path.to_owned());
            match self.dry_run {
                true => Ok(()),
                false if path.is_dir() => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            }
        });
        for path in abandoned.into_inner() {
            cleaned.is_own = true;
            self.note("unfinished file", path);
        }
        let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (kind, name, path) = (entry.file_type()?, entry.file_name(), entry.path());
            if self.paths.contains(&path) && self.dry_run {
                continue;
            }
            let removed = if name.as_bytes().starts_with(PARTIAL.as_bytes()) {
                let path = path.display();
                self.kept.push(diagnostic!(
                    "{path} is kept: another process may still write it";
                    "after that process has ended, run `rocov clean` again"
                ));
                false
            } else if kind.is_dir() && is_searched(&name, directory) {
                match self.directory(&path) {
                    Ok(within) => {
                        cleaned.is_own |= within.is_own;
                        within.is_own && within.is_empty && self.remove_directory(&path)
                    }
                    Err(error) => self.keep(&path, &error),
                }
            } else if kind.is_file()
                && let Some(what) = what(&path, is_data)
            {
                cleaned.is_own = true;
                self.remove_file(what, path)
            } else {
                self.foreign.push(path);
                false
            };
            cleaned.is_empty &= removed;
        }
        Ok(cleaned)
    }

    /// Returns whether it is gone.
    fn remove_file(&mut self, what: &'static str, path: PathBuf) -> bool {
        if !self.dry_run
            && let Err(error) = fs::remove_file(&path)
        {
            return self.keep(&path, &error);
        }
        self.note(what, path);
        true
    }

    /// Removes an entry of a cache: a file, or a directory with all in it.
    fn remove_entry(&mut self, path: PathBuf) {
        const WHAT: &str = "cache entry";
        if !path.is_dir() {
            self.remove_file(WHAT, path);
            return;
        }
        if !self.dry_run
            && let Err(error) = fs::remove_dir_all(&path)
        {
            self.keep(&path, &error);
            return;
        }
        self.note(WHAT, path);
    }

    /// Removes an empty directory, and returns whether it is gone. The working directory stays.
    fn remove_directory(&mut self, path: &Path) -> bool {
        if self.dry_run || path.file_name().is_none() {
            return self.dry_run;
        }
        match fs::remove_dir(path) {
            Ok(()) => true,
            // Somebody has put something there meanwhile.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => false,
            Err(error) => self.keep(path, &error),
        }
    }

    fn keep(&mut self, path: &Path, error: &io::Error) -> bool {
        let what = format!("cannot remove {}: {error}", path.display());
        self.kept.push(Diagnostic::new(
            what,
            system_remedy(error).unwrap_or_default(),
        ));
        false
    }

    fn note(&mut self, what: &'static str, path: PathBuf) {
        *self.removed.entry(what).or_default() += 1;
        self.paths.push(path);
    }

    /// A text with the files that were removed, or would be, and those that are left.
    fn about(&self, directory: &Path) -> String {
        let mut about = String::new();
        if self.dry_run {
            for path in &self.paths {
                about += &format!("{}\n", path.display());
            }
        }
        let kinds: Vec<_> = self
            .removed
            .iter()
            .map(|(what, number)| count(*number, what))
            .collect();
        let directory = directory.display();
        about += &match (kinds.as_slice(), self.dry_run) {
            ([], _) if !self.kept.is_empty() => String::new(),
            ([], _) => format!("{directory}: there is nothing from rocov to remove\n"),
            (kinds, true) => format!("{directory}: would remove {}\n", kinds.join(", ")),
            (kinds, false) => format!("{directory}: removed {}\n", kinds.join(", ")),
        };
        if !self.foreign.is_empty() {
            let mut named: Vec<_> = self
                .foreign
                .iter()
                .take(MOST_NAMED)
                .map(|path| path.display().to_string())
                .collect();
            if self.foreign.len() > MOST_NAMED {
                named.push("…".to_owned());
            }
            let entries = match self.foreign.len() {
                1 => "1 entry that is".to_owned(),
                number => format!("{number} entries that are"),
            };
            about += &format!(
                "{directory}: left {entries} not data of a run: {}\n",
                named.join(", ")
            );
        }
        about
    }
}

/// The kind of the file at `path`, if rocov wrote it: by its name, its place and its first bytes. `is_data`: it
/// lies in a data directory, next to the registries.
fn what(path: &Path, is_data: bool) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let start = start(path).ok()?;
    let starts_with = |bytes: &[u8]| start.starts_with(bytes);
    let (is_own, what) = match FileKind::from_path(path) {
        FileKind::Device(_) => (RawProfile::has_magic(&start), "profile"),
        FileKind::PooledHost => (starts_with(&INDEXED_MAGIC), "merged profile"),
        FileKind::Sections => (SavedSections::has_magic(&start), "file of sections"),
        FileKind::Elf(identity) => {
            let is_identity = Identity::from_digits(&identity).is_some();
            (is_identity && starts_with(ELF_START), "device ELF")
        }
        FileKind::Ptx(identity) => {
            let is_identity = Identity::from_digits(&identity).is_some();
            let is_text = start
                .iter()
                .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
            let is_ptx =
                is_text && (starts_with(b"//") || starts_with(b".version") || is_blank(&start));
            (is_identity && is_ptx, "PTX file")
        }
        FileKind::Registry => (starts_with(REGISTRY_START), "kernel registry"),
        // `rocov run` has LLVM's runtimes write them to a data directory: profraw/PID-RUN.profraw, and
        // profraw/amdgcn-amd-amdhsa.PID-RUN.profraw. Earlier versions had no RUN.
        kind @ (FileKind::Host | FileKind::OfOffloadRuntime) => {
            let name = match kind {
                FileKind::Host => name,
                _ => name.split_once('.')?.1,
            };
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let folder = path.parent()?;
            let is_there = folder.file_name()? == PROFRAW
                && folder.with_file_name(REGISTRIES).is_dir()
                && is_number(ProcessWord::cut_off(name.strip_suffix(".profraw")?));
            (
                is_there && RawProfile::has_magic(&start),
                match kind {
                    FileKind::Host => "profile of host code",
                    _ => "profile of LLVM's offload runtime",
                },
            )
        }
        FileKind::None if profile_header::is_indexed(path) => {
            let stem = name.strip_suffix(".profdata")?;
            let is_named = stem == "host" || is_processor(stem) && !stem.contains('.');
            (is_named && starts_with(&INDEXED_MAGIC), "merged profile")
        }
        FileKind::None => (
            name == DATABASE && is_data && starts_with(DATABASE_START),
            "database",
        ),
    };
    is_own.then_some(what)
}

/// Returns whether a text starts with white space: fatbinary takes the comments out of PTX, and leaves that.
fn is_blank(start: &[u8]) -> bool {
    start.first().is_some_and(u8::is_ascii_whitespace)
}

/// Reads the first bytes of a file.
fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    open_input(path)?.take(START).read_to_end(&mut start)?;
    Ok(start)
}
