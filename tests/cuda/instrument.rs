//! Counters that rocov puts into CUDA code while it is loaded: code of all forms, the cache, losses and damage. The stand-in
//! compiles PTX by ptxas.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::ptx::compiled;
use crate::setup::{Setup, counts, profiles, profiles_of, step, steps};
use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};
use crate::support::compile::clang;
use crate::support::compilers::Compiler;

/// A function of kernels.cu, by the name of its record.
const HISTOGRAM: &str = "rocov-ptx;_Z9histogramPKfiPj";

/// Code that was compiled without counters, and places for a run.
pub(crate) struct Uncounted {
    pub(crate) setup: &'static Setup,
    directory: TempDir,
    /// The PTX of kernels.cu.
    pub(crate) text: String,
}

impl Uncounted {
    pub(crate) fn get() -> Option<Self> {
        let setup = Setup::get()?;
        let ptx = setup.plain().with_extension("ptx");
        Some(Self {
            setup,
            directory: TempDir::new().expect("a directory can be made"),
            text: fs::read_to_string(ptx).expect("it was made"),
        })
    }

    /// Code with line tables.
    pub(crate) fn with_lines() -> Option<Self> {
        let mut uncounted = Self::get()?;
        let cubin = uncounted.directory.path().join("lines.cubin");
        let flags = ["-O1", "-gline-tables-only"];
        uncounted
            .setup
            .assemble(clang(), "kernels.cu", &flags, &cubin);
        let text = fs::read_to_string(cubin.with_extension("ptx"));
        uncounted.text = text.expect("it was made");
        Some(uncounted)
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, contents).expect("it can be written");
        path
    }

    /// A tool of the CUDA toolkit.
    pub(crate) fn tool(&self, name: &str) -> PathBuf {
        self.setup.toolkit().join("bin").join(name)
    }

    /// A fat binary of the PTX and the cubin.
    fn fat_binary(&self, options: &[&str]) -> PathBuf {
        let ptx = self.file("kernels.ptx", &self.text);
        let ptx = format!("--image3=kind=ptx,sm=90,file={}", ptx.display());
        self.cubin_fat_binary(&[&[ptx.as_str()], options].concat())
    }

    /// A fat binary of the cubin.
    fn cubin_fat_binary(&self, options: &[&str]) -> PathBuf {
        let path = self.directory.path().join("fat");
        let mut command = limited(self.tool("fatbinary"));
        command.args(["-64", "--create"]).arg(&path);
        command.arg(format!(
            "--image3=kind=elf,sm=90,file={}",
            self.setup.plain().display()
        ));
        run(command.args(options)).success();
        path
    }

    /// A run of the program with `steps`, which has PTX compiled.
    pub(crate) fn command(&self, data: &Path, steps: &[String]) -> Command {
        let mut command = limited(built("rocov"));
        command
            .args(["run", "--instrument", "-v", "-o"])
            .arg(data)
            .arg("--");
        self.with_stand_in(&mut command, steps);
        command
    }

    /// A run that only records which blocks ran.
    pub(crate) fn command_for_reached(&self, data: &Path, steps: &[String]) -> Command {
        let mut command = limited(built("rocov"));
        command.args(["run", "--instrument", "--counters=reached", "-v", "-o"]);
        command.arg(data).arg("--");
        self.with_stand_in(&mut command, steps);
        command
    }

    fn with_stand_in(&self, command: &mut Command, steps: &[String]) {
        self.setup.program(command, "steps").args(steps);
        command.env("STAND_IN_PTXAS", self.tool("ptxas"));
        command.env("STAND_IN_COMPILED", self.directory.path().join("compiled"));
        command.env("ROCOV_CACHE", self.directory.path().join("cache"));
    }

    /// The number of calls of the compiler so far.
    fn compilations(&self) -> usize {
        let noted = fs::read_to_string(self.directory.path().join("compiled"));
        noted.map_or(0, |noted| noted.lines().count())
    }

    /// The step that plants counts into the counters of the module: those of the functions of the text, one after the
    /// other.
    pub(crate) fn plant(text: &str, counts: &str) -> String {
        let unit = xxh3_64(text.as_bytes());
        format!("plant:__profc_rocov_{unit:016x}:{counts}")
    }
}

pub(crate) fn data() -> TempDir {
    TempDir::new().expect("a directory can be made")
}

/// The lines of rocov that have a part.
pub(crate) fn lines(ended: &Ended, part: &str) -> Vec<String> {
    let lines = ended.stderr.lines().filter(|line| line.contains(part));
    lines.map(str::to_owned).collect()
}

