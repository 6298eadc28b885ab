//! The variables of a cubin, with their contents and the addresses in them.

use std::collections::BTreeMap;

use byteorder::ByteOrder;
use object::LittleEndian;
use object::elf::{FileHeader64, SHT_NOBITS, SHT_SYMTAB, STT_OBJECT};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym};
use object::read::{SectionIndex, StringTable, SymbolIndex};

use crate::format::cubin::{EM_CUDA, LayoutError};

/// The prefix of the variables with a data record each (`INSTR_PROF_DATA_PREFIX` without its quotes,
/// InstrProfData.inc).
pub(super) const RECORD_PREFIX: &[u8] = b"__profd_";

/// `R_CUDA_64` and `R_CUDA_G64`, an address and a generic address: both of 8 bytes, and equal for global variables
/// (seen in cubins of ptxas 12.9).
const ADDRESSES: [u32; 2] = [2, 4];

/// A parsed cubin.
pub(super) struct Cubin<'data> {
    data: &'data [u8],
    sections: SectionTable<'data, FileHeader64<LittleEndian>>,
    /// The variables in the order of the symbol table.
    pub(super) variables: Vec<Variable<'data>>,
    /// The addresses in the contents of each section, by the place in it.
    addresses: BTreeMap<(usize, u64), Relocation>,
    /// The variable of each symbol.
    by_symbol: BTreeMap<usize, usize>,
}

/// A variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable<'data> {
    pub(super) name: &'data [u8],
    section: usize,
    value: u64,
    pub(super) size: u64,
}

impl Variable<'_> {
    /// The name in messages.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }
}

/// An address that the driver writes when it loads the cubin.
#[derive(Clone, Copy, Debug)]
struct Relocation {
    kind: u32,
    symbol: usize,
    addend: u64,
}

/// An address in the contents of a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    /// The place in the variable, in bytes.
    pub(super) at: u64,
    /// The number of the variable that it is in; `None` if it is that of a function.
    pub(super) variable: Option<usize>,
    /// The distance from the start of that variable, in bytes.
    pub(super) addend: u64,
}

/// Returns whether a cubin has counters. Reads only its headers and the names of its symbols.
///
/// # Errors
/// Fails if `data` is not the ELF of an NVIDIA GPU.
pub fn is_instrumented(data: &[u8]) -> Result<bool, LayoutError> {
    let sections = sections(data)?;
    let table = sections.symbols(LittleEndian, data, SHT_SYMTAB)?;
    let names = match table.string_section() {
        SectionIndex(0) => &[],
        index => sections.section(index)?.data(LittleEndian, data)?,
    };
    let mut names = names.split(|byte| *byte == 0);
    Ok(names.any(|name| name.starts_with(RECORD_PREFIX)))
}

fn sections(data: &[u8]) -> Result<SectionTable<'_, FileHeader64<LittleEndian>>, LayoutError> {
    let header = FileHeader64::<LittleEndian>::parse(data)?;
    header.endian()?;
    let machine = header.e_machine(LittleEndian).0;
    if machine != EM_CUDA {
        return Err(LayoutError::WrongMachine { found: machine });
    }
    Ok(header.sections(LittleEndian, data)?)
}

