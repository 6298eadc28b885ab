//! The pages for a browser, read by a parser of HTML: without a script and a style, as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use super::*;
use crate::report::repository::{AFTER, Repository};

pub(crate) const ARCHS: [&str; 2] = ["gfx90a", "gfx942"];

/// A folder with pages, as they are on the disk.
pub(crate) struct Pages {
    pub(crate) folder: PathBuf,
    documents: BTreeMap<String, Html>,
}

impl Pages {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut pages = Self {
            folder: folder.to_path_buf(),
            documents: BTreeMap::new(),
        };
        for inner in ["", "source/", "test/"] {
            // Only tests have the last one.
            for entry in fs::read_dir(folder.join(inner)).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                if name.ends_with(".html") {
                    let text = fs::read_to_string(&path).unwrap();
                    let document = Html::parse_document(&text);
                    assert_eq!(document.errors, [""; 0], "{name}");
                    drop(pages.documents.insert(format!("{inner}{name}"), document));
                }
            }
        }
        pages
    }

    /// The page of a file of which the report has the name `name`.
    pub(crate) fn source(&self, name: &str) -> &Html {
        &self.documents[&self.source_page(name)]
    }

    /// The warnings on the page of a file.
    pub(crate) fn warning(&self, name: &str) -> Option<String> {
        let page = self.source(name).root_element();
        all(page, ".warning").first().map(|element| text(*element))
    }

    /// One of the pages, by its path from the folder.
    pub(crate) fn page(&self, path: &str) -> ElementRef<'_> {
        self.documents[path].root_element()
    }

    /// The rows of a table of a page with this class, as text.
    pub(crate) fn rows(&self, page: &str, class: &str) -> Vec<Vec<String>> {
        let rows = all(self.page(page), &format!("table.{class} tr")).into_iter();
        rows.map(|row| all(row, "th, td").into_iter().map(text).collect())
            .collect()
    }

    /// A figure of all files in one of the columns: covered and total.
    pub(crate) fn total(&self, kind: &str, column: usize) -> (usize, usize) {
        let index = self.documents["index.html"].root_element();
        figure(all(index, &format!(".totals td.{kind}"))[column])
    }

    /// The path of a file's page from the folder.
    pub(crate) fn source_page(&self, name: &str) -> String {
        let index = &self.documents["index.html"];
        let links = all(index.root_element(), ".files tbody th a").into_iter();
        let mut links = links.filter(|link| text(*link) == name);
        attribute(links.next().unwrap(), "href").to_owned()
    }
}

/// The elements within one that a selector has.
pub(crate) fn all<'a>(within: ElementRef<'a>, selector: &str) -> Vec<ElementRef<'a>> {
    let selector = Selector::parse(selector).unwrap();
    within.select(&selector).collect()
}

pub(crate) fn text(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    text.trim().to_owned()
}

pub(crate) fn attribute<'a>(element: ElementRef<'a>, name: &str) -> &'a str {
    let found = element.value().attr(name);
    found.unwrap_or_else(|| panic!("no {name} in {}", element.html()))
}

/// The figures in a row of a table: lines, functions, regions and branches, covered and total.
fn figures(row: ElementRef<'_>, column: usize) -> Vec<(usize, usize)> {
    let kinds = ["lines", "functions", "regions", "branches"];
    let cells = kinds.map(|kind| all(row, &format!("td.{kind}"))[column]);
    cells.map(figure).to_vec()
}

/// A figure in a cell: covered and total.
fn figure(cell: ElementRef<'_>) -> (usize, usize) {
    let share = text(all(cell, "small")[0]);
    let (covered, total) = share.split_once('/').unwrap();
    (covered.parse().unwrap(), total.parse().unwrap())
}

