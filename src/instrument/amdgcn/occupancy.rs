//! The registers that a kernel may have more without fewer of its waves in a SIMD.

use modelgpu_isa::{Generation, Target};

/// The vector registers of a SIMD for all its waves, the unit in which it gives them to a wave, and the most waves
/// (`getTotalNumVGPRs`, `getVGPRAllocGranule` and `getMaxWavesPerEU` in LLVM's AMDGPUBaseInfo.cpp). All supported GPUs of RDNA have
/// 1.5 times the registers of the first ones.
fn simd(target: Target, lanes: u16) -> [u32; 3] {
    match (target.generation(), lanes) {
        (Generation::Gfx9, _) => [512, 8, 8],
        (_, 32) => [1536, 24, 16],
        _ => [768, 12, 16],
    }
}

/// The waves with so many vector registers each that fit into a SIMD.
pub(super) fn waves(target: Target, lanes: u16, vectors: u32) -> u32 {
    let [total, granule, most_waves] = simd(target, lanes);
    let given = vectors.max(1).next_multiple_of(granule);
    (total / given).clamp(1, most_waves)
}

/// The most vector registers with which as many waves fit into a SIMD as with `vectors`.
pub(super) fn most_vectors(target: Target, lanes: u16, vectors: u32) -> u32 {
    let [total, granule, _] = simd(target, lanes);
    total / waves(target, lanes, vectors) / granule * granule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_waves_fit_with_the_most_registers_and_fewer_with_one_more() {
        for (target, lanes) in [
            (Target::Gfx90a, 64),
            (Target::Gfx1100, 32),
            (Target::Gfx1201, 64),
        ] {
            let [total, granule, most_waves] = simd(target, lanes);
            let waves = |vectors: u32| (total / vectors.next_multiple_of(granule)).min(most_waves);
            for vectors in 1..=256 {
                let most = most_vectors(target, lanes, vectors);
                assert!(most >= vectors, "{vectors}");
                assert_eq!(waves(most), waves(vectors), "{vectors}");
                assert!(waves(most + 1) < waves(vectors), "{vectors}");
            }
        }
    }
}
