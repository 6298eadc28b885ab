//! ctest under `rocov run --per-test`.

use super::gtest::{TESTS, alone};
use super::{Run, suite};
use crate::support::command::{limited, run};

/// A build directory with these tests: the name of each, and its arguments for the suite.
fn build(tests: &[(&str, &str)]) -> tempfile::TempDir {
    let project = tempfile::tempdir().expect("a temporary directory");
    let mut text =
        "cmake_minimum_required(VERSION 3.20)\nproject(suite NONE)\nenable_testing()\n".to_owned();
    let program = suite(&[]);
    let program = program.display();
    for (name, arguments) in tests {
        text += &format!("add_test(NAME \"{name}\" COMMAND \"{program}\" {arguments})\n");
    }
    std::fs::write(project.path().join("CMakeLists.txt"), text).expect("a file can be written");
    let mut cmake = limited("cmake");
    cmake.arg("-S").arg(project.path());
    cmake.arg("-B").arg(project.path().join("build"));
    run(&mut cmake).success();
    project
}

#[test]
fn each_test_counts_what_it_counts_alone() {
    let filters = TESTS.map(|(test, _)| (test, format!("--gtest_filter={test}")));
    let project = build(
        &filters
            .each_ref()
            .map(|(test, filter)| (*test, filter.as_str())),
    );
    let build = project.path().join("build");
    let labelled = Run::with_options(&["--per-test"], |command| {
        command.args(["ctest", "-j2", "--test-dir"]).arg(&build);
    });
    // ctest names the directory that it reads, and its log in it. Both are there after the run.
    let stand_in = build.join("Testing/rocov");
    let project = format!("Test project {}\n", stand_in.display());
    assert!(labelled.stdout.contains(&project), "{}", labelled.stdout);
    assert!(stand_in.join("Testing/Temporary/LastTest.log").is_file());
    let tests = TESTS.map(|(test, _)| test);
    for test in tests {
        assert_eq!(labelled.labelled(&[test]), alone(test).all(), "{test}");
    }
    assert_eq!(labelled.all(), labelled.labelled(&tests));
}

/// A test of ctest that is one test of GoogleTest keeps its name. One that is a whole program has the tests in it.
#[test]
fn tests_of_googletest_are_within_those_of_ctest() {
    let [(above, _), _, (of, labels), _] = TESTS;
    let filter = format!("--gtest_filter={above}");
    let project = build(&[("all", "--gtest_filter=Sizes*"), (above, &filter)]);
    let labelled = Run::with_options(&["--per-test=gtest"], |command| {
        let build = project.path().join("build");
        command.args(["ctest", "-j2", "--test-dir"]).arg(build);
    });
    assert_eq!(labelled.labelled(&[above]), alone(above).all());
    let within = format!("all/{}", labels[0]);
    assert_eq!(labelled.labelled(&[&within]), alone(of).all());
    let all = ["all/Sizes/Sum/Of/0", "all/Sizes/Sum/Of/1", above];
    assert_eq!(labelled.all(), labelled.labelled(&all));
}
