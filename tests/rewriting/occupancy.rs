//! How many waves of a kernel fit into a SIMD at once, by the registers that its descriptor allots.
//!
//! The numbers are those of LLVM's AMDGPUBaseInfo.cpp: `getTotalNumVGPRs`, `getVGPRAllocGranule`, `getMaxWavesPerEU`
//! and `AMDGPUSubtarget::getOccupancyWithNumSGPRs`.

use byteorder::{ByteOrder, LittleEndian};

/// The offsets of words in a kernel descriptor, and the bits in them ("Kernel Descriptor" in LLVM's AMDGPUUsage).
const RESOURCES_1: usize = 48;
const PROPERTIES: usize = 56;
const VECTORS: u32 = 0x3f;
const SCALARS_AT: u32 = 6;
const SCALARS: u32 = 0xf;
const WAVE32: u16 = 1 << 10;

/// Returns the most waves of a kernel in a SIMD, for a processor such as `gfx90a`, by the bytes of its descriptor.
pub(crate) fn waves(processor: &str, descriptor: &[u8]) -> u32 {
    let resources = LittleEndian::read_u32(&descriptor[RESOURCES_1..]);
    let is_wave32 = LittleEndian::read_u16(&descriptor[PROPERTIES..]) & WAVE32 != 0;
    let granules = (resources & VECTORS) + 1;
    if processor.starts_with("gfx9") {
        let by_vectors = 512 / (8 * granules);
        // The waves that 800 registers allow: only more than 100 for each wave leave fewer than 8.
        let scalars = 8 * ((resources >> SCALARS_AT & SCALARS) + 1);
        let by_scalars = if scalars > 100 { 7 } else { 8 };
        return by_vectors.min(by_scalars).clamp(1, 8);
    }
    // RDNA 3 and 4 with 1.5 times the registers, as gfx1100 and gfx1201 have them. It allots more than a descriptor's unit.
    let (total, granule, unit): (u32, u32, u32) = match is_wave32 {
        true => (1536, 24, 8),
        false => (768, 12, 4),
    };
    (total / (unit * granules).next_multiple_of(granule)).clamp(1, 16)
}

/// Registers and the waves that AMD's and LLVM's tables give for them.
#[test]
fn registers_allow_as_many_waves_as_in_llvm() {
    let descriptor = |granules: u32, scalars: u32, is_wave32: bool| {
        let mut bytes = vec![0; 64];
        LittleEndian::write_u32(
            &mut bytes[RESOURCES_1..],
            (granules - 1) | ((scalars / 8 - 1) << SCALARS_AT),
        );
        LittleEndian::write_u16(&mut bytes[PROPERTIES..], u16::from(is_wave32) << 10);
        bytes
    };
    for (vectors, expected) in [
        (64, 8),
        (72, 7),
        (80, 6),
        (96, 5),
        (128, 4),
        (168, 3),
        (256, 2),
        (512, 1),
    ] {
        assert_eq!(
            waves("gfx90a", &descriptor(vectors / 8, 96, false)),
            expected,
            "{vectors}"
        );
    }
    assert_eq!(waves("gfx942", &descriptor(1, 112, false)), 7);
    for (vectors, expected) in [
        (96, 16),
        (104, 12),
        (120, 12),
        (128, 10),
        (192, 8),
        (256, 5),
    ] {
        assert_eq!(
            waves("gfx1100", &descriptor(vectors / 8, 8, true)),
            expected,
            "{vectors}"
        );
    }
}
