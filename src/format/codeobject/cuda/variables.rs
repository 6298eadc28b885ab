//! The variables of a cubin, their contents, and the pointers in them.

use std::collections::BTreeMap;

use byteorder::ByteOrder;
use object::LittleEndian;
use object::elf::{SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB, STT_OBJECT, STT_SECTION, SymbolType};
use object::read::elf::{Rel, Rela, SectionHeader, Sym};
use object::read::{ReadRef, SectionIndex, SymbolIndex};

use crate::format::codeobject::cuda::{ADDRESS_64, CubinError, GENERIC_64};
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;

/// `STT_CUDA_OBJECT`: the type of variables in cubins that are not linked yet (seen in those of `ptxas -c`).
const STT_CUDA_OBJECT: SymbolType = SymbolType(13);

/// A variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable<'data> {
    pub(super) name: &'data [u8],
    /// The number of its section.
    section: usize,
    /// The place in the section, in bytes.
    value: u64,
    /// The size in bytes.
    pub(super) size: u64,
}

impl Variable<'_> {
    /// The name in messages.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }
}

/// A word of 8 bytes that the driver replaces by the address of a variable when it loads the cubin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    /// The place in the variable that it is in, in bytes.
    pub(super) at: u64,
    /// The number of the variable that it points into. `None` if it points into no variable.
    pub(super) target: Option<usize>,
    /// The distance from the start of that variable, in bytes. A pointer to an end has the size of the variable.
    pub(super) offset: u64,
}

/// A relocation of one word.
#[derive(Clone, Copy, Debug)]
struct Relocation {
    kind: u32,
    /// The number of the symbol.
    symbol: usize,
    addend: u64,
}

/// The variables of a cubin, by section and place. A variable's number is its place in this order.
pub(super) struct Variables<'data, 'elf, R: ReadRef<'data>> {
    code_object: &'elf CodeObject<'data, R>,
    all: Vec<Variable<'data>>,
    /// The relocations of all sections, by section and place.
    relocations: BTreeMap<(usize, u64), Relocation>,
    /// The target of each symbol that relocations may name.
    targets: BTreeMap<usize, Target>,
}

/// The target of a relocation: the number of a variable or of a section.
#[derive(Clone, Copy, Debug)]
enum Target {
    Variable(usize),
    Section(usize),
}

