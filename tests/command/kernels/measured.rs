//! Counts and lines, against what LLVM's tools say in other ways.

use std::fs;
use std::path::{Path, PathBuf};

use rocov_tests::cli::device::{
    CLANG, INSTRUMENTED, compile, compile_bundle, compile_source, embed,
};
use rocov_tests::cli::registry::{code_object_of, document, kernel, load, write};
use rocov_tests::cli::{data, profile};

use super::*;

/// A place with the registry, the kept ELF and profiles of both kernels, whose source is gone.
fn measured(place: &Place, counts: &[u64]) -> PathBuf {
    let source = place.path().join("kernels.hip");
    fs::copy(data("kernels.hip"), &source).unwrap();
    let elf = compile_source(
        &source,
        place.path(),
        "kernels.elf",
        "gfx90a",
        &INSTRUMENTED,
    );
    fs::remove_file(source).unwrap();
    let object = code_object_of(&elf, vec![kernel(SCALE, 0), kernel(FILL, 1)]);
    let loads = vec![load(&object, 0x1000, 1, None)];
    write(&document(7, &[object], loads), &place.data());
    for (agent, count) in (0..).zip(counts) {
        place.profile(&elf, "gfx90a", agent, *count);
    }
    place.keep(&elf)
}

fn tool(name: &str) -> Command {
    Command::new(CLANG.replace("clang++", name))
}

/// The counts of a function in all profiles, by llvm-profdata.
fn count_of(place: &Place, symbol: &str) -> u64 {
    let mut merge = tool("llvm-profdata");
    let merged = place.path().join("all.profdata");
    let profiles = fs::read_dir(place.data())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_profile = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "profraw")
    };
    run(merge
        .arg("merge")
        .args(profiles.filter(is_profile))
        .arg("-o")
        .arg(&merged));
    let mut show = tool("llvm-profdata");
    let shown = run(show.args(["show", "--function", symbol]).arg(&merged));
    let shown = stdout(&shown);
    let (_, count) = shown.split_once("Function count: ").unwrap();
    count.lines().next().unwrap().parse().unwrap()
}

/// Lines with code, and those that ran, between two lines of the source, as lcov has them.
fn lines_between(place: &Place, elf: &Path, first: u64, last: u64) -> (usize, usize) {
    let merged = place.path().join("all.profdata");
    let mut export = tool("llvm-cov");
    let lcov = run(export
        .args(["export", "-format=lcov", "-instr-profile"])
        .args([&merged, elf]));
    let lcov = stdout(&lcov);
    let lines = lcov
        .lines()
        .filter_map(|line| line.strip_prefix("DA:")?.split_once(','));
    let lines = lines.map(|(line, count)| (line.parse::<u64>().unwrap(), count != "0"));
    let lines: Vec<_> = lines
        .filter(|(line, _)| (first..=last).contains(line))
        .collect();
    (lines.len(), lines.iter().filter(|(_, ran)| *ran).count())
}

#[test]
fn counts_and_lines_are_those_of_llvm() {
    let place = Place::new();
    let elf = measured(&place, &[3, 4]);
    let json = json(&run(&mut command(&place, &["--json", "--sort", "kernel"])));
    for (row, symbol, first, last) in [(0, SCALE, 4, 10), (1, FILL, 13, 15)] {
        let kernel = &json["kernels"][row];
        assert_eq!(kernel["name"], symbol);
        assert_eq!(kernel["count"], count_of(&place, symbol), "{symbol}");
        assert_eq!(kernel["count"], 7, "{symbol}");
        let (total, covered) = lines_between(&place, &elf, first, last);
        assert_eq!(kernel["lines"]["total"], total, "{symbol}");
        assert_eq!(kernel["lines"]["covered"], covered, "{symbol}");
        assert!(
            covered > 0 && (symbol == FILL || covered < total),
            "{symbol}"
        );
    }
    let table = table(&place, &["--sort", "lines"]);
    let rows: Vec<_> = table.lines().collect();
    assert!(
        rows[1].contains("    7  3/3 100%  void fill<int>(int*, int)"),
        "{table}"
    );
    assert!(
        rows[2].contains("    7  5/7  71%  scale(float*, float)"),
        "{table}"
    );
}

