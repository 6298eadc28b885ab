//! The places of the sockets: in the user's own directory.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::settings::{SettingError, refuse};

/// The directory of sockets for `wanted`, the value of `ROCOV_CONTROL`. `None` if it requests none. `runtime`
/// is the value of `XDG_RUNTIME_DIR`, `user` the effective user id.
///
/// # Errors
/// Fails if `wanted` is neither `0`, nor `1` for the usual place, nor an absolute path.
pub fn directory(
    wanted: &OsStr,
    runtime: Option<&OsStr>,
    user: u32,
) -> Result<Option<PathBuf>, SettingError> {
    match wanted.to_str() {
        Some("" | "0") => Ok(None),
        Some("1") => Ok(Some(usual_directory(runtime.map(Path::new), user))),
        _ if Path::new(wanted).is_absolute() => Ok(Some(wanted.into())),
        _ => Err(refuse(
            &wanted.to_string_lossy(),
            "1, or the absolute path of a directory",
        )),
    }
}

/// Under `XDG_RUNTIME_DIR`, or in /tmp if that is unset or belongs to another user (sudo keeps it).
fn usual_directory(runtime: Option<&Path>, user: u32) -> PathBuf {
    let is_own = |path: &&Path| {
        path.is_absolute()
            && path
                .metadata()
                .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
    };
    match runtime.filter(is_own) {
        Some(runtime) => runtime.join("rocov"),
        None => PathBuf::from(format!("/tmp/rocov-{user}")),
    }
}

/// The socket of process `pid`. The number is the one in its own PID namespace.
#[must_use]
pub fn socket(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("{pid}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_users_own() {
        let of = |wanted: &str, runtime: Option<&Path>, user| {
            directory(wanted.as_ref(), runtime.map(Path::as_os_str), user)
        };
        let own = tempfile::tempdir().unwrap();
        let user = own.path().metadata().unwrap().uid();
        let tmp = |user: u32| Ok(Some(format!("/tmp/rocov-{user}").into()));
        assert_eq!(of("", None, user), Ok(None));
        assert_eq!(of("0", None, user), Ok(None));
        assert_eq!(of("1", None, user), tmp(user));
        assert_eq!(
            of("1", Some(own.path()), user),
            Ok(Some(own.path().join("rocov")))
        );
        assert_eq!(of("1", Some(own.path()), user + 1), tmp(user + 1));
        assert_eq!(of("1", Some(Path::new("relative")), user), tmp(user));
        assert_eq!(of("/a/b", Some(own.path()), 1), Ok(Some("/a/b".into())));
        let error = of("yes", None, 1).unwrap_err().to_string();
        assert_eq!(
            error,
            r#""yes" is not valid: use 1, or the absolute path of a directory"#
        );
    }
}
