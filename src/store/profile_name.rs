//! `LLVM_PROFILE_FILE`: the user's pattern for profile names.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::format::codeobject::{Identity, is_processor, sanitize_target};
use crate::store::layout::{DataLayout, PROFRAW, REGISTRIES, REGISTRY, SECTIONS};
use crate::store::profile_place::ProfilePlace;
use crate::store::{Label, ProcessWord};
use crate::support::diagnostic::Remedy;

/// The last part of the pattern in the name of a profile of zeros: `gfx90a.0f3c9b.0.zero.profraw`. All
/// processes that write to a directory share it.
const ZERO: &str = "zero";

/// The values of the specifiers in this process.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// `%p`: the process id. Its remainder chooses the file of a pool (`%4m`).
    pub pid: u32,
    /// The word that distinguishes this process from others with the same id. A name with `%p` has it too.
    pub word: ProcessWord,
    /// `%h`: the host name from the system.
    pub host: String,
    /// `%t`: the directory `TMPDIR`, without a slash at the end.
    pub tmpdir: String,
}

impl Expansion {
    /// The values of the process with this id and word on this machine, which has this value of `TMPDIR`.
    pub fn for_process(pid: u32, word: ProcessWord, tmpdir: Option<OsString>) -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let tmpdir = tmpdir.unwrap_or_else(|| "/tmp".into());
        Self {
            pid,
            word,
            host: host.trim_end().to_owned(),
            tmpdir: tmpdir.to_string_lossy().trim_end_matches('/').to_owned(),
        }
    }
}

/// The reason why rocov rejects a pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// LLVM has no such specifier.
    #[error("the profile name {pattern:?} contains an unknown specifier, {found:?}")]
    Unknown {
        /// The specifier.
        found: String,
        /// The whole pattern.
        pattern: String,
    },
    /// `%c`.
    #[error(
        "%c in the profile name {pattern:?} maps counters into the file as they change, but device memory cannot be \
        mapped"
    )]
    Continuous {
        /// The whole pattern.
        pattern: String,
    },
    /// The pattern ends in a slash or names a directory only.
    #[error("the profile name {pattern:?} has no file name")]
    NoFileName {
        /// The whole pattern.
        pattern: String,
    },
    /// The place that the pattern names has something other than a file.
    #[error("the profile name {pattern:?} is {found}")]
    NotAFile {
        /// The whole pattern.
        pattern: String,
        /// The kind of thing found.
        found: &'static str,
    },
}

impl Remedy for PatternError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Unknown { .. } => "use %p, %h, %t, %b, %m, %1m to %9m, or %%",
            Self::Continuous { .. } => "leave it out",
            Self::NoFileName { .. } | Self::NotAFile { .. } => {
                "name a file such as cov/%p.profraw, or /dev/null to write no profiles"
            }
        })
    }
}

impl PatternError {
    /// Returns whether the pattern names something other than a file. No other name would be what the user means.
    #[must_use]
    pub fn names_no_file(&self) -> bool {
        matches!(self, Self::NoFileName { .. } | Self::NotAFile { .. })
    }
}

/// The name of this process's profiles: the user's pattern, with the specifiers expanded that do not depend
/// on the code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileName {
    pieces: Vec<Piece>,
    pooled: bool,
    is_of_one_process: bool,
    is_of_zeros: bool,
    is_nowhere: bool,
    label: Option<Label>,
    layout: DataLayout,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Text that is constant in all names.
    Text(String),
    /// `%b`.
    Identity,
    /// `%m`: the number of the pool.
    Pool(u32),
}

