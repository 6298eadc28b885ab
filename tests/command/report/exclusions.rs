//! Exclusions: the lines that they leave out, and the reasons that reports give for them.

use std::collections::BTreeMap;

use rocov_tests::cli::registry;

use super::*;
use crate::report::archs::lcov_lines;
use crate::report::pages::Pages;
use crate::report::repository::{AFTER, Repository};

/// A kernel that ran once, and that has each kind of exclusion.
const REASONS: &str = "\
#define __global__ __attribute__((global))
__attribute__((device, used)) void dump(int *p) {
  *p = 1;
}
extern \"C\" __global__ void kernel(int *p) {
  if (*p > 3) {
    *p = 3; // LCOV_EXCL_LINE
  }
  if (*p < 0) {
    __builtin_trap();
  }
  // LCOV_EXCL_START
  if (*p == 2) {
    *p = 4;
  }
  // LCOV_EXCL_STOP
  *p += 1; // skip this
}
";
const PATTERNS: [&str; 2] = ["--exclude-function=^dump", "--exclude-line=skip this"];

/// The lines of each reason, by hand.
const EXPECTED: [(&str, &[u32]); 5] = [
    ("--exclude-function ^dump", &[2, 3, 4]),
    ("LCOV_EXCL_LINE", &[7, 8]),
    ("ends at __builtin_trap, by default", &[10, 11]),
    // Comments have no code.
    ("LCOV_EXCL_START in line 12", &[13, 14, 15]),
    ("--exclude-line skip this", &[17]),
];

/// A place with the data of a source. `count` gives that of a counter of the kernel; other functions did not run.
fn ran(source: &str, count: fn(u64) -> u64) -> (Place, PathBuf) {
    let place = Place::new();
    let path = place.path().join("x.hip");
    fs::write(&path, source).unwrap();
    let flags = [&INSTRUMENTED[..], &["-O0"]].concat();
    let elf = compile_source(&path, place.path(), "x.elf", "gfx90a", &flags);
    let of_kernel = |name: &str, number: u64| if name == "kernel" { count(number) } else { 0 };
    let profile = place.profile_path(&elf, "gfx90a", 0);
    profile::write_counts(&elf, &of_kernel, RAW_VERSION, &profile);
    place.keep(&elf);
    (place, elf)
}

/// Makes the counts those of a test.
fn label(place: &Place, elf: &Path) {
    let profile = place.profile_path(elf, "gfx90a", 0);
    let labelled = place.data().join("labels/unit");
    fs::create_dir_all(&labelled).unwrap();
    fs::rename(&profile, labelled.join(profile.file_name().unwrap())).unwrap();
}