/// The counters of all functions, the first in the text first, are numbered from 1: the drain must find these numbers.
pub(crate) fn numbered(text: &str) -> (String, Vec<(String, Vec<u64>)>) {
    let module = rocov::format::ptx::Module::parse(text).expect("clang has written it");
    let mut next = 1..;
    let functions = module.functions.iter().map(|function| {
        let blocks = next.by_ref().take(function.blocks.len());
        (format!("rocov-ptx;{}", function.symbol), blocks.collect())
    });
    let functions: Vec<(String, Vec<u64>)> = functions.collect();
    let all: Vec<String> = functions
        .iter()
        .flat_map(|(_, blocks)| blocks)
        .map(u64::to_string)
        .collect();
    (Uncounted::plant(text, &all.join(",")), functions)
}

/// The first block of each function, and every other one after it, has run, by the bytes that its kernels would have written: 0 for one that ran. The drain
/// must find 1 for it.
pub(crate) fn reached(text: &str) -> (String, Vec<(String, Vec<u64>)>) {
    let module = rocov::format::ptx::Module::parse(text).expect("clang has written it");
    let blocks = module
        .functions
        .iter()
        .map(|function| function.blocks.len());
    // Each function has words of 32 flags before the bytes.
    let words: usize = blocks.clone().map(|count| count.div_ceil(32)).sum();
    let mut bytes = vec![0xff_u8; 4 * words];
    let functions = module.functions.iter().map(|function| {
        let own = [1, 0].into_iter().cycle().take(function.blocks.len());
        (format!("rocov-ptx;{}", function.symbol), own.collect())
    });
    let functions: Vec<(String, Vec<u64>)> = functions.collect();
    let all = functions.iter().flat_map(|(_, blocks)| blocks);
    bytes.extend(all.map(|ran| if *ran == 1 { 0 } else { 0xff }));
    bytes.resize(bytes.len().next_multiple_of(8), 0xff);
    let all: Vec<String> = bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("8 bytes")).to_string())
        .collect();
    (Uncounted::plant(text, &all.join(",")), functions)
}

/// The identities in the names of the files with an extension.
pub(crate) fn identities(folder: &Path, extension: &str) -> Vec<String> {
    let files = fs::read_dir(folder).expect("there are files");
    let names = files
        .map(|file| file.expect("it can be listed").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(extension));
    let mut found: Vec<String> = names
        .map(|name| name.split('.').nth(1).unwrap_or_default().to_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn code_of_each_form_counts_and_its_ptx_is_kept() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let text = uncounted.file("text", format!("{}\0", uncounted.text));
    let fat_binary = uncounted.fat_binary(&["--compress=true"]);
    // fatbinary takes comments out. The test with cuobjdump has its text.
    let packed = fs::read(&fat_binary).expect("it was made");
    let packed = rocov::format::bundle::packed_ptx(&packed).expect("fatbinary has made it");
    let packed = packed[0].text().expect("fatbinary has made it");
    let packed = str::from_utf8(&packed).expect("it is PTX");
    for (how, file, then) in [
        ("load", &text, None),
        ("data", &text, None),
        ("options", &text, None),
        ("fatbinary", &fat_binary, None),
        ("library", &fat_binary, Some("get")),
        ("library-file", &fat_binary, Some("get")),
        ("early", &fat_binary, Some("get")),
    ] {
        let data = data();
        let kept = if *file == text {
            &uncounted.text
        } else {
            packed
        };
        let (plant, expected) = numbered(kept);
        let mut all = vec![step(how, file)];
        all.extend(then.map(str::to_owned));
        all.push(plant);
        let ended = run(&mut uncounted.command(data.path(), &all)).success();
        assert_eq!(ended.stdout, "done\n");
        assert_eq!(lines(&ended, "instrumented").len(), 2, "{how}: {ended}");
        // By llvm-profdata.
        let found = counts(&profiles(data.path()), data.path());
        for (name, blocks) in &expected {
            assert_eq!(&found[name], blocks, "{how}: {name}");
        }
        assert!(found.contains_key(HISTOGRAM), "{how}: {found:?}");
        let objects = data.path().join("objects");
        let sources = identities(&objects, ".ptx");
        assert_eq!(sources, identities(&objects, ".elf"), "{how}");
        assert_eq!(
            sources,
            identities(&data.path().join("profraw"), ".profraw"),
            "{how}"
        );
        assert_eq!(sources.len(), 1, "{how}");
        let file = objects.join(format!("sm_90.{}.ptx", sources[0]));
        assert_eq!(fs::read_to_string(file).expect("it is kept"), kept, "{how}");
    }
    // Two texts: without counters, to know the registers, and with them.
    assert_eq!(uncounted.compilations(), 4);
}

/// Counters of a byte tell what ran. Neither kind takes code of the other from the cache.
#[test]
fn a_run_may_only_tell_what_ran() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let text = uncounted.file("text", format!("{}\0", uncounted.text));
    let (plant, expected) = reached(&uncounted.text);
    let (count, counted) = numbered(&uncounted.text);
    for (is_reached, compilations) in [(true, 2), (false, 2), (true, 0), (false, 0)] {
        let data = data();
        let (plant, expected) = match is_reached {
            true => (&plant, &expected),
            false => (&count, &counted),
        };
        let steps = [step("load", &text), plant.clone()];
        let mut command = match is_reached {
            true => uncounted.command_for_reached(data.path(), &steps),
            false => uncounted.command(data.path(), &steps),
        };
        let before = uncounted.compilations();
        run(&mut command).success();
        assert_eq!(
            uncounted.compilations() - before,
            compilations,
            "{is_reached}"
        );
        // By llvm-profdata.
        let found = counts(&profiles(data.path()), data.path());
        for (name, blocks) in expected {
            assert_eq!(&found[name], blocks, "{is_reached}: {name}");
        }
    }
}

