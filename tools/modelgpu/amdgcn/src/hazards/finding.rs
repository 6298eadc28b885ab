//! A hazard that the watch has found.

use std::fmt;

/// The rules by name, as messages print them, and as one message for each rule and kernel counts them.
pub(super) mod rule {
    pub(crate) const ACCUMULATOR: &str = "accvgpr-write";
    pub(crate) const ACCUMULATOR_MEMORY: &str = "accvgpr-memory";
    pub(crate) const DIVISION: &str = "valu-vcc-div-fmas";
    pub(crate) const DOT: &str = "dot-result";
    pub(crate) const DOUBLES_AND_FMA: &str = "dgemm-fma-f64";
    pub(crate) const DOUBLES_AND_MEMORY: &str = "dgemm-vmem";
    pub(crate) const DPP: &str = "vgpr-dpp";
    pub(crate) const EXEC_DPP: &str = "valu-exec-dpp";
    pub(crate) const EXEC_LANE: &str = "valu-exec-lane";
    pub(crate) const EXEC_MFMA: &str = "valu-exec-mfma";
    pub(crate) const EXEC_PERMLANE: &str = "vcmpx-permlane";
    pub(crate) const GETREG: &str = "setreg-getreg";
    pub(crate) const HALF: &str = "shifted-result";
    pub(crate) const LANE_SELECT: &str = "valu-sgpr-lane-select";
    pub(crate) const M0: &str = "salu-m0";
    pub(crate) const MAD: &str = "mad-forwarding";
    pub(crate) const MASK: &str = "mask-write";
    pub(crate) const MFMA_ADDEND: &str = "mfma-srcc";
    pub(crate) const MFMA_FACTOR: &str = "mfma-srcab";
    pub(crate) const MFMA_KEPT: &str = "mfma-srcc-overwrite";
    pub(crate) const MFMA_OVERWRITE: &str = "mfma-overwrite";
    pub(crate) const MFMA_READ: &str = "mfma-read";
    pub(crate) const PARTIAL: &str = "partial-forwarding";
    pub(crate) const READLANE: &str = "vgpr-readlane";
    pub(crate) const RELEASE: &str = "dealloc-vgprs";
    pub(crate) const SETREG: &str = "setreg-setreg";
    pub(crate) const SGPR_VALU: &str = "valu-sgpr-valu";
    pub(crate) const SGPR_VMEM: &str = "valu-sgpr-vmem";
    pub(crate) const SGPR_READ: &str = "sgpr-read";
    pub(crate) const SHIFT: &str = "shift64-last-vgpr";
    pub(crate) const STORE: &str = "store-data";
    pub(crate) const SWAP: &str = "valu-permlane-swap";
    pub(crate) const TRANS: &str = "trans-use";
    pub(crate) const VALU_MFMA: &str = "valu-mfma";
    pub(crate) const WMMA: &str = "wmma";
}

/// An earlier instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Earlier {
    pub pc: u64,
    pub mnemonic: &'static str,
}

/// The register that two instructions use, and the use of the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Reads,
    Overwrites,
}

/// The change of the code that removes a hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A wait until no more events than this are outstanding.
    Count(&'static str, u32),
    /// So many further wait states.
    States(u64),
    /// A wait with a field of `s_waitcnt_depctr`.
    Depctr(&'static str),
    /// A wait with a field of `s_wait_alu`.
    Alu(&'static str),
    /// A vector instruction of another kind between the two.
    Vector,
    /// An `s_nop` before the instruction.
    Nop,
    /// Other registers.
    Registers,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(counter, events) => {
                write!(f, "wait before it until {counter} is {events}")
            }
            Self::States(1) => f.write_str("insert s_nop 0 before it"),
            Self::States(states) => {
                write!(f, "insert {states} wait states before it, such as ")?;
                // One instruction has up to eight on all targets.
                for place in (0..*states).step_by(8) {
                    let separator = if place == 0 { "" } else { " and " };
                    write!(f, "{separator}s_nop {}", (states - place).min(8) - 1)?;
                }
                Ok(())
            }
            Self::Depctr(field) => write!(f, "insert s_waitcnt_depctr depctr_{field} before it"),
            Self::Alu(field) => write!(f, "insert s_wait_alu depctr_{field} before it"),
            Self::Vector => f.write_str("insert another vector instruction before it"),
            Self::Nop => f.write_str("insert s_nop 0 before it"),
            Self::Registers => f.write_str("use other registers"),
        }
    }
}

/// A hazard at an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub rule: &'static str,
    /// The sentence about the instruction, without a subject, which ends in front of the earlier instruction.
    pub problem: String,
    pub earlier: Option<Earlier>,
    pub remedy: Remedy,
}