impl ProfileName {
    /// Expands `pattern` as LLVM's runtime does: `%p` is the process id, `%h` the host name, `%t` `TMPDIR`,
    /// `%b` the code object's build id (or its identity if it has none), and `%%` a percent sign. (LLVM keeps
    /// `%%` and unknown specifiers literally. rocov rejects unknown specifiers, so that a slip does not end
    /// in a file with an odd name.) In a host name, every character other than a letter, digit, dot, dash or
    /// underscore becomes an underscore, and a name of dots only becomes one underscore.
    ///
    /// `%m` requests one file that all processes add their counts to, `%Nm` a pool of N such files. It
    /// expands to the build of the program or library that the code is from, and the number in the pool:
    /// `0f3c9b21a0457e1d_0`. LLVM puts the binary's signature there.
    ///
    /// A process id repeats in containers, on other hosts, and in time. So a pattern with `%p` and without `%m` also
    /// has the process's word, before its extension: `4711-q3ovk2ya.profraw` for `%p.profraw`.
    ///
    /// A relative pattern starts at `directory`. All files that are not profiles go to the side of the
    /// pattern's directory ([`DataLayout::from_pattern`]). That is the directory before the first specifier that
    /// differs between processes, so that one side has all files of the pattern.
    ///
    /// # Errors
    /// Fails if the pattern has other specifiers, or no file name.
    pub fn parse(
        pattern: &str,
        values: &Expansion,
        directory: &Path,
    ) -> Result<Self, PatternError> {
        let mut pieces = Vec::new();
        // The text before the first specifier that differs between processes.
        let mut fixed = None;
        let mut piece = String::new();
        let mut has_pid = false;
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                piece.push(character);
                continue;
            }
            let specifier = characters.next();
            if !matches!(specifier, Some('t' | '%')) {
                fixed.get_or_insert_with(|| piece.clone());
            }
            match specifier {
                Some('p') => {
                    has_pid = true;
                    piece.push_str(&values.pid.to_string());
                }
                Some('h') => piece.push_str(&name_part(&values.host)),
                Some('t') => piece.push_str(&values.tmpdir),
                Some('%') => piece.push('%'),
                Some('b') => {
                    pieces.push(Piece::Text(std::mem::take(&mut piece)));
                    pieces.push(Piece::Identity);
                }
                Some('m') => {
                    pieces.push(Piece::Text(std::mem::take(&mut piece)));
                    pieces.push(Piece::Pool(0));
                }
                Some(size @ '1'..='9') if characters.as_str().starts_with('m') => {
                    characters.next();
                    let size = size.to_digit(10).expect("a digit");
                    pieces.push(Piece::Text(std::mem::take(&mut piece)));
                    pieces.push(Piece::Pool(values.pid % size));
                }
                Some('c') => {
                    return Err(PatternError::Continuous {
                        pattern: pattern.to_owned(),
                    });
                }
                other => {
                    return Err(PatternError::Unknown {
                        found: std::iter::once('%').chain(other).collect(),
                        pattern: pattern.to_owned(),
                    });
                }
            }
        }
        let last = piece.rsplit('/').next().unwrap_or_default();
        let is_whole = pieces.is_empty() || piece.contains('/');
        if is_whole && matches!(last, "" | "." | "..") {
            return Err(PatternError::NoFileName {
                pattern: pattern.to_owned(),
            });
        }
        let fixed = fixed.as_ref().unwrap_or(&piece);
        let named = &fixed[..fixed.rfind('/').map_or(0, |slash| slash + 1)];
        let is_unnamed = Path::new(named)
            .components()
            .all(|component| component == Component::CurDir);
        let layout = DataLayout::from_pattern(&directory.join(named), is_unnamed);
        let pooled = pieces.iter().any(|piece| matches!(piece, Piece::Pool(_)));
        let is_of_one_process = has_pid && !pooled && !values.word.is_empty();
        if is_of_one_process {
            let name = piece.rfind('/').map_or(0, |slash| slash + 1);
            let with_word = values.word.in_name(&piece[name..]);
            piece.replace_range(name.., &with_word);
        }
        pieces.push(Piece::Text(piece));
        if let Some(Piece::Text(start)) = pieces.first_mut() {
            *start = directory.join(&*start).to_string_lossy().into_owned();
        }
        Ok(Self {
            pooled,
            pieces,
            is_of_one_process,
            is_of_zeros: false,
            is_nowhere: false,
            label: None,
            layout,
        })
    }

    /// Expands `pattern` as [`ProfileName::parse`] does, and looks at what is in that place. The null device (`/dev/null`)
    /// asks for [no profile](ProfileName::nowhere).
    ///
    /// # Errors
    /// Fails if [`ProfileName::parse`] would, or if the place has a device, a pipe, a socket, a directory, or a thing of
    /// the kernel such as an open file of the process.
    pub fn find(pattern: &str, values: &Expansion, directory: &Path) -> Result<Self, PatternError> {
        let name = Self::parse(pattern, values, directory)?;
        match ProfilePlace::at(Path::new(&name.expanded("all", None))) {
            ProfilePlace::File => Ok(name),
            ProfilePlace::Null => Ok(Self::nowhere()),
            ProfilePlace::Other(found) => Err(PatternError::NotAFile {
                pattern: pattern.to_owned(),
                found,
            }),
        }
    }

    /// Names no profiles: nothing is written.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            pieces: Vec::new(),
            pooled: false,
            is_of_one_process: false,
            is_of_zeros: false,
            is_nowhere: true,
            label: None,
            layout: DataLayout::from_data(Path::new("/dev/null")),
        }
    }

    /// Returns whether nothing is written under this name.
    #[must_use]
    pub fn is_nowhere(&self) -> bool {
        self.is_nowhere
    }

    /// Names profiles of zeros in the places of `layout`.
    #[must_use]
    pub fn zeros_in(layout: DataLayout) -> Self {
        let base = layout.profiles().join(PROFRAW).with_extension(PROFRAW);
        Self {
            pieces: vec![Piece::Text(base.to_string_lossy().into_owned())],
            pooled: false,
            is_of_one_process: false,
            is_of_zeros: true,
            is_nowhere: false,
            label: None,
            layout,
        }
    }

    /// Puts device ELFs and registries into the data directory `data`, if profiles of this name lie in it.
    /// Another name keeps its own place for them: a program may have chosen it for itself.
    #[must_use]
    pub fn in_data(mut self, data: &Path) -> Self {
        let layout = DataLayout::from_data(data);
        if !self.is_nowhere && layout.has(&self.layout) {
            self.layout = layout;
        }
        self
    }

    /// Names profiles of this label.
    #[must_use]
    pub fn with_label(self, label: Option<Label>) -> Self {
        Self { label, ..self }
    }

    /// Names profiles of zeros, for code that was never launched. They have one name in all processes, and
    /// belong to no label.
    #[must_use]
    pub fn for_zeros(&self) -> Self {
        Self {
            pooled: false,
            is_of_one_process: false,
            is_of_zeros: true,
            label: None,
            ..self.clone()
        }
    }

    /// The label of the profiles.
    #[must_use]
    pub fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    /// Returns whether processes add their counts to existing files (`%m`).
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Returns whether no other process has this name: it has the process's number and word.
    #[must_use]
    pub fn is_of_one_process(&self) -> bool {
        self.is_of_one_process
    }

    /// The places of the files.
    #[must_use]
    pub fn layout(&self) -> &DataLayout {
        &self.layout
    }

    /// The path of the registry: `<side>/registry/<base name>.kernels.json`. The base name loses its
    /// `.profraw`. The registry covers all loads of this process, so `%b` becomes `all`.
    #[must_use]
    pub fn for_registry(&self) -> PathBuf {
        let expanded = PathBuf::from(self.expanded("all", None));
        let base = expanded.file_name().unwrap_or_default().to_string_lossy();
        let base = base
            .strip_suffix(PROFRAW)
            .and_then(|rest| rest.strip_suffix('.'))
            .unwrap_or(&base);
        let folder = self.layout.beside(&expanded, REGISTRIES);
        folder.join(format!("{base}{REGISTRY}"))
    }

    /// The path for raw sections of load `generation`: `<side>/sections/...`. The name comes from the
    /// `profile` that they would be in.
    #[must_use]
    pub fn for_sections(&self, profile: &Path, generation: u64) -> PathBuf {
        let name = profile.with_extension(format!("{generation}.{SECTIONS}"));
        let folder = self.layout.beside(profile, SECTIONS);
        folder.join(name.file_name().unwrap_or_default())
    }

    /// The path of a profile: `<directory>/<arch>.<identity>.<agent index>.<base name>`, in the directory of
    /// the label if there is one. It differs for each code object and each GPU.
    #[must_use]
    pub fn for_load(&self, target: &str, identity: &Identity, agent: usize) -> PathBuf {
        self.for_build(None, target, identity, agent)
    }

    /// The path of a code object's profile, as of [`ProfileName::for_load`]. In a pool, the name has the
    /// [`tag`](crate::discover::host_files::tag) of the build that the code object came from.
    #[must_use]
    pub fn for_build(
        &self,
        build: Option<&str>,
        target: &str,
        identity: &Identity,
        agent: usize,
    ) -> PathBuf {
        // As text: to take a path apart and to put it together takes longer than the rest.
        let expanded = self.expanded(identity.as_str(), build);
        let (directory, base) = match expanded.rsplit_once('/') {
            Some((directory, base)) => (Some(directory.trim_end_matches('/')), base),
            None => (None, expanded.as_str()),
        };
        let extension = || Path::new(base).extension().and_then(OsStr::to_str);
        let mut path = String::with_capacity(expanded.len() + 128);
        if let Some(directory) = directory {
            path.extend([directory, "/"]);
        }
        if let Some(label) = &self.label {
            path.extend([&*label.directory().to_string_lossy(), "/"]);
        }
        path.push_str(&sanitize_target(target));
        let _ = write!(path, ".{identity}.{agent}.");
        match (self.is_of_zeros, extension()) {
            (false, _) => path.push_str(base),
            (true, None) => path.push_str(ZERO),
            (true, Some(extension)) => path.extend([ZERO, ".", extension]),
        }
        path.into()
    }

    /// The path with `identity` for `%b` and `build` for `%m`.
    fn expanded(&self, identity: &str, build: Option<&str>) -> String {
        let pieces = self.pieces.iter().map(|piece| match (piece, build) {
            (Piece::Text(text), _) => Cow::Borrowed(text.as_str()),
            (Piece::Identity, _) => Cow::Borrowed(identity),
            (Piece::Pool(number), None) => Cow::Owned(number.to_string()),
            (Piece::Pool(number), Some(build)) => Cow::Owned(format!("{build}_{number}")),
        });
        pieces.collect()
    }
}

