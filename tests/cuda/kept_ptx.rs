//! The PTX in a data directory: reports have code that was never loaded, and commands take the texts along.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::instrument::{Uncounted, data, identities, lines, numbered};
use crate::setup::{HISTOGRAM, profiles, profiles_of, step};
use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};

/// A unit with a kernel of this name in a source of its own: lines 3 and 4, and 5 and 6 in blocks of their own.
fn unit(name: &str) -> String {
    format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n\n.visible .entry {name}(.param .u64 p)\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .b32 %r<2>;\n\t.loc 1 3 1\n\tmov.u32 %r1, %tid.x;\n\t.loc 1 4 1\n\
         \tsetp.gt.u32 %p1, %r1, 7;\n\t@%p1 bra $L;\n\t.loc 1 5 1\n\tadd.u32 %r1, %r1, 1;\n$L:\n\t.loc 1 6 1\n\tret;\n}}\n\
         .file 1 \"/src/{name}.cu\"\n"
    )
}

/// Fat binaries of units, and a library that has them all as nvcc puts them there.
struct Library {
    uncounted: Uncounted,
    place: TempDir,
}

impl Library {
    fn new(units: &[(&str, String)]) -> Option<Self> {
        let uncounted = Uncounted::get()?;
        let place = data();
        let path = |name: String| place.path().join(name);
        let mut source = ".section .nv_fatbin,\"a\"\n".to_owned();
        for (name, text) in units {
            let (ptx, fat_binary) = (path(format!("{name}.ptx")), path(format!("{name}.fat")));
            fs::write(&ptx, text).expect("it can be written");
            let mut command = limited(uncounted.tool("fatbinary"));
            command.args(["-64", "--compress=true", "--create"]);
            let image = format!("--image3=kind=ptx,sm=80,file={}", ptx.display());
            run(command.arg(&fat_binary).arg(image)).success();
            source += &format!(".p2align 3\n.incbin \"{}\"\n", fat_binary.display());
        }
        let assembly = path("library.s".to_owned());
        fs::write(&assembly, source).expect("it can be written");
        let mut command = limited("gcc");
        command
            .args(["-shared", "-o"])
            .arg(path("library.so".to_owned()));
        run(command.arg(&assembly)).success();
        Some(Self { uncounted, place })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The steps that load these units, and plant their counts.
    fn steps(&self, units: &[&str]) -> Vec<String> {
        let mut all = vec![step("open", &self.path("library.so"))];
        for name in units {
            let file = self.path(name).with_extension("fat");
            let bytes = fs::read(&file).expect("it was made");
            let packed = rocov::format::bundle::packed_ptx(&bytes).expect("fatbinary has made it");
            let text = packed[0].text().expect("fatbinary has made it");
            let (plant, _) = numbered(str::from_utf8(&text).expect("it is PTX"));
            all.extend([step("fatbinary", &file), plant]);
        }
        all
    }
}

fn rocov(arguments: &[&dyn AsRef<OsStr>]) -> Ended {
    let mut rocov = limited(built("rocov"));
    run(rocov.args(arguments.iter().map(AsRef::as_ref)))
}

/// The counts of lines in each source, of the LCOV of a report.
fn counts_of(data: &Path) -> BTreeMap<String, Vec<String>> {
    let report = rocov(&[&"report", &"--lcov", &data]).success();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut file = String::new();
    for line in report.stdout.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            file = path.to_owned();
        }
        if let Some(counts) = line.strip_prefix("DA:") {
            found
                .entry(file.clone())
                .or_default()
                .push(counts.to_owned());
        }
    }
    found
}

