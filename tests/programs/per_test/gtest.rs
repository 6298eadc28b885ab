//! GoogleTest with the listener of `rocov_gtest.h`.

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

#[test]
fn each_test_counts_what_it_counts_alone() {
    let labelled = Run::with_options(&[], |command| {
        command.arg(suite(&["-DLABELLED"]));
    });
    for (test, labels) in TESTS {
        assert_eq!(labelled.labelled(labels), alone(test).all(), "{test}");
    }
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
    for signal in [libc::SIGABRT, libc::SIGSEGV, libc::SIGKILL] {
        let (run, ended) = Run::ended(&[], |command| {
            command.arg("env").arg(format!("LAST_SIGNAL={signal}"));
            command.arg(program("fifty", &["-DLABELLED"]));
        });
        let ended = ended.with_status(128 + signal);
        ended.says(&["after its last drain: later counts are lost"]);
        // Each is merged from profiles of its own, which takes longer than the run.
        let compared = match signal {
            libc::SIGABRT => (0..49).collect(),
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
