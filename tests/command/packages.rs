//! The contents of packages: the tree of an installation, the script that installs it, and the librocov.so in it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov_tests::artifacts::{built, repository};
use rocov_tests::cli::{DRAIN, MODEL_GPU, plugin, run, stdout};
use rocov_tests::unpacked::not_run;
use tempfile::TempDir;

/// The directory with the command and cargo's libraries.
fn build() -> PathBuf {
    built("rocov").parent().unwrap().to_owned()
}

fn script(name: &str) -> Command {
    Command::new(repository("tools").join(name))
}

/// A copy of cargo's libraries as packages have them, and the directory that tools/packaging/stage takes.
fn finished() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let built = directory.path().join("built");
    fs::create_dir(&built).unwrap();
    for name in [
        "rocov",
        DRAIN,
        "librocov.a",
        MODEL_GPU,
        "librocov_instrument.so",
        "librocov_rocprofiler.so",
        "rocov-ptxas",
    ] {
        std::os::unix::fs::symlink(build().join(name), built.join(name)).unwrap();
    }
    run(script("packaging/finish")
        .arg(&built)
        .arg(directory.path().join("finished")));
    directory
}

/// The files below a directory, and where links lead.
fn files(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            match fs::read_link(&path) {
                Ok(to) => {
                    found.insert(format!("{name} -> {}", to.display()));
                }
                Err(_) if path.is_dir() => folders.push(path),
                Err(_) => {
                    found.insert(name);
                }
            }
        }
    }
    found
}

#[test]
fn an_installed_tree_is_complete_and_goes_again() {
    let directory = finished();
    let place = |name: &str| directory.path().join(name);
    // As tools/dev/release puts it there.
    let plugins = place("finished").join("pass");
    fs::copy(plugin(22), plugins.join("librocov_pass-22.so")).unwrap();
    run(script("packaging/stage").args([place("finished"), place("tree")]));
    let tree = files(&place("tree"));
    for part in [
        "bin/rocov",
        "lib/librocov.so.0",
        "lib/librocov.so -> librocov.so.0",
        "lib/librocov_modelgpu.so",
        "lib/librocov_instrument.so",
        "lib/librocov_rocprofiler.so",
        "lib/rocov/librocov.a",
        "lib/rocov/librocov_pass-22.so",
        "lib/pkgconfig/rocov.pc",
        "include/rocov_device.h",
        "libexec/rocov/rdc/openmp/ld.lld",
        "libexec/rocov/triton/ptxas-blackwell",
        "share/rocov/pass/CMakeLists.txt",
        "share/cmake/rocov/rocov-config.cmake",
        "share/man/man1/rocov-report.1",
        "share/bash-completion/completions/rocov",
        "share/doc/rocov/LICENSE-MIT",
    ] {
        assert!(tree.contains(part), "{part}: {tree:#?}");
    }

    // A prefix that others use, too.
    let prefix = place("prefix");
    fs::create_dir_all(prefix.join("lib/other")).unwrap();
    fs::write(prefix.join("lib/other/file"), "").unwrap();
    let before = files(&prefix);
    let installer = place("tree").join("install.sh");
    fs::copy(repository("tools/packaging/install.sh"), &installer).unwrap();
    let install = |arguments: &[&str]| {
        let mut command = Command::new(&installer);
        run(command.arg("--prefix").arg(&prefix).args(arguments))
    };
    install(&[]);
    let mut wanted: BTreeSet<_> = before.union(&tree).cloned().collect();
    wanted.insert("share/rocov/installed-files".into());
    assert_eq!(files(&prefix), wanted);

    // The command finds all of its parts there, and none in this checkout.
    let rocov = prefix.join("bin/rocov");
    let found = |arguments: &[&str]| {
        let mut command = Command::new(&rocov);
        command.env_remove("ROCOV_LIBRARY_DIR");
        stdout(&run(command.args(arguments)))
    };
    let prefix_text = prefix.canonicalize().unwrap().display().to_string();
    assert!(found(&["flags", "--link"]).contains(&format!("{prefix_text}/lib/rocov/librocov.a")));
    let flags = found(&["flags", "--clang", "clang++-22"]);
    let flag = format!("-fpass-plugin={prefix_text}/lib/rocov/librocov_pass-22.so");
    assert!(flags.contains(&flag), "{flags}");
    assert!(
        flags.contains(&format!("-include {prefix_text}/include/rocov_device.h")),
        "{flags}"
    );
    let mut preloaded = Command::new(&rocov);
    let command = ["run", "--gpu", "model", "-o"].map(str::to_owned);
    preloaded.args(command).arg(place("data"));
    let preloaded = preloaded
        .args(["--", "sh", "-c", "echo $LD_PRELOAD"])
        .output()
        .unwrap();
    let preloaded = String::from_utf8_lossy(&preloaded.stdout).into_owned();
    assert!(
        preloaded.contains(&format!("{prefix_text}/lib/librocov.so.0")),
        "{preloaded}"
    );
    assert!(
        preloaded.contains(&format!("{prefix_text}/lib/librocov_modelgpu.so")),
        "{preloaded}"
    );

    // As a new user does, in a minute: installs it in a fresh root, compiles, runs, and sees coloured lines.
    let minute = stdout(&run(script("dev/first-minute").arg(place("tree"))));
    match minute.lines().find(|line| line.starts_with("not run: ")) {
        Some(line) => not_run(line),
        None => assert!(
            minute.contains(" s from the package to coloured lines, 60 s allowed"),
            "{minute}"
        ),
    }

    // Another version replaces this one: a file and a folder go, a file comes.
    fs::remove_file(place("tree").join("include/rocov_gtest.h")).unwrap();
    fs::remove_dir_all(place("tree").join("share/rocov/pass")).unwrap();
    fs::write(place("tree").join("share/rocov/new"), "").unwrap();
    install(&[]);
    wanted.remove("include/rocov_gtest.h");
    wanted.retain(|name| !name.starts_with("share/rocov/pass/"));
    wanted.insert("share/rocov/new".into());
    assert_eq!(files(&prefix), wanted);
    assert!(!prefix.join("share/rocov/pass").exists());

    install(&["--uninstall"]);
    assert_eq!(files(&prefix), before);
    let left: Vec<_> = fs::read_dir(&prefix)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lib"]);
}

