//! The functions of a code object: kernels and device functions, according to its symbols.

use object::LittleEndian;
use object::elf::{SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, STT_FUNC};
use object::read::ReadRef;
use object::read::elf::{SectionHeader, Sym};

use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;

/// A function symbol and its machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCode<'data> {
    /// The mangled name.
    pub name: &'data str,
    /// The ELF address of the first instruction. In a cubin, the offset in its section.
    pub address: u64,
    /// The instructions.
    pub code: &'data [u8],
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The functions with a size, in the order of their symbols: those of `.symtab`, or of `.dynsym` if the file was
    /// stripped. Then functions that only its own code calls are missing. Skips functions whose code is not in the file,
    /// and names that are not UTF-8.
    ///
    /// # Errors
    /// Fails if the symbols, or a section with code, are damaged.
    pub fn functions(&self) -> Result<Vec<FunctionCode<'data>>, CodeObjectError> {
        let all = self.sections.symbols(LittleEndian, self.data, SHT_SYMTAB)?;
        let table = match all.is_empty() {
            false => all,
            true => self.sections.symbols(LittleEndian, self.data, SHT_DYNSYM)?,
        };
        let names = self.names_of(&table)?;
        let mut functions = Vec::new();
        for (index, symbol) in table.enumerate() {
            let size = symbol.st_size(LittleEndian);
            if symbol.st_type() != STT_FUNC || symbol.is_undefined(LittleEndian) || size == 0 {
                continue;
            }
            let Some(section) = table.symbol_section(LittleEndian, symbol, index)? else {
                continue;
            };
            let header = self.sections.section(section)?;
            if header.sh_type(LittleEndian) == SHT_NOBITS {
                continue;
            }
            let (start, bytes) = self.section_at(section.0)?;
            let address = symbol.st_value(LittleEndian);
            let Ok(name) = str::from_utf8(symbol.name(LittleEndian, names)?) else {
                continue;
            };
            let range = address.checked_sub(start).and_then(|first| {
                let end = first.checked_add(size)?;
                Some(usize::try_from(first).ok()?..usize::try_from(end).ok()?)
            });
            if let Some(code) = range.and_then(|range| bytes.get(range)) {
                functions.push(FunctionCode {
                    name,
                    address,
                    code,
                });
            }
        }
        Ok(functions)
    }
}
