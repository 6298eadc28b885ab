//! `rocov`: runs a HIP program with its device counters drained, and reports which lines of its
//! kernels ran.
//!
//! A folder is a station. The stations stand in order, and a file imports its own station and earlier
//! ones only:
//!
//! 1. [`support`]: files, paths, names, threads
//! 2. [`term`]: standard output and standard error
//! 3. [`system`]: other programs, git, ctest, running processes, rocov's own files
//! 4. [`llvm`]: LLVM's tools and compilers
//! 5. [`data`]: the data directory
//! 6. [`checks`]: this machine and programs, checked for coverage
//! 7. [`profdata`]: raw profiles, merged into indexed ones
//! 8. [`coverage`]: the model of what ran
//! 9. [`dataset`]: the counts of many runs in tables of Parquet files
//! 10. [`render`]: the formats of reports
//! 11. [`cli`]: the command line
//! 12. [`commands`]: one file or folder for each subcommand
//!
//! Every failure is one line on standard error that says what to do next. The statuses are in
//! [`term::exit_status`].

mod checks;
mod cli;
mod commands;
mod coverage;
mod data;
mod dataset;
mod llvm;
mod profdata;
mod render;
mod support;
mod system;
mod term;

use std::process::ExitCode;

use cli::{Command, project_file, tips};
use system::ctest::become_ctest;
use term::exit_status::{RUN_FAILED, USAGE};
use term::print;
use term::remedy::explained;

fn main() -> ExitCode {
    if let Err(error) = become_ctest() {
        print::message(explained(&error));
        return ExitCode::from(RUN_FAILED);
    }
    let arguments = match project_file::arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            print::message(explained(&error));
            return ExitCode::from(USAGE);
        }
    };
    let outcome = match tips::parse(arguments).command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Dump(arguments) => commands::dump::dump(&arguments),
        Command::Status(arguments) => commands::status::status(&arguments),
        Command::Report(arguments) => commands::report::report(*arguments),
        Command::Which(arguments) => commands::which::which(&arguments),
        Command::Query(arguments) => commands::query::query(&arguments),
        Command::Diff(arguments) => commands::diff::diff(&arguments),
        Command::Baseline(arguments) => commands::baseline::baseline(&arguments),
        Command::Comment(arguments) => commands::comment::comment(&arguments),
        Command::Merge(arguments) => commands::merge::merge(&arguments),
        Command::Clean(arguments) => commands::clean::clean(&arguments),
        Command::Extract(arguments) => commands::extract::extract(&arguments),
        Command::Kernels(arguments) => commands::kernels::kernels(&arguments),
        Command::Export(arguments) => commands::export::export(&arguments),
        Command::Show(arguments) => commands::show::show(&arguments),
        Command::Flags(arguments) => commands::flags::flags(&arguments),
        Command::Pass(arguments) => commands::pass::pass(&arguments),
        Command::Doctor(arguments) => commands::doctor::doctor(&arguments),
        Command::Selftest(arguments) => commands::selftest::selftest(&arguments),
        Command::Completions(arguments) => commands::packaging::completions(&arguments),
        Command::Man(arguments) => commands::packaging::man(&arguments),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print::message(explained(&failure.error));
            ExitCode::from(failure.status)
        }
    }
}