#[test]
fn the_librocov_of_packages_has_a_soname_and_versions() {
    let directory = finished();
    let library = directory.path().join("finished").join(DRAIN);
    let dynamic = stdout(&run(Command::new("readelf").arg("-d").arg(&library)));
    assert!(dynamic.contains("soname: [librocov.so.0]"), "{dynamic}");
    // It brings its own unwinder.
    assert!(!dynamic.contains("libgcc_s"), "{dynamic}");

    let symbols = Command::new("nm")
        .args(["-D", "--defined-only", "--format=just-symbols"])
        .arg(&library)
        .output();
    let symbols = String::from_utf8(symbols.unwrap().stdout).unwrap();
    let listed = fs::read_to_string(repository("runtime/symbols.txt")).unwrap();
    // A function that comes before that of another library must not have a version.
    let wanted: BTreeSet<_> = listed
        .lines()
        .map(|name| match name.starts_with("rocov_") {
            true => format!("{name}@@ROCOV_0.1"),
            false => name.to_owned(),
        })
        .chain(["ROCOV_0.1".to_owned()])
        .collect();
    let found: BTreeSet<_> = symbols.lines().map(str::to_owned).collect();
    assert_eq!(found, wanted);

    // A linked program calls it by these versions.
    let program = directory.path().join("linked");
    let folder = directory.path().join("finished");
    std::os::unix::fs::symlink(DRAIN, folder.join("librocov.so.0")).unwrap();
    let source = directory.path().join("linked.c");
    fs::write(
        &source,
        "#include <rocov.h>\n#include <stdio.h>\n\
         int main(void) { puts(rocov_version()); return rocov_drain() != ROCOV_STATUS_NOTHING; }\n",
    )
    .unwrap();
    let mut compile = Command::new("cc");
    compile
        .arg(&source)
        .arg("-I")
        .arg(repository("runtime/include"));
    compile
        .arg("-L")
        .arg(&folder)
        .args(["-lrocov", "-o"])
        .arg(&program);
    run(&mut compile);
    let (printed, drain) = binding(&program, "`rocov_drain' [ROCOV_0.1]", |command| {
        command.env("LD_LIBRARY_PATH", &folder);
    });
    assert_eq!(printed, format!("{}\n", env!("CARGO_PKG_VERSION")));
    assert!(drain.contains("librocov.so.0"), "{drain}");
    // A program that is not linked with it asks for glibc's version, and gets librocov's function.
    let env = Path::new("/usr/bin/env");
    let (_, exec) = binding(env, "`execvp' [GLIBC_2.2.5]", |command| {
        command.env("LD_PRELOAD", folder.join(DRAIN)).arg("true");
    });
    assert!(exec.contains(DRAIN), "{exec}");
}

