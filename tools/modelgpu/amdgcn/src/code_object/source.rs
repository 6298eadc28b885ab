//! The source line of an instruction, from the debug information in a code object's file.
//!
//! No loader puts debug information into device memory. So the file must be found elsewhere; most
//! often it lies in the program's own memory, in its fat binary.

use std::fmt;

use gimli::{
    AttributeValue, ColumnType, Dwarf, EndianSlice, LineProgramHeader, LittleEndian, Unit,
    constants,
};
use goblin::elf::Elf;
use goblin::elf::program_header::{PF_X, PT_LOAD};

/// The files of code objects that the program may have loaded.
pub trait Files: Sync {
    /// Calls `is_it` with the bytes of each ELF file, until it returns true.
    fn visit(&self, is_it: &mut dyn FnMut(&[u8]) -> bool);
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as the compiler names it, with its directory.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1; `None` for the whole line.
    pub column: Option<u64>,
    /// The place in the kernel, or in the function that it calls, that an inlined function with this line was called
    /// from, or one of its callers.
    pub inlined_at: Option<Box<Self>>,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        match &self.inlined_at {
            Some(place) => write!(f, " (inlined at {place})"),
            None => Ok(()),
        }
    }
}

/// Returns whether `file` is the ELF file of the image that begins with `image`: their headers and
/// their code are equal.
pub(crate) fn is_file_of(file: &[u8], image: &[u8]) -> bool {
    const HEADER: usize = 64;
    if file.len() < HEADER || file.get(..HEADER) != image.get(..HEADER) {
        return false;
    }
    let Ok(elf) = Elf::parse(file) else {
        return false;
    };
    let mut code = elf
        .program_headers
        .iter()
        .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
        .peekable();
    code.peek().is_some()
        && code.all(|segment| {
            let at = segment.vm_range();
            let bytes = file.get(segment.file_range());
            bytes.is_some() && bytes == image.get(at.start..at.start + segment.p_filesz as usize)
        })
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The line of the instruction at `address` of the ELF file `file`. `None` if the file has no debug
/// information about it.
pub(crate) fn line_of(file: &[u8], address: u64) -> Option<SourceLine> {
    let elf = Elf::parse(file).ok()?;
    let section = |id: gimli::SectionId| -> Result<Bytes<'_>, gimli::Error> {
        let found = elf
            .section_headers
            .iter()
            .find(|header| elf.shdr_strtab.get_at(header.sh_name) == Some(id.name()));
        let bytes = found.and_then(|header| file.get(header.file_range()?));
        Ok(EndianSlice::new(bytes.unwrap_or_default(), LittleEndian))
    };
    let dwarf = Dwarf::load(section).ok()?;
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let unit = dwarf.unit(header).ok()?;
        if let Some(line) = line_in_unit(&dwarf, &unit, address) {
            let inlined_at = call_in_unit(&dwarf, &unit, address).map(Box::new);
            return Some(SourceLine { inlined_at, ..line });
        }
    }
    None
}

fn line_in_unit(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    address: u64,
) -> Option<SourceLine> {
    let mut rows = unit.line_program.clone()?.rows();
    let mut before: Option<(u64, u64, Option<u64>, u64)> = None;
    while let Ok(Some((header, row))) = rows.next_row() {
        // The row before the first one beyond the address, in one sequence, covers it.
        if let Some((start, line, column, file)) = before
            && (start..row.address()).contains(&address)
        {
            return Some(SourceLine {
                file: path_of(dwarf, unit, header, file)?,
                line,
                column,
                inlined_at: None,
            });
        }
        before = match (row.end_sequence(), row.line()) {
            // Line 0 belongs to no line: the compiler made the code.
            (false, Some(line)) => {
                let column = match row.column() {
                    ColumnType::LeftEdge => None,
                    ColumnType::Column(column) => Some(column.get()),
                };
                Some((row.address(), line.get(), column, row.file_index()))
            }
            _ => None,
        };
    }
    None
}

/// The path of a file in the table of a line program.
fn path_of(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    header: &LineProgramHeader<Bytes<'_>>,
    file: u64,
) -> Option<String> {
    let entry = header.file(file)?;
    let name = |value| {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let path = name(entry.path_name())?;
    match entry.directory(header).and_then(name) {
        Some(directory) if !path.starts_with('/') => Some(format!("{directory}/{path}")),
        _ => Some(path),
    }
}

/// The call of the inlined function that has the instruction at `address`. If that was inlined into another inlined
/// one, the call of the outermost.
fn call_in_unit(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    address: u64,
) -> Option<SourceLine> {
    let header = unit.line_program.as_ref()?.header();
    let mut entries = unit.entries();
    // A function comes before those that were inlined into it.
    while let Ok(Some(entry)) = entries.next_dfs() {
        if entry.tag() != constants::DW_TAG_inlined_subroutine {
            continue;
        }
        let mut ranges = dwarf.die_ranges(unit, entry).ok()?;
        let mut has_address = false;
        while let Ok(Some(range)) = ranges.next() {
            has_address |= (range.begin..range.end).contains(&address);
        }
        if has_address {
            let number = |name| entry.attr_value(name)?.udata_value();
            let file = match entry.attr_value(constants::DW_AT_call_file)? {
                AttributeValue::FileIndex(file) => file,
                other => other.udata_value()?,
            };
            return Some(SourceLine {
                file: path_of(dwarf, unit, header, file)?,
                line: number(constants::DW_AT_call_line)?,
                column: number(constants::DW_AT_call_column).filter(|column| *column != 0),
                inlined_at: None,
            });
        }
    }
    None
}
