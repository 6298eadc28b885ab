//! The limits that a report must reach, and the exit status if it does not.

use rocov::discover::host_files::build_of;
use rocov::format::registry::model::HostRecord;
use rocov_tests::cli::registry;

use super::*;

/// The status of a report that does not reach what it must.
const BROKEN: i32 = 3;

/// The lines about gates of a report with these arguments, which must have been printed.
#[track_caller]
fn broken(place: &Place, elfs: &[PathBuf; 2], arguments: &[&str]) -> Vec<String> {
    let mut command = place.command();
    let output = command.args(arguments).arg("--object").args(elfs).output();
    let output = output.unwrap();
    assert!(stdout(&output).contains("TOTAL"), "{output:?}");
    let said = stderr(&output);
    let gates = said
        .lines()
        .filter_map(|line| line.strip_prefix("rocov: gate: "));
    let gates: Vec<_> = gates.map(str::to_owned).collect();
    let expected = if gates.is_empty() { 0 } else { BROKEN };
    assert_eq!(output.status.code(), Some(expected), "{said}");
    gates
}

#[test]
fn percentages_must_be_reached_on_each_arch_and_in_all() {
    let (place, elfs) = Place::with_archs();
    let broken = |arguments: &[&str]| {
        let arguments = [arguments, &["--as-llvm-cov"]].concat();
        broken(&place, &elfs, &arguments)
    };
    // 95.45% of the lines ran on gfx90a, 45.83% on gfx942, 96.15% on either.
    assert_eq!(broken(&["--fail-under-lines=45.8"]), [""; 0]);
    assert_eq!(
        broken(&["--fail-under-lines=45.9"]),
        ["gfx942: 45.83% of lines ran (13 of 24 did not run), less than 45.9%"]
    );
    assert_eq!(
        broken(&["--fail-under-lines=45.9", "--arch=gfx90a"]),
        [""; 0]
    );
    let archs = |lines: Vec<String>| -> Vec<String> {
        let archs = lines.iter().filter_map(|line| line.split_once(':'));
        archs.map(|(arch, _)| arch.to_owned()).collect()
    };
    assert_eq!(
        archs(broken(&["--fail-under-lines=96"])),
        ["gfx90a", "gfx942"]
    );
    assert_eq!(
        archs(broken(&["--fail-under-lines=97"])),
        ["gfx90a", "gfx942", "all"]
    );
    // Covered: 4 and 2 of 4 functions, 9 of 10 and 6 of 13 regions, 3 of 4 and 2 of 6 branches.
    for (what, least) in [
        ("functions", "50"),
        ("regions", "46.1"),
        ("branches", "33.3"),
    ] {
        assert_eq!(broken(&[&format!("--fail-under-{what}={least}")]), [""; 0]);
        let more = least.parse::<f64>().unwrap() + 0.1;
        let lines = broken(&[&format!("--fail-under-{what}={more}")]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&format!("of {what} ran")), "{lines:?}");
    }
    let nothing = place.report(&[
        &"--fail-under-lines=0",
        &"--include=x",
        &"--object",
        &elfs[0],
    ]);
    assert_eq!(nothing.status.code(), Some(BROKEN));
    assert!(stderr(&nothing).contains("no source file is left"));
}

#[test]
fn kernels_that_did_not_run_are_named_with_their_arch() {
    let (place, elfs) = Place::with_archs();
    let lines = broken(&place, &elfs, &["--fail-uncovered-kernels"]);
    let source = data("archs.hip");
    // `sum` did not run either, and is no kernel.
    let line = format!("gfx942: kernel add did not run ({}:31)", source.display());
    assert_eq!(lines, [line]);
    let arguments = ["--fail-uncovered-kernels", "--arch=gfx90a"];
    assert_eq!(broken(&place, &elfs, &arguments), [""; 0]);
}

