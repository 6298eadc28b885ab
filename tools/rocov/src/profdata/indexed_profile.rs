//! Indexed profiles, written for llvm-cov: as a report asks it about hundreds of code objects, starting
//! llvm-profdata for each would take as long as llvm-cov itself.
//!
//! The format is version 4 of LLVM's indexed profiles (`IndexedInstrProf`, `InstrProfWriter.cpp`),
//! which every LLVM since 3.9 reads: a header, a summary, and an `OnDiskChainedHashTable` from function
//! names to hashes and counters. llvm-profdata writes the profiles that the format cannot hold: MC/DC
//! bitmaps, counters of one byte or of whole waves.

use std::collections::{BTreeMap, HashMap};

use byteorder::{ByteOrder, LittleEndian};
use rocov::format::codeobject::name_ref;
use rocov::format::profraw::{CountsByFunction, FunctionCounts, Sum};
use rocov::validate::for_each_name;

use crate::data::profile_header::INDEXED_MAGIC;

const MAGIC: u64 = u64::from_le_bytes(INDEXED_MAGIC);
const VERSION: u64 = 4;
/// The kind of hash that finds names: `HashT::MD5`.
const MD5: u64 = 0;
/// A summary that llvm-cov has no use for: six numbers that follow, no percentiles, and the numbers.
const SUMMARY: [u64; 8] = [6, 0, 0, 0, 0, 0, 0, 0];
/// The word of the header with the place of the hash table.
const TABLE_WORD: usize = 4;
/// Value profiles of a function that has none: their size with these two words, and their kinds.
const NO_VALUES: [u32; 2] = [8, 0];

/// The counters of functions of one name, by the hash of their code.
type OfName = BTreeMap<u64, Vec<u64>>;

/// The bytes of an indexed profile with these counts; `None` if it cannot hold them, or they are
/// damaged.
pub(crate) fn write(sum: &Sum) -> Option<Vec<u8>> {
    let profile = sum.profile();
    let version = profile.header.version();
    if version.word() != u64::from(version.layout().version)
        || !profile.sections.bitmap.is_empty()
        || !profile.sections.uniform.is_empty()
    {
        return None;
    }
    let functions = by_name(sum.functions().ok()?, |counts| counts.counters);
    encode(&functions, &names(sum)?)
}

/// The bytes of two indexed profiles for a sum that has uniform counters: one of the uniform counters, and one
/// of the numbers that `mark` returns for the counter and uniform counter of each block. `None` if there are no
/// uniform counters, or the counts are damaged.
pub(crate) fn write_uniform(
    sum: &Sum,
    mut mark: impl FnMut(u64, u64) -> u64,
) -> Option<[Vec<u8>; 2]> {
    let profile = sum.profile();
    if profile.header.version().is_single_byte() || profile.sections.uniform.is_empty() {
        return None;
    }
    let names = names(sum)?;
    let functions = sum.functions().ok()?;
    let uniform = by_name(functions.clone(), |counts| counts.uniform);
    let marked = by_name(functions, |counts| {
        let blocks = counts.counters.iter().zip(&counts.uniform);
        blocks
            .map(|(count, uniform)| mark(*count, *uniform))
            .collect()
    });
    Some([encode(&uniform, &names)?, encode(&marked, &names)?])
}

/// The counts that `counters` takes of each function, by the hashes of their names.
fn by_name(
    functions: CountsByFunction,
    mut counters: impl FnMut(FunctionCounts) -> Vec<u64>,
) -> BTreeMap<u64, OfName> {
    let mut by_name: BTreeMap<u64, OfName> = BTreeMap::new();
    for ((name, hash), counts) in functions {
        by_name
            .entry(name)
            .or_default()
            .insert(hash, counters(counts));
    }
    by_name
}

/// The names by their hashes.
fn names(sum: &Sum) -> Option<HashMap<u64, Vec<u8>>> {
    let section = &sum.bytes()[sum.profile().sections.names.clone()];
    let mut names = HashMap::new();
    let found = for_each_name(section, |name| {
        names.insert(name_ref(name), name.to_vec());
    });
    found.ok().map(|()| names)
}

