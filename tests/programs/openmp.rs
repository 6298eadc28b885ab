//! The target regions of OpenMP: counted, reported line by line, and listed as kernels. The oracle is the
//! program without OpenMP, on the host. LLVM's offload runtime can write the counts, too.
//!
//! clang counts the lines of a loop directive's own loop once for each thread, and the entry of a region, too.
//! The sources mark these lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, rocov_run, run};
use crate::support::compile::{Compilation, device_header};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::profile::{Functions, cov, functions, merge, raw_profiles};
use crate::support::program::{Program, TARGET, flags_for, is_of_zeros};
use crate::support::unpacked::asked;

/// The output of both programs.
const PRINTED: &str = "150 1 6477\n";
/// The start of the name of a profile that LLVM's offload runtime writes.
const OF_LLVM: &str = "amdgcn-amd-amdhsa.";

fn source(name: &str) -> PathBuf {
    repository("testdata/programs/openmp").join(name)
}

/// The compiler of the device runtime, which compiles the programs too.
fn compiler() -> &'static Compiler {
    Compiler::find(22).expect("clang 22 is installed")
}

/// A program by its sources, for the GPU, with the flags of `rocov flags --openmp OPTIONS`. `None` if the
/// device runtime is not unpacked.
fn program(sources: &[&str], options: &[&str]) -> Option<PathBuf> {
    program_with(&["-O1"], sources, options)
}

/// A program that is compiled with more flags.
pub(crate) fn program_with(more: &[&str], sources: &[&str], options: &[&str]) -> Option<PathBuf> {
    let without = "no target region of OpenMP is run";
    let runtime = asked("flags", "openmp-22", without)?;
    let clang = compiler().clang;
    let mut compilation = Compilation::by(clang)
        .arguments(["-Wall", "-Wextra", "-fopenmp"])
        .arguments(more)
        .arguments([format!("--offload-arch={TARGET}")])
        // Debian 12's ROCr loads code objects up to version 5, and its device libraries are elsewhere.
        .arguments(["-mcode-object-version=5"])
        .arguments(["--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"])
        .arguments(runtime.split_whitespace())
        .arguments(flags_for(clang, &[&["--openmp"], options].concat()))
        .reads([device_header(), source("regions.h")])
        .reads([repository("runtime/device/rdc/lld")]);
    for name in sources {
        compilation = compilation
            .arguments(["-x", language(name)])
            .source(source(name));
    }
    Some(compilation.output(&format!("openmp-{}", sources[0])))
}

fn language(name: &str) -> &'static str {
    if name.ends_with(".c") { "c" } else { "c++" }
}

/// A data directory that a program has written.
struct Ran {
    directory: TempDir,
}

impl Ran {
    fn new(program: &Path, options: &[&str]) -> (Self, Ended) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let ran = Self { directory };
        let mut rocov = limited(built("rocov"));
        rocov
            .args(["run", "--gpu", &format!("model:{TARGET}"), "-o"])
            .arg(ran.data())
            .args(options)
            .arg("--")
            .arg(program);
        let ended = run(&mut rocov).success();
        assert_eq!(ended.stdout, PRINTED, "{ended}");
        (ran, ended)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn rocov(&self, command: &str, options: &[&str]) -> String {
        let mut rocov = limited(built("rocov"));
        rocov.arg(command).arg(self.data()).args(options);
        run(&mut rocov).success().silently().stdout
    }

    /// The counts of the lines of a source.
    fn lines(&self, name: &str) -> BTreeMap<usize, u64> {
        lines(&self.rocov("report", &["--lcov"]), name)
    }

    fn kernels(&self) -> Vec<Value> {
        let kernels: Value =
            serde_json::from_str(&self.rocov("kernels", &["--json"])).expect("JSON");
        kernels["kernels"].as_array().expect("a list").clone()
    }

    /// The profiles that rocov has written (`true`), or LLVM's offload runtime.
    fn profiles(&self, of_rocov: bool) -> Vec<PathBuf> {
        let start = if of_rocov { "gfx90a." } else { OF_LLVM };
        let mut profiles = raw_profiles(&self.data());
        profiles.retain(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(start))
        });
        profiles
    }

    fn functions(&self, profiles: &[PathBuf]) -> Functions {
        let merged = self.directory.path().join("of.profdata");
        merge(profiles, &merged);
        functions(&merged)
    }
}

/// The counts of the lines of a source in a report in the form of lcov.
fn lines(lcov: &str, name: &str) -> BTreeMap<usize, u64> {
    let start = |line: &&str| line.starts_with("SF:") && line.ends_with(&format!("/{name}"));
    let record = lcov
        .lines()
        .skip_while(|line| !start(line))
        .take_while(|line| *line != "end_of_record");
    let counts = record.filter_map(|line| line.strip_prefix("DA:")?.split_once(','));
    counts
        .map(|(line, count)| {
            (
                line.parse().expect("a line"),
                count.parse().expect("a count"),
            )
        })
        .collect()
}

