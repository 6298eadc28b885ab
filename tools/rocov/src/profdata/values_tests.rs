//! Value profiles of a program with libraries, as llvm-profdata merges and shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::format::profraw::Version;
use rocov_tests::cli::release::Release;
use tempfile::TempDir;

use super::host_counts::host_counts;
use super::indexed_profile::IndexedProfile;
use super::named_counts::KnownNames;
use crate::data::profile_header::version_word;
use crate::system::command;

/// The first release with values of virtual tables.
const FIRST_WITH_TABLES: u32 = 19;
/// The values of a site that the runtime keeps.
const ROOM: &str = "16";
/// The most values.
const FULL: &str = "255";
/// The option for values of virtual tables.
const TABLES: &[&str] = &["-enable-vtable-value-profiling"];

/// A program with two libraries, by a release of LLVM.
struct Instrumented {
    release: Release,
    directory: TempDir,
}

/// The text form of a function, with the sum of the counts of functions without a name at each site. The order of
/// the values in a raw profile decides which of these counts llvm-profdata adds to which.
fn with_unnamed_added(function: &str) -> String {
    let mut text = String::new();
    let (mut named, mut unnamed) = (Vec::new(), Vec::new());
    for line in function.trim().lines().chain([""]) {
        match line.strip_prefix("** External Symbol **:") {
            Some(count) => unnamed.push(count.parse::<u64>().unwrap()),
            None if line.contains(':') && !line.starts_with('#') => named.push(line),
            None => {
                named.sort_unstable();
                let (number, sum) = (unnamed.len(), unnamed.iter().sum::<u64>());
                text += &format!("{named:?}, {number} without names: {sum}\n{line}\n");
                (named, unnamed) = (Vec::new(), Vec::new());
            }
        }
    }
    text
}

impl Instrumented {
    /// Compiles it with these options of LLVM. `None` if the release is not here.
    fn compile(number: u32, options: &[&str]) -> Option<Self> {
        let release = Release::find(number, "value profiles of code")?;
        // Debian has no runtime of profiles for LLVM 19. That of 22 writes the same raw version.
        let linker = Release::find(if number == 19 { 22 } else { number }, "value profiles")?;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let source = rocov_tests::cli::data("values");
        for unit in ["first", "second", "main"] {
            let mut clang = Command::new(release.program("clang++"));
            clang.args([
                "-std=c++17",
                "-O2",
                "-fPIC",
                "-w",
                "-fprofile-generate",
                "-c",
            ]);
            clang.args(options.iter().flat_map(|option| ["-mllvm", option]));
            clang.arg(source.join(unit).with_extension("cpp"));
            command::output(clang.arg("-o").arg(path(unit).with_extension("o"))).unwrap();
        }
        let link = |arguments: &[&str]| {
            let mut clang = Command::new(linker.program("clang++"));
            clang
                .current_dir(directory.path())
                .arg("-fprofile-generate");
            command::output(clang.args(arguments)).unwrap();
        };
        link(&["-shared", "-o", "libfirst.so", "first.o"]);
        link(&["-shared", "-o", "libsecond.so", "second.o"]);
        link(&[
            "-o",
            "app",
            "main.o",
            "-L.",
            "-lfirst",
            "-lsecond",
            "-Wl,-rpath,$ORIGIN",
        ]);
        Some(Self { release, directory })
    }

    /// The raw profiles of a run: those of the program and its libraries.
    fn run(&self, seed: u32, room: &str) -> Vec<PathBuf> {
        let run = self.directory.path().join(format!("run-{seed}-{room}"));
        let mut program = Command::new(self.directory.path().join("app"));
        program.arg(seed.to_string());
        program.env("LLVM_VP_MAX_NUM_VALS_PER_SITE", room);
        program.env("LLVM_PROFILE_FILE", run.join("%m.profraw"));
        command::output(&mut program).unwrap();
        let mut files: Vec<_> = fs::read_dir(run)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert_eq!(files.len(), 3);
        files
    }

    /// The profiles, merged by rocov and by llvm-profdata into files of this name.
    fn merged(&self, name: &str, profiles: &[PathBuf]) -> [PathBuf; 2] {
        let path = |reader: &str| {
            self.directory
                .path()
                .join(format!("{reader}-{name}.profdata"))
        };
        let [ours, theirs] = ["ours", "theirs"].map(path);
        let mut profile = IndexedProfile::default();
        let mut known = KnownNames::default();
        for path in profiles {
            for counts in host_counts(path, None, &mut known).unwrap() {
                assert!(profile.add(counts, path.display()).unwrap());
            }
        }
        fs::write(&ours, profile.bytes(false).unwrap()).unwrap();
        // On several threads, the order of the additions decides which of equal counts a full site loses.
        let mut merge = Command::new(self.release.program("llvm-profdata"));
        merge.args(["merge", "-j", "1"]).args(profiles);
        command::output(merge.arg("-o").arg(&theirs)).unwrap();
        [ours, theirs]
    }

    /// The text form of a profile, and all that llvm-profdata shows of it: paragraphs and lines in order, as a hash
    /// table has none.
    fn shown(&self, profile: &Path) -> [Vec<String>; 2] {
        let output = |arguments: &[&str]| {
            let mut profdata = Command::new(self.release.program("llvm-profdata"));
            let output = command::output(profdata.args(arguments).arg(profile)).unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let text = output(&["merge", "--text", "-o", "-"]);
        let mut functions: Vec<_> = text.split("\n\n").map(with_unnamed_added).collect();
        functions.sort_unstable();
        let mut options = vec!["show", "--all-functions", "--counts", "--detailed-summary"];
        options.extend(["--ic-targets", "--memop-sizes"]);
        if self.release.number >= FIRST_WITH_TABLES {
            options.push("--show-vtables");
        }
        let shown = output(&options);
        let named = shown.lines().filter(|line| !line.contains(", ,"));
        let mut lines: Vec<_> = named.map(str::to_owned).collect();
        lines.sort_unstable();
        [functions, lines]
    }

    fn compare(&self, name: &str, profiles: &[PathBuf]) -> [Vec<String>; 2] {
        let [ours, theirs] = self
            .merged(name, profiles)
            .map(|merged| self.shown(&merged));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let mut pairs = ours.iter().zip(theirs);
            let other = pairs.find(|(ours, theirs)| ours != theirs);
            assert_eq!(other, None, "{} {name}", self.release.number);
            assert_eq!(ours.len(), theirs.len(), "{} {name}", self.release.number);
        }
        ours
    }
}

