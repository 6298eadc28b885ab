//! Code that the CUDA driver compiles as the program runs: PTX without a cubin.

use std::path::Path;

use rocov::format::bundle::Container;
use rocov::format::ptx;

use super::finding::{Finding, compile_with};
use crate::data::ptx::Ptx;

/// The facts about the first PTX of a container.
pub(super) struct CompiledLater {
    architecture: String,
    is_instrumented: bool,
}

impl CompiledLater {
    /// `None` if the container has no PTX.
    pub(super) fn from_container(container: &Container<'_>) -> Option<Self> {
        let first = container.images.iter().find_map(Ptx::from_image)?;
        Some(Self {
            architecture: first.architecture.to_owned(),
            is_instrumented: ptx::is_instrumented(first.text),
        })
    }

    pub(super) fn finding(&self, path: &Path) -> Finding {
        let architecture = &self.architecture;
        let found =
            format!("PTX for {architecture}, which the driver compiles as the program runs");
        if self.is_instrumented {
            return Finding::ok(path.display(), format!("{found}: instrumented"));
        }
        let target = architecture.replace("compute_", "sm_");
        Finding::missing(
            path.display(),
            format!("{found}: not instrumented"),
            compile_with(&target),
        )
    }
}
