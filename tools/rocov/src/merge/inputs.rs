//! What the user names: directories, files, globs and lists of them.

use super::Damaged;
use crate::profdata;
use crate::profiles::{DeviceProfile, Kind};
use anyhow::{Context, Error, Result, anyhow, bail};
use rocov::output::{LABELS, PARTIAL};
use rocov::registry::OBJECTS;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Stands for standard input.
const STANDARD_INPUT: &str = "-";

/// One file, as soon as it is found.
pub(super) enum Found {
    /// The profile of a code object.
    Device(DeviceProfile),
    /// A profile of host code.
    Host(PathBuf),
    /// A device ELF that was kept beside profiles.
    Kept(PathBuf),
    /// The registry of a process's kernels.
    Registry(PathBuf),
    /// Saved sections, which are not merged.
    Sections(PathBuf),
    /// An input that cannot be read.
    Damaged(Damaged),
}

/// Walks over the inputs. The order is the same every time.
pub(super) struct Inputs<'a> {
    found: &'a mut dyn FnMut(Found),
    /// Where the output goes.
    pooled: Option<PathBuf>,
    /// Device and inode number of every directory that was entered: links can make a circle.
    entered: HashSet<(u64, u64)>,
    /// Directories of files that were named by themselves.
    parents: HashSet<PathBuf>,
}

impl<'a> Inputs<'a> {
    /// Gives every file to `found`. `pooled` is the directory that will be written.
    pub(super) fn new(found: &'a mut dyn FnMut(Found), pooled: Option<&Path>) -> Self {
        Self {
            found,
            pooled: pooled.and_then(|path| std::path::absolute(path).ok()),
            entered: HashSet::new(),
            parents: HashSet::new(),
        }
    }

    /// Walks over what stands on the command line.
    ///
    /// # Errors
    ///
    /// When the output would be among the inputs of the next merge.
    pub(super) fn arguments(&mut self, arguments: &[PathBuf]) -> Result<()> {
        arguments.iter().try_for_each(|path| self.named(path))
    }

    /// Walks over what stands in the file `list`, one on each line; lines that start with `#` are
    /// comments, as in lists for llvm-profdata.
    ///
    /// # Errors
    ///
    /// Also when the list cannot be read, or has a weight.
    pub(super) fn list(&mut self, list: &Path) -> Result<()> {
        let reader: Box<dyn BufRead> = if list == Path::new(STANDARD_INPUT) {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(list)
                .with_context(|| format!("cannot open the list {}", list.display()))?;
            Box::new(BufReader::new(file))
        };
        for line in reader.split(b'\n') {
            let line = line.with_context(|| format!("cannot read the list {}", list.display()))?;
            let entry = unweighted(line.trim_ascii())?;
            if !entry.is_empty() && !entry.starts_with(b"#") {
                self.named(Path::new(OsStr::from_bytes(entry)))?;
            }
        }
        Ok(())
    }

    /// A path or a glob that the user wrote.
    fn named(&mut self, path: &Path) -> Result<()> {
        let text = path.to_string_lossy();
        if path.exists() || !text.contains(['*', '?', '[']) {
            return self.path(path);
        }
        let matches = glob::glob(&text).with_context(|| format!("`{text}` is not a glob"))?;
        let mut is_empty = true;
        for found in matches {
            is_empty = false;
            match found {
                Ok(path) => self.path(&path)?,
                Err(error) => {
                    let path = error.path().to_owned();
                    self.damaged(&path, Error::from(error));
                }
            }
        }
        if is_empty {
            self.damaged(path, anyhow!("no file matches `{text}`"));
        }
        Ok(())
    }

