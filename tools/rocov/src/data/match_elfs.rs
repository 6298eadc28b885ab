//! Pairs profiles with device ELFs, by their identity.

use anyhow::{Error, Result};

use super::components::Components;
use super::matched_elfs::MatchedElfs;
use super::{ReportableData, partial_profiles};
use crate::llvm::LlvmTools;
use crate::support::failure::failure;
use crate::term::warnings::Warnings;

/// The error that no profile in a data directory is of the given components.
#[derive(Debug, thiserror::Error)]
#[error(
    "no profile in {0} belongs to these components and archs: they are not instrumented, were not loaded, or were \
     rebuilt since: compile them with the flags that `rocov flags` prints, and run them again"
)]
pub(crate) struct NotOfComponents(String);

impl ReportableData {
    /// Pairs all profiles with device ELFs: those that are kept, then those that the user named.
    pub(crate) fn match_all_elfs(&self) -> MatchedElfs<'_> {
        MatchedElfs::new(self)
    }

    /// Pairs the profiles of `archs` and `components` with device ELFs, and leaves out code objects
    /// without a coverage mapping and damaged profiles. All that is left out is a warning, and so are each partial
    /// profile and counts that are too low.
    ///
    /// # Errors
    ///
    /// Fails if nothing is left: with [`NotOfComponents`] if there are profiles of other components only.
    pub(crate) fn match_elfs(
        &self,
        archs: &[String],
        components: &Components,
        installed: &mut LlvmTools,
        warnings: &mut Warnings,
    ) -> Result<MatchedElfs<'_>> {
        let mut matched = self.match_all_elfs();
        let has_any = !matched.archs.is_empty();
        matched.select(archs, |identity| components.have(identity));
        if has_any && matched.archs.is_empty() && !components.are_all() {
            return Err(NotOfComponents(self.to_string()).into());
        }
        if matched.archs.is_empty() {
            warnings.extend(matched.left_out(self));
            return Err(self.no_device_elf());
        }
        warnings.extend(matched.leave_out_unmapped());
        if matched.archs.is_empty() {
            return Err(self.no_mapping());
        }
        matched.leave_out_damaged(self, installed, warnings);
        warnings.extend(partial_profiles::lines(&self.partial_profiles(&matched)));
        matched.find_non_atomic();
        warnings.extend(self.about_non_atomic(&matched));
        Ok(matched)
    }

    fn no_device_elf(&self) -> Error {
        failure!(
            "no profile in {self} belongs to device code that is kept there or in an --object file";
            "use --object to name the files that contained the kernels when they ran"
        )
    }

    fn no_mapping(&self) -> Error {
        failure!(
            "no code object in {self} has a coverage mapping";
            "compile the program with all the flags that `rocov flags` prints, -fcoverage-mapping among them, do not \
             strip it, and run it again"
        )
    }
}
