//! `rocov run`: starts a program with librocov preloaded and keeps its exit status.

mod code_targets;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::CommandFactory;
use rocov::format::registry::model::ProcessRecord;
use rocov::settings::variables::{
    CACHE, CACHE_MAX, CONTROL, CUDA_TOOLKIT, DATA, DRAIN, INSTRUMENT, JOURNAL, LABEL, LD_PRELOAD,
    MODELGPU, MODELGPU_TRACE, PAUSED, PROFILE_FILE, PTXAS, PTXAS_BLACKWELL, ROCTX, SNAPSHOT_EVERY,
    SNAPSHOT_SIGNAL, VERBOSE, ZERO,
};
use rocov::settings::{Counting, DocumentWhen, Drainer, Keeping, parse_bytes};
use rocov::store::layout::PROFRAW;
use rocov::store::{Expansion, InstrumentCache, ProcessWord, ProfileName};
use rocov::support::clock;
use rocov::support::diagnostic::{Remedy, diagnostic, fail};

use crate::cli::{
    Cli, DEFAULT_DATA_DIRECTORY, InstrumentCounters, PerTestKind, RunArguments, USUAL_CONTROL,
};
use crate::data::{DataListing, DeviceProfile, non_atomic, notes, zeros};
use crate::support::failure::failure;
use crate::support::paths::Absent;
use crate::system::installed::INJECTION_VARIABLE;
use crate::system::journal::{Ending, Journal, Noted};
use crate::system::per_test::PerTest;
use crate::system::{child_process, installed, writable};
use crate::term::exit_status::{CommandResult, Failure};
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;
use crate::term::{exit_status, print};

/// NVTX in the program loads the library that this variable names.
const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// JAX takes the assembler of the toolkit in this directory.
const CUDA_ROOT: &str = "CUDA_ROOT";

/// The file of the GPUs' driver.
const KFD: &str = "/dev/kfd";
const NVIDIA: &str = "/dev/nvidiactl";

/// The pattern of profiles in `directory`, for one run. No process replaces a profile of another. The process id (%p)
/// repeats in containers and on other hosts, and the system gives it to a later process. So librocov adds a word of each
/// process. LLVM's runtime for host code does not: the word of the run distinguishes its files from those of other runs.
fn pattern_in(directory: &Path) -> PathBuf {
    let name = format!("%p-{}.{PROFRAW}", ProcessWord::random());
    directory.join(PROFRAW).join(name)
}

