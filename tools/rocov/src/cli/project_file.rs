//! `rocov.toml`: the options that a project always uses.
//!
//! The file has a table for each subcommand, with its long options: `[report]` and then `exclude =
//! ["third_party/**"]`. The command line takes precedence over the file.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use rocov::store::read_input;
use rocov::support::diagnostic::{diagnostic, fail};
use toml::{Table, Value};

use super::Cli;
use crate::support::failure::failure;

/// The name of the file.
const NAME: &str = "rocov.toml";
/// The table of the components of a report.
const COMPONENTS: &str = "components";
/// The subcommand that has components.
const REPORT: &str = "report";
/// The subcommand that stores the figures of a report.
const BASELINE: &str = "baseline";
/// The key of the sources of a component.
const SOURCES_KEY: &str = "sources";
/// The option for them.
const SOURCES: &str = "component-sources";
/// The options of a report that other subcommands follow, too.
const EXCLUSIONS: [&str; 3] = ["exclude-line", "exclude-function", "no-default-exclusions"];
/// The limit in bytes for the file.
const MAX: u64 = 1 << 20;

/// The arguments of this process, with the options of the project's file after the subcommand.
///
/// # Errors
/// Fails if the file cannot be read, is not TOML, or has a table, an option or a value that does not exist.
pub(crate) fn arguments() -> Result<Vec<OsString>> {
    let arguments: Vec<_> = env::args_os().collect();
    let is_word = |argument: &OsString| !argument.to_string_lossy().starts_with('-');
    let Some(word) = arguments.iter().skip(1).position(is_word) else {
        return Ok(arguments);
    };
    // A directory that is gone has no file.
    let Some(file) = env::current_dir().ok().and_then(|here| find(&here)) else {
        return Ok(arguments);
    };
    let read = read_input(&file, MAX);
    let text = read.and_then(|text| String::from_utf8(text).map_err(io::Error::other));
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    combine(&text, arguments, word + 1).with_context(|| format!("in {}", file.display()))
}

/// The place of the file: in this directory, or in one above it up to the root of the git repository.
fn find(here: &Path) -> Option<PathBuf> {
    let root = here
        .ancestors()
        .find(|ancestor| ancestor.join(".git").exists());
    let root = root.unwrap_or(here);
    let inside = here
        .ancestors()
        .take_while(|ancestor| ancestor.starts_with(root));
    inside
        .map(|ancestor| ancestor.join(NAME))
        .find(|file| file.is_file())
}

/// The command line with the options that `subcommand` has in the file. An option of the file gives way to the
/// command line if that has it, has one that it conflicts with, or lacks one that it needs.
fn combine(text: &str, given: Vec<OsString>, place: usize) -> Result<Vec<OsString>> {
    let tables: Table = text.parse().map_err(|error| not_toml(text, &error))?;
    let rocov = Cli::command();
    let names: Vec<_> = rocov.get_subcommands().map(Command::get_name).collect();
    let is_known = |name: &str| names.contains(&name) || name == COMPONENTS;
    let mut others = tables.iter().filter(|(name, _)| !is_known(name));
    if let Some((name, value)) = others.next() {
        if !value.is_table() {
            fail!(
                "{name} is not in a table";
                "put it into the table of its subcommand, such as [report]"
            );
        }
        let names = names.join(", ");
        fail!("[{name}] is not a subcommand"; "use one of {names}");
    }
    let subcommand = given[place].to_string_lossy();
    let parse = |arguments: &[OsString]| {
        let matches = rocov.clone().try_get_matches_from(arguments)?;
        if let super::Command::Report(report) = Cli::from_arg_matches(&matches)?.command {
            report.options.formats.outputs()?;
        }
        Ok::<_, clap::Error>(matches)
    };
    // A command line with a mistake, or with --help, is clap's.
    let Ok(matches) = parse(&given) else {
        return Ok(given);
    };
    let command = rocov.find_subcommand(&*subcommand);
    let command = command.context("a parsed subcommand exists")?;
    let table_of = |name: &str| {
        let table = tables.get(name).map(|table| {
            let table = table.as_table();
            table.with_context(|| diagnostic!("{name} is a value"; "write [{name}] for a table"))
        });
        table.transpose()
    };
    let with = |arguments: &[OsString], words: &[OsString]| {
        let mut arguments = arguments.to_vec();
        arguments.splice(place + 1..=place, words.iter().cloned());
        arguments
    };
    let mut all = given.clone();
    let mut waiting = Vec::new();
    for (name, value) in table_of(&subcommand)?.into_iter().flatten() {
        let option = command
            .get_arguments()
            .find(|argument| argument.get_long() == Some(name));
        let option = option.with_context(|| {
            diagnostic!("`rocov {subcommand}` has no option --{name}"; "see `rocov {subcommand} --help`")
        })?;
        let matches = matches.subcommand_matches(&subcommand);
        let source = matches.and_then(|found| found.value_source(option.get_id().as_str()));
        let words = words(option, name, value)?;
        if source != Some(ValueSource::CommandLine) {
            waiting.push((name.clone(), words));
        }
    }
    // A baseline has the figures of the report. The exclusions of a report hold everywhere.
    if subcommand != REPORT {
        let own = table_of(&subcommand)?;
        let is_shared = |name: &str| match &*subcommand {
            BASELINE => name != "output",
            _ => EXCLUSIONS.contains(&name),
        };
        for (name, value) in table_of(REPORT)?.into_iter().flatten() {
            let mut options = command.get_arguments();
            let option = options.find(|option| option.get_long() == Some(name) && is_shared(name));
            let is_own = own.is_some_and(|own| own.contains_key(name));
            if let Some(option) = option.filter(|_| !is_own) {
                let matches = matches.subcommand_matches(&subcommand);
                let source = matches.and_then(|found| found.value_source(option.get_id().as_str()));
                if source != Some(ValueSource::CommandLine) {
                    waiting.push((name.clone(), words(option, name, value)?));
                }
            }
        }
    }
    if subcommand == REPORT || subcommand == BASELINE {
        let report = rocov.find_subcommand(REPORT);
        let report = report.context("a report is a subcommand")?;
        // Words that are added later come before others.
        for (component, value) in table_of(COMPONENTS)?.into_iter().flatten().rev() {
            let options = value.as_table().with_context(|| {
                diagnostic!(
                    "{component} is a value";
                    "write [{COMPONENTS}.{component}] for a table"
                )
            })?;
            for (name, value) in options {
                let words = component_words(report, component, name, value)?;
                // Gates are of a report only.
                if subcommand == BASELINE && name != SOURCES_KEY {
                    continue;
                }
                waiting.push((format!("{COMPONENTS}.{component}.{name}"), words));
            }
        }
    }
    // One option may need another that comes later.
    while let Some(fitting) = waiting
        .iter()
        .position(|(_, words)| parse(&with(&all, words)).is_ok())
    {
        let (_, words) = waiting.remove(fitting);
        all = with(&all, &words);
    }
    for (name, words) in waiting {
        match parse(&with(&given, &words)).map_err(|error| (error.kind(), error)) {
            Ok(_) => fail!("{name} conflicts with another option in [{subcommand}]"; "remove one"),
            Err((ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument, _)) => {}
            Err((_, error)) => fail!("{}", first_line(&error); "see `rocov {subcommand} --help`"),
        }
    }
    Ok(all)
}