fn report(place: &Place, arguments: &[&str]) -> String {
    let mut command = place.command();
    let output = run(command.args(arguments));
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

/// The block that begins on an excluded line stays, and so does the code after it.
#[test]
fn a_line_that_opens_a_block_is_excluded() {
    let (place, _) = ran(
        "#define __global__ __attribute__((global))\n\
         extern \"C\" __global__ void kernel(int *p) {\n\
         if (p[0] > 5) { // LCOV_EXCL_LINE\n\
         p[0] = 1;\n\
         }\n\
         for (int i = 0; i < p[1]; i++) { // LCOV_EXCL_LINE\n\
         p[2] += i;\n\
         }\n\
         // LCOV_EXCL_START\n\
         if (p[3] > 5) { // LCOV_EXCL_STOP\n\
         p[3] = 1;\n\
         }\n\
         }\n",
        |_| 1,
    );
    let tracefile = report(&place, &["--lcov"]);
    let expected = [2, 4, 5, 7, 8, 10, 11, 12, 13].map(|line| (line, 1));
    assert_eq!(lcov_lines(&tracefile), expected);
}

/// Clang maps no code of a function with its attribute.
#[test]
fn a_function_with_clangs_attribute_is_in_no_report() {
    let (place, _) = ran(
        "#define __global__ __attribute__((global))\n\
         __attribute__((device, used, no_profile_instrument_function)) void skipped(int *p) {\n  \
         *p = 1;\n}\n\
         extern \"C\" __global__ void kernel(int *p) {\n  *p = 2;\n}\n",
        |_| 1,
    );
    let tracefile = report(&place, &["--lcov", "--fail-under-lines=100"]);
    let expected: Vec<_> = (5..=7).map(|line| (line, 1)).collect();
    assert_eq!(lcov_lines(&tracefile), expected);
}

#[test]
fn each_excluded_line_has_its_reason() {
    let (place, _) = ran(REASONS, |number| u64::from(number == 0));
    let report = |arguments: &[&str]| report(&place, &[&PATTERNS[..], arguments].concat());

    let list = "\
excluded: 11 lines, 3 by --exclude-function, 1 by --exclude-line, 5 by comments, 2 by default

Excluded lines:
  x.hip: 2-4: --exclude-function ^dump
  x.hip: 7-8: LCOV_EXCL_LINE
  x.hip: 10-11: ends at __builtin_trap, by default
  x.hip: 13-15: LCOV_EXCL_START in line 12
  x.hip: 17: --exclude-line skip this

Excluded branches on other lines:
  x.hip:6: true side excluded: LCOV_EXCL_LINE
  x.hip:9: true side excluded: ends at __builtin_trap, by default
";
    let said = report(&["--show-excluded"]);
    let (_, found) = said.split_once("\n\n").unwrap();
    assert!(found.ends_with(list), "{said}");
    let said = report(&[]);
    assert!(
        said.contains(" by default (--show-excluded lists them)\n"),
        "{said}"
    );
    // All others ran.
    assert!(report(&["--fail-under-lines=100"]).contains("100.00%"));

    let shown = report(&["--show"]);
    let shown = shown
        .lines()
        .filter_map(|line| line.split_once("|   excl|"));
    let shown = shown.map(|(number, text)| {
        let (_, reason) = text.split_once("  [excluded: ").unwrap();
        (
            number.trim().parse().unwrap(),
            reason.strip_suffix(']').unwrap().to_owned(),
        )
    });
    let shown: BTreeMap<u32, String> = shown.collect();
    let expected = EXPECTED.iter().flat_map(|(reason, lines)| {
        let lines = lines.iter();
        lines.map(move |line| (*line, (*reason).to_owned()))
    });
    let expected: BTreeMap<u32, String> = expected.collect();
    assert_eq!(shown, expected);

    let json = json(report(&["--json"]).into_bytes());
    let exclusions = json["rocov"]["exclusions"].as_array().unwrap();
    let lines = exclusions
        .iter()
        .map(|exclusion| exclusion["lines"].clone());
    let expected_lines = EXPECTED.iter().map(|(_, lines)| serde_json::json!(lines));
    assert!(lines.eq(expected_lines), "{exclusions:?}");
    assert_eq!(exclusions[2]["kind"], "default");
    assert_eq!(exclusions[3]["line"], 12);
    assert_eq!(exclusions[4]["words"], "skip this");

    // The sides of branches that lead to excluded lines only, by hand.
    let of_branches = [
        (6, "LCOV_EXCL_LINE"),
        (9, "ends at __builtin_trap, by default"),
    ];
    let excluded = of_branches.map(|(line, reason)| {
        let side = json["rocov"]["excluded_branches"].as_array().unwrap();
        let side = side.iter().find(|side| side["line"] == line).unwrap();
        assert_eq!(
            (&side["side"], &side["reason"]),
            (&true.into(), &reason.into())
        );
        format!("true side excluded: {reason}")
    });
    let shown = report(&["--show"]);
    for (line, about) in ["  if (*p > 3) {", "  if (*p < 0) {"]
        .into_iter()
        .zip(&excluded)
    {
        assert!(shown.contains(&format!("|{line}  [{about}]\n")), "{shown}");
    }
    // geninfo leaves them out, too.
    let tracefile = report(&["--lcov"]);
    let branches = tracefile.lines().filter(|line| line.starts_with("BRDA:"));
    assert_eq!(
        branches.collect::<Vec<_>>(),
        ["BRDA:6,0,1,1", "BRDA:9,0,1,1"]
    );

    report(&["--html=pages"]);
    let pages = Pages::read(&place.path().join("pages"));
    for ((line, _), about) in of_branches.iter().zip(&excluded) {
        let page = pages.source("x.hip").root_element();
        let why = crate::report::pages::all(page, &format!("#L{line} .why"))[0];
        assert_eq!(crate::report::pages::text(why), *about);
        // The row of the side that is left out, below its line.
        let row = crate::report::pages::all(page, &format!("#L{line} + tr.left-out .why"))[0];
        let why = about.replace("true side ", "");
        assert_eq!(crate::report::pages::text(row), why);
    }
    let rows = crate::report::pages::all(pages.source("x.hip").root_element(), "tr.excluded");
    let found = rows.into_iter().map(|row| {
        let number = crate::report::pages::attribute(row, "id")[1..]
            .parse()
            .unwrap();
        let why = crate::report::pages::all(row, ".why")[0];
        let why = crate::report::pages::text(why);
        (number, why.strip_prefix("excluded: ").unwrap().to_owned())
    });
    assert_eq!(found.collect::<BTreeMap<u32, String>>(), expected);
    let index = crate::report::pages::text(pages.page("index.html"));
    assert!(index.contains("excluded: 11 lines, "), "{index}");
}

#[test]
fn a_line_that_is_asked_about_has_the_reason() {
    let (place, elf) = ran(REASONS, |number| u64::from(number == 0));
    label(&place, &elf);
    let which = |arguments: &[&str]| {
        let mut command = rocov();
        command.current_dir(place.path()).arg("which");
        let output = run(command.args(arguments).args(PATTERNS));
        assert_eq!(stderr(&output), "");
        stdout(&output)
    };
    for (reason, lines) in EXPECTED {
        let place = format!("x.hip:{}", lines[0]);
        let expected = format!("{place}\nexcluded from reports: {reason}\n");
        assert!(which(&[&place]).starts_with(&expected), "{place}");
    }
    // A column, as editors and compilers write it.
    for place in ["x.hip:6", "x.hip:6:7", "x.hip:6:"] {
        let said = which(&[place]);
        assert!(said.starts_with("x.hip:6\nTest "), "{place}: {said}");
    }
    let answer = json(which(&["x.hip:7", "--json"]).into_bytes());
    assert_eq!(answer["lines"][0]["excluded"], "LCOV_EXCL_LINE");
}

/// Closing brackets belong to what is before them. The regions of clang end there.
const BRACKETS: &str = "\
extern \"C\" __attribute__((global)) void kernel(int *p) {
  if (*p > 3) {
    *p = 3; // LCOV_EXCL_LINE
  } // of the condition
  if (*p > 4)
  {
    *p = 5; // LCOV_EXCL_LINE
  }
  for (int i = 9; i < *p; i++) {
    // GCOVR_EXCL_START
    *p -= i;
    *p += 1;
    // GCOVR_EXCL_STOP
  }
  if (*p > 6) {
    *p = 6;
    *p = 7; // LCOV_EXCL_LINE
  }
  if (*p != 7)
    return;
  *p = 8; // LCOV_EXCL_LINE
}
";

