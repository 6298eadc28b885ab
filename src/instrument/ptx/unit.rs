//! The variables of an instrumented module: those of clang and of rocov's plugin, see
//! [`cuda`](crate::format::codeobject::cuda).
//!
//! A unit is a module before it is linked with others (`-rdc=true`). The names of its variables have a hash of its text, and
//! those of copies have one of its probes, too. They are weak: two units with one text have one function each of which the
//! linker keeps one, and counters, too.

use std::fmt::Write;

use byteorder::{ByteOrder, LittleEndian};
use xxhash_rust::xxh3::Xxh3;

use crate::format::bounds_table::VERSION_SYMBOL;
use crate::format::copies_table::{CUDA_STRIDE_UNIT, MAGIC, PROBES_VERSION, Probes};
use crate::format::profraw::{RecordLayout, Version};
use crate::format::ptx::module::{Module, RECORD};
use crate::instrument::ptx::error::PtxRefusal;
use crate::instrument::ptx::plan::{Plan, WORD};
use crate::support::counting::Counting;

/// The most copies, and the most bytes that so many take.
const MAX_COPIES: u64 = 1024;
const MAX_BYTES: u64 = 1 << 20;
/// The most copies if they take more, and the most bytes that these take, unless a single copy takes more.
const MAX_LARGE_COPIES: u64 = 256;
const MAX_LARGE_BYTES: u64 = 16 << 20;
/// The words of a table of copies before the terms of its counters.
const TABLE_WORDS: usize = 7;

/// The counters of a module.
#[derive(Debug)]
pub(super) struct Unit {
    /// The end of its names.
    pub(super) name: String,
    /// The end of the names of its copies and of their table. With other options, the same text has other probes.
    pub(super) copies_name: String,
    counting: Counting,
    counters: u64,
    /// The probes of a copy, and the terms of all counters, as a table has them.
    probes: u64,
    terms: Vec<u32>,
    /// The words of flags, if blocks are not counted.
    words: u64,
}

/// The words for the flags of a function with so many blocks.
pub(super) fn words_for(blocks: usize) -> usize {
    blocks.div_ceil(WORD)
}

