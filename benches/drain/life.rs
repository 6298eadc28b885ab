//! Runs of a program that loads code objects, with and without librocov.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::clock::{computed, micros, millis, now};
use crate::numbered;
use crate::rocr::Rocr;
use crate::support::artifacts::built;

/// The option that starts the program; the number of code objects follows.
pub(crate) const LIVE: &str = "--live";
/// The idle time of the program.
const REST: Duration = Duration::from_millis(200);

/// The program: loads code objects, rests, and ends. An exit handler destroys its executables, as
/// in HIP programs.
pub(crate) fn live(image: &[u8], count: usize) {
    static LIFE: OnceLock<(Rocr, Vec<u64>)> = OnceLock::new();
    extern "C" fn destroy() {
        let Some((rocr, executables)) = LIFE.get() else {
            return;
        };
        for executable in executables {
            rocr.destroy(*executable);
        }
    }
    let rocr = Rocr::start();
    // Registered before the first load. librocov registers its handler later, so librocov's runs
    // first.
    at_exit(destroy);
    let agent = rocr.first_agent();
    // With a queue, librocov can see that nothing runs.
    rocr.make_queue(agent);
    let images = (0..count as u64).map(|number| &*numbered(image, number).leak());
    let start = now();
    let executables: Vec<u64> = images.map(|image| rocr.load(image, agent)).collect();
    let load = now() - start;
    let before = computed();
    std::thread::sleep(REST);
    let rest = computed() - before;
    let threads = fs::read_dir("/proc/self/task")
        .expect("proc is there")
        .count();
    assert!(LIFE.set((rocr, executables)).is_ok(), "it lives once");
    println!(
        "{} {} {threads} {}",
        load.as_nanos(),
        rest.as_nanos(),
        now().as_nanos()
    );
}

/// Prints the times of programs with these numbers of code objects.
pub(crate) fn measure(counts: &[usize]) {
    println!("\na program on the real ROCr over the model; CPU time while it rests for 200 ms");
    println!("    n  librocov  load us each  at rest us  threads  exit ms");
    for count in counts {
        for with in [false, true] {
            let [load, rest, threads, exit] = life(*count, with);
            println!(
                "{count:>5} {:>9} {:>13.1} {:>11.0} {threads:>8} {:>8.2}",
                if with { "with" } else { "without" },
                micros(Duration::from_nanos(load)) / *count as f64,
                micros(Duration::from_nanos(rest)),
                millis(Duration::from_nanos(exit)),
            );
        }
    }
}

fn life(count: usize, with: bool) -> [u64; 4] {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let model = built("librocov_modelgpu.so").display().to_string();
    let librocov = built("librocov.so").display().to_string();
    let preload = if with {
        format!("{model}:{librocov}")
    } else {
        model
    };
    let profiles = directory.path().join("profiles");
    let mut command = Command::new(std::env::current_exe().expect("a program knows its path"));
    command
        .args([LIVE, &count.to_string()])
        .env("LD_PRELOAD", preload)
        .env("ROCOV_MODELGPU", "gfx90a")
        .env("LLVM_PROFILE_FILE", profiles.join("app.profraw"))
        .stderr(Stdio::inherit());
    let output = command.output().expect("the same program can be started");
    let end = now().as_nanos() as u64;
    assert!(output.status.success(), "{command:?}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse().expect("a number"));
    let mut next = || numbers.next().expect("a number");
    let result = [next(), next(), next(), end - next()];
    let profiles = fs::read_dir(profiles).map_or(0, Iterator::count);
    assert_eq!(profiles, if with { count } else { 0 });
    result
}

fn at_exit(handler: extern "C" fn()) {
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> i32;
    }
    // SAFETY: the handler is a function of the program.
    assert_eq!(unsafe { atexit(handler) }, 0);
}
