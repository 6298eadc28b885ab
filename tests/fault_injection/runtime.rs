//! The real ROCr with failing functions under librocov: the program's result and exit status do not
//! change, messages report the losses, and the rest is drained exactly.
//!
//! Each run shows that its faults have struck: the preloaded library counts them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::figure;
use crate::files::preloaded;
use crate::runtime_table::{Costs, Row, Strikes, TABLE};
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::data::Data;
use crate::support::gpu::Stack;
use crate::support::program::{Program, TARGET, counts};
use crate::support::released::BAR;

/// The program's exit status.
const STATUS: i32 = 7;
/// Calls of its kernel on each GPU.
const CALLS: [u64; 2] = [256, 512];

/// Programs that run at once.
const THREADS: usize = 3;

fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| Program::build(Stack::Debian12, &["faults/two_devices.hip"], &[], &[]))
}

/// A run of the program under librocov and the library with HSA's failing functions.
struct Drained {
    ended: Ended,
    /// GPUs without a profile. The other profiles have all counts.
    missing: usize,
    /// The number of calls of each function, and of strikes of each fault, by name and text.
    numbers: BTreeMap<String, usize>,
}

impl Drained {
    /// Runs under these faults, separated by commas. The host does not see the memory of the GPUs.
    fn under(faults: &str) -> Self {
        Self::with_bar("small", faults)
    }

    /// Runs under these faults, on GPUs with this BAR.
    fn with_bar(bar: &str, faults: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [data, numbers] = ["data", "numbers"].map(|name| directory.path().join(name));
        // `dlsym` must not find librocov as the next library after ours.
        let libraries = [
            built("librocov_modelgpu.so"),
            built("librocov.so"),
            preloaded(&repository("tests/fault_injection/runtime_faults.c")),
        ]
        .map(|library| library.display().to_string());
        let mut command = limited("env");
        command
            .arg(format!("LD_PRELOAD={}", libraries.join(":")))
            .arg(format!("ROCOV_TEST_FAULT={faults}"))
            .arg(format!("ROCOV_TEST_FAULT_CALLS={}", numbers.display()))
            .arg(format!("ROCOV_MODELGPU={TARGET}x2"))
            .arg(format!("{BAR}={bar}"))
            .arg(format!("LLVM_PROFILE_FILE={}/app.profraw", data.display()))
            .args(["ROCOV_WAIT=1", "ROCOV_OBJECTS=none"])
            .arg(&program().file);
        let ended = run(&mut command);
        let what = format!("{faults}: {ended}");
        assert_eq!(ended.status.code(), Some(STATUS), "{what}");
        // The kernel adds 3 in each call.
        let [first, second] = CALLS.map(|calls| 3 * calls);
        let result = format!("0: {first}\n1: {second}\n");
        assert_eq!(ended.stdout, result, "{what}");
        Self {
            missing: missing(&Data::read(&data).profiles, &what),
            numbers: read_numbers(&numbers),
            ended,
        }
    }
}

/// librocov's message about device memory that a copy may still read.
const STAYS: &str = "rocov keeps it in GPU memory until the program ends";

/// Further numbers from the preloaded library: the unload requests to ROCr, and the late copies
/// whose source was already freed.
const OF_COPIES: [&str; 2] = ["unloaded", "freed"];

/// Functions that acquire and release something.
const PAIRS: [(&str, &str); 2] = [
    ("hsa_signal_create", "hsa_signal_destroy"),
    ("hsa_amd_memory_lock", "hsa_amd_memory_unlock"),
];

impl Drained {
    /// Expects that everything is released, except for the targets of unfinished copies, and that
    /// an agent with an unfinished copy gets no other copy.
    fn gives_back(&self, faults: &str, what: &str) {
        let hangs = faults.split(',').filter(|fault| fault.ends_with(":hang"));
        let stuck: usize = hangs.map(|fault| self.numbers[fault]).sum();
        assert!(stuck <= CALLS.len(), "{stuck} copies hang: {what}");
        for (takes, gives) in PAIRS {
            if faults.contains(takes) || faults.contains(gives) {
                continue;
            }
            let kept = self.numbers[takes] - self.numbers[gives];
            assert!(kept <= stuck, "{kept} of {takes} are kept: {what}");
        }
    }
}

/// The number of GPUs without a profile.
fn missing(profiles: &[PathBuf], what: &str) -> usize {
    let is_missing = |(gpu, expected): &(usize, u64)| {
        let end = format!(".{gpu}.app.profraw");
        let of_gpu = |path: &&PathBuf| path.to_string_lossy().ends_with(&end);
        let profile = profiles.iter().find(of_gpu);
        if let Some(profile) = profile {
            assert_eq!(counts(profile, "counted").0, *expected, "{what}");
        }
        profile.is_none()
    };
    CALLS.into_iter().enumerate().filter(is_missing).count()
}

fn read_numbers(file: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(file).expect("the preloaded library writes it at the end");
    let line = |line: &str| {
        let (name, number) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), number.parse().expect("a number"))
    };
    text.lines().map(line).collect()
}

