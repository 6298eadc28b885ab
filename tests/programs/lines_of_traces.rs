//! Programs without coverage flags have lines in every report, by their line tables; without debug information they have
//! functions. The expected counts follow from the source and the size of each launch.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::program::{Program, TARGET};

const KERNELS: &str = "traced/kernels.hip";

/// A program without rocov's flags.
fn plain(debug: &str) -> Program {
    Program::with_flags(Stack::usual(), &[KERNELS], &[], &[debug, "-O2"], &[])
}

/// `rocov run` on the modelled GPU.
fn rocov_run() -> Command {
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", &format!("model:{TARGET}")]);
    command
}

/// A program without rocov's flags, run once.
fn traced(debug: &str, directory: &Path, label: Option<&str>) -> PathBuf {
    let program = plain(debug);
    let data = directory.join("data");
    let mut command = rocov_run();
    command.arg("--trace");
    if let Some(label) = label {
        command.args(["--label", label]);
    }
    command.arg("-o").arg(&data).arg("--").arg(program.file);
    run(&mut command).success();
    data
}

fn rocov(subcommand: &str, directory: &Path) -> Command {
    let mut command = limited(built("rocov"));
    command.arg(subcommand).arg(directory);
    command
}

/// A report of these options, which must print no warning.
#[track_caller]
fn report(data: &Path, options: &[&str]) -> String {
    run(rocov("report", data).args(options))
        .success()
        .silently()
        .stdout
}

/// The number of the line of the source that has `text`.
fn line_of(text: &str) -> usize {
    let source = repository("testdata/programs").join(KERNELS);
    let source = std::fs::read_to_string(source).expect("the source");
    let found = source.lines().position(|line| line.contains(text));
    found.expect("a line with this text") + 1
}

