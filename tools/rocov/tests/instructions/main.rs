//! Instructions that a load, an unload, a drain, the end of a process, an addition to a pool and a merge take, as callgrind
//! counts them: the same every time, unlike seconds. For all but merges, also the system calls, as strace counts
//! them, without those for memory. Launches take none: librocov has no function that a launch calls. Two bars for each:
//!
//! - the growth: ten times as many code objects, additions or files take ten times as many
//!   instructions and calls, whatever the compiler. A part that grows with their square shows from about a fiftieth of
//!   the smaller run on. A process may have a thousand code objects, so loads have a larger run;
//! - the number itself, compared with that in `recorded.txt`.
//!
//! `cargo xtask bless instructions` records new numbers.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::device::Executable;
use rocov::drain::Session;
use rocov::settings::{DocumentWhen, Keeping, ObjectsKept};
use rocov::store::{Expansion, Keeper, Process, ProfileName};
use rocov_tests::artifacts::repository;
use rocov_tests::cli::{profile, run};
use rocov_tests::fake_device::FakeDevice;
use rocov_tests::records;
use tempfile::TempDir;

/// The excess over the recorded number that is too much. Compilers and C libraries differ by some
/// percent; what this is to show, such as a second hash or another parse of every file, is more.
const TOLERANCE: f64 = 1.3;
/// The excess over the recorded number of calls that is too much, and the number of calls by which it may grow anyway:
/// some are made once.
const TOLERANCE_OF_CALLS: f64 = 1.05;
const FEW_CALLS: f64 = 0.5;
/// The start of the names of numbers of calls in the record.
const CALLS: &str = "calls-of-";
/// Calls for memory, which the allocator makes in its own time, and the one that marks the work.
const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mremap", "madvise", "getppid"];
/// The relative difference below which a new record keeps the old number.
const NOISE: f64 = 0.01;
/// The larger run compared with the smaller, in most tasks and in that of loads.
const TIMES: usize = 10;
const TIMES_LOADED: usize = 20;
/// The largest factor of instructions for each part of the work in the larger run, compared with the smaller. Trees and
/// tables grow, too.
const GROWTH: f64 = 1.12;
/// Code objects that are loaded and drained, additions to pools, ranks that are merged, in the smaller
/// of two runs.
const LOADED: usize = 50;
const DRAINED: usize = 60;
const ADDED: usize = 20;
const MERGED: usize = 30;
/// Code objects of a rank that is merged.
const CODE_OBJECTS: usize = 4;

/// The task of the process in which instructions are counted, its number of repetitions, and its
/// directory.
const TASK: &str = "ROCOV_TEST_TASK";
/// The tasks whose instructions are counted there, by name.
const COUNTED: &str = "*counted_by_callgrind*";

/// Does `work`, of which alone the instructions are counted.
#[inline(never)]
fn counted_by_callgrind(work: &mut dyn FnMut()) {
    mark();
    work();
    mark();
    // Not a jump to the end of `work`, which would leave this before it starts.
    std::hint::black_box(());
}

/// Makes a system call that strace shows: it is the first and the last of the work.
fn mark() {
    std::hint::black_box(std::os::unix::process::parent_id());
}

/// A process of this program under callgrind.
#[test]
#[ignore = "runs within the other tests here, under callgrind"]
fn in_a_process() {
    let task = std::env::var(TASK).unwrap();
    let [task, count, directory] = task.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{task}")
    };
    let (count, directory) = (count.parse().unwrap(), Path::new(directory));
    match task {
        "load" => load(count, directory),
        "drain" => drain(count, directory),
        "unload" => unload(count, directory),
        "exit" => exit(count, directory),
        "pool" => add_to_pool(count, directory),
        other => panic!("{other}"),
    }
}

fn name(pattern: &str, directory: &Path) -> ProfileName {
    ProfileName::parse(pattern, &Expansion::default(), directory).unwrap()
}

/// A device with so many code objects that differ in their last bytes alone.
fn device(count: usize, directory: &Path) -> FakeDevice {
    let image = fs::read(directory.join("gfx90a.elf")).unwrap();
    let mut device = FakeDevice::new(1);
    for (number, executable) in executables(count).enumerate() {
        let image = [image.as_slice(), &number.to_le_bytes()].concat();
        device.load(executable, 0, &image);
    }
    device
}

fn executables(count: usize) -> impl Iterator<Item = Executable> {
    (1..).take(count).map(Executable)
}

/// A session that keeps device ELFs and the registry, and the directory of these.
fn keeping_session(name: &ProfileName) -> (Session, PathBuf) {
    let keeping = Keeping {
        document: DocumentWhen::Auto,
        objects: ObjectsKept::Instrumented,
        objects_max: u64::MAX,
    };
    let keeper = Keeper::new(keeping, Process::default(), name);
    let session = Session::default().with_keeper(keeper);
    (session, name.layout().side().to_owned())
}

