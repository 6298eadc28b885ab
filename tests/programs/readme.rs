//! The README's commands, run as they are written.
//!
//! Blocks of the language `sh` are run, in their order, in one shell. Blocks of `bash` and `yaml` are for other
//! machines and for CI.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};

/// The block with this command has built the libraries under test; the others run with them.
const BUILD: &str = "cargo build --release --workspace";

/// The commands for ROCm, and their replacements on a machine that has neither ROCm nor a GPU.
const WITHOUT_ROCM: [(&str, &str); 3] = [
    (
        "hipcc ",
        "clang++-22 --config=testdata/sample/debian12.cfg ",
    ),
    ("/opt/rocm/llvm/bin/clang++", "clang++-22"),
    ("rocov run -- ", "rocov run --gpu model -- "),
];

/// The parts of the repository to which the commands refer.
const PARTS: [&str; 3] = ["tools", "testdata", "examples"];

/// Returns the text of each block of the language `sh`.
fn blocks(readme: &str) -> Vec<&str> {
    let blocks = readme.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

/// Makes a directory that looks like the repository, and takes the files that the commands write.
fn stand_in(directory: &Path) {
    let target = built("rocov");
    let target = target.ancestors().nth(2).expect("cargo's target directory");
    let link = |place: &Path, name: &str| {
        symlink(place, directory.join(name)).expect("a link can be made");
    };
    link(target, "target");
    for part in PARTS {
        link(&repository(part), part);
    }
}

#[test]
fn every_command_of_the_readme_works_as_written() {
    let readme = std::fs::read_to_string(repository("README.md")).expect("a README");
    let blocks = blocks(&readme);
    let [
        install,
        with_rocm,
        without_gpu,
        with_cmake,
        without_flags,
        others,
    ] = blocks.as_slice()
    else {
        panic!("README.md has {} blocks of sh", blocks.len());
    };
    assert!(install.lines().any(|line| line == BUILD), "{install}");
    let install = install.replace(BUILD, "true");
    let with_rocm = WITHOUT_ROCM
        .iter()
        .fold((*with_rocm).to_owned(), |script, (from, to)| {
            assert!(script.contains(from), "no {from:?} in {script}");
            script.replace(from, to)
        });
    let script = [
        install.as_str(),
        &with_rocm,
        "rocov clean\n",
        without_gpu,
        with_cmake,
        without_flags,
        others,
    ]
    .concat();

    let directory = tempfile::tempdir().expect("a temporary directory");
    stand_in(directory.path());
    let mut shell = limited("bash");
    shell
        .args(["-e", "-u", "-o", "pipefail", "-c", &script])
        .env_remove("LLVM_PROFILE_FILE")
        .current_dir(directory.path());
    let ended = run(&mut shell).success().silently();
    // Both quick starts have one program, of which 71 of 90 lines run. Then come the table of CMake's
    // tests, of which the second runs all lines, and the trace of the first program: 37 of its 45 lines.
    let totals = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with("TOTAL"));
    let totals: Vec<_> = totals.collect();
    let expected = ["78.89%", "78.89%", "100.00%", "82.22%"];
    assert_eq!(totals.len(), expected.len(), "{ended}");
    for (total, expected) in totals.iter().zip(expected) {
        assert!(total.contains(expected), "{expected}: {ended}");
    }
    for word in ["part_of_a_block", "pages/index.html", "steps_kernel"] {
        assert!(ended.stdout.contains(word), "no {word:?}: {ended}");
    }
    for file in ["pages/index.html", "merged/gfx90a.profdata"] {
        assert!(directory.path().join(file).is_file(), "no {file}: {ended}");
    }
}
