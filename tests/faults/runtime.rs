//! The real ROCr, whose functions fail when librocov calls them: the program's own result and exit
//! status are untouched, what is lost is said, and the rest is drained exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use crate::figure;
use crate::files::preloaded;
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::data::Data;
use crate::support::gpu::Stack;
use crate::support::program::{Program, TARGET, counts};

/// What the program ends with.
const STATUS: i32 = 7;
/// Calls of its kernel on each GPU.
const CALLS: [u64; 2] = [256, 512];

/// Programs that run at a time.
const THREADS: usize = 3;

/// `HSA_STATUS_ERROR`, `_INVALID_ARGUMENT`, `_OUT_OF_RESOURCES`.
const ERROR: &str = "0x1000";
const INVALID: &str = "0x1001";
const SHORT: &str = "0x1008";

fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| Program::build(Stack::Debian12, &["faults/two_devices.hip"], &[], &[]))
}

/// The program under librocov, and under the library that has HSA's functions fail.
fn drained(directory: &Path, fault: &str, calls: &Path) -> Ended {
    // What comes next after ours, as `dlsym` is asked, must not be librocov.
    let libraries = [
        built("librocov_modelgpu.so"),
        built("librocov.so"),
        preloaded(&repository("tests/faults/runtime_faults.c")),
    ];
    let libraries = libraries.map(|it| it.display().to_string());
    let mut command = limited("env");
    command
        .arg(format!("LD_PRELOAD={}", libraries.join(":")))
        .arg(format!("ROCOV_TEST_FAULT={fault}"))
        .arg(format!("ROCOV_TEST_FAULT_CALLS={}", calls.display()))
        .arg(format!("ROCOV_MODELGPU={TARGET}x2"))
        .arg(format!(
            "LLVM_PROFILE_FILE={}/app.profraw",
            directory.display()
        ))
        .args(["ROCOV_WAIT=1", "ROCOV_OBJECTS=none"])
        .arg(&program().file);
    run(&mut command)
}

/// How often librocov calls each function where none fails.
fn calls() -> BTreeMap<String, usize> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("calls");
    let ended = drained(directory.path(), "none:0:0", &file).with_status(STATUS);
    assert_eq!(ended.stderr, "");
    let text = std::fs::read_to_string(file).expect("a line for each function");
    let line = |line: &str| {
        let (name, calls) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), calls.parse().expect("a number"))
    };
    text.lines().map(line).collect()
}

/// What a fault may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Costs {
    /// No counts.
    Nothing,
    /// Those of one GPU.
    One,
    /// All: nothing can be seen or read.
    All,
}

/// The function, what it does, how often, and what that costs.
const TABLE: &[(&str, &[&str], bool, Costs)] = {
    const ONCE: bool = false;
    const ALWAYS: bool = true;
    &[
        (
            "hsa_iterate_agents",
            &[ERROR, SHORT, "null"],
            ONCE,
            Costs::One,
        ),
        ("hsa_iterate_agents", &[ERROR], ALWAYS, Costs::All),
        ("hsa_iterate_agents", &["null"], ALWAYS, Costs::Nothing),
        ("hsa_agent_get_info", &[ERROR, INVALID], ONCE, Costs::One),
        ("hsa_agent_get_info", &[ERROR], ALWAYS, Costs::All),
        ("hsa_isa_get_info_alt", &[ERROR], ALWAYS, Costs::Nothing),
        (
            "hsa_executable_get_symbol_by_name",
            &[ERROR, SHORT],
            ONCE,
            Costs::Nothing,
        ),
        (
            "hsa_executable_get_symbol_by_name",
            &[ERROR],
            ALWAYS,
            Costs::Nothing,
        ),
        (
            "hsa_executable_symbol_get_info",
            &[ERROR],
            ONCE,
            Costs::Nothing,
        ),
        ("hsa_amd_pointer_info", &[ERROR], ONCE, Costs::One),
        ("hsa_amd_pointer_info", &[ERROR], ALWAYS, Costs::All),
        (
            "hsa_amd_memory_async_copy",
            &[ERROR, SHORT, "hang"],
            ONCE,
            Costs::One,
        ),
        (
            "hsa_amd_memory_async_copy",
            &[ERROR],
            ALWAYS,
            Costs::Nothing,
        ),
        ("hsa_amd_memory_async_copy", &["hang"], ALWAYS, Costs::All),
        (
            "hsa_amd_memory_lock",
            &[ERROR, SHORT],
            ALWAYS,
            Costs::Nothing,
        ),
        ("hsa_amd_memory_unlock", &[ERROR], ALWAYS, Costs::Nothing),
        ("hsa_signal_create", &[SHORT], ALWAYS, Costs::Nothing),
        ("hsa_system_get_info", &[ERROR], ONCE, Costs::One),
        (
            "hsa_system_get_major_extension_table",
            &[ERROR],
            ONCE,
            Costs::One,
        ),
        (
            "hsa_system_get_major_extension_table",
            &[ERROR, "missing"],
            ALWAYS,
            Costs::All,
        ),
        (
            "iterate_executables",
            &[ERROR, "null"],
            ALWAYS,
            Costs::Nothing,
        ),
        (
            "iterate_loaded_code_objects",
            &[ERROR, "null"],
            ONCE,
            Costs::One,
        ),
        ("iterate_loaded_code_objects", &[ERROR], ALWAYS, Costs::All),
        (
            "loaded_code_object_get_info",
            &[ERROR, INVALID],
            ONCE,
            Costs::One,
        ),
        ("query_host_address", &[ERROR], ALWAYS, Costs::Nothing),
        ("hsa_memory_copy", &[ERROR], ALWAYS, Costs::Nothing),
    ]
};