/// Runs the program.
pub(crate) fn run(arguments: &RunArguments) -> CommandResult {
    let environment = Environment::new(arguments)
        .map_err(|error| Failure::new(exit_status::RUN_FAILED, error))?;
    let per_test = arguments
        .per_test
        .map(|kind| PerTest::new(&arguments.command, kind == PerTestKind::Gtest))
        .transpose()
        .map_err(|error| Failure::new(exit_status::RUN_FAILED, error))?;
    let command = per_test.as_ref().and_then(PerTest::command);
    let (program, program_arguments) = command
        .unwrap_or(&arguments.command)
        .split_first()
        .ok_or_else(|| {
            Failure::new(
                exit_status::RUN_FAILED,
                failure!("no program is given"; "name one after `--`"),
            )
        })?;
    let failed = |error| Failure::new(exit_status::RUN_FAILED, error);
    if let Some(place) = environment.place() {
        writable::check(&place).map_err(failed)?;
    }
    let journal = Journal::new().map_err(failed)?;
    say_misplaced_option(&arguments.command);
    let started = journal.made_at();
    let since = clock::now();
    let mut command = Command::new(program);
    command.args(program_arguments);
    command.env(JOURNAL.name, journal.path());
    let path = per_test.as_ref().and_then(PerTest::path);
    if let Some(path) = environment.path(path) {
        command.env("PATH", path);
    }
    let of_tests = per_test
        .as_ref()
        .map(PerTest::variables)
        .unwrap_or_default();
    for (name, value) in environment.variables.iter().chain(&of_tests) {
        command.env(name, value);
        if arguments.verbose {
            print::message(format_args!("{name}={}", value.display()));
        }
    }
    let made = environment
        .directory
        .as_deref()
        .filter(|directory| !directory.exists());
    let (pid, ended) =
        child_process::run(&mut command).map_err(|error| not_started(program, error))?;
    let registries = journal.registries().unwrap_or_default();
    let never_loaded =
        Warnings::printing(|warnings| zeros::complete_run(&registries, keeping(), made, warnings));
    let ending = Ending {
        program,
        pid,
        status: ended,
        has_gpu: arguments.gpu.is_some()
            || [KFD, NVIDIA].iter().any(|path| Path::new(path).exists()),
        has_snapshots: arguments.snapshot_every.is_some(),
        has_zeros: never_loaded > 0,
        has_profiles: &|| environment.has_profiles_since(started),
        misfit: &|| {
            let gpus = arguments.gpu.as_ref()?;
            code_targets::misfit(program, &code_targets::program_targets(program), gpus)
        },
    };
    for line in journal.uncounted().unwrap_or_default() {
        print::message(line);
    }
    let line = || match environment.pattern {
        Some(_) => journal.closing_line(&ending),
        None => Ok(Some(diagnostic!(
            "nothing was written: {PROFILE_FILE} is /dev/null, which turns profiles off";
            "unset it, or name a directory with --output"
        ))),
    };
    let line = line().unwrap_or_else(|error| {
        let path = journal.path().display();
        Some(explained(&error.into()).within(format_args!("cannot read {path}")))
    });
    for noted in journal.noted(&ending).unwrap_or_default() {
        environment.note(noted, since);
    }
    let missed_tests = per_test.as_ref().and_then(PerTest::missed);
    let losses: Vec<_> = line
        .into_iter()
        .chain(non_atomic::line_of_run(&registries))
        .chain(missed_tests)
        .collect();
    match losses.as_slice() {
        [] if arguments.verbose => environment.say_what_was_written(),
        losses => losses.iter().for_each(print::message),
    }
    Ok(
        match child_process::exit_status(ended, exit_status::SIGNAL_BASE) {
            0 if arguments.strict && !losses.is_empty() => exit_status::GATE_BROKEN,
            status => status,
        },
    )
}

