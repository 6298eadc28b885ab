//! `rocov flags`: what it prints is given to the clang it was printed for, and the code that comes
//! out is looked at.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::device::compiler;
use common::{failure, rocov, run, stderr, stdout};

/// A clang whose driver keeps instrumentation from device code, and one whose does not.
const OLD: &str = "clang++-19";
const NEW: &str = "clang++-22";

fn flags(clang: &str, options: &[&str]) -> Vec<String> {
    let mut command = rocov();
    command.args(["flags", "--clang", clang]).args(options);
    let output = run(&mut command);
    assert_eq!(stderr(&output), "");
    let line = stdout(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    // As the shell splits $(rocov flags).
    line.split_whitespace().map(str::to_owned).collect()
}

/// LLVM IR of the test kernel.
fn ir(mut compiler: Command, flags: &[String]) -> String {
    compiler.args(["-S", "-emit-llvm", "-Werror", "-o", "-"]);
    stdout(&run(compiler.args(flags)))
}

fn device_ir(clang: &str, flags: &[String]) -> String {
    let mut compiler = compiler(clang);
    compiler.args(["--offload-arch=gfx90a", "--no-gpu-bundle-output"]);
    ir(compiler, flags)
}

/// Host code of a file without kernels, which needs nothing from HIP's headers.
fn host_ir(clang: &str, flags: &[String]) -> String {
    let mut compiler = Command::new(clang);
    compiler.args(["-x", "hip", "-nogpuinc", "-nogpulib", "--cuda-host-only"]);
    compiler.arg(common::data("host.hip"));
    ir(compiler, flags)
}

fn is_instrumented(ir: &str) -> bool {
    ir.contains("@__profc_") && ir.contains("@__covrec_")
}

#[test]
fn device_code_counts_atomically_and_has_a_bounds_table() {
    for clang in [OLD, NEW] {
        let ir = device_ir(clang, &flags(clang, &[]));
        assert!(is_instrumented(&ir), "{clang}");
        assert!(ir.contains("atomicrmw add"), "{clang}");
        assert!(
            ir.contains("@__llvm_profile_sections = weak protected"),
            "{clang}"
        );
        let without = device_ir(clang, &[]);
        assert!(!is_instrumented(&without), "{clang}");
    }
}

#[test]
fn host_code_is_instrumented_by_choice() {
    assert!(!is_instrumented(&host_ir(NEW, &flags(NEW, &[]))));
    for clang in [OLD, NEW] {
        let ir = host_ir(clang, &flags(clang, &["--host"]));
        assert!(is_instrumented(&ir), "{clang}");
        assert!(!ir.contains("__llvm_profile_sections"), "{clang}");
    }
}

/// The commands that clang would run with these arguments, device code first.
fn commands(clang: &str, arguments: &[&str], flags: &[String]) -> Vec<String> {
    let mut command = Command::new(clang);
    command.args(["-###", "--offload-arch=gfx90a"]);
    let output = run(command.args(arguments).args(flags));
    let said = stderr(&output);
    assert!(!said.contains("warning: "), "{clang}: {said}");
    let commands = said.lines().filter(|line| line.starts_with(" \""));
    commands.map(str::to_owned).collect()
}

#[test]
fn device_code_reserves_no_registers_for_long_branches() {
    const OPTION: &str = "-amdgpu-long-branch-factor=0";
    let directory = tempfile::tempdir().unwrap();
    let source = common::data("host.hip");
    let object = directory.path().join("unit.o");
    let (source, object) = (source.to_str().unwrap(), object.to_str().unwrap());
    for clang in [OLD, NEW] {
        let flags = flags(clang, &[]);
        let compile = [
            "-x",
            "hip",
            "-nogpuinc",
            "-nogpulib",
            "-fgpu-rdc",
            "-c",
            source,
            "-o",
            object,
        ];
        let commands_of = |arguments: &[&str]| commands(clang, arguments, &flags);
        for command in commands_of(&compile) {
            let is_for_device = command.contains("\"-triple\" \"amdgcn-amd-amdhsa\"");
            let is_given = command.contains(&format!("\"-mllvm\" \"{OPTION}\""));
            assert_eq!(is_given, is_for_device, "{clang}: {command}");
        }
        // -fgpu-rdc has code made of units by the linker.
        let mut compiler = Command::new(clang);
        compiler.arg("--offload-arch=gfx90a");
        run(compiler.args(compile).args(&flags));
        let links = commands_of(&["--hip-link", "-fgpu-rdc", object]);
        let given = format!("\"-plugin-opt={OPTION}\"");
        let links: Vec<_> = links.iter().filter(|it| it.contains(&given)).collect();
        assert_eq!(links.len(), 1, "{clang}");
        // Units whose names clash are linked by what rocov has beside the header.
        assert!(
            links[0].contains("/runtime/device/rdc/lld\""),
            "{}",
            links[0]
        );
        // Without, there is nothing to link for the device, and nothing to warn of.
        commands_of(&["--hip-link", object]);
    }
    // This one reserves none, and knows no such option.
    assert!(
        !flags("clang++-15", &[])
            .iter()
            .any(|it| it.contains(OPTION))
    );
}

#[test]
fn architectures_are_passed_on() {
    let flags = flags(
        NEW,
        &["--offload-arch", "gfx90a", "--offload-arch", "gfx942"],
    );
    let last: Vec<_> = flags.iter().rev().take(2).rev().collect();
    assert_eq!(last, ["--offload-arch=gfx90a", "--offload-arch=gfx942"]);
}

#[test]
fn link_flags_end_in_the_library_for_linking() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("static/librocov.a");
    let flags = || {
        let mut command = rocov();
        command.args(["flags", "--link"]);
        command.env("ROCOV_LIBRARY_DIR", directory.path());
        command
    };
    // cargo's own archive of that name is another thing.
    std::fs::write(directory.path().join("librocov.a"), "").unwrap();
    let message = failure(&flags().output().unwrap(), 1);
    assert!(message.contains("tools/dev/librocov-a"), "{message}");

    std::fs::create_dir(directory.path().join("static")).unwrap();
    std::fs::write(&library, "").unwrap();
    let line = stdout(&run(&mut flags()));
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(line.lines().count(), 1, "{line}");
    assert_eq!(words.last().map(Path::new), Some(library.as_path()));
    assert_eq!(words[0], "-Wl,--undefined=rocov_roles_v1");
    let hook = "-Wl,--export-dynamic-symbol=hsa_executable_freeze";
    assert!(words.contains(&hook), "{line}");

    for other in [&["--host"][..], &["--clang", NEW]] {
        let output = flags().args(other).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{other:?}");
    }
}

