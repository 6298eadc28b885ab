//! However a program ends, its counts are those that docs/src/internals/endings.md promises, and its exit
//! status is the one that it has without rocov.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::artifacts::repository;
use crate::support::command::{Ended, rocov_run, run};
use crate::support::compile::code_object_of;
use crate::support::data::Data;
use crate::support::gpu::{Stack, data};
use crate::support::profile::{merge, raw_profiles};
use crate::support::program::{Program, TARGET, counts, is_of_zeros};

/// The exit status that the program chooses, if it can.
const STATUS: i32 = 42;

/// Calls and loop turns in one launch of either kernel.
const CALLS: u64 = 256;
const BRANCHES: u64 = 64;

/// A program that has ended under rocov, and its files.
struct Ran {
    directory: tempfile::TempDir,
    /// True if `rocov run` has reported lost counts.
    is_cut_off: bool,
    ended: Ended,
}

fn program(stack: Stack) -> Program {
    Program::build(stack, &["endings/endings.hip"], &[], &["-ldl"])
}

/// Runs testdata/programs/endings to this ending on each stack, with and without rocov.
fn ends(ending: &str, check: impl Fn(&Ran)) {
    ends_on(&Stack::for_programs(), ending, check);
}

fn ends_on(stacks: &[Stack], ending: &str, check: impl Fn(&Ran)) {
    for &stack in stacks {
        let program = program(stack);
        let alone = run(program.alone().arg(ending));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = program.under_rocov(TARGET, &data(directory.path()));
        let ended = run(command.arg(ending));
        // Like a shell's: `rocov run` reports its program's signal this way.
        let status = |ended: &Ended| match ended.status.signal() {
            Some(signal) => 128 + signal,
            None => ended.status.code().expect("ended by exit or a signal"),
        };
        assert_eq!(status(&ended), status(&alone), "{alone} alone; {ended}");
        // tests/programs/messages.rs checks rocov's messages for these endings.
        let closing = ended.stderr.strip_suffix("drains while a program runs\n");
        let (said, is_cut_off) = match closing {
            Some(said) => (said.rfind("rocov: ").map_or("", |at| &said[..at]), true),
            None => (&*ended.stderr, false),
        };
        assert_eq!(said, alone.stderr, "{alone} alone; {ended}");
        check(&Ran {
            directory,
            is_cut_off,
            ended,
        });
    }
}

impl Ran {
    fn data(&self) -> PathBuf {
        data(self.directory.path())
    }

    /// The profiles of the run. Fails if one is incomplete, or if there is any unexpected file.
    #[track_caller]
    fn profiles(&self) -> Vec<PathBuf> {
        whole_profiles(&self.data())
    }

    /// Expects this status and one profile with this number of launches of the kernel.
    #[track_caller]
    fn has_launches(&self, kernel: &str, launches: u64) {
        let profiles = self.profiles();
        assert_eq!(
            profiles.len(),
            1,
            "profiles {profiles:?} after {}",
            self.ended
        );
        assert_eq!(
            counts(&profiles[0], kernel),
            (CALLS * launches, vec![BRANCHES * launches]),
            "{kernel} after {}",
            self.ended
        );
    }

    /// The number of launches that the program printed for the time of its end.
    #[track_caller]
    fn late_launches(&self) -> u64 {
        let said = self.ended.stdout.strip_suffix(" late launches\n");
        let number = said.and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no number of launches: {}", self.ended))
    }
}

/// The profiles in a data directory. The registry of each process or pool is next to them. The
/// device ELF exists however the program ends, because rocov keeps it at the load.
#[track_caller]
fn whole_profiles(data: &Path) -> Vec<PathBuf> {
    let data = Data::read(data);
    let registries = data.registries.iter();
    let used = registries.filter(|registry| {
        registry
            .processes
            .iter()
            .any(|process| !process.loads.is_empty())
    });
    // A parent that leaves the GPU to its child has launched no kernel.
    let profiles: Vec<_> = data
        .profiles
        .into_iter()
        .filter(|path| !is_of_zeros(path))
        .collect();
    assert_eq!(used.count(), profiles.len(), "registries");
    assert_eq!(data.elfs.len(), 1, "device ELFs");
    profiles
}

/// Expects that every launch is counted and that the status is the program's.
fn is_counted(ending: &str, launches: u64) {
    is_counted_on(&Stack::for_programs(), ending, launches);
}

fn is_counted_on(stacks: &[Stack], ending: &str, launches: u64) {
    ends_on(stacks, ending, |ran| {
        assert_eq!(ran.ended.status.code(), Some(STATUS), "{}", ran.ended);
        assert!(!ran.is_cut_off, "{}", ran.ended);
        ran.has_launches("counted", launches);
    });
}

/// Expects that no counts are written.
fn is_not_counted(ending: &str) {
    ends(ending, |ran| {
        let killed = ran.ended.status.code().is_some_and(|code| code > 128);
        assert!(killed && ran.is_cut_off, "{}", ran.ended);
        assert!(ran.profiles().is_empty(), "{}", ran.ended);
    });
}

