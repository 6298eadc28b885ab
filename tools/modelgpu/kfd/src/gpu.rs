//! The properties of a modelled GPU: identity, sizes, address ranges.

use modelgpu_amdgcn::Target;

/// Work-items in a wave.
pub(crate) const WAVE_SIZE: u32 = 64;
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
    /// Family number in DRM's device info: AI, for Vega and all CDNA.
    pub(crate) family: u32,
}

/// The identity of GPUs of this target.
pub(crate) fn identity(target: Target) -> Identity {
    let (gfx_version, device_id) = match target {
        // MI210, MI300X, MI350X.
        Target::Gfx90a => (9_00_10, 0x740f),
        Target::Gfx942 => (9_04_02, 0x74a1),
        Target::Gfx950 => (9_05_00, 0x75a0),
    };
    Identity {
        gfx_version,
        device_id,
        family: 141,
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
