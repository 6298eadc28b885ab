//! Gates of components, folders and files, and of numbers of things that did not run.

use super::*;

/// Data of archs.hip on both archs, and of kernel.hip on gfx90a, of which nothing ran. The figures of llvm-cov for
/// archs.hip are 21 of 22 lines on gfx90a and 11 of 24 on gfx942.
struct Parts {
    place: Place,
    elfs: Vec<PathBuf>,
}

impl Parts {
    fn new() -> Self {
        let (place, elfs) = Place::with_archs();
        let kernel = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
        place.profile(&kernel, "gfx90a", 0, 0);
        let elfs = elfs.into_iter().chain([kernel]).collect();
        Self { place, elfs }
    }

    fn report(&self, arguments: &[&str]) -> Output {
        let mut command = self.place.command();
        command.args(arguments).arg("--as-llvm-cov");
        command.arg("--object").args(&self.elfs).output().unwrap()
    }

    /// The lines about gates of a report, which must have been printed.
    #[track_caller]
    fn broken(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.report(arguments);
        let said = stderr(&output);
        assert!(stdout(&output).contains("TOTAL"), "{said}");
        let lines = said.lines();
        let gates = lines.filter_map(|line| line.strip_prefix("rocov: gate: "));
        let gates: Vec<_> = gates.map(str::to_owned).collect();
        let expected = if gates.is_empty() { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(expected), "{said}");
        gates
    }

    /// The lines of kernel.hip, all of which are missed, by llvm-cov.
    fn lines_of_kernel(&self) -> u64 {
        let elf = &self.elfs[2];
        let raw = self.place.profile_path(elf, "gfx90a", 0);
        let totals = crate::report::parts::totals(&self.place, elf, &[&raw]);
        assert_eq!(totals["lines"]["covered"], 0);
        totals["lines"]["count"].as_u64().unwrap()
    }
}

