//! Values of the environment that rocov cannot use. One line names the variable, the value and the
//! allowed values. The program ends as usual, and its counts are drained.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::support::artifacts::{built, names};
use crate::support::command::{copy_program, limited, run};
use crate::support::gpu::Stack;
use crate::support::profile::raw_profiles;
use crate::support::program::{Program, TARGET, counts};

/// Calls of the kernel in one launch.
const CALLS: u64 = 256;

/// Runs the program with only this setting. Expects `said` on standard error and one counted
/// launch.
fn is_said(variable: &str, value: impl Into<OsString>, said: &str) {
    let program = Program::build(Stack::usual(), &["guest/guest.hip"], &[], &["-ldl"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    fs::create_dir(&data).expect("a directory that can be written to");
    let mut setting = OsString::from(format!("{variable}="));
    setting.push(value.into());
    let libraries =
        ["librocov_modelgpu.so", "librocov.so"].map(|name| built(name).display().to_string());
    let mut command = limited("env");
    command
        .arg(format!("LD_PRELOAD={}", libraries.join(":")))
        .arg(format!("ROCOV_MODELGPU={TARGET}x2"))
        .arg(&setting)
        .arg(&program.file)
        .arg("run")
        .current_dir(&data);
    let ended = run(&mut command).success();
    assert_eq!(ended.stderr, format!("rocov: {said}\n"), "{setting:?}");
    let profiles = raw_profiles(&data);
    assert_eq!(profiles.len(), 1, "{setting:?}: {profiles:?}");
    assert_eq!(counts(&profiles[0], "counted"), (CALLS, vec![]));
    // No other file, wherever the value may point.
    let profile = profiles[0].file_name().unwrap_or_default();
    assert_eq!(names(&data), [profile.to_string_lossy()], "{setting:?}");
    assert_eq!(names(directory.path()), [".rocov", "data"], "{setting:?}");
    let side = directory.path().join(".rocov/data");
    assert_eq!(names(&side), ["objects", "registry"], "{setting:?}");
    let registries = names(&side.join("registry"));
    assert_eq!(registries, ["default.kernels.json"], "{setting:?}");
}

#[test]
fn names_of_profiles() {
    for (pattern, found, next) in [
        (
            "%q.profraw",
            "the profile name \"%q.profraw\" contains an unknown specifier, \"%q\"",
            "use %p, %h, %t, %b, %m, %1m to %9m, or %%",
        ),
        (
            "dir/%c.profraw",
            "%c in the profile name \"dir/%c.profraw\" maps counters into the file as they change, but device memory \
            cannot be mapped",
            "leave it out",
        ),
    ] {
        let said = format!(
            "LLVM_PROFILE_FILE: {found}, so rocov writes to default.profraw instead; {next}"
        );
        is_said("LLVM_PROFILE_FILE", pattern, &said);
    }
    let latin = OsString::from_vec(b"\xff.profraw".to_vec());
    let said = "LLVM_PROFILE_FILE: \"\\xFF.profraw\" is not UTF-8, so rocov writes to default.profraw instead; use \
                another name";
    is_said("LLVM_PROFILE_FILE", latin, said);
    let said = "ROCOV_LABEL: the label \"../away\" cannot be used, so rocov leaves the label out; use 1 to 8 names \
    separated by /, none of them . or .., each 1 to 128 bytes long (1 to 255 as a directory)";
    is_said("ROCOV_LABEL", "../away", said);
}

/// Runs the program in a directory of its own with this name of profiles. Returns what it says, and the names of all
/// files in its directory and above.
fn names_after(variable: &Path, descriptor: Option<&Path>) -> (String, Vec<String>) {
    let program = Program::build(Stack::usual(), &["guest/guest.hip"], &[], &["-ldl"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    fs::create_dir(&data).expect("a directory that can be written to");
    let libraries =
        ["librocov_modelgpu.so", "librocov.so"].map(|name| built(name).display().to_string());
    let mut command = limited("sh");
    let opened = descriptor.unwrap_or(Path::new("/dev/null"));
    command
        .args(["-c", "exec env LD_PRELOAD=$0 \"$@\" 3>$OPENED"])
        .arg(libraries.join(":"))
        .arg(&program.file)
        .arg("run")
        .env("OPENED", opened)
        .env("ROCOV_MODELGPU", TARGET)
        .env("LLVM_PROFILE_FILE", variable)
        .current_dir(&data);
    let ended = run(&mut command).success();
    let mut all = names(&data);
    all.extend(names(directory.path()));
    (ended.stderr, all)
}

/// `/dev/null` is the usual way to get no profile.
#[test]
fn the_null_device_means_no_profile() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let link = directory.path().join("null");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    let before = names(Path::new("/dev"));
    for name in [Path::new("/dev/null"), Path::new("/dev/./null"), &link] {
        let (said, files) = names_after(name, None);
        assert_eq!(said, "", "{}", name.display());
        assert_eq!(files, ["data"], "{}", name.display());
    }
    assert_eq!(names(Path::new("/dev")), before);
    assert_eq!(names(directory.path()), ["null"]);
    let root = names(Path::new("/"));
    assert!(!root.contains(&"dev.rocov".to_owned()), "{root:?}");
}

/// Files next to a device would be in a directory of the system, and those next to a directory above the one that the user
/// means.
#[test]
fn what_is_no_file_gets_no_profile() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [pipe, file] = ["pipe", "file"].map(|name| directory.path().join(name));
    run(limited("mkfifo").arg(&pipe)).success();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).expect("a directory");
    let before = names(Path::new("/dev"));
    let kernel = "an open file or another kernel object";
    for (name, found) in [
        (Path::new("/dev/full"), "is a device"),
        (Path::new("/dev/fd/3"), kernel),
        (Path::new("/dev/stdout"), ""),
        (&*pipe, "is a pipe"),
        (&*folder, "is a directory"),
        (Path::new("."), "has no file name"),
        (Path::new("cov/"), "has no file name"),
        (Path::new("cov/.."), "has no file name"),
    ] {
        let (said, files) = names_after(name, Some(&file));
        let start = format!("rocov: LLVM_PROFILE_FILE: the profile name {name:?} {found}");
        assert!(said.starts_with(&start) || found == kernel, "{said}");
        assert!(said.contains(found), "{said}");
        let end = ", so rocov writes nothing, and the counts of this process are lost; name a file such as \
        cov/%p.profraw, or /dev/null to write no profiles\n";
        assert!(said.ends_with(end), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(files, ["data"], "{}", name.display());
    }
    assert_eq!(names(Path::new("/dev")), before);
    assert_eq!(names(directory.path()), ["file", "folder", "pipe"]);
}

#[test]
fn what_is_drained() {
    let said = "ROCOV_ONLY, ROCOV_SKIP: `[` is not a glob: unclosed character class at byte 0; missing ']' \
                (to match a literal '[', escape it as '\\[' or '[[]'), so rocov drains everything; fix the pattern";
    is_said("ROCOV_ONLY", "[", said);
    is_said("ROCOV_SKIP", "[", said);
}

#[test]
fn words_and_numbers() {
    const BYTES: [&str; 2] = ["uses 4G", "a number of bytes such as 1000, 64K, 500M or 4G"];
    const WAIT: [&str; 2] = ["uses 10", "a whole number of seconds, 86400 at most"];
    const EVERY: [&str; 2] = [
        "ignores it",
        "a time from 10ms to 1440m, such as 500ms, 30s or 5m",
    ];
    for (variable, value, [effect, allowed]) in [
        (
            "ROCOV_REGISTRY",
            "yes",
            ["uses auto", "auto, always or none"],
        ),
        (
            "ROCOV_OBJECTS",
            "yes",
            ["uses instrumented", "all, instrumented or none"],
        ),
        ("ROCOV_OBJECTS_MAX", "4GB", BYTES),
        ("ROCOV_OBJECTS_MAX", "18446744073709551616", BYTES),
        ("ROCOV_WAIT", "1.5", WAIT),
        // Too large for the time of a clock.
        ("ROCOV_WAIT", "18446744073709551615", WAIT),
        ("ROCOV_SNAPSHOT_EVERY", "30", EVERY),
        ("ROCOV_SNAPSHOT_EVERY", "18446744073709551615s", EVERY),
        (
            "ROCOV_SNAPSHOT_SIGNAL",
            "KILL",
            ["ignores it", "HUP, USR1 or USR2"],
        ),
        (
            "ROCOV_CONTROL",
            "relative",
            ["ignores it", "1, or the absolute path of a directory"],
        ),
    ] {
        let said = format!("{variable}: {value:?} is not valid, so rocov {effect}; use {allowed}");
        is_said(variable, value, &said);
    }
}

/// The directory next to a custom pattern's profiles is not writable: one line reports it, and the
/// counts are complete.
#[test]
fn a_place_beside_profiles_that_cannot_be_written_to() {
    const NOBODY: &str = "65534";
    let program = Program::build(Stack::usual(), &["guest/guest.hip"], &[], &["-ldl"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    fs::create_dir(&data).expect("a directory can be made");
    chown(&data, Some(65534), Some(65534)).expect("a directory can be given away");
    let others = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), others).expect("rights can be given");
    let [file, model] = ["program", "model"].map(|name| directory.path().join(name));
    copy_program(&program.file, &file);
    fs::create_dir(&model).expect("a directory can be made");
    chown(&model, Some(65534), Some(65534)).expect("a directory can be given away");
    let libraries = ["librocov_modelgpu.so", "librocov.so"].map(|name| {
        let copy = directory.path().join(name);
        fs::copy(built(name), &copy).expect("a file can be copied");
        copy.display().to_string()
    });
    let mut command = limited("setpriv");
    command
        .args([
            "--reuid",
            NOBODY,
            "--regid",
            NOBODY,
            "--clear-groups",
            "env",
        ])
        .arg(format!("LD_PRELOAD={}", libraries.join(":")))
        .arg(format!("ROCOV_MODELGPU={TARGET}"))
        .arg(format!("ROCOV_MODELGPU_TMP={}", model.display()))
        .arg(format!("LLVM_PROFILE_FILE={}/%p.profraw", data.display()))
        .arg(&file)
        .arg("run")
        .current_dir(&data);
    let ended = run(&mut command).success();
    let side = directory.path().join("data.rocov");
    assert_eq!(
        ended.stderr,
        format!(
            "rocov: cannot write to {}: Permission denied (os error 13); device ELFs and the kernel \
             registry are not kept; make the place writable, or pass the files that ran to `rocov report --object`\n",
            side.display()
        )
    );
    assert!(!side.exists());
    let profiles = raw_profiles(&data);
    assert_eq!(profiles.len(), 1, "{profiles:?}");
    assert_eq!(counts(&profiles[0], "counted"), (CALLS, vec![]));
    let mut report = limited(built("rocov"));
    report.arg("report").arg(&data).arg("--object").arg(&file);
    run(&mut report).success();
}
