//! Finds the installations of LLVM and ROCm.

use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};

use rocov::settings::variables::ROCM_PATH;

/// Parent of Debian's directories `llvm-N`.
pub(crate) const LLVM_PARENT: &str = "/usr/lib";
/// The places of [`candidates`], in words.
pub(super) const PLACES: &str = "on PATH, in /usr/lib/llvm-N/bin or in $ROCM_PATH/llvm/bin";

/// The directory of ROCm, which need not be there.
pub(crate) fn rocm() -> PathBuf {
    let usual = || PathBuf::from(ROCM_PATH.default.literal());
    env::var_os(ROCM_PATH.name).map_or_else(usual, PathBuf::from)
}

/// Executables called `base` or `base-N` in the usual places of LLVM, each once.
pub(super) fn candidates(base: &str) -> Vec<PathBuf> {
    let mut directories: Vec<_> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    directories.extend(llvm_directories());
    let rocm = rocm();
    directories.extend([rocm.join("llvm/bin"), rocm.join("bin")]);
    let mut seen = HashSet::new();
    directories
        .iter()
        .flat_map(|directory| named_in(directory, base))
        // /usr/bin/clang++-22 is a link to /usr/lib/llvm-22/bin/clang++.
        .filter(|path| path.canonicalize().is_ok_and(|path| seen.insert(path)))
        .collect()
}

fn llvm_directories() -> Vec<PathBuf> {
    let Ok(entries) = Path::new(LLVM_PARENT).read_dir() else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str()?.strip_prefix("llvm-"))
                .is_some_and(is_number)
        })
        .map(|path| path.join("bin"))
        .collect()
}

/// Executables called `base` or `base-N` in `directory`.
pub(super) fn named_in(directory: &Path, base: &str) -> Vec<PathBuf> {
    let Ok(entries) = directory.read_dir() else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let suffix = path
                .file_name()
                .and_then(|name| name.to_str()?.strip_prefix(base));
            suffix.is_some_and(|suffix| {
                suffix.is_empty() || suffix.strip_prefix('-').is_some_and(is_number)
            })
        })
        .collect();
    found.sort();
    found
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}
