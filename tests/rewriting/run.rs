//! A code object on the interpreter: what is in its buffers afterwards, and what it executed.

use std::collections::BTreeMap;
use std::path::Path;

use modelgpu_amdgcn::{Argument, Launch, Program, Statistics};
use rocov::format::codeobject::CodeObject;
use rocov::instrument::amdgcn::{AmdgcnOptions, CounterMap, Instrumented, instrument};
use rocov::support::counting::Counting;

/// The buffers and the program after a run.
pub(crate) struct Left {
    pub(crate) buffers: Vec<Vec<u8>>,
    pub(crate) program: Program,
    pub(crate) instructions: u64,
}

/// The waves and the lanes of each instruction that was executed, by ELF address.
pub(crate) type Counts = BTreeMap<u64, (u64, u64)>;

/// Runs the launches of a spec as `expand` writes it.
pub(crate) fn run(object: &[u8], spec: &Path, is_traced: bool) -> Left {
    run_with(object, spec, is_traced, |program, launch| {
        let statistics: Statistics = program.launch(launch).map_err(|error| error.to_string())?;
        Ok(statistics.instructions)
    })
}

/// As [`run`], but a trap ends the waves of all launches.
pub(crate) fn run_into_traps(object: &[u8], spec: &Path, is_traced: bool) -> Left {
    run_with(object, spec, is_traced, |program, launch| {
        match program.launch(launch) {
            Err(error) if error.to_string().contains("s_trap") => Ok(0),
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("no wave traps".to_owned()),
        }
    })
}

fn run_with(
    object: &[u8],
    spec: &Path,
    is_traced: bool,
    run: impl Fn(&mut Program, &Launch) -> Result<u64, String>,
) -> Left {
    let mut program = Program::load(object).expect("an object that was just made");
    program.watch_hazards();
    if is_traced {
        program.start_trace();
    }
    let spec = std::fs::read_to_string(spec).expect("an expanded spec");
    let mut buffers: Vec<(u64, u64)> = Vec::new();
    let mut instructions = 0;
    for line in spec.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["buf", file] => {
                let contents = std::fs::read(file).expect("the file of a buffer");
                let address = program.arena_mut().allocate(&contents);
                buffers.push((address, contents.len() as u64));
            }
            ["launch", kernel, rest @ ..] => {
                let launch = launch(kernel, rest, &buffers);
                let executed = run(&mut program, &launch);
                instructions += executed.unwrap_or_else(|error| panic!("{line}: {error}"));
            }
            _ => panic!("{line}"),
        }
    }
    let buffers = buffers.into_iter().map(|(address, len)| {
        let contents = program.arena().read(address, len);
        contents.expect("a buffer")
    });
    Left {
        buffers: buffers.collect(),
        instructions,
        program,
    }
}

fn launch(kernel: &str, words: &[&str], buffers: &[(u64, u64)]) -> Launch {
    let (sizes, arguments) = words.split_at(6);
    let sizes: Vec<u32> = sizes
        .iter()
        .map(|word| word.parse().expect("a size"))
        .collect();
    let block = [sizes[3], sizes[4], sizes[5]];
    let arguments = arguments.iter().map(|word| match word.strip_prefix('p') {
        Some(number) => Argument::Pointer(buffers[number.parse::<usize>().expect("a number")].0),
        None => Argument::Bytes(hex(word.strip_prefix('h').expect("bytes"))),
    });
    Launch {
        kernel: kernel.to_owned(),
        grid: std::array::from_fn(|dimension| sizes[dimension] * block[dimension]),
        block,
        dynamic_lds: 0,
        arguments: arguments.collect(),
    }
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let text = str::from_utf8(pair).expect("digits");
        u8::from_str_radix(text, 16).expect("two digits")
    };
    pairs.map(byte).collect()
}

/// The functions of a code object: their addresses and sizes in words.
fn functions(object: &[u8]) -> Vec<(u64, u64)> {
    let parsed = CodeObject::parse(object).expect("an object");
    let functions = parsed.functions().expect("its functions").into_iter();
    functions
        .map(|function| (function.address, function.code.len() as u64 / 4))
        .collect()
}

/// The counts of the model's trace.
pub(crate) fn traced(object: &[u8], left: &Left) -> Counts {
    let base = left.program.object().base;
    let trace = left.program.trace().expect("a trace");
    let mut counts = Counts::new();
    for (address, words) in functions(object) {
        trace.read(base + address, words, |word, executed| {
            if executed.waves > 0 {
                counts.insert(address + 4 * word, (executed.waves, executed.lanes));
            }
        });
    }
    counts
}

