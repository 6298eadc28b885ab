//! The memory of a cubin's profile data, as a linker for AMD GPUs would lay it out.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use crate::format::bounds_table::{OWN_VERSION_SYMBOL, VERSION_SYMBOL};
use crate::format::codeobject::cuda::CubinError;
use crate::format::codeobject::cuda::linked::{Linked, OVERSIZED, SectionOf, empty};
use crate::format::codeobject::cuda::variables::Variables;
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;
use crate::format::copies_table::COPIES_SECTION;
use crate::format::profraw::Version;
use crate::format::sections::Section;

/// The prefix of the data records, one variable for each function (`INSTR_PROF_DATA_PREFIX` without its quotes in LLVM's
/// InstrProfData.inc).
const RECORDS: &[u8] = b"__profd_";
/// The names of all functions, as clang calls the variable (`INSTR_PROF_NAMES_VAR_NAME`).
const NAMES: &[u8] = b"__llvm_prf_nm";
/// The prefix of the coverage mappings of functions, one variable each.
const FUNCTION_MAPPINGS: &[u8] = b"__covrec_";
/// The coverage mapping of the files of a translation unit.
const FILE_MAPPING: &[u8] = b"__llvm_coverage_mapping";
/// The prefix of the tables of copies that rocov's plugin makes.
const COPIES_TABLES: &[u8] = b"__rocov_copies_table";
/// The name that clang gives itself, from rocov's device header.
const COMPILER: &[u8] = b"__rocov_compiler";

/// The address of the first section. The loader's copy of the headers is before it in other ELFs.
const START: u64 = 0x1000;
/// The alignment of copies of counters, in bytes.
const AREA_ALIGNMENT: u64 = 512;
/// The place of the area's address in a table of copies.
const AREA_IN_TABLE: u64 = 16;

/// A cubin, laid out.
#[derive(Debug)]
pub struct LaidOut {
    /// The cubin as an ELF with profile sections. It has the cubin's own sections too.
    pub elf: Vec<u8>,
    /// The size of its memory in bytes, from address 0.
    pub size: u64,
    /// The memory before any kernel has run, without its end, which kernels change: counters and copies, which are zeros.
    pub memory: Vec<u8>,
    /// The variables that kernels change, in the order of their addresses.
    pub counted: Vec<CountedVariable>,
    /// The address of the version word in the memory.
    pub version: u64,
}

/// A variable that changes while kernels run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedVariable {
    /// Its name. The CUDA driver returns the device address of the variable with this name.
    pub name: String,
    /// Its address in the memory.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// Returns whether a cubin may be instrumented: [`laid_out`] decides. Reads only its headers and the names of its symbols.
///
/// # Errors
/// Fails if `cubin` is not the ELF of a GPU.
pub fn is_instrumented(cubin: &[u8]) -> Result<bool, CodeObjectError> {
    let names = CodeObject::parse(cubin)?.symbol_names()?;
    // A symbol may have the end of another's name.
    Ok(names.windows(RECORDS.len()).any(|window| window == RECORDS))
}

/// The ELF of a code object that has sections of profile data: of an instrumented cubin the laid-out one, and `elf` itself of
/// any other. A damaged cubin stays as it is, and its parser reports the damage.
#[must_use]
pub fn with_sections(elf: &[u8]) -> Cow<'_, [u8]> {
    match laid_out(elf) {
        Ok(Some(laid_out)) => laid_out.elf.into(),
        Ok(None) | Err(_) => elf.into(),
    }
}

