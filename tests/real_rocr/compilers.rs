//! Device code of older compilers and other modes: with each compiler's own flags and tools,
//! without the device header, and with MC/DC.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::programs::{COUNT, Ran, WORK_ITEMS, source};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::{Compilation, device_header, device_only, host_oracle_with};
use crate::support::compilers::{Compiler, RELEASES};
use crate::support::gpu::{Stack, the_profile};
use crate::support::profile::{functions_by, merge_by};
use crate::support::program::flags_for;
use crate::support::spec::expand;

/// Flags of the front end itself. The driver of clang up to 19 keeps its own from GPU code, and that of
/// clang 24 links a library that Debian does not have.
const FRONT_END: [&str; 5] = [
    "-Xclang",
    "-fprofile-instrument=clang",
    "-Xclang",
    "-fprofile-update=atomic",
    "-DROCOV_DEVICE_INSTRUMENTED",
];
const IR_LEVEL: [&str; 5] = [
    "-Xclang",
    "-fprofile-instrument=llvm",
    "-Xclang",
    "-fprofile-update=atomic",
    "-DROCOV_DEVICE_INSTRUMENTED",
];

/// Flags that keep HIP 5.2 from a crash at -O0: see testdata/sample/debian12.cfg.
const FOR_HIP_5: [&str; 8] = [
    "-Xclang",
    "-default-function-attr",
    "-Xclang",
    "amdgpu-no-default-queue",
    "-Xclang",
    "-default-function-attr",
    "-Xclang",
    "amdgpu-no-completion-action",
];

/// All compilers that are here.
pub(crate) fn compilers() -> impl Iterator<Item = &'static Compiler> {
    RELEASES.into_iter().filter_map(Compiler::find)
}

/// count.hip for HIP 5.2, by this compiler with these flags.
fn compiled(compiler: &'static str, flags: impl IntoIterator<Item = OsString>) -> PathBuf {
    device_only(compiler, &["gfx90a"], Stack::Debian12.code_object_version())
        .arguments(["-O1"])
        .arguments(flags)
        .reads([device_header()])
        .source(source("count.hip"))
        .output("count.by")
}

/// One launch of a code object. Its profile must have the compiler's raw version.
fn launched(compiler: &Compiler, object: &Path) -> Ran {
    let ran = Ran::steps(Stack::Debian12, "gfx90a", object, "load launch sync unload");
    let bytes = std::fs::read(ran.profile()).expect("a profile");
    let word = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
    // The highest byte has the variants.
    let version = word & !(0xff << 56);
    assert_eq!(version, compiler.raw_version(), "{}", object.display());
    ran
}

/// The output of the compiler's own llvm-profdata for one launch of a code object.
fn shown(compiler: &Compiler, object: &Path) -> String {
    let ran = launched(compiler, object);
    let profdata = compiler.tool("llvm-profdata");
    let merged = ran.directory.path().join("merged.profdata");
    merge_by(profdata, &[ran.profile()], &merged);
    let mut show = limited(profdata);
    show.args(["show", "--all-functions", "--counts"])
        .arg(&merged);
    ran.ended.silently();
    run(&mut show).success().silently().stdout
}

/// Runs the code object. The compiler's own llvm-profdata must read one launch.
fn is_read(compiler: &Compiler, object: &Path) {
    let shown = shown(compiler, object);
    let calls = format!("Function count: {WORK_ITEMS}");
    let blocks = format!("Block counts: [{WORK_ITEMS}, {}]", WORK_ITEMS / 4);
    for expected in [COUNT, &calls, &blocks] {
        assert!(shown.contains(expected), "no {expected:?} in {shown}");
    }
}

#[test]
fn each_by_its_own_flags_and_tools() {
    for compiler in compilers() {
        let flags = flags_for(compiler.clang, &[]);
        is_read(compiler, &compiled(compiler.clang, flags));
    }
}

#[test]
fn without_the_device_header() {
    // The code has no table and no version word. The section headers give the places, and the
    // compiler's name gives the version. (clang 15 to 17 and 23 call functions of the header, and do
    // not link without it.)
    let takes_none = |compiler: &&Compiler| (18..23).contains(&compiler.release);
    for compiler in compilers().filter(takes_none) {
        let mut flags = flags_for(compiler.clang, &[]);
        let include = flags
            .iter()
            .position(|flag| flag == "-include")
            .expect("the device header is among the flags");
        flags.drain(include..include + 2);
        let object = compiled(compiler.clang, flags);
        assert!(!symbols(&object).contains("__llvm_profile_sections"));
        is_read(compiler, &object);
    }
}

/// Compiles count.hip with the device header and these flags.
fn with_header(compiler: &Compiler, flags: &[&str]) -> PathBuf {
    let mut all: Vec<OsString> = flags.iter().map(OsString::from).collect();
    all.extend(FOR_HIP_5.map(OsString::from));
    all.extend(["-include".into(), device_header().into()]);
    compiled(compiler.clang, all)
}

#[test]
fn a_count_by_a_call_is_exact_at_every_level() {
    for compiler in [23, 24].into_iter().filter_map(Compiler::find) {
        // Without the flag that turns sampling off, the header still counts every block.
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let flags = [&[level], &FRONT_END[..]].concat();
            is_read(compiler, &with_header(compiler, &flags));
        }
    }
}

