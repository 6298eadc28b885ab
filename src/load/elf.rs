//! What the ELFs of code objects say, parsed once for each distinct one.

use std::collections::HashMap;
use std::io::SeekFrom;
use std::sync::Arc;

use object::read::{ReadCache, ReadRef};

use crate::codeobject::{CodeObject, CodeObjectError, ElfRange, Identity, Kernel, ProfileSections};
use crate::device::{Agent, Device, DeviceError, Image, LoadedCodeObject};
use crate::error::Error;
use crate::sections::{OWN_VERSION_SYMBOL, TABLE_SYMBOL};

/// What is kept of a code object's ELF.
#[derive(Clone, Debug)]
pub struct ElfFacts {
    /// The identity.
    pub identity: Identity,
    /// The processor that it is compiled for with its features, such as `gfx90a:xnack-`; its agent's
    /// name where it does not say.
    pub target: String,
    /// Its size in bytes.
    pub size: u64,
    /// The GNU build id.
    pub build_id: Option<Vec<u8>>,
    /// The profile sections by its section headers.
    pub sections: ProfileSections,
    /// The section bounds tables of its translation units.
    pub unit_tables: Vec<ElfRange>,
    /// The version word that rocov's device header defines, to which the tables point.
    pub version: Option<ElfRange>,
    /// The major version of the clang that compiled it.
    pub clang: Option<u32>,
    /// Its kernels.
    pub kernels: Kernels,
    /// Why there are none, where what it says of them is damaged.
    pub damage: Option<String>,
}

impl ElfFacts {
    /// Whether the code object counts anything.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        self.sections.are_instrumented()
    }
}

/// The kernels of a code object, by name and by address.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    by_name: Vec<Kernel>,
    /// ELF addresses of descriptors and first instructions, with the place of their kernel.
    by_address: Vec<(u64, usize)>,
}

impl Kernels {
    /// Takes kernels in any order.
    #[must_use]
    pub fn new(mut kernels: Vec<Kernel>) -> Kernels {
        kernels.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let numbered = kernels.iter().enumerate();
        let mut by_address: Vec<(u64, usize)> = numbered
            .flat_map(|(place, kernel)| [(kernel.descriptor, place), (kernel.entry, place)])
            .collect();
        by_address.sort_unstable();
        Kernels {
            by_name: kernels,
            by_address,
        }
    }

    /// All of them, by name.
    #[must_use]
    pub fn by_name(&self) -> &[Kernel] {
        &self.by_name
    }

    /// The kernel whose descriptor or first instruction is at this ELF address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Kernel> {
        let found = self
            .by_address
            .binary_search_by_key(&address, |(start, _)| *start);
        self.by_name.get(self.by_address[found.ok()?].1)
    }
}

/// Makes a name as people write it of a mangled one, where it can: librocov uses the demangler that
/// the process has.
pub type Demangle = fn(&str) -> Option<String>;

/// The ELFs that were looked at.
#[derive(Debug, Default)]
pub struct Elfs {
    known: HashMap<Identity, Arc<ElfFacts>>,
    demangle: Option<Demangle>,
}

impl Elfs {
    /// No ELF yet; the names of kernels are to be demangled by this.
    #[must_use]
    pub fn demangled_by(demangle: Demangle) -> Elfs {
        Elfs {
            demangle: Some(demangle),
            ..Elfs::default()
        }
    }

    /// What the ELF behind `code_object` on `agent` says. Of one that was seen before, headers and
    /// notes are read, or all of it where only its contents identify it; nothing is parsed again.
    ///
    /// # Errors
    /// Fails where the ELF is out of reach, or damaged in what a drain needs.
    pub fn look(
        &mut self,
        device: &dyn Device,
        agent: &Agent,
        code_object: &LoadedCodeObject,
    ) -> Result<Arc<ElfFacts>, Error> {
        let unreadable = |source| DeviceError::Image {
            uri: code_object.uri.clone(),
            source,
        };
        let image = ReadCache::new(device.image(code_object)?);
        let elf = CodeObject::parse(&image)?;
        let build_id = elf.build_id()?.map(<[u8]>::to_vec);
        let sections = elf.profile_sections();
        let size = (&image)
            .len()
            .map_err(|()| unreadable(std::io::ErrorKind::UnexpectedEof.into()))?;
        let mut image: Box<dyn Image> = image.into_inner();
        let identity = match build_id.as_deref().and_then(Identity::of_build_id) {
            Some(identity) => identity,
            None => image
                .seek(SeekFrom::Start(0))
                .and_then(|_| Identity::of_contents(&mut image))
                .map_err(unreadable)?,
        };
        // The linker takes any build id that it is told: one that two code objects share is not
        // believed where it matters most.
        if let Some(known) = self
            .known
            .get(&identity)
            .filter(|known| known.size == size && known.sections == sections)
        {
            return Ok(known.clone());
        }
        let image = ReadCache::new(image);
        let elf = CodeObject::parse(&image)?;
        let (unit_tables, version) = match sections.are_instrumented() {
            true => (
                elf.variables(format!("{TABLE_SYMBOL}_").as_bytes())?,
                elf.variable(OWN_VERSION_SYMBOL.as_bytes())?,
            ),
            false => (Vec::new(), None),
        };
        let (kernels, damage) = match self.kernels(&elf) {
            Ok(kernels) => (kernels, None),
            Err(error) => (Kernels::default(), Some(error.to_string())),
        };
        let facts = Arc::new(ElfFacts {
            identity: identity.clone(),
            target: elf.target().unwrap_or_else(|_| agent.name.clone()),
            size,
            build_id,
            sections,
            unit_tables,
            version,
            clang: elf.clang_version(),
            kernels,
            damage,
        });
        self.known.insert(identity, facts.clone());
        Ok(facts)
    }

    fn kernels<'data>(
        &self,
        elf: &CodeObject<'data, impl ReadRef<'data>>,
    ) -> Result<Kernels, CodeObjectError> {
        let mut kernels = elf.kernels()?;
        if let Some(demangle) = self.demangle {
            for kernel in &mut kernels {
                kernel.display_name = demangle(&kernel.name);
            }
        }
        Ok(Kernels::new(kernels))
    }
}
