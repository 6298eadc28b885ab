//! Reads the debug information of an ELF (DWARF 4 and 5): the lines of addresses from `.debug_line`, and from
//! `.debug_info` the functions, and the places that functions were inlined into. A line table that no unit refers to
//! counts, too: with `-gline-directives-only`, clang writes no units.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gimli::{
    AttributeValue, DebugInfoOffset, DebugLineOffset, DebuggingInformationEntry, Dwarf,
    IncompleteLineProgram, LittleEndian, Section, UnitOffset, constants,
};
use object::File;

use super::sections::{Bytes, InSections, contents};
use super::split::SplitFiles;

type Program<'a> = IncompleteLineProgram<Bytes<'a>>;
type Entry<'a> = DebuggingInformationEntry<Bytes<'a>>;

/// The debug information of an ELF.
#[derive(Debug, Default)]
pub(super) struct DebugInformation {
    /// The lines, by rising address; each range has at least one byte.
    pub(super) rows: Vec<Row>,
    /// Out-of-line functions and inlined ones; a function comes before those that were inlined into it.
    pub(super) scopes: Vec<Scope>,
    /// The functions that scopes are of.
    pub(super) declared: Vec<Declared>,
    /// The reasons why functions that were split off into other files are not known.
    pub(super) split_off: BTreeSet<String>,
}

/// The line of a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) addresses: Range<u64>,
    pub(super) path: Arc<str>,
    /// From 1.
    pub(super) line: u32,
    /// True if a statement of the source starts at the first address (`is_stmt`).
    pub(super) is_statement: bool,
}

/// A copy of a function in the code.
#[derive(Debug)]
pub(super) struct Scope {
    /// Index into [`DebugInformation::declared`].
    pub(super) function: usize,
    /// The scope that it was inlined into; `None` if it is out of line.
    pub(super) parent: Option<usize>,
    pub(super) addresses: Vec<Range<u64>>,
    /// The address of its first instruction.
    pub(super) entry: u64,
    /// The file and the line that call it, if it was inlined.
    pub(super) call: Option<(Arc<str>, u32)>,
}

/// A function as it is declared.
#[derive(Debug, Default, Clone)]
pub(super) struct Declared {
    /// Mangled if the compiler writes that name: not with `-gline-tables-only`.
    pub(super) name: Option<Arc<str>>,
    pub(super) path: Option<Arc<str>>,
    pub(super) line: Option<u32>,
}

/// Reads the debug information of the ELF at `path`. One without any has no rows.
///
/// # Errors
///
/// Fails if it is damaged.
pub(super) fn read(elf: &File<'_>, path: &Path) -> Result<DebugInformation, String> {
    let section = |id: gimli::SectionId| contents(elf, id.name());
    let sections: gimli::DwarfSections<Cow<'_, [u8]>> = gimli::DwarfSections::load(section)?;
    let dwarf = Arc::new(sections.borrow(|section| Bytes::new(section, LittleEndian)));
    let failed = |error: gimli::Error| error.to_string();
    let units = units_of(&dwarf).map_err(failed)?;
    let files = SplitFiles::read(&units, path);
    let mut information = DebugInformation::default();
    let units = units.into_iter().map(|skeleton| {
        let whole = files.unit(&skeleton);
        whole.unwrap_or_else(|reason| {
            information.split_off.extend(reason);
            skeleton
        })
    });
    let units: Vec<_> = units.collect();
    read_units(&dwarf, &units, information).map_err(failed)
}

/// The units of the ELF itself.
fn units_of<'a>(dwarf: &Arc<Dwarf<Bytes<'a>>>) -> gimli::Result<Vec<InSections<'a>>> {
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        units.push(InSections {
            dwarf: Arc::clone(dwarf),
            unit: dwarf.unit(header)?,
        });
    }
    Ok(units)
}

fn read_units<'a>(
    dwarf: &Dwarf<Bytes<'a>>,
    units: &[InSections<'a>],
    information: DebugInformation,
) -> gimli::Result<DebugInformation> {
    let mut reader = Reader {
        dwarf,
        units,
        paths: HashMap::new(),
        declared: HashMap::new(),
        information,
    };
    // Units may share a line table.
    let mut known = HashSet::new();
    for (number, InSections { unit, .. }) in units.iter().enumerate() {
        if let Some(program) = &unit.line_program
            && known.insert(program.header().offset().0)
        {
            reader.add_rows(program, |unit, file| unit.path(number, file))?;
        }
        reader.add_scopes(number)?;
    }
    let all = dwarf.debug_line.reader().len();
    let mut next = DebugLineOffset(0);
    while next.0 < all {
        let address_size = 8;
        let program = dwarf.debug_line.program(next, address_size, None, None)?;
        if known.insert(next.0) {
            reader.add_rows(&program, |unit, file| {
                path(unit.dwarf, &program, None, file)
            })?;
        }
        let header = program.header();
        let length = usize::from(header.format().initial_length_size()) + header.unit_length();
        next.0 += length;
    }
    let mut information = reader.information;
    information.rows.sort_by_key(|row| row.addresses.start);
    Ok(information)
}

