//! The kinds of counts, and their largest value.

use std::fmt;

use crate::format::sections::Section;

/// The largest count that a profile may hold. `llvm-profdata` rejects a raw profile with a larger one as
/// malformed (`RawInstrProfReader`, `MaxCounterValue`).
pub const MAX_COUNT: u64 = 1 << 56;

/// The thing that a [`RecordCount`](crate::format::profraw::RecordCount) is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountKind {
    /// A counter. A single-byte counter is 1 if its block was reached.
    Counter,
    /// A counter of whole waves.
    Uniform,
    /// A byte of the MC/DC bitmap.
    Bitmap,
    /// The size of a wave in lanes, with the index 0.
    WaveSize,
}

impl CountKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Counter, Self::Uniform, Self::Bitmap, Self::WaveSize];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Uniform => "uniform",
            Self::Bitmap => "bitmap",
            Self::WaveSize => "wave_size",
        }
    }

    /// The section that it is in. `None` for the size of a wave, which is in the data record.
    pub(super) const fn section(self) -> Option<Section> {
        match self {
            Self::Counter => Some(Section::Counters),
            Self::Uniform => Some(Section::Uniform),
            Self::Bitmap => Some(Section::Bitmap),
            Self::WaveSize => None,
        }
    }
}

impl fmt::Display for CountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
