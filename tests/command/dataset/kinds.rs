//! Runs with counts of a trace, of PTX, or of no place in the source, and with host code. Reports of the raw profiles are
//! the judge.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::format::blocks::{Kind, Records, TraceRecords};
use rocov::format::codeobject::CodeObject;
use rocov::format::profraw::{Parts, Version, encode};
use rocov::format::ptx::{Module, modules};
use rocov::format::sections::PerSection;
use rocov_tests::cli::device::{CLANG, compile_source};
use rocov_tests::cli::registry::{code_object_of, document, load};
use rocov_tests::cli::{data, profile, registry, run, stderr, stdout};

use crate::dataset::tables::python;
use crate::dataset::{COMMIT, FIRST_DAY, Fleet, contents};

const WITH_LINES: [&str; 1] = ["-gline-tables-only"];

/// Writes the raw profile of these records, with made-up counts.
fn write(records: &Records, counters: usize, seed: u64, path: &Path) {
    let version = Version::from_clang(22).unwrap();
    let counters = (0..counters as u64).map(|index| match (index / 2 + seed) % 4 {
        // A wave with all of its lanes, or nothing.
        0 => 0,
        waves if index % 2 == 0 => waves,
        waves => 64 * waves,
    });
    let counters: Vec<u8> = counters.flat_map(u64::to_le_bytes).collect();
    let (data, names) = (records.data(&version, 0), records.names());
    let file = encode(&Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &data,
            names: &names,
            counters: &counters,
            ..PerSection::default()
        },
        names_address: 0,
    });
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, file).unwrap();
}

impl Fleet {
    /// The paths of a kept device ELF, and of a profile of it with a label. A process of the run has loaded it.
    fn places(&self, run: &str, arch: &str, elf: &Path, label: &str) -> [PathBuf; 2] {
        let identity = profile::identity(elf);
        let directory = self.path(run);
        let kept = directory.join(format!("objects/{arch}.{identity}.elf"));
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::copy(elf, &kept).unwrap();
        let mut object = code_object_of(elf, Vec::new());
        object.target = arch.to_owned();
        let loads = vec![load(&object, 0x1000, 1, None)];
        let pid =
            fs::read_dir(directory.join("registry")).map_or(0, |entries| entries.count() as u32);
        let mut document = document(
            100 * (pid + 1) + u32::from(run.as_bytes()[3]),
            &[object],
            loads,
        );
        document.processes[0].agents[0].name = arch.to_owned();
        document.processes[0].epoch = FIRST_DAY;
        fs::create_dir_all(directory.join("registry")).unwrap();
        registry::write(&document, &directory.join("registry"));
        let name = format!("profraw/labels/{label}/{arch}.{identity}.0.{run}.profraw");
        [kept, directory.join(name)]
    }

    /// A run with a trace of a device ELF.
    fn traced(&self, run: &str, elf: &Path, seed: u64) {
        let bytes = fs::read(elf).unwrap();
        let traced =
            TraceRecords::from_code_object(&CodeObject::parse(&bytes[..]).unwrap()).unwrap();
        let counters = traced
            .functions
            .iter()
            .map(|(_, size)| size.div_ceil(4) * 2);
        let [_, path] = self.places(run, "gfx90a", elf, "traced");
        write(&traced.records, counters.sum::<u64>() as usize, seed, &path);
    }

    /// A run with counts of PTX, which is next to a device ELF.
    fn add_ptx_run(&self, run: &str, elf: &Path, seed: u64) {
        let source = self.path("kernel.cu");
        let text = "__attribute__((global)) void half(int *it, int n) {\n  if (n > 3)\n    *it /= 2;\n  else\n    it[n] = 1;\n}\n";
        fs::write(&source, text).unwrap();
        let [kept, path] = self.places(run, "sm_90", elf, "of_ptx");
        let ptx = kept.with_extension("ptx");
        let mut clang = Command::new(CLANG);
        clang.args([
            "-x",
            "cuda",
            "--cuda-device-only",
            "-nocudainc",
            "-nocudalib",
            "-S",
            "-O1",
        ]);
        clang.args([
            "-gline-tables-only",
            "--offload-arch=sm_90",
            "--cuda-feature=+ptx78",
        ]);
        rocov_tests::cli::run(clang.arg(&source).arg("-o").arg(&ptx));
        let text = fs::read_to_string(&ptx).unwrap();
        let mut records = Records::default();
        let mut counters = 0;
        for text in modules(&text) {
            let module = Module::parse(text).unwrap();
            for function in &module.functions {
                let blocks = function.blocks.len();
                counters += blocks;
                let code = function.text.as_bytes();
                records.push(Kind::Ptx, function.symbol, code, blocks as u32);
            }
        }
        assert!(counters > 2, "{text}");
        write(&records, counters, seed, &path);
    }
}

