//! Every command shows every kind of counts: of LLVM's counters, of rocov's fast ones, of counters of a byte, of a trace, of
//! PTX that rocov made count, and of host code. One kernel has them all.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::instrument::{Uncounted, numbered, reached};
use crate::setup::{HISTOGRAM, step};
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run, run_once};
use crate::support::compile::{Compilation, clang, device_header};
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::profdata;
use crate::support::unpacked::not_run;

const TARGET: &str = "gfx90a";
const LABEL: &str = "unit/a";
/// The work-items of the launch.
const ITEMS: u64 = 1024;

/// Counts of one kind: a data directory, a function and the number of its calls.
struct Counted {
    kind: &'static str,
    data: TempDir,
    /// The options of `rocov report` for counts of this kind.
    options: Vec<String>,
    function: String,
    calls: u64,
}

fn rocov(arguments: &[&dyn AsRef<OsStr>]) -> Ended {
    let mut rocov = limited(built("rocov"));
    run(rocov.args(arguments.iter().map(AsRef::as_ref)))
}

/// The counts of the HIP program with these flags, by all that runs on the modelled GPU.
fn hip_counts(kind: &'static str, flags: &[&str], is_traced: bool) -> Counted {
    let stack = Stack::usual();
    let program = Compilation::on(stack)
        .arguments(stack.flags())
        .arguments(["-O1", &format!("--offload-arch={TARGET}")])
        .arguments(flags.iter().copied())
        .reads([device_header(), repository("testdata/cuda/kernels.cu")])
        .source(repository("testdata/cuda/launch.hip"))
        .output("launch");
    let data = TempDir::new().expect("a directory can be made");
    let mut command = limited(built("rocov"));
    command.args(["run", "--label", LABEL, "--gpu", &format!("model:{TARGET}")]);
    if is_traced {
        command.arg("--trace");
    }
    command.arg("-o").arg(data.path()).arg("--");
    run(command.args(stack.starter()).arg(&program)).success();
    let (function, calls) = match kind {
        "host" => ("main".to_owned(), 1),
        "reached" => (HISTOGRAM.to_owned(), 1),
        _ => (HISTOGRAM.to_owned(), ITEMS),
    };
    let options = match kind {
        "host" => vec!["--host-binary".to_owned(), program.display().to_string()],
        _ => Vec::new(),
    };
    Counted {
        kind,
        data,
        options,
        function,
        calls,
    }
}

/// The flags that `rocov flags` prints; `None` if this clang has no such counters here.
fn flags(options: &[&str]) -> Option<Vec<String>> {
    let mut flags = limited(built("rocov"));
    let ended = run_once(flags.args(["flags", "--clang", clang()]).args(options));
    if !ended.status.success() {
        not_run(&format!("{}: {}", options.join(" "), ended.stderr));
        return None;
    }
    let words = ended.stdout.split_whitespace().map(str::to_owned);
    Some(words.collect())
}

fn all() -> Vec<Counted> {
    let mut all = vec![hip_counts("trace", &["-gline-tables-only"], true)];
    for (kind, options) in [
        ("llvm", &["--counters=llvm"][..]),
        ("fast", &["--counters=fast"]),
        ("reached", &["--counters=reached"]),
        ("host", &["--counters=llvm", "--host"]),
    ] {
        if let Some(words) = flags(options) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            all.push(hip_counts(kind, &words, false));
        }
    }
    if let Some(uncounted) = Uncounted::with_lines() {
        let text = uncounted.file("text", format!("{}\0", uncounted.text));
        for kind in ["ptx", "ptx reached"] {
            let data = TempDir::new().expect("a directory can be made");
            let (plant, expected) = match kind {
                "ptx" => numbered(&uncounted.text),
                _ => reached(&uncounted.text),
            };
            let steps = [step("data", &text), plant];
            let mut command = match kind {
                "ptx" => uncounted.command(data.path(), &steps),
                _ => uncounted.command_for_reached(data.path(), &steps),
            };
            run(command.env("ROCOV_LABEL", LABEL)).success();
            let record = format!("rocov-ptx;{HISTOGRAM}");
            let blocks = expected.into_iter().find(|(name, _)| *name == record);
            all.push(Counted {
                kind,
                data,
                options: Vec::new(),
                function: HISTOGRAM.to_owned(),
                calls: blocks.expect("the kernel").1[0],
            });
        }
    }
    all
}

#[test]
fn every_command_shows_every_kind_of_counts() {
    for counted in all() {
        reports(&counted);
        if counted.kind != "host" {
            kernels(&counted);
            tests(&counted);
        }
        merged(&counted);
    }
}

/// The lines of an LCOV report with their counts.
fn lines(lcov: &str) -> Vec<(u32, u64)> {
    let lines = lcov.lines().filter_map(|line| line.strip_prefix("DA:"));
    let pair = |line: &str| {
        let (line, count) = line.split_once(',')?;
        Some((line.parse().ok()?, count.parse().ok()?))
    };
    lines.filter_map(pair).collect()
}

impl Counted {
    /// A report of a directory with these counts.
    fn report(&self, data: &Path, arguments: &[&dyn AsRef<OsStr>]) -> String {
        let mut report = limited(built("rocov"));
        report.arg("report").arg(data).args(&self.options);
        let arguments = arguments.iter().map(AsRef::as_ref);
        run(report.args(arguments)).success().stdout
    }

    fn lcov(&self, data: &Path) -> String {
        self.report(data, &[&"--lcov"])
    }
}

