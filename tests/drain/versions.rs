//! Raw versions and variants: the device's own word decides, and LLVM's readers agree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::drain::Session;
use rocov::profraw::Header;
use tempfile::TempDir;

use crate::fake_device::FakeDevice;
use crate::support::command::run;
use crate::support::compile::device_header;
use crate::support::profile::functions;
use crate::{FIRST, output};

/// The front-end's own flags: the driver of clang up to 19 ignores the usual ones on the device.
const FRONT_END: [&str; 6] = [
    "-Xclang",
    "-fprofile-instrument=clang",
    "-Xclang",
    "-fcoverage-mapping",
    "-Xclang",
    "-fprofile-update=atomic",
];

/// What clang up to 18 needs besides: it does not say that it instruments.
const OLD: &str = "-DROCOV_DEVICE_INSTRUMENTED";

/// Needs no header, so that any clang compiles it. Two counters.
const SOURCE: &str = "__attribute__((global)) void branch(int *p) { if (p[0]) p[1] = 2; }";

/// A device that has loaded [`SOURCE`] as this compiler builds it.
fn compiled(compiler: &str, flags: &[&str]) -> FakeDevice {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("branch.hip");
    let object = directory.path().join("branch.co");
    fs::write(&source, SOURCE).expect("a source file");
    let mut command = Command::new(compiler);
    command
        .args([
            "-x",
            "hip",
            "--cuda-device-only",
            "--no-gpu-bundle-output",
            "-O1",
        ])
        .args([
            "-nogpuinc",
            "-nogpulib",
            "--offload-arch=gfx90a",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(flags)
        .arg("-include")
        .arg(device_header())
        .arg(&source)
        .arg("-o")
        .arg(&object);
    run(&mut command).success();
    let mut device = FakeDevice::new(1);
    device.load(FIRST, 0, &fs::read(&object).expect("what was compiled"));
    device
}

/// The one profile of `device`, in a directory that goes with it.
fn drained(device: &FakeDevice) -> (TempDir, PathBuf) {
    let (directory, name) = output();
    let outcome = Session::default().drain(device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let [profile] = outcome.files.as_slice() else {
        panic!("{:?}", outcome.files)
    };
    (directory, profile.clone())
}

fn version_word(profile: &Path) -> u64 {
    Header::version_word(&fs::read(profile).expect("a profile")).expect("a raw profile")
}

fn show(tool: &str, profile: &Path) -> String {
    let mut command = Command::new(tool);
    command
        .args(["show", "--all-functions", "--counts"])
        .arg(profile);
    run(&mut command).success().silently().stdout
}

#[track_caller]
fn check(compiler: &str, flags: &[&str], version: u64, reader: &str) {
    let device = compiled(compiler, flags);
    device.count_all(FIRST, &[64, 60]);
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), version, "{compiler}");
    let shown = show(reader, &profile);
    assert!(shown.contains("_Z6branchPi:\n"), "{shown}");
    assert!(
        shown.contains("Function count: 64\n    Block counts: [60]\n"),
        "{shown}"
    );
}

#[test]
fn clang_15_writes_version_8() {
    let flags: Vec<&str> = FRONT_END.into_iter().chain([OLD]).collect();
    check("clang++-15", &flags, 8, "llvm-profdata-15");
}

#[test]
fn clang_19_and_22_write_version_10() {
    check("clang++-19", &FRONT_END, 10, "llvm-profdata-19");
    check("clang++-22", &FRONT_END, 10, "llvm-profdata-22");
}

/// Debian has neither a compiler nor a reader of version 9 (LLVM 17 and 18), and a reader takes
/// only its own version. So a file of that version is compared field by field with LLVM 18's
/// `InstrProfData.inc`. Its records differ from those of version 10 only in fields that are zero
/// here: the version word alone makes one code object of the other.
#[test]
fn version_9_has_the_header_of_llvm_18() {
    let device = compiled("clang++-22", &FRONT_END);
    device.count_all(FIRST, &[5, 4]);
    let (word, _) = device.find(FIRST, "__rocov_raw_version");
    device.poke(word, &9_u64.to_le_bytes());
    let (_directory, profile) = drained(&device);
    let file = fs::read(profile).unwrap();
    let words: Vec<u64> = file
        .chunks_exact(8)
        .map(|it| u64::from_le_bytes(it.try_into().unwrap()))
        .collect();
    let (names, names_len) = device.find(FIRST, "__llvm_prf_nm");
    let expected = [
        ("magic", 0xff6c_7072_6f66_7281),
        ("version", 9),
        ("size of binary ids", 0),
        ("records", 1),
        ("padding before counters", 0),
        ("counters", 2),
        ("padding after counters", 0),
        ("bitmap bytes", 0),
        ("padding after bitmap", 0),
        ("size of names", names_len),
        ("counters minus records", 64),
        ("bitmap minus records", 0),
        ("address of names", names - device.base(FIRST)),
        ("last kind of value", 1),
    ];
    for (index, (field, value)) in expected.into_iter().enumerate() {
        assert_eq!(words[index], value, "{field}");
    }
    let (record, rest) = words[expected.len()..].split_at(8);
    assert_eq!(record[2], 64, "the counters follow the record");
    assert_eq!(record[6] & 0xffff_ffff, 2, "counters of the record");
    assert_eq!(rest[..2], [5, 4]);
    assert_eq!(
        rest.len(),
        2 + (names_len as usize).div_ceil(8),
        "names, padded, end the file"
    );
}

#[test]
fn ir_level_instrumentation_keeps_its_variant_bit() {
    let device = compiled(
        "clang++-22",
        &["-fprofile-generate", "-fprofile-update=atomic"],
    );
    device.count_all(FIRST, &[60, 4]);
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), 1 << 56 | 10);
    assert!(show("llvm-profdata-22", &profile).contains("Instrumentation level: IR"));
    assert_eq!(functions(&profile)["_Z6branchPi"].blocks, [60, 4]);
}

/// Without instrumentation the header leaves nothing behind.
#[test]
fn the_device_header_does_nothing_without_instrumentation() {
    let device = compiled("clang++-22", &[]);
    let outcome = Session::default().drain(&device, &output().1);
    assert_eq!((outcome.pairs, outcome.found), (1, 0));
    let mut symbols = device.symbols(FIRST);
    assert!(!symbols.any(|name| name.contains("rocov") || name.contains("llvm")));
}
