//! Events: programs sleep on them and interrupts wake them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::kfd::{EventData, MEMORY_ERROR_GPU_HANG, event_type};
use crate::sys::Errno;

/// The most events of a process (`KFD_SIGNAL_EVENT_LIMIT`); ids start at 1.
const LIMIT: usize = 4096;
/// Timeouts from this value on mean "forever".
const FOREVER_MS: u32 = 0xffff_fffe;
/// The time that a waiter sleeps if it asks for a set that somebody knows already.
const KNOWN_SET: Duration = Duration::from_millis(1);

#[derive(Clone)]
struct Event {
    kind: u32,
    auto_reset: bool,
    signalled: bool,
    /// The number of sets of the event, from 1 on. It shows a waiter a set that another waiter has
    /// consumed.
    age: u64,
    /// The age that a waiter has last been told.
    told: u64,
    /// The contents of a memory or hardware exception.
    payload: [u64; 4],
}

/// The process's events.
pub(crate) struct Events {
    slots: Mutex<Slots>,
    set: Condvar,
}

struct Slots {
    events: Vec<Option<Event>>,
    /// The start of the search for a free slot, so that ids are not reused at once.
    next: usize,
}

/// The result of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Complete,
    TimedOut,
}

impl Events {
    /// Creates an empty set of events.
    pub(crate) fn new() -> Self {
        Self {
            slots: Mutex::new(Slots {
                events: vec![None; LIMIT],
                next: 1,
            }),
            set: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an event; its id is at least 1.
    ///
    /// # Errors
    /// Fails if the process has too many events (`ENOSPC`).
    pub(crate) fn create(&self, kind: u32, auto_reset: bool) -> Result<u32, Errno> {
        let mut slots = self.lock();
        let ids = (slots.next..LIMIT).chain(1..slots.next);
        let free = ids.into_iter().find(|&id| slots.events[id].is_none());
        let id = free.ok_or(Errno(libc::ENOSPC))?;
        slots.next = if id + 1 < LIMIT { id + 1 } else { 1 };
        slots.events[id] = Some(Event {
            kind,
            auto_reset,
            signalled: false,
            age: 1,
            told: 1,
            payload: [0; 4],
        });
        Ok(id as u32)
    }

    /// Removes an event; its waiters get `EINVAL`.
    pub(crate) fn destroy(&self, id: u32) -> Result<(), Errno> {
        let mut slots = self.lock();
        slots.get(id)?;
        slots.events[id as usize] = None;
        self.set.notify_all();
        Ok(())
    }

    /// Sets an event and wakes every waiter.
    pub(crate) fn set(&self, id: u32) -> Result<(), Errno> {
        self.lock().get(id)?.raise([0; 4]);
        self.set.notify_all();
        Ok(())
    }

    /// Sets the events that belong to signals and whose ids end in these bits, and wakes every
    /// waiter.
    pub(crate) fn set_ending_in(&self, low: u8) {
        let mut slots = self.lock();
        let ids = (usize::from(low)..LIMIT).step_by(256);
        for id in ids {
            if let Some(event) = &mut slots.events[id]
                && event.kind == event_type::SIGNAL
            {
                event.raise([0; 4]);
            }
        }
        self.set.notify_all();
    }

    /// Resets an event.
    pub(crate) fn reset(&self, id: u32) -> Result<(), Errno> {
        self.lock().get(id)?.signalled = false;
        Ok(())
    }

    /// Reports a page fault at `address` on the GPU with this id: sets every memory exception
    /// event.
    pub(crate) fn raise_memory_fault(&self, gpu_id: u32, address: u64) {
        // Failure flags (not present, read-only, no execute, imprecise), address, GPU, error type.
        self.raise_all(event_type::MEMORY, [1, 0, address, u64::from(gpu_id)]);
    }

    /// Reports a GPU reset after a hang. ROCr 6 and later wait for hardware exceptions. ROCr 5
    /// knows only memory exceptions, which can carry a hang too.
    pub(crate) fn raise_gpu_hang(&self, gpu_id: u32) {
        let gpu_id = u64::from(gpu_id);
        // Whole GPU reset, cause GPU hang, memory not lost, GPU.
        self.raise_all(event_type::HW_EXCEPTION, [0, gpu_id << 32, 0, 0]);
        let error = u64::from(MEMORY_ERROR_GPU_HANG) << 32;
        self.raise_all(event_type::MEMORY, [0, 0, 0, gpu_id | error]);
    }

    fn raise_all(&self, kind: u32, payload: [u64; 4]) {
        let mut slots = self.lock();
        for event in slots.events.iter_mut().flatten() {
            if event.kind == kind {
                event.raise(payload);
            }
        }
        self.set.notify_all();
    }

    /// Waits for one or all of the events in `data` and fills in their payloads.
    ///
    /// # Errors
    /// Fails if one of the events does not exist or no longer exists (`EINVAL`).
    pub(crate) fn wait(
        &self,
        data: &mut [EventData],
        all: bool,
        timeout_ms: u32,
    ) -> Result<Wait, Errno> {
        let deadline = match timeout_ms {
            FOREVER_MS.. => None,
            ms => Some(Instant::now() + Duration::from_millis(u64::from(ms))),
        };
        let mut slots = self.lock();
        // A set event wakes every waiter, even if another waiter has already reset it: the age at
        // the start shows the set. A caller that supports event ages (interface 1.14) passes the last
        // age it saw, so a set between two waits is not lost either. The age 0 means that the
        // caller does not support ages.
        let mut ages = Vec::with_capacity(data.len());
        for item in data.iter() {
            let event = slots.get(item.event_id)?;
            ages.push(match (event.kind, item.payload[0]) {
                (event_type::SIGNAL, last_seen) if last_seen != 0 => last_seen,
                _ => event.age,
            });
        }
        let mut sleeps_until = None;
        loop {
            let (mut hits, mut is_news) = (0, false);
            for (item, &age) in data.iter().zip(&ages) {
                let event = slots.get(item.event_id)?;
                hits += usize::from(event.fired(age));
                is_news |= event.is_news(age);
            }
            if (all && hits == data.len()) || (!all && hits > 0) {
                // ROCr 6.4.3 asks with an old age again and again. On hardware, this takes one of many processors.
                let now = Instant::now();
                let until = *sleeps_until.get_or_insert_with(|| {
                    let end = now + KNOWN_SET;
                    deadline.map_or(end, |deadline| end.min(deadline))
                });
                if !is_news && now < until {
                    let woken = self.set.wait_timeout(slots, until - now);
                    slots = woken.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
                for (item, &age) in data.iter_mut().zip(&ages) {
                    slots.get(item.event_id)?.report(item, age);
                }
                return Ok(Wait::Complete);
            }
            let Some(deadline) = deadline else {
                slots = self.set.wait(slots).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Wait::TimedOut);
            }
            let woken = self.set.wait_timeout(slots, left);
            slots = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Slots {
    fn get(&mut self, id: u32) -> Result<&mut Event, Errno> {
        let slot = self.events.get_mut(id as usize);
        slot.and_then(Option::as_mut).ok_or(Errno(libc::EINVAL))
    }
}

impl Event {
    fn raise(&mut self, payload: [u64; 4]) {
        self.signalled = true;
        self.age += 1;
        self.payload = payload;
    }

    fn fired(&self, age: u64) -> bool {
        self.signalled || self.age != age
    }

    /// Returns whether the event is set in a way that nobody has been told.
    fn is_news(&self, age: u64) -> bool {
        self.signalled || self.age != age && self.age != self.told
    }

    /// Fills in the event's payload for a waiter and consumes the event.
    fn report(&mut self, item: &mut EventData, age: u64) {
        match self.kind {
            event_type::SIGNAL => {
                if item.payload[0] != 0 && self.fired(age) {
                    item.payload[0] = self.age;
                }
            }
            _ => item.payload = self.payload,
        }
        self.told = self.age;
        if self.auto_reset {
            self.signalled = false;
        }
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
