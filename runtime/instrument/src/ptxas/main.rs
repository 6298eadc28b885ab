//! The stand-in for ptxas that Triton calls: it puts counters into the PTX, and has the real ptxas assemble that.
//!
//! `rocov run --instrument` names it in `TRITON_PTXAS_PATH`. If the PTX cannot be changed, or not be assembled then, the
//! real ptxas gets it as it is. librocov names such a kernel when it is loaded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use rocov::format::codeobject::CodeObjectError;
use rocov::format::codeobject::cuda::{ELF_HEADER, file_size};
use rocov::format::ptx::{Module, is_instrumented};
use rocov::instrument::ptx::{PtxOptions, PtxRefusal, instrument};
use rocov::settings::Counting;
use rocov::settings::variables::{INSTRUMENT, PTXAS, PTXAS_BLACKWELL};
use rocov::store::{CacheFolder, InstrumentCache, OutputError};
use thiserror::Error;

/// The reason why PTX has no counters, and the next step.
#[derive(Debug, Error)]
enum Loss {
    #[error("cannot read {}: {source}: make it readable", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}: make its directory writable", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error(
        "rocov cannot keep it for the report: {0}: make room there, or name another directory in ROCOV_CACHE"
    )]
    NotKept(OutputError),
    #[error("its cache has no room for it: raise ROCOV_CACHE_MAX")]
    NoRoom,
    #[error("rocov cannot make it count: {0}: report it")]
    NotChanged(#[from] PtxRefusal),
    #[error("rocov cannot read what ptxas has made of it: {0}: report it")]
    Damaged(#[from] CodeObjectError),
    #[error("cannot run {}: {source}: set ROCOV_PTXAS to another", path.display())]
    NotRun { path: PathBuf, source: io::Error },
    #[error("ptxas does not assemble it with counters ({0}): report it")]
    NotAssembled(String),
}

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let own = arguments.next().map(PathBuf::from).unwrap_or_default();
    let arguments: Vec<OsString> = arguments.collect();
    let is_for_blackwell = own
        .file_name()
        .is_some_and(|name| name == "ptxas-blackwell");
    let Some(real) = real(is_for_blackwell) else {
        warn("Triton's ptxas is not found: set ROCOV_PTXAS to its path");
        return ExitCode::FAILURE;
    };
    match counted(&real, &arguments) {
        Ok(Some(output)) => {
            // Triton keeps the messages.
            let _ = io::stdout().write_all(&output.stdout);
            let _ = io::stderr().write_all(&output.stderr);
            return ExitCode::SUCCESS;
        }
        Ok(None) => {}
        Err(loss) => warn(format!("this PTX has no counters: {loss}")),
    }
    let error = Command::new(&real).args(&arguments).exec();
    warn(format!(
        "cannot run {}: {error}: set ROCOV_PTXAS to another",
        real.display()
    ));
    ExitCode::FAILURE
}

/// Prints a line on standard error. If that cannot be written to, the line is lost, and Triton still gets its cubin.
fn warn(line: impl Display) {
    let _ = writeln!(io::stderr(), "rocov: {line}");
}

/// The real assembler: the one that the user has named, or the one of the Triton that has called, or that on the `PATH`.
fn real(is_for_blackwell: bool) -> Option<PathBuf> {
    let (variable, name) = match is_for_blackwell {
        true => (PTXAS_BLACKWELL.name, "ptxas-blackwell"),
        false => (PTXAS.name, "ptxas"),
    };
    let named = env::var_os(variable).filter(|value| !value.is_empty());
    named
        .map(PathBuf::from)
        .or_else(|| in_triton(name))
        .or_else(|| on_path(name))
}

/// The assembler in the package of Triton whose library the calling process has mapped.
fn in_triton(name: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", parent_id())).ok()?;
    let libraries = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let mut libraries = libraries.filter(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with("libtriton") && file.contains(".so")
    });
    // triton/_C/libtriton.so and triton/backends/nvidia/bin/ptxas
    libraries.find_map(|library| {
        let package = library.parent()?.parent()?;
        Some(package.join("backends/nvidia/bin").join(name)).filter(|path| path.is_file())
    })
}

fn on_path(name: &str) -> Option<PathBuf> {
    let directories = env::var_os("PATH")?;
    let mut places = env::split_paths(&directories).map(|directory| directory.join(name));
    places.find(|path| path.is_file())
}

/// Assembles the PTX with counters, and keeps its text for the report. `None` if the real assembler is to do all: the
/// arguments name no PTX or no cubin, the PTX counts already, or cannot be assembled.
///
/// # Errors
/// Fails if a step does.
fn counted(real: &Path, arguments: &[OsString]) -> Result<Option<Output>, Loss> {
    let is_ptx = |path: &&OsString| {
        Path::new(path)
            .extension()
            .is_some_and(|extension| extension == "ptx")
    };
    let after = |name: &str| {
        arguments
            .iter()
            .skip_while(move |argument| *argument != name)
            .nth(1)
    };
    let (Some(input), Some(output), Some(cache)) = (
        arguments.iter().find(is_ptx),
        after("-o"),
        InstrumentCache::for_user(),
    ) else {
        return Ok(None);
    };
    let read = |path: &OsStr| {
        fs::read(path).map_err(|source| Loss::Unreadable {
            path: path.into(),
            source,
        })
    };
    let text = String::from_utf8_lossy(&read(input)?).into_owned();
    if is_instrumented(&text) {
        return Ok(None);
    }
    let module = Module::parse(&text);
    // Without counters, to know the registers of each kernel.
    if !assembled(real, arguments)?.status.success() {
        return Ok(None);
    }
    let choices = PtxOptions {
        counting: counting(),
        ..PtxOptions::for_kernels_of(&read(output)?)?
    };
    let changed = instrument(&module.map_err(PtxRefusal::from)?, &choices)?;
    let place = Path::new(input).with_extension("rocov.ptx");
    fs::write(&place, changed).map_err(|source| Loss::Unwritable {
        path: place.clone(),
        source,
    })?;
    let with_place = arguments.iter().map(|argument| {
        if argument == input {
            place.as_os_str()
        } else {
            argument
        }
    });
    let with_place: Vec<&OsStr> = with_place.collect();
    let done = assembled(real, &with_place);
    let _ = fs::remove_file(&place);
    let done = done?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr);
        let first = message.lines().find(|line| line.contains("error"));
        let first = first.or_else(|| message.lines().next()).unwrap_or_default();
        return Err(Loss::NotAssembled(first.trim().to_owned()));
    }
    let cubin = read(output)?;
    // The driver's caller tells no size.
    let size = cubin.first_chunk::<ELF_HEADER>().map_or(0, file_size);
    let place = cache.source(&cubin[..size.min(cubin.len())]);
    let kept = cache.write(CacheFolder::Sources, &place, text.as_bytes());
    match kept {
        Ok(true) => Ok(Some(done)),
        Ok(false) => Err(Loss::NoRoom),
        Err(error) => Err(Loss::NotKept(error)),
    }
}

/// The counters that the run wants. `rocov run` has checked the word.
fn counting() -> Counting {
    let word = env::var(INSTRUMENT.name).unwrap_or_default();
    Counting::parse(&word).ok().flatten().unwrap_or_default()
}

/// Runs the real assembler.
///
/// # Errors
/// Fails if it cannot be run.
fn assembled(real: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Output, Loss> {
    let output = Command::new(real).args(arguments).output();
    output.map_err(|source| Loss::NotRun {
        path: real.to_owned(),
        source,
    })
}