#[test]
fn the_words_for_counters_are_those_of_flags() {
    for (words, message) in [
        (&["--counters=reached"][..], "--instrument"),
        (
            &["--instrument", "--counters=llvm"],
            "possible values: fast, reached",
        ),
    ] {
        let mut command = limited(built("rocov"));
        let ended = run(command.arg("run").args(words).args(["--", "true"]));
        assert_eq!(ended.status.code(), Some(2), "{ended}");
        assert!(ended.stderr.contains(message), "{ended}");
    }
    let mut command = limited(built("rocov"));
    command.args(["run", "-v", "--instrument", "--counters=hit", "--", "true"]);
    let ended = run(&mut command).success();
    assert!(ended.stderr.contains("ROCOV_INSTRUMENT=reached"), "{ended}");
    let place = lines(&ended, "TRITON_CACHE_DIR=");
    assert!(
        place
            .iter()
            .all(|directory| directory.ends_with("-reached")),
        "{ended}"
    );
}

/// The PTX of a fat binary, by NVIDIA's tool.
fn extracted(uncounted: &Uncounted, fat_binary: &Path) -> String {
    let place = data();
    let mut cuobjdump = limited(uncounted.tool("cuobjdump"));
    cuobjdump.current_dir(place.path());
    run(cuobjdump.args(["-xptx", "all"]).arg(fat_binary)).success();
    let files: Vec<PathBuf> = fs::read_dir(place.path())
        .expect("it can be listed")
        .map(|file| file.expect("it can be listed").path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(&files[0]).expect("it is there");
    text.trim_end_matches(['\0', '\n']).to_owned()
}

/// The PTX that a run has kept.
fn kept(data: &Path) -> String {
    let objects = data.join("objects");
    let sources = identities(&objects, ".ptx");
    assert_eq!(sources.len(), 1, "{sources:?}");
    let file = objects.join(format!("sm_90.{}.ptx", sources[0]));
    fs::read_to_string(file).expect("it is kept")
}

#[test]
fn the_kept_ptx_is_that_of_cuobjdump() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let fat_binary = uncounted.fat_binary(&["--compress=true"]);
    let data = data();
    let all = vec![step("fatbinary", &fat_binary)];
    run(&mut uncounted.command(data.path(), &all)).success();
    assert_eq!(
        kept(data.path()).trim_end(),
        extracted(&uncounted, &fat_binary).trim_end()
    );
}

/// Two units: a kernel calls a function of the other, which has a kernel, too. Both have one function in common.
fn units() -> [String; 2] {
    let head = ".version 7.8\n.target sm_90\n.address_size 64\n";
    let shared = ".weak .func shared()\n{\n\tret;\n}\n";
    let first = ".extern .func helper();\n.visible .entry first(.param .u64 p)\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<2>;\n\
         \tmov.u32 %r1, %tid.x;\n\tsetp.gt.u32 %p1, %r1, 7;\n\t@%p1 bra $L;\n\tcall helper, ();\n$L:\n\tret;\n}\n";
    let second = ".visible .func helper()\n{\n\tcall shared, ();\n\tret;\n}\n.visible .entry second(.param .u64 p)\n{\n\tret;\n}\n";
    [
        format!("{head}{shared}{first}"),
        format!("{head}{shared}{second}"),
    ]
}

