//! The work for each module that a program loads: it stays the same, however many there are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::released::LARGE;
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::released::{GPU, Released, device_profiles};

/// A kernel of templates.hip that takes two pointers and two numbers.
const KERNEL: &str = "_Z10polynomialIiLi2EEvPKT_PS0_S0_j";
/// The numbers of modules in the smaller and in the larger run.
const FEW: u64 = 50;
const MANY: u64 = 1_000;
/// The largest factor of system calls for each module among many, relative to one among few.
const GROWTH: f64 = 1.2;
/// The system calls for the load of a module, its device ELF and its profile, some more than there are.
const MOST: f64 = 40.0;
/// System calls that wait for the modelled GPU, as often as other work on the machine makes them.
const WAITING: [&str; 4] = ["sched_yield", "clock_nanosleep", "futex", "restart_syscall"];

struct Loads {
    released: Released,
    program: PathBuf,
    module: PathBuf,
}

impl Loads {
    /// Returns `None` if clang 23 or its HIP is not unpacked.
    fn find() -> Option<Self> {
        let released = Released::find()?;
        let source = repository("testdata/programs/released/many.cpp");
        let object = released.compiled(&source, &[], &[], "many.o");
        let templates = repository("testdata/kernels/templates.hip");
        let module = released.code_object(&templates, &[], "templates.module");
        Some(Self {
            released,
            program: released.linked(&[object], &[], "many"),
            module,
        })
    }

    /// The system calls of the main thread of a program that loads so many modules, by name.
    fn calls(&self, modules: u64, librocov: Option<&Path>) -> BTreeMap<String, i64> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [data, log] = ["data", "log"].map(|name| directory.path().join(name));
        let libraries: Vec<_> = librocov.map(Path::to_owned).into_iter().collect();
        let program = self.released.on_model(GPU, LARGE, &data, &libraries);
        let mut traced = limited("strace");
        traced.arg("-qq").arg("-o").arg(&log);
        // strace replaces the words for the limit.
        traced.args(program.get_args().skip_while(|word| *word != "env"));
        traced.arg(&self.program).arg(&self.module);
        let ended = run(traced.args([KERNEL, &modules.to_string()]));
        assert!(ended.status.success(), "{ended}");
        let profiles = librocov.map_or(0, |_| modules as usize);
        assert_eq!(device_profiles(&data).len(), profiles, "{ended}");
        let mut calls = BTreeMap::new();
        for line in std::fs::read_to_string(log).expect("strace's log").lines() {
            let name = line.split('(').next().unwrap_or_default();
            if !WAITING.contains(&name) {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
        calls
    }

    /// The calls that librocov adds to a program with so many modules.
    fn added(&self, modules: u64) -> i64 {
        let sum = |librocov| self.calls(modules, librocov).values().sum::<i64>();
        let librocov = built("librocov.so");
        std::thread::scope(|scope| {
            let without = scope.spawn(|| sum(None));
            sum(Some(&librocov)) - without.join().expect("a number of calls")
        })
    }
}

#[test]
fn a_module_among_many_takes_as_many_system_calls_as_one_among_few() {
    let Some(loads) = Loads::find() else { return };
    let once = loads.added(1);
    let each = |modules: u64| (loads.added(modules) - once) as f64 / (modules - 1) as f64;
    let (few, many) = (each(FEW), each(MANY));
    let figures = format!("{few:.1} calls for each of {FEW} modules, {many:.1} for each of {MANY}");
    assert!(many <= GROWTH * few && few <= MOST, "{figures}");
}
