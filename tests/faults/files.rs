//! Every call of the C library that the output makes on files, with every error that a file system
//! has: at its first, a middle and its last place.
//!
//! A process of its own drains under a preloaded library that has the calls fail, and keeps account
//! of what must be in the files: what was counted, but for what was called lost.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_long};
use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::Library;
use rocov::device::{Device, Executable};
use rocov::drain::{Outcome, Session};
use rocov::filter::Filter;
use rocov::output::{PARTIAL, ProfileName};
use rocov::profraw::RawProfile;
use rocov::registry::model::Document;
use rocov::registry::{DocumentWhen, Keeper, Keeping, ObjectsKept, Process};

use crate::fake_device::FakeDevice;
use crate::fixture::{image, name_in};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::Compilation;
use crate::support::profile::PROFDATA;
use crate::{figure, pass_on_figures};

/// The functions that fail, as the preloaded library calls them.
const FUNCTIONS: [&str; 12] = [
    "open", "write", "read", "pwrite", "pread", "rename", "link", "mkdir", "unlink", "lock",
    "stat", "close",
];

const EINTR: c_int = 4;
/// EIO, EACCES, EMFILE, ENOSPC, EROFS, ENAMETOOLONG, and the one that nobody needs to know of.
const ERRORS: [c_int; 7] = [5, 13, 24, 28, 30, 36, EINTR];

/// The same code object twice on one agent, so that they share a file, and another.
const LOADED: [(Executable, &str); 3] = [
    (Executable(0x61), "vecadd"),
    (Executable(0x62), "vecadd"),
    (Executable(0x63), "collatz"),
];

/// The preloaded library's own functions.
struct Faults {
    arm: unsafe extern "C" fn(*const c_char, *const c_char, c_long, c_int, c_int),
    only_links: unsafe extern "C" fn(c_int),
    pause: unsafe extern "C" fn(c_int),
    disarm: unsafe extern "C" fn(*const c_char) -> c_long,
}

impl Faults {
    fn find() -> Faults {
        let all = Library::this();
        // SAFETY: the types are those of file_faults.c.
        unsafe {
            Faults {
                arm: *all.get("faults_arm").expect("the library is preloaded"),
                only_links: *all.get("faults_only_links").expect("likewise"),
                pause: *all.get("faults_pause").expect("likewise"),
                disarm: *all.get("faults_disarm").expect("likewise"),
            }
        }
    }

    fn arm(&self, directory: &Path, fault: &Fault) {
        let text = |text: &str| CString::new(text).expect("no NUL");
        let directory = text(directory.to_str().expect("a UTF-8 path"));
        let function = text(fault.function);
        // SAFETY: strings that live as long as the call.
        unsafe {
            (self.arm)(
                directory.as_ptr(),
                function.as_ptr(),
                fault.number,
                fault.error,
                fault.is_late.into(),
            );
        }
    }

    /// Does what is not to go wrong.
    fn apart(&self, work: impl FnOnce()) {
        // SAFETY: it only notes the number.
        unsafe { (self.pause)(1) };
        work();
        // SAFETY: as above.
        unsafe { (self.pause)(0) };
    }

