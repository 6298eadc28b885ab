//! The word that distinguishes this process from all others.

use std::sync::atomic::{AtomicU64, Ordering};

use rocov::store::ProcessWord;

/// The bits of the process's [`word`]; 0 before it is needed.
static WORD: AtomicU64 = AtomicU64::new(0);

/// Returns the word that distinguishes this process, and the program that it runs, from all others. A forked child has its
/// own.
pub(crate) fn word() -> ProcessWord {
    if WORD.load(Ordering::Relaxed) == 0 {
        let bits = ProcessWord::random_bits();
        let _ = WORD.compare_exchange(0, bits, Ordering::Relaxed, Ordering::Relaxed);
    }
    ProcessWord::from_bits(WORD.load(Ordering::Relaxed))
}

/// Gives a forked child a word of its own.
pub(super) fn forked() {
    WORD.store(0, Ordering::Relaxed);
}
