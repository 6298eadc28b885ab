//! Profiles whose parts have all sizes are, merged by rocov, what llvm-profdata makes of them. Each release reads them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use byteorder::{ByteOrder, LittleEndian};
use rocov::format::codeobject::name_ref;
use rocov::format::profraw::{Parts, Sum, Version, encode};
use rocov::format::sections::{PerSection, Section};
use rocov_tests::cli::random::Random;
use rocov_tests::cli::release::Release;
use tempfile::TempDir;

use super::host_counts::host_counts;
use super::indexed_profile::IndexedProfile;
use super::named_counts::{KnownNames, NamedCounts};
use crate::system::command;

/// The releases that read profiles, each with the last version of indexed profiles that it knows
/// (`IndexedInstrProf::ProfVersion::CurrentVersion`).
const READERS: [(u32, u64); 4] = [(15, 8), (19, 12), (22, 13), (23, 14)];
/// The first release with MC/DC bitmaps.
const FIRST_WITH_BITMAPS: u32 = 18;
/// The most counters of a function here.
const COUNTERS: u64 = 70;
/// The most bytes of a bitmap: LLVM's reader of texts takes no more.
const BITMAP: u64 = 255;

/// The sizes of the parts of a function, and its counts.
struct Sized {
    name: String,
    hash: u64,
    counters: Vec<u64>,
    bitmap: Vec<u8>,
    /// For indirect calls and memory operations, the sites with the number of values of each.
    sites: [Vec<u64>; 2],
}

/// This number of functions, which have parts of all sizes.
fn functions(number: u64, random: &mut Random) -> Vec<Sized> {
    let sized = (0..number).map(|index| {
        let counters = 0..1 + index % COUNTERS;
        let counters: Vec<_> = counters.map(|counter| wide(random, counter)).collect();
        // A function that never ran, and one of which only the bitmap shows that it ran.
        let counters = match index % 11 {
            3 | 5 => vec![0; counters.len()],
            _ => counters,
        };
        let bytes = match index % 60 {
            59 => BITMAP,
            many => many.saturating_sub(18),
        };
        let bitmap = (0..bytes)
            .map(|_| random.word() as u8)
            .map(|byte| if index % 11 == 3 { 0 } else { byte });
        let sites = [0, 1].map(|kind| (0..index % (5 + kind)).map(|n| n * n * 15).collect());
        Sized {
            name: format!("function_{index}"),
            hash: index * 0x0123_4567_89ab % (1 << 60),
            counters,
            bitmap: bitmap.collect(),
            sites,
        }
    });
    sized.collect()
}

/// A count of up to 63 bits, so that two of them have a sum. Releases have other largest counts.
fn wide(random: &mut Random, index: u64) -> u64 {
    random.word() >> (1 + index % 63)
}

/// LLVM's text form of functions. Up to LLVM 17, it has no bitmaps.
fn text(functions: &[Sized], has_bitmaps: bool) -> String {
    let mut text = String::from(":ir\n");
    for function in functions {
        let (name, hash, counters) = (&function.name, function.hash, &function.counters);
        writeln!(text, "{name}\n{hash}\n{}", counters.len()).unwrap();
        for count in counters {
            writeln!(text, "{count}").unwrap();
        }
        if has_bitmaps && !function.bitmap.is_empty() {
            writeln!(text, "${}", function.bitmap.len()).unwrap();
            for byte in &function.bitmap {
                writeln!(text, "{byte:#x}").unwrap();
            }
        }
        let kinds: Vec<_> = function
            .sites
            .iter()
            .enumerate()
            .filter(|(_, sites)| !sites.is_empty())
            .collect();
        if !kinds.is_empty() {
            writeln!(text, "{}", kinds.len()).unwrap();
        }
        for (kind, sites) in kinds {
            writeln!(text, "{kind}\n{}", sites.len()).unwrap();
            for values in sites {
                writeln!(text, "{values}").unwrap();
                for value in 0..*values {
                    let called = value as usize % functions.len();
                    // A called function is there once.
                    match kind {
                        0 if value < functions.len() as u64 => {
                            writeln!(text, "function_{called}:{}", 7_u64 << (value % 50))
                        }
                        0 => writeln!(text, "elsewhere_{value}:{}", 5 + value),
                        _ => writeln!(text, "{}:{}", value << 30, value + (1 << 40)),
                    }
                    .unwrap();
                }
            }
        }
        text.push('\n');
    }
    text
}

