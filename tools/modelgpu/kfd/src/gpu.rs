//! The properties of a modelled GPU: identity, sizes, address ranges.

use modelgpu_amdgcn::Target;

/// Resources of the global wave sync, as the driver reports them for a GPU with firmware for them.
pub(crate) const GWS_RESOURCES: u32 = 64;
/// The GPU's clock: ticks of 10 ns.
pub(crate) const NS_PER_TICK: u64 = 10;

/// First address of the window through which flat instructions reach LDS.
pub(crate) const SHARED_APERTURE: u64 = 1 << 48;
/// First address of the window through which flat instructions reach private memory.
pub(crate) const PRIVATE_APERTURE: u64 = 2 << 48;
/// Bytes of each window, minus one.
pub(crate) const APERTURE_LIMIT: u64 = 0xffff_ffff;
/// First and last address of the GPU's virtual memory.
pub(crate) const GPUVM: (u64, u64) = (0x0100_0000, 0x7fff_ffff_ffff);

/// The properties that differ between kinds of GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// `gfx_target_version`: major * 10000 + minor * 100 + stepping.
    pub(crate) gfx_version: u32,
    /// PCI device id. It must agree with `gfx_target_version`: the thunk of ROCr 5 has a table of
    /// ids and rejects a known id with another version.
    pub(crate) device_id: u32,
    /// Family number in DRM's device info: 141 (AI) for Vega and all CDNA, 143 (NV) for RDNA 2, 145 for the first RDNA 3,
    /// 152 for RDNA 4.
    pub(crate) family: u32,
    /// Work-items in a wave.
    pub(crate) wave_size: u32,
    /// Waves that a SIMD holds.
    pub(crate) waves_per_simd: u32,
    /// Shader arrays of a shader engine.
    pub(crate) arrays_per_engine: u32,
    /// Resources of the global wave sync.
    pub(crate) gws_resources: u32,
    /// The memory has error correction.
    pub(crate) has_ecc: bool,
    /// The driver lets a process switch the retrying of page faults (XNACK) on: from gfx90a on, on CDNA.
    pub(crate) has_xnack: bool,
    /// The versions of the blocks of graphics and compute, of copies, and of the interface to the bus, as the driver
    /// reads them from the discovery table (`amdgpu_discovery.c` in the Linux kernel).
    pub(crate) blocks: [Block; 3],
    /// The caches from level 1 on, in KiB. A cache of level 2 belongs to an XCC.
    pub(crate) caches: &'static [u64],
}

/// A block of a GPU in the driver's discovery table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The number of its kind (`soc15_hw_ip.h`).
    pub(crate) kind: u32,
    /// Major, minor and revision.
    pub(crate) version: [u32; 3],
}

/// The blocks GC (11), SDMA0 (42) and NBIF (108) with these versions.
const fn blocks(gc: [u32; 3], sdma: [u32; 3], nbif: [u32; 3]) -> [Block; 3] {
    [
        Block {
            kind: 11,
            version: gc,
        },
        Block {
            kind: 42,
            version: sdma,
        },
        Block {
            kind: 108,
            version: nbif,
        },
    ]
}