/// Runs a program. Returns what it prints, and the line in which the loader binds its reference to a symbol.
fn binding(program: &Path, symbol: &str, prepare: impl Fn(&mut Command)) -> (String, String) {
    let mut command = Command::new(program);
    command.env("LD_DEBUG", "bindings").env("LD_BIND_NOW", "1");
    prepare(&mut command);
    let output = run(&mut command);
    let bindings = String::from_utf8_lossy(&output.stderr).into_owned();
    let start = format!("binding file {} ", program.display());
    let mut lines = bindings.lines();
    let line = lines
        .find(|line| line.contains(&start) && line.contains(symbol))
        .unwrap_or_else(|| panic!("{symbol}: {bindings}"));
    (stdout(&output), line.to_owned())
}

#[test]
fn a_symbol_of_a_new_c_library_is_found() {
    let mut symbols = script("packaging/symbols");
    // This build is for the C library here, of which __libc_start_main has the version 2.34.
    let output = symbols.arg("2.28").arg(built("rocov")).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("and 2.28 is the newest allowed"),
        "{message}"
    );
    assert!(message.contains("libgcc_s.so.1"), "{message}");
}

#[test]
fn all_files_have_one_version() {
    run(script("packaging/version").arg("--check"));
}

#[test]
fn scripts_of_packages_can_be_executed() {
    for folder in ["tools/packaging", "tools/dev"] {
        for entry in fs::read_dir(repository(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && fs::read(&path).unwrap().starts_with(b"#!") {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o111, 0o111, "{}", path.display());
            }
        }
    }
}

/// A librocov that prints its calls. The status of each is the number at the end of the label, or 0.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int called(const char *name, const char *label) {
  printf("%s %s\n", name, label ? label : "-");
  fflush(stdout);
  return label ? atoi(label + strlen(label) - 1) : 0;
}
const char *rocov_version(void) { return "7.8.9"; }
int rocov_start(void) { return called("start", 0); }
int rocov_stop(void) { return called("stop", 0); }
int rocov_reset(void) { return called("reset", 0); }
int rocov_dump(const char *label) { return called("dump", label); }
int rocov_label_push(const char *label) { return called("push", label); }
int rocov_label_pop(void) { return called("pop", 0); }
"#;

/// Uses the module as a program would.
const PROGRAM: &str = r#"
import warnings
import rocov

warnings.simplefilter("error", rocov.LostCounts)

@rocov.scope("decorated")
def function(argument):
    print("in", argument)

assert rocov.version() == "7.8.9"
assert rocov.start() and rocov.stop() and rocov.reset() and rocov.dump()
assert not rocov.dump("nothing-1")
with rocov.scope("outer"):
    function(argument=42)
for label, error in (("lost-2", rocov.LostCounts), ("invalid-3", ValueError), ("internal-4", RuntimeError)):
    try:
        with rocov.scope(label):
            print("in", label)
    except error as caught:
        print(type(caught).__name__)
try:
    with rocov.scope("raises"):
        raise KeyError
except KeyError:
    print("KeyError")
"#;

#[test]
fn the_python_module_calls_librocov() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("library.so");
    let source = directory.path().join("library.c");
    fs::write(&source, LIBRARY).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library);
    run(compile.arg(&source));
    let python = |program: &str| {
        let mut python = Command::new("python3");
        python.args(["-u", "-B", "-c", program]);
        python.env("PYTHONPATH", repository("tools/python"));
        python.env_remove("ROCOV_LIBRARY");
        python
    };
    let output = run(python(PROGRAM).env("ROCOV_LIBRARY", &library));
    let wanted = "start -\nstop -\nreset -\ndump -\ndump nothing-1\n\
        push outer\npush decorated\nin 42\npop -\npop -\n\
        push lost-2\npop -\nLostCounts\n\
        push invalid-3\npop -\nValueError\n\
        push internal-4\npop -\nRuntimeError\n\
        push raises\npop -\nKeyError\n";
    assert_eq!(stdout(&output), wanted);

    // Without librocov, a program runs as before.
    let without = "import rocov\n\
        with rocov.scope('a'): print(rocov.stop(), rocov.dump(), rocov.reset(), rocov.version())\n";
    let output = run(&mut python(without));
    assert_eq!(stdout(&output), "False False False None\n");
}
