//! ctest under `rocov run --per-test`.

use super::gtest::{TESTS, alone};
use super::{Run, suite};
use crate::support::command::{limited, run};

#[test]
fn each_test_counts_what_it_counts_alone() {
    let project = tempfile::tempdir().expect("a temporary directory");
    let mut text =
        "cmake_minimum_required(VERSION 3.20)\nproject(suite NONE)\nenable_testing()\n".to_owned();
    let program = suite(&[]);
    let program = program.display();
    for (test, _) in TESTS {
        text += &format!("add_test(NAME \"{test}\" COMMAND \"{program}\" --gtest_filter={test})\n");
    }
    std::fs::write(project.path().join("CMakeLists.txt"), text).expect("a file can be written");
    let build = project.path().join("build");
    let mut cmake = limited("cmake");
    cmake.arg("-S").arg(project.path()).arg("-B").arg(&build);
    run(&mut cmake).success();

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