/// Separate compilation (`nvcc -rdc=true`): the driver links the PTX of all units.
#[test]
fn code_of_several_units_is_linked() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let plain = uncounted.fat_binary(&["--compress=true"]);
    let fat_binaries: Vec<PathBuf> = units()
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let ptx = uncounted.file(&format!("{number}.ptx"), text);
            let path = uncounted.directory.path().join(format!("{number}.fat"));
            let mut command = limited(uncounted.tool("fatbinary"));
            command.args(["-64", "-c", "--create"]).arg(&path);
            let image = format!("--image3=kind=ptx,sm=90,file={}", ptx.display());
            run(command.arg(image)).success();
            path
        })
        .collect();
    let texts: Vec<String> = fat_binaries
        .iter()
        .map(|fat_binary| extracted_text(fat_binary))
        .collect();
    let (plants, expected): (Vec<_>, Vec<_>) = texts.iter().map(|text| numbered(text)).unzip();
    let files: Vec<String> = [&plain]
        .into_iter()
        .chain(&fat_binaries)
        .map(|path| path.display().to_string())
        .collect();
    let mut all = vec![format!("linked:{}", files.join(",")), "get".into()];
    all.extend(plants);
    let data = data();
    let ended = run(&mut uncounted.command(data.path(), &all)).success();
    assert_eq!(ended.stdout, "done\n");
    assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
    // Each unit without counters, and with them.
    assert_eq!(uncounted.compilations(), 4);
    let found = counts(&profiles(data.path()), data.path());
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    let all = ["first", "helper", "second", "shared"].map(|name| format!("rocov-ptx;{name}"));
    assert_eq!(names, all);
    // nvlink keeps one of the functions that both have, and both units count it in a place of their own.
    for (name, blocks) in expected.iter().flatten() {
        let times = if name.ends_with("shared") { 2 } else { 1 };
        let blocks: Vec<u64> = blocks.iter().map(|count| times * count).collect();
        assert_eq!(found[name], blocks, "{name}");
    }
    let theirs: Vec<String> = fat_binaries
        .iter()
        .map(|path| extracted(&uncounted, path))
        .collect();
    let joined: String = kept(data.path()).split_whitespace().collect();
    let expected: String = theirs.concat().split_whitespace().collect();
    assert_eq!(joined, expected);
    let mut report = limited(built("rocov"));
    let report = run(report.args(["report", "--json"]).arg(data.path())).success();
    for name in ["first", "helper", "second", "shared"] {
        assert!(report.stdout.contains(name), "{report}");
    }
}

#[test]
fn the_cache_is_used_and_made_again() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let text = uncounted.file("text", format!("{}\0", uncounted.text));
    let (plant, expected) = numbered(&uncounted.text);
    let entries = uncounted.directory.path().join("cache/instrumented");
    let once = |change: &dyn Fn(&mut Command), cached: usize, compilations: usize| {
        let data = data();
        let before = uncounted.compilations();
        let mut command = uncounted.command(data.path(), &[step("data", &text), plant.clone()]);
        change(&mut command);
        let ended = run(&mut command).success();
        assert_eq!(lines(&ended, "from the cache").len(), cached, "{ended}");
        assert_eq!(uncounted.compilations() - before, compilations, "{ended}");
        let found = counts(&profiles(data.path()), data.path());
        assert_eq!(found[&expected[0].0], expected[0].1);
        // Those of -v with variables have an equals sign.
        let mut warned = lines(&ended, "cache");
        warned.retain(|line| !line.contains('='));
        assert_eq!(
            warned.len(),
            cached,
            "the cache is no reason for a line: {ended}"
        );
    };
    let usual = |_: &mut Command| {};
    once(&usual, 0, 2);
    once(&usual, 1, 0);
    let entry = || {
        let mut files = fs::read_dir(&entries).expect("there are entries");
        files
            .next()
            .expect("there is one")
            .expect("it can be listed")
            .path()
    };
    let whole = fs::read(entry()).expect("it can be read");
    fs::write(entry(), &whole[..whole.len() / 2]).expect("it can be written");
    once(&usual, 0, 2);
    assert_eq!(fs::read(entry()).expect("it can be read"), whole);
    once(&usual, 1, 0);
    // A place that nobody can write, no place at all, and one that has no room.
    once(
        &|command| {
            command.env("ROCOV_CACHE", "/proc/none");
        },
        0,
        2,
    );
    once(
        &|command| {
            command
                .env_remove("ROCOV_CACHE")
                .env_remove("HOME")
                .env_remove("XDG_CACHE_HOME");
        },
        0,
        2,
    );
    let home = uncounted.directory.path().join("home");
    let at_home = |command: &mut Command| {
        command
            .env_remove("ROCOV_CACHE")
            .env_remove("XDG_CACHE_HOME")
            .env("HOME", &home);
    };
    once(&at_home, 0, 2);
    once(&at_home, 1, 0);
    assert!(home.join(".cache/rocov/instrumented").is_dir());
    let small = |command: &mut Command| {
        let place = uncounted.directory.path().join("small");
        command
            .env("ROCOV_CACHE", place)
            .env("ROCOV_CACHE_MAX", "1K");
    };
    once(&small, 0, 2);
    once(&small, 0, 2);
}

