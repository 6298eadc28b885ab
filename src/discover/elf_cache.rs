//! The facts from the ELFs of code objects. Each distinct ELF is parsed once.

use std::collections::{BTreeSet, HashMap};
use std::io::Cursor;
use std::sync::Arc;

use object::read::ReadRef;

use crate::device::{Agent, Device, DeviceError, ElfBytes, LoadedCodeObject};
use crate::discover::error::DiscoverError;
use crate::format::blocks::{TraceRecords, trace};
use crate::format::bounds_table::{OWN_VERSION_SYMBOL, TABLE_SYMBOL};
use crate::format::codeobject::{CodeObject, ElfRange, Identity, Kernel, ProfileSections};
use crate::format::copies_table::CopiesTables;
use crate::instrument::amdgcn::{CounterMap, MAP_SECTION, MapError, ORIGINAL_SECTION};

/// The facts that rocov keeps of a code object's ELF.
#[derive(Clone, Debug)]
pub struct ElfFacts {
    /// The identity.
    pub identity: Identity,
    /// The processor that it is compiled for with its features, such as `gfx90a:xnack-`. The agent's name if
    /// the ELF does not name a target.
    pub target: String,
    /// Its size in bytes.
    pub size: u64,
    /// The GNU build id.
    pub build_id: Option<Vec<u8>>,
    /// The profile sections from its section headers.
    pub sections: ProfileSections,
    /// The section bounds tables of its translation units.
    pub unit_tables: Vec<ElfRange>,
    /// The tables of the copies of its counters, with ELF addresses. Empty if it has no copies.
    pub copies: CopiesTables,
    /// The version word that rocov's device header defines. The tables point to it.
    pub version: Option<ElfRange>,
    /// The major version of the clang that compiled it.
    pub clang: Option<u32>,
    /// Its kernels, by name.
    pub kernels: Vec<Kernel>,
    /// The reason why `kernels` is empty, if the ELF's data about them is damaged.
    pub damage: Option<String>,
    /// The records for its executed instructions, or the reason why there are none. `None` if nothing counts them, or if
    /// all its kernels belong to the HIP runtime.
    pub trace: Option<Result<TraceRecords, String>>,
    /// The counters that rocov has put into its machine code. All other facts are those of the ELF as the program had
    /// it.
    pub inserted: Option<InsertedCounters>,
}

/// Counters that rocov has put into machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertedCounters {
    /// The ELF address of the counters, and their size in bytes.
    pub range: ElfRange,
    /// The map of what they count ([`CounterMap`]).
    map: Arc<[u8]>,
    /// The functions that have none, by name.
    pub uncounted: Arc<[String]>,
}

impl InsertedCounters {
    /// The map of what they count.
    ///
    /// # Errors
    /// Fails if it is damaged.
    pub(crate) fn map(&self) -> Result<CounterMap<'_>, MapError> {
        CounterMap::new(&[], &self.map)
    }
}

/// The ELF as the program had it, and the counters that rocov has put into it, from the ELF that was loaded.
fn as_the_program_had_it(
    image: ElfBytes,
) -> Result<(ElfBytes, Option<InsertedCounters>), DiscoverError> {
    let elf = CodeObject::parse(&image)?;
    let map = elf.section(MAP_SECTION.as_bytes())?;
    if map.is_empty() {
        return Ok((image, None));
    }
    let original = elf.section(ORIGINAL_SECTION.as_bytes())?;
    let counter_map = CounterMap::new(original, map)?;
    let (address, counters) = counter_map.counters();
    let inserted = InsertedCounters {
        range: ElfRange {
            address,
            size: 8_u64.saturating_mul(counters),
        },
        map: map.into(),
        uncounted: uncounted(&CodeObject::parse(original)?, &counter_map).into(),
    };
    let original = ElfBytes::new(Box::new(Cursor::new(original.to_vec())));
    Ok((original, Some(inserted)))
}

/// The start of the names of kernels that the HIP runtime loads for its own copies and fills.
const RUNTIME_KERNEL: &str = "__amd_rocclr_";

/// Returns whether these are the kernels of a code object that the HIP runtime has loaded for itself.
#[must_use]
pub fn is_of_runtime(kernels: &[Kernel]) -> bool {
    let is_its_own = |kernel: &Kernel| kernel.name.starts_with(RUNTIME_KERNEL);
    !kernels.is_empty() && kernels.iter().all(is_its_own)
}

impl ElfFacts {
    /// Returns whether the code object has counters.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        self.sections.are_instrumented()
    }

    /// Returns whether its executions are counted: by counters, or by the device.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.is_instrumented() || self.trace.is_some()
    }
}

