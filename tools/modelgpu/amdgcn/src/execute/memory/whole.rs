//! Accesses of all active lanes at once, if their addresses lie in one piece of memory and need no
//! special care. The other module, `lane_access.rs`, executes every access, lane by lane.

use modelgpu_isa::Instruction;

use super::super::Surroundings;
use super::super::simd::{Leveled, Simd, SpanFunction, leveled};
use super::atomic::AtomicFunction;
use super::operation::{Action, Part, Segment};
use super::segment::{Addresses, VectorPart, elements};
use crate::lanes::{LANES, Longs, Words, active};
use crate::memory::Span;
use crate::registers::Registers;
use crate::wave::Wave;

const ZEROS: Words = [0; LANES];

const SPAN: Leveled<SpanFunction> = leveled!(|low: &Words,
                                              high: &Words,
                                              base: u64,
                                              bits: u64,
                                              lanes: u64,
                                              span: &mut Span|
 -> () {
    let first = lanes.trailing_zeros() as usize % LANES;
    let address = |lane: usize| {
        (u64::from(low[lane]) | u64::from(high[lane]) << 32).wrapping_add(base) & bits
    };
    let usual = address(first);
    let step = address(1).wrapping_sub(usual);
    let (mut lowest, mut highest, mut found, mut differs) = (u64::MAX, 0, 0, 0);
    let mut add = |lane: usize, address: u64, active: u64| {
        span.addresses[lane] = address;
        lowest = lowest.min(address);
        highest = highest.max(address);
        found |= address;
        differs |= (address ^ usual.wrapping_add(step.wrapping_mul(lane as u64))) & active;
    };
    if lanes == u64::MAX >> (64 - LANES) {
        for lane in 0..LANES {
            add(lane, address(lane), u64::MAX);
        }
    } else {
        for lane in 0..LANES {
            let active = 0u64.wrapping_sub(lanes >> lane & 1);
            add(lane, address(lane) & active | usual & !active, active);
        }
    }
    span.lowest = lowest;
    span.highest = highest;
    span.bits = found;
    span.end = 64 - lanes.leading_zeros() as usize;
    let is_row = differs == 0 && lanes & lanes.wrapping_add(1) == 0;
    span.step = if is_row { step } else { 0 };
});

impl Span {
    /// Computes the addresses of the active lanes, of which there is one at least.
    fn set(&mut self, lanes: u64, addresses: &Addresses, instruction: &Instruction, wave: &Wave) {
        let register = instruction.src[0].vector_index().unwrap_or_default();
        let vectors = &wave.vectors;
        let [low, high] = match addresses.vector {
            VectorPart::Absent => [&ZEROS, &ZEROS],
            VectorPart::Word => [&vectors[register], &ZEROS],
            VectorPart::Pair => [&vectors[register], &vectors[register + 1]],
            VectorPart::Elements(size) => {
                return self.set_elements(size, &vectors[register], lanes, addresses, wave);
            }
        };
        let Addresses { base, bits, .. } = *addresses;
        SPAN.for_wave(wave).call(low, high, base, bits, lanes, self);
    }

    /// As [`Self::set`], for the numbers of elements of `size` bytes.
    #[cold]
    fn set_elements(
        &mut self,
        size: u8,
        numbers: &[u32; LANES],
        lanes: u64,
        addresses: &Addresses,
        wave: &Wave,
    ) {
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for ((low, high), number) in low.iter_mut().zip(&mut high).zip(numbers) {
            let bytes = elements(*number, size);
            (*low, *high) = (bytes as u32, (bytes >> 32) as u32);
        }
        let Addresses { base, bits, .. } = *addresses;
        SPAN.for_wave(wave)
            .call(&low, &high, base, bits, lanes, self);
    }

    /// If all addresses lie in an aperture, with and without the base, makes them offsets in it and returns
    /// `true`.
    fn leave(&mut self, aperture: u64, base: u64) -> bool {
        let in_aperture = |address: u64| address & !0xffff_ffff == aperture;
        let is_inside =
            |address: u64| in_aperture(address) && in_aperture(address.wrapping_sub(base));
        if !is_inside(self.lowest) || !is_inside(self.highest) {
            return false;
        }
        for address in &mut self.addresses {
            *address &= 0xffff_ffff;
        }
        self.lowest &= 0xffff_ffff;
        self.highest &= 0xffff_ffff;
        true
    }