/// The variables that the program gets in addition to the environment of rocov.
struct Environment {
    variables: Vec<(&'static str, OsString)>,
    /// The directory of the profiles; `None` if the user's own `LLVM_PROFILE_FILE` names it.
    directory: Option<PathBuf>,
    /// The pattern of the profiles; `None` if the user wants none.
    pattern: Option<OsString>,
    /// The directory whose programs the program finds before others.
    first_on_path: Option<PathBuf>,
    /// Triton's results in the cache are in use until this is dropped.
    _triton: Option<File>,
}

impl Environment {
    fn new(arguments: &RunArguments) -> Result<Self> {
        let mut variables = Vec::new();
        let mut triton = None;
        let mut first_on_path = None;
        let mut preloaded = Vec::new();
        if let Some(gpus) = &arguments.gpu {
            // First, so that its file functions are in place before any constructor runs.
            preloaded.push(installed::find(installed::MODEL_GPU)?);
            variables.push((MODELGPU.name, gpus.to_string().into()));
        }
        if arguments.trace {
            check_trace(arguments)?;
            variables.push((MODELGPU_TRACE.name, "1".into()));
        }
        let drain = installed::find(installed::DRAIN)?;
        // If the program uses CUDA with another tool, librocov prints a line.
        if other_injection(INJECTION_VARIABLE, &drain).is_none() {
            variables.push((INJECTION_VARIABLE, drain.clone().into()));
        }
        if arguments.nvtx {
            match other_injection(NVTX_VARIABLE, &drain) {
                None => variables.push((NVTX_VARIABLE, drain.clone().into())),
                Some(other) => print::message(diagnostic!(
                    "{NVTX_VARIABLE} names {}: NVTX ranges do not become labels", other.display();
                    "run without it"
                )),
            }
        }
        preloaded.push(drain);
        if arguments.instrument {
            // Its `dlsym` finds the compilers of the program.
            preloaded.push(installed::find(installed::INSTRUMENT)?);
        }
        let preload = installed::preload(&preloaded, env::var_os(LD_PRELOAD.name))?;
        variables.push((LD_PRELOAD.name, preload));

        if arguments.verbose {
            variables.push((VERBOSE.name, "1".into()));
        }
        if let Some(label) = &arguments.label {
            variables.push((LABEL.name, label.to_string().into()));
        }
        if let Some(control) = &arguments.control {
            variables.push((CONTROL.name, control_directory(control)?));
        }
        if let Some(every) = arguments.snapshot_every {
            variables.push((SNAPSHOT_EVERY.name, every.to_string().into()));
        }
        if let Some(signal) = arguments.snapshot_on {
            variables.push((SNAPSHOT_SIGNAL.name, signal.to_string().into()));
        }
        if arguments.paused {
            variables.push((PAUSED.name, "1".into()));
        }
        let is_chosen = || env::var_os(DRAIN.name).is_some_and(|value| !value.is_empty());
        if let Some(drainer) = arguments
            .drain
            .or_else(|| (!is_chosen()).then_some(Drainer::Rocov))
        {
            variables.push((DRAIN.name, drainer.to_string().into()));
        }
        if arguments.instrument {
            let counting = match arguments.counters {
                None | Some(InstrumentCounters::Fast) => Counting::Exact,
                Some(InstrumentCounters::Reached) => Counting::Reached,
            };
            variables.push((INSTRUMENT.name, counting.word().into()));
            check_cache_size();
            let cache = InstrumentCache::for_user();
            triton = cache.as_ref().and_then(|cache| cache.use_triton(counting));
            if let (Some(cache), Some(_)) = (cache, &triton) {
                variables.extend(for_python(&cache, counting)?);
                first_on_path = for_jax(&cache, counting, &mut variables)?;
            }
        }
        if arguments.roctx {
            variables.push((ROCTX.name, "1".into()));
        }
        if arguments.no_zero {
            variables.push((ZERO.name, "0".into()));
        }
        let (directory, pattern) = match place_of(arguments)? {
            Place::Directory(directory) => {
                let pattern = pattern_in(&directory).into_os_string();
                (Some(directory), Some(pattern))
            }
            Place::Named(pattern) => (None, Some(pattern)),
            Place::Nowhere => (None, None),
        };
        if let Some(directory) = &directory {
            variables.extend(pattern.clone().map(|pattern| (PROFILE_FILE.name, pattern)));
            variables.push((DATA.name, directory.into()));
        }
        Ok(Self {
            variables,
            directory,
            pattern,
            first_on_path,
            _triton: triton,
        })
    }

    /// The `PATH` of the program, if it is to have another one than rocov, or than that of tests.
    fn path(&self, of_tests: Option<OsString>) -> Option<OsString> {
        let Some(first) = &self.first_on_path else {
            return of_tests;
        };
        let others = of_tests.clone().or_else(|| env::var_os("PATH"))?;
        let all = std::iter::once(first.clone()).chain(env::split_paths(&others));
        env::join_paths(all).ok().or(of_tests)
    }

    /// The directory that the profiles go to, as far as it is known before they are named.
    fn place(&self) -> Option<PathBuf> {
        if let Some(directory) = &self.directory {
            return Some(directory.clone());
        }
        let pattern = self.pattern.as_ref()?.to_str()?;
        let start = pattern.split('%').next().unwrap_or_default();
        let (directory, _) = start.rsplit_once('/').unwrap_or((".", ""));
        std::path::absolute(if directory.is_empty() { "/" } else { directory }).ok()
    }

