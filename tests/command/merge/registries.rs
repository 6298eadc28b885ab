//! Kernel registries in pooled directories: what `rocov kernels` and `rocov report` say of one is
//! what they say of all the files that were merged, in one directory.

use std::fs;

use rocov_tests::cli::registry::{code_object_of, document, kernel, load, write};
use rocov_tests::cli::{failure, profile, rocov, run, stderr, stdout};

use crate::merge::{Place, names};

/// Ranks with a process each, which has loaded one code object as often as its number says.
const RANKS: u32 = 4;
/// The name of the merged registry.
const POOLED: &str = "registry/0.merged.kernels.json";

/// Data directories `rank1` and so on, and one that has the files of all of them: `all`.
fn ranks(place: &Place) -> Vec<String> {
    let elf = place.elf("gfx90a");
    for rank in 1..=RANKS {
        // Nothing of one overwrites another's, but the kept ELF, which is the same.
        for directory in [format!("rank{rank}").as_str(), "all"] {
            place.profile(directory, &elf, rank, 10_u64.pow(rank));
            let file = format!("objects/gfx90a.{}.elf", profile::identity(&elf));
            let kept = place.path(directory).join(&file);
            fs::create_dir_all(kept.parent().unwrap()).unwrap();
            fs::copy(&elf, kept).unwrap();
            let mut object = code_object_of(&elf, vec![kernel("kernel", 0)]);
            object.file = Some(file);
            let loads = (1..=u64::from(rank)).map(|n| load(&object, 0x10000 * n, n, None));
            let document = document(rank, std::slice::from_ref(&object), loads.collect());
            write(&document, &place.path(directory));
        }
    }
    (1..=RANKS).map(|rank| format!("rank{rank}")).collect()
}

