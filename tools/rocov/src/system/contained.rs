//! The parts that a command of `cargo install` contains, and their place on disk: a library must be a file to be
//! preloaded. Other commands contain none (see `build.rs`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::support::diagnostic::diagnostic;

use crate::support::paths::user_directory;

/// A file of an installation.
struct File {
    /// Its path below the prefix.
    path: &'static str,
    bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/contained.rs"));

/// The prefix of the parts that this command contains: `$XDG_DATA_HOME/rocov/VERSION-HASH`, which the first call
/// fills. `None` if it contains none.
///
/// # Errors
///
/// Fails if there is no such directory, or if it cannot be written.
pub(super) fn prefix() -> Result<Option<PathBuf>> {
    if FILES.is_empty() {
        return Ok(None);
    }
    let data = user_directory("XDG_DATA_HOME", ".local/share").with_context(|| {
        diagnostic!(
            "neither XDG_DATA_HOME nor HOME names a directory for rocov's libraries";
            "set one of them"
        )
    })?;
    let name = concat!(env!("CARGO_PKG_VERSION"), "-");
    let prefix = data.join(format!("{name}{HASH:016x}"));
    if !prefix.is_dir() {
        unpack(&data, &prefix).with_context(|| {
            diagnostic!(
                "cannot write rocov's libraries to {}", prefix.display();
                "set XDG_DATA_HOME to a writable directory"
            )
        })?;
    }
    Ok(Some(prefix))
}

/// Writes all files, so that `prefix` is whole or not there.
fn unpack(data: &Path, prefix: &Path) -> Result<()> {
    fs::create_dir_all(data)?;
    let work = tempfile::Builder::new()
        .prefix(".unpack-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in(data)?;
    for File { path, bytes } in FILES {
        let path = work.path().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, bytes)?;
        let is_program = bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF");
        let mode = if is_program { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    // Programs look for librocov.so by its SONAME.
    let library = work.path().join("lib");
    std::os::unix::fs::symlink("librocov.so", library.join("librocov.so.0"))?;
    match fs::rename(work.path(), prefix) {
        Ok(()) => {
            // It has another name now.
            let _ = work.keep();
            Ok(())
        }
        // Another process was faster.
        Err(_) if prefix.is_dir() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
