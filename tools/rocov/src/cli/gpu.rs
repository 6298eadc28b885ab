//! The `--gpu` option: which GPU the program sees.

use std::fmt;
use std::str::FromStr;

/// Targets the modelled GPU executes.
const TARGETS: [&str; 9] = [
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250",
];
/// GPUs the modelled topology has room for.
const MAX_GPUS: u32 = 8;
/// The target of a plain `--gpu model`.
const DEFAULT_TARGET: &str = "gfx90a";

/// Modelled GPUs, in the order in which the runtime enumerates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelGpus {
    groups: Vec<Group>,
    /// True if the model reports kernels' mistakes with LDS.
    race: bool,
    /// True if the model reports results that kernels use too early.
    hazards: bool,
}

/// Consecutive GPUs of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    target: &'static str,
    count: u32,
}

/// The reason why a `--gpu` value is rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModelGpusError {
    /// There is no value.
    #[error("no GPU is named; allowed: model, model:TARGET[xN][,TARGET[xN]...]")]
    Empty,
    /// The value names no model.
    #[error("`{0}` is not a GPU; allowed: model, model:TARGET[xN][,TARGET[xN]...]")]
    NotAModel(String),
    /// A target that the model does not execute.
    #[error("`{0}` is not a modelled target; allowed: {allowed}, each with xN for N of them, e.g. gfx90ax2", allowed = TARGETS.join(", "))]
    UnknownTarget(String),
    /// A target is missing.
    #[error("a target is missing in `{0}`; allowed: {allowed}, each with xN for N of them, e.g. gfx90ax2", allowed = TARGETS.join(", "))]
    NoTarget(String),
    /// `TARGETxN` whose N is not a number from 1 to 8.
    #[error("`{0}` does not end in a number of GPUs; allowed after the x: 1 to {MAX_GPUS}")]
    BadCount(String),
    /// More GPUs in all than the model has room for.
    #[error("{0} GPUs are more than the model supports; allowed: 1 to {MAX_GPUS} in all")]
    TooMany(u32),
}

impl FromStr for ModelGpus {
    type Err = ModelGpusError;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        let (value, race, hazards) = split_watches(value);
        let groups = match value.split_once(':') {
            None if value == "model" => vec![Group {
                target: DEFAULT_TARGET,
                count: 1,
            }],
            Some(("model", list)) if list.split(',').any(str::is_empty) => {
                return Err(ModelGpusError::NoTarget(value.to_owned()));
            }
            Some(("model", list)) => list
                .split(',')
                .map(Group::parse)
                .collect::<Result<_, _>>()?,
            None if value.is_empty() => return Err(ModelGpusError::Empty),
            _ => return Err(ModelGpusError::NotAModel(value.to_owned())),
        };
        // At most 8 per group, so the sum only overflows for a value longer than any argv.
        let total = groups.iter().map(|group| group.count).sum();
        if total > MAX_GPUS {
            return Err(ModelGpusError::TooMany(total));
        }
        Ok(Self {
            groups,
            race,
            hazards,
        })
    }
}

/// Splits a value from the words behind it, each at most once: `,race` and `,hazards`, in any order.
fn split_watches(mut value: &str) -> (&str, bool, bool) {
    let (mut race, mut hazards) = (false, false);
    loop {
        match (value.strip_suffix(",race"), value.strip_suffix(",hazards")) {
            (Some(rest), _) if !race => (value, race) = (rest, true),
            (_, Some(rest)) if !hazards => (value, hazards) = (rest, true),
            _ => return (value, race, hazards),
        }
    }
}

impl Group {
    fn parse(text: &str) -> Result<Self, ModelGpusError> {
        let unknown = || ModelGpusError::UnknownTarget(text.to_owned());
        let target = TARGETS
            .into_iter()
            .find(|target| text.starts_with(target))
            .ok_or_else(unknown)?;
        let count = match &text[target.len()..] {
            "" => 1,
            rest => {
                let count = rest.strip_prefix('x').ok_or_else(unknown)?;
                // Digits only: parse() takes a sign as well.
                Some(count)
                    .filter(|count| count.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|count| count.parse().ok())
                    .filter(|count| (1..=MAX_GPUS).contains(count))
                    .ok_or_else(|| ModelGpusError::BadCount(text.to_owned()))?
            }
        };
        Ok(Self { target, count })
    }
}

impl ModelGpus {
    /// The targets of the GPUs, in their order.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &'static str> {
        self.groups.iter().map(|group| group.target)
    }

    /// Returns whether the model executes code for this target.
    pub(crate) fn executes(target: &str) -> bool {
        TARGETS.contains(&target)
    }
}

/// Displays the value of `ROCOV_MODELGPU`.
impl fmt::Display for ModelGpus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, group) in self.groups.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            formatter.write_str(group.target)?;
            if group.count > 1 {
                write!(formatter, "x{}", group.count)?;
            }
        }
        if self.race {
            formatter.write_str(",race")?;
        }
        if self.hazards {
            formatter.write_str(",hazards")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment_of(value: &str) -> String {
        value.parse::<ModelGpus>().unwrap().to_string()
    }

    fn refusal_of(value: &str) -> String {
        value.parse::<ModelGpus>().unwrap_err().to_string()
    }

    #[test]
    fn accepted_values_become_the_models_environment() {
        for (value, environment) in [
            ("model", "gfx90a"),
            ("model:gfx942", "gfx942"),
            ("model,race", "gfx90a,race"),
            ("model:gfx942x2,race", "gfx942x2,race"),
            ("model,hazards", "gfx90a,hazards"),
            ("model:gfx942,hazards,race", "gfx942,race,hazards"),
            ("model:gfx90ax1", "gfx90a"),
            ("model:gfx90ax8", "gfx90ax8"),
            ("model:gfx90ax2,gfx942", "gfx90ax2,gfx942"),
            ("model:gfx942,gfx90a,gfx942", "gfx942,gfx90a,gfx942"),
        ] {
            assert_eq!(environment_of(value), environment, "{value}");
        }
    }

    #[test]
    fn refused_values_are_named_with_what_is_allowed() {
        for (value, found) in [
            ("", "no GPU is named"),
            ("real", "`real`"),
            ("gfx90a", "`gfx90a`"),
            ("model:", "a target is missing in `model:`"),
            ("model:gfx900", "`gfx900`"),
            ("model:gfx90ay2", "`gfx90ay2`"),
            ("model:gfx90a,", "a target is missing in `model:gfx90a,`"),
            ("model:gfx90ax0", "`gfx90ax0`"),
            ("model:gfx90ax9", "`gfx90ax9`"),
            ("model:gfx90ax", "`gfx90ax`"),
            ("model:gfx90axx2", "`gfx90axx2`"),
            ("model:gfx90ax-1", "`gfx90ax-1`"),
            ("model:gfx90ax+2", "`gfx90ax+2`"),
            ("model:gfx90ax5,gfx942x4", "9 GPUs"),
            ("model:gfx90a,hazards,hazards", "`hazards`"),
        ] {
            let message = refusal_of(value);
            assert!(message.contains(found), "{value}: {message}");
            assert!(message.contains("; allowed"), "{value}: {message}");
            assert!(!message.contains("``"), "{value}: {message}");
        }
    }
}
