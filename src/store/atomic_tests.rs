//! Files appear wholly or not at all.

use super::*;

#[test]
fn directories_are_made_and_old_contents_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/x.profraw");
    write_atomic(&path, b"one").unwrap();
    write_atomic(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_file_that_has_the_contents_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.elf");
    assert!(write_if_changed(&path, b"one").unwrap());
    let inode = |path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let first = inode(&path);
    assert!(!write_if_changed(&path, b"one").unwrap());
    assert_eq!(inode(&path), first);
    assert!(write_if_changed(&path, b"two").unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"two");
}

#[test]
fn only_one_creates() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.profraw");
    assert!(create_atomic(&path, b"one").unwrap());
    assert!(!create_atomic(&path, b"two").unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// Such a file system needs neither a lock nor a second name.
#[test]
fn a_file_gets_its_first_name_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.profraw");
    // Not on every kernel, and not on every file system.
    if let Some(made) = link_new(&path, b"one") {
        assert!(made);
        assert_eq!(link_new(&path, b"two"), Some(false));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        fs::write(directory.path().join("y"), "usual").unwrap();
        let usual = fs::metadata(directory.path().join("y")).unwrap();
        assert_eq!(mode, usual.permissions().mode());
    } else {
        println!("not run: no files without a name here");
    }
    assert_eq!(link_new(&directory.path().join("none/x"), b"one"), None);
}

/// Both ways to name a file are taken, each by some kernels.
#[test]
fn a_file_is_named_by_itself_and_by_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let flags = OFlags::TMPFILE | OFlags::WRONLY;
    let unnamed = || open(directory.path(), flags, Mode::from_raw_mode(0o666)).map(File::from);
    if unnamed().is_err() {
        println!("not run: no files without a name here");
        return;
    }
    for (name, link) in [
        ("itself", link as fn(&File, &Path) -> Result<(), Errno>),
        ("number", link_by_number),
    ] {
        let path = directory.path().join(name);
        let mut file = unnamed().unwrap();
        file.write_all(name.as_bytes()).unwrap();
        link(&file, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), name);
        assert_eq!(link(&unnamed().unwrap(), &path), Err(Errno::EXIST));
        assert_eq!(fs::read_to_string(&path).unwrap(), name);
    }
}

#[test]
fn names_beside_are_free_ones() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let pid = std::process::id();
    for (contents, name) in [
        ("one", format!("x.{pid}.profraw")),
        ("two", format!("x.{pid}.1.profraw")),
    ] {
        assert_eq!(
            create_beside(&at("x.profraw"), contents.as_bytes()).unwrap(),
            at(&name)
        );
        assert_eq!(fs::read_to_string(at(&name)).unwrap(), contents);
    }
    for (contents, name) in [
        ("three", "y".to_owned()),
        ("four", format!("y.{pid}")),
        ("five", format!("y.{pid}.1")),
    ] {
        let made = create_at_or_beside(&at("y"), contents.as_bytes());
        assert_eq!(made.unwrap(), at(&name));
        assert_eq!(fs::read_to_string(at(&name)).unwrap(), contents);
    }
    assert_eq!(
        create_beside(&at("z.profraw.kernels.json"), b"six").unwrap(),
        at(&format!("z.profraw.{pid}.kernels.json"))
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
}

#[test]
fn what_another_writes_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let theirs = directory.path().join(".rocov-01234567-0123456789abcdef");
    fs::write(&theirs, "theirs").unwrap();
    assert!(Temporary::make(theirs.clone(), &directory.path().join("x"), b"").is_err());
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    let names: std::collections::BTreeSet<_> = (0..1000).map(|_| random()).collect();
    assert_eq!(names.len(), 1000);
}

#[test]
fn a_file_that_another_process_removes_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut new = Temporary::write(&at("new"), b"one").unwrap();
    fs::remove_file(&new.path).unwrap();
    assert!(new.take_new_name(&at("new")).unwrap());
    let old = Temporary::write(&at("old"), b"two").unwrap();
    fs::remove_file(&old.path).unwrap();
    old.rename(&at("old")).unwrap();
    for (name, contents) in [("new", "one"), ("old", "two")] {
        assert_eq!(fs::read_to_string(at(name)).unwrap(), contents);
    }
    drop(new);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taken");
    fs::create_dir(&path).unwrap();
    let error = write_atomic(&path, b"one").unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot replace {}: ", path.display())),
        "{error}"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
