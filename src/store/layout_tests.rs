//! Names of files, and the places of a data directory.

use super::*;

#[test]
fn files_are_named_after_target_and_identity() {
    let identity = Identity::from_build_id(&[0x0f, 0x3c, 0x9b]).unwrap();
    assert_eq!(
        device_elf_name("gfx90a:xnack-", &identity),
        "gfx90a-xnack-.0f3c9b.elf"
    );
}

#[test]
fn the_side_of_a_directory_is_beside_it() {
    for (directory, named, unnamed) in [
        ("/data/cov", "/data/cov.rocov", "/data/.rocov/cov"),
        ("/cov", "/cov.rocov", "/.rocov/cov"),
        ("/", "/.rocov", "/.rocov"),
    ] {
        let expected = [named, unnamed].map(PathBuf::from);
        assert_eq!(sides(Path::new(directory)), expected, "{directory}");
    }
}

#[test]
fn paths_are_normal_by_their_words() {
    for (path, expected) in [
        ("/a/./b/../c", "/a/c"),
        ("/../a/", "/a"),
        ("/a/..", "/"),
        ("../a", "../a"),
        (".", ""),
    ] {
        assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
    }
}

#[test]
fn what_lies_in_the_side_finds_the_profiles_from_there() {
    let data = DataLayout::from_data(Path::new("/d"));
    let named = DataLayout::from_pattern(Path::new("/w/x/../cov"), false);
    let unnamed = DataLayout::from_pattern(Path::new("/w/here"), true);
    let root = DataLayout::from_pattern(Path::new("/"), false);
    for (layout, profile, relative) in [
        (&data, "/d/profraw/7/x.profraw", "profraw/7/x.profraw"),
        (&data, "/elsewhere/x.profraw", "/elsewhere/x.profraw"),
        (&named, "/w/x/../cov/7/x.profraw", "../cov/7/x.profraw"),
        (&unnamed, "/w/here/x.profraw", "../../here/x.profraw"),
        (&root, "/x.profraw", "../x.profraw"),
    ] {
        let found = layout.relative(Path::new(profile));
        assert_eq!(found, Path::new(relative), "{profile}");
        let back = normal(&layout.side().join(&found));
        assert_eq!(back, normal(Path::new(profile)), "{profile}");
    }
    let beside = named.beside(Path::new("/w/x/../cov/7/x.profraw"), OBJECTS);
    assert_eq!(beside, Path::new("/w/cov.rocov/objects/7"));
}

#[test]
fn only_names_of_buckets_are_in_buckets() {
    for (path, expected) in [
        ("s3://bucket/a/b", Some("bucket/a/b")),
        ("s3://", Some("")),
        ("s3:/bucket", None),
        ("./s3://bucket", None),
        ("S3://bucket", None),
        ("/a/s3", None),
    ] {
        assert_eq!(in_bucket(Path::new(path)), expected, "{path}");
    }
}

#[test]
fn kept_device_elfs_have_their_identity_before_the_ending() {
    for (path, identity) in [
        ("d/objects/gfx90a.0f3c.elf", Some("0f3c")),
        ("objects/gfx90a-xnack-.0f3c.elf", Some("0f3c")),
        ("objects/0f3c.elf", None),
        ("objects/gfx90a.0f3c.o", None),
        ("d/gfx90a.0f3c.elf", None),
    ] {
        assert_eq!(elf_identity(Path::new(path)), identity, "{path}");
    }
}

#[test]
fn labels_are_directories_among_the_profiles() {
    let label = |path: &str| profile_label(Path::new(path)).map(|label| label.to_string());
    for (path, expected) in [
        (
            "d/profraw/labels/unit%20tests/add/x",
            Some("unit tests/add"),
        ),
        ("d/labels/.add/x", Some(".add")),
        ("labels/d/profraw/x", None),
        ("labels/d/profraw/labels/a/x", Some("a")),
        ("d/profraw/labels/x", None),
        ("d/profraw/7/labels/labels/x", Some("labels")),
    ] {
        assert_eq!(label(path).as_deref(), expected, "{path}");
    }
}
