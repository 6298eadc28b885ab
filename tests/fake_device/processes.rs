//! Pools under load: processes add to shared files at once, and some die meanwhile.
//!
//! Each addition counts one in every counter. So all counters of a file must always be equal, or
//! the file is torn.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rocov::store::add_to_pool;

use crate::support::made_up::{self, MadeUp};
use crate::support::profile::functions;

/// Processes of a job on one node, and code objects in each.
const PROCESSES: u64 = 64;
const CODE_OBJECTS: usize = 26;
/// Additions of each process to each file.
const ROUNDS: u64 = 4;
/// Counters of the code object whose processes die: so many that their write takes much of the
/// time.
const COUNTERS: usize = (4 << 20) / 8;
/// Processes that the test kills.
const KILLED: u64 = 24;
/// Most that each test may take: far more than it does, also on a machine that is busy.
const BOUND: Duration = Duration::from_secs(300);

/// The variable with the child's task: the directory, the number of files, and the additions to
/// each.
const TASK: &str = "ROCOV_TEST_POOL_TASK";

/// The value of all counters of a file, by llvm-profdata.
fn count(path: &Path, counters: usize) -> u64 {
    let functions = functions(path);
    let function = &functions[&made_up::name(0)];
    assert_eq!(function.blocks.len() + 1, counters);
    let is_torn = function.blocks.iter().any(|block| *block != function.calls);
    assert!(!is_torn, "{} has parts of sums", path.display());
    function.calls
}

fn pool(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("gfx90a.{number:02}.0.0.profraw"))
}

#[test]
#[ignore = "runs within the other tests here, as each of many processes"]
fn a_process() {
    let task = std::env::var(TASK).unwrap();
    let [directory, files, rounds, counters] = task.split(':').collect::<Vec<_>>()[..] else {
        panic!("{task}")
    };
    let [files, rounds, counters] = [files, rounds, counters].map(|word| word.parse().unwrap());
    let profile = MadeUp::new(1, counters);
    // All processes start when the parent closes the writing end.
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let mut done = io::stderr();
    for _ in 0..rounds {
        for number in 0..files {
            add_to_pool(&pool(Path::new(directory), number), &profile.parts()).unwrap();
            done.write_all(b".").unwrap();
        }
    }
}

/// Starts a process that begins at the end of `start` and writes a byte to `done` after each
/// addition.
fn process(task: &str, start: io::PipeReader, done: fs::File) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_process", "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .stdin(start)
        .stdout(Stdio::null())
        .stderr(done)
        .spawn()
        .unwrap()
}

#[test]
fn sums_are_exact_however_many_processes_add() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let counters = 64;
    let task = format!("{}:{CODE_OBJECTS}:{ROUNDS}:{counters}", path.display());
    let (start, writer) = io::pipe().unwrap();
    let mut processes: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let done = fs::File::create(path.join(format!("done.{number}"))).unwrap();
            process(&task, start.try_clone().unwrap(), done)
        })
        .collect();
    let begin = Instant::now();
    drop(writer);
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
    for number in 0..CODE_OBJECTS {
        assert_eq!(count(&pool(path, number), counters), PROCESSES * ROUNDS);
    }
}

#[test]
fn who_is_killed_while_adding_leaves_the_sums_before_or_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let task = format!("{}:1:{}:{COUNTERS}", path.display(), u64::MAX);
    let begin = Instant::now();
    let mut killed = 0;
    let mut done = 0;
    while killed < KILLED || done < KILLED {
        assert!(begin.elapsed() < BOUND, "{done} additions");
        let processes = [0, 1].map(|_| {
            let (start, _) = io::pipe().unwrap();
            let file = path.join(format!("done.{killed}"));
            killed += 1;
            let done = fs::File::create(&file).unwrap();
            (process(&task, start, done), file)
        });
        // A busy machine may take long to start them.
        let has_added =
            |file: &PathBuf| fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0);
        while !processes.iter().any(|(_, file)| has_added(file)) && begin.elapsed() < BOUND {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(killed % 7));
        for (mut process, file) in processes {
            process.kill().unwrap();
            process.wait().unwrap();
            done += fs::read(file).unwrap().len() as u64;
        }
    }
    let count = count(&pool(path, 0), COUNTERS);
    // A killed process may have added without its report.
    assert!(
        (done..=done + killed).contains(&count),
        "{count}, {done} done"
    );
    let pools = fs::read_dir(path).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("gfx90a.")
    });
    assert_eq!(pools.count(), 1, "all counts are in the pool");
}
