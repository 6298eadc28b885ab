//! GoogleTest with the listener of `rocov_gtest.h`.

use super::{Run, suite};
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

#[test]
fn without_librocov_the_listener_does_nothing() {
    run(without_rocov().arg(suite(&["-DLABELLED"])))
        .success()
        .silently();
}
