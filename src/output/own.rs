//! Files of this process alone that several loads of a code object add to.

use std::fs::File;
use std::path::Path;

use super::OutputError;
use super::atomic::write_atomic;
use super::regular::{open_regular, read};
use crate::profraw::{Parts, Sum, encode};

/// Adds the counts of `parts` to the profile at `path`, or makes it of `parts`, in one step.
///
/// # Errors
/// Fails, with the file as it was, where it cannot be read or replaced, or is not a profile of the
/// same code.
pub(crate) fn add_to_own(path: &Path, parts: &Parts<'_>) -> Result<(), OutputError> {
    let ours = encode(parts);
    let Some(file) = open_regular(path, File::options().read(true))? else {
        return write_atomic(path, &ours);
    };
    let refused = |source| OutputError::Pool {
        path: path.to_owned(),
        source,
    };
    let mut sum = Sum::of(read(&file, path)?).map_err(refused)?;
    sum.add(&ours).map_err(refused)?;
    write_atomic(path, sum.bytes())
}
