//! GoogleTest with the listener of `rocov_gtest.h`, and without: then by the results that it streams.

use super::{Run, program, suite};
use crate::support::command::run;
use crate::support::program::without_rocov;

/// Each test with its labels. A test that runs without the others includes its suite's setup.
pub(super) const TESTS: [(&str, &[&str]); 4] = [
    ("Histogram.Above", &["Histogram", "Histogram/Above"]),
    ("Histogram.Below", &["Histogram", "Histogram/Below"]),
    ("Sizes/Sum.Of/0", &["Sizes/Sum/Of/0"]),
    ("Sizes/Sum.Of/1", &["Sizes/Sum/Of/1"]),
];

/// Runs only one test, without labels.
pub(super) fn alone(test: &str) -> Run {
    Run::with_options(&[], |command| {
        command
            .arg(suite(&[]))
            .arg(format!("--gtest_filter={test}"));
    })
}

/// The ways to labels: the options of `rocov run`, and the flags for the program. With both, the listener of the header
/// labels the tests.
const WAYS: [(&[&str], &[&str]); 4] = [
    (&["--per-test"], &[]),
    (&[], &["-DLABELLED"]),
    (&["--per-test"], &["-DLABELLED"]),
    (&["--per-test"], &["-DLABELLED_LATE"]),
];

#[test]
fn each_test_counts_what_it_counts_alone() {
    let expected = TESTS.map(|(test, _)| alone(test).all());
    let [labelled, ..] = WAYS.map(|(options, flags)| {
        let labelled = Run::with_options(options, |command| {
            command.arg(suite(flags));
        });
        for ((test, labels), expected) in TESTS.iter().zip(&expected) {
            let counts = labelled.labelled(labels);
            assert_eq!(counts, *expected, "{test} with {options:?}, {flags:?}");
        }
        labelled
    });
    let without_labels = alone("*");
    assert_eq!(labelled.all(), without_labels.all());

    // One suite tests the sum; the other uses it before its tests.
    let reaching = labelled.reaching("statistics.hip", "partial[threadIdx.x] += ");
    let expected = ["Histogram", "Sizes/Sum/Of/0", "Sizes/Sum/Of/1"];
    assert!(reaching.iter().eq(expected), "{reaching:?}");
    let reaching = labelled.reaching("statistics.hip", "return 0; // never");
    assert!(reaching.iter().eq(["Histogram/Below"]), "{reaching:?}");
}

/// The 50th test ends the process. The counts of the 49 before it are those of one such test alone.
#[test]
fn tests_before_one_that_ends_the_process_keep_their_counts() {
    let alone = Run::with_options(&[], |command| {
        command
            .arg(program("fifty", &["-DLABELLED"]))
            .arg("--gtest_filter=All/Fifty.Sum/0");
    });
    let [as_it_is, labels_itself, ..] = WAYS;
    for (signal, (options, flags)) in [
        (libc::SIGABRT, as_it_is),
        (libc::SIGABRT, labels_itself),
        (libc::SIGSEGV, labels_itself),
        (libc::SIGKILL, as_it_is),
    ] {
        let (run, ended) = Run::ended(options, |command| {
            command.arg("env").arg(format!("LAST_SIGNAL={signal}"));
            command.arg(program("fifty", flags));
        });
        let ended = ended.with_status(128 + signal);
        ended.says(&["after its last drain: later counts are lost"]);
        // Each is merged from profiles of its own, which takes longer than the run.
        let compared = match (signal, flags) {
            (libc::SIGABRT, []) => (0..49).collect(),
            _ => vec![0, 48],
        };
        for number in compared {
            let label = format!("All/Fifty/Sum/{number}");
            assert_eq!(run.labelled(&[&label]), alone.all(), "{label}, {signal}");
        }
        let reaching = run.reaching("statistics.hip", "partial[threadIdx.x] += ");
        assert_eq!(reaching.len(), 49, "{signal}: {reaching:?}");
    }
}

#[test]
fn without_librocov_the_listener_does_nothing() {
    run(without_rocov().arg(suite(&["-DLABELLED"])))
        .success()
        .silently();
}
