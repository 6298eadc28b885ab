//! Names that could break out of a report: of sources, labels, kernels and targets. They go through all formats and
//! commands, and programs that know nothing of rocov read the results.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use rocov_tests::cli::registry;
use serde_json::Value;

use super::*;
use crate::report::pages::Pages;

/// File names; the last is none of UTF-8.
const NAMES: [&[u8]; 9] = [
    b"esc\x1b]0;title\x07.hip",
    b"lines\r\nend_of_record\nSF:fake.hip",
    b"tab\t|pipe`tick\\|``.hip",
    b"]]><x a=\"&'<!--.hip",
    b"\n::error file=x::boom%0A##[error].hip",
    b"TOTAL 1 2 3",
    "\u{202e}pih.x\u{7f}\u{9b}31m\u{2028}.hip".as_bytes(),
    &[b'x'; 190],
    b"\xff\xfelatin.hip",
];

/// A name with most of this, for labels, kernels and targets.
const NAME: &str = "a\x1b]0;x\x07\r\n\t`|]]>&<b>::error::c%0A\u{202e}";

/// A data directory with sources of these names, each in a code object of its own, and a label of such a name.
struct Hostile {
    place: Place,
    names: Vec<Vec<u8>>,
}

impl Hostile {
    fn new() -> Self {
        let place = Place::new();
        let text = fs::read(data("kernel.hip")).unwrap();
        for (number, name) in NAMES.iter().enumerate() {
            let source = place.path().join(OsStr::from_bytes(name));
            fs::write(&source, &text).unwrap();
            let name = format!("{number}.elf");
            let elf = compile_source(&source, place.path(), &name, "gfx90a", &INSTRUMENTED);
            place.keep(&elf);
            let profile = place.profile(&elf, "gfx90a", 0, 1);
            let label: String = NAME.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let labels = place.data().join("labels").join(label);
            fs::create_dir_all(&labels).unwrap();
            fs::copy(&profile, labels.join(profile.file_name().unwrap())).unwrap();
        }
        let names = NAMES.map(<[u8]>::to_vec).into();
        Self { place, names }
    }

    /// The names as Unicode has them.
    fn texts(&self) -> BTreeSet<String> {
        let names = self.names.iter();
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.place.path().join(name)).unwrap()
    }

    fn rocov(&self, arguments: &[&str]) -> Output {
        let mut command = rocov();
        command.current_dir(self.place.path()).args(arguments);
        command.output().unwrap()
    }
}

/// Checks that a terminal only moves to the next line.
fn assert_plain(text: &str) {
    let moves = |letter: char| {
        let is_control = letter.is_control() && letter != '\n';
        let is_direction = matches!(letter, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        is_control || is_direction
    };
    let odd: Vec<_> = text.lines().filter(|line| line.contains(moves)).collect();
    assert!(odd.is_empty(), "{odd:?} in {text:?}");
    for start in ["SF:", "end_of_record", "::", "[error]"] {
        let odd = text
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        // The colons of a name at the start of a row are its own.
        assert!(odd.is_none(), "{odd:?} in {text:?}");
    }
}

/// Evaluates an expression of Python with a document of ElementTree, which gives lines.
fn in_xml(path: &Path, expression: &str) -> Vec<String> {
    let script = format!(
        "import sys, xml.etree.ElementTree as E\nroot = E.parse(sys.argv[1]).getroot()\nfor it in {expression}: print(it)"
    );
    let mut python = Command::new("python3");
    let said = stdout(&run(python.args(["-c", &script]).arg(path)));
    said.lines().map(str::to_owned).collect()
}

#[test]
fn every_format_keeps_hostile_names_in_their_places() {
    let hostile = Hostile::new();
    let sources = NAMES.len();
    let output = hostile.rocov(&[
        "report",
        "--per-test",
        "--html",
        "pages",
        "--lcov",
        "lcov",
        "--cobertura",
        "cobertura.xml",
        "--sonar",
        "sonar.xml",
        "--markdown",
        "md",
        "--json",
        "json",
        "-o",
        "table",
    ]);
    assert!(output.status.success(), "{output:?}");
    assert_plain(&stderr(&output));

    let table = hostile.read("table");
    assert_plain(&table);
    let rules: Vec<_> = table
        .split('\n')
        .enumerate()
        .filter(|(_, line)| line.starts_with("---"))
        .collect();
    // The rows of the sources, between two rules.
    assert_eq!(rules[1].0 - rules[0].0 - 1, sources, "{table}");
    assert!(table.contains("esc\\u{1b}]0;title\\u{7}.hip "), "{table}");

    let json: Value = serde_json::from_str(&hostile.read("json")).unwrap();
    let files = json["data"][0]["files"].as_array().unwrap().iter();
    let names = files.map(|file| {
        let name = file["filename"].as_str().unwrap();
        name.rsplit_once('/').unwrap().1.to_owned()
    });
    assert_eq!(names.collect::<BTreeSet<_>>(), hostile.texts());
    let tests = json["rocov"]["tests"].as_array().unwrap();
    assert!(tests.iter().any(|test| test["name"] == NAME), "{tests:?}");

    for (file, expression) in [
        ("cobertura.xml", "root.iter('class')"),
        ("sonar.xml", "root.iter('file')"),
    ] {
        let path = hostile.place.path().join(file);
        assert_eq!(in_xml(&path, expression).len(), sources, "{file}");
        run(Command::new("xmllint")
            .args(["--noout", "--nonet"])
            .arg(&path));
        assert_plain(&hostile.read(file));
    }

    let lcov = hostile.read("lcov");
    // A section for the label and one for the rest.
    let records = lcov.lines().filter(|line| line.starts_with("SF:")).count();
    assert_eq!(records, 2 * sources);
    let names: BTreeSet<_> = lcov
        .lines()
        .filter_map(|line| line.strip_prefix("TN:"))
        .collect();
    let is_word = |name: &&str| {
        name.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    assert!(names.len() == 2 && names.iter().all(is_word), "{names:?}");
    let mut list = Command::new("lcov");
    list.args(["--summary"])
        .arg(hostile.place.path().join("lcov"));
    run(&mut list);

    let markdown = hostile.read("md");
    assert_plain(&markdown);
    let mut columns = 0;
    let mut cells = 0;
    let mut rows = Vec::new();
    for event in Parser::new_ext(&markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Table(alignments)) => columns = alignments.len(),
            Event::Start(Tag::TableRow) => cells = 0,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::End(TagEnd::TableRow) => {
                assert_eq!(cells, columns, "{markdown}");
                rows.push(columns);
            }
            Event::InlineHtml(html) | Event::Html(html) => {
                let own = ["<details>", "<summary>", "</", "<code>"];
                let is_own = own.iter().any(|tag| html.starts_with(tag));
                assert!(is_own || html.trim().is_empty(), "{html} in {markdown}");
            }
            _ => {}
        }
    }
    // The column, two tests, and the sources.
    assert_eq!(rows.len(), 1 + 2 + sources, "{markdown}");

    let pages = Pages::read(&hostile.place.path().join("pages"));
    let tests = pages.rows("tests.html", "parts");
    assert!(
        tests
            .iter()
            .any(|row| row[0].starts_with("a\\u{1b}]0;x\\u{7}")),
        "{tests:?}"
    );
}

