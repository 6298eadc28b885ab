//! llvm-profdata shows the profiles that rocov writes as it shows its own.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use rocov::format::codeobject::name_ref;
use rocov::format::profraw::Sum;
use tempfile::TempDir;

use super::*;
use crate::profdata::indexed_reader;
use crate::system::command;

/// The flags of each kind of counters.
const KINDS: [&str; 4] = [
    "-fprofile-instr-generate",
    "-fprofile-generate -mllvm -disable-vp",
    "-fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc",
    "-fprofile-instr-generate -fcoverage-mapping -mllvm -enable-single-byte-coverage",
];

fn profdata(release: u32) -> Command {
    Command::new(format!("llvm-profdata-{release}"))
}

/// A release that has the runtime of profiles on the host, and writes the raw version of another release.
fn runtime(release: u32) -> u32 {
    if release == 15 { 15 } else { 22 }
}

/// The version of an indexed profile.
fn version(file: &[u8]) -> u64 {
    LittleEndian::read_u64(&file[8..]) & !(0xff << 56)
}

/// The profile with all sums, each of code by these releases of clang; `None` if they do not fit together.
fn profile<const N: usize>(
    sums: [(&Sum, Option<RangeInclusive<u32>>); N],
) -> Option<IndexedProfile> {
    let mut profile = IndexedProfile::default();
    let mut add =
        |(sum, clang)| profile.add(NamedCounts::from_sum(sum, clang).unwrap(), "a profile");
    let all_fit = sums.into_iter().all(|sum| add(sum).is_ok_and(|fits| fits));
    all_fit.then_some(profile)
}

/// The output of llvm-profdata for a profile: its functions, sorted, as it prints them in the order of the hash
/// table, and the summary.
fn shown(release: u32, profile: &Path) -> (Vec<String>, String) {
    let mut show = profdata(release);
    show.args(["show", "--all-functions", "--counts", "--detailed-summary"]);
    let shown = command::output(show.arg(profile)).unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    let (functions, summary) = shown.split_once("Instrumentation level").unwrap();
    let mut shown: Vec<String> = Vec::new();
    for line in functions.lines() {
        match shown.last_mut() {
            Some(function) if line.starts_with("    ") => *function += line,
            _ => shown.push(line.to_owned()),
        }
    }
    shown.sort_unstable();
    (shown, summary.to_owned())
}

/// The text form of a profile, which has its bitmaps too: a paragraph for each function, sorted.
fn text(release: u32, profile: &Path) -> Vec<String> {
    let mut merge = profdata(release);
    merge.args(["merge", "--text", "-o", "-"]).arg(profile);
    let text = String::from_utf8(command::output(&mut merge).unwrap().stdout).unwrap();
    let mut functions: Vec<_> = text.split("\n\n").map(str::to_owned).collect();
    functions.sort_unstable();
    functions
}

/// The raw profile of a program with many functions, compiled with `flags`.
fn raw_profile(directory: &TempDir, release: u32, flags: &str, functions: usize) -> Vec<u8> {
    let path = |name: &str| directory.path().join(name);
    let source = rocov_tests::cli::data("coverage/other.cpp");
    let source = source.display();
    let many: String = (0..functions)
        .map(|number| {
            format!("int function_{number}(int i) {{ return i > 5 && i % 2 ? {number} : i; }}\n")
        })
        .collect();
    let calls: String = (0..functions)
        .filter(|number| number % 3 == 0)
        .map(|number| format!("for (int i = 0; i < {number}; ++i) sum += function_{number}(i);\n"))
        .collect();
    let text = format!(
        "#include \"{source}\"\n{many}int main() {{ int sum = 0;\n{calls} return sum == 1; }}"
    );
    fs::write(path("source.cpp"), text).unwrap();
    let mut compile = Command::new(format!("clang++-{release}"));
    compile.args(flags.split(' ')).args(["-w", "-c", "-o"]);
    command::output(compile.arg(path("object")).arg(path("source.cpp"))).unwrap();
    let mut link = Command::new(format!("clang++-{}", runtime(release)));
    link.args(flags.split(' ')).arg("-o").arg(path("program"));
    command::output(link.arg(path("object"))).unwrap();
    let mut program = Command::new(path("program"));
    program.env("LLVM_PROFILE_FILE", path("raw"));
    command::output(&mut program).unwrap();
    fs::read(path("raw")).unwrap()
}

#[test]
fn llvm_profdata_shows_equal_counts_and_summaries() {
    let compilers = [
        (15, 0..2, [7, 7, 0, 0]),
        (19, 0..4, [7, 7, 12, 7]),
        (22, 0..4, [13, 7, 13, 13]),
    ];
    for (release, kinds, versions) in compilers {
        for kind in kinds {
            // Names of many functions are deflated, those of a few are not.
            for (functions, sparse) in [(0, &[false][..]), (300, &[false, true])] {
                let directory = tempfile::tempdir().unwrap();
                let raw = raw_profile(&directory, release, KINDS[kind], functions);
                for &sparse in sparse {
                    let what = format!("{release} {} {functions} {sparse}", KINDS[kind]);
                    let written = shows_equal(release, &directory, &raw, sparse, &what);
                    assert!(
                        functions == 0 || written == versions[kind],
                        "{what}: {written}"
                    );
                }
            }
        }
    }
}

