//! Device code of older compilers and other modes: with each compiler's own flags and tools,
//! without the device header, and with MC/DC.

use crate::programs::{COUNT, Ran, WORK_ITEMS, source};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::{
    CLANG, Compilation, INSTRUMENTATION, device_header, device_only, host_oracle_with,
};
use crate::support::gpu::{Stack, the_profile};
use crate::support::profile::{COV, functions, functions_by, merge};
use crate::support::program::flags_for;
use crate::support::spec::expand;
use crate::support::unpacked::{Clang23, not_run};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A compiler, the tool that reads its profiles, and its raw version.
pub(crate) type Compiler = (&'static str, &'static str, u64);

pub(crate) const COMPILERS: [Compiler; 3] = [
    ("clang++-15", "llvm-profdata-15", 8),
    ("clang++-19", "llvm-profdata-19", 10),
    ("clang++-22", "llvm-profdata-22", 10),
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

/// `COMPILERS`, and clang 23 if it is unpacked.
fn compilers() -> Vec<Compiler> {
    let newest = Clang23::find().map(|it| (it.clang, it.tool("llvm-profdata"), 11));
    COMPILERS.into_iter().chain(newest).collect()
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

/// Runs the code object. Its profile must have this raw version, and this llvm-profdata must read
/// one launch.
fn is_read_by(profdata: &str, version: u64, object: &Path) {
    let ran = Ran::steps(Stack::Debian12, "gfx90a", object, "load launch sync unload");
    let profile = ran.profile();
    let bytes = std::fs::read(&profile).expect("a profile");
    let word = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
    assert_eq!(word, version, "version word of {}", object.display());
    let mut show = limited(profdata);
    show.args(["show", "--all-functions", "--counts"])
        .arg(&profile);
    let shown = run(&mut show).success().silently().stdout;
    let calls = format!("Function count: {WORK_ITEMS}");
    let blocks = format!("Block counts: [{WORK_ITEMS}, {}]", WORK_ITEMS / 4);
    for expected in [COUNT, &calls, &blocks] {
        assert!(shown.contains(expected), "no {expected:?} in {shown}");
    }
    ran.ended.silently();
}

#[test]
fn each_by_its_own_flags_and_tools() {
    for (compiler, profdata, version) in compilers() {
        is_read_by(
            profdata,
            version,
            &compiled(compiler, flags_for(compiler, &[])),
        );
    }
}

#[test]
fn without_the_device_header() {
    // The code has no table and no version word. The section headers give the places, and the
    // compiler's name gives the version. (clang 15 and 23 call functions of the header, and do not
    // link without it.)
    for (compiler, profdata, version) in &COMPILERS[1..] {
        let mut flags = flags_for(compiler, &[]);
        let include = flags.iter().position(|flag| flag == "-include");
        let include = include.expect("the device header is among the flags");
        flags.drain(include..include + 2);
        let object = compiled(compiler, flags);
        assert!(!symbols(&object).contains("__llvm_profile_sections"));
        is_read_by(profdata, *version, &object);
    }
}

/// The output of clang 23's llvm-profdata for one launch of a code object, after indexing.
fn shown_by_23(newest: &Clang23, object: &Path) -> String {
    let ran = Ran::steps(Stack::Debian12, "gfx90a", object, "load launch sync unload");
    let merged = ran.directory.path().join("merged.profdata");
    let profdata = newest.tool("llvm-profdata");
    let mut merge = limited(profdata);
    merge.arg("merge").arg(ran.profile()).arg("-o").arg(&merged);
    run(&mut merge).success().silently();
    let mut show = limited(profdata);
    show.args(["show", "--all-functions", "--counts"])
        .arg(merged);
    run(&mut show).success().silently().stdout
}

/// Compiles count.hip with clang 23, the device header and these flags.
fn by_23(newest: &Clang23, flags: &[&str]) -> PathBuf {
    let mut all: Vec<OsString> = flags.iter().map(OsString::from).collect();
    all.extend(FOR_HIP_5.map(OsString::from));
    all.extend(["-include".into(), device_header().into()]);
    compiled(newest.clang, all)
}

#[test]
fn clang_23_counts_exactly_at_every_level() {
    let Some(newest) = Clang23::find() else {
        return not_run("counts by clang 23");
    };
    // Without the flag that turns sampling off, the header still counts every block.
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let flags = [level, "-fprofile-instr-generate", "-fcoverage-mapping"];
        let object = by_23(newest, &flags);
        is_read_by(newest.tool("llvm-profdata"), 11, &object);
    }
}

#[test]
fn clang_23_instruments_its_ir_too() {
    let Some(newest) = Clang23::find() else {
        return not_run("-fprofile-generate of clang 23");
    };
    for level in ["-O0", "-O1", "-O3"] {
        let object = by_23(newest, &[level, "-fprofile-generate"]);
        let shown = shown_by_23(newest, &object);
        assert!(
            shown.contains("Instrumentation level: IR"),
            "{level}: {shown}"
        );
        assert!(shown.contains(COUNT), "{level}: {shown}");
    }
}

#[test]
fn clang_23_tells_divergent_code_from_uniform() {
    let Some(newest) = Clang23::find() else {
        return not_run("uniformity by clang 23");
    };
    for level in ["-O0", "-O1", "-O3"] {
        let object = by_23(newest, &[level, "-fprofile-instr-generate"]);
        let shown = shown_by_23(newest, &object);
        // All work-items of a wave make the loop turns; a quarter of them takes the branch.
        assert!(
            shown.contains("Block uniformity: [U, D]"),
            "{level}: {shown}"
        );
    }
}

#[test]
fn the_device_library_of_math_links() {
    for (compiler, profdata, _) in COMPILERS {
        let program = Compilation::by(compiler)
            .arguments(Stack::Debian12.flags())
            .reads([repository("testdata/sample/debian12.cfg"), device_header()])
            .arguments(["-O1"])
            .arguments(flags_for(compiler, &[]))
            .source(source("powers.hip"))
            .output("powers");
        let ran = Ran::new(Stack::Debian12, "gfx90a", &[], [program]);
        let counts = functions_by(profdata, &ran.profile());
        assert_eq!(counts["_Z6powersPKfPf"].calls, 64, "{compiler}");
        ran.ended.silently();
    }
}

fn symbols(object: &Path) -> String {
    run(limited("llvm-nm-22").arg("-D").arg(object))
        .success()
        .stdout
}

/// The MC/DC lines of `llvm-cov report --show-mcdc-summary`: conditions and missed ones, of all
/// functions.
fn conditions(object: &Path, raw: &Path, directory: &Path) -> Vec<String> {
    let merged = directory.join("merged.profdata");
    merge(&[raw.to_owned()], &merged);
    let mut report = limited(COV);
    report.args(["report", "--show-mcdc-summary", "--show-functions"]);
    report.arg(object).arg("-instr-profile").arg(&merged);
    report.arg(repository("testdata/kernels/branches.hip"));
    let table = run(&mut report).success().silently().stdout;
    let functions = functions(&merged);
    let lines = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.first().filter(|it| functions.contains_key(**it))?;
        Some(format!("{name}: {}", words[words.len() - 3..].join(" ")))
    });
    lines.collect()
}

