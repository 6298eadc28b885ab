//! The section bounds table, `__llvm_profile_sections`: the device addresses of a code object's profile
//! sections.

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

use crate::format::codeobject::{ElfRange, ProfileSections};
use crate::format::sections::{PerSection, Section};

/// The table's symbol. Its visibility is protected, so it is in `.dynsym` and the loader finds it by name.
///
/// Some compilers (ROCm 7) also emit one table for each translation unit. Its name is this one, `_`, and the
/// unit's CUID.
pub const TABLE_SYMBOL: &str = "__llvm_profile_sections";
/// The version word that IR-level instrumentation emits. If a code object has it, it takes precedence over
/// the word that the table names: it comes from the compiler (see `rocov_device.h`).
pub const VERSION_SYMBOL: &str = "__llvm_profile_raw_version";
/// The version word of rocov's device header.
pub const OWN_VERSION_SYMBOL: &str = "__rocov_raw_version";

/// The error for a section bounds table whose size fits no known layout.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "{TABLE_SYMBOL} has {found} bytes, expected {} or {}",
    LAYOUTS[0].bytes(),
    LAYOUTS[1].bytes()
)]
pub struct UnknownTable {
    /// The symbol's size in bytes.
    pub found: u64,
}

/// A layout of the table: 8-byte words with the start and stop of each section, then the address of the
/// version word. The size of the symbol distinguishes the layouts. Source: compiler-rt's
/// `InstrProfilingPlatformGPU.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    sections: &'static [Section],
}

/// The known layouts: raw versions up to 10, and raw version 11. Neither has bounds for bitmaps.
const LAYOUTS: [TableLayout; 2] = [
    TableLayout {
        sections: &[Section::Names, Section::Counters, Section::Data],
    },
    TableLayout {
        sections: &[
            Section::Names,
            Section::Counters,
            Section::Data,
            Section::Uniform,
        ],
    },
];

impl TableLayout {
    /// Size of the table in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        (2 * self.sections.len() + 1) * 8
    }

    /// The layout of a table of `bytes` bytes.
    ///
    /// # Errors
    /// Fails if no known compiler emits a table of this size.
    pub fn from_size(bytes: u64) -> Result<Self, UnknownTable> {
        LAYOUTS
            .into_iter()
            .find(|layout| layout.bytes() as u64 == bytes)
            .ok_or(UnknownTable { found: bytes })
    }
}

/// Start and stop of each section as device addresses, unchecked. Both are 0 for an absent section, as the
/// linker resolves them.
pub type Bounds = PerSection<(u64, u64)>;

impl PerSection<(u64, u64)> {
    /// The bounds from an ELF's section headers, for a load at `load_delta`.
    #[must_use]
    pub fn from_elf(sections: &ProfileSections, load_delta: u64) -> Self {
        let pair = |range: &Option<ElfRange>| {
            range.map_or((0, 0), |range| {
                let start = range.address.wrapping_add(load_delta);
                (start, start.wrapping_add(range.size))
            })
        };
        sections.map(pair)
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
    /// Fails if no known layout has the size of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, UnknownTable> {
        let layout = TableLayout::from_size(bytes.len() as u64)?;
        let mut words = vec![0_u64; layout.bytes() / 8];
        LittleEndian::read_u64_into(bytes, &mut words);
        let mut bounds = Bounds::default();
        for (section, pair) in layout.sections.iter().zip(words.chunks_exact(2)) {
            *bounds.get_mut(*section) = (pair[0], pair[1]);
        }
        Ok(Self {
            bounds,
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