/// The counts, instructions and lanes in annotated source, of the line with this text.
fn annotated(shown: &str, text: &str) -> Vec<String> {
    let line = shown
        .lines()
        .find(|line| line.contains(text))
        .expect("the line");
    let cells = line.split('|').skip(1).take(3);
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// The README's example without flags. Helper functions by which HIP 5.2 compiles are no part of the program, and clang leaves
/// them out of the coverage mapping, too.
#[test]
fn helpers_are_not_reported() {
    let config = repository("testdata/sample/debian12.cfg");
    // The functions of the program: five kernels, one of which does not run, and one that they call. Without lines, only
    // code that was not inlined is a function.
    for (debug, functions) in [("-gline-tables-only", "6"), ("-g0", "5")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (program, data) = (
            directory.path().join("plain"),
            directory.path().join("data"),
        );
        let mut clang = limited("clang++-22");
        clang.arg(format!("--config={}", config.display()));
        clang.args([debug, "-O1", "-o"]).arg(&program);
        for source in ["main.hip", "statistics.hip"] {
            clang.arg(repository("testdata/sample").join(source));
        }
        run(&mut clang).success();
        let mut command = rocov_run();
        command
            .args(["--trace", "-o"])
            .arg(&data)
            .arg("--")
            .arg(&program);
        run(&mut command).success();
        let table = report(&data, &[]);
        for part in ["debian12", "llvm.amdgcn", "__rocov", "__llvm_profile"] {
            assert!(!table.contains(part), "{debug}: {part} in {table}");
        }
        let total: Vec<&str> = table
            .lines()
            .find(|line| line.starts_with("TOTAL"))
            .expect("a total")
            .split_whitespace()
            .collect();
        assert_eq!(total[4..6], [functions, "1"], "{debug}: {table}");
    }
}

#[test]
fn lines_have_the_counts_that_the_source_gives() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = traced("-gline-tables-only", directory.path(), Some("only"));

    let table = report(&data, &[]);
    let heading = "gfx90a: 1 profile of 1 code object, counted by trace\n";
    assert!(table.starts_with(heading), "{table}");
    let total = table
        .lines()
        .find(|line| line.starts_with("TOTAL"))
        .expect("a total");
    let cells: Vec<_> = total.split_whitespace().collect();
    // Regions and branches are not known, and one of six functions never ran.
    assert_eq!(cells[1..7], ["-", "-", "-", "6", "1", "83.33%"], "{table}");
    assert_eq!(cells[10..], ["-", "-", "-"], "{table}");

    // 16 waves have 16 lanes in the branch: a quarter. 4 waves take 20 turns, lane n of a wave n of them.
    let shown = report(&data, &["--show"]);
    let turns: u64 = (0..64).map(|lane| 4 * u64::min(lane, 20)).sum();
    assert_eq!(annotated(&shown, "s_nop 1"), ["256", "16", "25%"]);
    assert_eq!(annotated(&shown, "s_nop 2"), ["1.02k", "16", "100%"]);
    let share = format!("{}%", turns * 100 / (80 * 64));
    assert_eq!(annotated(&shown, "s_nop 3")[1..], ["80".to_owned(), share]);
    assert_eq!(annotated(&shown, "void never_launched")[..2], ["0", ""]);

    let lcov = report(&data, &["--lcov"]);
    for (text, count) in [
        ("s_nop 1", 256),
        ("s_nop 3", turns),
        ("void never_launched", 0),
    ] {
        let record = format!("DA:{},{count}\n", line_of(text));
        assert!(lcov.contains(&record), "{record} in {lcov}");
    }
    assert!(lcov.contains("FNDA:256,_Z6calledi\n"), "{lcov}");
    assert!(
        lcov.contains("BRF:0\n") && !lcov.contains("BRDA:"),
        "{lcov}"
    );
    let cobertura = report(&data, &["--cobertura"]);
    let unknown = "branch-rate=\"0.0000\"";
    let rates = cobertura.matches("branch-rate=").count();
    assert_eq!(cobertura.matches(unknown).count(), rates, "{cobertura}");
    let gated = run(rocov("report", &data).args(["--fail-under-branches", "1"]));
    assert_eq!(gated.status.code(), Some(3), "{gated}");
    assert!(gated.stderr.contains("branches are not known"), "{gated}");
    let gated = run(rocov("report", &data).arg("--fail-uncovered-kernels"));
    assert!(
        gated
            .stderr
            .contains("kernel never_launched(int*) did not run"),
        "{gated}"
    );

    // A saved report has the counts of the data directory.
    let saved = directory.path().join("saved.json");
    std::fs::write(&saved, report(&data, &["--json"])).expect("a report");
    let mut diff = limited(built("rocov"));
    diff.arg("diff")
        .arg(&saved)
        .arg(&data)
        .arg("--fail-on-loss");
    let diff = run(&mut diff).success().stdout;
    assert!(diff.contains('=') && !diff.contains("Newly"), "{diff}");
    let pages = directory.path().join("pages");
    report(&data, &["--per-test", "--html", &pages.to_string_lossy()]);
    let source = std::fs::read_dir(pages.join("source"))
        .expect("pages")
        .next();
    let source =
        std::fs::read_to_string(source.expect("one").expect("a page").path()).expect("a page");
    assert!(source.contains("few-lanes\">25%<"), "{source}");

    let source = repository("testdata/programs").join(KERNELS);
    let place = format!("{}:{}", source.display(), line_of("s_nop 1"));
    let which: Ended = run(limited(built("rocov")).args(["which", &place]).arg(&data));
    assert!(
        which.stdout.contains("only") && which.stdout.contains("256"),
        "{which}"
    );
    let merged = directory.path().join("merged");
    let mut merge = rocov("merge", &data);
    run(merge.arg("--pooled").arg(&merged)).success();
    assert_eq!(report(&merged, &["--lcov"]), lcov);
    // clang would find no function in a profile for it.
    let mut merge = rocov("merge", &data);
    let optimized = run(merge.arg("--pgo").arg(directory.path().join("pgo"))).with_status(1);
    optimized.says(&[
        "which clang cannot use to optimize: compile with the flags that `rocov flags` prints",
    ]);
}