#[test]
fn code_that_was_never_loaded_has_lines_without_counts() {
    let without_lines = unit("bare").replace("\t.loc", "\t// loc");
    let units = [
        ("loaded", unit("loaded")),
        ("never", unit("never")),
        ("bare", without_lines),
    ];
    let Some(library) = Library::new(&units) else {
        return;
    };
    let file = |name: &str| format!("/src/{name}.cu");
    let counted = ["3,1", "4,1", "5,2", "6,3"].map(str::to_owned).to_vec();
    let zeros = ["3,0", "4,0", "5,0", "6,0"].map(str::to_owned).to_vec();
    let of_loaded = (file("loaded"), counted.clone());

    let one = data();
    let all = library.steps(&["loaded"]);
    run(&mut library.uncounted.command(one.path(), &all)).success();
    let expected = BTreeMap::from([of_loaded.clone(), (file("never"), zeros)]);
    assert_eq!(counts_of(one.path()), expected);
    assert_eq!(profiles(one.path()).len(), 2);
    // A later run loads the other unit, and counts it.
    let all = library.steps(&["never"]);
    run(&mut library.uncounted.command(one.path(), &all)).success();
    let both = BTreeMap::from([of_loaded.clone(), (file("never"), counted)]);
    assert_eq!(counts_of(one.path()), both);

    let without = data();
    let mut command = library
        .uncounted
        .command(without.path(), &library.steps(&["loaded"]));
    run(command.env("ROCOV_ZERO", "0")).success();
    assert_eq!(counts_of(without.path()), BTreeMap::from([of_loaded]));

    let all = data();
    let mut command = library
        .uncounted
        .command(all.path(), &library.steps(&["loaded", "never"]));
    let ended = run(&mut command).success();
    assert_eq!(counts_of(all.path()), both);
    assert_eq!(profiles(all.path()).len(), 2, "{ended}");

    // A run that does not make code count has no such lines either.
    let plain = data();
    let mut command = limited(built("rocov"));
    command.args(["run", "-o"]).arg(plain.path()).arg("--");
    library.uncounted.setup.program(&mut command, "steps");
    command.args([
        step("open", &library.path("library.so")),
        step("load", &library.uncounted.setup.cubin),
    ]);
    run(&mut command).success();
    assert!(!counts_of(plain.path()).contains_key(&file("never")));
}

#[test]
fn reports_of_a_library_that_is_gone_have_its_lines() {
    let units = [("loaded", unit("loaded")), ("never", unit("never"))];
    let Some(library) = Library::new(&units) else {
        return;
    };
    let data = data();
    let mut command = library
        .uncounted
        .command(data.path(), &library.steps(&["loaded"]));
    run(&mut command).success();
    fs::remove_file(library.path("library.so")).expect("it was made");
    let lines = counts_of(data.path());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(profiles_of("sm_", data.path()).len(), 2);

    // A merge takes the texts along, and so do reports of it.
    let place = TempDir::new().expect("a directory can be made");
    let pooled = place.path().join("pooled");
    rocov(&[&"merge", &data.path(), &"--pooled", &pooled]).success();
    let texts = |data: &Path| identities(&data.join("objects"), ".ptx");
    assert_eq!(texts(&pooled), texts(data.path()));
    assert_eq!(counts_of(&pooled), lines);

    // Nothing of it is left behind.
    for directory in [data.path(), &pooled] {
        let cleaned = rocov(&[&"clean", &directory]).success();
        assert!(cleaned.stdout.contains("2 PTX files"), "{cleaned}");
        assert!(!cleaned.stdout.contains("left "), "{cleaned}");
        assert!(!directory.join("objects").exists());
    }
}

/// clang marks the start of a block by a label, or by a comment with its number.
#[test]
fn ptx_is_shown_with_the_counts_of_blocks() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let text = uncounted.file("text", format!("{}\0", uncounted.text));
    let (plant, expected) = numbered(&uncounted.text);
    let data = data();
    let ended = run(&mut uncounted.command(data.path(), &[step("data", &text), plant])).success();
    assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
    let show = |name: &str| rocov(&[&"show", &"--disassemble", &name, &data.path()]);
    let shown = show("histogram").success().stdout;
    assert_eq!(shown, show(HISTOGRAM).success().stdout);
    let name = format!("rocov-ptx;{HISTOGRAM}");
    let (_, blocks) = expected
        .iter()
        .find(|(function, _)| *function == name)
        .expect("a kernel");
    let (mut counts, mut texts, mut begins) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut is_start = false;
    for line in shown.lines().skip(2) {
        let (count, text) = line.split_at(line.len().min(11));
        let text = text.trim();
        texts.insert(text.to_owned());
        if let Ok(count) = count.trim().parse::<u64>() {
            counts.push(count);
            if is_start {
                begins.push(count);
            }
        }
        let is_mark = text.starts_with("// %bb.") || text.starts_with("$L__BB");
        let is_instruction =
            text.starts_with(|first: char| first.is_ascii_lowercase() || first == '@');
        is_start = is_mark || is_start && !is_instruction;
    }
    assert_eq!(&counts, blocks, "{shown}");
    // Blocks after a call have no mark of clang.
    let marks = shown.lines().filter(|line| {
        line.contains("// %bb.") || line.trim().starts_with("$L__BB") && line.contains(':')
    });
    assert_eq!(begins.len(), marks.count(), "{shown}");
    assert!(texts.contains("ret;"), "{shown}");
    show("nothing")
        .with_status(1)
        .says(&["no code object in", "contains a function nothing"]);
}
