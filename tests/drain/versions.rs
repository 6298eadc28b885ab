//! Raw versions and variants: the device's own word decides, and LLVM's readers agree.

use std::fs;
use std::path::Path;
use std::process::Command;

use rocov::drain::Session;
use rocov::profraw::Header;

use crate::fake_device::FakeDevice;
use crate::support::artifacts::repository;
use crate::support::command::run;
use crate::support::compile::device_header;
use crate::support::profile::{functions, raw_profiles};
use crate::{FIRST, VECADD, counts, output};

/// The front-end's own flags: the driver of clang up to 19 ignores the usual ones on the device.
const FRONT_END: [&str; 6] = [
    "-Xclang",
    "-fprofile-instrument=clang",
    "-Xclang",
    "-fcoverage-mapping",
    "-Xclang",
    "-fprofile-update=atomic",
];

/// vecadd as this compiler builds it, counted and drained; returns the profile.
fn drained(directory: &Path, compiler: &str, flags: &[&str], count: &[u64]) -> std::path::PathBuf {
    let object = directory.join("vecadd.co");
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
            "-std=c++17",
            "--offload-arch=gfx90a",
            "-Werror",
        ])
        .args(flags)
        .arg("-include")
        .arg(device_header())
        .arg(repository("testdata/kernels/vecadd.hip"))
        .arg("-o")
        .arg(&object);
    run(&mut command).success();
    let mut device = FakeDevice::new(1);
    device.load(FIRST, 0, &fs::read(&object).expect("what was compiled"));
    device.count(FIRST, VECADD, count);
    let (_directory, name) = output();
    let name_directory = _directory.path().to_owned();
    let outcome = Session::default().drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let kept = directory.join("kept.profraw");
    fs::copy(&raw_profiles(&name_directory)[0], &kept).expect("a copy");
    kept
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
        let directory = tempfile::tempdir().unwrap();
        let old = ["-DROCOV_DEVICE_INSTRUMENTED"];
        let flags: Vec<&str> = if version < 10 {
            FRONT_END.iter().chain(&old).copied().collect()
        } else {
            FRONT_END.to_vec()
        };
        let profile = drained(directory.path(), compiler, &flags, &[64, 60]);
        assert_eq!(version_word(&profile), version, "{compiler}");
        assert!(
            show(reader, &profile).contains("Function count: 64"),
            "{compiler}"
        );
        // The newest reader takes them all, and sees the same.
        assert_eq!(counts(&functions(&profile), VECADD), [64, 60], "{compiler}");
    }
}

#[test]
fn ir_level_instrumentation_keeps_its_variant_bit() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-fprofile-generate", "-fprofile-update=atomic"];
    let profile = drained(directory.path(), "clang++-22", &flags, &[60, 4]);
    assert_eq!(version_word(&profile), 1 << 56 | 10);
    assert!(show("llvm-profdata-22", &profile).contains("Instrumentation level: IR"));
    assert_eq!(functions(&profile)[VECADD].blocks, [60, 4]);
}
