//! Drains on the program's request: before there is anything to drain, and again at exit.

use super::{Ran, program};
use crate::support::gpu::Stack;
use crate::support::program::counts;

#[test]
fn early_collect() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["step"], &[]), &["collect"]);
        let merged = ran.merged();
        assert_eq!(counts(&merged, "_Z4stepPi"), (1, vec![1]));
        assert_eq!(counts(&merged, "main").0, 1);
    }
}

#[test]
fn collect_after() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["classify"], &[]), &["collect"]);
        assert_eq!(counts(&ran.merged(), "_Z8classifyPii"), (64, vec![0, 32]));
    }
}
