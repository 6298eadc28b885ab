//! The speed of kernels on the model compared with the speed of their source on the host: `cargo bench -p
//! modelgpu-amdgcn`, or `tools/dev/bench model`. benches/README.md explains the table.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod matrices;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use modelgpu_amdgcn::{Argument, Launch, Program, Target};
use modelgpu_testing::{compile_hip, text, tool};
use rustix::time::{ClockId, clock_gettime};

/// Runs of each kernel, on the host and on the model in turn.
const ROUNDS: usize = 5;
/// Runs of the host's program for a round: the fastest one counts.
const HOST_RUNS: usize = 3;

/// An argument of a kernel.
#[derive(Clone, Copy)]
enum Value {
    /// A buffer of floats between two numbers.
    Floats(usize, f32, f32),
    Doubles(usize),
    /// A buffer of arbitrary words.
    Words(usize),
    /// A buffer of zeros, in bytes.
    Zeros(usize),
    Word(u32),
    Float(f32),
}

use Value::{Doubles, Float, Floats, Word, Words, Zeros};

/// The elements of a result, for its comparison.
#[derive(Clone, Copy)]
enum Elements {
    Exact,
    Single,
    Double,
}

use Elements::{Double, Exact, Single};

struct Kernel {
    name: &'static str,
    /// Workgroups, and work-items of each, in two dimensions.
    grid: [u32; 2],
    block: [u32; 2],
    arguments: &'static [Value],
    /// The buffer with the result.
    result: usize,
    elements: Elements,
}

const fn kernel(
    name: &'static str,
    grid: [u32; 2],
    block: [u32; 2],
    arguments: &'static [Value],
    result: usize,
    elements: Elements,
) -> Kernel {
    Kernel {
        name,
        grid,
        block,
        arguments,
        result,
        elements,
    }
}

const MI: usize = 1 << 20;

#[rustfmt::skip]
const KERNELS: [Kernel; 12] = [
    kernel("saxpy", [8192, 1], [256, 1], &[Floats(2 * MI, -1., 1.), Floats(2 * MI, -1., 1.), Word(2 << 20), Float(0.7)], 1, Single),
    kernel("heat", [64, 64], [16, 16], &[Doubles(MI), Doubles(MI), Word(1024)], 1, Double),
    kernel("matmul", [16, 16], [16, 16], &[Floats(MI / 16, -1., 1.), Floats(MI / 16, -1., 1.), Zeros(MI / 4), Word(256)], 2, Single),
    kernel("reduce", [1024, 1], [256, 1], &[Floats(2 * MI, -1., 1.), Zeros(4096), Word(2 << 20)], 1, Single),
    kernel("histogram", [512, 1], [256, 1], &[Words(2 * MI), Zeros(1024), Word(2 << 20)], 1, Exact),
    kernel("mandelbrot", [32, 32], [16, 16], &[Zeros(MI), Word(512), Word(200)], 0, Exact),
    kernel("bitonic", [256, 1], [256, 1], &[Words(MI / 8)], 0, Exact),
    kernel("hash", [1024, 1], [256, 1], &[Words(MI / 4), Zeros(MI), Word(64)], 1, Exact),
    kernel("black_scholes", [2048, 1], [256, 1], &[Floats(MI / 2, 5., 30.), Floats(MI / 2, 1., 100.), Floats(MI / 2, 0.25, 10.), Zeros(2 * MI), Word(1 << 19)], 3, Single),
    kernel("scan", [2048, 1], [256, 1], &[Words(MI / 2), Zeros(2 * MI)], 1, Exact),
    kernel("transpose", [64, 64], [16, 16], &[Floats(MI, -1., 1.), Zeros(4 * MI), Word(1024)], 1, Exact),
    kernel("nbody", [16, 1], [256, 1], &[Floats(16384, 0.1, 1.), Zeros(65536), Word(4096)], 1, Single),
];

/// The argument that selects the table of matrix instructions, beside the names of kernels.
const MATRICES: &str = "matrices";

