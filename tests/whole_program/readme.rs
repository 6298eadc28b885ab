//! The README's quick start, run as it is written.

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use std::os::unix::fs::symlink;

/// The line that has built what this test runs.
const BUILD: &str = "cargo build --release --workspace";

/// The shell commands of a section, a text for each block.
fn blocks(readme: &str, heading: &str) -> Vec<String> {
    let (_, section) = readme
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no section {heading:?}"));
    let section = section.split("\n##").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    let ended = |block: &str| block.split("```").next().unwrap_or_default().to_owned();
    blocks.map(ended).collect()
}

#[test]
fn the_quick_start_works_as_written() {
    let readme = std::fs::read_to_string(repository("README.md")).expect("a README");
    let blocks = blocks(&readme, "Quick start");
    let [setup, usage] = blocks.as_slice() else {
        panic!("the quick start has {} blocks", blocks.len());
    };
    assert!(setup.lines().any(|line| line == BUILD), "{setup}");
    let script = format!("{}{usage}", setup.replace(BUILD, "true"));

    // A directory that looks like the repository, and takes what the commands write.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let release = built("rocov");
    let target = release
        .ancestors()
        .nth(2)
        .expect("cargo's target directory");
    for (name, place) in [
        ("tools", repository("tools").as_path()),
        ("testdata", &repository("testdata")),
        ("target", target),
    ] {
        symlink(place, directory.path().join(name)).expect("a link can be made");
    }
    let mut shell = limited("bash");
    shell
        .args(["-e", "-u", "-o", "pipefail", "-c", &script])
        .env_remove("LLVM_PROFILE_FILE")
        .current_dir(directory.path());
    let ended = run(&mut shell).success().silently();
    let total = ended.stdout.lines().find(|line| line.starts_with("TOTAL"));
    assert!(
        total.is_some_and(|line| line.contains("78.89%")),
        "the sample's 71 of 90 lines: {ended}"
    );
}
