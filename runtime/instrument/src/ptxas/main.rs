//! The stand-in for ptxas that Triton and JAX call: it puts counters into the PTX, and has the real ptxas assemble that.
//!
//! `rocov run --instrument` names it in `TRITON_PTXAS_PATH`. JAX's compilers look in `CUDA_ROOT` and on the `PATH`. If
//! the PTX cannot be changed, or not be assembled then, the real ptxas gets it as it is. librocov names such a kernel
//! when it is loaded.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, parent_id};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use rocov::format::codeobject::CodeObjectError;
use rocov::format::codeobject::cuda::{ELF_HEADER, file_size};
use rocov::format::ptx::{Module, is_instrumented};
use rocov::instrument::ptx::{PtxOptions, PtxRefusal, instrument};
use rocov::settings::Counting;
use rocov::settings::variables::{INSTRUMENT, PTXAS, PTXAS_BLACKWELL};
use rocov::store::{CacheFolder, InstrumentCache, OutputError};
use rocov::support::diagnostic::{Diagnostic, Remedy, diagnostic};
use thiserror::Error;

/// The reason why PTX has no counters, and the next step.
#[derive(Debug, Error)]
enum Loss {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("rocov cannot save it for the report: {0}")]
    NotKept(OutputError),
    #[error("the cache has no room for it")]
    NoRoom,
    #[error("rocov cannot instrument it: {0}")]
    NotChanged(#[from] PtxRefusal),
    #[error("rocov cannot read the output of ptxas: {0}")]
    Damaged(#[from] CodeObjectError),
    #[error("cannot run {}: {source}", path.display())]
    NotRun { path: PathBuf, source: io::Error },
    #[error("ptxas cannot assemble it with counters ({0})")]
    NotAssembled(String),
    #[error("internal error")]
    Internal,
}

impl Remedy for Loss {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Unreadable { .. } => "make it readable",
            Self::Unwritable { .. } => "make its directory writable",
            Self::NotKept(_) => "make room there, or name another directory in ROCOV_CACHE",
            Self::NoRoom => "raise ROCOV_CACHE_MAX",
            Self::NotRun { .. } => "set ROCOV_PTXAS to the path of another ptxas",
            Self::NotChanged(refusal) => return refusal.remedy(),
            Self::Damaged(_) | Self::NotAssembled(_) | Self::Internal => "report it",
        })
    }
}

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let own = arguments.next().map(PathBuf::from).unwrap_or_default();
    let arguments: Vec<OsString> = arguments.collect();
    let is_named = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
    let caller = match own.parent() {
        Some(folder) if is_named(folder, "bin") && is_named(&own, "ptxas") => Caller::Xla,
        _ if is_named(&own, "ptxas-blackwell") => Caller::TritonForBlackwell,
        _ => Caller::Triton,
    };
    let Some(real) = real(caller) else {
        warn(&diagnostic!("cannot find the real ptxas"; "set ROCOV_PTXAS to its path"));
        return ExitCode::FAILURE;
    };
    // The user's compilation goes on in any case.
    let counted = catch_unwind(|| counted(&real, &arguments));
    match counted.unwrap_or(Err(Loss::Internal)) {
        Ok(Some(output)) => {
            // Triton keeps the messages.
            let _ = io::stdout().write_all(&output.stdout);
            let _ = io::stderr().write_all(&output.stderr);
            return ExitCode::SUCCESS;
        }
        Ok(None) => {}
        Err(loss) => warn(&loss.diagnostic().within("this PTX has no counters")),
    }
    let error = Command::new(&real).args(&arguments).exec();
    warn(&diagnostic!(
        "cannot run {}: {error}", real.display();
        "set ROCOV_PTXAS to the path of another ptxas"
    ));
    ExitCode::FAILURE
}

/// Prints a line on standard error. If that cannot be written to, the line is lost, and Triton still gets its cubin.
fn warn(message: &Diagnostic) {
    let _ = writeln!(io::stderr(), "rocov: {message}");
}

/// The program that calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    Triton,
    TritonForBlackwell,
    /// The compiler of JAX.
    Xla,
}

/// The real assembler: the one that the user has named, or the one that the caller would take, or that on the `PATH`.
fn real(caller: Caller) -> Option<PathBuf> {
    let (variable, name) = match caller {
        Caller::TritonForBlackwell => (PTXAS_BLACKWELL.name, "ptxas-blackwell"),
        Caller::Triton | Caller::Xla => (PTXAS.name, "ptxas"),
    };
    let named = env::var_os(variable).filter(|value| !value.is_empty() && caller != Caller::Xla);
    named
        .map(PathBuf::from)
        .or_else(|| beside_caller(caller, name))
        .or_else(|| on_path(name))
}

/// The assembler in the package of Python whose library the calling process has mapped: Triton's own, or that of the
/// toolkit next to JAX.
fn beside_caller(caller: Caller, name: &str) -> Option<PathBuf> {
    // triton/_C/libtriton.so and triton/backends/nvidia/bin/ptxas, jax_plugins/xla_cuda13/xla_cuda_plugin.so and
    // nvidia/cu13/bin/ptxas
    let (start, up, folders) = match caller {
        Caller::Xla => (
            "xla_cuda_plugin",
            3,
            &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"][..],
        ),
        _ => ("libtriton", 2, &["backends/nvidia/bin"][..]),
    };
    let maps = fs::read_to_string(format!("/proc/{}/maps", parent_id())).ok()?;
    let libraries = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let mut libraries = libraries.filter(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(start) && file.contains(".so")
    });
    libraries.find_map(|library| {
        let package = library.ancestors().nth(up)?;
        let mut places = folders.iter().map(|folder| package.join(folder).join(name));
        places.find(|path| path.is_file())
    })
}

/// The first on the `PATH` that is not this stand-in.
fn on_path(name: &str) -> Option<PathBuf> {
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    let directories = env::var_os("PATH")?;
    let mut places = env::split_paths(&directories).map(|directory| directory.join(name));
    places.find(|path| path.is_file() && fs::canonicalize(path).ok() != own)
}

/// Assembles the PTX with counters, and keeps its text for the report. `None` if the real assembler is to do all: the
/// arguments name no PTX or no cubin, the PTX is instrumented already, or cannot be assembled.
///
/// # Errors
/// Fails if a step does.
fn counted(real: &Path, arguments: &[OsString]) -> Result<Option<Output>, Loss> {
    let is_ptx = |path: &&OsString| {
        Path::new(path)
            .extension()
            .is_some_and(|extension| extension == "ptx")
    };
    // JAX's compiler names the file first, and gives it no extension.
    let is_file = |path: &&OsString| !path.to_string_lossy().starts_with('-');
    let input = arguments.iter().find(is_ptx);
    let input = input.or_else(|| arguments.first().filter(is_file));
    let mut output = arguments.iter().skip_while(|argument| *argument != "-o");
    let (Some(input), Some(output), Some(cache)) =
        (input, output.nth(1), InstrumentCache::for_user())
    else {
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
    // Without counters, to find the registers of each kernel.
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
    // The driver's caller passes no size.
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