/// The figures of a kernel.
struct Measured {
    host: Duration,
    model: Duration,
    traced: Duration,
    instructions: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, object, name] = &arguments[..]
        && first == REPEAT
    {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
        Other::repeat(kernel.expect("a kernel's name"), Path::new(object));
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let host = compile_host(directory);
    let (targets, names): (Vec<_>, Vec<_>) = arguments
        .into_iter()
        .filter(|argument| !argument.starts_with("--"))
        .partition(|argument| Target::ALL.iter().any(|target| target.name() == argument));
    let kernels: Vec<&Kernel> = KERNELS
        .iter()
        .filter(|kernel| names.is_empty() || names.iter().any(|name| name == kernel.name))
        .collect();
    let kernels = &kernels[..];
    let is_wanted =
        |target: &Target| targets.is_empty() || targets.iter().any(|name| name == target.name());
    if names.is_empty() || names.iter().any(|name| name == MATRICES) {
        for target in Target::ALL.into_iter().filter(is_wanted) {
            matrices::print(target, directory);
        }
    }
    if kernels.is_empty() {
        return;
    }
    for target in Target::ALL.into_iter().filter(is_wanted) {
        let object = compile_device(directory, target);
        println!("\n{target}, one thread; CPU time, medians of {ROUNDS} rounds");
        println!(
            "kernel           host ms  model ms   ratio  instructions  million/s  traced ms  ratio"
        );
        let (mut ratios, mut rates, mut costs) = (0.0, 0.0, 0.0);
        let count = kernels.len() as f64;
        for kernel in kernels {
            let measured = measure(kernel, &host, &object, directory);
            let ratio = measured.model.as_secs_f64() / measured.host.as_secs_f64();
            let cost = measured.traced.as_secs_f64() / measured.model.as_secs_f64();
            let rate = measured.instructions as f64 / measured.model.as_secs_f64() / 1e6;
            println!(
                "{:15} {:8.2} {:9.2} {ratio:7.2} {:13} {rate:10.1} {:10.2} {cost:6.2}",
                kernel.name,
                measured.host.as_secs_f64() * 1e3,
                measured.model.as_secs_f64() * 1e3,
                measured.instructions,
                measured.traced.as_secs_f64() * 1e3,
            );
            costs += cost.ln();
            ratios += ratio.ln();
            rates += rate.ln();
        }
        println!(
            "geometric means of the ratio, of the rate and of the ratio of traced runs: {:.2}, {:.1}, {:.2}",
            (ratios / count).exp(),
            (rates / count).exp(),
            (costs / count).exp(),
        );
    }
    let target = Target::ALL.into_iter().find(is_wanted).expect("a target");
    compare_threads(target, &compile_device(directory, target), kernels);
}

/// Prints the times of one thread and of all, together with the gain of processes that share nothing.
fn compare_threads(target: Target, object: &Path, kernels: &[&Kernel]) {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    println!("\n{target}, times on 1 and on {threads} threads; CPU time of all threads");
    println!("kernel            one ms    all ms   gain  one cpu ms  all cpu ms   more  processes");
    let mut logarithms = [0.0; 3];
    for kernel in kernels {
        let run = |threads: usize| {
            let mut device = Device::new(kernel, object, threads);
            device.run(kernel);
            let (start, cpu_start) = (Instant::now(), cpu_time(ClockId::ProcessCPUTime));
            device.run(kernel);
            let cpu = cpu_time(ClockId::ProcessCPUTime) - cpu_start;
            [start.elapsed(), cpu]
        };
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            times[0].push(run(1));
            times[1].push(run(threads));
            let _others: Vec<_> = (1..threads).map(|_| Other::start(kernel, object)).collect();
            times[2].push(run(1));
        }
        let [one, all, beside] = times.map(|times| {
            [0, 1]
                .map(|clock| median(times.iter().map(|times| times[clock]).collect()).as_secs_f64())
        });
        let figures = [
            one[0] / all[0],
            all[1] / one[1],
            threads as f64 * one[0] / beside[0],
        ];
        println!(
            "{:15} {:8.2} {:9.2} {:6.2} {:11.2} {:11.2} {:6.2} {:10.2}",
            kernel.name,
            one[0] * 1e3,
            all[0] * 1e3,
            figures[0],
            one[1] * 1e3,
            all[1] * 1e3,
            figures[1],
            figures[2],
        );
        for (sum, figure) in logarithms.iter_mut().zip(figures) {
            *sum += figure.ln();
        }
    }
    let [gain, more, processes] = logarithms.map(|sum| (sum / kernels.len() as f64).exp());
    println!(
        "geometric means of the gain, of the CPU time's growth and of the gain of processes that share nothing: \
         {gain:.2}, {more:.2}, {processes:.2}",
    );
}

