//! The lanes of a wave, and its registers as arrays with a value for each lane.

/// The lanes of every register. In a wave of 32 work-items, the upper half is never active.
pub(crate) const LANES: usize = 64;

/// The work-items of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaveSize {
    Wave32,
    Wave64,
}

impl WaveSize {
    pub(crate) const fn lanes(self) -> usize {
        match self {
            Self::Wave32 => 32,
            Self::Wave64 => 64,
        }
    }

    /// The size in the terms of the instruction set.
    pub(crate) const fn of_instructions(self) -> modelgpu_isa::WaveSize {
        match self {
            Self::Wave32 => modelgpu_isa::WaveSize::W32,
            Self::Wave64 => modelgpu_isa::WaveSize::W64,
        }
    }

    /// The mask of all lanes.
    pub(crate) const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.lanes())
    }
}

/// One vector register: 32 bits for each lane.
pub(crate) type Words = [u32; LANES];

/// A pair of vector registers, or a widened one.
pub(crate) type Longs = [u64; LANES];

/// The active lanes by number.
pub(crate) fn active(lanes: u64) -> impl Iterator<Item = usize> {
    let mut left = lanes;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