#[test]
fn mcdc_is_what_it_is_on_the_host() {
    const MCDC: &str = "-fcoverage-mcdc";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (host, device) = (
        directory.path().join("host"),
        directory.path().join("device"),
    );
    for directory in [&host, &device] {
        std::fs::create_dir(directory).expect("a fresh directory");
    }
    let spec = expand(
        &repository("testdata/kernels/branches.spec"),
        directory.path(),
    );

    let oracle = host_oracle_with("branches", "-O1", &[MCDC]);
    let raw = host.join("host.profraw");
    let mut command = limited(&oracle);
    command.arg(&spec).arg(&host).env("LLVM_PROFILE_FILE", &raw);
    run(&mut command).success();
    let expected = conditions(&oracle, &raw, &host);

    let object = device_only(CLANG, &["gfx90a"], Stack::Debian12.code_object_version())
        .arguments(["-O1", MCDC])
        .arguments(INSTRUMENTATION)
        .arguments(["-include"])
        .source(device_header())
        .source(repository("testdata/kernels/branches.hip"))
        .output("branches.mcdc");
    Stack::Debian12
        .run("gfx90a", &object, &spec, &device)
        .success()
        .silently();
    let found = conditions(&object, &the_profile(&device), &device);
    assert!(!expected.is_empty());
    assert!(
        expected.iter().any(|line| !line.ends_with(" -")),
        "{expected:?}"
    );
    assert_eq!(found, expected);
}
