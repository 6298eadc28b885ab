//! Writers that a signal kills at any moment. The files on disk stay whole and keep all finished
//! additions, nobody waits for a dead process, and later writers remove its partial files.
//!
//! Each addition counts one in every counter, so all counters of a file must be equal, or the file
//! is torn. `tools/dev/kill` kills more writers than the default.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rocov::drain::Session;
use rocov::format::profraw::{Sum, encode};
use rocov::format::registry::model::Document;
use rocov::settings::Keeping;
use rocov::store::{Keeper, PARTIAL, Process, ProfileName, add_to_pool, write_atomic};

use crate::support::fake_device::FakeDevice;
use crate::support::made_up::MadeUp;
use crate::support::profile::{functions, raw_profiles};
use crate::{FIRST, SAXPY, VECADD, loaded, profile_name, vecadd};

/// The number of killed processes, if not the default.
const KILLS: &str = "ROCOV_TEST_KILLS";
const USUAL: u64 = 100;
/// Concurrent writers, and kills before each check of the files.
const AT_ONCE: usize = 4;
const IN_A_ROUND: u64 = 20;
/// The variable that gives a writer its directory.
const TASK: &str = "ROCOV_TEST_KILL_TASK";
/// Counters of the large pool: so many that their write takes much of the time.
const COUNTERS: usize = (512 << 10) / 8;
const LARGE: &str = "profraw/large.profraw";
/// The most time until a process's first addition.
const BOUND: Duration = Duration::from_secs(300);
/// The most time that the next writer may wait for locks. It would wait a minute for a held lock.
const AT_ONCE_BOUND: Duration = Duration::from_secs(30);

/// The written files. Each addition adds one to every counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// The large pool, in place.
    Large,
    /// The pool of a drain, with the registry and the device ELF.
    Pool,
    /// A process's own profile from a drain, which replaces the previous one.
    Own,
    /// A large profile of one process, replaced in the same way.
    LargeOwn,
}

const KINDS: [Kind; 4] = [Kind::Large, Kind::Pool, Kind::Own, Kind::LargeOwn];

impl Kind {
    /// The log bytes for the start and the end of an addition.
    fn marks(self) -> [u8; 2] {
        match self {
            Self::Large => *b"lL",
            Self::Pool => *b"pP",
            Self::Own => *b"oO",
            Self::LargeOwn => *b"wW",
        }
    }
}

fn log(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("{pid}.log"))
}

/// The profile of process `pid`, found by the end of its name.
fn own(directory: &Path, pid: u32) -> PathBuf {
    let name = format!("own-{pid}.profraw");
    let mut files = raw_profiles(directory).into_iter();
    let found = files.find(|file| file.to_string_lossy().ends_with(&name));
    found.unwrap_or(directory.join(name))
}

fn large_own(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("profraw/large.{pid}.profraw"))
}

fn pool_name(directory: &Path) -> ProfileName {
    profile_name(directory, "app-%m.profraw")
}

/// A session that keeps the registry and device ELFs.
pub(crate) fn keeping(name: &ProfileName) -> Session {
    let keeping = Keeping {
        document: "auto".parse().expect("a setting"),
        objects: "instrumented".parse().expect("a setting"),
        objects_max: u64::MAX,
    };
    Session::default().with_keeper(Keeper::new(keeping, Process::default(), name))
}

/// Adds one to every counter of a load of vecadd.
fn count_one(device: &FakeDevice) {
    for function in [VECADD, SAXPY] {
        device.count(FIRST, function, &[1, 1]);
    }
}

/// The work of a process without knowledge of others: one load, drained into the pool.
fn add_to_pools(directory: &Path) {
    let name = pool_name(directory);
    let device = loaded();
    count_one(&device);
    let mut session = keeping(&name);
    let outcome = session.drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert!(outcome.not_kept.is_empty(), "{:?}", outcome.not_kept);
    let not_kept = session.keep(&name);
    assert!(not_kept.is_empty(), "{not_kept:?}");
}

