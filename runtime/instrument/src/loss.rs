//! The reasons why code runs uncounted.

use std::borrow::Cow;
use std::path::PathBuf;

use rocov::format::codeobject::CodeObjectError;
use rocov::instrument::ptx::PtxRefusal;
use rocov::support::diagnostic::Remedy;
use thiserror::Error;

use crate::driver::{Capability, Refusal};
use crate::framework::Framework;

/// The reason why code runs uncounted, and the next step.
#[derive(Debug, Error)]
pub(crate) enum Loss {
    #[error("the CUDA driver lacks a function that rocov needs")]
    NoDriver,
    #[error("the CUDA driver lists no GPU")]
    NoGpu,
    #[error(
        "the GPUs have several architectures ({gpus}), but it contains code for only one (sm_{own})"
    )]
    SeveralArchitectures { gpus: String, own: String },
    #[error("it has no PTX")]
    NoPtx { gpu: Capability },
    #[error("it is a cubin without PTX")]
    Cubin,
    #[error("it is a cubin without PTX")]
    CubinOf(Framework),
    #[error("its PTX is for {}, but the GPU is sm_{}{}", found.join(", "), gpu.0, gpu.1)]
    NoneFits { gpu: Capability, found: Vec<String> },
    #[error("{0}")]
    Damaged(String),
    #[error("it starts with the bytes {0:02x?}, which rocov does not recognize")]
    Unknown([u8; 4]),
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("rocov cannot instrument its PTX: {0}")]
    NotChanged(#[from] PtxRefusal),
    #[error("the driver cannot compile its PTX ({0})")]
    NotCompiled(Refusal),
    #[error("rocov cannot read the code that the driver compiled: {0}")]
    NotRead(CodeObjectError),
    /// The message about a reason that is known from before.
    #[error("{0}")]
    Known(String),
    #[error("internal error")]
    Internal,
}

impl Remedy for Loss {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NoDriver => "install one of CUDA 12 or later",
            Self::NoGpu => "check nvidia-smi",
            Self::SeveralArchitectures { .. } => {
                "select GPUs of one architecture with CUDA_VISIBLE_DEVICES"
            }
            Self::NoPtx { gpu } | Self::NoneFits { gpu, .. } => return with_ptx(*gpu).into(),
            Self::Cubin => {
                "load PTX or a fat binary with PTX, or compile it again under rocov if it is from a cache"
            }
            Self::CubinOf(framework) => return framework.next_step().into(),
            Self::Damaged(_) => "compile it again",
            Self::Unreadable { .. } => "make it readable",
            Self::NotCompiled(_) => {
                "compile with a toolkit that is no newer than the driver, or report it"
            }
            Self::NotChanged(refusal) => return refusal.remedy(),
            Self::Unknown(_) | Self::NotRead(_) | Self::Internal => "report it",
            Self::Known(_) => "",
        })
    }
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
