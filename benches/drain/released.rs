//! Loads and exits of a program with LLVM's released drain, with rocov's, and without a drain: CPU time, and calls of HSA.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clock::{children_time, micros, millis};
use crate::support::artifacts::{built, repository};
use crate::support::compile::Compilation;
use crate::support::gpu::Stack;
use crate::support::released::{BAR, GPU, Released, device_profiles};

/// A kernel of templates.hip that takes two pointers and two numbers, the second of which is the
/// number of elements.
const KERNEL: &str = "_Z10polynomialIiLi2EEvPKT_PS0_S0_j";

/// Numbers of code objects, each with the number of runs. Only `--long` runs the last two.
const RUNS: [(usize, usize); 5] = [(1, 20), (10, 20), (100, 20), (500, 20), (1_000, 3)];

/// The numbers of code objects for which an exit with rocov is to take at most a part of the time of one with LLVM's
/// drain, and that part on HIP 7.2.4 and on 6.4.3: HIP 7.2.4 copies without a queue, as rocov does.
const LIMITED: [usize; 2] = [100, 500];
const LIMIT: f64 = 1.0;
const LIMIT_OF_6: f64 = 0.5;

/// The size of each array of counts in hsa_calls.cpp.
const SLOTS: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drain {
    None,
    Llvms,
    Rocovs,
}

const DRAINS: [Drain; 3] = [Drain::None, Drain::Llvms, Drain::Rocovs];

/// The program and its parts, built.
struct Exits {
    module: PathBuf,
    with_llvms: PathBuf,
    without: PathBuf,
    counter: PathBuf,
}

/// Prints a table for HIP 7.2.4 and 6.4.3 if they are unpacked, and clang 23 is too.
pub(crate) fn measure(is_long: bool) {
    let stacks = Stack::others().into_iter().rev();
    // These load code objects of clang 23.
    for stack in stacks.filter(|stack| stack.code_object_version() == 6) {
        if let Some(released) = Released::on(stack) {
            let (version, limit) = match stack.is_hip_7() {
                true => ("7.2.4", LIMIT),
                false => ("6.4.3", LIMIT_OF_6),
            };
            measure_on(version, limit, &Exits::build(released), is_long);
        }
    }
}

fn measure_on(version: &str, limit: f64, exits: &Exits, is_long: bool) {
    println!(
        "\nexits and loads on HIP {version} over the model, large BAR; CPU time beyond runs without a drain: ms of an exit,"
    );
    println!("us of each load by minima");
    println!(
        "    n  runs  LLVM: min  median  calls  rocov: min  median  calls  ratio: min  median  load: LLVM   rocov"
    );
    for (count, runs) in &RUNS[..RUNS.len() - if is_long { 0 } else { 2 }] {
        let mut times = DRAINS.map(|_| (Vec::new(), Vec::new()));
        for _ in 0..*runs {
            for (drain, (loads, ends)) in DRAINS.iter().zip(&mut times) {
                let (load, end) = exits.run(*drain, *count, None);
                loads.push(load);
                ends.push(end);
            }
        }
        let calls = DRAINS.map(|drain| exits.calls(drain, *count));
        let [before, with_llvms, with_rocovs] = times
            .each_ref()
            .map(|(loads, _)| loads.iter().min().map_or(0.0, |time| micros(*time)));
        let load = |drain: f64| (drain - before) / *count as f64;
        let [none, llvms, rocovs] = times.map(|(_, mut ends)| {
            ends.sort();
            [ends[0], ends[ends.len() / 2]].map(millis)
        });
        // Other load can make an exit without a drain look longer than one with it.
        let beyond = |drain: [f64; 2]| [0, 1].map(|at| (drain[at] - none[at]).max(0.0));
        let (llvms, rocovs) = (beyond(llvms), beyond(rocovs));
        let ratios = [0, 1].map(|at| rocovs[at] / llvms[at]);
        let per_object = |at: usize| (calls[at] as f64 - calls[0] as f64) / *count as f64;
        println!(
            "{count:>5} {runs:>5} {:>10.2} {:>7.2} {:>6.1} {:>11.2} {:>7.2} {:>6.1} {:>11} {:>7} {:>11.1} {:>7.1}",
            llvms[0],
            llvms[1],
            per_object(1),
            rocovs[0],
            rocovs[1],
            per_object(2),
            shown(ratios[0]),
            shown(ratios[1]),
            load(with_llvms),
            load(with_rocovs),
        );
        if LIMITED.contains(count) {
            let held = ratios.map(|ratio| match ratio {
                ratio if ratio <= limit => "held",
                ratio if ratio.is_finite() => "exceeded",
                _ => "not measurable",
            });
            println!(
                "      limit {limit}: {} by minima, {} by medians",
                held[0], held[1]
            );
        }
    }
}

