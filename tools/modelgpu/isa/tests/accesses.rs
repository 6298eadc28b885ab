//! Compares the registers of random instructions with those that llvm-mc names in its disassembly.
//!
//! All named registers must be accesses. Other accesses must be implied: VCC, EXEC and M0. Images are the exception:
//! the number of their addresses depends on more than the encoding, so that there may be more accesses.

#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use modelgpu_isa::{Accesses, File, Generation, Instruction, Target, WaveSize, decode, opcodes};

/// Random words of a target, and the most instructions of a mnemonic among them.
const DRAWS: usize = 1_500_000;
const SAMPLES: usize = 12;

type Registers = BTreeSet<(File, u16)>;

/// The registers that accesses name.
fn registers(accesses: Accesses) -> Registers {
    accesses
        .flat_map(|access| {
            let numbers = access.first..access.first + u16::from(access.count);
            numbers.map(move |number| (access.file, number))
        })
        .collect()
}

/// The registers that a disassembled instruction names.
fn named(text: &str, is_gfx9: bool) -> Registers {
    let words =
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_[]:.".contains(letter));
    words.flat_map(|word| range(word, is_gfx9)).collect()
}

/// The registers of a word of a disassembly.
fn range(word: &str, is_gfx9: bool) -> Vec<(File, u16)> {
    let of_scalars = |numbers: std::ops::Range<u16>| {
        numbers
            .map(|number| (File::Scalar, number))
            .collect::<Vec<_>>()
    };
    match word {
        "vcc" => return of_scalars(106..108),
        "vcc_lo" => return of_scalars(106..107),
        "vcc_hi" => return of_scalars(107..108),
        "exec" => return of_scalars(126..128),
        "exec_lo" => return of_scalars(126..127),
        "exec_hi" => return of_scalars(127..128),
        "m0" => return of_scalars(124..125),
        "flat_scratch" if is_gfx9 => return of_scalars(102..104),
        "flat_scratch_lo" if is_gfx9 => return of_scalars(102..103),
        "flat_scratch_hi" if is_gfx9 => return of_scalars(103..104),
        "xnack_mask" if is_gfx9 => return of_scalars(104..106),
        "xnack_mask_lo" if is_gfx9 => return of_scalars(104..105),
        "xnack_mask_hi" if is_gfx9 => return of_scalars(105..106),
        _ => {}
    }
    let word = word.trim_end_matches(".l").trim_end_matches(".h");
    let (file, base, rest) = if let Some(rest) = word.strip_prefix("ttmp") {
        (File::Scalar, 108, rest)
    } else if let Some(rest) = word.strip_prefix('v') {
        (File::Vector, 0, rest)
    } else if let Some(rest) = word.strip_prefix('s') {
        (File::Scalar, 0, rest)
    } else if let Some(rest) = word.strip_prefix('a') {
        (File::Accumulator, 0, rest)
    } else {
        return Vec::new();
    };
    let inner = rest
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let ends = match inner {
        Some(inner) => inner.split_once(':').unwrap_or((inner, inner)),
        None => (rest, rest),
    };
    match (ends.0.parse::<u16>(), ends.1.parse::<u16>()) {
        (Ok(first), Ok(last)) => (first..=last).map(|number| (file, base + number)).collect(),
        _ => Vec::new(),
    }
}

/// The first six bits of the encodings that are modelled.
fn prefixes(target: Target) -> Vec<u32> {
    let mut found: Vec<u32> = (0x20..0x40).collect();
    // Short vector instructions have half of all words.
    found.extend([0, 5, 10, 15, 20, 25, 30, 31, 31, 31]);
    // Those with many opcodes.
    let many: &[u32] = match target.generation() {
        Generation::Gfx9 => &[0x34, 0x34, 0x34, 0x36, 0x37, 0x38, 0x2f],
        _ => &[
            0x35, 0x35, 0x35, 0x33, 0x36, 0x37, 0x38, 0x2f, 0x31, 0x34, 0x3b,
        ],
    };
    for _ in 0..4 {
        found.extend(many);
    }
    found
}

