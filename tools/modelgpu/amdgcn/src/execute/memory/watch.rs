//! Looks for mistakes with LDS: data races between waves, and reads of bytes that nobody has written.
//!
//! Two waves race if they access a byte between two barriers of the workgroup, one of them writes it, and
//! not both do so by an atomic. Lanes of one wave go together and do not race here. Waves that wait for
//! each other in another way than at a barrier seem to race.

use modelgpu_isa::Instruction;

use super::operation::Action;
use super::segment::Addresses;
use crate::error::Space;
use crate::lanes::active;
use crate::wave::Wave;

/// An access of a wave to a byte.
#[derive(Clone, Copy)]
struct Touch {
    wave: u16,
    /// Barriers of the workgroup before it, from 1 on; 0 without an access.
    turn: u32,
    pc: u64,
    is_atomic: bool,
}

const UNTOUCHED: Touch = Touch {
    wave: 0,
    turn: 0,
    pc: 0,
    is_atomic: false,
};

/// A byte's last write, and its last reads by two different waves: with one of them, a writer would not
/// race with itself and miss the other.
#[derive(Clone, Copy)]
struct Cell {
    write: Touch,
    reads: [Touch; 2],
}

/// The record of a workgroup's accesses to its LDS.
pub(crate) struct LdsWatch {
    cells: Vec<Cell>,
    turn: u32,
    /// The number of the wave that has its turn.
    pub(crate) wave: usize,
    /// The first race and the first read of unwritten bytes.
    pub(crate) race: Option<Sighting>,
    pub(crate) unwritten: Option<Sighting>,
}

/// A mistake that the watch has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub mnemonic: &'static str,
    pub wave: usize,
    pub pc: u64,
    pub lane: usize,
    pub address: u64,
    /// The other wave of a race, and its instruction.
    pub other: Option<(usize, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Atomic,
}

impl LdsWatch {
    pub(crate) fn new(bytes: usize) -> Self {
        let cell = Cell {
            write: UNTOUCHED,
            reads: [UNTOUCHED; 2],
        };
        Self {
            cells: vec![cell; bytes],
            turn: 1,
            wave: 0,
            race: None,
            unwritten: None,
        }
    }

    /// All waves of the workgroup have come to a barrier.
    pub(crate) fn barrier(&mut self) {
        self.turn += 1;
    }

    /// Records the accesses of an instruction before it executes.
    pub(super) fn look(
        &mut self,
        lanes: u64,
        action: Action,
        addresses: &Addresses,
        instruction: &Instruction,
        wave: &Wave,
    ) {
        let (kind, bytes, count) = match action {
            Action::Load { bytes, .. } => (Kind::Read, bytes, 1),
            Action::LoadTwo { bytes, .. } => (Kind::Read, bytes, 2),
            Action::Store { bytes, .. } => (Kind::Write, bytes, 1),
            Action::StoreTwo { bytes, .. } => (Kind::Write, bytes, 2),
            Action::Atomic { bytes, .. } => (Kind::Atomic, bytes, 1),
            _ => return,
        };
        let pc = wave.pc.wrapping_sub(instruction.size.into());
        for lane in active(lanes) {
            let (space, address) = addresses.place(lane, instruction, wave);
            if space != Space::Lds {
                continue;
            }
            for number in 0..count {
                let start = addresses.element(address, number);
                for byte in start..start + u64::from(bytes) {
                    self.touch(kind, byte, lane, pc, instruction.mnemonic);
                }
            }
        }
    }

    fn touch(&mut self, kind: Kind, byte: u64, lane: usize, pc: u64, mnemonic: &'static str) {
        let Some(cell) = self.cells.get_mut(byte as usize) else {
            return;
        };
        let touch = Touch {
            wave: self.wave as u16,
            turn: self.turn,
            pc,
            is_atomic: kind == Kind::Atomic,
        };
        let races = |other: &Touch| {
            other.turn == touch.turn
                && other.wave != touch.wave
                && !(other.is_atomic && touch.is_atomic)
        };
        let sighting = |other: Option<Touch>| Sighting {
            mnemonic,
            wave: self.wave,
            pc,
            lane,
            address: byte,
            other: other.map(|other| (other.wave.into(), other.pc)),
        };
        if kind != Kind::Write && cell.write.turn == 0 {
            self.unwritten.get_or_insert_with(|| sighting(None));
        }
        let mut other = Some(cell.write).filter(races);
        if kind != Kind::Read {
            other = other.or_else(|| cell.reads.into_iter().find(races));
        }
        if let Some(other) = other {
            self.race.get_or_insert_with(|| sighting(Some(other)));
        }
        match kind {
            Kind::Read if cell.reads[0].wave == touch.wave => cell.reads[0] = touch,
            Kind::Read => cell.reads = [touch, cell.reads[0]],
            Kind::Write | Kind::Atomic => cell.write = touch,
        }
    }
}
