//! Real code objects with damage. llvm-profdata reads every profile of one; without a profile, a
//! message gives the reason; and the code object loaded together with it loses nothing.
//!
//! The mutations change headers in the ELF, and in device memory the section bounds table, data
//! records, version word, names and counters. [`SEEDS`] runs more seeds than the default.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use rocov::drain::Session;
use rocov::format::profraw::{Header, RawProfile, SavedSections, Version};

use crate::support::command::run;
use crate::support::fake_device::FakeDevice;
use crate::versions::{FRONT_END, OLD, compiled_source};
use crate::{FIRST, SECOND, collatz, profile_name};

/// The seeds to test, as `FIRST..END`.
const SEEDS: &str = "ROCOV_TEST_MUTANTS";
const USUAL: std::ops::Range<u64> = 0..400;

/// Two functions, one of them with two conditions. The source needs no header, so any clang
/// compiles it.
const SOURCE: &str = "__attribute__((global)) void branch(int *p) { if (p[0]) p[1] = 2; }
__attribute__((global)) void both(int *p) { if (p[0] && p[1]) p[1] = 2; }";

/// One code object per compiler and set of flags, to damage.
fn originals() -> Vec<FakeDevice> {
    let old: Vec<&str> = FRONT_END.into_iter().chain([OLD]).collect();
    let conditions = ["-Xclang", "-fcoverage-mcdc"];
    let conditions: Vec<&str> = FRONT_END.into_iter().chain(conditions).collect();
    let pgo = ["-fprofile-generate", "-fprofile-update=atomic"];
    [
        ("clang++-15", old.as_slice()),
        ("clang++-19", &FRONT_END),
        ("clang++-22", &conditions),
        ("clang++-22", &pgo),
    ]
    .map(|(compiler, flags)| compiled_source(SOURCE, compiler, flags))
    .into()
}

/// A word that breaks arithmetic, or one near the old value.
fn word(rng: &mut Rng, old: u64) -> u64 {
    const EDGES: [u64; 13] = [
        0,
        1,
        7,
        64,
        u32::MAX as u64,
        1 << 32,
        (1 << 56) + 1,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 63,
        u64::MAX - 7,
        u64::MAX - 1,
        u64::MAX,
    ];
    const STEPS: [u64; 9] = [1, 2, 4, 8, 16, 48, 64, 4096, 256 << 20];
    match rng.u8(..8) {
        0..3 => rng.choice(EDGES).expect("some"),
        3 => rng.u64(..),
        4 => old ^ 1 << rng.u32(..64),
        5 => old.wrapping_sub(rng.choice(STEPS).expect("some")),
        _ => old.wrapping_add(rng.choice(STEPS).expect("some")),
    }
}

/// Changes the word of 2, 4 or 8 bytes at `at`.
fn change(rng: &mut Rng, bytes: &mut [u8], at: usize, len: usize) {
    let mut old = [0; 8];
    old[..len].copy_from_slice(&bytes[at..at + len]);
    let new = word(rng, u64::from_le_bytes(old));
    bytes[at..at + len].copy_from_slice(&new.to_le_bytes()[..len]);
}

/// The addresses of the section bounds table and the version word.
struct Places {
    table: (u64, u64),
    version: u64,
}

impl Places {
    /// The places in an unchanged code object: the table's last word points at the version.
    fn new(device: &FakeDevice) -> Self {
        let (start, len) = device.find(FIRST, "__llvm_profile_sections");
        let version = device.peek(start + len - 8, 8);
        Self {
            table: (start, len),
            version: u64::from_le_bytes(version.try_into().expect("8 bytes")),
        }
    }
}

/// Changes one thing, and returns its name.
fn mutate(rng: &mut Rng, device: &mut FakeDevice, places: &Places) -> &'static str {
    match rng.u8(..16) {
        0..3 => {
            in_headers(rng, device.image_mut(FIRST));
            "headers"
        }
        3 => {
            device.images_gone = true;
            "no ELF"
        }
        4 => {
            device.hide_symbols(FIRST);
            "no symbols"
        }
        5..8 => {
            in_memory(rng, device, places.table, 8);
            "table"
        }
        8..11 => {
            let size = rng.choice([2, 4, 8]).expect("some");
            in_memory(rng, device, device.section(FIRST, "__llvm_prf_data"), size);
            "records"
        }
        11 => {
            let number = rng.choice([0, 5, 7, 8, 8, 9, 10, 10, 11, 12, 1 << 31]);
            let variant = rng.choice([0, 0, 1 << 56, 1 << 60, 1 << 63, u64::MAX << 32]);
            let new: u64 = number.expect("some") | variant.expect("some");
            device.poke(places.version, &new.to_le_bytes());
            "version"
        }
        12..14 => {
            let (start, len) = device.section(FIRST, "__llvm_prf_names");
            match rng.bool() {
                true => in_memory(rng, device, (start, len), 2),
                false => device.poke(start, &vec![rng.u8(..); rng.usize(..=len as usize)]),
            }
            "names"
        }
        _ => {
            in_memory(rng, device, device.section(FIRST, "__llvm_prf_cnts"), 8);
            "counters"
        }
    }
}

fn in_memory(rng: &mut Rng, device: &FakeDevice, (start, len): (u64, u64), size: usize) {
    let mut bytes = device.peek(start, len as usize);
    let at = rng.usize(..=(bytes.len() - size) / size) * size;
    change(rng, &mut bytes, at, size);
    device.poke(start, &bytes);
}