/// The counts of counters in memory.
pub(crate) fn counted(rewritten: &[u8], left: &Left) -> Counts {
    let map = CounterMap::find(rewritten).expect("a whole map");
    let map = map.expect("a rewritten object");
    let base = left.program.object().base;
    let (address, words) = map.counters();
    let bytes = left.program.arena().read(base + address, 8 * words);
    let values: Vec<u64> = bytes
        .expect("counters in memory")
        .as_chunks()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .collect();
    let executed = map.executed(&values);
    let mut counts = Counts::new();
    for (address, words) in functions(map.original()) {
        let mut pairs = vec![0; 2 * words as usize];
        executed.count(address, &mut pairs).expect("a whole map");
        for (word, pair) in pairs.as_chunks::<2>().0.iter().enumerate() {
            if pair[0] > 0 {
                counts.insert(address + 4 * word as u64, (pair[0], pair[1]));
            }
        }
    }
    counts
}

/// The processor time of this process, of all threads and with that of the system, in seconds.
pub(crate) fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Requires that no instruction uses a result too early: compilers add all waits, and rewritten code must have its own.
fn compare_hazards(name: &str, plain: &Left, rewritten: &Left) {
    for (title, left) in [("plain", plain), ("rewritten", rewritten)] {
        let hazards = left.program.hazards();
        let texts: Vec<String> = hazards
            .iter()
            .take(4)
            .map(|hazard| hazard.to_string())
            .collect();
        assert!(
            texts.is_empty(),
            "{name}: {} hazards in the {title} code:\n{}",
            hazards.len(),
            texts.join("\n")
        );
    }
}

/// Runs an object plain and rewritten, and compares all that both left. Returns the instructions executed by both.
pub(crate) fn compare(
    name: &str,
    object: &[u8],
    spec: &Path,
    options: &AmdgcnOptions,
) -> (u64, u64) {
    compare_without(&[], name, object, spec, options)
}

/// As [`compare`], but these functions must be refused.
pub(crate) fn compare_without(
    refused: &[&str],
    name: &str,
    object: &[u8],
    spec: &Path,
    options: &AmdgcnOptions,
) -> (u64, u64) {
    let made = instrument(object, options);
    let made = made.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    compare_made(refused, name, object, &made, spec, options)
}

/// As [`compare_without`], with the rewritten object.
pub(crate) fn compare_made(
    refused: &[&str],
    name: &str,
    object: &[u8],
    made: &Instrumented,
    spec: &Path,
    options: &AmdgcnOptions,
) -> (u64, u64) {
    let plain = run(object, spec, true);
    let names: Vec<&str> = made.refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, refused, "{name}: {:?}", made.refused);
    let rewritten = run(&made.code, spec, false);
    compare_hazards(name, &plain, &rewritten);
    assert!(
        plain.buffers == rewritten.buffers,
        "{name}: the rewritten kernel left other bytes"
    );
    let (mut expected, mut found) = (traced(object, &plain), counted(&made.code, &rewritten));
    let parsed = CodeObject::parse(object).expect("an object");
    for function in parsed.functions().expect("its functions") {
        if refused.contains(&function.name) {
            let end = function.address + function.code.len() as u64;
            expected.retain(|address, _| !(function.address..end).contains(address));
        }
    }
    if options.counting == Counting::Reached {
        let reached = |(waves, lanes): &mut (u64, u64)| {
            (*waves, *lanes) = ((*waves).min(1), (*lanes).min(1));
        };
        expected.values_mut().for_each(reached);
        found.values_mut().for_each(reached);
    }
    let addresses = expected.keys().chain(found.keys());
    let wrong: std::collections::BTreeSet<&u64> = addresses
        .filter(|address| expected.get(address) != found.get(address))
        .collect();
    let first: Vec<String> = wrong
        .iter()
        .take(12)
        .map(|address| {
            let (trace, counter) = (expected.get(address), found.get(address));
            format!("{address:#x}: trace {trace:?}, counters {counter:?}")
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{name}: {} of {} instructions differ:\n{}",
        wrong.len(),
        expected.len(),
        first.join("\n")
    );
    (plain.instructions, rewritten.instructions)
}
