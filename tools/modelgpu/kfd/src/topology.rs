//! The contents of `/sys`, `/proc/modules` and `/dev/dri` that describe the machine.
//!
//! The code is pure: it maps a configuration to paths and contents. `tree.rs` writes them.

use modelgpu_amdgcn::ComputeUnits;

use crate::abi::drm;
use crate::config::{Bar, Config};
use crate::gpu::{self, identity};
use crate::paths::FIRST_RENDER_MINOR;

/// The host's part of the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Processors online.
    pub(crate) processors: u64,
    /// System memory in bytes.
    pub(crate) memory_bytes: u64,
}

/// A path inside the tree and its contents.
#[derive(Hash)]
pub(crate) enum Entry {
    File(String, String),
    Directory(String),
}

impl Entry {
    /// The entry's path, which starts with a slash.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::File(path, _) | Self::Directory(path) => path,
        }
    }
}

const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// `heap_type` of a memory bank.
mod heap {
    pub(super) const SYSTEM: u32 = 0;
    pub(super) const VRAM_PUBLIC: u32 = 1;
    pub(super) const VRAM_PRIVATE: u32 = 2;
}

/// `type` of an IO link.
mod link {
    pub(super) const PCIE: u32 = 2;
    pub(super) const XGMI: u32 = 11;
}

