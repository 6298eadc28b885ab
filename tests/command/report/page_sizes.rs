//! Reports of many files and functions.

use std::fmt::Write;

use super::*;
use crate::report::pages::{Pages, all, text};

/// Pages of `files` files in two directories, each with `functions` functions, of one unit with a kernel.
fn pages_of(files: usize, functions: usize) -> (Place, Pages) {
    let place = Place::new();
    let mut unit = "#define __device__ __attribute__((device))
extern \"C\" __attribute__((global)) void kernel() {}
"
    .to_owned();
    for directory in ["even/inner", "odd"] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
    }
    for file in 0..files {
        let name = match file % 2 {
            0 => format!("even/inner/{file}.h"),
            _ => format!("odd/{file}.h"),
        };
        let mut text = String::new();
        for function in 0..functions {
            writeln!(text, "__device__ void of_{file}_{function}() {{}}").unwrap();
        }
        fs::write(place.path().join(&name), text).unwrap();
        writeln!(unit, "#include \"{name}\"").unwrap();
    }
    let path = place.path().join("unit.hip");
    fs::write(&path, unit).unwrap();
    let elf = compile_source(&path, place.path(), "unit.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    place.keep(&elf);
    run(place.command().arg("--html=out"));
    let pages = Pages::read(&place.path().join("out"));
    (place, pages)
}

#[test]
fn directories_of_many_files_are_closed_at_first() {
    // With the unit itself, 50 and 51 files.
    for (files, is_open) in [(49, true), (50, false)] {
        let (_place, pages) = pages_of(files, 1);
        let index = pages.page("index.html");
        let folders = all(index, ".files label.fold").into_iter().map(text);
        assert_eq!(folders.collect::<Vec<_>>(), ["even/inner/", "odd/"]);
        let open = all(index, ".files .fold input[checked]").len();
        assert_eq!(open, if is_open { 2 } else { 0 }, "{files}");
        // Each file is below its folder: a closed one hides it by a rule for its class.
        let style: String = all(index, "style")[0].text().collect();
        for (number, name) in ["even/inner/", "odd/"].into_iter().enumerate() {
            let rule = format!(":has(#d{number}:not(:checked)) .in{number} {{ display: none }}");
            assert!(style.contains(&rule), "{style}");
            let within = all(index, &format!(".files .in{number} th")).into_iter();
            let within: Vec<_> = within.map(text).collect();
            assert!(
                within.iter().all(|text| text.starts_with(name)),
                "{within:?}"
            );
            assert_eq!(within.len(), files.div_ceil(2) - number * (files % 2));
        }
    }
}

#[test]
fn many_functions_are_on_several_pages_of_one_table_each() {
    let (_place, pages) = pages_of(6, 100);
    let mut found = Vec::new();
    for (page, number, titles, range) in [
        (
            "functions.html",
            500,
            &["Kernels 1", "Other functions 600"][..],
            "1 to 500 of 601",
        ),
        (
            "functions-2.html",
            101,
            &["Other functions 600"],
            "501 to 601 of 601",
        ),
    ] {
        let page = pages.page(page);
        assert_eq!(all(page, "table").len(), 1);
        let names = all(page, "tbody.rows th").into_iter().map(text);
        let names: Vec<_> = names.collect();
        assert_eq!(names.len(), number);
        found.extend(names);
        let shown = all(page, "tr.title").into_iter().map(text);
        assert_eq!(shown.collect::<Vec<_>>(), titles);
        assert_eq!(text(all(page, ".pager span")[0]), range);
    }
    assert_eq!(found[0], "kernel");
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 601);
    assert!(!pages.folder.join("functions-3.html").exists());
    // A small report has one page, without links to others.
    let (_place, pages) = pages_of(2, 1);
    assert!(all(pages.page("functions.html"), ".pager").is_empty());
}