    /// The device profiles in the directory, if it is not the user's own.
    fn profiles(&self) -> Vec<DeviceProfile> {
        let directory = self.directory.as_ref();
        let data = directory.and_then(|directory| {
            let open = |warnings: &mut _| DataListing::open(&[directory], warnings);
            Warnings::printing(open).ok()
        });
        data.unwrap_or_default().device
    }

    /// Returns whether one of them has counts that were written after that moment, by the clock of files.
    /// The caller asks only if no process of the run has reported any: processes on other hosts cannot.
    fn has_profiles_since(&self, moment: SystemTime) -> bool {
        let profiles = self.profiles().into_iter();
        let mut counted = profiles.filter(|profile| !profile.is_of_zeros);
        counted.any(|profile| {
            let changed = fs::metadata(&profile.path).and_then(|metadata| metadata.modified());
            changed.is_ok_and(|changed| changed > moment)
        })
    }

    /// Writes the notes about a process of this run into its registry. It has started after `since`.
    fn note(&self, noted: Noted, since: u64) {
        if keeping().document == DocumentWhen::None {
            return;
        }
        let Noted {
            pid,
            word,
            command,
            notes,
        } = noted;
        let values = Expansion::for_process(pid, word, env::var_os("TMPDIR"));
        let Some(path) = self.registry_of(&values) else {
            return;
        };
        let process = ProcessRecord {
            pid,
            host: values.host,
            start: since,
            epoch: clock::epoch(),
            command,
            notes,
            ..ProcessRecord::default()
        };
        if let Err(error) = notes::add(&path, process) {
            let path = path.display();
            print::message(diagnostic!(
                "cannot add notes about this run to {path}: {error}; reports will not contain them";
                "{}", error.remedy()
            ));
        }
    }

    /// The place for the registry of the process with these values.
    fn registry_of(&self, values: &Expansion) -> Option<PathBuf> {
        let pattern = self.pattern.as_ref()?.to_str()?;
        let name = ProfileName::parse(pattern, values, &env::current_dir().ok()?).ok()?;
        let name = match &self.directory {
            Some(directory) => name.in_data(directory),
            None => name,
        };
        Some(name.for_registry())
    }

