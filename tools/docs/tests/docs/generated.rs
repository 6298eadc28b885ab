//! The chapters that are printed from the help texts, from `rocov.h`, from the table of settings and from the
//! messages.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::settings::{Reader, SETTINGS};
use rocov_tests::records;

use crate::links::documents;
use crate::{read, repository, troubleshooting};

/// The first line of a generated chapter.
const NOTICE: &str = "<!-- Generated: `cargo xtask bless` writes it. -->\n\n";

/// Prints a chapter.
type Chapter = fn() -> String;

/// The chapters, by their paths in `docs/src`.
const CHAPTERS: [(&str, Chapter); 5] = [
    ("reference/cli.md", command_line),
    ("reference/exit-statuses.md", exit_statuses),
    ("reference/environment.md", environment),
    ("reference/c-api.md", c_interface),
    ("troubleshooting.md", troubleshooting::chapter),
];

#[test]
fn generated_chapters_are_up_to_date() {
    records::compare(CHAPTERS.map(|(name, print)| {
        let path = Path::new("docs/src").join(name);
        (path, format!("{NOTICE}{}", print()))
    }));
}

/// Returns the command that the workspace built next to this test.
fn built_command() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("cargo puts tests into PROFILE/deps");
    let command = profile.join("rocov");
    assert!(
        command.exists(),
        "{} does not exist: build it with `cargo build --release --workspace`",
        command.display()
    );
    command
}