/// A key in the table of a component as words of the command line of a report: its sources, or a gate.
fn component_words(
    report: &Command,
    component: &str,
    key: &str,
    value: &Value,
) -> Result<Vec<OsString>> {
    let long = if key == SOURCES_KEY { SOURCES } else { key };
    let mut options = report.get_arguments();
    let option = options.find(|option| option.get_long() == Some(long) && is_of_part(option));
    let option = option.with_context(|| {
        diagnostic!(
            "[{COMPONENTS}.{component}] has no {key}";
            "write sources, or a gate such as fail-under-lines"
        )
    })?;
    words(option, long, &component_values(component, value))
}

/// Returns whether the values of an option name the part of the sources that they are of.
fn is_of_part(option: &Arg) -> bool {
    let mut names = option.get_value_names().unwrap_or_default().iter();
    names.any(|name| name.starts_with("[WHAT=]") || name.starts_with("NAME="))
}

/// The values of an option in the table of a component, each after its name.
fn component_values(component: &str, value: &Value) -> Value {
    let one = |value: &Value| match value {
        Value::String(text) => Value::String(format!("{component}={text}")),
        Value::Integer(number) => Value::String(format!("{component}={number}")),
        Value::Float(number) => Value::String(format!("{component}={number}")),
        other => other.clone(),
    };
    match value {
        Value::Array(values) => Value::Array(values.iter().map(one).collect()),
        value => one(value),
    }
}

/// The error of a text that is not TOML, in one line.
fn not_toml(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    failure!("line {line} is not valid TOML: {}", error.message(); "fix it")
}

/// The first line of clap's message.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// The option as words of a command line.
fn words(option: &Arg, name: &str, value: &Value) -> Result<Vec<OsString>> {
    let word = |value: &Value| match value {
        Value::String(text) => Ok(format!("--{name}={text}").into()),
        Value::Integer(number) => Ok(format!("--{name}={number}").into()),
        Value::Float(number) => Ok(format!("--{name}={number}").into()),
        other => Err(failure!("{name} = {other}"; "write text or a number")),
    };
    match (value, option.get_action().takes_values()) {
        (Value::Boolean(true), false) => Ok(vec![format!("--{name}").into()]),
        (Value::Boolean(false), false) => Ok(Vec::new()),
        (other, false) => fail!("{name} = {other}"; "write true or false"),
        (Value::Boolean(is_given), true) if has_optional_value(option) => {
            // An empty value is none, and what follows is not the option's.
            let sign = if option.is_require_equals_set() {
                ""
            } else {
                "="
            };
            Ok(Vec::from_iter(
                is_given.then(|| format!("--{name}{sign}").into()),
            ))
        }
        (Value::Array(values), true) => values.iter().map(word).collect(),
        (value, true) => Ok(vec![word(value)?]),
    }
}

/// Returns whether the option may have one value or none.
fn has_optional_value(option: &Arg) -> bool {
    let values = option.get_num_args();
    values.is_some_and(|values| values.min_values() == 0 && values.max_values() == 1)
}
