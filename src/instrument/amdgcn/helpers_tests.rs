//! Work of several threads on a list of numbers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

const ITEMS: [usize; 40] = {
    let mut items = [0; 40];
    let mut number = 0;
    while number < items.len() {
        items[number] = number;
        number += 1;
    }
    items
};

fn helpers(most: usize) -> Helpers {
    Helpers {
        most,
        ..Helpers::NONE
    }
}

fn work(most: usize) -> Work<'static, usize> {
    Work {
        items: &ITEMS,
        size: &|number| 1 + number % 3,
        most,
    }
}

/// The results that are taken, and the threads that have made them.
fn taken(helpers: Helpers) -> (Vec<usize>, usize) {
    let (mut all, threads) = (Vec::new(), Mutex::new(BTreeSet::new()));
    let done: Result<(), ()> = work(6).run(
        helpers,
        &mut (),
        || (),
        |(), number| {
            threads
                .lock()
                .unwrap()
                .insert(format!("{:?}", thread::current().id()));
            // Later ones are ready first.
            thread::sleep(Duration::from_micros(200 * (number % 4) as u64));
            number * number
        },
        |(), number, square| {
            assert_eq!(square, number * number);
            all.push(*number);
            Ok(())
        },
    );
    assert_eq!(done, Ok(()));
    (all, threads.into_inner().unwrap().len())
}

#[test]
fn results_are_taken_in_order_by_any_number_of_threads() {
    for most in [0, 1, 3, 100] {
        let (all, threads) = taken(helpers(most));
        assert_eq!(all, ITEMS, "{most} helpers");
        assert!((1..=most + 1).contains(&threads));
    }
}

#[test]
fn the_calling_thread_does_the_work_of_helpers_that_do_not_start() {
    let none = Helpers {
        most: 3,
        beside: |_, _, work| work(),
    };
    assert_eq!(taken(none), (ITEMS.to_vec(), 1));
}

#[test]
fn few_items_are_begun_at_once() {
    const MOST: usize = 5;
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let size = |number: usize| 1 + number % 3;
    let done: Result<(), ()> = work(MOST).run(
        helpers(4),
        &mut (),
        || (),
        |(), number| {
            let all = now.fetch_add(size(*number), Ordering::SeqCst) + size(*number);
            most.fetch_max(all, Ordering::SeqCst);
        },
        |(), number, ()| {
            now.fetch_sub(size(*number), Ordering::SeqCst);
            Ok(())
        },
    );
    assert_eq!(done, Ok(()));
    assert!(
        most.into_inner() <= MOST + 2,
        "one more was taken, and not yet counted"
    );
}

#[test]
fn an_error_or_a_panic_ends_the_work_of_all_threads() {
    let made = AtomicUsize::new(0);
    let failed = work(3).run(
        helpers(2),
        &mut (),
        || (),
        |(), _| made.fetch_add(1, Ordering::SeqCst),
        |(), number, _| if *number == 5 { Err("five") } else { Ok(()) },
    );
    assert_eq!(failed, Err("five"));
    assert!(made.into_inner() < ITEMS.len());
    let panics = |at: &(dyn Fn(usize) -> bool + Sync)| {
        let work = work(3);
        let run = || {
            work.run(
                helpers(2),
                &mut (),
                || (),
                |(), number| assert!(!at(*number), "as planned"),
                |(), _, ()| Ok::<(), ()>(()),
            )
        };
        catch_unwind(AssertUnwindSafe(run)).is_err()
    };
    assert!(panics(&|number| number == 7));
    assert!(!panics(&|_| false));
}
