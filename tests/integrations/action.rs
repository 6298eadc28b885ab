//! The GitHub Action on a sample repository, its scripts run as the service runs them: by the commands, inputs and
//! defaults of action.yml, with the service's variables and files. Summary, annotations and outputs are compared with
//! files in testdata/action/. `cargo xtask bless action` writes these.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rocov_tests::records;
use serde_json::json;
use tempfile::TempDir;

use crate::cmake::Prefix;
use crate::support::artifacts::{built, names, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::comments::{GITHUB, Service};

/// action.yml, as far as the tests need it.
struct Action {
    /// The defaults of the inputs.
    inputs: BTreeMap<String, String>,
    steps: Vec<Step>,
}

/// A step with a command.
struct Step {
    command: String,
    /// Variables, and the inputs that are their values.
    variables: Vec<(String, String)>,
}

impl Action {
    fn read() -> Self {
        let text = fs::read_to_string(repository("tools/action/action.yml")).expect("a file");
        let (head, steps) = text.split_once("\n  steps:\n").expect("steps");
        let inputs = head
            .split_once("\ninputs:\n")
            .expect("inputs")
            .1
            .split_once("\noutputs:\n")
            .expect("outputs")
            .0;
        let mut defaults = BTreeMap::new();
        let mut input = "";
        for line in inputs.lines() {
            if let Some(name) = line
                .strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
            {
                input = name.trim_end_matches(':');
                defaults.insert(input.to_owned(), String::new());
            } else if let Some(value) = line.trim().strip_prefix("default: ") {
                let value = value.trim_matches('"').to_owned();
                defaults.insert(input.to_owned(), value);
            }
        }
        let steps = steps.split("    - name: ").skip(1);
        Self {
            inputs: defaults,
            steps: steps.filter_map(Step::parse).collect(),
        }
    }
}

impl Step {
    /// Reads a step. `None` if it is another action.
    fn parse(text: &str) -> Option<Self> {
        let lines = || text.lines().map(str::trim);
        let command = lines().find_map(|line| line.strip_prefix("run: "))?;
        assert!(lines().any(|line| line == "shell: sh"), "{text}");
        let variable = |line: &str| {
            let (name, value) = line.split_once(": ${{ inputs.")?;
            let input = value.strip_suffix(" }}").expect("an input only");
            Some((name.to_owned(), input.to_owned()))
        };
        Some(Self {
            command: command.trim_matches('\'').to_owned(),
            variables: lines().filter_map(variable).collect(),
        })
    }
}

/// A runner with a checked-out repository of one program.
pub(crate) struct Runner {
    directory: TempDir,
    /// The address of the service, if the test has a stand-in for it.
    service: Option<String>,
}

/// The results of a job.
struct Job {
    /// The last step that was run.
    ended: Ended,
    summary: String,
    outputs: String,
}

impl Job {
    /// The workflow commands of the last step, as the service finds them: in lines that begin so, but for those between
    /// `::stop-commands::TOKEN` and `::TOKEN::`. The older form may be anywhere in a line.
    fn commands(&self) -> String {
        let mut commands = String::new();
        let mut stopped: Option<String> = None;
        for line in self.ended.stdout.lines().map(str::trim_start) {
            if let Some(end) = &stopped {
                if line == end {
                    stopped = None;
                }
            } else if let Some(token) = line.strip_prefix("::stop-commands::") {
                assert!(token.len() > 16, "{line}");
                stopped = Some(format!("::{token}::"));
            } else if line.starts_with("::") || line.contains("##[") {
                commands += &format!("{line}\n");
            }
        }
        assert_eq!(stopped, None, "{}", self.ended);
        commands
    }
}

impl Runner {
    /// Two commits: the program, and a change to its kernel. The program is compiled for coverage.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let runner = Self {
            directory,
            service: None,
        };
        let workspace = runner.path("work");
        fs::create_dir(&workspace).expect("a new directory");
        runner.git(&["init", "--quiet", "--initial-branch=main"]);
        let program = fs::read(repository("examples/cmake/scale.hip")).expect("a source");
        fs::write(workspace.join("scale.hip"), program).expect("a file can be written");
        runner.commit("The program");
        let change = repository("testdata/action/change.diff");
        runner.git(&["apply", &change.to_string_lossy()]);
        runner.commit("A change");

        let mut flags = limited(built("rocov"));
        let flags = run(flags.args(["flags", "--clang", "clang++-22"])).success();
        let mut clang = limited("clang++-22");
        clang.current_dir(&workspace);
        clang.args(flags.stdout.split_whitespace());
        let config = repository("testdata/sample/debian12.cfg");
        clang.arg(format!("--config={}", config.display()));
        run(clang.args(["-O1", "scale.hip", "-o", "scale"])).success();
        runner
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut git = limited("git");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "A");
            git.env(format!("GIT_{who}_EMAIL"), "a@example.org");
            git.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        let git = git.arg("-C").arg(self.path("work")).args(arguments);
        run(git).success().stdout.trim().to_owned()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    /// A release, whose command is this build's.
    fn release(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let name = format!("rocov-{version}-x86_64-linux");
        let releases = self.path(&format!("o/rocov/releases/download/v{version}"));
        let command = self.path(&name).join("bin/rocov");
        fs::create_dir_all(&releases).expect("a new directory");
        fs::create_dir_all(self.path(&name).join("bin")).expect("a new directory");
        let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", built("rocov").display());
        fs::write(&command, script).expect("a file can be written");
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let mut tar = limited("tar");
        tar.arg("-C").arg(self.directory.path()).arg("-czf");
        run(tar.arg(releases.join(format!("{name}.tar.gz"))).arg(&name)).success();
        let mut sums = limited("sh");
        sums.current_dir(&releases);
        run(sums.args(["-c", "sha256sum rocov-* > SHA256SUMS"])).success();
    }

    /// Makes the repository one with CMake and ctest, on a machine whose GPU is modelled.
    pub(crate) fn add_project(&self) {
        let lists = fs::read(repository("examples/cmake/CMakeLists.txt")).expect("a file");
        fs::write(self.path("work/CMakeLists.txt"), lists).expect("a file can be written");
        let options = "[run]\ngpu = \"model\"\n";
        fs::write(self.path("work/rocov.toml"), options).expect("a file can be written");
    }

    /// Runs the commands of a workflow's step in the repository, with rocov installed in `prefix`.
    pub(crate) fn step(&self, command: &str, prefix: &Path) -> Ended {
        let mut shell = limited("bash");
        shell
            .current_dir(self.path("work"))
            .args(["-e", "-c", command]);
        let bin = prefix.join("bin");
        shell.env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()),
        );
        let config = repository("testdata/sample/debian12.cfg");
        shell.env("CXX", "clang++-22");
        shell.env("CXXFLAGS", format!("--config={}", config.display()));
        run(&mut shell)
    }

    /// Runs the steps of the action in `workspace`, for an event with this JSON. Stops at a step that fails.
    fn job(&self, workspace: &Path, event: &str, inputs: &[(&str, &str)]) -> Job {
        let action = Action::read();
        let mut given = action.inputs;
        for (input, value) in inputs {
            let known = given.insert((*input).to_owned(), (*value).to_owned());
            assert!(known.is_some(), "action.yml has no input {input}");
        }
        let files = ["event.json", "summary", "outputs", "path"].map(|name| self.path(name));
        let [event_file, summary, outputs, path_file] = &files;
        fs::write(event_file, event).expect("a file can be written");
        for file in &files[1..] {
            fs::write(file, "").expect("a file can be written");
        }
        let mut last = None;
        for step in &action.steps {
            // The service's shell is `sh -e FILE`.
            let script = self.path("script");
            fs::write(&script, &step.command).expect("a file can be written");
            let added = fs::read_to_string(path_file).expect("a file");
            let usual = "/usr/local/bin:/usr/bin:/bin";
            let path = added.lines().rev().chain([usual]).collect::<Vec<_>>();
            let value = |name: &str| given.get(name).expect("an input").clone();
            let mut variables: Vec<(String, String)> = step
                .variables
                .iter()
                .map(|(name, input)| (name.clone(), value(input)))
                .collect();
            let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
            set("PATH", path.join(":"));
            set("TMPDIR", self.path("").display().to_string());
            set("HOME", self.path("").display().to_string());
            set(
                "GITHUB_ACTION_PATH",
                repository("tools/action").display().to_string(),
            );
            set("GITHUB_ACTION_REPOSITORY", "o/rocov".to_owned());
            set(
                "GITHUB_SERVER_URL",
                format!("file://{}", self.path("").display()),
            );
            set("GITHUB_WORKSPACE", workspace.display().to_string());
            set("GITHUB_EVENT_PATH", event_file.display().to_string());
            set("GITHUB_STEP_SUMMARY", summary.display().to_string());
            set("GITHUB_OUTPUT", outputs.display().to_string());
            set("GITHUB_PATH", path_file.display().to_string());
            set("RUNNER_TEMP", self.path("temp").display().to_string());
            set(
                "RUNNER_TOOL_CACHE",
                self.path("tools").display().to_string(),
            );
            if let Some(address) = &self.service {
                set("GITHUB_ACTIONS", "true".to_owned());
                set("GITHUB_API_URL", address.clone());
                set("GITHUB_REPOSITORY", "owner/project".to_owned());
            }
            // Nothing of the tests' own environment.
            let mut shell = limited("env");
            shell.arg("-i").current_dir(workspace);
            shell.args(
                variables
                    .iter()
                    .map(|(name, value)| format!("{name}={value}")),
            );
            let ended = run(shell.args(["sh", "-e"]).arg(&script));
            let is_over = !ended.status.success();
            last = Some(ended);
            if is_over {
                break;
            }
        }
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        Job {
            ended: last.expect("the action has steps"),
            summary: read(summary),
            outputs: read(outputs),
        }
    }
}

