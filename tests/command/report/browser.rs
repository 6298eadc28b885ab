//! The pages in a browser: Chromium, without a network, from files.

use rocov_tests::unpacked::not_run;
use scraper::Html;
use serde_json::{Value, json};

use super::*;
use crate::report::pages::{ARCHS, Pages, all, attribute, of_archs, text};
use crate::report::per_test::{Labelled, TESTS};

/// The lines of archs.hip that gfx942 misses.
const MISSED: [u32; 13] = [13, 16, 17, 18, 19, 20, 21, 27, 28, 31, 32, 33, 34];

/// Opens a page of a report, has it do what tests/data/browser.js says for `step`, and returns what
/// that found.
pub(crate) fn browse(pages: &Pages, page: &str, step: &str, width: u32) -> Value {
    let (page, fragment) = page.split_once('#').unwrap_or((page, ""));
    let path = pages.folder.join(page);
    let text = fs::read_to_string(&path).unwrap();
    let driver = data("browser.js");
    let scripts = format!(
        "<script>document.currentStep = '{step}'</script><script src='{}'></script></body>",
        driver.display()
    );
    // Next to the page, for its links.
    let changed = path.with_extension(format!("{step}.html"));
    fs::write(&changed, text.replace("</body>", &scripts)).unwrap();

    let profile = tempfile::tempdir().unwrap();
    let mut chromium = Command::new("chromium");
    chromium
        .args("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run".split(' '))
        .args("--disable-background-networking --disable-component-update".split(' '))
        .args("--disable-sync --disable-dev-shm-usage --enable-logging=stderr".split(' '))
        .args(["--dump-dom", "--virtual-time-budget=10000"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}#{fragment}", changed.display()));
    let output = run(&mut chromium);
    fs::remove_file(changed).unwrap();
    let console = stderr(&output);
    let console: Vec<_> = console
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert_eq!(console, [""; 0], "{page} {step}");
    let document = Html::parse_document(&stdout(&output));
    let result = all(document.root_element(), "#result");
    let result: String = result.first().expect("the page has run").text().collect();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["error"], Value::Null, "{page} {step}");
    result
}

#[test]
fn the_summary_sorts_folds_and_filters() {
    let place = Place::new();
    // With the larger part of it missed further down in the tree.
    let source = |name: &str, functions: &str| {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, functions).unwrap();
        path
    };
    let kernel = |name: &str| format!("extern \"C\" __attribute__((global)) void {name}() {{}}\n");
    for (name, functions, ran) in [
        ("src/a/one.hip", ["one", "two"], ["one", "two"]),
        ("src/b/c/two.hip", ["three", "four"], ["three", ""]),
        ("src/three.hip", ["five", "six"], ["", ""]),
    ] {
        let path = source(name, &functions.map(kernel).concat());
        let name = format!("{}.elf", functions[0]);
        let elf = compile_source(&path, place.path(), &name, "gfx90a", &INSTRUMENTED);
        let count = |function: &str, _: u64| u64::from(ran.contains(&function));
        let profile = place.profile_path(&elf, "gfx90a", 0);
        profile::write_counts(&elf, &count, RAW_VERSION, &profile);
        place.keep(&elf);
        // The other one runs all.
        let elf = compile_source(&path, place.path(), "other.elf", "gfx942", &INSTRUMENTED);
        place.profile(&elf, "gfx942", 0, 1);
        place.keep_as(&elf, "gfx942");
    }
    run(place.command().arg("--html=out"));
    let pages = Pages::read(&place.path().join("out"));
    let said = browse(&pages, "index.html", "summary", 1280);
    assert_eq!(said["contrast"], json!([]));
    let labels = ["File", "gfx90a: Lines", "gfx942: Lines", "all: Lines"];
    assert_eq!(said["columns"], json!(labels));
    let (none, half, whole) = ("0.00% 0/2", "50.00% 1/2", "100.00% 2/2");
    let first = [whole, whole, half, half, none];
    let rows = first.map(|first| [first, whole, whole]);
    assert_eq!(said["functions"], json!(rows.as_flattened()));
    let missed = json!(["b/c/", "two.hip", "three.hip"]);
    assert_eq!(said["missedOnFirst"], missed);
    let tree = json!(["a/", "one.hip", "b/c/", "two.hip", "three.hip"]);
    let (one, two, three) = ("a/one.hip", "b/c/two.hip", "three.hip");
    // By what ran on gfx90a, least first, then last, then as a tree again.
    assert_eq!(
        said["sorted"],
        json!([[three, two, one], [one, two, three], tree])
    );
    assert_eq!(
        said["folded"],
        json!(["a/", "b/c/", "two.hip", "three.hip"])
    );
    // On both archs together all ran whole: the worse arch decides.
    assert_eq!(said["worst"], json!([three, two, one]));
    assert_eq!(said["worstByFunctions"], json!([three, two, one]));
    assert_eq!(said["atFirst"], tree);
    assert_eq!(said["remembered"], said["folded"]);
    assert_eq!(said["incomplete"], json!(["b/c/", "two.hip", "three.hip"]));
    assert_eq!(said["address"], "#whole");
    assert_eq!(said["walked"], json!(["two.hip", "three.hip", "two.hip"]));
    assert_eq!(said["allOpen"], tree);
    let narrow = browse(&pages, "index.html", "summary", 500);
    assert_eq!(narrow["overflow"], 0);
}

