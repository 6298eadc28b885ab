//! The processors, and facts about each.

use std::fmt;
use std::str::FromStr;

/// A processor whose instructions this crate decodes, and whose code objects the modelled GPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// MI50, MI60 and Radeon VII.
    Gfx906,
    /// MI100.
    Gfx908,
    /// MI200 series.
    Gfx90a,
    /// MI300 series.
    Gfx942,
    /// MI350 series.
    Gfx950,
    /// Radeon RX 6800 and 6900 series, and PRO W6800.
    Gfx1030,
    /// Radeon RX 7900 and PRO W7900 series.
    Gfx1100,
    /// Radeon RX 9070 series.
    Gfx1201,
    /// MI400 series.
    Gfx1250,
}

/// Targets with one set of encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// GCN 5 and CDNA.
    Gfx9,
    /// RDNA 2.
    Gfx10,
    /// RDNA 3.
    Gfx11,
    /// RDNA 4, and the CDNA with encodings of its kind.
    Gfx12,
}

/// A processor name that is not among [`Target::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target {0:?} is not modelled; {names} are", names = Target::names())]
pub struct UnknownTarget(pub String);

impl Target {
    /// Every modelled processor.
    pub const ALL: [Self; 9] = [
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx950,
        Self::Gfx1030,
        Self::Gfx1100,
        Self::Gfx1201,
        Self::Gfx1250,
    ];

    /// The processors whose waves may have 64 work-items: all but the last ones.
    pub const WAVE64: &[Self] = {
        let (with, [last]) = Self::ALL.split_at(Self::ALL.len() - 1) else {
            panic!("one is left");
        };
        assert!(last.has_wave32_only());
        with
    };

    /// The processor's name as compilers and the HSA runtime spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
            Self::Gfx1030 => "gfx1030",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1201 => "gfx1201",
            Self::Gfx1250 => "gfx1250",
        }
    }

    /// The names of all processors, for a message.
    pub fn names() -> String {
        Self::list(&Self::ALL)
    }

    /// The names of some processors, for a message.
    pub fn list(targets: &[Self]) -> String {
        let names: Vec<_> = targets.iter().copied().map(Self::name).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} and {last}", others.join(", "))
            }
            _ => names.concat(),
        }
    }

    /// A processor that runs code objects with an ELF header's `e_flags`: `EF_AMDGPU_MACH` is the low
    /// byte (LLVM's AMDGPUUsage, "AMDGPU EF_AMDGPU_MACH Values"). Several processors run the code of a
    /// generic target; this is the first of them.
    pub fn from_elf_flags(flags: u32) -> Option<Self> {
        /// Code that is common to gfx942 and gfx950.
        const GFX9_4_GENERIC: u32 = 0x5f;
        /// Code that is common to all of RDNA 2.
        const GFX10_3_GENERIC: u32 = 0x53;
        /// Code that is common to all of RDNA 3.
        const GFX11_GENERIC: u32 = 0x54;
        /// Code that is common to all of RDNA 4.
        const GFX12_GENERIC: u32 = 0x59;
        /// Code for gfx1250 and its successors (LLVM 23's `EF_AMDGPU_MACH_AMDGCN_GFX12_5_GENERIC`).
        const GFX12_5_GENERIC: u32 = 0x5b;
        match flags & 0xff {
            0x2f => Some(Self::Gfx906),
            0x30 => Some(Self::Gfx908),
            0x3f => Some(Self::Gfx90a),
            0x4c | GFX9_4_GENERIC => Some(Self::Gfx942),
            0x4f => Some(Self::Gfx950),
            0x36 | GFX10_3_GENERIC => Some(Self::Gfx1030),
            0x41 | GFX11_GENERIC => Some(Self::Gfx1100),
            0x4e | GFX12_GENERIC => Some(Self::Gfx1201),
            0x49 | GFX12_5_GENERIC => Some(Self::Gfx1250),
            _ => None,
        }
    }

    /// The encodings of the target's instructions.
    pub fn generation(self) -> Generation {
        match self {
            Self::Gfx906 | Self::Gfx908 | Self::Gfx90a | Self::Gfx942 | Self::Gfx950 => {
                Generation::Gfx9
            }
            Self::Gfx1030 => Generation::Gfx10,
            Self::Gfx1100 => Generation::Gfx11,
            Self::Gfx1201 | Self::Gfx1250 => Generation::Gfx12,
        }
    }

    /// The most bytes of LDS of a workgroup.
    pub const fn max_lds(self) -> u32 {
        match self {
            Self::Gfx950 => 160 * 1024,
            Self::Gfx1250 => 320 * 1024,
            _ => 64 * 1024,
        }
    }

    /// The unit in which the hardware allots LDS, in bytes (LLVM's AMDGPUUsage, GRANULATED_LDS_SIZE; of gfx1250,
    /// LLVM writes the field for Mesa only).
    pub const fn lds_granule(self) -> u32 {
        match self {
            Self::Gfx950 => 1280,
            Self::Gfx1250 => 2048,
            _ => 512,
        }
    }

    /// The vector registers that an instruction can name, without accumulation registers.
    pub const fn max_vgprs(self) -> u16 {
        match self {
            Self::Gfx1250 => 1024,
            _ => 256,
        }
    }

    /// Returns whether all waves have 32 work-items.
    pub const fn has_wave32_only(self) -> bool {
        matches!(self, Self::Gfx1250)
    }

    /// Returns whether the offset in a vector register from a scalar address is a signed number. LLVM folds the sign
    /// extension of an index into an access on these targets alone.
    pub const fn has_signed_offsets(self) -> bool {
        matches!(self, Self::Gfx1250)
    }

    /// Returns whether a flat address of scratch names the lane that owns the memory, too ("globally addressable
    /// scratch" in LLVM's sources).
    pub const fn has_global_scratch(self) -> bool {
        matches!(self, Self::Gfx1250)
    }

    /// Returns whether a GPU has several XCCs, and waves read theirs in the register XCC_ID.
    pub fn has_xcc_id(self) -> bool {
        matches!(self, Self::Gfx942 | Self::Gfx950)
    }

    /// Returns whether waves find their workgroup's id in trap registers ("architected workgroup IDs" in
    /// LLVM's AMDGPUUsage).
    pub fn has_architected_ids(self) -> bool {
        self.generation() == Generation::Gfx12
    }

    /// Returns whether a clamped NaN becomes 0 in every kernel. Other targets have a bit for it.
    pub fn always_clamps_nan(self) -> bool {
        self.generation() == Generation::Gfx12
    }

    /// Returns whether waves start with an initialised flat scratch address and no private segment
    /// offset ("architected flat scratch" in LLVM's AMDGPUUsage).
    pub fn has_architected_flat_scratch(self) -> bool {
        !matches!(
            self,
            Self::Gfx906 | Self::Gfx908 | Self::Gfx90a | Self::Gfx1030
        )
    }

    /// Returns whether a vector instruction takes operands from either of two files in one set of registers ("unified
    /// register file" in LLVM's AMDGPUUsage): gfx908 has a separate file for accumulation, and gfx906 none.
    pub fn has_unified_registers(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942 | Self::Gfx950)
    }

    /// Returns whether the ids of a work-item are packed into one register. Earlier targets have a register for each
    /// dimension.
    pub fn has_packed_ids(self) -> bool {
        !matches!(self, Self::Gfx906 | Self::Gfx908 | Self::Gfx1030)
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
