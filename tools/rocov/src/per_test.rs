//! What single tests counted: the profiles of each label.

use crate::llvm_tools::Installed;
use crate::matching::Matching;
use crate::merged::Merged;
use anyhow::{Result, bail};
use rocov::output::Label;
use std::path::Path;

/// What stands for the label of profiles that have none.
const UNLABELLED: &str = "(no label)";

/// The profiles of each label, merged, by its name.
///
/// # Errors
///
/// When no profile has a label, or a tool fails.
pub(crate) fn merged<'a>(
    matching: &Matching<'a>,
    directory: &Path,
    installed: &Installed,
) -> Result<Vec<(String, Merged<'a>)>> {
    let labels = matching.labels();
    if labels.iter().all(Option::is_none) {
        bail!(
            "no labelled profiles in {}: run each test under `rocov run --label NAME`",
            directory.display()
        );
    }
    let test = |label: Option<&Label>| {
        let name = label.map_or(UNLABELLED.to_owned(), ToString::to_string);
        let (merged, _) = Merged::of(&mut matching.of_label(label), directory, None, installed)?;
        Ok((name, merged))
    };
    labels.into_iter().map(test).collect()
}
