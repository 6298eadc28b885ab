//! Threads that help the calling one: each makes a part of the results, and the calling thread takes all of them in order.

use std::any::Any;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Threads that help the calling one to instrument a large code object. They have ended when the call returns.
#[derive(Clone, Copy, Debug)]
pub struct Helpers {
    /// The most threads besides the calling one. If the system starts fewer, the others do their work.
    pub most: usize,
    /// Has up to a number of other threads call a function once each, and calls another one itself. The threads have ended when it
    /// returns, or unwinds.
    pub beside: fn(usize, &(dyn Fn() + Sync), &mut dyn FnMut()),
}

/// Helps by threads of the standard library.
fn beside(most: usize, help: &(dyn Fn() + Sync), work: &mut dyn FnMut()) {
    thread::scope(|scope| {
        for _ in 0..most {
            if thread::Builder::new().spawn_scoped(scope, help).is_err() {
                break;
            }
        }
        work();
    });
}

impl Helpers {
    /// The calling thread does all the work.
    pub const NONE: Self = Self { most: 0, beside };

    /// One for each other processor that the process may use, but few enough for the memory that each takes.
    #[must_use]
    pub fn for_processors(beside: fn(usize, &(dyn Fn() + Sync), &mut dyn FnMut())) -> Self {
        const MOST: usize = 5;
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            most: (processors - 1).min(MOST),
            beside,
        }
    }
}

/// The work on a list of items.
pub(super) struct Work<'a, T> {
    pub(super) items: &'a [T],
    /// The size of an item.
    pub(super) size: &'a (dyn Fn(&T) -> usize + Sync),
    /// The size of all items that may be begun at once. A larger item is begun when it is the only one.
    pub(super) most: usize,
}

/// The progress of the work.
struct Progress<R> {
    /// The number of the first item that nobody has begun.
    next: usize,
    /// The size of all items that are begun, and whose results were not taken.
    size: usize,
    results: BTreeMap<usize, thread::Result<R>>,
    /// No more items are to be begun.
    is_over: bool,
}

/// The progress, and a signal for each change of it.
struct Shared<R> {
    progress: Mutex<Progress<R>>,
    changed: Condvar,
}

impl<R> Shared<R> {
    fn new() -> Self {
        let progress = Progress {
            next: 0,
            size: 0,
            results: BTreeMap::new(),
            is_over: false,
        };
        Self {
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress<R>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, progress: MutexGuard<'a, Progress<R>>) -> MutexGuard<'a, Progress<R>> {
        let progress = self.changed.wait(progress);
        progress.unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, number: usize, result: thread::Result<R>) {
        self.lock().results.insert(number, result);
        self.changed.notify_all();
    }
}

impl<R> Progress<R> {
    /// Begins the next item, if there is room for it.
    fn begin<T>(&mut self, work: &Work<'_, T>) -> Option<usize> {
        let number = self.next;
        let size = (work.size)(work.items.get(number)?);
        if self.size > 0 && self.size + size > work.most {
            return None;
        }
        self.next += 1;
        self.size += size;
        Some(number)
    }
}

/// Ends the work of all threads when it is dropped, also by a panic.
struct Ending<'a, R>(&'a Shared<R>);

impl<R> Drop for Ending<'_, R> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl<T: Sync> Work<'_, T> {
    /// Calls `make` for each item, and `take` for each result: in order, and on the calling thread, whose memory is `own`. Each
    /// helper has some from `memory`.
    pub(super) fn run<M, R: Send, E>(
        &self,
        helpers: Helpers,
        own: &mut M,
        memory: impl Fn() -> M + Sync,
        make: impl Fn(&mut M, &T) -> R + Sync,
        mut take: impl FnMut(&mut M, &T, R) -> Result<(), E>,
    ) -> Result<(), E> {
        let most = helpers.most.min(self.items.len().saturating_sub(1));
        if most == 0 {
            return self.items.iter().try_for_each(|item| {
                let result = make(own, item);
                take(own, item, result)
            });
        }
        let shared = Shared::new();
        let help = || {
            let mut own = memory();
            while let Some(number) = self.wait_for_item(&shared) {
                let make = || make(&mut own, &self.items[number]);
                shared.put(number, catch_unwind(AssertUnwindSafe(make)));
            }
        };
        let mut done = Ok(());
        (helpers.beside)(most, &help, &mut || {
            let _ending = Ending(&shared);
            done = self
                .items
                .iter()
                .enumerate()
                .try_for_each(|(number, item)| {
                    let result = self.result(&shared, number, |item| make(own, item));
                    let result = result.unwrap_or_else(|panic| resume_unwind(panic));
                    take(own, item, result)
                });
        });
        done
    }

    /// The number of an item for a helper. `None` if there are no more.
    fn wait_for_item<R>(&self, shared: &Shared<R>) -> Option<usize> {
        let mut progress = shared.lock();
        while !progress.is_over && progress.next < self.items.len() {
            if let Some(number) = progress.begin(self) {
                return Some(number);
            }
            progress = shared.wait(progress);
        }
        None
    }

    /// Takes the result of an item. As long as a helper makes it, the calling thread makes others.
    fn result<R>(
        &self,
        shared: &Shared<R>,
        number: usize,
        mut make: impl FnMut(&T) -> R,
    ) -> Result<R, Box<dyn Any + Send>> {
        let mut progress = shared.lock();
        loop {
            if let Some(result) = progress.results.remove(&number) {
                progress.size -= (self.size)(&self.items[number]);
                shared.changed.notify_all();
                return result;
            }
            let Some(begun) = progress.begin(self) else {
                progress = shared.wait(progress);
                continue;
            };
            drop(progress);
            let result = make(&self.items[begun]);
            progress = shared.lock();
            progress.results.insert(begun, Ok(result));
        }
    }
}

#[cfg(test)]
#[path = "helpers_tests.rs"]
mod tests;