fn load(count: usize, directory: &Path) {
    let device = device(count, directory);
    let name = name("app.profraw", &directory.join("data"));
    let (mut session, side) = keeping_session(&name);
    counted_by_callgrind(&mut || load_all(&mut session, &device, count));
    let kept = fs::read_dir(side.join("objects")).unwrap();
    assert_eq!(kept.count(), count);
    fs::remove_dir_all(side).unwrap();
}

fn load_all(session: &mut Session, device: &FakeDevice, count: usize) {
    for executable in executables(count) {
        session.loaded(device, executable).unwrap();
    }
}

fn drain(count: usize, directory: &Path) {
    let device = device(count, directory);
    let data = directory.join("data");
    let name = name("app.profraw", &data);
    let mut session = Session::default();
    load_all(&mut session, &device, count);
    counted_by_callgrind(&mut || {
        let outcome = session.drain(&device, &name);
        assert_eq!(outcome.files.len(), count, "{:?}", outcome.losses);
    });
    fs::remove_dir_all(data).unwrap();
}

/// Unloads each code object, which drains it first.
fn unload(count: usize, directory: &Path) {
    let device = device(count, directory);
    let data = directory.join("data");
    let name = name("app.profraw", &data);
    let (mut session, side) = keeping_session(&name);
    load_all(&mut session, &device, count);
    counted_by_callgrind(&mut || {
        for executable in executables(count) {
            let outcome = session.unloading(&device, executable, &name);
            assert_eq!(outcome.files.len(), 1, "{:?}", outcome.losses);
        }
    });
    fs::remove_dir_all(data).unwrap();
    fs::remove_dir_all(side).unwrap();
}

/// The end of a process: a drain, and the registry.
fn exit(count: usize, directory: &Path) {
    let device = device(count, directory);
    let data = directory.join("data");
    let name = name("app.profraw", &data);
    let (mut session, side) = keeping_session(&name);
    load_all(&mut session, &device, count);
    counted_by_callgrind(&mut || {
        session.begin_end();
        let outcome = session.drain(&device, &name);
        assert_eq!(outcome.files.len(), count, "{:?}", outcome.losses);
        assert!(session.keep(&name).is_empty());
    });
    fs::remove_dir_all(data).unwrap();
    fs::remove_dir_all(side).unwrap();
}

/// Additions to a pool that is there, each of what another load of the same code has counted.
fn add_to_pool(count: usize, directory: &Path) {
    let device = device(1, directory);
    let data = directory.join("data");
    let name = name("%m.profraw", &data);
    let mut sessions: Vec<_> = (0..=count).map(|_| Session::default()).collect();
    for session in &mut sessions {
        load_all(session, &device, 1);
    }
    let (first, others) = sessions.split_first_mut().unwrap();
    first.drain(&device, &name);
    counted_by_callgrind(&mut || {
        for session in &mut *others {
            let outcome = session.drain(&device, &name);
            assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        }
    });
    fs::remove_dir_all(data).unwrap();
}

/// A directory with a device ELF.
fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let flags = rocov_tests::cli::device::INSTRUMENTED;
    let elf = rocov_tests::cli::device::compile(place.path(), "gfx90a.elf", "gfx90a", &flags);
    (place, elf)
}

/// The instructions of a program: those of the functions that match, or all.
fn instructions(functions: Option<&str>, program: &mut Command) -> f64 {
    let mut callgrind = Command::new("valgrind");
    callgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    callgrind.args(functions.map(|function| format!("--toggle-collect={function}")));
    callgrind
        .arg(program.get_program())
        .args(program.get_args());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            callgrind.env(name, value);
        }
    }
    let said = rocov_tests::cli::stderr(&run(&mut callgrind));
    let (_, collected) = said.split_once("Collected : ").expect("callgrind's sum");
    let collected = collected.lines().next().unwrap();
    collected.trim().parse().expect("a number")
}

/// The process of `task`, `count` times.
fn process(task: &str, count: usize, directory: &Path) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "in_a_process", "--ignored", "--test-threads=1"]);
    program.env(TASK, format!("{task} {count} {}", directory.display()));
    program
}

/// The instructions of `task`, `count` times.
fn process_instructions(task: &str, count: usize, directory: &Path) -> f64 {
    instructions(Some(COUNTED), &mut process(task, count, directory))
}

/// The system calls of `task`, `count` times.
fn process_calls(task: &str, count: usize, directory: &Path) -> f64 {
    let log = directory.join("calls");
    let program = process(task, count, directory);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log);
    strace.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            strace.env(name, value);
        }
    }
    run(&mut strace);
    let text = fs::read_to_string(&log).unwrap();
    let names = text.lines().filter_map(|line| {
        let (_, call) = line.split_once(' ')?;
        Some(call.trim_start().split_once('(')?.0)
    });
    let names: Vec<_> = names.collect();
    let marks = |name: &&str| *name == "getppid";
    let first = names.iter().position(marks).expect("the first mark");
    let last = names.iter().rposition(marks).expect("the last mark");
    let calls = names[first..last].iter();
    calls.filter(|name| !MEMORY.contains(name)).count() as f64
}

