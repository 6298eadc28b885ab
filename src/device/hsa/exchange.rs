//! Code objects with counters, instead of those of the program: the interface between librocov and
//! `librocov_instrument.so`, and the record of the code objects that ROCr has got so.
//!
//! librocov asks when the program makes a reader of a code object, and hands what it gets to ROCr. Both libraries are of one
//! release: [`FUNCTION`] has another name after a change.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The function of the library, an [`CodeInstrumentFn`].
pub const FUNCTION: &str = "rocov_instrument_amdgpu_1";
/// The function that takes code back, a [`ReleaseFn`].
pub const RELEASE: &str = "rocov_instrument_release_1";

/// Answers a request. Called before ROCr gets the code.
pub type CodeInstrumentFn = unsafe extern "C" fn(*const CodeRequest, *mut CodeAnswer);
/// Takes the code of an answer back, by its owner. Nobody reads the code any more.
pub type ReleaseFn = unsafe extern "C" fn(*const c_void);

/// A code object that a program has made a reader of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CodeRequest {
    /// The code object.
    pub code: *const c_void,
    /// Its size in bytes.
    pub code_len: usize,
    /// True if the counters shall only record which blocks ran.
    pub is_for_reached: bool,
}

/// The answer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CodeAnswer {
    /// The code object to load instead of the program's. It stays until its owner is released. Null: the code stays as
    /// it is.
    pub code: *const c_void,
    /// The size of the code object in bytes.
    pub code_len: usize,
    /// The owner of the code object, for [`RELEASE`].
    pub owner: *const c_void,
    /// The reason why the code object, or a part of it, stays uncounted, and the next step, with a zero at its end. It stays
    /// to the end of the process. Null if none is lost.
    pub loss: *const c_char,
    /// True if the code object was in the cache.
    pub is_cached: bool,
}

impl CodeAnswer {
    /// The answer for code that stays as it is without a loss.
    pub const NOTHING: Self = Self {
        code: std::ptr::null(),
        code_len: 0,
        owner: std::ptr::null(),
        loss: std::ptr::null(),
        is_cached: false,
    };
}

/// The code objects that ROCr has got instead of the program's.
#[derive(Debug, Default)]
pub struct Exchanged(Mutex<BTreeMap<u64, Place>>);

/// The memory of a code object with counters.
#[derive(Debug)]
struct Place {
    /// The URI of the code object that it was made from.
    uri: Arc<str>,
    /// The number of readers that were made of it.
    readers: usize,
}

impl Exchanged {
    /// Notes that a reader is made of the code object at host address `start`, instead of one from `uri`.
    pub fn begins(&self, start: u64, uri: &str) {
        let mut places = self.places();
        let place = places.entry(start).or_insert_with(|| Place {
            uri: uri.into(),
            readers: 0,
        });
        place.readers += 1;
    }

    /// Notes that nothing that came from one of these readers is loaded any more.
    pub fn ends(&self, start: u64) {
        let mut places = self.places();
        if let Some(place) = places.get_mut(&start) {
            place.readers -= 1;
            if place.readers == 0 {
                places.remove(&start);
            }
        }
    }

    /// The URI of the code object as the program had it, if ROCr has got another one, which is at host address `start`.
    pub(super) fn uri(&self, start: u64) -> Option<Arc<str>> {
        self.places().get(&start).map(|place| place.uri.clone())
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<u64, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_until_its_last_reader_ends() {
        let exchanged = Exchanged::default();
        exchanged.begins(0x1000, "file:///app");
        exchanged.begins(0x1000, "file:///app");
        exchanged.ends(0x1000);
        assert_eq!(exchanged.uri(0x1000).as_deref(), Some("file:///app"));
        exchanged.ends(0x1000);
        exchanged.ends(0x1000);
        assert_eq!(exchanged.uri(0x1000), None);
        exchanged.begins(0x1000, "memory://1");
        assert_eq!(exchanged.uri(0x1000).as_deref(), Some("memory://1"));
    }
}
