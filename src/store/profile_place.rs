//! The thing at the place that a pattern names: a file, the null device, or something that takes no profile.

use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::store::layout::normal;
use crate::store::regular_file::kind;

/// The device that takes everything and keeps nothing.
const NULL: &str = "/dev/null";
/// Its number: major 1, minor 3 (`Documentation/admin-guide/devices.txt` of Linux).
const NULL_NUMBER: u64 = 0x103;

/// The place of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProfilePlace {
    /// A file, or nothing yet.
    File,
    /// The user wants no profile.
    Null,
    /// A thing of this kind, which takes no profile. Files next to it would be in a directory of the system, or above
    /// the directory that the user means.
    Other(&'static str),
}

impl ProfilePlace {
    /// The place at `path`.
    pub(super) fn at(path: &Path) -> Self {
        let is_null = |kind: FileType, number| kind.is_char_device() && number == NULL_NUMBER;
        match fs::metadata(path) {
            Ok(it) if is_null(it.file_type(), it.rdev()) => Self::Null,
            _ if normal(path) == Path::new(NULL) => Self::Null,
            Ok(it) if !it.is_file() => Self::Other(kind(it.file_type())),
            _ if is_of_kernel(path) => Self::Other("an open file or another kernel object"),
            _ => Self::File,
        }
    }
}

/// Returns whether `path` is in `/proc` or `/sys`, or a link to there, as `/dev/stdout` and `/dev/fd/3` are. The file at
/// the end may be a regular one.
fn is_of_kernel(path: &Path) -> bool {
    let is_in_kernel = |path: &Path| {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| parent.starts_with("/proc") || parent.starts_with("/sys"))
    };
    let target = fs::read_link(path).ok();
    let target = target.map(|target| path.parent().unwrap_or(path).join(target));
    is_in_kernel(path) || target.is_some_and(|target| is_in_kernel(&target))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_files_take_profiles() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::create_dir(at("folder")).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        symlink(NULL, at("null")).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("/proc/self/fd/1", at("stdout")).unwrap();
        let file = fs::File::open(at("file")).unwrap();
        let opened = format!("/dev/fd/{}", file.as_raw_fd());
        let of_kernel = ProfilePlace::Other("an open file or another kernel object");
        for (path, expected) in [
            (at("file"), ProfilePlace::File),
            (at("link"), ProfilePlace::File),
            (at("new/x.profraw"), ProfilePlace::File),
            (at("null"), ProfilePlace::Null),
            (NULL.into(), ProfilePlace::Null),
            ("/dev/../dev/./null".into(), ProfilePlace::Null),
            ("/dev/full".into(), ProfilePlace::Other("a device")),
            (at("folder"), ProfilePlace::Other("a directory")),
            (at("pipe"), ProfilePlace::Other("a pipe")),
            (at("socket"), ProfilePlace::Other("a socket")),
            (opened.into(), of_kernel),
            ("/dev/fd/1000000".into(), of_kernel),
            ("/proc/self/x.profraw".into(), of_kernel),
        ] {
            assert_eq!(ProfilePlace::at(&path), expected, "{}", path.display());
        }
        assert_ne!(ProfilePlace::at(&at("stdout")), ProfilePlace::File);
    }
}