#[test]
fn the_default_is_the_newest_clang() {
    let version = |text: String| {
        let (_, rest) = text.split_once("clang version ").unwrap();
        rest.split('.').next().unwrap().parse::<u32>().unwrap()
    };
    let newest = version(stdout(&run(Command::new(NEW).arg("--version"))));
    assert!(newest >= 22);
    let default = stdout(&run(rocov().arg("flags")));
    assert!(default.starts_with("-Xarch_device "), "{default}");
}

#[test]
fn what_is_no_clang_is_named() {
    for (compiler, reason) in [("cc", "is not clang"), ("no-such-clang", "is not on PATH")] {
        let output = rocov()
            .args(["flags", "--clang", compiler])
            .output()
            .unwrap();
        let message = failure(&output, 1);
        assert!(
            message.contains(compiler) && message.contains(reason),
            "{message}"
        );
    }
}

#[test]
fn architectures_that_clang_refuses_are_named_on_one_line() {
    for (clang, archs) in [
        (NEW, &["bogus"][..]),
        (OLD, &["bogus"]),
        (NEW, &["gfx90a", "bogus"]),
    ] {
        let mut command = rocov();
        command.args(["flags", "--clang", clang]);
        command.args(archs.iter().map(|arch| format!("--offload-arch={arch}")));
        let message = failure(&command.output().unwrap(), 1);
        assert!(message.contains(clang), "{message}");
        assert!(message.contains("bogus"), "{message}");
        assert!(message.len() < 300, "{message}");
    }
    let output = rocov().args(["flags", "--offload-arch="]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn flags_for_a_clang_that_crashes_on_them_are_not_printed() {
    let directory = tempfile::tempdir().unwrap();
    let clang = directory.path().join("clang++-14");
    fs::write(&clang, "#!/bin/sh\necho Debian clang version 14.0.6\n").unwrap();
    fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).unwrap();
    let output = rocov().args(["flags", "--clang"]).arg(&clang).output();
    let output = output.unwrap();
    let message = failure(&output, 1);
    assert!(
        message.contains("LLVM 14") && message.contains("15 or later"),
        "{message}"
    );
    assert_eq!(stdout(&output), "");
}

#[test]
fn flags_for_openmp_need_a_clang_that_counts_there() {
    let output = rocov()
        .args(["flags", "--openmp", "--clang", "clang++-19"])
        .output();
    let output = output.unwrap();
    let message = failure(&output, 1);
    assert!(
        message.contains("LLVM 19") && message.contains("20 or later"),
        "{message}"
    );
    assert_eq!(stdout(&output), "");
}
