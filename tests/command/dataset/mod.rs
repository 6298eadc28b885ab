//! Data sets: runs that the tests make up, exported to Parquet files and read back. The raw profiles are the judge, by
//! `rocov report`, `rocov merge` and llvm-profdata; DuckDB and pyarrow read the files without code of rocov.

mod damage;
mod earlier;
mod importers;
mod kinds;
mod query;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rocov_tests::cli::device::{INSTRUMENTED, compile_source};
use rocov_tests::cli::registry::{code_object_of, document, load, write};
use rocov_tests::cli::{data, profile, rocov, run, stderr, stdout};
use tempfile::TempDir;

/// The raw version of the tests' compiler.
const RAW_VERSION: u64 = 10;

/// The commit of most runs.
const COMMIT: &str = "1a2b3c";

/// A time on 2026-11-24, in nanoseconds since 1970. The run of process 1 is of the next day, and so on.
const FIRST_DAY: u64 = 1_795_500_000_000_000_000;
/// The nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// Runs on two archs, each with its data directory.
struct Fleet {
    place: TempDir,
    /// The device ELFs of each arch.
    elfs: Vec<(&'static str, PathBuf)>,
}

impl Fleet {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut elfs = Vec::new();
        for (arch, source) in [
            ("gfx90a", "archs.hip"),
            ("gfx90a", "kernel.hip"),
            ("gfx942", "archs.hip"),
        ] {
            let name = format!("{arch}-{source}.elf");
            let elf = compile_source(&data(source), place.path(), &name, arch, &INSTRUMENTED);
            elfs.push((arch, elf));
        }
        Self { place, elfs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Writes the data directory of process `pid`: profiles without a label, and of two tests.
    fn run(&self, name: &str, pid: u32) -> PathBuf {
        let directory = self.path(name);
        let mut loads = Vec::new();
        let mut objects = Vec::new();
        for (number, (arch, elf)) in self.elfs.iter().enumerate() {
            let identity = profile::identity(elf);
            let kept = directory
                .join("objects")
                .join(format!("{arch}.{identity}.elf"));
            fs::create_dir_all(kept.parent().unwrap()).unwrap();
            fs::copy(elf, kept).unwrap();
            let labels = [
                "",
                "labels/unit%20tests/scale",
                "labels/add",
                "labels/add&b",
            ];
            for (label, directory_of) in labels.iter().enumerate() {
                // No counts at all, of some.
                let counts = |function: &str, index: u64| match (label + function.len()) % 3 {
                    0 => 0,
                    other => (u64::from(pid) * 7 + index * 3) * other as u64 % 11,
                };
                let profiles = directory.join("profraw").join(directory_of);
                fs::create_dir_all(&profiles).unwrap();
                let path = profiles.join(format!("{arch}.{identity}.{number}.{pid}.profraw"));
                profile::write_counts(elf, &counts, RAW_VERSION, &path);
            }
            let mut object = code_object_of(elf, Vec::new());
            object.target = (*arch).to_owned();
            let mut load = load(&object, 0x1000, number as u64 + 1, None);
            load.agent = usize::from(*arch != "gfx90a");
            loads.push(load);
            objects.push(object);
        }
        let mut registry = document(pid, &objects, loads);
        let process = &mut registry.processes[0];
        let mut agent = process.agents[0].clone();
        (agent.index, agent.name) = (1, "gfx942".to_owned());
        process.agents.push(agent);
        process.epoch = FIRST_DAY + u64::from(pid) * DAY;
        let registries = directory.join("registry");
        fs::create_dir_all(&registries).unwrap();
        write(&registry, &registries);
        directory
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = rocov();
        command.current_dir(self.place.path()).args(arguments);
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it. It must succeed without messages on standard error. Returns its standard output.
    fn done(&self, arguments: &[&str]) -> String {
        let output = run(&mut self.command(arguments));
        assert_eq!(stderr(&output), "", "{arguments:?}");
        stdout(&output)
    }

    /// Adds runs to the data set `set`.
    fn import(&self, runs: &[&str]) -> String {
        let options = ["--format", "parquet", "-o", "set", "--commit", COMMIT];
        self.done(&[&["export"], runs, &options].concat())
    }
}

/// The files in a directory and those below, by their paths from there, with their contents.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_data_set_gives_back_the_merge_of_its_runs() {
    let fleet = Fleet::new();
    for pid in 1..=4 {
        fleet.run(&format!("run{pid}"), pid);
    }
    let runs = ["run1", "run2", "run3", "run4"];
    assert_eq!(
        fleet.import(&runs),
        format!("set: 4 runs of commit {COMMIT} added\n")
    );
    fleet.done(&[&["merge"], &runs[..], &["--per-test", "--pooled", "merged"]].concat());
    let exported = fleet.done(&["export", "set", "--format", "profraw", "-o", "back"]);
    assert_eq!(exported, "back: 48 profiles of 4 runs\n");
    let (merged, back) = (
        contents(&fleet.path("merged")),
        contents(&fleet.path("back")),
    );
    let names =
        |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&back), names(&merged));
    assert!(merged.len() > 12, "profiles, device ELFs and the registry");
    for (one, other) in back.iter().zip(&merged) {
        assert!(one == other, "{}", one.0.display());
    }
    // llvm-profdata adds up the raw profiles themselves.
    let sums = |directories: &[&str]| {
        let all = directories
            .iter()
            .flat_map(|directory| contents(&fleet.path(directory)));
        let is_profile = |path: &Path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("gfx90a.") && name.ends_with(".profraw")
        };
        let profiles = all
            .filter(|(name, _)| is_profile(name))
            .map(|(_, bytes)| bytes);
        let place = tempfile::tempdir().unwrap();
        let mut merge = Command::new("llvm-profdata-22");
        merge
            .arg("merge")
            .arg("-o")
            .arg(place.path().join("all.profdata"));
        for (number, bytes) in profiles.enumerate() {
            let path = place.path().join(format!("{number}.profraw"));
            fs::write(&path, bytes).unwrap();
            merge.arg(path);
        }
        run(&mut merge);
        let mut show = Command::new("llvm-profdata-22");
        show.args(["show", "--all-functions", "--counts"]);
        stdout(&run(show.arg(place.path().join("all.profdata"))))
    };
    let expected = sums(&runs);
    assert!(expected.contains("Block counts: ["), "{expected}");
    assert_eq!(sums(&["back"]), expected);
}