/// The counts of the lines of `name` on the host, of a program without OpenMP.
fn on_host(sources: &[&str], name: &str) -> BTreeMap<usize, u64> {
    let mut compilation = Compilation::usual()
        .arguments(["-O1", "-Wno-unknown-pragmas"])
        .arguments(["-fprofile-instr-generate", "-fcoverage-mapping"])
        .reads([source("regions.h")]);
    for name in sources {
        compilation = compilation
            .arguments(["-x", language(name)])
            .source(source(name));
    }
    let program = compilation.output(&format!("openmp-host-{}", sources[0]));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [raw, merged] = ["1.profraw", "1.profdata"].map(|name| directory.path().join(name));
    let mut command = limited(&program);
    let ended = run(command.env("LLVM_PROFILE_FILE", &raw)).success();
    assert_eq!(ended.stdout, PRINTED, "{ended}");
    merge(&[raw], &merged);
    let mut export = limited(cov());
    export.args(["export", "-format=lcov", "-instr-profile"]);
    export.arg(&merged).arg(&program);
    lines(&run(&mut export).success().silently().stdout, name)
}

/// The lines of a source that end with a comment.
fn marked(name: &str, mark: &str) -> Vec<usize> {
    let text = std::fs::read_to_string(source(name)).expect("the source is there");
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.ends_with(mark));
    lines.map(|(at, _)| at + 1).collect()
}

/// Expects each line of the regions with its count on the host. The lines that clang counts in each thread
/// have run, and those that are marked as never run have not.
fn is_right(device: &BTreeMap<usize, u64>, sources: &[&str], name: &str) {
    let host = on_host(sources, name);
    let in_threads = [marked(name, "// once"), marked(name, "// loop")].concat();
    assert!(!device.is_empty(), "{name}: no line has a count");
    for line in &in_threads {
        let count = device.get(line);
        assert!(count.is_some_and(|count| *count > 0), "{name}:{line} runs");
    }
    for (line, count) in device.iter().filter(|(line, _)| !in_threads.contains(line)) {
        assert_eq!(Some(count), host.get(line), "{name}:{line}");
    }
    let never: Vec<_> = device
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(line, _)| *line)
        .collect();
    let shown = marked(name, "// never");
    assert!(
        shown.iter().all(|line| never.contains(line)),
        "{name}: {never:?} do not run, and {shown:?} should not"
    );
}

/// Runs a program and expects its report to be right, line by line.
fn is_reported(sources: &[&str]) -> Option<Ran> {
    let program = program(sources, &[])?;
    let (ran, ended) = Ran::new(&program, &[]);
    assert_eq!(ended.stderr, "", "{ended}");
    for name in sources.iter().chain(&["regions.h"]) {
        is_right(&ran.lines(name), sources, name);
    }
    Some(ran)
}

#[test]
fn regions_of_cxx_are_reported_line_by_line() {
    let Some(ran) = is_reported(&["regions.cpp"]) else {
        return;
    };
    // Host code is compiled for the device, too. It is none of the GPU's.
    let main = marked(
        "regions.cpp",
        "std::printf(\"%d %d %ld\\n\", values[199], odd[99], sum);",
    );
    assert!(!ran.lines("regions.cpp").contains_key(&main[0]));
}

#[test]
fn regions_of_several_units_of_c_are_reported_line_by_line() {
    let sources = ["regions.c", "total.c"];
    if is_reported(&sources).is_none() {
        return;
    }
    // Without rocov, LLVM's offload runtime must not crash the program at its end.
    let program = program(&sources, &[]).expect("it was there");
    for _ in 0..5 {
        let mut command = limited(&program);
        command
            .env("ROCOV_MODELGPU", TARGET)
            .env("LD_PRELOAD", built("librocov_modelgpu.so"));
        assert_eq!(run(&mut command).success().stdout, PRINTED);
    }
}

#[test]
fn regions_are_kernels_with_readable_names() {
    let Some(program) = program(&["regions.cpp"], &[]) else {
        return;
    };
    let (ran, _) = Ran::new(&program, &["--label", "regions"]);
    let kernels = ran.kernels();
    let shown: Vec<_> = kernels
        .iter()
        .map(|kernel| {
            let name = kernel["display_name"].as_str().expect("a readable name");
            let source = kernel["source"].as_str().expect("a source");
            assert!(source.ends_with("openmp/regions.cpp"), "{source}");
            assert_eq!(kernel["instrumented"], true, "{kernel}");
            (name, kernel["count"].as_u64().expect("a count") > 0)
        })
        .collect();
    let region = |at: usize| format!("main, target region at line {at}");
    let pragmas: Vec<_> = std::fs::read_to_string(source("regions.cpp"))
        .expect("the source is there")
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("#pragma omp target"))
        .map(|(at, _)| at + 1)
        .collect();
    let scale = format!(
        "void scale<int>(int*, int), target region at line {}",
        pragmas[0]
    );
    let of_main = pragmas[1..].iter().map(|at| (region(*at), true));
    let expected: Vec<_> = of_main.chain([(scale, false)]).collect();
    let expected: Vec<_> = expected.iter().map(|(name, ran)| (&**name, *ran)).collect();
    assert_eq!(shown, expected);
    let profiles = ran.data().join("profraw/labels/regions");
    assert!(profiles.is_dir(), "profiles have the label");
}

