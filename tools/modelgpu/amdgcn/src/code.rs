//! Decoded instructions, kept between dispatches.
//!
//! Another code object may later lie at the same address. Each dispatch therefore compares an
//! instruction's bytes with memory when it first reaches the instruction. Within a dispatch code
//! does not change. It must not change on hardware either: instruction caches are not coherent.

use std::collections::{BTreeSet, HashMap};

use crate::error::Fault;
use crate::execute::{Operation, resolve};
use crate::isa::{Instruction, decode};
use crate::memory::View;
use crate::target::Target;

/// Instructions per page of the index: 4 KiB of code.
const PAGE: usize = 1024;
/// With more instructions than this, the cache starts empty again.
const LIMIT: usize = 1 << 20;
/// Marks an index entry without an instruction.
const VACANT: u32 = u32::MAX;

/// A cache of decoded instructions, kept from one dispatch to the next.
pub struct Code {
    target: Target,
    entries: Vec<Entry>,
    pages: Vec<[u32; PAGE]>,
    page_by_number: HashMap<u64, usize>,
    /// The page that was used last: its number and its place in `pages`.
    current: Option<(u64, usize)>,
    dispatch: u64,
}

struct Entry {
    words: [u32; 2],
    /// The dispatch that last compared `words` with memory.
    verified: u64,
    decoded: Decoded,
}

/// An instruction and its operation; `None` if the interpreter does not model it.
pub(crate) struct Decoded {
    pub instruction: Instruction,
    pub operation: Option<Operation>,
}

impl Code {
    /// Creates an empty cache for code of `target`.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            entries: Vec::new(),
            pages: Vec::new(),
            page_by_number: HashMap::new(),
            current: None,
            dispatch: 0,
        }
    }

    /// The processor that the code is for.
    pub(crate) fn target(&self) -> Target {
        self.target
    }

    /// Starts a dispatch: memory may have changed since the last one.
    pub(crate) fn begin_dispatch(&mut self) {
        self.dispatch += 1;
        if self.entries.len() > LIMIT {
            *self = Self {
                dispatch: self.dispatch,
                ..Self::new(self.target)
            };
        }
    }

    /// The mnemonics of the instructions that the last dispatch reached.
    pub(crate) fn mnemonics(&self) -> BTreeSet<&'static str> {
        self.entries
            .iter()
            .filter(|entry| entry.verified == self.dispatch)
            .map(|entry| entry.decoded.instruction.mnemonic)
            .collect()
    }

    /// Returns the instruction at `pc`, decoded on its first use in a dispatch.
    pub(crate) fn fetch(&mut self, pc: u64, memory: &mut View<'_>) -> Result<&Decoded, Fault> {
        let page = self.page(pc / (4 * PAGE as u64));
        let slot = (pc / 4) as usize % PAGE;
        let index = self.pages[page][slot];
        if index != VACANT
            && self.entries[index as usize].verified == self.dispatch
            && pc.is_multiple_of(4)
        {
            return Ok(&self.entries[index as usize].decoded);
        }
        let index = self.refetch(pc, page, slot, memory)?;
        Ok(&self.entries[index].decoded)
    }

    fn page(&mut self, number: u64) -> usize {
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
        pc: u64,
        page: usize,
        slot: usize,
        memory: &mut View<'_>,
    ) -> Result<usize, Fault> {
        let fault = Fault::Fetch { address: pc };
        if !pc.is_multiple_of(4) {
            return Err(fault);
        }
        let first = memory.load(pc, 4).map_err(|_| fault)? as u32;
        // The last instruction of a region has no second dword.
        let second = memory.load(pc.wrapping_add(4), 4).unwrap_or(0) as u32;
        let words = [first, second];
        let index = self.pages[page][slot];
        if index != VACANT && self.entries[index as usize].words == words {
            self.entries[index as usize].verified = self.dispatch;
            return Ok(index as usize);
        }
        let instruction =
            decode(words, self.target).map_err(|error| Fault::IllegalInstruction {
                words: error.words,
                target: self.target.name(),
            })?;
        let operation = resolve(instruction.mnemonic);
        let decoded = Decoded {
            instruction,
            operation,
        };
        self.entries.push(Entry {
            words,
            verified: self.dispatch,
            decoded,
        });
        self.pages[page][slot] = (self.entries.len() - 1) as u32;
        Ok(self.entries.len() - 1)
    }
}