#[test]
fn a_pull_request_has_a_summary_annotations_and_a_gate() {
    let runner = Runner::new();
    runner.release();
    let workspace = runner.path("work");
    let base = runner.git(&["rev-parse", "HEAD~1"]);
    let event = format!("{{\"pull_request\": {{\"base\": {{\"sha\": \"{base}\"}}}}}}");
    let inputs = [
        ("run", "./scale 256"),
        ("gpu", "model"),
        ("fail-under-lines", "50"),
        ("fail-under-changed-lines", "80"),
    ];
    let job = runner.job(&workspace, &event, &inputs);
    assert_eq!(job.ended.status.code(), Some(3), "{}", job.ended);
    let commands = job.commands();
    records::compare([
        ("testdata/action/summary.md", job.summary),
        ("testdata/action/annotations.txt", commands),
        ("testdata/action/outputs.txt", job.outputs),
    ]);
    let reports = names(&workspace.join("rocov-report"));
    let expected = [
        "cobertura.xml",
        "html",
        "lcov.info",
        "report.txt",
        "summary.md",
    ];
    assert_eq!(reports, expected);
    assert!(workspace.join("rocov-report/html/index.html").is_file());

    // Gates that hold, and fewer annotations.
    let inputs = [("fail-under-changed-lines", "50"), ("annotations", "1")];
    let job = runner.job(&workspace, &event, &inputs);
    assert_eq!(job.ended.status.code(), Some(0), "{}", job.ended);
    let commands = job.commands();
    assert_eq!(commands.matches("::warning ").count(), 1, "{commands}");
    let rest = "::notice title=rocov::1 more places did not run: see the summary of the run\n";
    assert!(commands.ends_with(rest), "{commands}");
}

