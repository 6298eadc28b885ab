//! Device code of other compilers than the newest, with their own flags and read by their own tools;
//! without the device header; with MC/DC.

use crate::programs::{COUNT, Ran, WORK_ITEMS, source};
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::{
    CLANG, INSTRUMENTATION, device_header, device_only, host_oracle_with,
};
use crate::support::gpu::{Stack, the_profile};
use crate::support::profile::{COV, functions, merge};
use crate::support::spec::expand;
use std::path::{Path, PathBuf};

/// A compiler and the raw version that it writes.
const COMPILERS: [(&str, &str, u64); 3] = [
    ("clang++-15", "llvm-profdata-15", 8),
    ("clang++-19", "llvm-profdata-19", 10),
    ("clang++-22", "llvm-profdata-22", 10),
];

/// count.hip for HIP 5.2 by this compiler, with these flags.
fn compiled(compiler: &'static str, flags: impl IntoIterator<Item = String>) -> PathBuf {
    device_only(compiler, &["gfx90a"], Stack::Debian12.code_object_version())
        .arguments(["-O1"])
        .arguments(flags)
        .reads([device_header()])
        .source(source("count.hip"))
        .output("count.by")
}

/// Runs the code object; its profile must be of this raw version, and count one launch by this
/// llvm-profdata.
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

/// What `rocov flags` prints for the compiler.
fn flags(compiler: &str) -> Vec<String> {
    let mut flags = limited(built("rocov"));
    flags.args(["flags", "--clang", compiler]);
    let flags = run(&mut flags).success().silently().stdout;
    flags.split_whitespace().map(String::from).collect()
}

#[test]
fn each_by_its_own_flags_and_tools() {
    for (compiler, profdata, version) in COMPILERS {
        is_read_by(profdata, version, &compiled(compiler, flags(compiler)));
    }
}

#[test]
fn without_the_device_header() {
    // There is no table then, and no version word: section headers say where, and the compiler's
    // name says which version. (clang 15 calls functions of the header, and does not link without.)
    for (compiler, profdata, version) in &COMPILERS[1..] {
        let mut flags = flags(compiler);
        let include = flags.iter().position(|flag| flag == "-include");
        let include = include.expect("the device header is among the flags");
        flags.drain(include..include + 2);
        let object = compiled(compiler, flags);
        assert!(!symbols(&object).contains("__llvm_profile_sections"));
        is_read_by(profdata, *version, &object);
    }
}

fn symbols(object: &Path) -> String {
    run(limited("llvm-nm-22").arg("-D").arg(object))
        .success()
        .stdout
}

/// The lines of `llvm-cov report --show-mcdc-summary` on MC/DC: conditions and missed ones, of all
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