#[test]
fn llvm_profdata_shows_equal_values() {
    for number in [15, 19, 22, 23] {
        let has_tables = number >= FIRST_WITH_TABLES;
        let options = if has_tables { TABLES } else { &[] };
        let Some(program) = Instrumented::compile(number, options) else {
            continue;
        };
        let runs = [3, 8, 13].map(|seed| program.run(seed, ROOM));
        let [text, _] = program.compare("one", &runs[0]);
        let has = |part: &str| text.iter().any(|line| line.contains(part));
        assert!(has("IPVK_IndirectCallTarget") && has("IPVK_MemOPSize"));
        assert!(has(", 3 without names: "), "calls into libraries");
        assert!(has("\"_ZNK4Cube4areaEv:"), "virtual calls");
        assert_eq!(has("IPVK_VTableTarget"), has_tables);
        program.compare("all", &runs.concat());
        // Sums of sums are what a sum of all is.
        let [last, _] = program.merged("last", &runs[1..].concat());
        let grouped = [&runs[0][..], &[last]].concat();
        let [grouped, flat] = [("grouped", grouped), ("all", runs.concat())]
            .map(|(name, profiles)| fs::read(&program.merged(name, &profiles)[0]).unwrap());
        assert_eq!(grouped, flat, "{number}");
        // Indexed profiles among the inputs, and two profiles in one file.
        let mixed = program.merged("some", &runs[..2].concat());
        let both = runs[2]
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect::<Vec<_>>()
            .concat();
        let path = program.directory.path().join("both.profraw");
        fs::write(&path, both).unwrap();
        let mut inputs = mixed.to_vec();
        inputs.push(path);
        program.compare("mixed", &inputs);
    }
}

#[test]
fn full_sites_keep_the_values_that_llvm_profdata_keeps() {
    for number in [15, 19, 22, 23] {
        let Some(program) = Instrumented::compile(number, &[]) else {
            continue;
        };
        let runs = [3, 8, 13].map(|seed| program.run(seed, FULL));
        let [text, _] = program.compare("full", &runs.concat());
        assert!(text.iter().any(|line| line.contains("\n255\n")), "{number}");
    }
}

/// Variants of IR-level instrumentation have bits of their own in the version word.
#[test]
fn llvm_profdata_shows_equal_counts_of_variants() {
    let all = Instrumented::compile(22, &[]).unwrap();
    let of_all = all.run(5, ROOM);
    for (option, bits) in [
        ("-pgo-instrument-entry", 1 << 56 | 1 << 58),
        ("-pgo-instrument-loop-entries", 1 << 55 | 1 << 56),
        ("-pgo-block-coverage", 1 << 56 | 1 << 60),
        ("-pgo-function-entry-coverage", 1 << 56 | 1 << 60 | 1 << 61),
    ] {
        let program = Instrumented::compile(22, &[option]).unwrap();
        let runs = [3, 8].map(|seed| program.run(seed, ROOM)).concat();
        let (_, variant) = Version::split(version_word(&runs[0]).unwrap());
        assert_eq!(variant, bits, "{option}");
        program.compare(option, &runs);
        // With profiles that count all, in both orders.
        program.compare("before", &[&runs[..], &of_all].concat());
        program.compare("after", &[&of_all[..], &runs].concat());
    }
}

#[test]
fn traces_are_left_to_llvm_profdata() {
    let program = Instrumented::compile(22, &["-pgo-temporal-instrumentation"]).unwrap();
    let run = program.run(3, ROOM);
    let counts = host_counts(&run[0], None, &mut KnownNames::default()).unwrap();
    for counts in counts {
        assert!(!IndexedProfile::default().add(counts, "a profile").unwrap());
    }
}

#[test]
fn damaged_values_have_an_error() {
    let program = Instrumented::compile(22, TABLES).unwrap();
    let run = program.run(3, ROOM);
    let [indexed, _] = program.merged("whole", &run);
    // The sections at the end of an indexed profile have nothing that rocov reads.
    for (path, unread) in [(&run[0], 0), (&indexed, 16)] {
        let whole = fs::read(path).unwrap();
        let damaged = program
            .directory
            .path()
            .join("damaged")
            .with_extension(path.extension().unwrap());
        let mut refused = 0;
        // Both halves of words of 8 bytes, in a fifth of all words.
        for at in (0..whole.len()).step_by(20) {
            let mut bytes = whole.clone();
            bytes[at..][..4].fill(0xff);
            fs::write(&damaged, bytes).unwrap();
            if let Err(error) = host_counts(&damaged, None, &mut KnownNames::default()) {
                refused += 1;
                assert!(!format!("{error:#}").is_empty());
            }
            fs::write(&damaged, &whole[..at]).unwrap();
            let cut = host_counts(&damaged, None, &mut KnownNames::default());
            let is_read = at < whole.len() - unread;
            assert_eq!(cut.is_err(), is_read, "{at} of {}", whole.len());
        }
        assert!(refused > 10, "{refused}");
    }
}