/// Runs the program with these faults.
fn survives(faults: &str, costs: Costs) {
    let drained = Drained::under(faults);
    let what = format!("{faults}: {}", drained.ended);
    for fault in faults.split(',') {
        assert!(drained.numbers[fault] > 0, "{fault} has not struck: {what}");
    }
    assert_eq!(drained.missing, costs.gpus(), "{what}");
    drained.gives_back(faults, &what);
    let lines: Vec<&str> = drained.ended.stderr.lines().collect();
    for line in &lines {
        let is_ours = line.starts_with("rocov: ");
        assert!(is_ours && names_one_of(line, faults), "{line:?} in {what}");
    }
    let different: BTreeSet<&&str> = lines.iter().collect();
    assert_eq!(different.len(), lines.len(), "said twice: {what}");
    // One line for unseen code, and one for each code object.
    assert!(lines.len() <= 3, "{what}");
    match costs {
        Costs::Nothing => assert!(lines.is_empty(), "{what}"),
        Costs::NothingOrWords => {}
        Costs::NothingButWords => assert!(!lines.is_empty(), "{what}"),
        Costs::One | Costs::All => {
            assert!(drained.ended.stderr.contains("lost"), "{what}");
        }
    }
}

/// Returns whether `line` names the failing function and its error.
fn names_one_of(line: &str, faults: &str) -> bool {
    let is_named = |fault: &str| {
        let mut parts = fault.split(':');
        let [function, _, what] = [(); 3].map(|()| parts.next().expect("three parts"));
        match what {
            "hang" | "late" => {
                line.contains("a copy from or to GPU agent") && line.contains("not ended")
                    || line.contains(STAYS)
            }
            "missing" => line.contains(&format!(" has no {function}: ")),
            status => line.contains(&format!("{function} failed with status {status}")),
        }
    };
    faults.split(',').any(is_named)
}

/// All runs of a row, each with its faults.
fn runs_of(row: &Row, calls: &BTreeMap<String, usize>) -> Vec<String> {
    let before = row
        .behind
        .map(|setting| format!("{setting},"))
        .unwrap_or_default();
    let mut runs = Vec::new();
    for (place, what) in row.whats.iter().enumerate() {
        let numbers: BTreeSet<String> = match row.strikes {
            Strikes::Always => ["*".into()].into(),
            // The first of them strikes at the first, a middle and the last call.
            Strikes::Once if place == 0 => {
                let calls = calls[row.function];
                assert!(calls > 0, "{} is never called", row.function);
                [0, calls / 2, calls - 1]
                    .map(|call| call.to_string())
                    .into()
            }
            Strikes::Once => ["0".into()].into(),
            Strikes::At(number) => [number.to_string()].into(),
        };
        let faults = numbers.iter();
        runs.extend(faults.map(|number| format!("{before}{}:{number}:{what}", row.function)));
    }
    runs
}

/// librocov's number of calls of each function if only `behind` fails.
fn calls_behind(behind: Option<&str>) -> BTreeMap<String, usize> {
    let drained = Drained::under(behind.unwrap_or_default());
    assert_eq!(drained.missing, 0, "{}", drained.ended);
    drained.numbers
}

#[test]
fn functions_of_the_real_runtime_may_fail() {
    let mut calls = BTreeMap::new();
    let mut runs = Vec::new();
    for row in TABLE {
        let calls = calls
            .entry(row.behind)
            .or_insert_with(|| calls_behind(row.behind));
        let faults = runs_of(row, calls).into_iter();
        runs.extend(faults.map(|faults| (faults, row.costs)));
    }
    let all = &calls[&None];
    let never: Vec<&String> = all
        .keys()
        .filter(|name| !OF_COPIES.contains(&name.as_str()))
        .filter(|name| TABLE.iter().all(|row| row.function != **name))
        .collect();
    assert!(never.is_empty(), "without a fault: {never:?}");
    // A program that waits for a copy needs no processor.
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let runs = runs.iter().skip(thread).step_by(THREADS);
            scope.spawn(move || runs.for_each(|(fault, costs)| survives(fault, *costs)));
        }
    });
    figure("runtime_faults", runs.len());
}

/// A copy that librocov has given up may still come at any time, so librocov must not free its
/// source before. Here each such copy comes as soon as the program has unloaded something.
#[test]
fn a_late_copy_reads_nothing_that_was_freed() {
    // A fault in the first copy of one GPU does not affect the other GPU's executable.
    for (number, lost, unloaded) in [("0", 1, 1), ("1", 1, 1), ("*", 2, 0)] {
        let fault = format!("hsa_amd_memory_async_copy:{number}:late");
        let drained = Drained::under(&fault);
        let what = format!("{fault}: {}", drained.ended);
        assert!(drained.numbers[&fault] > 0, "{what}");
        assert_eq!(drained.missing, lost, "{what}");
        assert_eq!(drained.numbers["freed"], 0, "{what}");
        assert_eq!(drained.numbers["unloaded"], unloaded, "{what}");
        let lines: Vec<&str> = drained.ended.stderr.lines().collect();
        assert_eq!(lines.len(), lost + 1, "{what}");
        assert!(
            lines.iter().all(|line| names_one_of(line, &fault)),
            "{what}"
        );
        assert!(lines.iter().any(|line| line.contains(STAYS)), "{what}");
    }
}

/// If the host sees the memory of a GPU, its own loads read the counts, and no copy makes a queue. If the runtime does
/// not tell, copies bring them.
#[test]
fn memory_that_the_host_sees_needs_no_copy() {
    let pools = "hsa_amd_agent_memory_pool_get_info:*:0x1000";
    for (bar, faults, copies) in [("large", "", 0), ("large", pools, 2), ("small", "", 2)] {
        let drained = Drained::with_bar(bar, faults);
        let what = format!("{bar} {faults}: {}", drained.ended);
        assert_eq!(drained.missing, 0, "{what}");
        let numbers = &drained.numbers;
        assert_eq!(numbers["hsa_amd_memory_async_copy"], copies, "{what}");
        assert_eq!(numbers["hsa_memory_copy"], 0, "{what}");
        assert_eq!(drained.ended.stderr, "", "{what}");
    }
}