/// A directory for profiles.
struct Place(TempDir);

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The profile of `inputs` that llvm-profdata makes.
    fn merged(&self, release: &Release, name: &str, inputs: &[&Path], options: &[&str]) -> PathBuf {
        let path = self.path(name);
        let mut merge = Command::new(release.program("llvm-profdata"));
        merge.arg("merge").args(options).args(inputs);
        command::output(merge.arg("-o").arg(&path)).unwrap();
        path
    }
}

/// The output of llvm-profdata for a profile: its text form, and its summary. The functions are sorted, as they are in the
/// order of a hash table.
fn shown(release: &Release, profile: &Path) -> (Vec<String>, String) {
    let output = |arguments: &[&str]| {
        let mut profdata = Command::new(release.program("llvm-profdata"));
        let output = command::output(profdata.args(arguments).arg(profile)).unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = output(&["merge", "--text", "-o", "-"]);
    let mut functions: Vec<_> = text.split("# Func Hash:").map(str::to_owned).collect();
    functions.sort_unstable();
    let summary = output(&["show", "--detailed-summary"]);
    (functions, summary)
}

/// Each release that supports the version of `ours` prints what this `release` prints of `theirs`.
fn compare(release: &Release, ours: &Path, theirs: &Path, what: &str) {
    let version = LittleEndian::read_u64(&fs::read(ours).unwrap()[8..]) & 0xff_ffff;
    let expected = shown(release, theirs);
    let mut readers = 0;
    for (number, last) in READERS {
        if version > last {
            continue;
        }
        let Some(reader) = Release::find(number, "parts of all sizes") else {
            continue;
        };
        let found = shown(&reader, ours);
        let mut pairs = found.0.iter().zip(&expected.0);
        let other = pairs.find(|(found, expected)| found != expected);
        assert_eq!(other, None, "{what}: read by {number}");
        assert_eq!(found.0.len(), expected.0.len(), "{what}: read by {number}");
        if number == release.number {
            assert_eq!(found.1, expected.1, "{what}");
        }
        readers += 1;
    }
    assert!(readers > 0, "{what}: version {version}");
}

/// Numbers of functions: of one bucket of the hash table, and of several hundred.
const NUMBERS: [u64; 5] = [1, 2, 60, 129, 700];

#[test]
fn indexed_profiles_have_parts_of_all_sizes() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for (number, _) in READERS {
        let Some(release) = Release::find(number, "parts of all sizes") else {
            continue;
        };
        for functions in NUMBERS.map(|number| self::functions(number, &mut random)) {
            let place = Place(tempfile::tempdir().unwrap());
            let source = place.path("source.txt");
            fs::write(&source, text(&functions, number >= FIRST_WITH_BITMAPS)).unwrap();
            let once = place.merged(&release, "once.profdata", &[&source], &[]);
            for is_sparse in [false, true] {
                let what = format!(
                    "{} functions by {number}, sparse: {is_sparse}",
                    functions.len()
                );
                let options: &[&str] = if is_sparse { &["--sparse"] } else { &[] };
                let theirs = place.merged(&release, "theirs", &[&once, &once], options);
                let mut profile = IndexedProfile::default();
                for _ in 0..2 {
                    let counts = host_counts(&once, None, &mut KnownNames::default());
                    for counts in counts.unwrap() {
                        assert!(profile.add(counts, "a profile").unwrap());
                    }
                }
                let ours = place.path("ours");
                fs::write(&ours, profile.bytes(is_sparse).unwrap()).unwrap();
                compare(&release, &ours, &theirs, &what);
            }
        }
    }
}

