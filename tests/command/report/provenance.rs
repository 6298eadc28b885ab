//! The origin of a report on its pages.

use rocov::format::registry::model::{Document, ProcessRecord};
use rocov_tests::cli::registry;

use super::*;
use crate::report::pages::{Pages, all, attribute, text};
use crate::report::repository::Repository;

/// 2000-02-28 23:59:59.
const EPOCH: &str = "951782399";

/// The entries of the list, by their names.
fn origin(pages: &Pages) -> Vec<(String, Vec<String>)> {
    let entries = all(pages.page("index.html"), ".origin > div").into_iter();
    let entries = entries.map(|entry| {
        let items = all(entry, "li").into_iter().map(text);
        let items: Vec<_> = items.collect();
        let whole = || vec![text(all(entry, "dd")[0])];
        (
            text(all(entry, "dt")[0]),
            if items.is_empty() { whole() } else { items },
        )
    });
    entries.collect()
}

/// A registry of processes that started one after the other, at these seconds with these commands.
fn registry_of(elf: &Path, processes: &[(u64, &[&str])]) -> Document {
    let object = registry::code_object_of(elf, Vec::new());
    let mut document = registry::document(
        1,
        std::slice::from_ref(&object),
        vec![registry::load(&object, 0x1000, 1, None)],
    );
    let process = document.processes.remove(0);
    let processes = (1..)
        .zip(processes)
        .map(|(pid, (start, command))| ProcessRecord {
            pid,
            start: 500,
            epoch: start * 1_000_000_000,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            ..process.clone()
        });
    document.processes = processes.collect();
    document
}

#[test]
fn a_report_tells_when_and_of_what_it_is() {
    let repository = Repository::with_change("kernel.hip");
    let path = repository.root.join("kernel.hip");
    let elf = repository.ran(&path, "gfx90a", |_| false);
    let long = "é".repeat(600);
    let document = registry_of(
        &elf,
        &[
            (951_000_000, &["./app", "a b"]),
            (951_000_060, &["./app", "1"]),
            (951_000_061, &["./app", "a b"]),
            (951_000_062, &["./app", "2"]),
            (951_000_063, &["./app", "3"]),
            (951_000_064, &["./app", &long]),
            (951_000_065, &["./app", "5"]),
            (951_000_120, &["./app", "6"]),
        ],
    );
    registry::write(&document, &repository.place.data());
    let report = || {
        run(repository
            .command(&["--html=../pages"])
            .env("SOURCE_DATE_EPOCH", EPOCH));
        Pages::read(&repository.place.path().join("pages"))
    };
    let head = repository.git(&["rev-parse", "HEAD"]);
    let pages = report();
    let date = |seconds: &str| {
        let mut date = Command::new("date");
        date.arg("--utc").arg(format!("--date=@{seconds}"));
        stdout(&run(date.arg("+%Y-%m-%d %H:%M"))).trim().to_owned()
    };
    let comment = stdout(&run(Command::new("llvm-readelf-22")
        .args(["-p", ".comment"])
        .arg(&elf)));
    let compiler = comment
        .lines()
        .find(|line| line.contains("clang version"))
        .unwrap();
    let (_, compiler) = compiler.split_once("] ").unwrap();
    let version = stdout(&run(rocov().arg("--version")));
    let entry = |name: &str, values: &[&str]| {
        let values = values.iter().map(|text| (*text).to_owned());
        (name.to_owned(), values.collect::<Vec<_>>())
    };
    let written = date(EPOCH);
    let [first, last] = ["951000000", "951000120"].map(date);
    let expected = [
        entry(
            "Written",
            &[&format!("{written} UTC, by {}", version.trim())],
        ),
        entry("Sources", &[&format!("commit {}", head.trim())]),
        entry("Compiler", &[compiler.trim()]),
        entry(
            "Run",
            &[&format!("8 processes, started {first} to {last} UTC")],
        ),
        entry(
            "Commands",
            &[
                "./app 'a b' 2 processes",
                "./app 1",
                "./app 2",
                "./app 3",
                &format!("./app '{}…", "é".repeat(493)),
                "and 2 more",
            ],
        ),
    ];
    assert_eq!(origin(&pages), expected);
    // Each page has the short form.
    let page = pages.source("kernel.hip").root_element();
    let time = all(page, "footer time")[0];
    assert_eq!(
        attribute(time, "datetime"),
        format!("{}Z", written.replace(' ', "T"))
    );
    assert!(head.starts_with(&text(all(page, "footer code")[0])));

    // Another report is equal byte by byte, as long as the tree is as it was committed.
    let bytes = |pages: &Pages| {
        let source = pages.folder.join(pages.source_page("kernel.hip"));
        [source, pages.folder.join("index.html")].map(|path| fs::read(path).unwrap())
    };
    let before = bytes(&pages);
    assert!(bytes(&report()) == before);
    repository.write("kernel.hip", &format!("{}\n", repository::AFTER));
    let sources = origin(&report()).remove(1);
    let modified = format!("commit {}, and changes that are not committed", head.trim());
    assert_eq!(sources, entry("Sources", &[&modified]));
    // A revision has no changes.
    let mut command = repository.command(&["--html=../pages", "--source-revision=HEAD~1", "-q"]);
    run(command.env("SOURCE_DATE_EPOCH", EPOCH));
    let pages = Pages::read(&repository.place.path().join("pages"));
    let before = repository.git(&["rev-parse", "HEAD~1"]);
    let of_revision = format!("commit {}", before.trim());
    assert_eq!(origin(&pages).remove(1), entry("Sources", &[&of_revision]));
}

#[test]
fn a_report_without_git_and_registry_tells_the_rest() {
    let (_place, pages) = crate::report::pages::of_archs();
    let names = origin(&pages).into_iter().map(|(name, _)| name);
    let mut names: Vec<_> = names.collect();
    // The tests' own source may be in a repository.
    names.retain(|name| name != "Sources");
    assert_eq!(names, ["Written", "Compiler"]);
}

#[test]
fn a_time_that_is_none_is_an_error() {
    let (place, elfs) = Place::with_archs();
    for format in ["--html=out", "--cobertura"] {
        let mut command = place.command();
        command.env("SOURCE_DATE_EPOCH", "yesterday").arg(format);
        let output = command.arg("--object").args(&elfs).output().unwrap();
        let message = failure(&output, 1);
        assert!(
            message.contains("SOURCE_DATE_EPOCH is 'yesterday'"),
            "{message}"
        );
    }
    assert!(!place.path().join("out/index.html").exists());
}
