//! Lines of kernels whose instances leave early have the counts that the kernels themselves add up in memory.

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::gpu::Stack;
use crate::support::program::Program;
use crate::support::unpacked::not_run;

const SOURCE: &str = "early_exits/early_exits.hip";
const TARGET: &str = "gfx90a";
/// The part of lines that add up their threads.
const MARK: &str = "ran(times, ";

#[test]
fn lines_behind_early_exits_have_the_counts_in_memory() {
    let Some(stack) = Stack::hip_7() else {
        not_run("early exits of kernels, on HIP 7.2.4");
        return;
    };
    let target = format!("--offload-arch={TARGET}");
    let program = Program::build(stack, &[SOURCE], &[], &["-O1", &target]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let ended = run(&mut program.under_rocov(TARGET, &data)).success();
    let times: Vec<u64> = ended
        .stdout
        .lines()
        .map(|line| line.parse().expect("a number of threads"))
        .collect();

    let path = repository("testdata/programs").join(SOURCE);
    let text = std::fs::read_to_string(path).expect("the source");
    let marked = (1..)
        .zip(text.lines())
        .filter_map(|(number, line)| line.contains(MARK).then_some(number));
    let expected: Vec<(usize, u64)> = marked.zip(times).collect();
    assert!(expected.iter().any(|(_, count)| *count > 0));
    assert!(expected.iter().any(|(_, count)| *count == 0));

    let lines = |options: &[&str]| {
        let mut report = limited(built("rocov"));
        report.arg("report").arg(&data).arg("--lcov").args(options);
        let ended = run(&mut report).success();
        let lines = ended.stdout.lines().filter_map(|line| {
            let (number, count) = line.strip_prefix("DA:")?.split_once(',')?;
            Some((number.parse().ok()?, count.parse().ok()?))
        });
        let lines: Vec<(usize, u64)> = lines.collect();
        let is_marked = |line: &usize| expected.iter().any(|(number, _)| number == line);
        let lines = lines.into_iter().filter(|(line, _)| is_marked(line));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(lines(&[]), expected);
    let by_llvm_cov = lines(&["--as-llvm-cov"]);
    assert_ne!(
        by_llvm_cov, expected,
        "llvm-cov is right: update the table of differences"
    );
}
