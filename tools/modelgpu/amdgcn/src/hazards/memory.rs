//! Results of memory accesses that are outstanding. A wave must wait for the counter of an access before it reads or
//! overwrites the registers of its result (AMD's instruction set guides, "Data dependency resolution", and LLVM's
//! `SIInsertWaitcnts`).

use std::collections::VecDeque;

use modelgpu_isa::{Generation, Instruction, Target};

use super::finding::{Earlier, Finding, Remedy, Use, rule};
use super::nature::{COUNTERS, Counter, EVENTS, Event, MemoryAccess, Nature, SLOTS, Texture, name};
use crate::lanes::active;
use crate::wave::Wave;

/// The outstanding events of a counter.
#[derive(Clone, Debug, Default)]
struct Outstanding {
    events: VecDeque<(u64, Event)>,
    issued: u64,
    /// For each kind of events, the last one that has certainly come.
    done: [u64; EVENTS],
}

impl Outstanding {
    /// Adds an event, and returns its number, from 1 on. A full counter makes the wave wait.
    fn add(&mut self, event: Event, most: u32) -> u64 {
        self.issued += 1;
        self.events.push_back((self.issued, event));
        self.wait(most);
        self.issued
    }

    /// The wave has waited until no more than `most` events are outstanding.
    fn wait(&mut self, most: u32) {
        let most = most as usize;
        if most == 0 {
            self.done = [self.issued; EVENTS];
            self.events.clear();
            return;
        }
        let Some(come) = self.events.len().checked_sub(most).filter(|come| *come > 0) else {
            return;
        };
        let count = |kind: Event| {
            self.events
                .iter()
                .filter(|(_, event)| *event == kind)
                .count()
        };
        let kinds = [
            Event::Memory,
            Event::Scratch,
            Event::Lds,
            Event::GlobalData,
            Event::Message,
        ];
        // All events of other kinds may be among those that have come.
        let counts = kinds.map(|kind| (kind, come.saturating_sub(self.events.len() - count(kind))));
        for (kind, certain) in counts {
            for _ in 0..certain {
                let first = self.events.iter().position(|(_, event)| *event == kind);
                if let Some((number, _)) = first.and_then(|place| self.events.remove(place)) {
                    self.done[kind as usize] = number;
                }
            }
        }
    }

    fn is_done(&self, event: Event, number: u64) -> bool {
        number <= self.done[event as usize]
    }

    /// The most outstanding events after which an event has certainly come.
    fn most_after(&self, event: Event, number: u64) -> u32 {
        let has_others = self.events.iter().any(|(_, other)| *other != event);
        match event == Event::Scalar || has_others {
            true => 0,
            false => {
                let later = self.events.iter().filter(|(other, _)| *other > number);
                later.count() as u32
            }
        }
    }
}

/// A register's outstanding result.
#[derive(Clone, Copy, Debug)]
struct PendingResult {
    counter: Counter,
    event: Event,
    texture: Texture,
    number: u64,
    /// The halves of the register: bit 0 is the low one.
    half: u8,
    by: Earlier,
}

/// The outstanding results of a wave.
#[derive(Clone, Debug)]
pub(super) struct OutstandingResults {
    generation: Generation,
    counters: [Outstanding; COUNTERS],
    results: Vec<Option<PendingResult>>,
    /// The number of entries in `results`.
    count: usize,
}

impl OutstandingResults {
    pub(super) fn new(target: Target) -> Self {
        Self {
            generation: target.generation(),
            counters: Default::default(),
            results: vec![None; SLOTS],
            count: 0,
        }
    }

    /// The counter of the target that has the events of a counter.
    fn real(&self, counter: Counter) -> Counter {
        match (self.generation, counter) {
            (Generation::Gfx12, counter) => counter,
            (Generation::Gfx9, Counter::Store) => Counter::Load,
            (_, Counter::Scalar) => Counter::Lds,
            (_, Counter::Sample | Counter::Ray) => Counter::Load,
            (_, counter) => counter,
        }
    }

    /// The name of a counter, and the most events that it counts.
    fn describe(&self, counter: Counter) -> (&'static str, u32) {
        match (self.generation, self.real(counter)) {
            (Generation::Gfx12, Counter::Load) => ("loadcnt", 63),
            (Generation::Gfx12, Counter::Store) => ("storecnt", 63),
            (Generation::Gfx12, Counter::Lds) => ("dscnt", 63),
            (_, Counter::Sample) => ("samplecnt", 63),
            (_, Counter::Ray) => ("bvhcnt", 7),
            (_, Counter::Async) => ("asynccnt", 63),
            (_, Counter::Scalar) => ("kmcnt", 31),
            (_, Counter::Load) => ("vmcnt", 63),
            (_, Counter::Store) => ("vscnt", 63),
            (Generation::Gfx9, Counter::Lds) => ("lgkmcnt", 15),
            (_, Counter::Lds) => ("lgkmcnt", 63),
        }
    }

