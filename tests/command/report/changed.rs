//! Coverage of the lines that a change touched: which they are by git, and what ran of them by
//! llvm-cov.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::*;
use crate::report::pages::{Pages, lines_with};
use crate::report::repository::{AFTER, BEFORE, Repository};

const SOURCE: &str = "src/kernel.hip";

/// A repository with a change that both archs ran.
fn ran() -> Repository {
    let repository = Repository::with_change(SOURCE);
    repository.ran_on_both(&repository.root.join(SOURCE));
    repository
}

/// The changed lines in JSON.
#[track_caller]
fn changed(command: &mut Command) -> Value {
    let output = run(command.args(["--json", "--summary-only"]));
    assert_eq!(stderr(&output), "");
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    json["rocov"]["changed_lines"].clone()
}

#[test]
fn changed_lines_are_those_of_git_with_the_counts_of_llvm_cov() {
    let repository = ran();
    let path = repository.root.join(SOURCE);
    let found = changed(&mut repository.command(&["--diff=HEAD~1"]));
    assert_eq!(found["names"], json!(["gfx90a", "gfx942", "all"]));
    let blamed = repository.blamed(SOURCE);
    assert_eq!(blamed.len(), 8);
    for (index, arch) in ["gfx90a", "gfx942"].iter().enumerate() {
        let mut counts = repository.counted(&path, arch);
        counts.retain(|line, _| blamed.contains(line));
        let missed: Vec<_> = counts
            .iter()
            .filter(|count| *count.1 == 0)
            .map(|count| count.0)
            .collect();
        let file = &found["files"][0];
        assert_eq!(file["missed"][index], json!(missed), "{arch}");
        assert_eq!(file["lines"][index]["count"], counts.len(), "{arch}");
        let covered = counts.len() - missed.len();
        assert_eq!(file["lines"][index]["covered"], covered, "{arch}");
        assert_eq!(found["lines"][index], file["lines"][index]);
    }
}

#[test]
fn the_pages_mark_them() {
    let repository = ran();
    run(&mut repository.command(&["--diff=HEAD~1", "--html=../pages"]));
    let pages = Pages::read(&repository.place.path().join("pages"));
    let page = pages.source("kernel.hip");
    let blamed = repository.blamed(SOURCE);
    let path = repository.root.join(SOURCE);
    let mut with_code = BTreeSet::new();
    for (index, arch) in ["gfx90a", "gfx942"].iter().enumerate() {
        let mut counts = repository.counted(&path, arch);
        counts.retain(|line, _| blamed.contains(line));
        let covered = counts.values().filter(|count| **count > 0).count();
        let figures = (covered, counts.len());
        assert_eq!(pages.total("changed", index), figures, "{arch}");
        with_code.extend(counts.into_keys());
    }
    let marked = lines_with(page, "changed");
    let marked: BTreeSet<_> = marked.into_iter().map(u64::from).collect();
    assert_eq!(marked, with_code);
    // Without a change nothing is marked.
    run(&mut repository.command(&["--html=../pages"]));
    let pages = Pages::read(&repository.place.path().join("pages"));
    assert_eq!(lines_with(pages.source("kernel.hip"), "changed"), [0; 0]);
}

#[test]
fn an_uncovered_branch_is_told_on_the_arch_that_has_it() {
    let repository = ran();
    let said = stdout(&run(&mut repository.command(&["--diff=HEAD~1"])));
    let (_, section) = said.split_once("\nChanged lines: HEAD~1\n\n").unwrap();
    let expected = "\
Filename              gfx90a        gfx942           all
src/kernel.hip  66.67% (2/3)  62.50% (5/8)  62.50% (5/8)
TOTAL           66.67% (2/3)  62.50% (5/8)  62.50% (5/8)

Changed lines that did not run:
  src/kernel.hip: 6-7, 12
";
    assert_eq!(section, expected);

    // Now one of the archs takes the branch that both have.
    repository.ran(&repository.root.join(SOURCE), "gfx90a", |_| false);
    let said = stdout(&run(
        &mut repository.command(&["--diff=HEAD~1", "--markdown"])
    ));
    let (_, section) = said.split_once("\n#### Changed lines\n\n").unwrap();
    let (section, _) = section.split_once("\n<details>").unwrap();
    let expected = "\
| File | gfx90a | gfx942 | **all** | Not run |
|---|---:|---:|---:|---|
| `src/kernel.hip` | 100.00% (3/3) | 62.50% (5/8) | 75.00% (6/8) | 6-7; on gfx942: 12 |
";
    assert_eq!(section, expected);

    let gates = |percent: &str| {
        let gate = format!("--fail-under-changed-lines={percent}");
        let output = repository.report(&["--diff=HEAD~1", &gate]);
        let said = stderr(&output);
        let gates = said
            .lines()
            .filter_map(|line| line.strip_prefix("rocov: gate: "));
        (
            output.status.code(),
            gates.map(str::to_owned).collect::<Vec<_>>(),
        )
    };
    assert_eq!(gates("62.5"), (Some(0), Vec::new()));
    let line = "gfx942: 62.50% of changed lines ran (3 of 8 did not run), less than 70%";
    assert_eq!(gates("70"), (Some(3), vec![line.to_owned()]));
}

