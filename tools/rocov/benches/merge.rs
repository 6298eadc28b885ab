//! `rocov merge` against `llvm-profdata merge --sparse` on the same files:
//! `cargo bench -p rocov-cli --bench merge`, or with other numbers of ranks: `... -- 10 300`. See
//! benches/many-processes.md for what the table says.
//!
//! Every rank of a job has one raw profile of each of 26 code objects, all in one directory. They are
//! like those of a template library: rocPRIM 5.3's reduce, scan and two sorts of `int`, instrumented
//! by clang 22, have 729 functions with 2.6 counters and names of 127 characters, 72 KB of raw profile.
//! So the code objects are compiled here, of 100 to 1,000 functions with 2.5 counters and such names;
//! the counts are random, half of them 0. 1,000 ranks take 1.3 GB in the temporary directory, for as
//! long as this runs. `--long` does the largest once more with names as short as C's.
//!
//! Ends with an error when the results differ, or when rocov is not 20 times faster at 1,000 ranks of
//! the first kind.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::{self, File};
use std::io::Read;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use rocov::format::profraw::RawProfile;
use rocov_tests::cli::random::Random;
use rocov_tests::cli::{device, profile, rocov, run, stdout};

/// Ranks, when none are given.
const RANKS: [usize; 3] = [10, 100, 1000];
/// Code objects in each rank: those of RCCL in a coverage run of it.
const CODE_OBJECTS: usize = 26;
/// Functions of the smallest and the largest code object; the others lie between, evenly.
const FUNCTIONS: (usize, usize) = (100, 1000);
/// The factor by which rocov must be faster.
const NEEDED: f64 = 20.0;
/// Ranks from which on it must be.
const FROM_RANKS: usize = 1000;
/// Times that each is run for each row, in turn: the fastest counts, on a machine that others use too.
const RUNS: usize = 2;
const PROFDATA: &str = "llvm-profdata-22";

/// The functions of a code object: templates, and instances of both, with one counter and with four;
/// `@` is their number.
struct Kind {
    description: &'static str,
    templates: &'static str,
    instances: &'static str,
    /// The factor by which rocov must be faster.
    needed: f64,
}

const LONG_NAMES: Kind = Kind {
    description: "names of 127 characters",
    templates: TEMPLATES,
    instances: INSTANCES,
    needed: NEEDED,
};
const SHORT_NAMES: Kind = Kind {
    description: "names of 18 characters",
    templates: SHORT_TEMPLATES,
    instances: SHORT_INSTANCES,
    needed: 1.0,
};

const TEMPLATES: &str = "
#define __device__ __attribute__((device))
namespace benchmark { namespace detail {
template <class Key, class Value, bool Descending> struct radix_key_codec {};
template <unsigned Threads, unsigned Items> struct block_configuration {};
template <class Configuration, class Codec, int Number>
__device__ int load_and_twiddle(const int *items, int thread) { return items[thread] ^ Number; }
template <class Configuration, class Codec, int Number>
__device__ int count_and_exchange(int *items, int count, int limit) {
  int sum = 0;
  for (int i = 0; i < count; ++i)
    if (items[i] > limit && items[i] != Number) sum += items[i];
  return sum;
}
} }
";
const INSTANCES: &str = "
template __device__ int benchmark::detail::load_and_twiddle<
    benchmark::detail::block_configuration<256u, 15u>,
    benchmark::detail::radix_key_codec<int, float, false>, @>(const int *, int);
template __device__ int benchmark::detail::count_and_exchange<
    benchmark::detail::block_configuration<256u, 15u>,
    benchmark::detail::radix_key_codec<int, float, false>, @>(int *, int, int);
";

const SHORT_TEMPLATES: &str = "
#define __device__ __attribute__((device))
template <int Number> __device__ int f(const int *items, int thread) { return items[thread] ^ Number; }
template <int Number> __device__ int g(int *items, int count, int limit) {
  int sum = 0;
  for (int i = 0; i < count; ++i)
    if (items[i] > limit && items[i] != Number) sum += items[i];
  return sum;
}
";
const SHORT_INSTANCES: &str = "
template __device__ int f<@>(const int *, int);
template __device__ int g<@>(int *, int, int);
";

fn main() {
    let given: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let all_ranks = if given.is_empty() {
        RANKS.into()
    } else {
        given
    };
    measure(&LONG_NAMES, &all_ranks);
    if std::env::args().any(|argument| argument == "--long") {
        measure(&SHORT_NAMES, &all_ranks[all_ranks.len() - 1..]);
    }
}

fn measure(kind: &Kind, all_ranks: &[usize]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let templates = templates(kind, directory.path());
    let bytes: Vec<_> = templates.iter().map(|(_, bytes)| bytes.len()).collect();
    println!(
        "{CODE_OBJECTS} code objects, {}: profiles of {} to {} KB, {} KB a rank",
        kind.description,
        bytes.iter().min().unwrap() / 1000,
        bytes.iter().max().unwrap() / 1000,
        bytes.iter().sum::<usize>() / 1000,
    );
    println!(
        " ranks   files      MB  reading s  llvm-profdata s  rocov s  times faster  CPU time  rocov/reading"
    );
    let mut random = Random(1);
    for &ranks in all_ranks {
        let data = directory.path().join(format!("ranks-{ranks}"));
        fs::create_dir(&data).unwrap();
        for rank in 0..ranks {
            write_rank(&templates, 100_000 + rank, &mut random, &data);
        }
        let ratio = compare(&data, directory.path(), ranks);
        assert!(
            ranks < FROM_RANKS || ratio >= kind.needed,
            "{ratio:.1} times faster at {ranks} ranks, expected {}",
            kind.needed
        );
        fs::remove_dir_all(&data).unwrap();
    }
    println!();
}