#[test]
fn counts_of_line_tables_are_those_of_the_raw_profiles() {
    let fleet = Fleet::new();
    let place = fleet.place.path();
    let source = data("archs.hip");
    let plain = compile_source(&source, place, "plain.elf", "gfx90a", &WITH_LINES);
    let stand_in = compile_source(&data("kernel.hip"), place, "sm.elf", "gfx90a", &WITH_LINES);
    fleet.run("run1", 1);
    // Counters and a trace of one device ELF, in two runs.
    fleet.traced("run2", &fleet.elfs[0].1, 1);
    for (name, seed) in [("run3", 2), ("run4", 3)] {
        fleet.traced(name, &plain, seed);
        fleet.add_ptx_run(name, &stand_in, seed);
    }
    let runs = ["run1", "run2", "run3", "run4"];
    fleet.import(&runs[..2]);
    fleet.import(&runs[2..]);
    let report = |inputs: &[&str], options: &[&str]| {
        let output = fleet.output(&[&["report"], inputs, options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    for options in [
        &["--json", "--per-test"][..],
        &["--lcov"],
        &["--json", "--counts", "trace"],
        &["--json", "--counts", "ptx"],
        &["--json", "--counts", "mapping"],
        &["--json", "--label", "traced"],
    ] {
        let expected = report(&runs, options);
        assert!(expected.len() > 200, "{options:?}: {expected}");
        assert_eq!(report(&["set"], options), expected, "{options:?}");
    }
    let ptx = report(&["set"], &["--lcov", "--counts", "ptx"]);
    assert!(
        ptx.contains("kernel.cu\n") && ptx.contains("DA:3,"),
        "{ptx}"
    );
    // Raw profiles of runs that can be merged.
    let some = ["run1", "run3", "run4"];
    for (name, inputs) in [("all", &runs[2..]), ("mapped", &some[..1])] {
        let set = format!("{name}-set");
        let options = ["--format", "parquet", "--commit", COMMIT, "-o", &set];
        fleet.done(&[&["export"], inputs, &options].concat());
        fleet.done(&[&["merge"], inputs, &["--per-test", "--pooled", name]].concat());
        let back = format!("{name}-back");
        fleet.done(&["export", &set, "--format", "profraw", "-o", &back]);
        assert!(
            contents(&fleet.path(&back)) == contents(&fleet.path(name)),
            "{name}"
        );
    }
    assert!(
        contents(&fleet.path("all"))
            .iter()
            .any(|(path, _)| path.extension().is_some_and(|extension| extension == "ptx"))
    );

    // The tables of lines, by other programs.
    let Some(python) = python("lines of traces in a data set") else {
        return;
    };
    let look = "import duckdb, json, sys\n\
        read = lambda table, depth: f\"read_parquet('{sys.argv[1]}/{table}/{depth}/*.parquet', hive_partitioning = true)\"\n\
        rows = duckdb.sql(f\"SELECT l.file, l.line, bool_or(t.count > 0) FROM {read('line', '*')} l \
        LEFT JOIN {read('test_line', '*/*/*')} t ON t.identity = l.identity AND t.file = l.file AND t.line = l.line \
        WHERE l.identity LIKE '%+%' GROUP BY ALL\").fetchall()\n\
        kernels = duckdb.sql(f\"SELECT DISTINCT c.kinds, f.name FROM {read('function', '*')} f \
        JOIN {read('code_object', '*')} c ON c.identity = f.identity WHERE f.kernel AND f.counters > 0 ORDER BY ALL\")\n\
        print(json.dumps([[[f, l, bool(r)] for f, l, r in rows], kernels.fetchall()]))";
    let mut ask = Command::new(python);
    ask.args(["-c", look]).arg(fleet.path("all-set"));
    type Found = (Vec<(String, u64, bool)>, Vec<(String, String)>);
    let (lines, kernels): Found = serde_json::from_str(&stdout(&run(&mut ask))).unwrap();
    let lines: BTreeMap<_, _> = (lines.into_iter())
        .map(|(file, line, ran)| ((file, line), ran))
        .collect();
    assert_eq!(
        lines,
        crate::dataset::tables::lines(&fleet, &["run3", "run4"])
    );
    let traced: Vec<_> = kernels
        .iter()
        .filter(|(kinds, _)| kinds == "trace")
        .map(|(_, name)| name.as_str())
        .collect();
    assert!(traced.contains(&"scale"), "{kernels:?}");
}

#[test]
fn code_without_places_is_kept_and_host_code_is_named() {
    let fleet = Fleet::new();
    let elf = &fleet.elfs[0].1;
    let bare = compile_source(
        &data("kernel.hip"),
        fleet.place.path(),
        "bare.elf",
        "gfx90a",
        &["-fprofile-instr-generate"],
    );
    fleet.run("run1", 1);
    let [_, path] = fleet.places("run1", "gfx90a", &bare, "bare");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    profile::write_counts(&bare, &|_, index| index + 1, 10, &path);
    let host = fleet.path("run1/profraw/host.profraw");
    profile::write_counts(elf, &|_, _| 1, 10, &host);
    let options = ["--format", "parquet", "-o", "set", "--commit", COMMIT];
    let import = fleet.output(&[&["export", "run1"], &options[..]].concat());
    let said = stderr(&import);
    assert!(import.status.success(), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("left out: 1 profile of host code in run1, such as run1/profraw/host.profraw: a data set contains only GPU code"),
        "{said}"
    );
    // Both reports leave the code without a mapping out, with one line for it.
    let report = |input: &str| fleet.output(&["report", input, "--json"]);
    let (of_set, expected) = (report("set"), report("run1"));
    assert_eq!(stdout(&of_set), stdout(&expected));
    let line = |output| {
        let said = stderr(output);
        let mut lines = said.lines().map(str::to_owned);
        lines
            .find(|line| line.contains("it has no coverage mapping"))
            .expect("a line")
    };
    assert_eq!(line(&of_set), line(&expected));
    // Its counts come back.
    fleet.done(&["export", "set", "--format", "profraw", "-o", "back"]);
    fs::remove_file(host).unwrap();
    fleet.done(&["merge", "run1", "--per-test", "--pooled", "merged"]);
    assert!(contents(&fleet.path("back")) == contents(&fleet.path("merged")));
}
