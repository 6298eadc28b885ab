//! Faults, each at its first, a middle and its last place: whatever fails, nothing crashes or hangs,
//! what is unaffected is drained exactly, and one line says what is lost.
//!
//! Each file here is a place where faults are put, and prints how many it put and saw survived:
//! `cargo test --test faults -- --nocapture | grep '^figure: '`.

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

#[path = "../drain/fake_device.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the drain, which use all of it"
)]
mod fake_device;
#[path = "../whole_program/support/mod.rs"]
#[allow(
    dead_code,
    reason = "shared with the whole-program tests, which use all of it"
)]
mod support;

/// Says again what a test that ran in a process of its own has said.
fn pass_on_figures(ended: &support::command::Ended) {
    let lines = ended.stdout.lines();
    let figures: Vec<&str> = lines.filter(|it| it.starts_with("figure: ")).collect();
    assert_eq!(figures.len(), 1, "{ended}");
    println!("\n{}", figures[0]);
}

/// Says how many faults of a kind were put, all of which were survived.
fn figure(name: &str, survived: usize) {
    // The test's name may stand on the line already.
    println!("\nfigure: {name} {survived}");
}
