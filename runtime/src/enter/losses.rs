//! Code that runs uncounted although rocov was asked to instrument it: noted at each load, and reported once at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rocov::settings::Uncounted;
use rocov::support::diagnostic::Diagnostic;

use crate::guest::{journal, log};

/// The number of loads that lost something, by what it is, the file, and the reason.
type Losses = BTreeMap<(Uncounted, String, String), usize>;

fn losses() -> MutexGuard<'static, Losses> {
    static LOSSES: Mutex<Losses> = Mutex::new(BTreeMap::new());
    LOSSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that code of a file runs uncounted.
pub(super) fn lose(what: Uncounted, file: String, loss: String) {
    log::verbose(format_args!("{file}: loaded without counters: {loss}"));
    *losses().entry((what, file, loss)).or_default() += 1;
}

/// Notes the files whose code ran uncounted in the journal of the run. Without one, prints a line for each. The process
/// ends.
pub(super) fn report() {
    let mut files: BTreeMap<(Uncounted, String), BTreeMap<String, usize>> = BTreeMap::new();
    for ((what, file, loss), count) in std::mem::take(&mut *losses()) {
        if !journal::note_uncounted(what, &file, &loss, count) {
            files.entry((what, file)).or_default().insert(loss, count);
        }
    }
    for ((what, file), losses) in files {
        let count = losses.values().sum();
        let Some((loss, _)) = losses.iter().max_by_key(|(_, count)| **count) else {
            continue;
        };
        let mut loss = loss.clone();
        if losses.len() > 1 {
            loss += "; ROCOV_VERBOSE=1 prints the other reasons";
        }
        log::warn(Diagnostic::without_step(what.line(count, &file, "", &loss)));
    }
}