    /// Like `leave`, if each lane has an address in its own scratch, with its number.
    fn leave_lanes(&mut self, lanes: u64, addresses: &Addresses, wave: &Wave) -> bool {
        let is_own = |lane: usize, address: u64| {
            wave.apertures.owner(address, usize::MAX) == Some(lane)
                && wave
                    .apertures
                    .owner(address.wrapping_sub(addresses.offset()), 0)
                    == Some(lane)
        };
        if !active(lanes).all(|lane| is_own(lane, self.addresses[lane])) {
            return false;
        }
        for address in &mut self.addresses {
            *address &= 0xffff_ffff;
        }
        let offsets = || active(lanes).map(|lane| self.addresses[lane]);
        let (lowest, highest) = (offsets().min(), offsets().max());
        (self.lowest, self.highest) = (lowest.unwrap_or(0), highest.unwrap_or(0));
        true
    }

    /// Returns whether `bytes` from each address on lie in `len` bytes.
    fn fits(&self, bytes: u64, len: usize) -> bool {
        self.highest.saturating_add(bytes) <= len as u64
    }
}

/// Executes the access of these lanes. Returns `false`, without an effect, if it cannot.
pub(super) fn execute(
    lanes: u64,
    action: Action,
    addresses: &Addresses,
    instruction: &Instruction,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
) -> bool {
    if lanes == 0 {
        return true;
    }
    // One lane is no faster here.
    if lanes & (lanes - 1) == 0 {
        return false;
    }
    let span = &mut surroundings.span;
    span.set(lanes, addresses, instruction, wave);
    match addresses.segment {
        Segment::Lds => lds(lanes, action, addresses, instruction, wave, surroundings),
        Segment::Flat
            if wave.apertures.private_has_lane && span.leave_lanes(lanes, addresses, wave) =>
        {
            scratch(lanes, action, instruction, wave, span)
        }
        Segment::Flat
            if !wave.apertures.private_has_lane
                && span.leave(wave.apertures.private, addresses.offset()) =>
        {
            scratch(lanes, action, instruction, wave, span)
        }
        Segment::Flat if span.leave(wave.apertures.shared, addresses.offset()) => {
            lds(lanes, action, addresses, instruction, wave, surroundings)
        }
        Segment::Global | Segment::Flat => global(lanes, action, instruction, wave, surroundings),
        Segment::Scratch | Segment::Buffer => {
            scratch(lanes, action, instruction, wave, &surroundings.span)
        }
    }
}

/// The registers that a load writes, or whose values a store has.
fn data(action: Action, instruction: &Instruction) -> Option<usize> {
    match action {
        Action::Load { .. } | Action::LoadTwo { .. } => instruction.dst.vector_index(),
        _ => instruction.src[1].vector_index(),
    }
}

fn global(
    lanes: u64,
    action: Action,
    instruction: &Instruction,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
) -> bool {
    let Some(register) = data(action, instruction) else {
        return false;
    };
    let simd = wave.simd;
    let Surroundings { memory, span, .. } = surroundings;
    match action {
        Action::Load {
            bytes,
            sign_extend,
            part: Part::Whole,
        } => {
            let Registers {
                vectors, results, ..
            } = &mut *wave.vectors;
            if !memory.load_lanes(span, bytes.into(), results) {
                return false;
            }
            if bytes < 4 {
                extend(&mut results[0], bytes, sign_extend);
            }
            for (word, results) in results.iter().enumerate().take(words_of(bytes)) {
                simd.blend(&mut vectors[register + word], results, lanes);
            }
            true
        }
        Action::Store {
            bytes,
            part: Part::Whole,
        } => {
            let values = &wave.vectors[register..register + words_of(bytes)];
            memory.store_lanes(span, lanes, bytes.into(), values)
        }
        Action::Atomic {
            function,
            bytes,
            returns,
        } => {
            let words = words_of(bytes);
            let read = |register: usize| -> Longs {
                let [low, high] =
                    [register, register + words - 1].map(|index| &wave.vectors[index]);
                let high_bits = if words == 1 { 0 } else { u64::MAX << 32 };
                std::array::from_fn(|lane| {
                    u64::from(low[lane]) | u64::from(high[lane]) << 32 & high_bits
                })
            };
            let operands = read(register);
            let compared = match function {
                AtomicFunction::CompareSwap => read(register + words),
                _ => [0; LANES],
            };
            let update =
                |lane: usize, old| function.apply(bytes, old, operands[lane], compared[lane]);
            let mut old_values = [0; LANES];
            if !memory.atomic_lanes(span, lanes, bytes.into(), update, &mut old_values) {
                return false;
            }
            if let (true, Some(target)) = (
                returns || instruction.returns,
                instruction.dst.vector_index(),
            ) {
                for word in 0..words {
                    let values = old_values.map(|value| (value >> (32 * word)) as u32);
                    simd.blend(&mut wave.vectors[target + word], &values, lanes);
                }
            }
            true
        }
        _ => false,
    }
}