/// The comment is on a stand-in for the service, which the action's own commands ask over HTTP.
#[test]
fn a_pull_request_has_one_comment_which_later_runs_replace() {
    let mut runner = Runner::new();
    runner.release();
    let service = Service::new(&GITHUB, 1);
    runner.service = Some(service.address.clone());
    let base = runner.git(&["rev-parse", "HEAD~1"]);
    let event = json!({"pull_request": {"number": 7, "base": {"sha": base}}}).to_string();
    let job = |arguments: &str, token: &str| {
        let inputs = [
            ("run", arguments),
            ("gpu", "model"),
            ("comment", "true"),
            ("token", token),
        ];
        let job = runner.job(&runner.path("work"), &event, &inputs);
        assert_eq!(job.ended.status.code(), Some(0), "{}", job.ended);
        job
    };
    let comment = |job: &Job| format!("<!-- rocov: coverage -->\n{}", job.summary);
    let first = job("./scale 256", "secret");
    let (comments, requests) = service.since();
    assert_eq!(comments, [comment(&first)]);
    assert_eq!(requests, ["GET", "POST"]);
    // More of it runs now.
    let second = job("./scale 100", "secret");
    assert_ne!(first.summary, second.summary);
    let (comments, requests) = service.since();
    assert_eq!(comments, [comment(&second)]);
    assert_eq!(requests, ["GET", "PATCH"]);

    // Neither a token that cannot write nor none is a failure.
    for (token, requests, part) in [
        (
            "wrong",
            &["GET"][..],
            "failed (401): Bad credentials; check the token",
        ),
        (
            "",
            &[],
            "GITHUB_TOKEN is not set: pass it to the step that posts the comment",
        ),
    ] {
        let job = job("./scale 100", token);
        let commands = job.commands();
        let warnings = commands.lines().filter(|line| line.contains(part));
        let warnings: Vec<_> = warnings.collect();
        assert_eq!(warnings.len(), 1, "{commands}");
        assert!(
            warnings[0].starts_with("::warning title=rocov::"),
            "{commands}"
        );
        assert_eq!(service.since(), (vec![comment(&second)], owned(requests)));
    }
    // A push has no pull request.
    let inputs = [("comment", "true"), ("token", "secret")];
    let job = runner.job(&runner.path("work"), "{}", &inputs);
    assert_eq!(job.ended.status.code(), Some(0), "{}", job.ended);
    assert_eq!(service.since().1, [""; 0]);
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn tests_that_fail_are_reported_and_end_the_step_with_their_status() {
    let runner = Runner::new();
    runner.release();
    let inputs = [("run", "sh -c './scale 100; exit 7'"), ("gpu", "model")];
    let job = runner.job(&runner.path("work"), "{}", &inputs);
    assert_eq!(job.ended.status.code(), Some(7), "{}", job.ended);
    let error = "::error title=Tests::`sh -c './scale 100; exit 7'` ended with 7\n";
    assert_eq!(job.commands(), error);
    assert!(job.summary.contains("| gfx90a | 7"), "{}", job.summary);
    assert!(job.outputs.contains("changed-lines=\n"), "{}", job.outputs);

    // Nothing is reported, and the status is that of `rocov report`.
    let inputs = [("data", "empty"), ("run", "true"), ("gpu", "model")];
    let job = runner.job(&runner.path("work"), "{}", &inputs);
    assert_eq!(job.ended.status.code(), Some(1), "{}", job.ended);
    assert!(
        job.commands()
            .contains("::error title=rocov::nothing is reported"),
        "{}",
        job.ended
    );
}

/// The runner's clone has only the last commit, and lies in a folder of the workspace.
#[test]
fn a_push_is_compared_with_the_commit_before_it() {
    let runner = Runner::new();
    runner.release();
    let base = runner.git(&["rev-parse", "HEAD~1"]);
    let workspace = runner.path("shallow");
    let clone = workspace.join("sources");
    let mut git = limited("git");
    git.args(["clone", "--quiet", "--depth=1"]);
    git.arg(format!("file://{}", runner.path("work").display()));
    run(git.arg(&clone)).success();
    let event = format!("{{\"before\": \"{base}\"}}");
    let data = runner.path("work/rocov-data");
    let program = runner.path("work/scale");
    let command = format!("{} 256", program.display());
    let inputs = [
        ("working-directory", "sources"),
        ("run", command.as_str()),
        ("gpu", "model"),
        ("data", &data.to_string_lossy()),
    ];
    let job = runner.job(&workspace, &event, &inputs);
    assert_eq!(job.ended.status.code(), Some(0), "{}", job.ended);
    let recorded = |name: &str| {
        let path = repository("testdata/action").join(name);
        fs::read_to_string(path).expect("a file")
    };
    let within = |text: &str| text.replace("=rocov-report", "=sources/rocov-report");
    assert_eq!(
        job.outputs,
        within(&recorded("outputs.txt")),
        "{}",
        job.ended
    );
    let annotations = recorded("annotations.txt").replace("=scale.hip", "=sources/scale.hip");
    let (annotations, _) = annotations.split_once("::error ").expect("a gate");
    assert_eq!(job.commands(), annotations);
    assert!(clone.join("rocov-report/lcov.info").is_file());

    let first = "{\"before\": \"0000000000000000000000000000000000000000\"}";
    let inputs = [("data", &*data.to_string_lossy())];
    let job = runner.job(&clone, first, &inputs);
    assert_eq!(job.ended.status.code(), Some(0), "{}", job.ended);
    assert!(job.outputs.contains("changed-lines=\n"), "{}", job.outputs);
}

#[test]
fn a_release_is_installed_only_if_it_is_what_its_sums_say() {
    let runner = Runner::new();
    let workspace = runner.path("work");
    let job = runner.job(&workspace, "{}", &[("version", "v9.9.9")]);
    assert_eq!(job.ended.status.code(), Some(1), "{}", job.ended);
    let part = "/v9.9.9/rocov-9.9.9-x86_64-linux.tar.gz: check the input `version`, 9.9.9\n";
    assert!(job.commands().ends_with(part), "{}", job.ended);

    runner.release();
    let version = env!("CARGO_PKG_VERSION");
    let releases = runner.path(&format!("o/rocov/releases/download/v{version}"));
    let archive = releases.join(format!("rocov-{version}-x86_64-linux.tar.gz"));
    let mut bytes = fs::read(&archive).expect("an archive");
    bytes[20] ^= 1;
    fs::write(&archive, bytes).expect("a file can be written");
    let job = runner.job(&workspace, "{}", &[]);
    assert_eq!(job.ended.status.code(), Some(1), "{}", job.ended);
    assert!(
        job.commands().contains("is not what SHA256SUMS says"),
        "{}",
        job.ended
    );
    assert!(!runner.path("tools").exists());
}

/// The steps of the first workflow in a document. Each has its keys, and the inputs of an action as `with KEY`.
fn steps_of(document: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(repository(document)).expect("a document");
    let mut blocks = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|block| block.split("```").next());
    let block = blocks.find(|block| block.contains("uses: OWNER/rocov/tools/action"));
    let mut steps: Vec<BTreeMap<String, String>> = Vec::new();
    let mut is_input = false;
    for line in block.expect("a workflow").lines() {
        let entry = line.trim_start().trim_start_matches("- ");
        if line.starts_with("- ") {
            steps.push(BTreeMap::new());
            is_input = false;
        }
        let step = steps.last_mut().expect("a step comes first");
        let (key, value) = entry.split_once(':').expect("a key and a value");
        let inputs = value
            .trim()
            .strip_prefix('{')
            .and_then(|inputs| inputs.strip_suffix('}'));
        match (key, inputs) {
            ("with", Some(inputs)) => step.extend(inputs.split(',').map(|input| {
                let (key, value) = input.split_once(':').expect("an input");
                (format!("with {}", key.trim()), value.trim().to_owned())
            })),
            ("with", None) => is_input = true,
            (key, _) => {
                let place = if is_input { "with " } else { "" };
                drop(step.insert(format!("{place}{key}"), value.trim().to_owned()));
            }
        }
    }
    steps
}

