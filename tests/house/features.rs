//! A build compiles all that its tests use.

use std::collections::BTreeSet;

use rocov_tests::artifacts::repository;
use rocov_tests::command::{limited, run};

/// The packages of all members with their features, as an invocation with these edges compiles them.
fn packages(edges: &str) -> BTreeSet<String> {
    let mut cargo = limited(env!("CARGO"));
    cargo
        .current_dir(repository(""))
        .args(["tree", "--workspace", "--prefix=none", "--format={p} {f}"])
        .args(["--locked", "--offline", "--edges", edges]);
    let listed = run(&mut cargo).success().stdout;
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
