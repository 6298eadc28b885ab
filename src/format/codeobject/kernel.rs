//! The data that a code object has about each of its kernels.

use object::read::ReadRef;
use serde::{Deserialize, Serialize};

use crate::format::codeobject::descriptor::Descriptors;
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;
use crate::format::codeobject::kernel_sources::Functions;
use crate::format::codeobject::metadata::{KernelNote, Metadata};
use crate::format::codeobject::{openmp, target};

/// A kernel, with the resources that it takes according to its compiler.
///
/// Sizes are in bytes. The numbers of a cubin come from `.nv.info` and the sizes of sections, and it has no addresses
/// of kernels. On AMD GPUs, the numbers come from the AMDGPU metadata note (`amdhsa.kernels`, LLVM's AMDGPUUsage,
/// "Code Object V5 Metadata"). `entry` comes from the kernel descriptor (section "Kernel Descriptor" there).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The mangled symbol of its function: `_Z5scalePfif`.
    pub name: String,
    /// The demangled name: `scale(float*, int, float)`. `None` if no demangler was available.
    pub display_name: Option<String>,
    /// The ELF address of its kernel descriptor, the symbol `<name>.kd`. With the load delta added it is the
    /// kernel object in dispatch packets.
    pub descriptor: u64,
    /// The ELF address of its first instruction.
    pub entry: u64,
    /// The size of its arguments in bytes.
    pub kernarg_size: u32,
    /// The alignment of its arguments in bytes.
    pub kernarg_align: u32,
    /// The bytes of LDS for each workgroup that the compiler reports.
    pub group_size: u32,
    /// The bytes of scratch for each work-item.
    pub private_size: u32,
    /// The bytes of constant memory that it can read, with its arguments. 0 on AMD GPUs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub constant_size: u32,
    /// Scalar registers.
    pub sgprs: u32,
    /// Vector registers, which are those of each thread on NVIDIA GPUs. Includes accumulation registers if the
    /// target has one file for both.
    pub vgprs: u32,
    /// Accumulation registers. 0 on targets without them.
    pub agprs: u32,
    /// Scalar registers that are spilled.
    pub sgpr_spills: u32,
    /// Vector registers that are spilled. In a cubin, the instructions that store or load a spilled register.
    pub vgpr_spills: u32,
    /// The number of work-items in a wave.
    pub wavefront_size: u32,
    /// The most work-items in a workgroup.
    pub max_workgroup_size: u32,
    /// True if it has a data record, and so counters of its own.
    pub instrumented: bool,
    /// The source file from its coverage mapping. `None` if rocov cannot read a mapping.
    pub source: Option<String>,
}

/// Returns whether a field is left out of documents.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The processor that it is compiled for with its features, such as `gfx90a:xnack-` or `sm_90a`. Comes from
    /// the flags of the ELF, or from the metadata if rocov does not support the flags. A feature that is not named
    /// may be on or off.
    ///
    /// # Errors
    /// Fails if neither names a processor.
    pub fn target(&self) -> Result<String, CodeObjectError> {
        if self.is_cubin() {
            return self.cubin_target();
        }
        let (flags, abi_version) = self.flags();
        // The metadata has this too, but only after the arguments of all kernels.
        if let Some(target) = target::from_flags(flags, abi_version) {
            return Ok(target);
        }
        let metadata = Metadata::parse(self)?;
        // Four parts come before it: architecture, vendor, system, environment.
        let named = metadata
            .target()
            .and_then(|target| target.splitn(5, '-').nth(4));
        let unknown = CodeObjectError::UnknownProcessor { found: flags };
        named.map(str::to_owned).ok_or(unknown)
    }

    /// The source file of each of these functions, in their order, from the coverage mapping. `None` for
    /// functions without a mapping, or with a mapping of a version other than 4 to 7.
    ///
    /// # Errors
    /// Fails if the coverage mapping is damaged.
    pub fn sources<'a>(
        &self,
        functions: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Option<String>>, CodeObjectError> {
        Functions::named(functions).sources(self)
    }

    /// Its kernels by name, without [`Kernel::display_name`].
    ///
    /// # Errors
    /// Fails if the metadata is absent, damaged or of another major version, or if a kernel lacks its
    /// descriptor. If the coverage mapping is damaged, only the sources are missing: [`CodeObject::sources`]
    /// reports the damage.
    pub fn kernels(&self) -> Result<Vec<Kernel>, CodeObjectError> {
        let mut kernels = match self.is_cubin() {
            true => self.cubin_kernels(),
            false => self.amd_kernels(),
        }?;
        kernels.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(kernels)
    }

    fn amd_kernels(&self) -> Result<Vec<Kernel>, CodeObjectError> {
        let notes = Metadata::parse(self)?.kernels()?;
        let names: Vec<_> = notes.iter().map(|note| note.name).collect();
        let names = openmp::profile_names(self, &names)?;
        let functions = Functions::named(names.iter().map(String::as_str));
        let counted = functions.counted(self)?;
        let sources = functions.sources(self);
        let sources = sources.unwrap_or_else(|_| vec![None; notes.len()]);
        let descriptors = Descriptors::new(self)?;
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
        Ok(kernels)
    }
}

impl From<KernelNote<'_>> for Kernel {
    fn from(note: KernelNote) -> Self {
        Self {
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
            ..Self::default()
        }
    }
}