#[test]
fn a_change_can_be_named_in_several_ways_whatever_git_is_set_to() {
    let repository = ran();
    let git = |arguments: &[&str]| repository.git(arguments);
    let mut expected = changed(&mut repository.command(&["--diff=HEAD~1"]));
    expected["base"] = Value::Null;
    let mut file = repository.place.path().join("change.diff");
    fs::write(&file, git(&["diff", "HEAD~1"])).unwrap();
    let is_same = |command: &mut Command| {
        let mut found = changed(command);
        found["base"] = Value::Null;
        assert_eq!(found, expected, "{command:?}");
    };
    let of_file = format!("--diff={}", file.display());
    for way in [
        "--diff=HEAD~1..HEAD",
        "--diff=HEAD~1...",
        "--diff=main~1",
        &of_file,
    ] {
        is_same(&mut repository.command(&[way]));
    }
    // Standard input, here a patch as it is sent by mail.
    let mail = git(&[
        "format-patch",
        "-1",
        "--stdout",
        "--src-prefix=x/",
        "--dst-prefix=y/",
    ]);
    fs::write(&file, mail).unwrap();
    let mut command = repository.command(&["--diff=-"]);
    is_same(command.stdin(fs::File::open(&file).unwrap()));
    // diff -u of two directories, with the ends of lines that another system has.
    file = repository.place.path().join("plain.diff");
    let old = repository.place.path().join("old/src");
    fs::create_dir_all(&old).unwrap();
    fs::write(old.join("kernel.hip"), BEFORE).unwrap();
    let mut plain = Command::new("diff");
    plain.current_dir(repository.place.path());
    plain.args(["-ru", "old", "source", "-x", ".git"]);
    let plain = plain.output().unwrap();
    assert_eq!(plain.status.code(), Some(1), "{plain:?}");
    fs::write(&file, stdout(&plain).replace('\n', "\r\n")).unwrap();
    is_same(&mut repository.command(&[&format!("--diff={}", file.display())]));

    // Elsewhere, and with a configuration that changes what git prints.
    let root = repository.root.to_str().unwrap();
    let mut command = repository.command(&["--diff=HEAD~1", "--repository", root]);
    is_same(command.current_dir("/"));
    for (name, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("diff.relative", "true"),
        ("diff.context", "7"),
        ("diff.interHunkContext", "9"),
        ("color.ui", "always"),
        ("core.pager", "false"),
        ("diff.algorithm", "histogram"),
        ("diff.renames", "copies"),
    ] {
        git(&["config", name, value]);
    }
    let mut command = repository.command(&["--diff=HEAD~1"]);
    command
        .env("GIT_EXTERNAL_DIFF", "false")
        .env("GIT_DIFF_OPTS", "-u9");
    is_same(command.current_dir(repository.root.join("src")));
}

#[test]
fn files_are_found_by_whatever_name_and_wherever_they_were_compiled() {
    let repository = Repository::new("source");
    // Enough of it stays for git to see that it is the same file.
    let long = |text: &str| text.to_owned() + &"// the same\n".repeat(40);
    repository.write("old.hip", &long(BEFORE));
    repository.commit();
    let name = "dir \u{fc} \"x\"/kernel 1.hip";
    let path = repository.write(name, &long(AFTER));
    fs::remove_file(repository.root.join("old.hip")).unwrap();
    repository.git(&["add", "-A"]);
    // Renamed and modified, and staged alone.
    repository.ran_on_both(&path);
    let found = changed(&mut repository.command(&["--diff=HEAD"]));
    assert_eq!(found["files"][0]["lines"][1]["count"], 8, "{found}");

    // Compiled where the repository's directory is another.
    let elsewhere = repository.place.path().join(name);
    fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    fs::rename(&path, &elsewhere).unwrap();
    fs::remove_dir_all(repository.place.data()).unwrap();
    fs::create_dir(repository.place.data()).unwrap();
    repository.ran_on_both(&elsewhere);
    fs::rename(&elsewhere, &path).unwrap();
    let found = changed(&mut repository.command(&["--diff=HEAD"]));
    assert_eq!(found["files"][0]["lines"][1]["count"], 8, "{found}");
    assert_eq!(found["files"][0]["filename"], elsewhere.to_str().unwrap());
}