fn words_of(bytes: u8) -> usize {
    usize::from(bytes.div_ceil(4))
}

fn extend(words: &mut Words, bytes: u8, sign_extend: bool) {
    let unused = 32 - 8 * u32::from(bytes);
    for word in words {
        *word = match sign_extend {
            true => ((*word << unused) as i32 >> unused) as u32,
            false => *word << unused >> unused,
        };
    }
}

fn lds(
    lanes: u64,
    action: Action,
    addresses: &Addresses,
    instruction: &Instruction,
    wave: &mut Wave,
    surroundings: &mut Surroundings<'_>,
) -> bool {
    let Some(register) = data(action, instruction) else {
        return false;
    };
    let simd = wave.simd;
    let Surroundings { lds, span, .. } = surroundings;
    let (span, elements) = (&**span, addresses.elements);
    match action {
        Action::Load {
            bytes,
            sign_extend,
            part: Part::Whole,
        } => {
            if !span.fits(bytes.into(), lds.len()) {
                return false;
            }
            for word in 0..words_of(bytes) {
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                let results = &mut results[0];
                if bytes < 4 {
                    let addresses = &span.addresses[..span.end];
                    for (result, address) in results.iter_mut().zip(addresses) {
                        let place = *address as usize;
                        let low = u32::from(lds[place]);
                        let high = if bytes == 2 {
                            lds[place + 1].into()
                        } else {
                            0u32
                        };
                        *result = low | high << 8;
                    }
                    extend(results, bytes, sign_extend);
                } else {
                    load_words(lds, span, 4 * word, simd, results);
                }
                simd.blend(&mut vectors[register + word], results, lanes);
            }
            true
        }
        Action::Store {
            bytes,
            part: Part::Whole,
        } => {
            if !span.fits(bytes.into(), lds.len()) {
                return false;
            }
            let values = &wave.vectors[register..register + words_of(bytes)];
            if bytes < 4 {
                for lane in active(lanes) {
                    let place = span.addresses[lane] as usize;
                    let value = values[0][lane].to_le_bytes();
                    lds[place..place + usize::from(bytes)]
                        .copy_from_slice(&value[..usize::from(bytes)]);
                }
            } else {
                store_words(lds, span, lanes, values);
            }
            true
        }
        Action::LoadTwo { bytes, .. } => {
            let last = elements[0].max(elements[1]);
            if !span.fits(u64::from(last) + u64::from(bytes), lds.len()) {
                return false;
            }
            for (number, offset) in elements.into_iter().enumerate() {
                for word in 0..words_of(bytes) {
                    let Registers {
                        vectors, results, ..
                    } = &mut *wave.vectors;
                    load_words(lds, span, offset as usize + 4 * word, simd, &mut results[0]);
                    let place = register + number * words_of(bytes) + word;
                    simd.blend(&mut vectors[place], &results[0], lanes);
                }
            }
            true
        }
        Action::StoreTwo { bytes, .. } => {
            let last = elements[0].max(elements[1]);
            // Overlapping elements take effect lane by lane.
            let overlap = last < bytes.into();
            let Some(second) = instruction.src[2].vector_index() else {
                return false;
            };
            if overlap || !span.fits(u64::from(last) + u64::from(bytes), lds.len()) {
                return false;
            }
            let count = words_of(bytes);
            for lane in active(lanes) {
                for (offset, register) in elements.into_iter().zip([register, second]) {
                    let place = span.addresses[lane] as usize + offset as usize;
                    for word in 0..count {
                        let value = wave.vectors[register + word][lane].to_le_bytes();
                        lds[place + 4 * word..place + 4 * word + 4].copy_from_slice(&value);
                    }
                }
            }
            true
        }
        Action::Atomic {
            function,
            bytes: 4,
            returns,
        } if function != AtomicFunction::CompareSwap => {
            if !span.fits(4, lds.len()) {
                return false;
            }
            let target = instruction.dst.vector_index().filter(|_| returns);
            for lane in active(lanes) {
                let place = span.addresses[lane] as usize;
                let Some(word) = lds[place..].first_chunk_mut::<4>() else {
                    continue;
                };
                let old = u32::from_le_bytes(*word);
                let operand = wave.vectors[register][lane];
                let new = match function {
                    AtomicFunction::Add => old.wrapping_add(operand),
                    _ => function.apply(4, old.into(), operand.into(), 0) as u32,
                };
                *word = new.to_le_bytes();
                if let Some(target) = target {
                    wave.vectors[target][lane] = old;
                }
            }
            true
        }
        _ => false,
    }
}

