//! ULEB128, the variable-length numbers of LLVM's names and coverage sections (DWARF 5, section 7.6).

/// The number below 2^63 at the start of `bytes` as ULEB128, and the number of bytes that it takes. `None` if
/// there is none.
#[must_use]
pub fn uleb128(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}
