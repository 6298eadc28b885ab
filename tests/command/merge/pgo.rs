//! `--pgo`: indexed profiles, and the flags that have clang use them. That these work is tested with
//! whole programs.

use std::fs;
use std::process::Command;

use rocov_tests::cli::release::Release;
use rocov_tests::cli::{device, failure, run, stderr, stdout};

use crate::merge::{Place, RAW_VERSION, profile, shown};

/// Variant flag of IR instrumentation, and that of one-byte counters.
const IR: u64 = 1 << 56;
const SINGLE_BYTE: u64 = 1 << 60;

#[test]
fn flags_alone_are_on_standard_output() {
    let place = Place::new();
    for (arch, count) in [("gfx90a", 1), ("gfx942", 10)] {
        let elf = place.elf(arch);
        place.profile("one", &elf, 1, count);
        place.profile("one", &elf, 2, 2 * count);
    }
    let output = run(&mut place.command(&["one", "--pgo", "out"]));
    let out = place.path("out");
    let out = out.display();
    assert_eq!(
        stdout(&output),
        format!(
            "-Xarch_gfx90a -fprofile-instr-use={out}/gfx90a.profdata \
             -Xarch_gfx942 -fprofile-instr-use={out}/gfx942.profdata\n"
        )
    );
    assert_eq!(
        stderr(&output),
        "gfx90a: 2 profiles of 1 code object: out/gfx90a.profdata\n\
         gfx942: 2 profiles of 1 code object: out/gfx942.profdata\n"
    );
    assert_eq!(place.calls("out/gfx90a.profdata"), 3);
    assert_eq!(place.calls("out/gfx942.profdata"), 30);
    // Nothing but the flags.
    let quiet = place.merged(&["one", "--pgo", "out", "--quiet"]);
    assert_eq!(quiet, stdout(&output));
}

/// clang takes the flags of a target whose name is that of --offload-arch, with its features. The
/// profile's name has that of the GPU alone.
#[test]
fn flags_are_for_the_targets_of_the_device_elfs_that_were_kept() {
    let place = Place::new();
    for target in ["gfx90a:xnack-", "gfx90a:xnack+"] {
        let name = target.replace(':', "");
        let elf = device::compile(place.0.path(), &name, target, &device::INSTRUMENTED);
        let identity = profile::identity(&elf);
        let path = place.profile_path("one", "gfx90a", &elf, 1);
        profile::write(&elf, 1, RAW_VERSION, &path);
        let kept = place.path("one/objects");
        fs::create_dir_all(&kept).unwrap();
        let kept = kept.join(format!("{}.{identity}.elf", target.replace(':', "-")));
        fs::copy(&elf, kept).unwrap();
    }
    let flags = place.merged(&["one", "--pgo", "out", "--quiet"]);
    let path = place.path("out/gfx90a.profdata");
    let flag = format!("-fprofile-instr-use={}", path.display());
    let expected = format!("-Xarch_gfx90a:xnack+ {flag} -Xarch_gfx90a:xnack- {flag}\n");
    assert_eq!(flags, expected);
    // The functions are the same in both, and their counts add up.
    assert_eq!(place.calls("out/gfx90a.profdata"), 2);
    let mut compiler = device::compiler(device::CLANG);
    compiler.args([
        "--offload-arch=gfx90a:xnack-",
        "--offload-arch=gfx90a:xnack+",
    ]);
    compiler.args(["--gpu-bundle-output", "-Werror", "-c", "-o", "/dev/null"]);
    run(compiler.args(flags.split_whitespace()));
}

/// The driver keeps the usual flags from code for NVIDIA GPUs. tests/cuda has clang take these.
#[test]
fn flags_for_nvidia_gpus_go_to_the_front_end() {
    let place = Place::new();
    // Its profile has the form of that of a cubin.
    let elf = place.elf("gfx90a");
    for (directory, variant, kind) in [("one", 0, "clang"), ("ir", IR, "llvm")] {
        let raw = place.profile_path(directory, "sm_90", &elf, 1);
        profile::write(&elf, 1, RAW_VERSION | variant, &raw);
        let path = place.path("out/sm_90.profdata");
        assert_eq!(
            place.merged(&[directory, "--pgo", "out", "-q"]),
            format!(
                "-Xarch_sm_90 -Wp,-fprofile-instrument-use={kind},-fprofile-instrument-use-path={}\n",
                path.display()
            )
        );
    }
    let message = failure(&place.merge(&["one", "--pgo", "a,b"]), 1);
    assert!(
        message.contains("a,b/sm_90.profdata` contains a comma"),
        "{message}"
    );
}

