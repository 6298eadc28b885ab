//! Directories with the files of drains and with others.

use std::os::unix::fs::symlink;

use super::*;

fn open<P: AsRef<Path>>(directories: &[P]) -> DataListing {
    DataListing::open(directories, &mut Warnings::default()).unwrap()
}

/// Makes empty files.
fn files(directory: &Path, names: &[&str]) {
    for name in names {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
}

#[test]
fn a_listing_is_ordered_and_leaves_out_what_is_no_profile() {
    let directory = tempfile::tempdir().unwrap();
    files(
        directory.path(),
        &[
            "gfx942.aa.0.1.profraw",
            "gfx90a.bb.1.1.profraw",
            "gfx90a.bb.0.x-1.raw",
            "gfx90a.bb.0.1.7.sections",
            "1.profraw",
            "gfx90a.profdata",
            "2.profraw",
        ],
    );
    // LLVM's runtime leaves an empty file if the process is killed.
    fs::write(directory.path().join("1.profraw"), "counts").unwrap();
    let data = open(&[directory.path()]);
    let found: Vec<_> = data
        .device
        .iter()
        .map(|profile| (profile.arch.as_str(), profile.agent))
        .collect();
    assert_eq!(found, [("gfx90a", 0), ("gfx90a", 1), ("gfx942", 0)]);
    assert_eq!(data.host, [directory.path().join("1.profraw")]);
    let sections = directory.path().join("gfx90a.bb.0.1.7.sections");
    assert_eq!(data.sections, [sections]);
}

#[test]
fn everything_below_is_found_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    files(
        path,
        &[
            "0/profraw/gfx90a.aa.0.1.profraw",
            "1/profraw/labels/unit%20tests/.add/gfx90a.aa.0.2.profraw",
            "1/registry/2.kernels.json",
            "1/objects/gfx90a.aa.elf",
            "all/profraw/pooled-host.profdata",
            ".git/gfx90a.aa.0.3.profraw",
        ],
    );
    symlink("..", path.join("0/up")).unwrap();
    fs::hard_link(
        path.join("0/profraw/gfx90a.aa.0.1.profraw"),
        path.join("gfx90a.aa.0.4.profraw"),
    )
    .unwrap();
    let data = open(&[path, &path.join("1")]);
    let labels = data.device.iter().map(|profile| {
        let label = profile.label.as_ref();
        label.map(ToString::to_string)
    });
    let labels: Vec<_> = labels.collect();
    assert_eq!(labels, [None, Some("unit tests/.add".to_owned())]);
    // A merge, which may have the profiles of runs.
    assert!(data.host.is_empty(), "{:?}", data.host);
    assert_eq!(data.merges, [path.join("all")]);
    let registry = path.join("1/registry/2.kernels.json");
    assert_eq!(data.registry_paths, [(registry, Scope::Named)]);
    assert_eq!(data.elf_paths.keys().collect::<Vec<_>>(), ["aa"]);
}

#[test]
fn what_scope_to_a_directory_is_found_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    files(
        path,
        &[
            "cov/7/gfx90a.aa.0.x.profraw",
            "cov.rocov/objects/gfx90a.aa.elf",
            "cov.rocov/registry/7/x.kernels.json",
            "cov.rocov/registry/8/x.kernels.json",
            "here/gfx90a.bb.0.x.profraw",
            ".rocov/here/objects/gfx90a.bb.elf",
            ".rocov/here/registry/x.kernels.json",
            "d/profraw/labels/l/gfx90a.cc.0.1.profraw",
            "d/objects/gfx90a.cc.elf",
            "d/registry/1.kernels.json",
        ],
    );
    for (name, elf, registries, expected) in [
        ("cov", "aa", 2, Scope::Named),
        ("cov/7", "aa", 1, Scope::Beside),
        ("here", "bb", 1, Scope::Named),
        ("d/profraw", "cc", 1, Scope::Named),
        ("d/profraw/labels", "cc", 1, Scope::Beside),
        ("d/profraw/labels/l", "cc", 1, Scope::Beside),
    ] {
        let data = open(&[path.join(name)]);
        assert_eq!(data.device.len(), 1, "{name}");
        let elfs: Vec<_> = data.elf_paths.iter().collect();
        assert_eq!(elfs.len(), 1, "{name}");
        assert_eq!((elfs[0].0.as_str(), elfs[0].1.1), (elf, expected), "{name}");
        assert_eq!(data.registry_paths.len(), registries, "{name}");
        let scope = data.registry_paths.iter().map(|(_, scope)| *scope);
        assert!(scope.into_iter().all(|found| found == expected), "{name}");
    }
}

#[test]
fn a_missing_directory_has_no_profiles() {
    let data = open(&["/nonexistent/rocov-data"]);
    assert!(data.device.is_empty() && data.host.is_empty());
}