/// Returns whether one of the two factors of a matrix instruction of CDNA is a constant, by its second word.
/// llvm-mc 22 crashes at most of these, and each crash takes twenty runs of it to find.
fn has_constant_factor(mnemonic: &str, word: u32) -> bool {
    const VECTORS: u32 = 1 << 8 | 1 << 17;
    let is_matrix = mnemonic.starts_with("v_mfma_") || mnemonic.starts_with("v_smfmac_");
    is_matrix && word & VECTORS != VECTORS
}

/// Random instructions that the decoder accepts.
fn samples(target: Target) -> Vec<(Vec<u8>, Instruction)> {
    let mut random = fastrand::Rng::with_seed(target as u64 + 1);
    let prefixes = prefixes(target);
    let mut found = Vec::new();
    let mut numbers: BTreeMap<(&str, u8), usize> = BTreeMap::new();
    for _ in 0..DRAWS {
        let sparse = random.u8(0..4);
        let mut words: [u32; 4] = std::array::from_fn(|_| random.u32(..));
        // Many fields must be 0.
        for word in &mut words {
            for _ in 0..sparse {
                *word &= random.u32(..);
            }
        }
        let opcode = random.u32(..) & 0x03ff_0000;
        let low = match random.bool() {
            true => words[0] & 0x03ff_ffff,
            false => words[0] & 0xffff | opcode,
        };
        words[0] = random.choice(&prefixes).expect("a prefix") << 26 | low;
        // All of the segments, and no other flag.
        if target.generation() != Generation::Gfx9 && random.u8(0..8) == 0 {
            words[1] |= 0x7c << 16;
        }
        let Ok(instruction) = decode(words, target) else {
            continue;
        };
        // LLVM has an accumulation register for the number of a semaphore.
        let is_semaphore = instruction.mnemonic.starts_with("ds_gws_");
        if is_semaphore || has_constant_factor(instruction.mnemonic, words[1]) {
            continue;
        }
        let number = numbers
            .entry((instruction.mnemonic, instruction.size))
            .or_default();
        *number += 1;
        if *number > SAMPLES {
            continue;
        }
        if target != Target::Gfx90a || !instruction.mnemonic.starts_with("image_") {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            found.push((bytes.take(instruction.size.into()).collect(), instruction));
        }
    }
    found
}

/// The disassembly of each instruction that LLVM accepts.
fn disassemble(
    target: Target,
    wave: WaveSize,
    samples: &[(Vec<u8>, Instruction)],
) -> BTreeMap<Vec<u8>, String> {
    let features = match (target, wave) {
        (Target::Gfx1201, WaveSize::W32) | (Target::Gfx1250, _) => "-mattr=+real-true16",
        (Target::Gfx1201, WaveSize::W64) => "-mattr=+real-true16,-wavefrontsize32,+wavefrontsize64",
        (Target::Gfx1030 | Target::Gfx1100, WaveSize::W64) => {
            "-mattr=-wavefrontsize32,+wavefrontsize64"
        }
        _ => "-mattr=",
    };
    let mut child = Command::new("llvm-mc-22")
        .args(["-triple=amdgcn", "-disassemble", "-show-encoding", features])
        .arg(format!("-mcpu={target}"))
        .env("LLVM_DISABLE_SYMBOLIZATION", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("llvm-mc-22 can be run");
    let mut input = child.stdin.take().expect("a pipe");
    let text: String = samples
        .iter()
        .map(|(bytes, _)| {
            let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
            format!("[{}]\n", bytes.join(" "))
        })
        .collect();
    let writer = thread::spawn(move || input.write_all(text.as_bytes()).expect("it reads"));
    let output = child.wait_with_output().expect("it ends");
    if !output.status.success() && output.status.code().is_none() {
        // LLVM 22 crashes at some encodings.
        return match samples {
            [] | [_] => BTreeMap::new(),
            _ => {
                let (first, last) = samples.split_at(samples.len() / 2);
                let mut both = disassemble(target, wave, first);
                both.extend(disassemble(target, wave, last));
                both
            }
        };
    }
    writer.join().expect("all is written");
    let output = String::from_utf8(output.stdout).expect("UTF-8");
    output
        .lines()
        .filter_map(|line| {
            let (text, rest) = line.split_once(" encoding: [")?;
            let bytes = rest.trim_end_matches(']').split(',');
            let bytes =
                bytes.map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16).ok());
            let text = text.trim_end_matches([' ', ';']).trim();
            Some((bytes.collect::<Option<_>>()?, text.to_owned()))
        })
        .collect()
}

