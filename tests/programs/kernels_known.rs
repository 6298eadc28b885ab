//! The kernels of a run in `rocov kernels` and `rocov export`, compared with the sample's own
//! comments, LLVM's tools and another SQLite.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, rocov_run, run};
use crate::support::compile::sample;
use crate::support::gpu::Stack;
use crate::support::profile::{functions, raw_profiles};
use crate::support::program::rocov_flags;

/// Number of runs of the sample into one directory.
const RUNS: u64 = 2;

/// The kernels of the sample: source, and a line that starts each.
const KERNELS: [(&str, &str, &str); 5] = [
    ("steps_kernel", "main.hip", "void steps_kernel("),
    ("clean_kernel", "main.hip", "void clean_kernel("),
    (
        "histogram_kernel",
        "statistics.hip",
        "void histogram_kernel(",
    ),
    (
        "block_sums_kernel",
        "statistics.hip",
        "void block_sums_kernel(",
    ),
    ("scale_kernel", "statistics.hip", "void scale_kernel("),
];

/// The data directory of the runs.
fn data() -> &'static Path {
    static DATA: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, data) = DATA.get_or_init(|| {
        let program = sample(&rocov_flags(Stack::usual(), &[]));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        for _ in 0..RUNS {
            run(rocov_run(Some("model"), &data).arg(&program))
                .success()
                .silently();
        }
        (directory, data)
    });
    data
}

fn rocov(arguments: &[&str]) -> Ended {
    let (command, options) = arguments.split_first().expect("a command");
    let mut rocov = limited(built("rocov"));
    rocov.arg(command).arg(data()).args(options);
    run(&mut rocov)
}

fn kernels(options: &[&str]) -> Value {
    let ended = rocov(&[&["kernels", "--json"], options].concat());
    let json = ended.success().silently().stdout;
    serde_json::from_str(&json).expect("--json prints JSON")
}

/// The only kernel whose symbol contains `name`.
fn one<'a>(kernels: &'a Value, name: &str) -> &'a Value {
    let kernels = kernels["kernels"].as_array().expect("a list");
    let has_name = |value: &&Value| {
        value["name"]
            .as_str()
            .is_some_and(|found| found.contains(name))
    };
    let found: Vec<_> = kernels.iter().filter(has_name).collect();
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found[0]
}

/// The number of lines from a function's opening to its closing brace, and of those that never run,
/// as the sample's comments mark them.
fn lines(source: &str, start: &str) -> (usize, usize) {
    let path = repository("testdata/sample").join(source);
    let text = std::fs::read_to_string(path).expect("the sample is there");
    let from_start = text.lines().skip_while(|line| !line.contains(start));
    let mut body = from_start.skip_while(|line| !line.ends_with('{') && !line.contains("{ //"));
    let mut lines = Vec::new();
    for line in &mut body {
        lines.push(line);
        if line.starts_with('}') {
            break;
        }
    }
    let never = lines.iter().filter(|line| line.contains("// never"));
    (lines.len(), never.count())
}

#[test]
fn counts_and_lines_are_those_of_the_sample() {
    let counts: Vec<_> = raw_profiles(data())
        .iter()
        .map(|raw_profile| functions(raw_profile))
        .collect();
    let all = kernels(&[]);
    for (name, source, start) in KERNELS {
        let kernel = one(&all, name);
        let symbol = kernel["name"].as_str().expect("a symbol");
        let calls: u64 = counts
            .iter()
            .filter_map(|functions| functions.get(symbol))
            .map(|function| function.calls)
            .sum();
        assert_eq!(kernel["count"], calls, "{name}");
        assert_eq!(kernel["loads"], RUNS, "{name}");
        assert_eq!(kernel["instrumented"], true, "{name}");
        let named = kernel["source"].as_str().expect("a source");
        assert!(named.ends_with(source), "{name}: {named}");
        let (total, never) = lines(source, start);
        assert_eq!(kernel["lines"]["total"], total, "{name}");
        assert_eq!(kernel["lines"]["covered"], total - never, "{name}");
    }
    let uncovered = kernels(&["--uncovered"]);
    let uncovered = uncovered["kernels"].as_array().expect("a list");
    let names: Vec<_> = uncovered
        .iter()
        .map(|kernel| kernel["display_name"].as_str())
        .collect();
    assert_eq!(names, [Some("scale_kernel(float*, int, float)")]);
}

#[test]
fn kernel_objects_of_the_export_are_found_again() {
    let database = tempfile::tempdir().expect("a temporary directory");
    let database = database.path().join("rocpd.db");
    let path = database.to_str().expect("it is ASCII");
    rocov(&["export", "--format", "rocpd", "-o", path])
        .success()
        .silently();
    let mut python = limited("python3");
    python.arg(repository("tests/command/data/rocpd.py"));
    python.args(["query", path]).arg(
        "SELECT p.pid, k.kernel_name, k.kernel_object, k.group_segment_size, c.uri, c.load_base, \
         c.load_size FROM rocpd_info_kernel_symbol k \
         JOIN rocpd_info_code_object c ON c.id = k.code_object_id \
         JOIN rocpd_info_process p ON p.id = k.pid WHERE c.uri LIKE 'file:%'",
    );
    let rows = run(&mut python).success().silently().stdout;
    let rows: Vec<(u32, String, u64, u32, String, u64, u64)> =
        serde_json::from_str(&rows).expect("Python prints JSON");
    // HIP's own kernels are in memory only.
    assert_eq!(rows.len(), KERNELS.len() * RUNS as usize, "{rows:?}");
    let all = kernels(&[]);
    for (pid, name, object, lds, uri, base, size) in rows {
        assert!((base..base + size).contains(&object), "{name}");
        let symbol = name.strip_suffix(".kd").expect("the descriptor's symbol");
        let object = format!("{object:#x}");
        let pid = pid.to_string();
        let answer = kernels(&["--address", &object, "--pid", &pid]);
        let load = &answer["addresses"][0]["loads"][0];
        assert_eq!(load["name"], symbol);
        assert_eq!(load["is"], "object", "{name}");
        assert_eq!(load["uri"], uri, "{name}");
        assert_eq!(one(&all, symbol)["group_size"], lds, "{name}");
    }
    rocov(&["kernels", "--address", "0x1"])
        .with_status(1)
        .silently();
}
