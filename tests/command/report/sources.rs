//! Annotated source.

use super::*;
use crate::report::pages::{self, Pages, all};
use crate::report::repository::{AFTER, Repository};

#[test]
fn show_prints_source_of_the_files_asked_for() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let source = data("kernel.hip");
    let said = stdout(&place.report(&[&"--object", &elf, &"--show", &source]));
    for line in ["  1|    *value = doubled(*value);", "  0|    *value = 0;"] {
        assert!(said.contains(line), "{said}");
    }
    let other = place.path().join("other.hip");
    fs::write(&other, "").unwrap();
    let output = place.report(&[&"--object", &elf, &"--show", &other]);
    assert!(!stdout(&output).contains("doubled"), "{output:?}");
    let message = failure(&output, 1);
    assert!(message.contains(&other.display().to_string()), "{message}");
    assert!(message.contains(&source.display().to_string()), "{message}");
    let missing = place.report(&[&"--object", &elf, &"--show", &"/missing.hip"]);
    let message = failure(&missing, 1);
    assert!(message.contains("/missing.hip"), "{message}");
}

#[test]
fn a_source_that_has_moved_is_named_and_can_be_found() {
    let place = Place::new();
    let [old, new] = ["old", "new"].map(|name| place.path().join(name));
    fs::create_dir(&old).unwrap();
    fs::create_dir(&new).unwrap();
    let source = old.join("kernel.hip");
    fs::copy(data("kernel.hip"), &source).unwrap();
    let elf = compile_source(&source, place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let moved = new.join("kernel.hip");
    fs::rename(&source, &moved).unwrap();

    let output = place.report(&[&"--object", &elf, &"--show"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = format!(
        "rocov: left out: {}: the source does not exist",
        source.display()
    );
    assert!(said.starts_with(&line), "{said}");
    assert!(said.contains("no source can be shown"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");

    let message = failure(&place.report(&[&"--object", &elf, &"--show", &moved]), 1);
    assert!(message.contains(&source.display().to_string()), "{message}");
    assert!(message.contains("--path-map"), "{message}");

    let map = format!("{}=new", old.display());
    for sources in [&[][..], &[moved.as_os_str()]] {
        let mut command = place.command();
        command.args(["--path-map", &map, "--show"]);
        let output = run(command.args(sources).arg("--object").arg(&elf));
        assert_eq!(stderr(&output), "");
        assert_eq!(shown_count(&stdout(&output), "return value * 2;"), "1");
    }

    // The table needs no source.
    let output = place.report(&[&"--object", &elf]);
    assert_eq!(stderr(&output), "");
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
}

#[test]
fn a_source_that_has_changed_since_is_told() {
    let repository = Repository::with_change("src/kernel.hip");
    let path = repository.root.join("src/kernel.hip");
    repository.ran_on_both(&path);
    let line = format!(
        "{}: stale: it has changed since it was compiled (no code",
        path.display()
    );
    let without = |number: usize| {
        let lines = AFTER.lines().enumerate();
        let lines = lines.filter(|(index, _)| index + 1 != number);
        lines
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    let cut: String = AFTER.split_inclusive('\n').take(8).collect();
    // Nothing starts after what was added, and a function ends there.
    let added = AFTER.replace(" comment\n", " comment\n  // One more.\n");
    let gate = "--fail-under-lines=0";
    for text in [without(2), without(5), cut, added] {
        fs::write(&path, text).unwrap();
        for (arguments, said_before, status) in [
            (&["--show"][..], "rocov: ", 0),
            (&["--html=../pages"], "rocov: ", 0),
            (&["--quiet", "--html=../pages", gate], "rocov: gate: ", 3),
            (&[gate], "rocov: gate: ", 3),
        ] {
            let output = repository.report(arguments);
            let said = stderr(&output);
            assert!(said.starts_with(&format!("{said_before}{line}")), "{said}");
            assert!(said.contains("--source-revision"), "{said}");
            assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
            assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        }
        let pages = Pages::read(&repository.place.path().join("pages"));
        let warning = pages.warning("kernel.hip").unwrap();
        assert!(
            warning.contains("has changed since it was compiled"),
            "{warning}"
        );
        // Places of the source that was compiled are of other text here.
        let page = pages.source("kernel.hip").root_element();
        assert!(all(page, "mark, tr.branch code").is_empty());
        let branches = all(page, "tr.branch td.code").into_iter().map(pages::text);
        let branches: Vec<_> = branches.collect();
        assert!(!branches.is_empty());
        for branch in branches {
            let place = branch.strip_prefix("Branch: column ").unwrap();
            let place = place.trim_end_matches(" true").trim_end_matches(" false");
            place.parse::<u32>().unwrap();
        }
        // Git has what was compiled, and a table shows no source.
        for arguments in [
            &["--source-revision=HEAD", "--html=../pages", gate][..],
            &["--source-revision=HEAD", "--show"],
            &[],
        ] {
            assert_eq!(stderr(&run(&mut repository.command(arguments))), "");
        }
    }
    let pages = Pages::read(&repository.place.path().join("pages"));
    assert_eq!(pages.warning("kernel.hip"), None);
    let page = pages.source("kernel.hip").root_element();
    let branches = all(page, "tr.branch code").into_iter().map(pages::text);
    assert!(
        branches
            .collect::<Vec<_>>()
            .contains(&"*value > 3".to_owned())
    );
}

#[test]
fn sources_are_those_of_a_revision_where_there_is_no_tree() {
    let repository = Repository::with_change("src/kernel.hip");
    let path = repository.root.join("src/kernel.hip");
    repository.ran(&path, "gfx90a", |number| number == 2);
    let expected = stdout(&run(&mut repository.command(&["--show"])));
    assert!(
        expected.contains("  0|    *value = 0; // never"),
        "{expected}"
    );

    // The tree has another version, then none.
    let at_revision = ["--source-revision=HEAD", "--show"];
    for text in [Some("// Another.\n"), None] {
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        for source in [&[][..], &["src/kernel.hip"], &["src"]] {
            let output = run(repository.command(&at_revision).args(source));
            assert_eq!(stderr(&output), "");
            assert_eq!(stdout(&output), expected, "{source:?}");
        }
    }
    // Without a work tree, and compiled where the repository is not.
    let bare = repository.place.path().join("bare");
    repository.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    fs::remove_dir_all(&repository.root).unwrap();
    let mut command = repository.command(&at_revision);
    command.args(["src/kernel.hip", "--repository"]).arg(&bare);
    let output = run(command.current_dir(repository.place.path()));
    assert_eq!(stdout(&output), expected);

    let mut other = repository.command(&at_revision);
    other.args(["src/other.hip", "--repository"]).arg(&bare);
    let message = failure(&other.current_dir("/").output().unwrap(), 1);
    assert!(message.contains("src/other.hip"), "{message}");
    let mut unknown = repository.command(&["--source-revision=nosuch", "--repository"]);
    let message = failure(&unknown.arg(&bare).current_dir("/").output().unwrap(), 1);
    assert!(message.contains("git has no revision nosuch"), "{message}");
}
