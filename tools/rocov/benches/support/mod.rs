//! Code objects, raw profiles and times of the benchmarks of reports.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
// Each benchmark is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::fmt;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use rocov_tests::cli::random::Random;
use rocov_tests::cli::{device, place, profile, run};

pub(crate) const COV: &str = "llvm-cov-22";
pub(crate) const PROFDATA: &str = "llvm-profdata-22";

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

/// The sources of a code object: one unit that includes files, and a header that all share.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// The number of files.
    pub(crate) files: usize,
    /// The number of functions of a file, apart from its kernel.
    pub(crate) functions: usize,
    /// Only files whose number is a multiple of this have a kernel.
    pub(crate) files_to_kernel: usize,
}

/// A code object in the target directory.
pub(crate) struct CodeObject {
    pub(crate) elf: PathBuf,
    /// An indexed profile, as llvm-profdata makes it.
    pub(crate) indexed: PathBuf,
}

impl CodeObject {
    fn new(number: usize, cache: &Path) -> Self {
        let path = |ending: &str| cache.join(format!("{number}.{ending}"));
        Self {
            elf: path("elf"),
            indexed: path("profdata"),
        }
    }

    /// Its raw profile.
    pub(crate) fn raw(&self) -> PathBuf {
        self.elf.with_extension("profraw")
    }

    /// The name of its raw profiles in a data directory.
    pub(crate) fn profile_name(&self) -> String {
        format!("gfx90a.{}.0.1.profraw", profile::identity(&self.elf))
    }

    /// Puts its device ELF into a data directory.
    pub(crate) fn keep(&self, data: &Path) {
        let objects = data.join("objects");
        fs::create_dir_all(&objects).unwrap();
        let name = format!("gfx90a.{}.elf", profile::identity(&self.elf));
        // Not a link: the temporary directory may be on another file system.
        fs::copy(&self.elf, objects.join(name)).unwrap();
    }
}

/// Makes `number` code objects and their profiles, or finds them in the target directory.
pub(crate) fn code_objects(number: usize, shape: Shape, name: &str) -> Vec<CodeObject> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&cache).unwrap();
    fs::write(cache.join("common.h"), HEADER).unwrap();
    let start = Instant::now();
    let numbers: Vec<_> = (0..number).collect();
    each(&numbers, |number| generate(*number, shape, &cache));
    println!(
        "{number} code objects generated or found in {:.1} s; {} at a time",
        start.elapsed().as_secs_f64(),
        processors()
    );
    let objects = numbers.into_iter();
    objects
        .map(|object| CodeObject::new(object, &cache))
        .collect()
}

/// Makes a code object and its profiles, unless they are there.
fn generate(number: usize, shape: Shape, cache: &Path) {
    let object = CodeObject::new(number, cache);
    if object.indexed.exists() {
        return;
    }
    let mut unit = String::new();
    for file in 0..shape.files {
        let name = format!("source_{number}_{file}.h");
        fs::write(cache.join(&name), source(number, file, shape)).unwrap();
        unit += &format!("#include \"{name}\"\n");
    }
    let path = cache.join(format!("unit_{number}.hip"));
    fs::write(&path, unit).unwrap();
    let name = format!("{number}.elf");
    device::compile_source(&path, cache, &name, "gfx90a", &device::INSTRUMENTED);
    let mut random = Random(number as u64 + 1);
    let raw = object.raw();
    profile::write_filled(&object.elf, place::RAW_VERSION, &raw, |counters| {
        for counter in counters.chunks_exact_mut(8) {
            counter.copy_from_slice(&random.count().to_le_bytes());
        }
    });
    run(&mut merge(&raw, &object.indexed));
}

/// The text of a source file: functions, and a kernel that calls them.
fn source(number: usize, file: usize, shape: Shape) -> String {
    let names: Vec<_> = (0..shape.functions)
        .map(|function| format!("sum_{number}_{file}_{function}"))
        .collect();
    let mut text = "#pragma once\n#include \"common.h\"\n".to_owned();
    text.extend(names.iter().map(|name| FUNCTION.replace('@', name)));
    if !file.is_multiple_of(shape.files_to_kernel) {
        return text;
    }
    text +=
        &format!("\n__global__ void kernel_{number}_{file}(const int *values, int *result) {{\n");
    text += "  int sum = 0;\n";
    for (limit, name) in names.iter().enumerate() {
        text += &format!("  sum += {name}(values, 100, {limit});\n");
    }
    text + "  *result = sum;\n}\n"
}

/// The command of llvm-profdata that makes an indexed profile of a raw one.
pub(crate) fn merge(raw: &Path, indexed: &Path) -> Command {
    let mut merge = Command::new(PROFDATA);
    merge.arg("merge").arg(raw).arg("-o").arg(indexed);
    merge
}

/// The command of llvm-cov that exports the coverage of a code object.
pub(crate) fn export(indexed: &Path, elf: &Path) -> Command {
    let mut export = Command::new(COV);
    export.args(["export", "-skip-expansions", "-instr-profile"]);
    export.arg(indexed).arg(elf);
    export
}

pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does `work` for each, as many at a time as there are processors.
pub(crate) fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
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

/// The least time that something took, in seconds.
pub(crate) struct Taken {
    pub(crate) seconds: f64,
    /// The processor time of all processes that were started.
    pub(crate) processor: f64,
}

impl Taken {
    pub(crate) const MOST: Self = Self {
        seconds: f64::MAX,
        processor: f64::MAX,
    };

    pub(crate) fn improve(&mut self, work: impl FnOnce()) {
        let (start, before) = (Instant::now(), processor_seconds());
        work();
        self.seconds = start.elapsed().as_secs_f64().min(self.seconds);
        self.processor = (processor_seconds() - before).min(self.processor);
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6.2}  {:>11.2}", self.seconds, self.processor)
    }
}

/// Processor time of all processes that this one has started and that have ended: proc_pid_stat(5),
/// fields 16 and 17, in hundredths of a second.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The second field is a name in parentheses.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields = fields.split(' ').skip(16 - 3).take(2);
    let ticks: u32 = fields.map(|field| field.parse::<u32>().unwrap()).sum();
    f64::from(ticks) / 100.0
}