/// Runs the program with this fault.
fn survives(fault: &str, costs: Costs) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let ended = drained(&data, fault, Path::new("/dev/null"));
    let what = format!("{fault}: {ended}");
    assert_eq!(ended.status.code(), Some(STATUS), "{what}");
    let result = CALLS.map(|calls| 3 * calls);
    assert_eq!(
        ended.stdout,
        format!("0: {}\n1: {}\n", result[0], result[1]),
        "{what}"
    );
    let ours = |line: &str| line.starts_with("rocov: ");
    assert!(ended.stderr.lines().all(ours), "{what}");
    let mut missing = 0;
    let profiles = Data::of(&data).profiles;
    for (gpu, expected) in CALLS.into_iter().enumerate() {
        let of_gpu = |path: &&std::path::PathBuf| {
            path.to_string_lossy()
                .ends_with(&format!(".{gpu}.app.profraw"))
        };
        match profiles.iter().find(of_gpu) {
            Some(profile) => assert_eq!(counts(profile, "counted").0, expected, "{what}"),
            None => missing += 1,
        }
    }
    let most = match costs {
        Costs::Nothing => 0,
        Costs::One => 1,
        Costs::All => 2,
    };
    assert!(missing <= most, "{missing} GPUs are missing: {what}");
    assert!(
        missing == most || costs != Costs::All,
        "nothing went wrong: {what}"
    );
    let is_said = ended.stderr.contains("lost");
    assert!(missing == 0 || is_said, "{what}");
    // A line for what could not be seen, and one for each code object.
    assert!(ended.stderr.lines().count() <= 4, "{what}");
}

/// All runs: the fault, and what it may cost.
fn runs() -> Vec<(String, Costs)> {
    let calls = calls();
    let mut runs = Vec::new();
    for (function, faults, always, costs) in TABLE {
        let number = calls[*function];
        assert!(number > 0 || *always, "{function} is never called");
        for (place, what) in faults.iter().enumerate() {
            let numbers: BTreeSet<String> = match (always, place) {
                (true, _) => ["*".into()].into(),
                // With the first of them at the first, a middle and the last call.
                (false, 0) => [0, number / 2, number - 1].map(|it| it.to_string()).into(),
                (false, _) => ["0".into()].into(),
            };
            let faults = numbers.iter().map(|it| format!("{function}:{it}:{what}"));
            runs.extend(faults.map(|fault| (fault, *costs)));
        }
    }
    runs
}

#[test]
fn functions_of_the_real_runtime_may_fail() {
    let runs = runs();
    // A program that waits for a copy needs no processor.
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let runs = runs.iter().skip(thread).step_by(THREADS);
            scope.spawn(move || runs.for_each(|(fault, costs)| survives(fault, *costs)));
        }
    });
    figure("runtime_faults", runs.len());
}
