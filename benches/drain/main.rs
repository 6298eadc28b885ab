//! The cost of a drain, compared with copies and writes only and with no drain: `cargo bench -p
//! rocov --bench drain`, or `tools/dev/bench`. benches/README.md explains the tables.
//!
//! - the real ROCr over the modelled GPU, in a separate process;
//! - a runtime in memory, with the prices of calls as measured on the real one;
//! - the memory, and the time to load code objects;
//! - the times of labels, windows and dumps;
//! - runs of a program with and without librocov;
//! - exits with LLVM's released drain and with rocov's.
//!
//! The words `drains`, `loads`, `requests`, `lives` and `released` select among them. `--long`
//! continues to 1,000 code objects on the real ROCr, which takes minutes, and to 10,000 in memory.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod clock;
mod compare;
mod fake;
mod life;
mod loads;
mod released;
mod requests;
mod rocr;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rocov::device::{Device, DeviceRange, Executable};
use rocov_tests as support;
use rocov_tests::allocated::Measured;
use rocov_tests::artifacts::built;
use rocov_tests::compile::code_object;

use clock::{median, micros};
use compare::{HEADS, compare};
use fake::{Fake, Prices};
use rocr::Rocr;

#[global_allocator]
static ALLOCATOR: Measured = Measured;

/// The approximate time of a copy over a bus.
const EVEN: Duration = Duration::from_micros(20);
/// The option that starts the part on the real ROCr, and the start of its line of prices.
const REAL: &str = "--real";
const PRICES: &str = "prices in ns:";

/// Numbers of code objects on the real ROCr and in memory; only `--long` runs the last of each.
const ON_THE_REAL: [usize; 3] = [10, 100, 1_000];
const IN_MEMORY: [usize; 4] = [10, 100, 1_000, 10_000];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_asked_for = |word: &str| arguments.iter().any(|argument| argument == word);
    let is_long = is_asked_for("--long");
    let real = &ON_THE_REAL[..ON_THE_REAL.len() - usize::from(!is_long)];
    let memory = &IN_MEMORY[..IN_MEMORY.len() - usize::from(!is_long)];
    let image = fs::read(code_object("templates", "gfx90a", "-O1", 4)).expect("a code object");
    if let Some(at) = arguments.iter().position(|argument| argument == life::LIVE) {
        return life::live(&image, arguments[at + 1].parse().expect("a number"));
    }
    if is_asked_for(REAL) {
        return on_the_real(&image, real);
    }
    let any = ["drains", "loads", "requests", "lives", "released"]
        .into_iter()
        .any(is_asked_for);
    println!("a code object of {} bytes", image.len());
    if is_asked_for("drains") || !any {
        let prices = run_on_the_real(is_long);
        in_memory(
            "prices of the real ROCr over the model",
            &image,
            memory,
            prices,
        );
        let even = Prices {
            copy: EVEN,
            flowing: EVEN,
            query: prices.query,
        };
        in_memory("20 us for every copy, however made", &image, memory, even);
    }
    if is_asked_for("loads") || !any {
        loads::measure(&image, memory);
    }
    if is_asked_for("requests") || !any {
        requests::measure(&image, memory);
    }
    if is_asked_for("lives") || !any {
        life::measure(real);
    }
    if is_asked_for("released") || !any {
        released::measure(is_long);
    }
}

/// The code object `image` with a number instead of the hash that clang gives each compilation. The
/// hash is part of symbol names that no code looks up.
fn numbered(image: &[u8], number: u64) -> Vec<u8> {
    const MARK: &[u8] = b"__hip_cuid_";
    let mut numbered = image.to_vec();
    let marks = image.windows(MARK.len()).enumerate();
    for (at, _) in marks.filter(|(_, bytes)| *bytes == MARK) {
        numbered[at + MARK.len()..][..16].copy_from_slice(format!("{number:016x}").as_bytes());
    }
    assert!(numbered != image, "clang marks its compilations");
    numbered
}

/// Runs the part on the real ROCr in a process with the modelled GPU, and returns the prices of
/// calls.
fn run_on_the_real(is_long: bool) -> Prices {
    let mut command = Command::new(std::env::current_exe().expect("a program knows its path"));
    command
        .arg(REAL)
        .args(is_long.then_some("--long"))
        .env("LD_PRELOAD", built("librocov_modelgpu.so"))
        .env("ROCOV_MODELGPU", "gfx90a")
        .stderr(Stdio::inherit());
    let output = command.output().expect("the same program can be started");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let (table, prices) = text.split_once(PRICES).expect("prices");
    print!("{table}");
    let mut prices = prices.split_whitespace().map(|price| {
        let nanos: u64 = price.parse().expect("a number");
        Duration::from_nanos(nanos)
    });
    let mut next = || prices.next().expect("a price");
    Prices {
        copy: next(),
        flowing: next(),
        query: next(),
    }
}

fn on_the_real(image: &[u8], counts: &[usize]) {
    let rocr = Rocr::start();
    let agent = rocr.first_agent();
    println!("\nthe real ROCr over the modelled GPU");
    println!("{HEADS}");
    let mut executables = Vec::new();
    for count in counts {
        while executables.len() < *count {
            let image = numbered(image, executables.len() as u64).leak();
            executables.push(Executable(rocr.load(image, agent)));
        }
        compare(&executables, rocr.device(), || None);
    }
    let prices = prices(&rocr, executables[0].0, agent);
    println!();
    let what = ["a copy waited for", "a copy among others", "a question"];
    for (what, price) in what.into_iter().zip(prices) {
        println!("{what}: {:.2} us", micros(price));
    }
    let prices = prices.map(|price| price.as_nanos().to_string());
    println!("{PRICES} {}", prices.join(" "));
}

/// The times of a single copy, of a copy among others, and of a query about a symbol.
fn prices(rocr: &Rocr, executable: u64, agent: u64) -> [Duration; 3] {
    const MANY: u32 = 64;
    let symbols = rocr.symbols(executable, agent);
    let variable = symbols.iter().find(|symbol| rocr.is_variable(**symbol));
    let start = rocr.address(*variable.expect("a variable"));
    let ranges = [DeviceRange { start, len: 8 }; MANY as usize];
    [
        median(9, || {
            let copied = rocr.device().read(start, &mut [0; 8]);
            copied.expect("device memory");
        }),
        median(9, || rocr.device().read_each(&ranges, &mut |_, _| {})) / MANY,
        median(9, || {
            (0..MANY).for_each(|_| assert!(rocr.name_len(symbols[0]) > 0));
        }) / MANY,
    ]
}

fn in_memory(title: &str, image: &[u8], counts: &[usize], prices: Prices) {
    println!("\nin memory: {title}");
    println!("{HEADS}");
    for count in counts {
        let fake = Fake::new(image, *count, 1, prices);
        let executables = fake.executables().expect("executables");
        compare(&executables, &fake, || Some(fake.take_spent()));
    }
}
