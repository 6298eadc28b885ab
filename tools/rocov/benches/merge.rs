//! `rocov merge` against `llvm-profdata merge --sparse` on the same files:
//! `cargo bench -p rocov-cli --bench merge`, or with other numbers of ranks: `... -- 10 300`.
//!
//! Every rank of a job has one raw profile of each of 26 code objects, all in one directory. They are
//! like those of a template library: rocPRIM 5.3's reduce, scan and two sorts of `int`, instrumented
//! by clang 22, have 729 functions with 2.6 counters and names of 127 characters, 72 KB of raw profile.
//! So the code objects are compiled here, of 100 to 1,000 functions with 2.5 counters and such names;
//! the counts are random, half of them 0. 1,000 ranks take 1.3 GB in the temporary directory, for as
//! long as this runs.
//!
//! All files are in the page cache, for all three that are timed. The limit is reading them: `cat` of
//! all files to /dev/null, on one thread. A profile of rocov (`perf record`, 1,000 ranks) has a third of
//! its time in the kernel's copying of pages, another third in finding, opening and closing files, 8 %
//! in comparing what is not counted and 7 % in adding what is. After that comes llvm-profdata, once
//! for each code object: the time at 10 ranks is nearly all of that.
//!
//! Ends with an error when the results differ, or when rocov is not 20 times faster at 1,000 ranks.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{device, profile, rocov, run, stdout};
use rocov::profraw::RawProfile;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Ranks, when none are given.
const RANKS: [usize; 3] = [10, 100, 1000];
/// Code objects in each rank: those of RCCL in a coverage run of it.
const CODE_OBJECTS: usize = 26;
/// Functions of the smallest and the largest code object; the others lie between, evenly.
const FUNCTIONS: (usize, usize) = (100, 1000);
/// How many times faster rocov must be.
const NEEDED: f64 = 20.0;
/// Ranks from which on it must be.
const FROM_RANKS: usize = 1000;
/// Times that each is run for each row, in turn: the fastest counts, on a machine that others use too.
const RUNS: usize = 2;
const PROFDATA: &str = "llvm-profdata-22";

/// What the functions of a code object are instances of.
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
/// Instances of both, with one counter and with four; `@` is their number.
const INSTANCES: &str = "
template __device__ int benchmark::detail::load_and_twiddle<
    benchmark::detail::block_configuration<256u, 15u>,
    benchmark::detail::radix_key_codec<int, float, false>, @>(const int *, int);
template __device__ int benchmark::detail::count_and_exchange<
    benchmark::detail::block_configuration<256u, 15u>,
    benchmark::detail::radix_key_codec<int, float, false>, @>(int *, int, int);
";

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let all_ranks = if given.is_empty() {
        RANKS.into()
    } else {
        given
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let templates = templates(directory.path());
    let bytes: Vec<_> = templates.iter().map(|(_, bytes)| bytes.len()).collect();
    println!(
        "{CODE_OBJECTS} code objects, profiles of {} to {} KB, {} KB a rank",
        bytes.iter().min().unwrap() / 1000,
        bytes.iter().max().unwrap() / 1000,
        bytes.iter().sum::<usize>() / 1000,
    );
    println!(" ranks   files      MB   cat s  llvm-profdata s  rocov s  times faster  rocov/cat");
    let mut random = Random(1);
    for ranks in all_ranks {
        let data = directory.path().join(format!("ranks-{ranks}"));
        fs::create_dir(&data).unwrap();
        for rank in 0..ranks {
            write_rank(&templates, 100_000 + rank, &mut random, &data);
        }
        let ratio = compare(&data, directory.path(), ranks);
        assert!(
            ranks < FROM_RANKS || ratio >= NEEDED,
            "{ratio:.1} times faster at {ranks} ranks, expected {NEEDED}"
        );
        fs::remove_dir_all(&data).unwrap();
    }
}

/// Profiles of the code objects with some counts, and their names up to the process.
fn templates(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let (smallest, largest) = FUNCTIONS;
    let template = |index: usize| {
        let functions = smallest + (largest - smallest) * index / (CODE_OBJECTS - 1);
        let source = directory.join("source.hip");
        let mut text = TEMPLATES.to_owned();
        for pair in 0..functions / 2 {
            text += &INSTANCES.replace('@', &(1000 * (index + 1) + pair).to_string());
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
        let counters = RawProfile::parse(template).unwrap().counters;
        for counter in bytes[counters].chunks_exact_mut(8) {
            let number = random.next();
            let count = if number.is_multiple_of(2) {
                0
            } else {
                number >> 44
            };
            counter.copy_from_slice(&count.to_le_bytes());
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
    let bytes: u64 = files.iter().map(|it| it.metadata().unwrap().len()).sum();
    let list = directory.join("list");
    let lines: Vec<_> = files.iter().map(|it| it.to_str().unwrap()).collect();
    fs::write(&list, lines.join("\n")).unwrap();

    let mut cat = Command::new("xargs");
    cat.arg("-a").arg(&list).arg("cat").stdout(Stdio::null());
    let (theirs, ours) = (directory.join("theirs"), directory.join("ours.profdata"));
    let mut llvm = Command::new(PROFDATA);
    llvm.args(["merge", "--sparse", "-f"]).arg(&list);
    llvm.arg("-o").arg(&theirs);
    let mut rocov = rocov();
    rocov.arg("merge").arg(data).args(["--sparse", "-o"]);
    rocov.arg(&ours);

    // Once before, so that none of the three pays for the disk.
    seconds(&mut cat);
    let mut fastest = [f64::MAX; 3];
    for _ in 0..RUNS {
        for (command, fastest) in [&mut cat, &mut llvm, &mut rocov]
            .into_iter()
            .zip(&mut fastest)
        {
            *fastest = fastest.min(seconds(command));
        }
    }
    let [cat, llvm, rocov] = fastest;
    assert_eq!(shown(&theirs), shown(&ours), "the results differ");
    let ratio = llvm / rocov;
    println!(
        "{ranks:>6}  {:>6}  {:>6}  {cat:>6.2}  {llvm:>15.2}  {rocov:>7.2}  {ratio:>12.1}  {:>9.2}",
        files.len(),
        bytes / 1_000_000,
        rocov / cat
    );
    ratio
}

fn seconds(command: &mut Command) -> f64 {
    let start = Instant::now();
    run(command);
    start.elapsed().as_secs_f64()
}

fn shown(profile: &PathBuf) -> String {
    let mut command = Command::new(PROFDATA);
    command.args(["show", "--all-functions", "--counts"]);
    stdout(&run(command.arg(profile)))
}

/// Numbers that look random and are the same every time: Marsaglia's xorshift of 64 bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