/// The first argument of a process that runs a kernel again and again. The others are the code object and
/// the kernel.
const REPEAT: &str = "repeat";

/// Another process that runs a kernel on one thread, until this value is dropped.
struct Other(Child);

impl Other {
    /// Returns once the process has run the kernel.
    fn start(kernel: &Kernel, object: &Path) -> Self {
        let program = std::env::current_exe().expect("this program's path");
        let mut command = Command::new(program);
        command.args([REPEAT, text(object), kernel.name]);
        let mut process = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut output = process.stdout.take().expect("a pipe");
        output.read_exact(&mut [0]).expect("a run of the kernel");
        Self(process)
    }

    /// Runs a kernel until the process is killed.
    fn repeat(kernel: &Kernel, object: &Path) -> ! {
        let mut device = Device::new(kernel, object, 1);
        device.run(kernel);
        println!("ready");
        loop {
            device.run(kernel);
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("the process ends");
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches/speed")
        .join(name)
}

fn compile_host(directory: &Path) -> PathBuf {
    let program = directory.join("host");
    let source = source("host.cpp");
    tool(
        "clang++-22",
        &["-O2", "-std=c++20", text(&source), "-o", text(&program)],
    );
    program
}

fn compile_device(directory: &Path, target: Target) -> PathBuf {
    let object = directory.join(format!("{target}.co"));
    let source = source("kernels.hip");
    compile_hip(&source, target.name(), &["-O2", "-std=c++20"], &object);
    object
}

/// A program with a kernel's buffers.
struct Device {
    program: Program,
    launch: Launch,
    buffers: Vec<(u64, Vec<u8>)>,
}

impl Device {
    fn new(kernel: &Kernel, object: &Path, threads: usize) -> Self {
        let object = fs::read(object).expect("an object that was just linked");
        let mut program = Program::load(&object).expect("an object that was just linked");
        program.set_threads(threads);
        let mut buffers = Vec::new();
        let arguments = kernel
            .arguments
            .iter()
            .enumerate()
            .map(|(number, argument)| match *argument {
                Word(word) => Argument::Bytes(word.to_le_bytes().into()),
                Float(number) => Argument::Bytes(number.to_le_bytes().into()),
                buffer => {
                    let contents = contents(buffer, number as u64);
                    let address = program.arena_mut().allocate(&contents);
                    buffers.push((address, contents));
                    Argument::Pointer(address)
                }
            })
            .collect();
        let [x, y] = kernel.block;
        let launch = Launch {
            kernel: kernel.name.into(),
            grid: [kernel.grid[0] * x, kernel.grid[1] * y, 1],
            block: [x, y, 1],
            dynamic_lds: 0,
            arguments,
        };
        Self {
            program,
            launch,
            buffers,
        }
    }

    /// Runs the kernel on fresh buffers, and returns the CPU time of this thread and the executed
    /// instructions.
    fn run(&mut self, kernel: &Kernel) -> (Duration, u64) {
        for (address, contents) in &self.buffers {
            let written = self.program.arena_mut().write(*address, contents);
            written.expect("a mapped buffer");
        }
        let start = cpu_time(ClockId::ThreadCPUTime);
        let done = self.program.launch(&self.launch);
        let time = cpu_time(ClockId::ThreadCPUTime) - start;
        let done = done.unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        (time, done.instructions)
    }

    fn result(&self, kernel: &Kernel) -> Vec<u8> {
        let (address, contents) = &self.buffers[kernel.result];
        let result = self.program.arena().read(*address, contents.len() as u64);
        result.expect("a mapped buffer")
    }
}

fn measure(kernel: &Kernel, host: &Path, object: &Path, directory: &Path) -> Measured {
    let mut device = Device::new(kernel, object, 1);
    let path = |number: usize| directory.join(format!("{}-{number}", kernel.name));
    let result = directory.join("result");
    let mut words: Vec<String> = [kernel.grid, kernel.block]
        .concat()
        .iter()
        .map(u32::to_string)
        .collect();
    words.insert(0, kernel.name.into());
    words.extend([HOST_RUNS.to_string(), kernel.result.to_string()]);
    let mut buffers = device.buffers.iter().enumerate();
    for argument in kernel.arguments {
        words.push(match argument {
            Word(word) => format!("u:{word}"),
            Float(number) => format!("x:{number}"),
            _ => {
                let (number, (_, contents)) = buffers.next().expect("as many buffers");
                fs::write(path(number), contents).expect("a writable file");
                format!("f:{}", text(&path(number)))
            }
        });
    }
    let mut traced = Device::new(kernel, object, 1);
    traced.program.start_trace();
    let (mut on_host, mut on_model, mut on_traced) = (Vec::new(), Vec::new(), Vec::new());
    let mut instructions = 0;
    // The first run decodes the code.
    device.run(kernel);
    traced.run(kernel);
    for _ in 0..ROUNDS {
        let output = Command::new(host)
            .args(&words)
            .env("HOST_RESULT", &result)
            .output();
        let output = output.expect("the host's program starts");
        assert!(output.status.success(), "{words:?}: {}", output.status);
        let time = String::from_utf8_lossy(&output.stdout);
        on_host.push(Duration::from_nanos(time.trim().parse().expect("a time")));
        let (time, count) = device.run(kernel);
        on_model.push(time);
        on_traced.push(traced.run(kernel).0);
        instructions = count;
    }
    compare(
        kernel,
        &device.result(kernel),
        &fs::read(&result).expect("a result"),
    );
    Measured {
        host: median(on_host),
        model: median(on_model),
        traced: median(on_traced),
        instructions,
    }
}

/// Floats may differ in the last bits: the device has other functions, and fused multiply-adds.
fn compare(kernel: &Kernel, model: &[u8], host: &[u8]) {
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        match kernel.elements {
            Exact => bytes.iter().map(|byte| f64::from(*byte)).collect(),
            Single => bytes
                .chunks_exact(4)
                .map(|chunk| f32::from_le_bytes(chunk.try_into().expect("four bytes")).into())
                .collect(),
            Double => bytes
                .chunks_exact(8)
                .map(|chunk| f64::from_le_bytes(chunk.try_into().expect("eight bytes")))
                .collect(),
        }
    };
    let (model, host) = (numbers(model), numbers(host));
    assert_eq!(model.len(), host.len(), "{}", kernel.name);
    let largest = host
        .iter()
        .fold(0f64, |largest, number| largest.max(number.abs()));
    // An exact result has a tolerance of 0, but mandelbrot, whose loops end by a comparison of floats.
    let differing = model
        .iter()
        .zip(&host)
        .filter(|(a, b)| match kernel.elements {
            Exact => a != b,
            _ => (*a - *b).abs() > 1e-4 * largest,
        });
    let count = differing.count();
    let allowed = if kernel.name == "mandelbrot" {
        host.len() / 100
    } else {
        0
    };
    assert!(
        count <= allowed,
        "{}: {count} of {} differ",
        kernel.name,
        host.len()
    );
}

fn cpu_time(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A buffer's contents, equal on every run (Knuth's MMIX generator).
fn contents(buffer: Value, seed: u64) -> Vec<u8> {
    let mut state = seed + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let mut unit = || f64::from(next()) / f64::from(u32::MAX);
    match buffer {
        Floats(count, low, high) => (0..count)
            .flat_map(|_| (low + (high - low) * unit() as f32).to_le_bytes())
            .collect(),
        Doubles(count) => (0..count).flat_map(|_| unit().to_le_bytes()).collect(),
        Words(count) => (0..count).flat_map(|_| next().to_le_bytes()).collect(),
        Zeros(bytes) => vec![0; bytes],
        Word(_) | Float(_) => Vec::new(),
    }
}
