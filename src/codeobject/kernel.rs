//! What a code object says of each of its kernels.

use object::read::ReadRef;
use serde::{Deserialize, Serialize};

use super::descriptor::Descriptors;
use super::elf::{CodeObject, CodeObjectError};
use super::functions::Functions;
use super::metadata::{KernelNote, Metadata};
use super::target;

/// One kernel: the resources that it takes, as its compiler wrote them down.
///
/// Sizes are bytes. The numbers come from the AMDGPU metadata note (`amdhsa.kernels`, LLVM's
/// AMDGPUUsage, "Code Object V5 Metadata"), `entry` from the kernel descriptor (ibid., "Kernel
/// Descriptor").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Symbol of its function, mangled: `_Z5scalePfif`.
    pub name: String,
    /// The same for people: `scale(float*, int, float)`. `None` where nothing there could demangle
    /// it.
    pub display_name: Option<String>,
    /// ELF address of its kernel descriptor, the symbol `<name>.kd`. With the load delta added it
    /// is the kernel object, which dispatch packets hold.
    pub descriptor: u64,
    /// ELF address of its first instruction.
    pub entry: u64,
    /// Bytes of its arguments.
    pub kernarg_size: u32,
    /// Alignment of its arguments.
    pub kernarg_align: u32,
    /// Bytes of LDS of a workgroup that are known when it is compiled.
    pub group_size: u32,
    /// Bytes of scratch of a work-item.
    pub private_size: u32,
    /// Scalar registers.
    pub sgprs: u32,
    /// Vector registers, accumulation registers included where the target counts them as one file.
    pub vgprs: u32,
    /// Accumulation registers; 0 on targets without.
    pub agprs: u32,
    /// Scalar registers that are spilled.
    pub sgpr_spills: u32,
    /// Vector registers that are spilled.
    pub vgpr_spills: u32,
    /// Work-items of a wave.
    pub wavefront_size: u32,
    /// Most work-items of a workgroup.
    pub max_workgroup_size: u32,
    /// Whether it has a data record, that is counters of its own.
    pub instrumented: bool,
    /// The source file that its coverage mapping names; `None` without a mapping that can be read.
    pub source: Option<String>,
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The processor that it is compiled for with its features, such as `gfx90a:xnack-`: by the
    /// flags of the ELF, else, for a processor that is not known here, by its metadata. A feature
    /// that is not named may be on or off.
    ///
    /// # Errors
    /// Fails where neither names a processor.
    pub fn target(&self) -> Result<String, CodeObjectError> {
        let (flags, abi_version) = self.flags();
        // The metadata would say the same, but only behind the arguments of all kernels.
        if let Some(target) = target::of_flags(flags, abi_version) {
            return Ok(target);
        }
        let metadata = Metadata::of(self)?;
        // Four parts before it: architecture, vendor, system, environment.
        let named = metadata.target().and_then(|it| it.splitn(5, '-').nth(4));
        let unknown = CodeObjectError::UnknownProcessor { found: flags };
        named.map(str::to_owned).ok_or(unknown)
    }

    /// The source file of each of these functions, in their order, by its coverage mapping; `None`
    /// for those without a mapping, or with one of a version other than 4 to 7.
    ///
    /// # Errors
    /// Fails where the coverage mapping is damaged.
    pub fn sources<'a>(
        &self,
        functions: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Option<String>>, CodeObjectError> {
        Functions::named(functions).sources(self)
    }

    /// Its kernels by name; all but [`Kernel::display_name`].
    ///
    /// # Errors
    /// Fails where the metadata is absent, damaged or of another major version, and where a kernel
    /// lacks its descriptor. A coverage mapping that is damaged costs the sources alone:
    /// [`CodeObject::sources`] says what is wrong.
    pub fn kernels(&self) -> Result<Vec<Kernel>, CodeObjectError> {
        let notes = Metadata::of(self)?.kernels()?;
        let functions = Functions::named(notes.iter().map(|note| note.name));
        let counted = functions.counted(self)?;
        let sources = functions.sources(self);
        let sources = sources.unwrap_or_else(|_| vec![None; notes.len()]);
        let descriptors = Descriptors::of(self)?;
        let mut kernels = Vec::with_capacity(notes.len());
        for ((note, instrumented), source) in notes.into_iter().zip(counted).zip(sources) {
            let place = descriptors.place(note.symbol)?;
            kernels.push(Kernel {
                descriptor: place.descriptor,
                entry: place.entry,
                instrumented,
                source,
                ..note.into()
            });
        }
        kernels.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(kernels)
    }
}

impl From<KernelNote<'_>> for Kernel {
    fn from(note: KernelNote) -> Self {
        Kernel {
            name: note.name.to_owned(),
            kernarg_size: note.kernarg_size,
            kernarg_align: note.kernarg_align,
            group_size: note.group_size,
            private_size: note.private_size,
            sgprs: note.sgprs,
            vgprs: note.vgprs,
            agprs: note.agprs,
            sgpr_spills: note.sgpr_spills,
            vgpr_spills: note.vgpr_spills,
            wavefront_size: note.wavefront_size,
            max_workgroup_size: note.max_workgroup_size,
            ..Kernel::default()
        }
    }
}
