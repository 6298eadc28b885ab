//! A cache of decoded instructions.
//!
//! Another code object may later lie at the same address. Each dispatch therefore compares an
//! instruction's bytes with memory when it first reaches the instruction. Within a dispatch code
//! does not change. It must not change on hardware either: instruction caches are not coherent.

use std::collections::HashMap;

use modelgpu_isa::{Banks, Instruction, Target, decode};

use crate::allotment::Allotment;
use crate::error::Fault;
use crate::execute::{Dual, Operation, Simd, Step, Wait, resolve};
use crate::hazards::Nature;
use crate::lanes::WaveSize;
use crate::memory::View;
use crate::trace::{Tally, Trace};

/// Instructions per page of the index: 4 KiB of code.
const PAGE: usize = 1024;

/// With more instructions than this, the cache starts empty again.
const LIMIT: usize = 1 << 20;

/// Marks an index entry without an instruction.
const VACANT: u32 = u32::MAX;

/// A cache of decoded instructions.
pub(crate) struct Decoder {
    target: Target,
    simd: Simd,
    entries: Vec<Entry>,
    /// The rest of each entry, apart: it would push other entries out of the host's caches.
    decoded: Vec<Decoded>,
    pages: Vec<[u32; PAGE]>,
    /// Instructions name other registers if the wave has chosen other banks.
    page_by_number: HashMap<(u64, Banks), usize>,
    /// The page that was used last: its number and its place in `pages`.
    current: Option<((u64, Banks), usize)>,
    dispatch: u64,
    /// The registers of the dispatch's waves, and their size.
    registers: Allotment,
    size: WaveSize,
    /// The executions of each entry, if the dispatch is traced.
    tally: Option<Tally>,
    /// The natures of entries in waves of `size`, for those that a watch for hazards has looked at.
    natures: Vec<Option<Box<Nature>>>,
}

/// The part of a decoded instruction that each execution needs.
pub(crate) struct Entry {
    /// The dispatch that last compared the instruction's words with memory.
    verified: u64,
    /// The entry of the instruction behind this one, once it is known.
    next: u32,
    /// Size in bytes.
    pub size: u8,
    pub step: Step,
}

/// An instruction and its operation; `None` if the interpreter does not model it.
pub(crate) struct Decoded {
    words: [u32; 4],
    pub instruction: Instruction,
    pub operation: Option<&'static Operation>,
    /// The instruction is a dual one: both its parts. The fields above are the first one's.
    pub second: Option<Box<Dual>>,
    /// The way in which the wave may wait.
    pub wait: Wait,
    /// The registers that the instruction needs, in waves of 32 and of 64 lanes.
    needed: [Allotment; 2],
}

impl Decoded {
    pub(crate) fn mnemonics(&self) -> impl Iterator<Item = &'static str> {
        let second = self.instruction.second.map(|second| second.mnemonic);
        std::iter::once(self.instruction.mnemonic).chain(second)
    }
}

impl Decoder {
    pub(crate) fn new(target: Target, simd: Simd) -> Self {
        Self {
            target,
            simd,
            entries: Vec::new(),
            decoded: Vec::new(),
            pages: Vec::new(),
            page_by_number: HashMap::new(),
            current: None,
            dispatch: 0,
            registers: Allotment::default(),
            size: WaveSize::Wave64,
            tally: None,
            natures: Vec::new(),
        }
    }

    pub(crate) fn begin_dispatch(
        &mut self,
        dispatch: u64,
        is_traced: bool,
        registers: Allotment,
        size: WaveSize,
    ) {
        if self.entries.len() > LIMIT {
            *self = Self::new(self.target, self.simd);
        }
        self.dispatch = dispatch;
        self.registers = registers;
        if self.size != size {
            self.natures.clear();
        }
        self.size = size;
        match &mut self.tally {
            Some(tally) if is_traced => tally.begin(),
            tally => *tally = is_traced.then(Tally::default),
        }
    }

    /// The executions of this dispatch, if it is traced.
    #[inline(always)]
    pub(crate) fn tally(&mut self) -> Option<&mut Tally> {
        self.tally.as_mut()
    }

    /// Moves the executions so far to `trace`.
    pub(crate) fn flush(&mut self, trace: &Trace) {
        if let Some(tally) = &mut self.tally {
            tally.flush(trace);
        }
    }