/// The workflows of the documents as written, on a machine whose GPU is modelled.
#[test]
fn the_workflows_of_the_documents_work_as_written() {
    for document in ["README.md", "docs/src/guides/ci.md"] {
        let runner = Runner::new();
        runner.add_project();
        let prefix = Prefix::new();
        let workspace = runner.path("work");
        let steps = steps_of(document);
        let (action, before) = steps.split_last().expect("steps");
        let commands: Vec<_> = before
            .iter()
            .filter_map(|step| step.get("run"))
            .map(String::as_str)
            .collect();
        // The README leaves the build to the reader.
        let usual = ["cmake -B build && cmake --build build"];
        for command in if commands.is_empty() {
            &usual
        } else {
            &*commands
        } {
            runner.step(command, prefix.path()).success();
        }
        runner.release();
        let inputs = action.iter().filter_map(|(key, value)| {
            let input = key.strip_prefix("with ")?;
            Some((input, value.as_str()))
        });
        let inputs: Vec<_> = inputs.collect();
        assert!(inputs.contains(&("per-test", "true")), "{inputs:?}");
        let base = runner.git(&["rev-parse", "HEAD~1"]);
        let event = format!("{{\"pull_request\": {{\"base\": {{\"sha\": \"{base}\"}}}}}}");
        let job = runner.job(&workspace, &event, &inputs);

        // Two of the 4 lines that 256 numbers leave out run with 100 numbers; both branches of the change do not.
        assert_eq!(
            job.ended.status.code(),
            Some(3),
            "{document}: {}",
            job.ended
        );
        let commands = job.commands();
        assert_eq!(commands.matches("::warning ").count(), 2, "{commands}");
        let place = "::warning file=scale.hip,line=16,endLine=17,title=GPU code did not run::";
        assert!(commands.contains(place), "{commands}");
        assert_eq!(commands.matches("::error ").count(), 1, "{commands}");
        assert!(
            commands.contains("50.00%25 of changed lines ran"),
            "{commands}"
        );
        assert!(
            job.outputs.contains("lines=71.43\nchanged-lines=50.00\n"),
            "{}",
            job.outputs
        );
        assert!(
            job.summary.contains("| gfx90a | 71.43% (10/14) |"),
            "{}",
            job.summary
        );
        for test in ["full_blocks", "part_of_a_block"] {
            let row = format!("| `{test}` | gfx90a | ");
            assert!(job.summary.contains(&row), "{}", job.summary);
        }
        let lcov = workspace.join("rocov-report/lcov.info");
        let lcov = fs::read_to_string(lcov).expect("a file");
        let tests = lcov.lines().filter_map(|line| line.strip_prefix("TN:"));
        assert_eq!(
            tests.collect::<Vec<_>>(),
            ["full_blocks", "part_of_a_block"]
        );
        assert!(workspace.join("rocov-report/html/tests.html").is_file());
        assert!(
            job.ended.stdout.contains("100% tests passed"),
            "{}",
            job.ended
        );

        // Without a change, no gate is left.
        let job = runner.job(&workspace, "{}", &inputs);
        assert_eq!(
            job.ended.status.code(),
            Some(0),
            "{document}: {}",
            job.ended
        );
    }
}