/// The counts next to the lines of a source, in one column.
fn counts(page: &Html, column: usize) -> Vec<(u32, u64)> {
    let rows = all(page.root_element(), "table.source tr[id]").into_iter();
    let counts = rows.filter_map(|row| {
        let number = attribute(row, "id").strip_prefix('L').unwrap().parse();
        let cell = all(row, "td.n")[column];
        let exact = all(cell, "data")
            .first()
            .map(|element| attribute(*element, "value"));
        let count = exact.map_or_else(|| text(cell), str::to_owned);
        Some((number.unwrap(), count.parse().ok()?))
    });
    counts.collect()
}

/// The lines that have a class.
pub(crate) fn lines_with(page: &Html, class: &str) -> Vec<u32> {
    let rows = all(page.root_element(), &format!("table.source tr[id].{class}"));
    let number = |row| attribute(row, "id")[1..].parse().unwrap();
    rows.into_iter().map(number).collect()
}

/// Pages of archs.hip.
pub(crate) fn of_archs() -> (Place, Pages) {
    let (place, elfs) = Place::with_archs();
    let said = place.of_archs(&elfs, &["--html=out", "--as-llvm-cov"]);
    assert_eq!(said, "out/index.html\n");
    let pages = Pages::read(&place.path().join("out"));
    (place, pages)
}

#[test]
fn the_figures_are_those_of_llvm_cov_for_each_arch() {
    let (place, pages) = of_archs();
    let index = pages.documents["index.html"].root_element();
    let source = pages.source("archs.hip");
    for (column, arch) in ARCHS.iter().enumerate() {
        let merged = profile::indexed(&place.data(), arch);
        let export = |options: &[&str]| {
            let mut export = Command::new("llvm-cov-22");
            export.arg("export").args(options);
            export.arg("-instr-profile").arg(&merged);
            stdout(&run(export.arg(place.path().join(format!("{arch}.elf")))))
        };
        let expected: Value = serde_json::from_str(&export(&["-summary-only"])).unwrap();
        let expected = ["lines", "functions", "regions", "branches"].map(|kind| {
            let figure = &expected["data"][0]["totals"][kind];
            let number = |name: &str| usize::try_from(figure[name].as_u64().unwrap()).unwrap();
            (number("covered"), number("count"))
        });
        let total = all(index, &format!(".totals [data-column={arch}]"))[0];
        assert_eq!(figures(total, 0), expected, "{arch}");
        let row = all(index, ".files tbody tr")[0];
        assert_eq!(figures(row, column), expected, "{arch}");
        let of_file = all(source.root_element(), &format!("[data-column={arch}]"))[0];
        assert_eq!(figures(of_file, 0), expected, "{arch}");

        let lines = archs::lcov_lines(&export(&["-format=lcov"]));
        assert_eq!(counts(source, column), lines, "{arch}");
    }
    // The code objects of each column.
    let origins = all(index, ".origins dl > div").into_iter().map(text);
    let origins: Vec<_> = origins.collect();
    for (origin, arch) in origins.iter().zip(ARCHS) {
        let elf = place.path().join(format!("{arch}.elf"));
        assert!(origin.starts_with(arch), "{origin}");
        assert!(origin.ends_with(elf.to_str().unwrap()), "{origin}");
    }
}