/// All entries of the tree.
pub(crate) fn entries(config: &Config, host: Host) -> Vec<Entry> {
    let mut tree = Tree::default();
    tree.file(&format!("{TOPOLOGY}/generation_id"), "1\n");
    tree.file(
        &format!("{TOPOLOGY}/system_properties"),
        &properties(&[("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)]),
    );
    tree.file("/dev/kfd", "");
    tree.file("/sys/module/amdgpu/initstate", "live\n");
    tree.file("/sys/module/amdgpu/version", "6.0\n");
    tree.file("/sys/module/amdgpu/refcnt", "1\n");
    tree.file("/sys/module/amdgpu/coresize", "1\n");
    tree.file("/proc/modules", "amdgpu 1 0 - Live 0x0000000000000000\n");
    cpu_node(&mut tree, config, host);
    for index in 0..config.gpus.len() {
        gpu_node(&mut tree, config, index);
        drm_files(&mut tree, config, index);
    }
    tree.entries
}

#[derive(Default)]
struct Tree {
    entries: Vec<Entry>,
}

impl Tree {
    fn file(&mut self, path: &str, content: &str) {
        let entry = Entry::File(path.to_string(), content.to_string());
        self.entries.push(entry);
    }

    /// Adds one node's files. The thunk needs every directory, also empty ones.
    fn node(&mut self, number: usize, gpu_id: u32, node_properties: &[(&str, u64)]) -> String {
        let base = format!("{TOPOLOGY}/nodes/{number}");
        self.file(&format!("{base}/gpu_id"), &format!("{gpu_id}\n"));
        self.file(&format!("{base}/name"), "\n");
        self.file(&format!("{base}/properties"), &properties(node_properties));
        for directory in ["mem_banks", "caches", "io_links", "p2p_links"] {
            let path = format!("{base}/{directory}");
            self.entries.push(Entry::Directory(path));
        }
        base
    }

    fn memory_bank(&mut self, node: &str, heap_type: u32, bytes: u64, width: u64) {
        self.file(
            &format!("{node}/mem_banks/0/properties"),
            &properties(&[
                ("heap_type", u64::from(heap_type)),
                ("size_in_bytes", bytes),
                ("flags", 0),
                ("width", width),
                ("mem_clk_max", 1600),
            ]),
        );
    }

    /// Adds IO links from a node to others. The weights are those of real machines: 20 between CPU
    /// and GPU, 40 between GPUs over PCIe, 15 over XGMI.
    fn links(&mut self, node: &str, from: usize, peers: &[usize], xgmi: bool) {
        for (number, &to) in peers.iter().enumerate() {
            let (kind, weight) = match (from > 0 && to > 0, xgmi) {
                (true, true) => (link::XGMI, 15),
                (true, false) => (link::PCIE, 40),
                (false, _) => (link::PCIE, 20),
            };
            self.file(
                &format!("{node}/io_links/{number}/properties"),
                &properties(&[
                    ("type", u64::from(kind)),
                    ("version_major", 0),
                    ("version_minor", 0),
                    ("node_from", from as u64),
                    ("node_to", to as u64),
                    ("weight", weight),
                    ("min_latency", 0),
                    ("max_latency", 0),
                    ("min_bandwidth", 1),
                    ("max_bandwidth", 32000),
                    ("recommended_transfer_size", 0),
                    ("recommended_sdma_engine_id_mask", 0),
                    ("flags", 1),
                ]),
            );
        }
    }
}

/// `name value` lines.
fn properties(values: &[(&str, u64)]) -> String {
    let line = |(name, value): &(&str, u64)| format!("{name} {value}\n");
    values.iter().map(line).collect()
}

/// Node 0: the host. It has a link to a GPU only if it can reach that GPU's memory.
fn cpu_node(tree: &mut Tree, config: &Config, host: Host) {
    let peers: Vec<usize> = match config.bar {
        Bar::Large => (1..=config.gpus.len()).collect(),
        Bar::Small => Vec::new(),
    };
    let node = tree.node(
        0,
        0,
        &[
            ("cpu_cores_count", host.processors),
            ("simd_count", 0),
            ("mem_banks_count", 1),
            ("caches_count", 0),
            ("io_links_count", peers.len() as u64),
            ("p2p_links_count", 0),
            ("cpu_core_id_base", 0),
            ("simd_id_base", 0),
        ],
    );
    tree.memory_bank(&node, heap::SYSTEM, host.memory_bytes, 64);
    tree.links(&node, 0, &peers, config.xgmi);
}

/// Capability bits of a GPU node (`HSA_CAPABILITY` in the thunk's headers): queue sizes are powers of
/// two 3, address watch 7, watch points 2^2 in bits 8 to 11, doorbell type 2 in bits 12 and 13,
/// ASIC revision 1 in bits 22 to 25, SVM 27. SRAM ECC has 26.
const CAPABILITY: u64 = 1 << 3 | 1 << 7 | 2 << 8 | 2 << 12 | 1 << 22 | 1 << 27;

fn gpu_node(tree: &mut Tree, config: &Config, index: usize) {
    let number = index + 1;
    let identity = identity(config.gpus[index]);
    let units = ComputeUnits::for_target(config.gpus[index]);
    // A GPU always has a link to the host, and one to each other GPU.
    let peers: Vec<usize> = (0..=config.gpus.len()).filter(|&to| to != number).collect();
    let xgmi = u64::from(config.xgmi);
    let node = tree.node(
        number,
        gpu::gpu_id(index),
        &[
            ("cpu_cores_count", 0),
            // ROCr computes the compute units as simd_count / simd_per_cu.
            (
                "simd_count",
                u64::from(units.units() * units.simds_per_unit),
            ),
            ("mem_banks_count", 1),
            ("caches_count", identity.caches.len() as u64),
            ("io_links_count", peers.len() as u64),
            ("p2p_links_count", 0),
            ("cpu_core_id_base", 0),
            ("simd_id_base", u64::from(simd_id_base(index))),
            ("max_waves_per_simd", u64::from(identity.waves_per_simd)),
            (
                "lds_size_in_kb",
                u64::from(config.gpus[index].max_lds() / 1024),
            ),
            ("gds_size_in_kb", 0),
            ("num_gws", u64::from(identity.gws_resources)),
            ("wave_front_size", u64::from(identity.wave_size)),
            ("array_count", u64::from(units.engines())),
            (
                "simd_arrays_per_engine",
                u64::from(identity.arrays_per_engine),
            ),
            ("cu_per_simd_array", u64::from(units.units_per_engine())),
            ("simd_per_cu", u64::from(units.simds_per_unit)),
            ("max_slots_scratch_cu", 32),
            ("gfx_target_version", u64::from(identity.gfx_version)),
            ("vendor_id", 0x1002),
            ("device_id", u64::from(identity.device_id)),
            ("location_id", u64::from(gpu::pci_bus(index)) << 8),
            ("domain", 0),
            (
                "drm_render_minor",
                u64::from(FIRST_RENDER_MINOR) + index as u64,
            ),
            ("hive_id", xgmi * 0x1926_abcd),
            ("num_sdma_engines", 2),
            ("num_sdma_xgmi_engines", xgmi * 3),
            ("num_sdma_queues_per_engine", 8),
            ("num_cp_queues", 24),
            ("max_engine_clk_fcompute", 1700),
            ("local_mem_size", 0),
            ("fw_version", 66),
            ("capability", CAPABILITY | u64::from(identity.has_ecc) << 26),
            ("capability2", 0),
            ("debug_prop", 0),
            ("sdma_fw_version", 0x1c),
            ("unique_id", 0xfa4e_6000_0000_0000 + number as u64),
            ("num_xcc", u64::from(units.xccs)),
            ("max_engine_clk_ccompute", 2000),
        ],
    );
    let heap = match config.bar {
        Bar::Small => heap::VRAM_PRIVATE,
        Bar::Large => heap::VRAM_PUBLIC,
    };
    tree.memory_bank(&node, heap, config.vram_bytes, 4096);
    tree.links(&node, number, &peers, config.xgmi);
    for (number, kib) in identity.caches.iter().enumerate() {
        caches(tree, &node, index, number, number as u64 + 1, *kib);
    }
}

fn simd_id_base(index: usize) -> u32 {
    0x8000_1000 + 0x1000 * index as u32
}

fn caches(tree: &mut Tree, node: &str, index: usize, number: usize, level: u64, kib: u64) {
    let mut text = properties(&[
        ("processor_id_low", u64::from(simd_id_base(index))),
        ("level", level),
        ("size", kib),
        ("cache_line_size", 128),
        ("cache_lines_per_tag", 1),
        ("association", 16),
        ("latency", 0),
        ("type", 9),
    ]);
    text.push_str("sibling_map 1,0\n");
    tree.file(&format!("{node}/caches/{number}/properties"), &text);
}

/// Adds the files from which libdrm identifies a render node.
fn drm_files(tree: &mut Tree, config: &Config, index: usize) {
    let identity = identity(config.gpus[index]);
    let minor = FIRST_RENDER_MINOR + index as u32;
    tree.file(&format!("/dev/dri/renderD{minor}"), "");
    for device in [
        format!("/sys/dev/char/226:{minor}/device"),
        format!("/sys/class/drm/renderD{minor}/device"),
    ] {
        let major = drm::MAJOR;
        let mut file = |name: &str, content: String| {
            tree.file(&format!("{device}/{name}"), &content);
        };
        file(
            &format!("drm/renderD{minor}/dev"),
            format!("{major}:{minor}\n"),
        );
        file(
            &format!("drm/card{index}/dev"),
            format!("{major}:{index}\n"),
        );
        file("vendor", "0x1002\n".into());
        file("device", format!("0x{:04x}\n", identity.device_id));
        file("revision", "0x01\n".into());
        for block in identity.blocks {
            let names = ["major", "minor", "revision"];
            for (name, number) in names.into_iter().zip(block.version) {
                let place = format!("ip_discovery/die/0/{}/0/{name}", block.kind);
                file(&place, format!("{number}\n"));
            }
        }
        let bus = gpu::pci_bus(index);
        file(
            "uevent",
            format!("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{bus:02x}:00.0\n"),
        );
    }
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