/// The functions in a trace that have none of the inserted counters, by name.
fn uncounted<'data, R: ReadRef<'data>>(
    elf: &CodeObject<'data, R>,
    map: &CounterMap<'_>,
) -> Vec<String> {
    let counted: BTreeSet<u64> = map.functions().collect();
    let functions = trace::functions(elf).unwrap_or_default().into_iter();
    let others = functions.filter(|function| {
        !counted.contains(&function.address) && !trace::is_helper(function.name)
    });
    others.map(|function| function.name.to_owned()).collect()
}

/// The ELFs that were read so far.
#[derive(Debug, Default)]
pub struct Elfs {
    known: HashMap<Identity, Arc<ElfFacts>>,
    /// Those of code objects whose contents the device identifies ([`Device::contents`]).
    by_contents: HashMap<Identity, Arc<ElfFacts>>,
}

impl Elfs {
    /// Returns the facts from the ELF of `code_object` on `agent`, and the ELF if it was read: the device may know that it is
    /// one that was read before.
    ///
    /// If the ELF `is_held`, its owner keeps it as it is until this returns.
    ///
    /// # Errors
    /// Fails if the ELF cannot be read, or is damaged in a part that a drain needs.
    pub fn look(
        &mut self,
        device: &dyn Device,
        agent: &Agent,
        code_object: &LoadedCodeObject,
        is_held: bool,
    ) -> Result<(Arc<ElfFacts>, Option<ElfBytes>), DiscoverError> {
        let contents = device.contents(code_object);
        let known = contents
            .as_ref()
            .and_then(|contents| self.by_contents.get(contents));
        if let Some(known) = known {
            return Ok((known.clone(), None));
        }
        let (facts, image) = self.read(device, agent, code_object, is_held)?;
        if let Some(contents) = contents {
            self.by_contents.insert(contents, facts.clone());
        }
        Ok((facts, Some(image)))
    }

    /// Reads the ELF. For a long ELF that is known, reads only headers and notes, or all bytes if only its contents identify
    /// it. It does not parse a known ELF again.
    fn read(
        &mut self,
        device: &dyn Device,
        agent: &Agent,
        code_object: &LoadedCodeObject,
        is_held: bool,
    ) -> Result<(Arc<ElfFacts>, ElfBytes), DiscoverError> {
        let unreadable = |source| DeviceError::Image {
            uri: code_object.uri.clone(),
            source,
        };
        let image = match is_held {
            true => device.held_image(code_object),
            false => device.image(code_object),
        };
        let image = ElfBytes::new(image?);
        let (mut image, inserted) = as_the_program_had_it(image)?;
        let elf = CodeObject::parse(&image)?;
        let build_id = elf.build_id()?.map(<[u8]>::to_vec);
        let sections = elf.profile_sections();
        let size = (&image)
            .len()
            .map_err(|()| unreadable(std::io::ErrorKind::UnexpectedEof.into()))?;
        let identity = match build_id.as_deref().and_then(Identity::from_build_id) {
            Some(identity) => identity,
            None => match image.in_memory() {
                Some(bytes) => Identity::from_bytes(bytes),
                None => {
                    let mut reader = image.into_image();
                    let identity = reader
                        .rewind()
                        .and_then(|()| Identity::from_reader(&mut reader));
                    image = ElfBytes::new(reader);
                    identity.map_err(unreadable)?
                }
            },
        };
        // The linker accepts any build id that a user chooses. If two code objects share one, size and
        // sections distinguish them.
        if let Some(known) = self.known.get(&identity).filter(|known| {
            known.size == size && known.sections == sections && known.inserted == inserted
        }) {
            return Ok((known.clone(), image));
        }
        let elf = CodeObject::parse(&image)?;
        let (unit_tables, version, copies) = match sections.are_instrumented() {
            true => (
                elf.variables(format!("{TABLE_SYMBOL}_").as_bytes())?,
                elf.variable(OWN_VERSION_SYMBOL.as_bytes())?,
                elf.copies_tables(),
            ),
            false => (Vec::new(), None, CopiesTables::default()),
        };
        let (kernels, damage) = match elf.kernels() {
            Ok(kernels) => (kernels, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let is_of_runtime = is_of_runtime(&kernels);
        let is_counted = inserted.is_some() || device.executions().is_some();
        let is_traced = is_counted && !elf.is_cubin() && !is_of_runtime;
        let trace = is_traced
            .then(|| TraceRecords::from_code_object(&elf).map_err(|error| error.to_string()));
        let facts = Arc::new(ElfFacts {
            identity: identity.clone(),
            target: elf.target().unwrap_or_else(|_| agent.name.clone()),
            size,
            build_id,
            sections,
            unit_tables,
            copies,
            version,
            clang: elf.clang_version(),
            kernels,
            damage,
            trace,
            inserted,
        });
        self.known.insert(identity, facts.clone());
        Ok((facts, image))
    }
}
