//! LZ4 blocks, with a limit on memory (LZ4's own description, lz4_Block_format.md).
//!
//! A block is a list of sequences. Each has a token with two lengths of 4 bits, the rest of the first length, literal
//! bytes, a distance of 2 bytes, and the rest of the second length. The last sequence ends after its literals.

/// The value of a length in a token that continues in the next bytes.
const MORE: usize = 15;
/// The least number of bytes that a sequence repeats.
const MIN_MATCH: usize = 4;

/// Unpacks a block, up to `most` bytes. Memory grows with the output.
///
/// # Errors
/// Fails if the block is cut short, or repeats bytes from before its start.
pub(super) fn unpack(block: &[u8], most: u64) -> Result<Vec<u8>, &'static str> {
    const CUT: &str = "the LZ4 block is cut short";
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    let mut rest = block;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let literals = length(usize::from(token >> 4), &mut rest).ok_or(CUT)?;
        let (taken, after) = rest.split_at_checked(literals).ok_or(CUT)?;
        bytes.extend_from_slice(&taken[..literals.min(most - bytes.len())]);
        rest = after;
        if rest.is_empty() || bytes.len() == most {
            break;
        }
        let (distance, after) = rest.split_first_chunk().ok_or(CUT)?;
        rest = after;
        let distance = usize::from(u16::from_le_bytes(*distance));
        if distance == 0 || distance > bytes.len() {
            return Err("the LZ4 block repeats bytes from before its start");
        }
        let repeated = MIN_MATCH + length(usize::from(token & 15), &mut rest).ok_or(CUT)?;
        // The bytes may overlap their copy, as in a run of one byte.
        for _ in 0..repeated.min(most - bytes.len()) {
            bytes.push(bytes[bytes.len() - distance]);
        }
    }
    Ok(bytes)
}

/// A length from its first 4 bits and the bytes that follow.
fn length(first: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut length = first;
    if first == MORE {
        loop {
            let (byte, after) = rest.split_first()?;
            *rest = after;
            length += usize::from(*byte);
            if *byte != u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_repetitions_are_unpacked() {
        let long = [&[0xf0, 255, 3][..], &[7; 273]].concat();
        for (block, expected) in [
            (&[0x30, b'a', b'b', b'c'][..], b"abc".to_vec()),
            // 1 literal, then 4 + 15 + 2 of them, then 1 literal.
            (
                &[0x1f, b'a', 1, 0, 2, 0x10, b'b'],
                [&[b'a'; 22][..], b"b"].concat(),
            ),
            (&[0x20, b'a', b'b', 2, 0, 0x10, b'c'], b"abababc".to_vec()),
            (&long, vec![7; 273]),
            (&[], vec![]),
        ] {
            assert_eq!(unpack(block, 1000), Ok(expected));
        }
    }

    #[test]
    fn damaged_blocks_are_refused() {
        for block in [
            &[0x30, b'a', b'b'][..],
            &[0xf0, 255],
            &[0x1f, b'a', 1],
            &[0x1f, b'a', 1, 0],
        ] {
            assert_eq!(unpack(block, 1000), Err("the LZ4 block is cut short"));
        }
        for distance in [0, 2] {
            let refused = unpack(&[0x10, b'a', distance, 0, 0x10, b'b'], 1000);
            let expected = "the LZ4 block repeats bytes from before its start";
            assert_eq!(refused, Err(expected));
        }
    }

    #[test]
    fn no_more_than_asked_for_comes_out() {
        let mut block = vec![0x1f, b'a', 1, 0];
        block.extend([255; 1 << 10]);
        block.push(0);
        assert_eq!(unpack(&block, 100), Ok(vec![b'a'; 100]));
        assert_eq!(unpack(&[0x30, b'a', b'b', b'c'], 2), Ok(b"ab".to_vec()));
    }
}
