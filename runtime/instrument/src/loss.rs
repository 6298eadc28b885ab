//! The reasons why code runs uncounted.

use std::path::PathBuf;

use rocov::format::codeobject::CodeObjectError;
use rocov::instrument::ptx::PtxRefusal;
use thiserror::Error;

use crate::driver::{Capability, Refusal};
use crate::framework::Framework;

/// The reason why code runs uncounted, and the next step.
#[derive(Debug, Error)]
pub(crate) enum Loss {
    #[error("the CUDA driver lacks a function that rocov needs: install one of CUDA 12 or later")]
    NoDriver,
    #[error("the CUDA driver lists no GPU: check nvidia-smi")]
    NoGpu,
    #[error(
        "the GPUs have several architectures ({gpus}), and it has code for only one (sm_{own}): choose GPUs of one architecture with CUDA_VISIBLE_DEVICES"
    )]
    SeveralArchitectures { gpus: String, own: String },
    #[error("it has no PTX: {}", with_ptx(*gpu))]
    NoPtx { gpu: Capability },
    #[error(
        "it is a cubin, and has no PTX: load PTX or a fat binary with PTX, or compile it again under rocov if it is from a cache"
    )]
    Cubin,
    #[error("it is a cubin, and has no PTX: {}", .0.next_step())]
    CubinOf(Framework),
    #[error("its PTX is for {}, and the GPU is sm_{}{}: {}", found.join(", "), gpu.0, gpu.1, with_ptx(*gpu))]
    NoneFits { gpu: Capability, found: Vec<String> },
    #[error("{0}: compile it again")]
    Damaged(String),
    #[error("it starts with bytes {0:02x?}, which rocov does not recognize: report it")]
    Unknown([u8; 4]),
    #[error("cannot read {}: {source}: make it readable", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("rocov cannot instrument its PTX: {0}: report it")]
    NotChanged(#[from] PtxRefusal),
    #[error(
        "the driver does not compile its PTX ({0}): compile with a toolkit that is not newer than the driver, or report it"
    )]
    NotCompiled(Refusal),
    #[error("rocov cannot read the code that the driver compiled: {0}: report it")]
    NotRead(CodeObjectError),
    /// The text of a reason that is known from before.
    #[error("{0}")]
    Known(String),
    #[error("internal error: report it")]
    Internal,
}

impl Loss {
    /// The name of the framework that made the code, if it is known.
    pub(crate) fn maker(&self) -> Option<&'static str> {
        match self {
            Self::CubinOf(framework) => Some(framework.name()),
            _ => None,
        }
    }

    /// Returns whether the code will be refused whenever this driver gets it.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::NotChanged(_) => true,
            Self::NotCompiled(refusal) => refusal.is_lasting(),
            _ => false,
        }
    }
}

/// The next step for code that has no PTX for a GPU.
fn with_ptx((major, minor): Capability) -> String {
    format!(
        "compile it with nvcc -gencode arch=compute_{major}{minor},code=compute_{major}{minor}, too"
    )
}
