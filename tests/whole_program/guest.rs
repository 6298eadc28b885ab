//! A drain is a guest in somebody's program: it leaves everything there as it was, needs little, and
//! does not let itself be used against who runs the program.

use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::gpu::{Stack, data};
use crate::support::program::{Program, TARGET, counts, device_profiles};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

/// Calls of the kernel in one launch.
const CALLS: u64 = 256;

/// A user with no rights of its own: nobody.
const NOBODY: &str = "65534";

/// What a forbidden system call ends in.
const SIGSYS: i32 = 31;

fn program(more: &[&str]) -> Program {
    Program::build(Stack::Debian12, &["guest/guest.hip"], &[], more)
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory that can be listed");
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        })
        .collect()
}

#[track_caller]
fn assert_counted(data: &Path) {
    let profiles = device_profiles(data);
    assert_eq!(profiles.len(), 1, "{profiles:?}");
    assert_eq!(counts(&profiles[0], "counted"), (CALLS, vec![]));
}

/// Runs testdata/programs/guest under rocov on two GPUs, and finds its launch counted.
fn is_counted(what: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let program = program(&["-ldl"]);
    let gpus = format!("{TARGET}x2");
    run(program.under_rocov(&gpus, &data).arg(what))
        .success()
        .silently();
    assert_counted(&data);
}

#[test]
fn the_programs_state_is_as_before() {
    is_counted("state");
}

#[test]
fn requests_leave_no_file_open() {
    for pattern in ["%p.profraw", "%m.profraw"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        let program = program(&["-ldl"]);
        let mut command = program.with_pattern(TARGET, &data.join(pattern));
        run(command.arg("requests")).success().silently();
        for (data, launches) in [(data.join("labels/asked"), 5), (data, 6)] {
            let profiles = device_profiles(&data);
            assert_eq!(profiles.len(), 1, "{profiles:?}");
            assert_eq!(counts(&profiles[0], "counted").0, launches * CALLS);
        }
    }
}

#[test]
fn a_drain_needs_no_deep_stack() {
    is_counted("stack");
}

/// What is loaded may have long names, which demanglers take much stack for.
#[test]
fn code_is_loaded_on_a_small_stack() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let program = program(&["-ldl"]);
    run(program.under_rocov(TARGET, &data).arg("load"))
        .success()
        .silently();
    assert_counted(&data);
    let mut kernels = limited(built("rocov"));
    kernels.args(["kernels", "--json"]).arg(&data);
    let numbers: Vec<String> = (100..240).map(|it| it.to_string()).collect();
    let names = [
        format!("void wide<{}>()", numbers.join(", ")),
        format!("deep(unsigned int{})", "*".repeat(56)),
    ];
    let listed = run(&mut kernels).success().silently().stdout;
    for name in names {
        assert!(listed.contains(&format!("\"{name}\"")), "{listed}");
    }
}

#[test]
fn a_sandbox_may_forbid_what_is_not_needed() {
    is_counted("sandbox");
    // The sandbox is one.
    let forbidden = run(program(&["-ldl"]).alone().arg("forbidden"));
    // `timeout` ends as its command did, or says it as a shell does.
    let signal = forbidden.status.code().map(|code| code - 128);
    let signal = signal.or(forbidden.status.signal());
    assert_eq!(signal, Some(SIGSYS), "{forbidden}");
}

/// Whoever can write to the directory puts links where files will be.
#[test]
fn links_in_the_directory_are_not_followed() {
    for pattern in ["fixed.profraw", "%m.profraw"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [data, victim] = ["data", "victim"].map(|name| directory.path().join(name));
        let program = program(&["-ldl"]);
        let drain = || {
            let mut command = program.with_pattern(TARGET, &data.join(pattern));
            run(command.arg("run")).success()
        };
        drain().silently();
        let written = files_below(directory.path());
        fs::write(&victim, "precious").expect("a file can be written");
        assert_eq!(written.len(), 3, "profile, registry, ELF: {written:?}");
        for file in &written {
            fs::remove_file(file).expect("a file can be removed");
            symlink(&victim, file).expect("a link can be made");
        }
        drain();
        let kept = fs::read_to_string(&victim).expect("the file is there");
        assert_eq!(kept, "precious", "{pattern}: a link was followed");
        // What could not take a link's place lies beside it.
        for link in written.iter().filter(|file| file.is_symlink()) {
            fs::remove_file(link).expect("a link can be removed");
        }
        assert_counted(&data);
    }
}

/// Who starts a setuid program chooses its environment and directory, and must not get files written
/// there with the rights of another.
#[test]
fn a_setuid_program_writes_nothing() {
    let libraries = ["librocov_modelgpu.so", "librocov.so"].map(built);
    let [model, rocov] = libraries
        .each_ref()
        .map(|it| it.to_str().expect("a UTF-8 path"));
    let rpath = Path::new(rocov).parent().expect("a directory").display();
    let program = program(&[model, rocov, &format!("-Wl,-rpath,{rpath}"), "-ldl"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open_to = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode can be set");
    };
    open_to(directory.path(), 0o777);
    let file = directory.path().join("program");
    fs::copy(&program.file, &file).expect("a program can be copied");
    chown(&file, Some(0), Some(0)).expect("tests run as root");
    let data = data(directory.path());
    let run_as_nobody = |mode| {
        open_to(&file, mode);
        // The model shares files between the processes of a user.
        let model = tempfile::tempdir().expect("a temporary directory");
        open_to(model.path(), 0o777);
        let mut command = limited("setpriv");
        command
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .arg(&file)
            .arg("run")
            .current_dir(directory.path())
            .env("ROCOV_MODELGPU", TARGET)
            .env("ROCOV_MODELGPU_TMP", model.path())
            .env("ROCOV_VERBOSE", "1")
            .env("LLVM_PROFILE_FILE", data.join("%p.profraw"));
        run(&mut command).success()
    };
    let ended = run_as_nobody(0o4755);
    assert_eq!(
        ended.stderr,
        "rocov: this program has rights that its user has not (setuid, setgid, capabilities): \
         nothing is drained\n"
    );
    assert_eq!(files_below(directory.path()), std::slice::from_ref(&file));
    run_as_nobody(0o755).says(&["wrote "]);
    assert_counted(&data);
}