#[test]
fn code_that_runs_uncounted_is_named_once_at_the_end() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let too_new = uncounted.text.replace(".target sm_90", ".target sm_100");
    let unknown = uncounted.text.replacen("ret;", "bra nowhere;", 1);
    let refused = uncounted
        .text
        .replacen("ret;", "mov.u32 %none, 1;\n\tret;", 1);
    let next = "compile it with nvcc -gencode arch=compute_90,code=compute_90, too";
    for (name, contents, line) in [
        (
            "cubin",
            fs::read(uncounted.setup.plain()).expect("it was made"),
            "it is a cubin without PTX: load PTX".into(),
        ),
        (
            "fat-binary",
            fs::read(uncounted.cubin_fat_binary(&[])).expect("it was made"),
            format!("it has no PTX: {next}"),
        ),
        (
            "unknown",
            with_zero(&unknown),
            "rocov cannot instrument its PTX: ".into(),
        ),
        (
            "refused",
            with_zero(&refused),
            "the driver cannot compile its PTX (".into(),
        ),
        (
            "new",
            with_zero(&too_new),
            "the driver cannot compile its PTX (".into(),
        ),
    ] {
        // The stand-in takes a comment for the code, and rocov takes the PTX after it.
        let cubin = format!("// cubin: {}\n", uncounted.setup.plain().display());
        let is_text = contents.starts_with(b"//") || contents.starts_with(b".version");
        let contents = if is_text {
            [cubin.as_bytes(), &contents].concat()
        } else {
            contents
        };
        let file = uncounted.file(name, contents);
        let data = data();
        let all = [step("load", &file), step("load", &file), "exit:3".into()];
        let ended = run(&mut uncounted.command(data.path(), &all)).with_status(3);
        assert_eq!(ended.stdout, "done\n");
        let said = lines(&ended, "run uncounted");
        let expected = format!(
            "rocov: 2 CUDA modules of {} run uncounted: {line}",
            file.display()
        );
        assert_eq!(said.len(), 1, "{ended}");
        assert!(said[0].starts_with(&expected), "{expected}: {ended}");
        assert!(!data.path().join("profraw").exists(), "{ended}");
    }
}

/// Several processes, each with modules of two files, one of them for two reasons.
#[test]
fn a_library_without_counters_is_one_line_for_all_processes() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let cubin = uncounted.file(
        "cubin",
        fs::read(uncounted.setup.plain()).expect("it was made"),
    );
    let fat = uncounted.file(
        "fat-binary",
        fs::read(uncounted.cubin_fat_binary(&[])).expect("it was made"),
    );
    let data = data();
    let steps = [step("load", &cubin), step("load", &fat), step("load", &fat)];
    let program = uncounted.command(data.path(), &steps);
    let words: Vec<_> = program.get_args().map(ToOwned::to_owned).collect();
    let start = words
        .iter()
        .position(|word| word == "--")
        .expect("rocov run has it")
        + 1;
    let quiet = words[..start].iter().filter(|word| *word != "-v");
    let mut command = Command::new(program.get_program());
    command
        .args(quiet)
        .args(["sh", "-c", "for i in 1 2 3; do \"$@\"; done", "sh"]);
    command.args(&words[start..]);
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let ended = run(&mut command).success();
    let said = lines(&ended, "uncounted");
    let [cubin, fat] = [cubin, fat].map(|path| path.display().to_string());
    assert_eq!(said.len(), 2, "{ended}");
    let expected =
        format!("rocov: 3 CUDA modules of {cubin} run uncounted in 3 processes: it is a cubin");
    assert!(said[0].starts_with(&expected), "{ended}");
    let expected =
        format!("rocov: 6 CUDA modules of {fat} run uncounted in 3 processes: it has no PTX");
    assert!(said[1].starts_with(&expected), "{ended}");
}