#[test]
fn tests_are_sorted_and_have_names_and_lines() {
    let labelled = Labelled::new();
    for number in 0..15 {
        let counts = TESTS[number % 3].1;
        labelled.add(&counts, &format!("labels/test%20{number}"));
    }
    let mut command = labelled.place.command();
    run(command.args(["--html=out", "--per-test"]));
    let pages = Pages::read(&labelled.place.path().join("out"));
    let said = browse(&pages, "tests.html", "tests", 1280);
    assert_eq!(said["contrast"], json!([]));
    let names: Vec<_> = (0..15).map(|number| format!("test {number}")).collect();
    assert_eq!(said["byName"], json!(names));
    // Worst first, by llvm-cov's counts; in the order of the page if these are equal.
    let covered = |number: usize| {
        let profile = labelled.add(&TESTS[number % 3].1, "alone");
        let lines = labelled.lines(&[&profile]);
        fs::remove_file(profile).unwrap();
        lines.values().filter(|count| **count > 0).count()
    };
    let covered = [0, 1, 2].map(covered);
    assert!(
        covered[2] < covered[1] && covered[1] < covered[0],
        "{covered:?}"
    );
    let worst = [2, 1, 0].map(|first| {
        let numbers = (0..15).filter(|number| number % 3 == first);
        let mut names: Vec<_> = numbers.map(|number| format!("test {number}")).collect();
        names.sort();
        names
    });
    assert_eq!(said["byLines"], json!(worst.concat()));

    let source = pages.source_page("archs.hip");
    // The first line of `scale`, which all but those of `add` enter.
    let link = all(pages.page(&source), "#L23 td.n a")[0];
    let page = format!("{source}{}", attribute(link, "href"));
    let said = browse(&pages, &page, "set", 1280);
    assert_eq!(said["position"], "fixed");
    let names = (0..15).filter(|number| number % 3 != 1);
    let mut entering: Vec<_> = names.map(|number| format!("test {number}")).collect();
    entering.sort();
    assert_eq!(said["names"], json!(entering));
    let page = said["pages"][0].as_str().unwrap();
    let page = pages.page(page.strip_prefix("../").unwrap());
    assert_eq!(text(all(page, "h1")[0]), entering[0]);

    let test = all(pages.page("tests.html"), ".parts th a")[0];
    let said = browse(&pages, attribute(test, "href"), "test", 500);
    assert_eq!(said["overflow"], 0);
    let first = &said["links"][0];
    let range = first[0].as_str().unwrap();
    let start = range.split('-').next().unwrap();
    assert_eq!(first[1], format!("#L{start}"));
}

/// A single file has the pages of a folder.
#[test]
fn a_single_file_has_all_pages() {
    let (place, pages) = of_archs();
    let elfs = ARCHS.map(|arch| place.path().join(format!("{arch}.elf")));
    let said = place.of_archs(&elfs, &["--html=one/report.html", "--as-llvm-cov"]);
    assert_eq!(said, "one/report.html\n");
    let folder = place.path().join("one");
    let files = fs::read_dir(&folder).unwrap().count();
    assert_eq!(files, 1);
    let single = Pages::read(&folder);
    let said = browse(&single, "report.html", "single", 1280);
    let source = pages.source_page("archs.hip");
    let page = pages.page(&source);
    assert_eq!(said["title"], text(all(page, "title")[0]));
    let counts = all(page, "table.source tr[id] td.n").into_iter().map(text);
    assert_eq!(said["counts"], json!(counts.collect::<Vec<_>>()));
    assert_eq!(said["stop"], "L7");
    assert_eq!(said["target"], "L24");
    assert_eq!(said["address"], format!("#/{source}#L24"));
    assert_eq!(said["found"], format!("#/{source}#L16"));
    assert_eq!(said["chosen"], format!("#/{source}#only-1"));
    assert_eq!(said["back"], json!(["archs.hip"]));
    assert_eq!(said["loaded"], json!([]));
}