#[test]
fn brackets_behind_excluded_code_are_excluded_with_it() {
    // The function, and the last condition.
    let (place, _) = ran(BRACKETS, |number| u64::from(number == 0 || number == 5));
    let json = json(report(&place, &["--json"]).into_bytes());
    let excluded = &json["rocov"]["columns"][0]["excluded_lines"];
    let excluded = excluded.as_object().unwrap().values().next().unwrap();
    let expected = [3, 4, 6, 7, 8, 11, 12, 14, 17, 21];
    assert_eq!(*excluded, serde_json::json!(expected));
    let lines = lcov_lines(&report(&place, &["--lcov"]));
    let missed = lines.iter().filter(|(_, count)| *count == 0);
    let missed: Vec<_> = missed.map(|(line, _)| *line).collect();
    assert_eq!(missed, [16, 18]);
}

#[test]
fn patterns_that_exclude_nothing_are_named() {
    let (place, elf) = ran(REASONS, |number| u64::from(number == 0));
    let lines = "rocov: --exclude-line nothing matches no source line: fix it, or leave it out\n\
                 rocov: --exclude-function ^none matches no function: fix it, or leave it out\n";
    let idle = ["--exclude-function=^none", "--exclude-line=nothing"];
    for format in [&[][..], &["--show"], &["--lcov"]] {
        let arguments = [&PATTERNS[..], &idle, format].concat();
        let output = place.command().args(arguments).output().unwrap();
        assert_eq!(stderr(&output), lines);
        assert_eq!(output.status.code(), Some(0));
    }
    // The project's file has the same.
    fs::create_dir(place.path().join(".git")).unwrap();
    let text = "[report]\nexclude-function = ['^kernel', '^none']\n";
    fs::write(place.path().join("rocov.toml"), text).unwrap();
    let object = registry::code_object_of(&elf, vec![registry::kernel("kernel", 1)]);
    let load = registry::load(&object, 0x7000, 1, None);
    let document = registry::document(4711, &[object], vec![load]);
    registry::write(&document, &place.data());
    let mut command = rocov();
    command
        .current_dir(place.path())
        .args(["kernels", "--json"]);
    let output = command.output().unwrap();
    assert!(stderr(&output).contains("--exclude-function ^none matches no function"));
    let kernels = json(output.stdout);
    assert_eq!(
        kernels["kernels"][0]["excluded"],
        "--exclude-function ^kernel"
    );
}

