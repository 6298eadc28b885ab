//! Finds rocov's own files: the preloaded libraries, the device header and the compiler plugins.
//!
//! `tree.txt` lists them. A build directory has the libraries next to the command, an installation has them in
//! `../lib` and the header in `../include`. A command of `cargo install` contains them all.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::settings::variables::LIBRARY_DIR;
use rocov::support::diagnostic::{diagnostic, fail};

use super::contained;
use crate::support::paths::user_directory;

/// The library that drains device counters.
pub(crate) const DRAIN: &str = "librocov.so";
/// The library that stands in for the kernel driver.
pub(crate) const MODEL_GPU: &str = "librocov_modelgpu.so";
/// The library that puts counters into CUDA code.
pub(crate) const INSTRUMENT: &str = "librocov_instrument.so";
/// The variable that names the library for the CUDA driver to load.
pub(crate) const INJECTION_VARIABLE: &str = "CUDA_INJECTION64_PATH";

/// The files of an installation, each with the file that it is a copy of.
const TREE: &str = include_str!("../../tree.txt");
/// The directories of libraries below a prefix, as distributions have them.
const LIBRARY_DIRECTORIES: [&str; 3] = ["lib", "lib64", "lib/x86_64-linux-gnu"];
/// The source tree of a command that `cargo build` made in it (see `build.rs`). The build directory may be
/// elsewhere (`CARGO_TARGET_DIR`).
const SOURCE_TREE: Option<&str> = option_env!("ROCOV_SOURCE_TREE");

/// The drain as a library to link. In a build it has a folder of its own: cargo's own archive of this name is
/// not fit for that (see tools/dev/librocov-a).
const STATIC_DRAIN: &str = "lib/rocov/librocov.a";
/// The header that makes device code drainable.
const HEADER: &str = "include/rocov_device.h";
/// A header for host code, in the directory of all of them.
const HOST_HEADER: &str = "include/rocov_gtest.h";
/// The linker for device code whose units clash, by the name that clang looks for.
const LINKER: &str = "libexec/rocov/rdc/lld";
/// The stand-ins for Triton's assemblers, and the variables by which Triton finds these.
const ASSEMBLERS: [(&str, &str); 2] = [
    ("libexec/rocov/triton/ptxas", "TRITON_PTXAS_PATH"),
    (
        "libexec/rocov/triton/ptxas-blackwell",
        "TRITON_PTXAS_BLACKWELL_PATH",
    ),
];
/// The linker for OpenMP's device code.
const OPENMP_LINKER: &str = "libexec/rocov/rdc/openmp/ld.lld";

/// Finds the library `name`.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find(name: &str) -> Result<PathBuf> {
    find_built(&format!("lib/{name}"), "cargo build --release --workspace")
}

/// Finds the library that programs are linked with.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_static() -> Result<PathBuf> {
    find_built(STATIC_DRAIN, "tools/dev/librocov-a")
}

/// Finds the header that makes device code drainable.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_header() -> Result<PathBuf> {
    find_part(HEADER)
}

/// Finds the directory of the headers for host code: `rocov.h` and `rocov_gtest.h`.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_host_headers() -> Result<PathBuf> {
    let mut header = find_part(HOST_HEADER)?;
    header.pop();
    Ok(header)
}

/// Finds the linker that replaces lld when clang links several units of device code.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_linker() -> Result<PathBuf> {
    find_part(LINKER)
}

/// Finds the linker that replaces ld.lld when clang links several units of OpenMP's device code.
///
/// # Errors
///
/// Fails if it is in none of the places, which the message names.
pub(crate) fn find_openmp_linker() -> Result<PathBuf> {
    find_part(OPENMP_LINKER)
}

/// Finds the stand-ins for Triton's assemblers, each with the variable by which Triton finds it.
///
/// # Errors
///
/// Fails if one is in none of the places, which the message names.
pub(crate) fn find_assemblers() -> Result<Vec<(&'static str, PathBuf)>> {
    let found = ASSEMBLERS.iter().map(|(part, variable)| {
        let path = find_built(part, "cargo build --release --workspace")?;
        Ok((*variable, path))
    });
    found.collect()
}