/// The output of `rocov COMMAND` for a directory.
fn said(place: &Place, command: &[&str], directory: &str) -> String {
    let mut rocov = rocov();
    let output = run(rocov
        .current_dir(place.0.path())
        .arg(command[0])
        .arg(directory)
        .args(&command[1..]));
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

#[test]
fn a_pooled_directory_tells_of_all_processes() {
    let place = Place::new();
    let ranks = ranks(&place);
    let merge = |inputs: &[String], output: &str| {
        let mut arguments = inputs.to_vec();
        arguments.extend(["--processes", "--pooled", output].map(str::to_owned));
        place.merged(&arguments);
    };
    merge(&ranks, "flat");
    let (two, others) = ranks.split_at(2);
    merge(two, "first");
    merge(others, "second");
    merge(&["second".to_owned(), "first".to_owned()], "tree");
    let text = |directory: &str| fs::read_to_string(place.path(directory).join(POOLED)).unwrap();
    assert_eq!(text("tree"), text("flat"));
    assert_eq!(text("flat").matches("\"pid\"").count(), RANKS as usize);

    // 1 + 2 + 3 + 4 loads, and the counts of all ranks.
    let listing = ["kernels"];
    let kernels = said(&place, &listing, "flat");
    let line = kernels.lines().find(|line| line.contains("kernel.hip"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert!(words.contains(&"10"), "{kernels}");
    assert!(words.contains(&"11110"), "{kernels}");
    for command in [&listing[..], &["kernels", "--address", "0x40040"]] {
        assert_eq!(
            said(&place, command, "flat"),
            said(&place, command, "all"),
            "{command:?}"
        );
    }
    assert_eq!(table(&place, "flat"), table(&place, "all"));
}

/// The table of a report.
fn table(place: &Place, directory: &str) -> String {
    let report = said(place, &["report"], directory);
    let (_, table) = report.split_once("\n\n").unwrap();
    table.to_owned()
}

#[test]
fn processes_are_put_together_in_any_order_and_grouping() {
    let place = Place::new();
    let ranks = ranks(&place);
    let merge = |inputs: &[&str], output: &str| {
        place.merged(&[inputs, &["--pooled", output]].concat());
        fs::read_to_string(place.path(output).join(POOLED)).unwrap()
    };
    let [one, two, three, four] = [0, 1, 2, 3].map(|rank| ranks[rank].as_str());
    let flat = merge(&[one, two, three, four], "flat");
    merge(&[four, one], "ends");
    merge(&[three, two], "middle");
    assert_eq!(merge(&["middle", "ends"], "tree"), flat);
    place.merged(&[three, two, "--processes", "--pooled", "kept"]);
    assert_eq!(merge(&["ends", "kept"], "mixed"), flat);
    assert_eq!(merge(&["flat"], "again"), flat);
    // One record stands for all, and reports have what they have of the runs.
    assert_eq!(flat.matches("\"pid\"").count(), 0);
    assert_eq!(
        said(&place, &["kernels"], "flat"),
        said(&place, &["kernels"], "all")
    );
    assert_eq!(table(&place, "flat"), table(&place, "all"));
    let pages = |directory: &str| {
        said(
            &place,
            &["report", "--html", &format!("html-{directory}")],
            directory,
        );
        let page = fs::read_to_string(place.path(&format!("html-{directory}/index.html"))).unwrap();
        let runs = page.lines().find(|line| line.contains("4 processes"));
        runs.map(str::to_owned)
    };
    assert!(pages("all").is_some());
    // Addresses need the records of processes.
    let mut address = rocov();
    address
        .current_dir(place.0.path())
        .args(["kernels", "flat", "--address", "0x40040"]);
    let address = address.output().unwrap();
    let line = "rocov: left out: 4 processes, which a merge has combined without keeping their addresses and times; \
    merge with --processes to keep these\n";
    assert_eq!(stderr(&address), line);
    assert_eq!(address.status.code(), Some(1));
    let shown = said(&place, &["show"], &format!("flat/{POOLED}"));
    assert!(
        shown.contains("4 processes on 1 host: app 'a b'")
            || shown.contains("4 processes on 1 host: app a b"),
        "{shown}"
    );
    assert!(shown.contains(": 10 loads"), "{shown}");
    assert_eq!(pages("flat"), pages("all"));
}

#[test]
fn runs_in_two_inputs_count_once() {
    let place = Place::new();
    let ranks = ranks(&place);
    place.merged(&["rank1", "rank2", "--pooled", "first"]);
    place.merged(&["rank3", "rank4", "--pooled", "second"]);
    place.merged(&["rank1", "rank2", "--pooled", "copy"]);
    let merge = |inputs: &[&str]| run(&mut place.command(&[inputs, &["-o", "out"]].concat()));
    for (inputs, repeated) in [
        (
            &["first", "copy", "second"][..],
            "first contains only runs that are also in copy, and which are counted once: leave it out",
        ),
        (
            &["second", "first", "rank2"],
            "rank2 contains only runs that are also in first, and which are counted once: leave it out",
        ),
        (
            &["rank1", "first", "second"],
            "rank1 contains only runs that are also in first, and which are counted once: leave it out",
        ),
    ] {
        let output = merge(inputs);
        assert_eq!(stderr(&output), format!("rocov: {repeated}\n"));
        assert_eq!(place.calls("out/gfx90a.profdata"), 11110, "{inputs:?}");
    }
    place.merged(&["rank2", "rank3", "--pooled", "across"]);
    let message = failure(&place.merge(&["first", "across", "-o", "never"]), 1);
    let end = "have 1 run in common, whose counts cannot be separated from the others: merge directories of different \
               runs\n";
    assert!(message.ends_with(end), "{message}");
    assert_eq!(ranks.len(), 4);
}

#[test]
fn a_registry_given_twice_counts_once() {
    let place = Place::new();
    let ranks = ranks(&place);
    place.merged(&[&ranks[0], "--pooled", "once"]);
    let output = run(&mut place.command(&["rank1", "all/1.kernels.json", "--pooled", "twice"]));
    assert_eq!(stderr(&output), "");
    let text = |directory: &str| fs::read(place.path(directory).join(POOLED)).unwrap();
    assert_eq!(text("twice"), text("once"));
}

#[test]
fn a_damaged_registry_is_named() {
    let place = Place::new();
    let ranks = ranks(&place);
    let damaged = place.path("rank2/2.kernels.json");
    let text = fs::read(&damaged).unwrap();
    fs::write(&damaged, &text[..text.len() / 2]).unwrap();
    let mut arguments: Vec<_> = ranks.iter().map(String::as_str).collect();
    arguments.extend(["--processes", "--pooled", "pooled"]);
    let output = place.merge(&arguments);
    let line =
        "rocov: left out: cannot merge rank2/2.kernels.json: not a registry, or damaged: EOF";
    assert!(stderr(&output).starts_with(line), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));

    arguments.push("--failure-mode=all");
    let output = run(&mut place.command(&arguments));
    let said = stderr(&output);
    assert!(
        said.starts_with(line) && said.lines().count() == 1,
        "{said}"
    );
    let pooled = fs::read_to_string(place.path("pooled").join(POOLED)).unwrap();
    assert_eq!(pooled.matches("\"pid\"").count(), RANKS as usize - 1);

    // An indexed profile has nothing of it.
    place.merged(&["rank2", "-o", "out.profdata"]);
    // A directory for reports has all else.
    let output = run(&mut place.command(&["rank2", "-o", "out"]));
    assert_eq!(stderr(&output), said);
    // Alone it is nothing to merge.
    let alone = place.merge(&["rank1/1.kernels.json", "--pooled", "alone"]);
    assert!(failure(&alone, 1).contains("no profile in the inputs"));
    assert!(!names(place.0.path()).contains(&"alone".to_owned()));
}

/// A group keeps the first 16 reasons by the alphabet, so that the order of merges does not matter. A report
/// shows them.
#[test]
fn stops_and_notes_are_put_together() {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    let object = code_object_of(&elf, vec![kernel("kernel", 0)]);
    let reason = |number: u32| format!("kernel k{number:02}: out-of-bounds write");
    let note = |number: u32| format!("kernel k{number:02}: data race");
    for rank in 1..=RANKS {
        let directory = format!("rank{rank}");
        place.profile(&directory, &elf, rank, 1);
        let loads = vec![load(&object, 0x10000, 1, None)];
        let mut document = document(rank, std::slice::from_ref(&object), loads);
        // 24 reasons, each rank with every fourth, the last ones first.
        document.processes[0].stops = (0..6).rev().map(|n| reason(4 * n + rank)).collect();
        document.processes[0].notes = (0..6).rev().map(|n| note(4 * n + rank)).collect();
        write(&document, &place.path(&directory));
    }
    let merge = |inputs: &[&str], output: &str| {
        place.merged(&[inputs, &["--pooled", output]].concat());
        fs::read_to_string(place.path(output).join(POOLED)).unwrap()
    };
    let flat = merge(&["rank1", "rank2", "rank3", "rank4"], "flat");
    merge(&["rank4", "rank2"], "some");
    assert_eq!(merge(&["rank3", "some", "rank1"], "tree"), flat);
    let stops: Vec<_> = (1..=16).map(reason).collect();
    let merged: serde_json::Value = serde_json::from_str(&flat).unwrap();
    assert_eq!(merged["groups"][0]["stops"], serde_json::json!(stops));
    let notes: Vec<_> = (1..=16).map(note).collect();
    assert_eq!(merged["groups"][0]["notes"], serde_json::json!(notes));

    let mut report = rocov();
    report
        .current_dir(place.0.path())
        .args(["report", "flat", "--object"])
        .arg(&elf);
    let warnings = stderr(&run(&mut report));
    for stop in &stops {
        let line = format!(
            "rocov: a process (app): the GPU stopped a kernel: {stop}, and its counts end there; fix the kernel \
             and run the program again\n"
        );
        assert!(warnings.contains(&line), "{line} is not in {warnings}");
    }
    for note in &notes {
        let line = format!("rocov: a process (app): {note}\n");
        assert!(warnings.contains(&line), "{line} is not in {warnings}");
    }
}
