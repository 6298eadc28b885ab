//! The section bounds table, `__llvm_profile_sections`: what the device says of itself.

use byteorder::{ByteOrder, LittleEndian};

use super::SectionsError;

/// The table's symbol. Protected, so that it is in `.dynsym` and the loader finds it by name.
pub const TABLE_SYMBOL: &str = "__llvm_profile_sections";
/// The version word that IR-level instrumentation emits itself. Where a code object has it, it
/// is the compiler's own word and beats the one that the table names (see `rocov_device.h`).
pub const VERSION_SYMBOL: &str = "__llvm_profile_raw_version";

/// The table's layouts, told apart by the symbol's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Raw version 10 and before: start and stop of names, counters and data, then the address of
    /// the version word. Source: compiler-rt's `InstrProfilingPlatformGPU.c`, early 2026.
    Seven,
}

impl Layout {
    /// Size of the table in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Layout::Seven => 7 * 8,
        }
    }

    /// The layout of a table of `bytes` bytes.
    ///
    /// # Errors
    /// Fails for a size that no known compiler emits.
    pub fn of_size(bytes: u64) -> Result<Layout, SectionsError> {
        if bytes == Layout::Seven.bytes() as u64 {
            return Ok(Layout::Seven);
        }
        Err(SectionsError::UnknownTable { found: bytes })
    }
}

/// The table's words: device addresses, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundsTable {
    /// Start and stop of the names.
    pub names: (u64, u64),
    /// Start and stop of the counters.
    pub counters: (u64, u64),
    /// Start and stop of the data records.
    pub data: (u64, u64),
    /// Address of the version word.
    pub version: u64,
}

impl BoundsTable {
    /// Decodes the table from its bytes on the device, little endian.
    ///
    /// # Errors
    /// Fails where `bytes` has the size of no known layout.
    pub fn decode(bytes: &[u8]) -> Result<BoundsTable, SectionsError> {
        let Layout::Seven = Layout::of_size(bytes.len() as u64)?;
        let mut words = [0_u64; 7];
        LittleEndian::read_u64_into(bytes, &mut words);
        let [
            names_start,
            names_stop,
            counters_start,
            counters_stop,
            data_start,
            data_stop,
            version,
        ] = words;
        Ok(BoundsTable {
            names: (names_start, names_stop),
            counters: (counters_start, counters_stop),
            data: (data_start, data_stop),
            version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_in_the_order_of_compiler_rt() {
        let bytes: Vec<u8> = (1..=7_u64).flat_map(u64::to_le_bytes).collect();
        let table = BoundsTable::decode(&bytes).unwrap();
        assert_eq!(
            table,
            BoundsTable {
                names: (1, 2),
                counters: (3, 4),
                data: (5, 6),
                version: 7
            }
        );
    }

    #[test]
    fn another_size_is_refused_by_its_number() {
        for size in [0, 48, 55, 57, 64, 72, 80] {
            let error = BoundsTable::decode(&vec![0; size]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("__llvm_profile_sections has {size} bytes, expected 56 (raw version 10)")
            );
        }
    }
}
