//! The files for GitLab and Jenkins: their commands, run as these services run them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::action::Runner;
use crate::cmake::Prefix;
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::unpacked::not_run;

/// The items of a list in YAML, below a line that only has `key`.
fn items<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| line.trim() != key).skip(1);
    let items = lines.map_while(|line| line.trim().strip_prefix("- "));
    items.collect()
}

/// The value of a key in YAML, without quotes and comments.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let mut lines = text.lines().map(str::trim);
    let found = lines
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
        .unwrap_or_else(|| panic!("no {key}"))
        .split(" #")
        .next()
        .unwrap_or_default();
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
    let pattern = value(&text, "coverage").trim_matches('/');
    let search = "import re, sys; print(re.findall(sys.argv[1], sys.argv[2], re.M)[-1])";
    let mut python = limited("python3");
    python.args(["-c", search, pattern, &ended.stdout]);
    assert_eq!(run(&mut python).success().stdout.trim(), "57.14");

    assert!(workspace.join(value(&text, "path")).is_file());
    assert!(workspace.join("rocov-report/html/index.html").is_file());
}

/// The pipeline of the book as written, on a machine whose GPU is modelled.
#[test]
fn the_pipeline_of_the_book_works_as_written() {
    let chapter = fs::read_to_string(repository("docs/src/guides/ci.md")).expect("a chapter");
    let (_, snippet) = chapter
        .split_once("  extends: .rocov\n")
        .expect("a pipeline");
    let (snippet, _) = snippet.split_once("```").expect("the end of the pipeline");
    let job_file = fs::read_to_string(repository("tools/gitlab/rocov.yml")).expect("a file");
    let runner = Runner::new();
    runner.add_project();
    let prefix = Prefix::new();
    runner
        .step("cmake -B build && cmake --build build", prefix.path())
        .success();
    let workspace = runner.path("work");
    let mut job = shell(&workspace, &items(&job_file, "script:").join("\n"));
    for variable in [
        "COVERAGE_COMMAND",
        "COVERAGE_RUN_ARGUMENTS",
        "COVERAGE_REPORT_ARGUMENTS",
    ] {
        let text = if snippet.contains(variable) {
            snippet
        } else {
            &job_file
        };
        job.env(variable, value(text, variable));
    }
    job.env(
        "CI_MERGE_REQUEST_DIFF_BASE_SHA",
        runner.git(&["rev-parse", "HEAD~1"]),
    );
    let ended = run(&mut job);
    assert_eq!(ended.status.code(), Some(3), "{ended}");
    assert!(ended.stdout.contains("100% tests passed"), "{ended}");
    ended.says(&["gate: gfx90a: 50.00% of changed lines ran"]);
    assert!(workspace.join("rocov-report/html/index.html").is_file());
    assert!(workspace.join(value(&job_file, "path")).is_file());
}