#[test]
fn return_from_main() {
    is_counted("return", 1);
}

#[test]
fn exit() {
    is_counted("exit", 1);
}

#[test]
fn callbacks_end_before_hip_is_taken_down() {
    ends("completion", |ran| {
        assert_eq!(
            ran.ended.stdout, "the callback has ended\n",
            "{}",
            ran.ended
        );
        ran.has_launches("counted", 1);
    });
}

#[test]
fn quick_exit() {
    is_counted("quick_exit", 1);
}

#[test]
fn exit_without_handlers() {
    is_counted("_exit", 1);
    is_counted("_Exit", 1);
}

/// HIP 6.4 waits forever for the thread that runs the callback, with and without rocov.
#[test]
fn exit_inside_a_stream_callback() {
    is_counted_on(&Stack::before_hip_6(), "callback", 1);
}

/// HIP 6.4 crashes if a thread launches after the main thread has ended, with and without rocov.
#[test]
fn exit_after_the_main_thread_has_ended() {
    is_counted_on(&Stack::before_hip_6(), "pthread_exit", 2);
}

#[test]
fn uncaught_exception() {
    is_not_counted("exception");
}

#[test]
fn abort() {
    is_not_counted("abort");
}

#[test]
fn crash() {
    is_not_counted("crash");
}

/// Counts drained before the program died stay complete; later counts are lost.
#[test]
fn abort_after_a_drain() {
    ends("drain, abort", |ran| ran.has_launches("counted", 1));
}

/// Two drains of one load count one launch each.
#[test]
fn return_after_a_drain() {
    is_counted("drain, return", 2);
}

/// No function is safe to call there. The program may even end in the middle of a drain.
#[test]
fn exit_without_handlers_inside_a_signal_handler() {
    ends("handler", |ran| {
        assert_eq!(ran.ended.status.code(), Some(STATUS), "{}", ran.ended);
        assert!(ran.profiles().is_empty(), "{}", ran.ended);
    });
}

/// Threads still launch during the drain at exit, until an exit handler that the program registered
/// before its first use of the GPU.
#[test]
fn exit_while_other_threads_launch() {
    ends("threads", |ran| {
        ran.has_launches("counted", 1);
        ran.has_launches("late", ran.late_launches());
    });
}

/// HIP 5.2.3 and 5.7.1 (in rocr-6.1.2) then write to freed memory, with and without rocov; a malloc
/// that keeps freed memory shows it. With HIP 5.2.3 this is harmless as long as little code uses
/// the heap earlier at exit. The other release may crash or not, so the test leaves it out.
#[test]
fn destructor_that_launches() {
    let mut stacks = Stack::for_programs();
    stacks.retain(|stack| stack.code_object_version() != 5);
    ends_on(&stacks, "destructor", |ran| {
        assert_eq!(ran.late_launches(), 1);
        ran.has_launches("counted", 1);
        ran.has_launches("late", 1);
    });
}

/// Threads that launch until the process ends run into HIP's own shutdown: the program may crash
/// with and without rocov. The counts from before `exit` are complete anyway. The registry, which
/// is written last, may be missing.
#[test]
fn exit_while_other_threads_launch_for_ever() {
    for stack in Stack::for_programs() {
        let program = program(stack);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = program.under_rocov(TARGET, &data(directory.path()));
        let ended = run(command.arg("endless threads"));
        let profiles = raw_profiles(&data(directory.path()));
        assert_eq!(profiles.len(), 1, "{profiles:?} after {ended}");
        let (counted, branches) = counts(&profiles[0], "counted");
        assert_eq!(
            (counted, branches),
            (CALLS, vec![BRANCHES]),
            "after {ended}"
        );
        let (late, _) = counts(&profiles[0], "late");
        assert!(late >= CALLS, "{late} calls of late after {ended}");
    }
}

/// Each process that uses the GPU itself has its own profile.
#[test]
fn fork_before_the_gpu_is_used() {
    ends("fork before", |ran| {
        assert_eq!(ran.ended.status.code(), Some(STATUS), "{}", ran.ended);
        let profiles = ran.profiles();
        assert_eq!(
            profiles.len(),
            2,
            "profiles {profiles:?} after {}",
            ran.ended
        );
        for profile in &profiles {
            assert_eq!(counts(profile, "counted"), (CALLS, vec![BRANCHES]));
        }
        let merged = ran.directory.path().join("merged.profdata");
        merge(&profiles, &merged);
        assert_eq!(counts(&merged, "counted"), (2 * CALLS, vec![2 * BRANCHES]));
    });
}

#[test]
fn fork_with_gpu_use_in_the_child_alone() {
    is_counted("fork, child only", 1);
}

