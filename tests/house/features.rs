//! A build compiles all that its tests use.

use std::collections::BTreeSet;
use std::process::Command;

use xtask::repository;

/// The packages of all members with their features, as an invocation with these edges compiles them.
fn packages(edges: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(repository(""))
        .args(["tree", "--workspace", "--prefix=none", "--format={p} {f}"])
        .args(["--locked", "--offline", "--edges", edges]);
    let output = cargo.output().expect("cargo can be started");
    assert!(output.status.success(), "cargo tree: {output:?}");
    let listed = String::from_utf8(output.stdout).expect("names are text");
    let packages = listed.lines().map(|line| line.trim_end_matches(" (*)"));
    packages.map(str::to_owned).collect()
}

/// Cargo unites the features that all packages of an invocation ask for. If a dependency of tests asks for one more, a
/// build and its tests compile the command twice, and all crates between.
#[test]
fn tests_ask_for_no_more_features_of_what_is_built() {
    let tested = packages("normal,build,dev");
    let built = packages("normal,build");
    let others: Vec<_> = built.difference(&tested).collect();
    assert!(
        others.is_empty(),
        "`cargo test` compiles these with more features: add them to the package's entry in \
         workspace.dependencies of Cargo.toml, and the entry to tests/Cargo.toml: {others:#?}"
    );
}
