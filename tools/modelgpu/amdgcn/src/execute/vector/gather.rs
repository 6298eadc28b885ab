//! Source operands of vector instructions. Registers, scalars and constants become one value per
//! lane. This module applies SDWA, DPP, half selection, absolute value, negation and denormal
//! flushing.

use modelgpu_isa::{Instruction, Selection};

use super::super::unmodelled;
use super::super::value::Kind;
use super::dpp;
use super::operands::indexed;
use crate::error::Fault;
use crate::lanes::{LANES, Longs, Words};
use crate::wave::Wave;

/// Reads one instruction's sources.
pub(super) struct Gather<'a> {
    instruction: &'a Instruction,
    wave: &'a Wave,
    /// The way of the first source, if DPP moves it.
    route: Option<Box<(dpp::Route, dpp::RouteLanes)>>,
}

impl<'a> Gather<'a> {
    pub(super) fn new(instruction: &'a Instruction, wave: &'a Wave) -> Result<Self, Fault> {
        let route = match &instruction.dpp {
            Some(control) => {
                let route = dpp::Route::new(control)
                    .ok_or_else(|| unmodelled(instruction, "this DPP control"))?;
                let lanes = route.lanes(wave.exec(), wave.all_lanes);
                Some(Box::new((route, lanes)))
            }
            None => None,
        };
        Ok(Gather {
            instruction,
            wave,
            route,
        })
    }

    /// The lanes that write a result.
    pub(super) fn lanes(&self) -> u64 {
        match &self.route {
            Some(route) => route.1.writing,
            None => self.wave.exec(),
        }
    }

    /// Fills `words` with a 32-bit source without modifiers.
    pub(super) fn raw(&self, place: usize, kind: Kind, words: &mut Words) -> Result<(), Fault> {
        let operand = indexed(self.instruction.src[place], place as u8, self.wave);
        match operand.vector_index() {
            Some(index) => *words = self.wave.vectors[index],
            None => words.fill(self.scalar(place, kind)? as u32),
        }
        Ok(())
    }

    /// Fills `words` with a source of at most 32 bits.
    pub(super) fn words(&self, place: usize, kind: Kind, words: &mut Words) -> Result<(), Fault> {
        if kind == Kind::None {
            return Ok(());
        }
        self.raw(place, kind, words)?;
        if place == 0
            && let Some((route, lanes)) = self.route.as_deref()
        {
            route.apply(words, lanes.present);
        }
        if place < 2
            && let Some(sdwa) = &self.instruction.sdwa
        {
            let source = sdwa.src[place];
            for word in words.iter_mut() {
                *word = select(*word, source.selection, source.sign_extend);
            }
        }
        if kind.is_half() {
            let shift = 16 * u32::from(self.instruction.modifiers.op_sel >> place & 1);
            for word in words.iter_mut() {
                *word = *word >> shift & 0xffff;
            }
        }
        let (clear, flip) = self.sign_masks(place, kind);
        if clear != 0 || flip != 0 {
            for word in words.iter_mut() {
                *word = *word & !(clear as u32) ^ flip as u32;
            }
        }
        if kind.is_float() && self.wave.mode.flushes_sources(kind) {
            for word in words.iter_mut() {
                *word = kind.flushed((*word).into()) as u32;
            }
        }
        Ok(())
    }

    /// All sources, widened to 64 bits.
    pub(super) fn all_longs(&self, kinds: [Kind; 3]) -> Result<[Longs; 3], Fault> {
        let mut longs = [[0; LANES]; 3];
        for (place, kind) in kinds.into_iter().enumerate() {
            self.longs(place, kind, &mut longs[place])?;
        }
        Ok(longs)
    }

    /// All sources, as low and high halves.
    pub(super) fn all_halves(&self, kinds: [Kind; 3]) -> Result<[[Words; 2]; 3], Fault> {
        Ok(self.all_longs(kinds)?.map(|longs| {
            [
                longs.map(|long| long as u32),
                longs.map(|long| (long >> 32) as u32),
            ]
        }))
    }

    fn longs(&self, place: usize, kind: Kind, longs: &mut Longs) -> Result<(), Fault> {
        if !kind.is_long() {
            let mut words = [0; LANES];
            self.words(place, kind, &mut words)?;
            for (long, word) in longs.iter_mut().zip(words) {
                *long = word.into();
            }
            return Ok(());
        }
        if self.instruction.sdwa.is_some() {
            return Err(unmodelled(self.instruction, "SDWA on a 64-bit operand"));
        }
        let operand = indexed(self.instruction.src[place], place as u8, self.wave);
        match operand.vector_index() {
            Some(index) => {
                let mut halves = [self.wave.vectors[index], self.wave.vectors[index + 1]];
                if place == 0
                    && let Some((route, lanes)) = self.route.as_deref()
                {
                    halves
                        .iter_mut()
                        .for_each(|half| route.apply(half, lanes.present));
                }
                for (lane, long) in longs.iter_mut().enumerate() {
                    *long = u64::from(halves[0][lane]) | u64::from(halves[1][lane]) << 32;
                }
            }
            None => longs.fill(self.scalar(place, kind)?),
        }
        let (clear, flip) = self.sign_masks(place, kind);
        let flushes = self.wave.mode.flushes_sources(kind);
        if clear != 0 || flip != 0 || flushes {
            for long in longs.iter_mut() {
                *long = *long & !clear ^ flip;
                if flushes {
                    *long = kind.flushed(*long);
                }
            }
        }
        Ok(())
    }

    fn scalar(&self, place: usize, kind: Kind) -> Result<u64, Fault> {
        super::super::scalar_source(self.instruction, place, kind, self.wave)
    }

    /// The bits that the abs and neg modifiers clear and flip.
    fn sign_masks(&self, place: usize, kind: Kind) -> (u64, u64) {
        let modifiers = &self.instruction.modifiers;
        let mask = |modifier: u8| {
            if modifier >> place & 1 == 1 {
                kind.sign_bit()
            } else {
                0
            }
        };
        (mask(modifiers.abs), mask(modifiers.neg))
    }
}

/// A part of a word, extended to 32 bits.
fn select(word: u32, selection: Selection, sign_extend: bool) -> u32 {
    match selection {
        Selection::Dword => word,
        Selection::Byte(place) => {
            let byte = (word >> (8 * place)) as u8;
            if sign_extend {
                byte as i8 as u32
            } else {
                byte.into()
            }
        }
        Selection::Half(place) => {
            let half = (word >> (16 * place)) as u16;
            if sign_extend {
                half as i16 as u32
            } else {
                half.into()
            }
        }
    }
}