/// A child forked after the start of HSA, but before any load, has no HSA of its own: rocov must
/// not call HSA there.
#[test]
fn fork_between_the_start_of_hsa_and_the_first_load() {
    for stack in Stack::for_programs() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pattern = data(directory.path()).join("%p.profraw");
        let mut command = program(stack).with_pattern(TARGET, &pattern);
        let ended = run(command.arg("fork between").env("ROCOV_VERBOSE", "1")).with_status(STATUS);
        let (of_the_child, of_the_parent) = ended
            .stderr
            .split_once("the child has ended\n")
            .expect("the program's own line");
        assert!(!of_the_child.contains("HSA walk"), "{ended}");
        assert!(of_the_parent.contains("HSA walk complete"), "{ended}");
        Ran {
            directory,
            is_cut_off: false,
            ended,
        }
        .has_launches("counted", 1);
    }
}

/// The child writes nothing, and the parent loses nothing.
#[test]
fn fork_after_the_gpu_was_used() {
    is_counted("fork after", 2);
}

/// Another program replaces this one in the process.
#[test]
fn exec() {
    is_counted("exec", 1);
}

/// A pool sums processes, the programs of one process, and drains.
#[test]
fn pools_take_each_launch_once() {
    let launches_twice = |stack: Stack, ending: &str| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pattern = data(directory.path()).join("%m.profraw");
        let mut command = program(stack).with_pattern(TARGET, &pattern);
        let ended = run(command.arg(ending)).with_status(STATUS).silently();
        Ran {
            directory,
            is_cut_off: false,
            ended,
        }
        .has_launches("counted", 2);
    };
    // Only there is the program /proc/self/exe: other stacks start it with their own loader.
    launches_twice(Stack::usual(), "exec itself");
    for stack in Stack::for_programs() {
        launches_twice(stack, "drain, return");
    }
}

/// Two programs of one process load one code object: neither overwrites the other's counts.
#[test]
fn exec_of_the_program_itself() {
    for pattern in ["%p.profraw", "all.profraw"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        // Only there is the program /proc/self/exe: other stacks start it with their own loader.
        let mut command = program(Stack::usual()).with_pattern(TARGET, &data.join(pattern));
        let ended = run(command.arg("exec itself")).with_status(STATUS);
        match pattern {
            "all.profraw" => {
                _ = ended.says(&["is the profile of another process, so rocov keeps it"])
            }
            _ => _ = ended.silently(),
        }
        let profiles = Data::read(&data).profiles;
        assert_eq!(profiles.len(), 2, "{profiles:?}");
        let merged = directory.path().join("merged.profdata");
        merge(&profiles, &merged);
        assert_eq!(counts(&merged, "counted"), (2 * CALLS, vec![2 * BRANCHES]));
    }
}

/// A Python program that calls HIP through ctypes, on Debian 12's HIP.
fn python(ending: &str) -> Ran {
    let folder = repository("testdata/programs/endings");
    let stack = Stack::Debian12;
    let module = code_object_of(
        &folder.join("module.hip"),
        TARGET,
        "-O1",
        stack.code_object_version(),
    );
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = rocov_run(Some(&format!("model:{TARGET}")), &data(directory.path()));
    command
        .arg("python3")
        .arg(folder.join("endings.py"))
        .args(["libamdhip64.so.5".as_ref(), module.as_os_str()])
        .arg(ending);
    let ended = run(&mut command);
    Ran {
        directory,
        is_cut_off: false,
        ended,
    }
}

#[test]
fn python_that_ends_as_programs_do() {
    let endings = [
        ("return", 0),
        ("sys.exit", STATUS),
        ("os._exit", STATUS),
        ("subprocess", STATUS),
    ];
    for (ending, status) in endings {
        let ran = python(ending);
        assert_eq!(ran.ended.status.code(), Some(status), "{}", ran.ended);
        assert_eq!(ran.ended.stderr, "", "{}", ran.ended);
        ran.has_launches("counted", 1);
    }
}

/// Unlike C++, Python ends with `exit`.
#[test]
fn python_with_an_uncaught_exception() {
    let ran = python("exception");
    assert_eq!(ran.ended.status.code(), Some(1), "{}", ran.ended);
    ran.has_launches("counted", 1);
}

#[test]
fn python_that_aborts() {
    let ran = python("os.abort");
    assert_eq!(ran.ended.status.code(), Some(128 + 6), "{}", ran.ended);
    assert!(ran.profiles().is_empty(), "{}", ran.ended);
}

/// A drain prints only losses by default. With the setting, each pass ends in a line of numbers.
#[test]
fn the_drain_is_silent_unless_asked() {
    let program = program(Stack::usual());
    let said = |variable: Option<&str>| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command: Command = program.under_rocov(TARGET, &data(directory.path()));
        command.env_remove("ROCOV_VERBOSE");
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        run(command.arg("return")).with_status(STATUS).stderr
    };
    assert_eq!(said(None), "");
    for variable in ["ROCOV_VERBOSE", "LLVM_PROFILE_VERBOSE"] {
        let lines = said(Some(variable));
        let walk = "rocov: HSA walk complete: agents=1 pairs=1 found=1 drained=1 iter-failures=0";
        assert!(lines.lines().any(|line| line == walk), "{lines}");
    }
}