/// Lays out the profile data of a cubin. `None` if it has none or is laid out already, and for code objects of other GPUs.
///
/// # Errors
/// Fails if `cubin` is not the ELF of a GPU, or is damaged, or takes more than 2 GiB.
pub fn laid_out(cubin: &[u8]) -> Result<Option<LaidOut>, CodeObjectError> {
    let code_object = CodeObject::parse(cubin)?;
    let data = Section::Data.elf_name().as_bytes();
    if !code_object.is_cubin() || code_object.has_section(data) {
        return Ok(None);
    }
    let variables = Variables::new(&code_object)?;
    let records = variables.named(RECORDS);
    let Some(first) = records.first() else {
        return Ok(None);
    };
    let constant = [
        RECORDS,
        NAMES,
        FUNCTION_MAPPINGS,
        FILE_MAPPING,
        COPIES_TABLES,
        COMPILER,
    ];
    let constant: Vec<usize> = constant
        .into_iter()
        .flat_map(|prefix| variables.named(prefix))
        .collect();
    variables.check_total("profile variables", &constant)?;
    let layout = Layout {
        version: version_of(&variables, variables.at(*first).size)?,
        records,
        tables: variables.named(COPIES_TABLES),
        places: HashMap::new(),
        counted: Vec::new(),
        linked: Linked::starting_at(START),
        variables,
    };
    layout.run(cubin).map(Some)
}

/// The ELF of code for the architecture with this number, such as 90, that was never compiled: it has `records` in the
/// format of `version`, the list of their `names`, and `counters` bytes of counters. A counter's address in a record is its
/// offset in these.
///
/// # Errors
/// Fails if it takes more than 2 GiB.
pub fn without_code(
    architecture: u32,
    version: &Version,
    records: &[u8],
    names: &[u8],
    counters: u64,
) -> Result<Vec<u8>, CodeObjectError> {
    let mut linked = Linked::starting_at(START);
    let data = linked.place(SectionOf::data(), records.len() as u64, 8)?;
    let names_at = linked.place(SectionOf::names(), names.len() as u64, 1)?;
    linked.write(names_at, names);
    let version_at = linked.place(SectionOf::version(), 8, 8)?;
    linked.write(version_at, &version.word().to_le_bytes());
    let counters_at = linked.place(SectionOf::counted(Section::Counters), counters, 8)?;
    let layout = version.layout().record;
    let mut records = records.to_vec();
    for (number, record) in records.chunks_exact_mut(layout.bytes as usize).enumerate() {
        let own = data + number as u64 * layout.bytes;
        let field = &mut record[layout.counter_ptr..];
        let place = counters_at + LittleEndian::read_u64(field);
        LittleEndian::write_u64(field, place.wrapping_sub(own));
        if let Some(field) = layout.uniform_ptr {
            // There are no counters of whole waves.
            LittleEndian::write_u64(&mut record[field..], 0);
        }
    }
    linked.write(data, &records);
    linked.elf(&empty(architecture), version_at)
}

/// The version word of the compiler, or of the oldest one with records of `bytes` bytes.
fn version_of<'data, R: ReadRef<'data>>(
    variables: &Variables<'data, '_, R>,
    bytes: u64,
) -> Result<Version, CodeObjectError> {
    let named = |name: &str| variables.named(name.as_bytes()).first().copied();
    let word = match named(VERSION_SYMBOL).or_else(|| named(OWN_VERSION_SYMBOL)) {
        None => None,
        Some(variable) => {
            let contents = variables.contents(variable)?.unwrap_or_default();
            let word = contents.try_into().map(u64::from_le_bytes);
            Some(word.map_err(|_| CubinError::Version {
                name: variables.at(variable).text(),
                found: variables.at(variable).size,
            })?)
        }
    };
    let word = word.unwrap_or(match bytes {
        48 => 8,
        72 => 11,
        _ => 10,
    });
    let version = Version::from_word(word).ok();
    let fits = version.filter(|version| version.layout().record.bytes == bytes);
    Ok(fits.ok_or(CubinError::Records { found: bytes })?)
}

struct Layout<'data, 'elf, R: ReadRef<'data>> {
    variables: Variables<'data, 'elf, R>,
    version: Version,
    records: Vec<usize>,
    tables: Vec<usize>,
    /// The address of each variable that has one so far.
    places: HashMap<usize, u64>,
    counted: Vec<CountedVariable>,
    linked: Linked,
}

