//! Runs kernels of a code object on the interpreter, without a driver or a HIP runtime.
//!
//! ```text
//! amdgcn-run OBJECT SPEC OUTDIR
//! amdgcn-run --decode OBJECT
//! amdgcn-run --modelled
//! amdgcn-run --simd
//! amdgcn-run --account
//! ```
//!
//! Each line of SPEC is `buf FILE` or `launch NAME GX GY GZ BX BY BZ ARG...`. `buf` adds a buffer
//! with the file's contents. `launch` runs a grid of GX*GY*GZ workgroups of BX*BY*BZ work-items. An
//! ARG is `pN`, the address of buffer N, counted from 0, or `h` and the hexadecimal bytes of a
//! value as they lie in memory. At the end the tool writes buffer N to OUTDIR/bufN.bin. If the code
//! object has a section bounds table, it also writes the profile to OUTDIR/dev.profraw, with the sums of
//! the counters and their copies.
//!
//! `--decode` prints the offset and the mnemonic of every instruction. `--modelled` prints the
//! mnemonics that the interpreter executes. `--account` prints, for each target, the number of
//! opcodes that LLVM knows, that the interpreter executes and that it refuses, with the reasons. If
//! `AMDGCN_RUN_STATISTICS` is set, the tool prints the number of instructions and their rate on
//! standard error. `AMDGCN_RUN_THREADS` is the number of threads that run a launch, 1 by default. `AMDGCN_RUN_SIMD` names
//! the host's vector instructions: `--simd` prints the names of those that this processor has.
//! `AMDGCN_RUN_EXECUTIONS` names a file for the executed instructions, one in each line: the offset, the number of
//! waves that executed it, the sum of their active lanes, and the mnemonic. If `AMDGCN_RUN_HAZARDS` is set, the tool
//! looks for results that code uses too early, and fails if there are any.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a tool for work on rocov, which may end if nobody reads it"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use modelgpu_amdgcn::memory::Arena;
use modelgpu_amdgcn::{Argument, Launch, Opcode, Program, Simd, Standing, Target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--decode", object] => decode(object),
        ["--modelled"] => {
            for mnemonic in modelgpu_amdgcn::modelled_instructions() {
                println!("{mnemonic}");
            }
            Ok(())
        }
        ["--simd"] => {
            for (name, _) in Simd::available() {
                println!("{name}");
            }
            Ok(())
        }
        ["--account"] => {
            for target in Target::ALL {
                account(target);
            }
            Ok(())
        }
        [object, spec, directory] => run(object, spec, Path::new(directory)),
        _ => Err(
            "usage: amdgcn-run OBJECT SPEC OUTDIR | --decode OBJECT | --modelled | --account | --simd"
                .into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("amdgcn-run: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprint!(": {cause}");
                source = cause.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

fn account(target: Target) {
    let opcodes = modelgpu_amdgcn::opcodes(target);
    let mut refused = BTreeMap::<&str, Vec<&str>>::new();
    let mut unknown = Vec::new();
    for Opcode {
        mnemonic, standing, ..
    } in &opcodes
    {
        match standing {
            Standing::Refused(reason) => refused.entry(reason).or_default().push(mnemonic),
            Standing::Executed => {}
            _ => unknown.push(*mnemonic),
        }
    }
    let count: usize = refused.values().map(Vec::len).sum();
    println!(
        "{target}: {} opcodes, {} executed, {count} refused, {} neither",
        opcodes.len(),
        opcodes.len() - count - unknown.len(),
        unknown.len()
    );
    for (reason, mnemonics) in refused {
        println!("  refused, {reason}: {}", mnemonics.join(" "));
    }
    if !unknown.is_empty() {
        println!("  neither: {}", unknown.join(" "));
    }
}

fn decode(object: &str) -> Result<(), Box<dyn Error>> {
    let program = Program::load(&read(object)?)?;
    for (pc, instruction) in program.disassemble() {
        let offset = pc - program.object().base;
        match instruction {
            Ok(listed) => println!("{offset:x} {}", listed.mnemonic),
            Err([first, second]) => println!("{offset:x} illegal {first:08x} {second:08x}"),
        }
    }
    Ok(())
}

fn run(object: &str, spec: &str, directory: &Path) -> Result<(), Box<dyn Error>> {
    let mut program = Program::load(&read(object)?)?;
    if let Some(threads) = std::env::var_os("AMDGCN_RUN_THREADS") {
        let threads = threads.to_string_lossy();
        let number = threads.parse();
        program
            .set_threads(number.map_err(|error| format!("AMDGCN_RUN_THREADS={threads}: {error}"))?);
    }
    if let Some(wanted) = std::env::var_os("AMDGCN_RUN_SIMD") {
        let levels = Simd::available();
        let level = levels.iter().find(|(name, _)| *name == wanted);
        let names: Vec<_> = levels.iter().map(|(name, _)| *name).collect();
        let (_, simd) = level.ok_or_else(|| {
            format!(
                "AMDGCN_RUN_SIMD={wanted:?}: this processor has {}",
                names.join(", ")
            )
        })?;
        program.set_simd(*simd);
    }
    let executions = std::env::var_os("AMDGCN_RUN_EXECUTIONS");
    if executions.is_some() {
        program.start_trace();
    }
    let watches = std::env::var_os("AMDGCN_RUN_HAZARDS").is_some();
    if watches {
        program.watch_hazards();
    }
    let spec = String::from_utf8(read(spec)?)?;
    let mut buffers: Vec<(u64, u64)> = Vec::new();
    let mut instructions = 0;
    let start = Instant::now();
    for (number, line) in spec.lines().enumerate() {
        let in_line = |problem: String| format!("line {}: {problem}", number + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["buf", file] => {
                let contents = read(file)?;
                let address = program.arena_mut().allocate(&contents);
                buffers.push((address, contents.len() as u64));
            }
            ["launch", kernel, ref rest @ ..] => {
                let launch = parse_launch(kernel, rest, &buffers).map_err(in_line)?;
                instructions += program.launch(&launch)?.instructions;
            }
            _ => return Err(in_line(format!("neither buf nor launch: {line:?}")).into()),
        }
    }
    for warning in program.warnings() {
        eprintln!("amdgcn-run: {warning}");
    }
    if let Some(file) = executions {
        std::fs::write(file, listed_executions(&program))?;
    }
    if std::env::var_os("AMDGCN_RUN_STATISTICS").is_some() {
        let seconds = start.elapsed().as_secs_f64();
        let rate = instructions as f64 / seconds / 1e6;
        eprintln!("{instructions} wave instructions in {seconds:.3} s, {rate:.2} million/s");
    }
    for (number, (address, len)) in buffers.into_iter().enumerate() {
        let contents = program.arena().read(address, len).unwrap_or_default();
        std::fs::write(directory.join(format!("buf{number}.bin")), contents)?;
    }
    if let Some(profile) = raw_profile(&program) {
        std::fs::write(directory.join("dev.profraw"), profile)?;
    }
    for hazard in program.hazards() {
        eprintln!("amdgcn-run: {hazard}");
    }
    if !program.hazards().is_empty() {
        return Err(format!("{} hazards", program.hazards().len()).into());
    }
    Ok(())
}

/// The executed instructions, by their places.
fn listed_executions(program: &Program) -> String {
    let mut executed = BTreeMap::new();
    for range in &program.object().code {
        let words = (range.end - range.start) / 4;
        if let Some(trace) = program.trace() {
            trace.read(range.start, words, |word, counts| {
                executed.insert(range.start + 4 * word, counts);
            });
        }
    }
    let mut lines = String::new();
    for (pc, instruction) in program.disassemble() {
        if let (Some(counts), Ok(listed)) = (executed.get(&pc), instruction) {
            let offset = pc - program.object().base;
            let (waves, lanes) = (counts.waves, counts.lanes);
            let second = listed.second.map(|second| format!("+{second}"));
            let (first, second) = (listed.mnemonic, second.unwrap_or_default());
            lines += &format!("{offset:x} {waves} {lanes} {first}{second}\n");
        }
    }
    lines
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{path}: {error}"))
}

fn parse_launch(kernel: &str, words: &[&str], buffers: &[(u64, u64)]) -> Result<Launch, String> {
    let (sizes, arguments) = words
        .split_at_checked(6)
        .ok_or_else(|| format!("launch {kernel}: six sizes are wanted"))?;
    let sizes = sizes
        .iter()
        .map(|word| {
            word.parse::<u32>()
                .map_err(|error| format!("size {word:?}: {error}"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let block = [sizes[3], sizes[4], sizes[5]];
    let grid = std::array::from_fn(|dimension| sizes[dimension].saturating_mul(block[dimension]));
    let arguments = arguments
        .iter()
        .map(|word| parse_argument(word, buffers))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Launch {
        kernel: kernel.to_owned(),
        grid,
        block,
        dynamic_lds: 0,
        arguments,
    })
}

fn parse_argument(word: &str, buffers: &[(u64, u64)]) -> Result<Argument, String> {
    let wrong = || format!("argument {word:?} is neither pN nor hHEX");
    if let Some(number) = word.strip_prefix('p') {
        let number: usize = number.parse().map_err(|_| wrong())?;
        let (address, _) = buffers
            .get(number)
            .ok_or_else(|| format!("no buffer {number}"))?;
        return Ok(Argument::Pointer(*address));
    }
    let digits = word.strip_prefix('h').ok_or_else(wrong)?.as_bytes();
    let byte = |pair: &[u8]| {
        let text = str::from_utf8(pair).ok()?;
        (pair.len() == 2).then(|| u8::from_str_radix(text, 16).ok())?
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    Ok(Argument::Bytes(bytes.ok_or_else(wrong)?))
}

/// The profile in device memory, in the raw version 10 layout (compiler-rt's InstrProfData.inc).
/// `None` without a readable section bounds table.
fn raw_profile(program: &Program) -> Option<Vec<u8>> {
    /// "\xfflprofr\x81", for 64-bit targets.
    const MAGIC: u64 = 0xff6c_7072_6f66_7281;
    const RECORD: u64 = 64;
    const LAST_VALUE_KIND: u64 = 2;
    let arena = program.arena();
    let table = program
        .object()
        .symbols
        .get("__llvm_profile_sections")?
        .address;
    let words = read_words(arena, table, 7)?;
    let [
        names,
        names_end,
        counters,
        counters_end,
        data,
        data_end,
        version,
    ] = words[..]
    else {
        return None;
    };
    let section = |start: u64, end: u64| arena.read(start, end.checked_sub(start)?);
    let header = [
        MAGIC,
        read_words(arena, version, 1)?[0],
        0, // binary ids
        (data_end - data) / RECORD,
        0, // padding before the counters
        (counters_end - counters) / 8,
        0, // padding after the counters
        0, // bitmap bytes
        0, // padding after the bitmap
        names_end - names,
        counters.wrapping_sub(data),
        data.wrapping_neg(), // the bitmap's place relative to the data: no bitmap
        names,
        0, // virtual tables
        0, // virtual table names
        LAST_VALUE_KIND,
    ];
    let mut profile: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    profile.extend(section(data, data_end)?);
    let mut counts = read_words(arena, counters, (counters_end - counters) / 8)?;
    if let Some(bounds) = program.object().symbols.get("__rocov_copies_bounds") {
        add_copies(arena, bounds.address, counters, &mut counts)?;
    }
    profile.extend(counts.iter().flat_map(|word| word.to_le_bytes()));
    profile.extend(section(names, names_end)?);
    profile.resize(profile.len().next_multiple_of(8), 0);
    Some(profile)
}

/// Adds the copies of counters that lie from address `counters` on. The words at `bounds` are the start
/// and stop of the tables (docs/src/internals/counter-copies.md).
fn add_copies(arena: &Arena, bounds: u64, counters: u64, counts: &mut [u64]) -> Option<()> {
    const HEADER: u64 = 32;
    let section = read_words(arena, bounds, 2)?;
    let mut at = section[0];
    while at < section[1] {
        let header = read_words(arena, at, HEADER / 8)?;
        let (size, area, area_end) = (header[1] >> 32, header[2], header[3]);
        let ranges = read_words(arena, at + HEADER, (size - HEADER) / 8)?;
        // The counter of each word of a copy.
        let words = ranges.chunks_exact(2);
        let words: Vec<u64> = words
            .flat_map(|pair| (pair[0]..pair[1]).step_by(8))
            .collect();
        let stride = (words.len() as u64 * 8).next_multiple_of(128);
        let mut copy = area;
        while stride > 0 && copy + stride <= area_end {
            let values = read_words(arena, copy, words.len() as u64)?;
            for (counter, value) in words.iter().zip(values) {
                let index = (counter - counters) / 8;
                let count = counts.get_mut(index as usize)?;
                *count = count.wrapping_add(value);
            }
            copy += stride;
        }
        at += size;
    }
    Some(())
}

fn read_words(arena: &Arena, address: u64, count: u64) -> Option<Vec<u64>> {
    let bytes = arena.read(address, 8 * count)?;
    let words = bytes.chunks_exact(8).map(|word| {
        word.iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))
    });
    Some(words.collect())
}
