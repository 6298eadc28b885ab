//! The modelled GPU's environment.
//!
//! | variable | value | default |
//! |---|---|---|
//! | `ROCOV_MODELGPU` | `TARGET[xN][,TARGET[xN]...]`: the GPUs in HSA order, 1 to 8 | none: no model |
//! | `ROCOV_MODELGPU_BAR` | `small`, `large`: whether the host can reach device memory | `large` |
//! | `ROCOV_MODELGPU_XGMI` | `0`, `1`: GPUs linked by XGMI instead of PCIe | `0` |
//! | `ROCOV_MODELGPU_VRAM_MIB` | device memory of each GPU in MiB | 16384 |
//! | `ROCOV_MODELGPU_LOG` | `FILE[:LEVEL]`, or `2` for standard error; level 1 or 2 | no log |
//! | `ROCOV_MODELGPU_INSTRUCTIONS` | a file, or `2` for standard error: executed instructions by kernel | none |
//! | `ROCOV_MODELGPU_FIDELITY` | a file, or `2` for standard error: the evidence for executed opcodes | none |
//! | `ROCOV_MODELGPU_TRACE` | `0`, `1`: counts the executions of each instruction, for librocov | `0` |
//! | `ROCOV_MODELGPU_THREADS` | the most threads that run a dispatch, 1 to 1024 | the processors that the process may use |
//! | `ROCOV_JOURNAL` | the journal of `rocov run`, for notes about kernels | none |
//! | `ROCOV_MODELGPU_TMP` | where the generated sysfs tree lies | `$TMPDIR`, then `/tmp` |
//!
//! An empty value counts as unset.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use modelgpu_amdgcn::Target;
use thiserror::Error;

/// The most GPUs of one machine. The driver's deprecated aperture call supports seven, real machines
/// have eight.
pub(crate) const MAX_GPUS: usize = 8;

/// Default device memory of each GPU in MiB.
const DEFAULT_VRAM_MIB: u64 = 16 * 1024;
/// The most device memory of one GPU in MiB: 1 TiB.
const MAX_VRAM_MIB: u64 = 1024 * 1024;

/// The most threads that run one dispatch.
const MAX_THREADS: usize = 1024;

/// The part of device memory that the host can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// None: a stray host access crashes.
    Small,
    /// All of it, as on machines with Instinct GPUs, or with Radeon GPUs and a resizable BAR.
    Large,
}

/// The destination of lines of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard error.
    Stderr,
    /// A file to append to.
    File(PathBuf),
}

/// The log's destination and level: 1 queues, dispatches and copies, 2 every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogConfig {
    pub(crate) destination: Destination,
    pub(crate) level: u8,
}

/// The words behind the list of GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watches {
    /// `,race`: mistakes with LDS.
    pub(crate) lds: bool,
    /// `,hazards`: results that code uses too early.
    pub(crate) hazards: bool,
}

impl Watches {
    /// Splits a list of GPUs from the words behind it, each at most once.
    fn split(mut value: &str) -> (&str, Self) {
        let mut watches = Self::default();
        loop {
            let (rest, watch) = if let Some(rest) = value.strip_suffix(",race") {
                (rest, &mut watches.lds)
            } else if let Some(rest) = value.strip_suffix(",hazards") {
                (rest, &mut watches.hazards)
            } else {
                return (value, watches);
            };
            if *watch {
                return (value, watches);
            }
            *watch = true;
            value = rest;
        }
    }
}