#[test]
fn a_report_of_a_data_set_is_that_of_the_raw_profiles() {
    let fleet = Fleet::new();
    for pid in 1..=3 {
        fleet.run(&format!("run{pid}"), pid);
    }
    fleet.import(&["run1", "run3", "run2"]);
    let report =
        |inputs: &[&str], options: &[&str]| fleet.done(&[&["report"], inputs, options].concat());
    let runs = ["run1", "run2", "run3"];
    for options in [
        &["--json"][..],
        &["--json", "--per-test"],
        &["--lcov"],
        &["--markdown", "--per-test"],
        &["--json", "--label", "unit tests/scale"],
        &["--json", "--label", "ad*", "--arch", "gfx942"],
    ] {
        let expected = report(&runs, options);
        assert!(expected.len() > 200, "{expected}");
        assert_eq!(report(&["set"], options), expected, "{options:?}");
    }
    // The tables of text too. The lines before them name the device ELFs, and count profiles: sums, as in a merge.
    let tables = |text: String| {
        let is_of_table = |line: &&str| {
            !line.trim_start().starts_with("device ELF") && !line.contains(" profiles of ")
        };
        let lines = text.lines().filter(is_of_table);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let text = report(&["set"], &["--per-test"]);
    assert!(
        !text.contains("/.rocov-"),
        "no name of a temporary file: {text}"
    );
    assert_eq!(tables(text), tables(report(&runs, &["--per-test"])));
    // Some runs, by the day of each.
    for (condition, runs) in [
        ("date=2026-11-25", &["run1"][..]),
        ("date>=2026-11-26", &["run2", "run3"]),
        ("commit=1a2b3c", &runs),
    ] {
        let of_set = report(&["set", "--where", condition], &["--json"]);
        assert_eq!(of_set, report(runs, &["--json"]), "{condition}");
    }
    // The tests that reach a line.
    for line in ["archs.hip:10", "kernel.hip:9"] {
        let which = |input: &str| fleet.output(&["which", line, input]);
        fs::create_dir_all(fleet.path("all")).unwrap();
        for run in runs {
            let link = fleet.path("all").join(run);
            let _ = std::os::unix::fs::symlink(fleet.path(run), link);
        }
        let (of_set, expected) = (which("set"), which("all"));
        assert_eq!(stdout(&of_set), stdout(&expected), "{line}");
        assert_eq!(stderr(&of_set), stderr(&expected), "{line}");
    }
}
