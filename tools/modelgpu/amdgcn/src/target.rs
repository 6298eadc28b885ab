//! The modelled processors.

use std::fmt;
use std::str::FromStr;

use crate::compute_units::ComputeUnits;

/// A processor whose code objects the interpreter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// MI200 series.
    Gfx90a,
    /// MI300 series.
    Gfx942,
}

/// A processor name that is not among [`Target::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target {0:?} is not modelled; gfx90a and gfx942 are")]
pub struct UnknownTarget(pub String);

impl Target {
    /// Every modelled processor.
    pub const ALL: [Self; 2] = [Self::Gfx90a, Self::Gfx942];

    /// The processor's name as compilers and the HSA runtime spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
        }
    }

    /// The processor in an ELF header's `e_flags`: `EF_AMDGPU_MACH` is the low byte (LLVM's
    /// AMDGPUUsage, "AMDGPU EF_AMDGPU_MACH Values").
    pub fn from_elf_flags(flags: u32) -> Option<Self> {
        match flags & 0xff {
            0x3f => Some(Self::Gfx90a),
            0x4c => Some(Self::Gfx942),
            _ => None,
        }
    }

    /// The compute units of a GPU of this target.
    pub const fn compute_units(self) -> ComputeUnits {
        ComputeUnits::of(self)
    }

    /// Returns whether a GPU has several XCCs, and waves read theirs in the register XCC_ID.
    pub(crate) fn has_xcc_id(self) -> bool {
        self == Self::Gfx942
    }

    /// Returns whether waves start with an initialised flat scratch address and no private segment
    /// offset ("architected flat scratch" in LLVM's AMDGPUUsage).
    pub(crate) fn has_architected_flat_scratch(self) -> bool {
        self == Self::Gfx942
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        Self::ALL
            .into_iter()
            .find(|target| target.name() == name)
            .ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}
