//! The cost of an addition to a pool (`%m`): `cargo bench -p rocov --bench pool`.
//! benches/many-processes.md explains the tables.
//!
//! First one process adds to one file. Then many processes add to many files at once, and
//! llvm-profdata must find the exact sums.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rocov::format::profraw::{RawProfile, Sum, encode};
use rocov::store::{add_to_pool, write_atomic};
use rocov_tests::made_up::MadeUp;

const PROFDATA: &str = "llvm-profdata-22";
/// Processes of a node, and code objects in each, as in a coverage run of RCCL.
const PROCESSES: usize = 64;
const CODE_OBJECTS: usize = 26;
/// Additions of each process to each file.
const ROUNDS: usize = 10;
/// Functions of each code object and counters of each function, as in rocPRIM: 3 to 800 KB of raw
/// profile.
const SHAPES: [(usize, usize); 3] = [(30, 3), (700, 3), (7000, 3)];
/// The shape of a code object that many processes add to.
const SHAPE: (usize, usize) = SHAPES[1];
/// Measured additions of one process.
const ADDITIONS: usize = 300;

/// The option of a process that adds; the directory and its first file follow.
const ADD: &str = "--add";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == ADD) {
        return add_all(
            Path::new(&arguments[at + 1]),
            arguments[at + 2].parse().unwrap(),
        );
    }
    let program = std::env::current_exe().expect("a program knows its own path");
    let build = program.parent().expect("a directory").to_owned();
    // The directories of tools/dev/bench: one in memory and one on a disk.
    for place in [std::env::temp_dir(), build] {
        println!("in {}\n", place.display());
        one_process(&place);
        println!();
        many_processes(&place);
        println!();
    }
}

fn one_process(place: &Path) {
    println!("one process, us an addition; read and write: the same counts, and nothing else");
    println!(" profile  counts  in place  replacing  own file  read and write");
    for (functions, counters) in SHAPES {
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let profile = MadeUp::new(functions, counters);
        let parts = profile.parts();
        let ours = encode(&parts);
        let path = |name: &str| directory.path().join(name);

        let pool = path("pool");
        let in_place = each(|| add_to_pool(&pool, &parts).expect("it is added"));
        let replaced = path("replaced");
        write_atomic(&replaced, &ours).expect("it is written");
        let replacing = each(|| {
            let theirs = fs::read(&replaced).expect("it is read");
            let mut sum = Sum::new(theirs).expect("a profile");
            sum.add(&ours).expect("of the same code");
            write_atomic(&replaced, sum.bytes()).expect("it is written");
        });
        let mut number = 0;
        let own = each(|| {
            number += 1;
            let path = directory.path().join(number.to_string());
            write_atomic(&path, &encode(&parts)).expect("it is written");
        });
        let counts = RawProfile::parse(&ours)
            .expect("a profile")
            .sections
            .counters;
        let mut buffer = vec![0; counts.len()];
        let floor = each(|| {
            let file = File::options().read(true).write(true).open(&pool);
            let file = file.expect("it is there");
            let at = counts.start as u64;
            file.read_exact_at(&mut buffer, at).expect("it is read");
            file.write_all_at(black_box(&buffer), at)
                .expect("it is written");
        });
        println!(
            "{:>5} KB {:>4} KB {in_place:>9.1} {replacing:>10.1} {own:>9.1} {floor:>15.1}",
            ours.len() / 1000,
            counts.len() / 1000,
        );
    }
}

/// Microseconds of `work`: the median, because other programs use the machine too.
fn each(mut work: impl FnMut()) -> f64 {
    let mut time = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    time();
    let mut times: Vec<_> = (0..ADDITIONS).map(|_| time()).collect();
    times.sort_unstable();
    times[ADDITIONS / 2].as_secs_f64() * 1e6
}

fn pool(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("gfx90a.{number:02}.0.0.profraw"))
}

/// Adds to all files, and prints the time of each addition in nanoseconds.
fn add_all(directory: &Path, first: usize) {
    let (functions, counters) = SHAPE;
    let profile = MadeUp::new(functions, counters);
    // All processes start when the parent closes the writing end.
    io::stdin().read_to_end(&mut Vec::new()).expect("it ends");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        for number in 0..CODE_OBJECTS {
            let path = pool(directory, (first + number) % CODE_OBJECTS);
            let start = Instant::now();
            add_to_pool(&path, &profile.parts()).expect("it is added");
            times.push(start.elapsed());
        }
    }
    times
        .iter()
        .for_each(|time| println!("{}", time.as_nanos()));
}

fn many_processes(place: &Path) {
    println!(
        "{PROCESSES} processes, {ROUNDS} times {CODE_OBJECTS} files each: {} additions",
        PROCESSES * ROUNDS * CODE_OBJECTS
    );
    println!("                         seconds  additions/s  median us  99 % us  longest ms");
    for (order, step) in [("all start with one file", 0), ("each with another", 1)] {
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let (seconds, mut times) = add_at_once(directory.path(), step);
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        println!(
            "{order:<24} {seconds:>7.2} {:>12.0} {:>10.1} {:>8.1} {:>11.1}",
            times.len() as f64 / seconds,
            at(0.5).as_secs_f64() * 1e6,
            at(0.99).as_secs_f64() * 1e6,
            at(1.0).as_secs_f64() * 1e3,
        );
        check_sums(directory.path());
    }
}

/// Makes all processes add to the files; each starts `step` files after the one before. Returns the
/// time until all have ended, and the time of each addition.
fn add_at_once(directory: &Path, step: usize) -> (f64, Vec<Duration>) {
    let (start, writer) = io::pipe().expect("a pipe");
    let mut processes: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let mut command = Command::new(std::env::current_exe().expect("its own path"));
            command
                .arg(ADD)
                .arg(directory)
                .arg((step * number).to_string());
            command.stdin(start.try_clone().expect("another end"));
            command.stdout(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    // All processes wait by then.
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    drop(writer);
    let mut times = Vec::new();
    for process in &mut processes {
        let said = BufReader::new(process.stdout.take().expect("it is piped"));
        let nanos = said.lines().map(|line| line.expect("a line").parse());
        times.extend(nanos.map(|nanoseconds| Duration::from_nanos(nanoseconds.expect("a number"))));
        assert!(process.wait().expect("it ends").success());
    }
    (begin.elapsed().as_secs_f64(), times)
}

/// Checks each file with llvm-profdata.
fn check_sums(directory: &Path) {
    for number in 0..CODE_OBJECTS {
        let mut show = Command::new(PROFDATA);
        show.args(["show", "--all-functions", "--counts"]);
        let shown = show.arg(pool(directory, number)).output().expect("it runs");
        assert!(shown.status.success(), "{shown:?}");
        let shown = String::from_utf8(shown.stdout).expect("text");
        let expected = format!("Function count: {}", PROCESSES * ROUNDS);
        let exact = shown.lines().filter(|line| line.trim() == expected).count();
        assert_eq!(
            exact, SHAPE.0,
            "functions with the exact sum in file {number}"
        );
    }
    println!("  {CODE_OBJECTS} files: all sums are exact, by llvm-profdata");
}
