//! Merging is associative: a tree of pooled directories, however grouped, gives what one merge of all
//! files gives, and that is what llvm-profdata makes of the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov_tests::artifacts::{built, repository};
use rocov_tests::cli::device::{CLANG, INSTRUMENTED, compile_source_with};
use rocov_tests::cli::{data, profile, rocov, run, stdout};

use crate::merge::{PROFDATA, Place};

const RANKS: u32 = 12;
/// Flags of a version word.
const IR_LEVEL: u64 = 1 << 56;
const SINGLE_BYTE: u64 = 1 << 60;
/// The line before the counts of a function in the text form of a profile.
const COUNTS: &str = "# Counter Values:\n";

/// The form of the profiles of a test.
struct Variant<'a> {
    clang: &'a str,
    flags: &'a [&'a str],
    word: u64,
    profdata: &'a str,
    /// A count or a part of a bitmap, from a random number.
    value: fn(u64) -> u64,
}

impl Variant<'_> {
    /// The text form of a profile, with its bitmaps: a paragraph for each function, in order. For one-byte counters
    /// it has how many files have reached a block, and for a raw profile only whether one has.
    fn shown(&self, profile: &Path) -> Vec<String> {
        let mut merge = Command::new(PROFDATA);
        merge.args(["merge", "--text", "-o", "-"]);
        let text = stdout(&run(merge.arg(profile)));
        let is_reached = |line: &str| match line.parse::<u64>() {
            Ok(1..) => "1".to_owned(),
            _ => line.to_owned(),
        };
        let functions = text.split("\n\n").map(|function| {
            let Some((head, counts)) = function.split_once(COUNTS) else {
                return function.to_owned();
            };
            match self.word & SINGLE_BYTE {
                0 => function.to_owned(),
                _ => {
                    head.to_owned() + &counts.lines().map(is_reached).collect::<Vec<_>>().join(" ")
                }
            }
        });
        let mut functions: Vec<_> = functions.collect();
        functions.sort_unstable();
        functions
    }
}

/// Writes a profile of each of two code objects for every rank, into a directory of its own.
fn write_ranks(place: &Place, variant: &Variant<'_>) -> Vec<PathBuf> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        // Marsaglia's xorshift.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let directory = place.0.path();
    let mut files = Vec::new();
    for source in ["kernel.hip", "decisions.hip"] {
        let (clang, flags) = (variant.clang, variant.flags);
        let elf = compile_source_with(clang, &data(source), directory, source, "gfx90a", flags);
        for rank in 0..RANKS {
            let path = place.profile_path(&format!("rank{rank:02}"), "gfx90a", &elf, 4711);
            profile::write_filled(&elf, variant.word, &path, |section| {
                if variant.word & SINGLE_BYTE != 0 || section.len() % 8 != 0 {
                    section.fill_with(|| (variant.value)(next()) as u8);
                    return;
                }
                for word in section.chunks_exact_mut(8) {
                    word.copy_from_slice(&(variant.value)(next()).to_le_bytes());
                }
            });
            files.push(path);
        }
    }
    files
}

/// Merges the groups into pooled directories `LEVEL-0`, `LEVEL-1` and so on.
fn merge_level(place: &Place, level: &str, groups: &[Vec<String>]) -> Vec<String> {
    let merge = |(index, group): (usize, &Vec<String>)| {
        let pooled = format!("{level}-{index}");
        let mut arguments = group.clone();
        arguments.extend(["--pooled".to_owned(), pooled.clone()]);
        place.merged(&arguments);
        pooled
    };
    groups.iter().enumerate().map(merge).collect()
}

/// Merges the same files flat, in two trees and by llvm-profdata, and compares.
fn compare(variant: &Variant<'_>) {
    let place = Place::new();
    let files = write_ranks(&place, variant);
    let theirs = place.path("theirs.profdata");
    let mut llvm = Command::new(variant.profdata);
    run(llvm.arg("merge").args(&files).arg("-o").arg(&theirs));
    let expected = variant.shown(&theirs);
    assert!(expected.len() > 2, "{expected:?}");

    let ranks: Vec<_> = (0..RANKS).map(|rank| format!("rank{rank:02}")).collect();
    let mut flat = ranks.clone();
    flat.extend(["-o", "flat.profdata", "-j3"].map(str::to_owned));
    place.merged(&flat);
    let check = |name: &str| {
        let merged = place.path(name);
        assert_eq!(variant.shown(&merged), expected, "{name}");
    };
    check("flat.profdata");

    // Even groups of neighbours, and uneven ones of every third.
    let even: Vec<_> = ranks.chunks(3).map(<[_]>::to_vec).collect();
    let mut uneven = vec![Vec::new(); 3];
    for (index, rank) in ranks.iter().enumerate() {
        uneven[index * index % 3].push(rank.clone());
    }
    uneven.retain(|group| !group.is_empty());
    for (name, groups) in [("even", even), ("uneven", uneven)] {
        let first = merge_level(&place, &format!("{name}-first"), &groups);
        let (one, others) = first.split_at(1);
        let groups = [one.to_vec(), others.to_vec()];
        let second = merge_level(&place, &format!("{name}-second"), &groups);
        let third = merge_level(&place, &format!("{name}-third"), &[second]);
        let output = format!("{name}.profdata");
        place.merged(&[&third[0], "-o", &output]);
        check(&output);
        let pooled = |entry: &fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with("gfx90a.") && name.ends_with(".0.merged.profraw")
        };
        let entries = fs::read_dir(place.path(&third[0]).join("profraw")).unwrap();
        let pooled = entries.map(Result::unwrap).filter(pooled).count();
        assert_eq!(pooled, 2, "one for each code object");
    }
}