/// The modelled machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The GPUs in HSA order; 1 to [`MAX_GPUS`].
    pub(crate) gpus: Vec<Target>,
    pub(crate) bar: Bar,
    /// True if XGMI links the GPUs instead of PCIe.
    pub(crate) xgmi: bool,
    /// Device memory of each GPU in bytes.
    pub(crate) vram_bytes: u64,
    /// The mistakes of kernels that the model looks for.
    pub(crate) watches: Watches,
    /// The most threads that run one dispatch; 1 to [`MAX_THREADS`].
    pub(crate) threads: usize,
    /// The directory of the generated sysfs tree.
    pub(crate) tmp: PathBuf,
    pub(crate) log: Option<LogConfig>,
    /// The place for the executed instructions of each kernel.
    pub(crate) instructions: Option<Destination>,
    /// The place for the evidence of the executed opcodes.
    pub(crate) fidelity: Option<Destination>,
    /// True if the executions of each instruction are counted.
    pub(crate) traces: bool,
    /// The journal of `rocov run`, for notes about kernels.
    pub(crate) journal: Option<PathBuf>,
}

/// A variable with a value that the model cannot use.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{variable}={value:?}: {problem}")]
pub(crate) struct ConfigError {
    variable: &'static str,
    value: String,
    problem: Problem,
}

#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Target(String),
    Count(String),
    TooMany(usize),
    NotOneOf(&'static str),
    Size,
    Threads,
    Level(String),
    NotText,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(name) => {
                let known: Vec<_> = Target::ALL.iter().map(Target::to_string).collect();
                let known = known.join(", ");
                write!(
                    f,
                    "{name:?} is no modelled GPU; allowed: TARGET[xN][,TARGET[xN]...] with TARGET one of {known}"
                )
            }
            Self::Count(count) => {
                write!(
                    f,
                    "{count:?} is no number of GPUs; allowed: 1 to {MAX_GPUS}"
                )
            }
            Self::TooMany(count) => {
                write!(
                    f,
                    "{count} GPUs are too many; allowed: 1 to {MAX_GPUS} in all"
                )
            }
            Self::NotOneOf(allowed) => write!(f, "allowed: {allowed}"),
            Self::Size => write!(f, "allowed: 1 to {MAX_VRAM_MIB} (MiB)"),
            Self::Threads => write!(f, "allowed: 1 to {MAX_THREADS} (threads)"),
            Self::Level(level) => {
                write!(
                    f,
                    "{level:?} is no log level; allowed: FILE[:LEVEL] with LEVEL 1 or 2"
                )
            }
            Self::NotText => write!(f, "the value is not UTF-8"),
        }
    }
}

