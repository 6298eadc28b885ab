//! The registry's cost for a program that loads and unloads often: `cargo bench --bench registry`.
//!
//! The benchmark loads and unloads one code object many times on a device in memory, each time at a
//! new address. For each number of loads it prints, per load and unload:
//!
//! - look: to find the code object, read its ELF's headers, and hash it (it has no build id);
//! - record: the registry's further work;
//! - all: both, with the session's other work, and an occasional write of the document;
//!
//! then the registry's memory, the peak memory of a write, and the time and size of one write.
//! Times are CPU times.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocov::device::{Agent, Device, Executable};
use rocov::discover::{Elfs, Found, Loader, Registry, discover};
use rocov::drain::Session;
use rocov::settings::{DocumentWhen, Keeping, ObjectsKept};
use rocov::store::{Expansion, Keeper, Process, ProfileName};
use rocov_tests::allocated::{Measured, allocated, peak_of};
use rocov_tests::compile::code_object;
use rocov_tests::fake_device::FakeDevice;
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: Measured = Measured;

const LOADS: [usize; 4] = [10, 100, 1_000, 10_000];
const EXECUTABLE: Executable = Executable(0x51);

fn main() {
    let image = std::fs::read(code_object("vecadd", "gfx90a", "-O1", 4)).expect("a code object");
    println!("a code object of {} bytes, 2 kernels", image.len());
    println!(
        "  loads   look us  record us   all us   memory KiB  B/load   peak KiB   write ms  KiB"
    );
    for loads in LOADS {
        let (look, record, memory) = alone(&image, loads);
        let all = together(&image, loads);
        println!(
            "{loads:>7} {look:>9.2} {record:>10.2} {:>8.2} {:>12.1} {:>7} {:>10.1} {:>10.2} {:>4}",
            all.micros,
            memory as f64 / 1024.0,
            memory / loads,
            all.peak as f64 / 1024.0,
            all.write.as_secs_f64() * 1e3,
            all.file / 1024,
        );
    }
}

/// The thread's CPU time so far; other programs do not count.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn micros(time: Duration, loads: usize) -> f64 {
    time.as_secs_f64() * 1e6 / loads as f64
}

fn agents(device: &FakeDevice) -> Vec<Arc<Agent>> {
    let agents = device.agents().expect("agents");
    agents.into_iter().map(Arc::new).collect()
}

/// Microseconds of a look and of a record, and the records' bytes.
fn alone(image: &[u8], loads: usize) -> (f64, f64, usize) {
    let mut device = FakeDevice::new(1);
    let agents = agents(&device);
    let (mut elfs, mut registry) = (Elfs::default(), Registry::default());
    let (mut look, mut record) = (Duration::ZERO, Duration::ZERO);
    let mut memory = 0;
    let mut find = |device: &FakeDevice| -> Found {
        let loader = &Loader::default();
        let found = discover(device, &agents, EXECUTABLE, &mut elfs, loader, |_| true);
        found.expect("code objects").found.remove(0)
    };
    device.load(EXECUTABLE, 0, image);
    find(&device);
    device.unload(EXECUTABLE);
    for time in 0..loads as u64 {
        device.load(EXECUTABLE, 0, image);
        let start = computed();
        let found = find(&device);
        look += computed() - start;
        let before = allocated();
        let start = computed();
        registry.loaded(&found, time);
        registry.unloaded(EXECUTABLE, time);
        record += computed() - start;
        memory += allocated().wrapping_sub(before) as isize;
        device.unload(EXECUTABLE);
    }
    let memory = usize::try_from(memory).expect("a registry grows");
    (micros(look, loads), micros(record, loads), memory)
}

struct Together {
    micros: f64,
    /// The peak of the last write, without earlier bytes.
    peak: usize,
    write: Duration,
    file: u64,
}

/// The measurement through a session that keeps everything.
fn together(image: &[u8], loads: usize) -> Together {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = profile_name(directory.path());
    let keeping = Keeping {
        document: DocumentWhen::Auto,
        objects: ObjectsKept::Instrumented,
        objects_max: u64::MAX,
    };
    let keeper = Keeper::new(keeping, Process::default(), &name);
    let mut session = Session::default().with_keeper(keeper);
    let mut device = FakeDevice::new(1);
    let mut time = Duration::ZERO;
    for _ in 0..loads {
        device.load(EXECUTABLE, 0, image);
        let start = computed();
        session.loaded(&device, EXECUTABLE).expect("code objects");
        let not_kept = session.gone(EXECUTABLE, &name);
        time += computed() - start;
        assert!(not_kept.is_empty(), "{not_kept:?}");
        device.unload(EXECUTABLE);
    }
    std::fs::remove_file(name.for_registry()).expect("a registry");
    device.load(EXECUTABLE, 0, image);
    session.loaded(&device, EXECUTABLE).expect("code objects");
    let start = computed();
    let (not_kept, peak) = peak_of(|| session.keep(&name));
    let write = computed() - start;
    assert!(not_kept.is_empty(), "{not_kept:?}");
    Together {
        micros: micros(time, loads),
        peak,
        write,
        file: std::fs::metadata(name.for_registry())
            .expect("a registry")
            .len(),
    }
}

fn profile_name(directory: &Path) -> ProfileName {
    let name = ProfileName::parse("profraw/app.profraw", &Expansion::default(), directory);
    name.expect("a good pattern").in_data(directory)
}
