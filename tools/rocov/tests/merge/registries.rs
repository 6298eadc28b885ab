//! Kernel registries in pooled directories: what `rocov kernels` and `rocov report` say of one is
//! what they say of all the files that were merged, in one directory.

use std::fs;

use crate::common::registry::{code_object_of, document, kernel, load, write};
use crate::common::{failure, profile, rocov, run, stderr, stdout};
use crate::{Place, names};

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
            let loads = (1..=u64::from(rank)).map(|it| load(&object, 0x10000 * it, it, None));
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
        arguments.extend(["--pooled".to_owned(), output.to_owned()]);
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
    let table = |directory: &str| {
        let report = said(&place, &["report"], directory);
        let (_, table) = report.split_once("\n\n").unwrap();
        table.to_owned()
    };
    assert_eq!(table("flat"), table("all"));
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
    arguments.extend(["--pooled", "pooled"]);
    let output = place.merge(&arguments);
    let line = "rocov: cannot merge rank2/2.kernels.json: not a registry, or damaged: EOF";
    assert!(stderr(&output).starts_with(line), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.path("pooled").exists());

    arguments.push("--failure-mode=all");
    let output = run(&mut place.command(&arguments));
    let said = stderr(&output);
    let line = line.replace("rocov: ", "rocov: left out: ");
    assert!(
        said.starts_with(&line) && said.lines().count() == 1,
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
