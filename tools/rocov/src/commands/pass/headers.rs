//! Finds the headers of a clang's LLVM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use rocov::support::diagnostic::fail;

use crate::llvm::{Clang, LLVM_PARENT};
use crate::support::failure::failure;
use crate::system::command;

/// The header that has LLVM's version.
const CONFIG: &str = "llvm/Config/llvm-config.h";
/// The macro that is the version.
const VERSION: &str = "#define LLVM_VERSION_STRING \"";

/// The directory of the headers of this clang's LLVM: in its own tree, or in Debian's.
///
/// # Errors
///
/// Fails if there are none of its version.
pub(super) fn find(clang: &Clang) -> Result<PathBuf> {
    find_in(&places(clang), clang)
}

/// The first of these places that has the headers.
fn find_in(places: &[PathBuf], clang: &Clang) -> Result<PathBuf> {
    let mut others = Vec::new();
    for place in places {
        let Some(version) = version(place) else {
            continue;
        };
        if same_interface(&version, &clang.version()) {
            return Ok(place.clone());
        }
        others.push(format!("{} is of LLVM {version}", place.display()));
    }
    let (path, llvm) = (clang.path.display(), clang.llvm);
    let remedy = format!(
        "on Debian, apt-get install llvm-{llvm}-dev; with ROCm, install rocm-llvm-dev (rocm-llvm-devel)"
    );
    if let Some(other) = others.first() {
        fail!(
            "there are no LLVM headers for {path} (LLVM {}): {other}", clang.version();
            "install them: {remedy}"
        );
    }
    let places: Vec<_> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    Err(failure!(
        "there are no LLVM headers for {path} (LLVM {}), no {CONFIG} in {}",
        clang.version(), places.join(" or ");
        "install them: {remedy}"
    ))
}

/// The directories that may have the headers.
fn places(clang: &Clang) -> Vec<PathBuf> {
    let mut places = Vec::new();
    // The driver may be a script, and a link to the compiler in its own tree.
    let resources = command::output(Command::new(&clang.path).arg("--print-resource-dir"));
    if let Ok(resources) = resources {
        let resources = PathBuf::from(String::from_utf8_lossy(&resources.stdout).trim());
        // PREFIX/lib/clang/22
        places.extend(
            resources
                .ancestors()
                .nth(3)
                .map(|ancestor| ancestor.join("include")),
        );
    }
    places.push(Path::new(LLVM_PARENT).join(format!("llvm-{}/include", clang.llvm)));
    for place in &mut places {
        if let Ok(whole) = place.canonicalize() {
            *place = whole;
        }
    }
    places.dedup();
    places
}

/// The version of the headers in `directory`, if there are any.
fn version(directory: &Path) -> Option<String> {
    let config = fs::read_to_string(directory.join(CONFIG)).ok()?;
    let (_, rest) = config.split_once(VERSION)?;
    Some(rest.split('"').next()?.to_owned())
}

/// Returns whether LLVM of two versions has one C++ interface: LLVM changes it with each minor release.
fn same_interface(one: &str, other: &str) -> bool {
    let minor = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    minor(one) == minor(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clang of LLVM 99, which is never run: a script that a test has just written may be busy while another
    /// thread of the test starts a program.
    fn clang(version: &str) -> Clang {
        Clang {
            llvm: 99,
            line: format!("clang version {version}"),
            path: PathBuf::from("clang++"),
        }
    }

    fn put_headers(tree: &Path, version: &str) {
        let config = tree.join("include").join(CONFIG);
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(config, format!("{VERSION}{version}\"\n")).unwrap();
    }

    #[test]
    fn the_headers_of_a_tree_are_found_if_they_are_of_its_release() {
        let tree = tempfile::tempdir().unwrap();
        let places = [tree.path().join("include"), tree.path().join("none")];
        let clang = clang("99.1.3 (x)");
        let message = || find_in(&places, &clang).unwrap_err().to_string();
        let message_without = message();
        for part in [
            "99.1.3",
            "llvm-99-dev",
            &format!("{} or ", places[0].display()),
        ] {
            assert!(message_without.contains(part), "{message_without}");
        }
        put_headers(tree.path(), "99.2.0");
        let message_of_another = message();
        for part in ["is of LLVM 99.2.0", "llvm-99-dev"] {
            assert!(message_of_another.contains(part), "{message_of_another}");
        }
        put_headers(tree.path(), "99.1.0");
        assert_eq!(find_in(&places, &clang).unwrap(), places[0]);
    }
}
