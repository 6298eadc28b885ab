//! `rocov clean`: removes the files that rocov wrote, by their names and if need be their contents, and
//! nothing else.

use crate::cli::CleanArguments;
use crate::data::{DATABASE, FileKind, is_searched, profile_header};
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use anyhow::{Context, Result, bail};
use rocov::store::layout::{OBJECTS, PROFRAW, REGISTRIES, SECTIONS, SIDE, normal, sides};
use rocov::store::{LABELS, PARTIAL, sweep};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The start of a kernel registry.
const REGISTRY_START: &[u8] = b"{\"rocov_registry\"";
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
    kept: Vec<String>,
}

/// A directory after it was cleaned.
struct Cleaned {
    /// True if rocov wrote something in it.
    is_own: bool,
    is_empty: bool,
}

/// Removes the files, or lists them.
pub(crate) fn clean(arguments: &CleanArguments) -> CommandResult {
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
        eprintln!("rocov: {line}");
    }
    Ok(if cleaner.kept.is_empty() { 0 } else { FAILED })
}

/// The directory and its sides, as far as they are there.
///
/// # Errors
///
/// Fails if it is a link or no directory.
fn places(directory: &Path) -> Result<Vec<PathBuf>> {
    let absolute = std::path::absolute(directory);
    let absolute = absolute.with_context(|| format!("cannot find {}", directory.display()))?;
    let absolute = normal(&absolute);
    let written = directory.file_name().map_or(&*absolute, |_| directory);
    let mut places = Vec::new();
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_symlink() => bail!(
            "{} is a symbolic link, and links are not followed: give the directory that it leads to",
            directory.display()
        ),
        Ok(found) if !found.is_dir() => bail!("{} is not a directory", directory.display()),
        Ok(_) => places.push(directory.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", directory.display()));
        }
    }
    let is_directory = |it: &PathBuf| fs::symlink_metadata(it).is_ok_and(|it| it.is_dir());
    let beside = sides(written).into_iter().filter(is_directory);
    places.extend(beside);
    places.dedup();
    Ok(places)
}

impl Cleaner {
    /// A directory and, if nothing is left in it, the directory itself.
    fn whole(&mut self, directory: &Path) -> Result<()> {
        let cleaned = self.directory(directory);
        let cleaned = cleaned.with_context(|| format!("cannot read {}", directory.display()))?;
        if cleaned.is_own && cleaned.is_empty {
            self.remove_directory(directory);
            // The folder of the sides of working directories.
            let parent = directory
                .parent()
                .filter(|it| it.file_name() == Some(OsStr::new(SIDE)));
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
            is_own: is_made(directory),
            is_empty: true,
        };
        // As it is before anything is removed.
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
                self.kept
                    .push(format!("{path} stays: another process may still write it"));
                false
            } else if kind.is_dir() && is_searched(&name, directory) {
                match self.directory(&path) {
                    Ok(within) => {
                        cleaned.is_own |= within.is_own;
                        within.is_own && within.is_empty && self.remove_directory(&path)
                    }
                    Err(error) => self.stays(&path, &error),
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
            return self.stays(&path, &error);
        }
        self.note(what, path);
        true
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
            Err(error) => self.stays(path, &error),
        }
    }

    fn stays(&mut self, path: &Path, error: &io::Error) -> bool {
        let line = format!("cannot remove {}: {error}", path.display());
        self.kept.push(line);
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
        let kinds = self.removed.iter();
        let kinds: Vec<_> = kinds.map(|(what, number)| count(*number, what)).collect();
        let directory = directory.display();
        about += &match (kinds.as_slice(), self.dry_run) {
            ([], _) => format!("{directory}: nothing of rocov's is there\n"),
            (kinds, true) => format!("{directory}: would remove {}\n", kinds.join(", ")),
            (kinds, false) => format!("{directory}: removed {}\n", kinds.join(", ")),
        };
        if !self.foreign.is_empty() {
            let named = self.foreign.iter().take(MOST_NAMED);
            let mut named: Vec<_> = named.map(|path| path.display().to_string()).collect();
            if self.foreign.len() > MOST_NAMED {
                named.push("…".to_owned());
            }
            let entries = match self.foreign.len() {
                1 => "1 entry".to_owned(),
                number => format!("{number} entries"),
            };
            about += &format!(
                "{directory}: left {entries} that rocov did not write: {}\n",
                named.join(", ")
            );
        }
        about
    }
}

/// Returns whether rocov makes directories of this name: then it is rocov's even if nothing is in it.
fn is_made(directory: &Path) -> bool {
    let name = directory.file_name().and_then(OsStr::to_str);
    let is_of_labels = directory.iter().any(|name| name == LABELS);
    is_of_labels || name.is_some_and(|it| [PROFRAW, OBJECTS, REGISTRIES, SECTIONS].contains(&it))
}

/// The kind of the file at `path`, if rocov wrote it. `is_data`: it lies in a data directory, beside
/// the registries.
fn what(path: &Path, is_data: bool) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    match FileKind::of(path) {
        FileKind::Device(_) => Some("profile"),
        FileKind::PooledHost => Some("merged profile"),
        FileKind::Sections => Some("file of sections"),
        FileKind::Elf(_) => Some("device ELF"),
        FileKind::Registry => starts_with(path, REGISTRY_START).then_some("kernel registry"),
        // `rocov run` has LLVM's runtime write it there: PID.profraw.
        FileKind::Host => {
            let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
            let stem = name.strip_suffix(".profraw")?;
            let is_there = path.parent()?.file_name()? == PROFRAW;
            (is_there && is_number(stem)).then_some("profile of host code")
        }
        FileKind::None if profile_header::is_indexed(path) => {
            let stem = name.strip_suffix(".profdata")?;
            let is_arch = stem.starts_with("gfx") && !stem.contains('.');
            (is_arch || stem == "host").then_some("merged profile")
        }
        FileKind::None => (name == DATABASE && is_data).then_some("database"),
    }
}

fn starts_with(path: &Path, start: &[u8]) -> bool {
    let mut found = vec![0; start.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut found));
    read.is_ok() && found == start
}
