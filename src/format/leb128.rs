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

/// Appends `number` to `bytes` as ULEB128.
pub(crate) fn write_uleb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_number_is_the_one_that_is_read() {
        // DWARF 5, figure 22, has the first bytes of these.
        let known: [(u64, &[u8]); 4] = [
            (2, &[2]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (12857, &[0x39 | 0x80, 100]),
        ];
        for (number, expected) in known {
            let mut bytes = Vec::new();
            write_uleb128(&mut bytes, number);
            assert_eq!(bytes, expected);
            assert_eq!(uleb128(&bytes), Some((number, bytes.len())));
        }
    }
}