/// The instructions of a merge of this many ranks.
fn merge_instructions(templates: &[(String, Vec<u8>)], ranks: usize, directory: &Path) -> f64 {
    let data = directory.join("data");
    fs::create_dir(&data).unwrap();
    for rank in 0..ranks {
        for (name, bytes) in templates {
            fs::write(data.join(format!("{name}.{rank}.profraw")), bytes).unwrap();
        }
    }
    let pooled = directory.join("pooled");
    let mut merge = rocov_tests::cli::rocov();
    merge.args(["merge", "-q", "-j1"]).arg(&data);
    let count = instructions(None, merge.arg("--pooled").arg(&pooled));
    // Names that are not those of device profiles would count as host code, which is other work.
    let merged = fs::read_dir(pooled.join("profraw")).unwrap().count();
    assert_eq!(merged, templates.len(), "merged profiles");
    fs::remove_dir_all(data).unwrap();
    fs::remove_dir_all(pooled).unwrap();
    count
}

/// Compares what `count` and so many `times` as much took, without what both take once, with the largest growth. Returns
/// what each took.
fn grown(what: &str, count: usize, times: usize, small: f64, large: f64) -> (String, f64) {
    let each = small / count as f64;
    let growth = large / small / times as f64;
    println!("{what}: {each:.1} each, {growth:.2} times that if there are {times} times as many");
    assert!(
        growth <= GROWTH,
        "{what}: if there are {times} times as many, each takes {growth:.2} times as many, at most {GROWTH} is allowed: \
         something grows faster than the work"
    );
    (what.to_owned(), each)
}

/// Compares the instructions of each task with the record, up to [`TOLERANCE`]. A new record leaves out noise.
fn compare_with_record(measured: impl IntoIterator<Item = (String, f64)>) {
    const RECORD: &str = "tools/rocov/tests/instructions/recorded.txt";
    let text = fs::read_to_string(repository(RECORD)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let mut recorded: BTreeMap<String, f64> = lines
        .map(|(what, each)| (what.to_owned(), each.parse().unwrap()))
        .collect();
    for (what, each) in measured {
        let times = recorded.get(&what).map_or(f64::INFINITY, |bar| each / bar);
        let (tolerance, more) = match what.starts_with(CALLS) {
            true => (TOLERANCE_OF_CALLS, FEW_CALLS),
            false => (TOLERANCE, 0.0),
        };
        let is_stale = if records::are_blessed() {
            (times - 1.0).abs() > NOISE
        } else {
            times > tolerance && each > recorded.get(&what).map_or(0.0, |bar| bar + more)
        };
        if is_stale {
            println!("{what}: {times:.2} times the recorded number, {tolerance} are allowed");
            recorded.insert(what, each);
        }
    }
    let lines = recorded
        .iter()
        .map(|(what, each)| match what.starts_with(CALLS) {
            true => format!("{what} {each:.1}\n"),
            false => format!("{what} {each:.0}\n"),
        });
    records::compare([(RECORD, lines.collect())]);
}

/// One test, as all are in one file.
#[test]
fn no_more_instructions_than_recorded() {
    let (place, elf) = place();
    let directory = place.path();
    let mut measured = Vec::new();
    for (task, count, times) in [
        ("load", LOADED, TIMES_LOADED),
        ("unload", DRAINED, TIMES),
        ("drain", DRAINED, TIMES),
        ("exit", DRAINED, TIMES),
        ("pool", ADDED, TIMES),
    ] {
        let [small, large] =
            [count, times * count].map(|number| process_instructions(task, number, directory));
        measured.push(grown(task, count, times, small, large));
        let [small, large] =
            [count, times * count].map(|number| process_calls(task, number, directory));
        let calls = format!("{CALLS}{task}");
        measured.push(grown(&calls, count, times, small, large));
    }
    let template = |number: usize| {
        let path = directory.join("template");
        profile::write(&elf, 1, 10, &path);
        (format!("gfx90a.{number:032x}.0"), fs::read(&path).unwrap())
    };
    let templates: Vec<_> = (0..CODE_OBJECTS).map(template).collect();
    // The first profile of a code object is another matter.
    let [once, small, large] = [1, 1 + MERGED, 1 + TIMES * MERGED]
        .map(|number| merge_instructions(&templates, number, directory));
    let files = MERGED * CODE_OBJECTS;
    measured.push(grown("merge", files, TIMES, small - once, large - once));
    compare_with_record(measured);
}
