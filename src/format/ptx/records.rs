//! The variables of a module that counts: those of clang and of rocov's plugin, see
//! [`cuda`](crate::format::codeobject::cuda).
//!
//! A unit is a module before it is linked with others (`-rdc=true`). The names of its variables have a hash of its text,
//! and they are weak: two units with one text have one function each of which the linker keeps one, and counters, too.

use std::fmt::Write;

use byteorder::{ByteOrder, LittleEndian};
use xxhash_rust::xxh3::xxh3_64;

use crate::format::blocks::Kind;
use crate::format::bounds_table::VERSION_SYMBOL;
use crate::format::codeobject::name_ref;
use crate::format::copies_table::{COPIES_VERSION, CUDA_STRIDE_UNIT, MAGIC};
use crate::format::profraw::Version;
use crate::format::ptx::PtxError;
use crate::format::ptx::module::{Module, PtxFunction};

/// As many copies as the largest GPUs have units, about.
const MAX_COPIES: u64 = 256;
/// The most bytes that the copies take, unless a single copy takes more.
const MAX_AREA_BYTES: u64 = 16 << 20;
/// The size of a copies table with one range in bytes.
const TABLE_BYTES: u64 = 48;

/// The counters of a module.
#[derive(Debug)]
pub(super) struct Unit {
    /// The end of its names.
    pub(super) name: String,
    counters: u64,
}

impl Unit {
    pub(super) fn of(module: &Module<'_>, counters: usize) -> Self {
        Self {
            name: format!("rocov_{:016x}", xxh3_64(module.text.as_bytes())),
            counters: counters as u64,
        }
    }

    /// The distance from one copy to the next in bytes.
    pub(super) fn stride(&self) -> u64 {
        (8 * self.counters).next_multiple_of(CUDA_STRIDE_UNIT)
    }

    /// The number of copies, a power of two.
    pub(super) fn copies(&self) -> u64 {
        let mut copies = MAX_COPIES;
        while copies > 1 && copies * self.stride() > MAX_AREA_BYTES {
            copies /= 2;
        }
        copies
    }

    /// The declarations of all variables.
    pub(super) fn variables(&self, module: &Module<'_>, version: u64) -> Result<String, PtxError> {
        let unknown = PtxError::Version { found: version };
        let version = Version::of_word(version).map_err(|_| unknown)?;
        let Self { name, counters } = self;
        let area = self.copies() * self.stride();
        let mut code = format!(
            "\n.weak .global .align 8 .u64 {VERSION_SYMBOL} = {};\n\
             .weak .global .align 8 .b64 __profc_{name}[{counters}];\n\
             .weak .global .align {CUDA_STRIDE_UNIT} .b8 __rocov_copies_area_{name}[{area}];\n\
             .weak .global .align 8 .u64 __rocov_copies_table_{name}[{}] = {{{:#x}, {:#x}, \
             generic(__rocov_copies_area_{name}), generic(__rocov_copies_area_{name})+{area}, \
             generic(__profc_{name}), generic(__profc_{name})+{}}};\n",
            version.word(),
            TABLE_BYTES / 8,
            u64::from_le_bytes(MAGIC),
            TABLE_BYTES << 32 | u64::from(COPIES_VERSION),
            8 * counters
        );
        let counted = module.functions.iter().filter(|it| !it.blocks.is_empty());
        let names: Vec<String> = counted
            .clone()
            .map(|it| Kind::Ptx.record_name(it.symbol))
            .collect();
        self.declare_names(&mut code, &names);
        let mut first = 0;
        for (number, (function, record_name)) in counted.zip(&names).enumerate() {
            self.declare_record(&mut code, &version, number, function, record_name, first);
            first += function.blocks.len();
        }
        Ok(code)
    }

    /// The names of all records: their size, 0 for names that are not compressed, and the names with 1 between them
    /// (LLVM's `collectGlobalObjectNameStrings`).
    fn declare_names(&self, code: &mut String, names: &[String]) {
        let joined = names.join("\u{1}");
        let mut bytes = Vec::with_capacity(joined.len() + 8);
        let mut size = joined.len();
        while size >= 0x80 {
            bytes.push(size as u8 | 0x80);
            size >>= 7;
        }
        bytes.extend([size as u8, 0]);
        bytes.extend_from_slice(joined.as_bytes());
        let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
        let _ = writeln!(
            code,
            ".weak .global .align 1 .b8 __llvm_prf_nm_{}[{}] = {{{}}};",
            self.name,
            bytes.len(),
            list.join(",")
        );
    }

    fn declare_record(
        &self,
        code: &mut String,
        version: &Version,
        number: usize,
        function: &PtxFunction<'_>,
        record_name: &str,
        first: usize,
    ) {
        let layout = &version.layout().record;
        let mut record = vec![0; layout.bytes as usize];
        LittleEndian::write_u64(&mut record, name_ref(record_name.as_bytes()));
        LittleEndian::write_u64(&mut record[8..], function.hash);
        // There are at most 2^22 blocks.
        let count = function.blocks.len() as u32;
        LittleEndian::write_u32(&mut record[layout.num_counters..], count);
        let words: Vec<String> = record
            .chunks_exact(8)
            .enumerate()
            .map(|(word, bytes)| match 8 * word == layout.counter_ptr {
                true => format!("generic(__profc_{})+{}", self.name, 8 * first),
                false => format!("{:#x}", LittleEndian::read_u64(bytes)),
            })
            .collect();
        let _ = writeln!(
            code,
            ".weak .global .align 8 .u64 __profd_{number}_{}[{}] = {{{}}};",
            self.name,
            words.len(),
            words.join(", ")
        );
    }
}
