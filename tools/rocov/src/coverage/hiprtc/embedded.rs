//! The texts of sources in the debug information of a code object (`-gembed-source`).

use std::collections::BTreeMap;
use std::path::Path;

use gimli::{Dwarf, EndianSlice, LittleEndian, Unit};
use object::{File, Object, ObjectSection};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The texts, by the paths of the sources. Damaged debug information has none.
pub(super) fn texts(elf: &File<'_>) -> BTreeMap<String, Vec<u8>> {
    read(elf).unwrap_or_default()
}

fn read(elf: &File<'_>) -> gimli::Result<BTreeMap<String, Vec<u8>>> {
    let section = |id: gimli::SectionId| {
        let section = elf.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok());
        gimli::Result::Ok(Bytes::new(data.unwrap_or_default(), LittleEndian))
    };
    let dwarf = Dwarf::load(section)?;
    let mut texts = BTreeMap::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        add_texts(&dwarf, &dwarf.unit(header)?, &mut texts)?;
    }
    Ok(texts)
}

/// Adds the texts of a unit's sources.
fn add_texts(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    texts: &mut BTreeMap<String, Vec<u8>>,
) -> gimli::Result<()> {
    let Some(program) = &unit.line_program else {
        return Ok(());
    };
    let header = program.header();
    for file in header.file_names() {
        let Some(text) = file.source() else {
            continue;
        };
        let string = |value| dwarf.attr_string(unit, value);
        let name = string(file.path_name())?;
        let directory = match file.directory(header) {
            Some(directory) => string(directory)?.to_string_lossy().into_owned(),
            None => String::new(),
        };
        let path = Path::new(&directory).join(&*name.to_string_lossy());
        let path = path.to_string_lossy().into_owned();
        texts.insert(path, string(text)?.to_vec());
    }
    Ok(())
}