/// Code that is never reached, in each form. A line that is missed has `missed`.
const NEVER_REACHED: &str = "\
#define __global__ __attribute__((global))
#define __device__ __attribute__((device, used))
#define FAIL() __builtin_trap()
#define CHECK(x) do { if (!(x)) __builtin_trap(); } while (0)
enum class Mode { ADD, DOUBLE };
__device__ int counter;
[[noreturn]] __device__ void fail(int code) { // excluded
  counter = code; // excluded
  __builtin_trap(); // excluded
} // excluded
extern \"C\" __global__ void kernel(int *p, Mode mode) {
  if (p[0] >= 0) {
    p[0]++;
  }
  else // excluded
  { // excluded
    __builtin_trap(); // excluded
  } // excluded
  if (p[1] >= 0) {
    p[1]++;
  } else {
    fail(1); // excluded
  } // excluded
  p[2] = p[2] >= 0 ? 1 : (__builtin_trap(), 0);
  p[2] = p[2] < 0
             ? (__builtin_trap(), 0) // excluded
             : 1;
  if (p[3] < 0)
    FAIL(); // excluded
  p[3]++;
  CHECK(p[4] >= 0);
  if (p[5] < 0 || p[6] < 0)
    fail(2); // excluded
  if (!(p[7] >= 0 && p[8] >= 0)) {
    fail(3); // excluded
  } // excluded
  while (p[9] < 0)
    fail(4); // excluded
  p[9]++;
  switch (mode) {
  case Mode::ADD:
    p[10]++;
    return;
  case Mode::DOUBLE:
    p[10] *= 2;
    return;
  }
  __builtin_unreachable(); // excluded
}
";