/// The input `run` is a script, as that of a step is.
#[test]
fn the_commands_of_the_action_run_as_in_a_shell() {
    let runner = Runner::new();
    runner.add_project();
    runner.release();
    let workspace = runner.path("work");
    let prefix = Prefix::new();
    runner
        .step("cmake -B build && cmake --build build", prefix.path())
        .success();
    let job = |commands: &str, more: &[(&str, &str)]| {
        let _ = fs::remove_dir_all(workspace.join("rocov-data"));
        let inputs = [&[("run", commands)], more].concat();
        runner.job(&workspace, "{}", &inputs)
    };
    let has = |name: &str| fs::remove_file(workspace.join(name)).is_ok();
    for (commands, status) in [
        ("./scale 256 && touch done", 0),
        ("./scale 256\ntouch done\n", 0),
        (
            "echo '64' | xargs ./scale > numbers\ngrep -q '64 numbers' numbers\n[[ -f numbers ]] && touch done",
            0,
        ),
        (
            "COUNT=100\nfor i in 1 2; do\n  ./scale $COUNT\ndone\ntouch done",
            0,
        ),
        ("./scale 256\nfalse\ntouch done", 1),
        ("./scale 256; (exit 7); touch done", 7),
        ("./scale 256 && nonesuch; touch done", 127),
    ] {
        let job = job(commands, &[]);
        assert_eq!(
            job.ended.status.code(),
            Some(status),
            "{commands}: {}",
            job.ended
        );
        assert_eq!(has("done"), status == 0, "{commands}");
        assert!(
            job.outputs.contains("lines="),
            "{commands}: {}",
            job.outputs
        );
    }
    let said = job("./scale 64\nexit 5 # 100%\n", &[]).commands();
    assert_eq!(
        said,
        "::error title=Tests::`./scale 64%0Aexit 5 # 100%25` ended with 5\n"
    );

    // A script may do more than run ctest.
    for commands in [
        "cd build\nctest --version && ctest -j2\n",
        "cmake --build build && (ctest --test-dir build || exit 9)",
    ] {
        let job = job(commands, &[("per-test", "true")]);
        assert_eq!(
            job.ended.status.code(),
            Some(0),
            "{commands}: {}",
            job.ended
        );
        assert!(
            job.summary.contains("| `part_of_a_block` | gfx90a | "),
            "{}",
            job.summary
        );
    }
    let job = job("./scale 256", &[("per-test", "true")]);
    assert_eq!(job.ended.status.code(), Some(1), "{}", job.ended);
    assert!(
        job.ended
            .stderr
            .contains("the command did not start ctest by name"),
        "{}",
        job.ended
    );
}
