//! `rocov report` against the `llvm-cov export` calls that it cannot do without:
//! `cargo bench -p rocov-cli --bench report`, or with other numbers of source files: `... -- 20 200`.
//!
//! The bench generates source files of 163 lines, each with 8 functions (a loop, four conditions, a
//! template of a header that all share) and a kernel that calls them; ten files to a code object, as
//! one unit. 2,000 files are 200 code objects for gfx90a, compiled by clang 22 and kept in the target
//! directory, and a raw profile of each, half of its counts 0.
//!
//! llvm-cov is started once for each code object, as many at a time as there are processors, with an
//! indexed profile that is there already, and what it prints is thrown away. The report starts it as
//! often and as many at a time, and also merges the profiles, reads what llvm-cov prints, finds the
//! figures of all files and writes the table. Processor time is that of all processes together, which
//! says the same on a machine that others use too. Its memory is what the kernel says of the command when it
//! was largest (`VmHWM`, looked at every few milliseconds); llvm-cov's own is not in it.
//!
//! Ends with an error when the report takes more than 1.3 times as long at 2,000 files, or more memory
//! than a file is allowed.

#[path = "../tests/common/mod.rs"]
mod common;

use std::fmt;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use common::random::Random;
use common::{device, profile, rocov, run};

/// Numbers of source files, when none are given.
const FILES: [usize; 3] = [20, 200, 2000];
/// Source files of a code object.
const IN_OBJECT: usize = 10;
/// Functions of a source file, apart from its kernel.
const FUNCTIONS: usize = 8;
/// The factor by which the report may take longer than llvm-cov.
const ALLOWED: f64 = 1.3;
/// Source files from which on that holds: before, the search for LLVM's tools is a part of it.
const FROM_FILES: usize = 2000;
/// Most memory, in kB: what the command takes by itself, and for each source file.
const ALLOWED_KB: [usize; 2] = [40_000, 60];
/// Times that each is run for each row, in turn: the fastest counts, on a machine that others use too.
const RUNS: usize = 3;
/// The interval of looks at the memory.
const INTERVAL: Duration = Duration::from_millis(3);
const COV: &str = "llvm-cov-22";
const PROFDATA: &str = "llvm-profdata-22";

const HEADER: &str = "#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
template <class T> __device__ T clamped(T value, T limit) {
  if (value > limit)
    return limit;
  return value < -limit ? -limit : value;
}
";
/// `@` is the function's name.
const FUNCTION: &str = "
// What is large enough of the values, until that is too much.
__device__ int @(const int *values, int count, int limit) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    if (values[i] > limit && values[i] != 77) {
      sum += values[i];
    } else if (values[i] < -limit) {
      sum -= clamped(values[i], limit);
    } else {
      continue;
    }
    if (sum > 9000) {
      return sum - limit;
    }
  }
  return sum > 0 ? sum : -sum;
}
";

/// A code object in the target directory.
struct Object {
    elf: PathBuf,
    /// An indexed profile, as llvm-profdata makes it.
    indexed: PathBuf,
}

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let all = if given.is_empty() {
        FILES.into()
    } else {
        given
    };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-bench");
    fs::create_dir_all(&cache).unwrap();
    fs::write(cache.join("common.h"), HEADER).unwrap();
    let largest = all.iter().max().copied().unwrap_or(0);
    let numbers: Vec<_> = (0..largest.div_ceil(IN_OBJECT)).collect();
    let start = Instant::now();
    each(&numbers, |number| generate(*number, &cache));
    println!(
        "{} code objects generated or found in {:.1} s; {} at a time",
        numbers.len(),
        start.elapsed().as_secs_f64(),
        processors()
    );
    println!("                           llvm-cov           rocov        rocov/llvm-cov");
    println!(" files  code objects     s  processor s     s  processor s     s  processor s    MB");
    for files in all {
        compare(files, &cache);
    }
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does `work` for each, as many at a time as there are processors.
fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let rest = Mutex::new(items.iter());
    let next = || rest.lock().unwrap().next();
    let worker = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(worker);
        }
    });
}

fn object(number: usize, cache: &Path) -> Object {
    let path = |ending: &str| cache.join(format!("{number}.{ending}"));
    Object {
        elf: path("elf"),
        indexed: path("profdata"),
    }
}

