//! Faults at the first, a middle and the last call. After each of them nothing crashes or hangs, the
//! unaffected code is drained exactly, and one line reports the loss.
//!
//! Each file here covers one kind of call. It prints the number of its faults, all survived: `cargo
//! test --test fault_injection -- --nocapture | grep '^figure: '`.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

mod account;
mod allocation;
mod case;
mod device;
mod file_faults;
mod files;
mod fixture;
mod runtime;
mod runtime_table;
mod scripted;
mod ways;

use rocov_tests as support;

/// Prints the figures of a test that ran in a separate process.
fn pass_on_figures(ended: &support::command::Ended) {
    let lines = ended.stdout.lines();
    let figures: Vec<&str> = lines.filter(|line| line.starts_with("figure: ")).collect();
    assert_eq!(figures.len(), 1, "{ended}");
    println!("\n{}", figures[0]);
}

/// Prints the number of faults of a kind, all survived.
fn figure(name: &str, survived: usize) {
    // The line may already begin with the test's name.
    println!("\nfigure: {name} {survived}");
}
