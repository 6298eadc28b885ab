//! `rocov run --trace` counts what the modelled GPU executes in programs without counters. The expected numbers follow
//! from the source and the size of each launch; llvm-objdump tells where instructions are, and llvm-profdata reads the
//! counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::format::blocks::Kind;

use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::compile::device_only;
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::profile::{Functions, functions};
use crate::support::program::{Program, TARGET, device_profiles};

const KERNELS: &str = "traced/kernels.hip";

/// Waves and lanes.
type Executed = (u64, u64);

/// The instructions of each function of a device ELF, by llvm-objdump: the word that each starts at, and its text.
fn disassembled(elf: &Path) -> BTreeMap<String, Vec<(usize, String)>> {
    let mut objdump = limited(Compiler::usual().tool("llvm-objdump"));
    objdump.arg("--disassemble").arg(elf);
    let text = run(&mut objdump).success().silently().stdout;
    let mut found: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    let (mut name, mut start) = (String::new(), 0);
    for line in text.lines() {
        if let Some((address, symbol)) = line
            .strip_suffix(">:")
            .and_then(|rest| rest.split_once(" <"))
        {
            (name, start) = (symbol.to_owned(), hexadecimal(address));
        } else if let Some((instruction, code)) = line.split_once("//") {
            let (address, _) = code.trim().split_once(':').expect("an address");
            let word = (hexadecimal(address) - start) / 4;
            let instruction = instruction.trim().to_owned();
            found
                .entry(name.clone())
                .or_default()
                .push((word, instruction));
        }
    }
    found
}

fn hexadecimal(text: &str) -> usize {
    usize::from_str_radix(text, 16).expect("hexadecimal digits")
}

/// A run that has ended.
struct Traced {
    data: PathBuf,
    counts: Functions,
}

impl Traced {
    fn read(data: PathBuf) -> Self {
        let profiles = device_profiles(&data);
        let [profile] = profiles.as_slice() else {
            panic!("{profiles:?}");
        };
        let counts = functions(profile);
        Self { data, counts }
    }

    /// The device ELF that rocov has kept for the report.
    fn elf(&self) -> PathBuf {
        let mut objects: Vec<_> = std::fs::read_dir(self.data.join("objects"))
            .expect("device ELFs")
            .map(|entry| entry.expect("an ELF").path())
            .collect();
        assert_eq!(objects.len(), 1, "{objects:?}");
        objects.remove(0)
    }

    /// The executions of each word of a function.
    fn words(&self, function: &str) -> Vec<Executed> {
        let record = &self.counts[&Kind::Trace.record_name(function)];
        let counters = [&[record.calls], record.blocks.as_slice()].concat();
        counters
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect()
    }

    /// The executions of the only instruction with this text.
    fn at(&self, function: &str, instruction: &str) -> Executed {
        let all = &disassembled(&self.elf())[function];
        let found: Vec<_> = all.iter().filter(|(_, text)| text == instruction).collect();
        let [(word, _)] = found.as_slice() else {
            panic!("{instruction} in {all:?}");
        };
        self.words(function)[*word]
    }

    /// Checks that a function without branches has executed all instructions up to its end equally often.
    #[track_caller]
    fn is_straight(&self, function: &str, executed: Executed) {
        let instructions = &disassembled(&self.elf())[function];
        let end = instructions
            .iter()
            .position(|(_, text)| text == "s_endpgm")
            .expect("an end");
        let starts: Vec<usize> = instructions[..=end].iter().map(|(word, _)| *word).collect();
        let words = self.words(function).into_iter().enumerate();
        for (word, found) in words {
            let expected = if starts.contains(&word) {
                executed
            } else {
                (0, 0)
            };
            assert_eq!(
                found, expected,
                "word {word} of {function}: {instructions:?}"
            );
        }
    }
}

/// A program without rocov's flags.
fn plain(stack: Stack, source: &str, more: &[&str]) -> Program {
    Program::with_flags(stack, &[source], &[], more, &[])
}

/// `rocov run --trace` of a program.
fn traced(program: &Path, data: &Path) -> Command {
    let mut command = limited(built("rocov"));
    command.args(["run", "--trace", "--gpu", &format!("model:{TARGET}"), "-o"]);
    command.arg(data).arg("--").arg(program);
    command
}