/// The job reports what ran, also if the command fails.
#[test]
fn the_command_of_the_job_is_a_script() {
    let text = fs::read_to_string(repository("tools/gitlab/rocov.yml")).expect("a file");
    let runner = Runner::new();
    let workspace = runner.path("work");
    let script = items(&text, "script:").join("\n");
    for (command, status) in [
        ("./scale 256 && touch done", 0),
        ("./scale 256\nfalse\ntouch done", 1),
        ("./scale 256; exit 7", 7),
    ] {
        let _ = fs::remove_file(workspace.join("rocov-report/cobertura.xml"));
        let mut job = shell(&workspace, &script);
        job.env("COVERAGE_COMMAND", command);
        job.env("COVERAGE_RUN_ARGUMENTS", "--gpu model");
        job.env("COVERAGE_REPORT_ARGUMENTS", "");
        let ended = run(&mut job);
        assert_eq!(ended.status.code(), Some(status), "{command}: {ended}");
        let is_done = fs::remove_file(workspace.join("done")).is_ok();
        assert_eq!(is_done, status == 0, "{command}");
        assert!(workspace.join(value(&text, "path")).is_file(), "{command}");
    }
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
        // Instead of the tests.
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

/// The profiles of TheRock's test jobs, and a report elsewhere: without the program, and with the sources in another
/// place.
#[test]
fn shards_of_a_test_node_are_reported_on_another() {
    let runner = Runner::new();
    let workspace = runner.path("work");
    for (shard, count) in [(1, 256), (2, 100)] {
        let pattern = format!("../shards/{shard}/scale-shard{shard}-%p-%m.profraw");
        let script = format!("rocov run --strict --gpu model -- ./scale {count}");
        run(shell(&workspace, &script).env("LLVM_PROFILE_FILE", pattern)).success();
    }
    // `upload-artifact` rejects names with colons.
    let listed = run(&mut shell(&runner.path("shards"), "find . -type f"))
        .success()
        .stdout;
    assert!(listed.contains("shard1-"), "{listed}");
    assert!(!listed.contains(':'), "{listed}");

    let elsewhere = runner.path("elsewhere");
    fs::create_dir(&elsewhere).expect("a new directory");
    for name in ["shards", "work/scale.hip"] {
        let path = Path::new(name).file_name().expect("a name");
        fs::rename(runner.path(name), elsewhere.join(path)).expect("it is ours");
    }
    fs::remove_file(workspace.join("scale")).expect("the program");
    let report = format!(
        "rocov report shards --component scale --ignore-filename-regex '\\.h$' --path-map {}=. --lcov \
         --fail-under-lines 1",
        workspace.display()
    );
    let lcov = run(&mut shell(&elsewhere, &report))
        .success()
        .says(&["matches no source"])
        .stdout;
    // The kernel's first line: 4 blocks of 64, and 2.
    let source = fs::read_to_string(elsewhere.join("scale.hip")).expect("a source");
    let mut lines = (1..).zip(source.lines());
    let found = lines.find(|(_, line)| line.contains("if (i >= count)"));
    let (line, _) = found.expect("the line");
    let record = format!("DA:{line},{}", 256 + 128);
    assert!(
        lcov.lines().any(|line| line == record),
        "no {record}: {lcov}"
    );
}

/// The script instead of TheRock's, with the options of that one: on an installed tree, and the profiles of two shards.
#[test]
fn the_script_for_therock_takes_its_options() {
    let runner = Runner::new();
    let workspace = runner.path("work");
    let here = workspace.display();
    let build = format!(
        "mkdir -p rocm/bin\nclang++-22 $(rocov flags --clang clang++-22 --host) --config={} -O1 scale.hip -o \
         rocm/bin/test_scale",
        repository("testdata/sample/debian12.cfg").display()
    );
    run(&mut shell(&workspace, &build)).success();
    for (shard, count) in [(1, 256), (2, 100)] {
        let pattern = format!("{here}/coverage-report/profraw/scale-shard{shard}-%p-%m.profraw");
        let script = format!("rocov run --strict --gpu model -- rocm/bin/test_scale {count}");
        run(shell(&workspace, &script).env("LLVM_PROFILE_FILE", pattern)).success();
    }
    // Other programs of the directory, which are not the project's.
    fs::copy(
        workspace.join("scale"),
        workspace.join("rocm/bin/test_other"),
    )
    .expect("a copy");
    let script = repository("examples/therock/coverage_report.py");
    let report = |options: &str| {
        let script = format!("python3 {} --rocm-dir rocm {options}", script.display());
        run(&mut shell(&workspace, &script))
    };
    let globs = "--object-globs 'bin/test_*,!bin/test_other*'";
    report(&format!(
        "--profraw-dir coverage-report/profraw {globs} --device-code --llvm-bin-dir /usr/lib/llvm-22/bin \
         --html-output coverage-report/html --path-equivalence /elsewhere,{here}"
    ))
    .success();
    let written = workspace.join("coverage-report");
    let lcov = fs::read_to_string(written.join("coverage.info")).expect("a tracefile");
    let source = fs::read_to_string(workspace.join("scale.hip")).expect("a source");
    // 4 blocks of 64 and 2 enter the kernel, and each shard enters main.
    for (text, count) in [("if (i >= count)", 256 + 128), ("int main(", 2)] {
        let mut lines = (1..).zip(source.lines());
        let (line, _) = lines
            .find(|(_, line)| line.contains(text))
            .expect("the line");
        let record = format!("DA:{line},{count}");
        assert!(
            lcov.lines().any(|found| found == record),
            "no {record}: {lcov}"
        );
    }
    let summary = fs::read_to_string(written.join("coverage_summary.txt")).expect("a table");
    assert!(summary.contains("\nrocm/bin/test_scale "), "{summary}");
    assert!(!summary.contains("test_other"), "{summary}");
    assert!(written.join("html/index.html").is_file());

    // A report that measured nothing fails.
    report("--profraw-dir coverage-report/profraw --object-globs 'lib/*.so'")
        .with_status(1)
        .says(&["no file in rocm matches lib/*.so"]);
    let empty = format!("--profraw-dir rocm {globs}");
    report(&empty).with_status(1).says(&["no profile in rocm"]);
    report(&format!("{empty} --allow-empty")).success();
}

/// A test job that measured nothing must not pass.
#[test]
fn a_run_that_measures_nothing_fails() {
    let runner = Runner::new();
    let workspace = runner.path("work");
    let run_script = |script: &str| run(&mut shell(&workspace, script));
    let ended = run_script("rocov run --strict --gpu model -- true").with_status(3);
    ended.says(&["nothing was drained"]);
    run_script("rocov report")
        .with_status(1)
        .says(&["rocov-data"]);
    run_script("rocov run --gpu model -- ./scale 64").success();
    let ended = run_script("rocov report --component libother.so --fail-under-lines 1");
    ended
        .with_status(1)
        .says(&["no code object was loaded from libother.so"]);
    let ended = run_script("rocov report --exclude '*.hip' --fail-under-lines 1");
    assert_ne!(ended.status.code(), Some(0), "{ended}");
}

#[test]
fn the_project_of_meson_counts() {
    if !run(limited("sh").args(["-c", "command -v meson"]))
        .status
        .success()
    {
        return not_run("the project of Meson: it is not installed");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let project = directory.path();
    let files = [
        ("examples/meson/meson.build", "meson.build"),
        ("examples/cmake/scale.hip", "scale.cpp"),
    ];
    for (from, to) in files {
        fs::copy(repository(from), project.join(to)).expect("it can be copied");
    }
    let config = repository("testdata/sample/debian12.cfg");
    let flags = format!("--config={}", config.display());
    let script = format!(
        "meson setup build -Dcpp_args={flags} -Dcpp_link_args={flags}\n\
         meson compile -C build\n\
         rocov run --gpu model -- meson test -C build\n\
         rocov report --per-test\n"
    );
    let ended = run(shell(project, &script).env("CXX", "clang++-22")).success();
    // As the README's project of CMake: the second test runs all lines.
    let row = |name: &str| {
        let mut rows = ended
            .stdout
            .lines()
            .rev()
            .filter(|line| line.starts_with(name));
        let row = rows.next().unwrap_or_else(|| panic!("no {name}: {ended}"));
        row.split_whitespace().nth(2).map(str::to_owned)
    };
    assert_eq!(row("full_blocks").as_deref(), Some("71.43%"));
    assert_eq!(row("part_of_a_block").as_deref(), Some("100.00%"));
}