impl<'data, 'elf, R: ReadRef<'data>> Variables<'data, 'elf, R> {
    /// Reads the symbol table and all relocations.
    ///
    /// # Errors
    /// Fails if either is damaged.
    pub(super) fn new(code_object: &'elf CodeObject<'data, R>) -> Result<Self, CodeObjectError> {
        let mut variables = Variables {
            code_object,
            all: Vec::new(),
            relocations: BTreeMap::new(),
            targets: BTreeMap::new(),
        };
        variables.read_symbols()?;
        variables.read_relocations()?;
        Ok(variables)
    }

    fn read_symbols(&mut self) -> Result<(), CodeObjectError> {
        let CodeObject { data, sections, .. } = self.code_object;
        let table = sections.symbols(LittleEndian, *data, SHT_SYMTAB)?;
        let names = self.code_object.names_of(&table)?;
        let (mut named, mut found_by_symbol) = (0_u64, Vec::new());
        for (index, symbol) in table.enumerate() {
            if symbol.is_undefined(LittleEndian) {
                continue;
            }
            let Some(section) = table.symbol_section(LittleEndian, symbol, index)? else {
                continue;
            };
            if symbol.st_type() == STT_SECTION {
                self.targets.insert(index.0, Target::Section(section.0));
            }
            if ![STT_OBJECT, STT_CUDA_OBJECT].contains(&symbol.st_type()) {
                continue;
            }
            let found = Variable {
                name: symbol.name(LittleEndian, names)?,
                section: section.0,
                value: symbol.st_value(LittleEndian),
                size: symbol.st_size(LittleEndian),
            };
            // All symbols could have one long name.
            named = named.saturating_add(found.name.len() as u64);
            self.code_object
                .check_total("names of variables", [named].into_iter())?;
            found_by_symbol.push((index.0, found));
        }
        found_by_symbol.sort_unstable_by_key(|(_, variable)| (variable.section, variable.value));
        for (number, (symbol, variable)) in found_by_symbol.into_iter().enumerate() {
            self.targets.insert(symbol, Target::Variable(number));
            self.all.push(variable);
        }
        Ok(())
    }

    fn read_relocations(&mut self) -> Result<(), CodeObjectError> {
        let CodeObject { data, sections, .. } = self.code_object;
        let (data, all) = (*data, sections.enumerate());
        let tables: Vec<_> = all
            .filter(|(_, section)| [SHT_REL, SHT_RELA].contains(&section.sh_type(LittleEndian)))
            .map(|(index, section)| (index.0, section))
            .collect();
        self.code_object
            .check_sections("relocations", tables.iter().map(|(index, _)| *index))?;
        for (_, table) in tables {
            let section = table.sh_info(LittleEndian) as usize;
            if let Some((relocations, _)) = table.rela(LittleEndian, data)? {
                for it in relocations {
                    let relocation = Relocation {
                        kind: it.r_type(LittleEndian, false).0,
                        symbol: number(it.symbol(LittleEndian, false)),
                        addend: it.r_addend.get(LittleEndian) as u64,
                    };
                    self.relocations
                        .insert((section, it.r_offset.get(LittleEndian)), relocation);
                }
            }
            if let Some((relocations, _)) = table.rel(LittleEndian, data)? {
                let (_, contents) = self.code_object.section_at(section)?;
                for it in relocations {
                    let offset = it.r_offset.get(LittleEndian);
                    // The addend is the word in its place.
                    let word = usize::try_from(offset)
                        .ok()
                        .and_then(|at| contents.get(at..at.checked_add(8)?));
                    let relocation = Relocation {
                        kind: it.r_type(LittleEndian).0,
                        symbol: number(it.symbol(LittleEndian)),
                        addend: word.map_or(0, byteorder::LittleEndian::read_u64),
                    };
                    self.relocations.insert((section, offset), relocation);
                }
            }
        }
        Ok(())
    }

    /// The variable with this number.
    pub(super) fn at(&self, number: usize) -> &Variable<'data> {
        &self.all[number]
    }

    /// The numbers of the variables whose names start with `prefix`.
    pub(super) fn named(&self, prefix: &[u8]) -> Vec<usize> {
        let all = self.all.iter().enumerate();
        let named = all.filter(|(_, variable)| variable.name.starts_with(prefix));
        named.map(|(number, _)| number).collect()
    }

    /// Rejects variables that together are longer than the file: all of them could have the same bytes.
    pub(super) fn check_total(
        &self,
        parts: &'static str,
        numbers: &[usize],
    ) -> Result<(), CodeObjectError> {
        let sizes = numbers.iter().map(|number| self.all[*number].size);
        self.code_object.check_total(parts, sizes)
    }

    /// The contents of a variable as the file has them, without addresses. `None` if its section has none: they are
    /// zeros.
    ///
    /// # Errors
    /// Fails if it is not inside its section.
    pub(super) fn contents(&self, number: usize) -> Result<Option<&'data [u8]>, CodeObjectError> {
        let CodeObject { data, sections, .. } = self.code_object;
        let variable = &self.all[number];
        let section = sections.section(SectionIndex(variable.section))?;
        let size = section.sh_size(LittleEndian);
        let end = variable.value.checked_add(variable.size);
        if end.is_none_or(|end| end > size) {
            return Err(self.outside(variable, size)?.into());
        }
        if section.sh_type(LittleEndian) == SHT_NOBITS {
            return Ok(None);
        }
        let contents = section.data(LittleEndian, *data)?;
        // Both numbers were compared with the size of the section.
        let start = variable.value as usize;
        match contents.get(start..start + variable.size as usize) {
            Some(contents) => Ok(Some(contents)),
            None => Err(self.outside(variable, 0)?.into()),
        }
    }

    /// The pointers in a variable, in their order.
    ///
    /// # Errors
    /// Fails if a pointer to a variable is of an unknown kind, or not wholly in the variable that it is in.
    pub(super) fn pointers(&self, number: usize) -> Result<Vec<Pointer>, CodeObjectError> {
        let variable = &self.all[number];
        let start = (variable.section, variable.value);
        let after = variable.value.saturating_add(variable.size);
        let mut pointers = Vec::new();
        for ((_, place), relocation) in self.relocations.range(start..(variable.section, after)) {
            let at = place - variable.value;
            let target = self.target_of(relocation);
            let is_pointer = [ADDRESS_64, GENERIC_64].contains(&relocation.kind);
            if target.is_some() && !is_pointer {
                return Err(CubinError::Relocation {
                    name: variable.text(),
                    at,
                    found: relocation.kind,
                }
                .into());
            }
            if at + 8 > variable.size {
                return Err(CubinError::Straddling {
                    name: variable.text(),
                    at,
                    size: variable.size,
                }
                .into());
            }
            pointers.push(Pointer {
                at,
                target: target.map(|(number, _)| number),
                offset: target.map_or(0, |(_, offset)| offset),
            });
        }
        Ok(pointers)
    }

    /// The number of the variable that a relocation points into, and the distance from its start.
    fn target_of(&self, relocation: &Relocation) -> Option<(usize, u64)> {
        match *self.targets.get(&relocation.symbol)? {
            Target::Variable(number) => Some((number, relocation.addend)),
            // A linker may name local variables by their place in the section.
            Target::Section(section) => {
                let place = (section, relocation.addend);
                let after = self
                    .all
                    .partition_point(|symbol| (symbol.section, symbol.value) <= place);
                let number = after.checked_sub(1)?;
                let variable = &self.all[number];
                let offset = relocation.addend.checked_sub(variable.value)?;
                let is_inside = variable.section == section && offset <= variable.size;
                is_inside.then_some((number, offset))
            }
        }
    }

    fn outside(
        &self,
        variable: &Variable<'data>,
        available: u64,
    ) -> Result<CubinError, CodeObjectError> {
        let sections = &self.code_object.sections;
        let section = sections.section(SectionIndex(variable.section))?;
        let section = sections.section_name(LittleEndian, section)?;
        Ok(CubinError::Outside {
            name: variable.text(),
            section: String::from_utf8_lossy(section).into_owned(),
            value: variable.value,
            size: variable.size,
            available,
        })
    }
}

/// The number of a relocation's symbol, 0 if it has none.
fn number(symbol: Option<SymbolIndex>) -> usize {
    symbol.unwrap_or(SymbolIndex(0)).0
}
