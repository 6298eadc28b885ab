//! What a report must reach, and the exit status when it does not.

use crate::*;

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
        .filter_map(|it| it.strip_prefix("rocov: gate: "));
    let gates: Vec<_> = gates.map(str::to_owned).collect();
    let expected = if gates.is_empty() { 0 } else { BROKEN };
    assert_eq!(output.status.code(), Some(expected), "{said}");
    gates
}

#[test]
fn percentages_must_be_reached_on_each_arch_and_in_all() {
    let (place, elfs) = Place::with_archs();
    let broken = |arguments: &[&str]| broken(&place, &elfs, arguments);
    // 95.45% of the lines ran on gfx90a, 45.83% on gfx942, 96.15% on either.
    assert_eq!(broken(&["--fail-under-lines=45.8"]), [""; 0]);
    assert_eq!(
        broken(&["--fail-under-lines=45.9"]),
        ["gfx942: 45.83% of lines ran (13 of 24 did not), less than 45.9%"]
    );
    assert_eq!(
        broken(&["--fail-under-lines=45.9", "--arch=gfx90a"]),
        [""; 0]
    );
    let archs = |lines: Vec<String>| -> Vec<String> {
        let archs = lines.iter().filter_map(|it| it.split_once(':'));
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
    // Of 4 functions 4 and 2, of 10 and 13 regions 9 and 6, of 4 and 6 branches 3 and 2.
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

#[test]
fn what_is_missing_is_a_failure_and_no_zero() {
    let gate = "--fail-under-lines=1";
    let reported = |place: &Place, elf: &Path, expected: &[&str]| {
        // Without a gate it is said at most.
        let output = place.report(&[&"--object", &elf]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let output = place.report(&[&gate, &"--object", &elf]);
        let said = stderr(&output);
        let gates = said
            .lines()
            .filter_map(|it| it.strip_prefix("rocov: gate: "));
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
