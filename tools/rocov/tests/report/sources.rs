//! Annotated source.

use crate::*;

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
        "rocov: left out: {}: the source is not there",
        source.display()
    );
    assert!(said.starts_with(&line), "{said}");
    assert!(said.contains("no source is there to be shown"), "{said}");
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