impl<'data> Cubin<'data> {
    /// Parses a cubin.
    ///
    /// # Errors
    /// Fails if `data` is not the ELF of an NVIDIA GPU, or is damaged.
    pub(super) fn parse(data: &'data [u8]) -> Result<Self, LayoutError> {
        let sections = sections(data)?;
        let table = sections.symbols(LittleEndian, data, SHT_SYMTAB)?;
        let names = match table.string_section() {
            SectionIndex(0) => &[],
            index => sections.section(index)?.data(LittleEndian, data)?,
        };
        let names = StringTable::new(names, 0, names.len() as u64);
        let (mut variables, mut by_symbol) = (Vec::new(), BTreeMap::new());
        for (index, symbol) in table.enumerate() {
            if symbol.st_type() != STT_OBJECT || symbol.is_undefined(LittleEndian) {
                continue;
            }
            by_symbol.insert(index.0, variables.len());
            variables.push(Variable {
                name: symbol.name(LittleEndian, names)?,
                section: table
                    .symbol_section(LittleEndian, symbol, index)?
                    .map_or(0, |it| it.0),
                value: symbol.st_value(LittleEndian),
                size: symbol.st_size(LittleEndian),
            });
        }
        let mut addresses = BTreeMap::new();
        for section in sections.iter() {
            let target = section.sh_info(LittleEndian) as usize;
            if let Some((relocations, _)) = section.rela(LittleEndian, data)? {
                for it in relocations {
                    let symbol = it.symbol(LittleEndian, false).unwrap_or(SymbolIndex(0)).0;
                    let kind = it.r_type(LittleEndian, false).0;
                    let addend = it.r_addend.get(LittleEndian) as u64;
                    addresses.insert(
                        (target, it.r_offset.get(LittleEndian)),
                        Relocation {
                            kind,
                            symbol,
                            addend,
                        },
                    );
                }
            }
            if let Some((relocations, _)) = section.rel(LittleEndian, data)? {
                for it in relocations {
                    let offset = it.r_offset.get(LittleEndian);
                    let symbol = it.symbol(LittleEndian).unwrap_or(SymbolIndex(0)).0;
                    // The addend is the word in its place.
                    let contents = sections
                        .section(SectionIndex(target))?
                        .data(LittleEndian, data)?;
                    let addend = usize::try_from(offset)
                        .ok()
                        .and_then(|at| contents.get(at..at.checked_add(8)?));
                    let addend = addend.map_or(0, byteorder::LittleEndian::read_u64);
                    let kind = it.r_type(LittleEndian).0;
                    addresses.insert(
                        (target, offset),
                        Relocation {
                            kind,
                            symbol,
                            addend,
                        },
                    );
                }
            }
        }
        Ok(Self {
            data,
            sections,
            variables,
            addresses,
            by_symbol,
        })
    }

    /// Returns whether there is a section of this name.
    pub(super) fn has_section(&self, name: &str) -> bool {
        let found = self.sections.section_by_name(LittleEndian, name.as_bytes());
        found.is_some()
    }

    /// The numbers of the variables whose names start with `prefix`, in the order of their places in the cubin.
    pub(super) fn named(&self, prefix: &[u8]) -> Vec<usize> {
        let all = 0..self.variables.len();
        let mut found: Vec<usize> = all
            .filter(|it| self.variables[*it].name.starts_with(prefix))
            .collect();
        found.sort_by_key(|it| (self.variables[*it].section, self.variables[*it].value));
        found
    }

    /// The contents of a variable before it is loaded, without addresses. `None` if they are zeros.
    ///
    /// # Errors
    /// Fails if the variable is not inside its section.
    pub(super) fn contents(&self, variable: usize) -> Result<Option<&'data [u8]>, LayoutError> {
        let variable = &self.variables[variable];
        let section = self.sections.section(SectionIndex(variable.section))?;
        let size = section.sh_size(LittleEndian);
        let end = variable.value.checked_add(variable.size);
        let outside = || LayoutError::Outside {
            name: variable.text(),
            value: variable.value,
            size: variable.size,
            section: size,
        };
        if end.is_none_or(|end| end > size) {
            return Err(outside());
        }
        if section.sh_type(LittleEndian) == SHT_NOBITS {
            return Ok(None);
        }
        let contents = section.data(LittleEndian, self.data)?;
        let start = variable.value as usize;
        let contents = contents.get(start..start + variable.size as usize);
        contents.map(Some).ok_or_else(outside)
    }

    /// The addresses in a variable.
    ///
    /// # Errors
    /// Fails if one has an unknown form.
    pub(super) fn addresses(&self, variable: usize) -> Result<Vec<Address>, LayoutError> {
        let variable = &self.variables[variable];
        let start = (variable.section, variable.value);
        let end = (
            variable.section,
            variable.value.saturating_add(variable.size),
        );
        let mut found = Vec::new();
        for ((_, place), relocation) in self.addresses.range(start..end) {
            let at = place - variable.value;
            if !ADDRESSES.contains(&relocation.kind) || at + 8 > variable.size {
                return Err(LayoutError::Relocation {
                    name: variable.text(),
                    at,
                    found: relocation.kind,
                    allowed: "2 or 4",
                });
            }
            found.push(Address {
                at,
                variable: self.by_symbol.get(&relocation.symbol).copied(),
                addend: relocation.addend,
            });
        }
        Ok(found)
    }
}