#[test]
fn every_command_prints_hostile_names_in_their_lines() {
    let hostile = Hostile::new();
    let place = &hostile.place;
    let mut object = registry::code_object("aa", vec![registry::kernel(NAME, 1)]);
    object.target = format!("gfx90a:{NAME}");
    object.damage = Some(format!("{NAME}{}", "A".repeat(70_000)));
    let objects = [object];
    registry::write(
        &registry::document(
            7,
            &objects,
            vec![registry::load(&objects[0], 0x1000, 1, None)],
        ),
        &place.data(),
    );
    fs::create_dir(place.path().join("other")).unwrap();
    let elf = place.path().join("0.elf");
    fs::copy(
        place.profile_path(&elf, "gfx90a", 0),
        place.path().join("other").join("gfx90a.0.profraw"),
    )
    .unwrap();

    // A bundle whose entry has such a target.
    let elf = fs::read(&elf).unwrap();
    let id = format!("hip-amdgcn-amd-amdhsa--gfx90a:{NAME}");
    let head = 32 + 24 + id.len() as u64;
    let numbers = [1, head, elf.len() as u64, id.len() as u64];
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend(numbers);
    bundle.extend_from_slice(id.as_bytes());
    bundle.resize(head as usize, 0);
    bundle.extend_from_slice(&elf);
    fs::write(place.path().join("bundle"), &bundle).unwrap();
    bundle.truncate(head as usize + 100);
    fs::write(place.path().join("damaged"), &bundle).unwrap();
    let diff = format!("--- a/x\n+++ b/{NAME}{}\n@@ -1,x @@\n", "A".repeat(70_000));
    fs::write(place.path().join("change.diff"), diff).unwrap();
    let files = fs::read_dir(place.data()).unwrap();
    let mut files = files.map(|entry| entry.unwrap().path());
    let registry = files.find(|path| path.to_string_lossy().ends_with(".json"));
    let registry = registry.unwrap().into_os_string().into_string().unwrap();

    let source = String::from_utf8(NAMES[0].to_vec()).unwrap();
    for arguments in [
        &["report"][..],
        &["report", "--per-test", "--by", "binary"],
        &["report", "--show"],
        &["report", "--diff", "change.diff"],
        &[
            "report",
            "--fail-under-lines",
            "100",
            "--fail-uncovered-kernels",
        ],
        &["report", "--include", NAME],
        &["report", "--label", NAME],
        &["which", &format!("{source}:12")],
        &["kernels", "--all"],
        &["kernels", "--arch", "nope"],
        &["extract", "--list", "bundle"],
        &["extract", "--list", "damaged"],
        &["extract", "--list", "--target", "nope", "bundle"],
        &["show", "bundle", "damaged", &registry],
        &["doctor", "bundle", "damaged"],
        &["diff", "rocov-data", "rocov-data", "--label", NAME],
        &["diff", "rocov-data", "rocov-data", "--markdown"],
        &["merge", "rocov-data", "-o", "merged"],
    ] {
        let output = hostile.rocov(arguments);
        for said in [&output.stdout, &output.stderr] {
            let said = String::from_utf8_lossy(said);
            // Sources have tabs of their own.
            assert_plain(&said.replace('\t', " "));
            let longest = said.lines().map(|line| line.chars().count()).max();
            assert!(longest < Some(2100), "{arguments:?}: {longest:?}");
        }
        assert!(
            !output.stdout.is_empty() || !output.stderr.is_empty(),
            "{arguments:?}"
        );
        assert!(output.status.code() < Some(4), "{arguments:?}: {output:?}");
    }
    let listed = stdout(&hostile.rocov(&["extract", "--list", "bundle"]));
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("\\u{1b}]0;x\\u{7}"), "{listed}");
    let listed = stdout(&hostile.rocov(&["kernels"]));
    assert_eq!(listed.lines().count(), 2, "{listed}");
}
