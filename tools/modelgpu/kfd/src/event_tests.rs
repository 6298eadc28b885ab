//! Events: set, waited for and destroyed.

use std::sync::Arc;
use std::thread;

use super::*;

fn data(id: u32, last_age: u64) -> EventData {
    EventData {
        payload: [last_age, 0, 0, 0],
        extension: 0,
        event_id: id,
        pad: 0,
    }
}

#[test]
fn a_set_event_ends_a_wait_and_an_automatic_one_is_consumed() {
    let events = Events::new();
    for (auto_reset, second) in [(true, Wait::TimedOut), (false, Wait::Complete)] {
        let id = events.create(event_type::SIGNAL, auto_reset).unwrap();
        assert_eq!(
            events.wait(&mut [data(id, 0)], false, 0),
            Ok(Wait::TimedOut)
        );
        events.set(id).unwrap();
        assert_eq!(
            events.wait(&mut [data(id, 0)], false, 0),
            Ok(Wait::Complete)
        );
        assert_eq!(events.wait(&mut [data(id, 0)], false, 0), Ok(second));
    }
}

#[test]
fn ages_tell_of_a_set_that_was_consumed_by_another() {
    let events = Events::new();
    let id = events.create(event_type::SIGNAL, true).unwrap();
    events.set(id).unwrap();
    events.wait(&mut [data(id, 0)], false, 0).unwrap();
    let mut late = [data(id, 1)];
    assert_eq!(events.wait(&mut late, false, 0), Ok(Wait::Complete));
    assert_eq!(late[0].payload[0], 2);
    assert_eq!(events.wait(&mut late, false, 0), Ok(Wait::TimedOut));
}

/// A waiter that asks with an old age for ever would take a processor from the kernels.
#[test]
fn a_set_that_is_known_ends_a_wait_after_a_sleep() {
    let events = Events::new();
    let id = events.create(event_type::SIGNAL, true).unwrap();
    events.set(id).unwrap();
    let took = |all| {
        let start = Instant::now();
        let mut old = [data(id, 1)];
        assert_eq!(events.wait(&mut old, all, u32::MAX), Ok(Wait::Complete));
        (start.elapsed(), old[0].payload[0])
    };
    assert_eq!(took(false).1, 2);
    for all in [false, true] {
        let (time, age) = took(all);
        assert!(time >= KNOWN_SET && age == 2, "{time:?}, {age}");
    }
    // A set that nobody knows ends the sleep, and so does the caller's limit.
    thread::scope(|scope| {
        scope.spawn(|| events.set(id).unwrap());
        while took(false).1 == 2 {}
    });
    let mut old = [data(id, 1)];
    assert_eq!(events.wait(&mut old, false, 0), Ok(Wait::Complete));
}

#[test]
fn an_interrupt_sets_every_signal_event_with_its_bits() {
    let events = Events::new();
    // Ids run from 1; number 44 is of another kind.
    let kind = |id| match id {
        44 => event_type::MEMORY,
        _ => event_type::SIGNAL,
    };
    let ids: Vec<u32> = (1..=600)
        .map(|id| events.create(kind(id), false).unwrap())
        .collect();
    events.set_ending_in(44);
    let set: Vec<u32> = ids
        .into_iter()
        .filter(|id| events.wait(&mut [data(*id, 0)], false, 0) == Ok(Wait::Complete))
        .collect();
    assert_eq!(set, [300, 556]);
}

#[test]
fn every_waiter_wakes() {
    let events = Arc::new(Events::new());
    let id = events.create(event_type::SIGNAL, true).unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let events = Arc::clone(&events);
            thread::spawn(move || events.wait(&mut [data(id, 1)], false, u32::MAX))
        })
        .collect();
    events.set(id).unwrap();
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Ok(Wait::Complete));
    }
}

#[test]
fn all_means_all() {
    let events = Events::new();
    let ids = [1, 2].map(|_| events.create(event_type::SIGNAL, false).unwrap());
    let mut both = ids.map(|id| data(id, 0));
    events.set(ids[0]).unwrap();
    assert_eq!(events.wait(&mut both, true, 1), Ok(Wait::TimedOut));
    events.set(ids[1]).unwrap();
    assert_eq!(events.wait(&mut both, true, 1), Ok(Wait::Complete));
}

#[test]
fn a_memory_fault_tells_address_and_gpu() {
    let events = Events::new();
    let id = events.create(event_type::MEMORY, false).unwrap();
    events.raise_memory_fault(0x1001, 0xdead_0000);
    let mut item = [data(id, 0)];
    assert_eq!(events.wait(&mut item, false, 0), Ok(Wait::Complete));
    assert_eq!(item[0].payload, [1, 0, 0xdead_0000, 0x1001]);
}

#[test]
fn unknown_events_are_invalid_and_a_destroyed_one_ends_its_waits() {
    let events = Arc::new(Events::new());
    for id in [0, 1, LIMIT as u32, u32::MAX] {
        assert_eq!(events.set(id), Err(Errno(libc::EINVAL)));
    }
    let id = events.create(event_type::SIGNAL, true).unwrap();
    let waiting = Arc::clone(&events);
    let waiter = thread::spawn(move || waiting.wait(&mut [data(id, 1)], false, u32::MAX));
    events.destroy(id).unwrap();
    assert_eq!(waiter.join().unwrap(), Err(Errno(libc::EINVAL)));
}
