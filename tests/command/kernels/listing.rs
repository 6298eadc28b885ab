//! The table, filters, order, and which registries it is made of.

use std::fs;

use rocov_tests::artifacts::built;
use rocov_tests::cli::failure;
use rocov_tests::cli::registry::{code_object, document, kernel, load, write};

use super::*;

/// Two code objects and three kernels, in two processes.
fn two_processes(place: &Place) {
    let mut last = kernel("last", 1);
    last.instrumented = false;
    last.source = None;
    let one = code_object("aa", vec![kernel(SCALE, 3), last]);
    let mut other = code_object("bb", vec![kernel(FILL, 2)]);
    other.target = "gfx942:sramecc+".to_owned();
    let objects = [one.clone(), other];
    let loads = vec![
        load(&one, 0x1000, 1, None),
        load(&objects[1], 0x8000, 2, None),
    ];
    write(&document(7, &objects, loads), &place.data());
    write(
        &document(
            8,
            std::slice::from_ref(&one),
            vec![load(&one, 0x1000, 1, None)],
        ),
        &place.data(),
    );
}

#[test]
fn kernels_of_all_processes_are_listed_once() {
    let place = Place::new();
    two_processes(&place);
    let expected = "\
ARCH             VGPRS  SGPRS  AGPRS   LDS  SCRATCH  SPILLS  WAVE  LOADS  INSTR  COUNT  LINES  KERNEL                     SOURCE
gfx90a:xnack-       41     21      8  1001     2001       3    64      2  no         -      -  last                       -
gfx90a:xnack-       43     23     24  1003     2003       9    64      2  yes        -      -  scale(float*, float)       /src/kernel.hip
gfx942:sramecc+     42     22     16  1002     2002       6    64      1  yes        -      -  void fill<int>(int*, int)  /src/kernel.hip
";
    assert_eq!(table(&place, &[]), expected);
    assert_eq!(names(&place, &[]), ["last", SCALE, FILL]);

    let json = json(&run(&mut command(&place, &["--json", "--name", "scale"])));
    assert_eq!(json["rocov_kernels"], 1);
    let kernel = &json["kernels"][0];
    for (field, value) in [
        ("target", Value::from("gfx90a:xnack-")),
        ("code_object", "aa".into()),
        ("name", SCALE.into()),
        ("display_name", SCALE_NAME.into()),
        ("vgprs", 43.into()),
        ("vgpr_spills", 6.into()),
        ("max_workgroup_size", 1024.into()),
        ("instrumented", true.into()),
        ("loads", 2.into()),
        ("count", Value::Null),
        ("lines", Value::Null),
    ] {
        assert_eq!(kernel[field], value, "{field}");
    }
}

#[test]
fn a_narrow_terminal_has_fewer_columns() {
    let place = Place::new();
    two_processes(&place);
    let widest = |columns: &str| {
        let mut script = Command::new("script");
        let kernels = format!("{} kernels", built("rocov").display());
        script.args(["-qec", &kernels, "/dev/null"]);
        script.env("COLUMNS", columns).current_dir(place.path());
        let table = stdout(&run(&mut script));
        for heading in ["ARCH", "COUNT", "KERNEL"] {
            assert!(table.contains(heading), "{columns}: {table}");
        }
        let lengths = table.lines().map(|line| line.trim_end().chars().count());
        lengths.max().unwrap()
    };
    for columns in ["100", "80", "60", "40"] {
        assert!(widest(columns) <= columns.parse().unwrap(), "{columns}");
    }
    // As wide as in a file.
    let whole = table(&place, &[]);
    assert_eq!(Some(widest("200")), whole.lines().map(str::len).max());
}

