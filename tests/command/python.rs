//! The Python package: how it finds the lines of kernels that ran, and its plugin of coverage.py.

use std::process::Command;

use rocov_tests::artifacts::{python, repository};
use rocov_tests::command::{limited, run};
use rocov_tests::unpacked::not_run;

/// Tests of the package. They make directories of their own.
fn pytest(name: &str) -> Command {
    let mut command = limited(python());
    command.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    command.arg(repository("tools/python/tests").join(name));
    command
}

#[test]
fn the_lines_of_kernels_follow_from_their_syntax_trees() {
    run(&mut pytest("test_truth.py")).success();
}

#[test]
fn tutorials_of_triton_are_measured() {
    run(&mut pytest("test_tutorials.py")).success();
}

/// `tools/dev/python-versions` runs these tests with other releases of coverage.py and Python.
#[test]
fn coverage_py_shows_kernels() {
    let mut modules = limited(python());
    modules.args(["-c", "import coverage, pytest_cov, xdist"]);
    if !run(&mut modules).status.success() {
        not_run(
            "python3-coverage or python3-pytest-cov is not installed: the plugin of coverage.py is not tried",
        );
        return;
    }
    run(&mut pytest("test_coverage.py")).success();
    run(&mut pytest("test_python_lines.py")).success();
}
