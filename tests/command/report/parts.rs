//! Components: parts of what is reported, with figures of their own.

use rocov_tests::cli::registry;
use serde_json::Value;

use super::*;
use crate::report::pages::Pages;

/// The export of llvm-cov for one device ELF and these raw profiles, with this option.
pub(crate) fn export(place: &Place, elf: &Path, profiles: &[&Path], option: &str) -> Output {
    let merged = place.path().join("expected.profdata");
    let mut merge = Command::new("llvm-profdata-22");
    merge.arg("merge").args(profiles);
    run(merge.arg("-o").arg(&merged));
    let mut export = Command::new("llvm-cov-22");
    export.args(["export", option, "-instr-profile"]);
    run(export.arg(merged).arg(elf))
}

/// The totals of llvm-cov for one device ELF and these raw profiles.
pub(crate) fn totals(place: &Place, elf: &Path, profiles: &[&Path]) -> Value {
    let export = export(place, elf, profiles, "-summary-only");
    json(export.stdout)["data"][0]["totals"].clone()
}

/// Two code objects of one arch that both have `sum_of`, and one function or kernel of their own. The
/// second lies in a program.
struct Two {
    place: Place,
    elfs: [PathBuf; 2],
    profiles: [PathBuf; 2],
    program: PathBuf,
}

impl Two {
    fn new() -> Self {
        let place = Place::new();
        let other = compile_source(
            &data("archs.hip"),
            place.path(),
            "archs.elf",
            "gfx90a",
            &INSTRUMENTED,
        );
        let bundle = compile_bundle(place.path(), &["gfx90a"], &INSTRUMENTED);
        let program = embed(&bundle, place.path());
        let kernel = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
        place.keep(&other);
        place.keep(&kernel);
        let profiles = [
            place.profile(&other, "gfx90a", 0, 5),
            place.profile(&kernel, "gfx90a", 0, 1),
        ];
        Self {
            place,
            elfs: [other, kernel],
            profiles,
            program,
        }
    }

    /// Writes a registry that says that the first code object was loaded from this file.
    fn load(&self, file: &Path) {
        let object = registry::code_object_of(&self.elfs[0], Vec::new());
        let mut load = registry::load(&object, 0x7000, 1, None);
        load.uri = format!("file://{}#offset=4096&size=4000", file.display());
        let document = registry::document(4711, &[object], vec![load]);
        registry::write(&document, &self.place.data());
    }

    fn json(&self, arguments: &[&dyn AsRef<OsStr>]) -> Value {
        let arguments: Vec<_> = [&"--json" as &dyn AsRef<OsStr>]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let output = self.place.report(&arguments);
        assert_eq!(stderr(&output), "");
        json(output.stdout)
    }
}

#[test]
fn a_component_is_what_lies_in_a_file_or_was_loaded_from_it() {
    let two = Two::new();
    let library = two.place.path().join("gone/lib one.so");
    two.load(&two.place.path().join("gone/lib%20one.so"));
    for (index, file) in [(0, &library), (1, &two.program)] {
        let found = two.json(&[&"--component", file]);
        let expected = totals(&two.place, &two.elfs[index], &[&two.profiles[index]]);
        assert_eq!(found["data"][0]["totals"], expected, "{file:?}");
        let component = &found["rocov"]["components"][0];
        assert_eq!(component["name"], *file.to_str().unwrap());
        assert_eq!(component["columns"][0]["summary"], expected, "{file:?}");
        // The registry knows the name of the first, and the option that of the second.
        let binaries = &found["rocov"]["columns"][0]["binaries"];
        assert_eq!(*binaries, serde_json::json!([file]));
    }
    let both = two.json(&[&"--component", &library, &"--component", &two.program]);
    assert_eq!(both["rocov"]["components"].as_array().unwrap().len(), 2);
    assert_eq!(both["data"], two.json(&[])["data"]);

    let output = two
        .place
        .report(&[&"--component", &library, &"--component", &two.program]);
    let said = stdout(&output);
    let (_, parts) = said.split_once("\ngfx90a by component:\n\n").unwrap();
    // All of the first ran; of the second, `else` did not.
    assert_eq!(
        columns(parts, two.program.to_str().unwrap())[1..3],
        ["10", "80.00%"]
    );
    let output = two
        .place
        .report(&[&"--markdown", &"--component", &two.program]);
    let row = format!("| `{}` | gfx90a | 80.00% (8/10) |", two.program.display());
    assert!(stdout(&output).contains(&row), "{}", stdout(&output));
    run(two
        .place
        .command()
        .args(["--html=pages", "--component"])
        .arg(&two.program));
    let pages = Pages::read(&two.place.path().join("pages"));
    let row = [two.program.to_str().unwrap(), "gfx90a", "80.00% (8/10)"];
    assert_eq!(pages.rows("index.html", "parts")[1][..3], row);
}

#[test]
fn a_component_without_code_is_refused_and_one_that_never_ran_has_no_report() {
    let two = Two::new();
    let nothing = two.place.path().join("nothing.so");
    let message = failure(&two.place.report(&[&"--component", &nothing]), 1);
    assert!(
        message.contains("no code object was loaded from"),
        "{message}"
    );
    fs::remove_file(&two.profiles[1]).unwrap();
    let message = failure(&two.place.report(&[&"--component", &two.program]), 1);
    assert!(message.contains("were not loaded"), "{message}");
    let gated = two.place.report(&[
        &"--component" as &dyn AsRef<OsStr>,
        &two.program,
        &"--fail-under-lines=1",
    ]);
    let gate = failure(&gated, 3);
    assert!(gate.starts_with("rocov: gate: no profile in "), "{gate}");
    assert!(gate.contains("were not loaded"), "{gate}");
    // Code objects of other components are not missing.
    two.load(&nothing);
    let gate: &[&dyn AsRef<OsStr>] = &[&"--fail-under-lines=1", &"--component", &nothing];
    assert_eq!(two.place.report(gate).status.code(), Some(0));
    assert_eq!(two.place.report(&gate[..1]).status.code(), Some(3));
}

#[test]
fn a_component_of_which_nothing_is_reported_is_named() {
    let two = Two::new();
    let library = two.place.path().join("gone.so");
    two.load(&library);
    fs::remove_file(&two.profiles[1]).unwrap();
    let both = [
        &"--component" as &dyn AsRef<OsStr>,
        &library,
        &"--component",
        &two.program,
    ];
    let line = format!(
        "component {}: no code object of it is reported: it is not instrumented, was not loaded on these archs, or was \
         rebuilt since; compile it with the flags that `rocov flags` prints, and run it again",
        two.program.display()
    );
    let output = two.place.report(&both);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with(&format!("rocov: {line}")), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let output = two
        .place
        .report(&[&both[..], &[&"--fail-under-lines=1"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("rocov: gate: {line}")), "{said}");
}

#[test]
fn code_objects_of_one_arch_have_their_own_counts() {
    let two = Two::new();
    two.load(Path::new("/app/first"));
    let found = two.json(&[&"--by=binary", &"--object", &two.program]);
    for (index, name) in ["gfx90a first", "gfx90a program.so"].iter().enumerate() {
        assert_eq!(found["rocov"]["columns"][index]["name"], **name);
        let expected = totals(&two.place, &two.elfs[index], &[&two.profiles[index]]);
        assert_eq!(found["data"][index]["totals"], expected, "{name}");
    }
}