    fn say_what_was_written(&self) {
        if let Some(directory) = &self.directory {
            print::message(format_args!(
                "{} in {}",
                count(self.profiles().len(), "device profile"),
                directory.display()
            ));
        }
    }
}

/// Prints a line if the size of the cache cannot be used.
fn check_cache_size() {
    CACHE_MAX.value(
        env::var_os(CACHE_MAX.name).as_deref(),
        parse_bytes,
        |error| {
            let usual = CACHE_MAX.default.literal();
            let message = error.diagnostic().so(format_args!("rocov uses {usual}"));
            print::message(message.within(CACHE_MAX));
        },
    );
}

/// The variables that have libraries of Python make code that can be counted, and keep it apart from that of other
/// runs: Triton calls rocov instead of its assemblers, `torch.compile` does not take kernels of other runs, and CuPy
/// compiles to PTX. The user's own values of the last two win.
///
/// # Errors
///
/// Fails if the stand-ins for the assemblers are not there.
fn for_python(
    cache: &InstrumentCache,
    counting: Counting,
) -> Result<Vec<(&'static str, OsString)>> {
    let results = cache.results_of_triton(counting);
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let mut variables = vec![
        (CACHE.name, cache.directory().into()),
        ("TRITON_CACHE_DIR", results.clone().into_os_string()),
    ];
    // These directories are entries of the folder, as those of Triton's kernels.
    let of_libraries = [
        ("TORCHINDUCTOR_CACHE_DIR", results.join("inductor").into()),
        ("CUPY_CACHE_DIR", results.join("cupy").into()),
        ("CUPY_COMPILE_WITH_PTX", OsString::from("1")),
        ("TILELANG_CACHE_DIR", results.join("tilelang").into()),
    ];
    let unset = of_libraries
        .into_iter()
        .filter(|(name, _)| set(name).is_none());
    variables.extend(unset);
    for (variable, path) in installed::find_assemblers()? {
        let real = match variable {
            "TRITON_PTXAS_PATH" => PTXAS.name,
            _ => PTXAS_BLACKWELL.name,
        };
        variables.extend(set(variable).map(|user| (real, user)));
        variables.push((variable, path.into()));
    }
    Ok(variables)
}

/// Has JAX call rocov instead of its assembler. Its compiler looks for that below `CUDA_ROOT`, which `librocov_instrument`
/// sets in Python, and its compiler of Pallas' kernels on the `PATH`: returns the directory that is to be the first there. The
/// user's own `CUDA_ROOT` wins.
///
/// # Errors
///
/// Fails if the stand-in for the assembler is not there.
fn for_jax(
    cache: &InstrumentCache,
    counting: Counting,
    variables: &mut Vec<(&'static str, OsString)>,
) -> Result<Option<PathBuf>> {
    let assemblers = installed::find_assemblers()?;
    let Some((_, assembler)) = assemblers.first() else {
        return Ok(None);
    };
    let Ok(toolkit) = cache.use_toolkit(counting, assembler) else {
        return Ok(None);
    };
    let binaries = toolkit.join("bin");
    if env::var_os(CUDA_ROOT).is_none_or(|root| root.is_empty()) {
        variables.push((CUDA_TOOLKIT.name, toolkit.into()));
    }
    Ok(Some(binaries))
}

/// Checks that something counts the executed instructions, and that rocov drains them.
fn check_trace(arguments: &RunArguments) -> Result<()> {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    if arguments.gpu.is_none() && !is_set(MODELGPU.name) {
        fail!(
            "--trace counts what the modelled GPU executes, but this run does not use it";
            "also use --gpu model"
        );
    }
    let is_of_llvm = match arguments.drain {
        Some(drainer) => drainer == Drainer::Llvm,
        None => env::var_os(DRAIN.name).is_some_and(|value| value == "llvm"),
    };
    if is_of_llvm {
        fail!(
            "--trace needs rocov's drain, but LLVM's is selected";
            "leave out --drain llvm or {DRAIN}=llvm"
        );
    }
    Ok(())
}

/// The tool that `variable` has the CUDA driver or NVTX load, if that is not librocov. It keeps its place.
fn other_injection(variable: &str, drain: &Path) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty() && Path::new(value) != drain)
}

/// The files to keep next to profiles, by the variables that librocov reads too. librocov has printed a line about
/// a value that cannot be used.
fn keeping() -> Keeping {
    Keeping::from_variables(|name| env::var_os(name), |_, _| ())
}

/// The place of the profiles.
enum Place {
    /// This absolute directory.
    Directory(PathBuf),
    /// The user's own pattern.
    Named(OsString),
    /// The user's environment asks for none.
    Nowhere,
}

/// The place that the profiles go to.
///
/// The option wins over the environment, and the environment over the default.
fn place_of(arguments: &RunArguments) -> Result<Place> {
    let directory = match &arguments.output {
        Some(directory) => directory.as_path(),
        None => match env::var_os(PROFILE_FILE.name).filter(|value| !value.is_empty()) {
            Some(pattern) => {
                return Ok(match check_pattern(&pattern)? {
                    true => Place::Nowhere,
                    false => Place::Named(pattern),
                });
            }
            None => Path::new(DEFAULT_DATA_DIRECTORY),
        },
    };
    // Absolute, as the program may change its directory before it writes.
    let directory = std::path::absolute(directory)
        .with_context(|| format!("cannot make `{}` absolute", directory.display()))?;
    if directory.as_os_str().as_bytes().contains(&b'%') {
        fail!(
            "{} has a % in its path, which {PROFILE_FILE} cannot express", directory.display();
            "choose another directory with --output"
        );
    }
    Ok(Place::Directory(directory))
}

