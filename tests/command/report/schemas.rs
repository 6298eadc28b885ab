//! JSON of commands, held to the schemas in the book.

use rocov_tests::cli::registry;
use rocov_tests::schemas::validate;

use super::*;
use crate::report::per_test::Labelled;
use crate::report::repository::Repository;

#[test]
fn each_document_is_as_its_schema_says() {
    // A report with components, changed lines, and an arch of an earlier run.
    let repository = Repository::with_change("src/kernel.hip");
    let source = repository.root.join("src/kernel.hip");
    repository.ran_on_both(&source);
    let write = |subcommand: &str, arguments: &[&str]| {
        let mut command = rocov();
        command.current_dir(&repository.root).arg(subcommand);
        run(command.args(arguments)).stdout
    };
    let data = "../rocov-data";
    let components = "--component-sources=all=*.hip";
    let whole = write("report", &[data, "--json"]);
    fs::write(repository.place.path().join("whole.json"), &whole).unwrap();
    write("baseline", &[data, components, "-o", "../baseline.json"]);
    let baseline = fs::read(repository.place.path().join("baseline.json")).unwrap();
    let gfx90a = [data, "--arch=gfx90a", "--json"];
    let one = write("report", &gfx90a);
    fs::write(repository.place.path().join("one.json"), &one).unwrap();
    let excluded = write("report", &[data, "--exclude-line=never", "--json"]);
    let difference = write("diff", &["../whole.json", "../one.json", "--json"]);
    let carried = "../carried.json";
    write("baseline", &["../one.json", "-o", carried]);
    let text = fs::read_to_string(repository.place.path().join("carried.json")).unwrap();
    let text = text.replace("gfx90a", "gfx1100");
    fs::write(repository.place.path().join("carried.json"), text).unwrap();
    let carry = format!("--carry-forward={carried}");
    let changed = [
        "report",
        data,
        components,
        "--diff=HEAD~1",
        &carry,
        "--json",
        "--summary-only",
    ];
    let changed = write(changed[0], &changed[1..]);

    // Tests, and the lines that they reach.
    let labelled = Labelled::new();
    labelled.add_all();
    let Labelled { place, elf } = labelled;
    let tests = run(place
        .command()
        .args(["--per-test", "--json", "--summary-only"]))
    .stdout;
    let mut which = rocov();
    let line = format!("{}:24", crate::report::data("archs.hip").display());
    let which = which
        .current_dir(place.path())
        .args(["which", &line, "--json"]);
    let which = which.output().unwrap().stdout;
    let object = registry::code_object_of(&elf, vec![registry::kernel("scale", 1)]);
    let load = registry::load(&object, 0x7000, 1, None);
    registry::write(
        &registry::document(4711, &[object], vec![load]),
        &place.data(),
    );
    let kernels = |arguments: &[&str]| {
        let mut command = rocov();
        command
            .current_dir(place.path())
            .args(["kernels", "--json"]);
        command.args(arguments).output().unwrap().stdout
    };
    let listed = kernels(&[]);
    let addresses = kernels(&["--address=0x7010"]);
    let mut doctor = rocov();
    let doctor = doctor.args(["doctor", "--json"]).output().unwrap().stdout;

    validate(&[
        ("report", &whole),
        ("report", &excluded),
        ("report", &changed),
        ("report", &tests),
        ("baseline", &baseline),
        ("diff", &difference),
        ("which", &which),
        ("kernels", &listed),
        ("kernels", &addresses),
        ("doctor", &doctor),
    ]);
}