fn reports(counted: &Counted) {
    let (kind, data, calls) = (counted.kind, counted.data.path(), counted.calls);
    let text = counted.lcov(data);
    let entry = format!("FNDA:{calls},{}", counted.function);
    assert!(
        text.lines().any(|line| line == entry),
        "{kind}: no {entry} in {text}"
    );
    assert!(
        lines(&text).iter().any(|(_, count)| *count > 0),
        "{kind}: {text}"
    );
    for (format, wanted) in [
        ("--json", format!("{calls}")),
        ("--cobertura", format!("hits=\"{calls}\"")),
        ("--sonar", "covered=\"true\"".to_owned()),
    ] {
        let report = counted.report(data, &[&format]);
        assert!(
            report.contains(&wanted),
            "{kind} {format}: no {wanted} in {report}"
        );
    }
    // Annotated source, of device code only, writes large counts short.
    if kind != "host" {
        let shown = counted.report(data, &[&"--show"]);
        let line = shown
            .lines()
            .find(|line| line.contains("void histogram("))
            .unwrap_or_else(|| panic!("{kind}: {shown}"));
        let count = line.split('|').nth(1).unwrap_or_default().trim();
        assert!(!["", "0"].contains(&count), "{kind}: {line}");
    }
    for format in [None, Some("--markdown")] {
        let report = match &format {
            Some(format) => counted.report(data, &[format]),
            None => counted.report(data, &[]),
        };
        // The last row of the table, or the first one below the heading of Markdown's.
        let mut lines = report.lines();
        let total = match format {
            None => lines.find(|line| line.starts_with("TOTAL")),
            Some(_) => lines.skip_while(|line| !line.starts_with("|---")).nth(1),
        };
        let total = total.unwrap_or_else(|| panic!("{kind}: {report}"));
        // The figure of lines, after those of functions, is not 0.
        assert!(!total.contains(" 0.00%"), "{kind} {format:?}: {total}");
    }
    let pages = data.join("pages");
    counted.report(data, &[&"--html", &pages]);
    let index = fs::read_to_string(pages.join("index.html")).expect("a page");
    assert!(
        index.contains("kernels.cu") || index.contains("launch.hip"),
        "{kind}: {index}"
    );
}

fn kernels(counted: &Counted) {
    let Counted {
        kind,
        data,
        function,
        calls,
        ..
    } = counted;
    let listed = rocov(&[&"kernels", &"--json", &data.path()])
        .success()
        .stdout;
    let listed = json(&listed);
    let rows = listed["kernels"].as_array().expect("rows");
    let row = rows
        .iter()
        .find(|row| row["name"] == function.as_str())
        .unwrap_or_else(|| panic!("{kind}: {rows:?}"));
    assert_eq!(row["count"], *calls, "{kind}: {row}");
    assert!(row["lines"]["covered"].as_u64() > Some(0), "{kind}: {row}");
    rocov(&[&"export", &"--format", &"rocpd", &data.path()]).success();
    assert!(data.path().join("rocpd.db").exists(), "{kind}");
}

/// The figures of the test, and the tests of a line.
fn tests(counted: &Counted) {
    let (kind, data) = (counted.kind, counted.data.path());
    let report = counted.report(data, &[&"--per-test"]);
    let row = report
        .lines()
        .find(|line| line.starts_with(LABEL))
        .unwrap_or_else(|| panic!("{kind}: {report}"));
    assert!(!row.contains(" 0.00%"), "{kind}: {row}");
    let all = lines(&counted.lcov(data));
    // A line of the kernel that ran.
    let (line, count) = all
        .iter()
        .find(|(line, count)| (17..=22).contains(line) && *count > 0)
        .expect("a line that ran");
    let source = format!(
        "{}:{line}",
        repository("testdata/cuda/kernels.cu").display()
    );
    let which = rocov(&[&"which", &source, &data]).success().stdout;
    let row = which
        .lines()
        .find(|line| line.starts_with(LABEL))
        .unwrap_or_else(|| panic!("{kind} {source}: {which}"));
    assert!(
        row.ends_with(&format!(" {count}")),
        "{kind}: {row}, not {count}"
    );
    let nothing = TempDir::new().expect("a directory can be made");
    let saved = nothing.path().join("saved.json");
    counted.report(data, &[&"--json", &"-o", &saved]);
    let diff = rocov(&[&"diff", &saved, &data]).success().stdout;
    let figures = diff
        .lines()
        .find(|line| line.contains(" lines "))
        .unwrap_or_else(|| panic!("{kind}: {diff}"));
    assert!(
        figures.contains('%') && !figures.contains(" 0.00%"),
        "{kind}: {figures}"
    );
}

/// A merged profile has the lines of the profiles that it was merged from.
fn merged(counted: &Counted) {
    let (kind, data) = (counted.kind, counted.data.path());
    let place = TempDir::new().expect("a directory can be made");
    let pooled = place.path().join("pooled");
    rocov(&[&"merge", &data, &"--pooled", &pooled]).success();
    assert_eq!(
        lines(&counted.lcov(&pooled)),
        lines(&counted.lcov(data)),
        "{kind}"
    );
    let profiles = place.path().join("profiles");
    rocov(&[&"merge", &data, &"-o", &profiles]).success();
    let files = fs::read_dir(&profiles)
        .expect("profiles")
        .map(|file| file.expect("a profile").path());
    let shown: String = files
        .filter(|file| file.extension() == Some("profdata".as_ref()))
        .map(|file| {
            let mut show = limited(profdata());
            show.args(["show", "--all-functions", "--counts"]);
            run(show.arg(file)).success().stdout
        })
        .collect();
    assert!(shown.contains(&counted.function), "{kind}: {shown}");
}
