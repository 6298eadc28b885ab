//! Programs that compile kernels at run time, with hipRTC and the compiler of their HIP.

use std::fs;
use std::path::Path;
use std::process::Command;

use rocov::format::blocks::Kind;

use crate::support::artifacts::{built, python, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::profile::functions_by;
use crate::support::program::{Program, TARGET, device_profiles};

fn program(stack: Stack) -> Program {
    program_of(stack, "run_time/compiles.hip")
}

fn program_of(stack: Stack, source: &str) -> Program {
    let sources = [source];
    let flags = [&["-std=c++17"], stack.run_time_linking()].concat();
    Program::with_flags(stack, &sources, &[], &flags, &[])
}

/// The stacks whose hipRTC is tested: one passes sources to its compiler as they are, the other one
/// preprocesses them first.
fn stacks() -> Vec<Stack> {
    let mut stacks = vec![Stack::Debian12];
    stacks.extend(Stack::hip_7());
    stacks
}

/// The standard output of `rocov flags` for the compiler of hipRTC, `None` if that is not here.
fn printed(stack: Stack, option: &str) -> Option<String> {
    let compiler = Compiler::find(stack.run_time_compiler())?;
    let mut flags = limited(built("rocov"));
    flags.args(["flags", option, "--clang", compiler.clang]);
    Some(run(&mut flags).success().silently().stdout)
}

/// The program under rocov, which hands each line of `options` to hipRTC as one element.
fn compiling(stack: Stack, data: &Path, header: Option<&Path>, options: &str) -> Command {
    let mut command = stack.launcher(TARGET, data);
    command.arg(&program(stack).file);
    if let Some(header) = header {
        command.arg("--header").arg(header);
    }
    command.args(options.lines());
    command
}

/// Checks that the kernel has the counts that it must have, by llvm-profdata.
fn assert_exact(stack: Stack, data: &Path) {
    let compiler = Compiler::find(stack.run_time_compiler()).expect("it has printed the options");
    let profiles = device_profiles(data);
    let [profile] = profiles.as_slice() else {
        panic!("{}: {profiles:?}", stack.title());
    };
    let functions = functions_by(compiler.tool("llvm-profdata"), profile);
    let scale = &functions["scale"];
    let title = stack.title();
    assert_eq!(
        (scale.calls, &scale.blocks),
        (64, &vec![40]),
        "{title}: {scale:?}"
    );
}

#[test]
fn the_compiler_takes_the_printed_options_and_the_counts_are_exact() {
    for stack in stacks() {
        let Some(options) = printed(stack, "--hiprtc") else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = compiling(stack, &data, None, &options);
        run(command.env("ROCOV_MODELGPU_TRACE", "1")).success();
        assert_exact(stack, &data);
        assert_trace_agrees(stack, &data);
    }
}

/// Checks that the lines of the trace are lines of the counters, in one source with its text. All of them ran.
fn assert_trace_agrees(stack: Stack, data: &Path) {
    let title = stack.title();
    let lines_by = |kind: &str| {
        let report = reported(data, &["--counts", kind, "--lcov"]).success();
        let lines = report.stdout.lines().map(str::to_owned);
        let with = ["SF:", "DA:"];
        let lines = lines.filter(|line| with.iter().any(|prefix| line.starts_with(prefix)));
        lines.collect::<Vec<_>>()
    };
    let (mapping, trace) = (lines_by("mapping"), lines_by("trace"));
    assert_eq!(trace[0], mapping[0], "{title}: the source");
    assert!(trace.contains(&"DA:4,40".to_owned()), "{title}: {trace:?}");
    // Optimized code leaves few lanes at the bracket that closes the kernel.
    let line = |text: &String| text.split(',').next().unwrap_or_default().to_owned();
    let known: Vec<_> = mapping.iter().map(line).collect();
    for executed in &trace[1..] {
        assert!(
            known.contains(&line(executed)),
            "{title}: {executed} in {mapping:?}"
        );
        assert!(!executed.ends_with(",0"), "{title}: {executed}");
    }
    let shown = reported(data, &["--counts", "trace", "--show"])
        .success()
        .silently()
        .stdout;
    let store = shown
        .lines()
        .find(|line| line.contains("values[i] *= 2;"))
        .unwrap_or_else(|| panic!("{title}: {shown}"));
    assert!(store.starts_with("    4|     40|"), "{title}: {store}");
    assert!(shown.lines().count() < 20, "{title}: {shown}");
}

#[test]
fn a_trace_has_kernels_that_were_compiled_without_options() {
    for stack in stacks() {
        let Some(compiler) = Compiler::find(stack.run_time_compiler()) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = compiling(stack, &data, None, "");
        run(command.env("ROCOV_MODELGPU_TRACE", "1")).success();
        let profiles = device_profiles(&data);
        let [profile] = profiles.as_slice() else {
            panic!("{}: {profiles:?}", stack.title());
        };
        let functions = functions_by(compiler.tool("llvm-profdata"), profile);
        let scale = &functions[&Kind::Trace.record_name("scale")];
        // One wave, and its lanes: the calls that counters count.
        let first = (scale.calls, scale.blocks[0]);
        assert_eq!(first, (1, 64), "{}", stack.title());
    }
}

#[test]
fn the_printed_header_stands_in_for_the_file() {
    for stack in stacks() {
        let (Some(options), Some(text)) = (
            printed(stack, "--hiprtc"),
            printed(stack, "--hiprtc=header"),
        ) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let header = directory.path().join("text");
        fs::write(&header, text).expect("a file can be written");
        let (places, options): (Vec<_>, Vec<_>) =
            options.lines().partition(|option| option.starts_with("-I"));
        assert_eq!(places.len(), 1, "{places:?}");
        let options = options.join("\n");
        let mut without = compiling(stack, &data, None, &options);
        assert!(!run(&mut without).status.success(), "{}", stack.title());
        run(&mut compiling(stack, &data, Some(&header), &options)).success();
        assert_exact(stack, &data);
    }
}

/// The output of `rocov report OPTIONS` of a directory, and its messages.
fn reported(data: &Path, options: &[&str]) -> Ended {
    let mut report = limited(built("rocov"));
    run(report.arg("report").arg(data).args(options))
}

#[test]
fn two_runs_are_one_source_with_its_text_and_without_hiprtcs_header() {
    for stack in stacks() {
        let Some(options) = printed(stack, "--hiprtc") else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        for _ in 0..2 {
            run(&mut compiling(stack, &data, None, &options)).success();
        }
        // HIP 5.2 does not tell its compiler the name that the program gives.
        let name = match stack {
            Stack::Debian12 => "CompileSource",
            _ => "scale.hip",
        };
        let lcov = reported(&data, &["--lcov"]).success().silently().stdout;
        let with = |start| {
            lcov.lines()
                .filter_map(move |line| line.strip_prefix(start))
        };
        let sources: Vec<_> = with("SF:").collect();
        assert_eq!(sources.len(), 1, "{lcov}");
        assert!(sources[0].ends_with(name), "{lcov}");
        // Two runs of 64 threads, 40 of which scale.
        let counts: Vec<_> = with("DA:").collect();
        assert_eq!(counts, ["1,128", "2,128", "3,128", "4,80", "5,128"]);
        for options in [&["--show"][..], &["--show", name]] {
            let shown = reported(&data, options).success().silently().stdout;
            let line = "    4|     80|    values[i] *= 2;\n";
            assert!(shown.contains(line), "{}: {shown}", stack.title());
        }
    }
}

/// The ways of the book: the program is as it was, and the text as it gave it.
#[test]
fn a_variable_of_hip_gives_the_options_and_one_of_its_compiler_keeps_the_text() {
    let Some(stack) = Stack::hip_7() else {
        return;
    };
    let Some(options) = printed(stack, "--hiprtc") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = compiling(stack, &data, None, "");
    command.env("HIPRTC_COMPILE_OPTIONS_APPEND", options.replace('\n', " "));
    run(command.env("AMD_COMGR_CACHE", "0")).success();
    assert_exact(stack, &data);
    let shown = reported(&data, &["--show"]).success().silently().stdout;
    let line = "    1|     64|extern \"C\" __global__ void scale(float *values, int count) {\n";
    assert!(shown.contains(line), "{shown}");
}

/// The options of a clang that is here, for each HIP that has a linker and a pass of LLVM that makes counters.
fn linkers() -> Vec<(Stack, String)> {
    let mut stacks = Stack::others();
    stacks.retain(|stack| stack.code_object_version() >= 6);
    let options = |stack: &Stack| {
        printed(*stack, "--hiprtc").or_else(|| {
            let mut flags = limited(built("rocov"));
            flags.args(["flags", "--hiprtc", "--clang", Compiler::usual().clang]);
            Some(run(&mut flags).success().silently().stdout)
        })
    };
    let with_options = stacks
        .into_iter()
        .filter_map(|stack| Some((stack, options(&stack)?)));
    with_options.collect()
}

/// Two units have one names section each, HIP's weak functions and an inline function in common. LLVM's linker of modules
/// takes them.
#[test]
fn units_that_hiprtc_links_count_exactly() {
    for (stack, options) in linkers() {
        let program = program_of(stack, "run_time/links.hip");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("twice.bc");
        let file = file.to_string_lossy();
        for (number, more) in [&[][..], &["--file", &file], &["--one-name"]]
            .iter()
            .enumerate()
        {
            let title = format!("{} {more:?}", stack.title());
            let data = directory.path().join(number.to_string());
            let mut command = stack.launcher(TARGET, &data);
            command.arg(&program.file).args(*more).args(options.lines());
            let ended = run(&mut command).success();
            // The sum of 2 x, and 1 for each odd x, from 0 to 39, less 24.
            assert_eq!(ended.stdout, "sum 1556\n", "{title}");
            let profiles = device_profiles(&data);
            let [profile] = profiles.as_slice() else {
                panic!("{title}: {profiles:?}");
            };
            let found = functions_by(Compiler::usual().tool("llvm-profdata"), profile);
            let counts_of = |name: &str| (found[name].calls, found[name].blocks.clone());
            assert_eq!(counts_of("kern"), (64, vec![40]), "{title}");
            assert_eq!(counts_of("_Z5twicei"), (40, vec![20]), "{title}");
            let lcov = reported(&data, &["--lcov"]).success().silently().stdout;
            let with = |start| {
                lcov.lines()
                    .filter_map(move |record: &str| record.strip_prefix(start))
            };
            assert_eq!(with("SF:").count(), 2, "{title}: {lcov}");
            for line in [
                "FNDA:64,kern",
                "FNDA:40,_Z5twicei",
                // 20 calls of one unit and 24 of the other, each with a record of its own.
                "FNDA:44,_Z3onei",
                "DA:4,64",
                "DA:6,40",
                "DA:8,24",
                "DA:4,20",
            ] {
                assert!(
                    lcov.lines().any(|record| record == line),
                    "{title}: no {line} in {lcov}"
                );
            }
        }
    }
}

/// The program is as it was.
#[test]
fn a_variable_gives_the_options_of_units_that_are_linked() {
    for (stack, options) in linkers() {
        let program = program_of(stack, "run_time/links.hip");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = stack.launcher(TARGET, &data);
        command.env("HIPRTC_COMPILE_OPTIONS_APPEND", options.replace('\n', " "));
        let ended = run(command.arg(&program.file)).success();
        assert_eq!(ended.stdout, "sum 1556\n", "{}", stack.title());
        let lcov = reported(&data, &["--lcov"]).success().silently().stdout;
        assert!(
            lcov.contains("FNDA:40,_Z5twicei\n"),
            "{}: {lcov}",
            stack.title()
        );
    }
}

#[test]
fn a_source_without_text_names_the_options_that_keep_it() {
    let stack = Stack::usual();
    let Some(options) = printed(stack, "--hiprtc") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let options = options.replace("-gembed-source\n", "");
    run(&mut compiling(stack, &data, None, &options)).success();
    reported(&data, &["--show"]).with_status(1).says(&[
        "the code object does not contain its text; pass hipRTC the options that `rocov flags --hiprtc` prints",
    ]);
}

/// The steps of Collatz from the numbers below 40: all of them, and those from odd numbers.
fn collatz() -> (u64, u64) {
    let (mut all, mut odd) = (0, 0);
    for mut x in 0_u64..40 {
        while x > 1 {
            (all, odd) = (all + 1, odd + x % 2);
            x = if x.is_multiple_of(2) {
                x / 2
            } else {
                3 * x + 1
            };
        }
    }
    (all, odd)
}

/// How code that a Python program compiles with hipRTC is counted: with options of hipRTC, and without the compiler's
/// counters.
#[test]
fn kernels_that_python_has_hiprtc_compile_are_counted() {
    let stack = Stack::usual();
    let (Stack::Unpacked(_), Some(options)) = (stack, printed(stack, "--hiprtc")) else {
        return;
    };
    let (all, odd) = collatz();
    let lines = "-gline-tables-only\n-gembed-source";
    for (way, options) in [
        (None, &*options),
        (Some("--trace"), lines),
        (Some("--instrument"), lines),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = limited(built("rocov"));
        command
            .arg("run")
            .args(way)
            .args(["--gpu", "model:gfx90a", "-o"]);
        command
            .arg(&data)
            .arg("--")
            .args(stack.starter())
            .arg(python());
        command
            .args(["-B"])
            .arg(repository("testdata/programs/run_time/in_python.py"));
        let ended = run(command.args(options.lines())).success();
        assert_eq!(ended.stdout, format!("{all} {odd}\n"), "{way:?}");
        let lcov = reported(&data, &["--lcov"]).success().silently().stdout;
        // 64 threads, 40 of which make steps.
        for line in [
            "FNDA:64,collatz".to_owned(),
            format!("DA:6,{all}"),
            format!("DA:8,{odd}"),
            "DA:11,0".to_owned(),
        ] {
            assert!(
                lcov.lines().any(|record| record == line),
                "{way:?}: no {line} in {lcov}"
            );
        }
    }
}

#[test]
fn without_the_flags_rocov_names_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let program = program(Stack::usual());
    let ended = run(&mut program.under_rocov(TARGET, &data)).success();
    let expected = format!(
        "rocov: nothing was drained: no process loaded instrumented GPU code; compile it with the flags that `rocov \
         flags` prints, or have hipRTC compile it with the flags that `rocov flags --hiprtc` prints, and run `rocov \
         doctor {}`; to keep the current flags, use `rocov run --instrument` or `rocov run --trace --gpu model`\n",
        program.file.display()
    );
    assert_eq!(ended.stderr, expected, "{ended}");
    let mut doctor = limited(built("rocov"));
    let doctor = run(doctor.arg("doctor").arg(&program.file));
    let remedy = "that code is not instrumented, unless the program passes the options of `rocov flags --hiprtc";
    assert!(doctor.stdout.contains(remedy), "{doctor}");
}
