//! The instances of templates on the pages, against those that llvm-cov shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use scraper::ElementRef;

use super::*;
use crate::report::pages::{ARCHS, Pages, all, attribute, of_archs, text};

/// The counts of each line of each instance, by its mangled name; none of an instance that was never entered.
type Instances = BTreeMap<String, BTreeMap<u32, u64>>;

/// The instances in the annotated source of llvm-cov.
fn by_llvm_cov(place: &Place, elf: &Path, arch: &str) -> Instances {
    let merged = profile::indexed(&place.data(), arch);
    let mut show = Command::new("llvm-cov-22");
    show.args(["show", "-show-instantiations", "-instr-profile"]);
    let shown = stdout(&run(show.arg(merged).arg(elf)));
    let mut instances = Instances::new();
    let mut name = String::new();
    for line in shown.lines().filter_map(|line| line.strip_prefix("  | ")) {
        if let Some(never) = line.strip_prefix("Unexecuted instantiation: ") {
            instances.insert(never.to_owned(), BTreeMap::new());
        } else if let Some(entered) = line.strip_suffix(':').filter(|rest| rest.starts_with("_Z")) {
            name = entered.to_owned();
        } else if let [number, count, ..] = line.split('|').map(str::trim).collect::<Vec<_>>()[..]
            && let (Ok(number), Ok(count)) = (number.parse(), count.parse())
        {
            instances
                .entry(name.clone())
                .or_default()
                .insert(number, count);
        }
    }
    instances
}

/// The name that a reader sees.
fn demangled(name: &str) -> String {
    let mut filter = Command::new("llvm-cxxfilt-22");
    stdout(&run(filter.arg(name))).trim().to_owned()
}