/// The parts of the name of a device profile, `ARCH.IDENTITY.AGENT.BASE`, such as
/// `gfx90a.0f3c9b.0.4711.profraw`, which [`ProfileName::for_load`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileNameParts<'a> {
    /// The name of the agent, such as `gfx90a`.
    pub arch: &'a str,
    /// The identity of the code object, in lower-case hexadecimal.
    pub identity: &'a str,
    /// The index of the GPU, from 0.
    pub agent: u32,
    /// The name that the pattern gives.
    pub base: &'a str,
}

impl<'a> ProfileNameParts<'a> {
    /// Parses the name of a file. Returns `None` for the names of other files.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let mut parts = name.splitn(4, '.');
        let (arch, identity, agent, base) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if !is_processor(arch) || base.is_empty() {
            return None;
        }
        if !Identity::is_identity(identity) {
            return None;
        }
        Some(ProfileNameParts {
            arch,
            identity,
            agent: agent.parse().ok()?,
            base,
        })
    }

    /// The name that the pattern gives without the process's word. LLVM's runtime has written the profile of the
    /// process's host code under it.
    #[must_use]
    pub fn name_of_llvm(&self) -> String {
        let (stem, extension) = self
            .base
            .split_at(self.base.rfind('.').unwrap_or(self.base.len()));
        format!("{}{extension}", ProcessWord::cut_off(stem))
    }

    /// Returns whether the profile is one of zeros: of code that was never launched.
    #[must_use]
    pub fn is_of_zeros(&self) -> bool {
        is_of_zeros(self.base)
    }
}

/// Returns whether `base` belongs to a profile of zeros, for code that was never launched. `base` is the part
/// of a device profile's name after the agent's index.
#[must_use]
pub fn is_of_zeros(base: &str) -> bool {
    base.split('.').next() == Some(ZERO)
}

/// A host name as a part of a file name. It cannot lead out of the directory, whatever the host name is.
fn name_part(host: &str) -> String {
    let is_safe =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let part = host.replace(|character| !is_safe(character), "_");
    match part.trim_matches('.') {
        "" => "_".to_owned(),
        _ => part,
    }
}

#[cfg(test)]
#[path = "profile_name_tests.rs"]
mod tests;