fn count(random: u64) -> u64 {
    if random.is_multiple_of(3) {
        0
    } else {
        random >> 30
    }
}

#[test]
fn version_10() {
    compare(&Variant {
        clang: CLANG,
        flags: &INSTRUMENTED,
        word: 10,
        profdata: PROFDATA,
        value: count,
    });
}

#[test]
fn version_8() {
    // From the command under test, as no clang of this version links without the header.
    let flags = stdout(&run(rocov().args(["flags", "--clang", "clang++-15"])));
    let flags: Vec<_> = flags.split_whitespace().collect();
    compare(&Variant {
        clang: "clang++-15",
        flags: &flags,
        word: 8,
        profdata: "llvm-profdata-15",
        value: count,
    });
}

#[test]
fn mcdc_bitmaps() {
    compare(&Variant {
        clang: CLANG,
        flags: &[&INSTRUMENTED[..], &["-Xclang", "-fcoverage-mcdc"]].concat(),
        word: 10,
        profdata: PROFDATA,
        value: |random| random >> 40 & random >> 20,
    });
}

#[test]
fn single_byte_coverage() {
    let [generate, mapping, _] = INSTRUMENTED;
    compare(&Variant {
        clang: CLANG,
        flags: &[
            generate,
            mapping,
            "-Xclang",
            "-mllvm",
            "-Xclang",
            "-enable-single-byte-coverage=true",
        ],
        word: SINGLE_BYTE | 10,
        profdata: PROFDATA,
        value: |random| if random >> 20 & 7 == 0 { 0 } else { 0xff },
    });
}

#[test]
fn ir_level_instrumentation() {
    compare(&Variant {
        clang: CLANG,
        flags: &["-fprofile-generate", "-fprofile-update=atomic"],
        word: IR_LEVEL | 10,
        profdata: PROFDATA,
        value: count,
    });
}

/// The commands of the guide that merge a share of the ranks, from the line that starts with `start`.
fn in_guide(start: &str) -> String {
    let guide = repository("docs/src/guides/ranks.md");
    let guide = fs::read_to_string(guide).unwrap();
    let lines: Vec<_> = guide
        .lines()
        .skip_while(|line| !line.starts_with(start))
        .take_while(|line| *line != "```")
        .collect();
    lines.join("\n")
}

/// Runs a script as task `number` of 32 in a job.
fn run_task(place: &Place, script: &str, variables: [&str; 2], number: u32) {
    let rocov = built("rocov");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", rocov.parent().unwrap().display());
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).env("PATH", path);
    let [task, tasks] = variables;
    shell.env(task, number.to_string()).env(tasks, "32");
    run(shell.current_dir(place.0.path()));
}

#[test]
fn the_examples_in_the_readme_merge_all_ranks() {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    for rank in 0..40 {
        place.profile(&format!("rocov-data/{rank}"), &elf, 4711, 1 << rank);
    }
    let slurm = in_guide("rocov merge -q rocov-data --shard");
    // The command that mpirun starts as each of its processes.
    let mpi = in_guide("mpirun -n 16 sh -c '");
    let (_, mpi) = mpi.split_once('\'').unwrap();
    let (mpi, last) = mpi.split_once("'\n").unwrap();
    let open_mpi = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
    let slurms = ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"];
    for (script, variables) in [(slurm.as_str(), slurms), (mpi, open_mpi)] {
        for number in 0..32 {
            run_task(&place, script, variables, number);
        }
        run_task(&place, last, variables, 0);
        assert_eq!(place.calls("merged/gfx90a.profdata"), (1 << 40) - 1);
        for made in ["pooled", "merged"] {
            fs::remove_dir_all(place.path(made)).unwrap();
        }
    }
}
