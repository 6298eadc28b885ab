//! The files for GitLab and Jenkins: their commands, run as these services run them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::action::Runner;
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};

/// The items of a list in YAML, below a line that only has `key`.
fn items<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| line.trim() != key).skip(1);
    let items = lines.map_while(|line| line.trim().strip_prefix("- "));
    items.collect()
}

/// The value of a key in YAML, without quotes and comments.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let mut lines = text.lines().map(str::trim);
    let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    let found = found.unwrap_or_else(|| panic!("no {key}"));
    let found = found.split(" #").next().unwrap_or_default();
    found.trim_matches(['"', '\''])
}

/// A shell in `directory`, with the command of this build on its `PATH`.
fn shell(directory: &Path, script: &str) -> Command {
    let rocov = built("rocov");
    let place = rocov.parent().expect("a file is in a directory").display();
    let mut shell = limited("bash");
    shell.args(["-e", "-o", "pipefail", "-c", script]);
    shell.env("PATH", format!("{place}:/usr/local/bin:/usr/bin:/bin"));
    shell.current_dir(directory);
    shell
}

#[test]
fn the_job_of_gitlab_reports_and_gives_the_figure_of_the_badge() {
    let text = fs::read_to_string(repository("tools/gitlab/rocov.yml")).expect("a file");
    let runner = Runner::new();
    let workspace = runner.path("work");
    let base = runner.git(&["rev-parse", "HEAD~1"]);
    let script = items(&text, "script:").join("\n");
    let mut job = shell(&workspace, &script);
    job.env("COVERAGE_COMMAND", "./scale 256");
    job.env("COVERAGE_RUN_ARGUMENTS", "--gpu model");
    job.env("COVERAGE_REPORT_ARGUMENTS", "--fail-under-changed-lines 80");
    job.env("CI_MERGE_REQUEST_DIFF_BASE_SHA", base);
    let ended = run(&mut job);
    assert_eq!(ended.status.code(), Some(3), "{ended}");
    assert!(
        ended.stderr.contains("50.00% of changed lines ran"),
        "{ended}"
    );

    // GitLab takes the last match in the log.
    let pattern = value(&text, "coverage");
    let pattern = pattern.trim_matches('/');
    let search = "import re, sys; print(re.findall(sys.argv[1], sys.argv[2], re.M)[-1])";
    let mut python = limited("python3");
    python.args(["-c", search, pattern, &ended.stdout]);
    assert_eq!(run(&mut python).success().stdout.trim(), "57.14");

    let after = items(&text, "after_script:").join("\n");
    run(&mut shell(&workspace, &after)).success();
    assert!(workspace.join(value(&text, "path")).is_file());
    assert!(workspace.join("rocov-report/html/index.html").is_file());
}

#[test]
fn the_commands_of_the_jenkinsfile_work() {
    let text = fs::read_to_string(repository("examples/Jenkinsfile")).expect("a file");
    let commands = text.lines().filter_map(|line| {
        let command = line.trim().strip_prefix("sh '")?.strip_suffix('\'')?;
        (!command.starts_with("cmake")).then_some(command)
    });
    let commands: Vec<_> = commands.collect();
    let (gate, commands) = commands.split_last().expect("commands");
    let runner = Runner::new();
    let workspace = runner.path("work");
    for command in commands {
        // In place of the tests.
        let tests = "rocov run --per-test -- ctest --test-dir build";
        let command = command.replace(tests, "rocov run --gpu model -- ./scale 256");
        run(&mut shell(&workspace, &command)).success();
    }
    let ended = run(&mut shell(&workspace, gate)).with_status(3);
    ended.says(&["57.14% of lines ran"]);
    for file in ["coverage.xml", "coverage/index.html"] {
        assert!(workspace.join(file).is_file(), "{file}");
    }
}