/// A program of host code that ran, together with a kernel that did.
fn ran_on_host(source: &str) -> (Place, PathBuf) {
    let place = Place::new();
    let both = data("both.hip");
    let elf = compile_source(&both, place.path(), "both.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 7);
    let path = place.path().join("x.cpp");
    fs::write(&path, source).unwrap();
    let program = place.path().join("x");
    let mut clang = Command::new("clang++-22");
    clang.args(INSTRUMENTED).args(["-std=c++20", "-O0", "-w"]);
    run(clang.arg(&path).arg("-o").arg(&program));
    let host = place.data().join("4711.profraw");
    run(Command::new(&program).env("LLVM_PROFILE_FILE", &host));
    (place, program)
}

/// The lines that a report excludes from the only source.
fn excluded_lines(report: &serde_json::Value, column: usize) -> Vec<u64> {
    let files = report["rocov"]["columns"][column]["excluded_lines"].as_object();
    let lines = files.into_iter().flat_map(|files| files.values());
    let lines = lines.flat_map(|lines| lines.as_array().unwrap());
    lines.map(|line| line.as_u64().unwrap()).collect()
}

/// Each value is 0, both modes run, and no trap does. Comments mark the lines that lead to one.
#[test]
fn code_that_is_never_reached_is_excluded_in_each_form() {
    let host = NEVER_REACHED
        .replace("__attribute__((global))", "")
        .replace("__attribute__((device, used))", "");
    let main =
        "int main() {\n  int p[11] = {};\n  kernel(p, Mode::ADD);\n  kernel(p, Mode::DOUBLE);\n}\n";
    let (place, program) = ran_on_host(&(host + main));
    let program = program.to_str().unwrap();
    let options = ["--host-binary", program, "--include=x.cpp"];
    let report = |more: &[&str]| report(&place, &[&options[..], more].concat());
    let gates = ["lines", "functions", "regions", "branches"];
    let gates = gates.map(|what| format!("--fail-under-{what}=100"));
    report(&gates.each_ref().map(String::as_str));
    let marked = (1..).zip(NEVER_REACHED.lines());
    let marked = marked.filter(|(_, line)| line.ends_with("// excluded"));
    let expected: Vec<u64> = marked.map(|(number, _)| number).collect();
    let report = json(report(&["--json"]).into_bytes());
    assert_eq!(excluded_lines(&report, 1), expected);
}

/// The lines, and the functions, by lcov: `genhtml` and gcovr leave a function out if the line of its name is excluded.
#[test]
fn a_marker_on_a_signature_excludes_the_entry_of_the_function() {
    let (place, _) = ran(
        "#define __global__ __attribute__((global))\n\
         extern \"C\" __global__ void kernel(int *p) {\n\
         *p = 1;\n\
         }\n\
         __global__ void one(int *p) { // LCOV_EXCL_LINE\n\
         *p = 1;\n\
         }\n\
         __global__ void two(int *p, // LCOV_EXCL_LINE\n\
         int q)\n\
         {\n\
         *p = q;\n\
         }\n\
         __global__ void three(int *p) // LCOV_EXCL_LINE\n\
         { // LCOV_EXCL_LINE\n\
         *p = 3; // LCOV_EXCL_LINE\n\
         } // LCOV_EXCL_LINE\n\
         // LCOV_EXCL_START\n\
         __global__ void four(int *p) {\n\
         *p = 4;\n\
         }\n\
         // LCOV_EXCL_STOP\n",
        |number| u64::from(number == 0),
    );
    let tracefile = report(&place, &["--lcov"]);
    let counted = [
        (2, 1),
        (3, 1),
        (4, 1),
        (6, 0),
        (7, 0),
        (10, 0),
        (11, 0),
        (12, 0),
    ];
    assert_eq!(lcov_lines(&tracefile), counted);
    let functions = tracefile.lines().filter(|line| line.starts_with("FN"));
    let functions: Vec<_> = functions.collect();
    assert_eq!(
        functions,
        ["FN:2,kernel", "FNDA:1,kernel", "FNF:1", "FNH:1"]
    );
    report(
        &place,
        &["--fail-under-functions=100", "--fail-uncovered-kernels"],
    );
}

/// The marker that ends is after the last excluded line, as lcov and gcovr have it; the brace of the function has its calls.
#[test]
fn the_line_of_the_second_marker_and_the_closing_brace_stay() {
    let (place, _) = ran(
        "extern \"C\" __attribute__((global)) void kernel(int *p) {\n\
         if (*p > 3)\n\
         return;\n\
         // LCOV_EXCL_START\n\
         *p = 3;\n\
         // LCOV_EXCL_STOP\n\
         }\n\
         __attribute__((device, used)) void other(int *p) {\n\
         *p = 1; // LCOV_EXCL_START\n\
         *p = 2;\n\
         *p = 3; // LCOV_EXCL_STOP\n\
         }\n",
        |number| u64::from(number < 2),
    );
    let lines = lcov_lines(&report(&place, &["--lcov"]));
    assert_eq!(
        lines,
        [(1, 1), (2, 1), (3, 1), (7, 1), (8, 0), (11, 0), (12, 0)]
    );
}

/// lcov ends with an error there.
#[test]
fn a_marker_without_its_end_breaks_a_gate() {
    let source = "extern \"C\" __attribute__((global)) void kernel(int *p) {\n  *p = 1;\n}\n\
                  // LCOV_EXCL_START\nvoid nothing();\n";
    let (place, _) = ran(source, |_| 1);
    let fault = "x.hip:4: LCOV_EXCL_START has no LCOV_EXCL_STOP after it; add one";
    let output = place.command().output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains(fault), "{output:?}");
    let message = failure(&place.report(&[&"--fail-under-lines=100"]), 3);
    assert!(
        message.starts_with("rocov: gate: ") && message.contains(fault),
        "{message}"
    );
}

