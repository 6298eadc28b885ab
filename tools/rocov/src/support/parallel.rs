//! Runs work on many items, on all processors.

use anyhow::Result;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// Calls `work` for each of `items`. Returns the results in their order.
///
/// # Errors
///
/// Fails if `work` fails, and begins nothing more.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    // One item a job, because it can take seconds.
    items.par_iter().with_max_len(1).map(&work).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rocov::support::diagnostic::fail;

    use super::*;

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
                fail!("no"; "go");
            }
            Ok(())
        });
        assert!(result.is_err());
        assert!(begun.into_inner() < 1_000_000);
    }
}
