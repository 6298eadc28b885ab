//! The schema of `--json`.

/// Number of the schema of `--json`. A field that is only added does not change it.
pub(super) const VERSION: u32 = 1;
