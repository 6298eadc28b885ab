//! Finds rocov's own files: the preloaded libraries, the device header and the compiler plugins.
//!
//! A build directory has them beside the command, an installation in `../lib` and `../include`.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::support::paths::of_user;

/// The library that drains device counters.
pub(crate) const DRAIN: &str = "librocov.so";
/// The library that stands in for the kernel driver.
pub(crate) const MODEL_GPU: &str = "librocov_modelgpu.so";
/// The variable that names the library for the CUDA driver to load.
pub(crate) const INJECTION_VARIABLE: &str = "CUDA_INJECTION64_PATH";
/// The variable with the directory of the libraries.
pub(crate) const DIRECTORY_VARIABLE: &str = "ROCOV_LIBRARY_DIR";

/// The drain as a library to link, in a folder of its own: cargo's own archive of this name is not
/// fit for that (see tools/dev/librocov-a).
const STATIC_DRAIN: &str = "static/librocov.a";

const HEADER: &str = "rocov_device.h";

/// The linker for device code whose units clash, by the name that clang looks for.
const LINKER: &str = "lld";
/// The linker for OpenMP's device code.
const OPENMP_LINKER: &str = "ld.lld";

/// Finds the library `name`.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find(name: &str) -> Result<PathBuf> {
    find_built(name, "cargo build --release --workspace")
}

/// Finds the library that programs are linked with.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_static() -> Result<PathBuf> {
    find_built(STATIC_DRAIN, "tools/dev/librocov-a")
}

/// Finds a file that `command` builds.
fn find_built(name: &str, command: &str) -> Result<PathBuf> {
    let directories = match env::var_os(DIRECTORY_VARIABLE) {
        Some(directory) => vec![PathBuf::from(directory)],
        None => {
            let beside = command_directory()?;
            let prefix = beside.parent().unwrap_or(&beside);
            vec![beside.clone(), prefix.join("lib")]
        }
    };
    find_in(&directories, name).with_context(|| {
        format!(
            "{name} is not in {}; build it with `{command}` \
             or set {DIRECTORY_VARIABLE} to its directory",
            list(&directories),
        )
    })
}

/// Finds the header that makes device code drainable.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_header() -> Result<PathBuf> {
    find_for_device("include", "", HEADER)
}

/// Finds the linker that replaces lld when clang links several units of device code.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_linker() -> Result<PathBuf> {
    find_for_device("libexec/rocov/rdc", "rdc", LINKER)
}

/// Finds the linker that replaces ld.lld when clang links several units of OpenMP's device code.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_openmp_linker() -> Result<PathBuf> {
    find_for_device("libexec/rocov/rdc/openmp", "rdc/openmp", OPENMP_LINKER)
}

/// Finds `name` in a directory of an installation, or in a folder of `runtime/device`: of the source
/// tree around target/release, or of the tree that this command was built from when the build
/// directory is elsewhere (`CARGO_TARGET_DIR`).
fn find_for_device(installed: &str, folder: &str, name: &str) -> Result<PathBuf> {
    let beside = command_directory()?;
    let prefix = beside.parent().unwrap_or(&beside);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directories = [
        prefix.join(installed),
        prefix.join("../runtime/device").join(folder),
        source.join("runtime/device").join(folder),
    ];
    find_in(&directories, name).with_context(|| format!("{name} is not in {}", list(&directories)))
}

/// The directory of the compiler plugins that the user has made: `$XDG_DATA_HOME/rocov`.
pub(crate) fn plugins_of_user() -> Option<PathBuf> {
    of_user("XDG_DATA_HOME", ".local/share")
}

/// The directories of compiler plugins: those of an installation, of the user, and of `tools/dev/pass`.
///
/// # Errors
///
/// Fails if this command does not know its own path.
pub(crate) fn plugin_directories() -> Result<Vec<PathBuf>> {
    if let Some(directory) = env::var_os(DIRECTORY_VARIABLE) {
        let of_libraries = PathBuf::from(directory).join("rocov");
        return Ok([of_libraries]
            .into_iter()
            .chain(plugins_of_user())
            .collect());
    }
    let beside = command_directory()?;
    let prefix = beside.parent().unwrap_or(&beside);
    let installed = [prefix.join("lib/rocov")].into_iter();
    Ok(installed
        .chain(plugins_of_user())
        .chain([prefix.join("pass")])
        .collect())
}

/// The value of `LD_PRELOAD` that loads `libraries` before those that `existing` asks for.
///
/// # Errors
///
/// Fails if the path of a library holds a colon or white space, for which `LD_PRELOAD` has no quoting:
/// the loader would try to load the pieces.
pub(crate) fn preload(libraries: &[PathBuf], existing: Option<OsString>) -> Result<OsString> {
    let mut value = Vec::new();
    for library in libraries {
        let path = library.as_os_str().as_bytes();
        if path
            .iter()
            .any(|byte| *byte == b':' || byte.is_ascii_whitespace())
        {
            bail!(
                "{} has a colon or a space in its path, which LD_PRELOAD cannot express; \
                 move it or set {DIRECTORY_VARIABLE} to a directory without",
                library.display()
            );
        }
        if !value.is_empty() {
            value.push(b':');
        }
        value.extend_from_slice(path);
    }
    if let Some(existing) = existing.filter(|existing| !existing.is_empty()) {
        value.push(b':');
        value.extend_from_slice(existing.as_bytes());
    }
    Ok(OsString::from_vec(value))
}

/// The directory of the running command, symbolic links resolved.
fn command_directory() -> Result<PathBuf> {
    let command = env::current_exe()
        .and_then(|path| path.canonicalize())
        .context("cannot find the running command's own path")?;
    let directory = command.parent();
    Ok(directory.map_or_else(|| PathBuf::from("/"), Path::to_path_buf))
}

fn find_in(directories: &[PathBuf], name: &str) -> Option<PathBuf> {
    directories
        .iter()
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .and_then(|path| path.canonicalize().ok())
}

fn list(directories: &[PathBuf]) -> String {
    let names: Vec<_> = directories
        .iter()
        .map(|directory| directory.display().to_string())
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preload_puts_ours_first_and_keeps_what_was_there() {
        let ours = [PathBuf::from("/a/one.so"), PathBuf::from("/a/two.so")];
        let value = preload(&ours, None).unwrap();
        assert_eq!(value, "/a/one.so:/a/two.so");
        let value = preload(&ours, Some("".into())).unwrap();
        assert_eq!(value, "/a/one.so:/a/two.so");
        let value = preload(&ours, Some("libasan.so other.so".into())).unwrap();
        assert_eq!(value, "/a/one.so:/a/two.so:libasan.so other.so");
    }

    #[test]
    fn preload_refuses_paths_that_the_loader_would_split() {
        for path in ["/a b/one.so", "/a:b/one.so", "/a\tb/one.so"] {
            let error = preload(&[PathBuf::from(path)], None).unwrap_err();
            assert!(error.to_string().contains(path), "{error}");
        }
    }
}
