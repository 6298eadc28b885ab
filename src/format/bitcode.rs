//! LLVM bitcode: the names of its symbols.
//!
//! Up to clang 22, each instrumented unit of GPU code defines `__llvm_prf_nm`, and the counters of weak functions, as
//! strong symbols (llvm/lib/Transforms/Instrumentation/InstrProfiling.cpp). A linker of object files can take the first
//! definition of each. LLVM's linker of modules, which hipRTC uses, rejects the second one. Nothing asks for these
//! symbols by their names: the drain finds their sections.

use std::ops::Range;

/// The start of a module's bytes (LLVM's "Bitcode File Format", magic number).
const MAGIC: [u8; 4] = *b"BC\xc0\xde";

/// The block with the names of symbols, one after the other (`STRTAB_BLOCK_ID`).
const STRING_TABLE: u32 = 23;

/// The abbreviation that starts a block (`ENTER_SUBBLOCK`), in the 2 bits that it has outside of all blocks.
const ENTER_BLOCK: u32 = 1;

/// A name of instrumentation, and the starts of others.
const NAMES: [&[u8]; 5] = [
    b"__llvm_prf_nm",
    b"__profc_",
    b"__profd_",
    b"__profbm_",
    b"__profvp_",
];

/// The bytes of a name that [`distinguish`] replaces by digits.
const REPLACED: Range<usize> = 3..7;
const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Gives the symbols that instrumentation adds to each module in `bytes` names of their own, of the same length.
/// `next_number` returns another number each time; names differ for 14 million numbers. Returns how many names have
/// changed.
///
/// `bytes` may be modules, an archive or an uncompressed bundle of them, or something else.
pub fn distinguish(bytes: &mut [u8], mut next_number: impl FnMut() -> u32) -> usize {
    let mut changed = 0;
    for table in string_tables(bytes) {
        let table = &mut bytes[table];
        let mut place = 0;
        while place < table.len() {
            match NAMES.iter().find(|name| table[place..].starts_with(name)) {
                None => place += 1,
                Some(name) => {
                    let mut number = next_number() as usize;
                    for byte in &mut table[place..][REPLACED] {
                        *byte = DIGITS[number % DIGITS.len()];
                        number /= DIGITS.len();
                    }
                    place += name.len();
                    changed += 1;
                }
            }
        }
    }
    changed
}

/// The places of all string tables.
fn string_tables(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut tables = Vec::new();
    let mut place = 0;
    while place + MAGIC.len() <= bytes.len() {
        if !bytes[place..].starts_with(&MAGIC) {
            place += 1;
            continue;
        }
        place += MAGIC.len();
        while let Some((kind, block)) = block(bytes, place) {
            place = block.end;
            if kind == STRING_TABLE {
                tables.push(block);
            }
        }
    }
    tables
}

/// The kind and the contents of the block at a place. A block starts with its kind (8 bits, as all known kinds are
/// below 128), the width of its abbreviations and, from the next word on, the number of its words.
fn block(bytes: &[u8], place: usize) -> Option<(u32, Range<usize>)> {
    let word = |place: usize| -> Option<u32> {
        let bytes = bytes.get(place..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let head = word(place)?;
    let words = usize::try_from(word(place + 4)?).ok()?;
    let start = place + 8;
    let end = start.checked_add(words.checked_mul(4)?)?;
    (head & 3 == ENTER_BLOCK && end <= bytes.len()).then_some((head >> 2 & 0xff, start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks after the magic number, each with its kind and its contents.
    fn module(blocks: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (kind, contents) in blocks {
            let words = contents.len().div_ceil(4);
            bytes.extend((kind << 2 | ENTER_BLOCK).to_le_bytes());
            bytes.extend((words as u32).to_le_bytes());
            bytes.extend_from_slice(contents);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn names_in_string_tables_become_unique() {
        let text: &[u8] = b"kern__profc_kern__llvm_prf_nm__llvm_profile_runtime";
        let source: &[u8] = b"a text with __profc_kern in it";
        let one = module(&[(8, source), (STRING_TABLE, text)]);
        let mut both = [b"!<arch>\n".as_slice(), &one, &one].concat();
        let mut number = 0;
        let changed = distinguish(&mut both, || {
            number += 1;
            number
        });
        assert_eq!(changed, 4);
        let wanted = [
            module(&[
                (8, source),
                (
                    STRING_TABLE,
                    b"kern__p1000_kern__l2000prf_nm__llvm_profile_runtime",
                ),
            ]),
            module(&[
                (8, source),
                (
                    STRING_TABLE,
                    b"kern__p3000_kern__l4000prf_nm__llvm_profile_runtime",
                ),
            ]),
        ];
        assert_eq!(both, [b"!<arch>\n".as_slice(), &wanted.concat()].concat());
    }

    #[test]
    fn other_bytes_stay() {
        let whole = module(&[(STRING_TABLE, b"__profc_kern")]);
        for len in 0..whole.len() {
            let mut cut = whole[..len].to_vec();
            assert_eq!(distinguish(&mut cut, || 1), 0, "{len}");
            assert_eq!(cut, whole[..len]);
        }
        let mut endless = [&MAGIC[..], &[0x5d, 0, 0, 0], &[0xff; 4], b"__profc_"].concat();
        assert_eq!(distinguish(&mut endless, || 1), 0);
    }
}
