//! The inputs that the user names: directories, files, globs and lists of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use glob::Pattern;
use rocov::support::diagnostic::fail;

use crate::cli::MergeArguments;
use crate::data::{DataListing, DirectoryWalk, profile_header, refuse_data_set};
use crate::support::failure::failure;
use crate::support::mmap;

/// Stands for standard input.
const STANDARD_INPUT: &str = "-";

/// The inputs of a merge.
pub(super) struct MergeInputs {
    /// The files that were found, in the order of the inputs.
    pub(super) data: DataListing,
    /// The directories and files that the user named.
    pub(super) named: Vec<PathBuf>,
}

impl MergeInputs {
    /// Finds the files that the user has named.
    ///
    /// # Errors
    ///
    /// Fails if a pooled directory would be among the inputs of the next merge, or a list cannot be read, or
    /// has a weight.
    pub(super) fn find(arguments: &MergeArguments) -> Result<Self> {
        let pooled = arguments.pooled.as_deref();
        let mut named = Vec::new();
        let data = DataListing::collect(|walk| {
            let mut inputs = Named {
                walk,
                pooled: pooled.and_then(|path| std::path::absolute(path).ok()),
                named: &mut named,
            };
            inputs.arguments(&arguments.inputs)?;
            match &arguments.input_files {
                Some(list) => inputs.list(list),
                None => Ok(()),
            }
        })?;
        let data = data.called(named.clone());
        Ok(Self { data, named })
    }

    /// Returns whether files that are written to the directory `output` could be found again among the
    /// inputs, or are inputs already.
    pub(super) fn overlap(&self, output: &Path) -> bool {
        let Ok(output) = std::path::absolute(output) else {
            return false;
        };
        // It may not be there yet.
        let mut there = output
            .ancestors()
            .filter_map(|ancestor| ancestor.canonicalize().ok());
        let Some(there) = there.next() else {
            return false;
        };
        let is_there = output.exists();
        let inputs = self
            .named
            .iter()
            .filter_map(|path| path.canonicalize().ok());
        inputs
            .into_iter()
            .any(|input| there.starts_with(&input) || is_there && input.starts_with(&there))
    }
}

/// The glob `path`, in which the directories that exist stand for themselves, whatever characters their names have.
fn below_existing(path: &Path) -> String {
    let mut directories = path.ancestors().skip(1);
    let base = directories
        .find(|directory| directory.exists())
        .unwrap_or(Path::new(""));
    let rest = path.strip_prefix(base).unwrap_or(path).to_string_lossy();
    match Pattern::escape(&base.to_string_lossy()) {
        base if base.is_empty() || base.ends_with('/') => base + &rest,
        base => format!("{base}/{rest}"),
    }
}

/// Walks over the inputs. The order is the same every time.
struct Named<'a, 'b> {
    walk: &'a mut DirectoryWalk<'b>,
    /// The pooled directory, if one is written.
    pooled: Option<PathBuf>,
    named: &'a mut Vec<PathBuf>,
}

impl Named<'_, '_> {
    /// Walks over the inputs on the command line.
    fn arguments(&mut self, arguments: &[PathBuf]) -> Result<()> {
        arguments.iter().try_for_each(|path| self.named(path))
    }

    /// Walks over the inputs in the file `list`, one on each line; lines that start with `#` are
    /// comments, as in lists for llvm-profdata.
    fn list(&mut self, list: &Path) -> Result<()> {
        let text = match list == Path::new(STANDARD_INPUT) {
            true => mmap::read_input_text().context("cannot read standard input"),
            false => mmap::read_text(list),
        };
        let text = text.with_context(|| format!("cannot use the list {}", list.display()))?;
        for line in text.split(|byte| *byte == b'\n') {
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
        let pattern = below_existing(path);
        let matches = glob::glob(&pattern).with_context(|| format!("`{text}` is not a glob"))?;
        let mut is_empty = true;
        for found in matches {
            is_empty = false;
            match found {
                Ok(path) => self.path(&path)?,
                Err(error) => {
                    let path = error.path().to_owned();
                    self.walk.damaged(&path, error.into());
                }
            }
        }
        if is_empty {
            self.walk.damaged(
                path,
                failure!("no file matches `{text}`"; "check the pattern"),
            );
        }
        Ok(())
    }

    /// A path that the user wrote.
    fn path(&mut self, path: &Path) -> Result<()> {
        self.named.push(path.to_owned());
        self.check_output(path)?;
        refuse_data_set(path)?;
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                self.walk.named(path);
            }
            Ok(metadata) if metadata.is_file() => {
                self.file(path);
                self.walk.beside(path);
            }
            Ok(_) => {
                let error = failure!(
                    "{} is not a file", path.display();
                    "name a profile or a directory"
                );
                self.walk.damaged(path, error);
            }
            Err(error) => self.walk.unreadable(path, error),
        }
        Ok(())
    }

    /// A file that the user wants: a profile of host code, whatever its name, unless its name says
    /// something else.
    fn file(&mut self, path: &Path) {
        if self.walk.add_file(path.to_owned()) {
            return;
        }
        if !profile_header::is_indexed(path) {
            return self.walk.host(path.to_owned());
        }
        self.walk.damaged(
            path,
            failure!(
                "cannot merge {}: it is an indexed profile", path.display();
                "name the raw profiles that it was made from, or merge it with llvm-profdata"
            ),
        );
    }

    /// A pooled directory among the inputs would be added to them by the next merge, and inputs in an earlier one
    /// would go.
    fn check_output(&self, input: &Path) -> Result<()> {
        let Some(pooled) = &self.pooled else {
            return Ok(());
        };
        let inside = pooled
            .ancestors()
            .filter_map(|path| path.canonicalize().ok())
            .any(|path| input.canonicalize().is_ok_and(|input| input == path));
        if inside {
            fail!(
                "{} lies in the input {}", pooled.display(), input.display();
                "write the output elsewhere, because the next merge of that input would count everything twice"
            );
        }
        let [from, to] = [input, pooled].map(Path::canonicalize);
        if let (Ok(from), Ok(to)) = (from, to)
            && from.starts_with(to)
        {
            fail!(
                "{} lies in {}, which the merge replaces", input.display(), pooled.display();
                "write the output elsewhere"
            );
        }
        Ok(())
    }
}

/// An entry of a list without its weight, which is before a comma and must be 1.
fn unweighted(entry: &[u8]) -> Result<&[u8]> {
    let Some(comma) = entry.iter().position(|byte| *byte == b',') else {
        return Ok(entry);
    };
    let (weight, path) = (&entry[..comma], &entry[comma + 1..]);
    match weight {
        b"1" => Ok(path),
        weight if !weight.is_empty() && weight.iter().all(u8::is_ascii_digit) => fail!(
            "`{}` has a weight, but rocov adds up profiles without weights",
            String::from_utf8_lossy(entry);
            "remove the weight, or make it 1"
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
            "`20,a.profraw` has a weight, but rocov adds up profiles without weights: remove the \
             weight, or make it 1"
        );
    }
}
