//! The ranks of queues, and the kernels that wait for one another by them.

/// A queue's rank among those of its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// The number of the GPU.
    pub gpu: usize,
    /// The driver's number: 0 to 15, 7 by default.
    pub priority: u32,
}

impl Rank {
    /// Returns whether kernels of this rank wait for those of another one.
    pub(crate) fn is_below(self, other: Self) -> bool {
        self.gpu == other.gpu && self.priority < other.priority
    }
}

/// A kernel in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub queue: u32,
    pub packet: u64,
}