/// The identity of GPUs of this target: an MI50, MI100, MI210, MI300X, MI350X, RX 6900 XT, RX 7900 XTX and RX 9070 XT.
pub(crate) fn identity(target: Target) -> Identity {
    let cdna = Identity {
        gfx_version: 9_00_10,
        device_id: 0x740f,
        family: 141,
        wave_size: 64,
        waves_per_simd: 8,
        arrays_per_engine: 1,
        gws_resources: GWS_RESOURCES,
        has_ecc: true,
        has_xnack: true,
        blocks: blocks([9, 4, 2], [4, 4, 0], [7, 4, 4]),
        caches: &[16, 8192],
    };
    match target {
        // The driver's numbers are those of `kfd_device_info` and `amdgpu_discovery.c`. XNACK stays off: before gfx90a,
        // the driver lets no process choose.
        Target::Gfx906 => Identity {
            gfx_version: 9_00_06,
            device_id: 0x66a1,
            waves_per_simd: 10,
            has_xnack: false,
            blocks: blocks([9, 4, 0], [4, 2, 0], [7, 4, 0]),
            caches: &[16, 4096],
            ..cdna
        },
        Target::Gfx908 => Identity {
            gfx_version: 9_00_08,
            device_id: 0x738c,
            waves_per_simd: 10,
            has_xnack: false,
            blocks: blocks([9, 4, 1], [4, 2, 2], [7, 4, 1]),
            caches: &[16, 8192],
            ..cdna
        },
        Target::Gfx90a => cdna,
        Target::Gfx942 => Identity {
            gfx_version: 9_04_02,
            device_id: 0x74a1,
            blocks: blocks([9, 4, 3], [4, 4, 2], [7, 9, 0]),
            caches: &[32, 4096, 262_144],
            ..cdna
        },
        Target::Gfx950 => Identity {
            gfx_version: 9_05_00,
            device_id: 0x75a0,
            blocks: blocks([9, 5, 0], [4, 4, 5], [7, 9, 1]),
            caches: &[32, 4096, 262_144],
            ..cdna
        },
        // The driver's numbers are those of `amdgpu_discovery.c`, `kfd_gws_init` and `amdgpu_drm.h`, and the waves of a SIMD
        // are LLVM's (`FeatureMaxWavesPerEU16`). The driver treats NBIF 3.3.0 to 3.3.3 alike; that this GPU has the first one
        // is assumed.
        Target::Gfx1030 => Identity {
            gfx_version: 10_03_00,
            device_id: 0x73bf,
            family: 143,
            wave_size: 32,
            waves_per_simd: 16,
            arrays_per_engine: 2,
            gws_resources: GWS_RESOURCES,
            has_ecc: false,
            has_xnack: false,
            blocks: blocks([10, 3, 0], [5, 2, 0], [3, 3, 0]),
            caches: &[16, 4096, 131_072],
        },
        Target::Gfx1100 => Identity {
            gfx_version: 11_00_00,
            device_id: 0x744c,
            family: 145,
            wave_size: 32,
            waves_per_simd: 16,
            arrays_per_engine: 2,
            gws_resources: 0,
            has_ecc: false,
            has_xnack: false,
            blocks: blocks([11, 0, 0], [6, 0, 0], [4, 3, 0]),
            caches: &[32, 6144, 98_304],
        },
        Target::Gfx1201 => Identity {
            gfx_version: 12_00_01,
            device_id: 0x7550,
            family: 152,
            wave_size: 32,
            waves_per_simd: 16,
            arrays_per_engine: 2,
            gws_resources: 0,
            has_ecc: false,
            has_xnack: false,
            blocks: blocks([12, 0, 1], [7, 0, 1], [6, 3, 1]),
            caches: &[32, 8192, 65_536],
        },
        // The driver calls its GC 12.1.0 (`amdgpu_discovery.c`). The size of waves is LLVM's. The id, the caches and the other
        // blocks are assumed.
        Target::Gfx1250 => Identity {
            gfx_version: 12_05_00,
            device_id: 0x75b0,
            family: 152,
            wave_size: 32,
            waves_per_simd: 16,
            arrays_per_engine: 2,
            gws_resources: 0,
            has_ecc: true,
            has_xnack: true,
            blocks: blocks([12, 1, 0], [7, 1, 0], [6, 3, 1]),
            caches: &[32, 4096, 262_144],
        },
    }
}

/// The id of GPU number `index` in ioctls: arbitrary, distinct and never 0.
pub(crate) fn gpu_id(index: usize) -> u32 {
    0x1001 + 0x111 * index as u32
}

/// The GPU number for an ioctl's `gpu_id`, among `count` GPUs.
pub(crate) fn index_of(id: u32, count: usize) -> Option<usize> {
    (0..count).find(|&index| gpu_id(index) == id)
}

/// PCI bus number of GPU `index`; device and function are 0.
pub(crate) fn pci_bus(index: usize) -> u32 {
    0x41 + 3 * index as u32
}