/// Profiles of the code objects with some counts, and their names up to the process.
fn templates(kind: &Kind, directory: &Path) -> Vec<(String, Vec<u8>)> {
    let (smallest, largest) = FUNCTIONS;
    let template = |index: usize| {
        let functions = smallest + (largest - smallest) * index / (CODE_OBJECTS - 1);
        let source = directory.join("source.hip");
        let mut text = kind.templates.to_owned();
        for pair in 0..functions / 2 {
            text += &kind
                .instances
                .replace('@', &(1000 * (index + 1) + pair).to_string());
        }
        fs::write(&source, text).unwrap();
        let flags = device::INSTRUMENTED;
        let elf = device::compile_source(&source, directory, "code.elf", "gfx90a", &flags);
        let path = directory.join("template");
        profile::write(&elf, 1, 10, &path);
        let name = format!("gfx90a.{}.0", profile::identity(&elf));
        (name, fs::read(path).unwrap())
    };
    (0..CODE_OBJECTS).map(template).collect()
}

/// Writes the profiles of one rank.
fn write_rank(templates: &[(String, Vec<u8>)], pid: usize, random: &mut Random, data: &Path) {
    for (name, template) in templates {
        let mut bytes = template.clone();
        let counters = RawProfile::parse(template).unwrap().sections.counters;
        for counter in bytes[counters].chunks_exact_mut(8) {
            counter.copy_from_slice(&random.count().to_le_bytes());
        }
        fs::write(data.join(format!("{name}.{pid}.profraw")), bytes).unwrap();
    }
}

/// Merges in both ways, prints a line of the table, and returns how many times faster rocov is.
fn compare(data: &Path, directory: &Path, ranks: usize) -> f64 {
    let files: Vec<_> = fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let bytes: u64 = files
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    let list = directory.join("list");
    let lines: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    fs::write(&list, lines.join("\n")).unwrap();

    let (theirs, ours) = (directory.join("theirs"), directory.join("ours.profdata"));
    let mut llvm = Command::new(PROFDATA);
    llvm.args(["merge", "--sparse", "-f"]).arg(&list);
    llvm.arg("-o").arg(&theirs);
    let mut rocov = rocov();
    rocov.arg("merge").arg(data).args(["--sparse", "-o"]);
    rocov.arg(&ours);

    // Once before, so that none of the three pays for the disk.
    read_all(&files);
    let mut fastest = [Spent::MOST; 3];
    for _ in 0..RUNS {
        let spent = [
            spent(|| read_all(&files)),
            spent(|| drop(run(&mut llvm))),
            spent(|| drop(run(&mut rocov))),
        ];
        for (spent, fastest) in spent.into_iter().zip(&mut fastest) {
            fastest.wall = fastest.wall.min(spent.wall);
            fastest.cpu = fastest.cpu.min(spent.cpu);
        }
    }
    let [reading, llvm, rocov] = fastest;
    assert_eq!(shown(&theirs), shown(&ours), "the results differ");
    let ratio = llvm.wall / rocov.wall;
    println!(
        "{ranks:>6}  {:>6}  {:>6}  {:>9.2}  {:>15.2}  {:>7.2}  {ratio:>12.1}  {:>8.1}  {:>13.2}",
        files.len(),
        bytes / 1_000_000,
        reading.wall,
        llvm.wall,
        rocov.wall,
        llvm.cpu / rocov.cpu,
        rocov.wall / reading.wall
    );
    ratio
}

/// Opens, looks at, reads and closes all files on as many threads as rocov has, and does nothing with
/// them.
fn read_all(files: &[PathBuf]) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for files in files.chunks(files.len().div_ceil(threads)) {
            scope.spawn(move || {
                let mut buffer = Vec::new();
                for path in files {
                    let mut file = File::open(path).unwrap();
                    buffer.resize(file.metadata().unwrap().len() as usize, 0);
                    file.read_exact(&mut buffer).unwrap();
                }
            });
        }
    });
}

/// Seconds that something took.
#[derive(Clone, Copy)]
struct Spent {
    wall: f64,
    /// The time of processors, by this process and those that it has waited for.
    cpu: f64,
}

impl Spent {
    const MOST: Self = Self {
        wall: f64::MAX,
        cpu: f64::MAX,
    };
}

fn spent(work: impl FnOnce()) -> Spent {
    let (start, before) = (Instant::now(), cpu_seconds());
    work();
    Spent {
        wall: start.elapsed().as_secs_f64(),
        cpu: cpu_seconds() - before,
    }
}

/// Fields 14 to 17 of proc(5)'s stat, in hundredths of a second: user and system time, of this process
/// and of its children.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in brackets, may have spaces.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(11).take(4);
    ticks.map(|tick| tick.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

fn shown(profile: &PathBuf) -> String {
    let mut command = Command::new(PROFDATA);
    command.args(["show", "--all-functions", "--counts"]);
    stdout(&run(command.arg(profile)))
}