#[test]
fn accesses_are_the_registers_that_llvm_names() {
    // The older targets have nearly all of their instructions from gfx90a.
    let has_all = std::env::var("ROCOV_TEST_LEVELS").is_ok_and(|levels| levels == "all");
    let is_older =
        |target: Target| target.generation() == Generation::Gfx9 && !target.has_unified_registers();
    let targets = Target::ALL.into_iter();
    let targets = targets.filter(|target| has_all || !is_older(*target));
    let cases = targets.flat_map(|target| {
        let waves: &[WaveSize] = match target.generation() {
            Generation::Gfx9 => &[WaveSize::W64],
            _ if target.has_wave32_only() => &[WaveSize::W32],
            // The widths of masks are RDNA 3's.
            Generation::Gfx10 if !has_all => &[WaveSize::W32],
            _ => &[WaveSize::W32, WaveSize::W64],
        };
        waves.iter().map(move |wave| (target, *wave))
    });
    let mut wrong: BTreeMap<(&str, String), String> = BTreeMap::new();
    for (target, wave) in cases {
        let samples = samples(target);
        let expected: BTreeMap<_, _> = samples
            .chunks(1000)
            .flat_map(|samples| disassemble(target, wave, samples))
            .collect();
        let mut compared = BTreeSet::new();
        for (bytes, instruction) in &samples {
            let Some(text) = expected.get(bytes) else {
                continue;
            };
            // LLVM does not reject all registers of a wrong file.
            if text.contains("Invalid") {
                continue;
            }
            compared.insert(instruction.mnemonic);
            // The name of a flag of images is a register's.
            let text = match instruction.mnemonic.starts_with("image_") {
                true => text.replace(" a16", ""),
                false => text.clone(),
            };
            let named = named(&text, target.generation() == Generation::Gfx9);
            // LLVM reads the bit of gfx90a for accumulation registers on older targets, too.
            let is_misread = is_older(target) && instruction.mnemonic.starts_with("flat_atomic_");
            if is_misread && named.iter().any(|(file, _)| *file == File::Accumulator) {
                continue;
            }
            let found = registers(instruction.accesses(wave));
            let is_implied = |(file, number): &(File, u16)| {
                *file == File::Scalar && matches!(number, 106 | 107 | 124 | 126 | 127)
            };
            let is_image = instruction.mnemonic.starts_with("image_");
            let extra: Registers = found.difference(&named).copied().collect();
            let missing: Registers = named.difference(&found).copied().collect();
            if !missing.is_empty() || !is_image && !extra.iter().all(is_implied) {
                wrong
                    .entry((instruction.mnemonic, format!("{target} {wave:?}")))
                    .or_insert_with(|| format!("{text}: missing {missing:?}, extra {extra:?}"));
            }
        }
        let all: BTreeSet<&str> = opcodes(target).map(|(_, _, mnemonic)| mnemonic).collect();
        println!(
            "{target} {wave:?}: {} of {} mnemonics",
            compared.len(),
            all.len()
        );
        assert!(compared.len() * 2 > all.len(), "{target}");
    }
    let lines: Vec<_> = wrong
        .iter()
        .map(|((mnemonic, case), what)| format!("{case} {mnemonic}: {what}"))
        .collect();
    assert!(
        lines.is_empty(),
        "{} wrong:\n{}",
        lines.len(),
        lines.join("\n")
    );
}
