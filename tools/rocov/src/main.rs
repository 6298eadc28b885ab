//! `rocov`: runs a HIP program with its device counters drained, and reports which lines of its
//! kernels ran.
//!
//! Where to start reading: [`cli`] is what a user can type; one file per subcommand does it
//! ([`run`], [`mod@control`], [`report`], [`which`], [`diff`], [`merge`], [`kernels`], [`export`], [`clean`], [`extract`],
//! [`show`], [`flags`], [`doctor`]); the other modules each know one outside thing: [`signals`] the child
//! process, [`libraries`] where rocov's own files lie, [`ctest`] how ctest has its tests, [`data`] data
//! directories, [`objects`] where device ELFs come from, [`llvm_tools`] LLVM's tools, [`git`] repositories.
//!
//! Every failure is one line on standard error that says what to do next; the statuses are in
//! [`status`].

mod child;
mod clean;
mod cli;
mod components;
mod control;
mod coverage;
mod ctest;
mod data;
mod demangle;
mod diff;
mod doctor;
mod export;
mod extract;
mod files;
mod flags;
mod generated;
mod git;
mod gpu;
mod indexed;
mod inputs;
mod journal;
mod kernels;
mod libraries;
mod llvm_tools;
mod local_time;
mod mapped;
mod matching;
mod merge;
mod merged;
mod missing;
mod objects;
mod parallel;
mod per_test;
mod profdata;
mod progress;
mod report;
mod run;
mod show;
mod signals;
mod sources;
mod status;
mod table;
mod which;
mod words;
mod writable;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match cli::Cli::parse().command {
        cli::Command::Run(arguments) => run::run(&arguments),
        cli::Command::Dump(arguments) => control::dump(&arguments),
        cli::Command::Status(arguments) => control::state(&arguments),
        cli::Command::Report(arguments) => report::report(&arguments),
        cli::Command::Which(arguments) => which::which(&arguments),
        cli::Command::Diff(arguments) => diff::diff(&arguments),
        cli::Command::Merge(arguments) => merge::merge(&arguments),
        cli::Command::Clean(arguments) => clean::clean(&arguments),
        cli::Command::Extract(arguments) => extract::extract(&arguments),
        cli::Command::Kernels(arguments) => kernels::kernels(&arguments),
        cli::Command::Export(arguments) => export::export(&arguments),
        cli::Command::Show(arguments) => show::show(&arguments),
        cli::Command::Flags(arguments) => flags::flags(&arguments),
        cli::Command::Doctor(arguments) => doctor::doctor(&arguments),
        cli::Command::Completions(arguments) => generated::completions(&arguments),
        cli::Command::Man(arguments) => generated::man(&arguments),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("rocov: {:#}", failure.error);
            ExitCode::from(failure.status)
        }
    }
}
