//! The captures of graphs that the program has under way.
//!
//! `cuCtxRecordEvent` and `cuEventRecord` on the default stream invalidate a capture that is under way in the context
//! (cuda.h), whatever the mode of the thread.

use std::sync::{Mutex, PoisonError};

/// The streams that capture a graph, one entry for each capture.
#[derive(Debug, Default)]
pub struct Captures {
    streams: Mutex<Vec<u64>>,
}

impl Captures {
    /// Notes that the program is about to capture into a graph on `stream` (`CUstream`). Waits for work that
    /// `Captures::without` does.
    pub fn begins(&self, stream: u64) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push(stream);
    }

    /// Notes that a capture on `stream` has ended. Does nothing if none is known.
    pub fn ended(&self, stream: u64) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = streams.iter().rposition(|known| *known == stream) {
            streams.swap_remove(place);
        }
    }

    /// Does `work` that would invalidate captures, and lets none begin meanwhile. `None` if one is under way.
    pub(super) fn without<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.is_empty().then(work)
    }
}

#[cfg(test)]
mod tests {
    use super::Captures;

    #[test]
    fn work_is_left_out_while_a_capture_is_under_way() {
        let captures = Captures::default();
        assert_eq!(captures.without(|| 1), Some(1));
        captures.begins(7);
        captures.begins(7);
        captures.ended(8);
        captures.ended(7);
        assert_eq!(captures.without(|| 1), None);
        captures.ended(7);
        assert_eq!(captures.without(|| 1), Some(1));
    }
}