impl<'data, R: ReadRef<'data>> Layout<'data, '_, R> {
    fn run(mut self, cubin: &[u8]) -> Result<LaidOut, CodeObjectError> {
        self.check_sizes()?;
        let records = self.records.clone();
        let bytes = self.version.layout().record.bytes;
        let data = self
            .linked
            .place(SectionOf::data(), bytes * records.len() as u64, 8)?;
        for (index, record) in records.iter().enumerate() {
            self.places.insert(*record, data + index as u64 * bytes);
        }
        self.copy_all(SectionOf::names(), NAMES, 1)?;
        let version = self.linked.place(SectionOf::version(), 8, 8)?;
        self.linked
            .write(version, &self.version.word().to_le_bytes());
        let tables = self.place_tables()?;
        // Counters start with zeros. They take no room here, whatever sizes a damaged cubin states.
        let memory = self.linked.end();
        for section in [Section::Counters, Section::Uniform, Section::Bitmap] {
            let variables = self.pointed_to(section)?;
            self.place_counted(SectionOf::counted(section), &variables, 8)?;
        }
        self.place_areas()?;
        self.fill_records()?;
        self.fill_tables(&tables)?;
        self.copy_all(SectionOf::unloaded("__llvm_covfun"), FUNCTION_MAPPINGS, 8)?;
        self.copy_all(SectionOf::unloaded("__llvm_covmap"), FILE_MAPPING, 8)?;
        self.copy_all(SectionOf::unloaded(".comment"), COMPILER, 1)?;
        let size = self.linked.end();
        Ok(LaidOut {
            elf: self.linked.elf(cubin, version)?,
            memory: self.linked.memory(memory),
            size,
            counted: self.counted,
            version,
        })
    }

    fn check_sizes(&self) -> Result<(), CodeObjectError> {
        let bytes = self.version.layout().record.bytes;
        for record in &self.records {
            let variable = self.variables.at(*record);
            if variable.size != bytes {
                return Err(CubinError::Record {
                    name: variable.text(),
                    found: variable.size,
                    expected: bytes,
                }
                .into());
            }
        }
        Ok(())
    }

    /// The variables that the records point to in `section`, each once. One that has a place is not a counter: in a damaged
    /// cubin, a record may point to another.
    fn pointed_to(&self, section: Section) -> Result<Vec<usize>, CodeObjectError> {
        let mut found = Vec::new();
        let Some(field) = self.version.layout().record.pointer(section) else {
            return Ok(found);
        };
        for record in &self.records {
            for address in self.variables.pointers(*record)? {
                found.extend(address.target.filter(|_| address.at == field as u64));
            }
        }
        let mut seen = HashSet::new();
        found.retain(|variable| !self.places.contains_key(variable) && seen.insert(*variable));
        Ok(found)
    }

    /// Places variables that kernels change into one section. Does nothing without any.
    fn place_counted(
        &mut self,
        section: SectionOf,
        variables: &[usize],
        alignment: u64,
    ) -> Result<(), CodeObjectError> {
        let mut offsets = Vec::with_capacity(variables.len());
        let mut size = 0_u64;
        for variable in variables {
            let variable = self.variables.at(*variable);
            size = size.checked_next_multiple_of(alignment).ok_or(OVERSIZED)?;
            offsets.push(size);
            size = size.checked_add(variable.size).ok_or(OVERSIZED)?;
        }
        if variables.is_empty() {
            return Ok(());
        }
        let start = self.linked.place(section, size, alignment)?;
        for (variable, offset) in variables.iter().zip(offsets) {
            let address = start + offset;
            self.places.insert(*variable, address);
            let variable = self.variables.at(*variable);
            self.counted.push(CountedVariable {
                name: variable.text(),
                address,
                size: variable.size,
            });
        }
        Ok(())
    }