#[test]
fn a_gate_can_be_of_a_file_a_folder_each_file_or_a_component() {
    let parts = Parts::new();
    let kernel = parts.lines_of_kernel();
    let folder = data("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let both = [
        "--component-sources=mine=archs.*",
        "--component-sources=mine=kernel.hip",
    ];
    // A file.
    assert_eq!(parts.broken(&["--fail-under-lines=archs.hip=45"]), [""; 0]);
    assert_eq!(
        parts.broken(&["--fail-under-lines=archs.hip=45.9"]),
        ["gfx942: 45.83% of lines in archs.hip ran (13 of 24 did not run), less than 45.9%"]
    );
    // A folder: its files together. 21 lines ran on gfx90a.
    let of_folder = format!("--fail-under-lines={folder}=1");
    assert_eq!(parts.broken(&[&of_folder]), [""; 0]);
    let all = 22 + kernel;
    let missed = 1 + kernel;
    let gfx90a = |place: &str| {
        #[expect(clippy::cast_precision_loss, reason = "few lines")]
        let percent = 21.0 / all as f64 * 100.0;
        format!(
            "gfx90a: {percent:.2}% of lines in {place} ran ({missed} of {all} did not run), less than 90%"
        )
    };
    let of_folder = format!("--fail-under-lines={folder}/=90");
    let broken = parts.broken(&[&of_folder, "--arch=gfx90a"]);
    assert_eq!(broken, [gfx90a(&format!("{folder}/"))]);
    // A component: its files together.
    let broken = parts.broken(&[&both[..], &["--fail-under-lines=mine=90"]].concat());
    assert_eq!(broken[0], gfx90a("mine"));
    assert_eq!(broken.len(), 3, "{broken:?}");
    // A glob: each file.
    let broken = parts.broken(&["--fail-under-lines=**/*.hip=1", "--arch=gfx90a"]);
    let line = format!(
        "gfx90a: 0.00% of lines in {folder}/kernel.hip ran ({kernel} of {kernel} did not run), less than 1%"
    );
    assert_eq!(broken, [line]);
    // Several hold together with one of all.
    let broken = parts.broken(&[
        "--fail-under-lines=99",
        "--fail-under-lines=archs.hip=90",
        "--arch=gfx942",
    ]);
    assert_eq!(broken.len(), 2, "{broken:?}");
    // A gate of nothing does not hold.
    assert_eq!(
        parts.broken(&["--fail-under-lines=lost.hip=1"]),
        [
            "the report contains no source of lost.hip: name another component, source, folder or glob"
        ]
    );
    for wrong in ["=90", "a.hip=", "a.hip=101", "a[=90"] {
        let output = parts.report(&[&format!("--fail-under-lines={wrong}")]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn numbers_of_things_that_did_not_run_are_limited() {
    let parts = Parts::new();
    // By the counts of archs.hip on gfx942, by llvm-cov.
    for (what, missed, total) in [
        ("lines", 13, 24),
        ("functions", 2, 4),
        ("regions", 7, 13),
        ("branches", 4, 6),
    ] {
        let gate = |most: u32| format!("--fail-uncovered-{what}={most}");
        assert_eq!(parts.broken(&[&gate(missed), "--arch=gfx942"]), [""; 0]);
        let line = format!(
            "gfx942: {missed} of {total} {what} did not run, more than {}",
            missed - 1
        );
        let broken = parts.broken(&[&gate(missed - 1), "--arch=gfx942"]);
        assert!(
            broken.len() == 1 && broken[0].starts_with(&line),
            "{broken:?}"
        );
    }
    let gate = "--fail-uncovered-lines=*.hip=0";
    let broken = parts.broken(&[gate, "--arch=gfx942"]);
    let file = data("archs.hip");
    let line = format!(
        "gfx942: 13 of 24 lines in {} did not run, more than 0",
        file.display()
    );
    assert!(
        broken.len() == 1 && broken[0].starts_with(&line),
        "{broken:?}"
    );
}

#[test]
fn a_project_has_its_components_in_a_file() {
    let parts = Parts::new();
    let kernel = parts.lines_of_kernel();
    let write = |text: &str| {
        fs::create_dir_all(parts.place.path().join(".git")).unwrap();
        fs::write(parts.place.path().join("rocov.toml"), text).unwrap();
    };
    write(
        "[report]\nfail-under-lines = 1\n\
         [components.shapes]\nsources = ['archs.hip']\nfail-under-lines = 45\n\
         [components.kernel]\nsources = ['kernel.*', '*.none']\nfail-under-lines = 50\nfail-uncovered-lines = 0\n",
    );
    let expected = [
        format!(
            "gfx90a: 0.00% of lines in kernel ran ({kernel} of {kernel} did not run), less than 50%"
        ),
        format!("gfx90a: {kernel} of {kernel} lines in kernel did not run, more than 0"),
    ];
    let mut broken = parts.broken(&["--arch=gfx90a"]);
    broken.sort();
    assert_eq!(broken, expected);
    // The command line has another gate for all, which leaves those of components.
    let broken = parts.broken(&["--fail-under-lines=99", "--arch=gfx90a"]);
    assert_eq!(broken.len(), 3, "{broken:?}");
    let said = stdout(&parts.report(&["--arch=gfx942"]));
    let (_, table) = said.split_once("\ngfx942 by component:\n\n").unwrap();
    let rows: Vec<_> = table.lines().skip(1).collect();
    assert!(rows[0].starts_with("shapes"), "{said}");
    assert_eq!(rows.len(), 1, "{said}");

    for (text, expected) in [
        (
            "[components]\na = 1\n",
            "a is a value; write [components.a] for a table",
        ),
        (
            "[components.a]\nglobs = ['b']\n",
            "[components.a] has no globs; write sources, or a gate such as fail-under-lines",
        ),
        (
            "[components.a]\nsources = ['b']\nfail-under-lines = 101\n",
            "invalid value 'a=101' for '--fail-under-lines <[WHAT=]PERCENT>': expected 0 to 100",
        ),
    ] {
        write(text);
        let said = failure(&parts.report(&[]), 2);
        assert!(said.contains(expected), "{said}");
    }
}
