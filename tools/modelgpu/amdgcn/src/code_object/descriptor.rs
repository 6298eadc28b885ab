//! The kernel descriptor that a dispatch packet points at (LLVM's AMDGPUUsage, "Kernel
//! Descriptor").
//!
//! ROCr's own blit kernels still have the `amd_kernel_code_t` of code object version 2 before them.
//! The fields read here have the offsets of a kernel descriptor in it.

use modelgpu_isa::{Generation, Target};

use crate::allotment::Allotment;
use crate::lanes::WaveSize;
use crate::memory::{Unmapped, View};
use crate::state::RegisterState;

/// The bit of the properties for waves of 32 work-items.
const WAVE32: u32 = 10;

/// The fields that affect execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelDescriptor {
    pub private_segment_size: u32,
    /// Distance in bytes from the descriptor to the first instruction.
    pub entry_offset: i64,
    pub rsrc1: u32,
    pub rsrc2: u32,
    /// `None` in an `amd_kernel_code_t`, which has other contents there.
    rsrc3: Option<u32>,
    properties: u16,
    pub uses_dynamic_stack: bool,
    /// SGPRs to fill from the kernel arguments.
    pub kernarg_preload_length: u16,
    /// The first of them, in dwords from the start of the arguments.
    pub kernarg_preload_offset: u16,
}

impl KernelDescriptor {
    pub(crate) fn read(memory: &mut View<'_>, address: u64) -> Result<Self, Unmapped> {
        let mut field = |offset: u64, size| memory.load(address.wrapping_add(offset), size);
        let properties = field(56, 2)? as u16;
        // The version 1 of the structure, and the kind and the major version of the machine.
        let is_kernel_code =
            field(0, 4)? == 1 && field(8, 2)? == 1 && (9..=12).contains(&field(10, 2)?);
        let rsrc3 = field(44, 4)? as u32;
        Ok(Self {
            private_segment_size: field(4, 4)? as u32,
            entry_offset: field(16, 8)? as i64,
            rsrc1: field(48, 4)? as u32,
            rsrc2: field(52, 4)? as u32,
            rsrc3: (!is_kernel_code).then_some(rsrc3),
            properties,
            uses_dynamic_stack: properties >> 11 & 1 == 1,
            kernarg_preload_length: field(58, 2)? as u16 & 0x7f,
            kernarg_preload_offset: field(58, 2)? as u16 >> 7,
        })
    }

    /// The contents of a descriptor for a kernel whose state is in registers. Its code begins at the kernel object.
    pub(crate) fn of_state(state: &RegisterState) -> Self {
        let [rsrc1, rsrc2, rsrc3] = state.rsrc;
        Self {
            private_segment_size: 0,
            entry_offset: 0,
            rsrc1,
            rsrc2,
            rsrc3: Some(rsrc3),
            properties: u16::from(state.is_wave32) << WAVE32,
            uses_dynamic_stack: false,
            kernarg_preload_length: 0,
            kernarg_preload_offset: 0,
        }
    }

    fn property(&self, bit: u32) -> bool {
        self.properties >> bit & 1 == 1
    }

    pub(crate) fn private_segment_buffer(&self) -> bool {
        self.property(0)
    }

    pub(crate) fn dispatch_ptr(&self) -> bool {
        self.property(1)
    }

    pub(crate) fn queue_ptr(&self) -> bool {
        self.property(2)
    }

    pub(crate) fn kernarg_segment_ptr(&self) -> bool {
        self.property(3)
    }

    pub(crate) fn dispatch_id(&self) -> bool {
        self.property(4)
    }

    pub(crate) fn flat_scratch_init(&self) -> bool {
        self.property(5)
    }

    pub(crate) fn private_segment_size_sgpr(&self) -> bool {
        self.property(6)
    }

    /// The work-items of a wave. CDNA has no bit for it.
    pub(crate) fn wave_size(&self) -> WaveSize {
        match self.property(WAVE32) {
            true => WaveSize::Wave32,
            false => WaveSize::Wave64,
        }
    }

    /// The registers of each wave (LLVM's AMDGPUUsage, GRANULATED_WORKITEM_VGPR_COUNT,
    /// GRANULATED_WAVEFRONT_SGPR_COUNT and ACCUM_OFFSET).
    pub(crate) fn registers(&self, target: Target) -> Allotment {
        let granule = match (target.generation(), self.wave_size()) {
            (Generation::Gfx9, _) if !target.has_unified_registers() => 4,
            // LLVM's `getVGPREncodingGranule`.
            _ if target == Target::Gfx1250 => 16,
            (Generation::Gfx9, _) | (_, WaveSize::Wave32) => 8,
            _ => 4,
        };
        let vectors = granule * ((self.rsrc1 & 0x3f) as u16 + 1);
        if target.generation() != Generation::Gfx9 {
            return Allotment {
                vectors,
                accumulators: 0,
                // Every wave has all.
                scalars: u16::MAX,
            };
        }
        let scalars = 16 * ((self.rsrc1 >> 6 & 15) as u16 / 2 + 1);
        if !target.has_unified_registers() {
            let accumulators = match target {
                Target::Gfx908 => vectors,
                _ => 0,
            };
            return Allotment {
                vectors,
                accumulators,
                scalars,
            };
        }
        let first_accumulator = self
            .rsrc3
            .map_or(vectors, |rsrc3| 4 * ((rsrc3 & 0x3f) as u16 + 1));
        Allotment {
            vectors: vectors.min(first_accumulator),
            accumulators: vectors.saturating_sub(first_accumulator),
            scalars,
        }
    }

    /// Returns whether the kernel has scratch (COMPUTE_PGM_RSRC2).
    pub(crate) fn private_segment(&self) -> bool {
        self.rsrc2 & 1 == 1
    }

    /// The number of user SGPRs, behind which the system's begin. On gfx11, compilers ask for some that
    /// nothing fills (LLVM's `hasUserSGPRInit16Bug`).
    ///
    /// The field has another bit on gfx1250.
    pub(crate) fn user_sgprs(&self, target: Target) -> u32 {
        self.rsrc2 >> 1 & if target == Target::Gfx1250 { 63 } else { 31 }
    }

    pub(crate) fn workgroup_id(&self, dimension: usize) -> bool {
        self.rsrc2 >> (7 + dimension) & 1 == 1
    }

    /// The dimensions of a work-item's id that have a register of their own, if ids are not packed.
    pub(crate) fn item_id_dimensions(&self) -> usize {
        1 + (self.rsrc2 >> 11 & 3).min(2) as usize
    }

    pub(crate) fn workgroup_info(&self) -> bool {
        self.rsrc2 >> 10 & 1 == 1
    }
}