#[test]
fn code_without_debug_information_has_functions_and_instructions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = traced("-g0", directory.path(), None);
    let table = report(&data, &[]);
    let total = table
        .lines()
        .find(|line| line.starts_with("TOTAL"))
        .expect("a total");
    let cells: Vec<_> = total.split_whitespace().collect();
    assert_eq!(
        cells[1..10],
        ["-", "-", "-", "6", "1", "83.33%", "-", "-", "-"],
        "{table}"
    );
    assert!(table.contains("without-lines-"), "{table}");
    let pages = directory.path().join("pages");
    report(&data, &["--html", &pages.to_string_lossy()]);
    let page = |folder: &str, start: &str| {
        let mut files = std::fs::read_dir(pages.join(folder))
            .expect("pages")
            .flatten();
        let file = files.find(|file| file.file_name().to_string_lossy().starts_with(start));
        std::fs::read_to_string(file.expect("a page").path()).expect("a page")
    };
    let index = page("", "index");
    assert!(
        index.contains("<footer>Counted by trace, by rocov"),
        "{index}"
    );
    assert!(index.contains("</ul>counted by trace</dd>"), "{index}");
    // A kernel's calls stand next to its name.
    let names = page("source", "without-lines-");
    let line = names
        .lines()
        .find(|line| line.starts_with("<tr id=") && line.contains("straight("));
    assert!(line.expect("its line").contains("1000"), "{line:?}");
    let cobertura = run(rocov("report", &data).arg("--cobertura")).success();
    for rate in ["line-rate", "branch-rate"] {
        let unknown = format!("{rate}=\"0.0000\"");
        assert!(cobertura.stdout.contains(&unknown), "{cobertura}");
    }
    let gated = run(rocov("report", &data).arg("--fail-uncovered-kernels")).with_status(3);
    assert!(
        gated
            .stderr
            .ends_with("kernel never_launched(int*) did not run\n"),
        "{gated}"
    );
    let shown = report(&data, &["--show"]);
    assert_eq!(annotated(&shown, "never_launched(int*)")[0], "0");
    assert_eq!(annotated(&shown, "|straight(int*)")[0], "1.00k");
    let lcov = run(rocov("report", &data).arg("--lcov")).success();
    assert_eq!(lcov.stdout, "");
    lcov.says(&[
        "the report is empty, because no code has a line table: compile with -gline-tables-only",
    ]);
    let lines = "lines are not known, because no code has a line table; leave out the gate, or compile with";
    let mut gated = rocov("report", &data);
    run(gated.args(["--fail-under-lines", "1"]))
        .with_status(3)
        .says(&[lines]);
    run(rocov("report", &data).args(["--fail-under-functions", "80"])).success();
    let kernels = run(&mut rocov("kernels", &data))
        .success()
        .silently()
        .stdout;
    let straight = kernels.lines().find(|line| line.contains("straight(int*)"));
    let cells: Vec<_> = straight.expect("a kernel").split_whitespace().collect();
    assert_eq!(cells[10..12], ["1000", "-"], "{kernels}");

    // Another build has another identity.
    let saved = report(&data, &["--json"]);
    let at = saved.find("without-lines-").expect("its source") + "without-lines-".len();
    let identity = &saved[at..at + 32];
    let other = directory.path().join("other.json");
    let other_build = saved.replace(identity, &"0".repeat(32));
    std::fs::write(&other, &other_build).expect("a report");
    let diff = |after: &Path| {
        let mut diff = limited(built("rocov"));
        diff.arg("diff").arg(&data).arg(after);
        run(diff.arg("--fail-on-loss"))
    };
    let text = diff(&other).success().silently().stdout;
    assert!(text.ends_with("83.33% (5/6)       =\n"), "{text}");
    let idle = directory.path().join("idle.json");
    let unlaunched = other_build.replace("straight", "crooked");
    std::fs::write(&idle, unlaunched).expect("a report");
    let text = diff(&idle).success().stdout;
    let gone = "Functions that ran before, but are gone:\n  kernel straight(int*), on gfx90a\n";
    assert!(text.contains(gone), "{text}");

    let mut show = limited(built("rocov"));
    show.args(["show", "--disassemble", "branch"]).arg(&data);
    let listing = run(&mut show).success().silently().stdout;
    let executed = |instruction: &str| {
        let line = listing
            .lines()
            .find(|line| line.contains(instruction))
            .unwrap_or_else(|| panic!("{instruction} in {listing}"));
        let numbers = line
            .split_whitespace()
            .take(2)
            .map(|word| word.parse::<u64>());
        numbers
            .collect::<Result<Vec<_>, _>>()
            .expect("waves and lanes")
    };
    assert_eq!(executed("s_nop 1 "), [16, 256]);
    assert_eq!(executed("s_nop 2 "), [16, 1024]);
    let mut show = limited(built("rocov"));
    show.args(["show", "--disassemble", "absent"]).arg(&data);
    let absent = run(&mut show);
    assert_eq!(absent.status.code(), Some(1), "{absent}");
    assert!(
        absent.stderr.contains("contains a function absent"),
        "{absent}"
    );
}

