//! The choice of the code objects to drain: globs over the files that they came from.
//!
//! A large program has many instrumented libraries, and often only one matters. Every code object has an
//! origin: the file that contains it. For a code object in memory, it is the file of the code that loaded it.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::support::diagnostic::Remedy;

/// The error for a list of globs that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A pattern is not a glob.
    #[error("`{pattern}` is not a glob: {source}")]
    BadPattern {
        /// The pattern as given.
        pattern: String,
        /// The error and its position.
        source: fast_glob::Error,
    },
}

impl Remedy for FilterError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed("fix the pattern")
    }
}

/// The choice of what to drain. The default is everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    only: Vec<Glob>,
    skip: Vec<Glob>,
}

impl Filter {
    /// A filter from two comma-separated lists of globs. The drain takes code objects that match a glob of
    /// `only` and none of `skip`. If `only` is empty, every code object matches it.
    ///
    /// Globs have `*`, `?` for a byte, `[a-z]`, and `**` for any number of directories; `\` before one of these
    /// takes it as it is. A glob without a slash matches the file's name. A glob with a slash matches its whole
    /// path. One that begins with `!` matches all that the rest of it does not.
    ///
    /// # Errors
    /// Fails if a pattern is not a glob; the error names the first one.
    pub fn new(only: &str, skip: &str) -> Result<Self, FilterError> {
        Ok(Self {
            only: parse(only)?,
            skip: parse(skip)?,
        })
    }

    /// Returns whether the filter admits every code object, whatever its origin.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    /// Returns whether the filter admits a code object from `origin`. An unknown origin (`None`) matches no
    /// glob.
    #[must_use]
    pub fn admits(&self, origin: Option<&Path>) -> bool {
        let any =
            |globs: &[Glob]| origin.is_some_and(|path| globs.iter().any(|glob| glob.matches(path)));
        (self.only.is_empty() || any(&self.only)) && !any(&self.skip)
    }
}

/// The file that a code object's URI names, such as `file:///a%20b.so#offset=4096&size=9000`. `None` for a
/// code object in memory.
#[must_use]
pub fn file_of(uri: &str) -> Option<PathBuf> {
    crate::format::codeobject::FileUri::parse(uri).map(|uri| uri.path)
}

fn parse(list: &str) -> Result<Vec<Glob>, FilterError> {
    let globs = list
        .split(',')
        .map(str::trim)
        .filter(|glob| !glob.is_empty());
    globs.map(Glob::parse).collect()
}

#[derive(Clone, Debug)]
struct Glob(String);

impl Glob {
    fn parse(text: &str) -> Result<Self, FilterError> {
        fast_glob::validate(text).map_err(|source| FilterError::BadPattern {
            pattern: text.to_owned(),
            source,
        })?;
        Ok(Self(text.to_owned()))
    }

    fn matches(&self, path: &Path) -> bool {
        let subject = match self.0.contains('/') {
            true => Some(path.as_os_str()),
            false => path.file_name(),
        };
        subject.is_some_and(|subject| fast_glob::glob_match(&self.0, subject.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(only: &str, skip: &str, path: &str) -> bool {
        let filter = Filter::new(only, skip).unwrap();
        filter.admits(Some(Path::new(path)))
    }

    #[test]
    fn without_globs_everything_is_drained() {
        for empty in ["", " ", ",", " , "] {
            let filter = Filter::new(empty, empty).unwrap();
            assert!(filter.is_open());
            assert!(filter.admits(None));
            assert!(filter.admits(Some(Path::new("/opt/librccl.so"))));
        }
    }

    #[test]
    fn a_glob_without_a_slash_is_of_the_name_and_one_with_a_slash_of_the_path() {
        assert!(admitted("librccl.so*", "", "/opt/rocm/lib/librccl.so.1.0"));
        assert!(!admitted("librccl.so", "", "/opt/rocm/lib/librccl.so.1.0"));
        assert!(!admitted("lib", "", "/opt/rocm/lib/librccl.so.1.0"));
        assert!(admitted("/opt/rocm/lib/*", "", "/opt/rocm/lib/librccl.so"));
        assert!(!admitted("/opt/rocm/*", "", "/opt/rocm/lib/librccl.so"));
        assert!(admitted("/opt/**/*.so", "", "/opt/rocm/lib/librccl.so"));
        assert!(admitted("**/lib/*", "", "/opt/rocm/lib/librccl.so"));
    }

    #[test]
    fn what_is_skipped_is_taken_from_what_is_wanted() {
        let (only, skip) = ("app, librocblas*", "*_test,/tmp/**");
        assert!(admitted(only, skip, "/usr/bin/app"));
        assert!(admitted(only, skip, "/usr/lib/librocblas.so.4"));
        assert!(!admitted(only, skip, "/usr/lib/librocfft.so.0"));
        assert!(!admitted(only, skip, "/usr/lib/librocblas_test"));
        assert!(!admitted(only, skip, "/tmp/build/app"));
        assert!(admitted("", skip, "/usr/lib/librocfft.so.0"));
    }

    #[test]
    fn an_unknown_origin_matches_nothing() {
        assert!(!Filter::new("*", "").unwrap().admits(None));
        assert!(Filter::new("", "*").unwrap().admits(None));
    }

    #[test]
    fn what_is_not_a_glob_is_named() {
        let error = Filter::new("app,lib[a", "").unwrap_err();
        assert!(
            error.to_string().starts_with("`lib[a` is not a glob: "),
            "{error}"
        );
        let error = Filter::new("", "{a").unwrap_err();
        assert!(
            error.to_string().starts_with("`{a` is not a glob: "),
            "{error}"
        );
    }

    /// A matcher that tries every possible match would need years.
    #[test]
    fn a_glob_of_many_stars_is_matched_at_once() {
        let only = format!("/opt/{}b/x", "*a".repeat(50));
        let path = format!("/opt/{}/x", "a".repeat(200));
        assert!(!admitted(&only, "", &path));
        let only = format!("/{}b", "**/*a*/".repeat(50));
        assert!(!admitted(&only, "", &"/aa".repeat(200)));
    }

    #[test]
    fn marks_of_globs_can_be_taken_as_they_are() {
        assert!(admitted(r"lib\*.so", "", "/lib/lib*.so"));
        assert!(!admitted(r"lib\*.so", "", "/lib/liba.so"));
        assert!(admitted("[[]a].so", "", "/lib/[a].so"));
        assert!(admitted("lib?.so", "", "/lib/libz.so"));
        assert!(admitted("!lib*", "", "/bin/app"));
        assert!(!admitted("!lib*", "", "/lib/libz.so"));
    }

    #[test]
    fn the_file_of_a_uri_is_its_path() {
        assert_eq!(
            file_of("file:///a%20b/app#offset=8192&size=9000"),
            Some(PathBuf::from("/a b/app"))
        );
        assert_eq!(file_of("memory://71#offset=0x7f00&size=10"), None);
    }
}
