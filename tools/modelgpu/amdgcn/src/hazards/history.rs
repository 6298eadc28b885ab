//! The last writer of each register of a wave, and the distances to it.

use super::finding::{Earlier, Finding, Remedy};
use super::nature::{Nature, SLOTS, Unit, WHOLE, name};

/// The place of an instruction in a wave's stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The wait states up to its end.
    pub states: u64,
    /// The vector instructions up to it.
    pub vectors: u64,
    /// The transcendental instructions up to it.
    pub slow: u64,
}

/// The last instruction that wrote a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    pub place: Place,
    pub unit: Unit,
    pub is_slow: bool,
    pub is_dot: bool,
    pub is_product: bool,
    pub shifts_result: bool,
    /// The halves of the register: bit 0 is the low one.
    pub half: u8,
    pub by: Earlier,
}

impl Writer {
    const NONE: Self = Self {
        place: Place {
            states: 0,
            vectors: 0,
            slow: 0,
        },
        unit: Unit::Scalar,
        is_slow: false,
        is_dot: false,
        is_product: false,
        shifts_result: false,
        half: WHOLE,
        by: Earlier {
            pc: 0,
            mnemonic: "",
        },
    };

    pub(super) fn is_vector(&self) -> bool {
        self.unit == Unit::Vector
    }
}

/// The instructions of a wave so far.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub now: Place,
    writers: Vec<Writer>,
}

impl History {
    /// A wave at its start: all that came before is far away.
    pub(super) fn new() -> Self {
        const FAR: u64 = 1 << 10;
        Self {
            now: Place {
                states: FAR,
                vectors: FAR,
                slow: FAR,
            },
            writers: vec![Writer::NONE; SLOTS],
        }
    }

    pub(super) fn writer(&self, slot: u16) -> &Writer {
        &self.writers[usize::from(slot)]
    }

    /// The wait states between an instruction and the next one.
    pub(super) fn states_since(&self, place: Place) -> u64 {
        self.now.states - place.states
    }

    /// Adds an instruction after its checks.
    pub(super) fn add(&mut self, nature: &Nature, by: Earlier) {
        let is_vector = nature.unit == Unit::Vector;
        self.now.states += u64::from(nature.states);
        self.now.vectors += u64::from(is_vector);
        self.now.slow += u64::from(nature.is_slow);
        for (slot, half) in nature.written_halves() {
            self.writers[usize::from(slot)] = Writer {
                place: self.now,
                unit: nature.unit,
                is_slow: nature.is_slow,
                is_dot: nature.is_dot,
                is_product: nature.product.is_some(),
                shifts_result: nature.shifts_result,
                half,
                by,
            };
        }
        if nature.leaves_function {
            // LLVM adds no wait states for hazards across calls: the jump takes longer than they do.
            self.now.states += 64;
        }
    }

    /// Reports a use of a register too few wait states after it was written.
    pub(super) fn need(
        &self,
        rule: &'static str,
        states: u64,
        verb: &str,
        slot: u16,
        found: &mut dyn FnMut(Finding),
    ) {
        let writer = self.writer(slot);
        let since = self.states_since(writer.place);
        if since < states {
            found(Finding {
                rule,
                problem: format!("{verb} {} {} after", name(slot), apart(since)),
                earlier: Some(writer.by),
                remedy: Remedy::States(states - since),
            });
        }
    }
}

/// A distance in words.
pub(super) fn apart(states: u64) -> String {
    match states {
        0 => "directly".into(),
        1 => "one wait state".into(),
        states => format!("{states} wait states"),
    }
}
