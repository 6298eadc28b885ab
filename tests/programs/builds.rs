//! Edit, rebuild, run, report. The figures equal those of a fresh directory, though the directory
//! also has the counts of older builds. Other programs and libraries keep their counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::artifacts::{built, names};
use crate::support::command::{Ended, copy_program, limited, run};
use crate::support::gpu::Stack;
use crate::support::program::{TARGET, rocov_flags};

/// The edited kernel: each edit adds a line that does not run.
fn first(edits: usize) -> String {
    let comment = "// A line more.\n".repeat(edits);
    let more = "  if (value[0] < 0) { // never\n    value[0] = 0;\n  }\n".repeat(edits);
    format!(
        "{comment}__attribute__((global)) void first(int *value) {{\n{more}  value[0] += 1;\n}}\n\
         void launch_first(int *value) {{ first<<<1, 64>>>(value); }}\n"
    )
}

/// Another translation unit, whose code object does not change.
const SECOND: &str = "__attribute__((global)) void second(int *value) {\n  value[0] += 2;\n}\n\
                      void launch_second(int *value) { second<<<1, 64>>>(value); }\n";

/// The source of the library.
fn library(edits: usize) -> String {
    let more = "  value[0] += 4; // edited\n".repeat(edits);
    format!(
        "__attribute__((global)) void third(int *value) {{\n  value[0] += 3;\n{more}}}\n\
         extern \"C\" void launch_third(int *value) {{ third<<<1, 64>>>(value); }}\n"
    )
}

/// Each argument is a step: the kernel to launch. The last kernel is `third`, the library's.
const MAIN: &str = r#"#include <dlfcn.h>
#include <string.h>
void launch_first(int *value);
void launch_second(int *value);
int main(int argc, char **argv) {
  int *value = nullptr;
  if (hipMalloc(&value, sizeof *value) != hipSuccess) return 1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "first") == 0) {
      launch_first(value);
    } else if (strcmp(argv[i], "second") == 0) {
      launch_second(value);
    } else {
      void *library = dlopen(argv[i], RTLD_NOW);
      if (library == nullptr) return 2;
      reinterpret_cast<void (*)(int *)>(dlsym(library, "launch_third"))(value);
    }
    if (hipDeviceSynchronize() != hipSuccess) return 3;
  }
  return 0;
}
"#;

/// A project whose sources change.
struct Project(TempDir, Stack);

impl Project {
    fn new() -> Self {
        Self::on(Stack::usual())
    }

    fn on(stack: Stack) -> Self {
        let project = Self(tempfile::tempdir().expect("a temporary directory"), stack);
        fs::create_dir(project.path("build")).expect("a directory can be made");
        project.write("second.hip", SECOND);
        project.write("main.hip", MAIN);
        project.compile("second");
        project.compile("main");
        project.edit(0);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        // Without the mathematics of device code, which takes three times as long to read as all of the rest.
        let text = format!("#include <hip/hip_runtime_api.h>\n{text}");
        fs::write(self.path(name), text).expect("a file can be written");
    }

    /// Edits the first source and rebuilds the program.
    fn edit(&self, edits: usize) {
        self.write("first.hip", &first(edits));
        self.compile("first");
        self.link("app", &["first", "second", "main"], &["-ldl"]);
    }

    /// Edits the library and rebuilds it.
    fn edit_library(&self, edits: usize) {
        self.write("third.hip", &library(edits));
        self.compile("third");
        self.link("libthird.so", &["third"], &["-shared"]);
    }

    fn compile(&self, name: &str) {
        let mut clang = self.clang(self.1.compile_flags_for(self.1.compiler()));
        clang.args(["-O1", "-fPIC", "-nogpuinc", "-c"]);
        clang.arg(self.path(&format!("{name}.hip")));
        let object = self.object(name);
        run(clang.arg("-o").arg(object)).success().silently();
    }

    fn link(&self, output: &str, names: &[&str], flags: &[&str]) {
        let mut clang = self.clang(self.1.flags());
        // Those of device code.
        clang.arg("-Wno-unused-command-line-argument");
        clang.args(names.iter().map(|name| self.object(name)));
        let output = self.path(output);
        run(clang.args(flags).arg("-o").arg(output))
            .success()
            .silently();
    }

    fn object(&self, name: &str) -> PathBuf {
        self.path(&format!("build/{name}.o"))
    }

    fn clang(&self, flags: Vec<OsString>) -> Command {
        let mut clang = limited(self.1.compiler().clang);
        clang.args(flags).args(rocov_flags(self.1, &[]));
        clang.arg(format!("--offload-arch={TARGET}"));
        clang
    }

    /// Runs `program` with these steps. Its profiles go to the directory `data`, by `rocov run -o`
    /// or by a pattern.
    fn run(&self, program: &str, data: &str, pattern: Option<&str>, steps: &[&str]) {
        let mut command = limited(built("rocov"));
        command.current_dir(self.0.path());
        command.args(["run", "--gpu", "model"]);
        match pattern {
            None => command.args(["-o", data]),
            Some(pattern) => command.env("LLVM_PROFILE_FILE", format!("{data}/{pattern}")),
        };
        command.arg("--");
        command.arg(self.path(program));
        for step in steps {
            match *step {
                "third" => command.arg(self.path("libthird.so")),
                step => command.arg(step),
            };
        }
        let ended = run(&mut command).success();
        // One name for all processes: those after the first take others.
        let is_taken = ended
            .stderr
            .contains("is the profile of another process, so rocov keeps it");
        if pattern.is_none_or(|pattern| pattern.contains('%')) || !is_taken {
            ended.silently();
        }
    }

