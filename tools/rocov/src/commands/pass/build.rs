//! `rocov pass build`: compiles the plugin for one clang.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rocov::support::diagnostic::{diagnostic, fail};

use super::headers;
use super::sources::{FLAGS, SOURCES};
use crate::cli::PassBuildArguments;
use crate::llvm::fast_counters::{OLDEST, fits, plugin_name};
use crate::llvm::{Clang, DeviceCompiler};
use crate::support::failure::failure;
use crate::support::{atomic, parallel, temporary};
use crate::system::{command, installed};
use crate::term::exit_status::CommandResult;
use crate::term::print;

/// Compiles the plugin, checks that the compiler takes it, and prints its path.
pub(super) fn build(arguments: &PassBuildArguments) -> CommandResult {
    let clang = match &arguments.clang {
        Some(path) => Clang::at(path)?,
        None => Clang::newest()?,
    };
    let path = clang.path.display();
    if clang.llvm < OLDEST {
        return Err(failure!(
            "{path} is LLVM {}, which the plugin does not support", clang.version();
            "use clang {OLDEST} or later"
        )
        .into());
    }
    let compiler = DeviceCompiler::new(&clang, &[])?;
    let headers = headers::find(&clang)?;
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => place_of_user(&clang)?,
    };
    atomic::replace(&output, |unfinished| {
        compile(&clang, &headers, unfinished)?;
        if !fits(&compiler, unfinished)? {
            fail!(
                "{path} does not load the plugin that was built for it from {}", headers.display();
                "check that these headers belong to it"
            );
        }
        Ok(())
    })?;
    print::text(format!("{}\n", output.display()).as_bytes())?;
    Ok(0)
}

/// The file for this clang in the user's directory of plugins, which is made if need be.
fn place_of_user(clang: &Clang) -> Result<PathBuf> {
    let directory = installed::plugins_of_user().with_context(|| {
        diagnostic!(
            "there is no directory for the plugin";
            "set HOME to an absolute path, or use --output"
        )
    })?;
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory.join(plugin_name(clang)))
}

/// Compiles the sources to the file at `output`.
fn compile(clang: &Clang, headers: &Path, output: &Path) -> Result<()> {
    let work = temporary::directory()?;
    let work = work.path();
    for source in SOURCES {
        fs::write(work.join(source.name), source.text).context("cannot write a temporary file")?;
    }
    let units: Vec<_> = (0..).zip(units()).collect();
    let objects = parallel::map(&units, |(number, text)| {
        let unit = work.join(format!("unit{number}.cpp"));
        fs::write(&unit, text).context("cannot write a temporary file")?;
        let object = unit.with_extension("o");
        let mut command = cxx(clang);
        command.args(FLAGS).arg("-w");
        command.arg("-isystem").arg(headers).arg("-c").arg(unit);
        succeed(command.arg("-o").arg(&object), headers)?;
        Ok(object)
    })?;
    let mut link = cxx(clang);
    // clang has LLVM's symbols, so the plugin links nothing.
    link.arg("-shared").args(objects).arg("-o").arg(output);
    succeed(&mut link, headers)
}

/// The units of the build, which include the sources. Most of the time goes into LLVM's headers, so two units read them,
/// as in `tools/pass/CMakeLists.txt`.
fn units() -> Vec<String> {
    let names: Vec<_> = SOURCES
        .iter()
        .map(|source| source.name)
        .filter(|name| name.ends_with(".cpp"))
        .collect();
    names
        .chunks(names.len().div_ceil(2))
        .map(|names| {
            let lines = names.iter().map(|name| format!("#include \"{name}\"\n"));
            lines.collect()
        })
        .collect()
}

/// The start of a command that compiles C++: by `$CXX`, which may have arguments, or by the clang itself.
fn cxx(clang: &Clang) -> Command {
    let words = env::var("CXX").unwrap_or_default();
    let mut words = words.split_whitespace();
    match words.next() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words);
            command
        }
        None => {
            let mut command = Command::new(&clang.path);
            // Its name may be that of the compiler of C.
            command.arg("--driver-mode=g++");
            command
        }
    }
}

/// Runs a step of the build.
fn succeed(command: &mut Command, headers: &Path) -> Result<()> {
    let output = command::ended(command)?;
    if output.status.success() {
        return Ok(());
    }
    let reason = command::reason(&output);
    fail!(
        "{} cannot compile the plugin with {} ({}{}{reason})",
        command.get_program().display(),
        headers.display(),
        output.status,
        if reason.is_empty() { "" } else { ", " };
        "set CXX to a C++17 compiler that can"
    )
}
