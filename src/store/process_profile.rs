//! Files of this process only, which several loads of a code object add to.

use std::fs::File;
use std::path::Path;

use crate::format::profraw::{Parts, Sum, encode};
use crate::store::OutputError;
use crate::store::atomic::write_atomic;
use crate::store::regular_file::{open_regular, read};

/// Adds the counts of `parts` to the profile at `path`, or makes the profile from `parts`, in one step.
///
/// # Errors
/// Fails if the file cannot be read or replaced, or is not a profile of this code. The file does not change
/// then.
pub(crate) fn add_to_own(path: &Path, parts: &Parts<'_>) -> Result<(), OutputError> {
    let ours = encode(parts);
    let Some(file) = open_regular(path, File::options().read(true))? else {
        return write_atomic(path, &ours);
    };
    let refused = |source| OutputError::Pool {
        path: path.to_owned(),
        source,
    };
    let mut sum = Sum::new(read(&file, path)?).map_err(refused)?;
    sum.add(&ours).map_err(refused)?;
    write_atomic(path, sum.bytes())
}