#[test]
fn hips_own_kernels_are_listed_if_they_are_asked_for() {
    let place = Place::new();
    let own = "__amd_rocclr_copyBuffer";
    let ours = code_object("aa", vec![kernel(SCALE, 3)]);
    let blit = code_object("bb", vec![kernel(own, 1)]);
    let objects = [ours, blit];
    let loads = objects.iter().map(|object| load(object, 0x1000, 1, None));
    write(&document(7, &objects, loads.collect()), &place.data());
    assert_eq!(names(&place, &[]), [SCALE]);
    assert_eq!(names(&place, &["--all"]), [own, SCALE]);
    assert_eq!(names(&place, &["--name", "__amd_*"]), [own]);

    let place = Place::new();
    let loads = vec![load(&objects[1], 0x1000, 1, None)];
    write(&document(7, &objects[1..], loads), &place.data());
    let output = run(&mut command(&place, &[]));
    let expected =
        "rocov: the program loaded only kernels of HIP itself (1 kernel): use --all to list them\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn filters_and_order_are_chosen() {
    let place = Place::new();
    two_processes(&place);
    for (arguments, expected) in [
        (&["--arch", "gfx942"][..], &[FILL][..]),
        (&["--arch", "gfx90a:xnack-"], &["last", SCALE]),
        (&["--name", "fill"], &[FILL]),
        (&["--name", "*(float*"], &[SCALE]),
        (&["--name", "_Z*", "--instrumented"], &[SCALE, FILL]),
        (&["--name", "fill", "--name", "l*t"], &["last", FILL]),
        (&["--instrumented"], &[SCALE, FILL]),
        (&["--sort", "vgprs"], &[SCALE, FILL, "last"]),
        (&["--sort", "loads"], &["last", SCALE, FILL]),
        (&["--sort", "source"], &[SCALE, FILL, "last"]),
        (&["--sort", "kernel"], &["last", SCALE, FILL]),
    ] {
        assert_eq!(names(&place, arguments), expected, "{arguments:?}");
    }
    let output = run(&mut command(&place, &["--uncovered"]));
    assert_eq!(
        stderr(&output),
        "rocov: none of 3 kernels is listed: leave out --uncovered to list more\n"
    );
    assert_eq!(stdout(&output).lines().count(), 1);
    for (arguments, remedy) in [
        (
            ["--arch", "gfx90a:xnack+"],
            "archs: gfx90a:xnack-, gfx942:sramecc+\n",
        ),
        (["--arch", "zz"], "archs: gfx90a:xnack-, gfx942:sramecc+\n"),
        (["--name", "nothing*"], "--all` lists all names\n"),
    ] {
        let output = command(&place, &arguments).output().unwrap();
        let message = failure(&output, 1);
        assert!(message.contains(arguments[1]), "{message}");
        assert!(message.ends_with(remedy), "{message}");
        assert_eq!(stdout(&output), "");
    }
    let output = command(&place, &["--sort", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn registries_that_cannot_be_read_are_named_and_the_others_used() {
    let place = Place::new();
    two_processes(&place);
    let whole = table(&place, &[]);
    fs::write(
        place.data().join("9.kernels.json"),
        "{\"rocov_registry\": 1, \"pro",
    )
    .unwrap();
    fs::write(
        place.data().join("x.kernels.json"),
        "{\"rocov_registry\": 9}",
    )
    .unwrap();
    let output = command(&place, &[]).output().unwrap();
    assert_eq!(stdout(&output), whole);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    let starts = |line: &str, name: &str, reason: &str| {
        let start = format!("rocov: left out: rocov-data/{name}.kernels.json: {reason}");
        assert!(line.starts_with(&start), "{said}");
    };
    starts(lines[0], "9", "not a registry, or damaged");
    starts(lines[1], "x", "registry of schema version 9, expected 1");
}

#[test]
fn without_a_registry_it_says_how_to_get_one() {
    let place = Place::new();
    let message = failure(&command(&place, &[]).output().unwrap(), 1);
    assert!(message.contains("`rocov run`"), "{message}");
    assert!(message.contains("ROCOV_REGISTRY=always"), "{message}");
    let message = failure(&command(&place, &["missing"]).output().unwrap(), 1);
    assert!(message.contains("missing does not exist"), "{message}");
    // The process was killed before it wrote one: `rocov run` has added what it knows.
    let mut notes = document(7, &[], Vec::new());
    notes.processes[0].notes = vec!["it was killed by SIGTERM".to_owned()];
    write(&notes, &place.data());
    let message = failure(&command(&place, &[]).output().unwrap(), 1);
    assert!(message.contains("no kernel registry"), "{message}");
    // One that `ROCOV_REGISTRY=always` has made.
    notes.processes[0].notes.clear();
    write(&notes, &place.data());
    assert_eq!(table(&place, &[]).lines().count(), 1);
}

#[test]
fn sources_below_are_named_from_here() {
    let place = Place::new();
    let mut here = kernel(SCALE, 1);
    let source = place.path().canonicalize().unwrap().join("src/a.hip");
    here.source = Some(source.display().to_string());
    let object = code_object("aa", vec![here]);
    let loads = vec![load(&object, 0x1000, 1, None)];
    write(&document(7, &[object], loads), &place.data());
    assert!(table(&place, &[]).ends_with("  src/a.hip\n"));
    let json = json(&run(&mut command(&place, &["--json"])));
    assert_eq!(json["kernels"][0]["source"], source.to_str().unwrap());
}
