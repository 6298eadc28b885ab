//! `rocov flags`: what it prints is given to the clang it was printed for, and the code that comes
//! out is looked at.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use rocov_tests::cli::device::{compile_with, compiler};
use rocov_tests::cli::{failure, plugin, rocov, run, stderr, stdout};

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
    compiler.arg(rocov_tests::cli::data("host.hip"));
    ir(compiler, flags)
}

fn is_instrumented(ir: &str) -> bool {
    ir.contains("@__profc_") && ir.contains("@__covrec_")
}

#[test]
fn device_code_counts_atomically_and_has_a_bounds_table() {
    for clang in [OLD, NEW] {
        let ir = device_ir(clang, &flags(clang, &["--counters=llvm"]));
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
    let source = rocov_tests::cli::data("host.hip");
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
        let links: Vec<_> = links.iter().filter(|link| link.contains(&given)).collect();
        assert_eq!(links.len(), 1, "{clang}");
        // Units whose names clash are linked by what rocov has next to the header.
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
        !flags("clang++-15", &["--counters=llvm"])
            .iter()
            .any(|flag| flag.contains(OPTION))
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
    let output = rocov()
        .args(["flags", "--clang"])
        .arg(&clang)
        .output()
        .unwrap();
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
        .output()
        .unwrap();
    let message = failure(&output, 1);
    assert!(
        message.contains("LLVM 19") && message.contains("20 or later"),
        "{message}"
    );
    assert_eq!(stdout(&output), "");
}

/// `rocov flags` for `clang`, with no plugins but those in the folder `rocov` of `libraries`.
fn flags_with_plugins_in(libraries: &Path, clang: &str, options: &[&str]) -> Output {
    let mut command = rocov();
    command.env("ROCOV_LIBRARY_DIR", libraries);
    command.env("XDG_DATA_HOME", libraries.join("data"));
    // The cache remembers for which compilers the line about plugins was printed.
    command.env("XDG_CACHE_HOME", libraries.join("cache"));
    let command = command.args(["flags", "--clang", clang]).args(options);
    command.output().unwrap()
}

#[test]
fn device_code_counts_in_copies_if_a_plugin_fits() {
    for (clang, llvm) in [(OLD, 19), (NEW, 22)] {
        let default = flags(clang, &[]);
        assert_eq!(default, flags(clang, &["--counters=fast"]), "{clang}");
        let flag = format!("-fpass-plugin={}", plugin(llvm).display());
        assert!(default.contains(&flag), "{clang}: {default:?}");
        let is_fast = |flags| device_ir(clang, flags).contains("@__rocov_copies_table = ");
        assert!(is_fast(&default), "{clang}");
        let stock = flags(clang, &["--counters=llvm"]);
        assert!(!is_fast(&stock), "{clang}");
        assert_eq!(default.len(), stock.len() + 2, "{clang}: {stock:?}");
        // Host code needs no plugin.
        let compile = ["-x", "hip", "-nogpuinc", "-nogpulib", "-c"];
        let source = rocov_tests::cli::data("host.hip");
        let arguments = [&compile[..], &[source.to_str().unwrap()]].concat();
        let commands = commands(clang, &arguments, &default);
        let compilations = commands
            .iter()
            .filter(|command| command.contains("\"-cc1\""));
        assert_eq!(compilations.clone().count(), 2, "{clang}");
        for command in compilations {
            let is_for_device = command.contains("\"-triple\" \"amdgcn-amd-amdhsa\"");
            assert_eq!(command.contains(&flag), is_for_device, "{clang}: {command}");
        }
    }
}

#[test]
fn without_a_plugin_counters_are_llvms_and_one_line_tells_how_to_get_it() {
    let nothing = tempfile::tempdir().unwrap();
    for clang in [OLD, NEW] {
        let flags = |options: &[&str]| flags_with_plugins_in(nothing.path(), clang, options);
        let default = flags(&[]);
        let stock = flags(&["--counters=llvm"]);
        assert_eq!(stderr(&stock), "");
        assert_eq!(stdout(&default), stdout(&stock));
        let command = format!("`rocov pass build --clang {clang}`");
        let line = stderr(&default);
        assert!(line.contains(&command), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        let message = failure(&flags(&["--counters=fast"]), 1);
        assert!(message.contains(&command), "{message}");
    }
    // No plugin can be made for this one.
    let old = flags_with_plugins_in(nothing.path(), "clang++-15", &["--counters=fast"]);
    let message = failure(&old, 1);
    assert!(message.contains("use clang 19 or later"), "{message}");
}

/// A name proves nothing: rocov compiles with the plugin.
#[test]
fn a_plugin_of_another_llvm_fits_no_compiler() {
    let libraries = tempfile::tempdir().unwrap();
    let folder = libraries.path().join("rocov");
    fs::create_dir(&folder).unwrap();
    for (clang, llvm, other) in [(OLD, 19, 22), (NEW, 22, 19)] {
        let file = folder.join(format!("librocov_pass-{llvm}.so"));
        fs::copy(plugin(other), &file).unwrap();
        let output = flags_with_plugins_in(libraries.path(), clang, &[]);
        assert!(!stdout(&output).contains("-fpass-plugin"), "{clang}");
        assert!(stderr(&output).contains("rocov pass build"), "{clang}");

        // A user who gives it to the compiler gets one line.
        let flags = flags(clang, &["--counters=llvm"]);
        let mut compiler = compiler(clang);
        compiler.args(["--offload-arch=gfx90a", "-c", "-o", "/dev/null"]);
        compiler.args(flags).arg("-Xarch_device");
        compiler.arg(format!("-fpass-plugin={}", file.display()));
        let output = compiler.output().unwrap();
        assert!(!output.status.success(), "{clang}");
        let line = stderr(&output);
        let lines: Vec<_> = line.lines().filter(|line| line.contains("error")).collect();
        let [line] = lines[..] else {
            panic!("{clang}: {line}");
        };
        for part in [
            &format!("for LLVM {other}.1"),
            &format!("is LLVM {llvm}.1"),
            "rocov pass build --clang",
        ] {
            assert!(line.contains(part), "{clang}: {line}");
        }
        // Then it fits.
        fs::copy(plugin(llvm), &file).unwrap();
        let output = flags_with_plugins_in(libraries.path(), clang, &[]);
        let flag = format!("-fpass-plugin={}", file.display());
        assert!(stdout(&output).contains(&flag), "{clang}");
    }
}

#[test]
fn reached_code_is_marked_in_bytes() {
    let flags = flags(NEW, &["--counters=reached"]);
    let ir = device_ir(NEW, &flags);
    let line = |start: &str| ir.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("@__profc_").contains(" x i8] "), "{ir}");
    assert!(!ir.contains("atomicrmw"), "{ir}");
    // The header's version word has the bit: the linker may drop the compiler's word.
    let value = |line: &str| {
        let (_, rest) = line.split_once(" constant i64 ").unwrap();
        let digits = rest.split(',').next().unwrap();
        digits.parse::<u64>().unwrap()
    };
    // VARIANT_MASK_BYTE_COVERAGE of LLVM's InstrProfData.inc, and the raw version of clang 22.
    assert_eq!(value(line("@__rocov_raw_version =")), 1 << 60 | 10);
    // The linker of device code takes the flags, too: it knows not all of clang's options.
    let directory = tempfile::tempdir().unwrap();
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    compile_with(NEW, directory.path(), "reached.elf", "gfx90a", &flags);
}

#[test]
fn compilers_that_lack_a_kind_of_counts_are_named() {
    for (clang, options, part) in [
        (OLD, &["--counters=reached"][..], "use clang 20 or later"),
        (NEW, &["--openmp", "--counters=reached"], "--counters=llvm"),
        (NEW, &["--uniformity"], "use clang 23 or later"),
        (
            NEW,
            &["--offload-arch=sm_90", "--uniformity"],
            "clang counts only on AMD GPUs",
        ),
    ] {
        let mut command = rocov();
        command.args(["flags", "--clang", clang]).args(options);
        let message = failure(&command.output().unwrap(), 1);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn hiprtc_has_no_plugin_and_no_counters_of_one_byte() {
    for way in ["fast", "reached"] {
        let mut command = rocov();
        command.args(["flags", "--hiprtc", "--clang", NEW, "--counters", way]);
        let error = failure(&command.output().unwrap(), 1);
        assert!(error.contains("leave --counters out"), "{error}");
    }
    let lines = |options: &[&str]| {
        let mut command = rocov();
        stdout(&run(command.args(["flags", "--clang", NEW]).args(options)))
    };
    let without = lines(&["--hiprtc"]);
    assert_eq!(lines(&["--hiprtc=options", "--counters=llvm"]), without);
    let arch = lines(&["--hiprtc", "--offload-arch", "gfx942"]);
    assert!(arch.contains("\n--offload-arch=gfx942\n"), "{arch}");
}

/// A build asks for flags again and again.
#[test]
fn the_line_about_fast_counters_comes_once_for_each_compiler() {
    let directory = tempfile::tempdir().unwrap();
    let ask = |clang: &str, options: &[&str]| {
        let mut command = rocov();
        for variable in ["ROCOV_LIBRARY_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(variable, directory.path());
        }
        command.args(["flags", "--clang", clang]).args(options);
        stderr(&run(&mut command))
    };
    assert_eq!(ask(NEW, &["--counters=llvm"]), "");
    for clang in [NEW, OLD] {
        let said = ask(clang, &[]);
        assert!(said.contains("run `rocov pass build --clang"), "{said}");
        assert!(said.contains("The compiler plugin"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(ask(clang, &["--host"]), "");
    }
}

#[test]
fn host_code_finds_the_header_for_googletest() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("include.cpp");
    fs::write(
        &source,
        "#if !__has_include(<rocov_gtest.h>)\n#error\n#endif\n",
    )
    .unwrap();
    for clang in [OLD, NEW] {
        let all = flags(clang, &["--host", "--counters=llvm"]);
        let own: Vec<_> = all.iter().filter(|flag| flag.starts_with("-I")).collect();
        let mut compiler = Command::new(clang);
        run(compiler.args(own).arg("-fsyntax-only").arg(&source));
    }
}