/// Loads a word for each lane, at an offset from its address.
fn load_words(memory: &[u8], span: &Span, offset: usize, simd: Simd, results: &mut Words) {
    if span.step == 4 {
        let first = span.lowest as usize + offset;
        let bytes = memory[first..first + 4 * span.end].as_chunks().0;
        for (result, bytes) in results.iter_mut().zip(bytes) {
            *result = u32::from_le_bytes(*bytes);
        }
    } else if span.lowest == span.highest {
        let bytes = memory[span.lowest as usize + offset..].first_chunk();
        simd.fill(results, bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes)));
    } else {
        let offsets = &span.addresses[..span.end.next_multiple_of(Simd::GATHERED)];
        simd.gather(memory, offsets, offset, results);
    }
}

fn store_words(memory: &mut [u8], span: &Span, lanes: u64, values: &[Words]) {
    if let ([values], 4) = (values, span.step) {
        let first = span.lowest as usize;
        let places = memory[first..first + 4 * span.end].as_chunks_mut().0;
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
        return;
    }
    for lane in active(lanes) {
        let place = span.addresses[lane] as usize;
        for (word, values) in values.iter().enumerate() {
            memory[place + 4 * word..place + 4 * word + 4]
                .copy_from_slice(&values[lane].to_le_bytes());
        }
    }
}

/// Scratch: each lane has its own share, and most accesses are at one address.
fn scratch(
    lanes: u64,
    action: Action,
    instruction: &Instruction,
    wave: &mut Wave,
    span: &Span,
) -> bool {
    let Some(register) = data(action, instruction) else {
        return false;
    };
    let simd = wave.simd;
    let share = wave.scratch.per_lane;
    // The dwords of all lanes at one address lie side by side.
    let row = |word: usize| (span.lowest as usize + 4 * word) * LANES;
    let is_row = span.lowest == span.highest && span.lowest.is_multiple_of(4);
    match action {
        Action::Load {
            bytes,
            sign_extend,
            part: Part::Whole,
        } => {
            if !span.fits(bytes.into(), share) {
                return false;
            }
            for word in 0..words_of(bytes) {
                let Registers {
                    vectors, results, ..
                } = &mut *wave.vectors;
                let results = &mut results[0];
                if is_row && bytes >= 4 {
                    let row = &wave.scratch.bytes[row(word)..][..4 * LANES];
                    for (result, bytes) in results.iter_mut().zip(row.as_chunks().0) {
                        *result = u32::from_le_bytes(*bytes);
                    }
                } else {
                    for lane in active(lanes) {
                        let address = span.addresses[lane] as usize + 4 * word;
                        let size = usize::from(bytes).min(4);
                        results[lane] = wave.scratch.read(lane, address, size) as u32;
                    }
                }
                if bytes < 4 {
                    extend(results, bytes, sign_extend);
                }
                simd.blend(&mut vectors[register + word], results, lanes);
            }
            true
        }
        Action::Store {
            bytes,
            part: Part::Whole,
        } => {
            if !span.fits(bytes.into(), share) {
                return false;
            }
            for word in 0..words_of(bytes) {
                let values = &wave.vectors[register + word];
                if is_row && bytes >= 4 && lanes == wave.all_lanes {
                    let row = &mut wave.scratch.bytes[row(word)..][..4 * span.end];
                    for (bytes, value) in row.as_chunks_mut().0.iter_mut().zip(values) {
                        *bytes = value.to_le_bytes();
                    }
                    continue;
                }
                for lane in active(lanes) {
                    let address = span.addresses[lane] as usize + 4 * word;
                    let size = usize::from(bytes).min(4);
                    wave.scratch.write(lane, address, size, values[lane].into());
                }
            }
            true
        }
        _ => false,
    }
}