/// The release of axe-core from npm.
const AXE: &str = "axe-core@4.14.1";

/// The script of axe, which npm installs once next to the build; `None` if it cannot be had.
fn axe() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let script = target.join("node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        let mut npm = Command::new("npm");
        npm.args("install --silent --no-audit --no-fund --fetch-retries=1 --prefix".split(' '));
        let installed = npm.arg(&target).arg(AXE).output();
        installed.ok().filter(|output| output.status.success())?;
    }
    Some(script)
}

/// Each kind of page, with everything unfolded, in light and in dark.
#[test]
fn no_page_breaks_a_rule_of_axe_for_accessibility() {
    let Some(axe) = axe() else {
        not_run("axe-core on the pages: npm does not install it");
        return;
    };
    let labelled = Labelled::new();
    labelled.add_all();
    let place = &labelled.place;
    let command = |options: &[&str]| {
        let mut command = place.command();
        run(command.args(options));
    };
    command(&["--json", "--label=add", "-o", "before.json"]);
    let options = [
        "--html=labelled/report.html",
        "--per-test",
        "--title=Sample",
    ];
    command(&[&options[..], &["--compare=before.json"]].concat());
    let (archs, elfs) = Place::with_archs();
    archs.of_archs(&elfs, &["--html=archs/report.html"]);
    for (folder, least) in [
        // The first page, functions, tests, a source, and three tests.
        (place.path().join("labelled"), 7),
        (archs.path().join("archs"), 3),
    ] {
        let page = folder.join("report.html");
        let text = fs::read_to_string(&page).unwrap();
        let script = format!("<script>document.axe = '{}'</script></body>", axe.display());
        fs::write(&page, text.replace("</body>", &script)).unwrap();
        let said = browse(&Pages::read(&folder), "report.html", "axe", 1280);
        assert_eq!(said["violations"], json!([]));
        // Each page is looked at twice, and has text.
        let pages = said["pages"].as_array().unwrap();
        assert!(pages.len() >= 2 * least, "{pages:?}");
    }
}

#[test]
fn functions_are_found() {
    let (_place, pages) = of_archs();
    let page = pages.source_page("archs.hip");
    for (from, root) in [("index.html", ""), (&*page, "../")] {
        let said = browse(&pages, from, "search", 1280);
        assert_eq!(said["focus"], "search");
        let link = format!("{root}{page}#L16");
        assert_eq!(said["found"], json!([["int sum<int>(int, int)", link]]));
        assert_eq!(said["first"], "int sum<int>(int, int)");
        assert_eq!(said["closed"], true);
        assert_eq!(said["nothing"], json!(["0 found"]));
    }
}

#[test]
fn a_source_is_walked_through_by_keys_and_shows_what_an_arch_misses() {
    let (_place, pages) = of_archs();
    let page = pages.source_page("archs.hip");
    let said = browse(&pages, &page, "source", 1280);
    for contrast in ["contrast", "contrastOfOther"] {
        assert_eq!(said[contrast], json!([]), "{contrast}");
    }
    assert_eq!(said["stops"], json!([7, 13, 16, 24, 26, 27, 31]));
    assert_eq!(said["focus"], "L31");
    assert_eq!(said["before"], "L27");
    assert_eq!(said["missed-0"], json!([]));
    assert_eq!(said["missed-1"], json!(MISSED));
    assert_eq!(said["missed-any"], json!(MISSED));
    assert_eq!(said["stopsOnSecond"], json!([13, 16, 27, 31]));
    assert_eq!(said["partlyOnFirst"], json!([]));
    assert_eq!(said["themes"], true);
    assert_eq!(said["help"], true);
    let said = browse(&pages, &page, "source", 500);
    assert_eq!(said["overflow"], 0, "in a narrow window");
    let said = browse(&pages, &format!("{page}#only-1"), "chosen", 1280);
    assert_eq!(said["lines"], json!(MISSED));
}
