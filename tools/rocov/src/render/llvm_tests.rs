//! Reports on the sources of LLVM's own tests of coverage are, by the rules of llvm-cov, what llvm-cov exports.
//!
//! Profiles of random counts stand for runs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use object::Object;
use rocov::format::profraw::Version;
use rocov_tests::cli::random::Random;
use rocov_tests::cli::release::Release;
use serde_json::Value;
use tempfile::TempDir;

use super::against_llvm_cov::{LCOV, sorted};
use super::{Format, JsonContents, write};
use crate::coverage::collect::{CountedBinary, collect};
use crate::coverage::evaluate::tests::profile;
use crate::coverage::exclusions::Exclusions;
use crate::coverage::model::Side;
use crate::coverage::view::{By, Rules, View};
use crate::llvm::LlvmTools;
use crate::profdata::{BinaryCounts, CountKind, CountKinds, ProfileCounts};
use crate::support::parallel;
use crate::system::command;

/// The sources, below the root of LLVM's.
const DIRECTORIES: [&str; 3] = [
    "clang/test/CoverageMapping",
    "llvm/test/tools/llvm-cov",
    "llvm/test/tools/llvm-cov/Inputs",
];
/// The first release whose llvm-cov has conditions in the order of the source, also in nested macros.
const FIRST_WITH_ORDER: u32 = 23;
/// The count that llvm-cov exports for a negative one. Other sums have it, too, and wrap around.
const LARGEST: &str = "9223372036854775807";

/// The seeds of random counts.
const SEEDS: [u64; 2] = [0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321];

/// The directory of LLVM's tests; `None` if tools/stacks has not fetched them.
fn directory() -> Option<PathBuf> {
    let mut stacks = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/stacks"));
    let output = stacks.args(["sources", "llvm-tests-22"]).output();
    let output = output.ok().filter(|output| output.status.success());
    if output.is_none() {
        // Around the capture of passing tests' output: tools/test counts these lines.
        let _ = writeln!(
            stderr(),
            "not run: coverage of LLVM's tests, which are not here"
        );
    }
    let directory = String::from_utf8(output?.stdout).unwrap();
    Some(directory.trim_end().into())
}

fn sources(root: &Path) -> Vec<PathBuf> {
    let entries = DIRECTORIES.map(|directory| fs::read_dir(root.join(directory)).unwrap());
    let paths = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let is_source = |path: &PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str);
        matches!(extension, Some("c" | "cpp" | "cc" | "C"))
    };
    let mut sources: Vec<_> = paths.filter(is_source).collect();
    sources.sort();
    sources
}

/// A library of one of the sources; `None` if the compiler does not take it.
fn compile(release: &Release, source: &Path, object: &Path) -> Option<()> {
    let mut clang = Command::new(release.program("clang++"));
    if source.extension().is_some_and(|extension| extension == "c") {
        clang.args(["-x", "c"]);
    }
    for flag in [
        "-fprofile-instrument=clang",
        "-fcoverage-mapping",
        "-fcoverage-mcdc",
    ] {
        clang.args(["-Xclang", flag]);
    }
    clang.args([
        "-w",
        "-fPIC",
        "-shared",
        "-nostdlib",
        "-fuse-ld=lld",
        "-Wl,--unresolved-symbols=ignore-all",
    ]);
    let source = source.canonicalize().unwrap();
    let output = clang.arg("-o").arg(object).arg(source).output().unwrap();
    output.status.success().then_some(())
}

/// The exports of llvm-cov and rocov: JSON and LCOV.
struct Exports {
    llvm_cov: [Vec<u8>; 2],
    rocov: [Vec<u8>; 2],
}

/// Returns whether a library has functions with counters and a coverage mapping.
fn has_functions(library: &Path) -> bool {
    let bytes = fs::read(library).unwrap();
    let has = |elf: &object::File<'_>, name| elf.section_by_name(name).is_some();
    object::File::parse(&*bytes)
        .is_ok_and(|elf| has(&elf, "__llvm_covfun") && has(&elf, "__llvm_prf_data"))
}

