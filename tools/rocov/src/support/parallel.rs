//! Runs work on many items, on all processors.

use anyhow::Result;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` for each of `items`. Returns the results in their order.
///
/// # Errors
///
/// Fails if `work` fails, and begins nothing more.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Some((index, items.get(index)?))
    };
    let worker = || {
        let mut done = Vec::new();
        while let Some((index, item)) = take() {
            match work(item) {
                Ok(result) => done.push((index, result)),
                Err(error) => {
                    next.store(items.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let ended: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(items.len()))
            .map(|_| scope.spawn(worker))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<_>>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect()
    });
    let mut done = Vec::with_capacity(items.len());
    for of_worker in ended {
        done.extend::<Vec<_>>(of_worker?);
    }
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn results_are_in_order() {
        let numbers: Vec<u64> = (0..100).collect();
        let doubled = map(&numbers, |number| Ok(2 * number)).unwrap();
        assert!(
            doubled
                .iter()
                .zip(&numbers)
                .all(|(two, one)| *two == 2 * one)
        );
        assert_eq!(map(&[], |_: &u64| Ok(1)).unwrap(), [0; 0]);
    }

    #[test]
    fn nothing_more_is_begun_after_an_error() {
        let begun = AtomicUsize::new(0);
        let numbers: Vec<u64> = (0..1_000_000).collect();
        let result = map(&numbers, |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *number < 10 {
                bail!("no");
            }
            Ok(())
        });
        assert!(result.is_err());
        assert!(begun.into_inner() < 1_000_000);
    }
}