#[test]
fn the_page_says_which_arch_misses_which_line() {
    let (_place, pages) = of_archs();
    let page = pages.source("archs.hip");
    assert!(lines_with(page, "x0").is_empty());
    let missed: Vec<_> = [13]
        .into_iter()
        .chain(16..=21)
        .chain([27, 28])
        .chain(31..=34)
        .collect();
    assert_eq!(lines_with(page, "x1"), missed);
    assert_eq!(lines_with(page, "x"), missed);
    // They ran on the other one.
    assert!(lines_with(page, "nowhere").is_empty());
    // `if (value > 3)` was always true on gfx942, where alone it is, and `if (*value > 3)` too: the
    // brace after its `else` did not run.
    assert_eq!(lines_with(page, "p0"), [0; 0]);
    assert_eq!(lines_with(page, "p1"), [7, 24, 26]);
    // Lines that the preprocessor leaves out on an arch have no count there.
    let absent = all(page.root_element(), "#L8 td.absent, #L11 td.absent");
    assert_eq!(absent.len(), 2);
    // The sides of a branch, and which of them never was.
    let branches = all(page.root_element(), "tr.branch")
        .into_iter()
        .map(|row| {
            let counts = all(row, "td.n").into_iter().map(text);
            (text(all(row, "td.code")[0]), counts.collect::<Vec<_>>())
        });
    let expected = [
        ("Branch: value > 3 true", ["", "2"]),
        ("Branch: value > 3 false", ["", "0"]),
        ("Branch: a < b true", ["3", "0"]),
        ("Branch: a < b false", ["3", "0"]),
        ("Branch: *value > 3 true", ["4", "2"]),
        ("Branch: *value > 3 false", ["2", "0"]),
    ];
    let expected =
        expected.map(|(text, counts)| (text.to_owned(), counts.map(str::to_owned).to_vec()));
    assert_eq!(branches.collect::<Vec<_>>(), expected);
}

#[test]
fn branches_of_a_switch_are_named_by_their_labels() {
    let place = Place::new();
    let source = place.path().join("choose.hip");
    let text_of = "extern \"C\" __attribute__((global)) void choose(int *value) {
  switch (*value) {
  case 1: *value = 5; break;
  case 2:
  case 3: *value = 6; break;
  }
  switch (*value & 1) {
  case 0: *value = 7; break;
  default: *value = 8;
  }
}
";
    fs::write(&source, text_of).unwrap();
    let elf = compile_source(&source, place.path(), "choose.elf", "gfx90a", &INSTRUMENTED);
    let profile = place.profile_path(&elf, "gfx90a", 0);
    // 20 of 70 have no label in the first switch.
    let counts = [70, 70, 10, 15, 25, 70, 70, 0];
    let count = |_: &str, number: u64| counts[usize::try_from(number).unwrap()];
    profile::write_counts(&elf, &count, RAW_VERSION, &profile);
    place.keep(&elf);
    run(place
        .command()
        .args(["--html=out", "--title=Chosen & more"]));
    let pages = Pages::read(&place.path().join("out"));
    let page = pages.source("choose.hip").root_element();
    let branches = all(page, "tr.branch").into_iter().map(|row| {
        let name = text(all(row, "td.code")[0]);
        let name = name.strip_prefix("Branch: ").unwrap().to_owned();
        (name, text(all(row, "td.n")[0]))
    });
    let branches: Vec<_> = branches.collect();
    let names: Vec<_> = branches.iter().map(|(name, _)| name.as_str()).collect();
    let sides = |label: &str| ["taken", "not taken"].map(|side| format!("{label} {side}"));
    let implicit = ["true", "false"].map(|side| format!("*value {side}"));
    let labels = ["case 1", "case 2", "case 3", "case 0", "default"].map(sides);
    let expected: Vec<_> = implicit.iter().chain(labels.as_flattened()).collect();
    assert_eq!(names, expected);
    // By llvm-cov, which has the sides of a branch in one line.
    let merged = profile::indexed(&place.data(), "gfx90a");
    let mut show = Command::new("llvm-cov-22");
    show.args(["show", "-show-branches=count", "-instr-profile"]);
    let shown = stdout(&run(show.arg(merged).arg(&elf)));
    let counts = shown
        .lines()
        .filter_map(|line| line.trim().split_once("): [True: "));
    let counts = counts.flat_map(|(_, counts)| {
        let (one, other) = counts.split_once(", False: ").unwrap();
        [one.to_owned(), other.trim_end_matches(']').to_owned()]
    });
    let found: Vec<_> = branches.into_iter().map(|(_, count)| count).collect();
    assert_eq!(found, counts.collect::<Vec<_>>());

    let index = pages.page("index.html");
    assert_eq!(text(all(index, "title")[0]), "Chosen & more");
    assert_eq!(text(all(index, "h1")[0]), "Chosen & more");
    assert_eq!(text(all(page, "title")[0]), "choose.hip – Chosen & more");
    assert_eq!(text(all(page, ".project")[0]), "Chosen & more");
}

