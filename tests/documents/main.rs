//! README, quick start and guides: every block of code is used as it is written.
//!
//! A page is a session in a fresh directory, which looks like a clone of the repository in which rocov is built. The
//! commands of its blocks run in their order, in one shell, and what the page prints below a command is compared with
//! what the command prints here: `...` stands for any lines. [`pages`] is the only place that says what a page needs:
//! files, stand-ins for programs, names that differ here, and the blocks that cannot run on this machine. `rocov`
//! still reads the command lines of these. A block of another language than a shell's needs a mark there: the file
//! that it is, or the output of which it is a part.

mod blocks;
mod pages;
mod session;

use std::collections::BTreeSet;
use std::fs;

use rocov_tests as support;
use rocov_tests::artifacts::{files_with_extension, repository};

use blocks::Block;
use pages::PAGES;
use session::Session;

/// Uses the blocks of a page.
fn use_page(path: &str) {
    let page = PAGES
        .iter()
        .find(|page| page.path == path)
        .unwrap_or_else(|| panic!("{path} is not in the table of pages"));
    let text = fs::read_to_string(repository(path)).expect("a page");
    let Some(mut session) = Session::begin(page) else {
        return;
    };
    let blocks = Block::all(&text);
    let mut unused: BTreeSet<_> = page.marks.iter().map(|mark| mark.starts).collect();
    for block in &blocks {
        let mark = page.mark_of(block);
        if let Some(mark) = mark {
            unused.remove(mark.starts);
        }
        session.add(block, mark);
    }
    assert!(
        unused.is_empty(),
        "{path} has no block that starts with {unused:?}: change the table of pages"
    );
    session.run();
}

/// Makes a test of each page, so that they run at the same time and fail by their names.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const TESTED: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                use_page($path);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    quick_start: "docs/src/quick-start.md",
    architectures: "docs/src/guides/architectures.md",
    bazel: "docs/src/guides/bazel.md",
    builds: "docs/src/guides/builds.md",
    changed_lines: "docs/src/guides/changed-lines.md",
    cmake: "docs/src/guides/cmake.md",
    compile: "docs/src/guides/compile.md",
    containers: "docs/src/guides/containers.md",
    diff: "docs/src/guides/diff.md",
    editors: "docs/src/guides/editors.md",
    fleet: "docs/src/guides/fleet.md",
    formats: "docs/src/guides/formats.md",
    gates: "docs/src/guides/gates.md",
    hiprtc: "docs/src/guides/hiprtc.md",
    html: "docs/src/guides/html.md",
    instrument: "docs/src/guides/instrument.md",
    instrument_amd: "docs/src/guides/instrument-amd.md",
    kernels: "docs/src/guides/kernels.md",
    labels: "docs/src/guides/labels.md",
    line_tables: "docs/src/guides/line-tables.md",
    long_running: "docs/src/guides/long-running.md",
    meson: "docs/src/guides/meson.md",
    nvidia: "docs/src/guides/nvidia.md",
    openmp: "docs/src/guides/openmp.md",
    per_test: "docs/src/guides/per-test.md",
    pgo: "docs/src/guides/pgo.md",
    plugin: "docs/src/guides/plugin.md",
    project_file: "docs/src/guides/project-file.md",
    python: "docs/src/guides/python.md",
    python_kernels: "docs/src/guides/python-kernels.md",
    python_kernels_details: "docs/src/guides/python-kernels-details.md",
    ranks: "docs/src/guides/ranks.md",
    report: "docs/src/guides/report.md",
    run: "docs/src/guides/run.md",
    selftest: "docs/src/guides/selftest.md",
    therock: "docs/src/guides/therock.md",
    trace: "docs/src/guides/trace.md",
    without_run: "docs/src/guides/without-run.md",
}

/// Pages whose blocks other tests use.
const ELSEWHERE: [&str; 1] = [
    // tests/integrations
    "docs/src/guides/ci.md",
];

#[test]
fn every_guide_with_a_block_has_a_test() {
    for path in files_with_extension("docs/src/guides", "md") {
        let text = fs::read_to_string(&path).expect("a guide");
        let name = path.file_name().expect("a name").to_string_lossy();
        let name = format!("docs/src/guides/{name}");
        let is_used = TESTED.contains(&&*name) || ELSEWHERE.contains(&&*name);
        assert!(
            is_used || Block::all(&text).is_empty(),
            "{name} has blocks of code and no test: add it to tests/documents"
        );
    }
}