/// Compares the sum of some runs with this raw profile, merged by rocov and by llvm-profdata. Returns the version of
/// the indexed profile.
fn shows_equal(release: u32, directory: &TempDir, raw: &[u8], sparse: bool, what: &str) -> u64 {
    let path = |name: &str| directory.path().join(name);
    let mut sum = Sum::new(raw.to_vec()).unwrap();
    let is_single_byte = sum.profile().header.version().is_single_byte();
    let runs = if is_single_byte { 1 } else { 2 };
    if runs == 2 {
        sum.add(raw).unwrap();
    }
    let clang = Some(release..=release);
    // Two code objects with the functions add up.
    let sums = [(&sum, clang.clone()), (&sum, clang)];
    let bytes = profile(sums).unwrap().bytes(sparse).unwrap();
    let written = version(&bytes);
    let [ours, theirs] = ["ours", "theirs"].map(path);
    fs::write(&ours, bytes).unwrap();
    let mut merge = profdata(release);
    merge.arg("merge").args(vec![path("raw"); 2 * runs]);
    merge.args(sparse.then_some("--sparse"));
    command::output(merge.arg("-o").arg(&theirs)).unwrap();
    assert_eq!(text(release, &ours), text(release, &theirs), "{what}");
    let mut expected = sum.functions().unwrap();
    if !sparse {
        for counts in expected.values_mut() {
            let once = counts.clone();
            counts.add(&once).unwrap();
        }
        for path in [&ours, &theirs] {
            let read = indexed_reader::read(&fs::read(path).unwrap()).unwrap();
            assert_eq!(read.functions, expected, "{what}");
            let has_bitmaps = expected
                .values()
                .any(|function| !function.bitmap.is_empty());
            assert!(!has_bitmaps || read.version.has_new_bitmaps(), "{what}");
        }
    }
    let (ours, theirs) = (shown(release, &ours), shown(release, &theirs));
    let has_counts = |function: &String| function.contains("Hash: ");
    let known = theirs
        .0
        .iter()
        .filter(|function| has_counts(function))
        .count();
    assert!(known > expected.len() / 4, "{what}: {known}");
    assert_eq!(ours, theirs, "{what}");
    written
}

#[test]
fn the_version_tells_the_hashes_of_functions() {
    let directory = tempfile::tempdir().unwrap();
    let sum = |kind: usize| Sum::new(raw_profile(&directory, 22, KINDS[kind], 3)).unwrap();
    let [front_end, ir] = [0, 1].map(sum);
    // Raw version 10 is that of LLVM 19 to 22, and the hashes of these functions have one form.
    for (clangs, forms, expected) in [
        ([Some(22..=22), Some(23..=23)], (false, true), 13),
        ([Some(20..=21), Some(19..=19)], (true, false), 7),
        ([Some(21..=21), None], (true, false), 7),
        ([Some(22..=22), Some(21..=22)], (false, true), 13),
        ([Some(21..=21), Some(22..=22)], (true, true), 13),
        ([None, None], (false, false), 7),
    ] {
        let [one, other] = clangs.map(|clang| (&front_end, clang));
        let profile = profile([one, other]).unwrap();
        let hashes = profile.hashes();
        assert_eq!((hashes.has_long, hashes.has_short), forms);
        assert_eq!(version(&profile.bytes(false).unwrap()), expected);
    }
    // LLVM's IR has one kind of hashes.
    let of_ir = profile([(&ir, None)]).unwrap();
    assert_eq!(of_ir.hashes(), FunctionHashes::default());
    let clang = Some(22..=22);
    assert!(profile([(&front_end, clang.clone()), (&ir, clang)]).is_none());
}

#[test]
fn a_function_with_other_counters_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let sum = Sum::new(raw_profile(&directory, 22, KINDS[0], 3)).unwrap();
    let mut profile = IndexedProfile::default();
    profile
        .add(NamedCounts::from_sum(&sum, None).unwrap(), "one")
        .unwrap();
    assert_eq!(profile.left_out(), None);
    let before = profile.functions.clone();
    let mut other = NamedCounts::from_sum(&sum, None).unwrap();
    let main = name_ref(b"main");
    other.functions.retain(|(name, _), _| *name == main);
    for counts in other.functions.values_mut() {
        counts.counters.push(1);
    }
    profile.add(other, "other").unwrap();
    assert_eq!(profile.left_out(), Some((1, "main".to_owned())));
    assert_eq!(profile.functions, before);
}

#[test]
fn a_counter_is_uniform_from_nine_tenths_on() {
    // As `llvm-profdata-23 show` prints of profiles with these counts.
    let marks = |counters: &[u64], uniform: &[u64]| {
        uniformity(&FunctionCounts {
            counters: counters.to_vec(),
            uniform: uniform.to_vec(),
            ..FunctionCounts::default()
        })
    };
    assert_eq!(marks(&[1000, 1000], &[899, 900]), [0xfe]);
    assert_eq!(marks(&[10, 11], &[9, 9]), [0xfd]);
    assert_eq!(marks(&[0, u64::MAX], &[0, u64::MAX]), [0xff]);
    assert_eq!(marks(&[1; 9], &[0; 9]), [0, 0xfe]);
    assert_eq!(marks(&[1; 8], &[1; 8]), [0xff]);
    assert!(marks(&[1; 9], &[]).is_empty());
}
