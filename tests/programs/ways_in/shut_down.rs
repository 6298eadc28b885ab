//! A program that shuts HSA down itself: rocov drains before, and nothing hangs after.

use super::programs::{HIP, KERNEL, counts_twice, link, object, on_model, tally_object};
use crate::parts;
use crate::support::artifacts::built;

#[test]
fn is_drained_before_and_may_start_again() {
    let program = link(
        "shuts_down",
        &parts![
            object("shuts_down.cpp", &[]),
            tally_object(KERNEL),
            HIP[0],
            "-lhsa-runtime64"
        ],
    );
    for (how, starts) in [("end", 0), ("return", 0), ("again", 1)] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[built("librocov.so")]);
        let ended = counts_twice(command.arg(&program).arg(how), data.path(), &[KERNEL]);
        // The statuses are HSA's own: 0x100b is "not initialised".
        assert!(
            ended.stdout.contains("shut down without a start: 0x100b"),
            "{ended}"
        );
        assert_eq!(
            ended.stdout.matches("started: 0").count(),
            starts,
            "{ended}"
        );
        assert_eq!(
            ended.stdout.matches("shut down: 0\n").count(),
            1 + starts,
            "{ended}"
        );
    }
}