#[test]
fn ir_instrumentation_has_its_own_flag_and_no_company() {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    let ir = place.profile_path("ir", "gfx90a", &elf, 1);
    profile::write(&elf, 5, RAW_VERSION | IR, &ir);
    let flags = place.merged(&["ir", "--pgo", "out", "-q"]);
    let path = place.path("out/gfx90a.profdata");
    let flag = format!("-Xarch_gfx90a -fprofile-use={}\n", path.display());
    assert_eq!(flags, flag);
    assert!(shown(&path).contains("Instrumentation level: IR"));

    let other = device::compile(
        place.0.path(),
        "other.elf",
        "gfx90a",
        &["-O2", device::INSTRUMENTED[0], device::INSTRUMENTED[2]],
    );
    let front_end = place.profile_path("ir", "gfx90a", &other, 1);
    profile::write(&other, 5, RAW_VERSION, &front_end);
    let message = failure(&place.merge(&["ir", "--pgo", "mixed"]), 1);
    for part in [
        "-fprofile-generate",
        "-fprofile-instr-generate",
        "of one kind",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!place.path("mixed/gfx90a.profdata").exists());
}

#[test]
fn one_byte_counters_are_refused() {
    let place = Place::new();
    let mut flags = device::INSTRUMENTED.to_vec();
    flags.extend([
        "-Xclang",
        "-mllvm",
        "-Xclang",
        "-enable-single-byte-coverage=true",
    ]);
    let elf = device::compile(place.0.path(), "gfx90a.elf", "gfx90a", &flags);
    let path = place.profile_path("one", "gfx90a", &elf, 1);
    profile::write_filled(&elf, RAW_VERSION | SINGLE_BYTE, &path, |section| {
        section.fill(0)
    });
    let message = failure(&place.merge(&["one", "--pgo", "out", "-q"]), 1);
    assert!(
        message.contains("-enable-single-byte-coverage"),
        "{message}"
    );
}

#[test]
fn a_path_that_a_shell_would_split_is_refused() {
    let place = Place::new();
    place.profile("one", &place.elf("gfx90a"), 1, 1);
    let message = failure(&place.merge(&["one", "--pgo", "a b", "-q"]), 1);
    assert!(
        message.contains("a b/gfx90a.profdata` contains a space"),
        "{message}"
    );
    let message = stderr(&place.merge(&["one", "--pgo", "out", "-o", "out"]));
    assert!(message.contains("cannot be used with"), "{message}");
}

/// clang compiles as by the profile that its llvm-profdata makes: it ignores counts of functions whose hashes have
/// another form. Raw version 10 has two forms, and there is no device code that could tell the clang.
#[test]
fn host_code_alone_is_optimized_by_its_clang() {
    let source = rocov_tests::cli::data("statements.cpp");
    for number in [19, 22, 23] {
        for (generate, by) in [
            ("-fprofile-instr-generate", "-fprofile-instr-use="),
            ("-fprofile-generate", "-fprofile-use="),
        ] {
            let Some(release) = Release::find(number, "PGO of host code") else {
                continue;
            };
            let place = Place::new();
            // Debian has no runtime of profiles for LLVM 19. That of 22 writes the same raw version.
            let linker = Release::find(if number == 19 { 22 } else { number }, "PGO").unwrap();
            let clang = |release: &Release| {
                let mut clang = Command::new(release.program("clang++"));
                clang.current_dir(place.0.path()).arg("-O2");
                clang
            };
            let compile =
                |arguments: &[&str]| stdout(&run(clang(&release).arg(&source).args(arguments)));
            compile(&[generate, "-c", "-o", "main.o"]);
            run(clang(&linker).args([generate, "main.o", "-o", "main"]));
            fs::create_dir(place.path("one")).unwrap();
            let raw = place.path("one/main.profraw");
            run(Command::new(place.path("main")).env("LLVM_PROFILE_FILE", &raw));
            let said = place.merged(&["one", "--pgo", "out", "-q"]);
            assert!(said.starts_with(&format!("-Xarch_host {by}")), "{said}");
            let mut merge = Command::new(release.program("llvm-profdata"));
            let theirs = place.path("theirs.profdata");
            run(merge.arg("merge").arg(&raw).arg("-o").arg(&theirs));
            let [ours, theirs] = [place.path("out/host.profdata"), theirs].map(|profile| {
                let by = format!("{by}{}", profile.display());
                compile(&[&by, "-S", "-emit-llvm", "-o", "-"])
            });
            assert!(theirs.contains("function_entry_count"));
            assert_eq!(ours, theirs, "{number} {generate}");
        }
    }
}