    fn rocov(&self, arguments: &[&str]) -> Ended {
        let mut command = limited(built("rocov"));
        run(command.current_dir(self.0.path()).args(arguments))
    }

    /// A report on `data` as a tracefile, and its standard error.
    #[track_caller]
    fn report(&self, data: &[&str], options: &[&str]) -> (String, String) {
        let ended = self
            .rocov(&[&["report", "--lcov"], data, options].concat())
            .success();
        (ended.stdout, ended.stderr)
    }

    /// A report with nothing on standard error.
    #[track_caller]
    fn silent(&self, data: &[&str], options: &[&str]) -> String {
        let (report, said) = self.report(data, options);
        assert_eq!(said, "");
        report
    }
}

/// The calls of each kernel in a tracefile.
fn calls(report: &str) -> BTreeMap<String, u64> {
    let lines = report.lines().filter_map(|line| line.strip_prefix("FNDA:"));
    let calls = lines.map(|line| {
        let (count, name) = line.split_once(',').expect("a count and a name");
        let kernels = ["first", "second", "third"];
        let kernel = kernels.iter().find(|kernel| name.contains(*kernel));
        (
            kernel.unwrap_or(&name).to_string(),
            count.parse().expect("a count"),
        )
    });
    calls.collect()
}

#[test]
fn the_figures_are_those_of_a_fresh_directory() {
    let project = Project::new();
    // One directory for each process, a fixed name that only the first process takes, and pools.
    let patterns = [
        ("own", None),
        ("folders", Some("%p/x.profraw")),
        ("fixed", Some("x.profraw")),
        ("pool", Some("%m.profraw")),
    ];
    let both = ["first", "second"];
    for (data, pattern) in patterns {
        project.run("app", data, pattern, &both);
        project.run("app", data, pattern, &both);
        project.silent(&[data], &[]);
    }
    project.edit(2);
    for (data, pattern) in patterns {
        let fresh = format!("fresh-{data}");
        project.run("app", &fresh, pattern, &both);
        project.run("app", data, pattern, &both);
        let expected = project.silent(&[&fresh], &[]);
        assert_eq!(calls(&expected)["second"], 64);
        let (report, said) = project.report(&[data], &[]);
        assert_eq!(report, expected, "{data}");
        let line = format!("rocov: app: 2 builds in {data}: rocov uses the newest (");
        assert!(
            said.starts_with(&line) && said.lines().count() == 1,
            "{said}"
        );

        // Gates find nothing missed by the older build.
        project
            .rocov(&["report", data, "--fail-under-lines", "10"])
            .success();
        let all = project.silent(&[data], &["--all-builds"]);
        assert_eq!(calls(&all)["second"], 3 * 64, "{data}");

        // Merged profiles also hold the builds.
        let [merged, pooled] = ["merged", "pooled"].map(|name| format!("{name}-{data}"));
        let said = project
            .rocov(&["merge", data, "-o", &merged])
            .success()
            .stderr;
        assert!(said.contains("2 builds in"), "{said}");
        assert_eq!(project.silent(&[&merged], &[]), expected, "{data}");
        let merge = ["merge", "-q", data, "--pooled", &pooled, "--all-builds"];
        project.rocov(&merge).success().silently();
        assert_eq!(project.report(&[&pooled], &[]).0, expected, "{data}");
        assert_eq!(project.silent(&[&pooled], &["--all-builds"]), all, "{data}");
        // Other commands take the newest build too.
        let kernels = |data: &str, all: &[&str]| {
            let ended =
                project.rocov(&[&["kernels", "--json", "--instrumented", data], all].concat());
            let json: serde_json::Value =
                serde_json::from_str(&ended.success().stdout).expect("JSON");
            json["kernels"].clone()
        };
        assert_eq!(kernels(data, &[]), kernels(&fresh, &[]), "{data}");
        let diff = project
            .rocov(&["diff", data, &fresh, "--json"])
            .success()
            .stdout;
        let diff: serde_json::Value = serde_json::from_str(&diff).expect("JSON");
        assert_eq!(diff["lines"], serde_json::json!([]), "{data}");
    }
    // Merges from different times, put together.
    project
        .rocov(&["merge", "-q", "fresh-own", "--pooled", "new"])
        .success();
    let expected = project.silent(&["new"], &[]);
    assert_eq!(project.report(&["pooled-own", "new"], &[]).0, {
        let twice = project.report(&["own", "fresh-own"], &[]).0;
        assert_eq!(calls(&twice)["second"], 2 * calls(&expected)["second"]);
        twice
    });
}