fn encode(functions: &BTreeMap<u64, OfName>, names: &HashMap<u64, Vec<u8>>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    push(&mut bytes, [MAGIC, VERSION, 0, MD5, 0]);
    push(&mut bytes, SUMMARY);
    let number = functions.len().next_power_of_two();
    let mut buckets: Vec<Vec<_>> = vec![Vec::new(); number];
    for (name, of_name) in functions {
        let bucket = *name as usize & (number - 1);
        buckets[bucket].push((name, of_name));
    }
    let mut places = Vec::with_capacity(number);
    for bucket in buckets {
        if bucket.is_empty() {
            places.push(0);
            continue;
        }
        places.push(bytes.len() as u64);
        bytes.extend(u16::try_from(bucket.len()).ok()?.to_le_bytes());
        for (hash, of_name) in bucket {
            let name = names.get(hash)?;
            let mut data = Vec::new();
            for (hash, counters) in of_name {
                push(&mut data, [*hash, counters.len() as u64]);
                push(&mut data, counters.iter().copied());
                data.extend(NO_VALUES.iter().flat_map(|word| word.to_le_bytes()));
            }
            push(&mut bytes, [*hash, name.len() as u64, data.len() as u64]);
            bytes.extend(name);
            bytes.extend(data);
        }
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    push(&mut bytes, [number as u64, functions.len() as u64]);
    push(&mut bytes, places);
    LittleEndian::write_u64(&mut bytes[8 * TABLE_WORD..], table);
    Some(bytes)
}

fn push(bytes: &mut Vec<u8>, words: impl IntoIterator<Item = u64>) {
    bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::system::command;

    const PROFDATA: &str = "llvm-profdata-22";

    /// The functions of a profile as llvm-profdata prints them, sorted: it prints them in the order of
    /// the hash table.
    fn shown(profile: &Path) -> Vec<String> {
        let mut show = Command::new(PROFDATA);
        show.args(["show", "--all-functions", "--counts"])
            .arg(profile);
        let shown = command::output(&mut show).unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        let (functions, _) = shown.split_once("Instrumentation level").unwrap();
        let mut shown: Vec<String> = Vec::new();
        for line in functions.lines() {
            match shown.last_mut() {
                Some(function) if line.starts_with("    ") => *function += line,
                _ => shown.push(line.to_owned()),
            }
        }
        shown.sort_unstable();
        shown
    }

    #[test]
    fn llvm_profdata_reads_what_it_would_have_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/coverage/other.cpp");
        // Names of many functions are deflated, those of a few are not.
        let many: String = (0..300)
            .map(|number| {
                format!("int function_{number}(int i) {{ return i > 5 ? {number} : i; }}\n")
            })
            .collect();
        let text =
            format!("#include \"{source}\"\n{many}int main() {{ return function_7(6) - 7; }}");
        for (name, text) in [
            ("few", format!("#include \"{source}\"\nint main() {{}}")),
            ("many", text),
        ] {
            let (program, raw) = (path(name), path("raw"));
            fs::write(path("source.cpp"), text).unwrap();
            let mut clang = Command::new("clang++-22");
            clang.args(["-fprofile-instr-generate", "-w", "-o"]);
            command::output(clang.arg(&program).arg(path("source.cpp"))).unwrap();
            command::output(Command::new(&program).env("LLVM_PROFILE_FILE", &raw)).unwrap();

            let mut sum = Sum::of(fs::read(&raw).unwrap()).unwrap();
            sum.add(&fs::read(&raw).unwrap()).unwrap();
            let (ours, theirs) = (path("ours"), path("theirs"));
            fs::write(&ours, write(&sum).unwrap()).unwrap();
            let mut merge = Command::new(PROFDATA);
            merge.arg("merge").args([&raw, &raw]);
            command::output(merge.arg("-o").arg(&theirs)).unwrap();
            let (ours, theirs) = (shown(&ours), shown(&theirs));
            let has_counts = |function: &String| function.contains("Block counts: [");
            assert!(theirs.iter().filter(|it| has_counts(it)).count() > 4);
            assert_eq!(ours, theirs);
        }
    }
}
