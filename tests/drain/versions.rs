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
use crate::{FIRST, counts, output};

/// The front-end's own flags: the driver of clang up to 19 ignores the usual ones on the device.
const FRONT_END: [&str; 6] = [
    "-Xclang",
    "-fprofile-instrument=clang",
    "-Xclang",
    "-fcoverage-mapping",
    "-Xclang",
    "-fprofile-update=atomic",
];

/// Needs no header, so that any clang compiles it.
const SOURCE: &str = "__attribute__((global)) void branch(int *p) { if (p[0]) p[1] = 2; }";
const BRANCH: &str = "_Z6branchPi";

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

#[test]
fn profiles_are_of_the_compilers_own_version() {
    for (compiler, reader, version) in [
        ("clang++-15", "llvm-profdata-15", 8),
        ("clang++-19", "llvm-profdata-19", 10),
        ("clang++-22", "llvm-profdata-22", 10),
    ] {
        let old = ["-DROCOV_DEVICE_INSTRUMENTED"];
        let flags: Vec<&str> = if version < 10 {
            FRONT_END.iter().chain(&old).copied().collect()
        } else {
            FRONT_END.to_vec()
        };
        let device = compiled(compiler, &flags);
        device.count(FIRST, BRANCH, &[64, 60]);
        let (_directory, profile) = drained(&device);
        assert_eq!(version_word(&profile), version, "{compiler}");
        assert!(
            show(reader, &profile).contains("Function count: 64"),
            "{compiler}"
        );
        // The newest reader takes them all, and sees the same.
        assert_eq!(counts(&functions(&profile), BRANCH), [64, 60], "{compiler}");
    }
}

/// No compiler of Debian's writes version 9 (LLVM 17 and 18). Its records differ from those of
/// version 10 only in fields that are zero here, so the version word alone makes one of the other.
#[test]
fn version_9_is_written_as_its_readers_expect() {
    let device = compiled("clang++-22", &FRONT_END);
    device.count(FIRST, BRANCH, &[5, 4]);
    let (word, _) = device.find(FIRST, "__rocov_raw_version");
    device.poke(word, &9_u64.to_le_bytes());
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), 9);
    assert_eq!(counts(&functions(&profile), BRANCH), [5, 4]);
}

#[test]
fn ir_level_instrumentation_keeps_its_variant_bit() {
    let device = compiled(
        "clang++-22",
        &["-fprofile-generate", "-fprofile-update=atomic"],
    );
    device.count(FIRST, BRANCH, &[60, 4]);
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), 1 << 56 | 10);
    assert!(show("llvm-profdata-22", &profile).contains("Instrumentation level: IR"));
    assert_eq!(functions(&profile)[BRANCH].blocks, [60, 4]);
}

/// Without instrumentation the header leaves nothing behind.
#[test]
fn the_device_header_does_nothing_without_instrumentation() {
    let device = compiled("clang++-22", &[]);
    let outcome = Session::default().drain(&device, &output().1);
    assert_eq!((outcome.pairs, outcome.found), (1, 0));
    assert!(
        !device
            .symbols(FIRST)
            .any(|name| name.contains("rocov") || name.contains("llvm"))
    );
}
