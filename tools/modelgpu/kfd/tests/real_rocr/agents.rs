//! The runtime finds the configured GPUs.

use crate::harness::{Ended, Run, c_program};

fn agents(gpus: &str) -> Ended {
    Run::new(&c_program("agents"))
        .env("ROCOV_MODELGPU", gpus)
        .output()
}

fn names(ended: &Ended) -> Vec<&str> {
    let lines = ended.stdout.lines();
    lines.filter(|line| line.starts_with("gpu ")).collect()
}

#[test]
fn one_gpu_with_its_pools() {
    let ended = agents("gfx90a");
    ended.assert_finished();
    assert_eq!(
        ended.stdout.lines().collect::<Vec<_>>(),
        [
            "gpu 0: gfx90a, node 1, 104 compute units, bus 0x4100",
            "  isa: amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
            "  pool: segment 0, flags 4, 16777216 KiB",
            "  pool: segment 3, flags 0, 64 KiB",
            crate::harness::FINISHED,
        ]
    );
}

#[test]
fn several_gpus_in_order() {
    for count in [2, 8] {
        let ended = agents(&format!("gfx90ax{count}"));
        ended.assert_finished();
        let expected: Vec<String> = (0..count)
            .map(|gpu| {
                let (node, bus) = (gpu + 1, (0x41 + 3 * gpu) << 8);
                format!("gpu {gpu}: gfx90a, node {node}, 104 compute units, bus {bus:#x}")
            })
            .collect();
        assert_eq!(names(&ended), expected);
    }
}

#[test]
fn device_memory_has_the_size_asked_for() {
    let ended = Run::new(&c_program("agents"))
        .env("ROCOV_MODELGPU_VRAM_MIB", "512")
        .output();
    ended.assert_finished();
    let pool = "pool: segment 0, flags 4, 524288 KiB";
    assert!(ended.stdout.contains(pool), "{}", ended.text());
}

/// ROCr 5.2.3 does not support gfx942. It leaves those GPUs out, and the model prints the reason.
#[test]
fn a_target_unknown_to_the_runtime_is_explained() {
    let ended = agents("gfx90a,gfx942");
    ended.assert_finished();
    assert_eq!(names(&ended).len(), 1);
    assert!(
        ended
            .stderr
            .contains("libhsa-runtime64.so.1 does not know gfx942"),
        "{}",
        ended.text()
    );
}
