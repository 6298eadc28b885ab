//! The tests of each line on the pages, and the lines of each test, against llvm-cov on the profiles of each test.

use std::collections::{BTreeMap, BTreeSet};

use scraper::ElementRef;

use super::*;
use crate::report::pages::{Pages, all, attribute, links_lead_somewhere, text};
use crate::report::per_test::{Counts, Labelled, SHARED, TESTS};

/// The lines that each test reaches, by llvm-cov on its profiles.
fn reached(
    labelled: &Labelled,
    profiles: &[(String, Vec<PathBuf>)],
) -> BTreeMap<String, BTreeSet<u32>> {
    let reached = profiles.iter().map(|(name, profiles)| {
        let profiles: Vec<_> = profiles.iter().map(PathBuf::as_path).collect();
        let lines = labelled.lines(&profiles).into_iter();
        let ran = lines.filter(|(_, count)| *count > 0).map(|(line, _)| line);
        (name.clone(), ran.collect())
    });
    reached.collect()
}

/// The numbers in text such as `1-3, 7`.
fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split(", ").flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    })
}

/// The names of all tests by their numbers.
fn names(pages: &Pages) -> BTreeMap<u32, String> {
    let rows = all(pages.page("tests.html"), "table.parts tbody tr").into_iter();
    let names = rows.map(|row| {
        let number = text(all(row, "td.n")[0]).parse().unwrap();
        (number, text(all(row, "th a")[0]))
    });
    names.collect()
}

/// The tests that a page shows for each line.
fn shown(pages: &Pages, source: &str) -> BTreeMap<u32, BTreeSet<String>> {
    let names = names(pages);
    let page = pages.source(source).root_element();
    let links = all(page, "table.source tr[id] td.n a").into_iter();
    let lines = links.map(|link| {
        let row = link.ancestors().filter_map(ElementRef::wrap);
        let row = row
            .into_iter()
            .find(|node| node.value().name() == "tr")
            .unwrap();
        let line = attribute(row, "id")[1..].parse().unwrap();
        let set = all(page, attribute(link, "href"))[0];
        let tests: BTreeSet<_> = match all(set, ".numbers").first() {
            Some(numbered) => numbers(&text(*numbered))
                .map(|number| names[&number].clone())
                .collect(),
            None => all(set, "a:not(.close)").into_iter().map(text).collect(),
        };
        assert_eq!(text(link), tests.len().to_string(), "line {line}");
        (line, tests)
    });
    lines.collect()
}

/// Compares the pages with the lines that each test reaches.
fn check(pages: &Pages, reached: &BTreeMap<String, BTreeSet<u32>>, with_code: &BTreeSet<u32>) {
    let mut of_lines: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for (test, lines) in reached {
        for line in lines {
            of_lines.entry(*line).or_default().insert(test.clone());
        }
    }
    assert_eq!(shown(pages, "archs.hip"), of_lines);
    // Lines with the same tests share a set.
    let distinct: BTreeSet<_> = of_lines.values().collect();
    let page = pages.source("archs.hip").root_element();
    assert_eq!(all(page, ".sets li").len(), distinct.len());
    // And the other way round: from a test to its lines.
    for link in all(pages.page("tests.html"), "table.parts tbody th a") {
        let of_test = pages.page(attribute(link, "href"));
        let lines = &reached[&text(link)];
        let cells = all(of_test, "table.reached td");
        if lines.is_empty() {
            assert!(cells.is_empty());
            continue;
        }
        assert_eq!(text(cells[0]), lines.len().to_string());
        let shown: BTreeSet<_> = numbers(&text(cells[1])).collect();
        assert_eq!(&(&shown & with_code), lines, "{}", text(link));
        let source = attribute(all(of_test, "table.reached th a")[0], "href");
        let first = lines.first().unwrap();
        assert!(source.ends_with(&format!("#L{first}")), "{source}");
    }
}

#[test]
fn a_line_has_the_tests_that_reach_it() {
    let labelled = Labelled::new();
    let profiles = labelled.add_all();
    let shared = labelled.add(&SHARED.1, SHARED.0);
    let profiles = TESTS.iter().zip(profiles).map(|((name, _), profile)| {
        let shared = (*name != "(no label)").then(|| shared.clone());
        (
            (*name).to_owned(),
            [profile].into_iter().chain(shared).collect(),
        )
    });
    let profiles: Vec<(String, Vec<_>)> = profiles.collect();
    let with_code = labelled.lines(&[&profiles[0].1[0]]).into_keys().collect();
    run(labelled.place.command().args(["--html=out", "--per-test"]));
    let pages = Pages::read(&labelled.place.path().join("out"));
    check(&pages, &reached(&labelled, &profiles), &with_code);
    assert!(links_lead_somewhere(&pages) > 80);

    // Without the option the pages tell nothing of tests.
    run(labelled.place.command().arg("--html=out"));
    let pages = Pages::read(&labelled.place.path().join("out"));
    assert!(!pages.folder.join("tests.html").exists());
    let page = pages.source("archs.hip").root_element();
    assert!(all(page, ".sets, a[href$='tests.html']").is_empty());
}

#[test]
fn a_large_set_has_the_numbers_of_its_tests() {
    const NUMBER: usize = 12;
    let labelled = Labelled::new();
    let all_ran: [Counts; 5] = TESTS[0].1;
    let only_scale: [Counts; 5] = TESTS[2].1;
    let profiles = (0..NUMBER).map(|number| {
        // All but two of them reach all that the first test reaches.
        let counts = if number % 5 == 2 { only_scale } else { all_ran };
        let name = format!("test {number}");
        let profile = labelled.add(&counts, &format!("labels/test%20{number}"));
        (name, vec![profile])
    });
    let profiles: Vec<_> = profiles.collect();
    let with_code = labelled.lines(&[&profiles[0].1[0]]).into_keys().collect();
    run(labelled.place.command().args(["--html=out", "--per-test"]));
    let pages = Pages::read(&labelled.place.path().join("out"));
    check(&pages, &reached(&labelled, &profiles), &with_code);
    let page = pages.source("archs.hip").root_element();
    assert!(!all(page, ".sets .numbers").is_empty());
    // The names are in one file for all pages.
    let said = fs::read_to_string(pages.folder.join("assets/tests.js")).unwrap();
    let list = said.strip_prefix("rocovTests(").unwrap().trim_end();
    let list: Vec<(String, String)> =
        serde_json::from_str(list.strip_suffix(");").unwrap()).unwrap();
    let by_number = names(&pages);
    assert_eq!(list.len(), NUMBER);
    for (number, (name, page)) in (1..).zip(&list) {
        assert_eq!(by_number[&number], *name);
        assert!(pages.folder.join(page).is_file());
    }
}