struct Reader<'r, 'a> {
    /// The sections of the ELF.
    dwarf: &'r Dwarf<Bytes<'a>>,
    units: &'r [InSections<'a>],
    /// Paths by the number of the unit and of the file in its line table.
    paths: HashMap<(usize, u64), Option<Arc<str>>>,
    /// Indices of functions by the number of the unit and the offset in it.
    declared: HashMap<(usize, UnitOffset), usize>,
    information: DebugInformation,
}

impl<'a> Reader<'_, 'a> {
    /// Adds the lines of a line table. `path` returns the paths of its files.
    fn add_rows(
        &mut self,
        program: &Program<'a>,
        mut path: impl FnMut(&mut Self, u64) -> gimli::Result<Option<Arc<str>>>,
    ) -> gimli::Result<()> {
        let mut rows = program.clone().rows();
        let mut before: Option<(u64, u64, u64, bool)> = None;
        while let Some((_, row)) = rows.next_row()? {
            if let Some((start, file, line, is_statement)) = before
                && start < row.address()
                && let (Some(path), Ok(line)) = (path(self, file)?, u32::try_from(line))
            {
                self.information.rows.push(Row {
                    addresses: start..row.address(),
                    path,
                    line,
                    is_statement,
                });
            }
            before = match (row.end_sequence(), row.line()) {
                // Line 0 belongs to no line: the compiler made the code.
                (false, Some(line)) => {
                    Some((row.address(), row.file_index(), line.get(), row.is_stmt()))
                }
                _ => None,
            };
        }
        Ok(())
    }

    /// Adds the functions of a unit, and those that were inlined into them.
    fn add_scopes(&mut self, number: usize) -> gimli::Result<()> {
        let InSections { dwarf, unit } = &self.units[number];
        let mut entries = unit.entries();
        // The scopes around the entry, with their depths.
        let mut around: Vec<(isize, usize)> = Vec::new();
        while let Some(entry) = entries.next_dfs()? {
            while around
                .pop_if(|(depth, _)| *depth >= entry.depth())
                .is_some()
            {}
            let parent = around.last().map(|(_, scope)| *scope);
            let is_inlined = match entry.tag() {
                constants::DW_TAG_subprogram => false,
                constants::DW_TAG_inlined_subroutine if parent.is_some() => true,
                _ => continue,
            };
            let mut ranges = dwarf.die_ranges(unit, entry)?;
            let mut addresses = Vec::new();
            while let Some(range) = ranges.next()? {
                if range.begin < range.end {
                    addresses.push(range.begin..range.end);
                }
            }
            let Some(lowest) = addresses.iter().map(|address| address.start).min() else {
                continue;
            };
            let entry_address = match entry.attr_value(constants::DW_AT_entry_pc) {
                Some(AttributeValue::Udata(offset)) => lowest.checked_add(offset),
                Some(value) => dwarf.attr_address(unit, value)?,
                None => None,
            };
            let within = |address: &u64| addresses.iter().any(|range| range.contains(address));
            let scope = Scope {
                function: self.function(number, entry.offset())?,
                parent: parent.filter(|_| is_inlined),
                entry: entry_address.filter(within).unwrap_or(lowest),
                addresses,
                call: match is_inlined {
                    true => self.place(
                        number,
                        entry,
                        [constants::DW_AT_call_file, constants::DW_AT_call_line],
                    )?,
                    false => None,
                },
            };
            around.push((entry.depth(), self.information.scopes.len()));
            self.information.scopes.push(scope);
        }
        Ok(())
    }

    /// The index of the function that the entry at `offset` is of. Copies of a function lead to one declaration.
    fn function(&mut self, number: usize, offset: UnitOffset) -> gimli::Result<usize> {
        /// The most entries on the way to a name. Damaged ones may lead to themselves.
        const MOST: usize = 8;
        let mut at = (number, offset);
        let mut function = None;
        let mut declared = Declared::default();
        let mut short_name = None;
        for _ in 0..MOST {
            let (number, offset) = at;
            let InSections { dwarf, unit } = &self.units[number];
            let entry = unit.entry(offset)?;
            let origin = self.reference(number, entry.attr_value(constants::DW_AT_abstract_origin));
            if origin.is_none() && function.is_none() {
                if let Some(known) = self.declared.get(&at) {
                    return Ok(*known);
                }
                function = Some(at);
            }
            let string = |name| match entry.attr_value(name) {
                Some(value) => dwarf.attr_string(unit, value).map(Some),
                None => Ok(None),
            };
            let shared = |text: Bytes<'_>| Arc::from(text.to_string_lossy().as_ref());
            if declared.name.is_none() {
                let name = string(constants::DW_AT_linkage_name)?;
                declared.name = name.map(shared);
            }
            if short_name.is_none() {
                short_name = string(constants::DW_AT_name)?.map(shared);
            }
            if declared.path.is_none() {
                let attributes = [constants::DW_AT_decl_file, constants::DW_AT_decl_line];
                if let Some((path, line)) = self.place(number, &entry, attributes)? {
                    (declared.path, declared.line) = (Some(path), Some(line));
                }
            }
            let next = entry.attr_value(constants::DW_AT_specification);
            match origin.or_else(|| self.reference(number, next)) {
                Some(next) => at = next,
                None => break,
            }
        }
        declared.name = declared.name.or(short_name);
        let index = self.information.declared.len();
        self.declared.insert(function.unwrap_or(at), index);
        self.information.declared.push(declared);
        Ok(index)
    }

    /// The entry that an attribute of unit `number` refers to. `None` if it refers to none that is known.
    fn reference(
        &self,
        number: usize,
        value: Option<AttributeValue<Bytes<'a>>>,
    ) -> Option<(usize, UnitOffset)> {
        match value? {
            AttributeValue::UnitRef(offset) => Some((number, offset)),
            AttributeValue::DebugInfoRef(offset) => {
                let offset: DebugInfoOffset = offset;
                let sections = &self.units[number].dwarf;
                // Units that were split off are in sections of their own.
                let beside = self.units.iter().enumerate();
                let mut beside = beside.filter(|(_, unit)| Arc::ptr_eq(&unit.dwarf, sections));
                beside.find_map(|(number, unit)| {
                    Some((number, offset.to_unit_offset(&unit.unit.header)?))
                })
            }
            _ => None,
        }
    }

    /// The path and the line in these two attributes.
    fn place(
        &mut self,
        number: usize,
        entry: &Entry<'_>,
        [file, line]: [gimli::DwAt; 2],
    ) -> gimli::Result<Option<(Arc<str>, u32)>> {
        let file = match entry.attr_value(file) {
            Some(AttributeValue::FileIndex(file)) => file,
            Some(value) => match value.udata_value() {
                Some(file) => file,
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let line = entry.attr_value(line).and_then(|value| value.udata_value());
        let line = line.and_then(|number| u32::try_from(number).ok());
        let Some(line) = line.filter(|line| *line > 0) else {
            return Ok(None);
        };
        let path = self.path(number, file)?;
        Ok(path.map(|path| (path, line)))
    }

    /// The path of a file of a unit. `None` if the unit has no such file.
    fn path(&mut self, number: usize, file: u64) -> gimli::Result<Option<Arc<str>>> {
        if let Some(known) = self.paths.get(&(number, file)) {
            return Ok(known.clone());
        }
        let unit = &self.units[number].unit;
        let path = match &unit.line_program {
            Some(program) => path(self.dwarf, program, unit.comp_dir, file)?,
            None => None,
        };
        self.paths.insert((number, file), path.clone());
        Ok(path)
    }
}

/// The path of a file of a line table, whose compiler ran in `directory`. `None` if it has no such file.
fn path<'a>(
    dwarf: &Dwarf<Bytes<'a>>,
    program: &Program<'a>,
    directory: Option<Bytes<'_>>,
    file: u64,
) -> gimli::Result<Option<Arc<str>>> {
    let header = program.header();
    let Some(entry) = header.file(file) else {
        return Ok(None);
    };
    let string = |value| dwarf.attr_line_string(value);
    let directory = directory.map(|bytes| bytes.to_string_lossy());
    let mut path = PathBuf::from(&*directory.unwrap_or_default());
    if let Some(directory) = entry.directory(header) {
        path.push(&*string(directory)?.to_string_lossy());
    }
    path.push(&*string(entry.path_name())?.to_string_lossy());
    Ok(Some(plain(&path).into()))
}

/// The path without `.` and `..`, which coverage mappings do not have either.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => _ = plain.pop(),
            Component::ParentDir if plain.has_root() => {}
            other => plain.push(other),
        }
    }
    plain.to_string_lossy().into_owned()
}