    /// Returns how often it was called.
    fn disarm(&self, function: &str) -> c_long {
        let function = CString::new(function).expect("no NUL");
        // SAFETY: a string that lives as long as the call.
        unsafe { (self.disarm)(function.as_ptr()) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    function: &'static str,
    /// -1 for none.
    number: c_long,
    error: c_int,
    /// The call is made, and called a failure.
    is_late: bool,
}

/// A process that drains again and again, and what must be in its files.
struct Account<'a> {
    faults: &'a Faults,
    device: FakeDevice,
    session: Session,
    name: &'a ProfileName,
    directory: PathBuf,
    /// Of each kernel: what every counter in its files must be.
    written: BTreeMap<&'static str, u64>,
    /// Of each load: what it has counted that is in no file yet.
    pending: BTreeMap<Executable, u64>,
    /// What was said.
    lines: Vec<String>,
    what: &'a str,
}

impl Account<'_> {
    fn new<'a>(faults: &'a Faults, name: &'a ProfileName, what: &'a str) -> Account<'a> {
        let keeping = Keeping {
            document: DocumentWhen::Always,
            objects: ObjectsKept::All,
            objects_max: 1 << 30,
        };
        let mut account = Account {
            faults,
            device: FakeDevice::new(1),
            session: Session::filtered(Filter::default()).with_keeper(Keeper::new(
                keeping,
                Process::default(),
                name,
            )),
            name,
            directory: name.directory(),
            written: BTreeMap::new(),
            pending: BTreeMap::new(),
            lines: Vec::new(),
            what,
        };
        LOADED.into_iter().for_each(|load| account.load(load));
        account
    }

    fn load(&mut self, (executable, kernel): (Executable, &'static str)) {
        self.device.load(executable, 0, &image(kernel));
        let outcome = self.session.loaded(&self.device, executable);
        let outcome = outcome.expect("the device does not fail");
        self.say(&outcome);
        self.pending.insert(executable, 0);
    }

    /// Everything that is loaded counts: each of its counters the same.
    fn count(&mut self, by: u64) {
        for (address, size) in self.device.counters() {
            for at in (address..address + size).step_by(8) {
                let old = self.device.peek(at, 8).try_into().expect("8 bytes");
                let new = u64::from_le_bytes(old) + by;
                self.device.poke(at, &new.to_le_bytes());
            }
        }
        self.pending.values_mut().for_each(|pending| *pending += by);
    }

    fn drain(&mut self) {
        let outcome = self.session.drain(&self.device, self.name);
        let loads = LOADED
            .into_iter()
            .filter(|(it, _)| self.pending.contains_key(it));
        self.settle(&outcome, &loads.collect::<Vec<_>>());
    }

    fn unload(&mut self, (executable, kernel): (Executable, &'static str)) {
        let outcome = self.session.unloading(&self.device, executable, self.name);
        self.settle(&outcome, &[(executable, kernel)]);
        self.device.unload(executable);
        self.pending.remove(&executable);
    }

    /// Whoever is not named as lost has all its counts in its file.
    fn settle(&mut self, outcome: &Outcome, loads: &[(Executable, &'static str)]) {
        self.say(outcome);
        for (executable, kernel) in loads {
            let loaded = self.device.code_objects(*executable).expect("loaded");
            let lost = |line: &&String| {
                line.starts_with(&loaded[0].uri) && line.contains("counts are lost: ")
            };
            let losses: Vec<String> = outcome.losses.iter().map(ToString::to_string).collect();
            let is_lost = match losses.iter().filter(lost).count() {
                0 => false,
                1 => true,
                _ => panic!("said twice: {losses:?}, {}", self.what),
            };
            if !is_lost {
                let pending = self.pending.get_mut(executable).expect("loaded");
                *self.written.entry(kernel).or_default() += std::mem::take(pending);
            }
        }
        self.faults.apart(|| self.check());
    }

    fn say(&mut self, outcome: &Outcome) {
        let losses = outcome.losses.iter().map(ToString::to_string);
        let not_kept = outcome.not_kept.iter().map(ToString::to_string);
        self.lines.extend(losses.chain(not_kept));
    }

    /// Every counter of every file is what the account says; a kernel of which all was lost has none.
    fn check(&self) {
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for (path, contents) in profiles(&self.directory) {
            let profile = RawProfile::parse(&contents)
                .unwrap_or_else(|error| panic!("{}: {error}: {}", path.display(), self.what));
            let counters = contents[profile.counters].chunks_exact(8);
            let mut counters =
                counters.map(|it| u64::from_le_bytes(it.try_into().expect("8 bytes")));
            let first = counters.next().expect("a counter");
            assert!(counters.all(|it| it == first), "torn: {}", self.what);
            // vecadd.hip has two functions, collatz.hip one.
            let kernel = match profile.records.len() / 64 {
                1 => "collatz",
                _ => "vecadd",
            };
            *found.entry(kernel).or_default() += first;
        }
        found.retain(|_, count| *count > 0);
        let mut written = self.written.clone();
        written.retain(|_, count| *count > 0);
        assert_eq!(found, written, "{}: {:#?}", self.what, self.lines);
    }
}

fn profiles(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = crate::support::profile::raw_profiles(directory).into_iter();
    paths
        .map(|path| (path.clone(), fs::read(&path).expect("a profile")))
        .collect()
}

/// What a run under a fault has shown.
struct Ran {
    /// How often the function was called.
    calls: c_long,
    lines: Vec<String>,
}

/// A process's life in `directory` under a fault, and another's after it.
fn run_under(faults: &Faults, fault: &Fault, pattern: &str, directory: &Path) -> Ran {
    let what = format!("{fault:?}, {pattern}");
    let name = name_in(directory, pattern);
    faults.arm(directory, fault);
    let mut account = Account::new(faults, &name, &what);
    account.count(1);
    account.drain();
    account.count(10);
    account.drain();
    account.count(100);
    account.unload(LOADED[1]);
    account.load(LOADED[1]);
    account.count(1000);
    account.drain();
    let not_kept = account.session.keep(&name);
    account
        .lines
        .extend(not_kept.iter().map(ToString::to_string));
    let calls = faults.disarm(fault.function);

    // All is well again.
    let said = account.lines.len();
    account.count(10_000);
    account.drain();
    assert_eq!(account.lines.len(), said, "{what}: {:?}", account.lines);
    assert!(account.session.keep(&name).is_empty(), "{what}");
    let is_registry = |path: &PathBuf| path.to_string_lossy().ends_with(".kernels.json");
    let entries = fs::read_dir(name.directory()).expect("the directory");
    let paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    for registry in paths.iter().filter(|path| is_registry(path)) {
        let text = fs::read(registry).expect("a registry");
        Document::parse(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let temporary = |path: &&PathBuf| path.to_string_lossy().contains(PARTIAL);
    let left = paths.iter().filter(temporary).count();
    assert!(left == 0 || fault.function == "unlink", "{what}: {paths:?}");
    Ran {
        calls,
        lines: account.lines,
    }
}

/// A pool that another process has begun.
fn begin(faults: &Faults, directory: &Path, pattern: &str) {
    let name = name_in(directory, pattern);
    let mut account = Account::new(faults, &name, "before");
    account.drain();
    account.session.keep(&name);
}

#[test]
#[ignore = "runs within the test below, under a preloaded library"]
fn under_a_preloaded_library() {
    let faults = Faults::find();
    let mut survived = 0;
    let mut told = 0;
    let mut never_called: Vec<&str> = FUNCTIONS.to_vec();
    // With and without a directory and files that are there already, and where new files are linked.
    for (pattern, is_there, only_links) in [
        ("new/app.profraw", false, false),
        ("new/%m.profraw", false, false),
        ("%m.profraw", true, false),
        ("%m.profraw", false, true),
    ] {
        // SAFETY: it only notes the number.
        unsafe { (faults.only_links)(only_links.into()) };
        let fresh = || {
            let directory = tempfile::tempdir().expect("a temporary directory");
            if is_there {
                begin(&faults, directory.path(), pattern);
            }
            directory
        };
        for function in FUNCTIONS {
            let mut fault = Fault {
                function,
                number: -1,
                error: 0,
                is_late: false,
            };
            let quiet = run_under(&faults, &fault, pattern, fresh().path());
            assert!(quiet.lines.is_empty(), "{:?}", quiet.lines);
            let places: std::collections::BTreeSet<c_long> = match quiet.calls {
                0 => continue,
                calls => [0, calls / 2, calls - 1].into(),
            };
            never_called.retain(|it| *it != function);
            for number in places {
                for (error, is_late) in ERRORS.map(|it| (it, false)).into_iter().chain([(5, true)])
                {
                    // Whether a call that was made and called a failure has changed a file, nobody
                    // can tell but by looking; a pool's header is written again.
                    if is_late && !["write", "pwrite", "close"].contains(&function) {
                        continue;
                    }
                    fault = Fault {
                        function,
                        number,
                        error,
                        is_late,
                    };
                    let directory = fresh();
                    let ran = run_under(&faults, &fault, pattern, directory.path());
                    let lines = &ran.lines;
                    assert!(
                        error != EINTR || lines.is_empty(),
                        "{fault:?} {pattern}: {lines:?}"
                    );
                    assert!(lines.len() <= 1, "{fault:?} {pattern}: {lines:#?}");
                    for line in lines {
                        let is_clear = line.contains("cannot ") && line.contains("(os error ");
                        assert!(is_clear && !line.contains('\n'), "{line}");
                    }
                    told += lines.len();
                    are_read(directory.path(), survived);
                    survived += 1;
                }
            }
        }
    }
    assert!(
        told > survived / 4,
        "most faults were not noticed: {told} of {survived}"
    );
    assert!(never_called.is_empty(), "{never_called:?}");
    figure("file_faults", survived);
}

/// Of some runs, llvm-profdata reads what is there: each is compared with the account anyway.
fn are_read(directory: &Path, number: usize) {
    let profiles = [directory, &directory.join("new")].map(profiles).concat();
    if number.is_multiple_of(25) && !profiles.is_empty() {
        let mut command = limited(PROFDATA);
        command.args(["merge", "--failure-mode=any", "-o", "/dev/null"]);
        command.args(profiles.iter().map(|(path, _)| path));
        run(command.env_remove("LD_PRELOAD")).success().silently();
    }
}

#[test]
fn every_call_on_files_may_fail() {
    let source = repository("tests/faults/file_faults.c");
    let library = preloaded(&source);
    let this = std::env::current_exe().expect("a test knows its own path");
    let mut command = limited(this);
    command
        .args(["--exact", "files::under_a_preloaded_library"])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .env("LD_PRELOAD", library);
    pass_on_figures(&run(&mut command).success());
}

/// Makes a library of a C source here.
pub(crate) fn preloaded(source: &Path) -> PathBuf {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    Compilation::by("clang-22")
        .arguments(["-Wall", "-Wextra", "-O1", "-shared", "-fPIC"])
        .source(source)
        .output(&format!("lib{stem}.so"))
}