/// A program for two archs that ran on one of them: no profile has the kernels of the other.
#[test]
fn kernels_for_an_arch_that_nothing_ran_on_did_not_run() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &INSTRUMENTED);
    let program = embed(&bundle, place.path());
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let gates = |arguments: &[&str]| {
        let mut command = place.command();
        command.args(["--fail-uncovered-kernels", "--object"]);
        let output = command.arg(&program).args(arguments).output().unwrap();
        let said = stderr(&output);
        let lines = said.lines();
        let gates = lines.filter_map(|line| line.strip_prefix("rocov: gate: "));
        let gates: Vec<_> = gates.map(str::to_owned).collect();
        let expected = if gates.is_empty() { 0 } else { BROKEN };
        assert_eq!(output.status.code(), Some(expected), "{said}");
        // Its code is in no figure.
        assert!(!stdout(&output).contains("gfx942"), "{output:?}");
        gates
    };
    let source = data("kernel.hip");
    let expected = [
        format!("gfx942: kernel kernel did not run ({}:9)", source.display()),
        "gfx942: nothing ran on it; run the programs on it, or use --arch to name the archs that code ran on"
            .to_owned(),
    ];
    assert_eq!(gates(&[]), expected);
    for arguments in [
        &["--arch=gfx90a"][..],
        &["--exclude-function=^kernel"],
        &["--fail-under-lines=1", "--arch=gfx90a"],
    ] {
        assert_eq!(gates(arguments), [""; 0], "{arguments:?}");
    }
    // A process has named the program, and the user has not.
    let mut document = registry::document(
        4711,
        &[registry::code_object_of(&elf, Vec::new())],
        Vec::new(),
    );
    let real = program.canonicalize().unwrap();
    document.processes[0].hosts.push(HostRecord {
        path: real.display().to_string(),
        build: build_of(&real).unwrap(),
    });
    registry::write(&document, &place.data());
    place.keep(&elf);
    let output = place.report(&[&"--fail-uncovered-kernels"]);
    assert!(
        stderr(&output).contains(&expected[0]),
        "{}",
        stderr(&output)
    );
    // The first page names them, too.
    let pages = place.path().join("pages");
    let output = place.report(&[&"--html", &pages]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = fs::read_to_string(pages.join("index.html")).unwrap();
    let idle = "<b>gfx942</b>: 1 kernel compiled for it never ran: <code>kernel</code>";
    assert!(page.contains(idle), "{page}");
    // It was built again, and has other code now.
    document.processes[0].hosts[0].build = "of another".to_owned();
    registry::write(&document, &place.data());
    let output = place.report(&[&"--fail-uncovered-kernels"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn what_is_missing_is_a_failure_and_no_zero() {
    let gate = "--fail-under-lines=1";
    let reported = |place: &Place, elf: &Path, expected: &[&str]| {
        // Without a gate, a report only prints it.
        let output = place.report(&[&"--object", &elf]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let output = place.report(&[&gate, &"--object", &elf]);
        let said = stderr(&output);
        let gates = said
            .lines()
            .filter_map(|line| line.strip_prefix("rocov: gate: "));
        let gates: Vec<_> = gates.collect();
        assert_eq!(gates.len(), expected.len(), "{said}");
        for (gate, expected) in gates.iter().zip(expected) {
            assert!(gate.contains(expected), "{said}");
        }
        let status = if expected.is_empty() { 0 } else { BROKEN };
        assert_eq!(output.status.code(), Some(status), "{said}");
    };
    let (place, elfs) = Place::with_archs();
    let [elf, _] = &elfs;
    fs::remove_file(place.profile_path(&elfs[1], "gfx942", 0)).unwrap();
    fs::remove_file(&elfs[1]).unwrap();
    reported(&place, elf, &[]);

    // A stale device ELF: the profile is of another.
    let other = compile(place.path(), "other.elf", "gfx90a", &INSTRUMENTED);
    let profile = place.profile(&other, "gfx90a", 0, 1);
    reported(
        &place,
        elf,
        &["1 code object without a device ELF left out"],
    );

    // A damaged profile.
    fs::rename(&profile, place.profile_path(elf, "gfx90a", 1)).unwrap();
    fs::write(place.profile_path(elf, "gfx90a", 1), "").unwrap();
    reported(&place, elf, &["1 damaged profile left out"]);
    fs::remove_file(place.profile_path(elf, "gfx90a", 1)).unwrap();

    // A code object that was loaded, and whose process did not live to be drained.
    let objects = place.data().join("objects");
    fs::create_dir_all(&objects).unwrap();
    let kept = objects.join(format!("gfx90a.{}.elf", profile::identity(&other)));
    fs::rename(&other, &kept).unwrap();
    reported(&place, elf, &["has no profile"]);

    // One without counters has nothing to miss.
    fs::remove_file(&kept).unwrap();
    let plain = compile(place.path(), "plain.elf", "gfx90a", &[]);
    fs::rename(
        &plain,
        objects.join(format!("gfx90a.{}.elf", profile::identity(&plain))),
    )
    .ok();
    reported(&place, elf, &[]);
}

/// The lines about gates when a report of kept device ELFs must have 1% of the lines.
fn lost(place: &Place, arguments: &[&str]) -> Vec<String> {
    let mut command = place.command();
    command.arg("--fail-under-lines=1").args(arguments);
    let output = command.output().unwrap();
    let said = stderr(&output);
    let lines = said.lines();
    let gates = lines.filter_map(|line| line.strip_prefix("rocov: gate: "));
    let gates: Vec<_> = gates.map(str::to_owned).collect();
    let expected = if gates.is_empty() { 0 } else { BROKEN };
    assert_eq!(output.status.code(), Some(expected), "{said}");
    gates
}

#[test]
fn an_arch_whose_profiles_are_all_lost_is_missing() {
    let (place, elfs) = Place::with_archs();
    place.keep(&elfs[0]);
    let kept = place.keep_as(&elfs[1], "gfx942");
    assert_eq!(lost(&place, &[]), [""; 0]);
    fs::remove_file(place.profile_path(&elfs[1], "gfx942", 0)).unwrap();
    let lines = lost(&place, &[]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let name = kept.file_name().unwrap().to_str().unwrap();
    let start = format!(
        "code object {} in rocov-data/objects/{name} has no profile",
        profile::identity(&elfs[1])
    );
    assert!(lines[0].starts_with(&start), "{lines:?}");
    assert_eq!(lost(&place, &["--arch=gfx90a"]), [""; 0]);
    // A program is compiled for archs that it never runs on.
    fs::remove_file(kept).unwrap();
    let named = format!("--object={}", elfs[1].display());
    assert_eq!(lost(&place, &[&named]), [""; 0]);
}

#[test]
fn what_the_registry_says_was_loaded_must_have_a_profile() {
    let (place, elfs) = Place::with_archs();
    place.keep(&elfs[0]);
    fs::remove_file(place.profile_path(&elfs[1], "gfx942", 0)).unwrap();
    let mut objects = elfs
        .each_ref()
        .map(|elf| registry::code_object_of(elf, Vec::new()));
    let load = |objects: &[_; 2]| {
        let mut loads = [0, 1].map(|at| registry::load(&objects[at], 0x7000, 1, None));
        loads[1].agent = 1;
        for (load, file) in loads.iter_mut().zip(["one", "two"]) {
            load.uri = format!("file:///app/{file}#offset=4096&size=4000");
        }
        let mut document = registry::document(4711, objects, loads.to_vec());
        let agents = &mut document.processes[0].agents;
        agents.push(agents[0].clone());
        agents[1].index = 1;
        agents[1].name = "gfx942".to_owned();
        registry::write(&document, &place.data());
    };
    load(&objects);
    let start = format!(
        "code object {} was loaded on gfx942, according to the kernel registry, but has no profile",
        profile::identity(&elfs[1])
    );
    for arguments in [&[][..], &["--component=/app/one", "--component=/app/two"]] {
        let lines = lost(&place, arguments);
        assert!(lines[0].starts_with(&start), "{lines:?}");
    }
    // The report names a kept one once.
    let kept = place.keep_as(&elfs[1], "gfx942");
    assert_eq!(lost(&place, &[]).len(), 1);
    fs::remove_file(kept).unwrap();
    for argument in ["--arch=gfx90a", "--component=/app/one"] {
        assert_eq!(lost(&place, &[argument]), [""; 0], "{argument}");
    }
    // A code object without counters needs no profile.
    objects[1].instrumented = false;
    load(&objects);
    assert_eq!(lost(&place, &[]), [""; 0]);

    fs::write(place.data().join("4712.kernels.json"), "{").unwrap();
    let lines = lost(&place, &[]);
    let start = "the loaded code objects are not known: rocov-data/4712.kernels.json: ";
    assert!(lines[0].starts_with(start), "{lines:?}");
}

/// librocov could not use a table of copies of the counters, and has recorded it.
#[test]
fn profiles_that_lack_counts_are_a_warning_and_fail_a_gate() {
    let (place, elfs) = Place::with_archs();
    for elf in &elfs {
        place.keep(elf);
    }
    let object = registry::code_object_of(&elfs[0], Vec::new());
    let write = |partial: Option<&str>| {
        // The code object was loaded several times.
        let mut loads = [1, 3, 5].map(|at| registry::load(&object, 0x7000, at, Some(at + 1)));
        loads[1].partial = partial.map(str::to_owned);
        loads[2].partial = partial.map(str::to_owned);
        let document = registry::document(4711, std::slice::from_ref(&object), loads.to_vec());
        registry::write(&document, &place.data());
    };
    let warnings = |arguments: &[&str]| -> Vec<String> {
        let output = place.command().args(arguments).output().unwrap();
        assert!(stdout(&output).contains("TOTAL"), "{output:?}");
        let said = stderr(&output);
        let lines = said.lines().filter(|line| line.contains("partial"));
        lines.map(str::to_owned).collect()
    };
    let reason = "the table at byte 0 of __rocov_copies has version 3, expected 1 or 2: update rocov, which reads versions 1 and 2";
    let line = format!(
        "rocov: the profiles of code object {} on gfx90a are partial: {reason}",
        profile::identity(&elfs[0])
    );
    write(Some(reason));
    assert_eq!(warnings(&[]), [line]);
    assert_eq!(warnings(&["--arch=gfx942"]), [""; 0]);
    assert_eq!(
        lost(&place, &[]),
        ["1 code object with partial profiles: see above"]
    );
    assert_eq!(lost(&place, &["--arch=gfx942"]), [""; 0]);
    write(None);
    assert_eq!(warnings(&[]), [""; 0]);
    assert_eq!(lost(&place, &[]), [""; 0]);
}

#[test]
fn a_share_of_one_is_doubted() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 1);
    for (percent, said) in [
        (
            "0.8",
            "rocov: --fail-under-lines 0.8 is 0.8 percent: use 80 for 80 percent\n",
        ),
        (
            "0.875",
            "rocov: --fail-under-lines 0.875 is 0.875 percent: use 87.5 for 87.5 percent\n",
        ),
        ("0", ""),
        ("1", ""),
        ("70", ""),
    ] {
        let output = place.report(&[&"--fail-under-lines", &percent]);
        assert_eq!(stderr(&output), said);
        assert_eq!(output.status.code(), Some(0));
    }
}

/// Options of the table do nothing for other formats, and pages are no stream.
#[test]
fn options_without_effect_are_refused() {
    let (place, _) = Place::with_archs();
    for (arguments, said) in [
        (
            ["--lcov", "--sort=worst"],
            "--sort applies to the table, but no table is written",
        ),
        (
            ["--json", "--show-missing"],
            "--show-missing applies to the table",
        ),
        (
            ["--badge", "--show-excluded"],
            "--show-excluded applies to the table",
        ),
        (["--html", "-"], "--html cannot go to standard output"),
    ] {
        let output = place.report(&arguments.each_ref().map(|word| word as &dyn AsRef<OsStr>));
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(said), "{message}");
    }
}

/// A limit of missed things names the first of them, and gates hold for annotated source, too.
#[test]
fn a_limit_names_what_did_not_run() {
    let place = Place::new();
    let path = place.path().join("x.hip");
    let source = "extern \"C\" __attribute__((global)) void kernel(int *p) {\nif (*p)\n*p = 1;\n\n*p = 2;\n}\n\
                  __attribute__((device, used)) void other(int *p) {\n}\n";
    fs::write(&path, source).unwrap();
    let flags = [&INSTRUMENTED[..], &["-O0"]].concat();
    let elf = compile_source(&path, place.path(), "x.elf", "gfx90a", &flags);
    let count = |name: &str, number: u64| u64::from(name == "kernel" && number == 0);
    let profile = place.profile_path(&elf, "gfx90a", 0);
    profile::write_counts(&elf, &count, RAW_VERSION, &profile);
    place.keep(&elf);
    for format in [&[][..], &["--show"]] {
        let gates = ["--fail-uncovered-lines=1", "--fail-uncovered-functions=0"];
        let mut command = place.command();
        let output = command.args(gates).args(format).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let said = stderr(&output);
        let expected = "gate: gfx90a: 3 of 7 lines did not run, more than 1: x.hip:3, x.hip:7-8\n";
        assert!(said.contains(expected), "{said}");
        assert!(
            said.contains("functions did not run, more than 0: x.hip:7\n"),
            "{said}"
        );
    }
}