#[test]
fn all_links_lead_somewhere() {
    let (_place, pages) = of_archs();
    assert!(links_lead_somewhere(&pages) > 50);
}

/// Follows all links of pages, and returns their number.
pub(crate) fn links_lead_somewhere(pages: &Pages) -> usize {
    let mut followed = 0;
    for (name, document) in &pages.documents {
        let links = all(document.root_element(), "[href], [src]");
        for link in links {
            let value = link.value();
            let to = value.attr("href").or(value.attr("src")).unwrap();
            if to.starts_with("data:") {
                continue;
            }
            let (path, fragment) = to.split_once('#').unwrap_or((to, ""));
            let from = Path::new(name).parent().unwrap();
            let target = match path {
                "" => name.clone(),
                // One level is all that there is.
                _ => path
                    .strip_prefix("../")
                    .map_or_else(|| from.join(path).display().to_string(), str::to_owned),
            };
            assert!(pages.folder.join(&target).is_file(), "{name}: {to}");
            if !fragment.is_empty() {
                let target = pages.documents[&target].root_element();
                let found = all(target, &format!("[id='{fragment}']")).len();
                assert_eq!(found, 1, "{name}: {to}");
            }
            followed += 1;
        }
        let ids = all(document.root_element(), "[id]").into_iter();
        let ids: Vec<_> = ids.map(|id| attribute(id, "id")).collect();
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{name}: {ids:?}");
        // Labels and headings that are referred to by id.
        for attribute_name in ["aria-labelledby", "aria-controls", "for"] {
            for element in all(document.root_element(), &format!("[{attribute_name}]")) {
                let id = attribute(element, attribute_name);
                assert!(ids.contains(&id), "{name}: {attribute_name} {id}");
            }
        }
    }
    followed
}

/// A script that would run if it were not escaped.
const SCRIPT: &str = "</script><script>alert(1)</script>";

#[test]
fn nothing_in_a_source_or_a_name_is_taken_for_markup() {
    let place = Place::new();
    let name = "a<b>&\"'.hip";
    let folder = place.path().join("<i>x&amp;y");
    fs::create_dir(&folder).unwrap();
    let code = fs::read_to_string(data("archs.hip")).unwrap();
    fs::write(
        folder.join(name),
        format!("// {SCRIPT} &lt; <!-- é\n{code}"),
    )
    .unwrap();
    // A second one, for a directory in the tree.
    fs::write(place.path().join("other.hip"), &code).unwrap();
    let sources = [folder.join(name), place.path().join("other.hip")];
    for (index, source) in sources.iter().enumerate() {
        let elf = format!("{index}.elf");
        let elf = compile_source(source, place.path(), &elf, "gfx90a", &INSTRUMENTED);
        place.profile(&elf, "gfx90a", 0, 1);
        place.keep(&elf);
    }
    run(place.command().arg("--html=out"));
    let pages = Pages::read(&place.path().join("out"));
    let page = pages.source(name);
    assert_eq!(
        text(all(page.root_element(), "h1")[0]),
        format!("<i>x&amp;y/{name}")
    );
    let first = all(page.root_element(), "#L1 td.code")[0];
    assert_eq!(text(first), format!("// {SCRIPT} &lt; <!-- é"));
    let names: Vec<_> = all(page.root_element(), "table.calls a")
        .into_iter()
        .map(text)
        .collect();
    assert!(
        names.contains(&"int sum<int>(int, int)".to_owned()),
        "{names:?}"
    );
    for (name, document) in &pages.documents {
        let scripts = all(document.root_element(), "script");
        assert_eq!(scripts.len(), 1, "{name}");
        assert!(scripts[0].value().attr("src").is_some(), "{name}");
        assert!(
            all(document.root_element(), "i:not(.n), b b").is_empty(),
            "{name}"
        );
    }
}