    pub(crate) fn mnemonics(&self) -> impl Iterator<Item = &'static str> {
        self.entries
            .iter()
            .zip(&self.decoded)
            .filter(|(entry, _)| entry.verified == self.dispatch)
            .flat_map(|(_, decoded)| decoded.mnemonics())
    }

    /// The instruction with an index that [`Decoder::fetch`] or [`Decoder::following`] returned.
    #[inline(always)]
    pub(crate) fn at(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    /// The rest of this instruction.
    pub(crate) fn decoded(&self, index: u32) -> &Decoded {
        &self.decoded[index as usize]
    }

    /// The nature of this instruction, and the instruction.
    pub(crate) fn nature(&mut self, index: u32) -> (&Nature, &Instruction) {
        let (target, size) = (self.target, self.size.of_instructions());
        let instruction = &self.decoded[index as usize].instruction;
        let place = index as usize;
        if self.natures.len() <= place {
            self.natures.resize(self.decoded.len(), None);
        }
        let nature = self.natures[place]
            .get_or_insert_with(|| Box::new(Nature::new(instruction, target, size)));
        (nature, instruction)
    }

    /// The index of the instruction at `pc`, which lies behind the one at `index`. The banks are those of that one, or
    /// it sets them by its own constant.
    #[inline(always)]
    pub(crate) fn following(
        &mut self,
        index: u32,
        (pc, banks): (u64, Banks),
        memory: &mut View<'_>,
    ) -> Result<u32, Fault> {
        let next = self.entries[index as usize].next;
        let is_known = self
            .entries
            .get(next as usize)
            .is_some_and(|entry| entry.verified == self.dispatch);
        if is_known {
            return Ok(next);
        }
        let next = self.fetch((pc, banks), memory)?;
        self.entries[index as usize].next = next;
        Ok(next)
    }

    /// The index of the instruction at `pc`, decoded on its first use in a dispatch.
    pub(crate) fn fetch(
        &mut self,
        (pc, banks): (u64, Banks),
        memory: &mut View<'_>,
    ) -> Result<u32, Fault> {
        let page = self.page((pc / (4 * PAGE as u64), banks));
        let slot = (pc / 4) as usize % PAGE;
        let index = self.pages[page][slot];
        if index != VACANT
            && self.entries[index as usize].verified == self.dispatch
            && pc.is_multiple_of(4)
        {
            return Ok(index);
        }
        self.refetch((pc, banks), page, slot, memory)
    }

    fn page(&mut self, number: (u64, Banks)) -> usize {
        if let Some((current, page)) = self.current
            && current == number
        {
            return page;
        }
        let page = *self.page_by_number.entry(number).or_insert_with(|| {
            self.pages.push([VACANT; PAGE]);
            self.pages.len() - 1
        });
        self.current = Some((number, page));
        page
    }

    fn refetch(
        &mut self,
        (pc, banks): (u64, Banks),
        page: usize,
        slot: usize,
        memory: &mut View<'_>,
    ) -> Result<u32, Fault> {
        let fault = Fault::Fetch { address: pc };
        if !pc.is_multiple_of(4) {
            return Err(fault);
        }
        let first = memory.load(pc, 4).map_err(|_| fault)? as u32;
        // The last instruction of a region may have no further dword.
        let mut word = |offset| memory.load(pc.wrapping_add(offset), 4).unwrap_or(0) as u32;
        let words = [first, word(4), word(8), word(12)];
        let index = self.pages[page][slot];
        if index != VACANT && self.decoded[index as usize].words == words {
            self.check_registers(index)?;
            self.entries[index as usize].verified = self.dispatch;
            self.reach(pc, index);
            return Ok(index);
        }
        let instruction = decode(words, self.target)
            .map_err(|error| Fault::IllegalInstruction {
                words: error.words,
                target: self.target.name(),
            })?
            .in_banks(banks);
        let operation = resolve(instruction.mnemonic, self.target);
        let wait = operation.map_or(Wait::No, |operation| operation.wait(&instruction));
        let needed = [modelgpu_isa::WaveSize::W32, modelgpu_isa::WaveSize::W64]
            .map(|size| Allotment::needed(&instruction, size));
        let is_dual = instruction.second.is_some();
        self.entries.push(Entry {
            // The registers are checked below.
            verified: 0,
            next: VACANT,
            size: instruction.size,
            step: operation
                .filter(|_| wait == Wait::No && !is_dual)
                .map_or(Step::Other, |operation| {
                    Step::new(operation, &instruction, self.simd)
                }),
        });
        self.decoded.push(Decoded {
            words,
            instruction,
            operation,
            second: instruction
                .second()
                .map(|second| Box::new(Dual::new(instruction, second, self.target, self.simd))),
            wait,
            needed,
        });
        let index = (self.entries.len() - 1) as u32;
        self.pages[page][slot] = index;
        self.check_registers(index)?;
        self.entries[index as usize].verified = self.dispatch;
        self.reach(pc, index);
        Ok(index)
    }

    /// Checks that the dispatch's waves have the registers of an instruction.
    fn check_registers(&self, index: u32) -> Result<(), Fault> {
        let decoded = &self.decoded[index as usize];
        let needed = decoded.needed[self.size.of_instructions() as usize];
        self.registers.check(needed, decoded.instruction.mnemonic)
    }

    fn reach(&mut self, pc: u64, index: u32) {
        if let Some(tally) = &mut self.tally {
            tally.reach(pc, index);
        }
    }
}