#[test]
#[ignore = "runs within the other test here, as each of many processes"]
fn a_writer() {
    let directory = std::env::var(TASK).expect("a directory");
    let directory = Path::new(&directory);
    // Written data outlive the writing process.
    let mut log = File::create(log(directory, std::process::id())).expect("a log");
    let large = MadeUp::new(1, COUNTERS);
    let own = loaded();
    let mut own_session = Session::default();
    let own_name = profile_name(directory, "own-%p.profraw");
    let large_name = large_own(directory, std::process::id());
    let one = encode(&large.parts());
    let mut sum = None;
    loop {
        for kind in KINDS {
            let [begin, done] = kind.marks();
            log.write_all(&[begin]).expect("a line of the log");
            match kind {
                Kind::Large => {
                    let pool = directory.join(LARGE);
                    add_to_pool(&pool, &large.parts()).expect("a pool");
                }
                Kind::Pool => add_to_pools(directory),
                Kind::Own => {
                    count_one(&own);
                    let outcome = own_session.drain(&own, &own_name);
                    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
                }
                Kind::LargeOwn => {
                    let sum = match &mut sum {
                        None => sum.insert(Sum::new(one.as_slice()).expect("a profile")),
                        Some(sum) => {
                            sum.add(&one).expect("a profile of the same code");
                            sum
                        }
                    };
                    write_atomic(&large_name, sum.bytes()).expect("a file");
                }
            }
            log.write_all(&[done]).expect("a line of the log");
        }
    }
}

