//! The directories that a command reads, with data sets among them.

use std::path::{Path, PathBuf};

#[cfg(not(feature = "fleet"))]
use anyhow::Context;
use anyhow::Result;
use rocov::store::layout::is_data_set;
use rocov::support::diagnostic::fail;
#[cfg(feature = "fleet")]
use rocov_fleet::{DataSet, RunCondition};

#[cfg(not(feature = "fleet"))]
use super::without_fleet::{RunCondition, without_data_sets};
use crate::profdata::pooled::Pool;

/// The directories of a command's input. Those that the user gives for data sets are pooled directories of their runs.
pub(crate) struct DataSetInputs {
    directories: Vec<PathBuf>,
    /// They go with the value.
    pools: Vec<Pool>,
}

impl DataSetInputs {
    /// Takes the runs that meet all `conditions` from data sets among `directories`.
    ///
    /// # Errors
    ///
    /// Fails if a data set has none, or is damaged, or if there are conditions and no data set.
    pub(crate) fn read<P: AsRef<Path>>(
        directories: &[P],
        conditions: &[RunCondition],
    ) -> Result<Self> {
        let mut inputs = Self {
            directories: Vec::new(),
            pools: Vec::new(),
        };
        for directory in directories {
            let directory = directory.as_ref();
            if !is_data_set(directory) {
                inputs.directories.push(directory.to_owned());
                continue;
            }
            let pool = pool(directory, conditions)?;
            inputs.directories.push(pool.path().to_owned());
            inputs.pools.push(pool);
        }
        if let (true, Some(first)) = (inputs.pools.is_empty(), conditions.first()) {
            fail!(
                "--where {first} is for data sets, but none of the directories is one";
                "leave it out, or name the directory that `rocov export --format parquet` wrote"
            );
        }
        Ok(inputs)
    }

    /// The directories.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }
}

/// Makes a pooled directory of the runs of a data set that meet all `conditions`.
#[cfg(feature = "fleet")]
fn pool(set: &Path, conditions: &[RunCondition]) -> Result<Pool> {
    let taken = super::back::pool(&DataSet::open(set)?, conditions, None)?;
    Ok(taken.pool)
}

/// No data set can be read.
#[cfg(not(feature = "fleet"))]
fn pool(set: &Path, _: &[RunCondition]) -> Result<Pool> {
    Err(without_data_sets()).with_context(|| format!("cannot read {}", set.display()))
}