/// The raw profile of functions, as of GPU code.
fn raw(version: Version, functions: &[Sized], random: &mut Random) -> Vec<u8> {
    let layout = version.layout().record;
    let [mut data, mut counters, mut uniform, mut bitmap] = [const { Vec::new() }; 4];
    for function in functions {
        let mut record = vec![0; layout.bytes as usize];
        LittleEndian::write_u64(&mut record, name_ref(function.name.as_bytes()));
        LittleEndian::write_u64(&mut record[8..], function.hash);
        LittleEndian::write_u64(&mut record[layout.counter_ptr..], counters.len() as u64);
        let number = function.counters.len() as u32;
        LittleEndian::write_u32(&mut record[layout.num_counters..], number);
        for count in &function.counters {
            // Raw profiles have counts of up to 2^56, and so have their sums here.
            let count = count >> 9;
            counters.extend(count.to_le_bytes());
            if layout.uniform_ptr.is_some() {
                let lanes = u128::from(count) * u128::from(random.word() % 4 + 7) / 10;
                uniform.extend((lanes as u64).to_le_bytes());
            }
        }
        if let Some(at) = layout.uniform_ptr {
            let place = counters.len() - 8 * function.counters.len();
            LittleEndian::write_u64(&mut record[at..], place as u64);
        }
        if let (Some(at), Some(number)) = (layout.bitmap_ptr, layout.num_bitmap_bytes) {
            LittleEndian::write_u64(&mut record[at..], bitmap.len() as u64);
            LittleEndian::write_u32(&mut record[number..], function.bitmap.len() as u32);
            bitmap.extend(&function.bitmap);
        }
        data.extend(record);
    }
    let names: Vec<_> = functions.iter().map(|function| &*function.name).collect();
    let joined = names.join("\x01");
    let mut names = Vec::new();
    // The numbers of bytes without compression, and with it.
    leb128(&mut names, joined.len());
    names.push(0);
    names.extend(joined.bytes());
    let sections = PerSection::from_fn(|section| match section {
        Section::Data => &*data,
        Section::Counters => &counters,
        Section::Uniform => &uniform,
        Section::Bitmap => &bitmap,
        _ => &names,
    });
    encode(&Parts {
        version,
        build_id: None,
        sections,
        names_address: 0,
    })
}

fn leb128(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[test]
fn raw_profiles_have_parts_of_all_sizes() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for (number, version) in [(15, 8), (19, 10), (22, 10), (23, 11)] {
        let Some(release) = Release::find(number, "parts of all sizes") else {
            continue;
        };
        let version = Version::from_word(version).unwrap();
        for functions in NUMBERS.map(|number| self::functions(number, &mut random)) {
            let place = Place(tempfile::tempdir().unwrap());
            let one = place.path("one.profraw");
            fs::write(&one, raw(version, &functions, &mut random)).unwrap();
            for is_sparse in [false, true] {
                let what = format!(
                    "{} functions by {number}, sparse: {is_sparse}",
                    functions.len()
                );
                let options: &[&str] = if is_sparse { &["--sparse"] } else { &[] };
                let theirs = place.merged(&release, "theirs", &[&one, &one], options);
                let mut sum = Sum::new(fs::read(&one).unwrap()).unwrap();
                sum.add(&fs::read(&one).unwrap()).unwrap();
                let mut profile = IndexedProfile::default();
                let counts = NamedCounts::from_sum(&sum, Some(number..=number)).unwrap();
                assert!(profile.add(counts, "a profile").unwrap());
                let ours = place.path("ours");
                fs::write(&ours, profile.bytes(is_sparse).unwrap()).unwrap();
                compare(&release, &ours, &theirs, &what);
            }
        }
    }
}