/// Finds a library that `command` builds.
fn find_built(part: &str, command: &str) -> Result<PathBuf> {
    let places = places(part)?;
    existing(&places).with_context(|| {
        diagnostic!(
            "{} is not in {}", name_of(part), directories(&places);
            "build it with `{command}` or set {LIBRARY_DIR} to its directory"
        )
    })
}

/// Finds a file that is not built.
fn find_part(part: &str) -> Result<PathBuf> {
    let places = places(part)?;
    existing(&places)
        .with_context(|| format!("{} is not in {}", name_of(part), directories(&places)))
}

/// The paths at which a part can be, best first. `part` is its path in the table.
fn places(part: &str) -> Result<Vec<PathBuf>> {
    let source = source(part).with_context(|| format!("{part} is no part of rocov"))?;
    let library = part.strip_prefix("lib/");
    let built = source.strip_prefix("build/");
    if let (Some(directory), Some(library)) = (env::var_os(LIBRARY_DIR.name), library) {
        let names = built.into_iter().chain([library]);
        return Ok(names.map(|name| Path::new(&directory).join(name)).collect());
    }
    if let Some(prefix) = contained::prefix()? {
        return Ok(vec![prefix.join(part)]);
    }
    let beside = command_directory()?;
    let prefix = beside.parent().unwrap_or(&beside);
    let mut places = Vec::new();
    places.extend(built.map(|built| beside.join(built)));
    match library {
        Some(library) => {
            places.extend(library_directories(prefix).map(|directory| directory.join(library)));
        }
        None => places.push(prefix.join(part)),
    }
    if let (Some(tree), None) = (SOURCE_TREE, built) {
        // The first is right if the tree with its target/release was moved.
        places.extend([&prefix.join(".."), Path::new(tree)].map(|tree| tree.join(source)));
    }
    Ok(places)
}

/// The file that a part is a copy of, by the table.
fn source(part: &str) -> Option<&'static str> {
    let mut lines = TREE.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(part)).then(|| words.next())?)
}

fn library_directories(prefix: &Path) -> impl Iterator<Item = PathBuf> {
    LIBRARY_DIRECTORIES
        .iter()
        .map(move |directory| prefix.join(directory))
}

/// The directory of the compiler plugins that the user has made: `$XDG_DATA_HOME/rocov`.
pub(crate) fn plugins_of_user() -> Option<PathBuf> {
    user_directory("XDG_DATA_HOME", ".local/share")
}

/// The directories of compiler plugins: those of an installation, of the user, and of `tools/dev/pass`.
///
/// # Errors
///
/// Fails if this command cannot find its own path.
pub(crate) fn plugin_directories() -> Result<Vec<PathBuf>> {
    if let Some(directory) = env::var_os(LIBRARY_DIR.name) {
        let of_libraries = PathBuf::from(directory).join("rocov");
        return Ok([of_libraries]
            .into_iter()
            .chain(plugins_of_user())
            .collect());
    }
    let beside = command_directory()?;
    let prefix = beside.parent().unwrap_or(&beside);
    let installed = library_directories(prefix).map(|directory| directory.join("rocov"));
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
            fail!(
                "{} has a colon or a space in its path, which LD_PRELOAD cannot express",
                library.display();
                "move it or set {LIBRARY_DIR} to a directory without one"
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

fn existing(places: &[PathBuf]) -> Option<PathBuf> {
    let found = places.iter().find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok())
}

fn name_of(part: &str) -> &str {
    part.rsplit('/').next().unwrap_or(part)
}

fn directories(places: &[PathBuf]) -> String {
    let parents = places.iter().filter_map(|path| path.parent());
    let names: Vec<_> = parents.map(|path| path.display().to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_all_parts() {
        let libraries = [DRAIN, MODEL_GPU, INSTRUMENT].map(|name| format!("lib/{name}"));
        let assemblers = ASSEMBLERS.map(|(part, _)| part);
        let others = [STATIC_DRAIN, HEADER, LINKER, OPENMP_LINKER]
            .into_iter()
            .chain(assemblers);
        for part in libraries.iter().map(String::as_str).chain(others) {
            assert!(source(part).is_some(), "{part}");
        }
        assert_eq!(source("lib/librocov"), None);
    }

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
