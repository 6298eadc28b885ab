//! Drains on the program's request: before there is anything to drain, and again at exit.

use super::{Ran, Toolchain};

#[test]
fn early_collect() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(toolchain, &toolchain.program(&["step"], &[]), &["collect"]);
        let merged = ran.merged();
        assert_eq!(toolchain.counts(&merged, "_Z4stepPi"), (1, vec![1]));
        assert_eq!(toolchain.counts(&merged, "main").0, 1);
    }
}

#[test]
fn collect_after() {
    for toolchain in Toolchain::all() {
        let ran = Ran::one(
            toolchain,
            &toolchain.program(&["classify"], &[]),
            &["collect"],
        );
        assert_eq!(
            toolchain.counts(&ran.merged(), "_Z8classifyPii"),
            (64, vec![0, 32])
        );
    }
}
