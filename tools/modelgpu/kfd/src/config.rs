//! The modelled GPU's environment.
//!
//! | variable | value | default |
//! |---|---|---|
//! | `ROCOV_MODELGPU` | `TARGET[xN][,TARGET[xN]...]`: the GPUs in HSA order, 1 to 8 | none: no model |
//! | `ROCOV_MODELGPU_BAR` | `small`, `large`: whether the host can reach device memory | `small` |
//! | `ROCOV_MODELGPU_XGMI` | `0`, `1`: GPUs linked by XGMI instead of PCIe | `0` |
//! | `ROCOV_MODELGPU_VRAM_MIB` | device memory of each GPU in MiB | 16384 |
//! | `ROCOV_MODELGPU_LOG` | `FILE[:LEVEL]`, or `2` for standard error; level 1 or 2 | no log |
//! | `ROCOV_MODELGPU_TMP` | where the generated sysfs tree lies | `$TMPDIR`, then `/tmp` |
//!
//! An empty value counts as unset.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use modelgpu_amdgcn::Target;
use thiserror::Error;

/// The most GPUs of one machine. The driver's deprecated aperture call knows seven, real machines
/// have eight.
pub(crate) const MAX_GPUS: usize = 8;

/// Default device memory of each GPU in MiB.
const DEFAULT_VRAM_MIB: u64 = 16 * 1024;
/// The most device memory of one GPU in MiB: 1 TiB.
const MAX_VRAM_MIB: u64 = 1024 * 1024;

/// The part of device memory that the host can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// None: a stray host access crashes, as on most machines.
    Small,
    /// All of it.
    Large,
}

/// The destination of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogTarget {
    /// Standard error.
    Stderr,
    /// A file that the log appends to.
    File(PathBuf),
}

/// The log's target and level: 1 queues, dispatches and copies, 2 every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogConfig {
    pub(crate) target: LogTarget,
    pub(crate) level: u8,
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
    /// The directory of the generated sysfs tree.
    pub(crate) tmp: PathBuf,
    pub(crate) log: Option<LogConfig>,
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
        let gpus = parsed(
            "ROCOV_MODELGPU",
            text("ROCOV_MODELGPU")?,
            Vec::new(),
            parse_gpus,
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
            bar: parsed(
                "ROCOV_MODELGPU_BAR",
                text("ROCOV_MODELGPU_BAR")?,
                Bar::Small,
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
            tmp: tmp.into(),
            log: parsed(
                "ROCOV_MODELGPU_LOG",
                text("ROCOV_MODELGPU_LOG")?,
                None,
                |value| parse_log(value).map(Some),
            )?,
        }))
    }
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

/// `FILE[:LEVEL]`; the file `2` is standard error. A colon belongs to the file's name unless only a
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
    let target = match file {
        "2" => LogTarget::Stderr,
        file => LogTarget::File(file.into()),
    };
    Ok(LogConfig { target, level })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Config>, String> {
        Config::read(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        })
        .map_err(|error| error.to_string())
    }

    fn gpus(value: &str) -> Vec<Target> {
        read(&[("ROCOV_MODELGPU", value)]).unwrap().unwrap().gpus
    }

    #[test]
    fn no_variable_or_an_empty_one_means_no_model() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("ROCOV_MODELGPU", "")]), Ok(None));
        assert_eq!(read(&[("ROCOV_MODELGPU_BAR", "small")]), Ok(None));
    }

    #[test]
    fn gpus_are_listed_in_order() {
        use Target::{Gfx90a, Gfx942};
        assert_eq!(gpus("gfx90a"), [Gfx90a]);
        assert_eq!(gpus("gfx90ax2"), [Gfx90a, Gfx90a]);
        assert_eq!(gpus("gfx942x2,gfx90a"), [Gfx942, Gfx942, Gfx90a]);
        assert_eq!(gpus("gfx90ax8").len(), 8);
    }

    #[test]
    fn defaults() {
        let config = read(&[("ROCOV_MODELGPU", "gfx90a")]).unwrap().unwrap();
        assert_eq!(config.bar, Bar::Small);
        assert_eq!(config.vram_bytes, 16 << 30);
        assert_eq!(config.tmp, PathBuf::from("/tmp"));
        assert_eq!(config.log, None);
        assert!(!config.xgmi);
    }

    #[test]
    fn companions() {
        let config = read(&[
            ("ROCOV_MODELGPU", "gfx90a"),
            ("ROCOV_MODELGPU_BAR", "large"),
            ("ROCOV_MODELGPU_XGMI", "1"),
            ("ROCOV_MODELGPU_VRAM_MIB", "64"),
            ("ROCOV_MODELGPU_LOG", "a:b.log:2"),
            ("TMPDIR", "/var/tmp"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(config.bar, Bar::Large);
        assert!(config.xgmi);
        assert_eq!(config.vram_bytes, 64 << 20);
        assert_eq!(config.tmp, PathBuf::from("/var/tmp"));
        let log = config.log.unwrap();
        assert_eq!(log.target, LogTarget::File("a:b.log".into()));
        assert_eq!(log.level, 2);
    }

    #[test]
    fn the_file_2_is_standard_error() {
        assert_eq!(parse_log("2").unwrap().target, LogTarget::Stderr);
        assert_eq!(parse_log("2:2").unwrap().level, 2);
    }

    #[test]
    fn bad_values_name_themselves_and_what_is_allowed() {
        let error = |variable, value| {
            // The variable under test comes first and wins.
            read(&[(variable, value), ("ROCOV_MODELGPU", "gfx90a")]).unwrap_err()
        };
        assert_eq!(
            error("ROCOV_MODELGPU", "gfx1030"),
            "ROCOV_MODELGPU=\"gfx1030\": \"gfx1030\" is no modelled GPU; allowed: \
             TARGET[xN][,TARGET[xN]...] with TARGET one of gfx90a, gfx942"
        );
        assert_eq!(
            error("ROCOV_MODELGPU", "gfx90ax0"),
            "ROCOV_MODELGPU=\"gfx90ax0\": \"0\" is no number of GPUs; allowed: 1 to 8"
        );
        assert_eq!(
            error("ROCOV_MODELGPU", "gfx90ax8,gfx942"),
            "ROCOV_MODELGPU=\"gfx90ax8,gfx942\": 9 GPUs are too many; allowed: 1 to 8 in all"
        );
        assert_eq!(
            error("ROCOV_MODELGPU_BAR", "big"),
            "ROCOV_MODELGPU_BAR=\"big\": allowed: small, large"
        );
        assert_eq!(
            error("ROCOV_MODELGPU_VRAM_MIB", "0"),
            "ROCOV_MODELGPU_VRAM_MIB=\"0\": allowed: 1 to 1048576 (MiB)"
        );
        assert_eq!(
            error("ROCOV_MODELGPU_LOG", "x:7"),
            "ROCOV_MODELGPU_LOG=\"x:7\": \"7\" is no log level; allowed: FILE[:LEVEL] with \
             LEVEL 1 or 2"
        );
    }
}