/// Releases whose driver has `-fprofile-generate` for GPU code. Those before ignore it, with a warning.
fn counts_ir(compiler: &&Compiler) -> bool {
    compiler.release >= 20
}

#[test]
fn each_counts_its_ir_too() {
    for compiler in compilers().filter(counts_ir) {
        for level in ["-O0", "-O1", "-O3"] {
            let flags = [&[level], &IR_LEVEL[..]].concat();
            let shown = shown(compiler, &with_header(compiler, &flags));
            // The number of counters depends on the level. The last block is the branch.
            let blocks = format!(", {}]", WORK_ITEMS / 4);
            let most = format!("Maximum internal block count: {WORK_ITEMS}");
            for expected in ["Instrumentation level: IR", COUNT, &blocks, &most] {
                assert!(shown.contains(expected), "{compiler:?} {level}: {shown}");
            }
        }
    }
}

#[test]
fn divergent_code_is_told_from_uniform() {
    for compiler in [23, 24].into_iter().filter_map(Compiler::find) {
        for level in ["-O0", "-O1", "-O3"] {
            let flags = [&[level], &FRONT_END[..]].concat();
            let object = with_header(compiler, &flags);
            let shown = shown(compiler, &object);
            // All work-items of a wave make the loop turns; a quarter of them takes the branch.
            assert!(
                shown.contains("Block uniformity: [U, D]"),
                "{compiler:?} {level}: {shown}"
            );
        }
    }
}

#[test]
fn the_device_library_of_math_links() {
    // clang's own headers no longer declare what HIP 5.2's use.
    let takes_hip_5 = |compiler: &&Compiler| compiler.release < 23;
    for compiler in compilers().filter(takes_hip_5) {
        let program = Compilation::by(compiler.clang)
            .arguments(Stack::Debian12.flags())
            .reads([device_header()])
            .arguments(["-O1"])
            .arguments(flags_for(compiler.clang, &[]))
            .source(source("powers.hip"))
            .output("powers");
        let ran = Ran::new(Stack::Debian12, "gfx90a", &[], [program]);
        let counts = functions_by(compiler.tool("llvm-profdata"), &ran.profile());
        for kernel in ["_Z6powersPKfPf", "_Z11reciprocalsPfPj"] {
            assert_eq!(counts[kernel].calls, 64, "{kernel} {compiler:?}");
        }
        ran.ended.silently();
    }
}

fn symbols(object: &Path) -> String {
    run(limited("llvm-nm-22").arg("-D").arg(object))
        .success()
        .stdout
}

/// The MC/DC lines of `llvm-cov report --show-mcdc-summary`: conditions and missed ones, of all
/// functions, by the tools of a compiler.
fn conditions(by: &Compiler, object: &Path, raw: &Path, directory: &Path) -> Vec<String> {
    let profdata = by.tool("llvm-profdata");
    let merged = directory.join("merged.profdata");
    merge_by(profdata, &[raw.to_owned()], &merged);
    let mut report = limited(by.tool("llvm-cov"));
    report.args(["report", "--show-mcdc-summary", "--show-functions"]);
    report.arg(object).arg("-instr-profile").arg(&merged);
    report.arg(repository("testdata/kernels/branches.hip"));
    let table = run(&mut report).success().silently().stdout;
    let functions = functions_by(profdata, &merged);
    let lines = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words
            .first()
            .filter(|word| functions.contains_key(**word))?;
        Some(format!("{name}: {}", words[words.len() - 3..].join(" ")))
    });
    lines.collect()
}

#[test]
fn mcdc_is_what_it_is_on_the_host() {
    const MCDC: &str = "-fcoverage-mcdc";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let of_host = directory.path().join("host");
    std::fs::create_dir(&of_host).expect("a fresh directory");
    let spec = expand(
        &repository("testdata/kernels/branches.spec"),
        directory.path(),
    );

    let oracle = host_oracle_with("branches", "-O1", &[MCDC]);
    let raw = of_host.join("host.profraw");
    let mut command = limited(&oracle);
    let command = command.arg(&spec).arg(&of_host);
    run(command.env("LLVM_PROFILE_FILE", &raw)).success();
    let expected = conditions(Compiler::usual(), &oracle, &raw, &of_host);
    assert!(!expected.is_empty());
    assert!(
        expected.iter().any(|line| !line.ends_with(" -")),
        "{expected:?}"
    );

    // clang 18 does not update the bits with atomic instructions: lanes lose each other's.
    let has_mcdc = |compiler: &&Compiler| compiler.release >= 19;
    for compiler in compilers().filter(has_mcdc) {
        let directory = directory.path().join(compiler.release.to_string());
        std::fs::create_dir(&directory).expect("a fresh directory");
        let object = device_only(
            compiler.clang,
            &["gfx90a"],
            Stack::Debian12.code_object_version(),
        )
        .arguments(["-O1", "-Xclang", MCDC])
        .arguments(flags_for(compiler.clang, &[]))
        .reads([device_header()])
        .source(repository("testdata/kernels/branches.hip"))
        .output("branches.mcdc");
        Stack::Debian12
            .run("gfx90a", &object, &spec, &directory)
            .success()
            .silently();
        let found = conditions(compiler, &object, &the_profile(&directory), &directory);
        assert_eq!(found, expected, "{compiler:?}");
    }
}