    /// Writes the records. A pointer becomes the distance from its record, as in other ELFs. Addresses of functions and
    /// of values are of no use outside of the device.
    fn fill_records(&mut self) -> Result<(), CodeObjectError> {
        let layout = &self.version.layout().record;
        for record in &self.records {
            let mut bytes = match self.variables.contents(*record)? {
                Some(bytes) => bytes.to_vec(),
                None => vec![0; layout.bytes as usize],
            };
            layout.clear_device_fields(&mut bytes);
            let own = self.places[record];
            for address in self.variables.pointers(*record)? {
                let at = address.at as usize;
                let target = address.target.and_then(|target| self.places.get(&target));
                if let Some(target) = target {
                    let distance = target.wrapping_add(address.offset).wrapping_sub(own);
                    LittleEndian::write_u64(&mut bytes[at..at + 8], distance);
                }
            }
            self.linked.write(own, &bytes);
        }
        Ok(())
    }

    /// Copies the contents of all variables whose names start with `prefix` into one section.
    fn copy_all(
        &mut self,
        section: SectionOf,
        prefix: &[u8],
        alignment: usize,
    ) -> Result<(), CodeObjectError> {
        let mut all = Vec::new();
        for variable in self.variables.named(prefix) {
            all.resize(all.len().next_multiple_of(alignment), 0);
            let contents = self.variables.contents(variable)?.unwrap_or_default();
            all.extend_from_slice(contents);
        }
        if section.is_loaded {
            let start = self
                .linked
                .place(section, all.len() as u64, alignment as u64)?;
            self.linked.write(start, &all);
        } else if !all.is_empty() {
            self.linked.attach(section, all);
        }
        Ok(())
    }

    /// Makes room for the tables of copies. Returns them with their addresses.
    fn place_tables(&mut self) -> Result<Vec<(usize, u64)>, CodeObjectError> {
        let mut size = 0_u64;
        let mut offsets = Vec::new();
        for table in &self.tables {
            offsets.push((*table, size));
            let bytes = self.variables.at(*table).size.checked_next_multiple_of(8);
            size = bytes
                .and_then(|bytes| size.checked_add(bytes))
                .ok_or(OVERSIZED)?;
        }
        if offsets.is_empty() {
            return Ok(offsets);
        }
        let start = self
            .linked
            .place(SectionOf::loaded(COPIES_SECTION), size, 8)?;
        Ok(offsets
            .into_iter()
            .map(|(table, offset)| (table, start + offset))
            .collect())
    }

    /// Places the areas of the tables after everything else.
    fn place_areas(&mut self) -> Result<(), CodeObjectError> {
        let mut areas = Vec::new();
        for table in &self.tables {
            let addresses = self.variables.pointers(*table)?;
            let area = addresses.iter().find(|address| address.at == AREA_IN_TABLE);
            areas.extend(
                area.and_then(|address| address.target)
                    .filter(|variable| !self.places.contains_key(variable)),
            );
        }
        areas.dedup();
        self.place_counted(SectionOf::areas(), &areas, AREA_ALIGNMENT)
    }

    /// Writes the tables with the addresses of the layout.
    fn fill_tables(&mut self, tables: &[(usize, u64)]) -> Result<(), CodeObjectError> {
        for (table, place) in tables {
            let mut bytes = self
                .variables
                .contents(*table)?
                .unwrap_or_default()
                .to_vec();
            for address in self.variables.pointers(*table)? {
                let at = address.at as usize;
                let target = address.target.and_then(|target| self.places.get(&target));
                // A counter without a record has no place. The check of the table reports address 0.
                let target = target.map_or(0, |place| place.wrapping_add(address.offset));
                // A damaged table has no contents.
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    LittleEndian::write_u64(word, target);
                }
            }
            self.linked.write(*place, &bytes);
        }
        Ok(())
    }
}
