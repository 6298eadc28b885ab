//! The files that device ELFs come from, and those that are rejected.

use rocov::discover::host_files::build_of;
use rocov::format::registry::model::HostRecord;
use rocov_tests::cli::registry;

use super::*;

#[test]
fn device_elfs_are_taken_out_of_a_host_file() {
    for compression in ["--no-offload-compress", "--offload-compress"] {
        let place = Place::new();
        let flags = [&INSTRUMENTED[..], &[compression]].concat();
        let bundle = compile_bundle(place.path(), &["gfx90a"], &flags);
        let program = embed(&bundle, place.path());
        // Compiled apart, and byte for byte what the bundle holds.
        let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
        place.profile(&elf, "gfx90a", 0, 1);
        let output = place.report(&[&"--object", &program, &"--verbose"]);
        let said = stdout(&output);
        assert_eq!(stderr(&output), "");
        assert_eq!(total_lines(&said), ("10", "2"), "{said}");
        let identity = profile::identity(&elf);
        let line = format!(
            "  device ELF      {}: code object {identity}\n",
            program.display()
        );
        assert!(said.contains(&line), "{said}");
        let entries = fs::read_dir(place.data()).unwrap();
        assert_eq!(entries.count(), 1, "the profile alone: nothing was written");
    }
}

#[test]
fn a_part_of_an_object_that_is_damaged_is_left_out_and_said() {
    let place = Place::new();
    let flags = [&INSTRUMENTED[..], &["--no-offload-compress"]].concat();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &flags);
    let whole = fs::read(&bundle).unwrap();
    fs::write(&bundle, &whole[..whole.len() - 1]).unwrap();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let output = place.report(&[&"--object", &bundle]);
    let said = stderr(&output);
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let start = format!(
        "rocov: left out: a part of {}: the image ",
        bundle.display()
    );
    assert!(
        said.starts_with(&start) && said.contains("gfx942"),
        "{said}"
    );
}

#[test]
fn a_profile_without_its_device_elf_is_named() {
    let place = Place::new();
    let known = compile(place.path(), "known.elf", "gfx90a", &INSTRUMENTED);
    let other = compile(
        place.path(),
        "other.elf",
        "gfx90a",
        &["-O0", "-fprofile-instr-generate"],
    );
    place.profile(&known, "gfx90a", 0, 1);
    let stranger = place.profile(&other, "gfx90a", 0, 1);
    let name = stranger.file_name().unwrap().to_str().unwrap();

    let output = place.report(&[&"--object", &known]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    assert_eq!(stderr(&output).lines().count(), 1);
    assert!(stderr(&output).contains(name), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("use --object to name"),
        "{}",
        stderr(&output)
    );

    fs::remove_file(place.profile(&known, "gfx90a", 0, 1)).unwrap();
    let output = place.report(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output)
            .contains("no profile in rocov-data belongs to device code that is kept there")
    );
}

/// The names of LLVM's own drain have no identity, so that no object can help.
#[test]
fn a_profile_of_llvms_own_drain_is_left_out() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let ours = place.profile(&elf, "gfx90a", 0, 1);
    let llvms = place.data().join("gfx90a.1.4711.profraw");
    fs::copy(&ours, &llvms).unwrap();
    let output = place.report(&[&"--object", &elf]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let start = "rocov: left out: rocov-data/gfx90a.1.4711.profraw was written by LLVM's own drain";
    assert!(said.starts_with(start), "{said}");
    assert!(
        said.contains("--drain=rocov") && !said.contains("--object"),
        "{said}"
    );
    fs::remove_file(&ours).unwrap();
    let message = failure(&place.report(&[&"--object", &elf]), 1);
    assert!(
        message.contains("--drain=rocov") && !message.contains("--object"),
        "{message}"
    );
}

#[test]
fn a_device_elf_without_a_profile_is_left_out_and_said() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &INSTRUMENTED);
    let plain = compile(place.path(), "plain.elf", "gfx90a", &[]);
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    // An uninstrumented ELF among its objects makes llvm-cov fail.
    let output = place.report(&[&"--object", &bundle, &plain]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    let said = stderr(&output);
    assert!(
        said.contains("1 of 2 device ELFs in") && said.contains("(gfx942)"),
        "{said}"
    );
    assert!(
        said.contains("1 of 1 device ELF in") && said.contains("plain.elf"),
        "{said}"
    );
}