#[test]
fn each_instruction_has_its_waves_and_lanes() {
    for stack in Stack::for_programs() {
        // Line tables change no instruction.
        for debug in ["-g0", "-gline-tables-only"] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let data = directory.path().join("data");
            let program = plain(stack, KERNELS, &[debug]).file;
            run(&mut traced(&program, &data)).success();
            let run = Traced::read(data);
            // 10 groups of 100 work-items: a wave of 64 lanes, and one of 36.
            run.is_straight("_Z8straightPi", (20, 1000));
            // 16 waves, with 16 lanes in the branch, and all of them after it.
            assert_eq!(run.at("_Z6branchPi", "s_nop 1"), (16, 16 * 16));
            assert_eq!(run.at("_Z6branchPi", "s_nop 2"), (16, 16 * 64));
            // 4 waves take 20 turns. Lane n takes n of them, and 20 at most.
            let turns: u64 = (0..64).map(|lane| lane.min(20)).sum();
            assert_eq!(run.at("_Z5turnsPii", "s_nop 3"), (4 * 20, 4 * turns));
            // Half of the lanes of 8 waves.
            assert_eq!(run.at("_Z6calledi", "s_nop 4"), (8, 8 * 32));
            assert_eq!(run.words("_Z6calledi")[0], (8, 8 * 32));
            assert_eq!(run.words("_Z5callsPi")[0], (8, 8 * 64));
            let never = run.words("_Z14never_launchedPi");
            assert!(never.iter().all(|word| *word == (0, 0)), "{never:?}");
        }
    }
}

/// One profile has both: clang's count of a function is that of the lanes at its first instruction.
#[test]
fn clang_counts_the_lanes_at_the_first_instruction() {
    let stack = Stack::usual();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let program = Program::build(stack, &[KERNELS], &[], &[]).file;
    run(&mut traced(&program, &data)).success();
    let run = Traced::read(data);
    let mut compared = 0;
    for (name, record) in &run.counts {
        let is_kernel = name.starts_with("_Z");
        if is_kernel {
            assert_eq!(run.words(name)[0].1, record.calls, "{name}");
            compared += usize::from(record.calls > 0);
        }
    }
    assert_eq!(compared, 5, "{:?}", run.counts.keys());
}

/// Two code objects lie at one address, one after the other, and each has its own counts.
#[test]
fn code_that_is_unloaded_keeps_its_counts() {
    let stack = Stack::usual();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let object = |number: &str| {
        device_only(
            stack.compiler().clang,
            &[TARGET],
            stack.code_object_version(),
        )
        .arguments(["-O1", &format!("-DNUMBER={number}")])
        .source(repository("testdata/programs/traced/module.hip"))
        .output("traced-module")
    };
    let (one, two) = (object("1"), object("2"));
    let mut command = traced(&plain(stack, "traced/modules.hip", &["-ldl"]).file, &data);
    for (object, groups) in [(&one, "3"), (&two, "5"), (&one, "7")] {
        command.arg("load").arg(object);
        command.args(["launch", groups, "unload"]);
    }
    command.arg("load").arg(&two);
    command.args(["launch", "11", "reset", "launch", "13"]);
    run(command.env("ROCOV_REGISTRY", "always")).success();

    let registries = std::fs::read_dir(data.join("registry")).expect("a registry");
    let registry = registries.last().expect("one").expect("an entry").path();
    let registry = json(std::fs::read_to_string(registry).expect("text"));
    let loads = registry["processes"][0]["loads"].as_array().expect("loads");
    let places: Vec<&str> = loads
        .iter()
        .filter(|load| load["profile"].is_string())
        .map(|load| load["base"].as_str().expect("an address"))
        .collect();
    assert_eq!(places.len(), 4, "{loads:?}");
    // The first load makes the runtime's own objects, so later ones come elsewhere.
    let again = &places[1..];
    assert!(again.iter().all(|place| *place == again[0]), "{places:?}");

    // Waves of each code object, and lanes.
    let profiles = device_profiles(&data);
    let mut first: Vec<Executed> = profiles
        .iter()
        .map(|profile| {
            let record = &functions(profile)[&Kind::Trace.record_name("only")];
            (record.calls, record.blocks[0])
        })
        .collect();
    first.sort_unstable();
    assert_eq!(first, [(3 + 7, 64 * (3 + 7)), (5 + 13, 64 * (5 + 13))]);
}

/// A profile has counters of one size.
#[test]
fn counters_of_single_bytes_stay_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let program = Program::build(Stack::usual(), &[KERNELS], &["--counters=reached"], &[]);
    run(&mut traced(&program.file, &data)).success().says(&[
        "its executed instructions are not counted: its counters have one byte each",
        "compile it with counters of 8 bytes",
    ]);
    let run = Traced::read(data);
    assert!(run.counts.keys().all(|name| Kind::split(name).is_none()));
    assert_eq!(run.counts["_Z8straightPi"].calls, 1);
}

/// All processes of a pool add to one file.
#[test]
fn pools_add_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let program = plain(Stack::usual(), KERNELS, &[]);
    for _ in 0..3 {
        let mut command = program.with_pattern(TARGET, &data.join("profraw/%m.profraw"));
        run(command
            .env("ROCOV_MODELGPU_TRACE", "1")
            .env("ROCOV_DATA", &data))
        .success();
    }
    let run = Traced::read(data);
    run.is_straight("_Z8straightPi", (3 * 20, 3 * 1000));
}
