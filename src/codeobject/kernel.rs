//! What a code object says of each of its kernels.

use serde::{Deserialize, Serialize};

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
    /// The source file that its coverage mapping names.
    pub source: Option<String>,
}