#[test]
fn objects_that_cannot_be_used_are_named_with_the_reason() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let text = place.path().join("text");
    fs::write(&text, "not an object").unwrap();
    let bundle = compile_bundle(place.path(), &["gfx90a"], &["--offload-compress"]);
    let whole = fs::read(&bundle).unwrap();
    fs::write(&bundle, &whole[..whole.len() - 1]).unwrap();
    for (object, reason) in [
        (
            place.path().join("missing"),
            "does not exist: check the path",
        ),
        (place.data(), "put the data directory before --object"),
        (PathBuf::from("/bin/true"), "no .hip_fatbin, .nv_fatbin"),
        (text, "ELF"),
        (
            bundle,
            "the compressed data of the compressed bundle at offset 0x0 should end at",
        ),
        (PathBuf::from("/dev/null"), "not a file"),
    ] {
        let message = failure(&place.report(&[&"--object", &object]), 1);
        assert!(message.contains(&object.display().to_string()), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn kept_device_elfs_need_not_be_given() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let other = compile(place.path(), "other.elf", "gfx90a", &["-O0"]);
    let kept = place.keep(&elf);
    place.keep(&other);
    fs::remove_file(&elf).unwrap();
    place.profile(&kept, "gfx90a", 0, 1);
    let output = place.report(&[&"-v"]);
    let said = stdout(&output);
    assert_eq!(stderr(&output), "");
    assert_eq!(total_lines(&said), ("10", "2"), "{said}");
    let name = kept.file_name().unwrap().to_str().unwrap();
    let line = format!("  device ELF      rocov-data/objects/{name}\n");
    assert!(said.contains(&line), "{said}");
}

#[test]
fn a_kept_device_elf_that_is_another_is_refused() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let other = compile(place.path(), "other.elf", "gfx90a", &["-O0"]);
    let kept = place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 1);
    let name = kept.file_name().unwrap().to_str().unwrap();
    let damages: [(&dyn Fn(), String); 2] = [
        (
            &|| assert!(fs::copy(&other, &kept).is_ok()),
            format!("code object {}, not", profile::identity(&other)),
        ),
        (&|| fs::write(&kept, "cut").unwrap(), "damaged".to_owned()),
    ];
    for (damage, reason) in damages {
        damage();
        let output = place.report(&[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let refused = said.lines().next().unwrap();
        assert!(refused.starts_with("rocov: refused: "), "{said}");
        for words in [name, &reason, "remove it"] {
            assert!(refused.contains(words), "{words}: {said}");
        }

        // `--object` replaces it.
        let output = place.report(&[&"--object", &elf]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    }
}

#[test]
fn an_object_that_was_rebuilt_is_refused_by_identity() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let path = place.profile(&elf, "gfx90a", 0, 1);
    let rebuilt = [&INSTRUMENTED[..], &["-O0"]].concat();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &rebuilt);
    let program = embed(&bundle, place.path());
    let plain = compile(place.path(), "rebuilt.elf", "gfx90a", &rebuilt);
    for object in [&program, &plain] {
        let output = place.report(&[&"--object", object]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let refused = said.lines().next().unwrap();
        let expected = [
            path.file_name().unwrap().to_str().unwrap(),
            &format!("code object {})", profile::identity(&elf)),
            &format!("{} is rejected", object.display()),
            &format!("is code object {}", profile::identity(&plain)),
            "name the file that ran, or run this one",
        ];
        for words in expected {
            assert!(refused.contains(words), "{words}: {said}");
        }
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}

/// Processes had another build of the object. Its code would add lines that no run could reach.
#[test]
fn an_object_that_was_rebuilt_since_the_run_counts_for_nothing() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let kept = place.keep(&elf);
    place.profile(&kept, "gfx90a", 0, 1);
    let rebuilt = [&INSTRUMENTED[..], &["-O0"]].concat();
    let bundle = compile_bundle(place.path(), &["gfx90a"], &rebuilt);
    let program = embed(&bundle, place.path()).canonicalize().unwrap();
    let report = |had: &str| {
        let mut document = registry::document(4711, &[], Vec::new());
        document.processes[0].hosts = vec![HostRecord {
            path: program.to_str().unwrap().to_owned(),
            build: had.to_owned(),
        }];
        registry::write(&document, &place.data());
        let output = place.report(&[&"--object", &program]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let heading = stdout(&output);
        let line = heading.lines().next().unwrap_or_default().to_owned();
        (line, stderr(&output))
    };
    let (line, said) = report("0123456789abcdef");
    assert_eq!(line, "gfx90a: 1 profile of 1 code object");
    assert!(said.contains("left out: 2 of 2 device ELFs in "), "{said}");
    // If they had this one, they have not launched its code.
    let (line, said) = report(&build_of(&program).unwrap());
    let expected = "gfx90a: 1 profile of 2 code objects, 1 never launched";
    assert_eq!((line.as_str(), said.as_str()), (expected, ""));
}