#[test]
fn what_a_change_has_and_the_report_has_not_is_told() {
    let repository = ran();
    let header = "inline __attribute__((device)) int f() { return 1; } // __device__\n";
    repository.write("src/other.hip", "int x;\n");
    repository.write("src/header.hpp", header);
    repository.write("src/host.cpp", "int main() {}\n");
    repository.write("README.md", "__global__\n");
    repository.commit();
    let gate = "--fail-under-changed-lines=100";
    let output = repository.report(&["--diff=HEAD~1", gate]);
    let lines = ["src/header.hpp", "src/other.hip"]
        .map(|name| {
            format!(
                "{name}: not in any reported code object; compile it with the flags that `rocov flags` prints, or leave \
                 it out with --exclude"
            )
        });
    let said = stderr(&output);
    let expected = lines.iter().map(|line| format!("rocov: {line}\n"));
    let gates = lines.iter().map(|line| format!("rocov: gate: {line}\n"));
    assert_eq!(said, expected.chain(gates).collect::<String>());
    assert_eq!(output.status.code(), Some(3));
    let said = stdout(&output);
    assert!(
        said.contains("None of them has GPU code that is reported."),
        "{said}"
    );
    assert!(
        said.ends_with(&format!("\nLeft out: {}\n", lines[1])),
        "{said}"
    );

    let excluded = [
        "--diff=HEAD~1",
        gate,
        "--exclude=*.hpp",
        "--exclude=src/other.hip",
    ];
    let output = repository.report(&excluded);
    assert_eq!(
        (stderr(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
    // The file with the changed lines is left out.
    let output = repository.report(&["--diff=HEAD~2..HEAD~1", gate, "--exclude=kernel.hip"]);
    assert!(!stdout(&output).contains("66.67% (2/3)"), "{output:?}");
}

#[test]
fn nothing_changed_is_said_and_reaches_every_gate() {
    let repository = ran();
    let gate = "--fail-under-changed-lines=100";
    let is_empty = |repository: &Repository| {
        let output = repository.report(&["--diff=HEAD", gate]);
        assert_eq!(
            (stderr(&output).as_str(), output.status.code()),
            ("", Some(0))
        );
        let said = stdout(&output);
        let end = "Changed lines: HEAD\n\nThe diff adds and modifies no lines.\n";
        assert!(said.ends_with(end), "{said}");
    };
    is_empty(&repository);
    // Nothing is left of it that could run.
    repository.write("gone.hip", AFTER);
    repository.commit();
    fs::remove_file(repository.root.join("gone.hip")).unwrap();
    is_empty(&repository);
}

#[test]
fn a_source_that_is_not_what_was_compiled_is_stale() {
    let repository = ran();
    let path = repository.root.join(SOURCE);
    fs::write(&path, AFTER.replace("#ifdef", "// Since then.\n#ifdef")).unwrap();
    let output = repository.report(&["--diff=HEAD~1", "--fail-under-changed-lines=0"]);
    let said = stderr(&output);
    let line = format!("rocov: {SOURCE}: stale: it has changed since it was compiled (no code");
    assert!(said.starts_with(&line), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    // Cut off before the end of what was compiled.
    fs::write(&path, "").unwrap();
    let output = repository.report(&["--diff=HEAD~1..HEAD"]);
    assert_eq!(
        stderr(&output),
        "",
        "the change itself is what was compiled"
    );
    let added: String = AFTER
        .lines()
        .take(9)
        .map(|line| line.to_owned() + "\n")
        .collect();
    fs::write(&path, added).unwrap();
    let output = repository.report(&["--diff=HEAD~1"]);
    assert!(stderr(&output).starts_with(&line), "{output:?}");
}

#[test]
fn what_was_never_compiled_is_not_counted() {
    let repository = Repository::new("elsewhere");
    repository.write(SOURCE, BEFORE);
    repository.commit();
    let built = repository.place.path().join("build").join(SOURCE);
    fs::create_dir_all(built.parent().unwrap()).unwrap();
    fs::write(&built, AFTER).unwrap();
    repository.ran_on_both(&built);
    let line = format!("rocov: {SOURCE}: stale: it has changed since it was compiled (no code");
    let is_stale = || {
        let output = repository.report(&["--diff=HEAD", "--fail-under-changed-lines=0"]);
        assert!(stderr(&output).starts_with(&line), "{output:?}");
        assert_eq!(output.status.code(), Some(3));
        let said = stdout(&output);
        let (_, section) = said.split_once("\nChanged lines: ").unwrap();
        assert!(!section.contains('%'), "{section}");
    };
    // The compiled source is there, then it is gone. The tree has another line at the end of the function.
    let comment = " comment\n";
    for is_gone in [false, true] {
        repository.write(
            SOURCE,
            &AFTER.replace(comment, " comment\n  value[2] = 3;\n"),
        );
        is_stale();
        repository.write(SOURCE, AFTER);
        let said = stderr(&repository.report(&["--diff=HEAD"]));
        assert_eq!(said, "");
        if !is_gone {
            fs::remove_file(&built).unwrap();
        }
    }
    // Lines were only taken out.
    repository.commit();
    repository.write(SOURCE, &AFTER.replace("    *value = 1;\n", ""));
    is_stale();
}

#[test]
fn what_is_no_change_is_refused_with_what_to_do() {
    let repository = ran();
    let refused = |command: &mut Command, expected: &[&str]| {
        let message = failure(&command.output().unwrap(), 1);
        for part in expected {
            assert!(message.contains(part), "{message}");
        }
    };
    let command = |base: &str| repository.command(&[&format!("--diff={base}")]);
    refused(
        &mut command("nosuch"),
        &["nosuch", "bad revision", "HEAD~1"],
    );
    let mut outside = command("main");
    // The temporary directory is in no repository.
    outside.current_dir(repository.place.path());
    refused(
        &mut outside,
        &[
            "no diff against main",
            "not a git repository",
            "--repository",
        ],
    );
    refused(&mut command("--output=x"), &["--output=x", "bad revision"]);

    let path = repository.place.path().join("a.diff");
    let of_file = format!("--diff={}", path.display());
    let diff = repository.git(&["diff", "HEAD~1"]);
    let cut: String = diff
        .lines()
        .take(12)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let hidden = diff.replace("\n@@", "\njunk\n@@");
    let combined = "diff --cc a.hip\n@@@ -1,1 -1,1 +1,1 @@@\n";
    for (text, expected) in [
        (cut.as_str(), "a damaged diff"),
        (&hidden, "a damaged diff"),
        (combined, "a combined diff"),
        ("hello\n", "not a unified diff: it starts with 'hello'"),
        (&diff.repeat(2), "src/kernel.hip is changed twice"),
    ] {
        fs::write(&path, text).unwrap();
        refused(&mut repository.command(&[&of_file]), &[expected, "a.diff"]);
    }
    let mut input = repository
        .command(&["--diff=-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    input.stdin.take().unwrap().write_all(b"hello").unwrap();
    let message = failure(&input.wait_with_output().unwrap(), 1);
    assert!(message.contains("not a unified diff"), "{message}");

    fs::write(repository.root.join("main"), &diff).unwrap();
    refused(
        &mut command("main"),
        &["main is both a revision and a file", "./main"],
    );
    let found = changed(&mut command("./main"));
    assert_eq!(found["lines"][0]["count"], 3);
    let usage = repository.report(&["--fail-under-changed-lines=1"]);
    assert_eq!(usage.status.code(), Some(2));
}

/// The places of the results of SARIF, with their rules.
fn results(sarif: &Value) -> Vec<(String, String, u64, u64)> {
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let result = |result: &Value| {
        let place = &result["locations"][0]["physicalLocation"];
        let region = &place["region"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let number = |name: &str| region[name].as_u64().unwrap();
        let uri = text(&place["artifactLocation"]["uri"]);
        (
            text(&result["ruleId"]),
            uri,
            number("startLine"),
            number("endLine"),
        )
    };
    results.iter().map(result).collect()
}

#[test]
fn code_scanning_finds_the_changed_lines_that_did_not_run() {
    let repository = Repository::with_change("src/a b.hip");
    let source = repository.root.join("src/a b.hip");
    repository.ran_on_both(&source);
    // gfx90a now takes the branch that both archs have.
    repository.ran(&source, "gfx90a", |_| false);
    let command = &mut repository.command(&["--diff=HEAD~1", "--sarif", "--table=table.txt"]);
    let output = run(command);
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = fs::read_to_string(repository.root.join("table.txt")).unwrap();
    let (_, missed) = table
        .split_once("Changed lines that did not run:\n")
        .unwrap();
    let expected = "  src/a b.hip: 6-7\n  src/a b.hip, not on gfx942: 12\n";
    assert!(missed.starts_with(expected), "{missed}");
    let place =
        |rule: &str, first, last| (rule.to_owned(), "src/a%20b.hip".to_owned(), first, last);
    let expected = [
        place("changed-line-not-run", 6, 7),
        place("changed-line-not-run-on-arch", 12, 12),
    ];
    assert_eq!(results(&sarif), expected);
    let run = &sarif["runs"][0];
    let root = format!("file://{}/", repository.root.display());
    assert_eq!(run["originalUriBaseIds"]["%SRCROOT%"]["uri"], root);
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(
            run["tool"]["driver"]["rules"][index]["id"],
            result["ruleId"]
        );
        assert!(result["message"]["text"].as_str().unwrap().ends_with('.'));
    }
    let output = repository.report(&["--sarif"]);
    assert_eq!(output.status.code(), Some(2));
}
