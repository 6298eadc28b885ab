use std::collections::BTreeMap;

use super::*;

fn files(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    let config = Config::read(|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.into())
    });
    let host = Host {
        processors: 2,
        memory_bytes: 1 << 30,
    };
    entries(&config.unwrap().unwrap(), host)
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::File(path, content) => Some((path, content)),
            Entry::Directory(_) => None,
        })
        .collect()
}

fn property(files: &BTreeMap<String, String>, path: &str, name: &str) -> u64 {
    let content = &files[&format!("{TOPOLOGY}/nodes/{path}/properties")];
    let line = content.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.parse().unwrap())
    });
    line.unwrap_or_else(|| panic!("{path} has no {name}"))
}

#[test]
fn targets_have_their_version_and_device() {
    let files = files(&[("ROCOV_MODELGPU", "gfx90a,gfx942")]);
    assert_eq!(property(&files, "1", "gfx_target_version"), 90010);
    assert_eq!(property(&files, "2", "gfx_target_version"), 90402);
    assert_eq!(property(&files, "1", "drm_render_minor"), 128);
    assert_eq!(property(&files, "2", "drm_render_minor"), 129);
    assert_eq!(files["/sys/dev/char/226:128/device/device"], "0x740f\n");
    assert_eq!(files["/sys/dev/char/226:129/device/device"], "0x74a1\n");
    assert_eq!(files[&format!("{TOPOLOGY}/nodes/0/gpu_id")], "0\n");
    assert_ne!(
        files[&format!("{TOPOLOGY}/nodes/1/gpu_id")],
        files[&format!("{TOPOLOGY}/nodes/2/gpu_id")]
    );
}

/// AMD's data sheets: an MI50 has 60 compute units in 4 engines, an MI100 120 in 8, an MI210 104 compute units, an MI300X 304 in 8 XCCs, an MI350X 256 in 8
/// XCCs, with 160 KiB of LDS. Each unit has 4 SIMDs. An RX 6900 XT has 80 units of 2 SIMDs, in two arrays of each of 4
/// engines, an RX 7900 XTX 96 units of 2 SIMDs, in two
/// arrays of each of 6 engines, an RX 9070 XT 64 in those of 4. The engines are 8 in an MI210, and 4 in each XCC of an MI300X.
#[test]
fn units_are_those_of_the_products() {
    let files = files(&[(
        "ROCOV_MODELGPU",
        "gfx906,gfx908,gfx90a,gfx942,gfx950,gfx1030,gfx1100,gfx1201",
    )]);
    for (name, values) in [
        ("simd_count", [240, 480, 416, 1216, 1024, 160, 192, 128]),
        ("simd_per_cu", [4, 4, 4, 4, 4, 2, 2, 2]),
        ("array_count", [4, 8, 8, 32, 32, 8, 12, 8]),
        ("cu_per_simd_array", [15, 15, 13, 10, 8, 10, 8, 8]),
        ("num_xcc", [1, 1, 1, 8, 8, 1, 1, 1]),
        ("lds_size_in_kb", [64, 64, 64, 64, 160, 64, 64, 64]),
        ("wave_front_size", [64, 64, 64, 64, 64, 32, 32, 32]),
        (
            "device_id",
            [
                0x66a1, 0x738c, 0x740f, 0x74a1, 0x75a0, 0x73bf, 0x744c, 0x7550,
            ],
        ),
    ] {
        for (place, value) in values.into_iter().enumerate() {
            let node = (place + 1).to_string();
            assert_eq!(
                property(&files, &node, name),
                value,
                "{name} of node {node}"
            );
        }
    }
}

/// LLVM's facts about gfx1250: 320 KiB of LDS, and waves of 32.
#[test]
fn gfx1250_has_the_facts_of_llvm() {
    let files = files(&[("ROCOV_MODELGPU", "gfx1250")]);
    for (name, value) in [
        ("gfx_target_version", 120_500),
        ("lds_size_in_kb", 320),
        ("wave_front_size", 32),
        ("simd_per_cu", 4),
    ] {
        assert_eq!(property(&files, "1", name), value, "{name}");
    }
}

/// The driver's table of GPUs (`Documentation/gpu/amdgpu/dgpu-asic-info-table.csv` in the Linux kernel): MI50 GC
/// 9.4.0 and SDMA 4.2.0, MI100 GC 9.4.1 and SDMA 4.2.2, MI200 series GC 9.4.2 and SDMA 4.4.0, MI300 series GC 9.4.3 and
/// SDMA 4.4.2, RX 6900 XT GC 10.3.0 and SDMA 5.2.0, RX 7900 XTX GC 11.0.0 and SDMA 6.0.0, RX 9070 XT GC 12.0.1 and SDMA 7.0.1. The numbers of GC and SDMA0 are 11 and 42 (`soc15_hw_ip.h`).
#[test]
fn blocks_have_the_versions_of_the_products() {
    let files = files(&[(
        "ROCOV_MODELGPU",
        "gfx90a,gfx942,gfx1100,gfx1201,gfx906,gfx908,gfx1030",
    )]);
    for (minor, gc, sdma) in [
        (128, [9, 4, 2], [4, 4, 0]),
        (129, [9, 4, 3], [4, 4, 2]),
        (130, [11, 0, 0], [6, 0, 0]),
        (131, [12, 0, 1], [7, 0, 1]),
        (132, [9, 4, 0], [4, 2, 0]),
        (133, [9, 4, 1], [4, 2, 2]),
        (134, [10, 3, 0], [5, 2, 0]),
    ] {
        for (block, version) in [(11, gc), (42, sdma)] {
            let found = ["major", "minor", "revision"].map(|part| {
                let place = format!("ip_discovery/die/0/{block}/0/{part}");
                let path = format!("/sys/class/drm/renderD{minor}/device/{place}");
                files[&path].trim().parse::<u32>().unwrap()
            });
            assert_eq!(found, version, "block {block} of renderD{minor}");
        }
    }
}

#[test]
fn the_host_reaches_device_memory_only_with_a_large_bar() {
    let small = files(&[
        ("ROCOV_MODELGPU", "gfx90ax2"),
        ("ROCOV_MODELGPU_BAR", "small"),
    ]);
    assert_eq!(property(&small, "0", "io_links_count"), 0);
    assert_eq!(property(&small, "1/mem_banks/0", "heap_type"), 2);
    let large = files(&[("ROCOV_MODELGPU", "gfx90ax2")]);
    assert_eq!(property(&large, "0", "io_links_count"), 2);
    assert_eq!(property(&large, "0/io_links/1", "node_to"), 2);
    assert_eq!(property(&large, "1/mem_banks/0", "heap_type"), 1);
}

#[test]
fn every_counted_link_exists() {
    let files = files(&[("ROCOV_MODELGPU", "gfx90ax8"), ("ROCOV_MODELGPU_XGMI", "1")]);
    for node in 1..=8 {
        let count = property(&files, &node.to_string(), "io_links_count");
        assert_eq!(count, 8);
        let targets: Vec<u64> = (0..count)
            .map(|link| property(&files, &format!("{node}/io_links/{link}"), "node_to"))
            .collect();
        let expected: Vec<u64> = (0..=8).filter(|&to| to != node).collect();
        assert_eq!(targets, expected);
        assert_eq!(property(&files, &format!("{node}/io_links/0"), "type"), 2);
        assert_eq!(property(&files, &format!("{node}/io_links/1"), "type"), 11);
    }
}
