//! Mistakes of a kernel that hardware does not stop, but that its author should know.

use std::fmt;

use crate::error::{Access, Site};

/// An access to local memory beyond the workgroup's share. Hardware reads 0 there and drops writes;
/// the model does too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeyondLds {
    /// The place of the dispatch's first such access.
    pub site: Box<Site>,
    /// The instruction.
    pub mnemonic: &'static str,
    /// Read, write or atomic.
    pub access: Access,
    /// Bytes accessed at once.
    pub size: u64,
    /// The offset in LDS.
    pub address: u64,
    /// The bytes that the dispatch requested. `allotted` is this number rounded up.
    pub requested: u32,
    /// Bytes that the workgroup has.
    pub allotted: u32,
}

impl fmt::Display for BeyondLds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            site,
            mnemonic,
            access,
            size,
            address,
            requested,
            allotted,
        } = self;
        write!(
            f,
            "{site}: {mnemonic}: {access} of {size} bytes at LDS address {address:#x}, beyond the \
             workgroup's {allotted:#x} bytes (the launch asks for {requested:#x}). As on the \
             hardware, the kernel goes on, reads there give 0 and writes are dropped: check the \
             index and the size of the shared memory"
        )
    }
}

/// A dispatch in which no workgroup makes progress: each waits for memory or for a barrier of the grid.
/// It may wait for the host or for another kernel, so it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The place of a wave that waits.
    pub site: Box<Site>,
    /// Workgroups that have begun and not ended.
    pub workgroups: u64,
    /// Waves of the workgroup in `site` that have reached a barrier.
    pub at_barrier: usize,
    /// Waves of the workgroup in `site` that have not ended.
    pub waves: usize,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            site,
            workgroups,
            at_barrier,
            waves,
        } = self;
        write!(
            f,
            "{site}: no progress: the {workgroups} workgroups that have begun wait for a value in memory or \
             for a barrier that some never reach (in this one, {at_barrier} of {waves} waves have reached \
             theirs). The kernel goes on: if neither the host nor another kernel will end the wait, it is a \
             deadlock"
        )
    }
}

/// Code that uses a result before it is there. The model has the result; the hardware may not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hazard {
    /// The place of the instruction that uses the result.
    pub site: Box<Site>,
    /// The instruction.
    pub mnemonic: &'static str,
    /// The name of the rule: that of a counter, or of the two instructions.
    pub rule: &'static str,
    /// The sentence about the instruction, without a subject.
    pub problem: String,
    /// The instruction whose result it uses, and its place.
    pub earlier: Option<(&'static str, Box<Site>)>,
    /// The change that removes the hazard.
    pub remedy: String,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            site,
            mnemonic,
            rule,
            problem,
            earlier,
            remedy,
        } = self;
        write!(f, "{site}: hazard {rule}: {mnemonic} {problem}")?;
        if let Some((earlier, place)) = earlier {
            write!(f, " {earlier} at pc {:#x}", place.pc)?;
            if let Some(offset) = place.offset {
                write!(f, " (offset {offset:#x})")?;
            }
            if let Some(source) = &place.source {
                write!(f, ", at {source}")?;
            }
        }
        write!(
            f,
            ". The model goes on with the right value, and the hardware may not: {remedy}"
        )
    }
}

/// A mistake with local memory: a data race between two waves, or a read of a byte that nobody has
/// written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LdsMistake {
    /// The place of the access.
    pub site: Box<Site>,
    /// The instruction.
    pub mnemonic: &'static str,
    /// The lane.
    pub lane: u8,
    /// The byte in LDS.
    pub address: u64,
    /// The place of the other access of a race; `None` for a read of what nobody has written.
    pub other: Option<Box<Site>>,
}

impl fmt::Display for LdsMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            site,
            mnemonic,
            lane,
            address,
            other,
        } = self;
        write!(
            f,
            "{site}: {mnemonic} by lane {lane} at LDS address {address:#x}: "
        )?;
        match other {
            None => f.write_str("a read of local memory that no work-item has written"),
            Some(other) => {
                write!(
                    f,
                    "a data race with wave {}, which accessed it at pc {:#x}",
                    other.wave, other.pc
                )?;
                if let Some(offset) = other.offset {
                    write!(f, " (offset {offset:#x})")?;
                }
                if let Some(source) = &other.source {
                    write!(f, ", at {source}")?;
                }
                f.write_str(" since the last barrier")
            }
        }
    }
}