impl Exits {
    fn build(released: Released) -> Self {
        let source = |name: &str| repository("testdata/programs/released").join(name);
        let object = released.compiled(&source("many.cpp"), &[], &[], "many.o");
        let counter = Compilation::by(released.clang.clang)
            .arguments(["-shared", "-fPIC", "-O1"])
            .source(source("hsa_calls.cpp"))
            .output("hsa_calls.so");
        let templates = repository("testdata/kernels/templates.hip");
        let module = released.code_object(&templates, &[], "templates.module");
        let objects = [object];
        Self {
            module,
            with_llvms: released.linked_with_drain(&objects, &[], "many-llvm"),
            without: released.linked(&objects, &[], "many"),
            counter,
        }
    }

    /// The CPU time of a process up to the end of main, and from there on, with calls counted in a file, if any.
    fn run(&self, drain: Drain, count: usize, calls: Option<&Path>) -> (Duration, Duration) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let counter = calls.map(|_| self.counter.clone());
        let librocov = (drain == Drain::Rocovs).then(|| built("librocov.so"));
        let preloaded = [built("librocov_modelgpu.so")]
            .into_iter()
            .chain(counter)
            .chain(librocov);
        // Not by way of other programs: their time would count too.
        let mut command = Command::new(match drain {
            Drain::Llvms => &self.with_llvms,
            Drain::None | Drain::Rocovs => &self.without,
        });
        command
            .env(
                "LD_PRELOAD",
                std::env::join_paths(preloaded).expect("paths of ours"),
            )
            .env("LLVM_PROFILE_FILE", data.join("%p.profraw"))
            .envs([("ROCOV_MODELGPU", GPU), (BAR, "large")]);
        command.arg(&self.module).args([KERNEL, &count.to_string()]);
        if let Some(calls) = calls {
            command
                .env("HSA_CALLS", calls)
                .env("HSA_TOOLS_LIB", &self.counter);
        }
        // LLVM's drain prints a line for each module that stays loaded.
        let start = children_time();
        let output = command.stderr(Stdio::null()).output().expect("a program");
        let all = children_time() - start;
        assert!(output.status.success(), "{command:?}: {}", output.status);
        let text = String::from_utf8(output.stdout).expect("text");
        let main: u64 = text.trim().parse().expect("a number of nanoseconds");
        let expected = if drain == Drain::None { 0 } else { count };
        assert_eq!(device_profiles(&data).len(), expected, "{command:?}");
        let main = Duration::from_nanos(main);
        (main, all.saturating_sub(main))
    }

    /// Calls of HSA from the end of main to the end of the process.
    fn calls(&self, drain: Drain, count: usize) -> u64 {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let empty = [0; 2 * SLOTS * size_of::<u64>()];
        fs::write(file.path(), empty).expect("room on the disk");
        self.run(drain, count, Some(file.path()));
        let bytes = fs::read(file.path()).expect("the counts");
        let (at_end, before) = bytes.split_at(SLOTS * size_of::<u64>());
        sum(at_end) - sum(before)
    }
}

/// A ratio, if its divisor could be measured.
fn shown(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("{ratio:.3}")
    } else {
        "-".to_owned()
    }
}

/// The sum of an array in a file of hsa_calls.cpp.
fn sum(counts: &[u8]) -> u64 {
    let (counts, _) = counts.as_chunks();
    counts.iter().copied().map(u64::from_ne_bytes).sum()
}