fn with_zero(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// A fat binary of PTX for these targets, as its header and its text name them.
fn fat_binary_for(uncounted: &Uncounted, targets: &[&str]) -> PathBuf {
    let path = uncounted.directory.path().join(targets.concat());
    let mut command = limited(uncounted.tool("fatbinary"));
    command
        .args(["-64", "--compress=false", "--create"])
        .arg(&path);
    for target in targets {
        let text = uncounted
            .text
            .replace(".target sm_90", &format!(".target sm_{target}"));
        let ptx = uncounted.file(&format!("{target}.ptx"), text);
        command.arg(format!(
            "--image3=kind=ptx,sm={target},file={}",
            ptx.display()
        ));
    }
    run(&mut command).success();
    path
}

#[test]
fn a_library_counts_on_gpus_of_several_architectures() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let fat_binary = fat_binary_for(&uncounted, &["80"]);
    let (plant, expected) = numbered(&extracted_text(&fat_binary));
    let loaded = uncounted.directory.path().join("loaded");
    let again = ["from the cache", "instrumented"];
    for (number, said) in again.into_iter().rev().enumerate() {
        let data = data();
        let all = [
            step("library", &fat_binary),
            "get".into(),
            plant.clone(),
            "device:1".into(),
            "get".into(),
            plant.clone(),
        ];
        let mut command = uncounted.command(data.path(), &all);
        command
            .env("STAND_IN_SECOND", "80")
            .env("STAND_IN_LOADED", &loaded);
        let ended = run(&mut command).success();
        assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
        assert!(!lines(&ended, said).is_empty(), "{number}: {ended}");
        for arch in ["sm_80.", "sm_90."] {
            let found = counts(&profiles_of(arch, data.path()), data.path());
            for (name, blocks) in &expected {
                assert_eq!(&found[name], blocks, "{arch} {name}");
            }
        }
        let objects = data.path().join("objects");
        assert_eq!(identities(&objects, ".ptx").len(), 2);
        // In the first run, each architecture without counters and with them, for sm_80 with few registers and with more.
        let mut noted: Vec<_> = fs::read_to_string(uncounted.directory.path().join("compiled"))
            .expect("it was noted")
            .lines()
            .map(str::to_owned)
            .collect();
        noted.sort();
        assert_eq!(noted, ["80", "80", "80", "90", "90"]);
    }
    // NVIDIA's own tool makes the fat binary of these cubins.
    let place = data();
    let mut cuobjdump = limited(uncounted.tool("cuobjdump"));
    cuobjdump.current_dir(place.path());
    run(cuobjdump.args(["-xelf", "all"]).arg(&loaded)).success();
    let files: Vec<PathBuf> = fs::read_dir(place.path())
        .expect("it can be listed")
        .map(|file| file.expect("it can be listed").path())
        .collect();
    let theirs = place.path().join("theirs");
    let mut command = limited(uncounted.tool("fatbinary"));
    command
        .args(["-64", "--compress=false", "--create"])
        .arg(&theirs);
    for arch in ["80", "90"] {
        let is_it = |path: &&PathBuf| path.to_string_lossy().contains(&format!("sm_{arch}"));
        let file = files.iter().find(is_it).expect("cuobjdump has found it");
        command.arg(format!(
            "--image3=kind=elf,sm={arch},file={}",
            file.display()
        ));
    }
    run(&mut command).success();
    let read = |path: &Path| fs::read(path).expect("it was made");
    assert!(read(&theirs) == read(&loaded));
}

/// The only PTX of a fat binary.
fn extracted_text(fat_binary: &Path) -> String {
    let bytes = fs::read(fat_binary).expect("it was made");
    let packed = rocov::format::bundle::packed_ptx(&bytes).expect("fatbinary has made it");
    let text = packed[0].text().expect("fatbinary has made it");
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_library_without_ptx_for_one_of_the_architectures_stays_as_it_is() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    for (targets, reason) in [
        (
            &["90"][..],
            "its PTX is for 90, but the GPU is sm_80: compile it with nvcc -gencode arch=compute_80,",
        ),
        (
            &["80", "90a"],
            "the GPUs have several architectures (sm_80, sm_90), but it contains code for only one (sm_90a): select \
            GPUs of one architecture",
        ),
    ] {
        let fat_binary = fat_binary_for(&uncounted, targets);
        let data = data();
        let mut command = uncounted.command(data.path(), &[step("library", &fat_binary)]);
        let ended = run(command.env("STAND_IN_SECOND", "80")).success();
        assert_eq!(ended.stdout, "done\n");
        let said = lines(&ended, reason);
        assert_eq!(
            said.len(),
            2,
            "when it happens, because of -v, and at the end: {ended}"
        );
        // A module is for the GPU of the context.
        let plain = uncounted.fat_binary(&["--compress=false"]);
        let mut command = uncounted.command(data.path(), &[step("fatbinary", &plain)]);
        let ended = run(command.env("STAND_IN_SECOND", "80")).success();
        assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
    }
}

