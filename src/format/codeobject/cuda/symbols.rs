//! The variables of a cubin, their contents, and the pointers in them.

use std::collections::BTreeMap;

use byteorder::ByteOrder;
use object::LittleEndian;
use object::elf::{
    SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_OBJECT, STT_SECTION,
    SymbolType,
};
use object::read::elf::{Rel, Rela, SectionHeader, Sym};
use object::read::{ReadRef, SectionIndex, SymbolIndex};

use crate::format::codeobject::cuda::{ADDRESS_64, CubinError, GENERIC_64};
use crate::format::codeobject::elf::{CodeObject, CodeObjectError};

/// `STT_CUDA_OBJECT`: the type of variables in cubins that are not linked yet (seen in those of `ptxas -c`).
const STT_CUDA_OBJECT: SymbolType = SymbolType(13);

/// The reach of a variable's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Nobody: the driver does not tell its address.
    Local,
    /// The driver tells its address.
    Global,
    /// The driver tells its address. The linker has merged it with variables of this name in other units.
    Weak,
}

/// A variable of a cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name of its symbol.
    pub name: String,
    /// The name of its section, such as `.nv.global`.
    pub section: String,
    /// The place in the section, in bytes.
    pub value: u64,
    /// The size in bytes.
    pub size: u64,
    /// The reach of its name.
    pub binding: Binding,
}

impl Variable {
    /// Returns whether the driver tells its address (`cuModuleGetGlobal`, `cuLibraryGetGlobal`).
    #[must_use]
    pub fn is_global(&self) -> bool {
        self.binding != Binding::Local
    }
}

/// A word of 8 bytes that the driver replaces by an address when it loads the cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The place in the variable that it is in, in bytes.
    pub at: u64,
    /// The name of the variable that it points into.
    pub variable: String,
    /// The distance from the start of that variable, in bytes. A pointer to an end has the size of the variable.
    pub offset: u64,
}

/// A variable as the symbol table has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'data> {
    pub(super) name: &'data [u8],
    pub(super) section: usize,
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) binding: Binding,
}

impl Symbol<'_> {
    /// Its name in messages.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }
}

/// A relocation of one word.
#[derive(Clone, Copy, Debug)]
struct Relocation {
    kind: u32,
    /// The number of the symbol.
    symbol: usize,
    addend: u64,
}

/// The variables of a cubin.
pub(super) struct Variables<'data, 'elf, R: ReadRef<'data>> {
    code_object: &'elf CodeObject<'data, R>,
    /// The defined variables, by section and place.
    symbols: Vec<Symbol<'data>>,
    /// The relocations of all sections, by section and place.
    relocations: BTreeMap<(usize, u64), Relocation>,
    /// The section and the place of each symbol that relocations may name.
    targets: BTreeMap<usize, Target<'data>>,
}

/// The target of a relocation.
#[derive(Clone, Copy, Debug)]
enum Target<'data> {
    Variable(Symbol<'data>),
    Section(usize),
}