/// Two sides of one line that are left out for different reasons, and a condition of which either side may fail.
#[test]
fn each_side_of_a_branch_has_its_own_reason() {
    let (place, _) = ran(
        "#define __global__ __attribute__((global))\n\
         #define assert(x) ((x) ? (void)0 : (void)__builtin_trap())\n\
         [[noreturn]] __attribute__((device, used)) void fail() { __builtin_trap(); }\n\
         extern \"C\" __global__ void kernel(int *p) {\n\
         *p = 1;\n\
         if (*p > 5) __builtin_trap(); else fail();\n\
         }\n\
         __global__ void other(int *p) {\n\
         *p > 5 ? fail() : __builtin_trap();\n\
         }\n\
         __global__ void checked(int *p) {\n\
         assert(*p > 5 && !(*p == 7));\n\
         }\n",
        |_| 1,
    );
    let expected = [
        (
            6,
            [
                "ends at __builtin_trap, by default",
                "ends at fail, by default",
            ],
        ),
        (
            9,
            [
                "ends at fail, by default",
                "ends at __builtin_trap, by default",
            ],
        ),
        (12, ["condition of assert, by default"; 2]),
    ];
    let json = json(report(&place, &["--json"]).into_bytes());
    let sides = json["rocov"]["excluded_branches"].as_array().unwrap();
    report(&place, &["--html=pages"]);
    let pages = Pages::read(&place.path().join("pages"));
    let page = pages.source("x.hip").root_element();
    let shown = report(&place, &["--show", "--color=never"]);
    let lists = ["", "--markdown"].map(|format| {
        let formats: Vec<_> = [format]
            .into_iter()
            .filter(|format| !format.is_empty())
            .collect();
        report(&place, &[&formats[..], &["--show-excluded"]].concat())
    });
    for (line, reasons) in expected {
        let here = sides.iter().filter(|side| side["line"] == line);
        let here = here.map(|side| (side["side"].as_bool(), side["reason"].as_str()));
        let here: Vec<_> = here.collect();
        let by_side = [true, false].into_iter().zip(reasons);
        for (side, reason) in by_side.clone() {
            assert!(
                here.contains(&(Some(side), Some(reason))),
                "{line}: {here:?}"
            );
        }
        let abouts = match reasons[0] == reasons[1] {
            true => vec![format!("both sides excluded: {}", reasons[0])],
            false => by_side
                .map(|(side, reason)| format!("{side} side excluded: {reason}"))
                .collect(),
        };
        for about in &abouts {
            let [table, markdown] = &lists;
            assert!(
                table.contains(&format!("x.hip:{line}: {about}\n")),
                "{table}"
            );
            let row = format!("x.hip` | {line} | {about} |\n");
            let markdown = markdown.replace("\\_", "_");
            assert!(markdown.contains(&row), "{row}: {markdown}");
        }
        let of_line = shown
            .lines()
            .find(|shown| shown.starts_with(&format!("{line:>5}|")));
        let whys = crate::report::pages::all(page, &format!("#L{line} .why"));
        let whys: Vec<_> = whys.into_iter().map(crate::report::pages::text).collect();
        assert_eq!(whys, abouts);
        for about in &abouts {
            assert!(
                of_line.unwrap().contains(&format!("[{about}]")),
                "{of_line:?}"
            );
        }
    }
}

