//! A fat binary of cubins, from which the driver takes the one for a GPU. `rocov::format::bundle` has the format.

use rocov::format::bundle::FAT_BINARY_HEADER;

use crate::driver::Capability;

/// The magic number, the version, and the bytes of the header.
const START: [u8; 8] = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
/// An ELF, in the version of the entry's header that has 64 bytes.
const ELF: [u8; 8] = [2, 0, 1, 1, 64, 0, 0, 0];
/// The place of the version of a cubin in its ELF (`EI_ABIVERSION`).
const ABI_VERSION: usize = 8;
/// The flags of code with addresses of 64 bits, for Linux.
const FLAGS: u64 = 0x11;
/// Each part begins at a multiple of this many bytes.
const ALIGNMENT: usize = 8;

/// Packs cubins, each with the architecture that it is for.
pub(crate) fn pack(cubins: &[(Capability, &[u8])]) -> Vec<u8> {
    let mut all = START.to_vec();
    all.extend([0; FAT_BINARY_HEADER - START.len()]);
    for ((major, minor), cubin) in cubins {
        let padded = cubin.len().next_multiple_of(ALIGNMENT);
        let version = cubin.get(ABI_VERSION).copied().unwrap_or_default();
        all.extend(ELF);
        all.extend((padded as u64).to_le_bytes());
        // It is not compressed, and has no options.
        all.extend([0; 8]);
        all.extend([version, 0, 1, 0]);
        all.extend((10 * major + minor).to_le_bytes());
        // No name.
        all.extend([0; 8]);
        all.extend(FLAGS.to_le_bytes());
        all.extend([0; 16]);
        all.extend_from_slice(cubin);
        all.resize(all.len().next_multiple_of(ALIGNMENT), 0);
    }
    let size = (all.len() - FAT_BINARY_HEADER) as u64;
    all[START.len()..FAT_BINARY_HEADER].copy_from_slice(&size.to_le_bytes());
    all
}

#[cfg(test)]
mod tests {
    use rocov::format::bundle::containers;

    use super::*;

    /// `tests/cuda` compares with NVIDIA's fatbinary.
    #[test]
    fn a_fat_binary_has_its_cubins() {
        let elf = |last: u8| {
            let mut elf = b"\x7fELF\x02\x01\x01\x33\x07".to_vec();
            elf.resize(100, last);
            elf
        };
        let cubins = [elf(1), elf(2)];
        let packed = pack(&[((8, 0), &cubins[0]), ((9, 0), &cubins[1])]);
        let found: Vec<_> = containers(&packed).collect::<Result<_, _>>().unwrap();
        assert_eq!(found.len(), 1);
        let images = found[0].images.iter().map(|image| image.target.as_deref());
        assert_eq!(images.collect::<Vec<_>>(), [Some("sm_80"), Some("sm_90")]);
        for (image, cubin) in found[0].images.iter().zip(&cubins) {
            assert!(image.bytes.starts_with(cubin));
        }
    }
}
