//! Reports of a source that is not the same on the archs that ran it.

use serde_json::Value;

use super::*;

const ARCHS: [&str; 2] = ["gfx90a", "gfx942"];

/// The counts of the functions of `archs.hip`, in the order of their counters.
const COUNTS: [(&str, [&[u64]; 2]); 5] = [
    ("_Z6scaledi", [&[4], &[2, 2]]),
    ("scale", [&[6, 4], &[2, 2]]),
    ("add", [&[3], &[0]]),
    ("_Z3sumIiET_S0_S0_", [&[3, 0], &[0, 0]]),
    ("_Z3sumIdET_S0_S0_", [&[3, 3], &[0, 0]]),
];

/// The lines of each arch, worked out by hand: numbers of the first and the last line, and the count of
/// each of them on each arch, none where it has no code there.
const LINES: [(u32, u32, [Option<u64>; 2]); 13] = [
    (5, 5, [Some(4), Some(2)]),
    (6, 9, [None, Some(2)]),
    (11, 12, [Some(4), None]),
    // On gfx942 the return before it was always taken.
    (13, 13, [Some(4), Some(0)]),
    (14, 14, [Some(4), Some(2)]),
    // Two instances of a template are one in the file.
    (16, 17, [Some(6), Some(0)]),
    (18, 20, [Some(3), Some(0)]),
    (21, 21, [Some(6), Some(0)]),
    (23, 24, [Some(6), Some(2)]),
    (25, 26, [Some(4), Some(2)]),
    (27, 28, [Some(2), Some(0)]),
    (29, 29, [Some(6), Some(2)]),
    (31, 34, [Some(3), Some(0)]),
];

/// A place with data of `archs.hip`.
pub(crate) trait Archs: Sized {
    /// Data on both archs; the device ELFs.
    fn with_archs() -> (Self, [PathBuf; 2]);
    /// The output of `rocov report ARGUMENTS` for them.
    fn of_archs(&self, elfs: &[PathBuf; 2], arguments: &[&str]) -> String;
}

impl Archs for Place {
    fn with_archs() -> (Self, [PathBuf; 2]) {
        let place = Self::new();
        let elfs = [0, 1].map(|index| {
            let (arch, source) = (ARCHS[index], data("archs.hip"));
            let name = format!("{arch}.elf");
            let elf = compile_source(&source, place.path(), &name, arch, &INSTRUMENTED);
            let count = |function: &str, number: u64| {
                let counts = COUNTS.iter().find(|(name, _)| *name == function);
                let counts = counts.unwrap_or_else(|| panic!("no counts for {function}"));
                counts.1[index][usize::try_from(number).unwrap()]
            };
            let path = place.profile_path(&elf, arch, 0);
            profile::write_counts(&elf, &count, RAW_VERSION, &path);
            elf
        });
        (place, elfs)
    }

    fn of_archs(&self, elfs: &[PathBuf; 2], arguments: &[&str]) -> String {
        let mut command = self.command();
        command.args(arguments).arg("--object").args(elfs);
        let output = run(&mut command);
        assert_eq!(stderr(&output), "");
        stdout(&output)
    }
}

/// Lines and counts, as LCOV has them, of a sum over archs.
pub(crate) fn expected_lines(count: fn(&[Option<u64>; 2]) -> Option<u64>) -> Vec<(u32, u64)> {
    let lines = LINES.iter().flat_map(|(first, last, counts)| {
        let count = count(counts);
        (*first..=*last).filter_map(move |line| Some((line, count?)))
    });
    lines.collect()
}

/// The lines and counts of a tracefile.
pub(crate) fn lcov_lines(tracefile: &str) -> Vec<(u32, u64)> {
    let records = tracefile
        .lines()
        .filter_map(|line| line.strip_prefix("DA:"));
    let parsed = records.map(|record| {
        let (line, count) = record.split_once(',').unwrap();
        (line.parse().unwrap(), count.parse().unwrap())
    });
    parsed.collect()
}