fn start(directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "kills::a_writer", "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .env(TASK, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

fn has_begun(directory: &Path, writer: &Child) -> bool {
    fs::metadata(log(directory, writer.id())).is_ok_and(|log| log.len() > 0)
}

/// Kills writers one after another, each at a random moment. Returns their process ids.
fn kill_writers(rng: &mut Rng, directory: &Path, kills: u64) -> Vec<u32> {
    let mut to_start = kills;
    let mut writers: Vec<Child> = Vec::new();
    let mut killed = Vec::new();
    loop {
        while writers.len() < AT_ONCE && to_start > 0 {
            to_start -= 1;
            writers.push(start(directory));
        }
        if writers.is_empty() {
            return killed;
        }
        let mut writer = writers.swap_remove(rng.usize(..writers.len()));
        // One of eight dies at any moment, the others after they have begun to write.
        let is_to_begin = rng.u8(..8) > 0;
        let since = Instant::now();
        while is_to_begin && !has_begun(directory, &writer) {
            assert!(since.elapsed() < BOUND, "a writer does not begin");
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_micros(rng.u64(..10_000)));
        let is_alive = writer.try_wait().expect("a child").is_none();
        assert!(is_alive, "a writer has failed: see above");
        writer.kill().expect("a child");
        writer.wait().expect("a child");
        killed.push(writer.id());
    }
}

/// Additions to files of one kind: the finished ones and the started ones.
#[derive(Clone, Copy, Default)]
struct Additions {
    done: u64,
    begun: u64,
}

/// The findings in a directory.
#[derive(Default)]
struct Figures {
    kills: u64,
    additions: u64,
    torn: Vec<String>,
    leftovers: usize,
    longest_wait: Duration,
}

impl Figures {
    /// Checks with llvm-profdata that all counters in `path` are equal and in range.
    fn check(&mut self, path: &Path, additions: Additions) {
        let Additions { done, begun } = additions;
        self.additions += done;
        if !path.exists() {
            if done > 0 {
                self.torn.push(format!("{} is not there", path.display()));
            }
            return;
        }
        let functions = functions(path);
        let mut counters = Vec::new();
        for function in functions.values() {
            counters.push(function.calls);
            counters.extend(&function.blocks);
        }
        let first = counters[0];
        if counters.iter().any(|counter| *counter != first) || !(done..=begun).contains(&first) {
            let place = path.display();
            let line = format!("{place}: {counters:?}, expected {done} to {begun}");
            self.torn.push(line.chars().take(300).collect());
        }
    }

    /// Checks the files of the `killed` in `directory`.
    fn look(&mut self, directory: &Path, killed: &[u32]) {
        let mut sums: HashMap<Kind, Additions> = HashMap::new();
        for pid in killed {
            // A process that died before it began has no log.
            let log = fs::read(log(directory, *pid)).unwrap_or_default();
            for kind in KINDS {
                let [begun, done] = kind.marks().map(|mark| {
                    let marks = log.iter().filter(|byte| **byte == mark);
                    marks.count() as u64
                });
                let additions = Additions { done, begun };
                match kind {
                    Kind::Own => self.check(&own(directory, *pid), additions),
                    Kind::LargeOwn => self.check(&large_own(directory, *pid), additions),
                    Kind::Large | Kind::Pool => {}
                }
                let sum = sums.entry(kind).or_default();
                sum.done += done;
                sum.begun += begun;
            }
        }
        self.leftovers += leftovers(directory);

        let start = Instant::now();
        add_to_pools(directory);
        self.longest_wait = self.longest_wait.max(start.elapsed());
        assert_eq!(leftovers(directory), 0, "the next writer removes them");
        let Additions { done, begun } = sums[&Kind::Pool];
        let with_ours = Additions {
            done: done + 1,
            begun: begun + 1,
        };
        let pools: Vec<_> = raw_profiles(directory)
            .into_iter()
            .filter(|profile| profile.to_string_lossy().ends_with("app-0.profraw"))
            .collect();
        assert_eq!(pools.len(), 1, "all counts are in the pool: {pools:?}");
        self.check(&pools[0], with_ours);
        self.check(&directory.join(LARGE), sums[&Kind::Large]);

        let registry = pool_name(directory).for_registry();
        let registry = Document::parse(&fs::read(registry).expect("a registry"));
        assert!(!registry.expect("a whole registry").processes.is_empty());
        let objects: Vec<_> = fs::read_dir(directory.join("objects"))
            .expect("device ELFs")
            .map(|entry| fs::read(entry.expect("an entry").path()).expect("a device ELF"))
            .collect();
        assert_eq!(objects, [vecadd()], "the device ELF is whole");
    }
}

/// Files in `directory` that never got their final names.
fn leftovers(directory: &Path) -> usize {
    let folders = fs::read_dir(directory).expect("a directory");
    let entries = folders.flat_map(|folder| fs::read_dir(folder.expect("an entry").path()));
    let names = entries
        .flatten()
        .map(|entry| entry.expect("an entry").file_name());
    let left = names.filter(|name| name.to_string_lossy().starts_with(PARTIAL));
    left.count()
}

#[test]
fn who_is_killed_leaves_whole_files_and_no_locks() {
    let kills = std::env::var(KILLS).map_or(USUAL, |kills| kills.parse().expect("a number"));
    let mut rng = Rng::with_seed(4711);
    let mut figures = Figures::default();
    while figures.kills < kills {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let round = IN_A_ROUND.min(kills - figures.kills);
        let killed = kill_writers(&mut rng, directory.path(), round);
        figures.kills += round;
        figures.look(directory.path(), &killed);
    }
    let Figures {
        kills,
        additions,
        torn,
        leftovers,
        longest_wait,
    } = figures;
    println!("figure: kills {kills}");
    println!("figure: torn_files {}", torn.len());
    println!("figure: kill_additions {additions}");
    println!("figure: kill_leftovers_swept {leftovers}");
    assert_eq!(torn, [""; 0]);
    assert!(longest_wait < AT_ONCE_BOUND, "{longest_wait:?}");
    assert!(additions >= kills, "{additions} additions: killed too soon");
}