    /// Checks an instruction before it executes, and follows its effect on the counters.
    pub(super) fn look(
        &mut self,
        nature: &Nature,
        instruction: &Instruction,
        wave: &Wave,
        by: Earlier,
        found: &mut dyn FnMut(Finding),
    ) {
        if self.count > 0 {
            self.check(nature, found);
        }
        for (counter, most) in &nature.waits {
            let counter = self.real(*counter);
            self.counters[counter as usize].wait(*most);
        }
        let Some(access) = nature.access else {
            return;
        };
        let mut access = MemoryAccess {
            counter: self.real(access.counter),
            ..access
        };
        let mut number = self.add(access.counter, access.event);
        if access.is_flat {
            let in_lds = self.add(Counter::Lds, Event::Lds);
            if is_in_lds(instruction, wave) {
                access.counter = Counter::Lds;
                access.event = Event::Lds;
                number = in_lds;
            }
        }
        for (slot, half) in nature.written_halves() {
            let result = &mut self.results[usize::from(slot)];
            self.count += usize::from(result.is_none());
            *result = Some(PendingResult {
                counter: access.counter,
                event: access.event,
                texture: access.texture,
                number,
                half,
                by,
            });
        }
    }

    fn add(&mut self, counter: Counter, event: Event) -> u64 {
        let (_, most) = self.describe(counter);
        self.counters[counter as usize].add(event, most)
    }

    fn check(&mut self, nature: &Nature, found: &mut dyn FnMut(Finding)) {
        let mut is_first = true;
        let reads = nature.read_halves().map(|read| (read, Use::Reads));
        let writes = nature
            .written_halves()
            .map(|written| (written, Use::Overwrites));
        for ((slot, half), usage) in reads.chain(writes) {
            let Some(result) = self.results[usize::from(slot)] else {
                continue;
            };
            let counter = &self.counters[result.counter as usize];
            if counter.is_done(result.event, result.number) {
                self.forget(slot);
                continue;
            }
            let is_harmless = result.half & half == 0
                || usage == Use::Overwrites && self.comes_in_order(nature, &result);
            if is_harmless {
                continue;
            }
            if is_first {
                let events = counter.most_after(result.event, result.number);
                let (counter, _) = self.describe(result.counter);
                found(outstanding(usage, slot, result.by, counter, events));
            }
            is_first = false;
            // One message is enough.
            self.forget(slot);
        }
    }

    fn forget(&mut self, slot: u16) {
        self.results[usize::from(slot)] = None;
        self.count -= 1;
    }

    /// Returns whether the instruction's result comes after an outstanding one.
    fn comes_in_order(&self, nature: &Nature, result: &PendingResult) -> bool {
        nature.access.is_some_and(|access| {
            self.real(access.counter) == result.counter
                && access.event == result.event
                && access.texture == result.texture
                // RDNA 4 writes results of vector memory in any order.
                && match result.event {
                    Event::Memory => self.generation != Generation::Gfx12,
                    event => event == Event::Lds,
                }
        })
    }

    /// A store to scratch is outstanding.
    pub(super) fn has_scratch_store(&self) -> bool {
        let counter = &self.counters[self.real(Counter::Store) as usize];
        counter
            .events
            .iter()
            .any(|(_, event)| *event == Event::Scratch)
    }

    /// The hazard of a release of registers while a store to scratch is outstanding.
    pub(super) fn release(&self, previous: Earlier) -> Finding {
        let (counter, _) = self.describe(Counter::Store);
        Finding {
            rule: rule::RELEASE,
            problem: "releases the registers while a store to scratch is outstanding, behind"
                .into(),
            earlier: Some(previous),
            remedy: Remedy::Count(counter, 0),
        }
    }
}

fn outstanding(usage: Use, slot: u16, by: Earlier, counter: &'static str, events: u32) -> Finding {
    let verb = match usage {
        Use::Reads => "reads",
        Use::Overwrites => "overwrites",
    };
    Finding {
        rule: counter,
        problem: format!("{verb} {} before the result has come of", name(slot)),
        earlier: Some(by),
        remedy: Remedy::Count(counter, events),
    }
}

/// Returns whether a lane's flat address is in LDS.
fn is_in_lds(instruction: &Instruction, wave: &Wave) -> bool {
    debug_assert!(instruction.src[0].vector_index().is_some(), "an address");
    let shared = wave.apertures.shared >> 32;
    if !instruction.src[2].is_none() {
        // The register has an offset from a scalar address.
        return wave.pair(instruction.src[2]) >> 32 == shared;
    }
    active(wave.exec()).any(|lane| wave.lane_pair(instruction.src[0], lane) >> 32 == shared)
}