/// `cuLinkAddData` and `cuLinkAddFile` by the program.
#[test]
fn code_that_the_program_links_counts() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let texts = units();
    let files = [0, 1]
        .map(|number: usize| uncounted.file(&format!("{number}.ptx"), &texts[number]))
        .map(|path| path.display().to_string())
        .join(",");
    let (plants, expected): (Vec<_>, Vec<_>) = texts.iter().map(|text| numbered(text)).unzip();
    // Each unit without counters for its registers, and both for the program.
    for (how, compilations) in [("link", 4), ("link-files", 6), ("link", 8)] {
        let data = data();
        let mut all = vec![format!("{how}:{files}")];
        all.extend(plants.clone());
        let ended = run(&mut uncounted.command(data.path(), &all)).success();
        assert_eq!(ended.stdout, "done\n");
        assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
        assert_eq!(uncounted.compilations(), compilations, "{ended}");
        let found = counts(&profiles(data.path()), data.path());
        for (name, blocks) in expected.iter().flatten() {
            let times = if name.ends_with("shared") { 2 } else { 1 };
            let blocks: Vec<u64> = blocks.iter().map(|count| times * count).collect();
            assert_eq!(found[name], blocks, "{how}: {name}");
        }
        assert_eq!(kept(data.path()), texts.concat(), "{how}");
    }
    // An input that rocov does not know is linked as it is.
    let broken = uncounted.file("broken.ptx", texts[1].replacen("ret;", "bra nowhere;", 1));
    let all = [format!("link:{}", broken.display())];
    let mut plain = limited("env");
    uncounted.setup.program(&mut plain, "steps").args(&all);
    let plain = run(plain.env("STAND_IN_PTXAS", uncounted.tool("ptxas")));
    let data = data();
    let ended = run(&mut uncounted.command(data.path(), &all)).with_status(1);
    assert_eq!(ended.stdout, plain.stdout);
    assert_eq!(
        lines(&ended, "rocov cannot instrument its PTX").len(),
        2,
        "{ended}"
    );
}

/// The bytes of an ELF that tell where its table of sections is.
const SECTION_TABLE: std::ops::Range<usize> = 40..48;

/// The program links PTX with a cubin.
#[test]
fn a_part_of_a_link_without_ptx_is_named() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let files =
        [0, 1].map(|number: usize| uncounted.file(&format!("{number}.ptx"), &units()[number]));
    let [first, second] = &files;
    let plain = uncounted.directory.path().join("plain.cubin");
    let mut ptxas = limited(uncounted.tool("ptxas"));
    ptxas.args(["-c", "-arch=sm_90"]).arg(second);
    run(ptxas.arg("-o").arg(&plain)).success();
    let part = "uncounted: the program links it in a form other than PTX: link PTX, or a fat binary with PTX,";
    for (how, name) in [("link", "input"), ("link-files", &*plain.to_string_lossy())] {
        let data = data();
        let all = [
            format!("{how}:{},{}", first.display(), plain.display()),
            numbered(&units()[0]).0,
        ];
        let ended = run(&mut uncounted.command(data.path(), &all)).success();
        let said = lines(&ended, &format!("a CUDA module of {name} runs {part}"));
        assert_eq!(said.len(), 1, "{ended}");
        assert!(counts(&profiles(data.path()), data.path()).contains_key("rocov-ptx;first"));
        // If no part counts, the result is named when it is loaded.
        let all = [format!("{how}:{}", plain.display())];
        let ended = run(&mut uncounted.command(data.path(), &all)).success();
        assert_eq!(lines(&ended, part).len(), 0, "{ended}");
        let result = "a CUDA module of memory runs uncounted: it is a cubin";
        assert_eq!(lines(&ended, result).len(), 1, "{ended}");
        // One that counts by clang is no loss.
        let counted = data.path().join("counted.cubin");
        fs::copy(&uncounted.setup.cubin, &counted).expect("it can be copied");
        let all = [format!("{how}:{},{}", first.display(), counted.display())];
        let ended = run(&mut uncounted.command(data.path(), &all));
        assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
        // The driver refuses one whose header tells of more than is there.
        let mut damaged = fs::read(&counted).expect("it was copied");
        damaged[SECTION_TABLE].fill(0x7f);
        fs::write(&counted, damaged).expect("it can be written");
        run(&mut uncounted.command(data.path(), &all)).with_status(1);
    }
}