    /// A path that the user wrote.
    fn path(&mut self, path: &Path) -> Result<()> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                self.check_output(path)?;
                self.directory(path);
            }
            Ok(metadata) if metadata.is_file() => {
                self.file(path);
                self.kept_beside(path);
            }
            Ok(_) => self.damaged(path, anyhow!("{} is not a file", path.display())),
            Err(error) => self.unreadable(path, error),
        }
        Ok(())
    }

    /// A file that the user wants: a profile of host code, whatever its name, unless its name says
    /// something else.
    fn file(&mut self, path: &Path) {
        let owned = path.to_owned();
        match Kind::of(path) {
            Kind::None if profdata::is_indexed(path) => self.damaged(
                path,
                anyhow!(
                    "cannot merge {}: it is an indexed profile, which llvm-profdata merges",
                    path.display()
                ),
            ),
            Kind::None => (self.found)(Found::Host(owned)),
            kind => self.entry(kind, owned),
        }
    }

    /// A file of a directory.
    fn entry(&mut self, kind: Kind, path: PathBuf) {
        (self.found)(match kind {
            Kind::Device(profile) => Found::Device(profile),
            Kind::Other | Kind::PooledHost => Found::Host(path),
            Kind::Sections => Found::Sections(path),
            Kind::Registry => Found::Registry(path),
            Kind::None if is_kept(&path) => Found::Kept(path),
            Kind::None => return,
        });
    }

    /// All that lies in a directory and those below it, as llvm-profdata does it. Hidden directories
    /// are not entered, unless their name is a label's: a merge that was killed may have left one.
    fn directory(&mut self, directory: &Path) {
        match fs::metadata(directory) {
            Ok(metadata) if self.entered.insert((metadata.dev(), metadata.ino())) => {}
            Ok(_) => return,
            Err(error) => return self.unreadable(directory, error),
        }
        let entries = fs::read_dir(directory).and_then(|entries| {
            entries
                .map(|entry| entry.and_then(|entry| Ok((entry.file_type()?, entry.file_name()))))
                .collect::<io::Result<Vec<_>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(directory, error),
        };
        entries.sort_unstable_by(|(_, a), (_, b)| process_first(a).cmp(&process_first(b)));
        for (kind, name) in entries {
            let path = directory.join(&name);
            // A link is what it leads to; what leads nowhere is of no interest before it is read.
            let is_directory = kind.is_dir() || kind.is_symlink() && path.is_dir();
            if !is_directory {
                // Opening a pipe would wait for somebody to write into it.
                if kind.is_file() || kind.is_symlink() {
                    self.entry(Kind::of(&path), path);
                }
            } else if is_input(&name, directory) {
                self.directory(&path);
            }
        }
    }

    /// The device ELFs in the data directory of a file that was named by itself.
    fn kept_beside(&mut self, path: &Path) {
        let Some(parent) = path.parent() else { return };
        if self.parents.contains(parent) {
            return;
        }
        self.parents.insert(parent.to_owned());
        let objects = parent.join(OBJECTS);
        if objects.is_dir() {
            self.directory(&objects);
        }
    }

    /// A pooled directory among the inputs would be added to them by the next merge.
    fn check_output(&self, input: &Path) -> Result<()> {
        let Some(pooled) = &self.pooled else {
            return Ok(());
        };
        let inside = pooled
            .ancestors()
            .filter_map(|path| path.canonicalize().ok())
            .any(|path| input.canonicalize().is_ok_and(|input| input == path));
        if inside {
            bail!(
                "{} lies in the input {}: the next merge of that would count everything twice, so \
                 write it elsewhere",
                pooled.display(),
                input.display()
            );
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &Path, error: io::Error) {
        let error = Error::from(error).context(format!("cannot read {}", path.display()));
        self.damaged(path, error);
    }

    fn damaged(&mut self, path: &Path, error: Error) {
        let path = path.to_owned();
        (self.found)(Found::Damaged(Damaged { path, error }));
    }
}

/// Whether the file is named as kept device ELFs are.
fn is_kept(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "elf")
        && path.parent().and_then(Path::file_name) == Some(OsStr::new(OBJECTS))
}

/// Whether the directory `name` in `directory` has inputs. What a merge that was killed has left has not,
/// nor has what is hidden, unless it is a label.
fn is_input(name: &OsStr, directory: &Path) -> bool {
    let name = name.as_bytes();
    let is_label = || directory.iter().any(|name| name == LABELS);
    !name.starts_with(PARTIAL.as_bytes()) && (!name.starts_with(b".") || is_label())
}

/// Orders `ARCH.IDENTITY.AGENT.BASE` by BASE, so that neighbours are of different code objects: they
/// are added at the same time, and those of one code object have to wait for each other.
fn process_first(name: &OsStr) -> (&[u8], &[u8]) {
    let name = name.as_bytes();
    let base = name.splitn(4, |byte| *byte == b'.').nth(3);
    (base.unwrap_or(name), name)
}

/// An entry of a list without its weight, which stands before a comma and must be 1.
fn unweighted(entry: &[u8]) -> Result<&[u8]> {
    let Some(comma) = entry.iter().position(|byte| *byte == b',') else {
        return Ok(entry);
    };
    let (weight, path) = (&entry[..comma], &entry[comma + 1..]);
    match weight {
        b"1" => Ok(path),
        weight if !weight.is_empty() && weight.iter().all(u8::is_ascii_digit) => bail!(
            "`{}` has a weight, and profiles are added as they are: expected 1",
            String::from_utf8_lossy(entry)
        ),
        // A comma in a name.
        _ => Ok(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_in_lists_are_taken_off_or_refused() {
        for (entry, path) in [
            ("a.profraw", "a.profraw"),
            ("1,a,b.profraw", "a,b.profraw"),
            ("a,b.profraw", "a,b.profraw"),
            (",a", ",a"),
        ] {
            assert_eq!(unweighted(entry.as_bytes()).unwrap(), path.as_bytes());
        }
        let error = unweighted(b"20,a.profraw").unwrap_err().to_string();
        assert_eq!(
            error,
            "`20,a.profraw` has a weight, and profiles are added as they are: expected 1"
        );
    }

    #[test]
    fn neighbours_are_of_different_code_objects() {
        let mut names = [
            "gfx90a.aa.0.1.profraw",
            "gfx90a.aa.0.2.profraw",
            "gfx90a.bb.0.1.profraw",
            "1.profraw",
        ];
        names.sort_by(|a, b| process_first(a.as_ref()).cmp(&process_first(b.as_ref())));
        assert_eq!(
            names,
            [
                "1.profraw",
                "gfx90a.aa.0.1.profraw",
                "gfx90a.bb.0.1.profraw",
                "gfx90a.aa.0.2.profraw",
            ]
        );
    }
}