/// Returns what `rocov ARGUMENTS` prints, wrapped as for a pipe.
fn rocov(arguments: &[&str]) -> String {
    let mut command = Command::new(built_command());
    let output = command
        .args(arguments)
        .env_remove("COLUMNS")
        .output()
        .expect("rocov can be started");
    assert!(output.status.success(), "rocov {arguments:?}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("help is UTF-8");
    // Clap leaves blanks on empty lines.
    text.lines()
        .fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// Returns the names of the subcommands, in the order of `rocov --help`.
fn subcommands() -> Vec<String> {
    let commands = commands_in(&rocov(&["--help"]));
    assert!(!commands.is_empty(), "there is no list of commands");
    commands
}

/// Returns the names in the list of commands of a help, which need not have one.
fn commands_in(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    let rows = list.lines().take_while(|line| !line.is_empty());
    let names = rows.filter_map(|row| row.strip_prefix("  ")?.split(' ').next());
    let is_command = |name: &&str| !name.is_empty() && *name != "help";
    names.filter(is_command).map(str::to_owned).collect()
}

fn command_line() -> String {
    let mut text = format!(
        "# Command line\n\n\
         This chapter contains the output of `rocov --help` and `rocov COMMAND --help`.\n\n\
         ```text\n{}```\n",
        rocov(&["--help"])
    );
    for name in subcommands() {
        let help = rocov(&[&name, "--help"]);
        let _ = write!(text, "\n## rocov {name}\n\n```text\n{help}```\n");
        for nested in commands_in(&help) {
            let help = rocov(&[&name, &nested, "--help"]);
            let _ = write!(text, "\n### rocov {name} {nested}\n\n```text\n{help}```\n");
        }
    }
    text
}

fn exit_statuses() -> String {
    let mut text = "# Exit statuses\n\n\
        This chapter lists the exit statuses from the help text of each command. A command that is not listed \
        here exits with 0 if it succeeds, with 1 if it fails, and with 2 for a usage error.\n\n\
        The drain never changes the exit status of the program. librocov reports each loss in one line on \
        standard error.\n"
        .to_owned();
    for name in subcommands() {
        let help = rocov(&[&name, "--help"]);
        let Some((_, statuses)) = help.split_once("\nExit status: ") else {
            continue;
        };
        let (statuses, rest) = statuses.split_once("\n\n").unwrap_or((statuses, ""));
        let _ = write!(text, "\n## rocov {name}\n\n");
        for status in items(&statuses.replace('\n', " ")) {
            let _ = writeln!(text, "- {status}");
        }
        if !rest.trim().is_empty() {
            let _ = write!(text, "\n{rest}");
        }
    }
    text
}

/// Splits a list of statuses at semicolons, and at commas that a number follows.
fn items(statuses: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut rest = statuses.trim_end_matches([' ', '.']);
    let ends = |rest: &str| {
        let mut ends = rest.match_indices([';', ',']).filter(|(at, mark)| {
            let next = rest[at + 1..].trim_start().chars().next();
            *mark == ";" || next.is_some_and(|next| next.is_ascii_digit())
        });
        ends.next().map(|(at, _)| at)
    };
    while let Some(at) = ends(rest) {
        items.push(rest[..at].trim());
        rest = &rest[at + 1..];
    }
    items.push(rest.trim());
    items
}

fn environment() -> String {
    let mut text = "# Environment variables\n\n\
        This chapter is generated from the table `SETTINGS` of the library. librocov and the modelled GPU treat an \
        empty value as unset. If librocov cannot use a value, it prints one line on standard error and uses the \
        default; the modelled GPU ends the program. In a program with privileges that its user does not have \
        (setuid), librocov ignores all of its variables.\n"
        .to_owned();
    for reader in Reader::ALL {
        let _ = write!(
            text,
            "\n## {}\n\n| variable | what it does |\n|---|---|\n",
            reader.name()
        );
        for setting in SETTINGS.iter().filter(|setting| setting.reader == reader) {
            let set_by = match setting.set_by {
                "" => String::new(),
                who => format!("; set by {who}"),
            };
            let _ = writeln!(
                text,
                "| `{}` | {}<br>Values: {}; default: {}{set_by} |",
                setting.name, setting.meaning, setting.values, setting.default
            );
        }
    }
    text
}

fn c_interface() -> String {
    let header = read(&repository("runtime/include/rocov.h"));
    let (preamble, body) = header
        .split_once("*/")
        .expect("the header begins with a comment");
    let preamble: Vec<_> = preamble
        .trim_start_matches("/*")
        .lines()
        .map(|line| line.trim_start().trim_start_matches('*').trim())
        .take_while(|line| !line.starts_with("Generated"))
        .collect();
    let mut text = format!(
        "# C interface\n\n\
         This chapter is generated from `rocov.h`. [Labels, windows and dumps](../guides/labels.md) shows how to \
         use it.\n\n{}\n",
        preamble.join("\n").trim()
    );
    let mut comment = Vec::new();
    let mut declaration = String::new();
    for line in body.lines() {
        if declaration.is_empty() {
            if let Some(words) = line.strip_prefix("//") {
                comment.push(words.trim());
                continue;
            }
            if line.is_empty() || line.starts_with(['#', '}', '/']) || line.starts_with("extern") {
                comment.clear();
                continue;
            }
        }
        declaration.push_str(line);
        declaration.push('\n');
        let is_enum = declaration.starts_with("typedef enum");
        if line.starts_with('}') || (!is_enum && line.ends_with(';')) {
            text.push_str(&entry(&declaration, &comment));
            declaration.clear();
            comment.clear();
        }
    }
    text
}

/// Prints the section of a function or an enum.
fn entry(declaration: &str, comment: &[&str]) -> String {
    let before_arguments = declaration.split('(').next().unwrap_or_default();
    let name = if declaration.starts_with("typedef") {
        declaration
            .trim_end()
            .rsplit(' ')
            .next()
            .unwrap_or_default()
    } else {
        before_arguments
            .rsplit([' ', '*'])
            .next()
            .unwrap_or_default()
    };
    let comment = comment.join("\n").replace("# Safety\n", "Safety: ");
    format!(
        "\n## {}\n\n```c\n{declaration}```\n\n{comment}\n",
        name.trim_end_matches(';')
    )
}

/// Returns the options that a command line gives to `rocov COMMAND`, for each time that it calls one.
fn calls<'a>(line: &'a str, commands: &[String]) -> Vec<(&'a str, Vec<&'a str>)> {
    let after_name = line.split("rocov ").skip(1);
    let call = |rest: &'a str| {
        // The call ends with its `$(...)`, its code span or its cell of a table.
        let rest = rest.split([')', '`', '|', '#', ';']).next()?;
        let mut words = rest.split(' ');
        let command = words.next()?.trim_end_matches([',', '.']);
        if !commands.iter().any(|known| known == command) {
            return None;
        }
        let options = words
            .take_while(|word| !matches!(*word, "--" | "&&"))
            .filter(|word| word.starts_with("--"));
        let name = |option: &'a str| {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            option
                .split(|letter| !is_name(letter))
                .next()
                .unwrap_or_default()
        };
        Some((command, options.map(name).collect()))
    };
    after_name.filter_map(call).collect()
}

#[test]
fn documents_give_commands_the_options_that_they_have() {
    let commands = subcommands();
    let helps: Vec<_> = commands
        .iter()
        .map(|name| match name.as_str() {
            "pass" => rocov(&[name, "build", "--help"]),
            _ => rocov(&[name, "--help"]),
        })
        .collect();
    let mut checked = 0;
    for path in documents() {
        for line in read(&path).lines() {
            for (command, options) in calls(line, &commands) {
                let at = commands.iter().position(|known| known == command);
                let help = &helps[at.expect("a known command")];
                for option in options {
                    checked += 1;
                    assert!(
                        help.contains(&format!("{option} "))
                            || help.contains(&format!("{option}\n"))
                            || help.contains(&format!("{option}[")),
                        "{}: `rocov {command}` has no {option}: {line}",
                        path.display()
                    );
                }
            }
        }
    }
    assert!(
        checked > 50,
        "only {checked} options were found in the documents"
    );
}

#[test]
fn calls_end_at_the_program() {
    let commands = ["run".to_owned(), "flags".to_owned()];
    let line = "$ a $(rocov flags --clang c++) && rocov run --gpu=model -o d -- ./app --its-own";
    assert_eq!(
        calls(line, &commands),
        [("flags", vec!["--clang"]), ("run", vec!["--gpu"])]
    );
}