#[test]
fn libraries_and_programs_displace_no_others() {
    let project = Project::new();
    project.edit_library(0);
    copy_program(&project.path("app"), &project.path("other"));
    let steps = ["first", "third"];
    project.run("app", "data", None, &steps);
    project.run("other", "data", None, &["first"]);
    let before = calls(&project.silent(&["data"], &[]));
    assert_eq!((before["first"], before["third"]), (128, 64));

    // Only the counts of the library's older build go.
    project.edit_library(1);
    project.run("app", "data", None, &steps);
    let (report, said) = project.report(&["data"], &[]);
    let now = calls(&report);
    assert_eq!((now["first"], now["third"]), (192, 64), "{said}");
    let line = "rocov: libthird.so: 2 builds in data: rocov uses the newest (";
    assert!(
        said.starts_with(line) && said.contains("leaves out 1 run of"),
        "{said}"
    );
    assert_eq!(
        calls(&project.silent(&["data"], &["--all-builds"]))["first"],
        192
    );

    // The program's copy is another program, without a rebuild.
    project.edit(1);
    project.run("app", "data", None, &["second"]);
    let (report, said) = project.report(&["data"], &[]);
    assert_eq!(calls(&report)["second"], 64);
    assert!(said.contains("rocov: app: 2 builds in data"), "{said}");
    assert!(!said.contains("other"), "{said}");
    let ended = project.rocov(&["report", "data", "--lcov", "--component", "other"]);
    assert!(
        ended.success().stdout.contains("FNDA:64,"),
        "the run of the copy"
    );
}

/// A kernel that the newest build does not launch counts as not run, whatever older builds did.
/// This holds on every HIP, also for a program started through the dynamic linker.
#[test]
fn what_older_builds_launched_did_not_run() {
    for stack in Stack::for_programs() {
        let project = Project::on(stack);
        project.run("app", "data", None, &["first", "second"]);
        project.edit(1);
        project.run("app", "data", None, &["first"]);
        project.run("app", "fresh", None, &["first"]);
        let expected = project.silent(&["fresh"], &[]);
        assert_eq!(calls(&expected)["second"], 0, "{stack:?}");
        let (report, said) = project.report(&["data"], &[]);
        assert_eq!(report, expected, "{stack:?}");
        assert!(said.starts_with("rocov: app: 2 builds in data"), "{said}");
    }
}

/// Process ids in containers repeat.
#[test]
fn a_number_that_comes_back_hides_no_build() {
    let project = Project::new();
    let run_as = |data: &str| {
        let script = "echo 20000 > /proc/sys/kernel/ns_last_pid && exec \"$@\"";
        let mut command = limited("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"]);
        command.arg(built("rocov"));
        command.args(["run", "--gpu", "model", "-o", data, "--"]);
        command.arg(project.path("app")).arg("first");
        run(command.current_dir(project.0.path()))
            .success()
            .silently();
    };
    run_as("data");
    project.edit(1);
    run_as("data");
    run_as("fresh");
    let registries = names(&project.path("data/registry"));
    let numbers: BTreeSet<_> = registries
        .iter()
        .filter_map(|name| name.split_once('-'))
        .map(|(number, _)| number)
        .collect();
    assert_eq!((registries.len(), numbers.len()), (2, 1), "one number");
    let expected = project.silent(&["fresh"], &[]);
    assert_eq!(project.report(&["data"], &[]).0, expected);
}

#[test]
fn cleaning_removes_what_was_written_and_nothing_else() {
    let project = Project::new();
    project.run("app", "rocov-data", None, &["first"]);
    project.run("app", "cov", Some("%p.profraw"), &["first"]);
    let here = project.path("here");
    fs::create_dir(&here).expect("a directory can be made");
    let mut command = limited(built("rocov"));
    command
        .args(["run", "--gpu", "model", "--"])
        .arg(project.path("app"))
        .arg("first");
    command.env("LLVM_PROFILE_FILE", "x.profraw");
    run(command.current_dir(&here)).success().silently();
    assert_eq!(names(&project.path(".rocov")), ["here"]);
    project
        .rocov(&["merge", "-q", "cov", "-o", "rocov-data"])
        .success();
    project
        .rocov(&["export", "--format", "rocpd", "rocov-data"])
        .success();
    fs::write(project.path("cov/notes.txt"), "mine").expect("a file can be written");

    let sources = ["app", "build", "first.hip", "main.hip", "second.hip"];
    let said = project.rocov(&["clean"]).success().silently().stdout;
    assert!(
        said.starts_with("rocov-data: removed 1 database, "),
        "{said}"
    );
    assert!(!project.path("rocov-data").exists(), "{said}");
    let said = project.rocov(&["clean", "cov"]).success().stdout;
    assert!(
        said.contains("left 1 entry that is not data of a run: cov/notes.txt"),
        "{said}"
    );
    assert_eq!(names(&project.path("cov")), ["notes.txt"]);
    project.rocov(&["clean", "here"]).success();
    let left = names(Path::new(&project.path("")));
    let expected: Vec<_> = sources
        .iter()
        .chain(&["cov"])
        .map(|name| (*name).to_owned())
        .collect();
    let mut expected = expected;
    expected.sort();
    assert_eq!(left, expected);
}