/// The exports on a library with random counts.
fn exports(release: &Release, library: &Path, seed: u64) -> Exports {
    let directory = TempDir::new().unwrap();
    let [raw, indexed] = ["raw", "indexed.profdata"].map(|name| directory.path().join(name));
    let version = Version::from_clang(release.number).unwrap();
    fs::write(&raw, profile(library, version, &mut Random(seed))).unwrap();
    let mut merge = Command::new(release.program("llvm-profdata"));
    command::output(merge.arg("merge").arg(&raw).arg("-o").arg(&indexed)).unwrap();
    let llvm_cov = ["text", "lcov"].map(|format| {
        let mut export = Command::new(release.program("llvm-cov"));
        export.args(["export", "-format", format, "-instr-profile"]);
        command::output(export.arg(&indexed).arg(library))
            .unwrap()
            .stdout
    });
    let counts = ProfileCounts::read(&[&raw]).unwrap();
    let input = CountedBinary {
        side: Side::Host,
        arch: "host".to_owned(),
        identity: String::new(),
        binary: library.to_owned(),
        objects: vec![library.to_owned()],
        counts: BinaryCounts::Summed(Arc::new(counts)),
        kinds: CountKinds::from([CountKind::Mapping]),
        sizes: Arc::default(),
        uniformity: None,
    };
    let collected = collect(&[input], &LlvmTools::only(None), str::to_owned).unwrap();
    let view = View::by_rules(
        Rules::LlvmCov,
        &Exclusions::none(),
        collected.sources,
        By::Arch,
        |_| true,
    );
    let json = Format::Json {
        contents: JsonContents::All,
    };
    let rocov = [json, LCOV].map(|format| {
        let mut out = Vec::new();
        write(&view, format, &BTreeMap::new(), &mut out).unwrap();
        out
    });
    Exports { llvm_cov, rocov }
}

/// Sorts the conditions of each decision, in every list of decisions. Leaves out the values that were seen.
fn without_order(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(without_order),
        Value::Object(members) => {
            for (name, member) in members {
                let Some(decisions) = member.as_array_mut().filter(|_| name == "mcdc_records")
                else {
                    without_order(member);
                    continue;
                };
                for decision in decisions.iter_mut().filter_map(Value::as_array_mut) {
                    decision.truncate(10);
                    if let Some(covered) = decision.last_mut().and_then(Value::as_array_mut) {
                        covered.sort_by_key(Value::as_bool);
                    }
                }
            }
        }
        _ => {}
    }
}

/// The first difference between two exports, in words.
fn difference(release: &Release, exports: &Exports) -> Option<String> {
    let [expected, found] = [&exports.llvm_cov[0], &exports.rocov[0]].map(|text| {
        let mut export = sorted(text);
        if release.number < FIRST_WITH_ORDER {
            without_order(&mut export);
        }
        export
    });
    if found["totals"] != expected["totals"] {
        return Some(format!(
            "totals {}, not {}",
            found["totals"], expected["totals"]
        ));
    }
    for list in ["files", "functions"] {
        let (found, expected) = (&found[list], &expected[list]);
        let (found, expected) = (found.as_array().unwrap(), expected.as_array().unwrap());
        if found.len() != expected.len() {
            return Some(format!("{} {list}, not {}", found.len(), expected.len()));
        }
        for (found, expected) in found.iter().zip(expected) {
            for (key, value) in expected.as_object().unwrap() {
                if found[key] != *value {
                    return Some(format!("{list}: {key}: {}, not {value}", found[key]));
                }
            }
        }
    }
    let lines = [&exports.llvm_cov[1], &exports.rocov[1]].map(|text| {
        let text = String::from_utf8_lossy(text);
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    });
    let [expected, found] = &lines;
    let lacks = |of: &[String], line: &&String| of.binary_search(line).is_err();
    let lacking = expected.iter().find(|line| lacks(found, line));
    let more = found.iter().find(|line| lacks(expected, line));
    (expected != found).then(|| format!("LCOV: {more:?}, not {lacking:?}"))
}

#[test]
fn reports_on_llvms_tests_are_those_of_llvm_cov() {
    let Some(root) = directory() else {
        return;
    };
    for number in [22, 23] {
        let Some(release) = Release::find(number, "coverage of LLVM's tests") else {
            continue;
        };
        let compared = parallel::map(&sources(&root), |source| {
            let directory = TempDir::new().unwrap();
            let library = directory.path().join("library.so");
            if compile(&release, source, &library).is_none() || !has_functions(&library) {
                return Ok(Vec::new());
            }
            let exports = SEEDS.map(|seed| exports(&release, &library, seed));
            let exports = exports.into_iter().filter(|exports| {
                let text = String::from_utf8_lossy(&exports.llvm_cov[0]);
                !text.contains(LARGEST)
            });
            let name = source.strip_prefix(&root).unwrap().display();
            let compared = exports
                .map(|export| difference(&release, &export).map(|line| format!("{name}: {line}")));
            Ok(compared.collect::<Vec<_>>())
        });
        let compared = compared.unwrap().concat();
        assert!(compared.len() > 60, "clang {number}: {}", compared.len());
        let different: Vec<_> = compared.iter().flatten().collect();
        assert!(different.is_empty(), "clang {number}: {different:#?}");
    }
}