#[test]
fn regions_that_are_never_loaded_count_as_zero() {
    let Some(program) = program(&["unused.cpp"], &[]) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = rocov_run(Some(&format!("model:{TARGET}")), &data);
    let ended = run(command.arg(&program)).success();
    assert_eq!(ended.stdout, "1\n", "{ended}");
    let profiles = raw_profiles(&data);
    assert!(profiles.len() == 1 && is_of_zeros(&profiles[0]), "{ended}");
    let mut report = limited(built("rocov"));
    let report = run(report.arg("report").arg(&data).arg("--lcov")).success();
    let counts = lines(&report.stdout, "unused.cpp");
    let never = marked("unused.cpp", "// never");
    assert_eq!(counts, never.into_iter().map(|line| (line, 0)).collect());
}

/// LLVM's offload runtime writes the counts if host code is instrumented. They are those that rocov drains,
/// and a report takes one of both.
#[test]
fn llvm_writes_the_counts_too_and_they_count_once() {
    // With fast counters, LLVM's runtime would write only a part of them.
    let Some(program) = program(&["regions.cpp"], &["--host", "--counters=llvm"]) else {
        return;
    };
    let (both, _) = Ran::new(&program, &[]);
    let (ours, llvms) = (both.profiles(true), both.profiles(false));
    assert_eq!((ours.len(), llvms.len()), (1, 1), "{ours:?} {llvms:?}");
    let functions = both.functions(&ours);
    assert!(functions.values().any(|function| function.calls == 200));
    assert_eq!(both.functions(&llvms), functions);
    is_right(&both.lines("regions.h"), &["regions.cpp"], "regions.h");

    let (only_llvms, _) = Ran::new(&program, &["--drain=llvm"]);
    assert_eq!(only_llvms.profiles(true), [""; 0].map(PathBuf::from));
    let llvms = only_llvms.profiles(false);
    assert_eq!(only_llvms.functions(&llvms), functions);
    let mut report = limited(built("rocov"));
    report.arg("report").arg(only_llvms.data());
    run(&mut report)
        .with_status(1)
        .says(&["only", OF_LLVM, "LLVM's offload runtime wrote"]);
    let mut clean = limited(built("rocov"));
    run(clean.arg("clean").arg(only_llvms.data())).success();
    assert!(
        !only_llvms.data().exists(),
        "rocov clean removes LLVM's file"
    );
}

/// A program of HIP with LLVM's offload runtime in it: its calls of HSA pass both of librocov's hooks.
#[test]
fn hip_beside_the_offload_runtime_counts_once() {
    let sources = ["never_launched/main.hip", "never_launched/scale.hip"];
    let program = Program::build(Stack::Debian12, &sources, &[], &["-ldl"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = limited(built("rocov"));
    command.args(["run", "-v", "--gpu", &format!("model:{TARGET}"), "-o"]);
    command.arg(&data).arg("--").arg(&program.file).arg("scale");
    command.env(
        "LD_PRELOAD",
        "/usr/lib/x86_64-linux-gnu/libomptarget.so.22.1",
    );
    let ended = run(&mut command).success();
    let words = ended
        .says(&["hooked into HSA's tool table", "1 instrumented"])
        .stderr;
    assert_eq!(words.matches("1 instrumented").count(), 1, "{words}");
    let mut profiles = raw_profiles(&data);
    profiles.retain(|profile| !is_of_zeros(profile));
    let merged = directory.path().join("one.profdata");
    merge(&profiles, &merged);
    assert_eq!(functions(&merged)["_Z5scalePff"].blocks, [64]);
}

/// clang counts the body of a loop directive once for each thread, on the host too. If it no longer does,
/// the guide has a limit less.
#[test]
fn the_loop_of_a_directive_counts_threads() {
    let Some(program) = program(&["regions.cpp"], &[]) else {
        return;
    };
    let (ran, _) = Ran::new(&program, &[]);
    let body = marked("regions.cpp", "values[i] = clamped(i, 150); // loop");
    // 32 threads of one team, of 200 iterations.
    assert_eq!(ran.lines("regions.cpp")[&body[0]], 32);
}