/// Makes a code object and its profiles, unless they are there.
fn generate(number: usize, cache: &Path) {
    let object = object(number, cache);
    let raw = object.elf.with_extension("profraw");
    if object.indexed.exists() {
        return;
    }
    let mut unit = String::new();
    for file in 0..IN_OBJECT {
        let name = format!("source_{number}_{file}.h");
        fs::write(cache.join(&name), source(number, file)).unwrap();
        unit += &format!("#include \"{name}\"\n");
    }
    let path = cache.join(format!("unit_{number}.hip"));
    fs::write(&path, unit).unwrap();
    let name = format!("{number}.elf");
    device::compile_source(&path, cache, &name, "gfx90a", &device::INSTRUMENTED);
    let mut random = Random(number as u64 + 1);
    profile::write_filled(&object.elf, common::place::RAW_VERSION, &raw, |counters| {
        for counter in counters.chunks_exact_mut(8) {
            counter.copy_from_slice(&random.count().to_le_bytes());
        }
    });
    let mut merge = Command::new(PROFDATA);
    merge.arg("merge").arg(&raw).arg("-o").arg(&object.indexed);
    run(&mut merge);
}

fn source(number: usize, file: usize) -> String {
    let names: Vec<_> = (0..FUNCTIONS)
        .map(|function| format!("sum_{number}_{file}_{function}"))
        .collect();
    let mut text = "#pragma once\n#include \"common.h\"\n".to_owned();
    text.extend(names.iter().map(|name| FUNCTION.replace('@', name)));
    text +=
        &format!("\n__global__ void kernel_{number}_{file}(const int *values, int *result) {{\n");
    text += "  int sum = 0;\n";
    for (limit, name) in names.iter().enumerate() {
        text += &format!("  sum += {name}(values, 100, {limit});\n");
    }
    text + "  *result = sum;\n}\n"
}

/// Prints a line of the table.
fn compare(files: usize, cache: &Path) {
    let objects: Vec<_> = (0..files.div_ceil(IN_OBJECT))
        .map(|number| object(number, cache))
        .collect();
    let data = tempfile::tempdir().unwrap();
    let kept = data.path().join("objects");
    fs::create_dir(&kept).unwrap();
    for object in &objects {
        let identity = profile::identity(&object.elf);
        let raw = object.elf.with_extension("profraw");
        let name = format!("gfx90a.{identity}.0.1.profraw");
        fs::copy(raw, data.path().join(name)).unwrap();
        let name = format!("gfx90a.{identity}.elf");
        // Not a link: the temporary directory may be on another file system.
        fs::copy(&object.elf, kept.join(name)).unwrap();
    }
    let export = |object: &Object| {
        let mut export = Command::new(COV);
        export.args(["export", "-skip-expansions", "-instr-profile"]);
        export.arg(&object.indexed).arg(&object.elf);
        run(export.stdout(Stdio::null()));
    };
    let (mut llvm, mut rocov) = (Taken::MOST, Taken::MOST);
    let mut most = 0;
    for _ in 0..RUNS {
        llvm.improve(|| each(&objects, export));
        rocov.improve(|| most = report(data.path()).max(most));
    }
    let ratio = rocov.seconds / llvm.seconds;
    println!(
        "{files:>6}  {:>12}  {llvm}  {rocov}  {ratio:>4.2}  {:>11.2}  {:>4.0}",
        objects.len(),
        rocov.processor / llvm.processor,
        most as f64 / 1000.0
    );
    let [base, of_file] = ALLOWED_KB;
    let allowed = base + of_file * files;
    assert!(most <= allowed, "{most} kB, expected at most {allowed}");
    assert!(
        files < FROM_FILES || ratio <= ALLOWED,
        "{ratio:.2} times as long at {files} files, expected {ALLOWED}"
    );
}

/// The least that something took, in seconds.
struct Taken {
    seconds: f64,
    /// The memory of all processes that were started.
    processor: f64,
}

impl Taken {
    const MOST: Self = Self {
        seconds: f64::MAX,
        processor: f64::MAX,
    };

    fn improve(&mut self, work: impl FnOnce()) {
        let (start, before) = (Instant::now(), processor_seconds());
        work();
        self.seconds = start.elapsed().as_secs_f64().min(self.seconds);
        self.processor = (processor_seconds() - before).min(self.processor);
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4.1}  {:>11.1}", self.seconds, self.processor)
    }
}

/// Processor time of all processes that this one has started and that have ended: proc_pid_stat(5),
/// fields 16 and 17, in hundredths of a second.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The second field is a name in parentheses.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields = fields.split(' ').skip(16 - 3).take(2);
    let ticks: u32 = fields.map(|it| it.parse::<u32>().unwrap()).sum();
    f64::from(ticks) / 100.0
}

/// Reports, and returns the most memory that the command had, in kB.
fn report(data: &Path) -> usize {
    let mut command = rocov();
    command.arg("report").arg(data).arg("--output");
    let table = data.join("table.txt");
    let mut child = command.arg(&table).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = number.unwrap_or(0).max(most);
        thread::sleep(INTERVAL);
    };
    assert!(ended.success());
    assert!(fs::read_to_string(table).unwrap().contains("\nTOTAL "));
    most
}
