//! A typical HIP program, in which HIP itself has bad accesses and leaks: librocov adds none.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::reports;
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, run};
use crate::support::compile::{Compilation, device_header, sample_on};
use crate::support::data::Data;
use crate::support::gpu::Stack;
use crate::support::program::{rocov_flags, without_rocov};

/// The sample's code objects, one per source.
const CODE_OBJECTS: usize = 2;

/// testdata/sample with the address sanitizer in its host code. clang would also instrument the
/// device code and need libraries that HIP 5.2 lacks, so each step has its own flags.
fn with_address_sanitizer() -> PathBuf {
    let folder = repository("testdata/sample");
    let object = |name: &str| {
        Compilation::on(Stack::Debian12)
            .arguments(["--config"])
            .source(folder.join("debian12.cfg"))
            .arguments(["-O1", "-c", "-Xarch_host", "-fsanitize=address"])
            .arguments(rocov_flags(Stack::Debian12, &[]))
            .source(folder.join(name))
            .reads([folder.join("statistics.h"), device_header()])
            .output(name)
    };
    Compilation::on(Stack::Debian12)
        .arguments(["-fsanitize=address"])
        .source(object("main.hip"))
        .source(object("statistics.hip"))
        .arguments(["-lamdhip64"])
        .output("sample_with_asan")
}

/// Expects that the sample found its results right and that librocov drained it.
#[track_caller]
fn assert_drained(ended: &Ended, data: &Path) {
    assert!(ended.stdout.contains("all as on the CPU"), "{ended}");
    assert_eq!(Data::read(data).profiles.len(), CODE_OBJECTS, "{ended}");
}

#[test]
fn valgrind_finds_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [data, log] = ["data", "log"].map(|name| directory.path().join(name));
    let librocov = reports::without_lines().join("librocov.so");
    let preloaded = [built("librocov_modelgpu.so"), librocov].map(PathBuf::into_os_string);
    let mut valgrind = reports::valgrind(&log);
    // Valgrind wants the symbols of the dynamic linker, and unpacked stacks have none.
    valgrind
        .arg(sample_on(
            Stack::Debian12,
            &rocov_flags(Stack::Debian12, &[]),
        ))
        .env("ROCOV_MODELGPU", "gfx90a")
        // A process has little address space under Valgrind.
        .env("ROCOV_MODELGPU_VRAM_MIB", "64")
        // A kernel is slow under Valgrind on a busy machine, and librocov must not give up on it.
        .env("ROCOV_WAIT", "300")
        .env("LD_PRELOAD", preloaded.join(OsStr::new(":")))
        .env("LLVM_PROFILE_FILE", data.join("%p.profraw"));
    let ended = run(&mut valgrind).success().silently();
    assert_drained(&ended, &data);
    let found = reports::about_librocov(&log);
    println!("\nfigure: bad_accesses {}", found.len());
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// HIP, ROCr and comgr leak by themselves, partly through librocov's hooks: as much as without it.
#[test]
fn address_sanitizer_finds_what_it_finds_without_librocov() {
    const OPTIONS: &str = "symbolize=0:exitcode=0";
    let program = with_address_sanitizer();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let without = run(without_rocov().arg(&program).env("ASAN_OPTIONS", OPTIONS)).success();
    let without = reports::lost(&reports::leaks(&without.stderr));
    assert_ne!(without, 0, "HIP 5.2 is known to leak");

    let with = |data: &str, options: &str| {
        let data = directory.path().join(data);
        let mut command = Stack::Debian12.launcher("gfx90a", &data);
        command
            .arg(&program)
            .env("ASAN_OPTIONS", OPTIONS)
            .env("LSAN_OPTIONS", options);
        let ended = run(&mut command).success();
        assert_drained(&ended, &data);
        ended
    };
    let ended = with("data", "");
    let leaks = reports::leaks(&ended.stderr);
    let more = reports::lost(&leaks).saturating_sub(without);
    let errors = reports::errors(&ended.stderr);
    println!("\nfigure: leaks {more}\nfigure: bad_accesses {errors}");
    assert_eq!(
        (more, errors),
        (0, 0),
        "{without} without librocov: {ended}"
    );
    assert!(!leaks.iter().any(is_of_librocov), "{ended}");

    // Only librocov's variables point to its memory. If the sanitizer ignores these, it finds that
    // memory.
    let leaks = reports::leaks(&with("again", "use_globals=0").stderr);
    assert!(leaks.iter().any(is_of_librocov), "{leaks:?}");
}

/// Returns whether librocov has called the allocator.
fn is_of_librocov(leak: &reports::Leak) -> bool {
    let caller = leak.stack.get(1);
    caller.is_some_and(|frame| frame.contains("librocov.so+"))
}