#[test]
fn each_arch_has_the_counts_of_its_lines_and_all_have_the_sums() {
    let (place, elfs) = Place::with_archs();
    let of = |arguments: &[&str]| lcov_lines(&place.of_archs(&elfs, arguments));
    assert_eq!(
        of(&["--lcov", "--arch=gfx90a"]),
        expected_lines(|counts| counts[0])
    );
    assert_eq!(
        of(&["--lcov", "--arch=gfx942"]),
        expected_lines(|counts| counts[1])
    );
    let sum = |counts: &[Option<u64>; 2]| counts.iter().flatten().copied().reduce(|a, b| a + b);
    assert_eq!(of(&["--lcov"]), expected_lines(sum));
    let both = ["--lcov", "--arch=gfx90a", "--arch=gfx942"];
    assert_eq!(of(&both), of(&["--lcov"]));
}

#[test]
fn the_table_says_which_arch_misses_which_line() {
    let (place, elfs) = Place::with_archs();
    let said = place.of_archs(&elfs, &[]);
    let (_, differences) = said.split_once("\nLines that ran elsewhere:\n").unwrap();
    let missed = "not on gfx942: 13, 16-21, 27-28, 31-34";
    // By the name from the directory that all sources are in.
    assert_eq!(differences, format!("  archs.hip, {missed}\n"));
    // One of the template's instances missed `return b` and its brace, the other the last return. Together they ran
    // all lines. By the rules of llvm-cov, the one that missed less counts for both.
    let by_llvm_cov = place.of_archs(&elfs, &["--as-llvm-cov"]);
    for (said, missed) in [(said, ["0", "13", "0"]), (by_llvm_cov, ["1", "13", "1"])] {
        let (first, rest) = said.split_once("gfx942: 1 profile of").unwrap();
        let (second, all) = rest.split_once("all: gfx90a, gfx942\n").unwrap();
        assert_eq!(total_lines(first), ("22", missed[0]), "{said}");
        assert_eq!(total_lines(second), ("24", missed[1]), "{said}");
        assert_eq!(total_lines(all), ("26", missed[2]), "{said}");
    }
}

#[test]
fn the_figures_of_each_arch_are_those_of_llvm_cov() {
    let (place, elfs) = Place::with_archs();
    let text = place.of_archs(&elfs, &["--json", "--as-llvm-cov"]);
    let found: Value = serde_json::from_str(&text).unwrap();
    let percent = &found["data"][0]["totals"]["lines"]["percent"];
    assert!((percent.as_f64().unwrap() - 2100.0 / 22.0).abs() < 1e-9);
    let found = json(text);
    for (index, (arch, elf)) in ARCHS.iter().zip(&elfs).enumerate() {
        let merged = profile::indexed(&place.data(), arch);
        let mut export = Command::new("llvm-cov-22");
        export.arg("export").arg("-instr-profile").arg(merged);
        let expected = json(run(export.arg(elf)).stdout);
        assert_eq!(found["data"][index], expected["data"][0], "{arch}");
        assert_eq!(found["rocov"]["columns"][index]["name"], *arch);
    }
    let options = ["--json", "--summary-only", "--as-llvm-cov"];
    let summary = json(place.of_archs(&elfs, &options));
    for index in [0, 1] {
        let (summary, whole) = (&summary["data"][index], &found["data"][index]);
        assert_eq!(summary["totals"], whole["totals"]);
        assert_eq!(summary["files"][0]["summary"], whole["files"][0]["summary"]);
        assert_eq!(summary["functions"], Value::Null);
        assert_eq!(summary["files"][0]["segments"], Value::Null);
    }
}

#[test]
fn an_arch_without_a_profile_is_named() {
    let (place, elfs) = Place::with_archs();
    let output = place.report(&[&"--arch=gfx1100", &"--object", &elfs[0]]);
    let message = failure(&output, 1);
    assert!(message.contains("no profile of gfx1100"), "{message}");
    assert!(message.contains("gfx90a, gfx942"), "{message}");
}