/// A coverage mapping and a line table know different lines of the kernels, so a comparison of the two has functions only.
#[test]
fn lines_of_other_kinds_are_not_compared() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let counted = Program::build(Stack::usual(), &[KERNELS], &[], &[]).file;
    let plain = plain("-gline-tables-only").file;
    for (name, program, trace, launches) in [
        ("counted", &counted, None, "1"),
        ("both", &counted, Some("--trace"), "1"),
        ("traced", &plain, Some("--trace"), "1"),
        ("idle", &plain, Some("--trace"), "0"),
    ] {
        let mut command = rocov_run();
        command.args(trace).arg("-o").arg(place.path().join(name));
        run(command.arg("--").arg(program).arg(launches)).success();
    }
    let diff = |after: &str, options: &[&str]| {
        let mut diff = rocov("diff", Path::new("counted"));
        run(diff.current_dir(place.path()).arg(after).args(options))
    };

    let text = diff("traced", &["--fail-on-loss"])
        .success()
        .silently()
        .stdout;
    let heading = "Counted differently, so totals are not compared:\n";
    // The host's main is no code of the GPU.
    let kinds = "  gfx90a: coverage mapping -> trace; 6 functions whose lines are not compared\n";
    assert!(text.ends_with(&format!("\n{heading}{kinds}")), "{text}");
    for line in text.lines().filter(|line| line.starts_with("gfx90a ")) {
        assert!(line.ends_with(" -"), "{line} in {text}");
    }
    let saved = json(diff("traced", &["--json"]).success().silently().stdout);
    assert_eq!(saved["totals"][0]["kinds"]["before"][0], "mapping");
    assert_eq!(saved["totals"][0]["kinds"]["after"][0], "trace");
    assert_eq!(saved["other_kinds"][0]["not_compared"], 6);

    // A coverage mapping describes each function before and after.
    let text = diff("both", &["--fail-on-loss"])
        .success()
        .silently()
        .stdout;
    let kinds = "  gfx90a: coverage mapping -> coverage mapping, trace\n";
    assert!(text.ends_with(&format!("\n{heading}{kinds}")), "{text}");
    // Without a line table, the trace tells nothing of them that the mapping does not.
    let table = report(&place.path().join("both"), &[]);
    let functions = |table: &str| -> String {
        let total = table.lines().find(|line| line.starts_with("TOTAL"));
        let cells = total.expect("a total").split_whitespace().skip(4).take(3);
        cells.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(functions(&table), "6 1 83.33%", "{table}");

    let idle = diff("idle", &["--fail-on-loss"]).with_status(3);
    for name in [
        "straight(int*)",
        "branch(int*)",
        "turns(int*, int)",
        "calls(int*)",
    ] {
        let line = format!("gate: gfx90a: kernel {name} no longer runs");
        assert!(idle.stderr.contains(&line), "{idle}");
    }
    assert!(!idle.stderr.contains("lines"), "{idle}");
}

/// A function that one code object has in its coverage mapping and another in its line table is one function.
#[test]
fn both_kinds_of_a_function_are_joined() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    let counted = Program::build(Stack::usual(), &[KERNELS], &[], &[]).file;
    let plain = plain("-gline-tables-only").file;
    let total = || -> Vec<String> {
        let table = report(&data, &["--all-builds"]);
        let total = table.lines().find(|line| line.starts_with("TOTAL"));
        let cells = total.expect("a total").split_whitespace();
        cells.map(str::to_owned).collect()
    };
    let mut command = rocov_run();
    command.args(["--label", "counted", "-o"]).arg(&data);
    run(command.arg("--").arg(counted)).success();
    let alone = total();
    let mut command = rocov_run();
    command
        .args(["--trace", "--label", "traced", "-o"])
        .arg(&data);
    run(command.arg("--").arg(plain)).success();
    // All lines of the line table are in the coverage mapping, and ran by both.
    assert_eq!(total(), alone);

    // Each test has all functions that the other has.
    let table = report(&data, &["--all-builds", "--per-test"]);
    for test in ["counted ", "traced "] {
        let row = table.lines().find(|line| line.starts_with(test));
        let cells: Vec<_> = row.expect("a test").split_whitespace().collect();
        assert_eq!(cells[8], "0", "{table}");
    }
    let lcov = report(&data, &["--all-builds", "--lcov"]);
    assert!(lcov.contains("FNF:6\nFNH:5\n"), "{lcov}");
    // A kernel ran if it did by one of its kinds.
    let mut gated = rocov("report", &data);
    gated.args([
        "--all-builds",
        "--label",
        "traced",
        "--fail-uncovered-kernels",
    ]);
    let gated = run(&mut gated).with_status(3);
    let missed: Vec<_> = gated.stderr.lines().collect();
    assert_eq!(missed.len(), 1, "{gated}");
    assert!(
        missed[0].contains("kernel never_launched(int*) did not run"),
        "{gated}"
    );

    let source = repository("testdata/programs").join(KERNELS);
    let place = format!("{}:{}", source.display(), line_of("s_nop 1"));
    let mut which = limited(built("rocov"));
    which.args(["which", "--all-builds", &place]).arg(&data);
    let which = run(&mut which).success().stdout;
    let rows: Vec<Vec<&str>> = which
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[2..],
        [["counted", "256"], ["traced", "256"]],
        "{which}"
    );

    let mut diff = rocov("diff", &data);
    diff.args(["--label", "counted", "--label", "traced"]);
    let diff = run(diff.args(["--all-builds", "--fail-on-loss"])).success();
    let kinds = "coverage mapping, trace";
    let line = format!("  gfx90a: {kinds} -> {kinds}; 5 functions whose lines are not compared\n");
    assert!(diff.stdout.ends_with(&line), "{diff}");
}