#[test]
fn the_driver_gets_ptx_that_it_refuses_once() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let refused = uncounted
        .text
        .replacen("ret;", "mov.u32 %none, 1;\n\tret;", 1);
    let cubin = format!("// cubin: {}\n", uncounted.setup.plain().display());
    let file = uncounted.file("refused", [cubin.as_bytes(), &with_zero(&refused)].concat());
    let all = [step("load", &file), step("load", &file)];
    let once = |version: &str| {
        let data = data();
        let mut command = uncounted.command(data.path(), &all);
        let ended = run(command.env("STAND_IN_VERSION", version)).success();
        let mut said = lines(&ended, "run uncounted");
        assert_eq!(said.len(), 1, "{ended}");
        said.remove(0)
    };
    let said = once("13000");
    assert!(
        said.contains("the driver cannot compile its PTX (line "),
        "{said}"
    );
    assert_eq!(uncounted.compilations(), 1);
    assert_eq!(once("13000"), said);
    assert_eq!(uncounted.compilations(), 1, "the cache has the refusal");
    assert_eq!(once("13010"), said);
    assert_eq!(uncounted.compilations(), 2, "another driver may compile it");
}

/// nvlink refuses a kernel that calls functions with more registers than it may have itself.
#[test]
fn functions_with_too_many_registers_count_in_memory() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let Some(clang) = Compiler::find(22) else {
        return;
    };
    let text = compiled(uncounted.setup, clang, "callees", "sm_90", "-O0");
    let cubin = format!("// cubin: {}\n", uncounted.setup.plain().display());
    let file = uncounted.file("callees", [cubin.as_bytes(), &with_zero(&text)].concat());
    let data = data();
    let ended = run(&mut uncounted.command(data.path(), &[step("load", &file)])).success();
    assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
    let calls =
        "without counters, with few registers, with more, and with counters of functions in memory";
    assert_eq!(uncounted.compilations(), 4, "{calls}");
}

#[test]
fn code_that_counts_already_stays_as_it_is() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let counted = fs::read(uncounted.setup.cubin.with_extension("ptx")).expect("it was made");
    let cubin = format!("// cubin: {}\n", uncounted.setup.cubin.display());
    let text = uncounted.file("counted", [cubin.as_bytes(), &counted, b"\0"].concat());
    for file in [&uncounted.setup.cubin, &text] {
        let data = data();
        let mut all = vec![step("data", file)];
        all.extend(steps(["plant:__profc__Z6bin_off:4,5,6"]));
        let ended = run(&mut uncounted.command(data.path(), &all)).success();
        assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
        let found = counts(&profiles(data.path()), data.path());
        assert_eq!(found["_Z6bin_off"], [4, 5, 6]);
    }
    assert_eq!(uncounted.compilations(), 0);
}

#[test]
fn a_damaged_fat_binary_is_loaded_as_without_rocov() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let whole = fs::read(uncounted.fat_binary(&["--compress=true"])).expect("it was made");
    let mut random = fastrand::Rng::with_seed(21);
    for turn in 0..24 {
        let mut bytes = whole.clone();
        // In the first header, in the second, or anywhere. The size of all is the memory that the program has.
        let second = 16 + 64 + whole.len() - whole.len() / 2;
        let range = [16..80, second..whole.len(), 16..whole.len()][turn % 3].clone();
        for _ in 0..=turn / 3 {
            bytes[random.usize(range.clone())] ^= 1 << random.u8(0..8);
        }
        let file = uncounted.file("damaged", bytes);
        let all = [step("fatbinary", &file), "exit:7".into()];
        let mut plain = limited("env");
        let plain = run(uncounted.setup.program(&mut plain, "steps").args(&all));
        let data = data();
        let ours = run(&mut uncounted.command(data.path(), &all));
        // Counters may come into what is whole: then the program loads more than without rocov, but never less.
        let is_better = ours.stdout == "done\n";
        assert!(
            is_better || plain.stdout == ours.stdout,
            "{turn}: {plain} {ours}"
        );
        let status = |ended: &Ended| {
            let of_signal = ended.status.signal().map(|signal| 128 + signal);
            ended.status.code().or(of_signal)
        };
        assert!(
            is_better || status(&plain) == status(&ours),
            "{turn}: {plain} {ours}"
        );
    }
}