/// The comments are where they stand now, and the counts where they stood.
#[test]
fn a_source_whose_exclusions_have_moved_is_named() {
    let repository = Repository::new("source");
    let text = AFTER.replace("// never", "// LCOV_EXCL_LINE");
    let path = repository.write("src/kernel.hip", &text);
    repository.commit();
    let elf = repository.ran(&path, "gfx90a", |_| false);
    let data = repository.place.data();
    label(&repository.place, &elf);
    let object = registry::code_object_of(&elf, vec![registry::kernel("step", 1)]);
    let load = registry::load(&object, 0x7000, 1, None);
    let document = registry::document(4711, &[object], vec![load]);
    registry::write(&document, &data);
    let stored = repository.place.path().join("stored.json");
    let stored = stored.to_str().unwrap();
    let rocov_with = |arguments: &[&str]| {
        let mut command = rocov();
        command.current_dir(&repository.root).args(arguments);
        command.output().unwrap()
    };
    let data = data.to_str().unwrap();
    let asked = format!("{}:9", path.display());
    let baseline = ["baseline", data, "--update", "-o", stored];
    let commands: [(&[&str], i32, &str); 11] = [
        (&["report", data], 0, ""),
        (&["report", data, "--lcov"], 0, ""),
        (&["report", data, "--json"], 0, ""),
        (&["report", data, "--markdown"], 0, ""),
        (&["report", data, "--show"], 0, ""),
        (&["report", data, "--html=../pages"], 0, ""),
        (
            &["report", data, "--quiet", "--fail-under-lines=1"],
            3,
            "gate: ",
        ),
        (&["diff", data, data], 0, data),
        (&["kernels", data], 0, ""),
        (&["which", &asked, data], 0, ""),
        (&baseline, 0, ""),
    ];
    for (arguments, _, _) in commands {
        let output = rocov_with(arguments);
        assert_eq!(stderr(&output), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
    // The first line of what stood there is one above.
    let moved = text.replacen(
        "__global__ __attribute__((global))\n",
        "__global__ __attribute__((global))\n\n",
        1,
    );
    fs::write(&path, &moved).unwrap();
    for (arguments, status, before) in commands {
        let output = rocov_with(arguments);
        let said = stderr(&output);
        let line = format!(
            "{}: stale: it has changed since it was compiled (no code ",
            path.display()
        );
        let line = match before == data {
            true => format!("rocov: {data}: {line}"),
            false => format!("rocov: {before}{line}"),
        };
        assert!(said.starts_with(&line), "{arguments:?}: {said}");
        assert!(
            said.contains("), and its exclusions apply to the lines where they are now; build and run it again"),
            "{arguments:?}: {said}"
        );
        let sides = if before == data { 2 } else { 1 };
        assert_eq!(said.lines().count(), sides, "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    }
    let pages = Pages::read(&repository.place.path().join("pages"));
    let warning = pages.warning("kernel.hip").unwrap();
    assert!(
        warning.contains("exclusions apply to the lines"),
        "{warning}"
    );
    // Git has what was compiled, and llvm-cov excludes nothing.
    for option in ["--source-revision=HEAD", "--as-llvm-cov"] {
        assert_eq!(stderr(&repository.report(&[option])), "");
    }
    // No text is read for a table that keeps the default exclusions.
    let traps = AFTER.replace("*value = 0; // never", "__builtin_trap();");
    let path = repository.write("src/kernel.hip", &traps);
    repository.commit();
    repository.ran(&path, "gfx90a", |_| false);
    repository.write("src/kernel.hip", &format!("\n{traps}"));
    assert!(stderr(&repository.report(&[])).contains("stale"));
    assert_eq!(stderr(&repository.report(&["--no-default-exclusions"])), "");
}

/// A source of which nothing is left is named, too.
#[test]
fn a_source_that_is_excluded_as_a_whole_and_has_changed_is_named() {
    let repository = Repository::new("source");
    repository.write("src/kept.hip", AFTER);
    let path = repository.write("src/kernel.hip", &format!("\n{AFTER}"));
    repository.ran(&path, "gfx90a", |_| false);
    repository.write(
        "src/kernel.hip",
        &format!("// LCOV_EXCL_START\n\n{AFTER}// LCOV_EXCL_STOP\n"),
    );
    let output = repository.report(&["--fail-under-lines=1"]);
    assert!(
        stderr(&output).contains("kernel.hip: stale: "),
        "{output:?}"
    );
}

/// Markers may stand anywhere in a source that has changed, also across the ends of blocks. The lines of a report are those
/// that were compiled, in order.
#[test]
fn a_source_is_reported_wherever_its_markers_have_moved() {
    const KERNEL: &str = "\
#define __global__ __attribute__((global))
#define assert(x) ((x) ? (void)0 : (void)__builtin_trap())

extern \"C\" __global__ void step(int *value, int kind) {
  assert(value != nullptr && kind < 4);
  switch (kind) {
  case 0:
    if (*value > 3) {
      *value = 1;
    }
    break;
  case 1:
    // LCOV_EXCL_START
    for (int i = 0; i < kind; i++) {
      if (value[i] == 7) {
        value[i] = 0;
      }
    }
    // LCOV_EXCL_STOP
    break;
  default:
    __builtin_unreachable();
  }
  value[1] = 2; // LCOV_EXCL_LINE
}
";
    let repository = Repository::new("source");
    let path = repository.write("src/kernel.hip", KERNEL);
    repository.ran(&path, "gfx90a", |_| false);
    let lines: Vec<&str> = KERNEL.lines().collect();
    let mut texts = Vec::new();
    for at in 0..=lines.len() {
        for count in 1..=3 {
            let mut more = lines.clone();
            more.splice(at..at, std::iter::repeat_n("// new", count));
            texts.push(more.join("\n"));
            let mut fewer = lines.clone();
            fewer.drain(at..(at + count).min(lines.len()));
            texts.push(fewer.join("\n"));
            // Shorter and longer lines, and a block that begins or ends elsewhere.
            let mut cut = lines.clone();
            cut.iter_mut()
                .skip(at)
                .take(count)
                .for_each(|line| *line = "}");
            texts.push(cut.join("\n"));
        }
    }
    for text in texts {
        repository.write("src/kernel.hip", &text);
        let output = repository.report(&["--lcov"]);
        assert_eq!(output.status.code(), Some(0), "{text}\n{output:?}");
        let tracefile = stdout(&output);
        let numbers = tracefile.lines().filter_map(|line| {
            let (number, _) = line.strip_prefix("DA:")?.split_once(',')?;
            number.parse::<usize>().ok()
        });
        let numbers: Vec<_> = numbers.collect();
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "{text}\n{numbers:?}"
        );
        assert!(
            numbers
                .iter()
                .all(|number| (2..=lines.len()).contains(number)),
            "{text}\n{numbers:?}"
        );
    }
}

/// A line that is left out has its mark in each instance of a template.
#[test]
fn instances_show_what_is_excluded() {
    let (place, elf) = ran(
        "template <int N> __attribute__((device)) int add(int x) {\n\
         if (x == 7)\n\
         x = N; // LCOV_EXCL_LINE: no test\n\
         return x + N;\n\
         }\n\
         extern \"C\" __attribute__((global)) void kernel(int *p) {\n\
         *p = add<1>(*p) + add<2>(*p);\n\
         }\n",
        |_| 1,
    );
    let profile = place.profile_path(&elf, "gfx90a", 0);
    profile::write_counts(&elf, &|_: &str, _| 1, RAW_VERSION, &profile);
    let shown = report(&place, &["--show", "--color=never"]);
    let marked = shown
        .lines()
        .filter(|line| line.contains("    3|   excl|x = N;"));
    let prefixes: Vec<_> = marked.map(|line| line.split("    3|").next()).collect();
    assert_eq!(prefixes, [Some(""), Some("  |"), Some("  |")], "{shown}");
}

/// The legend explains what an excluded cell is, and the last line what the figures are without.
#[test]
fn pages_explain_exclusions_if_they_have_some() {
    const KERNEL: &str = "extern \"C\" __attribute__((global)) void kernel(int *p) {\n\
                          if (*p > 3)\n\
                          *p = 3; // here\n\
                          }\n";
    let assert = KERNEL.replace("*p = 3;", "assert(p && *p);");
    let assert =
        "#define assert(x) ((x) ? (void)0 : (void)__builtin_trap())\n".to_owned() + &assert;
    let marked = |marker: &str| KERNEL.replace("here", marker);
    // The numbers of excluded cells, by hand: those of lines, and those of sides of branches.
    for (text, cells, has_exclusions) in [
        (KERNEL.to_owned(), [0, 0], false),
        (marked("LCOV_EXCL_LINE"), [1, 1], true),
        (
            KERNEL.replacen("3)", "3) // LCOV_EXCL_BR_LINE", 1),
            [0, 0],
            true,
        ),
        // The conditions of an assertion have no branches in a report.
        (assert, [0, 0], true),
    ] {
        let (place, _) = ran(&text, |_| 1);
        report(&place, &["--html=pages"]);
        let pages = Pages::read(&place.path().join("pages"));
        let page = pages.source("x.hip").root_element();
        let all = |selector: &str| crate::report::pages::all(page, selector);
        let lines = all(".rows > tr:not(.branch) > td.excluded");
        let sides = all(".rows > tr.branch > td.excluded");
        assert_eq!([lines.len(), sides.len()], cells, "{text}");
        let legend = all(".legend i.excluded");
        assert_eq!(legend.len(), usize::from(cells != [0, 0]), "{text}");
        for cell in lines.iter().chain(&sides) {
            assert_eq!(
                crate::report::pages::text(*cell),
                crate::report::pages::text(legend[0])
            );
            assert_eq!(crate::report::pages::attribute(*cell, "title"), "excluded");
        }
        let footer = crate::report::pages::text(all("footer")[0]);
        assert_eq!(
            footer.contains("without excluded code"),
            has_exclusions,
            "{footer}"
        );
        report(&place, &["--html=pages", "--as-llvm-cov"]);
        let pages = Pages::read(&place.path().join("pages"));
        let page = pages.source("x.hip").root_element();
        let all = |selector: &str| crate::report::pages::all(page, selector);
        assert!(all(".excluded").is_empty());
        let footer = crate::report::pages::text(all("footer")[0]);
        assert!(!footer.contains("without"), "{footer}");
    }
}

/// Only gfx942 has the line, and gfx90a has no code there.
#[test]
fn a_page_has_the_exclusions_of_each_arch() {
    let (place, elfs) = Place::with_archs();
    place.of_archs(&elfs, &["--html=out", "--exclude-line=return value . 2"]);
    let pages = Pages::read(&place.path().join("out"));
    let page = pages.source("archs.hip").root_element();
    for row in ["#L8", "#L7 + tr.branch"] {
        let cells = crate::report::pages::all(page, &format!("{row} > td.n"));
        let classes = cells
            .into_iter()
            .map(|cell| crate::report::pages::attribute(cell, "class").trim());
        assert_eq!(
            classes.collect::<Vec<_>>(),
            ["n absent", "n excluded"],
            "{row}"
        );
    }
}