/// Changes the ELF header, a program header or a section header.
fn in_headers(rng: &mut Rng, elf: &mut [u8]) {
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().expect("8 bytes"));
    let half = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    // ELF-64: e_phoff at 32, e_shoff at 40, e_phnum at 56, e_shnum at 60; headers of 56 and 64 bytes.
    // An earlier change may have moved them out of the file.
    let segment = (word(32) as usize).saturating_add(56 * rng.usize(..half(56).max(1)));
    let section = (word(40) as usize).saturating_add(64 * rng.usize(..half(60).max(1)));
    let (start, len) = match rng.u8(..6) {
        0 => (0, 64),
        1 => (segment, 56),
        _ => (section, 64),
    };
    let size = rng.choice([2, 4, 8]).expect("some");
    let at = start.saturating_add(rng.usize(..len / size) * size);
    if at.saturating_add(size) <= elf.len() {
        change(rng, elf, at, size);
    }
}

/// The results of a mutant.
struct Mutant {
    seed: u64,
    changes: Vec<&'static str>,
    /// The profile from the drain, if any.
    profile: Option<PathBuf>,
}

fn drain(seed: u64, directory: &Path, originals: &[FakeDevice], bystander: &[u8]) -> Mutant {
    let mut rng = Rng::with_seed(seed);
    let mut device = rng.choice(originals).expect("some").clone();
    device.load(SECOND, 0, &collatz());
    let places = Places::new(&device);
    let changes = (0..rng.usize(1..=3))
        .map(|_| mutate(&mut rng, &mut device, &places))
        .collect();
    let directory = directory.join(seed.to_string());
    let pattern = rng.choice(["app.profraw", "app-%m.profraw"]).expect("some");
    let name = profile_name(&directory, pattern);
    let mut session = Session::default();
    let found = session.loaded(&device, FIRST).map(|outcome| outcome.found);
    let outcome = session.drain(&device, &name);
    let (bystanders, mut own): (Vec<_>, Vec<_>) = outcome.files.into_iter().partition(|file| {
        let bytes = fs::read(file).expect("a reported file");
        // A pool has further bytes next to the current counts; only the counts may differ.
        RawProfile::parse(&bytes).is_ok_and(|profile| bytes[profile.sections.names] == *bystander)
    });
    assert_eq!(bystanders.len(), 1, "seed {seed} {changes:?}");
    let is_said = !outcome.losses.is_empty() || found.as_ref().is_ok_and(|found| *found == 0);
    assert!(is_said || !own.is_empty(), "seed {seed} {changes:?}");
    own.retain(|file| {
        let bytes = fs::read(file).expect("a reported file");
        match SavedSections::has_magic(&bytes) {
            true => SavedSections::decode(&bytes).is_err(),
            false => true,
        }
    });
    assert!(own.len() <= 1, "seed {seed} {changes:?}: {own:?}");
    Mutant {
        seed,
        changes,
        profile: own.pop(),
    }
}

/// The llvm-profdata that reads a version; there is none here for versions 9 and 11.
fn reader(version: &Version) -> Option<&'static str> {
    match version.layout().version {
        8 => Some("llvm-profdata-15"),
        10 => Some("llvm-profdata-22"),
        _ => None,
    }
}

/// Reads these profiles with `tool`. Returns its message if it rejects one.
fn refused(tool: &str, profiles: &[&Path]) -> Option<String> {
    let mut command = Command::new(tool);
    command.args(["merge", "-o", "/dev/null"]).args(profiles);
    let ended = run(&mut command);
    (!ended.status.success()).then_some(ended.stderr)
}

#[test]
fn what_is_drained_of_damaged_code_objects_is_read_by_llvm_profdata() {
    let seeds = match std::env::var(SEEDS) {
        Ok(range) => {
            let (first, end) = range.split_once("..").expect("FIRST..END");
            first.parse().expect("a number")..end.parse().expect("a number")
        }
        Err(_) => USUAL,
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let originals = originals();
    let mut beside = FakeDevice::new(1);
    beside.load(FIRST, 0, &collatz());
    let (names, len) = beside.section(FIRST, "__llvm_prf_names");
    let names = beside.peek(names, len as usize);

    // Profiles that one command reads together: one tool, and counters of one kind.
    let mut together: BTreeMap<(&str, u64), Vec<Mutant>> = BTreeMap::new();
    let (mut written, mut unread) = (0_usize, 0_usize);
    let all = seeds.clone().count();
    for seed in seeds {
        let mutant = drain(seed, directory.path(), &originals, &names);
        let Some(profile) = &mutant.profile else {
            continue;
        };
        let bytes = fs::read(profile).expect("a profile");
        let header = Header::parse(&bytes);
        let header = header.unwrap_or_else(|error| panic!("seed {}: {error}", mutant.seed));
        written += 1;
        match reader(header.version()) {
            Some(tool) => {
                let key = (tool, header.version().word());
                together.entry(key).or_default().push(mutant);
            }
            None => unread += 1,
        }
    }
    let mut failures = String::new();
    for ((tool, _), mutants) in &together {
        let profile = |mutant: &Mutant| mutant.profile.clone().expect("one with a profile");
        let profiles: Vec<_> = mutants.iter().map(profile).collect();
        let profiles: Vec<&Path> = profiles.iter().map(PathBuf::as_path).collect();
        if refused(tool, &profiles).is_none() {
            continue;
        }
        for (mutant, profile) in mutants.iter().zip(profiles) {
            if let Some(why) = refused(tool, &[profile]) {
                let why = why.lines().next().unwrap_or_default();
                failures += &format!("seed {} {:?}: {why}\n", mutant.seed, mutant.changes);
            }
        }
    }
    assert_eq!(failures, "");
    // The drain rejects the others: some, but not all.
    assert!((all / 5..all).contains(&written), "{written} of {all}");
    assert!(unread < written / 4, "{unread} of {written}");
}