impl<'data, 'elf, R: ReadRef<'data>> Variables<'data, 'elf, R> {
    /// Reads the symbol table and all relocations.
    ///
    /// # Errors
    /// Fails if either is damaged.
    pub(super) fn of(code_object: &'elf CodeObject<'data, R>) -> Result<Self, CodeObjectError> {
        let mut variables = Variables {
            code_object,
            symbols: Vec::new(),
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
        let mut named = 0_u64;
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
            let found = Symbol {
                name: symbol.name(LittleEndian, names)?,
                section: section.0,
                value: symbol.st_value(LittleEndian),
                size: symbol.st_size(LittleEndian),
                binding: match symbol.st_bind() {
                    STB_GLOBAL => Binding::Global,
                    STB_WEAK => Binding::Weak,
                    _ => Binding::Local,
                },
            };
            // All symbols could have one long name.
            named = named.saturating_add(found.name.len() as u64);
            self.code_object
                .check_total("names of variables", [named].into_iter())?;
            self.symbols.push(found);
            self.targets.insert(index.0, Target::Variable(found));
        }
        self.symbols.sort_by_key(|it| (it.section, it.value));
        Ok(())
    }

    fn read_relocations(&mut self) -> Result<(), CodeObjectError> {
        let CodeObject { data, sections, .. } = self.code_object;
        let (data, all) = (*data, sections.enumerate());
        let tables: Vec<_> = all
            .filter(|(_, it)| [SHT_REL, SHT_RELA].contains(&it.sh_type(LittleEndian)))
            .map(|(index, it)| (index.0, it))
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

    /// The variables whose names start with one of `prefixes`, by section and place.
    pub(super) fn named<'s>(
        &'s self,
        prefixes: &'s [&str],
    ) -> impl Iterator<Item = &'s Symbol<'data>> {
        self.symbols.iter().filter(|it| {
            let mut prefixes = prefixes.iter();
            prefixes.any(|prefix| it.name.starts_with(prefix.as_bytes()))
        })
    }

    /// A variable for users of this crate.
    ///
    /// # Errors
    /// Fails if it is not inside its section.
    pub(super) fn describe(&self, symbol: &Symbol<'data>) -> Result<Variable, CodeObjectError> {
        self.check(symbol)?;
        Ok(Variable {
            name: symbol.text(),
            section: self.section_name(symbol)?,
            value: symbol.value,
            size: symbol.size,
            binding: symbol.binding,
        })
    }

    /// The contents of a variable as the file has them. `None` if its section has none: they are zeros.
    ///
    /// # Errors
    /// Fails if it is not inside its section.
    pub(super) fn contents(
        &self,
        symbol: &Symbol<'data>,
    ) -> Result<Option<&'data [u8]>, CodeObjectError> {
        let CodeObject { data, sections, .. } = self.code_object;
        self.check(symbol)?;
        let section = sections.section(SectionIndex(symbol.section))?;
        if section.sh_type(LittleEndian) == SHT_NOBITS {
            return Ok(None);
        }
        let contents = section.data(LittleEndian, *data)?;
        // `check` has compared both numbers with the size of the section.
        let start = symbol.value as usize;
        let contents = contents.get(start..start + symbol.size as usize);
        match contents {
            Some(contents) => Ok(Some(contents)),
            None => Err(self.outside(symbol, 0)?.into()),
        }
    }

    /// The pointers in a variable to other variables, in their order.
    ///
    /// # Errors
    /// Fails if a relocation is of another type than a pointer to a variable has.
    pub(super) fn pointers(&self, symbol: &Symbol<'data>) -> Result<Vec<Pointer>, CodeObjectError> {
        let start = (symbol.section, symbol.value);
        let end = (symbol.section, symbol.value.saturating_add(symbol.size));
        let mut pointers = Vec::new();
        for ((_, place), relocation) in self.relocations.range(start..end) {
            let Some((target, offset)) = self.target_of(relocation) else {
                continue; // a function
            };
            let at = place - symbol.value;
            if ![ADDRESS_64, GENERIC_64].contains(&relocation.kind) {
                return Err(CubinError::Relocation {
                    name: symbol.text(),
                    at,
                    found: relocation.kind,
                }
                .into());
            }
            pointers.push(Pointer {
                at,
                variable: target.text(),
                offset,
            });
        }
        Ok(pointers)
    }

    /// The variable that a relocation points into, and the distance from its start.
    fn target_of(&self, relocation: &Relocation) -> Option<(Symbol<'data>, u64)> {
        match *self.targets.get(&relocation.symbol)? {
            Target::Variable(symbol) => Some((symbol, relocation.addend)),
            // A linker may name local variables by their place in the section.
            Target::Section(section) => {
                let place = (section, relocation.addend);
                let after = self
                    .symbols
                    .partition_point(|it| (it.section, it.value) <= place);
                let symbol = *self.symbols[..after].last()?;
                let offset = relocation.addend - symbol.value;
                (symbol.section == section && offset <= symbol.size).then_some((symbol, offset))
            }
        }
    }

    /// Rejects a variable that is not inside its section.
    fn check(&self, symbol: &Symbol<'data>) -> Result<(), CodeObjectError> {
        let section = self
            .code_object
            .sections
            .section(SectionIndex(symbol.section))?;
        let size = section.sh_size(LittleEndian);
        let end = symbol.value.checked_add(symbol.size);
        match end.is_some_and(|end| end <= size) {
            true => Ok(()),
            false => Err(self.outside(symbol, size)?.into()),
        }
    }

    fn outside(
        &self,
        symbol: &Symbol<'data>,
        available: u64,
    ) -> Result<CubinError, CodeObjectError> {
        Ok(CubinError::Outside {
            name: symbol.text(),
            section: self.section_name(symbol)?,
            value: symbol.value,
            size: symbol.size,
            available,
        })
    }

    fn section_name(&self, symbol: &Symbol<'data>) -> Result<String, CodeObjectError> {
        let sections = &self.code_object.sections;
        let section = sections.section(SectionIndex(symbol.section))?;
        let name = sections.section_name(LittleEndian, section)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The contents of a variable of this cubin as the file has them. `None` if they are zeros.
    pub(super) fn contents_of(
        &self,
        variable: &Variable,
    ) -> Result<Option<&'data [u8]>, CodeObjectError> {
        let section = self
            .sections
            .section_by_name(LittleEndian, variable.section.as_bytes());
        let Some((_, section)) = section.filter(|(_, it)| it.sh_type(LittleEndian) != SHT_NOBITS)
        else {
            return Ok(None);
        };
        let contents = section.data(LittleEndian, self.data)?;
        let start = usize::try_from(variable.value).unwrap_or(usize::MAX);
        let size = usize::try_from(variable.size).unwrap_or(usize::MAX);
        Ok(contents.get(start..).and_then(|it| it.get(..size)))
    }
}

/// The number of a relocation's symbol, 0 if it has none.
fn number(symbol: Option<SymbolIndex>) -> usize {
    symbol.unwrap_or(SymbolIndex(0)).0
}
