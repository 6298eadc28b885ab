//! The compute units of a GPU, and the places of waves on them.

use modelgpu_isa::Target;

/// The numbers of a GPU's parts. The driver's topology presents them to the HSA runtime, and
/// [`dispatch`](fn@crate::dispatch) spreads workgroups over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComputeUnits {
    /// Accelerator complexes (XCCs), at least 1.
    pub xccs: u32,
    /// Shader arrays in an XCC. On CDNA, a shader engine has one; on RDNA, it has two.
    pub engines_per_xcc: u32,
    /// Compute units in an XCC. Engines differ by at most one unit and have at most 16.
    pub units_per_xcc: u32,
    /// SIMDs in a compute unit, at most 4.
    pub simds_per_unit: u32,
}

impl ComputeUnits {
    /// The compute units of a GPU of a target: those of an MI50 (gfx906), of an MI100 (gfx908), of an MI210
    /// (gfx90a), of an MI300X (gfx942), of an MI350X (gfx950), of an RX 6900 XT (gfx1030), of an RX 7900 XTX (gfx1100)
    /// and of an RX 9070 XT (gfx1201), and assumed ones (gfx1250).
    pub const fn for_target(target: Target) -> Self {
        match target {
            Target::Gfx906 => Self {
                xccs: 1,
                engines_per_xcc: 4,
                units_per_xcc: 60,
                simds_per_unit: 4,
            },
            Target::Gfx908 => Self {
                xccs: 1,
                engines_per_xcc: 8,
                units_per_xcc: 120,
                simds_per_unit: 4,
            },
            Target::Gfx90a => Self {
                xccs: 1,
                engines_per_xcc: 8,
                units_per_xcc: 104,
                simds_per_unit: 4,
            },
            Target::Gfx942 => Self {
                xccs: 8,
                engines_per_xcc: 4,
                units_per_xcc: 38,
                simds_per_unit: 4,
            },
            Target::Gfx950 => Self {
                xccs: 8,
                engines_per_xcc: 4,
                units_per_xcc: 32,
                simds_per_unit: 4,
            },
            // Four engines have two arrays each. An array counts as an engine here.
            Target::Gfx1030 => Self {
                xccs: 1,
                engines_per_xcc: 8,
                units_per_xcc: 80,
                simds_per_unit: 2,
            },
            // Six engines have two arrays each. An array counts as an engine here.
            Target::Gfx1100 => Self {
                xccs: 1,
                engines_per_xcc: 12,
                units_per_xcc: 96,
                simds_per_unit: 2,
            },
            // Four engines have two arrays each.
            Target::Gfx1201 => Self {
                xccs: 1,
                engines_per_xcc: 8,
                units_per_xcc: 64,
                simds_per_unit: 2,
            },
            // These numbers are assumed. A unit has four SIMDs (LLVM's `getEUsPerCU`).
            Target::Gfx1250 => Self {
                xccs: 1,
                engines_per_xcc: 8,
                units_per_xcc: 64,
                simds_per_unit: 4,
            },
        }
    }

    /// The number of compute units.
    pub const fn units(self) -> u32 {
        self.xccs * self.units_per_xcc
    }

    /// The number of shader engines.
    pub const fn engines(self) -> u32 {
        self.xccs * self.engines_per_xcc
    }

    /// The most compute units of a shader engine.
    pub const fn units_per_engine(self) -> u32 {
        self.units_per_xcc.div_ceil(self.engines_per_xcc)
    }

    /// The place of a wave. `workgroup` is the workgroup's number in its dispatch, and `wave` the
    /// wave's number in its workgroup.
    ///
    /// Workgroups go round the XCCs, as on hardware, in an XCC round its engines, and in an engine
    /// round its units. The waves of a workgroup go round the SIMDs of its unit. Each workgroup finds
    /// an idle unit, because workgroups run one after another.
    pub(crate) const fn place(self, workgroup: u64, wave: u32) -> Place {
        let xcc = (workgroup % self.xccs as u64) as u32;
        let in_xcc = (workgroup / self.xccs as u64 % self.units_per_xcc as u64) as u32;
        Place {
            xcc,
            engine: in_xcc % self.engines_per_xcc,
            unit: in_xcc / self.engines_per_xcc,
            simd: wave % self.simds_per_unit,
            slot: wave / self.simds_per_unit,
        }
    }
}

/// The place where a wave runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub xcc: u32,
    /// The shader engine in the XCC.
    pub engine: u32,
    /// The compute unit in the shader engine.
    pub unit: u32,
    /// The SIMD in the compute unit.
    pub simd: u32,
    /// The wave slot in the SIMD.
    pub slot: u32,
}

impl Place {
    /// HW_ID: WAVE_ID in bits 0 to 3, SIMD_ID in 4 and 5, CU_ID in 8 to 11, SE_ID in 13 to 15. The
    /// other fields are 0: there is one pipe, one shader array in an engine and one queue at a time.
    pub(crate) const fn hw_id(self) -> u32 {
        self.slot | self.simd << 4 | self.unit << 8 | self.engine << 13
    }

    /// HW_ID1 of RDNA: WAVE_ID in bits 0 to 4, SIMD_ID in 8 and 9, WGP_ID in 10 to 13, SA_ID in 16,
    /// SE_ID in 18 to 20. Two units make a workgroup processor, which counts their SIMDs together.
    pub(crate) const fn hw_id1(self) -> u32 {
        let simd = self.unit % 2 * 2 + self.simd;
        self.slot
            | simd << 8
            | (self.unit / 2) << 10
            | (self.engine % 2) << 16
            | (self.engine / 2) << 18
    }

    /// XCC_ID: the XCC in bits 0 to 3. Other bits are 0.
    pub(crate) const fn xcc_id(self) -> u32 {
        self.xcc
    }
}
