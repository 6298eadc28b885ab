//! Paths of the tested files: the workspace's build output and the sources of this repository.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::command::{limited, run};

/// The file `name` from `cargo build --release --workspace`, next to this test program.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let directory = test
        .ancestors()
        .nth(2)
        .expect("cargo puts tests into <profile>/deps");
    let path = directory.join(name);
    assert!(
        path.exists(),
        "{} is not there: tools/test builds the workspace before it runs the tests",
        path.display()
    );
    path
}

/// The librocov.a that programs link, which tools/dev/librocov-a makes of cargo's.
pub fn static_library() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let cargos = built("librocov.a");
        let directory = cargos.parent().expect("a file is in a directory");
        run(limited(repository("tools/dev/librocov-a")).arg(directory))
            .success()
            .silently();
        directory.join("static/librocov.a")
    });
    made.clone()
}

/// The directory that keeps compiled test objects between runs, next to the build profiles.
pub fn cache_directory() -> PathBuf {
    in_target("testdata-cache")
}

/// The directory for the caches of commands that tests run, next to the build profiles.
pub(crate) fn temporary_directory() -> PathBuf {
    in_target("tmp")
}

/// A directory in cargo's target directory.
fn in_target(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let target = test
        .ancestors()
        .nth(3)
        .expect("cargo puts tests into <target>/<profile>/deps");
    let directory = target.join(name);
    std::fs::create_dir_all(&directory)
        .unwrap_or_else(|error| panic!("cannot create {}: {error}", directory.display()));
    directory
}

/// A path inside the repository.
pub fn repository(relative: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = tests.parent().expect("the tests lie in the repository");
    root.join(relative)
}

/// The files in a folder of the repository with the extension `extension`, sorted.
pub fn files_with_extension(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = repository(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder that opens can be listed").path())
        .filter(|path| path.extension().is_some_and(|own| own == extension))
        .collect();
    files.sort();
    files
}

/// Names of the files in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory that can be listed");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The Python that runs tests of the Python package: Debian's, or the one that `PYTHON` names.
pub fn python() -> PathBuf {
    let other = std::env::var_os("PYTHON");
    other.map_or_else(|| "/usr/bin/python3".into(), PathBuf::from)
}
