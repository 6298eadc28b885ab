//! Lines of templates have the counts that they ran, by arithmetic, and llvm-cov's by its rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rocov_tests::cli::data;
use rocov_tests::cli::release::Release;
use tempfile::TempDir;

use crate::coverage::collect::{CountedBinary, collect};
use crate::coverage::exclusions::Exclusions;
use crate::coverage::model::{Side, Source};
use crate::coverage::view::{By, Rules, View};
use crate::llvm::LlvmTools;
use crate::profdata::{BinaryCounts, CountKind, CountKinds, ProfileCounts};
use crate::system::command;

/// The mark of a line's count in the source.
const MARK: &str = "//= ";
/// The first release whose mapping lists the parts of an `if constexpr` that are left out. Before, the parts that are
/// not left out have counters that nothing adds to.
const RELEASES: [u32; 3] = [19, 22, 23];

/// A program of a release, which has run.
struct Ran {
    release: Release,
    directory: TempDir,
    source: PathBuf,
}

impl Ran {
    fn find(number: u32) -> Option<Self> {
        let release = Release::find(number, "early exits of templates")?;
        // Debian has no runtime of profiles for LLVM 19. That of 22 writes the same raw version.
        let linker = Release::find(if number == 19 { 22 } else { number }, "early exits")?;
        let ran = Self {
            release,
            directory: tempfile::tempdir().unwrap(),
            source: data("coverage/early_exits.cpp"),
        };
        let flags = ["-std=c++17", "-w", "-fprofile-instr-generate"];
        let mut compile = Command::new(ran.release.program("clang++"));
        compile.args(flags).args(["-fcoverage-mapping", "-c"]);
        command::output(compile.arg(&ran.source).arg("-o").arg(ran.path("main.o"))).unwrap();
        let mut link = Command::new(linker.program("clang++"));
        link.args(flags).arg(ran.path("main.o"));
        command::output(link.arg("-o").arg(ran.path("main"))).unwrap();
        let mut program = Command::new(ran.path("main"));
        command::output(program.env("LLVM_PROFILE_FILE", ran.path("raw"))).unwrap();
        Some(ran)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn sources(&self) -> Vec<Source> {
        let counts = ProfileCounts::read_programs(&[&self.path("raw")]).unwrap();
        let input = CountedBinary {
            side: Side::Host,
            arch: "host".to_owned(),
            identity: String::new(),
            binary: self.path("main"),
            objects: vec![self.path("main")],
            counts: BinaryCounts::Summed(Arc::new(counts)),
            kinds: CountKinds::from([CountKind::Mapping]),
            sizes: Arc::default(),
            uniformity: None,
        };
        collect(&[input], &LlvmTools::only(None), str::to_owned)
            .unwrap()
            .sources
    }

    fn view(&self, rules: Rules) -> View {
        View::by_rules(rules, &Exclusions::none(), self.sources(), By::Arch, |_| {
            true
        })
    }

    /// The counts of the lines by these rules.
    fn lines(&self, rules: Rules) -> BTreeMap<u32, u64> {
        let view = self.view(rules);
        let (column, path) = (&view.columns[0], self.source.to_str().unwrap());
        column
            .lines(path, &column.segments(path))
            .into_iter()
            .collect()
    }

    /// The counts of the lines by the llvm-cov of the release.
    fn by_llvm_cov(&self) -> BTreeMap<u32, u64> {
        let indexed = self.path("indexed");
        let mut merge = Command::new(self.release.program("llvm-profdata"));
        merge.arg("merge").arg(self.path("raw"));
        command::output(merge.arg("-o").arg(&indexed)).unwrap();
        let mut export = Command::new(self.release.program("llvm-cov"));
        export.args(["export", "-format=lcov", "-instr-profile"]);
        let output = command::output(export.arg(&indexed).arg(self.path("main"))).unwrap();
        let tracefile = String::from_utf8(output.stdout).unwrap();
        let lines = tracefile
            .lines()
            .filter_map(|line| line.strip_prefix("DA:"));
        let lines = lines.map(|other| {
            let (line, count) = other.split_once(',').unwrap();
            (line.parse().unwrap(), count.parse().unwrap())
        });
        lines.collect()
    }

    /// The counts that the source has in its marks.
    fn marked(&self) -> BTreeMap<u32, u64> {
        let text = fs::read_to_string(&self.source).unwrap();
        let marked = (1..).zip(text.lines()).filter_map(|(number, line)| {
            let (_, count) = line.rsplit_once(MARK)?;
            Some((number, count.parse().ok()?))
        });
        marked.collect()
    }
}

#[test]
fn lines_have_the_counts_that_they_ran() {
    for number in RELEASES {
        let Some(ran) = Ran::find(number) else {
            continue;
        };
        let (found, marked) = (ran.lines(Rules::Own), ran.marked());
        assert!(marked.len() > 50);
        let wrong = marked
            .iter()
            .filter(|(line, count)| found.get(line) != Some(count));
        let wrong: Vec<_> = wrong
            .map(|(line, count)| format!("line {line}: {:?}, not {count}", found.get(line)))
            .collect();
        assert!(wrong.is_empty(), "clang {number}: {wrong:#?}");
    }
}

#[test]
fn by_the_rules_of_llvm_cov_lines_have_its_counts() {
    for number in RELEASES {
        let Some(ran) = Ran::find(number) else {
            continue;
        };
        let expected = ran.by_llvm_cov();
        assert_eq!(ran.lines(Rules::LlvmCov), expected, "clang {number}");
        // llvm-cov reports lines that ran as lines that did not.
        let marked = ran.marked();
        let false_zeros = marked
            .iter()
            .filter(|(line, count)| **count > 0 && expected[line] == 0);
        assert!(false_zeros.count() > 5, "clang {number}");
    }
}
