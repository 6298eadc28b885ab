//! The facts from the ELFs of code objects. Each distinct ELF is parsed once.

use std::collections::HashMap;
use std::sync::Arc;

use object::read::ReadRef;

use crate::device::{Agent, Device, DeviceError, ElfBytes, LoadedCodeObject};
use crate::discover::error::DiscoverError;
use crate::format::blocks::TraceRecords;
use crate::format::bounds_table::{OWN_VERSION_SYMBOL, TABLE_SYMBOL};
use crate::format::codeobject::{CodeObject, ElfRange, Identity, Kernel, ProfileSections};
use crate::format::copies_table::CopiesTables;

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
    /// The records for its executed instructions, or the reason why there are none. `None` if the device counts none,
    /// or if all its kernels belong to the HIP runtime.
    pub trace: Option<Result<TraceRecords, String>>,
}

/// The start of the names of kernels that the HIP runtime loads for its own copies and fills.
const RUNTIME_KERNEL: &str = "__amd_rocclr_";

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

/// The ELFs that were read so far.
#[derive(Debug, Default)]
pub struct Elfs {
    known: HashMap<Identity, Arc<ElfFacts>>,
}

impl Elfs {
    /// Returns the facts from the ELF of `code_object` on `agent`, and the ELF. For a long ELF that is known, reads only
    /// headers and notes, or all bytes if only its contents identify it. It does not parse a known ELF again.
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
    ) -> Result<(Arc<ElfFacts>, ElfBytes), DiscoverError> {
        let unreadable = |source| DeviceError::Image {
            uri: code_object.uri.clone(),
            source,
        };
        let image = match is_held {
            true => device.held_image(code_object),
            false => device.image(code_object),
        };
        let mut image = ElfBytes::new(image?);
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
        // sections tell them apart.
        if let Some(known) = self
            .known
            .get(&identity)
            .filter(|known| known.size == size && known.sections == sections)
        {
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
            Ok(mut kernels) => {
                kernels.sort_unstable_by(|one, other| one.name.cmp(&other.name));
                (kernels, None)
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let is_of_runtime = !kernels.is_empty()
            && kernels
                .iter()
                .all(|kernel| kernel.name.starts_with(RUNTIME_KERNEL));
        let is_traced = device.executions().is_some() && !elf.is_cubin() && !is_of_runtime;
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
        });
        self.known.insert(identity, facts.clone());
        Ok((facts, image))
    }
}