impl Unit {
    pub(super) fn new<'plans, 'text: 'plans>(
        module: &Module<'_>,
        counting: Counting,
        plans: impl Iterator<Item = &'plans Plan<'text>>,
    ) -> Self {
        let (mut probes, mut terms) = (0, Vec::new());
        for plan in plans {
            for block in &plan.sums {
                terms.extend(Probes::encoded(block.iter().map(|probe| probes + probe)));
            }
            probes += plan.probes.len();
        }
        let blocks = module
            .functions
            .iter()
            .map(|function| function.blocks.len());
        let words = match counting {
            Counting::Exact => 0,
            Counting::Reached => blocks.clone().map(words_for).sum(),
        };
        let mut hasher = Xxh3::new();
        hasher.update(module.text.as_bytes());
        let name = format!("rocov_{:016x}", hasher.digest());
        terms
            .iter()
            .for_each(|term: &u32| hasher.update(&term.to_le_bytes()));
        Self {
            name,
            copies_name: format!("rocov_{:016x}", hasher.digest()),
            counting,
            counters: blocks.sum::<usize>() as u64,
            words: words as u64,
            probes: probes as u64,
            terms,
        }
    }

    /// The place of the first byte of a block, after the words of flags.
    pub(super) fn first_byte(&self) -> u64 {
        4 * self.words
    }

    /// The distance from one copy to the next in bytes.
    pub(super) fn stride(&self) -> u64 {
        (8 * self.probes).next_multiple_of(CUDA_STRIDE_UNIT)
    }

    /// The number of copies, a power of two.
    pub(super) fn copies(&self) -> u64 {
        let fits = |copies: u64, bytes: u64| copies * self.stride() <= bytes;
        let mut copies = MAX_COPIES;
        while copies > 1
            && !fits(copies, MAX_BYTES)
            && !(copies <= MAX_LARGE_COPIES && fits(copies, MAX_LARGE_BYTES))
        {
            copies /= 2;
        }
        copies
    }

    /// The declarations of all variables.
    pub(super) fn variables(
        &self,
        module: &Module<'_>,
        version: u64,
    ) -> Result<String, PtxRefusal> {
        let unknown = PtxRefusal::Version { found: version };
        let version = Version::from_word(version).map_err(|_| unknown)?;
        let version = match self.counting {
            Counting::Exact => version,
            Counting::Reached => version.with_byte_counters(),
        };
        let mut code = format!(
            "\n.weak .global .align 8 .u64 {VERSION_SYMBOL} = {};\n",
            version.word()
        );
        code.push_str(&match self.counting {
            Counting::Exact => self.counts(),
            Counting::Reached => self.bytes(),
        });
        let records = module.records();
        self.declare_names(&mut code, &records.names());
        let layout = version.layout().record;
        let data = records.data(&version, self.first_byte());
        let records = data.chunks_exact(layout.bytes as usize);
        for (number, record) in records.enumerate() {
            self.declare_record(&mut code, &layout, number, record);
        }
        Ok(code)
    }

    /// The declaration of bytes of blocks, with words of flags before them. Nothing has run.
    fn bytes(&self) -> String {
        let length = (self.first_byte() + self.counters).div_ceil(8);
        let start = vec!["0xffffffffffffffff"; length as usize].join(",");
        format!(
            ".weak .global .align 8 .u64 __profc_{}[{length}] = {{{start}}};\n",
            self.name
        )
    }

    /// The declarations of counters, and of their copies.
    fn counts(&self) -> String {
        let Self {
            name,
            copies_name,
            counters,
            ..
        } = self;
        let area = self.copies() * self.stride();
        let terms = self.terms.chunks(2);
        let terms = terms.map(|pair| {
            pair.iter()
                .rev()
                .fold(0, |all, term| all << 32 | u64::from(*term))
        });
        let terms: String = terms.map(|word| format!(", {word:#x}")).collect();
        let words = TABLE_WORDS + self.terms.len().div_ceil(2);
        format!(
            ".weak .global .align 8 .b64 __profc_{name}[{counters}];\n\
             .weak .global .align {CUDA_STRIDE_UNIT} .b8 __rocov_copies_area_{copies_name}[{area}];\n\
             .weak .global .align 8 .u64 __rocov_copies_table_{copies_name}[{words}] = {{{:#x}, {:#x}, \
             generic(__rocov_copies_area_{copies_name}), generic(__rocov_copies_area_{copies_name})+{area}, \
             generic(__profc_{name}), generic(__profc_{name})+{}, {:#x}{terms}}};\n",
            u64::from_le_bytes(MAGIC),
            (8 * words as u64) << 32 | u64::from(PROBES_VERSION),
            8 * counters,
            self.probes
        )
    }

    fn declare_names(&self, code: &mut String, names: &[u8]) {
        let list: Vec<String> = names.iter().map(u8::to_string).collect();
        let _ = writeln!(
            code,
            ".weak .global .align 1 .b8 __llvm_prf_nm_{}[{}] = {{{}}};",
            self.name,
            names.len(),
            list.join(",")
        );
    }

    /// Declares a record. Its counters are those at its byte offset in the unit's.
    fn declare_record(
        &self,
        code: &mut String,
        layout: &RecordLayout,
        number: usize,
        record: &[u8],
    ) {
        let words = record.chunks_exact(8).map(LittleEndian::read_u64);
        let words: Vec<String> = words
            .enumerate()
            .map(|(word, value)| match Some(8 * word) {
                at if at == Some(layout.counter_ptr) => {
                    format!("generic(__profc_{})+{value}", self.name)
                }
                // PTX has no counters of whole waves.
                at if at == layout.uniform_ptr => "0x0".into(),
                _ => format!("{value:#x}"),
            })
            .collect();
        let _ = writeln!(
            code,
            ".weak .global .align 8 .u64 {RECORD}{number}_{}[{}] = {{{}}};",
            self.name,
            words.len(),
            words.join(", ")
        );
    }
}