#[test]
fn kernels_that_never_ran_can_be_asked_for() {
    let place = Place::new();
    measured(&place, &[0]);
    assert_eq!(names(&place, &["--uncovered"]), [SCALE, FILL]);
    assert!(table(&place, &[]).contains("   0  0/3   0%"));
    place.profile(&place.path().join("kernels.elf"), "gfx90a", 1, 1);
    let output = run(&mut command(&place, &["--uncovered"]));
    assert_eq!(stdout(&output).lines().count(), 1);
    assert_eq!(
        stderr(&output),
        "rocov: none of 2 kernels is listed: leave out --uncovered to list more\n"
    );
}

#[test]
fn kernels_that_are_excluded_need_not_run() {
    let place = Place::new();
    measured(&place, &[0]);
    let output = run(&mut command(
        &place,
        &["--uncovered", "--mangled", "--exclude-function=^scale"],
    ));
    let listed = stdout(&output);
    assert!(listed.contains(FILL) && !listed.contains(SCALE), "{listed}");
    assert_eq!(
        stderr(&output),
        "rocov: 1 kernel that never ran is excluded: leave out --uncovered to list all kernels\n"
    );
    // All kernels are listed, with the reason.
    let json = json(&run(&mut command(
        &place,
        &["--json", "--exclude-function=^scale"],
    )));
    let kernels = json["kernels"].as_array().unwrap();
    let scale = kernels
        .iter()
        .find(|kernel| kernel["name"] == SCALE)
        .unwrap();
    assert_eq!(scale["excluded"], "--exclude-function ^scale");
}

/// A program for two archs that ran on one of them.
#[test]
fn kernels_for_an_arch_that_nothing_ran_on_can_be_asked_for() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &INSTRUMENTED);
    let program = embed(&bundle, place.path());
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let object = code_object_of(&elf, vec![kernel("kernel", 0)]);
    let loads = vec![load(&object, 0x1000, 1, None)];
    write(&document(7, &[object], loads), &place.data());
    place.profile(&elf, "gfx90a", 0, 1);
    place.keep(&elf);
    let object = format!("--object={}", program.display());
    let listed = |arguments: &[&str]| {
        let output = run(&mut command(
            &place,
            &[arguments, &["--json", &object]].concat(),
        ));
        let json = json(&output);
        let kernels = json["kernels"].as_array().unwrap().iter();
        let kernels = kernels.map(|kernel| (kernel["target"].to_string(), kernel["count"].clone()));
        kernels.collect::<Vec<_>>()
    };
    let never = [("\"gfx942\"".to_owned(), Value::from(0))];
    assert_eq!(listed(&["--uncovered"]), never);
    assert_eq!(listed(&["--arch=gfx942"]), never);
    assert_eq!(listed(&[]).len(), 1);
    assert_eq!(listed(&["--uncovered", "--exclude-function=^kernel"]), []);
}

#[test]
fn what_cannot_be_measured_is_said_and_the_rest_listed() {
    let place = Place::new();
    let elf = measured(&place, &[1]);
    let profile = profile::identity(&elf);
    fs::remove_file(&elf).unwrap();
    let output = command(&place, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("rocov: left out: ") && said.contains(&profile),
        "{said}"
    );
    assert!(stdout(&output).contains("    -      -  scale(float*, float)"));

    // With the file that it came from.
    let elf = place.path().join("kernels.elf");
    let output = run(command(&place, &["--object"]).arg(&elf));
    assert_eq!(stderr(&output), "");
    assert!(stdout(&output).contains("  scale(float*, float)"));

    let mut without_tools = command(&place, &["--llvm-bin", "/etc", "--object"]);
    let output = without_tools.arg(&elf).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("left out: counts and lines: no llvm-profdata"));
}
