//! `rocov.toml`: a project's options, and the command line's precedence over them.

use std::fs;
use std::process::{Command, Output};

use rocov_tests::cli::{failure, rocov, stderr, stdout};

/// A directory with the data of a program, a git repository's root, and a directory in it.
struct Project(tempfile::TempDir);

impl Project {
    fn new(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("project/.git")).unwrap();
        fs::create_dir_all(directory.path().join("project/below")).unwrap();
        let project = Self(directory);
        project.write("project", options);
        project
    }

    fn write(&self, directory: &str, options: &str) {
        let file = self.0.path().join(directory).join("rocov.toml");
        fs::write(file, options).unwrap();
    }

    /// `rocov ARGUMENTS` in one of the directories.
    fn rocov(&self, directory: &str, arguments: &[&str]) -> Output {
        let mut command = rocov();
        command.current_dir(self.0.path().join(directory));
        command.args(arguments).output().unwrap()
    }

    /// The message of a failure in the project's root, without the place of the file.
    fn failure(&self, arguments: &[&str]) -> String {
        let message = failure(&self.rocov("project", arguments), 2);
        let (_, message) = message
            .split_once("project/rocov.toml: ")
            .expect("the file");
        message.trim_end().to_owned()
    }
}

/// The output of `rocov flags OPTIONS` in a directory, for counters that every clang has.
fn flags(project: &Project, directory: &str, options: &[&str]) -> String {
    let output = project.rocov(
        directory,
        &[&["flags", "--counters=llvm"], options].concat(),
    );
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

#[test]
fn options_hold_in_the_whole_repository_and_give_way_to_the_command_line() {
    let project = Project::new("[flags]\nclang = 'clang++-22'\nhost = true\n");
    let expected = |options: &[&str]| flags(&project, ".", options);
    let both = expected(&["--clang=clang++-22", "--host"]);
    assert_ne!(both, expected(&["--clang=clang++-22"]));
    for directory in ["project", "project/below"] {
        assert_eq!(flags(&project, directory, &[]), both);
    }
    let other = expected(&["--clang=clang++-15", "--host"]);
    assert_eq!(
        flags(&project, "project", &["--clang", "clang++-15"]),
        other
    );
    project.write(
        "project/below",
        "[flags]\nclang = 'clang++-22'\nhost = false\n",
    );
    let below = flags(&project, "project/below", &[]);
    assert_eq!(below, expected(&["--clang=clang++-22"]));
    // Another subcommand has none.
    let output = project.rocov("project", &["run", "--", "true"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn an_option_that_conflicts_with_the_command_line_is_not_taken() {
    let project = Project::new("[report]\nlcov = true\nopen = true\nexclude = ['a/*', 'b/*']\n");
    for options in [&[][..], &["--html=pages"], &["--show"], &["--include=c"]] {
        let output = project.rocov("project", &[&["report", "none"], options].concat());
        // There is nothing to report.
        let message = failure(&output, 1);
        assert!(message.contains("none does not exist"), "{message}");
    }
    let output = project.rocov("project", &["report", "--jsn"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--jsn"));
}

#[test]
fn formats_have_files_or_none() {
    let project = Project::new("[report]\nlcov = true\njson = 'c.json'\ncobertura = false\n");
    for options in [&["none"][..], &["--table", "none"], &["none", "-oc.info"]] {
        let output = project.rocov("project", &[&["report"], options].concat());
        // There is nothing to report: the directory is not taken for a file.
        let message = failure(&output, 1);
        let is_table = options.contains(&"--table");
        let missing = if is_table {
            "rocov-data does not exist"
        } else {
            "none does not exist"
        };
        assert!(message.contains(missing), "{message}");
    }
}

#[test]
fn mistakes_in_the_file_are_named() {
    let subcommand = ["report"];
    for (text, expected) in [
        (
            "[reprot]\n",
            "[reprot] is not a subcommand; use one of run, dump,",
        ),
        (
            "lcov = true\n[report]\n",
            "lcov is not in a table; put it into the table of its subcommand, such as [report]",
        ),
        (
            "report = 1\n",
            "report is a value; write [report] for a table",
        ),
        (
            "[report]\nlcvo = true\n",
            "`rocov report` has no option --lcvo",
        ),
        (
            "[report]\nper-test = 'x'\n",
            "per-test = \"x\"; write true or false",
        ),
        (
            "[report]\nexclude = [true]\n",
            "exclude = true; write text or a number",
        ),
        (
            "[report]\nfail-under-lines = 'all'\n",
            "invalid value 'all' for '--fail-under-lines",
        ),
        (
            "[report]\nlcov = true\njson = true\n",
            "lcov conflicts with another option in [report]; remove one",
        ),
        ("[report]\nlcov\n", "line 2 is not valid TOML: "),
    ] {
        let message = Project::new(text).failure(&subcommand);
        assert!(message.starts_with(expected), "{text}: {message}");
    }
}

#[test]
fn a_directory_that_is_gone_has_no_file() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["--version"][..], &["completions", "bash"]] {
        let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
        let mut shell = Command::new("sh");
        shell.current_dir(directory.path()).args(["-c", script]);
        let output = shell
            .arg(rocov().get_program())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}
