//! The section bounds table, `__llvm_profile_sections`: what the device says of itself.

use byteorder::{ByteOrder, LittleEndian};

use super::{Bounds, SectionsError};

/// The table's symbol. Protected, so that it is in `.dynsym` and the loader finds it by name.
///
/// Some compilers (ROCm 7) emit one for each translation unit as well: this name, `_`, and the
/// unit's CUID.
pub const TABLE_SYMBOL: &str = "__llvm_profile_sections";
/// The version word that IR-level instrumentation emits itself. Where a code object has it, it
/// is the compiler's own word and beats the one that the table names (see `rocov_device.h`).
pub const VERSION_SYMBOL: &str = "__llvm_profile_raw_version";
/// The version word of rocov's device header.
pub const OWN_VERSION_SYMBOL: &str = "__rocov_raw_version";

/// The table's layouts, told apart by the symbol's size: 8-byte words, start and stop of each
/// section, the address of the version word last. Source: compiler-rt's
/// `InstrProfilingPlatformGPU.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Up to raw version 10: names, counters, data.
    Seven,
    /// Raw version 11: names, counters, data, uniform counters.
    Nine,
}

impl Layout {
    /// Size of the table in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Layout::Seven => 7 * 8,
            Layout::Nine => 9 * 8,
        }
    }

    /// The layout of a table of `bytes` bytes.
    ///
    /// # Errors
    /// Fails for a size that no known compiler emits.
    pub fn of_size(bytes: u64) -> Result<Layout, SectionsError> {
        [Layout::Seven, Layout::Nine]
            .into_iter()
            .find(|layout| layout.bytes() as u64 == bytes)
            .ok_or(SectionsError::UnknownTable { found: bytes })
    }
}

/// The table's words: device addresses, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundsTable {
    /// The sections.
    pub bounds: Bounds,
    /// Address of the version word.
    pub version: u64,
}

impl BoundsTable {
    /// Decodes the table from its bytes on the device, little endian.
    ///
    /// # Errors
    /// Fails where `bytes` has the size of no known layout.
    pub fn decode(bytes: &[u8]) -> Result<BoundsTable, SectionsError> {
        let layout = Layout::of_size(bytes.len() as u64)?;
        let mut words = [0_u64; 9];
        let words = &mut words[..layout.bytes() / 8];
        LittleEndian::read_u64_into(bytes, words);
        let pair = |at: usize| (words[at], words[at + 1]);
        let uniform = match layout {
            Layout::Seven => (0, 0),
            Layout::Nine => pair(6),
        };
        Ok(BoundsTable {
            bounds: Bounds {
                names: pair(0),
                counters: pair(2),
                data: pair(4),
                uniform,
                // The table says nothing of bitmaps.
                bitmap: (0, 0),
            },
            version: words[words.len() - 1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: u64) -> Vec<u8> {
        (1..=count).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn words_are_taken_in_the_order_of_compiler_rt() {
        let table = BoundsTable::decode(&words(7)).unwrap();
        let mut bounds = Bounds {
            names: (1, 2),
            counters: (3, 4),
            data: (5, 6),
            ..Bounds::default()
        };
        assert_eq!(table, BoundsTable { bounds, version: 7 });
        let table = BoundsTable::decode(&words(9)).unwrap();
        bounds.uniform = (7, 8);
        assert_eq!(table, BoundsTable { bounds, version: 9 });
    }

    #[test]
    fn another_size_is_refused_by_its_number() {
        for size in [0, 48, 55, 57, 64, 71, 80] {
            let error = BoundsTable::decode(&vec![0; size]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("__llvm_profile_sections has {size} bytes, expected 56 or 72")
            );
        }
    }
}