#[test]
fn a_source_that_is_gone_has_its_counts() {
    let (place, elfs) = Place::with_archs();
    let map = format!("--path-map={}=gone", data("").parent().unwrap().display());
    let output = place.report(&[&"--html=out", &map, &"--object", &elfs[0], &elfs[1]]);
    let said = stderr(&output);
    let line = "/gone/data/archs.hip: the source does not exist; ";
    assert!(said.contains(line), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let pages = Pages::read(&place.path().join("out"));
    let page = pages.source("archs.hip");
    let warning = pages.warning("archs.hip").unwrap();
    assert!(warning.contains("gone/data/archs.hip"), "{warning}");
    assert_eq!(counts(page, 0), archs::expected_lines(|counts| counts[0]));
    assert_eq!(counts(page, 1), archs::expected_lines(|counts| counts[1]));
    // Columns stand for the text of branches, as clang counts them.
    let branches = all(page.root_element(), "tr.branch td.code").into_iter();
    let branches: Vec<_> = branches.map(text).collect();
    assert_eq!(
        branches[..2],
        ["Branch: column 7 true", "Branch: column 7 false"]
    );
}

#[test]
fn a_source_is_taken_from_git_where_a_revision_is_given() {
    let repository = Repository::with_change("kernel.hip");
    let path = repository.root.join("kernel.hip");
    repository.ran(&path, "gfx90a", |_| false);
    fs::remove_file(&path).unwrap();
    run(&mut repository.command(&["--source-revision=HEAD", "--html=../pages"]));
    let pages = Pages::read(&repository.place.path().join("pages"));
    let page = pages.source("kernel.hip").root_element();
    assert!(all(page, ".warning").is_empty());
    let code = all(page, "table.source tr[id] td.code").into_iter();
    let expected: Vec<_> = AFTER.lines().map(str::trim).collect();
    assert_eq!(code.map(text).collect::<Vec<_>>(), expected);
}

#[test]
fn open_has_the_desktop_open_the_first_page() {
    let (place, elfs) = Place::with_archs();
    let desktop = place.path().join("desktop");
    fs::create_dir(&desktop).unwrap();
    let opened = place.path().join("opened");
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display());
    fs::write(desktop.join("xdg-open"), script).unwrap();
    fs::set_permissions(desktop.join("xdg-open"), Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", desktop.display());
    let mut command = place.command();
    command
        .env("PATH", path)
        .args(["--html=out", "--open", "--object"]);
    let output = command.args(&elfs).output().unwrap();
    assert_eq!(stdout(&output), "out/index.html\n");
    // It would print that there is no browser.
    assert_eq!(stderr(&output), "");
    // rocov does not wait for the browser.
    while fs::read_to_string(&opened).unwrap_or_default().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(&opened).unwrap(), "out/index.html\n");
    let output = place.report(&[&"--open"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_directory_with_other_things_is_refused_and_an_earlier_report_replaced() {
    let (place, elfs) = Place::with_archs();
    place.of_archs(&elfs, &["--html=out"]);
    let out = place.path().join("out");
    let page = Pages::read(&out).source_page("archs.hip");
    fs::write(out.join(&page), "changed").unwrap();
    place.of_archs(&elfs, &["--html=out"]);
    assert_ne!(fs::read_to_string(out.join(&page)).unwrap(), "changed");

    fs::write(out.join("notes.txt"), "mine").unwrap();
    let output = place.report(&[&"--html=out", &"--object", &elfs[0], &elfs[1]]);
    let message = failure(&output, 1);
    assert!(message.contains("out contains notes.txt"), "{message}");
    assert_eq!(message.trim().lines().count(), 1, "{message}");
    assert_eq!(fs::read_to_string(out.join("notes.txt")).unwrap(), "mine");
    assert!(out.join("index.html").exists());
}
