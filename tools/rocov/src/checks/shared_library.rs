//! Finds a shared library as the loader does, without loading it: HSA and HIP have constructors.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::llvm::rocm;
use crate::system::command;

/// The default directories of the loader, on the systems that ROCm is for.
const DEFAULTS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The directories to look in, in the loader's order; ROCm's, which `-rpath` makes it look in, last.
pub(super) fn directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = env::var_os("LD_LIBRARY_PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    directories.extend(cached());
    directories.extend(DEFAULTS.map(PathBuf::from));
    directories.push(rocm().join("lib"));
    directories
}

/// The directories of the loader's cache. Its format is for ldconfig to read.
fn cached() -> Vec<PathBuf> {
    let listed = ["ldconfig", "/sbin/ldconfig"]
        .iter()
        .find_map(|name| command::output(Command::new(name).arg("-p")).ok());
    let Some(listed) = listed else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&listed.stdout);
    let files = text.lines().filter_map(|line| line.split_once(" => "));
    let mut directories = Vec::new();
    for (_, file) in files {
        if let Some(directory) = Path::new(file.trim()).parent()
            && !directories.iter().any(|known| known == directory)
        {
            directories.push(directory.to_path_buf());
        }
    }
    directories
}

/// The file of the library `name`, such as `libamdhip64.so`, in the first of `directories` that has
/// one: links are followed, so that the version is in the name, as in `libamdhip64.so.5.2.21153`.
pub(super) fn find(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().find_map(|directory| {
        let entries = fs::read_dir(directory).ok()?;
        let files = entries.filter_map(|entry| {
            let path = entry.ok()?.path();
            let rest = path.file_name()?.to_str()?.strip_prefix(name)?;
            let is_it = rest.is_empty() || rest.starts_with('.');
            is_it.then(|| path.canonicalize().ok())?
        });
        files.max()
    })
}

/// The version of a library, which follows `.so.` in its name.
pub(super) fn version<'a>(path: &'a Path, name: &str) -> Option<&'a str> {
    let file = path.file_name().and_then(OsStr::to_str)?;
    file.strip_prefix(name)?.strip_prefix('.')
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_version_is_that_of_the_file_behind_the_links() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("libx.so.5.2.1"), "").unwrap();
        symlink("libx.so.5.2.1", at("libx.so.5")).unwrap();
        fs::write(at("libxy.so.9"), "").unwrap();
        let nowhere = PathBuf::from("/nonexistent");
        let directories = [nowhere.clone(), directory.path().canonicalize().unwrap()];
        let found = find("libx.so", &directories).unwrap();
        assert_eq!(version(&found, "libx.so"), Some("5.2.1"));
        assert_eq!(find("libz.so", &directories), None);
        assert_eq!(find("libx.so", &[nowhere]), None);
    }
}