impl Config {
    /// Reads the configuration from `variable`, which looks up the environment. Returns `Ok(None)`
    /// if `ROCOV_MODELGPU` is unset or empty: the process has no modelled GPU.
    pub(crate) fn read(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, ConfigError> {
        let text = |name: &'static str| match variable(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(value)) if value.is_empty() => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(value)) => Err(ConfigError {
                variable: name,
                value: value.to_string_lossy().into_owned(),
                problem: Problem::NotText,
            }),
        };
        /// Reads one variable; an unset variable has the default.
        fn parsed<T>(
            variable: &'static str,
            value: Option<String>,
            default: T,
            parse: impl Fn(&str) -> Result<T, Problem>,
        ) -> Result<T, ConfigError> {
            match value {
                None => Ok(default),
                Some(value) => parse(&value).map_err(|problem| ConfigError {
                    variable,
                    value,
                    problem,
                }),
            }
        }
        let (gpus, watches) = parsed(
            "ROCOV_MODELGPU",
            text("ROCOV_MODELGPU")?,
            (Vec::new(), Watches::default()),
            |value| {
                let (gpus, watches) = Watches::split(value);
                Ok((parse_gpus(gpus)?, watches))
            },
        )?;
        if gpus.is_empty() {
            return Ok(None);
        }
        let tmp = ["ROCOV_MODELGPU_TMP", "TMPDIR"]
            .iter()
            .find_map(|name| variable(name).filter(|value| !value.is_empty()))
            .unwrap_or_else(|| "/tmp".into());
        Ok(Some(Self {
            gpus,
            watches,
            bar: parsed(
                "ROCOV_MODELGPU_BAR",
                text("ROCOV_MODELGPU_BAR")?,
                Bar::Large,
                |value| match value {
                    "small" => Ok(Bar::Small),
                    "large" => Ok(Bar::Large),
                    _ => Err(Problem::NotOneOf("small, large")),
                },
            )?,
            xgmi: parsed(
                "ROCOV_MODELGPU_XGMI",
                text("ROCOV_MODELGPU_XGMI")?,
                false,
                |value| match value {
                    "0" => Ok(false),
                    "1" => Ok(true),
                    _ => Err(Problem::NotOneOf("0, 1")),
                },
            )?,
            vram_bytes: parsed(
                "ROCOV_MODELGPU_VRAM_MIB",
                text("ROCOV_MODELGPU_VRAM_MIB")?,
                DEFAULT_VRAM_MIB,
                |value| match value.parse() {
                    Ok(mib @ 1..=MAX_VRAM_MIB) => Ok(mib),
                    _ => Err(Problem::Size),
                },
            )? << 20,
            threads: parsed(
                "ROCOV_MODELGPU_THREADS",
                text("ROCOV_MODELGPU_THREADS")?,
                processors(),
                |value| match value.parse() {
                    Ok(threads @ 1..=MAX_THREADS) => Ok(threads),
                    _ => Err(Problem::Threads),
                },
            )?,
            tmp: tmp.into(),
            journal: variable("ROCOV_JOURNAL")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            log: parsed(
                "ROCOV_MODELGPU_LOG",
                text("ROCOV_MODELGPU_LOG")?,
                None,
                |value| parse_log(value).map(Some),
            )?,
            instructions: text("ROCOV_MODELGPU_INSTRUCTIONS")?
                .map(|value| parse_destination(&value)),
            fidelity: text("ROCOV_MODELGPU_FIDELITY")?.map(|value| parse_destination(&value)),
            traces: parsed(
                "ROCOV_MODELGPU_TRACE",
                text("ROCOV_MODELGPU_TRACE")?,
                false,
                |value| match value {
                    "0" => Ok(false),
                    "1" => Ok(true),
                    _ => Err(Problem::NotOneOf("0, 1")),
                },
            )?,
        }))
    }
}

/// The processors that this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS))
}

/// `TARGET[xN][,TARGET[xN]...]`
fn parse_gpus(value: &str) -> Result<Vec<Target>, Problem> {
    let mut gpus = Vec::new();
    for item in value.split(',') {
        // The name itself has an x in "gfx"; the count's x comes later.
        let (name, count) = match item.get(3..).and_then(|rest| rest.split_once('x')) {
            Some((digits, count)) => (&item[..3 + digits.len()], count),
            None => (item, "1"),
        };
        let target: Target = name
            .parse()
            .map_err(|_| Problem::Target(name.to_string()))?;
        let count = match count.parse::<usize>() {
            Ok(count @ 1..=MAX_GPUS) => count,
            _ => return Err(Problem::Count(count.to_string())),
        };
        gpus.extend(std::iter::repeat_n(target, count));
    }
    match gpus.len() {
        1..=MAX_GPUS => Ok(gpus),
        count => Err(Problem::TooMany(count)),
    }
}

/// A file; `2` is standard error.
fn parse_destination(file: &str) -> Destination {
    match file {
        "2" => Destination::Stderr,
        file => Destination::File(file.into()),
    }
}

/// `FILE[:LEVEL]`. A colon belongs to the file's name unless only a
/// number follows it.
fn parse_log(value: &str) -> Result<LogConfig, Problem> {
    let (file, level) = match value.rsplit_once(':') {
        Some((file, level)) if level.bytes().all(|byte| byte.is_ascii_digit()) => match level {
            "1" => (file, 1),
            "2" => (file, 2),
            _ => return Err(Problem::Level(level.to_string())),
        },
        _ => (value, 1),
    };
    let destination = parse_destination(file);
    Ok(LogConfig { destination, level })
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
