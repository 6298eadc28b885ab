//! pytest with the plugin rocov-pytest.

use std::process::Command;

use super::{Run, library, source};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::program::without_rocov;

/// The tests; each test's label is its node id.
const TESTS: [(&str, &str); 4] = [
    ("test_sum[100]", "test_statistics.py/test_sum[100]"),
    ("test_sum[300]", "test_statistics.py/test_sum[300]"),
    (
        "TestHistogram::test_above",
        "test_statistics.py/TestHistogram/test_above",
    ),
    (
        "TestHistogram::test_below",
        "test_statistics.py/TestHistogram/test_below",
    ),
];

const PLUGIN: [&str; 2] = ["-p", "rocov_pytest"];

/// Runs pytest of Debian's Python with these arguments, on one test (`::TEST`) or on all.
fn pytest(command: &mut Command, arguments: &[&str], test: &str) {
    let tests = source("test_statistics.py");
    let directory = tests.parent().expect("a file is in a directory");
    command.arg("env");
    for (name, path) in [
        ("STATISTICS_LIBRARY", library()),
        ("PYTHONPATH", repository("tools/python/pytest-plugin")),
    ] {
        command.arg(format!("{name}={}", path.display()));
    }
    command.args([
        "PYTHONDONTWRITEBYTECODE=1",
        "/usr/bin/python3",
        "-m",
        "pytest",
    ]);
    command.args(["-q", "-p", "no:cacheprovider", "--rootdir"]);
    command.arg(directory).args(arguments);
    command.arg(format!("{}{test}", tests.display()));
}

/// Runs one test, or all, without labels.
fn without_labels(test: &str) -> Run {
    Run::with_options(&[], |command| pytest(command, &[], test))
}

#[test]
fn each_test_counts_what_it_counts_alone() {
    let labelled = Run::with_options(&[], |command| pytest(command, &PLUGIN, ""));
    let workers = [&PLUGIN[..], &["-n", "2"]].concat();
    let in_workers = Run::with_options(&[], |command| pytest(command, &workers, ""));
    for (test, label) in TESTS {
        let alone = without_labels(&format!("::{test}")).all();
        assert_eq!(labelled.labelled(&[label]), alone, "{test}");
        assert_eq!(in_workers.labelled(&[label]), alone, "{test} in a worker");
    }
    assert_eq!(labelled.all(), without_labels("").all());
}

#[test]
fn without_librocov_the_plugin_does_nothing() {
    let mut command = without_rocov();
    pytest(&mut command, &PLUGIN, "::test_sum");
    run(&mut command).success().silently();
}

#[test]
fn labels_are_node_ids_as_far_as_these_can_be() {
    // `rocov run --per-test` gives these names too; CRC-32 as in zlib.
    let script = "
from rocov_pytest import label
def check(node_id, expected):
    assert label(node_id) == expected, (node_id, label(node_id))
check('tests/test_a.py::TestB::test_c[1-x y]', 'tests/test_a.py/TestB/test_c[1-x y]')
check('a//b', 'a/-00000000/b')
check('../up', '..-9608161c/up')
check('x' * 200, 'x' * 64 + '-7ecb6ba6')
check('1/2/3/4/5/6/7/8.py::t', '1.2/3/4/5/6/7/8.py/t')
";
    let mut python = limited("/usr/bin/python3");
    python.env("PYTHONPATH", repository("tools/python/pytest-plugin"));
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    run(python.args(["-c", script])).success().silently();
}