/// The rows of the table of instances, by their names.
fn rows(within: ElementRef<'_>) -> BTreeMap<String, ElementRef<'_>> {
    let rows = all(within, "table.calls tbody tr").into_iter();
    rows.map(|row| (text(all(row, "th")[0]), row)).collect()
}

/// The counts of the lines of the instances that have them, in one column.
fn counts(within: ElementRef<'_>, column: usize) -> BTreeMap<String, BTreeMap<u32, u64>> {
    let details = all(within, "details.instance").into_iter();
    let counts = details.map(|instance| {
        let lines = all(instance, "tr").into_iter().filter_map(|row| {
            let count = text(all(row, "td.n")[column]).parse().ok()?;
            Some((text(all(row, "th")[0]).parse().unwrap(), count))
        });
        (text(all(instance, "summary")[0]), lines.collect())
    });
    counts.collect()
}

/// The first lines that links name, and the numbers in their text: ranges are whole.
fn missed(cell: ElementRef<'_>) -> Vec<u32> {
    let links = all(cell, "a").into_iter();
    let lines = links.flat_map(|link| {
        let range = text(link);
        let (first, last) = range.split_once('-').unwrap_or((&range, &range));
        assert_eq!(attribute(link, "href"), format!("#L{first}"));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    });
    lines.collect()
}

#[test]
fn each_instance_of_a_template_has_the_counts_of_llvm_cov() {
    let (place, pages) = of_archs();
    let page = pages.source("archs.hip").root_element();
    let [instances] = all(page, "tr.instances")[..] else {
        panic!("{}", page.html());
    };
    let shown = rows(instances);
    let mut seen = 0;
    for (column, arch) in ARCHS.iter().enumerate() {
        let elf = place.path().join(format!("{arch}.elf"));
        let expected = by_llvm_cov(&place, &elf, arch);
        assert_eq!(expected.len(), shown.len(), "{arch}: {expected:?}");
        let counts = counts(instances, column);
        for (name, lines) in expected {
            let name = demangled(&name);
            let row = shown[&name];
            let calls = lines.values().next().copied().unwrap_or(0);
            assert_eq!(
                text(all(row, "td.n")[column]),
                calls.to_string(),
                "{name} {arch}"
            );
            if calls > 0 {
                assert_eq!(counts[&name], lines, "{name} {arch}");
                // It is below the last line of the template.
                let end = lines.keys().last().unwrap();
                let before = instances
                    .prev_siblings()
                    .find_map(ElementRef::wrap)
                    .unwrap();
                assert_eq!(attribute(before, "id"), format!("L{end}"));
                seen += 1;
            } else {
                let never = format!("{arch}: never entered, 16-21");
                assert!(text(all(row, "td.place")[0]).ends_with(&never), "{name}");
            }
        }
    }
    assert_eq!(seen, 2);
    // `sum<int>` returned early each time on gfx90a, `sum<double>` missed only what follows.
    let of_int = text(all(shown["int sum<int>(int, int)"], "td.place")[0]);
    assert!(of_int.starts_with("gfx90a: 18-19; gfx942: "), "{of_int}");
    assert_eq!(
        text(all(page, "#L16 td.n")[0]),
        "6",
        "the sum stays beside the line"
    );
    // A filter for a column keeps the instances that missed something there.
    assert_eq!(attribute(instances, "class").trim(), "instances x x0 x1");
}

#[test]
fn the_instances_that_missed_most_have_their_lines() {
    const NUMBER: usize = 25;
    let place = Place::new();
    let mut source = "\
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
template <int N> __device__ __attribute__((noinline)) int of(int value) {
  if (value > N) {
    return value;
  }
  return N;
}
extern \"C\" __global__ void all(int *value) {
"
    .to_owned();
    for number in 0..NUMBER {
        writeln!(source, "  *value += of<{number}>(*value);").unwrap();
    }
    source += "}\n";
    let path = place.path().join("many.hip");
    fs::write(&path, source).unwrap();
    let elf = compile_source(&path, place.path(), "many.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    // The first is never entered. The others of even numbers miss `return value`.
    let count = |function: &str, counter: u64| {
        let digits = function
            .strip_prefix("_Z2ofILi")
            .map(|rest| rest.split('E').next().unwrap());
        match (digits.map(|digit| digit.parse::<u64>().unwrap()), counter) {
            (Some(0), _) => 0,
            (Some(number), 0) => 100 + number,
            (Some(number), _) => number % 2,
            (None, _) => 1,
        }
    };
    let raw = place.profile_path(&elf, "gfx90a", 0);
    profile::write_counts(&elf, &count, RAW_VERSION, &raw);
    run(place.command().arg("--html=out"));
    let pages = Pages::read(&place.path().join("out"));
    let page = pages.source("many.hip").root_element();
    let expected = by_llvm_cov(&place, &elf, "gfx90a");
    assert_eq!(expected.len(), NUMBER);
    let instances = all(page, "tr.instances")[0];
    let (shown, counts) = (rows(instances), counts(instances, 0));
    assert_eq!(shown.len(), NUMBER);
    let mut with_lines = 0;
    for (name, lines) in expected {
        let name = demangled(&name);
        let missed = missed(all(shown[&name], "td.place")[0]);
        if lines.is_empty() {
            assert_eq!(missed, (3..=8).collect::<Vec<_>>(), "{name}");
            assert!(!counts.contains_key(&name));
            continue;
        }
        let not_run = lines.iter().filter(|(_, count)| **count == 0);
        let not_run: Vec<_> = not_run.map(|(line, _)| *line).collect();
        assert_eq!(missed, not_run, "{name}");
        if let Some(counts) = counts.get(&name) {
            assert_eq!(*counts, lines, "{name}");
            with_lines += 1;
        } else {
            assert_eq!(missed, [0; 0], "{name}");
        }
    }
    // The one that was never entered has no lines, and counts as one of 20.
    assert_eq!(with_lines, 19);
    let texts = |instances: ElementRef<'_>| -> BTreeSet<String> {
        let cells = all(instances, "details.instance td.code").into_iter();
        cells.map(text).collect()
    };
    assert!(texts(instances).contains("return value;"));

    // A source that has changed gives no text, but the counts stay.
    fs::write(&path, "// Another.\n").unwrap();
    run(place.command().args(["--html=out", "--quiet"]));
    let pages = Pages::read(&place.path().join("out"));
    let page = pages.source("many.hip").root_element();
    let instances = all(page, "tr.instances")[0];
    assert_eq!(texts(instances), BTreeSet::from([String::new()]));
    assert_eq!(self::counts(instances, 0), counts);
}