/// Checks that librocov takes the pattern of the environment. It would use another name, or write nothing. Returns
/// whether the pattern asks for no profile.
///
/// # Errors
///
/// Fails if the pattern is not UTF-8, or has a specifier that librocov rejects, or names no file.
fn check_pattern(pattern: &OsStr) -> Result<bool> {
    let text = pattern.to_str().with_context(
        || diagnostic!("{PROFILE_FILE} is not UTF-8: {}", pattern.display(); "use another name"),
    )?;
    let directory = env::current_dir().unwrap_or_default();
    let name = ProfileName::find(text, &Expansion::default(), &directory);
    Ok(name.context(PROFILE_FILE.name)?.is_nowhere())
}

/// The value of the variable that names the directory of the socket: absolute, but for the word that
/// stands for the usual one.
fn control_directory(given: &Path) -> Result<OsString> {
    if given == Path::new(USUAL_CONTROL) {
        return Ok(given.into());
    }
    let directory = std::path::absolute(given)
        .with_context(|| format!("cannot make `{}` absolute", given.display()))?;
    Ok(directory.into_os_string())
}

/// Warns if an option of `rocov run` comes after the program, which gets it, and nothing shows that
/// the user means that.
fn say_misplaced_option(command: &[OsString]) {
    let all: Vec<_> = env::args_os().collect();
    let before = all.len().checked_sub(command.len() + 1);
    if before.is_some_and(|place| all[place] == "--") {
        return;
    }
    let Some((program, arguments)) = command.split_first() else {
        return;
    };
    let cli = Cli::command();
    let options: Vec<_> = cli
        .find_subcommand("run")
        .into_iter()
        .flat_map(clap::Command::get_arguments)
        .filter_map(clap::Arg::get_long)
        .collect();
    let is_ours = |argument: &&str| {
        let name = argument
            .strip_prefix("--")
            .unwrap_or_default()
            .split('=')
            .next()
            .unwrap_or_default();
        options.contains(&name)
    };
    let mut arguments = arguments.iter().filter_map(|argument| argument.to_str());
    if let Some(argument) = arguments.find(is_ours) {
        let program = program.display();
        print::message(diagnostic!(
            "{argument} is passed to {program}";
            "put an option of `rocov run` before the program, as in `rocov run {argument} ... -- {program}`"
        ));
    }
}

/// The failure to start `program`, with the status that env(1) would give.
fn not_started(program: &OsStr, error: io::Error) -> Failure {
    let path = Path::new(program);
    let name = program.display();
    let is_path = path.components().count() > 1;
    let status = match error.kind() {
        io::ErrorKind::NotFound => exit_status::NOT_FOUND,
        _ => exit_status::NOT_EXECUTABLE,
    };
    let error = match (error.kind(), path.exists()) {
        _ if is_path && path.is_dir() => {
            failure!("{name} is a directory"; "use the path of a program")
        }
        (io::ErrorKind::NotFound, true) if is_path => failure!(
            "cannot run {name}: the interpreter that it names does not exist";
            "install it, or name another one in the file's first line"
        ),
        (io::ErrorKind::NotFound, true) => {
            failure!("{name} is not on PATH"; "use ./{name} for the one in this directory")
        }
        (io::ErrorKind::NotFound, false) if is_path => {
            Absent::new(path, "use the path of a program").into()
        }
        (io::ErrorKind::NotFound, false) => {
            failure!("{name} is not on PATH"; "use the path of a program")
        }
        _ => failure!(
            "cannot run {name}: {error}";
            "make it executable with chmod +x, or name a program"
        ),
    };
    Failure::new(status, error)
}
