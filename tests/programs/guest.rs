//! A drain is a guest in the user's program. It leaves everything there unchanged, needs few
//! resources, and gives others no power over the user who runs the program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use crate::support::artifacts::built;
use crate::support::command::{copy_program, limited, run};
use crate::support::gpu::{Stack, data};
use crate::support::program::{Program, TARGET, counts, device_profiles};

/// Calls of the kernel in one launch.
const CALLS: u64 = 256;

/// The user nobody, who has no rights.
const NOBODY: &str = "65534";

/// The signal of a forbidden system call.
const SIGSYS: i32 = 31;

fn program(more: &[&str]) -> Program {
    Program::build(Stack::usual(), &["guest/guest.hip"], &[], more)
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .expect("a directory that can be listed")
        .map(|entry| entry.expect("an entry").path());
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

/// Runs testdata/programs/guest under rocov on two GPUs and expects that its launch is counted.
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

/// Loaded code may have long names, and demanglers need much stack for these.
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
    let numbers: Vec<String> = (100..240).map(|n| n.to_string()).collect();
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
    // A forbidden call ends the process, so the sandbox works.
    let forbidden = run(program(&["-ldl"]).alone().arg("forbidden"));
    // `timeout` ends like its command, or reports the signal like a shell.
    let signal = forbidden
        .status
        .code()
        .map(|code| code - 128)
        .or(forbidden.status.signal());
    assert_eq!(signal, Some(SIGSYS), "{forbidden}");
}

/// A user with write access to the directory puts links at the paths of later files.
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
        // A file that could not replace a link lies next to it.
        for link in written.iter().filter(|file| file.is_symlink()) {
            fs::remove_file(link).expect("a link can be removed");
        }
        assert_counted(&data);
    }
}

/// The user who starts a setuid program chooses its environment and directory. That user must not
/// get files written there with another user's rights.
#[test]
fn a_setuid_program_writes_nothing() {
    let libraries = ["librocov_modelgpu.so", "librocov.so"].map(built);
    let [model, rocov] = libraries
        .each_ref()
        .map(|path| path.to_str().expect("a UTF-8 path"));
    let rpath = Path::new(rocov).parent().expect("a directory").display();
    let more = [model, rocov, &format!("-Wl,-rpath,{rpath}"), "-ldl"];
    // On HIP 7.2.4, a setuid program crashes at its end, with and without rocov.
    let program = Program::build(Stack::Debian12, &["guest/guest.hip"], &[], &more);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open_to = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode can be set");
    };
    open_to(directory.path(), 0o777);
    let file = directory.path().join("program");
    copy_program(&program.file, &file);
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
        "rocov: this program has privileges that its user lacks (setuid, setgid, capabilities): rocov \
         drains nothing; run it without these privileges\n"
    );
    assert_eq!(files_below(directory.path()), std::slice::from_ref(&file));
    run_as_nobody(0o755).says(&["wrote "]);
    assert_counted(&data);
}
